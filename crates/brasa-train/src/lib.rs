//! Training loops, run directories, checkpoints and sinks.
//!
//! This crate knows no algorithm and no scenario.

mod checkpoint;
mod error;
mod evaluate;
mod files;
mod iteration;
mod off_policy;
mod on_policy;
mod run_dir;
pub mod sinks;
mod snapshot;
mod training;

pub use checkpoint::{Checkpoint, CheckpointError, Checkpoints, Manifest};
pub use error::TrainError;
pub use evaluate::evaluate;
pub use files::write_atomically;
pub use iteration::{Counters, Iteration};
pub use off_policy::{OffPolicy, OffPolicyConfig};
pub use on_policy::OnPolicy;
pub use run_dir::{RunDir, RunDirError};
pub use snapshot::{restore_learner, restore_moments, restore_policy, take_checkpoint};
pub use training::{ObsOf, PolicyOf, Run, Training};
