//! Classic control environments that equal Gymnasium's step by step, and probe environments.
//!
//! This crate depends on tensors only with the feature `tensor`, which adds the module `tensor`. Time limits are not part of a task: wrap an environment
//! with its `TIME_LIMIT`, or use the scenario [`Classic`], which has the limit and baselines.
//!
//! ```
//! use brasa_classic::Classic;
//! use brasa_env::{Evaluation, Scenario, Who};
//!
//! let cart_pole = Classic::cart_pole();
//! let outcomes = cart_pole.evaluate(Who::Baseline("rule-based"), &Evaluation::new(5, 1))?;
//! assert!(outcomes.iter().all(|outcome| outcome.episode_return > Some(100.0)));
//! # Ok::<(), brasa_env::EnvError>(())
//! ```

mod acrobot;
mod cart_pole;
mod catch;
mod drawing;
mod mountain_car;
mod mpe;
mod no_velocity;
mod pendulum;
mod popgym;
pub mod probe;
mod reference;
mod rules;
mod scenario;
mod spread;
mod tag;
#[cfg(feature = "tensor")]
pub mod tensor;

pub use acrobot::{Acrobot, AcrobotRules};
pub use cart_pole::{CartPole, CartPoleRules};
pub use catch::{Catch, CatchRules};
pub use mountain_car::{MountainCar, MountainCarContinuous, MountainCarContinuousRules, MountainCarRules};
pub use no_velocity::{
    CartPoleNoVelocity, MountainCarContinuousNoVelocity, NoVelocity, PendulumNoVelocity, Velocities,
};
pub use pendulum::{Pendulum, PendulumRules};
pub use popgym::{CardGame, CardState, Difficulty, PopgymConfig, PositionOnlyCartPole};
pub use reference::{Reference, ReferenceConfig, ReferenceEnv};
pub use scenario::{Classic, ClassicConfig};
pub use spread::{Spread, SpreadConfig, SpreadEnv};
pub use tag::{PreyKind, Tag, TagConfig, TagEnv};
