//! Errors of evacuation scenarios.

use brasa_env::{EnvError, InvalidField};
use brasa_floorplan::FloorPlanError;
use thiserror::Error;

/// An error of an evacuation scenario.
///
/// ```
/// use brasa_evacuation::{EvacuationError, Layout, SweepProblem, Sweeps, Timing, joint};
///
/// let daycare = Layout::daycare();
/// let problem = SweepProblem::new(&daycare, &Timing::hops(), Sweeps::Once, &daycare.starts(2))?;
/// let error = joint(&problem).unwrap_err();
/// assert!(matches!(error, EvacuationError::TooLarge { .. }));
/// assert!(error.to_string().ends_with("got 33 rooms and 2 responders"));
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EvacuationError {
    /// An invalid field of a config.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// An error of a building, its file, or the generator settings.
    #[error(transparent)]
    FloorPlan(#[from] FloorPlanError),
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

impl From<EvacuationError> for EnvError {
    fn from(error: EvacuationError) -> Self {
        match error {
            EvacuationError::Env(error) => error,
            other => Self::Scenario(Box::new(other)),
        }
    }
}
