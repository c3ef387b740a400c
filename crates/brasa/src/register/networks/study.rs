//! Bounds, equilibria and the exploration floor of networks at the start of their episodes.

use brasa_env::{BatchSlabs, EnvBatch, named_rng};
use brasa_experiment::{ExperimentError, Remark, RemarkContext, number};
use brasa_uara::baselines::{BestResponseConfig, best_response, greedy, upper_bound};
use brasa_uara::{Redraw, Uara, exploration_floor};
use serde_json::Value;

/// Number of networks for bounds, equilibria and the floor.
const STUDIED: usize = 20;
/// Number of steps per network for the estimate of the exploration floor.
const FLOOR_DRAWS: usize = 2000;
/// The metric of the exploration rate.
const EXPLORATION: &str = "rollout/exploration_rate";

/// Exploration of a learner.
#[derive(Debug, Clone, Copy)]
struct Exploration {
    /// Fraction of random actions.
    epsilon: f64,
    /// Time: `the end` or `the beginning` of training.
    when: &'static str,
}

/// The exploration rate in a run's metrics at the end, or at the beginning if it is 0 at the end.
fn exploration(context: &RemarkContext<'_>) -> Option<Exploration> {
    let mut rates = context.metrics.iter().filter_map(|line| line.get(EXPLORATION).and_then(Value::as_f64));
    let first = rates.next()?;
    let last = rates.next_back().unwrap_or(first);
    let at_the_end = Exploration { epsilon: last, when: "the end" };
    Some(if last > 0.0 { at_the_end } else { Exploration { epsilon: first, when: "the beginning" } })
}

/// Sentences below the table and a horizontal line for the curve.
pub fn remark(scenario: &Uara, context: &RemarkContext<'_>) -> Result<Remark, ExperimentError> {
    let n_episodes = context.played.iter().map(|row| row.outcomes.len()).max().unwrap_or(1);
    let n = if stays(scenario) { 1 } else { n_episodes.clamp(1, STUDIED) };
    let study = Study::new(scenario, context.seed, n, exploration(context))?;
    let floor = study.floor.map(|(exploration, _, qos)| {
        let name = format!("floor: greedy's links with {:.0} % of random actions", 100.0 * exploration.epsilon);
        ("qos_rate".to_owned(), name, qos)
    });
    Ok(Remark { text: study.text(), levels: floor.into_iter().collect() })
}

/// Whether all episodes use one network that never changes.
fn stays(scenario: &Uara) -> bool {
    let config = scenario.config();
    config.layout.redraw == Redraw::Never && !config.dynamics.changes() && !config.dynamics.fading
}

/// Bounds and equilibria of the networks at the start of the episodes.
struct Study {
    n: usize,
    /// The upper bound of the sum of rates, Mb/s.
    bound_mbps: f64,
    /// Greedy's sum of rates, Mb/s.
    greedy_mbps: f64,
    /// Number of networks in which best responses converged to a certified equilibrium.
    equilibria: usize,
    /// Fraction of steps in which greedy's links satisfy all users with this exploration, and mean fraction of
    /// satisfied users.
    floor: Option<(Exploration, f64, f64)>,
}

impl Study {
    fn new(scenario: &Uara, seed: u64, n: usize, exploration: Option<Exploration>) -> Result<Self, ExperimentError> {
        let mut batch = scenario.batch(0..n);
        let mut slabs = BatchSlabs::new(batch.spec());
        batch.reset(seed, &mut slabs)?;
        let objective = scenario.objective();
        let (mut study, mut floor) =
            (Self { n, bound_mbps: 0.0, greedy_mbps: 0.0, equilibria: 0, floor: None }, (0.0, 0.0));
        for env in 0..n {
            let rng = &mut named_rng(seed, "study", env as u64);
            let snapshot = batch.snapshot(env);
            let links = greedy(&snapshot, objective);
            study.bound_mbps += upper_bound(&snapshot).sum_rate_mbps / n as f64;
            study.greedy_mbps += snapshot.outcome(&links).sum_rate_mbps() / n as f64;
            let nash = best_response(&snapshot, objective, &BestResponseConfig::default(), rng);
            study.equilibria += usize::from(nash.is_certified());
            if let Some(Exploration { epsilon, .. }) = exploration {
                let found = exploration_floor(&snapshot, &links, epsilon, FLOOR_DRAWS, rng);
                floor.0 += found.all_satisfied / n as f64;
                floor.1 += found.qos_rate / n as f64;
            }
        }
        study.floor = exploration.map(|exploration| (exploration, floor.0, floor.1));
        Ok(study)
    }

    fn text(&self) -> String {
        let (greedy, bound) = (number(self.greedy_mbps), number(self.bound_mbps));
        let mut text = match self.n {
            1 => {
                let found = if self.equilibria == 1 { "come" } else { "do not come" };
                format!(
                    "Greedy has {greedy} of at most {bound} Mb/s, and best responses {found} to a certified Nash equilibrium."
                )
            }
            n => format!(
                "As {n} of the episodes begin, greedy has {greedy} of at most {bound} Mb/s, and best responses come to a \
                 certified Nash equilibrium in {}.",
                self.equilibria
            ),
        };
        if let Some((Exploration { epsilon, when }, all, qos)) = self.floor {
            text.push_str(&format!(
                " With {:.0} % of random actions, as at {when} of training, greedy's own links would satisfy {:.1} % of \
                 users, and all of them in {:.1} % of steps.",
                100.0 * epsilon,
                100.0 * qos,
                100.0 * all,
            ));
        }
        text
    }
}
