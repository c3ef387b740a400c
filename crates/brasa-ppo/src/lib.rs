//! Proximal policy optimization.
//!
//! This crate depends on no environment, loop, network or device.
//!
//! ```
//! use brasa_core::OnPolicyLearner;
//! use brasa_core::env::{Space, named_rng};
//! use brasa_nn::{ActorCriticConfig, MlpActorCritic};
//! use brasa_ppo::{Ppo, PpoConfig};
//!
//! let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::Discrete(3));
//! let device = brasa_test::device().autodiff();
//! let config = ActorCriticConfig::default();
//! let network = MlpActorCritic::new(&config, &obs, &action, &device, &mut named_rng(0, "weights", 0))?;
//! let learner = Ppo::new(network, PpoConfig { n_steps: 16, ..PpoConfig::default() }, 0)?;
//! // The training loop reads it from the learner: `brasa_train::OnPolicy`, or the `Trainer` around it.
//! assert_eq!(learner.n_steps(), 16);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Equations, tests, settings and metrics: `docs/ppo.md`.

mod config;
mod loss;
mod ppo;

pub use config::{PpoConfig, PpoError};
pub use loss::{entropy_loss, policy_loss, value_loss};
pub use ppo::Ppo;
