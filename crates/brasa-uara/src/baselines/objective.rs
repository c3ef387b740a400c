//! Objectives of joint choices.

use serde::{Deserialize, Serialize};

use crate::snapshot::Outcome;

/// The objective that a heuristic maximizes.
///
/// ```
/// use brasa_uara::baselines::{Objective, Score};
///
/// let (many, fast) = (Score { satisfied: 3, sum_rate_mbps: 1.0 }, Score { satisfied: 2, sum_rate_mbps: 9.0 });
/// assert!(Objective::Satisfied.is_better(many, fast));
/// assert!(Objective::SumRate.is_better(fast, many));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The number of satisfied users, then the sum of rates.
    #[default]
    Satisfied,
    /// The sum of all rates, then the number of satisfied users.
    SumRate,
}

/// The score of a joint choice.
///
/// ```
/// # use brasa_uara::{Interference, Radio, Snapshot};
/// # let radio = Radio {
/// #     n_users: 2, n_stations: 2, n_channels: 2, power_levels: vec![1.0], bandwidth_hz: 1e6, noise_mw: 1e-9,
/// #     min_sinr: 8.0, max_bits_per_hz: None, interference: Interference::PerTransmitter,
/// # };
/// # let (received_mw, all) = (vec![63e-9, 7e-9, 7e-9, 63e-9], vec![true; 4]);
/// # let snapshot = Snapshot { radio: radio.into(), received_mw, reached: all.clone(), allowed: all };
/// use brasa_uara::{Link, baselines::Score};
///
/// // Two users, each near its station; alone on a channel, each has 6 Mb/s.
/// let link = |station, channel| Link { station, channel, power: 0 };
/// let score = Score::of(&snapshot.outcome(&[link(0, 0), link(1, 1)]));
/// assert_eq!(score.satisfied, 2);
/// assert!((score.sum_rate_mbps - 12.0).abs() < 1e-9);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Score {
    /// Satisfied users.
    pub satisfied: usize,
    /// Sum of all rates, Mb/s.
    pub sum_rate_mbps: f64,
}

impl Score {
    /// The score of `outcome`.
    pub fn of(outcome: &Outcome) -> Self {
        let satisfied = outcome.satisfied.iter().filter(|satisfied| **satisfied).count();
        Self { satisfied, sum_rate_mbps: outcome.sum_rate_mbps() }
    }
}

impl Objective {
    /// Whether `one` is better than `other`; false for equals.
    pub fn is_better(self, one: Score, other: Score) -> bool {
        let rank = |score: Score| self.rank(score.satisfied as f64, score.sum_rate_mbps);
        rank(one) > rank(other)
    }

    /// Numbers in lexicographic order of the objective, for scores and for changes of scores.
    pub(super) fn rank(self, satisfied: f64, sum_rate_mbps: f64) -> [f64; 2] {
        match self {
            Self::Satisfied => [satisfied, sum_rate_mbps],
            Self::SumRate => [sum_rate_mbps, satisfied],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_objective_puts_its_own_figure_first() {
        let (many, fast) = (Score { satisfied: 3, sum_rate_mbps: 1.0 }, Score { satisfied: 2, sum_rate_mbps: 9.0 });
        assert!(Objective::Satisfied.is_better(many, fast));
        assert!(Objective::SumRate.is_better(fast, many));
        assert!(!Objective::SumRate.is_better(fast, fast));
        assert!(Objective::Satisfied.is_better(Score { sum_rate_mbps: 2.0, ..many }, many));
    }
}
