//! A record of an episode per step, for reports.

use serde::{Deserialize, Serialize};

use crate::batch::UaraBatch;
use crate::layout::Layout;
use crate::radio::Link;
use crate::snapshot::Snapshot;

/// An episode: positions of stations, and the users at each step.
///
/// ```
/// use brasa_env::{Evaluation, Scenario, Who};
/// use brasa_uara::{Trace, Uara, UaraConfig};
///
/// let evaluation = Evaluation { n_traces: 1, ..Evaluation::new(1, 0) };
/// let outcomes = Uara::new(UaraConfig::cly2020())?.evaluate(Who::Baseline("greedy"), &evaluation)?;
/// let trace: Option<&Trace> = outcomes[0].trace.as_ref().and_then(|trace| trace.downcast_ref());
/// let trace = trace.expect("it was asked for");
/// assert_eq!((trace.stations_m.len(), trace.frames.len()), (26, 1));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Position of each station, m.
    pub stations_m: Vec<[f64; 2]>,
    /// Radius of each station's cell, m.
    pub radii_m: Vec<f64>,
    /// One frame per step.
    pub frames: Vec<Frame>,
}

/// One step.
///
/// ```
/// # use brasa_env::{Evaluation, Scenario, Who};
/// # use brasa_uara::{Trace, Uara, UaraConfig};
/// # let evaluation = Evaluation { n_traces: 1, ..Evaluation::new(1, 0) };
/// # let outcomes = Uara::new(UaraConfig::cly2020())?.evaluate(Who::Baseline("greedy"), &evaluation)?;
/// # let trace: Option<&Trace> = outcomes[0].trace.as_ref().and_then(|trace| trace.downcast_ref());
/// # let trace = trace.expect("it was asked for");
/// use brasa_uara::Frame;
///
/// // `trace` is of an episode that the greedy planner ends in its first step.
/// let frame: &Frame = &trace.frames[0];
/// assert_eq!(frame.links.len(), frame.users_m.len());
/// assert!(frame.satisfied.iter().all(|satisfied| *satisfied));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// Position of each user, m.
    pub users_m: Vec<[f64; 2]>,
    /// The link of each user.
    pub links: Vec<Link>,
    /// Whether each user was satisfied.
    pub satisfied: Vec<bool>,
    /// SINR of each user, dB; `None` without a signal.
    pub sinr_db: Vec<Option<f64>>,
    /// The rate of each user, Mb/s.
    pub rate_mbps: Vec<f64>,
}

impl Trace {
    pub(crate) fn new(batch: &UaraBatch, env: usize) -> Self {
        let radii_m = batch.config().station_tiers().map(|tier| tier.radius_m).collect();
        Self { stations_m: batch.layout(env).stations_m.clone(), radii_m, frames: Vec::new() }
    }

    /// Adds a step with `links`.
    pub(crate) fn record(&mut self, snapshot: &Snapshot, layout: &Layout, links: Vec<Link>) {
        let outcome = snapshot.outcome(&links);
        let decibels = |sinr: &f64| (*sinr > 0.0).then(|| 10.0 * sinr.log10());
        self.frames.push(Frame {
            users_m: layout.users_m.clone(),
            sinr_db: outcome.sinr.iter().map(decibels).collect(),
            satisfied: outcome.satisfied,
            rate_mbps: outcome.rate_mbps,
            links,
        });
    }
}
