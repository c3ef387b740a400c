//! Learners improve policies.

use brasa_env::{EnvError, EnvSpec};
use burn::tensor::Tensor;

use crate::{Metrics, Policy};

/// Improves a policy from batches of experience.
pub trait Learner {
    /// What one update consumes.
    type Batch;
    /// What it improves.
    type Policy: Policy;

    /// Learns from one batch. Metrics stay on the device until they are read.
    fn update(&mut self, batch: Self::Batch, progress: Progress) -> Metrics;

    /// The current policy, on the plain device, exploring as much as this point of the run asks for.
    fn policy(&self, progress: Progress) -> Self::Policy;
}

/// A learner that throws each rollout away after it learned from it.
///
/// The loop reads its settings here, so that they are given once.
pub trait OnPolicyLearner: Learner {
    /// Steps per environment and rollout.
    fn n_steps(&self) -> usize;

    /// Discount per step.
    fn gamma(&self) -> f64;

    /// Weight of long returns in the advantage.
    fn gae_lambda(&self) -> f64;
}

/// A learner that replays single transitions.
pub trait OffPolicyLearner: Learner {
    /// Discount per step, for returns over several steps.
    fn gamma(&self) -> f64;

    /// `[n_rows]`: by how much the latest batch surprised it, as absolute errors; prioritized replay wants to know.
    ///
    /// # Panics
    /// Before the first update.
    fn td_error(&self) -> Tensor<1>;

    /// Refuses environments that it cannot learn in.
    ///
    /// # Errors
    /// [`EnvError::Argument`] naming what is wrong with them.
    fn check_envs(&self, _spec: &EnvSpec) -> Result<(), EnvError> {
        Ok(())
    }

    /// Told after every vector step, once the updates that belong to it are done: for settings that follow the steps of an
    /// episode. `any_episode_end` says whether an episode may have ended, which is exact for a single environment on the host.
    fn after_step(&mut self, _any_episode_end: bool) {}
}

/// How far a training run is; schedules read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Environment steps taken before the batch at hand was collected.
    pub env_steps: u64,
    /// Environment steps of the whole run.
    pub total_env_steps: u64,
}

impl Progress {
    /// A point of a run.
    pub const fn new(env_steps: u64, total_env_steps: u64) -> Self {
        Self { env_steps, total_env_steps }
    }

    /// Share of the run that is done, 0 to 1.
    pub fn fraction(&self) -> f64 {
        if self.total_env_steps == 0 {
            return 0.0;
        }
        (self.env_steps as f64 / self.total_env_steps as f64).min(1.0)
    }
}
