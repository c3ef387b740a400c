//! Heuristics, equilibria, optima and bounds for comparison with learned policies.
//!
//! All use the whole [`Snapshot`], with the gains of all users, and return one [`Link`] per user.

mod allocation;
mod annealing;
mod best_response;
mod bound;
mod coloring;
mod exhaustive;
mod greedy;
mod objective;
mod options;
mod random;

use std::fmt;

use brasa_env::EnvRng;
use serde::{Deserialize, Serialize};

pub use annealing::{AnnealingConfig, anneal};
pub use best_response::{BestResponseConfig, Nash, best_response, largest_gain};
pub use bound::{UpperBound, upper_bound};
pub use coloring::strongest_coloring;
pub use exhaustive::{Exhaustive, MAX_JOINT_CHOICES, exhaustive};
pub use greedy::greedy;
pub use objective::{Objective, Score};
pub use random::{random, strongest_random};

use crate::radio::Link;
use crate::snapshot::Snapshot;

/// A heuristic for networks of any size.
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
/// use brasa_uara::{Heuristic, Objective};
///
/// // Two users, each near its station; alone on a channel, each has 6 Mb/s.
/// for heuristic in Heuristic::ALL {
///     let links = heuristic.choose(&snapshot, Objective::SumRate, &mut named_rng(0, "heuristic", 0));
///     assert!(snapshot.outcome(&links).sum_rate_mbps() <= 12.0 + 1e-9, "{heuristic}");
/// }
/// assert_eq!(Heuristic::Greedy.name(), "greedy");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Heuristic {
    /// [`random`].
    Random,
    /// [`strongest_random`].
    StrongestRandom,
    /// [`strongest_coloring`].
    StrongestColoring,
    /// [`greedy`].
    Greedy,
    /// [`best_response`] with its default settings.
    BestResponse,
    /// [`anneal`] with its default settings.
    Annealing,
}

impl Heuristic {
    /// All heuristics, in order of the information that they use.
    pub const ALL: [Self; 6] = [
        Self::Random,
        Self::StrongestRandom,
        Self::StrongestColoring,
        Self::Greedy,
        Self::BestResponse,
        Self::Annealing,
    ];

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::StrongestRandom => "strongest-random",
            Self::StrongestColoring => "strongest-coloring",
            Self::Greedy => "greedy",
            Self::BestResponse => "best-response",
            Self::Annealing => "annealing",
        }
    }

    /// Whether its choice is random.
    pub(crate) fn draws(self) -> bool {
        matches!(self, Self::Random | Self::StrongestRandom)
    }

    /// One link per user. Deterministic heuristics do not use `rng`; some heuristics ignore the objective.
    pub fn choose(self, snapshot: &Snapshot, objective: Objective, rng: &mut EnvRng) -> Vec<Link> {
        match self {
            Self::Random => random(snapshot, rng),
            Self::StrongestRandom => strongest_random(snapshot, rng),
            Self::StrongestColoring => strongest_coloring(snapshot),
            Self::Greedy => greedy(snapshot, objective),
            Self::BestResponse => best_response::settle(snapshot, objective, &BestResponseConfig::default(), rng).links,
            Self::Annealing => {
                anneal(snapshot, objective, &AnnealingConfig::default(), rng).expect("the default settings are valid")
            }
        }
    }
}

impl fmt::Display for Heuristic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
