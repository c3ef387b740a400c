//! A training run from beginning to end: run directory, checkpoints, resume, evaluation, sinks, progress, stop.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use brasa_buffers::{Compact, Rollout, Transitions};
use brasa_core::env::{Curve, EnvBatch, field, play_episodes};
use brasa_core::{
    ActorCritic, ObsForm, OffPolicyLearner, OnPolicyLearner, Policy, PolicyController, RandomWarmup, Sink, VecEnv,
};
use brasa_device::{Precision, autocast, catch_out_of_memory};
use brasa_nn::Persist;
use brasa_shards::shard;
use burn::tensor::Tensor;

use crate::evaluate::check_evaluation;
use crate::iteration::means;
use crate::sharding::{any, own_checkpoint, whole_checkpoint};
use crate::sinks::{Sinks, of_run_dir};
use crate::snapshot::{BEST, best_of};
use crate::{
    Checkpoint, CheckpointError, Iteration, ObsOf, OffPolicyConfig, OffPolicyStart, OnPolicyStart, PolicyOf,
    ProgressView, Ready, Run, RunDir, RunDirError, Start, StopToken, TrainError, Training, in_words,
};

/// Default seed of evaluations. Training does not use it.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_core::VecEnv;
/// use brasa_train::EVAL_SEED;
///
/// // The seed of the evaluation begins other episodes than the seed of training.
/// let mut envs = cart_poles(1);
/// let first = |envs: &mut CartPoles, seed| Ok::<_, brasa_train::TrainError>(envs.reset(seed)?.values.to_data());
/// assert_ne!(first(&mut envs, EVAL_SEED)?, first(&mut envs, 0)?);
/// # Ok::<(), brasa_train::TrainError>(())
/// ```
pub const EVAL_SEED: u64 = 1_000_003;

/// A training run with run directory, checkpoints, evaluation and sinks. [`TrainerBuilder`] has the settings.
///
/// ```no_run
/// # use brasa_train::{Trainer, TrainError, Training};
/// # use brasa_core::{ActorCritic, OnPolicyLearner, ObsForm, VecEnv};
/// # use brasa_core::env::EnvBatch;
/// # use burn::tensor::Tensor;
/// # fn train<E, L>(env: E, test_env: impl EnvBatch + 'static, ppo: L) -> Result<(), TrainError>
/// # where
/// #     E: VecEnv<Action = Tensor<2>>, E::Obs: ObsForm,
/// #     L: OnPolicyLearner<Batch = brasa_buffers::Rollout<E::Obs, E::Action>> + brasa_nn::Persist,
/// #     L::Policy: ActorCritic<Obs = E::Obs, Action = E::Action>,
/// # {
/// let mut trainer = Trainer::on_policy(env, ppo)
///     .seed(7)
///     .total_env_steps(200_000)
///     .start_or_resume("runs/room") // resumes after a kill
///     .evaluate_every(20_000, test_env)
///     .build()?;
/// trainer.run()?;
/// let policy = trainer.training().policy();
/// # drop(policy);
/// # Ok(())
/// # }
/// ```
pub struct Trainer<T> {
    training: T,
    run_dir: Option<RunDir>,
    /// Whether a shard has a run directory.
    saves: bool,
    sinks: Sinks,
    checkpoint_interval: Duration,
    checkpoint_env_steps: Option<u64>,
    /// `None` if the time is outside the range of the clock.
    next_checkpoint: Option<Instant>,
    evaluation: Option<Evaluation<T>>,
    best_return: Option<f64>,
    callbacks: Vec<Callback<T>>,
    progress: Option<ProgressView>,
    stop: StopToken,
    precision: Precision,
    /// Time to create a checkpoint in memory.
    copy_time: Duration,
}

impl<T: std::fmt::Debug> std::fmt::Debug for Trainer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainer")
            .field("training", &self.training)
            .field("run_dir", &self.run_dir)
            .field("checkpoint_interval", &self.checkpoint_interval)
            .field("checkpoint_env_steps", &self.checkpoint_env_steps)
            .field("best_return", &self.best_return)
            .field("precision", &self.precision)
            .finish_non_exhaustive()
    }
}

/// Called after every iteration; it may add metrics. To end the run it sets a [`StopToken`].
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_train::{Callback, OnPolicy, Trainer, Training};
///
/// let add_metric: Callback<OnPolicy<CartPoles, FixedPpo>> = Box::new(|training, iteration| {
///     iteration.metrics.push(("progress".into(), training.progress().fraction()));
///     Ok(())
/// });
/// let builder = Trainer::on_policy(cart_poles(4), ppo()).total_env_steps(64).callback(add_metric);
/// let builder = builder.callback(|_, iteration| Ok(assert_eq!(iteration.metric("progress"), Some(1.0))));
/// builder.build()?.run()?;
/// # Ok::<(), brasa_train::TrainError>(())
/// ```
pub type Callback<T> = Box<dyn FnMut(&T, &mut Iteration) -> Result<(), TrainError> + Send>;

/// Evaluation of the policy during training.
struct Evaluation<T> {
    check: Check<T>,
    every_env_steps: u64,
    measure: Measure<T>,
}

/// Rejects what cannot be measured, before the run.
type Check<T> = Box<dyn Fn(&T) -> Result<(), TrainError> + Send>;

/// Plays episodes without exploration and returns metrics, [`EVAL_RETURN`] first.
type Measure<T> = Box<dyn FnMut(&T) -> Result<Vec<(String, f64)>, TrainError> + Send>;

/// The metric that determines the best policy.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_train::{EVAL_RETURN, Trainer};
///
/// // A measure of the caller determines the best policy.
/// let builder = Trainer::on_policy(cart_poles(4), ppo()).total_env_steps(64);
/// let mut trainer = builder.measure_every(64, |_| Ok(vec![(EVAL_RETURN.to_owned(), 195.0)])).build()?;
/// trainer.run()?;
/// assert_eq!(trainer.best_return(), Some(195.0));
/// # Ok::<(), brasa_train::TrainError>(())
/// ```
pub const EVAL_RETURN: &str = "eval/mean_reward";
/// The mean length of evaluation episodes.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_classic::CartPole;
/// use brasa_core::env::{EnvVec, wrappers::TimeLimit};
/// use brasa_train::{EVAL_LENGTH, EVAL_RETURN, Trainer};
///
/// let test_envs = TimeLimit::new(EnvVec::new(100..102, |_| CartPole::default())?, 20)?;
/// let builder = Trainer::on_policy(cart_poles(4), ppo()).total_env_steps(64).evaluate_every(64, test_envs);
/// // An episode of cart-pole returns 1 per step.
/// let equal = |iteration: &brasa_train::Iteration| iteration.metric(EVAL_LENGTH) == iteration.metric(EVAL_RETURN);
/// let builder = builder.callback(move |_, iteration| Ok(assert!(equal(iteration))));
/// builder.build()?.run()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub const EVAL_LENGTH: &str = "eval/mean_ep_length";

/// Reason why a run ended.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_train::{Ending, Trainer};
///
/// let mut trainer = Trainer::on_policy(cart_poles(4), ppo()).total_env_steps(64).build()?;
/// match trainer.run()? {
///     Ending::Done => {}
///     Ending::Stopped => println!("it can be resumed"),
/// }
/// # assert_eq!(trainer.run()?, Ending::Done);
/// # Ok::<(), brasa_train::TrainError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The run took all its steps.
    Done,
    /// The run was stopped by a [`StopToken`]; it can be resumed.
    Stopped,
}

impl Trainer<()> {
    /// A run of an on-policy learner: PPO, A2C.
    pub fn on_policy<E, L>(env: E, learner: L) -> TrainerBuilder<OnPolicyStart<E, L>>
    where
        E: VecEnv,
        L: OnPolicyLearner<Batch = Rollout<E::Obs, E::Action>> + Persist,
        L::Policy: ActorCritic<Obs = E::Obs, Action = E::Action>,
    {
        TrainerBuilder::new(OnPolicyStart { env, learner })
    }

    /// A run of an off-policy learner: SAC, TD3, DQN.
    pub fn off_policy<E, L>(env: E, learner: L, config: OffPolicyConfig) -> TrainerBuilder<OffPolicyStart<E, L>>
    where
        E: VecEnv,
        E::Obs: Compact,
        E::Action: Compact,
        L: OffPolicyLearner<Batch = Transitions<E::Obs, E::Action>> + Persist,
        L::Policy: RandomWarmup<Obs = E::Obs, Action = E::Action>,
    {
        TrainerBuilder::new(OffPolicyStart { env, learner, config })
    }

    /// A run of an existing loop, with the seed and length of that loop.
    pub fn of<T: Training>(training: T) -> TrainerBuilder<Ready<T>> {
        TrainerBuilder::new(Ready(training))
    }
}

/// The run directory to use.
#[derive(Debug)]
enum Place {
    Nowhere,
    New(PathBuf),
    Existing(PathBuf),
    Either(PathBuf),
    /// Opened by the caller; the flag says whether to resume the run in it.
    Open(RunDir, bool),
}

/// Settings of a [`Trainer`]. Every setting has a default.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_train::Trainer;
///
/// let dir = tempfile::tempdir()?;
/// let run = dir.path().join("run");
/// let builder = Trainer::on_policy(cart_poles(4), ppo()).seed(7).total_env_steps(128);
/// let mut trainer = builder.run_dir(&run).metrics_csv(true).build()?;
/// trainer.run()?;
/// assert!(run.join("metrics.csv").is_file());
/// let run_dir = trainer.run_dir().expect("it has one");
/// assert_eq!(run_dir.checkpoints().latest_env_steps()?, Some(128));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct TrainerBuilder<S: Start> {
    start: S,
    run: Run,
    place: Place,
    forget_replay: bool,
    init_from: Option<PathBuf>,
    checkpoint_secs: f64,
    checkpoint_env_steps: Option<u64>,
    metrics_csv: bool,
    evaluation: Option<Evaluation<S::Training>>,
    sinks: Vec<Box<dyn Sink>>,
    callbacks: Vec<Callback<S::Training>>,
    show_progress: Option<Vec<Curve>>,
    stop: StopToken,
    precision: Precision,
}

impl<S: Start> std::fmt::Debug for TrainerBuilder<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrainerBuilder")
            .field("run", &self.run)
            .field("place", &self.place)
            .field("checkpoint_secs", &self.checkpoint_secs)
            .field("checkpoint_env_steps", &self.checkpoint_env_steps)
            .field("metrics_csv", &self.metrics_csv)
            .field("precision", &self.precision)
            .finish_non_exhaustive()
    }
}

impl<S: Start> TrainerBuilder<S> {
    fn new(start: S) -> Self {
        Self {
            start,
            run: Run { total_env_steps: 100_000, seed: 0 },
            place: Place::Nowhere,
            forget_replay: false,
            init_from: None,
            checkpoint_secs: 30.0,
            checkpoint_env_steps: None,
            metrics_csv: false,
            evaluation: None,
            sinks: Vec::new(),
            callbacks: Vec::new(),
            show_progress: None,
            stop: StopToken::default(),
            precision: Precision::F32,
        }
    }

    /// Seed of environments, exploration and sampling. Default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.run.seed = seed;
        self
    }

    /// Environment steps of the whole run. Default 100,000. A rollout is taken whole: a run of PPO has at least `n_steps` steps of every environment.
    pub fn total_env_steps(mut self, total_env_steps: u64) -> Self {
        self.run.total_env_steps = total_env_steps;
        self
    }

    /// Writes checkpoints, metrics (JSONL, TensorBoard) and the best policy to this directory, which must be empty or absent.
    /// Default: a run writes no files.
    pub fn run_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.place = Place::New(path.into());
        self
    }

    /// Resumes the run in this directory; on the CPU the result is bit-identical to an uninterrupted run. A run without a
    /// checkpoint starts from the beginning.
    pub fn resume(mut self, path: impl Into<PathBuf>) -> Self {
        self.place = Place::Existing(path.into());
        self
    }

    /// Resumes the run in this directory, or starts one if there is none. A program that is killed and started again loses at
    /// most the steps since the last checkpoint.
    pub fn start_or_resume(mut self, path: impl Into<PathBuf>) -> Self {
        self.place = Place::Either(path.into());
        self
    }

    /// Uses a run directory that the caller has opened; `resumes` says whether to resume the run in it.
    pub fn in_dir(mut self, run_dir: RunDir, resumes: bool) -> Self {
        self.place = Place::Open(run_dir, resumes);
        self
    }

    /// Resumes with an empty replay buffer, for instance one of another size. Updates wait for new experience.
    pub fn forget_replay(mut self, forget: bool) -> Self {
        self.forget_replay = forget;
        self
    }

    /// Starts from the weights, the optimizer and the normalization of the run in this directory. Counters, schedules and
    /// stored experience are not copied.
    pub fn init_from(mut self, path: impl Into<PathBuf>) -> Self {
        self.init_from = Some(path.into());
        self
    }

    /// Seconds between checkpoints: a killed run loses at most this time. Default 30. Saving takes at most 5 % of the run: if
    /// one checkpoint takes long, as with a large replay buffer, the interval is at least 20 times that duration.
    pub fn checkpoint_every_secs(mut self, secs: f64) -> Self {
        self.checkpoint_secs = secs;
        self
    }

    /// Also saves a checkpoint every `env_steps` environment steps, however long saving takes. Default: never.
    pub fn checkpoint_every(mut self, env_steps: Option<u64>) -> Self {
        self.checkpoint_env_steps = env_steps;
        self
    }

    /// Whether the run directory also gets the metrics as a table, `metrics.csv`. Default: no.
    pub fn metrics_csv(mut self, metrics_csv: bool) -> Self {
        self.metrics_csv = metrics_csv;
        self
    }

    /// Adds a sink for metrics.
    pub fn sink(mut self, sink: impl Sink + 'static) -> Self {
        self.sinks.push(Box::new(sink));
        self
    }

    /// Adds a function that is called after every iteration.
    pub fn callback(
        mut self,
        callback: impl FnMut(&S::Training, &mut Iteration) -> Result<(), TrainError> + Send + 'static,
    ) -> Self {
        self.callbacks.push(Box::new(callback));
        self
    }

    /// Sets the token that stops the run.
    pub fn stop_on(mut self, token: StopToken) -> Self {
        self.stop = token;
        self
    }

    /// The format in which layers multiply during rollouts and updates. Default [`Precision::F32`]. Evaluations use 32 bits.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Shows progress on standard error, with the return and these curves. Default: no progress.
    pub fn show_progress(mut self, curves: Vec<Curve>) -> Self {
        self.show_progress = Some(curves);
        self
    }

    /// Evaluates the policy with `measure` every `env_steps` environment steps. The metric `eval/mean_reward` determines the
    /// best policy.
    pub fn measure_every(
        mut self,
        env_steps: u64,
        measure: impl FnMut(&S::Training) -> Result<Vec<(String, f64)>, TrainError> + Send + 'static,
    ) -> Self {
        self.evaluation =
            Some(Evaluation { check: Box::new(|_| Ok(())), every_env_steps: env_steps, measure: Box::new(measure) });
        self
    }

    /// Creates the loop, and loads the latest checkpoint if a run is resumed.
    ///
    /// # Errors
    /// [`TrainError::Field`] if a setting violates its rule or the policy cannot act in the environments of evaluations; an error if the directory or
    /// the checkpoint cannot be used.
    pub fn build(mut self) -> Result<Trainer<S::Training>, TrainError> {
        if !shard().is_first() {
            self.place = Place::Nowhere;
        }
        field::duration_secs("checkpoint_secs", self.checkpoint_secs)?;
        field::at_least_one("checkpoint_every", self.checkpoint_env_steps.unwrap_or(1))?;
        if let Some(evaluation) = &self.evaluation {
            field::at_least_one("evaluate_every", evaluation.every_env_steps)?;
        }
        let mut training = self.start.start(self.run)?;
        self.precision.check(training.device())?;
        if let Some(evaluation) = &self.evaluation {
            (evaluation.check)(&training)?;
        }
        let (run_dir, resumes) = match self.place {
            Place::Nowhere => (None, false),
            Place::Open(run_dir, resumes) => (Some(run_dir), resumes),
            Place::New(path) => (Some(RunDir::create(path)?), false),
            Place::Existing(path) => (Some(RunDir::open_to_resume(path)?), true),
            Place::Either(path) => match RunDir::open_to_resume(&path) {
                Ok(run_dir) => (Some(run_dir), true),
                Err(RunDirError::NoRun { .. } | RunDirError::Io { .. }) => (Some(RunDir::create(path)?), false),
                Err(error) => return Err(error.into()),
            },
        };
        let latest = || match run_dir.as_ref().filter(|_| resumes).map(|run_dir| run_dir.checkpoints().latest()) {
            Some(Ok(latest)) => Ok(Some(latest)),
            // A run that was killed before its first checkpoint starts from the beginning.
            None | Some(Err(CheckpointError::None { .. })) => Ok(None),
            Some(Err(error)) => Err(error.into()),
        };
        let restored = own_checkpoint(latest)?;
        let mut best_return = None;
        if let Some((path, mut checkpoint)) = restored {
            if self.forget_replay {
                checkpoint.replay.clear();
            }
            training.restore(&checkpoint, &path)?;
            best_return = run_dir.as_ref().and_then(best_of);
        } else if let Some(path) = self.init_from {
            training.init_from_run(&path)?;
        }
        let mut sinks = match &run_dir {
            Some(run_dir) => of_run_dir(run_dir, training.counters().env_steps, self.metrics_csv)?,
            None => Vec::new(),
        };
        if shard().is_first() {
            sinks.extend(self.sinks);
        } else {
            (self.evaluation, self.show_progress) = (None, None);
        }
        let saves = any(run_dir.is_some());
        let (done, total) = (training.counters().env_steps, training.run().total_env_steps);
        Ok(Trainer {
            training,
            run_dir,
            saves,
            sinks: Sinks(sinks),
            checkpoint_interval: Duration::from_secs_f64(self.checkpoint_secs),
            checkpoint_env_steps: self.checkpoint_env_steps,
            next_checkpoint: None,
            evaluation: self.evaluation,
            best_return,
            callbacks: self.callbacks,
            progress: self.show_progress.map(|curves| ProgressView::new(done, total, curves)),
            stop: self.stop,
            precision: self.precision,
            copy_time: Duration::ZERO,
        })
    }
}

impl<S: Start> TrainerBuilder<S>
where
    PolicyOf<S::Training>: Policy<Action = Tensor<2>>,
    ObsOf<S::Training>: ObsForm,
{
    /// Plays the first episode of every environment of `batch` without exploration, every `env_steps` environment steps. The
    /// episodes are always the same. Metrics: `eval/mean_reward`, `eval/mean_ep_length` and the figures of `batch`. The run directory keeps
    /// the best policy. `batch` must not be the one of training, and must not normalize observations: the moments of training are applied.
    pub fn evaluate_every(self, env_steps: u64, mut batch: impl EnvBatch + 'static) -> Self {
        let (spec, normalizes) = (batch.spec().clone(), batch.obs_moments().is_some());
        let check: Check<S::Training> = {
            let spec = spec.clone();
            Box::new(move |training| check_evaluation(&training.policy(), &spec, normalizes))
        };
        let mut builder = self.measure_every(env_steps, move |training| {
            let moments = training.obs_moments().cloned();
            let mut controller = PolicyController::new(training.policy(), &spec, moments, training.device());
            let played = play_episodes(&mut batch, &mut controller, EVAL_SEED, 0)?;
            Ok(means([EVAL_RETURN, EVAL_LENGTH], "eval", &spec.info_names, played.iter().map(|(episode, _)| episode)))
        });
        builder.evaluation = builder.evaluation.map(|evaluation| Evaluation { check, ..evaluation });
        builder
    }
}

impl<T: Training> Trainer<T> {
    /// The loop.
    pub fn training(&self) -> &T {
        &self.training
    }

    /// The run directory, if there is one.
    pub fn run_dir(&self) -> Option<&RunDir> {
        self.run_dir.as_ref()
    }

    /// The best mean return of all evaluations.
    pub fn best_return(&self) -> Option<f64> {
        self.best_return
    }

    /// Trains until all steps are taken or the run is stopped. In both cases it saves a checkpoint.
    ///
    /// # Errors
    /// If an environment, a sink or the disk fails, or a metric is not finite; [`brasa_device::DeviceError::OutOfMemory`] if the
    /// device has no memory left, after which this value must not be used any more. The last checkpoint is kept.
    pub fn run(&mut self) -> Result<Ending, TrainError> {
        self.stop.set_running(true);
        let ending = catch_out_of_memory(|| self.run_to_its_end());
        self.stop.set_running(false);
        ending?.map_err(TrainError::classified)
    }

    fn run_to_its_end(&mut self) -> Result<Ending, TrainError> {
        let ending = self.rounds();
        if let Some(progress) = &self.progress {
            progress.finish();
        }
        let ending = ending?;
        self.save()?;
        Ok(ending)
    }

    fn rounds(&mut self) -> Result<Ending, TrainError> {
        self.save_in_time()?;
        let mut last_round = Duration::ZERO;
        // Taken once it can be told how long the run takes.
        let mut unknown = Some((Instant::now(), self.training.counters().env_steps));
        while !self.training.is_done() {
            if any(self.stop.is_stopped()) {
                return Ok(Ending::Stopped);
            }
            self.keep_in_memory(last_round);
            let (begin, before) = (Instant::now(), self.training.counters().env_steps);
            if self.round()?.is_break() {
                return Ok(Ending::Stopped);
            }
            last_round = begin.elapsed();
            if let Some((begin, steps)) = unknown.take_if(|(begin, _)| begin.elapsed() >= Duration::from_secs(2)) {
                self.warn_of_a_long_run(begin.elapsed(), self.training.counters().env_steps - steps);
            }
            let now = self.training.counters().env_steps;
            let by_steps = self.checkpoint_env_steps.is_some_and(|every| before / every != now / every);
            // Only the first shard knows how long saving takes.
            if by_steps || any(shard().is_first() && self.next_checkpoint.is_some_and(|due| Instant::now() >= due)) {
                self.save_in_time()?;
            }
        }
        Ok(Ending::Done)
    }

    /// Warns if the run will take more than another hour at the speed of `steps` in `time`.
    fn warn_of_a_long_run(&self, time: Duration, steps: u64) {
        let left = self.training.run().total_env_steps.saturating_sub(self.training.counters().env_steps) as f64;
        let secs = time.as_secs_f64() * left / steps.max(1) as f64;
        if secs > 3600.0 {
            let ahead = in_words(Duration::from_secs_f64(secs.min(1e12)));
            tracing::warn!("about {ahead} are ahead: {left:.0} environment steps");
        }
    }

    /// Keeps the state before an iteration, in case a signal interrupts it. Only if the copy takes less than 1 % of the iteration, and
    /// not in a run of several shards, which would all have to wait for the copy.
    fn keep_in_memory(&mut self, last_round: Duration) {
        let Some(run_dir) = self.run_dir.as_ref().filter(|_| !shard().is_part()) else { return };
        if last_round < Duration::from_millis(100) || last_round < 100 * self.copy_time {
            return self.stop.keep(None);
        }
        let begin = Instant::now();
        let checkpoint = self.training.checkpoint();
        self.copy_time = begin.elapsed();
        self.stop.keep(Some((run_dir.checkpoints(), checkpoint)));
    }

    /// One iteration with evaluation, callbacks, sinks and progress; breaks if the iteration was interrupted.
    fn round(&mut self) -> Result<ControlFlow<()>, TrainError> {
        let before = self.training.counters().env_steps;
        // Several shards stop together, between iterations.
        let stop = if shard().is_part() { StopToken::default() } else { self.stop.clone() };
        let iterated = autocast(self.precision, || self.training.iterate_until(&stop))?;
        let Some(mut iteration) = iterated else { return Ok(ControlFlow::Break(())) };
        if let Some(evaluation) = &mut self.evaluation
            && before / evaluation.every_env_steps != iteration.env_steps / evaluation.every_env_steps
        {
            let metrics = (evaluation.measure)(&self.training)?;
            let mean_return = metrics.iter().find(|(name, _)| name == EVAL_RETURN).map(|(_, value)| *value);
            iteration.metrics.extend(metrics);
            if let Some(mean_return) = mean_return.filter(|mean| self.best_return.is_none_or(|best| *mean > best)) {
                self.best_return = Some(mean_return);
                self.save_best(mean_return)?;
            }
        }
        for callback in &mut self.callbacks {
            callback(&self.training, &mut iteration)?;
        }
        iteration.report(&mut self.sinks)?;
        if let Some(progress) = &mut self.progress {
            progress.show(&iteration);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn save(&mut self) -> Result<(), TrainError> {
        if !self.saves {
            return Ok(());
        }
        let begin = Instant::now();
        let checkpoint = whole_checkpoint(self.training.checkpoint());
        self.copy_time = begin.elapsed();
        // The last checkpoint stays one from which the run can go on.
        checkpoint.as_ref().map_or(Ok(()), Checkpoint::check_weights)?;
        if let (Some(run_dir), Some(checkpoint)) = (&self.run_dir, checkpoint) {
            self.stop.saving(|| run_dir.checkpoints().save(&checkpoint))?;
        }
        Ok(())
    }

    /// Saves, and sets the time of the next checkpoint. Saving must not take more than 5 % of the run.
    fn save_in_time(&mut self) -> Result<(), TrainError> {
        let begin = Instant::now();
        self.save()?;
        let interval = self.checkpoint_interval.max(20 * begin.elapsed());
        self.next_checkpoint = Instant::now().checked_add(interval);
        Ok(())
    }

    /// Saves the current policy as the best one.
    fn save_best(&self, mean_return: f64) -> Result<(), TrainError> {
        let Some(run_dir) = &self.run_dir else { return Ok(()) };
        let mut checkpoint = self.training.acting();
        checkpoint.state[BEST] = mean_return.into();
        run_dir.best().replace(&checkpoint)?;
        Ok(())
    }
}
