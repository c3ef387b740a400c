//! What can go wrong with an energy scenario.

use std::path::PathBuf;

use brasa_env::{EnvError, InvalidField};
use thiserror::Error;

/// An error of an energy scenario.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EnergyError {
    /// A field of a config or schema outside its rule.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// A file that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that lacks a column.
    #[error("{}: no column `{column}` (also looked for: {aliases})", path.display())]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The column's current name.
        column: String,
        /// Its older names.
        aliases: String,
    },
    /// A cell that is no number, or a number outside its range.
    #[error("{}, row {row}, column `{column}`: {rule}, got `{value}`", path.display())]
    Cell {
        /// The file.
        path: PathBuf,
        /// Row in the file, the header being row 1.
        row: usize,
        /// The column.
        column: String,
        /// What the cell must be.
        rule: String,
        /// What it was.
        value: String,
    },
    /// A schema that cannot be parsed or asks for something that is not supported.
    #[error("{}: {reason}", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// An error of the environment contract.
    #[error(transparent)]
    Env(#[from] EnvError),
}

impl From<EnergyError> for EnvError {
    fn from(error: EnergyError) -> Self {
        match error {
            EnergyError::Env(error) => error,
            other => Self::Scenario(Box::new(other)),
        }
    }
}

/// Rejects a setting.
pub(crate) fn fail<T>(field: &str, rule: &str, value: impl ToString) -> Result<T, EnergyError> {
    Err(InvalidField::new(field.to_owned(), rule.to_owned(), value).into())
}
