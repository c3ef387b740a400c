//! A policy as a controller on the host.

use brasa_env::wrappers::RunningMoments;
use brasa_env::{BatchSlabs, Controller, EnvError, EnvSpec};
use burn::tensor::{Device, Tensor};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};

use crate::{Explore, ObsForm, ObsParts, Policy, read_back};

/// Turns a policy without exploration into a [`Controller`] for evaluation, comparison or an application.
///
/// A decision has one upload per part of the observation and one read-back.
#[derive(Debug, Clone)]
pub struct PolicyController<P> {
    policy: P,
    spec: EnvSpec,
    moments: Option<RunningMoments>,
    device: Device,
}

impl<P> PolicyController<P> {
    /// `policy` is on `device` without autodiff and fits environments of `spec`, in any number.
    /// `moments` are those of the observation normalization in training.
    pub fn new(policy: P, spec: &EnvSpec, moments: Option<RunningMoments>, device: &Device) -> Self {
        Self { policy, spec: spec.clone(), moments, device: device.clone() }
    }

    /// The wrapped policy.
    pub fn policy(&self) -> &P {
        &self.policy
    }
}

impl<P> PolicyController<P>
where
    P: Policy<Action = Tensor<2>>,
    P::Obs: ObsForm,
{
    /// `[n_rows, action width]`: the actions for the observations of `view`, in the form that environments take.
    pub fn decide(&self, view: &BatchSlabs) -> Array2<f32> {
        let normalized = self.moments.as_ref().map(|moments| {
            let mut view = view.clone();
            moments.normalize(view.obs.view_mut());
            view
        });
        let view = normalized.as_ref().unwrap_or(view);
        self.act_on(P::Obs::assemble(ObsParts::upload(&self.spec, view, &self.device)))
    }

    /// `[n_rows, action width]`: the actions for rows of observations and an optional mask, for programs without an
    /// environment. The observations have no part that agents share.
    ///
    /// # Panics
    /// If the width of the rows differs from that of the observations.
    pub fn decide_rows(&self, obs: ArrayView2<f32>, mask: Option<ArrayView2<f32>>) -> Array2<f32> {
        assert_eq!(obs.ncols(), self.spec.obs.width(), "width of an observation");
        let n_envs = obs.nrows() / self.spec.n_agents;
        let mut view = BatchSlabs::new(&EnvSpec { shared_width: 0, ..self.spec.with_n_envs(n_envs) });
        view.obs.assign(&obs);
        if let Some(mask) = mask {
            view.mask.assign(&mask);
        }
        self.decide(&view)
    }

    fn act_on(&self, obs: P::Obs) -> Array2<f32> {
        let (action, _) = self.policy.act(obs, Explore::Greedy);
        let action = self.policy.to_env(action);
        let shape = action.dims();
        Array2::from_shape_vec(shape, read_back(action)).expect("a tensor's data has the tensor's shape")
    }
}

impl<P> Controller for PolicyController<P>
where
    P: Policy<Action = Tensor<2>>,
    P::Obs: ObsForm,
{
    fn act(&mut self, view: &BatchSlabs, mut actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
        let decided = self.decide(view);
        crate::host_env::check_actions(decided.view(), self.spec.n_agents)?;
        actions.assign(&decided);
        Ok(())
    }
}
