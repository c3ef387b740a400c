//! A learner in its loop, whatever the loop is.

use std::path::Path;

use brasa_core::env::EnvSpec;
use brasa_core::env::wrappers::RunningMoments;
use brasa_core::{Learner, Policy, Progress};
use brasa_nn::Persist;
use burn::tensor::Device;

use crate::{Checkpoint, Counters, Iteration, StopToken, TrainError, take_checkpoint};

/// What a run is besides its environments and its learner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Environment steps of the whole run; the last step or rollout may go beyond.
    pub total_env_steps: u64,
    /// Seed of environments, exploration and sampling.
    pub seed: u64,
}

/// A learner in its loop: [`crate::OnPolicy`], [`crate::OffPolicy`], or one of your own.
pub trait Training {
    /// What learns.
    type Learner: Learner + Persist;

    /// What learns.
    fn learner(&self) -> &Self::Learner;

    /// Length and seed of the run.
    fn run(&self) -> Run;

    /// Where the policy acts: the device without autodiff.
    fn device(&self) -> &Device;

    /// What is constant about the environments.
    fn spec(&self) -> &EnvSpec;

    /// What observations are normalized with; it belongs to the policy.
    fn obs_moments(&self) -> Option<&RunningMoments>;

    /// How far the run is.
    fn counters(&self) -> &Counters;

    /// One round of collecting and learning; reads the metrics.
    ///
    /// # Errors
    /// Where an environment fails or a metric is not finite.
    fn iterate(&mut self) -> Result<Iteration, TrainError>;

    /// The same, which may be given up when `stop` is set, where a checkpoint goes on from the middle of a round: then it gives
    /// `None`. By default it never is.
    ///
    /// # Errors
    /// As [`Training::iterate`].
    fn iterate_until(&mut self, _stop: &StopToken) -> Result<Option<Iteration>, TrainError> {
        self.iterate().map(Some)
    }

    /// Everything that going on needs.
    fn checkpoint(&self) -> Checkpoint;

    /// Goes on from a checkpoint that lies at `path`, bit for bit on the host.
    ///
    /// # Errors
    /// Where the checkpoint belongs to another learner or to other environments.
    fn restore(&mut self, checkpoint: &Checkpoint, path: &Path) -> Result<(), TrainError>;

    /// Begins with the weights, the optimizer and the normalization of another run, whose checkpoint lies at `path`; counters and
    /// stored experience stay empty. Before the first round.
    ///
    /// # Errors
    /// Where the checkpoint belongs to another learner or to other observations.
    fn init_from(&mut self, checkpoint: &Checkpoint, path: &Path) -> Result<(), TrainError>;

    /// The part of [`Training::checkpoint`] that acting needs; going on from it is not possible.
    fn acting(&self) -> Checkpoint {
        let saved = take_checkpoint(self.learner(), self.counters(), self.obs_moments(), Vec::new(), Vec::new());
        Checkpoint { trainer: Default::default(), ..saved }
    }

    /// Whether it learns from stored experience, which it collects first.
    fn replays(&self) -> bool {
        false
    }

    /// How far the run is, for schedules.
    fn progress(&self) -> Progress {
        Progress::new(self.counters().env_steps, self.run().total_env_steps)
    }

    /// Whether all steps are taken.
    fn is_done(&self) -> bool {
        self.counters().env_steps >= self.run().total_env_steps
    }

    /// The policy as it is now, on the device without autodiff.
    fn policy(&self) -> PolicyOf<Self> {
        self.learner().policy(self.progress())
    }
}

/// The policy that a training improves.
pub type PolicyOf<T> = <<T as Training>::Learner as Learner>::Policy;
/// What it sees.
pub type ObsOf<T> = <PolicyOf<T> as Policy>::Obs;
