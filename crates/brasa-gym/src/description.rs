//! What a worker says about its environments, and the constants of a batch that follow.

use brasa_env::{BoxSpace, EnvSpec, MaskSpec, Space};
use serde::Deserialize;

use crate::{GymConfig, GymError};

/// The description of the environments of a worker.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Description {
    obs: Bounds,
    action: Action,
    n_agents: usize,
    has_mask: bool,
    /// Whether rewards before the wrappers of the environment are written.
    has_raw_rewards: bool,
    max_episode_steps: Option<u64>,
    /// Whether Gymnasium itself has the environment.
    is_gymnasium_s: bool,
    pub(crate) not_saved_because: Option<String>,
    /// Steps per second in a video, if the environments make frames and say so.
    render_fps: Option<f64>,
    pub(crate) versions: Versions,
}

/// Versions of the interpreter and its packages.
///
/// ```no_run
/// use brasa_gym::{GymConfig, GymVec, Versions};
///
/// // Needs Python with the package `gymnasium`.
/// let envs = GymVec::new(&GymConfig::new("CartPole-v1"), 0..1)?;
/// let Versions { python, gymnasium, .. } = envs.versions();
/// assert!(python.starts_with("3.") && gymnasium.starts_with("1."));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Versions {
    /// Of Python.
    pub python: String,
    /// Of Gymnasium.
    pub gymnasium: String,
    /// Of NumPy.
    pub numpy: String,
}

/// Names and bounds, `None` for infinite ones. An array with a shape has no names.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Bounds {
    names: Vec<String>,
    low: Vec<Option<f32>>,
    high: Vec<Option<f32>>,
    /// Of one array with two or more dimensions.
    #[serde(default)]
    shape: Vec<usize>,
    /// Whether all numbers are bytes or flags.
    #[serde(default)]
    bytes: bool,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Box(Bounds),
    Discrete(usize),
    MultiDiscrete(Vec<usize>),
    Hybrid(Vec<usize>, Bounds),
}

impl Bounds {
    /// The space; `bound` replaces infinite bounds.
    fn space(&self, bound: f32) -> BoxSpace {
        let or = |bounds: &[Option<f32>], other: f32| bounds.iter().map(|bound| bound.unwrap_or(other)).collect();
        let (low, high) = (or(&self.low, -bound), or(&self.high, bound));
        BoxSpace { low, high, names: self.names.clone(), shape: self.shape.clone(), bytes: self.bytes }
    }
}

impl Description {
    /// The constants of `n_envs` such environments.
    ///
    /// # Errors
    /// [`GymError::Space`] for a space that `brasa_env` refuses.
    pub(crate) fn spec(&self, config: &GymConfig, n_envs: usize) -> Result<EnvSpec, GymError> {
        let bound = config.action_bound.unwrap_or(f32::INFINITY);
        let action = match &self.action {
            Action::Box(bounds) => Space::Box(bounds.space(bound)),
            Action::Discrete(n) => Space::Discrete(*n),
            Action::MultiDiscrete(heads) => Space::MultiDiscrete(heads.clone()),
            Action::Hybrid(heads, bounds) => Space::Hybrid { heads: heads.clone(), numbers: bounds.space(bound) },
        };
        let spec = EnvSpec {
            n_agents: self.n_agents,
            mask: self.has_mask.then(MaskSpec::default),
            truncation_interval: self.truncation_interval(config),
            steps_in_parallel: true,
            // Wrappers may change rewards, but not returns.
            keeps_episodes: self.has_raw_rewards,
            ..EnvSpec::new(Space::Box(self.obs.space(f32::INFINITY)), action, n_envs)
        };
        let refused = |rule: String| GymError::Space { id: config.id.clone(), rule };
        if spec.obs.width() == 0 || spec.action.width() == 0 {
            return Err(refused("observations and actions must have at least one number".into()));
        }
        spec.validate().map_err(|error| refused(error.to_string()))?;
        Ok(spec)
    }

    /// Seconds of a step in a video, from `metadata["render_fps"]`; 30 steps per second where it is missing or no rate.
    pub(crate) fn frame_secs(&self) -> f64 {
        1.0 / self.render_fps.filter(|rate| (0.001..=1e6).contains(rate)).unwrap_or(30.0)
    }

    /// See [`GymConfig::truncation_interval`].
    fn truncation_interval(&self, config: &GymConfig) -> u64 {
        // An environment that cannot be saved truncates its episodes when it is loaded, whatever its rules are.
        if self.not_saved_because.is_some() {
            return 1;
        }
        if let Some(interval) = config.truncation_interval {
            return interval;
        }
        // Another environment may truncate episodes by its own rules.
        if !self.is_gymnasium_s || !config.wrappers.is_empty() {
            return 1;
        }
        self.max_episode_steps.unwrap_or(EnvSpec::NEVER)
    }
}
