//! Environments on the host: spaces, batches, executors, wrappers and the contract they must keep.
//!
//! This crate knows nothing of tensors, devices or learning.

mod batch;
mod env;
mod error;
mod rng;
mod space;

pub use batch::{BatchSlabs, EnvBatch};
pub use env::{Env, Step};
pub use error::EnvError;
pub use rng::{EnvRng, episode_rng, named_rng};
pub use space::{BoxSpace, Space};
