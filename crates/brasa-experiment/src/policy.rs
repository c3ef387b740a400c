//! Policies of any algorithm, ready to act.

use std::any::Any;
use std::path::Path;
use std::rc::Rc;

use brasa_core::{ObsForm, Policy, PolicyController};
use brasa_env::wrappers::RunningMoments;
use brasa_env::{BatchSlabs, Controller, EnvError, EnvSpec, Extensions};
use brasa_train::{Checkpoint, restore_moments};
use burn::tensor::{Device, Tensor};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};

use crate::ExperimentError;
use crate::registry::PolicyContext;

/// A trained policy that acts without exploring, whatever its algorithm and its network are.
#[derive(Clone)]
pub struct LoadedPolicy {
    actor: Rc<dyn Actor>,
    spec: EnvSpec,
    moments: Option<RunningMoments>,
    device: Device,
}

/// The same policy for a scenario that says something else.
pub(crate) type Adapt<P> = Box<dyn Fn(&P, &PolicyContext<'_>) -> Result<P, ExperimentError>>;

impl LoadedPolicy {
    /// A policy on `device` without autodiff, with the moments that observations were normalized with.
    pub(crate) fn new<P>(
        policy: P,
        spec: &EnvSpec,
        moments: Option<RunningMoments>,
        device: &Device,
        adapt: Adapt<P>,
    ) -> Self
    where
        P: Policy<Action = Tensor<2>> + Clone + 'static,
        P::Obs: ObsForm,
    {
        let actor = Rc::new(Acting { policy, adapt: Rc::new(adapt) });
        Self { actor, spec: spec.clone(), moments, device: device.clone() }
    }

    /// A policy with the moments of its checkpoint.
    pub(crate) fn restored<P>(
        policy: P,
        context: &PolicyContext<'_>,
        checkpoint: &Checkpoint,
        path: &Path,
        adapt: Adapt<P>,
    ) -> Result<Self, ExperimentError>
    where
        P: Policy<Action = Tensor<2>> + Clone + 'static,
        P::Obs: ObsForm,
    {
        let moments = restore_moments(checkpoint, path)?;
        Ok(Self::new(policy, context.spec, moments, context.device, adapt))
    }

    /// What is constant about the environments that it was trained in.
    pub fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    /// Where it acts.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// `[n_rows, action width]`: the actions for rows of observations `[n_rows, obs width]` and, where there are any, masks
    /// `[n_rows, n_actions]`, in the form that environments take.
    ///
    /// # Panics
    /// If the width of the rows is another.
    pub fn act(&self, obs: ArrayView2<f32>, mask: Option<ArrayView2<f32>>) -> Array2<f32> {
        self.actor.decide_rows(self, obs, mask)
    }

    /// The policy for environments of `spec`, as whoever decides there.
    pub fn controller(&self, spec: &EnvSpec) -> Box<dyn Controller> {
        self.actor.controller(&Self { spec: spec.clone(), ..self.clone() })
    }

    /// The same weights for a scenario that says something else about its numbers: for other graphs, say.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] where the scenario does not suit the network.
    pub fn adapted(&self, spec: &EnvSpec, extensions: &Extensions) -> Result<Self, ExperimentError> {
        let context = PolicyContext { spec, extensions, device: &self.device };
        Ok(Self { actor: self.actor.adapted(&context)?, spec: spec.clone(), ..self.clone() })
    }

    /// The policy in its own type, if it is `P`: for reports that look inside.
    pub fn downcast_ref<P: 'static>(&self) -> Option<&P> {
        self.actor.as_any().downcast_ref()
    }
}

impl Controller for LoadedPolicy {
    fn act(&mut self, view: &BatchSlabs, actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
        self.actor.controller(self).act(view, actions)
    }
}

/// A policy behind a pointer.
trait Actor {
    fn controller(&self, of: &LoadedPolicy) -> Box<dyn Controller>;
    fn decide_rows(&self, of: &LoadedPolicy, obs: ArrayView2<f32>, mask: Option<ArrayView2<f32>>) -> Array2<f32>;
    fn adapted(&self, context: &PolicyContext<'_>) -> Result<Rc<dyn Actor>, ExperimentError>;
    fn as_any(&self) -> &dyn Any;
}

struct Acting<P> {
    policy: P,
    adapt: Rc<Adapt<P>>,
}

impl<P> Acting<P>
where
    P: Policy<Action = Tensor<2>> + Clone + 'static,
    P::Obs: ObsForm,
{
    fn on_host(&self, of: &LoadedPolicy) -> PolicyController<P> {
        PolicyController::new(self.policy.clone(), &of.spec, of.moments.clone(), &of.device)
    }
}

impl<P> Actor for Acting<P>
where
    P: Policy<Action = Tensor<2>> + Clone + 'static,
    P::Obs: ObsForm,
{
    fn controller(&self, of: &LoadedPolicy) -> Box<dyn Controller> {
        Box::new(self.on_host(of))
    }

    fn decide_rows(&self, of: &LoadedPolicy, obs: ArrayView2<f32>, mask: Option<ArrayView2<f32>>) -> Array2<f32> {
        self.on_host(of).decide_rows(obs, mask)
    }

    fn adapted(&self, context: &PolicyContext<'_>) -> Result<Rc<dyn Actor>, ExperimentError> {
        let policy = (self.adapt)(&self.policy, context)?;
        Ok(Rc::new(Self { policy, adapt: Rc::clone(&self.adapt) }))
    }

    fn as_any(&self) -> &dyn Any {
        &self.policy
    }
}
