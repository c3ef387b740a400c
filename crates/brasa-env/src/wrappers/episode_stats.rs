//! Return, length and summed figures of every episode.

use ndarray::ArrayView2;

use super::{RunningMoments, forward_to_inner};
use crate::env_vec::{decode, encode};
use crate::{BatchSlabs, EnvBatch, EnvError, Episode, Space};

/// Adds up rewards and figures; [`EnvBatch::drain_episodes`] hands out the episodes that ended.
///
/// It sits inside wrappers that change rewards and outside those that cut episodes.
pub struct EpisodeStats<B> {
    inner: B,
    running: Vec<Episode>,
    ended: Vec<Episode>,
}

impl<B: EnvBatch> EpisodeStats<B> {
    /// Statistics of `inner`.
    pub fn new(inner: B) -> Self {
        let running = (0..inner.n_envs()).map(|env| fresh(env, inner.info_names().len())).collect();
        Self { inner, running, ended: Vec::new() }
    }
}

fn fresh(env: usize, n_info: usize) -> Episode {
    Episode { env, episode_return: 0.0, length: 0, info: vec![0.0; n_info] }
}

impl<B: EnvBatch> EnvBatch for EpisodeStats<B> {
    forward_to_inner!();

    fn obs_space(&self) -> &Space {
        self.inner.obs_space()
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        let n_info = self.inner.info_names().len();
        for (env, episode) in self.running.iter_mut().enumerate() {
            *episode = fresh(env, n_info);
        }
        self.ended.clear();
        self.inner.reset(seed, out)
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.inner.step(actions, out)?;
        let n_agents = self.inner.n_agents();
        for (env, episode) in self.running.iter_mut().enumerate() {
            let rows = env * n_agents..(env + 1) * n_agents;
            let reward: f64 = rows.clone().map(|row| f64::from(out.reward[row])).sum();
            episode.episode_return += reward / n_agents as f64;
            episode.length += 1;
            for (sum, value) in episode.info.iter_mut().zip(out.info.row(env)) {
                *sum += value;
            }
            if out.episode_end(rows.start) {
                let n_info = episode.info.len();
                self.ended.push(std::mem::replace(episode, fresh(env, n_info)));
            }
        }
        Ok(())
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        let n_info = self.running[env].info.len();
        self.ended.push(std::mem::replace(&mut self.running[env], fresh(env, n_info)));
        self.inner.restart(env, out)
    }

    fn drain_episodes(&mut self, episodes: &mut Vec<Episode>) {
        episodes.append(&mut self.ended);
    }

    fn obs_moments(&self) -> Option<&RunningMoments> {
        self.inner.obs_moments()
    }

    fn save(&self) -> Vec<u8> {
        encode(&(&self.running, &self.ended, self.inner.save()))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        let (running, ended, inner): (Vec<Episode>, Vec<Episode>, Vec<u8>) = decode(bytes)?;
        self.inner.load(&inner)?;
        self.running = running;
        self.ended = ended;
        Ok(())
    }
}
