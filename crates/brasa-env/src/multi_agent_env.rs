//! One environment for several agents: one episode at a time.

use serde::{Serialize, de::DeserializeOwned};

use crate::{Ending, EnvRng, EnvSpec, StepOut, View};

/// An environment on the host in which several agents act at the same time.
///
/// Each agent has a row of observations, actions, masks and rewards, in the same order at every step; [`crate::Env`] is the form for one agent.
/// [`crate::EnvVec::multi_agent`] makes a batch of such environments. Every learner for one agent trains such a batch; all agents then share one
/// policy.
///
/// All agents end an episode together. An agent that leaves earlier keeps its row until the end: it observes constant numbers, its actions have no
/// effect, and its rewards are 0 (Yu et al. 2022, "death masking").
///
/// ```
/// use brasa_env::wrappers::TimeLimit;
/// use brasa_env::{Ending, EnvRng, EnvSpec, EnvVec, MultiAgentEnv, Space, StepOut, View, check_env};
///
/// /// Two agents on a line of ten places, who should meet.
/// struct Meet([f32; 2]);
///
/// impl Meet {
///     /// An agent sees how far away the other one is, and in which direction.
///     fn observe(&self, view: View<'_>) {
///         let way = self.0[1] - self.0[0];
///         view.obs.copy_from_slice(&[way, -way]);
///     }
/// }
///
/// impl MultiAgentEnv for Meet {
///     type State = [f32; 2];
///     fn spec(&self) -> EnvSpec {
///         let obs = Space::uniform_box(-9.0, 9.0, ["way"]);
///         EnvSpec { n_agents: 2, truncation_interval: EnvSpec::NEVER, ..EnvSpec::new(obs, Space::Discrete(2), 1) }
///     }
///     fn reset(&mut self, rng: &mut EnvRng, view: View<'_>) {
///         self.0 = [0.0, rand::RngExt::random_range(rng, 2..10) as f32];
///         self.observe(view);
///     }
///     fn step(&mut self, actions: &[f32], _: &mut EnvRng, next: View<'_>, out: StepOut<'_>) -> Ending {
///         for (place, action) in self.0.iter_mut().zip(actions) {
///             *place = (*place + 2.0 * action - 1.0).clamp(0.0, 9.0);
///         }
///         self.observe(next);
///         out.reward.fill(-1.0);
///         Ending::of((self.0[1] - self.0[0]).abs() <= 1.0, false)
///     }
///     fn state(&self) -> [f32; 2] {
///         self.0
///     }
///     fn set_state(&mut self, state: [f32; 2]) {
///         self.0 = state;
///     }
/// }
///
/// check_env(100, |envs| TimeLimit::new(EnvVec::multi_agent(envs, |_| Meet([0.0; 2]))?, 20))?;
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no environment of several agents",
    note = "implement `MultiAgentEnv`: `spec`, `reset`, `step`, `state`, `set_state`; an environment of one agent implements `Env`"
)]
pub trait MultiAgentEnv: Send + 'static {
    /// Everything that `step` reads and changes, except constant parameters and scratch memory.
    type State: Serialize + DeserializeOwned;

    /// Version of [`MultiAgentEnv::State`]; it changes when older saved states are no longer valid.
    const STATE_VERSION: u32 = 1;

    /// The constants: number of agents, spaces of one agent, whether there are masks and shared numbers. A batch replaces [`EnvSpec::n_envs`].
    fn spec(&self) -> EnvSpec;

    /// Starts an episode and writes the first observations, and the masks where [`EnvSpec::mask`] is set.
    fn reset(&mut self, rng: &mut EnvRng, view: View<'_>);

    /// Takes one step with the actions of all agents, `[n_agents * action width]`, and writes what follows from it, also at the end of an episode.
    fn step(&mut self, actions: &[f32], rng: &mut EnvRng, next: View<'_>, out: StepOut<'_>) -> Ending;

    /// A copy of the state, for a checkpoint.
    fn state(&self) -> Self::State;

    /// Continues from a saved state.
    fn set_state(&mut self, state: Self::State);
}
