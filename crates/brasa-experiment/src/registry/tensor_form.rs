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
pub type MakeEnv<O> =
    Box<dyn Fn(&dyn Scenario, &TrainConfig, &Device, bool) -> Result<BoxedEnv<O>, ExperimentError> + Send + Sync>;

/// Constructors of a scenario's environments on a device, for each form of observations.
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
/// use brasa_core::{Obs, TeamObs};
/// use brasa_experiment::{BoxedEnv, Context, ExperimentError, ExperimentObs};
///
/// /// The environments of a run with a discount of 0.99, for single agents or teams.
/// fn envs<O: ExperimentObs>(context: &Context<'_>) -> Result<BoxedEnv<O>, ExperimentError> {
///     context.envs(0.99)
/// }
///
/// # type Envs<O> = fn(&Context<'_>) -> Result<BoxedEnv<O>, ExperimentError>;
/// let (_of_rows, _of_team): (Envs<Obs>, Envs<TeamObs>) = (envs, envs);
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
        Ok(match (train.normalize_obs, replays) {
            (true, true) => Box::new(env.watching()?),
            (true, false) => Box::new(env.normalizing()?),
            (false, _) => Box::new(env),
        })
    })
}
