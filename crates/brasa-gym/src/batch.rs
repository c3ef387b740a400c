//! A batch of Gymnasium environments, stepped by worker processes.

mod saved;

use std::cell::OnceCell;
use std::ops::Range;

use brasa_env::{BatchSlabs, EnvBatch, EnvError, EnvSpec, Episode, Frame, Space, Split, episode_rng, field};
use ndarray::{Array2, ArrayView2};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use self::saved::LastRows;
use crate::description::{Description, Versions};
use crate::slabs::{Layout, SharedSlabs};
use crate::worker::Worker;
use crate::{GymConfig, GymError};

/// Flags in the shared memory.
const TERMINATED: u8 = 1;
const TRUNCATED: u8 = 2;
/// The environment was reset between two steps.
const STARTED: u8 = 4;

/// Environments of one id in worker processes.
///
/// Environment `i` starts its episode `k` by `reset(seed=s)` with `s = episode_seed(seed, i, k, split)`, so results depend neither on
/// the number of workers nor on the range that a batch holds. Actions beyond the bounds of a box are clipped to them.
///
/// It implements [`EnvBatch`]. Its errors are [`GymError`]s in [`EnvError::Scenario`]; after one, every call returns it again.
///
/// ```no_run
/// use brasa_env::{BatchSlabs, EnvBatch};
/// use brasa_gym::{GymConfig, GymVec};
///
/// // Needs Python with the package `gymnasium`.
/// let mut envs = GymVec::new(&GymConfig::new("CartPole-v1"), 0..8)?;
/// let mut slabs = BatchSlabs::new(envs.spec());
/// envs.reset(7, &mut slabs)?;
/// assert_eq!(slabs.obs.dim(), (8, 4));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug)]
pub struct GymVec {
    config: GymConfig,
    workers: Vec<Worker>,
    slabs: SharedSlabs,
    spec: EnvSpec,
    description: Description,
    first_env: usize,
    split: Split,
    seed: u64,
    steps: u64,
    envs: Vec<Progress>,
    /// Episodes that ended, with returns before the wrappers of the environment.
    ended: Vec<Episode>,
    /// The last observations of episodes that could not be loaded; they are truncated at the next step.
    interrupted: Option<LastRows>,
    failed: OnceCell<GymError>,
}

/// What the parent knows about an environment.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Progress {
    /// The current episode, from 0.
    episode: u64,
    /// Steps since the environment was truncated, or very many.
    since_truncation: u64,
    /// Steps of the episode.
    length: u64,
    /// The sum of rewards before the wrappers of the environment.
    raw_return: f64,
}

/// The seed of episode `episode` of environment `env` (its global index) in a batch with `seed`, for `reset(seed=...)`.
///
/// It has 31 bits, which every generator accepts. Those for training are even and those for evaluation odd, so both never share an
/// episode.
///
/// ```
/// use brasa_env::Split;
/// use brasa_gym::episode_seed;
///
/// // The first episode of environment 3 in a run with seed 7.
/// let seeds = [Split::Train, Split::Evaluation].map(|split| episode_seed(7, 3, 0, split));
/// assert_eq!(seeds.map(|seed| seed % 2), [0, 1]);
/// assert!(seeds.iter().all(|seed| *seed < 1 << 31));
/// ```
pub fn episode_seed(seed: u64, env: u64, episode: u64, split: Split) -> u32 {
    let bits: u32 = episode_rng(seed, env, episode).random();
    (bits >> 1 & !1) | u32::from(split == Split::Evaluation)
}

impl GymVec {
    /// The environments with the global indices `envs`, for training.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for invalid settings or an empty range; a [`GymError`] if the interpreter, a package or the environment
    /// is missing, fails, or has spaces that no learner can use.
    pub fn new(config: &GymConfig, envs: Range<usize>) -> Result<Self, EnvError> {
        Self::for_split(config, envs, Split::Train)
    }

    /// The same for training or evaluation, which have different seeds.
    ///
    /// # Errors
    /// As [`GymVec::new`].
    pub fn for_split(config: &GymConfig, envs: Range<usize>, split: Split) -> Result<Self, EnvError> {
        Self::make(config, envs, split, false)
    }

    /// As [`GymVec::for_split`]; with `renders`, the first environment makes frames: [`GymVec::frame`].
    pub(crate) fn make(config: &GymConfig, envs: Range<usize>, split: Split, renders: bool) -> Result<Self, EnvError> {
        config.validate()?;
        field::at_least_one("n_envs", envs.len() as u64)?;
        let n_envs = envs.len();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let n_workers = config.n_workers.unwrap_or(cores).min(n_envs);
        let mut bounds = (0..n_workers).map(|i| i * n_envs / n_workers..(i + 1) * n_envs / n_workers);
        let global = |rows: Range<usize>| envs.start + rows.start..envs.start + rows.end;
        // All processes start together; those that started end if another one cannot.
        let workers = Workers(bounds.try_fold(Vec::new(), |mut workers, rows| {
            workers.push(Worker::start(config, global(rows))?);
            Ok::<_, GymError>(workers)
        })?);
        let description = describe(&workers.0, config, renders)?;
        let spec = description.spec(config, n_envs)?;
        let (slabs, file) = SharedSlabs::new(Layout::new(&spec), &config.id)?;
        for worker in &workers.0 {
            let layout = slabs.layout.for_worker(file.path(), worker.envs.start - envs.start);
            worker.order_with(b'a', layout.as_bytes(), "make")?;
        }
        workers.0.iter().try_for_each(|worker| worker.done("make"))?;
        let mut batch = Self {
            config: config.clone(),
            workers: workers.keep(),
            slabs,
            spec,
            description,
            first_env: envs.start,
            split,
            seed: 0,
            steps: 0,
            envs: Vec::new(),
            ended: Vec::new(),
            interrupted: None,
            failed: OnceCell::new(),
        };
        batch.start_seeds(0);
        Ok(batch)
    }

    /// Whether a saved state has the environments themselves, so that they continue with the same numbers.
    ///
    /// If not, a loaded batch truncates its episodes at the next step, whose action has no effect, and starts new ones.
    ///
    /// # Errors
    /// Python's reason why the environments cannot be pickled.
    pub fn saves_exactly(&self) -> Result<(), &str> {
        self.description.not_saved_because.as_deref().map_or(Ok(()), Err)
    }

    /// Versions of the interpreter and its packages.
    pub fn versions(&self) -> &Versions {
        &self.description.versions
    }

    /// Ids of the worker processes.
    pub fn process_ids(&self) -> Vec<u32> {
        self.workers.iter().map(Worker::process_id).collect()
    }

    /// Seconds of a step in a video.
    pub(crate) fn frame_secs(&self) -> f64 {
        self.description.frame_secs()
    }

    /// A frame of the first environment after the last reset or step, before an automatic reset.
    pub(crate) fn frame(&mut self) -> Result<Frame, EnvError> {
        self.check()?;
        self.read_frame().map_err(|error| self.fail(error))
    }

    fn read_frame(&self) -> Result<Frame, GymError> {
        const HEAD: usize = 8;
        const MOST: u64 = HEAD as u64 + 3 * (Frame::MAX_SIDE as u64).pow(2);
        let worker = &self.workers[0];
        worker.order(b'p', "render")?;
        let body = worker.answer_up_to(MOST, b'p', "render")?;
        let bad = |rule: String| GymError::Space { id: self.config.id.clone(), rule };
        let Some((head, rgb)) = body.split_first_chunk::<HEAD>() else {
            return Err(bad(format!("a frame must begin with its width and height, got {} bytes", body.len())));
        };
        let [width, height] = [0, 4].map(|at| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
        Frame::new(width, height, rgb.to_vec()).map_err(|error| bad(error.to_string()))
    }

    /// The error of an earlier call.
    fn check(&self) -> Result<(), GymError> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Keeps the first error and ends the workers.
    fn fail(&self, error: GymError) -> EnvError {
        let error = self.failed.get_or_init(|| error).clone();
        end(&self.workers, false);
        error.into()
    }

    /// Sets the seeds of the next episodes after a reset with `seed`, whose episodes have number 0.
    fn start_seeds(&mut self, seed: u64) {
        self.seed = seed;
        self.steps = 0;
        let start = Progress { episode: 0, since_truncation: u64::MAX, length: 0, raw_return: 0.0 };
        self.envs = vec![start; self.spec.n_envs];
        (0..self.spec.n_envs).for_each(|env| self.set_seed(env, 0));
    }

    fn set_seed(&mut self, env: usize, episode: u64) {
        let seed = episode_seed(self.seed, (self.first_env + env) as u64, episode, self.split);
        self.slabs.set_seed(env, i64::from(seed));
    }

    /// An episode of `env` began; the next one has another seed.
    fn began(&mut self, env: usize, episode: u64) {
        let Progress { length, raw_return, .. } = self.envs[env];
        if self.spec.keeps_episodes {
            self.ended.push(Episode { env, episode_return: raw_return, length, info: Vec::new() });
        }
        self.envs[env] = Progress { episode, length: 0, raw_return: 0.0, ..self.envs[env] };
        self.set_seed(env, episode + 1);
    }

    /// Gives all workers an order and waits for all.
    fn run(&self, command: u8, what: &'static str) -> Result<(), GymError> {
        self.workers.iter().try_for_each(|worker| worker.order(command, what))?;
        self.workers.iter().try_for_each(|worker| worker.done(what))
    }

    /// Resets all environments with the seeds in the shared memory, and reads their first observations.
    fn reset_all(&mut self, out: &mut BatchSlabs) -> Result<(), GymError> {
        self.run(b'r', "reset")?;
        self.slabs.bytes_mut("flags").fill(STARTED);
        (0..self.spec.n_envs).try_for_each(|env| self.read_first(env, out))
    }

    /// The rows of the agents of `env`.
    fn rows(&self, env: usize) -> Range<usize> {
        let n_agents = self.spec.n_agents;
        env * n_agents..(env + 1) * n_agents
    }

    /// Reads the first observations and masks of an episode of `env`.
    fn read_first(&self, env: usize, out: &mut BatchSlabs) -> Result<(), GymError> {
        if !self.slabs.read("obs", self.rows(env), rows(&mut out.obs, self.rows(env))) {
            return Err(self.not_finite(&out.obs));
        }
        self.slabs.read("masks", self.rows(env), rows(&mut out.mask, self.rows(env)));
        Ok(())
    }

    /// The error for the first value of observations that is not finite.
    fn not_finite(&self, obs: &Array2<f32>) -> GymError {
        let ((row, column), value) =
            obs.indexed_iter().find(|(_, value)| !value.is_finite()).expect("one is not finite");
        let env = row / self.spec.n_agents;
        let Space::Box(space) = &self.spec.obs else { unreachable!("observations are boxes") };
        self.bad_number(env, format!("observation `{}`", space.name(column)), f64::from(*value))
    }

    fn bad_number(&self, env: usize, what: String, value: f64) -> GymError {
        let (id, env) = (self.config.id.clone(), self.first_env + env);
        GymError::NotFinite { id, env, seed: self.seed, step: self.steps, what, value }
    }

    fn write_actions(&mut self, actions: ArrayView2<f32>) {
        let to = self.slabs.bytes_mut("actions");
        let (heads, Some(space)) = (self.spec.action.heads(), self.spec.action.numbers()) else {
            return write_indices(to, actions, self.spec.action.heads());
        };
        // Indices before them are exact in 32 bits, too.
        let indices = heads.iter().map(|n| (0.0, (n - 1) as f32));
        let numbers = space.low.iter().copied().zip(space.high.iter().copied());
        let bounds = indices.chain(numbers).cycle();
        for ((to, action), (low, high)) in to.chunks_exact_mut(4).zip(actions.iter()).zip(bounds) {
            to.copy_from_slice(&action.clamp(low, high).to_ne_bytes());
        }
    }

    /// Reads what the workers wrote in a step.
    fn read_step(&mut self, out: &mut BatchSlabs) -> Result<(), GymError> {
        let (n_envs, n_rows) = (self.spec.n_envs, self.spec.n_rows());
        if !self.slabs.read("next_obs", 0..n_rows, rows(&mut out.next_obs, 0..n_rows)) {
            return Err(self.not_finite(&out.next_obs));
        }
        out.obs.assign(&out.next_obs);
        if self.spec.mask.is_some() {
            self.slabs.read("next_masks", 0..n_rows, rows(&mut out.next_mask, 0..n_rows));
            out.mask.assign(&out.next_mask);
        }
        for env in 0..n_envs {
            let mut flags = 0;
            for row in self.rows(env) {
                let (reward, of_row) = (self.slabs.reward("rewards", row), self.slabs.flags(row));
                out.reward[row] = reward as f32;
                if !out.reward[row].is_finite() {
                    return Err(self.bad_number(env, "reward".into(), reward));
                }
                out.terminated[row] = of_row & TERMINATED != 0;
                out.truncated[row] = of_row & TRUNCATED != 0;
                flags |= of_row;
            }
            if self.spec.keeps_episodes {
                self.envs[env].raw_return += self.slabs.reward("raw_rewards", env);
            }
            self.envs[env].length += 1;
            self.envs[env].since_truncation = self.envs[env].since_truncation.saturating_add(1);
            if flags != 0 {
                self.ended(env, flags & TRUNCATED != 0)?;
                self.read_first(env, out)?;
            }
        }
        Ok(())
    }

    /// An episode of `env` ended, and the next one began.
    fn ended(&mut self, env: usize, truncated: bool) -> Result<(), GymError> {
        if truncated {
            let (steps, interval) = (self.envs[env].since_truncation, self.spec.truncation_interval);
            if steps < interval {
                let (id, env) = (self.config.id.clone(), self.first_env + env);
                return Err(GymError::TruncatedEarly { id, env, steps, interval });
            }
            self.envs[env].since_truncation = 0;
        }
        self.began(env, self.envs[env].episode + 1);
        Ok(())
    }

    /// The step after episodes could not be loaded: all are truncated where they were.
    fn cut_episodes(&mut self, last: &LastRows, out: &mut BatchSlabs) -> Result<(), GymError> {
        out.next_obs.iter_mut().zip(&last.obs).for_each(|(to, from)| *to = *from);
        out.next_mask.iter_mut().zip(&last.mask).for_each(|(to, from)| *to = *from);
        out.reward.fill(0.0);
        out.terminated.fill(false);
        out.truncated.fill(true);
        self.reset_all(out)?;
        for env in 0..self.spec.n_envs {
            self.envs[env].since_truncation = 0;
            self.envs[env].length += 1;
            self.began(env, self.envs[env].episode + 1);
        }
        Ok(())
    }
}

impl EnvBatch for GymVec {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.check()?;
        self.interrupted = None;
        self.start_seeds(seed);
        self.reset_all(out).map_err(|error| self.fail(error))?;
        (0..self.spec.n_envs).for_each(|env| self.began(env, 0));
        // Those that ran do not end.
        self.ended.clear();
        Ok(())
    }

    /// # Panics
    /// Also if a discrete action is no index of an alternative.
    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        assert_eq!(actions.dim(), (self.spec.n_rows(), self.spec.action.width()), "shape of the actions");
        self.check()?;
        self.steps += 1;
        let result = match self.interrupted.take() {
            Some(last) => self.cut_episodes(&last, out),
            None => {
                self.write_actions(actions);
                self.slabs.bytes_mut("flags").fill(0);
                self.run(b's', "step").and_then(|()| self.read_step(out))
            }
        };
        result.map_err(|error| self.fail(error))
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.check()?;
        let worker = self.workers.partition_point(|worker| worker.envs.end <= self.first_env + env);
        let worker = &self.workers[worker];
        let local = (self.first_env + env - worker.envs.start) as u64;
        let ordered = worker.order_with(b'o', &local.to_le_bytes(), "reset").and_then(|()| worker.done("reset"));
        ordered.map_err(|error| self.fail(error))?;
        let of_env = self.rows(env);
        self.slabs.bytes_mut("flags")[of_env].fill(STARTED);
        self.read_first(env, out).map_err(|error| self.fail(error))?;
        self.began(env, self.envs[env].episode + 1);
        Ok(())
    }

    fn drain_episodes(&mut self, episodes: &mut Vec<Episode>) {
        episodes.append(&mut self.ended);
    }

    /// With [`GymVec::saves_exactly`], the state of every environment; otherwise, or after an error, only seeds and counters.
    fn save(&self) -> Vec<u8> {
        self.save_batch()
    }

    /// Loads only states that your own program saved: like every pickle, one that was made for it can run any code.
    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        self.load_batch(bytes)
    }
}

impl Drop for GymVec {
    fn drop(&mut self) {
        end(&self.workers, self.failed.get().is_none());
    }
}

/// Workers that end unless they are kept.
struct Workers(Vec<Worker>);

impl Workers {
    fn keep(mut self) -> Vec<Worker> {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        end(&self.0, false);
    }
}

/// Ends all workers; `kindly` gives them a moment to close their environments.
fn end(workers: &[Worker], kindly: bool) {
    workers.iter().for_each(Worker::close);
    workers.iter().for_each(|worker| worker.end(kindly));
}

/// Creates the environments of all workers; all must be the same.
fn describe(workers: &[Worker], config: &GymConfig, renders: bool) -> Result<Description, GymError> {
    for worker in workers {
        worker.order_with(b'c', config.for_worker(worker.envs.clone(), renders).as_bytes(), "make")?;
    }
    let mut first = None;
    for worker in workers {
        worker.greeted()?;
        let answer = worker.answer(b'h', "make")?;
        let mut description: Description = serde_json::from_slice(&answer).map_err(|error| GymError::System {
            id: config.id.clone(),
            what: "the description of a worker process",
            message: error.to_string(),
        })?;
        let first = first.get_or_insert_with(|| description.clone());
        if let (Some(reason), Some(other)) = (&first.not_saved_because, &mut description.not_saved_because) {
            // It may name the address of an object.
            other.clone_from(reason);
        }
        if *first != description {
            let rule = format!("environments of {:?} have other spaces than the first ones", worker.envs);
            return Err(GymError::Space { id: config.id.clone(), rule });
        }
    }
    Ok(first.expect("there is at least one worker"))
}

/// Writes the indices that `actions` choose at each head.
fn write_indices(to: &mut [u8], actions: ArrayView2<f32>, heads: &[usize]) {
    for ((to, choice), n) in to.chunks_exact_mut(8).zip(actions.iter()).zip(heads.iter().cycle()) {
        let is_index = *choice >= 0.0 && choice.fract() == 0.0 && (*choice as usize) < *n;
        assert!(is_index, "an action must be an index below {n}, got {choice}");
        to.copy_from_slice(&(*choice as i64).to_ne_bytes());
    }
}

fn rows(slab: &mut Array2<f32>, rows: Range<usize>) -> &mut [f32] {
    let columns = slab.ncols();
    let slab = slab.as_slice_mut().expect("slabs are in row-major order");
    &mut slab[rows.start * columns..rows.end * columns]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_and_evaluation_share_no_seed() {
        for episode in 0..1000 {
            let (train, evaluation) =
                (episode_seed(7, 3, episode, Split::Train), episode_seed(7, 3, episode, Split::Evaluation));
            assert_eq!((train % 2, evaluation), (0, train + 1));
            assert!(evaluation <= i32::MAX as u32);
        }
        assert_ne!(episode_seed(7, 3, 0, Split::Train), episode_seed(7, 3, 1, Split::Train));
        assert_ne!(episode_seed(7, 3, 0, Split::Train), episode_seed(7, 4, 0, Split::Train));
        assert_ne!(episode_seed(7, 3, 0, Split::Train), episode_seed(8, 3, 0, Split::Train));
    }
}
