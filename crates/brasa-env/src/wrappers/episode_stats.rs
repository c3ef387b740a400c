//! Return, length and summed figures of every episode.

use ndarray::ArrayView2;

use crate::{BatchSlabs, EnvBatch, EnvError, EnvSpec, Episode};

/// Adds up rewards and figures; [`EnvBatch::drain_episodes`] hands out the episodes that ended.
///
/// It sits inside wrappers that change rewards, which put it there, and outside those that cut episodes. Where something inside
/// keeps statistics already, it only hands on.
pub struct EpisodeStats<B> {
    inner: B,
    spec: EnvSpec,
    /// Whether something inside keeps statistics already.
    hands_on: bool,
    running: Vec<Episode>,
    ended: Vec<Episode>,
}

impl<B: EnvBatch> EpisodeStats<B> {
    /// Statistics of `inner`.
    pub fn new(inner: B) -> Self {
        let hands_on = inner.spec().keeps_episodes;
        let spec = EnvSpec { keeps_episodes: true, ..inner.spec().clone() };
        let running = (0..spec.n_envs).map(|env| fresh(env, spec.info_names.len())).collect();
        Self { inner, spec, hands_on, running, ended: Vec::new() }
    }

    /// What is wrapped.
    pub fn inner(&self) -> &B {
        &self.inner
    }
}

fn fresh(env: usize, n_info: usize) -> Episode {
    Episode { env, episode_return: 0.0, length: 0, info: vec![0.0; n_info] }
}

impl<B: EnvBatch> super::Wrapper for EpisodeStats<B> {
    type Inner = B;
    type State = (Vec<Episode>, Vec<Episode>);

    fn inner(&self) -> &B {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut B {
        &mut self.inner
    }

    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        let n_info = self.spec.info_names.len();
        for (env, episode) in self.running.iter_mut().enumerate() {
            *episode = fresh(env, n_info);
        }
        self.ended.clear();
        self.inner.reset(seed, out)
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.inner.step(actions, out)?;
        if self.hands_on {
            return Ok(());
        }
        let n_agents = self.spec.n_agents;
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
        if !self.hands_on {
            let n_info = self.running[env].info.len();
            self.ended.push(std::mem::replace(&mut self.running[env], fresh(env, n_info)));
        }
        self.inner.restart(env, out)
    }

    fn drain_episodes(&mut self, episodes: &mut Vec<Episode>) {
        match self.hands_on {
            true => self.inner.drain_episodes(episodes),
            false => episodes.append(&mut self.ended),
        }
    }

    fn state(&self) -> (Vec<Episode>, Vec<Episode>) {
        (self.running.clone(), self.ended.clone())
    }

    fn set_state(&mut self, state: (Vec<Episode>, Vec<Episode>)) {
        (self.running, self.ended) = state;
    }
}
