//! A batch of environments of one type.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use ndarray::{ArrayView2, Axis};

use crate::members::Members;
use crate::{Autoreset, BatchSlabs, Env, EnvBatch, EnvError, EnvSpec, MaskSpec, MultiAgentEnv, StateTag, Step, field};

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
        Ok(Self::of(batch.unwrap_or_else(|| Box::new(Singles(Members::new(envs, first_env, spec, tag::<E>()))))))
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
        let members = Members::new(envs, first_env, spec, StateTag::of::<E>(E::STATE_VERSION));
        Ok(Self::of(Box::new(Autoreset::new(members))))
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

/// Environments of one agent, stepped one after the other. This loop has no views of several agents: they take longer than a step of a small
/// environment.
struct Singles<E>(Members<E>);

impl<E: Env> Singles<E> {
    fn begin(&mut self, index: usize, episode: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        let has_mask = self.0.spec.mask.is_some();
        self.0.begin(index, episode, |env, rng| {
            env.reset(rng, out.obs.row_mut(index));
            if has_mask {
                env.mask(out.mask.row_mut(index));
            }
        })
    }
}

impl<E: Env> EnvBatch for Singles<E> {
    fn spec(&self) -> &EnvSpec {
        &self.0.spec
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.0.seed = seed;
        (0..self.n_envs()).try_for_each(|index| self.begin(index, 0, out))
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        assert_eq!(actions.dim(), (self.n_envs(), self.0.spec.action.width()), "shape of the actions");
        let has_mask = self.0.spec.mask.is_some();
        for index in 0..self.n_envs() {
            let Step { reward, terminated, truncated } = self.0.guarded(index, |member| {
                let step =
                    member.env.step(actions.index_axis(Axis(0), index), &mut member.rng, out.next_obs.row_mut(index));
                member.env.info(out.info.row_mut(index));
                if has_mask {
                    member.env.mask(out.next_mask.row_mut(index));
                }
                member.step += 1;
                step
            })?;
            out.reward[index] = reward;
            out.terminated[index] = terminated;
            out.truncated[index] = truncated;
            if terminated || truncated {
                self.restart(index, out)?;
            } else {
                out.obs.row_mut(index).assign(&out.next_obs.row(index));
                out.mask.row_mut(index).assign(&out.next_mask.row(index));
            }
        }
        Ok(())
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.begin(env, self.0.members[env].episode + 1, out)
    }

    fn save(&self) -> Vec<u8> {
        self.0.saved(E::state)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        self.0.restore(bytes, E::set_state)
    }
}
