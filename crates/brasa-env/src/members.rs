//! Environments with their own memory: random streams, panics and saved states of a batch of them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Ending, EnvError, EnvRng, EnvSpec, MultiAgentEnv, Simulation, StateTag, StepOut, View, episode_rng};

/// Environments that are stepped one after the other.
#[derive(Debug)]
pub(crate) struct Members<E> {
    pub(crate) members: Vec<Member<E>>,
    first_env: usize,
    pub(crate) seed: u64,
    pub(crate) spec: EnvSpec,
    tag: StateTag,
}

#[derive(Debug)]
pub(crate) struct Member<E> {
    pub(crate) env: E,
    pub(crate) rng: EnvRng,
    pub(crate) episode: u64,
    pub(crate) step: u64,
}

/// Saved state of one environment.
#[derive(Serialize, Deserialize)]
pub(crate) struct Saved<S> {
    pub(crate) state: S,
    pub(crate) rng: EnvRng,
    pub(crate) episode: u64,
    pub(crate) step: u64,
}

impl<E> Members<E> {
    /// Environments with the global indices from `first_env` on. Saved states have `tag`.
    pub(crate) fn new(envs: Vec<E>, first_env: usize, spec: EnvSpec, tag: StateTag) -> Self {
        let member = |(i, env)| Member { env, rng: episode_rng(0, (first_env + i) as u64, 0), episode: 0, step: 0 };
        Self { members: envs.into_iter().enumerate().map(member).collect(), first_env, seed: 0, spec, tag }
    }

    /// Runs `body` on one environment; a panic becomes an error with its location.
    #[inline(always)]
    pub(crate) fn guarded<T>(&mut self, index: usize, body: impl FnOnce(&mut Member<E>) -> T) -> Result<T, EnvError> {
        let member = &mut self.members[index];
        // The state after a panic is not used again: the batch must be reset first.
        catch_unwind(AssertUnwindSafe(|| body(member))).map_err(|panic| EnvError::Panicked {
            env: self.first_env + index,
            seed: self.seed,
            episode: self.members[index].episode,
            step: self.members[index].step,
            message: panic_message(panic.as_ref()),
        })
    }

    /// Starts an episode of one environment by `body`, with the random stream of this episode.
    pub(crate) fn begin(
        &mut self,
        index: usize,
        episode: u64,
        body: impl FnOnce(&mut E, &mut EnvRng),
    ) -> Result<(), EnvError> {
        let (seed, env) = (self.seed, (self.first_env + index) as u64);
        self.guarded(index, |member| {
            (member.episode, member.step) = (episode, 0);
            member.rng = episode_rng(seed, env, episode);
            body(&mut member.env, &mut member.rng);
        })
    }

    /// The saved environments, with the state that `state` gives.
    pub(crate) fn saved<S: Serialize>(&self, state: impl Fn(&E) -> S) -> Vec<u8> {
        let saved =
            |m: &Member<E>| Saved { state: state(&m.env), rng: m.rng.clone(), episode: m.episode, step: m.step };
        let saved: Vec<_> = self.members.iter().map(saved).collect();
        self.tag.encode(self.members.len(), &(self.seed, saved))
    }

    /// Restores saved environments.
    pub(crate) fn restore<S: DeserializeOwned>(
        &mut self,
        bytes: &[u8],
        set_state: impl Fn(&mut E, S),
    ) -> Result<(), EnvError> {
        let (seed, saved): (u64, Vec<Saved<S>>) = self.tag.decode(self.members.len(), bytes)?;
        self.seed = seed;
        for (member, saved) in self.members.iter_mut().zip(saved) {
            set_state(&mut member.env, saved.state);
            member.rng = saved.rng;
            member.episode = saved.episode;
            member.step = saved.step;
        }
        Ok(())
    }
}

impl<E: MultiAgentEnv> Simulation for Members<E> {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    fn episode(&self, env: usize) -> u64 {
        self.members[env].episode
    }

    fn start(&mut self, env: usize, episode: u64, view: View<'_>) -> Result<(), EnvError> {
        self.begin(env, episode, |env, rng| env.reset(rng, view))
    }

    fn step(&mut self, env: usize, actions: &[f32], next: View<'_>, out: StepOut<'_>) -> Result<Ending, EnvError> {
        self.guarded(env, |member| {
            let ending = member.env.step(actions, &mut member.rng, next, out);
            member.step += 1;
            ending
        })
    }

    fn save(&self) -> Vec<u8> {
        self.saved(E::state)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        self.restore(bytes, E::set_state)
    }
}

/// The message of a caught panic; "no message" if it has none.
///
/// ```
/// let panic = std::panic::catch_unwind(|| panic!("the tank is empty")).unwrap_err();
/// assert_eq!(brasa_env::panic_message(&*panic), "the tank is empty");
/// ```
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
