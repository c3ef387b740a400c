//! Return, length and figures of every episode.

use ndarray::{Array2, ArrayView2};

use crate::{BatchSlabs, EnvBatch, EnvError, EnvSpec, Episode};

/// Adds up rewards and figures; [`EnvBatch::drain_episodes`] returns the episodes that ended.
///
/// Wrappers that change rewards insert it inside themselves; wrappers that truncate episodes must be inside it. If an
/// inner batch already keeps statistics, it only forwards them.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::wrappers::EpisodeStats;
/// use brasa_env::{BatchSlabs, EnvBatch, EnvVec};
///
/// let mut batch = EpisodeStats::new(EnvVec::new(0..2, |_| Walk(0.0))?);
/// let mut slabs = BatchSlabs::new(batch.spec());
/// batch.reset(7, &mut slabs)?;
/// for _ in 0..3 {
///     batch.step(ndarray::array![[0.0], [1.0]].view(), &mut slabs)?;
/// }
/// // The walk to the left has ended.
/// let mut episodes = Vec::new();
/// batch.drain_episodes(&mut episodes);
/// assert_eq!((episodes.len(), episodes[0].env, episodes[0].length), (1, 0, 3));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug)]
pub struct EpisodeStats<B> {
    inner: B,
    spec: EnvSpec,
    /// Whether an inner batch already keeps statistics.
    hands_on: bool,
    counter: EpisodeCounter,
    ended: Vec<Episode>,
}

impl<B: EnvBatch> EpisodeStats<B> {
    /// Statistics of `inner`.
    pub fn new(inner: B) -> Self {
        let hands_on = inner.spec().keeps_episodes;
        let spec = EnvSpec { keeps_episodes: true, ..inner.spec().clone() };
        Self { inner, hands_on, counter: EpisodeCounter::new(&spec), spec, ended: Vec::new() }
    }

    /// The wrapped batch.
    pub fn inner(&self) -> &B {
        &self.inner
    }
}

/// Sums of the current episodes.
#[derive(Debug)]
pub(crate) struct EpisodeCounter {
    spec: EnvSpec,
    returns: Vec<f64>,
    lengths: Vec<u64>,
    /// `[n_envs, info_names]`.
    info: Array2<f64>,
}

impl EpisodeCounter {
    /// A counter before the first step.
    pub(crate) fn new(spec: &EnvSpec) -> Self {
        let n_envs = spec.n_envs;
        let info = Array2::zeros((n_envs, spec.info_names.len()));
        Self { returns: vec![0.0; n_envs], lengths: vec![0; n_envs], info, spec: spec.clone() }
    }

    /// Adds one step of all environments, and the episodes that ended to `ended`.
    pub(crate) fn count(&mut self, slabs: &BatchSlabs, ended: &mut Vec<Episode>) {
        let n_agents = self.spec.n_agents;
        if n_agents == 1 {
            self.returns.iter_mut().zip(&slabs.reward).for_each(|(sum, reward)| *sum += f64::from(*reward));
        } else {
            for (env, sum) in self.returns.iter_mut().enumerate() {
                let rows = env * n_agents..(env + 1) * n_agents;
                *sum += rows.map(|row| f64::from(slabs.reward[row])).sum::<f64>() / n_agents as f64;
            }
        }
        self.lengths.iter_mut().for_each(|length| *length += 1);
        if !self.info.is_empty() {
            self.info += &slabs.info;
        }
        slabs.for_each_end(n_agents, |env| ended.push(self.cut(env)));
    }

    /// Returns the current episode of `env` and starts the next one.
    fn cut(&mut self, env: usize) -> Episode {
        let sums = self.running(env);
        (self.returns[env], self.lengths[env]) = (0.0, 0);
        self.info.row_mut(env).fill(0.0);
        Episode { info: self.spec.episode_figures(sums.info, sums.length), ..sums }
    }

    /// The current episode of `env`, with sums of figures.
    fn running(&self, env: usize) -> Episode {
        let (episode_return, length) = (self.returns[env], self.lengths[env]);
        Episode { env, episode_return, length, info: self.info.row(env).to_vec() }
    }

    /// Replaces the current episodes.
    fn set_running(&mut self, episodes: Vec<Episode>) {
        for (env, episode) in episodes.into_iter().enumerate().take(self.spec.n_envs) {
            (self.returns[env], self.lengths[env]) = (episode.episode_return, episode.length);
            self.info.row_mut(env).iter_mut().zip(episode.info).for_each(|(sum, saved)| *sum = saved);
        }
    }
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
        self.counter = EpisodeCounter::new(&self.spec);
        self.ended.clear();
        self.inner.reset(seed, out)
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.inner.step(actions, out)?;
        if !self.hands_on {
            self.counter.count(out, &mut self.ended);
        }
        Ok(())
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        if !self.hands_on {
            self.ended.push(self.counter.cut(env));
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
        let running = (0..self.spec.n_envs).map(|env| self.counter.running(env));
        (running.collect(), self.ended.clone())
    }

    fn set_state(&mut self, state: (Vec<Episode>, Vec<Episode>)) {
        self.counter.set_running(state.0);
        self.ended = state.1;
    }
}
