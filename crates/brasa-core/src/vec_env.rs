//! What training sees of environments: tensors on a device.

use brasa_env::wrappers::RunningMoments;
use brasa_env::{EnvError, EnvSpec, Episode};
use burn::tensor::{Device, Tensor};

use crate::Rows;

/// Environments that step together on a device, each starting its next episode by itself.
pub trait VecEnv {
    /// What policies see.
    type Obs: Rows;
    /// What policies send.
    type Action: Rows;

    /// What is constant about the environments.
    fn spec(&self) -> &EnvSpec;

    /// Where observations and rewards are: the device without autodiff.
    fn device(&self) -> &Device;

    /// Environments.
    fn n_envs(&self) -> usize {
        self.spec().n_envs
    }

    /// Rows of observations and actions: environments times agents.
    fn n_rows(&self) -> usize {
        self.spec().n_rows()
    }

    /// Starts every environment anew under `seed`.
    ///
    /// # Errors
    /// Where an environment fails.
    fn reset(&mut self, seed: u64) -> Result<Self::Obs, EnvError>;

    /// Takes one step in every environment.
    ///
    /// # Errors
    /// Where an environment fails or returns a number that is not finite.
    fn step(&mut self, action: Self::Action) -> Result<StepBatch<Self::Obs>, EnvError>;

    /// Moves the episodes that ended since the last call into `episodes`.
    fn drain_episodes(&mut self, episodes: &mut Vec<Episode>);

    /// Mean and variance that observations are normalized with; they belong to the policy.
    fn obs_moments(&self) -> Option<&RunningMoments>;

    /// Everything that a resume needs, as bytes.
    fn save(&self) -> Vec<u8>;

    /// Goes on from saved bytes and returns what the policy sees next.
    ///
    /// # Errors
    /// [`EnvError::State`] where the bytes do not fit.
    fn load(&mut self, bytes: &[u8]) -> Result<Self::Obs, EnvError>;
}

/// One step of all environments.
#[derive(Debug, Clone)]
pub struct StepBatch<O> {
    /// What the policy sees next: after an automatic reset where an episode ended.
    pub obs: O,
    /// The true successor, before any reset; `None` where no episode ended, so that it equals `obs`.
    ///
    /// An environment that lives on the device cannot know without waiting for it, and always gives `Some`.
    pub next_obs: Option<O>,
    /// `[n_rows]`.
    pub reward: Tensor<1>,
    /// `[n_rows]`, 1 where the episode ended by the rules of the task, so that nothing may be bootstrapped.
    pub terminated: Tensor<1>,
    /// `[n_rows]`, 1 where the episode was cut from outside.
    pub truncated: Tensor<1>,
    /// `[n_rows]`: how long the step took, in the unit of time that a discount is given for; `None` where all steps are
    /// alike.
    pub elapsed: Option<Tensor<1>>,
}

impl<O: Rows> StepBatch<O> {
    /// The true successor.
    pub fn next_obs(&self) -> O {
        self.next_obs.clone().unwrap_or_else(|| self.obs.clone())
    }

    /// `[n_rows]`, 1 where the episode ended for either reason.
    pub fn episode_end(&self) -> Tensor<1> {
        self.terminated.clone().max_pair(self.truncated.clone())
    }
}
