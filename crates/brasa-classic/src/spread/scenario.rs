//! Simple Spread as a scenario: figures, baselines and bound.

use std::ops::Range;

use brasa_env::{
    Baseline, BaselineKind, Curve, EnvBatch, EnvError, EnvVec, EpisodeData, Evaluation, Figure, Outcome, Scenario,
    Split, Who,
};

use super::{INFO, SpreadConfig, SpreadEnv, TOUCH, rule};
use crate::mpe::{self, Bounded, CONTACT_FORCE, DAMPING, REACH, STEP, THRUST, length, minus};
use crate::scenario::{BOUND, RANDOM, RULE};

/// Simple Spread of MPE: agents cover landmarks and avoid touching each other.
///
/// The baseline `rule-based` assigns a landmark to each agent. `bound` is a proven upper bound of the return of an episode: every agent flies to
/// every landmark at once, as fast as forces allow.
///
/// ```
/// use brasa_classic::{Spread, SpreadConfig};
/// use brasa_env::{Evaluation, Scenario, Who};
///
/// let spread = Spread::new(SpreadConfig::default())?;
/// let mean = |name| -> Result<f64, brasa_env::EnvError> {
///     let outcomes = spread.evaluate(Who::Baseline(name), &Evaluation::new(50, 0))?;
///     Ok(outcomes.iter().map(|outcome| outcome.episode_return.unwrap()).sum::<f64>() / 50.0)
/// };
/// let (random, rule, bound) = (mean("random")?, mean("rule-based")?, mean("bound")?);
/// assert!(random < -20.0 && rule > 0.6 * random && bound > rule);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Spread {
    config: SpreadConfig,
}

impl Spread {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for the first invalid setting.
    pub fn new(config: SpreadConfig) -> Result<Self, EnvError> {
        config.validate()?;
        Ok(Self { config })
    }

    /// The settings.
    pub fn config(&self) -> &SpreadConfig {
        &self.config
    }

    /// Environments with the global indices `envs`; the index addresses the random numbers.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for an empty range.
    pub fn batch(&self, envs: Range<usize>) -> Result<EnvVec<SpreadEnv>, EnvError> {
        EnvVec::multi_agent(envs, |_| SpreadEnv::new(&self.config))
    }
}

impl Bounded for SpreadEnv {
    /// A landmark is no nearer than the way from its nearest agent at the start, minus the way that an agent can fly by then. Until two agents
    /// can touch, only their own thrust accelerates them; from then on all others may push, each with the force of agents at one place.
    fn bound(&self) -> f64 {
        let agents = &self.plane.positions;
        let nearest = |to: [f64; 2], from: &[[f64; 2]]| {
            from.iter().map(|from| length(minus(to, *from))).fold(f64::INFINITY, f64::min)
        };
        let starts: Vec<f64> = self.plane.landmarks.iter().map(|landmark| nearest(*landmark, agents)).collect();
        let gaps = agents.iter().enumerate().map(|(agent, place)| nearest(*place, &agents[..agent]));
        let gap = gaps.fold(f64::INFINITY, f64::min);
        let pushed = CONTACT_FORCE * TOUCH * (1.0 + 1e-6) * (agents.len() - 1) as f64;
        let (mut way, mut speed, mut sum) = (0.0, 0.0, 0.0);
        for _ in 0..self.config.episode_steps {
            let may_touch = gap - 2.0 * way < TOUCH + REACH;
            way += speed * STEP;
            speed = speed * (1.0 - DAMPING) + (THRUST * (1.0 + 1e-9) + if may_touch { pushed } else { 0.0 }) * STEP;
            sum += starts.iter().map(|start| f64::max(start - way, 0.0)).sum::<f64>();
        }
        -(1.0 - self.config.local_ratio) * sum
    }
}

impl Scenario for Spread {
    fn envs(&self, _: Split, envs: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> {
        Ok(Box::new(self.batch(envs)?))
    }

    fn figures(&self) -> Vec<Figure> {
        let [distance, covered, touches] = INFO;
        vec![
            Figure::new(distance, "distance of landmarks").less_is_better(),
            Figure::new(covered, "covered landmarks").more_is_better(),
            Figure::new(touches, "touching pairs").less_is_better(),
        ]
    }

    fn baselines(&self) -> Vec<Baseline> {
        vec![
            Baseline::new(RANDOM, BaselineKind::Idle).random(),
            Baseline::new(RULE, BaselineKind::Heuristic).by(|| Box::new(rule::act)),
            Baseline::new(BOUND, BaselineKind::Bound),
        ]
    }

    /// Every episode starts in a random state.
    fn data(&self, _: Split) -> EpisodeData {
        EpisodeData::Sampled
    }

    fn curves(&self) -> Vec<Curve> {
        vec![Curve {
            label: "covered landmarks".to_owned(),
            metric: "rollout/covered".to_owned(),
            divided_by: None,
            evaluated: Some("eval/covered".to_owned()),
            figure: Some("covered".to_owned()),
        }]
    }

    fn evaluate(&self, who: Who<'_>, evaluation: &Evaluation) -> Result<Vec<Outcome>, EnvError> {
        mpe::evaluate(self, || SpreadEnv::new(&self.config), who, evaluation)
    }
}
