//! Learners improve policies.

use brasa_env::{EnvError, EnvSpec};
use burn::tensor::Tensor;

use crate::{Metrics, Policy, ValueScale};

/// Improves a policy from batches of experience.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/policies.inc")); }
/// # use shown::*;
/// use brasa_core::{Learner, Metrics, Progress};
///
/// /// Sets the gain of a proportional controller to the mean of a batch.
/// struct Tuner(f32);
///
/// impl Learner for Tuner {
///     type Batch = Vec<f32>;
///     type Policy = Proportional;
///     fn update(&mut self, batch: Vec<f32>, _: Progress) -> Metrics {
///         self.0 = batch.iter().sum::<f32>() / batch.len() as f32;
///         let mut metrics = Metrics::default();
///         metrics.push("train/gain", f64::from(self.0));
///         metrics
///     }
///     fn policy(&self, _: Progress) -> Proportional {
///         Proportional(self.0)
///     }
/// }
///
/// let (mut tuner, progress) = (Tuner(0.0), Progress::new(0, 1_000));
/// assert_eq!(tuner.update(vec![1.0, 3.0], progress).read()?, [("train/gain", 2.0)]);
/// assert_eq!(tuner.policy(progress).0, 2.0);
/// # Ok::<(), brasa_core::MetricsError>(())
/// ```
pub trait Learner {
    /// Input of one update.
    type Batch;
    /// The policy that it improves.
    type Policy: Policy;

    /// Updates the policy from one batch. Metrics stay on the device until they are read.
    fn update(&mut self, batch: Self::Batch, progress: Progress) -> Metrics;

    /// The current policy on the non-autodiff device, with the exploration of this point of the run.
    fn policy(&self, progress: Progress) -> Self::Policy;

    /// Records gradient steps from now on if `is_on`, and replays them as one launch each, on a device that can. By default a learner records
    /// nothing.
    ///
    /// # Safety
    /// Every tensor that the networks read must be a part of them, or live as long as the learner: a replay reads its memory again.
    #[allow(unsafe_code, reason = "a recording holds addresses of tensors that a network may drop")]
    unsafe fn record(&mut self, _is_on: bool) {}

    /// Recordings for each size of a batch: more than one where not all gradient steps have the same operations. 0, the default, if none is recorded.
    fn n_recordings(&self) -> usize {
        0
    }
}

/// A learner that uses each rollout for one update.
///
/// The loop reads these settings from the learner, so that they are given once.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/policies.inc")); }
/// # use shown::*;
/// use brasa_core::OnPolicyLearner;
///
/// // `Mean` is a learner.
/// impl OnPolicyLearner for Mean {
///     fn n_steps(&self) -> usize {
///         128
///     }
///     fn gamma(&self) -> f64 {
///         0.99
///     }
///     fn gae_lambda(&self) -> f64 {
///         0.95
///     }
/// }
///
/// // By default, a gradient step uses all 128 steps of 8 environments.
/// assert_eq!(Mean(0.0).batch_rows(1024), 1024);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not learn from rollouts",
    note = "`Trainer::on_policy` takes PPO, A2C, or a learner with this trait; SAC, TD3 and DQN go into `Trainer::off_policy`"
)]
pub trait OnPolicyLearner: Learner {
    /// Steps per environment and rollout.
    fn n_steps(&self) -> usize;

    /// Rows per gradient step of a rollout of `n_rows` rows. Default: all of them.
    fn batch_rows(&self, n_rows: usize) -> usize {
        n_rows
    }

    /// Discount per step.
    fn gamma(&self) -> f64;

    /// Lambda of generalized advantage estimation, in [0, 1].
    fn gae_lambda(&self) -> f64;

    /// The unit of the policy's values. Default: that of rewards. A loop converts values before it estimates advantages.
    fn value_scale(&self) -> ValueScale {
        ValueScale::default()
    }

    /// Environment steps between two readings of metrics. Default 1: after every rollout.
    fn log_interval(&self) -> u64 {
        1
    }
}

/// A learner that learns from transitions of a replay buffer.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/policies.inc")); }
/// # use shown::*;
/// use brasa_core::OffPolicyLearner;
/// use brasa_env::{EnvError, EnvSpec, Space, field};
/// use burn::tensor::Tensor;
///
/// // `Mean` is a learner. It has no error of temporal differences, so replay cannot be prioritized.
/// impl OffPolicyLearner for Mean {
///     fn gamma(&self) -> f64 {
///         0.99
///     }
///     fn td_error(&self) -> Tensor<1> {
///         unimplemented!("no prioritized replay")
///     }
///     fn check_envs(&self, spec: &EnvSpec) -> Result<(), EnvError> {
///         Ok(field::rule(spec.obs.width() == 1, "obs", "must be one number", spec.obs.width())?)
///     }
/// }
///
/// let spec = EnvSpec::new(Space::uniform_box(0.0, 1.0, ["x", "y"]), Space::Discrete(2), 1);
/// assert_eq!(Mean(0.0).check_envs(&spec).unwrap_err().to_string(), "`obs` must be one number, got 2");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not learn from transitions of a replay buffer",
    note = "`Trainer::off_policy` takes SAC, TD3, DQN, or a learner with this trait; PPO and A2C go into `Trainer::on_policy`"
)]
pub trait OffPolicyLearner: Learner {
    /// Discount per step, for n-step returns.
    fn gamma(&self) -> f64;

    /// `[n_rows]`: absolute TD errors of the latest batch, for prioritized replay.
    ///
    /// # Panics
    /// Before the first update.
    fn td_error(&self) -> Tensor<1>;

    /// Rejects environments that the learner does not support.
    ///
    /// # Errors
    /// [`EnvError::Argument`] with the reason.
    fn check_envs(&self, _spec: &EnvSpec) -> Result<(), EnvError> {
        Ok(())
    }

    /// Called after every vector step and its updates, for settings that depend on the step of the episode.
    /// `any_episode_end` says whether an episode may have ended; it is exact for a single environment on the host.
    fn after_step(&mut self, _any_episode_end: bool) {}
}

/// Progress of a training run; schedules read it.
///
/// ```
/// use brasa_core::{Progress, Schedule};
///
/// let progress = Progress::new(25_000, 100_000);
/// assert_eq!(progress.fraction(), 0.25);
/// assert_eq!(Schedule::linear(1.0, 0.0).at(progress.fraction()), 0.75);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Environment steps before the current batch was collected.
    pub env_steps: u64,
    /// Environment steps of the whole run.
    pub total_env_steps: u64,
}

impl Progress {
    /// Progress after `env_steps` of `total_env_steps`.
    pub const fn new(env_steps: u64, total_env_steps: u64) -> Self {
        Self { env_steps, total_env_steps }
    }

    /// Progress as a fraction, 0 to 1.
    pub fn fraction(&self) -> f64 {
        if self.total_env_steps == 0 {
            return 0.0;
        }
        (self.env_steps as f64 / self.total_env_steps as f64).min(1.0)
    }
}
