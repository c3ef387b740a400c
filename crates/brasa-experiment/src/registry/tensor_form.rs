//! Scenarios as tensor operations, for training without leaving the device.

use std::any::Any;

use brasa_core::{Obs, ObsForm, TeamObs, TensorDynamics, TensorEnv, VecEnv};
use brasa_env::Scenario;
use burn::tensor::{Device, Tensor};

use crate::{ExperimentError, TrainConfig};

/// Environments of a training run.
///
/// ```
/// use brasa_classic::Classic;
/// use brasa_core::{HostEnv, Obs, VecEnv};
/// use brasa_env::{Scenario, Split};
/// use brasa_experiment::BoxedEnv;
///
/// # let device = brasa_device::open_named("cpu")?;
/// let envs = HostEnv::new(Classic::cart_pole().envs(Split::Train, 0..4)?, &device);
/// let mut envs: BoxedEnv<Obs> = Box::new(envs);
/// envs.reset(0)?;
/// assert_eq!((envs.n_envs(), envs.spec().obs.width()), (4, 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type BoxedEnv<O> = Box<dyn VecEnv<Obs = O, Action = Tensor<2>>>;

/// Creates the environments of a training run on a device. The flag says whether the algorithm replays.
///
/// ```
/// use brasa_classic::Classic;
/// use brasa_core::{HostEnv, Obs, VecEnv};
/// use brasa_env::Split;
/// use brasa_experiment::{MakeEnv, TrainConfig};
///
/// # let device = brasa_device::open_named("cpu")?;
/// let make: MakeEnv<Obs> = Box::new(|scenario, train, device, _replays| {
///     let envs = scenario.envs(Split::Train, 0..train.n_envs)?;
///     Ok(Box::new(HostEnv::new(envs, device)))
/// });
/// let envs = make(&Classic::cart_pole(), &TrainConfig { n_envs: 4, ..Default::default() }, &device, false)?;
/// assert_eq!(envs.n_envs(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type MakeEnv<O> =
    Box<dyn Fn(&dyn Scenario, &TrainConfig, &Device, bool) -> Result<BoxedEnv<O>, ExperimentError> + Send + Sync>;

/// Constructors of a scenario's environments on a device, for each form of observations.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// use brasa_classic::{Classic, tensor::TensorCartPole};
/// use brasa_experiment::{App, NoSettings, ScenarioEntry};
///
/// # let dir = tempfile::tempdir()?;
/// # let (config, out) = (written(dir.path()), dir.path().join("run").display().to_string());
/// let make = |_: NoSettings| Ok::<_, std::convert::Infallible>(Classic::cart_pole());
/// let entry = ScenarioEntry::new("pole", make);
/// // The rules of the scenario on a device, with the time limit in steps.
/// let entry = entry.tensor(|pole, _device| {
///     Ok::<_, std::convert::Infallible>((TensorCartPole::default(), Some(pole.time_limit())))
/// });
/// let app = App::new("room").with(registry()).scenario(entry);
/// app.run_from(["room", "train", "--quiet", "--out", &out, "--set", "train.env_device=device", &config])?;
/// assert!(dir.path().join("run/checkpoints").is_dir());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TensorForm {
    rows: MakeEnv<Obs>,
    team: MakeEnv<TeamObs>,
}

impl std::fmt::Debug for TensorForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TensorForm").finish_non_exhaustive()
    }
}

/// A form of observations that algorithms of experiments learn from.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// # use brasa_core::{Obs, OnPolicyLearner};
/// # use brasa_nn::ActorCriticRole;
/// # use brasa_train::{Checkpoint, OnPolicy, restore_policy};
/// # use std::path::Path;
/// use brasa_experiment::{BoxedEnv, Context, ExperimentError, ExperimentObs};
/// # use brasa_experiment::{Algorithm, App, LoadedPolicy, NetworkPlan, Plan, PolicyContext, Sections, Session};
///
/// /// The environments of a run with a discount of 0.99, for single agents or teams.
/// fn envs<O: ExperimentObs>(context: &Context<'_>) -> Result<BoxedEnv<O>, ExperimentError> {
///     context.envs(0.99)
/// }
/// # struct OwnPlan {
/// #     config: FixedConfig,
/// #     network: NetworkPlan<ActorCriticRole>,
/// # }
/// # impl Plan for OwnPlan {
/// #     fn replays(&self) -> bool {
/// #         false
/// #     }
/// #     fn start(&self, context: Context<'_>) -> Result<Session, ExperimentError> {
/// #         let network = self.network.build(&context.network(0))?;
/// #         let learner = Fixed::new(network, self.config.clone(), context.seed()).map_err(ExperimentError::input)?;
/// #         let training = OnPolicy::new(envs::<Obs>(&context)?, learner, context.run())?;
/// #         Ok(Session::new(training, context.spec(), |policy, _| Ok(policy.clone())))
/// #     }
/// #     fn policy(
/// #         &self,
/// #         context: &PolicyContext<'_>,
/// #         checkpoint: &Checkpoint,
/// #         path: &Path,
/// #     ) -> Result<LoadedPolicy, ExperimentError> {
/// #         let network = restore_policy(self.network.build(&context.network())?, checkpoint, path)?;
/// #         LoadedPolicy::restored(network, context, checkpoint, path, |policy, _| Ok(policy.clone()))
/// #     }
/// # }
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
/// // The plan of `Own` calls `envs::<Obs>`.
/// # let dir = tempfile::tempdir()?;
/// # let (config, out) = (dir.path().join("own.toml"), dir.path().join("run"));
/// # std::fs::write(&config, CONFIG.replace("[learner]", "[own]"))?;
/// # let (config, out) = (config.display().to_string(), out.display().to_string());
/// let app = App::new("own").with(registry()).algorithm(Own);
/// app.run_from(["own", "train", "--quiet", "--out", &out, &config])?;
/// assert!(std::path::Path::new(&out).join("checkpoints").is_dir());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ExperimentObs: ObsForm + 'static {
    /// The constructor for observations of this form; `None` if there is none.
    fn maker(_form: &TensorForm) -> Option<&MakeEnv<Self>> {
        None
    }
}

impl ExperimentObs for Obs {
    fn maker(form: &TensorForm) -> Option<&MakeEnv<Self>> {
        Some(&form.rows)
    }
}

impl ExperimentObs for TeamObs {
    fn maker(form: &TensorForm) -> Option<&MakeEnv<Self>> {
        Some(&form.team)
    }
}

impl TensorForm {
    /// `dynamics` gives the rules and the time limit in steps.
    pub(crate) fn new<S, D, E>(
        dynamics: impl Fn(&S, &Device) -> Result<(D, Option<u32>), E> + Clone + Send + Sync + 'static,
    ) -> Self
    where
        S: Scenario,
        D: TensorDynamics + 'static,
        E: std::error::Error + 'static,
    {
        Self { rows: maker(dynamics.clone()), team: maker(dynamics) }
    }
}

fn maker<S, D, O, E>(
    dynamics: impl Fn(&S, &Device) -> Result<(D, Option<u32>), E> + Send + Sync + 'static,
) -> MakeEnv<O>
where
    S: Scenario,
    D: TensorDynamics + 'static,
    O: ObsForm + 'static,
    E: std::error::Error + 'static,
{
    Box::new(move |scenario, train, device, replays| {
        let any: &dyn Any = scenario;
        let Some(scenario) = any.downcast_ref::<S>() else {
            return Err(ExperimentError::Input("the scenario of an evaluation has no tensor form".into()));
        };
        let (dynamics, limit) = dynamics(scenario, device).map_err(ExperimentError::input)?;
        let mut env = TensorEnv::<D, O>::in_form(dynamics, train.n_envs, device)?
            .scaling_rewards(train.reward_scale)
            .smoothing_rewards(train.reward_smooth_lambda)?;
        if let Some(limit) = limit {
            env = env.with_time_limit(limit)?;
        }
        if train.central_critic {
            env = env.joining()?;
        }
        Ok(match (train.normalize_obs, replays) {
            (true, true) => Box::new(env.watching()?),
            (true, false) => Box::new(env.normalizing()?),
            (false, _) => Box::new(env),
        })
    })
}
