//! Outputs of metrics.

use thiserror::Error;

/// Receives the metrics of a run and formats them.
pub trait Sink: Send {
    /// Receives metric `name` after `env_steps` environment steps.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn scalar(&mut self, env_steps: u64, name: &str, value: f64) -> Result<(), SinkError>;

    /// Writes all metrics received so far; called after those of one point in time.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

/// A sink that cannot write metrics.
#[derive(Debug, Error)]
#[error("figures cannot be kept: {0}")]
pub struct SinkError(#[from] pub std::io::Error);
