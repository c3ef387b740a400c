//! One environment: one episode at a time, for one or several agents.

use ndarray::{ArrayView1, ArrayViewMut1};
use serde::{Serialize, de::DeserializeOwned};

use crate::{EnvBatch, EnvRng, EnvSpec, Space};

/// Result of one step, except the observation.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{Env, Step, episode_rng};
/// use ndarray::array;
///
/// let mut obs = array![0.0];
/// let step = Walk(1.0).step(array![0.0].view(), &mut episode_rng(0, 0, 0), obs.view_mut());
/// // The walk reached its goal.
/// assert_eq!(step, Step { reward: -1.0, terminated: true, truncated: false });
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Step {
    /// Reward of the step.
    pub reward: f32,
    /// The episode ended by the rules of the task: no bootstrap.
    pub terminated: bool,
    /// The episode was cut by a limit: the value of the next observation is bootstrapped.
    pub truncated: bool,
}

/// A single-agent environment on the host.
///
/// `step` allocates no memory. An environment uses only the random generator of its caller, and has the complete state
/// for a resume in [`Env::State`].
///
/// ```
/// use brasa_env::{Env, EnvRng, EnvVec, Space, Step, check_env};
/// use ndarray::{ArrayView1, ArrayViewMut1};
///
/// /// Guesses whether the observed number, 0 or 1, changes.
/// struct Guess(u8);
///
/// impl Env for Guess {
///     type State = u8;
///     fn obs_space(&self) -> Space {
///         Space::uniform_box(0.0, 1.0, ["number"])
///     }
///     fn action_space(&self) -> Space {
///         Space::Discrete(2)
///     }
///     fn reset(&mut self, rng: &mut EnvRng, mut obs: ArrayViewMut1<f32>) {
///         self.0 = rand::RngExt::random_range(rng, 0..2);
///         obs[0] = f32::from(self.0);
///     }
///     fn step(&mut self, action: ArrayView1<f32>, rng: &mut EnvRng, obs: ArrayViewMut1<f32>) -> Step {
///         let before = self.0;
///         self.reset(rng, obs);
///         let right = (before != self.0) == (action[0] == 1.0);
///         Step { reward: f32::from(u8::from(right)), ..Step::default() }
///     }
///     fn state(&self) -> u8 {
///         self.0
///     }
///     fn set_state(&mut self, state: u8) {
///         self.0 = state;
///     }
/// }
///
/// check_env(20, |envs| EnvVec::new(envs, |_| Guess(0)))?;
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no environment",
    note = "implement `Env`: `obs_space`, `action_space`, `reset`, `step`, `state`, `set_state`; a rule written as a function of numbers \
            becomes one by `RuleEnv::new`"
)]
pub trait Env: Send + 'static {
    /// Everything that `step` reads and changes, except constant parameters and scratch memory.
    type State: Serialize + DeserializeOwned;

    /// Version of [`Env::State`]; it changes when older saved states are no longer valid.
    const STATE_VERSION: u32 = 1;

    /// Space of observations.
    fn obs_space(&self) -> Space;

    /// Space of actions.
    fn action_space(&self) -> Space;

    /// Starts an episode and writes its first observation.
    fn reset(&mut self, rng: &mut EnvRng, obs: ArrayViewMut1<f32>);

    /// Takes one step and writes the next observation, also at the end of an episode.
    fn step(&mut self, action: ArrayView1<f32>, rng: &mut EnvRng, obs: ArrayViewMut1<f32>) -> Step;

    /// Writes 1 for every legal next action and 0 for the others, [`Space::n_actions`] entries in all. Called after
    /// `reset` and `step` if [`Env::has_mask`].
    fn mask(&self, _mask: ArrayViewMut1<f32>) {}

    /// Whether actions may be illegal.
    fn has_mask(&self) -> bool {
        false
    }

    /// Least number of steps between two truncations by the environment itself: see [`crate::EnvSpec::truncation_interval`].
    /// [`crate::EnvSpec::NEVER`] if it leaves time limits to [`crate::wrappers::TimeLimit`].
    fn truncation_interval(&self) -> u64 {
        1
    }

    /// Names of the figures that [`Env::info`] writes. Statistics sum them over an episode, or take the mean: [`Env::info_means`].
    fn info_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// See [`crate::EnvSpec::info_means`].
    fn info_means(&self) -> Vec<String> {
        Vec::new()
    }

    /// Writes the figures of the last step, in the order of [`Env::info_names`].
    fn info(&self, _info: ArrayViewMut1<f64>) {}

    /// The environments as one batch, if it is faster than a loop over them. [`crate::EnvVec`] calls this function.
    ///
    /// The environments have the global indices from `first_env` on, and the batch has `spec`. Its results and saved states must be those of single
    /// environments. [`crate::RuleEnv`] has such a batch for equal rules.
    fn together(_envs: &[Self], _first_env: usize, _spec: &EnvSpec) -> Option<Box<dyn EnvBatch>>
    where
        Self: Sized,
    {
        None
    }

    /// A copy of the state, for a checkpoint.
    fn state(&self) -> Self::State;

    /// Continues from a saved state.
    fn set_state(&mut self, state: Self::State);
}
