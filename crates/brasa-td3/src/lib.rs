//! Twin delayed deep deterministic policy gradient (TD3).
//!
//! This crate depends on no loop, environment or network: it trains any deterministic actor with any critics.
//!
//! ```
//! use brasa_buffers::Transitions;
//! use brasa_core::{Learner, Obs, Progress};
//! use brasa_core::env::{Space, named_rng};
//! use brasa_nn::{DeterministicActor, DeterministicActorConfig, MlpCritics, MlpCriticsConfig};
//! use brasa_td3::{Td3, Td3Config};
//! use burn::tensor::Tensor;
//!
//! let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::uniform_box(-2.0, 2.0, ["torque"]));
//! let device = brasa_device::open_named("cpu")?;
//! let tracked = device.clone().autodiff(); // only what learns is tracked
//! let actor = DeterministicActor::new(&DeterministicActorConfig::default(), &obs, &action, &tracked, &mut named_rng(0, "weights", 0))?;
//! let critics = MlpCritics::new(&MlpCriticsConfig::default(), &obs, &action, &tracked, &mut named_rng(0, "weights", 1))?;
//! let mut learner = Td3::new(actor, critics, Td3Config { gamma: 0.98, ..Td3Config::default() }, 0)?;
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
//! Equations: [`Td3`]. Settings: [`Td3Config`]. Metrics and the tests against other implementations: `docs/reference/td3.md` in the repository.

mod config;
mod gaussian_exploration;
mod td3;

pub use config::{Td3Config, Td3Error};
pub use gaussian_exploration::GaussianExploration;
pub use td3::{BellmanError, PolicyImprovement, Td3, target_action, td_target};
