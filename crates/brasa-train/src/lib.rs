//! Training loops, run directories, checkpoints and sinks.
//!
//! This crate knows no algorithm and no scenario.

mod checkpoint;
mod error;
mod evaluate;
mod files;
mod on_policy;
mod run_dir;
pub mod sinks;
mod snapshot;

pub use checkpoint::{Arrays, Checkpoint, CheckpointError, Checkpoints, Manifest};
pub use error::TrainError;
pub use evaluate::evaluate;
pub use files::write_atomically;
pub use on_policy::{Counters, Iteration, OnPolicy, OnPolicyConfig};
pub use run_dir::{RunDir, RunDirError};
pub use snapshot::{policy_arrays, restore_moments, restore_policy, restore_trainable, trainer_arrays};
