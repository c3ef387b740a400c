//! Twin delayed deep deterministic policy gradient (TD3).
//!
//! This crate knows no loop, no environment and no network: any deterministic actor and any critics can be trained.

mod config;
mod gaussian_exploration;
mod td3;

pub use config::{Td3Config, Td3Error};
pub use gaussian_exploration::GaussianExploration;
pub use td3::{Td3, actor_loss, critic_loss, target_action, td_target};
