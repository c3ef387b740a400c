//! Deep Q-learning.
//!
//! This crate knows no loop, no environment and no network: any `ActionValues` can be trained.

mod config;
mod dqn;
mod epsilon_greedy;

pub use config::{DqnConfig, DqnError, EpisodeClock, GreedyRamp};
pub use dqn::{Dqn, huber_loss, td_target};
pub use epsilon_greedy::EpsilonGreedy;
