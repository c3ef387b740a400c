//! Learners improve policies.

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

/// A learner that replays single transitions.
pub trait OffPolicyLearner: Learner {
    /// `[n_rows]`: by how much the latest batch surprised it, as absolute errors; prioritized replay wants to know.
    ///
    /// # Panics
    /// Before the first update.
    fn td_error(&self) -> Tensor<1>;
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
    /// Share of the run that is done, 0 to 1.
    pub fn fraction(&self) -> f64 {
        if self.total_env_steps == 0 {
            return 0.0;
        }
        (self.env_steps as f64 / self.total_env_steps as f64).min(1.0)
    }
}
