//! Errors of network scenarios.

use brasa_env::{EnvError, InvalidField};
use thiserror::Error;

/// An error of a network scenario.
///
/// ```
/// use brasa_uara::{UaraConfig, UaraError};
///
/// let error = UaraConfig { episode_steps: 0, ..UaraConfig::default() }.validate().unwrap_err();
/// assert!(matches!(error, UaraError::Field(_)));
/// assert_eq!(error.to_string(), "`episode_steps` must be at least 1, got 0");
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UaraError {
    /// An invalid field of a config.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// A problem that is too large for an exact solution.
    #[error("{what} needs {limit}, got {got}")]
    TooLarge {
        /// The method.
        what: &'static str,
        /// Its limit.
        limit: String,
        /// The requested size.
        got: String,
    },
    /// An error of the environment contract.
    #[error(transparent)]
    Env(#[from] EnvError),
}

impl From<UaraError> for EnvError {
    fn from(error: UaraError) -> Self {
        match error {
            UaraError::Env(error) => error,
            other => Self::Scenario(Box::new(other)),
        }
    }
}
