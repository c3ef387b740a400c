//! Rollout storage on the device and generalized advantage estimation.
//!
//! This crate knows nothing of networks.

mod gae;
mod rollout;

pub use gae::{GaeInput, gae, gae_on_host};
pub use rollout::{Rollout, RolloutBuffer};
