//! Joint choices by simulated annealing, for networks of any size.

use brasa_env::{EnvRng, field};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::allocation::Allocation;
use super::bound::upper_bound;
use super::greedy::greedy;
use super::objective::{Objective, Score};
use super::options;
use super::random::below;
use crate::error::UaraError;
use crate::radio::Link;
use crate::snapshot::Snapshot;

/// Settings of simulated annealing.
///
/// The unit of temperatures is one satisfied user for [`Objective::Satisfied`], where the sum of all rates counts less
/// than one user. For [`Objective::SumRate`] it is the mean over users of the rate without interference.
///
/// ```
/// use brasa_uara::baselines::AnnealingConfig;
///
/// let config = AnnealingConfig { evaluations: 1000, ..AnnealingConfig::default() };
/// config.validate()?;
/// let error = AnnealingConfig { last_temperature: 1.0, ..config }.validate().unwrap_err();
/// assert_eq!(error.to_string(), "`last_temperature` must be in (0, first_temperature], got 1");
/// # Ok::<(), brasa_uara::UaraError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnnealingConfig {
    /// Number of moves. Default 20,000, some ms for 30 users. Far fewer hardly improve on greedy; ten times as
    /// many gained less than 0.5 % on the networks of the presets.
    pub evaluations: usize,
    /// Temperature of the first move. Default 0.1. Much higher values lose the greedy start; much lower ones find only
    /// local optima.
    pub first_temperature: f64,
    /// Temperature of the last move. Default 1e-4. With too high values the last moves are random.
    pub last_temperature: f64,
}

impl Default for AnnealingConfig {
    fn default() -> Self {
        Self { evaluations: 20_000, first_temperature: 0.1, last_temperature: 1e-4 }
    }
}

impl AnnealingConfig {
    /// Checks every setting.
    ///
    /// # Errors
    /// [`UaraError::Field`].
    pub fn validate(&self) -> Result<(), UaraError> {
        field::rule(
            self.first_temperature.is_finite() && self.first_temperature > 0.0,
            "first_temperature",
            "must be positive and finite",
            self.first_temperature,
        )?;
        field::rule(
            self.last_temperature > 0.0 && self.last_temperature <= self.first_temperature,
            "last_temperature",
            "must be in (0, first_temperature]",
            self.last_temperature,
        )?;
        Ok(())
    }
}

/// Fraction of the moves to any station; the others are to stations that can serve the user. The former allow a user to
/// leave the spectrum to others.
const ANYTHING: f64 = 0.1;

/// Starts with the greedy choice, moves one user at a time to a random option, and keeps the move if it is better, or
/// with probability `exp(change / temperature)` (Kirkpatrick, Gelatt and Vecchi, "Optimization by simulated annealing",
/// 1983). The temperature decreases by a constant factor per move. The best joint choice found is returned, so it is
/// never worse than the greedy one.
///
/// ```
/// # use brasa_uara::{Interference, Radio, Snapshot};
/// # let radio = Radio {
/// #     n_users: 2, n_stations: 2, n_channels: 2, power_levels: vec![1.0], bandwidth_hz: 1e6, noise_mw: 1e-9,
/// #     min_sinr: 8.0, max_bits_per_hz: None, interference: Interference::PerTransmitter,
/// # };
/// # let (received_mw, all) = (vec![63e-9, 7e-9, 7e-9, 63e-9], vec![true; 4]);
/// # let snapshot = Snapshot { radio: radio.into(), received_mw, reached: all.clone(), allowed: all };
/// use brasa_env::named_rng;
/// use brasa_uara::baselines::{AnnealingConfig, Objective, anneal};
///
/// // Two users, each near its station; alone on a channel, each has 6 Mb/s.
/// let rng = &mut named_rng(0, "annealing", 0);
/// let links = anneal(&snapshot, Objective::SumRate, &AnnealingConfig::default(), rng)?;
/// assert!((snapshot.outcome(&links).sum_rate_mbps() - 12.0).abs() < 1e-9);
/// # Ok::<(), brasa_uara::UaraError>(())
/// ```
///
/// # Errors
/// [`UaraError::Field`] if `config` is not valid.
pub fn anneal(
    snapshot: &Snapshot,
    objective: Objective,
    config: &AnnealingConfig,
    rng: &mut EnvRng,
) -> Result<Vec<Link>, UaraError> {
    config.validate()?;
    let mut best = greedy(snapshot, objective);
    let all: Vec<Vec<Link>> = (0..best.len()).map(|user| options::links(snapshot, user).collect()).collect();
    let useful: Vec<Vec<Link>> = (0..best.len()).map(|user| options::useful_links(snapshot, user).collect()).collect();
    let rates = upper_bound(snapshot).sum_rate_mbps.max(f64::MIN_POSITIVE);
    let value = |score: Score| match objective {
        Objective::Satisfied => score.satisfied as f64 + score.sum_rate_mbps / rates,
        Objective::SumRate => score.sum_rate_mbps / rates * all.len() as f64,
    };
    let mut allocation = Allocation::with_links(snapshot, &best);
    let mut score = allocation.score();
    let mut best_score = score;
    let cooling = (config.last_temperature / config.first_temperature).powf(1.0 / config.evaluations.max(1) as f64);
    let mut temperature = config.first_temperature;
    for _ in 0..config.evaluations {
        let user = below(rng, all.len());
        let anything = rng.random::<f64>() < ANYTHING || useful[user].is_empty();
        let choices = if anything { &all[user] } else { &useful[user] };
        let link = choices[below(rng, choices.len())];
        let luck: f64 = rng.random();
        let before = allocation.lift(user);
        allocation.place(user, link);
        let new = allocation.score();
        if luck < ((value(new) - value(score)) / temperature).exp() {
            score = new;
            if objective.is_better(score, best_score) {
                best_score = score;
                best = allocation.links();
            }
        } else if let Some(before) = before {
            allocation.lift(user);
            allocation.place(user, before);
        }
        temperature *= cooling;
    }
    Ok(best)
}
