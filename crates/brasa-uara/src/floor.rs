//! The cost of exploration: the result of a joint choice if some users act randomly.

use brasa_env::EnvRng;
use rand::RngExt;

use crate::baselines::random;
use crate::radio::Link;
use crate::receiver::Receiver;
use crate::snapshot::Snapshot;

/// Result of a joint choice if every user deviates with some probability.
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
/// use brasa_uara::baselines::{Objective, greedy};
/// use brasa_uara::{Floor, exploration_floor};
///
/// // Two users, each near its station; alone on a channel, each has 6 Mb/s.
/// let links = greedy(&snapshot, Objective::Satisfied);
/// let floor: Floor = exploration_floor(&snapshot, &links, 0.0, 10, &mut named_rng(0, "floor", 0));
/// // Without exploration, every step satisfies both users.
/// assert_eq!((floor.all_satisfied, floor.failed_steps), (1.0, 0.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floor {
    /// Probability that all users are satisfied in a step.
    pub all_satisfied: f64,
    /// Fraction of satisfied users.
    pub qos_rate: f64,
    /// Sum of all rates, Mb/s.
    pub sum_rate_mbps: f64,
    /// Mean number of failed steps before a step that satisfies all users; infinite if there was none.
    pub failed_steps: f64,
}

/// Evaluates `links` over `n_draws` steps; in each step every user takes a random option with probability `epsilon`.
///
/// A learning curve with exploration cannot exceed this result by much, even for a good policy.
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
/// use brasa_uara::baselines::{Objective, greedy};
/// use brasa_uara::exploration_floor;
///
/// // Two users, each near its station; alone on a channel, each has 6 Mb/s.
/// let links = greedy(&snapshot, Objective::Satisfied);
/// let at = |epsilon| exploration_floor(&snapshot, &links, epsilon, 1000, &mut named_rng(0, "floor", 0)).qos_rate;
/// assert_eq!(at(0.0), 1.0);
/// assert!(at(0.5) < at(0.1) && at(0.1) < 1.0);
/// ```
///
/// # Panics
/// If `n_draws` is 0.
pub fn exploration_floor(snapshot: &Snapshot, links: &[Link], epsilon: f64, n_draws: usize, rng: &mut EnvRng) -> Floor {
    assert!(n_draws > 0, "a mean needs draws");
    let mut receiver = Receiver::new(&snapshot.radio);
    let (mut all, mut qos, mut rate) = (0, 0.0, 0.0);
    for _ in 0..n_draws {
        let strays = random(snapshot, rng);
        let mixed: Vec<Link> = links
            .iter()
            .zip(strays)
            .map(|(link, stray)| if rng.random::<f64>() < epsilon { stray } else { *link })
            .collect();
        let outcome = snapshot.outcome_with(&mut receiver, &mixed);
        all += usize::from(outcome.satisfied.iter().all(|satisfied| *satisfied));
        qos += outcome.qos_rate();
        rate += outcome.sum_rate_mbps();
    }
    let n = n_draws as f64;
    let all_satisfied = all as f64 / n;
    Floor { all_satisfied, qos_rate: qos / n, sum_rate_mbps: rate / n, failed_steps: 1.0 / all_satisfied - 1.0 }
}
