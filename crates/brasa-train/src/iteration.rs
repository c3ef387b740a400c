//! Counters of a run, and the metrics of one iteration.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use brasa_buffers::BufferError;
use brasa_core::env::{EnvSpec, Episode};
use brasa_core::{Metrics, Sink, VecEnv};
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::sharding::{all_episodes, mean_metrics};
use crate::{CheckpointError, TrainError};

/// Number of episodes in running means (Stable-Baselines3's `stats_window_size`).
pub(crate) const WINDOW: usize = 100;

/// The counters of a run: the state of the loop in a checkpoint.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_train::{OnPolicy, Run, Training};
///
/// // `ppo()` collects 16 steps of each environment.
/// let mut training = OnPolicy::new(cart_poles(4), ppo(), Run { total_env_steps: 256, seed: 0 })?;
/// training.iterate()?;
/// let counters = training.counters();
/// assert_eq!((counters.env_steps, counters.iterations), (64, 1));
/// assert_eq!(counters.gamma, Some(0.99));
/// # Ok::<(), brasa_train::TrainError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Environment steps, summed over environments.
    pub env_steps: u64,
    /// Rollouts of on-policy learning; readings of metrics of off-policy learning.
    pub iterations: u64,
    /// Gradient updates of off-policy learning.
    pub updates: u64,
    /// Episodes that ended.
    pub episodes: u64,
    /// The latest episodes.
    pub window: VecDeque<Episode>,
    /// Whether an episode ended in the latest vector step; `None` once all updates of that step are done.
    pub step_to_learn_from: Option<bool>,
    /// The discount of the learner; `None` in checkpoints of older versions.
    #[serde(default)]
    pub gamma: Option<f64>,
    /// Whether `episodes` and `window` contain those of the rollout that was collected during the latest update.
    #[serde(default)]
    pub counted_ahead: bool,
}

impl Counters {
    /// Those of a run that begins, whose learner has the discount `gamma`.
    pub(crate) fn begin(gamma: f64) -> Self {
        Self { gamma: Some(gamma), ..Self::default() }
    }

    /// Checks that the counters belong to environments with the same figures and to a learner with the same discount: values, and returns
    /// in a replay buffer, are those of one discount.
    pub(crate) fn check(&self, spec: &EnvSpec, gamma: f64, path: &Path) -> Result<(), CheckpointError> {
        let misfit = |reason: String| Err(CheckpointError::Misfit { path: path.to_owned(), reason });
        if let Some(before) = self.gamma.filter(|before| *before != gamma) {
            return misfit(format!("its discount `gamma` is {before}, that of this run {gamma}"));
        }
        let n = spec.info_names.len();
        match self.window.iter().find(|episode| episode.info.len() != n) {
            Some(episode) => misfit(format!("its episodes have {} figures, the environments {n}", episode.info.len())),
            None => Ok(()),
        }
    }
}

/// Result of one iteration of collecting and learning.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_train::{OnPolicy, Run, Training};
///
/// let mut training = OnPolicy::new(cart_poles(4), ppo(), Run { total_env_steps: 256, seed: 0 })?;
/// let iteration = training.iterate()?;
/// assert_eq!((iteration.env_steps, iteration.total_env_steps), (64, 256));
/// assert_eq!(iteration.metric("time/total_timesteps"), Some(64.0));
/// assert_eq!(iteration.metric("train/policy_loss"), None);
/// # Ok::<(), brasa_train::TrainError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Iteration {
    /// Environment steps so far.
    pub env_steps: u64,
    /// Environment steps of the whole run.
    pub total_env_steps: u64,
    /// Environment steps per second since the loop started.
    pub steps_per_sec: f64,
    /// Metrics: name and value.
    pub metrics: Vec<(String, f64)>,
    /// Episodes that ended in this iteration.
    pub ended: Vec<Episode>,
}

impl Iteration {
    /// The metric `name`, if it exists.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// Writes all metrics to a sink.
    ///
    /// # Errors
    /// If the sink cannot write them.
    pub fn report(&self, sink: &mut dyn Sink) -> Result<(), TrainError> {
        for (name, value) in &self.metrics {
            sink.scalar(self.env_steps, name, *value)?;
        }
        Ok(sink.flush()?)
    }
}

/// Counters and time measurement of a loop.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) counters: Counters,
    pub(crate) clock: Clock,
    started: Instant,
    steps_before: u64,
}

/// The time of each phase of an iteration.
#[derive(Debug)]
pub(crate) struct Clock {
    /// End of the latest phase.
    mark: Instant,
    phases: Phases,
    /// [`VecEnv::transfer_time`] at the latest step.
    transferred: Duration,
}

/// Time of each phase of an iteration.
#[derive(Debug, Default)]
struct Phases {
    environment: Duration,
    transfer: Duration,
    acting: Duration,
    learning: Duration,
}

impl Clock {
    /// A clock that starts now, where copies between host and device have taken `transferred` before.
    fn new(transferred: Duration) -> Self {
        Self { mark: Instant::now(), phases: Phases::default(), transferred }
    }

    /// A clock for a thread of its own; [`Clock::join`] adds its times.
    pub(crate) fn fork(&self) -> Self {
        Self::new(self.transferred)
    }

    /// Adds the times of a thread that has ended.
    pub(crate) fn join(&mut self, other: Self) {
        self.transferred = other.transferred;
        self.phases.environment += other.phases.environment;
        self.phases.transfer += other.phases.transfer;
        self.phases.acting += other.phases.acting;
        self.phases.learning += other.phases.learning;
        self.lap();
    }

    /// Time since the latest mark.
    fn lap(&mut self) -> Duration {
        let now = Instant::now();
        std::mem::replace(&mut self.mark, now).elapsed()
    }

    /// Counts the time since the latest phase as acting: computing actions and storing transitions.
    pub(crate) fn acted(&mut self) {
        let lap = self.lap();
        self.phases.acting += lap;
    }

    /// Counts the time since the latest phase as environment time of `env`, and its copies between host and device as transfer.
    pub(crate) fn stepped<E: VecEnv>(&mut self, env: &E) {
        let lap = self.lap();
        let transfer = env.transfer_time().saturating_sub(self.transferred).min(lap);
        self.transferred = env.transfer_time();
        self.phases.transfer += transfer;
        self.phases.environment += lap - transfer;
    }

    /// Counts the time since the latest phase as environment time, without copies.
    pub(crate) fn stepped_on_host(&mut self) {
        let lap = self.lap();
        self.phases.environment += lap;
    }

    /// Counts the time since the latest phase as learning.
    pub(crate) fn learned(&mut self) {
        let lap = self.lap();
        self.phases.learning += lap;
    }
}

impl Tally {
    /// Starts from `counters`, with the clock at 0.
    pub(crate) fn new(counters: Counters) -> Self {
        let steps_before = counters.env_steps;
        Self { steps_before, counters, started: Instant::now(), clock: Clock::new(Duration::ZERO) }
    }

    /// Ends an iteration: reads the metrics of the learner, updates the counters, and adds the metrics of the loop. `early_truncations`
    /// is that of the buffer.
    pub(crate) fn summarize<E: VecEnv>(
        &mut self,
        env: &mut E,
        total_env_steps: u64,
        learned: Metrics,
        early_truncations: Option<Tensor<1>>,
    ) -> Result<Iteration, TrainError> {
        let env_steps = self.counters.env_steps;
        // Metrics and episodes are read together: the device is waited for once.
        let counts_early = early_truncations.is_some();
        let others: Vec<Tensor<1>> = early_truncations.into_iter().chain(env.pending_episodes()).collect();
        let others = (!others.is_empty()).then(|| Tensor::cat(others, 0));
        let (learned, numbers) = learned.read_with(others).map_err(|cause| TrainError::Metrics { env_steps, cause })?;
        self.clock.learned();
        let (early, pending) = numbers.split_at(usize::from(counts_early));
        early.iter().try_for_each(|number| BufferError::of_early_truncations(env.spec(), *number))?;
        env.accept_episodes(pending)?;
        let mut ended = Vec::new();
        env.drain_episodes(&mut ended)?;
        let (learned, ended) = (mean_metrics(learned), all_episodes(ended));
        let counters = &mut self.counters;
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
        let Phases { environment, transfer, acting, learning } = std::mem::take(&mut self.clock.phases);
        let phases = [("environment", environment), ("transfer", transfer), ("acting", acting), ("learning", learning)];
        metrics.extend(phases.map(|(name, time)| (format!("time/{name}"), time.as_secs_f64())));
        if !counters.window.is_empty() {
            let names = ["rollout/ep_rew_mean", "rollout/ep_len_mean"];
            metrics.extend(means(names, "rollout", &env.spec().info_names, counters.window.iter()));
        }
        metrics.extend(learned.into_iter().map(|(name, value)| (name.to_owned(), value)));
        Ok(Iteration { env_steps, total_env_steps, steps_per_sec, metrics, ended })
    }
}

/// Means over episodes (at least one): return and length are called `names`, each figure is called `group/figure`.
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
