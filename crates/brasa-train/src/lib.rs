//! Training loops, run directories, checkpoints and sinks.
//!
//! This crate does not depend on any algorithm or scenario.
//!
//! [`OnPolicy`] and [`OffPolicy`] are the loops. A [`Trainer`] adds a run directory, checkpoints, resume, evaluation, sinks,
//! progress and stopping to one of them. `brasa-experiment` configures the same from a TOML file.
//!
//! In a run of several shards ([`brasa_shards::World::run`]), every shard makes a [`Trainer`] of its own environments, with settings of
//! its own share: `batch_size` and the capacity of the replay buffer are per shard. Steps are counted over all shards. The first shard
//! alone has the run directory, sinks, evaluation and progress.
//!
//! ```
//! use brasa_train::sinks::Jsonl;
//! use brasa_core::Sink;
//!
//! let dir = tempfile::tempdir()?;
//! let path = dir.path().join("metrics.jsonl");
//! let mut sink = Jsonl::open(&path, 0)?;
//! sink.scalar(2048, "rollout/ep_rew_mean", 21.5)?;
//! sink.flush()?;
//! assert_eq!(std::fs::read_to_string(&path)?, "{\"env_steps\":2048,\"rollout/ep_rew_mean\":21.5}\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod checkpoint;
mod error;
mod evaluate;
mod files;
mod footprint;
mod iteration;
mod log;
mod off_policy;
mod on_policy;
mod progress;
mod run_dir;
mod sharding;
pub mod sinks;
mod snapshot;
mod start;
mod stop;
mod trainer;
mod training;
mod waiting;

pub use checkpoint::{Checkpoint, CheckpointError, Checkpoints, Manifest};
pub use error::TrainError;
pub use evaluate::evaluate;
pub use files::{OutputFile, is_standard_output, write_atomically, write_output};
pub use footprint::{Footprint, GrowsWith, MemoryPart, Placing, Work};
pub use iteration::{Counters, Iteration};
pub use log::{StandardError, close_log, is_quiet, note, open_log, say, say_progress, set_quiet, utc_now};
pub use off_policy::{MANY_UPDATES, OffPolicy, OffPolicyConfig};
pub use on_policy::OnPolicy;
pub use progress::{PHASES, ProgressView, RunsView, curve_value, in_words, phases};
pub use run_dir::{RunDir, RunDirError};
pub use sharding::own_seed;
pub use snapshot::{restore_learner, restore_moments, restore_policy, take_checkpoint};
pub use start::{OffPolicyStart, OnPolicyStart, Ready, Start};
pub use stop::StopToken;
pub use trainer::{Callback, EVAL_LENGTH, EVAL_RETURN, EVAL_SEED, Ending, Trainer, TrainerBuilder};
pub use training::{ObsOf, PolicyOf, Run, Training};
pub use waiting::WaitView;
