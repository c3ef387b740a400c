//! Environments on the host: spaces, batches, executors, wrappers and the contract they must keep.
//!
//! This crate knows nothing of tensors, devices or learning.

mod batch;
mod check;
mod controller;
mod env;
mod env_vec;
mod error;
mod executor;
mod extensions;
mod play;
mod rng;
mod scenario;
mod space;
mod spec;
mod state;
mod threaded;
pub mod wrappers;

pub use batch::{BatchSlabs, EnvBatch, Episode};
pub use check::check_env;
pub use controller::Controller;
pub use env::{Env, Step};
pub use env_vec::EnvVec;
pub use error::EnvError;
pub use executor::{Choice, Executor, execute};
pub use extensions::{Extensions, GraphEdges, GraphSpec, GraphWorld, PairSpec};
pub use play::{EpisodeSeries, play_episodes};
pub use rng::{EnvRng, episode_rng, named_rng};
pub use scenario::{
    Baseline, BaselineKind, Better, Curve, Effort, Evaluation, Figure, Measured, Outcome, Reference, Scenario, Split,
    Total, Trace, Who, evaluate_by_playing, find_baseline,
};
pub use space::{BoxSpace, Space};
pub use spec::{EnvSpec, MaskSpec};
pub use state::StateTag;
pub use threaded::Threaded;
