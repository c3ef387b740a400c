//! Deep Q-learning.
//!
//! This crate depends on no loop, environment or network: it trains any `ActionValues`.
//!
//! ```
//! use brasa_buffers::Transitions;
//! use brasa_core::{Learner, Obs, Progress};
//! use brasa_core::env::{Space, named_rng};
//! use brasa_dqn::{Dqn, DqnConfig};
//! use brasa_nn::{QNetwork, QNetworkConfig};
//! use burn::tensor::Tensor;
//!
//! let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::Discrete(3));
//! let device = brasa_device::open_named("cpu")?;
//! let tracked = device.clone().autodiff(); // only what learns is tracked
//! let network = QNetwork::new(&QNetworkConfig::default(), &obs, &action, &tracked, &mut named_rng(0, "weights", 0))?;
//! let mut learner = Dqn::new(network, DqnConfig { gamma: 0.98, ..DqnConfig::default() })?;
//!
//! // A batch of four transitions. A training loop samples it from a replay buffer: `brasa_train::OffPolicy`, or the `Trainer` around it.
//! let batch = Transitions {
//!     obs: Obs::new(Tensor::ones([4, 2], &device)),
//!     action: Tensor::zeros([4, 1], &device),
//!     reward: Tensor::ones([4], &device),
//!     next_obs: Obs::new(Tensor::zeros([4, 2], &device)),
//!     discount: Tensor::full([4], 0.98, &device),
//!     weight: None,
//!     sequences: None,
//!     rows: Tensor::arange(0..4, &device),
//! };
//! let metrics = learner.update(batch, Progress::new(0, 1)).read()?;
//! assert!(metrics.iter().any(|(name, loss)| *name == "train/loss" && *loss > 0.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Equations: [`Dqn`]. Settings: [`DqnConfig`]. Metrics and the tests against other implementations: `docs/reference/dqn.md` in the repository.

mod config;
mod dqn;
mod epsilon_greedy;

pub use config::{DqnConfig, DqnError, DqnLoss, EpisodeClock, GreedyRamp};
pub use dqn::{Dqn, rescaled, td_target, unscaled};
pub use epsilon_greedy::EpsilonGreedy;
