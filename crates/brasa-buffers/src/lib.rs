//! Rollout and replay storage on the device, generalized advantage estimation, n-step returns, prioritized sampling.
//!
//! This crate knows nothing of networks. All of it lives on a device without autodiff: a tensor that remembers how it
//! was computed would keep every step of a run in memory.

mod advantage;
mod compact;
mod gae;
mod replay;
mod rollout;

pub use advantage::{choice_weight, explained_variance, normalize};
pub use compact::{Compact, Packed, Precision};
pub use gae::{GaeInput, gae, gae_on_host};
pub use replay::{BufferError, PrioritizedConfig, ReplayBuffer, ReplayConfig, Transitions};
pub use rollout::{Rollout, RolloutBuffer};
