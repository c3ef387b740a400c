//! Deep Q-learning.
//!
//! This crate depends on no loop, environment or network: it trains any `ActionValues`.
//!
//! ```
//! use brasa_core::OffPolicyLearner;
//! use brasa_core::env::{Space, named_rng};
//! use brasa_dqn::{Dqn, DqnConfig};
//! use brasa_nn::{QNetwork, QNetworkConfig};
//!
//! let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::Discrete(3));
//! let device = brasa_test::device().autodiff();
//! let network = QNetwork::new(&QNetworkConfig::default(), &obs, &action, &device, &mut named_rng(0, "weights", 0))?;
//! let learner = Dqn::new(network, DqnConfig { gamma: 0.98, ..DqnConfig::default() })?;
//! // The training loop reads it from the learner: `brasa_train::OffPolicy`, or the `Trainer` around it.
//! assert_eq!(learner.gamma(), 0.98);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Equations, tests, settings and metrics: `docs/dqn.md`.

mod config;
mod dqn;
mod epsilon_greedy;

pub use config::{DqnConfig, DqnError, EpisodeClock, GreedyRamp};
pub use dqn::{Dqn, huber_loss, td_target};
pub use epsilon_greedy::EpsilonGreedy;
