//! Vectorized environments as tensors on a device.

use std::time::Duration;

use brasa_env::wrappers::RunningMoments;
use brasa_env::{EnvError, EnvSpec, Episode};
use burn::tensor::{Device, Tensor};

use crate::{HostStepper, Normalization, Rows};

/// Environments that step together on a device and reset automatically.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/envs.inc")); }
/// # use shown::*;
/// use brasa_core::{HostEnv, VecEnv};
/// use brasa_env::{EnvError, EnvVec};
/// use burn::tensor::Tensor;
///
/// // `Walk` goes on a line from 3 to the goal at 0. Each step has a reward of -1.
/// /// The mean reward of steps with the action 0.
/// fn mean_reward(env: &mut impl VecEnv<Action = Tensor<2>>, n_steps: usize) -> Result<f32, EnvError> {
///     let action = Tensor::zeros([env.n_rows(), env.spec().action.width()], env.device());
///     env.reset(0)?;
///     let mut sum = 0.0;
///     for _ in 0..n_steps {
///         sum += env.step(action.clone())?.reward.mean().into_scalar::<f32>();
///     }
///     Ok(sum / n_steps as f32)
/// }
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut walks = HostEnv::new(EnvVec::new(0..4, |_| Walk(0.0))?, &device);
/// assert_eq!(mean_reward(&mut walks, 5)?, -1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no vectorized environment on a device",
    note = "a batch of the host becomes one by `HostEnv::new(batch, &device)`",
    note = "rules on tensors become one by `TensorEnv::new`"
)]
pub trait VecEnv: Send {
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

    /// The environments in the memory of the CPU; `None` if they are elsewhere.
    fn on_host(&mut self) -> Option<&mut dyn HostStepper<Obs = Self::Obs, Action = Self::Action>> {
        None
    }

    /// Moves the episodes that ended since the last call into `episodes`. On a device it waits for those that were not read yet:
    /// see [`VecEnv::pending_episodes`].
    ///
    /// # Errors
    /// Those of [`VecEnv::accept_episodes`].
    fn drain_episodes(&mut self, episodes: &mut Vec<Episode>) -> Result<(), EnvError>;

    /// Statistics that are still on the device, for a reading together with other numbers; `None` if there are none.
    fn pending_episodes(&self) -> Option<Tensor<1>> {
        None
    }

    /// Takes the numbers of [`VecEnv::pending_episodes`] from the host. Then [`VecEnv::drain_episodes`] does not wait.
    ///
    /// # Errors
    /// [`EnvError::NotFinite`] if an environment on the device had a number that is not finite.
    fn accept_episodes(&mut self, _numbers: &[f32]) -> Result<(), EnvError> {
        Ok(())
    }

    /// Mean and variance of the observation normalization; they belong to the policy.
    fn obs_moments(&self) -> Option<&RunningMoments>;

    /// Replaces those moments: see [`brasa_env::EnvBatch::set_obs_moments`].
    ///
    /// # Errors
    /// [`EnvError::State`] if observations are not normalized, or the moments have another width.
    fn set_obs_moments(&mut self, _moments: &RunningMoments) -> Result<(), EnvError> {
        Err(EnvError::not_normalized())
    }

    /// All moments that steps change: see [`brasa_env::EnvBatch::running_moments`]. None on a device.
    fn running_moments(&mut self) -> Vec<&mut RunningMoments> {
        Vec::new()
    }

    /// The current normalization of observations that come as they are: see [`EnvSpec::normalize_on_use`]. `None` for others.
    fn normalization(&self) -> Option<Normalization> {
        let moments = self.obs_moments().filter(|_| self.spec().normalize_on_use)?;
        Some(Normalization::new(moments, self.device()))
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

impl<O: Rows, A: Rows> std::fmt::Debug for dyn VecEnv<Obs = O, Action = A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("VecEnv").field(self.spec()).finish()
    }
}

/// Environments whose type is known at run time only.
impl<O: Rows, A: Rows> VecEnv for Box<dyn VecEnv<Obs = O, Action = A>> {
    type Obs = O;
    type Action = A;

    fn spec(&self) -> &EnvSpec {
        (**self).spec()
    }
    fn device(&self) -> &Device {
        (**self).device()
    }
    fn reset(&mut self, seed: u64) -> Result<O, EnvError> {
        (**self).reset(seed)
    }
    fn step(&mut self, action: A) -> Result<StepBatch<O>, EnvError> {
        (**self).step(action)
    }
    fn on_host(&mut self) -> Option<&mut dyn HostStepper<Obs = O, Action = A>> {
        (**self).on_host()
    }
    fn drain_episodes(&mut self, episodes: &mut Vec<Episode>) -> Result<(), EnvError> {
        (**self).drain_episodes(episodes)
    }
    fn pending_episodes(&self) -> Option<Tensor<1>> {
        (**self).pending_episodes()
    }
    fn accept_episodes(&mut self, numbers: &[f32]) -> Result<(), EnvError> {
        (**self).accept_episodes(numbers)
    }
    fn obs_moments(&self) -> Option<&RunningMoments> {
        (**self).obs_moments()
    }
    fn set_obs_moments(&mut self, moments: &RunningMoments) -> Result<(), EnvError> {
        (**self).set_obs_moments(moments)
    }
    fn running_moments(&mut self) -> Vec<&mut RunningMoments> {
        (**self).running_moments()
    }
    fn normalization(&self) -> Option<Normalization> {
        (**self).normalization()
    }
    fn transfer_time(&self) -> Duration {
        (**self).transfer_time()
    }
    fn save(&self) -> Vec<u8> {
        (**self).save()
    }
    fn load(&mut self, bytes: &[u8]) -> Result<O, EnvError> {
        (**self).load(bytes)
    }
}

/// One step of all environments.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/envs.inc")); }
/// # use shown::*;
/// use brasa_core::{HostEnv, VecEnv, read_back};
/// use brasa_env::{EnvVec, wrappers::TimeLimit};
/// use burn::tensor::Tensor;
///
/// // `Walk` goes on a line from 3 to the goal at 0. Each step has a reward of -1.
/// let device = brasa_device::open_named("cpu")?;
/// let mut env = HostEnv::new(TimeLimit::new(EnvVec::new(0..1, |_| Walk(0.0))?, 1)?, &device);
/// env.reset(7)?;
/// let step = env.step(Tensor::ones([1, 1], &device))?;
/// // The time limit cut the episode at 4, and the next episode begins at 3.
/// assert_eq!(read_back(step.episode_end()), [1.0]);
/// assert_eq!(read_back(step.next_obs().values), [4.0]);
/// assert_eq!(read_back(step.obs.values), [3.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct StepBatch<O> {
    /// The next observations; after an automatic reset if an episode ended.
    pub obs: O,
    /// The next observations before any reset.
    pub successor: Successor<O>,
    /// `[n_rows]`.
    pub reward: Tensor<1>,
    /// `[n_rows]`, 1 if the episode ended by the rules of the task: no bootstrap.
    pub terminated: Tensor<1>,
    /// `[n_rows]`, 1 if the episode was cut by a limit: the next observation is bootstrapped.
    pub truncated: Tensor<1>,
    /// `[n_rows]`: duration of the step, in the time unit of the discount; `None` if all steps have duration 1.
    pub elapsed: Option<Tensor<1>>,
}

/// The next observations before any reset, compared with those after it.
///
/// Only rows that were truncated are bootstrapped from an observation that is not in [`StepBatch::obs`]. Whoever bootstraps
/// therefore needs [`Successor::Rows`] in the rows whose [`StepBatch::truncated`] is 1, and nowhere else.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/envs.inc")); }
/// # use shown::*;
/// use brasa_core::{HostEnv, Successor, VecEnv};
/// use brasa_env::EnvVec;
/// use burn::tensor::Tensor;
///
/// // `Walk` goes on a line from 3 to the goal at 0.
/// let device = brasa_device::open_named("cpu")?;
/// let mut env = HostEnv::new(EnvVec::new(0..1, |_| Walk(0.0))?, &device);
/// env.reset(7)?;
/// let left = Tensor::zeros([1, 1], &device);
/// assert!(matches!(env.step(left.clone())?.successor, Successor::Same));
/// env.step(left.clone())?;
/// // The third step to the left reaches the goal.
/// assert!(matches!(env.step(left)?.successor, Successor::Terminal));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub enum Successor<O> {
    /// No episode ended: they are [`StepBatch::obs`].
    Same,
    /// Episodes ended, all of them by the rules of the task: nothing is bootstrapped from their successors.
    Terminal,
    /// Episodes may have been truncated: the successors of those rows. Other rows hold the successor too if the environment is on the host.
    ///
    /// An environment on the device returns it at every step if it truncates at all, because it cannot know without waiting for the
    /// device. [`brasa_env::EnvSpec::truncation_interval`] then bounds what has to be stored and evaluated.
    Rows(O),
}

impl<O> Successor<O> {
    /// The observations of [`Successor::Rows`].
    pub fn rows(&self) -> Option<&O> {
        match self {
            Self::Rows(rows) => Some(rows),
            Self::Same | Self::Terminal => None,
        }
    }

    /// Whether an episode may have ended.
    pub fn any_episode_end(&self) -> bool {
        !matches!(self, Self::Same)
    }
}

impl<O: Rows> StepBatch<O> {
    /// The next observations before any reset, in all rows that are bootstrapped.
    pub fn next_obs(&self) -> O {
        self.successor.rows().unwrap_or(&self.obs).clone()
    }

    /// `[n_rows]`, 1 if the episode was terminated or truncated.
    pub fn episode_end(&self) -> Tensor<1> {
        self.terminated.clone().max_pair(self.truncated.clone())
    }
}
