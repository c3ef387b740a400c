//! Learners improve policies.

use burn::tensor::Tensor;

use crate::{Clock, Metrics, Policy};

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

    /// Whether its settings follow the steps of an episode, so that [`Progress::clock`] must be there.
    fn needs_clock(&self) -> bool {
        false
    }
}

/// How far a training run is; schedules read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Environment steps taken before the batch at hand was collected.
    pub env_steps: u64,
    /// Environment steps of the whole run.
    pub total_env_steps: u64,
    /// Where the episode stood when the newest action was chosen, or stands if one is about to be; known only where there
    /// is a single environment.
    pub clock: Option<Clock>,
}

impl Progress {
    /// A point of a run whose episodes are not followed.
    pub const fn new(env_steps: u64, total_env_steps: u64) -> Self {
        Self { env_steps, total_env_steps, clock: None }
    }

    /// The same point, `clock` steps into an episode.
    pub const fn at(self, clock: Option<Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Share of the run that is done, 0 to 1.
    pub fn fraction(&self) -> f64 {
        if self.total_env_steps == 0 {
            return 0.0;
        }
        (self.env_steps as f64 / self.total_env_steps as f64).min(1.0)
    }
}
