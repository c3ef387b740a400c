//! A Gymnasium environment as a scenario.

use std::ops::Range;
use std::sync::OnceLock;

use brasa_env::{
    Baseline, BaselineKind, EnvBatch, EnvError, EnvSpec, Evaluation, Frame, Outcome, RandomController, RenderedEnv,
    Scenario, Shown, Split, Who, evaluate_by_playing, find_baseline,
};

use crate::{GymConfig, GymVec};

/// The baseline with uniformly random legal actions.
const RANDOM: &str = "random";

/// A Gymnasium environment with the return as its only figure, and random actions as its only baseline.
///
/// Training and evaluation have different seeds; see [`crate::episode_seed`].
///
/// ```
/// use brasa_env::Scenario;
/// use brasa_gym::{GymConfig, Gymnasium};
///
/// // No process is started yet.
/// let scenario = Gymnasium::new(GymConfig::new("CartPole-v1"))?;
/// assert_eq!(scenario.baselines()[0].name, "random");
/// assert!(Gymnasium::new(GymConfig::default()).is_err());
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug)]
pub struct Gymnasium {
    config: GymConfig,
    /// The constants of the environments, after the first ones were made.
    spec: OnceLock<EnvSpec>,
}

impl Gymnasium {
    /// The scenario of `config`; no process starts before environments are asked for.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for invalid settings.
    pub fn new(config: GymConfig) -> Result<Self, EnvError> {
        config.validate()?;
        Ok(Self { config, spec: OnceLock::new() })
    }

    /// The settings.
    pub fn config(&self) -> &GymConfig {
        &self.config
    }

    /// The environments with the global indices `envs`.
    ///
    /// # Errors
    /// As [`GymVec::new`].
    pub fn batch(&self, split: Split, envs: Range<usize>) -> Result<GymVec, EnvError> {
        let batch = GymVec::for_split(&self.config, envs, split)?;
        self.spec.get_or_init(|| batch.spec().clone());
        Ok(batch)
    }
}

impl Scenario for Gymnasium {
    fn envs(&self, split: Split, envs: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> {
        Ok(Box::new(self.batch(split, envs)?))
    }

    fn baselines(&self) -> Vec<Baseline> {
        vec![Baseline::new(RANDOM, BaselineKind::Idle)]
    }

    /// The environment with `render_mode="rgb_array"`, and its `metadata["render_fps"]`, 30 if it has none.
    fn rendered(&self, env: usize) -> Result<Option<Box<dyn RenderedEnv>>, EnvError> {
        Ok(Some(Box::new(Rendered(GymVec::make(&self.config, env..env + 1, Split::Evaluation, true)?))))
    }

    /// As the default, except for `random`, which has a random stream for each agent of each episode.
    fn evaluate(&self, who: Who<'_>, evaluation: &Evaluation) -> Result<Vec<Outcome>, EnvError> {
        let Who::Baseline(name) = who else { return evaluate_by_playing(self, who, evaluation) };
        find_baseline(&self.baselines(), name)?;
        let spec = match self.spec.get() {
            Some(spec) => spec,
            None => &self.batch(Split::Evaluation, 0..1)?.spec().clone(),
        };
        let mut random = RandomController::new(spec, evaluation.seed, evaluation.episodes.clone());
        evaluate_by_playing(self, Who::Controller(&mut random), evaluation)
    }
}

/// An environment that makes frames.
struct Rendered(GymVec);

impl RenderedEnv for Rendered {
    fn batch(&mut self) -> &mut dyn EnvBatch {
        &mut self.0
    }

    fn frame_secs(&self) -> f64 {
        self.0.frame_secs()
    }

    fn render(&mut self, _: &Shown<'_>) -> Result<Frame, EnvError> {
        self.0.frame()
    }
}
