//! Rollout and replay storage on the device, generalized advantage estimation, n-step returns, prioritized sampling.
//!
//! This crate knows nothing of networks. All of it lives on the plain side of a device: a tensor that remembers how it
//! was computed would keep every step of a run in memory.

mod advantage;
mod compact;
mod gae;
mod replay;
mod rollout;

pub use advantage::{choice_weight, explained_variance, normalize};
pub use compact::{Compact, Packed, Precision};
pub use gae::{GaeInput, gae, gae_on_host};
pub use replay::{BufferError, PrioritizedConfig, Replay, ReplayConfig, Transitions};
pub use rollout::{Rollout, RolloutBuffer};
