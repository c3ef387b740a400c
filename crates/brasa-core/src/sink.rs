//! Where figures go.

use thiserror::Error;

/// Receives figures of a run; loops push, sinks format.
pub trait Sink {
    /// Takes the figure `name` after `env_steps` environment steps.
    ///
    /// # Errors
    /// Where it cannot be kept.
    fn scalar(&mut self, env_steps: u64, name: &str, value: f64) -> Result<(), SinkError>;

    /// Everything of one point in time has been pushed: a good moment to write.
    ///
    /// # Errors
    /// Where it cannot be kept.
    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

/// A sink that cannot keep what it is given.
#[derive(Debug, Error)]
#[error("figures cannot be kept: {0}")]
pub struct SinkError(#[from] pub std::io::Error);
