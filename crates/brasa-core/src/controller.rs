//! A policy as a controller on the host.

use std::ops::Range;

use brasa_env::wrappers::RunningMoments;
use brasa_env::{BatchSlabs, Controller, EnvError, EnvSpec, InvalidField};
use brasa_export::NO_ACTION;
use burn::tensor::{Device, Tensor};
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, s};

use crate::{Explore, ObsForm, ObsParts, Policy, PolicyState, read_back};

/// A row, or a choice of it, that has no action.
struct Unknown {
    row: usize,
    head: Option<usize>,
    /// The columns of its mask.
    flags: Range<usize>,
    reason: &'static str,
}

/// Turns a policy without exploration into a [`Controller`] for evaluation, comparison or an application.
///
/// A decision has one upload per part of the observation and one read-back.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/policies.inc")); }
/// # use shown::*;
/// use brasa_core::{Greedy, PolicyController, PolicyState};
/// use brasa_env::{EnvSpec, Space};
/// use ndarray::array;
///
/// // `Distance` has a higher value for a step to the left (0) where the place is positive.
/// let device = brasa_device::open_named("cpu")?;
/// let spec = EnvSpec::new(Space::uniform_box(-9.0, 9.0, ["place"]), Space::Discrete(2), 1);
/// let controller = PolicyController::new(Greedy(Distance), &spec, None, &device);
/// let places = array![[2.0], [-3.0]];
/// let actions = controller.decide_rows(places.view(), None, &mut PolicyState::default())?;
/// assert_eq!(actions, array![[0.0], [1.0]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct PolicyController<P> {
    policy: P,
    spec: EnvSpec,
    moments: Option<RunningMoments>,
    device: Device,
    /// What the policy remembers of the environments that it controls.
    state: PolicyState,
}

impl<P> PolicyController<P> {
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
    /// `policy` is on `device` without autodiff and acts in environments of `spec`, in any number.
    /// `moments` are those of the observation normalization in training.
    ///
    /// # Panics
    /// If the network of the policy has other sizes than the spaces of `spec` ([`Policy::sizes`]).
    #[track_caller]
    pub fn new(policy: P, spec: &EnvSpec, moments: Option<RunningMoments>, device: &Device) -> Self {
        if let Some(Err(error)) = policy.sizes().map(|sizes| sizes.check_acting(spec)) {
            panic!("a policy for other environments: {error}");
        }
        Self { policy, spec: spec.clone(), moments, device: device.clone(), state: PolicyState::default() }
    }

    /// `[n_rows, action width]`: the actions for the observations of `view`, in the form that environments take. `state` is what the policy
    /// remembers, which it replaces; a default one is that of episodes that begin.
    ///
    /// Where an observation is NaN, or names what the network does not have, continuous actions are NaN and choices are [`NO_ACTION`]. A choice
    /// is [`NO_ACTION`] too where the mask is NaN, no action is legal, or the network computes NaN.
    pub fn decide(&self, view: &BatchSlabs, state: &mut PolicyState) -> Array2<f32> {
        self.decide_known(view, state).0
    }

    /// Writes [`PolicyController::decide`] to `actions`.
    ///
    /// # Errors
    /// [`EnvError::NoAction`] for a row that has no action.
    pub fn decide_into(
        &self,
        view: &BatchSlabs,
        state: &mut PolicyState,
        mut actions: ArrayViewMut2<f32>,
    ) -> Result<(), EnvError> {
        let (mut decided, unknown) = self.decide_known(view, state);
        if let Some((row, reason)) = unknown {
            return Err(EnvError::NoAction { env: row / self.spec.n_agents, reason });
        }
        for mut row in decided.rows_mut() {
            let choices = row.iter_mut().take(self.spec.action.heads().len());
            choices.filter(|choice| **choice == NO_ACTION).for_each(|choice| *choice = f32::NAN);
        }
        crate::host_env::check_actions(decided.view(), self.spec.n_agents)?;
        actions.assign(&decided);
        Ok(())
    }

    /// `[n_rows, action width]`: the actions for rows of observations and masks, for programs without an environment. The observations have
    /// no part that agents share, and a mask has one flag per action. Rows without an action are as in [`PolicyController::decide`].
    ///
    /// # Errors
    /// [`EnvError::Argument`] for rows that [`EnvSpec::check_rows`] rejects, and for flags that differ within
    /// [`MaskSpec::actions_per_flag`](brasa_env::MaskSpec).
    pub fn decide_rows(
        &self,
        obs: ArrayView2<f32>,
        mask: Option<ArrayView2<f32>>,
        state: &mut PolicyState,
    ) -> Result<Array2<f32>, EnvError> {
        self.spec.check_rows(obs, mask)?;
        let n_envs = obs.nrows() / self.spec.n_agents;
        let mut view = BatchSlabs::new(&EnvSpec { shared_width: 0, ..self.spec.with_n_envs(n_envs) });
        view.obs.assign(&obs);
        if let Some(mask) = mask {
            let span = self.spec.actions_per_flag();
            let flag = |at: (usize, usize)| if mask[at].is_nan() { f32::NAN } else { f32::from(mask[at] > 0.0) };
            for ((row, group), slot) in view.mask.indexed_iter_mut() {
                *slot = flag((row, group * span));
                if (1..span).any(|i| flag((row, group * span + i)).to_bits() != slot.to_bits()) {
                    let rule = format!("must have equal flags for each {span} actions in a row");
                    return Err(InvalidField::new("mask", rule, format!("others in row {row}")).into());
                }
            }
        }
        Ok(self.decide(&view, state))
    }

    /// [`PolicyController::decide`], with the first row that has no action and the reason.
    fn decide_known(&self, view: &BatchSlabs, state: &mut PolicyState) -> (Array2<f32>, Option<(usize, &'static str)>) {
        let mut own = self.moments.as_ref().map(|moments| {
            let mut view = view.clone();
            moments.normalize_from(0, view.shared.view_mut());
            moments.normalize_from(view.shared.ncols(), view.obs.view_mut());
            view
        });
        let unknown = self.unknown(view, own.as_ref().unwrap_or(view));
        // The network computes on other numbers there, so that nothing is out of range.
        if !unknown.is_empty() {
            let own = own.get_or_insert_with(|| view.clone());
            for Unknown { row, flags, head, .. } in &unknown {
                own.mask.row_mut(*row).slice_mut(s![flags.clone()]).fill(1.0);
                if head.is_none() {
                    own.obs.row_mut(*row).fill(0.0);
                    own.shared.row_mut(row / self.spec.n_agents).mapv_inplace(|x| if x.is_nan() { 0.0 } else { x });
                }
            }
        }
        let seen = own.as_ref().unwrap_or(view);
        let obs = P::Obs::assemble(ObsParts::upload(&self.spec, seen, &self.device));
        let mut actions = self.act_on(obs, state);
        for Unknown { row, head, .. } in &unknown {
            match head {
                Some(head) => actions[[*row, *head]] = f32::NAN,
                None => actions.row_mut(*row).fill(f32::NAN),
            }
        }
        let mut choices = actions.slice_mut(s![.., ..self.spec.action.heads().len()]);
        choices.mapv_inplace(|action| if action.is_nan() { NO_ACTION } else { action });
        (actions, unknown.first().map(|unknown| (unknown.row, unknown.reason)))
    }

    /// Rows and choices of `view` that have no action, as far as that can be seen before the network computes; `seen` has the observations as the
    /// network sees them.
    fn unknown(&self, view: &BatchSlabs, seen: &BatchSlabs) -> Vec<Unknown> {
        let (span, n_agents, n_flags) = (self.spec.actions_per_flag(), self.spec.n_agents, view.mask.ncols());
        let heads = if n_flags == 0 { &[] } else { self.spec.action.heads() };
        let has_nan = |numbers: ArrayView1<f32>| numbers.iter().any(|x| x.is_nan());
        let (mut unknown, mut features) = (Vec::new(), Vec::new());
        for row in 0..view.obs.nrows() {
            let mut without = |head, flags, reason| unknown.push(Unknown { row, head, flags, reason });
            if has_nan(view.obs.row(row)) || has_nan(view.shared.row(row / n_agents)) {
                without(None, 0..n_flags, "its observation has a number that is NaN");
                continue;
            }
            let parts = seen.shared.row(row / n_agents).into_iter().chain(seen.obs.row(row));
            features.clear();
            features.extend(parts);
            if !self.policy.has_action_for(&features) {
                without(None, 0..n_flags, "its observation names a graph or node that the network does not have");
                continue;
            }
            let (mask, mut first) = (view.mask.row(row), 0);
            for (head, n) in heads.iter().enumerate() {
                let own = first..first + n / span;
                first = own.end;
                let flags = mask.slice(s![own.clone()]);
                if has_nan(flags) {
                    without(Some(head), own, "its mask has a number that is NaN");
                } else if flags.iter().all(|flag| *flag <= 0.0) {
                    without(Some(head), own, "its mask forbids every action");
                }
            }
        }
        unknown
    }

    fn act_on(&self, obs: P::Obs, state: &mut PolicyState) -> Array2<f32> {
        let (action, _) = self.policy.act_from(obs, state, Explore::Greedy);
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
    fn act(&mut self, view: &BatchSlabs, actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
        let mut state = std::mem::take(&mut self.state);
        state.end_of(view, &self.device);
        let decided = self.decide_into(view, &mut state, actions);
        self.state = state;
        decided
    }

    fn begin(&mut self) {
        self.state = PolicyState::default();
    }

    fn keep(&mut self, rows: &[usize]) {
        self.state = self.state.kept(rows, &self.device);
    }
}
