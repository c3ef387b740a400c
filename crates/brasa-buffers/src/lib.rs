//! Rollout and replay storage on the device, generalized advantage estimation, n-step returns, prioritized sampling.
//!
//! This crate does not depend on networks. All tensors are on a non-autodiff device: autodiff graphs would keep every
//! step of a run in memory.
//!
//! ```
//! use brasa_buffers::{GaeInput, gae};
//! use burn::tensor::Tensor;
//!
//! // Two steps of one environment; the second terminates the episode.
//! let device = brasa_device::open_named("cpu")?;
//! let steps = |values: [f32; 2]| Tensor::<2>::from_floats([[values[0]], [values[1]]], &device);
//! let input = GaeInput {
//!     reward: steps([1.0, 1.0]),
//!     value: steps([0.5, 0.5]),
//!     next_value: steps([0.5, 9.0]),
//!     terminated: steps([0.0, 1.0]),
//!     episode_end: steps([0.0, 1.0]),
//!     discount: None,
//! };
//! let advantage: Vec<f32> = gae(input, 0.5, 1.0).into_data().iter::<f32>().collect();
//! assert_eq!(advantage, [1.0 + 0.5 * 0.5 - 0.5 + 0.5 * 0.5, 1.0 - 0.5]);
//! # Ok::<(), brasa_device::DeviceError>(())
//! ```
//!
//! [`RolloutBuffer`] and, for environments in the memory of the CPU, [`HostRollout`] are for on-policy learners, [`ReplayBuffer`] for
//! off-policy learners; the loops of `brasa-train` fill them.

mod compact;
mod host_rollout;
mod replay;
mod rollout;
mod truncations;

pub use brasa_kernels::{GaeInput, gae, gae_on_host};

pub use brasa_core::env::{EnvSpec, Space, named_rng};
pub use brasa_core::{Obs, StepBatch, Successor};
pub use compact::{Compact, Packed, Precision};
pub use host_rollout::HostRollout;
pub use replay::{
    BufferError, BurnIn, PrioritizedConfig, ReplayBuffer, ReplayBuilder, ReplayConfig, ReplayedSequences,
    SequenceConfig, SumTree, Transition, Transitions,
};
pub use rollout::{Cut, Discounts, MOST_VALUED_ROWS, Remembered, Rollout, RolloutBuffer};
