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
mod progress;
mod run_dir;
pub mod sinks;
mod snapshot;
mod stop;
mod trainer;
mod training;

pub use checkpoint::{Checkpoint, CheckpointError, Checkpoints, Manifest};
pub use error::TrainError;
pub use evaluate::evaluate;
pub use files::write_atomically;
pub use iteration::{Counters, Iteration};
pub use off_policy::{OffPolicy, OffPolicyConfig};
pub use on_policy::OnPolicy;
pub use progress::{ProgressView, curve_value};
pub use run_dir::{RunDir, RunDirError};
pub use snapshot::{restore_learner, restore_moments, restore_policy, take_checkpoint};
pub use stop::StopToken;
pub use trainer::{
    Callback, EVAL_SEED, Ending, HasDevice, OffPolicyStart, OnPolicyStart, Ready, Start, Trainer, TrainerBuilder,
};
pub use training::{ObsOf, PolicyOf, Run, Training};
