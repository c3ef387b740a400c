//! What can go wrong with an evacuation scenario.

use brasa_env::{EnvError, InvalidField};
use brasa_floorplan::FloorPlanError;
use thiserror::Error;

/// An error of an evacuation scenario.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EvacuationError {
    /// A field of a config outside its rule.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// A building, a file that holds one, or the settings of random ones.
    #[error(transparent)]
    FloorPlan(#[from] FloorPlanError),
    /// A problem that is too large for an exact answer.
    #[error("{what} needs {limit}, got {got}")]
    TooLarge {
        /// The method.
        what: &'static str,
        /// What it can do.
        limit: String,
        /// What was asked.
        got: String,
    },
    /// An error of the environment contract.
    #[error(transparent)]
    Env(#[from] EnvError),
}

impl From<EvacuationError> for EnvError {
    fn from(error: EvacuationError) -> Self {
        match error {
            EvacuationError::Env(error) => error,
            other => Self::Scenario(Box::new(other)),
        }
    }
}
