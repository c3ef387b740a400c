//! A training run of an experiment, from the first environment to the trained policy.

use std::path::PathBuf;
use std::rc::Rc;

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
    pub(crate) open: OpenRunDir<'a>,
    pub(crate) begin: BeginRun<'a>,
    pub(crate) checkpoint_secs: f64,
    /// A run whose weights this one begins with.
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

/// Runs a loop with everything around it.
pub(crate) fn run<T>(
    training: T,
    context: Context<'_>,
    adapt: impl Fn() -> Adapt<PolicyOf<T>> + 'static,
) -> Result<Trained, ExperimentError>
where
    T: Training,
    PolicyOf<T>: Policy<Action = Tensor<2>> + Clone + 'static,
    ObsOf<T>: ObsForm,
{
    let spec = context.spec.clone();
    let adapt = Rc::new(adapt);
    let loaded = {
        let adapt = Rc::clone(&adapt);
        move |training: &T| {
            let moments = training.obs_moments().cloned();
            LoadedPolicy::new(training.policy(), &spec, moments, training.device(), adapt())
        }
    };
    let (run_dir, resumes) = (context.open)()?;
    let mut builder = Trainer::of(training)
        .in_dir(run_dir.clone(), resumes)
        .checkpoint_every_secs(context.checkpoint_secs)
        .stop_on(context.stop);
    if let Some(path) = context.init_from {
        builder = builder.init_from(path);
    }
    if let Some(curves) = context.progress {
        builder = builder.show_progress(curves);
    }
    if let Some((every, mut evaluate)) = context.evaluation {
        let loaded = loaded.clone();
        builder = builder.measure_every(every, move |training| {
            evaluate(loaded(training)).map_err(|error| brasa_train::TrainError::Evaluation(Box::new(error)))
        });
    }
    let mut trainer = builder.build()?;
    (context.begin)(&run_dir)?;
    let ending = trainer.run()?;
    let training = trainer.training();
    Ok(Trained { policy: loaded(training), ending, env_steps: training.counters().env_steps, run_dir })
}
