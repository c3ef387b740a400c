//! A batch of single environments, stepped one after the other.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ndarray::{ArrayView2, Axis};
use serde::{Deserialize, Serialize};

use crate::{BatchSlabs, Env, EnvBatch, EnvError, EnvRng, EnvSpec, MaskSpec, StateTag, Step, episode_rng, field};

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
#[derive(Debug)]
pub struct EnvVec<E>(Form<E>);

/// How the environments are stepped.
#[derive(Debug)]
enum Form<E> {
    OneByOne(Box<Members<E>>),
    Together(Box<dyn EnvBatch>),
}

/// Environments that are stepped one after the other.
#[derive(Debug)]
struct Members<E> {
    members: Vec<Member<E>>,
    first_env: usize,
    seed: u64,
    spec: EnvSpec,
}

#[derive(Debug)]
struct Member<E> {
    env: E,
    rng: EnvRng,
    episode: u64,
    step: u64,
}

/// Saved state of one environment.
#[derive(Serialize, Deserialize)]
pub(crate) struct Saved<S> {
    pub(crate) state: S,
    pub(crate) rng: EnvRng,
    pub(crate) episode: u64,
    pub(crate) step: u64,
}

impl<E: Env> EnvVec<E> {
    /// Environments with the global indices `envs`, each constructed by `make`.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for an empty range, [`EnvError::Space`] for an invalid space.
    pub fn new(envs: Range<usize>, make: impl FnMut(usize) -> E) -> Result<Self, EnvError> {
        field::at_least_one("n_envs", envs.len() as u64)?;
        let first_env = envs.start;
        let envs: Vec<E> = envs.map(make).collect();
        let env = &envs[0];
        let spec = EnvSpec {
            mask: env.has_mask().then(MaskSpec::default),
            truncation_interval: env.truncation_interval(),
            info_names: env.info_names(),
            info_means: env.info_means(),
            ..EnvSpec::new(env.obs_space(), env.action_space(), envs.len())
        };
        spec.validate()?;
        if let Some(batch) = E::together(&envs, first_env, &spec) {
            return Ok(Self(Form::Together(batch)));
        }
        let member = |(i, env)| Member { env, rng: episode_rng(0, (first_env + i) as u64, 0), episode: 0, step: 0 };
        let members = envs.into_iter().enumerate().map(member).collect();
        Ok(Self(Form::OneByOne(Box::new(Members { members, first_env, seed: 0, spec }))))
    }

    fn batch(&self) -> &dyn EnvBatch {
        match &self.0 {
            Form::OneByOne(members) => &**members,
            Form::Together(batch) => &**batch,
        }
    }

    fn batch_mut(&mut self) -> &mut dyn EnvBatch {
        match &mut self.0 {
            Form::OneByOne(members) => &mut **members,
            Form::Together(batch) => &mut **batch,
        }
    }
}

impl<E: Env> EnvBatch for EnvVec<E> {
    fn spec(&self) -> &EnvSpec {
        self.batch().spec()
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.batch_mut().reset(seed, out)
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.batch_mut().step(actions, out)
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.batch_mut().restart(env, out)
    }

    fn save(&self) -> Vec<u8> {
        self.batch().save()
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        self.batch_mut().load(bytes)
    }
}

/// The tag of saved states of environments of type `E`.
pub(crate) fn tag<E: Env>() -> StateTag {
    StateTag::of::<E>(E::STATE_VERSION)
}

impl<E: Env> Members<E> {
    /// Runs `body` on one environment; a panic becomes an error with its location.
    fn guarded<T>(&mut self, index: usize, body: impl FnOnce(&mut Member<E>) -> T) -> Result<T, EnvError> {
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

    fn begin(&mut self, index: usize, episode: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        let (seed, env, has_mask) = (self.seed, (self.first_env + index) as u64, self.spec.mask.is_some());
        self.guarded(index, |member| {
            member.episode = episode;
            member.step = 0;
            member.rng = episode_rng(seed, env, episode);
            member.env.reset(&mut member.rng, out.obs.row_mut(index));
            if has_mask {
                member.env.mask(out.mask.row_mut(index));
            }
        })
    }
}

impl<E: Env> EnvBatch for Members<E> {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.seed = seed;
        (0..self.members.len()).try_for_each(|index| self.begin(index, 0, out))
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        assert_eq!(actions.dim(), (self.members.len(), self.spec.action.width()), "shape of the actions");
        let has_mask = self.spec.mask.is_some();
        for index in 0..self.members.len() {
            let Step { reward, terminated, truncated } = self.guarded(index, |member| {
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
                self.begin(index, self.members[index].episode + 1, out)?;
            } else {
                out.obs.row_mut(index).assign(&out.next_obs.row(index));
                out.mask.row_mut(index).assign(&out.next_mask.row(index));
            }
        }
        Ok(())
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.begin(env, self.members[env].episode + 1, out)
    }

    fn save(&self) -> Vec<u8> {
        let saved: Vec<_> = self
            .members
            .iter()
            .map(|m| Saved { state: m.env.state(), rng: m.rng.clone(), episode: m.episode, step: m.step })
            .collect();
        tag::<E>().encode(self.members.len(), &(self.seed, saved))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        let (seed, saved): (u64, Vec<Saved<E::State>>) = tag::<E>().decode(self.members.len(), bytes)?;
        self.seed = seed;
        for (member, saved) in self.members.iter_mut().zip(saved) {
            member.env.set_state(saved.state);
            member.rng = saved.rng;
            member.episode = saved.episode;
            member.step = saved.step;
        }
        Ok(())
    }
}

/// The message of a caught panic.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
