//! Environments of Gymnasium in worker processes, without Python in the program.
//!
//! [`GymVec`] is a batch for training with any learner of Brasa, [`Gymnasium`] the same as a scenario with a random baseline. The
//! interpreter of the user needs the package `gymnasium` (1.0 or later) and those of the environment; [`GymConfig::python`] says
//! which interpreter it is.
//!
//! | Gymnasium | here |
//! |---|---|
//! | observation `Box`, `MultiBinary` | its numbers, row-major, as f32; images too, as 0 to 255 |
//! | observation `Discrete`, `MultiDiscrete` | one number per alternative, 1 for the chosen one |
//! | observation `Dict`, `Tuple` | its parts one after the other, named by their keys |
//! | action `Box` of floats | [`brasa_env::Space::Box`] with its bounds, to which actions are clipped |
//! | action `Discrete`, `MultiDiscrete`, `MultiBinary` | [`brasa_env::Space::Discrete`], [`brasa_env::Space::MultiDiscrete`] |
//! | action `Dict`, `Tuple` | one space, if all parts are discrete or all are boxes |
//! | `info["action_mask"]`, `env.action_masks()` | the masks of the batch, for discrete actions |
//!
//! Other spaces are refused by name. Observations, rewards and actions go through shared memory; a byte through a pipe starts a step
//! and another one ends it.
//!
//! ```no_run
//! use brasa_env::{BatchSlabs, EnvBatch};
//! use brasa_gym::{GymConfig, GymVec};
//! use ndarray::Array2;
//!
//! let mut envs = GymVec::new(&GymConfig::new("CartPole-v1"), 0..8)?;
//! let mut slabs = BatchSlabs::new(envs.spec());
//! envs.reset(7, &mut slabs)?;
//! let right = Array2::ones((8, 1));
//! while !slabs.any_episode_end() {
//!     envs.step(right.view(), &mut slabs)?;
//! }
//! assert!(slabs.reward.iter().all(|reward| *reward == 1.0));
//! # Ok::<(), brasa_env::EnvError>(())
//! ```

mod batch;
mod config;
mod description;
mod error;
mod pipe;
mod scenario;
mod slabs;
mod worker;

pub use batch::{GymVec, episode_seed};
pub use config::{GymConfig, GymWrapper, PyValue};
pub use description::Versions;
pub use error::GymError;
pub use scenario::Gymnasium;

/// The program of the page is compiled as written.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/gymnasium.md")]
struct Page;
