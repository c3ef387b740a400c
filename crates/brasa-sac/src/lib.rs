//! Soft actor-critic.
//!
//! This crate depends on no loop, environment or network: it trains any `Reparameterized` actor of real actions with `Critics`.
//!
//! ```
//! use brasa_core::OffPolicyLearner;
//! use brasa_core::env::{Space, named_rng};
//! use brasa_nn::{MlpCritics, MlpCriticsConfig, SquashedActor, SquashedActorConfig};
//! use brasa_sac::{Sac, SacConfig};
//!
//! let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::uniform_box(-2.0, 2.0, ["torque"]));
//! let device = brasa_test::device().autodiff();
//! let actor = SquashedActor::new(&SquashedActorConfig::default(), &obs, &action, &device, &mut named_rng(0, "weights", 0))?;
//! let critics = MlpCritics::new(&MlpCriticsConfig::default(), &obs, &action, &device, &mut named_rng(0, "weights", 1))?;
//! let learner = Sac::new(actor, critics, SacConfig { gamma: 0.98, ..SacConfig::default() }, 0)?;
//! // The training loop reads it from the learner: `brasa_train::OffPolicy`, or the `Trainer` around it.
//! assert_eq!(learner.gamma(), 0.98);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Equations, tests, settings and metrics: `docs/sac.md`.

mod config;
mod sac;

pub use config::{EntCoef, SacConfig, SacError};
pub use sac::{Sac, actor_loss, critic_loss, td_target, temperature_loss};
