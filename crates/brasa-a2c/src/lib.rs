//! Advantage actor-critic.
//!
//! This crate depends on no loop, environment or network: it trains any actor-critic.
//!
//! ```
//! use brasa_core::OnPolicyLearner;
//! use brasa_core::env::{Space, named_rng};
//! use brasa_nn::{ActorCriticConfig, MlpActorCritic};
//! use brasa_a2c::{A2c, A2cConfig};
//!
//! let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::Discrete(3));
//! let device = brasa_test::device().autodiff();
//! let config = ActorCriticConfig::default();
//! let network = MlpActorCritic::new(&config, &obs, &action, &device, &mut named_rng(0, "weights", 0))?;
//! let learner = A2c::new(network, A2cConfig { n_steps: 16, ..A2cConfig::default() }, 0)?;
//! // The training loop reads it from the learner: `brasa_train::OnPolicy`, or the `Trainer` around it.
//! assert_eq!(learner.n_steps(), 16);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Equations, tests, settings and metrics: `docs/a2c.md`.

mod a2c;
mod config;

pub use a2c::{A2c, policy_loss, value_loss};
pub use config::{A2cConfig, A2cError};
