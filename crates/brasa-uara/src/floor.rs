//! The cost of exploration: the result of a joint choice if some users act randomly.

use brasa_env::EnvRng;
use rand::RngExt;

use crate::baselines::random;
use crate::radio::Link;
use crate::receiver::Receiver;
use crate::snapshot::Snapshot;

/// Result of a joint choice if every user deviates with some probability.
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
