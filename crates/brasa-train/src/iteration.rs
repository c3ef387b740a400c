//! How far a run is, and what one round of it brought.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use brasa_core::env::{EnvSpec, Episode};
use brasa_core::{Sink, VecEnv};
use serde::{Deserialize, Serialize};

use crate::{CheckpointError, TrainError};

/// Episodes that running means cover (Stable-Baselines3's `stats_window_size`).
const WINDOW: usize = 100;

/// How far a run is; all that a resume needs of the loop itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Environment steps, all environments together.
    pub env_steps: u64,
    /// Rounds of collecting and learning.
    pub iterations: u64,
    /// Gradient updates of off-policy learning.
    pub updates: u64,
    /// Episodes that ended.
    pub episodes: u64,
    /// The latest episodes.
    pub window: VecDeque<Episode>,
    /// Whether an episode ended in the latest vector step; `None` once all updates that belong to that step are done.
    pub step_to_learn_from: Option<bool>,
}

impl Counters {
    /// Refuses counters of environments with other figures.
    pub(crate) fn check(&self, spec: &EnvSpec, path: &Path) -> Result<(), CheckpointError> {
        let n = spec.info_names.len();
        match self.window.iter().find(|episode| episode.info.len() != n) {
            Some(episode) => {
                let reason = format!("its episodes have {} figures, the environments {n}", episode.info.len());
                Err(CheckpointError::Misfit { path: path.to_owned(), reason })
            }
            None => Ok(()),
        }
    }
}

/// What one round of collecting and learning brought.
#[derive(Debug, Clone, PartialEq)]
pub struct Iteration {
    /// Environment steps so far.
    pub env_steps: u64,
    /// Environment steps of the whole run.
    pub total_env_steps: u64,
    /// Environment steps per second since the loop started.
    pub steps_per_sec: f64,
    /// Figures by name.
    pub metrics: Vec<(String, f64)>,
    /// Episodes that ended in this round.
    pub ended: Vec<Episode>,
}

impl Iteration {
    /// The figure called `name`.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// Hands all figures to a sink.
    ///
    /// # Errors
    /// Where the sink cannot keep them.
    pub fn report(&self, sink: &mut dyn Sink) -> Result<(), TrainError> {
        for (name, value) in &self.metrics {
            sink.scalar(self.env_steps, name, *value)?;
        }
        Ok(sink.flush()?)
    }
}

/// Counters, and the clock that they are measured against.
pub(crate) struct Tally {
    pub(crate) counters: Counters,
    started: Instant,
    steps_before: u64,
    /// The end of the latest phase.
    mark: Instant,
    phases: Phases,
    /// [`VecEnv::transfer_time`] at the latest step.
    transferred: Duration,
}

/// Where the time of a round went.
#[derive(Default)]
struct Phases {
    environment: Duration,
    transfer: Duration,
    acting: Duration,
    learning: Duration,
}

impl Tally {
    /// Goes on from `counters`, with the clock at 0.
    pub(crate) fn new(counters: Counters) -> Self {
        let now = Instant::now();
        let phases = Phases::default();
        let steps_before = counters.env_steps;
        Self { steps_before, counters, started: now, mark: now, phases, transferred: Duration::ZERO }
    }

    /// Time since the latest mark.
    fn lap(&mut self) -> Duration {
        let now = Instant::now();
        std::mem::replace(&mut self.mark, now).elapsed()
    }

    /// Counts the time since the latest phase as acting: choosing actions and storing what came of them.
    pub(crate) fn acted(&mut self) {
        let lap = self.lap();
        self.phases.acting += lap;
    }

    /// Counts the time since the latest phase as a step of `env`; copies between host and device apart.
    pub(crate) fn stepped<E: VecEnv>(&mut self, env: &E) {
        let lap = self.lap();
        let transfer = env.transfer_time().saturating_sub(self.transferred).min(lap);
        self.transferred = env.transfer_time();
        self.phases.transfer += transfer;
        self.phases.environment += lap - transfer;
    }

    /// Counts the time since the latest phase as learning.
    pub(crate) fn learned(&mut self) {
        let lap = self.lap();
        self.phases.learning += lap;
    }

    /// Adds what the loop knows to what the learner reported.
    pub(crate) fn summarize<E: VecEnv>(
        &mut self,
        env: &mut E,
        total_env_steps: u64,
        learned: Vec<(&'static str, f64)>,
    ) -> Iteration {
        let mut ended = Vec::new();
        env.drain_episodes(&mut ended);
        let counters = &mut self.counters;
        counters.iterations += 1;
        counters.episodes += ended.len() as u64;
        counters.window.extend(ended.iter().cloned());
        let surplus = counters.window.len().saturating_sub(WINDOW);
        counters.window.drain(..surplus);

        let elapsed_secs = self.started.elapsed().as_secs_f64();
        let steps_per_sec = (counters.env_steps - self.steps_before) as f64 / elapsed_secs.max(1e-9);
        let mut metrics: Vec<(String, f64)> = vec![
            ("time/total_timesteps".into(), counters.env_steps as f64),
            ("time/iterations".into(), counters.iterations as f64),
            ("time/fps".into(), steps_per_sec),
            ("time/time_elapsed".into(), elapsed_secs),
        ];
        let Phases { environment, transfer, acting, learning } = std::mem::take(&mut self.phases);
        let phases = [("environment", environment), ("transfer", transfer), ("acting", acting), ("learning", learning)];
        metrics.extend(phases.map(|(name, time)| (format!("time/{name}"), time.as_secs_f64())));
        if !counters.window.is_empty() {
            let names = ["rollout/ep_rew_mean", "rollout/ep_len_mean"];
            metrics.extend(means(names, "rollout", &env.spec().info_names, counters.window.iter()));
        }
        metrics.extend(learned.into_iter().map(|(name, value)| (name.to_owned(), value)));
        Iteration { env_steps: counters.env_steps, total_env_steps, steps_per_sec, metrics, ended }
    }
}

/// Means over episodes, of which there are some: return and length under `names`, each figure under `group/figure`.
pub(crate) fn means<'a>(
    names: [&str; 2],
    group: &str,
    figures: &[String],
    episodes: impl ExactSizeIterator<Item = &'a Episode> + Clone,
) -> Vec<(String, f64)> {
    let n = episodes.len() as f64;
    let mean = |of: &dyn Fn(&Episode) -> f64| episodes.clone().map(of).sum::<f64>() / n;
    let [episode_return, length] = names;
    let mut metrics = vec![
        (episode_return.to_owned(), mean(&|episode| episode.episode_return)),
        (length.to_owned(), mean(&|episode| episode.length as f64)),
    ];
    let figures = figures.iter().enumerate();
    metrics.extend(figures.map(|(i, name)| (format!("{group}/{name}"), mean(&|episode| episode.info[i]))));
    metrics
}
