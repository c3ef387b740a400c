//! Observations with mean 0 and variance 1.

use ndarray::{ArrayView2, ArrayViewMut2};

use super::moments::CLIP;
use super::{RunningMoments, forward_to_inner};
use crate::env_vec::{decode, encode};
use crate::{BatchSlabs, EnvBatch, EnvError, Episode, Space};

/// Subtracts the running mean and divides by the running standard deviation, shared by all environments.
///
/// Evaluation freezes the moments; they belong to the policy and are saved with it.
///
/// # Panics
/// At construction, if agents share a part of their observations ([`EnvBatch::shared_width`]).
pub struct NormalizeObs<B> {
    inner: B,
    moments: RunningMoments,
    mode: Mode,
    obs_space: Space,
}

/// Whether moments grow, and whether observations change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Grow,
    Frozen,
    Watch,
}

impl<B: EnvBatch> NormalizeObs<B> {
    /// Moments that grow with every step.
    pub fn new(inner: B) -> Self {
        let moments = RunningMoments::new(inner.obs_space().width());
        Self::with(inner, moments, Mode::Grow)
    }

    /// Moments of a training run that no longer change.
    ///
    /// # Errors
    /// [`EnvError::State`] where the moments have another width.
    pub fn frozen(inner: B, moments: RunningMoments) -> Result<Self, EnvError> {
        let (width, expected) = (moments.mean.len(), inner.obs_space().width());
        if width != expected {
            return Err(EnvError::State {
                reason: format!("moments of {width} columns for observations of {expected}"),
            });
        }
        Ok(Self::with(inner, moments, Mode::Frozen))
    }

    /// Moments that grow with every step while observations pass as they are.
    ///
    /// Replayed observations are normalized when they are used: stored ones would keep the moments of their time.
    pub fn watching(inner: B) -> Self {
        let moments = RunningMoments::new(inner.obs_space().width());
        Self { obs_space: inner.obs_space().clone(), inner, moments, mode: Mode::Watch }
    }

    fn with(inner: B, moments: RunningMoments, mode: Mode) -> Self {
        assert_eq!(inner.shared_width(), 0, "observations with a part that agents share are not normalized");
        let names = match inner.obs_space() {
            Space::Box(space) => space.names.clone(),
            _ => (0..moments.mean.len()).map(|i| format!("obs_{i}")).collect(),
        };
        Self { inner, moments, mode, obs_space: Space::uniform_box(-CLIP, CLIP, names) }
    }
}

impl<B> NormalizeObs<B> {
    fn observe(&mut self, out: &BatchSlabs) {
        if self.mode != Mode::Frozen {
            self.moments.add(out.obs.view());
        }
    }

    fn apply(&self, rows: ArrayViewMut2<f32>) {
        if self.mode != Mode::Watch {
            self.moments.normalize(rows);
        }
    }
}

impl<B: EnvBatch> EnvBatch for NormalizeObs<B> {
    forward_to_inner!();

    fn obs_space(&self) -> &Space {
        &self.obs_space
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.inner.reset(seed, out)?;
        self.observe(out);
        self.apply(out.obs.view_mut());
        Ok(())
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.inner.step(actions, out)?;
        self.observe(out);
        self.apply(out.obs.view_mut());
        self.apply(out.next_obs.view_mut());
        Ok(())
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        // The other rows of `obs` are normalized already: work on a copy and take the new rows only.
        let mut fresh = out.clone();
        self.inner.restart(env, &mut fresh)?;
        self.apply(fresh.obs.view_mut());
        let n_agents = self.inner.n_agents();
        for row in env * n_agents..(env + 1) * n_agents {
            out.obs.row_mut(row).assign(&fresh.obs.row(row));
            out.mask.row_mut(row).assign(&fresh.mask.row(row));
        }
        Ok(())
    }

    fn drain_episodes(&mut self, episodes: &mut Vec<Episode>) {
        self.inner.drain_episodes(episodes)
    }

    fn obs_moments(&self) -> Option<&RunningMoments> {
        Some(&self.moments)
    }

    fn save(&self) -> Vec<u8> {
        encode(&(&self.moments, self.inner.save()))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        let (moments, inner): (RunningMoments, Vec<u8>) = decode(bytes)?;
        self.inner.load(&inner)?;
        self.moments = moments;
        Ok(())
    }
}
