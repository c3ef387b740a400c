//! Traits and types on Burn tensors: rows, vectorized environments, policies, learners, metrics, schedules.
//!
//! This crate names no backend and no algorithm, and touches no files.
//!
//! ```
//! use brasa_core::{Obs, Rows, Schedule};
//! use burn::tensor::Tensor;
//!
//! // A hyper-parameter that decreases over the run, and a selection of rows of observations.
//! assert_eq!(Schedule::linear(1e-3, 0.0).at(0.5), 5e-4);
//! let device = brasa_device::open_named("cpu")?;
//! let obs = Obs::new(Tensor::from_floats([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], &device));
//! let picked = obs.select(Tensor::from_ints([2, 0], &device));
//! assert_eq!(picked.n_rows(), 2);
//! # Ok::<(), brasa_device::DeviceError>(())
//! ```
//!
//! [`HostEnv`] connects a batch of environments to a device; [`PolicyController`] is a policy as a controller on the
//! host; [`HostActor`] and [`HostStepper`] are both without tensors. Algorithms implement [`Learner`], networks the traits that algorithms require. `brasa-train` has the training
//! loops.

pub mod analytic;
mod check_dynamics;
mod controller;
mod device_moments;
mod draws;
mod host_env;
mod learner;
mod metrics;
mod noise_block;
mod obs;
mod on_host;
mod policy;
mod policy_state;
mod read_back;
mod rows;
mod rule_tensors;
mod schedule;
mod sink;
mod sizes;
mod smoothing;
mod team_obs;
mod tensor_dynamics;
mod tensor_env;
mod value_scale;
mod vec_env;

pub use check_dynamics::check_dynamics;
pub use controller::PolicyController;
pub use draws::Draws;
pub use host_env::{HostEnv, Transfers};
pub use learner::{Learner, OffPolicyLearner, OnPolicyLearner, Progress};
pub use metrics::{MetricValues, Metrics, MetricsError};
pub use obs::{Normalization, Obs, ObsForm, ObsParts};
pub use on_host::{HostActor, HostDecisions, HostObs, HostStepper};
pub use policy::{
    ActionValues, ActorCritic, Critics, Decision, Deterministic, Evaluation, Explore, Greedy, NoiseDistribution,
    NoiseSpec, Policy, RandomWarmup, Reparameterized,
};
pub use policy_state::{PolicyState, Sequences};
pub use read_back::{n_read_backs, read_all, read_back};
pub use rows::{Rows, row_indices};
pub use rule_tensors::{RuleTensors, nearest_option};
pub use schedule::Schedule;
pub use sink::{Sink, SinkError};
pub use sizes::{ActionSizes, NetworkSizes};
pub use team_obs::{Shared, TeamObs};
pub use tensor_dynamics::{NoiseWidths, TensorDynamics, TensorState, TensorStep};
pub use tensor_env::TensorEnv;
pub use value_scale::ValueScale;
pub use vec_env::{StepBatch, Successor, VecEnv};

pub use brasa_env as env;
pub use brasa_export as export;
