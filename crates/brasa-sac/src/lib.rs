//! Soft actor-critic.
//!
//! This crate knows no loop, no environment and no network: any `Reparameterized` actor with `Critics` can be trained.

mod config;
mod sac;

pub use config::{EntCoef, SacConfig, SacError};
pub use sac::{Sac, actor_loss, critic_loss, td_target, temperature_loss};
