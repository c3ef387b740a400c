//! Proximal policy optimization.
//!
//! This crate depends on no environment, loop, network or device.
//!
//! ```
//! use brasa_buffers::Rollout;
//! use brasa_core::{Explore, Learner, Obs, Policy, Progress};
//! use brasa_core::env::{Space, named_rng};
//! use brasa_nn::{ActorCriticConfig, MlpActorCritic};
//! use brasa_ppo::{Ppo, PpoConfig};
//! use burn::tensor::Tensor;
//!
//! let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::Discrete(3));
//! let device = brasa_device::open_named("cpu")?;
//! let config = ActorCriticConfig::default();
//! let tracked = device.clone().autodiff(); // only what learns is tracked
//! let network = MlpActorCritic::new(&config, &obs, &action, &tracked, &mut named_rng(0, "weights", 0))?;
//! let mut learner = Ppo::new(network, PpoConfig { n_steps: 4, batch_size: 4, ..PpoConfig::default() }, 0)?;
//!
//! // A rollout of four rows. A training loop collects it: `brasa_train::OnPolicy`, or the `Trainer` around it.
//! let seen = Obs::new(Tensor::ones([4, 2], &device));
//! let (action, decision) = learner.policy(Progress::new(0, 1)).act(seen.clone(), Explore::Greedy);
//! let rewards = Tensor::<1>::from_floats([1.0, 0.0, 2.0, 1.0], &device);
//! let rollout = Rollout {
//!     obs: seen,
//!     action,
//!     log_prob: decision.log_prob,
//!     value: Tensor::zeros([4], &device),
//!     advantage: rewards.clone(),
//!     returns: rewards,
//!     remembered: None,
//! };
//! let metrics = learner.update(rollout, Progress::new(0, 1)).read()?;
//! assert!(metrics.iter().any(|(name, loss)| *name == "train/value_loss" && *loss > 0.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Equations: [`Ppo`]. Settings: [`PpoConfig`]. Metrics and the tests against other implementations: `docs/reference/ppo.md` in the repository.

mod config;
mod ppo;

pub use config::{PpoConfig, PpoError, ValueLoss};
pub use ppo::{Ppo, Surrogate};
