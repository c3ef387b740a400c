//! Trained policies of any algorithm.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use brasa_core::{ObsForm, Policy, PolicyController};
use brasa_env::wrappers::RunningMoments;
use brasa_env::{BatchSlabs, Controller, EnvError, EnvSpec, Extensions};
use brasa_export::{ExportedPolicy, Layer};
use brasa_train::{Checkpoint, restore_moments};
use burn::tensor::{Device, Tensor};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};

use crate::ExperimentError;
use crate::columns::columns;
use crate::registry::PolicyContext;

/// A trained policy of any algorithm and network. It acts without exploration.
///
/// It can move to another thread; for several threads at a time, every one gets a clone, or a lock guards it.
#[derive(Clone)]
pub struct LoadedPolicy {
    actor: Box<dyn Actor>,
    spec: EnvSpec,
    moments: Option<RunningMoments>,
    device: Device,
    env_steps: Option<u64>,
}

/// Adapts a policy to a scenario with other extensions, such as other graphs.
pub(crate) type Adapt<P> = Box<dyn Fn(&P, &PolicyContext<'_>) -> Result<P, ExperimentError> + Send + Sync>;

impl LoadedPolicy {
    /// A policy on `device` without autodiff, with the moments that normalize its observations.
    pub(crate) fn new<P>(
        policy: P,
        spec: &EnvSpec,
        moments: Option<RunningMoments>,
        device: &Device,
        adapt: Adapt<P>,
    ) -> Self
    where
        P: Policy<Action = Tensor<2>> + Clone + Send + 'static,
        P::Obs: ObsForm,
    {
        let actor = Box::new(Acting { policy, adapt: Arc::new(adapt) });
        Self { actor, spec: spec.clone(), moments, device: device.clone(), env_steps: None }
    }

    /// A policy of another form, on normalized or raw observations as it needs them.
    pub(crate) fn acting(actor: Box<dyn Actor>, spec: &EnvSpec, device: &Device) -> Self {
        Self { actor, spec: spec.clone(), moments: None, device: device.clone(), env_steps: None }
    }

    /// A policy with the moments of a checkpoint.
    pub(crate) fn restored<P>(
        policy: P,
        context: &PolicyContext<'_>,
        checkpoint: &Checkpoint,
        path: &Path,
        adapt: Adapt<P>,
    ) -> Result<Self, ExperimentError>
    where
        P: Policy<Action = Tensor<2>> + Clone + Send + 'static,
        P::Obs: ObsForm,
    {
        let moments = restore_moments(checkpoint, path)?;
        let policy = Self::new(policy, context.spec, moments, context.device, adapt);
        Ok(Self { env_steps: Some(checkpoint.env_steps), ..policy })
    }

    /// The constants of the training environments.
    pub fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    /// The device of the policy.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Steps of the environments until its checkpoint was written; `None` for a policy that comes from no checkpoint.
    pub fn env_steps(&self) -> Option<u64> {
        self.env_steps
    }

    /// Actions `[n_rows, action width]` for observations `[n_rows, obs width]` and, if the environments have them, masks
    /// `[n_rows, n_actions]`. The actions have the form that environments take.
    ///
    /// Invalid input is no plausible action, as in [`ExportedPolicy::act`]: where an observation is NaN or names a graph or node that does not
    /// exist, continuous actions are NaN and choices are [`NO_ACTION`](brasa_export::NO_ACTION). A choice is
    /// [`NO_ACTION`](brasa_export::NO_ACTION) too if a score or a number of its mask is NaN, or no action is legal.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for rows that do not have the sizes of the training environments, and for a mask that is missing where they
    /// have masks, see [`EnvSpec::check_rows`].
    pub fn act(&self, obs: ArrayView2<f32>, mask: Option<ArrayView2<f32>>) -> Result<Array2<f32>, EnvError> {
        self.spec.check_rows(obs, mask)?;
        self.actor.decide_rows(self, obs, mask)
    }

    /// The policy as a controller for environments of `spec`.
    pub fn controller(&self, spec: &EnvSpec) -> Box<dyn Controller> {
        self.actor.controller(&Self { spec: spec.clone(), ..self.clone() })
    }

    /// The policy with the same weights for a scenario with other extensions, such as other graphs.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] if the network does not support the scenario.
    pub fn adapted(&self, spec: &EnvSpec, extensions: &Extensions) -> Result<Self, ExperimentError> {
        let context = PolicyContext { spec, extensions, device: &self.device };
        Ok(Self { actor: self.actor.adapted(&context)?, spec: spec.clone(), ..self.clone() })
    }

    /// The policy as a list of layers, with the normalization of observations, for other programs.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] if its network has no such form.
    pub fn exported(&self) -> Result<ExportedPolicy, ExperimentError> {
        let mut policy = self.actor.exported().ok_or_else(|| {
            ExperimentError::Input(
                "this network cannot be exported: it is more than a list of layers on flat observations".into(),
            )
        })?;
        if let Some(moments) = &self.moments {
            let (mean, deviation, clip) = moments.normalization();
            policy.layers.insert(0, Layer::Normalize { mean, deviation, clip });
        }
        policy.masked = self.spec.mask.is_some();
        policy.about.obs = columns(&self.spec.obs);
        policy.about.actions = columns(&self.spec.action);
        policy.validate().map_err(ExperimentError::input)?;
        Ok(policy)
    }

    /// The policy as type `P`, if it has this type: for reports that show its internals.
    pub fn downcast_ref<P: 'static>(&self) -> Option<&P> {
        self.actor.as_any().downcast_ref()
    }
}

impl Controller for LoadedPolicy {
    fn act(&mut self, view: &BatchSlabs, actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
        self.actor.controller(self).act(view, actions)
    }
}

/// A policy with erased type.
pub(crate) trait Actor: Send {
    fn boxed(&self) -> Box<dyn Actor>;
    fn controller(&self, of: &LoadedPolicy) -> Box<dyn Controller>;
    /// Rows that [`EnvSpec::check_rows`] accepts.
    fn decide_rows(
        &self,
        of: &LoadedPolicy,
        obs: ArrayView2<f32>,
        mask: Option<ArrayView2<f32>>,
    ) -> Result<Array2<f32>, EnvError>;
    fn adapted(&self, context: &PolicyContext<'_>) -> Result<Box<dyn Actor>, ExperimentError>;
    fn as_any(&self) -> &dyn Any;
    fn exported(&self) -> Option<ExportedPolicy>;
}

impl Clone for Box<dyn Actor> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

struct Acting<P> {
    policy: P,
    adapt: Arc<Adapt<P>>,
}

impl<P> Acting<P>
where
    P: Policy<Action = Tensor<2>> + Clone + Send + 'static,
    P::Obs: ObsForm,
{
    fn on_host(&self, of: &LoadedPolicy) -> PolicyController<P> {
        PolicyController::new(self.policy.clone(), &of.spec, of.moments.clone(), &of.device)
    }
}

impl<P> Actor for Acting<P>
where
    P: Policy<Action = Tensor<2>> + Clone + Send + 'static,
    P::Obs: ObsForm,
{
    fn boxed(&self) -> Box<dyn Actor> {
        Box::new(Self { policy: self.policy.clone(), adapt: Arc::clone(&self.adapt) })
    }

    fn controller(&self, of: &LoadedPolicy) -> Box<dyn Controller> {
        Box::new(self.on_host(of))
    }

    fn decide_rows(
        &self,
        of: &LoadedPolicy,
        obs: ArrayView2<f32>,
        mask: Option<ArrayView2<f32>>,
    ) -> Result<Array2<f32>, EnvError> {
        self.on_host(of).decide_rows(obs, mask)
    }

    fn adapted(&self, context: &PolicyContext<'_>) -> Result<Box<dyn Actor>, ExperimentError> {
        let policy = (self.adapt)(&self.policy, context)?;
        Ok(Box::new(Self { policy, adapt: Arc::clone(&self.adapt) }))
    }

    fn as_any(&self) -> &dyn Any {
        &self.policy
    }

    fn exported(&self) -> Option<ExportedPolicy> {
        self.policy.exported()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_env::{Space, named_rng};
    use brasa_nn::{ActorCriticConfig, MlpActorCritic};
    use burn::module::Module;
    use rand::RngExt;

    /// Observations with means that 32 bits cannot tell from others in their deviation.
    #[test]
    fn exported_policies_act_alike_far_from_0() {
        let (device, rng) = (brasa_test::device(), &mut named_rng(0, "test", 0));
        let means = [5_712_345.3, -12_345_678.9, 0.25];
        let spec = EnvSpec::new(Space::uniform_box(-1e9, 1e9, ["clock", "east", "x"]), Space::Discrete(5), 1);
        let config = ActorCriticConfig { orthogonal: false, ..ActorCriticConfig::default() };
        let network = MlpActorCritic::new(&config, &spec.obs, &spec.action, &device.clone().autodiff(), rng);
        let moments = RunningMoments { count: 1000.0, mean: means.into(), squares: vec![4000.0, 9000.0, 70.0] };
        let adapt = Box::new(|policy: &MlpActorCritic, _: &PolicyContext<'_>| Ok(policy.clone()));
        let policy = LoadedPolicy::new(network.expect("valid").valid(), &spec, Some(moments), &device, adapt);
        let obs = Array2::from_shape_fn((4000, 3), |(_, column)| (means[column] + rng.random_range(-5.0..5.0)) as f32);
        let expected = policy.act(obs.view(), None).expect("they fit");
        let exported = policy.exported().expect("it has layers");
        let file = ExportedPolicy::from_safetensors(&exported.to_safetensors()).expect("it was just written");
        let rows: Vec<f32> = obs.iter().copied().collect();
        for exported in [exported, file] {
            let got = exported.act(&rows, None);
            let others = got.iter().zip(&expected).filter(|(got, expected)| got != expected).count();
            assert_eq!(others, 0, "actions of 4000");
        }
        let distinct = |action: f32| expected.iter().any(|other| *other == action);
        assert!((0..5).filter(|action| distinct(*action as f32)).count() > 2, "one action alone shows nothing");
    }
}
