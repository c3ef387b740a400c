//! Environments on the host: spaces, batches, executors, wrappers and a check of their contract.
//!
//! This crate does not depend on tensors, devices or learners.
//!
//! An environment is an [`Env`] (one episode at a time), a [`MultiAgentEnv`] (likewise, for several agents) or an [`EnvBatch`] (many episodes at
//! once); [`check_env`] checks its contract. A [`Scenario`] is a task with its baselines. `brasa-core` connects a batch to a device, `brasa-train`
//! trains on it.
//!
//! ```
//! use brasa_env::wrappers::TimeLimit;
//! use brasa_env::{BatchSlabs, Env, EnvBatch, EnvRng, EnvVec, Space, Step};
//! use ndarray::{Array2, ArrayView1, ArrayViewMut1};
//!
//! /// Walks on a line; the goal is at 0.
//! struct Walk(f32);
//!
//! impl Env for Walk {
//!     type State = f32;
//!     fn obs_space(&self) -> Space {
//!         Space::uniform_box(-100.0, 100.0, ["place"])
//!     }
//!     fn action_space(&self) -> Space {
//!         Space::Discrete(2)
//!     }
//!     fn reset(&mut self, _: &mut EnvRng, mut obs: ArrayViewMut1<f32>) {
//!         self.0 = 3.0;
//!         obs[0] = self.0;
//!     }
//!     fn step(&mut self, action: ArrayView1<f32>, _: &mut EnvRng, mut obs: ArrayViewMut1<f32>) -> Step {
//!         self.0 += 2.0 * action[0] - 1.0;
//!         obs[0] = self.0;
//!         Step { reward: -1.0, terminated: self.0 == 0.0, truncated: false }
//!     }
//!     fn state(&self) -> f32 {
//!         self.0
//!     }
//!     fn set_state(&mut self, state: f32) {
//!         self.0 = state;
//!     }
//! }
//!
//! let mut walks = TimeLimit::new(EnvVec::new(0..2, |_| Walk(0.0))?, 50)?;
//! let mut slabs = BatchSlabs::new(walks.spec());
//! walks.reset(7, &mut slabs)?;
//! let left = Array2::zeros((2, 1));
//! for _ in 0..3 {
//!     walks.step(left.view(), &mut slabs)?;
//! }
//! // The episode ended: `next_obs` is its last observation, `obs` the first one of the next episode.
//! assert!(slabs.terminated[0]);
//! assert_eq!((slabs.next_obs[[0, 0]], slabs.obs[[0, 0]]), (0.0, 3.0));
//! # Ok::<(), brasa_env::EnvError>(())
//! ```

mod autoreset;
mod batch;
mod check;
mod controller;
mod env;
mod env_vec;
mod error;
mod executor;
mod extensions;
pub mod field;
mod members;
mod multi_agent_env;
mod one_variant;
mod play;
mod precision;
mod random;
mod render;
mod rng;
mod rule_batch;
mod rules;
mod scenario;
mod space;
mod spec;
mod starts;
mod state;
mod still;
pub mod suggest;
mod threaded;
mod truncations;
mod vectorized;
pub mod whole;
pub mod wrappers;

pub use autoreset::{Autoreset, Ending, Simulation, StepOut, View};
pub use batch::{BatchSlabs, EnvBatch, Episode};
pub use check::{check_env, random_actions};
pub use controller::Controller;
pub use env::{Env, Step};
pub use env_vec::EnvVec;
pub use error::EnvError;
pub use executor::{Choice, Executor, execute};
pub use extensions::{Extensions, GraphEdges, GraphSpec, GraphWorld, PairSpec};
pub use field::InvalidField;
pub use members::panic_message;
pub use multi_agent_env::MultiAgentEnv;
pub use one_variant::one_variant;
pub use play::{EpisodeSeries, MAX_EPISODE_STEPS, Playing, count_step, play_episodes, steps_played};
pub use precision::Precision;
pub use random::RandomController;
pub use render::{Frame, RenderedBatch, RenderedEnv, Shown, play_rendered};
pub use rng::{EnvRng, derived_seed, episode_rng, named_rng};
pub use rules::{After, RuleEnv, RuleState, Rules};
pub use scenario::{
    Baseline, BaselineKind, Better, ComparisonMemory, Curve, Effort, EpisodeData, Evaluation, Figure, FigureRule,
    Measured, Outcome, Reference, Scenario, Split, Trace, Who, evaluate_by_playing, find_baseline, fingerprint,
    fingerprint_bytes, ratio,
};
pub use space::{BoxSpace, Space, option_index};
pub use spec::{EnvSpec, MaskSpec};
pub use state::StateTag;
pub use still::Still;
pub use threaded::Threaded;
pub use truncations::Truncations;
