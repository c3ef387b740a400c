//! What can go wrong with an evacuation scenario.

use std::path::PathBuf;

use brasa_env::EnvError;
use thiserror::Error;

/// An error of an evacuation scenario.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EvacuationError {
    /// A field of a config outside its rule.
    #[error("`{field}` {rule}, got {value}")]
    Field {
        /// Name of the field.
        field: String,
        /// What it must be.
        rule: String,
        /// What it was.
        value: String,
    },
    /// A building that cannot be used.
    #[error("layout `{layout}`: {reason}")]
    Layout {
        /// Name of the building.
        layout: String,
        /// What is wrong with it, naming the room, door or exit.
        reason: String,
    },
    /// A file that cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A floor plan that cannot be understood.
    #[error("{origin}: {reason}")]
    Plan {
        /// Where the plan came from: a file name, or the name of a text.
        origin: String,
        /// What is wrong with it, naming the feature.
        reason: String,
    },
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
