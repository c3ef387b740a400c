//! A batch of environments of one type.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use ndarray::ArrayView2;

use crate::members::Members;
use crate::{
    Autoreset, BatchSlabs, Ending, Env, EnvBatch, EnvError, EnvRng, EnvSpec, MaskSpec, MultiAgentEnv, StateTag, Step,
    StepOut, View, field,
};

/// `n` environments of one type, stepped on the calling thread: one after the other, or together by [`Env::together`].
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{BatchSlabs, EnvBatch, EnvVec};
///
/// // `Walk` goes on a line from 3 to the goal at 0. Each step has a reward of -1.
/// // The closure receives the index of each environment.
/// let mut batch = EnvVec::new(0..3, |index| Walk(index as f32))?;
/// let mut slabs = BatchSlabs::new(batch.spec());
/// batch.reset(7, &mut slabs)?;
/// assert_eq!(slabs.obs, ndarray::array![[3.0], [3.0], [3.0]]);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
pub struct EnvVec<E> {
    batch: Box<dyn EnvBatch>,
    /// The tags of saved states have the name of the type.
    env: PhantomData<fn() -> E>,
}

impl<E: Env> EnvVec<E> {
    /// Environments with the global indices `envs`, each constructed by `make`.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for an empty range, [`EnvError::Space`] for an invalid space.
    pub fn new(envs: Range<usize>, make: impl FnMut(usize) -> E) -> Result<Self, EnvError> {
        let first_env = envs.start;
        let (envs, spec) = made(envs, make, spec_of)?;
        let batch = E::together(&envs, first_env, &spec);
        Ok(Self::of(
            batch.unwrap_or_else(|| one_by_one(envs.into_iter().map(Alone).collect(), first_env, spec, tag::<E>())),
        ))
    }
}

impl<E: MultiAgentEnv> EnvVec<E> {
    /// Environments of several agents with the global indices `envs`, each constructed by `make`.
    ///
    /// ```
    /// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/meet.inc")); }
    /// # use shown::*;
    /// use brasa_env::{BatchSlabs, EnvBatch, EnvVec};
    ///
    /// // `Meet` is the environment of the page of `MultiAgentEnv`: two agents on a line, who should meet.
    /// let mut batch = EnvVec::multi_agent(0..3, |_| Meet([0.0; 2]))?;
    /// let mut slabs = BatchSlabs::new(batch.spec());
    /// batch.reset(7, &mut slabs)?;
    /// // Each agent has a row, and sees the way to the other one.
    /// assert_eq!(slabs.obs.dim(), (6, 1));
    /// assert_eq!(slabs.obs[[0, 0]], -slabs.obs[[1, 0]]);
    /// # Ok::<(), brasa_env::EnvError>(())
    /// ```
    ///
    /// # Errors
    /// [`EnvError::Argument`] for an empty range or a specification that is inconsistent, [`EnvError::Space`] for an invalid space.
    pub fn multi_agent(envs: Range<usize>, make: impl FnMut(usize) -> E) -> Result<Self, EnvError> {
        let first_env = envs.start;
        let (envs, spec) = made(envs, make, E::spec)?;
        Ok(Self::of(one_by_one(envs, first_env, spec, StateTag::of::<E>(E::STATE_VERSION))))
    }
}

impl<E> EnvVec<E> {
    fn of(batch: Box<dyn EnvBatch>) -> Self {
        Self { batch, env: PhantomData }
    }
}

impl<E> fmt::Debug for EnvVec<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EnvVec").field(&self.batch).finish()
    }
}

impl<E> EnvBatch for EnvVec<E> {
    fn spec(&self) -> &EnvSpec {
        self.batch.spec()
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.batch.reset(seed, out)
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.batch.step(actions, out)
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.batch.restart(env, out)
    }

    fn save(&self) -> Vec<u8> {
        self.batch.save()
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        self.batch.load(bytes)
    }
}

/// Environments with the global indices `envs`, and the constants of all of them.
fn made<E>(
    envs: Range<usize>,
    make: impl FnMut(usize) -> E,
    spec: impl Fn(&E) -> EnvSpec,
) -> Result<(Vec<E>, EnvSpec), EnvError> {
    field::at_least_one("n_envs", envs.len() as u64)?;
    let envs: Vec<E> = envs.map(make).collect();
    let spec = spec(&envs[0]).with_n_envs(envs.len());
    spec.validate()?;
    Ok((envs, spec))
}

fn one_by_one<E: MultiAgentEnv>(envs: Vec<E>, first_env: usize, spec: EnvSpec, tag: StateTag) -> Box<dyn EnvBatch> {
    Box::new(Autoreset::new(Members::new(envs, first_env, spec, tag)))
}

/// The tag of saved states of environments of type `E`.
pub(crate) fn tag<E: Env>() -> StateTag {
    StateTag::of::<E>(E::STATE_VERSION)
}

/// The constants of an environment of one agent.
fn spec_of<E: Env>(env: &E) -> EnvSpec {
    EnvSpec {
        mask: env.has_mask().then(MaskSpec::default),
        truncation_interval: env.truncation_interval(),
        info_names: env.info_names(),
        info_means: env.info_means(),
        ..EnvSpec::new(env.obs_space(), env.action_space(), 1)
    }
}

/// A team of one agent.
struct Alone<E>(E);

impl<E: Env> Alone<E> {
    fn write_mask(&self, mask: &mut [f32]) {
        if !mask.is_empty() {
            self.0.mask(mask.into());
        }
    }
}

impl<E: Env> MultiAgentEnv for Alone<E> {
    type State = E::State;

    const STATE_VERSION: u32 = E::STATE_VERSION;

    fn spec(&self) -> EnvSpec {
        spec_of(&self.0)
    }

    fn reset(&mut self, rng: &mut EnvRng, view: View<'_>) {
        self.0.reset(rng, view.obs.into());
        self.write_mask(view.mask);
    }

    fn step(&mut self, actions: &[f32], rng: &mut EnvRng, next: View<'_>, out: StepOut<'_>) -> Ending {
        let Step { reward, terminated, truncated } = self.0.step(actions.into(), rng, next.obs.into());
        out.reward[0] = reward;
        self.0.info(out.info.into());
        self.write_mask(next.mask);
        Ending::of(terminated, truncated)
    }

    fn state(&self) -> E::State {
        self.0.state()
    }

    fn set_state(&mut self, state: E::State) {
        self.0.set_state(state);
    }
}
