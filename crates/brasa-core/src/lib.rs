//! The Burn-side vocabulary of Brasa: rows, vectorized environments, policies, learners, metrics, schedules.
//!
//! This crate names no backend and no algorithm, and touches no files.

mod host_env;
mod learner;
mod metrics;
mod obs;
mod policy;
mod rows;
mod schedule;
mod sink;
mod vec_env;

pub use host_env::{HostEnv, Transfers};
pub use learner::{Learner, Progress};
pub use metrics::{Metrics, MetricsError};
pub use obs::Obs;
pub use policy::{ActorCritic, Decision, Evaluation, Explore, NoiseLaw, NoiseSpec, Policy};
pub use rows::Rows;
pub use schedule::Schedule;
pub use sink::{Sink, SinkError};
pub use vec_env::{StepBatch, VecEnv};

pub use brasa_env as env;
