//! Advantage actor-critic.
//!
//! This crate knows no loop, no environment and no network: any actor-critic can be trained.

mod a2c;
mod config;

pub use a2c::{A2c, policy_loss, value_loss};
pub use config::{A2cConfig, A2cError};
