//! Scenarios as tensor operations, for training without leaving the device.

use std::any::Any;

use brasa_core::{Obs, ObsForm, TeamObs, TensorDynamics, TensorEnv, VecEnv};
use brasa_env::Scenario;
use burn::tensor::{Device, Tensor};

use crate::{ExperimentError, TrainConfig};

/// Environments of a training run.
pub type BoxedEnv<O> = Box<dyn VecEnv<Obs = O, Action = Tensor<2>>>;

type Make<O> = Box<dyn Fn(&dyn Scenario, &TrainConfig, &Device) -> Result<BoxedEnv<O>, ExperimentError> + Send + Sync>;

/// Constructors of a scenario's environments on a device, for each form of observations.
pub struct TensorForm {
    rows: Make<Obs>,
    team: Make<TeamObs>,
}

/// A form of observations that algorithms of experiments learn from.
pub trait ExperimentObs: ObsForm + 'static {
    /// Creates the environments on `device`; `None` if there are none with observations of this form.
    ///
    /// # Errors
    /// If the scenario cannot be computed on a device with these settings.
    fn on_device(
        _form: &TensorForm,
        _scenario: &dyn Scenario,
        _train: &TrainConfig,
        _device: &Device,
    ) -> Option<Result<BoxedEnv<Self>, ExperimentError>> {
        None
    }
}

impl ExperimentObs for Obs {
    fn on_device(
        form: &TensorForm,
        scenario: &dyn Scenario,
        train: &TrainConfig,
        device: &Device,
    ) -> Option<Result<BoxedEnv<Self>, ExperimentError>> {
        Some((form.rows)(scenario, train, device))
    }
}

impl ExperimentObs for TeamObs {
    fn on_device(
        form: &TensorForm,
        scenario: &dyn Scenario,
        train: &TrainConfig,
        device: &Device,
    ) -> Option<Result<BoxedEnv<Self>, ExperimentError>> {
        Some((form.team)(scenario, train, device))
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

fn maker<S, D, O, E>(dynamics: impl Fn(&S, &Device) -> Result<(D, Option<u32>), E> + Send + Sync + 'static) -> Make<O>
where
    S: Scenario,
    D: TensorDynamics + 'static,
    O: ObsForm + 'static,
    E: std::error::Error + 'static,
{
    Box::new(move |scenario, train, device| {
        let any: &dyn Any = scenario;
        let Some(scenario) = any.downcast_ref::<S>() else {
            return Err(ExperimentError::Input("the scenario of an evaluation has no tensor form".into()));
        };
        let (dynamics, limit) = dynamics(scenario, device).map_err(ExperimentError::input)?;
        let mut env = TensorEnv::<D, O>::in_form(dynamics, train.n_envs, device)?.scaling_rewards(train.reward_scale);
        if let Some(limit) = limit {
            env = env.with_time_limit(limit)?;
        }
        Ok(match train.normalize_obs {
            true => Box::new(env.normalizing()?),
            false => Box::new(env),
        })
    })
}
