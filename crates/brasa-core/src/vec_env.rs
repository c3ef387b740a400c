//! Vectorized environments as tensors on a device.

use std::time::Duration;

use brasa_env::wrappers::RunningMoments;
use brasa_env::{EnvError, EnvSpec, Episode};
use burn::tensor::{Device, Tensor};

use crate::Rows;

/// Environments that step together on a device and reset automatically.
pub trait VecEnv {
    /// Form of observations.
    type Obs: Rows;
    /// Form of actions.
    type Action: Rows;

    /// The constants of the environments.
    fn spec(&self) -> &EnvSpec;

    /// The non-autodiff device of observations and rewards.
    fn device(&self) -> &Device;

    /// Number of environments.
    fn n_envs(&self) -> usize {
        self.spec().n_envs
    }

    /// Rows of observations and actions: environments times agents.
    fn n_rows(&self) -> usize {
        self.spec().n_rows()
    }

    /// Resets every environment with `seed`.
    ///
    /// # Errors
    /// If an environment fails.
    fn reset(&mut self, seed: u64) -> Result<Self::Obs, EnvError>;

    /// Takes one step in every environment.
    ///
    /// # Errors
    /// If an environment fails or returns a non-finite number.
    fn step(&mut self, action: Self::Action) -> Result<StepBatch<Self::Obs>, EnvError>;

    /// Moves the episodes that ended since the last call into `episodes`.
    fn drain_episodes(&mut self, episodes: &mut Vec<Episode>);

    /// Mean and variance of the observation normalization; they belong to the policy.
    fn obs_moments(&self) -> Option<&RunningMoments>;

    /// Replaces those moments: see [`brasa_env::EnvBatch::set_obs_moments`].
    ///
    /// # Errors
    /// [`EnvError::State`] if observations are not normalized, or the moments have another width.
    fn set_obs_moments(&mut self, _moments: &RunningMoments) -> Result<(), EnvError> {
        Err(EnvError::State { reason: "it has moments of observations, which are not normalized here".into() })
    }

    /// Time spent on copies between host and device since the start; 0 if there are none.
    fn transfer_time(&self) -> Duration {
        Duration::ZERO
    }

    /// The complete state for a resume, as bytes.
    fn save(&self) -> Vec<u8>;

    /// Restores saved bytes and returns the next observations.
    ///
    /// # Errors
    /// [`EnvError::State`] if the bytes do not fit.
    fn load(&mut self, bytes: &[u8]) -> Result<Self::Obs, EnvError>;
}

/// One step of all environments.
#[derive(Debug, Clone)]
pub struct StepBatch<O> {
    /// The next observations; after an automatic reset if an episode ended.
    pub obs: O,
    /// The next observations before any reset; `None` if no episode ended, so that they equal `obs`.
    ///
    /// An environment on the device always returns `Some`, because it cannot know without waiting for the device.
    pub next_obs: Option<O>,
    /// `[n_rows]`.
    pub reward: Tensor<1>,
    /// `[n_rows]`, 1 if the episode ended by the rules of the task: no bootstrap.
    pub terminated: Tensor<1>,
    /// `[n_rows]`, 1 if the episode was cut by a limit: the next observation is bootstrapped.
    pub truncated: Tensor<1>,
    /// `[n_rows]`: duration of the step, in the time unit of the discount; `None` if all steps have duration 1.
    pub elapsed: Option<Tensor<1>>,
}

impl<O: Rows> StepBatch<O> {
    /// The next observations before any reset.
    pub fn next_obs(&self) -> O {
        self.next_obs.clone().unwrap_or_else(|| self.obs.clone())
    }

    /// `[n_rows]`, 1 if the episode was terminated or truncated.
    pub fn episode_end(&self) -> Tensor<1> {
        self.terminated.clone().max_pair(self.truncated.clone())
    }
}
