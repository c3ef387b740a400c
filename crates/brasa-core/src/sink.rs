//! Outputs of metrics.

use thiserror::Error;

/// Receives the metrics of a run and formats them.
///
/// ```
/// use brasa_core::{Sink, SinkError};
///
/// /// Keeps metrics in memory.
/// #[derive(Default)]
/// struct Kept(Vec<(u64, String, f64)>);
///
/// impl Sink for Kept {
///     fn scalar(&mut self, env_steps: u64, name: &str, value: f64) -> Result<(), SinkError> {
///         self.0.push((env_steps, name.to_owned(), value));
///         Ok(())
///     }
/// }
///
/// let mut kept = Kept::default();
/// kept.scalar(1_000, "rollout/return", 23.5)?;
/// kept.flush()?;
/// assert_eq!(kept.0, [(1_000, "rollout/return".to_owned(), 23.5)]);
/// # Ok::<(), SinkError>(())
/// ```
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
///
/// ```
/// use brasa_core::SinkError;
///
/// let error = SinkError::from(std::io::Error::other("no space left"));
/// assert_eq!(error.to_string(), "figures cannot be kept: no space left");
/// ```
#[derive(Debug, Error)]
#[error("figures cannot be kept: {0}")]
pub struct SinkError(#[from] pub std::io::Error);
