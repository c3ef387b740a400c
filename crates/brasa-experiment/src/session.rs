//! An algorithm with its loop, for a training run or a short trial run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brasa_core::{Learner, ObsForm, Policy};
use brasa_device::{Precision, RunMonitor};
use brasa_env::{Curve, EnvSpec, Extensions};
use brasa_train::{Ending, ObsOf, PolicyOf, Run, RunDir, StopToken, Trainer, Training, own_seed};
use burn::tensor::{Device, Tensor};

use crate::ExperimentError;
use crate::placement::Placement;
use crate::policy::{Adapt, LoadedPolicy};
use crate::registry::{BoxedEnv, ExperimentObs, NetworkContext, PolicyContext};

/// The input for the training of an algorithm.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// # use brasa_core::{Obs, OnPolicyLearner};
/// # use brasa_nn::ActorCriticRole;
/// # use brasa_train::{Checkpoint, OnPolicy, restore_policy};
/// # use std::path::Path;
/// use brasa_experiment::{App, Context, ExperimentError, Session};
/// # use brasa_experiment::{Algorithm, LoadedPolicy, NetworkPlan, Plan, PolicyContext, Sections};
///
/// # struct OwnPlan {
/// #     config: FixedConfig,
/// #     network: NetworkPlan<ActorCriticRole>,
/// # }
/// impl brasa_experiment::Plan for OwnPlan {
///     fn replays(&self) -> bool {
///         false
///     }
///     fn start(&self, context: Context<'_>) -> Result<Session, ExperimentError> {
///         let network = self.network.build(&context.network(0))?;
///         let learner = Fixed::new(network, self.config.clone(), context.seed()).map_err(ExperimentError::input)?;
///         let training = OnPolicy::new(context.envs::<Obs>(learner.gamma())?, learner, context.run())?;
///         Ok(Session::new(training, context.spec(), |policy, _| Ok(policy.clone())))
///     }
/// #     fn policy(
/// #         &self,
/// #         context: &PolicyContext<'_>,
/// #         checkpoint: &Checkpoint,
/// #         path: &Path,
/// #     ) -> Result<LoadedPolicy, ExperimentError> {
/// #         let network = restore_policy(self.network.build(&context.network())?, checkpoint, path)?;
/// #         LoadedPolicy::restored(network, context, checkpoint, path, |policy, _| Ok(policy.clone()))
/// #     }
/// }
///
/// # struct Own;
/// #
/// # impl Algorithm for Own {
/// #     fn name(&self) -> &str {
/// #         "own"
/// #     }
/// #     fn plan(&self, sections: &mut Sections<'_>) -> Result<Box<dyn Plan>, ExperimentError> {
/// #         Ok(Box::new(OwnPlan { config: sections.config("own")?, network: sections.network()? }))
/// #     }
/// # }
/// # let dir = tempfile::tempdir()?;
/// # let (config, out) = (dir.path().join("own.toml"), dir.path().join("run"));
/// # std::fs::write(&config, CONFIG.replace("[learner]", "[own]"))?;
/// # let (config, out) = (config.display().to_string(), out.display().to_string());
/// let app = App::new("own").with(registry()).algorithm(Own);
/// app.run_from(["own", "train", "--quiet", "--out", &out, &config])?;
/// # assert!(std::path::Path::new(&out).join("checkpoints").is_dir());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Context<'a> {
    /// Spaces and sizes of the environments before wrappers, for networks.
    pub(crate) spec: &'a EnvSpec,
    pub(crate) extensions: &'a Extensions,
    /// The device without autodiff.
    pub(crate) device: &'a Device,
    /// The autodiff device, for networks that learn.
    pub(crate) autodiff: &'a Device,
    pub(crate) run: Run,
    pub(crate) placement: Placement<'a>,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("spec", &self.spec)
            .field("device", &self.device)
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

/// Evaluation, progress and stop of a training run, and its run directory.
pub(crate) struct TrainingSetup<'a> {
    /// `None` for a shard other than the first one.
    pub(crate) place: Option<(OpenRunDir<'a>, BeginRun<'a>)>,
    /// Whether a resumed run starts with an empty replay buffer.
    pub(crate) forget_replay: bool,
    pub(crate) checkpoint_secs: f64,
    pub(crate) checkpoint_interval: Option<u64>,
    pub(crate) metrics_csv: bool,
    /// A run from whose weights this one starts. Ignored if a run is resumed.
    pub(crate) init_from: Option<PathBuf>,
    pub(crate) evaluation: Option<(u64, Evaluate)>,
    /// Whether evaluations will sample actions, so that the policy must be stochastic.
    pub(crate) eval_sampled: bool,
    pub(crate) progress: Option<Vec<Curve>>,
    pub(crate) precision: Precision,
    /// See [`crate::TrainConfig::cleanup_interval`].
    pub(crate) cleanup_interval: Option<u64>,
    /// Of the device that trains, and of this process.
    pub(crate) monitor: Option<RunMonitor>,
    pub(crate) stop: StopToken,
}

/// Opens the run directory after everything else is created. The flag says whether to resume the run in it.
pub(crate) type OpenRunDir<'a> = Box<dyn FnOnce() -> Result<(RunDir, bool), ExperimentError> + 'a>;
/// Called when the run is set up and its checkpoint is loaded, just before training.
pub(crate) type BeginRun<'a> = Box<dyn FnOnce(&RunDir) -> Result<(), ExperimentError> + 'a>;
/// Evaluates a policy during training.
pub(crate) type Evaluate = Box<dyn FnMut(LoadedPolicy) -> Result<Vec<(String, f64)>, ExperimentError> + Send>;

impl<'a> Context<'a> {
    /// Spaces and sizes of the environments before wrappers, for networks.
    pub fn spec(&self) -> &'a EnvSpec {
        self.spec
    }

    /// Structure of observations and actions.
    pub fn extensions(&self) -> &'a Extensions {
        self.extensions
    }

    /// The device of environments and data, without autodiff.
    pub fn device(&self) -> &'a Device {
        self.device
    }

    /// The device of networks that learn.
    pub fn autodiff(&self) -> &'a Device {
        self.autodiff
    }

    /// What a loop needs to know of the run.
    pub fn run(&self) -> Run {
        self.run
    }

    /// Seed of the learner: each shard of a run has its own.
    pub fn seed(&self) -> u64 {
        own_seed(self.run.seed)
    }

    /// `learner`, which records if [`crate::TrainConfig::capture`] says so.
    pub fn recorded<L: Learner>(&self, mut learner: L) -> L {
        // SAFETY: the networks of this workspace own their tensors; the setting demands it of others.
        #[allow(unsafe_code, reason = "the contract of recordings")]
        unsafe {
            learner.record(self.placement.experiment.train.capture);
        }
        learner
    }

    /// See [`crate::TrainConfig::pipeline`].
    pub fn is_pipelined(&self) -> bool {
        self.placement.experiment.train.pipeline
    }

    /// The context of network `index` of the learner.
    pub fn network(&self, index: u64) -> NetworkContext<'_> {
        let (spec, extensions, seed) = (self.spec, self.extensions, self.run.seed);
        NetworkContext { spec, extensions, device: self.autodiff, seed, index }
    }

    /// Creates the environments with the wrappers of the experiment, for a discount `gamma`; `O` is their form of observations.
    ///
    /// # Errors
    /// If they cannot be created.
    pub fn envs<O: ExperimentObs>(&self, gamma: f64) -> Result<BoxedEnv<O>, ExperimentError> {
        self.placement.envs(gamma, self.device)
    }

    /// The same for another number of environments, with one thread.
    ///
    /// # Errors
    /// If they cannot be created.
    pub fn envs_of<O: ExperimentObs>(&self, n_envs: usize, gamma: f64) -> Result<BoxedEnv<O>, ExperimentError> {
        self.placement.envs_of(n_envs, gamma, self.device)
    }

    /// Number of environments of the run.
    pub fn n_envs(&self) -> usize {
        self.placement.experiment.train.n_envs
    }
}

/// The result of a training run.
#[derive(Debug)]
pub(crate) struct Trained {
    /// The last policy.
    pub policy: LoadedPolicy,
    /// Why the run ended.
    pub ending: Ending,
    /// Environment steps taken.
    pub env_steps: u64,
    /// The directory of the run.
    pub run_dir: RunDir,
}

/// The result of a trial run.
pub(crate) struct Probed {
    /// Environment steps per second of the last iteration, which includes updates if the run does updates.
    pub steps_per_sec: f64,
    /// Metrics of that iteration.
    pub metrics: Vec<(String, f64)>,
    /// Size of a checkpoint in bytes.
    pub checkpoint_bytes: usize,
}

/// An algorithm with its loop and environments.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// # use brasa_core::{Obs, OnPolicyLearner};
/// # use brasa_nn::ActorCriticRole;
/// # use brasa_train::{Checkpoint, OnPolicy, restore_policy};
/// # use std::path::Path;
/// use brasa_experiment::{App, Context, ExperimentError, Session};
/// # use brasa_experiment::{Algorithm, LoadedPolicy, NetworkPlan, Plan, PolicyContext, Sections};
///
/// # struct OwnPlan {
/// #     config: FixedConfig,
/// #     network: NetworkPlan<ActorCriticRole>,
/// # }
/// impl brasa_experiment::Plan for OwnPlan {
///     fn replays(&self) -> bool {
///         false
///     }
///     fn start(&self, context: Context<'_>) -> Result<Session, ExperimentError> {
///         let network = self.network.build(&context.network(0))?;
///         let learner = Fixed::new(network, self.config.clone(), context.seed()).map_err(ExperimentError::input)?;
///         let training = OnPolicy::new(context.envs::<Obs>(learner.gamma())?, learner, context.run())?;
///         Ok(Session::new(training, context.spec(), |policy, _| Ok(policy.clone())))
///     }
/// #     fn policy(
/// #         &self,
/// #         context: &PolicyContext<'_>,
/// #         checkpoint: &Checkpoint,
/// #         path: &Path,
/// #     ) -> Result<LoadedPolicy, ExperimentError> {
/// #         let network = restore_policy(self.network.build(&context.network())?, checkpoint, path)?;
/// #         LoadedPolicy::restored(network, context, checkpoint, path, |policy, _| Ok(policy.clone()))
/// #     }
/// }
///
/// # struct Own;
/// #
/// # impl Algorithm for Own {
/// #     fn name(&self) -> &str {
/// #         "own"
/// #     }
/// #     fn plan(&self, sections: &mut Sections<'_>) -> Result<Box<dyn Plan>, ExperimentError> {
/// #         Ok(Box::new(OwnPlan { config: sections.config("own")?, network: sections.network()? }))
/// #     }
/// # }
/// # let dir = tempfile::tempdir()?;
/// # let (config, out) = (dir.path().join("own.toml"), dir.path().join("run"));
/// # std::fs::write(&config, CONFIG.replace("[learner]", "[own]"))?;
/// # let (config, out) = (config.display().to_string(), out.display().to_string());
/// let app = App::new("own").with(registry()).algorithm(Own);
/// app.run_from(["own", "train", "--quiet", "--out", &out, &config])?;
/// assert!(std::path::Path::new(&out).join("checkpoints").is_dir());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Session(Box<dyn ErasedLoop>);

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// A loop with erased type.
trait ErasedLoop: Send {
    fn train(self: Box<Self>, setup: TrainingSetup<'_>) -> Result<Option<Trained>, ExperimentError>;
    fn probe(self: Box<Self>, time: Duration) -> Result<Probed, ExperimentError>;
}

impl Session {
    /// A loop. `spec` is [`Context::spec`]; `adapt` returns a policy with the same weights for another scenario of the same kind, such as
    /// other graphs: most policies stay as they are.
    pub fn new<T>(
        training: T,
        spec: &EnvSpec,
        adapt: impl Fn(&PolicyOf<T>, &PolicyContext<'_>) -> Result<PolicyOf<T>, ExperimentError> + Send + Sync + 'static,
    ) -> Self
    where
        T: Training + Send + 'static,
        PolicyOf<T>: Policy<Action = Tensor<2>> + Clone + Send + Sync + 'static,
        ObsOf<T>: ObsForm,
    {
        Self(Box::new(TypedLoop { training, spec: spec.clone(), adapt: Arc::new(adapt) }))
    }

    /// Trains to the end. `None` for a shard other than the first one.
    pub(crate) fn train(self, setup: TrainingSetup<'_>) -> Result<Option<Trained>, ExperimentError> {
        self.0.train(setup)
    }

    /// Trains for about `time`, for at least two iterations and until the first updates. Writes no files.
    pub(crate) fn probe(self, time: Duration) -> Result<Probed, ExperimentError> {
        self.0.probe(time)
    }
}

struct TypedLoop<T: Training> {
    training: T,
    spec: EnvSpec,
    adapt: Adapt<PolicyOf<T>>,
}

impl<T> ErasedLoop for TypedLoop<T>
where
    T: Training + Send + 'static,
    PolicyOf<T>: Policy<Action = Tensor<2>> + Clone + Send + Sync + 'static,
    ObsOf<T>: ObsForm,
{
    fn train(self: Box<Self>, setup: TrainingSetup<'_>) -> Result<Option<Trained>, ExperimentError> {
        let Self { mut training, spec, adapt } = *self;
        if let Some(path) = setup.init_from {
            training.init_from_run(&path)?;
        }
        let loaded = move |training: &T| {
            let moments = training.obs_moments().cloned();
            LoadedPolicy::adapting(training.policy(), &spec, moments, training.device(), adapt.clone())
        };
        if setup.eval_sampled {
            let policy = loaded(&training);
            policy.controller_that(true, policy.spec(), 0)?;
        }
        let mut builder = Trainer::of(training);
        let mut place = None;
        if let Some((open, begin)) = setup.place {
            let (run_dir, resumes) = open()?;
            builder = builder.in_dir(run_dir.clone(), resumes);
            place = Some((run_dir, begin));
        }
        builder = builder
            .forget_replay(setup.forget_replay)
            .checkpoint_every_secs(setup.checkpoint_secs)
            .checkpoint_every(setup.checkpoint_interval)
            .metrics_csv(setup.metrics_csv)
            .precision(setup.precision)
            .stop_on(setup.stop);
        if let Some(curves) = setup.progress {
            builder = builder.show_progress(curves);
        }
        if let Some(mut monitor) = setup.monitor {
            builder = builder.callback(move |_, iteration| {
                iteration.metrics.extend(monitor.metrics().iter().map(|(name, value)| ((*name).to_owned(), *value)));
                Ok(())
            });
        }
        if let Some(every) = setup.cleanup_interval {
            let mut done = 0;
            builder = builder.callback(move |training: &T, iteration| {
                if iteration.env_steps / every != done {
                    done = iteration.env_steps / every;
                    training.device().memory_cleanup();
                }
                Ok(())
            });
        }
        if let Some((every, mut evaluate)) = setup.evaluation {
            let loaded = loaded.clone();
            builder = builder.measure_every(every, move |training| {
                evaluate(loaded(training)).map_err(|error| brasa_train::TrainError::Evaluation(Box::new(error)))
            });
        }
        let mut trainer = builder.build()?;
        let run_dir = match place {
            Some((run_dir, begin)) => {
                begin(&run_dir)?;
                Some(run_dir)
            }
            None => None,
        };
        let ending = trainer.run()?;
        let training = trainer.training();
        let trained =
            |run_dir| Trained { policy: loaded(training), ending, env_steps: training.counters().env_steps, run_dir };
        Ok(run_dir.map(trained))
    }

    fn probe(self: Box<Self>, time: Duration) -> Result<Probed, ExperimentError> {
        let mut training = self.training;
        let begin = Instant::now();
        for round in 1.. {
            let (before, round_begin) = (training.counters().clone(), Instant::now());
            let iteration = training.iterate()?;
            let now = training.counters();
            // An off-policy loop does not update at first; an on-policy loop does not count updates.
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
