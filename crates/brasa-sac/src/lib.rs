//! Soft actor-critic.
//!
//! This crate depends on no loop, environment or network: it trains any `Reparameterized` actor of real actions with `Critics`.
//!
//! ```
//! use brasa_buffers::Transitions;
//! use brasa_core::{Learner, Obs, Progress};
//! use brasa_core::env::{Space, named_rng};
//! use brasa_nn::{MlpCritics, MlpCriticsConfig, SquashedActor, SquashedActorConfig};
//! use brasa_sac::{Sac, SacConfig};
//! use burn::tensor::Tensor;
//!
//! let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::uniform_box(-2.0, 2.0, ["torque"]));
//! let device = brasa_device::open_named("cpu")?;
//! let tracked = device.clone().autodiff(); // only what learns is tracked
//! let actor = SquashedActor::new(&SquashedActorConfig::default(), &obs, &action, &tracked, &mut named_rng(0, "weights", 0))?;
//! let critics = MlpCritics::new(&MlpCriticsConfig::default(), &obs, &action, &tracked, &mut named_rng(0, "weights", 1))?;
//! let mut learner = Sac::new(actor, critics, SacConfig { gamma: 0.98, ..SacConfig::default() }, 0)?;
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
//! assert!(metrics.iter().any(|(name, loss)| *name == "train/critic_loss" && *loss > 0.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Equations: [`Sac`]. Settings: [`SacConfig`]. Metrics and the tests against other implementations: `docs/reference/sac.md` in the repository.

mod config;
mod sac;

pub use config::{EntCoef, SacConfig, SacError};
pub use sac::{BellmanError, PolicyImprovement, Sac, Warmth, td_target};
