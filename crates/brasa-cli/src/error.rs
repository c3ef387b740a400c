//! What the command says when it cannot go on, and with which exit code.

use std::fmt;
use std::process::ExitCode;

use brasa::a2c::A2cError;
use brasa::buffers::BufferError;
use brasa::device::DeviceError;
use brasa::dqn::DqnError;
use brasa::energy::EnergyError;
use brasa::env::EnvError;
use brasa::evacuation::EvacuationError;
use brasa::gat::GatError;
use brasa::nn::NnError;
use brasa::ppo::PpoError;
use brasa::sac::SacError;
use brasa::train::{CheckpointError, RunDirError, TrainError};
use brasa::uara::UaraError;

/// An error with the side it is on.
#[derive(Debug)]
pub enum CliError {
    /// The user's input was wrong: exit code 2.
    Input(String),
    /// The input was fine, but it failed: exit code 1.
    Failed(String),
}

impl CliError {
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Input(_) => ExitCode::from(2),
            Self::Failed(_) => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(text) | Self::Failed(text) => f.write_str(text),
        }
    }
}

/// Settings, data files and devices are the user's input.
macro_rules! input {
    ($($error:ty),*) => {$(
        impl From<$error> for CliError {
            fn from(error: $error) -> Self {
                Self::Input(error.to_string())
            }
        }
    )*};
}
input!(A2cError, BufferError, DeviceError, DqnError, GatError, NnError, PpoError, RunDirError, SacError);

impl From<EnvError> for CliError {
    fn from(error: EnvError) -> Self {
        match error {
            EnvError::Argument { .. } | EnvError::Space { .. } | EnvError::Scenario(_) => {
                Self::Input(error.to_string())
            }
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<EnergyError> for CliError {
    fn from(error: EnergyError) -> Self {
        match error {
            EnergyError::Env(error) => error.into(),
            error => Self::Input(error.to_string()),
        }
    }
}

impl From<EvacuationError> for CliError {
    fn from(error: EvacuationError) -> Self {
        match error {
            EvacuationError::Env(error) => error.into(),
            error => Self::Input(error.to_string()),
        }
    }
}

impl From<UaraError> for CliError {
    fn from(error: UaraError) -> Self {
        match error {
            UaraError::Env(error) => error.into(),
            error => Self::Input(error.to_string()),
        }
    }
}

impl From<CheckpointError> for CliError {
    fn from(error: CheckpointError) -> Self {
        match error {
            CheckpointError::None { .. } => Self::Input(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<TrainError> for CliError {
    fn from(error: TrainError) -> Self {
        match error {
            TrainError::Field { .. } => Self::Input(error.to_string()),
            TrainError::Env(error) => error.into(),
            TrainError::Checkpoint(error) => error.into(),
            TrainError::RunDir(error) => error.into(),
            TrainError::Buffer(error) => error.into(),
            _ => Self::Failed(error.to_string()),
        }
    }
}
