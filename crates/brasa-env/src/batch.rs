//! A batch of environments that step together and write into the caller's memory.

use ndarray::{Array, Array1, Array2, ArrayRef1, ArrayView2, Dimension};
use serde::{Deserialize, Serialize};

use crate::wrappers::RunningMoments;
use crate::{EnvError, EnvSpec};

/// Environments that step together and reset automatically.
///
/// Rows are ordered by environment; the rows of the agents of one environment are adjacent.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{BatchSlabs, EnvBatch, EnvVec};
/// use ndarray::array;
///
/// // `Walk` goes on a line from 3 to the goal at 0. Each step has a reward of -1.
/// let mut batch = EnvVec::new(0..2, |_| Walk(0.0))?;
/// let mut slabs = BatchSlabs::new(batch.spec());
/// batch.reset(7, &mut slabs)?;
/// batch.step(array![[0.0], [1.0]].view(), &mut slabs)?;
/// assert_eq!(slabs.obs, array![[2.0], [4.0]]);
/// assert_eq!(slabs.reward, array![-1.0, -1.0]);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no batch of environments",
    note = "environments become a batch by `EnvVec::new(0..n, |index| env)`; a `HostEnv` is on a device: pass the batch that it was made of"
)]
pub trait EnvBatch: Send {
    /// The constants of the batch.
    fn spec(&self) -> &EnvSpec;

    /// Number of environments.
    fn n_envs(&self) -> usize {
        self.spec().n_envs
    }

    /// Agents per environment; each has its own row.
    fn n_agents(&self) -> usize {
        self.spec().n_agents
    }

    /// `n_envs * n_agents`.
    fn n_rows(&self) -> usize {
        self.spec().n_rows()
    }

    /// Starts the first episode of every environment with `seed`; writes only `obs`, `shared` and `mask`.
    ///
    /// # Errors
    /// [`EnvError::Panicked`] if the code of an environment panics.
    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError>;

    /// Steps every environment with `[n_rows, action width]` actions and writes all slabs.
    ///
    /// # Errors
    /// [`EnvError::Panicked`] if the code of an environment panics; the batch must be reset before its next use.
    ///
    /// # Panics
    /// If the shape of actions or slabs does not fit.
    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError>;

    /// Ends the episode of environment `env` and starts its next one; writes only `obs`, `shared` and `mask` of it.
    ///
    /// Wrappers that truncate episodes call it after a step.
    ///
    /// # Errors
    /// [`EnvError::Panicked`] if the code of the environment panics.
    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError>;

    /// Moves the episodes that ended since the last call into `episodes`, if [`EnvSpec::keeps_episodes`] is set.
    fn drain_episodes(&mut self, _episodes: &mut Vec<Episode>) {}

    /// The moments of the observation normalization, which belong to the policy; `None` without normalization.
    fn obs_moments(&self) -> Option<&RunningMoments> {
        None
    }

    /// Replaces the moments that observations are normalized with: those of a policy that was trained elsewhere.
    ///
    /// # Errors
    /// [`EnvError::State`] if observations are not normalized, or the moments have another width.
    fn set_obs_moments(&mut self, _moments: &RunningMoments) -> Result<(), EnvError> {
        Err(EnvError::not_normalized())
    }

    /// All moments that steps change, those of observations and of rewards: to merge them with the moments of other batches.
    fn running_moments(&mut self) -> Vec<&mut RunningMoments> {
        Vec::new()
    }

    /// The complete state for a resume, as bytes; see [`crate::StateTag`].
    fn save(&self) -> Vec<u8>;

    /// Restores saved bytes.
    ///
    /// # Errors
    /// [`EnvError::State`] if the bytes are those of another environment, number of environments or version.
    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError>;
}

/// Statistics of a finished episode.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{EnvVec, play_episodes};
///
/// // `Walk` goes on a line from 3 to the goal at 0, and `left` always goes there.
/// let mut batch = EnvVec::new(0..1, |_| Walk(0.0))?;
/// let (episode, _) = play_episodes(&mut batch, &mut left, 0, 0)?.remove(0);
/// assert_eq!((episode.env, episode.length, episode.episode_return), (0, 3, -3.0));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// Index of the environment in the batch.
    pub env: usize,
    /// Sum of the rewards, averaged over agents.
    pub episode_return: f64,
    /// Number of steps.
    pub length: u64,
    /// Each figure of [`EnvSpec::info_names`]: the mean over the steps for those of [`EnvSpec::info_means`], else the sum.
    pub info: Vec<f64>,
}

/// The memory that a batch writes into, allocated once and reused by every step.
///
/// ```
/// use brasa_env::{BatchSlabs, EnvSpec, MaskSpec, Space};
///
/// let obs = Space::uniform_box(-1.0, 1.0, ["hour", "x", "y"]);
/// let spec = EnvSpec::new(obs, Space::Discrete(4), 8);
/// let spec = EnvSpec { n_agents: 2, shared_width: 1, mask: Some(MaskSpec::default()), ..spec };
/// let slabs = BatchSlabs::new(&spec);
/// assert_eq!((slabs.obs.dim(), slabs.shared.dim(), slabs.mask.dim()), ((16, 2), (8, 1), (16, 4)));
/// assert!(!slabs.any_episode_end());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct BatchSlabs {
    /// `[n_rows, obs width - shared width]`: the next observations, after an automatic reset.
    pub obs: Array2<f32>,
    /// `[n_rows, obs width - shared width]`: the next observations, before any reset.
    pub next_obs: Array2<f32>,
    /// `[n_envs, shared width]`: the part of `obs` that all agents of an environment share.
    pub shared: Array2<f32>,
    /// `[n_envs, shared width]`: the same for `next_obs`.
    pub next_shared: Array2<f32>,
    /// `[n_rows, n_actions / actions_per_flag]`: 1 for legal actions after `obs`; no columns without masks.
    pub mask: Array2<f32>,
    /// `[n_rows, n_actions / actions_per_flag]`: the same for `next_obs`.
    pub next_mask: Array2<f32>,
    /// `[n_rows]`.
    pub reward: Array1<f32>,
    /// `[n_rows]`: the episode ended by the rules of the task.
    pub terminated: Array1<bool>,
    /// `[n_rows]`: the episode was cut by a limit.
    pub truncated: Array1<bool>,
    /// `[n_rows]`: duration of the step, in the time unit of the discount; 1 if all steps are equal.
    pub elapsed: Array1<f32>,
    /// `[n_envs, info_names]`: figures of this step.
    pub info: Array2<f64>,
}

impl BatchSlabs {
    /// Slabs for a batch with `spec`.
    pub fn new(spec: &EnvSpec) -> Self {
        let (rows, envs, shared) = (spec.n_rows(), spec.n_envs, spec.shared_width);
        let (width, flags) = (spec.obs.width() - shared, spec.mask_width());
        Self {
            obs: Array2::zeros((rows, width)),
            next_obs: Array2::zeros((rows, width)),
            shared: Array2::zeros((envs, shared)),
            next_shared: Array2::zeros((envs, shared)),
            mask: Array2::ones((rows, flags)),
            next_mask: Array2::ones((rows, flags)),
            reward: Array1::zeros(rows),
            terminated: Array1::from_elem(rows, false),
            truncated: Array1::from_elem(rows, false),
            elapsed: Array1::ones(rows),
            info: Array2::zeros((envs, spec.info_names.len())),
        }
    }

    /// Whether the episode of `row` was terminated or truncated at this step.
    pub fn episode_end(&self, row: usize) -> bool {
        self.terminated[row] || self.truncated[row]
    }

    /// Whether any episode ended at this step; otherwise `next_obs` equals `obs`.
    pub fn any_episode_end(&self) -> bool {
        any(&self.terminated) || any(&self.truncated)
    }

    /// Whether any episode was truncated at this step.
    pub fn any_truncated(&self) -> bool {
        any(&self.truncated)
    }

    /// Calls `act` with every environment, of `n_agents` rows, whose episode ended at this step, in order.
    #[inline]
    pub(crate) fn for_each_end(&self, n_agents: usize, mut act: impl FnMut(usize)) {
        let [terminated, truncated] =
            [&self.terminated, &self.truncated].map(|flags| flags.as_slice().expect("slabs are in standard layout"));
        for_each_set([terminated, truncated], |row| {
            if row.is_multiple_of(n_agents) {
                act(row / n_agents);
            }
        });
    }
}

/// Calls `act` with every index at which one of the lists of flags is set, in order.
#[inline]
pub(crate) fn for_each_set<const N: usize>(flags: [&[bool]; N], mut act: impl FnMut(usize)) {
    for first in (0..flags[0].len()).step_by(64) {
        let mut set = flags.iter().fold(0, |set, flags| set | bits(&flags[first..flags.len().min(first + 64)]));
        while set != 0 {
            act(first + set.trailing_zeros() as usize);
            set &= set - 1;
        }
    }
}

/// The numbers of a slab, row by row.
pub(crate) fn slab<T, D: Dimension>(slab: &mut Array<T, D>) -> &mut [T] {
    slab.as_slice_mut().expect("slabs are in standard layout")
}

/// At most 64 flags as the bits of a number.
#[inline]
fn bits(flags: &[bool]) -> u64 {
    let (words, rest) = flags.as_chunks::<8>();
    // A product moves the lowest bits of eight bytes into the highest byte.
    let packed = |flags: &[bool; 8]| u64::from_le_bytes(flags.map(u8::from)).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    let last = rest.iter().rev().fold(0, |bits, flag| bits << 1 | u64::from(*flag));
    // From the last to the first: products of 64 bits are slow in vectors.
    words.iter().rev().fold(last, |bits, word| bits << 8 | packed(word))
}

/// Whether one of the flags is set. All of them are read: a compiler vectorizes this loop.
fn any(flags: &ArrayRef1<bool>) -> bool {
    flags.iter().fold(false, |any, flag| any | flag)
}

impl std::fmt::Debug for dyn EnvBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("EnvBatch").field(self.spec()).finish()
    }
}

/// Boxes of concrete batches are not covered: another crate could implement `Wrapper` for such a box.
impl EnvBatch for Box<dyn EnvBatch> {
    fn spec(&self) -> &EnvSpec {
        (**self).spec()
    }
    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        (**self).reset(seed, out)
    }
    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        (**self).step(actions, out)
    }
    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        (**self).restart(env, out)
    }
    fn drain_episodes(&mut self, episodes: &mut Vec<Episode>) {
        (**self).drain_episodes(episodes)
    }
    fn obs_moments(&self) -> Option<&RunningMoments> {
        (**self).obs_moments()
    }
    fn set_obs_moments(&mut self, moments: &RunningMoments) -> Result<(), EnvError> {
        (**self).set_obs_moments(moments)
    }
    fn running_moments(&mut self) -> Vec<&mut RunningMoments> {
        (**self).running_moments()
    }
    fn save(&self) -> Vec<u8> {
        (**self).save()
    }
    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        (**self).load(bytes)
    }
}
