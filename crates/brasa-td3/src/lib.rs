//! Twin delayed deep deterministic policy gradient (TD3).
//!
//! This crate depends on no loop, environment or network: it trains any deterministic actor with any critics.
//!
//! ```
//! use brasa_core::OffPolicyLearner;
//! use brasa_core::env::{Space, named_rng};
//! use brasa_nn::{DeterministicActor, DeterministicActorConfig, MlpCritics, MlpCriticsConfig};
//! use brasa_td3::{Td3, Td3Config};
//!
//! let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::uniform_box(-2.0, 2.0, ["torque"]));
//! let device = brasa_test::device().autodiff();
//! let actor = DeterministicActor::new(&DeterministicActorConfig::default(), &obs, &action, &device, &mut named_rng(0, "weights", 0))?;
//! let critics = MlpCritics::new(&MlpCriticsConfig::default(), &obs, &action, &device, &mut named_rng(0, "weights", 1))?;
//! let learner = Td3::new(actor, critics, Td3Config { gamma: 0.98, ..Td3Config::default() }, 0)?;
//! // The training loop reads it from the learner: `brasa_train::OffPolicy`, or the `Trainer` around it.
//! assert_eq!(learner.gamma(), 0.98);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Equations, tests, settings and metrics: `docs/td3.md`.

mod config;
mod gaussian_exploration;
mod td3;

pub use config::{Td3Config, Td3Error};
pub use gaussian_exploration::GaussianExploration;
pub use td3::{Td3, actor_loss, critic_loss, target_action, td_target};
