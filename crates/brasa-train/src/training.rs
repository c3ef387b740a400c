//! The interface of training loops.

use std::path::Path;

use brasa_core::env::EnvSpec;
use brasa_core::env::wrappers::RunningMoments;
use brasa_core::{Learner, Policy, Progress};
use brasa_nn::Persist;
use burn::tensor::Device;

use crate::{Checkpoint, Counters, Iteration, RunDir, StopToken, TrainError, take_checkpoint};

/// Length and seed of a run.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_train::{OnPolicy, Run, Training};
///
/// // 4 environments take 64 steps per rollout: the last rollout ends after 128 steps.
/// let mut training = OnPolicy::new(cart_poles(4), ppo(), Run { total_env_steps: 100, seed: 0 })?;
/// while !training.is_done() {
///     training.iterate()?;
/// }
/// assert_eq!(training.counters().env_steps, 128);
/// # Ok::<(), brasa_train::TrainError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Environment steps of the whole run. The last vector step or rollout may exceed it.
    pub total_env_steps: u64,
    /// Seed of environments, exploration and sampling.
    pub seed: u64,
}

/// A training loop with its learner: [`crate::OnPolicy`], [`crate::OffPolicy`], or a custom one.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use std::path::Path;
///
/// use brasa_train::{OnPolicy, Run, Training};
///
/// let run = Run { total_env_steps: 256, seed: 0 };
/// let mut training = OnPolicy::new(cart_poles(4), ppo(), run)?;
/// training.iterate()?;
/// let mut resumed = OnPolicy::new(cart_poles(4), ppo(), run)?;
/// resumed.restore(&training.checkpoint(), Path::new("in memory"))?;
/// assert_eq!(resumed.progress().fraction(), 0.25);
/// assert_eq!(resumed.iterate()?.ended, training.iterate()?.ended);
/// # Ok::<(), brasa_train::TrainError>(())
/// ```
pub trait Training {
    /// The learner.
    type Learner: Learner + Persist;

    /// The learner.
    fn learner(&self) -> &Self::Learner;

    /// Length and seed of the run.
    fn run(&self) -> Run;

    /// The device of the policy, without autodiff.
    fn device(&self) -> &Device;

    /// The constants of the environments.
    fn spec(&self) -> &EnvSpec;

    /// The moments that normalize observations, if they are normalized. They belong to the policy.
    fn obs_moments(&self) -> Option<&RunningMoments>;

    /// The counters of the run.
    fn counters(&self) -> &Counters;

    /// One iteration of collecting and learning; reads the metrics.
    ///
    /// # Errors
    /// If an environment fails or a metric is not finite.
    fn iterate(&mut self) -> Result<Iteration, TrainError>;

    /// As [`Training::iterate`], but a loop that can be saved inside an iteration may return `None` early when `stop` is set.
    /// The default implementation ignores `stop`.
    ///
    /// # Errors
    /// As [`Training::iterate`].
    fn iterate_until(&mut self, _stop: &StopToken) -> Result<Option<Iteration>, TrainError> {
        self.iterate().map(Some)
    }

    /// A checkpoint from which the run can be resumed.
    fn checkpoint(&self) -> Checkpoint;

    /// Resumes from a checkpoint at `path`. On the CPU the run then continues bit for bit.
    ///
    /// # Errors
    /// If the checkpoint belongs to another learner or to other environments.
    fn restore(&mut self, checkpoint: &Checkpoint, path: &Path) -> Result<(), TrainError>;

    /// Loads the weights, the optimizer and the normalization of another run from its checkpoint at `path`. Counters and stored
    /// experience stay empty. Must be called before the first iteration.
    ///
    /// # Errors
    /// If the checkpoint belongs to another learner or to other observations.
    fn init_from(&mut self, checkpoint: &Checkpoint, path: &Path) -> Result<(), TrainError>;

    /// [`Training::init_from`] with the latest checkpoint of the run in `run_dir`.
    ///
    /// # Errors
    /// As [`Training::init_from`], and if there is no run or no complete checkpoint.
    fn init_from_run(&mut self, run_dir: &Path) -> Result<(), TrainError> {
        let (path, checkpoint) = RunDir::open(run_dir)?.checkpoints().latest()?;
        self.init_from(&checkpoint, &path)
    }

    /// A checkpoint of the policy alone. A run cannot be resumed from it.
    fn acting(&self) -> Checkpoint {
        let saved = take_checkpoint(self.learner(), self.counters(), self.obs_moments(), Vec::new(), Vec::new());
        Checkpoint { trainer: Default::default(), ..saved }
    }

    /// Whether the loop learns from a replay buffer.
    fn replays(&self) -> bool {
        false
    }

    /// The progress of the run, for schedules.
    fn progress(&self) -> Progress {
        Progress::new(self.counters().env_steps, self.run().total_env_steps)
    }

    /// Whether the run has taken all its steps.
    fn is_done(&self) -> bool {
        self.counters().env_steps >= self.run().total_env_steps
    }

    /// The current policy, on the device without autodiff.
    fn policy(&self) -> PolicyOf<Self> {
        self.learner().policy(self.progress())
    }
}

/// The policy type of a training loop.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_core::Policy;
/// use brasa_train::{OnPolicy, PolicyOf, Run, Training};
///
/// fn trained<T: Training>(training: &T) -> PolicyOf<T> {
///     training.policy()
/// }
///
/// let training = OnPolicy::new(cart_poles(4), ppo(), Run { total_env_steps: 64, seed: 0 })?;
/// assert_eq!(trained(&training).state_width(), 0);
/// # Ok::<(), brasa_train::TrainError>(())
/// ```
pub type PolicyOf<T> = <<T as Training>::Learner as Learner>::Policy;
/// The observation type of that policy.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_core::{Obs, Rows};
/// use brasa_train::{ObsOf, OnPolicy};
///
/// fn n_rows(obs: &ObsOf<OnPolicy<CartPoles, FixedPpo>>) -> usize {
///     obs.n_rows()
/// }
///
/// let mut envs = cart_poles(4);
/// let obs: Obs = brasa_core::VecEnv::reset(&mut envs, 0)?;
/// assert_eq!(n_rows(&obs), 4);
/// # Ok::<(), brasa_core::env::EnvError>(())
/// ```
pub type ObsOf<T> = <PolicyOf<T> as Policy>::Obs;
