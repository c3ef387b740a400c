//! Experiments from TOML, comparison with baselines, reports and the command, for any scenario, algorithm and network.
//!
//! A program registers its scenarios, algorithms and networks and gets the subcommands `train` (with `--set`, `--resume`,
//! progress, Ctrl-C), `check`, `eval`, `baseline`, `compare`, `sweep`, `search`, `report`, `devices` and `list`. This crate names no scenario,
//! algorithm or network; the crate `brasa` registers the built-in ones.
//!
//! ```no_run
//! # use std::{ops::Range, process::ExitCode};
//! # use brasa_env::{EnvBatch, EnvError, Scenario, Split};
//! # use serde::{Deserialize, Serialize};
//! use brasa_experiment::{App, Registry, ScenarioEntry};
//!
//! # #[derive(Serialize, Deserialize)] struct RoomConfig {}
//! # struct Room;
//! # impl Room { fn new(_: RoomConfig) -> Result<Self, EnvError> { Ok(Self) } }
//! # impl Scenario for Room {
//! #     fn envs(&self, _: Split, _: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> { unimplemented!() }
//! # }
//! # fn brasa_algorithms() -> Registry { Registry::default() }
//! fn main() -> ExitCode {
//!     // `brasa::algorithms()` in a program.
//!     App::new("room").with(brasa_algorithms()).scenario(ScenarioEntry::new("room", Room::new)).main()
//! }
//! ```
//!
//! A scenario implements [`brasa_env::Scenario`]. [`Algorithms`] registers the constructor of a learner as an algorithm.
//! [`NetworkKind`] registers the constructor of a network as a section. A [`Section`] adds a part to reports. The loops are
//! those of `brasa-train`, whose `Trainer` is used without TOML.

mod app;
mod args;
mod browser;
mod catalog;
mod columns;
mod commands;
mod compare;
mod comparison;
mod error;
mod experiment;
mod exposure;
mod files;
mod foreign;
mod load;
mod lowered;
mod need;
mod output;
mod placement;
mod policy;
mod registry;
mod report;
mod search;
mod session;
mod source;
pub mod statistics;
mod suggest;
mod sweep;
mod timeline;
pub mod tpe;
mod train_config;
mod video;
mod way;

pub use app::{App, Registry};
pub use comparison::{ControllerOutcomes, number};
pub use error::ExperimentError;
pub use experiment::Experiment;
pub use load::load_policy;
pub use need::{FinalComparison, Need, Part, Phase};
pub use policy::LoadedPolicy;
pub use registry::{
    Algorithm, Algorithms, BoxedEnv, ExperimentObs, ExtraCommand, MakeEnv, NetworkContext, NetworkKind, NetworkPlan,
    NoSettings, Plan, PolicyContext, Remark, RemarkContext, ReplayLearner, RolloutLearner, ScenarioEntry, Sections,
    Settings, Size, SizeOf, Template, TensorForm,
};
pub use report::{Section, SectionContext};
pub use session::{Context, Session};
pub use source::Source;
pub use train_config::{EnvDevice, OnNan, OnOom, TrainConfig};
