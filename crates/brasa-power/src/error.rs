//! Errors of energy scenarios.

use std::path::PathBuf;

use brasa_env::{EnvError, InvalidField};
use thiserror::Error;

/// An error of an energy scenario.
///
/// ```
/// use std::path::Path;
///
/// use brasa_power::EnergyError;
/// use brasa_power::delimited::Delimited;
///
/// let error = Delimited::read(Path::new("load.csv"), b"hour;load\n0;2,5\n").unwrap_err();
/// assert!(matches!(error, EnergyError::Schema { .. }));
/// assert!(error.to_string().starts_with("load.csv: its columns are separated by semicolons"));
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EnergyError {
    /// An invalid field of a config or schema.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// A file that cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: std::io::Error,
    },
    /// A file or folder that cannot be written.
    #[error("cannot write {}: {cause}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        cause: std::io::Error,
    },
    /// A data set that cannot be imported.
    #[error("{}: {reason}", path.display())]
    Import {
        /// The file, or the folder to write.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A missing column of a file.
    #[error("{}: no column `{column}` (also looked for: {aliases})", path.display())]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The column's current name.
        column: String,
        /// Its older names.
        aliases: String,
    },
    /// A cell that is not a number, or a number outside its range.
    #[error("{}, row {row}, column `{column}`: {rule}, got `{value}`", path.display())]
    Cell {
        /// The file.
        path: PathBuf,
        /// Row in the file; the header is row 1.
        row: usize,
        /// The column.
        column: String,
        /// The rule of the cell.
        rule: String,
        /// The invalid value.
        value: String,
    },
    /// A schema that cannot be parsed or needs unsupported features.
    #[error("{}: {reason}", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A linear program without a solution.
    #[error("the optimum cannot be computed: {0}")]
    Optimum(String),
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
///
/// ```
/// use brasa_power::{EnergyError, fail};
///
/// fn check(capacity_kwh: f64) -> Result<(), EnergyError> {
///     if capacity_kwh > 0.0 { Ok(()) } else { fail("capacity_kwh", "must be above 0", capacity_kwh) }
/// }
///
/// assert!(check(5.0).is_ok());
/// assert_eq!(check(-5.0).unwrap_err().to_string(), "`capacity_kwh` must be above 0, got -5");
/// ```
pub fn fail<T>(field: &str, rule: &str, value: impl ToString) -> Result<T, EnergyError> {
    Err(InvalidField::new(field.to_owned(), rule.to_owned(), value).into())
}
