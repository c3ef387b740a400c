//! An algorithm in its loop: to be trained to the end, or tried for some seconds.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use brasa_core::{ObsForm, Policy};
use brasa_env::{Curve, EnvBatch, EnvSpec, Extensions};
use brasa_train::{Ending, ObsOf, PolicyOf, Run, RunDir, StopToken, Trainer, Training};
use burn::tensor::{Device, Tensor};

use crate::ExperimentError;
use crate::policy::{Adapt, LoadedPolicy};
use crate::registry::NetworkContext;

/// What an algorithm is trained with.
pub struct Context<'a> {
    /// Spaces and sizes of the environments before wrappers, for networks.
    pub(crate) spec: &'a EnvSpec,
    pub(crate) extensions: &'a Extensions,
    /// The device without autodiff.
    pub(crate) device: &'a Device,
    /// The autodiff side, where networks that learn live.
    pub(crate) autodiff: &'a Device,
    pub(crate) run: Run,
    pub(crate) envs: Option<MakeEnvs<'a>>,
}

/// What surrounds a training run.
pub(crate) struct Surroundings<'a> {
    pub(crate) open: OpenRunDir<'a>,
    pub(crate) begin: BeginRun<'a>,
    pub(crate) checkpoint_secs: f64,
    /// A run whose weights this one begins with; of no account where a checkpoint is resumed.
    pub(crate) init_from: Option<PathBuf>,
    pub(crate) evaluation: Option<(u64, Evaluate)>,
    pub(crate) progress: Option<Vec<Curve>>,
    pub(crate) stop: StopToken,
}

/// Makes the environments of the run, wrapped as the experiment says, for a discount.
pub(crate) type MakeEnvs<'a> = Box<dyn FnOnce(f64) -> Result<Box<dyn EnvBatch>, ExperimentError> + 'a>;
/// Opens the run directory, once everything else stands; says whether a run in it goes on.
pub(crate) type OpenRunDir<'a> = Box<dyn FnOnce() -> Result<(RunDir, bool), ExperimentError> + 'a>;
/// Called once the run stands, its checkpoint is loaded, and nothing but training is left.
pub(crate) type BeginRun<'a> = Box<dyn FnOnce(&RunDir) -> Result<(), ExperimentError> + 'a>;
/// Measures a policy that still learns.
pub(crate) type Evaluate = Box<dyn FnMut(LoadedPolicy) -> Result<Vec<(String, f64)>, ExperimentError>>;

impl Context<'_> {
    /// What network `index` of the learner is made for.
    pub fn network(&self, index: u64) -> NetworkContext<'_> {
        let (spec, extensions, seed) = (self.spec, self.extensions, self.run.seed);
        NetworkContext { spec, extensions, device: self.autodiff, seed, index }
    }

    /// The environments, wrapped as the experiment says.
    ///
    /// # Errors
    /// Where they cannot be made.
    ///
    /// # Panics
    /// If they were taken before.
    pub fn batch(&mut self, gamma: f64) -> Result<Box<dyn EnvBatch>, ExperimentError> {
        (self.envs.take().expect("environments are made once"))(gamma)
    }
}

/// A run that ended.
pub struct Trained {
    /// The policy at the end.
    pub policy: LoadedPolicy,
    /// Why it ended.
    pub ending: Ending,
    /// Environment steps taken.
    pub env_steps: u64,
    /// Where its files are.
    pub run_dir: RunDir,
}

/// What some seconds of training showed.
pub(crate) struct Probed {
    /// Environment steps per second of the last round, which has updates wherever the run has.
    pub steps_per_sec: f64,
    /// Metrics of that round.
    pub metrics: Vec<(String, f64)>,
    /// Bytes of a checkpoint as it is now.
    pub checkpoint_bytes: usize,
}

/// An algorithm in its loop, with its environments.
pub struct Session(Box<dyn Started>);

/// A loop of any type.
trait Started {
    fn train(self: Box<Self>, around: Surroundings<'_>) -> Result<Trained, ExperimentError>;
    fn probe(self: Box<Self>, time: Duration) -> Result<Probed, ExperimentError>;
}

impl Session {
    /// A loop whose policies act in other scenarios of the kind as `adapt` says. `spec` is that of [`Context::spec`].
    pub(crate) fn new<T>(training: T, spec: &EnvSpec, adapt: impl Fn() -> Adapt<PolicyOf<T>> + 'static) -> Self
    where
        T: Training + 'static,
        PolicyOf<T>: Policy<Action = Tensor<2>> + Clone + 'static,
        ObsOf<T>: ObsForm,
    {
        Self(Box::new(InLoop { training, spec: spec.clone(), adapt: Rc::new(adapt) }))
    }

    /// Trains to the end.
    pub(crate) fn train(self, around: Surroundings<'_>) -> Result<Trained, ExperimentError> {
        self.0.train(around)
    }

    /// Trains for about that time, at least two rounds and until it updates, and writes nothing.
    pub(crate) fn probe(self, time: Duration) -> Result<Probed, ExperimentError> {
        self.0.probe(time)
    }
}

struct InLoop<T, A> {
    training: T,
    spec: EnvSpec,
    adapt: Rc<A>,
}

impl<T, A> Started for InLoop<T, A>
where
    T: Training + 'static,
    PolicyOf<T>: Policy<Action = Tensor<2>> + Clone + 'static,
    ObsOf<T>: ObsForm,
    A: Fn() -> Adapt<PolicyOf<T>> + 'static,
{
    fn train(self: Box<Self>, around: Surroundings<'_>) -> Result<Trained, ExperimentError> {
        let Self { mut training, spec, adapt } = *self;
        if let Some(path) = around.init_from {
            let (path, checkpoint) = RunDir::open(path)?.checkpoints().latest()?;
            training.init_from(&checkpoint, &path)?;
        }
        let loaded = move |training: &T| {
            let moments = training.obs_moments().cloned();
            LoadedPolicy::new(training.policy(), &spec, moments, training.device(), adapt())
        };
        let (run_dir, resumes) = (around.open)()?;
        let mut builder = Trainer::of(training)
            .in_dir(run_dir.clone(), resumes)
            .checkpoint_every_secs(around.checkpoint_secs)
            .stop_on(around.stop);
        if let Some(curves) = around.progress {
            builder = builder.show_progress(curves);
        }
        if let Some((every, mut evaluate)) = around.evaluation {
            let loaded = loaded.clone();
            builder = builder.measure_every(every, move |training| {
                evaluate(loaded(training)).map_err(|error| brasa_train::TrainError::Evaluation(Box::new(error)))
            });
        }
        let mut trainer = builder.build()?;
        (around.begin)(&run_dir)?;
        let ending = trainer.run()?;
        let training = trainer.training();
        Ok(Trained { policy: loaded(training), ending, env_steps: training.counters().env_steps, run_dir })
    }

    fn probe(self: Box<Self>, time: Duration) -> Result<Probed, ExperimentError> {
        let mut training = self.training;
        let begin = Instant::now();
        for round in 1.. {
            let (before, round_begin) = (training.counters().clone(), Instant::now());
            let iteration = training.iterate()?;
            let now = training.counters();
            // A loop that replays learns nothing at first; one that does not counts no updates at all.
            let waits = now.updates == 0 && before.updates == 0 && training.replays() && begin.elapsed() < 10 * time;
            let enough = round >= 2 && begin.elapsed() >= time && !waits;
            if enough || training.is_done() {
                let steps = (now.env_steps - before.env_steps) as f64;
                let saved = training.checkpoint();
                let arrays = saved.policy.values().chain(saved.trainer.values());
                let floats: usize = arrays.map(|(_, values)| values.len()).sum();
                return Ok(Probed {
                    steps_per_sec: steps / round_begin.elapsed().as_secs_f64().max(1e-9),
                    metrics: iteration.metrics,
                    checkpoint_bytes: 4 * floats + saved.env.len() + saved.replay.len(),
                });
            }
        }
        unreachable!("rounds have no end but these")
    }
}
