//! A training run from beginning to end: run directory, checkpoints, resume, evaluation, sinks, progress, stop.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brasa_buffers::{Compact, Rollout, Transitions};
use brasa_core::env::{Curve, EnvBatch, field, play_episodes};
use brasa_core::{
    ActorCritic, ObsForm, OffPolicyLearner, OnPolicyLearner, Policy, PolicyController, RandomWarmup, Sink, VecEnv,
};
use brasa_nn::Persist;
use burn::tensor::Tensor;

use crate::iteration::means;
use crate::sinks::{Jsonl, Sinks, TensorBoard};
use crate::{
    CheckpointError, Iteration, ObsOf, OffPolicy, OffPolicyConfig, OnPolicy, PolicyOf, ProgressView, Run, RunDir,
    RunDirError, StopToken, TrainError, Training, in_words,
};

/// Seed of evaluations unless told otherwise; no training run meets it.
pub const EVAL_SEED: u64 = 1_000_003;

/// A training run with everything around it. See [`TrainerBuilder`] for what can be set.
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
///     .start_or_resume("runs/room") // a killed program goes on where it was
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
    sinks: Sinks,
    checkpoint_interval: Duration,
    /// `None` where the clock does not reach that far.
    next_checkpoint: Option<Instant>,
    evaluation: Option<Evaluation<T>>,
    best_return: Option<f64>,
    callbacks: Vec<Callback<T>>,
    progress: Option<ProgressView>,
    stop: StopToken,
    /// What a checkpoint in memory takes.
    copy_time: Duration,
    /// Whether it was said how long the run takes, or is short.
    knows_duration: bool,
}

/// Looks at a run after every round; it may add metrics. To end the run it sets a [`StopToken`].
pub type Callback<T> = Box<dyn FnMut(&T, &mut Iteration) -> Result<(), TrainError>>;

/// A measurement of the policy while it learns.
struct Evaluation<T> {
    every_env_steps: u64,
    measure: Measure<T>,
}

/// Plays episodes without exploring and gives metrics, [`EVAL_RETURN`] first.
type Measure<T> = Box<dyn FnMut(&T) -> Result<Vec<(String, f64)>, TrainError>>;

/// The metric that decides which policy is the best.
pub const EVAL_RETURN: &str = "eval/mean_reward";
/// The metric with the mean length of evaluated episodes.
pub const EVAL_LENGTH: &str = "eval/mean_ep_length";

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All steps are taken.
    Done,
    /// Somebody asked it to stop; it can go on later.
    Stopped,
}

impl Trainer<()> {
    /// A run of a learner that throws rollouts away: PPO, A2C.
    pub fn on_policy<E, L>(env: E, learner: L) -> TrainerBuilder<OnPolicyStart<E, L>>
    where
        E: VecEnv,
        L: OnPolicyLearner<Batch = Rollout<E::Obs, E::Action>> + Persist,
        L::Policy: ActorCritic<Obs = E::Obs, Action = E::Action>,
    {
        TrainerBuilder::new(OnPolicyStart { env, learner })
    }

    /// A run of a learner that replays transitions: SAC, DQN.
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

    /// A run of a loop that stands already; its seed and length are its own.
    pub fn of<T: Training>(training: T) -> TrainerBuilder<Ready<T>> {
        TrainerBuilder::new(Ready(training))
    }
}

/// What a [`TrainerBuilder`] makes its loop from.
pub trait Start {
    /// The loop.
    type Training: Training;

    /// Sets the loop up.
    ///
    /// # Errors
    /// Where an environment or a setting cannot be used.
    fn start(self, run: Run) -> Result<Self::Training, TrainError>;
}

/// See [`Trainer::on_policy`].
pub struct OnPolicyStart<E, L> {
    env: E,
    learner: L,
}

/// See [`Trainer::off_policy`].
pub struct OffPolicyStart<E, L> {
    env: E,
    learner: L,
    config: OffPolicyConfig,
}

/// See [`Trainer::of`].
pub struct Ready<T>(T);

impl<E, L> Start for OnPolicyStart<E, L>
where
    E: VecEnv,
    L: OnPolicyLearner<Batch = Rollout<E::Obs, E::Action>> + Persist,
    L::Policy: ActorCritic<Obs = E::Obs, Action = E::Action>,
{
    type Training = OnPolicy<E, L>;

    fn start(self, run: Run) -> Result<Self::Training, TrainError> {
        OnPolicy::new(self.env, self.learner, run)
    }
}

impl<E, L> Start for OffPolicyStart<E, L>
where
    E: VecEnv,
    E::Obs: Compact,
    E::Action: Compact,
    L: OffPolicyLearner<Batch = Transitions<E::Obs, E::Action>> + Persist,
    L::Policy: RandomWarmup<Obs = E::Obs, Action = E::Action>,
{
    type Training = OffPolicy<E, L>;

    fn start(self, run: Run) -> Result<Self::Training, TrainError> {
        OffPolicy::new(self.env, self.learner, self.config, run)
    }
}

impl<T: Training> Start for Ready<T> {
    type Training = T;

    fn start(self, _run: Run) -> Result<T, TrainError> {
        Ok(self.0)
    }
}

/// Where a run leaves its files.
enum Place {
    Nowhere,
    New(PathBuf),
    Existing(PathBuf),
    Either(PathBuf),
    /// Made by the caller; whether a run in it goes on.
    Open(RunDir, bool),
}

/// What a run needs besides its environments and its learner; every setting has a default.
pub struct TrainerBuilder<S: Start> {
    start: S,
    run: Run,
    place: Place,
    init_from: Option<PathBuf>,
    checkpoint_secs: f64,
    evaluation: Option<Evaluation<S::Training>>,
    sinks: Vec<Box<dyn Sink>>,
    callbacks: Vec<Callback<S::Training>>,
    show_progress: Option<Vec<Curve>>,
    stop: StopToken,
}

impl<S: Start> TrainerBuilder<S> {
    fn new(start: S) -> Self {
        Self {
            start,
            run: Run { total_env_steps: 100_000, seed: 0 },
            place: Place::Nowhere,
            init_from: None,
            checkpoint_secs: 30.0,
            evaluation: None,
            sinks: Vec::new(),
            callbacks: Vec::new(),
            show_progress: None,
            stop: StopToken::default(),
        }
    }

    /// Seed of environments, exploration and sampling. Default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.run.seed = seed;
        self
    }

    /// Environment steps of the whole run. Default 100,000.
    pub fn total_env_steps(mut self, total_env_steps: u64) -> Self {
        self.run.total_env_steps = total_env_steps;
        self
    }

    /// Writes checkpoints, metrics (JSONL, TensorBoard) and the best policy into this directory, which must be empty or absent.
    /// Default: a run leaves nothing.
    pub fn run_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.place = Place::New(path.into());
        self
    }

    /// Goes on with the run in this directory, bit for bit on the host; one without a checkpoint begins again.
    pub fn resume(mut self, path: impl Into<PathBuf>) -> Self {
        self.place = Place::Existing(path.into());
        self
    }

    /// Starts a run in this directory, or goes on with the one that is there: a program that is killed and started again loses
    /// at most what happened since the last checkpoint.
    pub fn start_or_resume(mut self, path: impl Into<PathBuf>) -> Self {
        self.place = Place::Either(path.into());
        self
    }

    /// Uses a run directory that the caller has opened; `resumes` says whether to go on with the run in it.
    pub fn in_dir(mut self, run_dir: RunDir, resumes: bool) -> Self {
        self.place = Place::Open(run_dir, resumes);
        self
    }

    /// Begins with the weights, the optimizer and the normalization of the run in this directory. Its counters, schedules and
    /// stored experience are not taken over.
    pub fn init_from(mut self, path: impl Into<PathBuf>) -> Self {
        self.init_from = Some(path.into());
        self
    }

    /// Seconds between checkpoints, which is what a killed run loses. Default 30. Writing them takes at most a twentieth of the run:
    /// where one takes long, as with a large replay, they are 20 times as long apart.
    pub fn checkpoint_every_secs(mut self, secs: f64) -> Self {
        self.checkpoint_secs = secs;
        self
    }

    /// Adds a place where metrics go.
    pub fn sink(mut self, sink: impl Sink + 'static) -> Self {
        self.sinks.push(Box::new(sink));
        self
    }

    /// Adds somebody who looks at the run after every round.
    pub fn callback(
        mut self,
        callback: impl FnMut(&S::Training, &mut Iteration) -> Result<(), TrainError> + 'static,
    ) -> Self {
        self.callbacks.push(Box::new(callback));
        self
    }

    /// Lets whoever holds a copy of `token` end the run.
    pub fn stop_on(mut self, token: StopToken) -> Self {
        self.stop = token;
        self
    }

    /// Shows progress on standard error, with the return and these curves. Default: nothing.
    pub fn show_progress(mut self, curves: Vec<Curve>) -> Self {
        self.show_progress = Some(curves);
        self
    }

    /// Measures the policy every `env_steps` environment steps by any means; the metric `eval/mean_reward` decides which policy
    /// is the best.
    pub fn measure_every(
        mut self,
        env_steps: u64,
        measure: impl FnMut(&S::Training) -> Result<Vec<(String, f64)>, TrainError> + 'static,
    ) -> Self {
        self.evaluation = Some(Evaluation { every_env_steps: env_steps, measure: Box::new(measure) });
        self
    }

    /// Sets the loop up, and goes on from the latest checkpoint where one is to be resumed.
    ///
    /// # Errors
    /// [`TrainError::Field`] for a setting outside its rule; where the directory or the checkpoint cannot be used.
    pub fn build(self) -> Result<Trainer<S::Training>, TrainError> {
        field::positive("checkpoint_secs", self.checkpoint_secs)?;
        // A thousand years, which a duration can hold.
        field::rule(self.checkpoint_secs <= 3e10, "checkpoint_secs", "must be at most 3e10", self.checkpoint_secs)?;
        if let Some(evaluation) = &self.evaluation {
            field::at_least_one("evaluate_every", evaluation.every_env_steps)?;
        }
        let mut training = self.start.start(self.run)?;
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
        let (mut sinks, mut best_return, mut restored) = (Vec::new(), None, false);
        if let Some(run_dir) = &run_dir {
            // A run that was killed before its first checkpoint begins again: nothing is there to go on from.
            match run_dir.checkpoints().latest() {
                Ok((path, checkpoint)) if resumes => {
                    training.restore(&checkpoint, &path)?;
                    restored = true;
                    best_return = best_of(run_dir, training.counters().env_steps);
                }
                Err(error) if resumes && !matches!(error, CheckpointError::None { .. }) => return Err(error.into()),
                _ => {}
            }
            sinks = run_dir_sinks(run_dir, training.counters().env_steps)?;
        }
        if let Some(path) = self.init_from.filter(|_| !restored) {
            let (path, checkpoint) = RunDir::open(path)?.checkpoints().latest()?;
            training.init_from(&checkpoint, &path)?;
        }
        sinks.extend(self.sinks);
        let (done, total) = (training.counters().env_steps, training.run().total_env_steps);
        Ok(Trainer {
            training,
            run_dir,
            sinks: Sinks(sinks),
            checkpoint_interval: Duration::from_secs_f64(self.checkpoint_secs),
            next_checkpoint: None,
            evaluation: self.evaluation,
            best_return,
            callbacks: self.callbacks,
            progress: self.show_progress.map(|curves| ProgressView::new(done, total, curves)),
            stop: self.stop,
            copy_time: Duration::ZERO,
            knows_duration: false,
        })
    }
}

impl<S: Start> TrainerBuilder<S>
where
    PolicyOf<S::Training>: Policy<Action = Tensor<2>>,
    ObsOf<S::Training>: ObsForm,
{
    /// Plays the first episode of every environment of `batch` without exploring, every `env_steps` environment steps, always
    /// the same episodes; gives the metrics `eval/mean_reward`, `eval/mean_ep_length` and the figures of `batch`. The best policy
    /// so far stays in the run directory. `batch` must not be the one that trains, and must not be normalized: the moments of
    /// training are applied.
    pub fn evaluate_every(self, env_steps: u64, mut batch: impl EnvBatch + 'static) -> Self {
        self.measure_every(env_steps, move |training| {
            let (spec, moments) = (batch.spec().clone(), training.obs_moments().cloned());
            let mut controller = PolicyController::new(training.policy(), &spec, moments, training.device());
            let played = play_episodes(&mut batch, &mut controller, EVAL_SEED, 0)?;
            let episodes = played.iter().map(|(episode, _)| episode);
            Ok(means([EVAL_RETURN, EVAL_LENGTH], "eval", &spec.info_names, episodes))
        })
    }
}

impl<T: Training> Trainer<T> {
    /// The loop.
    pub fn training(&self) -> &T {
        &self.training
    }

    /// Where the run leaves its files.
    pub fn run_dir(&self) -> Option<&RunDir> {
        self.run_dir.as_ref()
    }

    /// The best mean return of all evaluations.
    pub fn best_return(&self) -> Option<f64> {
        self.best_return
    }

    /// Trains until all steps are taken or somebody asks it to stop; either way a checkpoint is left.
    ///
    /// # Errors
    /// Where an environment, a sink, the disk or the arithmetic fails; the last checkpoint stays.
    pub fn run(&mut self) -> Result<Ending, TrainError> {
        self.stop.set_running(true);
        let ending = self.run_to_its_end();
        self.stop.set_running(false);
        ending
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
        let (started, steps_before) = (Instant::now(), self.training.counters().env_steps);
        while !self.training.is_done() {
            if self.stop.is_stopped() {
                return Ok(Ending::Stopped);
            }
            self.keep_in_memory(last_round);
            let begin = Instant::now();
            if self.round()?.is_break() {
                return Ok(Ending::Stopped);
            }
            last_round = begin.elapsed();
            self.warn_of_a_long_run(started, steps_before);
            if self.next_checkpoint.is_some_and(|due| Instant::now() >= due) {
                self.save_in_time()?;
            }
        }
        Ok(Ending::Done)
    }

    /// Says once, as soon as it can be told, that more than an hour is ahead.
    fn warn_of_a_long_run(&mut self, started: Instant, steps_before: u64) {
        if self.knows_duration || started.elapsed() < Duration::from_secs(2) {
            return;
        }
        self.knows_duration = true;
        let done = self.training.counters().env_steps;
        let left = self.training.run().total_env_steps.saturating_sub(done) as f64;
        let secs = started.elapsed().as_secs_f64() * left / (done - steps_before).max(1) as f64;
        if secs > 3600.0 {
            let ahead = in_words(Duration::from_secs_f64(secs.min(1e12)));
            tracing::warn!("about {ahead} are ahead: {left:.0} environment steps");
        }
    }

    /// Keeps the state before a round that may have to be given up, where a copy costs less than a hundredth of the round.
    fn keep_in_memory(&mut self, last_round: Duration) {
        let Some(run_dir) = &self.run_dir else { return };
        if last_round < Duration::from_millis(100) || last_round < 100 * self.copy_time {
            return self.stop.keep(None);
        }
        let begin = Instant::now();
        let checkpoint = self.training.checkpoint();
        self.copy_time = begin.elapsed();
        self.stop.keep(Some((run_dir.checkpoints(), checkpoint)));
    }

    /// One round of the loop, with what looks at it; breaks where it was stopped in the middle.
    fn round(&mut self) -> Result<ControlFlow<()>, TrainError> {
        let before = self.training.counters().env_steps;
        let Some(mut iteration) = self.training.iterate_until(&self.stop)? else { return Ok(ControlFlow::Break(())) };
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
        let Some(run_dir) = &self.run_dir else { return Ok(()) };
        let begin = Instant::now();
        let checkpoint = self.training.checkpoint();
        self.copy_time = begin.elapsed();
        self.stop.saving(|| run_dir.checkpoints().save(&checkpoint))?;
        Ok(())
    }

    /// Saves, and plans when to save again: a large replay must not take more than a twentieth of the run.
    fn save_in_time(&mut self) -> Result<(), TrainError> {
        let begin = Instant::now();
        self.save()?;
        let interval = self.checkpoint_interval.max(20 * begin.elapsed());
        self.next_checkpoint = Instant::now().checked_add(interval);
        Ok(())
    }

    /// Keeps what acting needs.
    fn save_best(&self, mean_return: f64) -> Result<(), TrainError> {
        let Some(run_dir) = &self.run_dir else { return Ok(()) };
        let mut checkpoint = self.training.acting();
        checkpoint.state[BEST] = mean_return.into();
        run_dir.best().save(&checkpoint)?;
        Ok(())
    }
}

/// Where the state of the best policy keeps its return.
const BEST: &str = "mean_return";

/// The return of the best policy that a run left, unless it is newer than what the run goes on from.
fn best_of(run_dir: &RunDir, env_steps: u64) -> Option<f64> {
    let (_, best) = run_dir.best().latest().ok()?;
    best.state[BEST].as_f64().filter(|_| best.env_steps <= env_steps)
}

/// The sinks of a run directory.
fn run_dir_sinks(run_dir: &RunDir, env_steps: u64) -> Result<Vec<Box<dyn Sink>>, TrainError> {
    let failed = |path: &Path, source| {
        let path = path.to_owned();
        TrainError::RunDir(crate::RunDirError::Io { path, source })
    };
    let metrics = run_dir.file("metrics.jsonl");
    let jsonl = Jsonl::open(&metrics, env_steps).map_err(|error| failed(&metrics, error))?;
    let tensorboard = TensorBoard::create(run_dir.path(), env_steps).map_err(|error| failed(run_dir.path(), error))?;
    Ok(vec![Box::new(jsonl), Box::new(tensorboard)])
}
