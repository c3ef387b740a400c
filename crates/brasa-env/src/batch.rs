//! A batch of environments that are stepped together into the caller's memory.

use ndarray::{Array1, Array2, ArrayView2};
use serde::{Deserialize, Serialize};

use crate::wrappers::RunningMoments;
use crate::{EnvError, EnvSpec};

/// Environments that step together, each starting its next episode by itself.
///
/// Rows come environment by environment; with several agents, the rows of one environment are adjacent.
pub trait EnvBatch: Send {
    /// What is constant about the batch.
    fn spec(&self) -> &EnvSpec;

    /// Environments in the batch.
    fn n_envs(&self) -> usize {
        self.spec().n_envs
    }

    /// Decision-makers per environment; each has a row of its own.
    fn n_agents(&self) -> usize {
        self.spec().n_agents
    }

    /// `n_envs * n_agents`.
    fn n_rows(&self) -> usize {
        self.spec().n_rows()
    }

    /// Starts the first episode of every environment under `seed`; writes `obs`, `shared` and `mask` only.
    ///
    /// # Errors
    /// [`EnvError::Panicked`] where the code of an environment panics.
    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError>;

    /// Steps every environment with `[n_rows, action width]` actions and writes all slabs.
    ///
    /// # Errors
    /// [`EnvError::Panicked`] where the code of an environment panics; the batch must be reset before it is used again.
    ///
    /// # Panics
    /// If the actions or slabs have another shape.
    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError>;

    /// Ends the episode of environment `env` and starts its next one; writes `obs`, `shared` and `mask` of it
    /// only.
    ///
    /// Wrappers that cut episodes call it after a step.
    ///
    /// # Errors
    /// [`EnvError::Panicked`] where the code of the environment panics.
    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError>;

    /// Moves the episodes that ended since the last call into `episodes`; there are some only where
    /// [`EnvSpec::keeps_episodes`] says so.
    fn drain_episodes(&mut self, _episodes: &mut Vec<Episode>) {}

    /// The moments that observations are normalized with, which belong to the policy; `None` without normalization.
    fn obs_moments(&self) -> Option<&RunningMoments> {
        None
    }

    /// Everything that a resume needs, as bytes; see [`crate::StateTag`].
    fn save(&self) -> Vec<u8>;

    /// Goes on from saved bytes.
    ///
    /// # Errors
    /// [`EnvError::State`] where the bytes belong to another environment, count or version.
    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError>;
}

/// What is known of an episode once it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// Environment in the batch.
    pub env: usize,
    /// Sum of the rewards, averaged over agents.
    pub episode_return: f64,
    /// Steps.
    pub length: u64,
    /// Sum of each figure of [`EnvSpec::info_names`].
    pub info: Vec<f64>,
}

/// The memory a batch writes into; allocated once, reused by every step.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchSlabs {
    /// `[n_rows, obs width - shared width]`: what the policy sees next, after an automatic reset.
    pub obs: Array2<f32>,
    /// `[n_rows, obs width - shared width]`: the true successor, before any reset.
    pub next_obs: Array2<f32>,
    /// `[n_envs, shared width]`: what all agents of an environment see besides, belonging to `obs`.
    pub shared: Array2<f32>,
    /// `[n_envs, shared width]`: the same for `next_obs`.
    pub next_shared: Array2<f32>,
    /// `[n_rows, options / options per flag]`: 1 for legal options, belonging to `obs`; no columns without masks.
    pub mask: Array2<f32>,
    /// `[n_rows, options / options per flag]`: the same for `next_obs`.
    pub next_mask: Array2<f32>,
    /// `[n_rows]`.
    pub reward: Array1<f32>,
    /// `[n_rows]`: ended by the rules of the task.
    pub terminated: Array1<bool>,
    /// `[n_rows]`: cut from outside.
    pub truncated: Array1<bool>,
    /// `[n_rows]`: how long the step took, in the unit of time that a discount is given for; 1 where all steps are alike.
    pub elapsed: Array1<f32>,
    /// `[n_envs, info_names]`: figures of this step.
    pub info: Array2<f64>,
}

impl BatchSlabs {
    /// Slabs for a batch of this kind.
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

    /// Whether the episode of `row` ended at this step, for either reason.
    pub fn episode_end(&self, row: usize) -> bool {
        self.terminated[row] || self.truncated[row]
    }

    /// Whether any episode ended at this step; otherwise `next_obs` equals `obs`.
    pub fn any_episode_end(&self) -> bool {
        self.terminated.iter().chain(&self.truncated).any(|end| *end)
    }
}

/// Boxes of concrete batches are left out: a crate of somebody else could make such a box a wrapper.
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
    fn save(&self) -> Vec<u8> {
        (**self).save()
    }
    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        (**self).load(bytes)
    }
}
