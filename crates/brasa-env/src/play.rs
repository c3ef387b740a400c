//! Complete episodes with a controller.

use std::sync::atomic::{AtomicU64, Ordering};

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::wrappers::EpisodeCounter;
use crate::{BatchSlabs, Controller, EnvBatch, EnvError, EnvSpec, Episode, Space};

/// Record of one episode, step by step.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{EnvVec, play_episodes};
///
/// // `Walk` goes on a line from 3 to the goal at 0, and `left` always goes there.
/// let mut batch = EnvVec::new(0..1, |_| Walk(0.0))?;
/// let (_, series) = play_episodes(&mut batch, &mut left, 0, 1)?.remove(0);
/// let series = series.expect("one series was requested");
/// assert_eq!(series.names, ["reward", "place", "action: action_0"]);
/// // The place before each step.
/// assert_eq!(series.get("place"), Some(&[3.0, 2.0, 1.0][..]));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EpisodeSeries {
    /// Names of the series: `reward`, the figures of steps, then observation and action of the first agent.
    pub names: Vec<String>,
    /// One series for each name, one number for each step.
    pub values: Vec<Vec<f32>>,
}

impl EpisodeSeries {
    fn new(spec: &EnvSpec) -> Self {
        let columns = |space: &Space, what: &str| -> Vec<String> {
            match space.numbers() {
                Some(_) => space.names(),
                None => (0..space.width()).map(|i| format!("{what}_{i}")).collect(),
            }
        };
        let mut names = vec!["reward".to_owned()];
        names.extend(spec.info_names.iter().cloned());
        names.extend(columns(&spec.obs, "obs"));
        names.extend(columns(&spec.action, "action").into_iter().map(|name| format!("action: {name}")));
        Self { values: vec![Vec::new(); names.len()], names }
    }

    /// Adds a step: the observation before it, the action and the results.
    fn push(&mut self, seen: Vec<f32>, actions: &Array2<f32>, slabs: &BatchSlabs, env: usize, n_agents: usize) {
        let row = env * n_agents;
        let reward = slabs.reward.iter().skip(row).take(n_agents).sum::<f32>() / n_agents as f32;
        let (info, action) = (slabs.info.row(env), actions.row(row));
        let numbers = std::iter::once(reward)
            .chain(info.iter().map(|value| *value as f32))
            .chain(seen)
            .chain(action.iter().copied());
        self.values.iter_mut().zip(numbers).for_each(|(series, value)| series.push(value));
    }

    /// The series called `name`.
    pub fn get(&self, name: &str) -> Option<&[f32]> {
        let index = self.names.iter().position(|known| known == name)?;
        Some(&self.values[index])
    }
}

/// Steps after which an evaluation gives up an episode: four years in minutes. Without a limit an environment whose episodes never end would be
/// evaluated forever.
///
/// ```
/// use brasa_env::{EnvError, MAX_EPISODE_STEPS};
///
/// let error = EnvError::Endless { env: 2, steps: MAX_EPISODE_STEPS };
/// assert!(error.to_string().starts_with("no episode of environment 2 ended within 2102400 steps"));
/// ```
pub const MAX_EPISODE_STEPS: u64 = 4 * 365 * 24 * 60;

/// Steps of episodes in this process.
static STEPS: AtomicU64 = AtomicU64::new(0);

/// Counts a step of an episode of an evaluation. [`play_episodes`] counts its steps; and so does [`Playing`]; a scenario that runs
/// episodes without them calls this.
///
/// ```
/// use brasa_env::{count_step, steps_played};
///
/// let before = steps_played();
/// // A scenario with a separate loop calls the function after each of its steps.
/// (0..24).for_each(|_| count_step());
/// assert!(steps_played() >= before + 24);
/// ```
pub fn count_step() {
    STEPS.fetch_add(1, Ordering::Relaxed);
}

/// Steps of episodes of evaluations that this process has run: for views of progress. Environments that step together count as one.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{EnvVec, play_episodes, steps_played};
///
/// // `left` is a controller that always goes left.
/// let before = steps_played();
/// // Ten walks step together, three times.
/// play_episodes(&mut EnvVec::new(0..10, |_| Walk(0.0))?, &mut left, 0, 0)?;
/// assert!(steps_played() >= before + 3);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
pub fn steps_played() -> u64 {
    STEPS.load(Ordering::Relaxed)
}

/// Slabs and actions of a batch while a controller, or anything else that writes actions, runs its episodes.
///
/// ```
/// use brasa_env::{Controller, EnvBatch, EnvError, Playing};
///
/// /// The sum of all rewards of `n_steps` steps.
/// fn total(batch: &mut dyn EnvBatch, controller: &mut dyn Controller, n_steps: usize) -> Result<f32, EnvError> {
///     let mut playing = Playing::start(batch, 0)?;
///     let mut total = 0.0;
///     for _ in 0..n_steps {
///         playing.step(batch, controller)?;
///         total += playing.slabs.reward.sum();
///     }
///     Ok(total)
/// }
/// ```
#[derive(Debug)]
pub struct Playing {
    /// What the latest step, or the reset, wrote.
    pub slabs: BatchSlabs,
    /// The actions of the latest step, `[n_rows, width]`.
    pub actions: Array2<f32>,
    /// Episodes that the latest step ended.
    pub ended: Vec<Episode>,
    counter: EpisodeCounter,
    keeps_episodes: bool,
    has_begun: bool,
}

impl Playing {
    /// Resets `batch` with `seed`.
    ///
    /// # Errors
    /// If the batch fails.
    pub fn start(batch: &mut (dyn EnvBatch + '_), seed: u64) -> Result<Self, EnvError> {
        let spec = batch.spec();
        let mut playing = Self {
            slabs: BatchSlabs::new(spec),
            actions: Array2::zeros((spec.n_rows(), spec.action.width())),
            ended: Vec::new(),
            counter: EpisodeCounter::new(spec),
            keeps_episodes: spec.keeps_episodes,
            has_begun: false,
        };
        batch.reset(seed, &mut playing.slabs)?;
        Ok(playing)
    }

    /// One step with the actions of `controller`.
    ///
    /// # Errors
    /// If the batch or the controller fails.
    pub fn step(
        &mut self,
        batch: &mut (dyn EnvBatch + '_),
        controller: &mut (dyn Controller + '_),
    ) -> Result<(), EnvError> {
        self.decide(controller)?;
        self.advance(batch)
    }

    /// Writes the next actions of `controller` to [`Playing::actions`].
    ///
    /// # Errors
    /// If the controller fails.
    pub fn decide(&mut self, controller: &mut (dyn Controller + '_)) -> Result<(), EnvError> {
        if !std::mem::replace(&mut self.has_begun, true) {
            controller.begin();
        }
        controller.act(&self.slabs, self.actions.view_mut())
    }

    /// One step with the actions in [`Playing::actions`].
    ///
    /// # Errors
    /// If the batch fails.
    pub fn advance(&mut self, batch: &mut (dyn EnvBatch + '_)) -> Result<(), EnvError> {
        self.ended.clear();
        batch.step(self.actions.view(), &mut self.slabs)?;
        count_step();
        // A batch with statistics of its own has the rewards before wrappers changed them.
        match self.keeps_episodes {
            true => batch.drain_episodes(&mut self.ended),
            false => self.counter.count(&self.slabs, &mut self.ended),
        }
        Ok(())
    }
}

/// Runs the first episode of every environment of `batch` with `seed`; the first `n_series` are recorded.
///
/// # Errors
/// If the batch or the controller fails; [`EnvError::Endless`] if an episode has not ended after [`MAX_EPISODE_STEPS`] steps.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{BatchSlabs, EnvError, EnvVec, play_episodes};
/// use ndarray::ArrayViewMut2;
///
/// // `Walk` goes on a line from 3 to the goal at 0. Each step has a reward of -1.
/// let mut left = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
///     actions.fill(0.0);
///     Ok(())
/// };
/// let mut batch = EnvVec::new(0..4, |_| Walk(0.0))?;
/// let episodes = play_episodes(&mut batch, &mut left, 0, 0)?;
/// assert_eq!(episodes.len(), 4);
/// assert!(episodes.iter().all(|(episode, _)| episode.episode_return == -3.0));
/// # Ok::<(), EnvError>(())
/// ```
pub fn play_episodes(
    batch: &mut (dyn EnvBatch + '_),
    controller: &mut (dyn Controller + '_),
    seed: u64,
    n_series: usize,
) -> Result<Vec<(Episode, Option<EpisodeSeries>)>, EnvError> {
    let spec = batch.spec().clone();
    let mut series: Vec<EpisodeSeries> = (0..n_series.min(spec.n_envs)).map(|_| EpisodeSeries::new(&spec)).collect();
    let mut first: Vec<Option<Episode>> = vec![None; spec.n_envs];
    let mut playing = Playing::start(batch, seed)?;
    let mut steps = 0;
    while let Some(env) = first.iter().position(Option::is_none) {
        if steps == MAX_EPISODE_STEPS {
            return Err(EnvError::Endless { env, steps });
        }
        steps += 1;
        let slabs = &playing.slabs;
        let seen: Vec<Vec<f32>> = (0..series.len())
            .map(|env| slabs.shared.row(env).iter().chain(slabs.obs.row(env * spec.n_agents)).copied().collect())
            .collect();
        playing.step(batch, controller)?;
        for (env, seen) in seen.into_iter().enumerate().filter(|(env, _)| first[*env].is_none()) {
            series[env].push(seen, &playing.actions, &playing.slabs, env, spec.n_agents);
        }
        for episode in playing.ended.drain(..) {
            let env = episode.env;
            first[env].get_or_insert(episode);
        }
    }
    let mut series = series.into_iter();
    Ok(first.into_iter().flatten().map(|episode| (episode, series.next())).collect())
}
