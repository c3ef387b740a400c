//! One environment: one episode at a time, for one or several agents.

use ndarray::{ArrayView1, ArrayViewMut1};
use serde::{Serialize, de::DeserializeOwned};

use crate::{EnvRng, Space};

/// What an environment says of one step, besides the observation that it wrote.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Step {
    /// Reward of the step.
    pub reward: f32,
    /// The episode ended by the rules of the task: nothing follows, no bootstrap.
    pub terminated: bool,
    /// The episode was cut from outside, by a time limit: the value of the successor still counts.
    pub truncated: bool,
}

/// One decision-maker in one world on the host.
///
/// `step` allocates nothing. An environment draws only from the generator that it is handed, and keeps
/// whatever a resume needs in [`Env::State`].
pub trait Env: Send + 'static {
    /// Everything that `step` reads and changes, apart from fixed parameters and scratch memory.
    type State: Serialize + DeserializeOwned;

    /// Version of [`Env::State`]: changes whenever older saved states mean something else.
    const STATE_VERSION: u32 = 1;

    /// What `reset` and `step` write into `obs`.
    fn obs_space(&self) -> Space;

    /// What `step` takes.
    fn action_space(&self) -> Space;

    /// Starts an episode and writes its first observation.
    fn reset(&mut self, rng: &mut EnvRng, obs: ArrayViewMut1<f32>);

    /// Takes one step and writes the true successor, also where the episode ends.
    fn step(&mut self, action: ArrayView1<f32>, rng: &mut EnvRng, obs: ArrayViewMut1<f32>) -> Step;

    /// Writes 1 for every legal option of the next action and 0 for the others; as many entries as
    /// [`Space::n_actions`] of the action space. Called after `reset` and `step` if [`Env::has_mask`].
    fn mask(&self, _mask: ArrayViewMut1<f32>) {}

    /// Whether some options may be illegal.
    fn has_mask(&self) -> bool {
        false
    }

    /// Names of the figures that [`Env::info`] writes: a step's contributions, which statistics add up over an episode.
    fn info_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Writes the figures of the last step, in the order of [`Env::info_names`].
    fn info(&self, _info: ArrayViewMut1<f64>) {}

    /// A copy of the state, for a checkpoint.
    fn state(&self) -> Self::State;

    /// Goes on from a saved state.
    fn set_state(&mut self, state: Self::State);
}
