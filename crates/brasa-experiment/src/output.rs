//! Files at the paths that users give.

use std::io;
use std::path::Path;

use brasa_train::{OutputFile, is_standard_output, say, write_output};

use crate::ExperimentError;

/// Writes a result to the path of a user, and returns `summary` for standard output. If the result goes there, `summary` goes to standard
/// error.
///
/// # Errors
/// [`ExperimentError::cannot_write`].
pub(crate) fn write(path: &Path, bytes: &[u8], summary: String) -> Result<String, ExperimentError> {
    written(path, write_output(path, bytes), summary)
}

/// As [`write`], for a result that was written little by little to `path`.
///
/// # Errors
/// [`ExperimentError::cannot_write`].
pub(crate) fn publish(path: &Path, file: OutputFile, summary: String) -> Result<String, ExperimentError> {
    written(path, file.publish(), summary)
}

fn written(path: &Path, written: io::Result<()>, summary: String) -> Result<String, ExperimentError> {
    match written {
        // A reader that has enough, such as `head`, is no error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe && is_standard_output(path) => {}
        written => written.map_err(|error| ExperimentError::cannot_write(path, &error))?,
    }
    if is_standard_output(path) {
        say(summary.trim_end());
        return Ok(String::new());
    }
    Ok(summary)
}

/// Whether an error of the system is the fault of the path, and not of the disk.
pub(crate) fn is_of_path(error: &io::Error) -> bool {
    use io::ErrorKind::{
        AlreadyExists, InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound, PermissionDenied,
        ReadOnlyFilesystem,
    };
    matches!(
        error.kind(),
        AlreadyExists
            | InvalidFilename
            | InvalidInput
            | IsADirectory
            | NotADirectory
            | NotFound
            | PermissionDenied
            | ReadOnlyFilesystem
    )
}
