//! Errors of the command and their exit codes.

use std::path::Path;
use std::process::ExitCode;
use std::{fmt, io};

use brasa_buffers::BufferError;
use brasa_core::MetricsError;
use brasa_device::DeviceError;
use brasa_env::EnvError;
use brasa_train::{CheckpointError, RunDirError, TrainError};

use crate::output::is_of_path;

/// An error of the command, by its cause.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// use brasa_experiment::ExperimentError;
///
/// let error = registry().parse("[scenario.pole]\n[learner]\nn_step = 64\n", "room.toml", &[]).unwrap_err();
/// assert!(matches!(error, ExperimentError::Input(_)));
/// assert!(error.to_string().contains("n_step"));
/// assert_eq!(error.exit_code(), std::process::ExitCode::from(2));
/// ```
#[derive(Debug)]
pub enum ExperimentError {
    /// The user's input is wrong: exit code 2.
    Input(String),
    /// The input is valid, but the command failed: exit code 1.
    Failed(String),
    /// The device has too little memory, with its message: exit code 1.
    OutOfMemory(String),
    /// Numbers of the training are no longer finite, with the message: exit code 1.
    Diverged(String),
    /// The command was interrupted: exit code 130, by convention that of Ctrl-C.
    Interrupted(String),
}

impl ExperimentError {
    /// Wrong input, with the message of another error.
    pub fn input(error: impl fmt::Display) -> Self {
        Self::Input(error.to_string())
    }

    /// Wrong input in a section of an experiment, with the message of the error about its settings.
    pub(crate) fn in_section<E: fmt::Display>(name: &str) -> impl FnOnce(E) -> Self {
        move |error| Self::Input(format!("[{name}] {error}"))
    }

    /// An error of environments that run: unlike that of one which is made, it is no fault of the input.
    pub(crate) fn of_running(error: EnvError) -> Self {
        match error {
            EnvError::Scenario(error) => Self::Failed(error.to_string()),
            error => error.into(),
        }
    }

    /// A file that cannot be written: wrong input if the path is the reason, a failure if the disk is.
    pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Self {
        let message = format!("cannot write {}: {error}", path.display());
        if is_of_path(error) { Self::Input(message) } else { Self::Failed(message) }
    }

    /// The exit code of the program.
    pub fn exit_code(&self) -> ExitCode {
        self.status().into()
    }

    /// [`ExperimentError::exit_code`] as a number.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::Input(_) => 2,
            Self::Failed(_) | Self::OutOfMemory(_) | Self::Diverged(_) => 1,
            Self::Interrupted(_) => 130,
        }
    }
}

impl fmt::Display for ExperimentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(text)
            | Self::Failed(text)
            | Self::OutOfMemory(text)
            | Self::Diverged(text)
            | Self::Interrupted(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ExperimentError {}

impl From<DeviceError> for ExperimentError {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::OutOfMemory { .. } => Self::OutOfMemory(error.to_string()),
            _ => Self::input(error),
        }
    }
}

impl From<RunDirError> for ExperimentError {
    fn from(error: RunDirError) -> Self {
        match error {
            // A full or failing disk is not an error of the input.
            RunDirError::Io { ref cause, .. } if !is_of_path(cause) => Self::Failed(error.to_string()),
            _ => Self::input(error),
        }
    }
}

impl From<EnvError> for ExperimentError {
    fn from(error: EnvError) -> Self {
        match error {
            EnvError::Argument(_) | EnvError::Space { .. } | EnvError::Scenario(_) => Self::input(error),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<CheckpointError> for ExperimentError {
    fn from(error: CheckpointError) -> Self {
        match error {
            CheckpointError::None { .. } => Self::input(error),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<TrainError> for ExperimentError {
    fn from(error: TrainError) -> Self {
        match error {
            TrainError::Buffer(error @ BufferError::State { .. }) => {
                Self::Input(format!("{error}; --forget-replay resumes with an empty replay buffer"))
            }
            TrainError::Field(_) | TrainError::Buffer(_) => Self::input(error),
            TrainError::Device(error) => error.into(),
            TrainError::Metrics { cause: MetricsError::NotFinite { .. }, .. } => Self::Diverged(error.to_string()),
            TrainError::Env(error) => Self::of_running(error),
            TrainError::Checkpoint(error) => error.into(),
            TrainError::RunDir(error) => error.into(),
            _ => Self::Failed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files that cannot be read are wrong input; the same error of environments that run is none.
    #[test]
    fn environments_that_crash_are_no_wrong_input() {
        let crash = || EnvError::Scenario("the worker has ended".into());
        assert_eq!(ExperimentError::from(crash()).status(), 2);
        assert_eq!(ExperimentError::of_running(crash()).status(), 1);
        assert_eq!(ExperimentError::from(TrainError::Env(crash())).status(), 1);
    }

    #[test]
    fn a_path_is_wrong_input_and_a_full_disk_is_none() {
        let status = |kind: io::ErrorKind| ExperimentError::cannot_write(Path::new("x"), &kind.into()).status();
        assert_eq!((status(io::ErrorKind::NotFound), status(io::ErrorKind::StorageFull)), (2, 1));
    }
}
