//! The Burn-side vocabulary of Brasa: rows, vectorized environments, policies, learners, metrics, schedules.
//!
//! This crate names no backend and no algorithm, and touches no files.

mod controller;
mod host_env;
mod learner;
mod metrics;
mod obs;
mod policy;
mod rows;
mod schedule;
mod sink;
mod team_obs;
mod vec_env;

pub use controller::PolicyController;
pub use host_env::{HostEnv, Transfers};
pub use learner::{Learner, OffPolicyLearner, OnPolicyLearner, Progress};
pub use metrics::{Metrics, MetricsError};
pub use obs::{Normalization, Obs, ObsForm, ObsParts};
pub use policy::{
    ActionValues, ActorCritic, Critics, Decision, Evaluation, Explore, Greedy, NoiseDistribution, NoiseSpec, Policy,
    RandomWarmup, Reparameterized,
};
pub use rows::Rows;
pub use schedule::Schedule;
pub use sink::{Sink, SinkError};
pub use team_obs::{Shared, TeamObs};
pub use vec_env::{StepBatch, VecEnv};

pub use brasa_env as env;
