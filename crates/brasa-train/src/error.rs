//! What can stop a training run.

use brasa_buffers::BufferError;
use brasa_core::env::{EnvError, InvalidField};
use brasa_core::{MetricsError, SinkError};
use thiserror::Error;

use crate::{CheckpointError, RunDirError};

/// An error that ends a training run; the last checkpoint stays.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// A setting outside its rule.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// An environment failed.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// Experience cannot be stored as asked.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// Metrics cannot be used: the device failed or training diverged.
    #[error("after {env_steps} environment steps: {source}")]
    Metrics {
        /// When.
        env_steps: u64,
        /// What.
        source: MetricsError,
    },
    /// The policy could not be measured while it learned.
    #[error(transparent)]
    Evaluation(Box<dyn std::error::Error>),
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
