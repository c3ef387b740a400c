//! Errors of training runs.

use brasa_buffers::BufferError;
use brasa_core::env::{EnvError, InvalidField};
use brasa_core::{MetricsError, SinkError};
use brasa_device::DeviceError;
use thiserror::Error;

use crate::{CheckpointError, RunDirError};

/// An error that ends a training run. The last checkpoint is kept.
///
/// ```
/// use brasa_train::{OffPolicyConfig, TrainError};
///
/// let config = OffPolicyConfig { train_freq: 0, ..Default::default() };
/// let error: TrainError = config.validate().unwrap_err();
/// assert_eq!(error.to_string(), "`train_freq` must be at least 1, got 0");
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// A setting violates its rule.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// An environment failed.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// Experience cannot be stored as configured.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// The device cannot do what a setting asks for.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Metrics cannot be used: the device failed or training diverged.
    #[error("after {env_steps} environment steps: {cause}")]
    Metrics {
        /// Environment steps taken before the error.
        env_steps: u64,
        /// The cause.
        cause: MetricsError,
    },
    /// The policy could not be evaluated during training.
    #[error(transparent)]
    Evaluation(Box<dyn std::error::Error + Send + Sync>),
    /// A sink failed.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// A checkpoint could not be written or read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The run directory cannot be used.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
}

impl TrainError {
    /// An error of a device that says that its memory is exhausted is one about memory.
    pub(crate) fn classified(self) -> Self {
        match &self {
            Self::Metrics { cause: MetricsError::Device(message), .. } => {
                DeviceError::out_of_memory(message).map_or(self, Self::Device)
            }
            _ => self,
        }
    }
}
