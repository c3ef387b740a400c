//! Networks as a scenario: figures, baselines and evaluation.

use std::ops::Range;

use brasa_env::{
    Baseline, BaselineKind, BatchSlabs, Curve, Effort, EnvBatch, EnvError, EpisodeData, Evaluation, Extensions, Figure,
    Measured, Outcome, Scenario, Split, Who, find_baseline, fingerprint,
};

use crate::baselines::{Heuristic, upper_bound};
use crate::config::Redraw;
use crate::episode::{Decider, figures, play};
use crate::uara::Uara;

/// The name of the upper bound.
const BOUND: &str = "bound";

impl Scenario for Uara {
    fn envs(&self, _: Split, envs: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> {
        Ok(Box::new(self.batch(envs)))
    }

    fn figures(&self) -> Vec<Figure> {
        figures(Heuristic::Greedy.name())
    }

    fn baselines(&self) -> Vec<Baseline> {
        let rule = |rule: Heuristic| match rule.draws() {
            true => Baseline::new(rule.name(), BaselineKind::Idle).random(),
            false => Baseline::new(rule.name(), BaselineKind::Heuristic),
        };
        let bound = self.is_still().then(|| Baseline::new(BOUND, BaselineKind::Bound));
        Heuristic::ALL.into_iter().map(rule).chain(bound).collect()
    }

    fn extensions(&self) -> Extensions {
        Extensions::default().with(self.pairs())
    }

    fn n_episodes(&self, effort: Effort) -> u64 {
        match effort {
            Effort::Compare => 50,
            Effort::Look => 20,
        }
    }

    /// One network that never changes is one episode.
    fn n_distinct_episodes(&self) -> Option<u64> {
        self.stays().then_some(1)
    }

    /// The layout, where there is one for all episodes.
    fn data(&self, _: Split) -> EpisodeData {
        match self.config().layout.redraw {
            Redraw::Episode => EpisodeData::Sampled,
            // How many layouts training has depends on its number of environments.
            Redraw::Environment => EpisodeData::Unknown,
            Redraw::Never => {
                let mut batch = self.batch(0..1);
                let reset = batch.reset(0, &mut BatchSlabs::new(batch.spec()));
                match reset {
                    Ok(()) => EpisodeData::fixed([fingerprint(batch.snapshot(0).received_mw.iter().copied())]),
                    Err(_) => EpisodeData::Unknown,
                }
            }
        }
    }

    fn about_episodes(&self, n_episodes: u64) -> String {
        let place = self.config().layout.redraw.place("layout");
        match n_episodes {
            1 => format!("One episode on {place}, the same for every controller."),
            n => format!("Means over {n} episodes on {place}, the same for every controller."),
        }
    }

    fn curves(&self) -> Vec<Curve> {
        vec![Curve {
            label: "satisfied users".to_owned(),
            metric: "rollout/qos_rate".to_owned(),
            divided_by: None,
            evaluated: Some("eval/qos_rate".to_owned()),
            figure: Some("qos_rate".to_owned()),
        }]
    }

    /// Runs the first episode of each environment; layouts, movement and fading are the same for all controllers.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for an unknown baseline and where a controller chooses what its mask forbids; if a
    /// controller fails.
    fn evaluate(&self, who: Who<'_>, evaluation: &Evaluation) -> Result<Vec<Outcome>, EnvError> {
        let envs = evaluation.episodes.start as usize..evaluation.episodes.end as usize;
        let decider = match who {
            Who::Controller(controller) => Decider::Controller(controller),
            Who::Baseline(name) => {
                find_baseline(&self.baselines(), name)?;
                match Heuristic::ALL.into_iter().find(|rule| rule.name() == name) {
                    Some(rule) => Decider::Rule(rule),
                    None => return bounds(self, envs, evaluation.seed),
                }
            }
        };
        play(self, decider, envs, evaluation.seed, evaluation.n_traces)
    }
}

/// The upper bounds of the episodes of the environments `envs`, in which nothing changes.
fn bounds(of: &Uara, envs: Range<usize>, seed: u64) -> Result<Vec<Outcome>, EnvError> {
    let mut batch = of.batch(envs);
    batch.reset(seed, &mut BatchSlabs::new(batch.spec()))?;
    let figures = of.figures();
    let outcome = |env: usize| {
        let bound = upper_bound(&batch.snapshot(env));
        let qos_rate = bound.satisfied as f64 / of.radio().n_users as f64;
        let measure = |figure: &Figure| match figure.name.as_str() {
            "qos_rate" | "final_qos_rate" => Measured::new(qos_rate),
            "sum_rate_mbps" => Measured::new(bound.sum_rate_mbps),
            _ => Measured::NONE,
        };
        Outcome { figures: figures.iter().map(measure).collect(), ..Outcome::default() }
    };
    Ok((0..batch.n_envs()).map(outcome).collect())
}
