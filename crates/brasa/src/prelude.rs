//! Common imports: `use brasa::prelude::*`.

pub use brasa_core::{HostEnv, Obs, Policy, PolicyController, Schedule, VecEnv};
pub use brasa_env::wrappers::TimeLimit;
pub use brasa_env::{
    Baseline, BaselineKind, BatchSlabs, Controller, Env, EnvBatch, EnvError, EnvRng, EnvSpec, EnvVec, Figure, Scenario,
    Space, Split, Step, check_env, named_rng,
};
#[cfg(feature = "experiment")]
pub use brasa_experiment::{App, ScenarioEntry, Section};
pub use brasa_nn::MlpActorCritic;
pub use brasa_train::{Run, Trainer, Training};
pub use rand::RngExt;
