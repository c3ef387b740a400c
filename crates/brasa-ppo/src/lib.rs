//! Proximal policy optimization.
//!
//! This crate knows no environment, no loop, no network and no device.

mod config;
mod ppo;

pub use config::{PpoConfig, PpoError};
pub use ppo::{Ppo, entropy_loss, policy_loss, value_loss};
