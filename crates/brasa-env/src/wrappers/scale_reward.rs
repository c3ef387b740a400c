//! Rewards divided by the spread of the discounted return.

use ndarray::{Array2, ArrayView2};

use super::moments::{CLIP, EPSILON};
use super::{RunningMoments, forward_to_inner};
use crate::env_vec::{decode, encode};
use crate::{BatchSlabs, EnvBatch, EnvError, Episode, Space};

/// Divides rewards by the running standard deviation of the discounted return; the mean stays.
///
/// `gamma` must equal the learner's. The return of a row starts again at 0 when its episode ends.
pub struct ScaleReward<B> {
    inner: B,
    gamma: f64,
    returns: Vec<f64>,
    moments: RunningMoments,
    scratch: Array2<f32>,
}

impl<B: EnvBatch> ScaleReward<B> {
    /// Scales the rewards of `inner`.
    ///
    /// # Errors
    /// [`EnvError::Argument`] unless `gamma` lies in [0, 1].
    pub fn new(inner: B, gamma: f64) -> Result<Self, EnvError> {
        if !(0.0..=1.0).contains(&gamma) {
            return Err(EnvError::Argument { field: "gamma", rule: "must be in [0, 1]", value: gamma.to_string() });
        }
        let rows = inner.n_rows();
        let moments = RunningMoments::new(1);
        Ok(Self { inner, gamma, returns: vec![0.0; rows], moments, scratch: Array2::zeros((rows, 1)) })
    }
}

impl<B: EnvBatch> EnvBatch for ScaleReward<B> {
    forward_to_inner!();

    fn obs_space(&self) -> &Space {
        self.inner.obs_space()
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.returns.fill(0.0);
        self.inner.reset(seed, out)
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.inner.step(actions, out)?;
        for (row, sum) in self.returns.iter_mut().enumerate() {
            *sum = *sum * self.gamma + f64::from(out.reward[row]);
            self.scratch[[row, 0]] = *sum as f32;
        }
        self.moments.add(self.scratch.view());
        let deviation = (self.moments.variance(0) + EPSILON).sqrt();
        for (row, sum) in self.returns.iter_mut().enumerate() {
            out.reward[row] = ((f64::from(out.reward[row]) / deviation) as f32).clamp(-CLIP, CLIP);
            if out.episode_end(row) {
                *sum = 0.0;
            }
        }
        Ok(())
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        let n_agents = self.inner.n_agents();
        self.returns[env * n_agents..(env + 1) * n_agents].fill(0.0);
        self.inner.restart(env, out)
    }

    fn drain_episodes(&mut self, episodes: &mut Vec<Episode>) {
        self.inner.drain_episodes(episodes)
    }

    fn obs_moments(&self) -> Option<&RunningMoments> {
        self.inner.obs_moments()
    }

    fn save(&self) -> Vec<u8> {
        encode(&(&self.returns, &self.moments, self.inner.save()))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        let (returns, moments, inner): (Vec<f64>, RunningMoments, Vec<u8>) = decode(bytes)?;
        self.inner.load(&inner)?;
        (self.returns, self.moments) = (returns, moments);
        Ok(())
    }
}
