//! A record of an episode, step by step, to look at and to draw.

use serde::{Deserialize, Serialize};

use crate::batch::UaraBatch;
use crate::layout::Layout;
use crate::radio::Link;
use crate::snapshot::Snapshot;

/// An episode: where stations stand, and what users did at each step.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// Position of each user, m.
    pub users_m: Vec<[f64; 2]>,
    /// What each user used.
    pub links: Vec<Link>,
    /// Whether each user was satisfied.
    pub satisfied: Vec<bool>,
    /// The ratio of signal to interference and noise of each user, dB; `None` where there was no signal.
    pub sinr_db: Vec<Option<f64>>,
    /// The rate of each user, Mb/s.
    pub rate_mbps: Vec<f64>,
}

impl Trace {
    pub(crate) fn new(batch: &UaraBatch, env: usize) -> Self {
        let radii_m = batch.config().station_tiers().map(|tier| tier.radius_m).collect();
        Self { stations_m: batch.layout(env).stations_m.clone(), radii_m, frames: Vec::new() }
    }

    /// Adds the moment at which users use `links`.
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
