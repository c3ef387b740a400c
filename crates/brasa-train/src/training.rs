//! The interface of training loops.

use std::path::Path;

use brasa_core::env::EnvSpec;
use brasa_core::env::wrappers::RunningMoments;
use brasa_core::{Learner, Policy, Progress};
use brasa_nn::Persist;
use burn::tensor::Device;

use crate::{Checkpoint, Counters, Iteration, RunDir, StopToken, TrainError, take_checkpoint};

/// Length and seed of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Environment steps of the whole run. The last vector step or rollout may exceed it.
    pub total_env_steps: u64,
    /// Seed of environments, exploration and sampling.
    pub seed: u64,
}

/// A training loop with its learner: [`crate::OnPolicy`], [`crate::OffPolicy`], or a custom one.
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
pub type PolicyOf<T> = <<T as Training>::Learner as Learner>::Policy;
/// The observation type of that policy.
pub type ObsOf<T> = <PolicyOf<T> as Policy>::Obs;
