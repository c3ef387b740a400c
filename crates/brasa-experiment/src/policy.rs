//! Trained policies of any algorithm.

use std::any::Any;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use brasa_core::{ObsForm, Policy, PolicyController, PolicyState};
use brasa_env::wrappers::RunningMoments;
use brasa_env::{BatchSlabs, Controller, EnvError, EnvSpec, Extensions, InvalidField, field};
use brasa_export::{ExportedPolicy, Layer};
use brasa_nn::Sampling;
use brasa_train::{Checkpoint, restore_moments};
use burn::tensor::{Device, Tensor};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};

use crate::ExperimentError;
use crate::columns::columns;
use crate::registry::PolicyContext;

/// A trained policy of any algorithm and network. It acts without exploration.
///
/// Several threads can use it at a time.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// use brasa_experiment::load_policy;
/// use ndarray::Array2;
///
/// # let dir = tempfile::tempdir()?;
/// # let run = trained(dir.path());
/// let policy = load_policy(&registry(), &run, &brasa_device::open_named("cpu")?)?;
/// let actions = policy.act(Array2::zeros((3, 4)).view(), None)?;
/// assert_eq!(actions.dim(), (3, 1));
/// // The policy as a list of layers acts alike.
/// let exported = policy.exported()?;
/// assert_eq!(exported.about.obs.len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct LoadedPolicy {
    actor: Box<dyn Actor>,
    /// What the actor sees.
    spec: EnvSpec,
    /// Columns of training that the actor does not use.
    privileged: Range<usize>,
    moments: Option<RunningMoments>,
    device: Device,
    env_steps: Option<u64>,
    /// What it remembers of the environments that it controls.
    state: PolicyState,
}

impl std::fmt::Debug for LoadedPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadedPolicy")
            .field("spec", &self.spec)
            .field("device", &self.device)
            .field("env_steps", &self.env_steps)
            .finish_non_exhaustive()
    }
}

/// Adapts a policy to a scenario with other extensions, such as other graphs.
pub(crate) type Adapt<P> = Arc<dyn Fn(&P, &PolicyContext<'_>) -> Result<P, ExperimentError> + Send + Sync>;

impl LoadedPolicy {
    /// A policy on `device` without autodiff, for environments of `spec`, with the moments that normalize its observations. `adapt` returns a
    /// policy with the same weights for another scenario of the same kind, such as other graphs: most policies stay as they are.
    pub fn new<P>(
        policy: P,
        spec: &EnvSpec,
        moments: Option<RunningMoments>,
        device: &Device,
        adapt: impl Fn(&P, &PolicyContext<'_>) -> Result<P, ExperimentError> + Send + Sync + 'static,
    ) -> Self
    where
        P: Policy<Action = Tensor<2>> + Clone + Send + Sync + 'static,
        P::Obs: ObsForm,
    {
        Self::adapting(policy, spec, moments, device, Arc::new(adapt))
    }

    /// [`LoadedPolicy::new`] with a closure that several policies share.
    pub(crate) fn adapting<P>(
        policy: P,
        spec: &EnvSpec,
        moments: Option<RunningMoments>,
        device: &Device,
        adapt: Adapt<P>,
    ) -> Self
    where
        P: Policy<Action = Tensor<2>> + Clone + Send + Sync + 'static,
        P::Obs: ObsForm,
    {
        let privileged = policy.sizes().map_or(0..0, |sizes| sizes.privileged);
        let acting = controller(policy, &spec.of_actors(), moments.as_ref(), device);
        Self { moments, privileged, ..Self::acting(Box::new(Acting { acting, adapt }), spec, device) }
    }

    /// A policy of another form, on normalized or raw observations as it needs them.
    pub(crate) fn acting(actor: Box<dyn Actor>, spec: &EnvSpec, device: &Device) -> Self {
        let (state, device) = (PolicyState::default(), device.clone());
        Self { actor, spec: spec.of_actors(), privileged: 0..0, moments: None, device, env_steps: None, state }
    }

    /// [`LoadedPolicy::new`] with the moments and the age of a checkpoint at `path`.
    ///
    /// # Errors
    /// If the moments of the checkpoint cannot be read.
    pub fn restored<P>(
        policy: P,
        context: &PolicyContext<'_>,
        checkpoint: &Checkpoint,
        path: &Path,
        adapt: impl Fn(&P, &PolicyContext<'_>) -> Result<P, ExperimentError> + Send + Sync + 'static,
    ) -> Result<Self, ExperimentError>
    where
        P: Policy<Action = Tensor<2>> + Clone + Send + Sync + 'static,
        P::Obs: ObsForm,
    {
        let moments = restore_moments(checkpoint, path)?;
        let policy = Self::new(policy, context.spec, moments, context.device, adapt);
        Ok(Self { env_steps: Some(checkpoint.env_steps), ..policy })
    }

    /// The constants of the training environments, with the observations of actors ([`EnvSpec::of_actors`]).
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
        if self.state_width() > 0 {
            let rule = "must be given to a policy that remembers: `act_from`";
            return Err(InvalidField::new("state", rule, "none").into());
        }
        self.act_from(obs, mask, &mut PolicyState::default())
    }

    /// Numbers per row that the policy remembers from step to step; 0 for a policy without memory.
    pub fn state_width(&self) -> usize {
        self.actor.state_width()
    }

    /// [`LoadedPolicy::act`] with what the policy remembers of these rows, which it replaces. A default state is that of episodes that begin.
    ///
    /// # Errors
    /// As [`LoadedPolicy::act`], and for a state of other rows.
    pub fn act_from(
        &self,
        obs: ArrayView2<f32>,
        mask: Option<ArrayView2<f32>>,
        state: &mut PolicyState,
    ) -> Result<Array2<f32>, EnvError> {
        self.spec.check_rows(obs, mask)?;
        if let Some(numbers) = &state.numbers {
            let (found, expected) = (numbers.dims(), [obs.nrows(), self.state_width()]);
            let rule = format!("must have the shape {expected:?} for these rows");
            field::rule(found == expected, "state", rule, format!("{found:?}"))?;
        }
        self.actor.decide_rows(obs, mask, state)
    }

    /// [`LoadedPolicy::act`] for one environment: the numbers of all its agents one after the other.
    ///
    /// # Errors
    /// As [`LoadedPolicy::act`].
    pub fn act_one(&self, obs: &[f32], mask: Option<&[f32]>) -> Result<Vec<f32>, EnvError> {
        self.one(obs, mask, |obs, mask| self.act(obs, mask))
    }

    /// [`LoadedPolicy::act_from`] for one environment.
    ///
    /// # Errors
    /// As [`LoadedPolicy::act_from`].
    pub fn act_one_from(
        &self,
        obs: &[f32],
        mask: Option<&[f32]>,
        state: &mut PolicyState,
    ) -> Result<Vec<f32>, EnvError> {
        self.one(obs, mask, |obs, mask| self.act_from(obs, mask, state))
    }

    fn one(
        &self,
        obs: &[f32],
        mask: Option<&[f32]>,
        act: impl FnOnce(ArrayView2<f32>, Option<ArrayView2<f32>>) -> Result<Array2<f32>, EnvError>,
    ) -> Result<Vec<f32>, EnvError> {
        let rows = |name: &'static str, numbers: &'_ [f32]| {
            let n = self.spec.n_agents;
            let fail = || InvalidField::new(name, format!("must be divisible among {n} agents"), numbers.len());
            match numbers.len().is_multiple_of(n) {
                true => Ok([n, numbers.len() / n]),
                false => Err(EnvError::from(fail())),
            }
        };
        let view =
            |shape: [usize; 2], numbers| ArrayView2::from_shape(shape, numbers).expect("the shape has its length");
        let obs = view(rows("obs", obs)?, obs);
        let mask = mask.map(|mask| Ok::<_, EnvError>(view(rows("mask", mask)?, mask))).transpose()?;
        Ok(act(obs, mask)?.into_raw_vec_and_offset().0)
    }

    /// The policy as a controller for environments of `spec`.
    pub fn controller(&self, spec: &EnvSpec) -> Box<dyn Controller> {
        self.actor.controller(&Self { spec: spec.clone(), ..self.clone() })
    }

    /// [`LoadedPolicy::controller`] that samples actions as during training, with random numbers from `seed`; `None` for a deterministic policy,
    /// such as one that was exported.
    pub fn sampling_controller(&self, spec: &EnvSpec, seed: u64) -> Option<Box<dyn Controller>> {
        self.actor.sampling_controller(&Self { spec: spec.clone(), ..self.clone() }, seed)
    }

    /// A controller that samples or not.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] for a deterministic policy that is to sample.
    pub(crate) fn controller_that(
        &self,
        samples: bool,
        spec: &EnvSpec,
        seed: u64,
    ) -> Result<Box<dyn Controller>, ExperimentError> {
        let none =
            "the policy is deterministic: it has no actions to sample (leave out `--sampled` and `train.eval_sampled`)";
        match samples {
            true => self.sampling_controller(spec, seed).ok_or_else(|| ExperimentError::Input(none.into())),
            false => Ok(self.controller(spec)),
        }
    }

    /// The policy with the same weights for a scenario with other extensions, such as other graphs.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] if the network does not support the scenario.
    pub fn adapted(&self, spec: &EnvSpec, extensions: &Extensions) -> Result<Self, ExperimentError> {
        let context = PolicyContext { spec, extensions, device: &self.device };
        let actor = self.actor.adapted(self, &context)?;
        let (moments, privileged) = (self.moments.clone(), self.privileged.clone());
        Ok(Self { moments, privileged, env_steps: self.env_steps, ..Self::acting(actor, spec, &self.device) })
    }

    /// The policy as a list of layers, with the normalization of observations, for other programs.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] if its network has no such form.
    pub fn exported(&self) -> Result<ExportedPolicy, ExperimentError> {
        let mut policy = self.actor.exported().ok_or_else(|| {
            let reason = "it is more than a list of layers on flat observations";
            ExperimentError::Input(format!("this network cannot be exported: {reason}"))
        })?;
        if let Some(moments) = &self.moments {
            let (mean, deviation, clip) = fitting(moments, &self.spec, &self.privileged).normalization();
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
        self.state.end_of(view, &self.device);
        self.actor.decide(view, &mut self.state, actions)
    }

    fn begin(&mut self) {
        self.state = PolicyState::default();
    }

    fn keep(&mut self, rows: &[usize]) {
        self.state = self.state.kept(rows, &self.device);
    }
}

/// A policy with erased type, for the environments of one [`EnvSpec`].
pub(crate) trait Actor: Send + Sync {
    fn boxed(&self) -> Box<dyn Actor>;
    /// For environments of the spec of `of`.
    fn controller(&self, of: &LoadedPolicy) -> Box<dyn Controller>;
    /// [`Actor::controller`] that samples; `None` for a deterministic policy.
    fn sampling_controller(&self, _of: &LoadedPolicy, _seed: u64) -> Option<Box<dyn Controller>> {
        None
    }
    /// See [`Policy::state_width`].
    fn state_width(&self) -> usize {
        0
    }
    fn decide(&self, view: &BatchSlabs, state: &mut PolicyState, actions: ArrayViewMut2<f32>) -> Result<(), EnvError>;
    /// Rows that [`EnvSpec::check_rows`] accepts.
    fn decide_rows(
        &self,
        obs: ArrayView2<f32>,
        mask: Option<ArrayView2<f32>>,
        state: &mut PolicyState,
    ) -> Result<Array2<f32>, EnvError>;
    fn adapted(&self, of: &LoadedPolicy, context: &PolicyContext<'_>) -> Result<Box<dyn Actor>, ExperimentError>;
    fn as_any(&self) -> &dyn Any;
    fn exported(&self) -> Option<ExportedPolicy>;
}

impl Clone for Box<dyn Actor> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

/// `moments` for observations of `spec`, which may be without the `privileged` columns.
fn fitting(moments: &RunningMoments, spec: &EnvSpec, privileged: &Range<usize>) -> RunningMoments {
    match moments.mean.len() == spec.obs.width() {
        true => moments.clone(),
        false => moments.without(privileged),
    }
}

/// A policy as a controller for environments of `spec`, which may be without the columns that its actor does not use.
fn controller<P>(policy: P, spec: &EnvSpec, moments: Option<&RunningMoments>, device: &Device) -> PolicyController<P>
where
    P: Policy<Action = Tensor<2>>,
    P::Obs: ObsForm,
{
    let privileged = policy.sizes().map_or(0..0, |sizes| sizes.privileged);
    let moments = moments.map(|moments| fitting(moments, spec, &privileged));
    PolicyController::new(policy, spec, moments, device)
}

struct Acting<P> {
    acting: PolicyController<P>,
    adapt: Adapt<P>,
}

impl<P> Actor for Acting<P>
where
    P: Policy<Action = Tensor<2>> + Clone + Send + Sync + 'static,
    P::Obs: ObsForm,
{
    fn boxed(&self) -> Box<dyn Actor> {
        Box::new(Self { acting: self.acting.clone(), adapt: Arc::clone(&self.adapt) })
    }

    fn controller(&self, of: &LoadedPolicy) -> Box<dyn Controller> {
        Box::new(controller(self.acting.policy().clone(), &of.spec, of.moments.as_ref(), &of.device))
    }

    fn sampling_controller(&self, of: &LoadedPolicy, seed: u64) -> Option<Box<dyn Controller>> {
        let policy = Sampling::new(self.acting.policy().clone(), seed, &of.device)?;
        Some(Box::new(controller(policy, &of.spec, of.moments.as_ref(), &of.device)))
    }

    fn state_width(&self) -> usize {
        self.acting.policy().state_width()
    }

    fn decide(&self, view: &BatchSlabs, state: &mut PolicyState, actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
        self.acting.decide_into(view, state, actions)
    }

    fn decide_rows(
        &self,
        obs: ArrayView2<f32>,
        mask: Option<ArrayView2<f32>>,
        state: &mut PolicyState,
    ) -> Result<Array2<f32>, EnvError> {
        self.acting.decide_rows(obs, mask, state)
    }

    fn adapted(&self, of: &LoadedPolicy, context: &PolicyContext<'_>) -> Result<Box<dyn Actor>, ExperimentError> {
        let policy = (self.adapt)(self.acting.policy(), context)?;
        let acting = controller(policy, &context.spec.of_actors(), of.moments.as_ref(), &of.device);
        Ok(Box::new(Self { acting, adapt: Arc::clone(&self.adapt) }))
    }

    fn as_any(&self) -> &dyn Any {
        self.acting.policy()
    }

    fn exported(&self) -> Option<ExportedPolicy> {
        self.acting.policy().exported()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_core::{ActionValues, Greedy, Obs};
    use brasa_env::{Space, named_rng};
    use brasa_export::Output;
    use brasa_nn::{
        ActorCriticConfig, CnnActorCritic, CnnActorCriticConfig, CnnLayers, CnnQNetwork, CnnQNetworkConfig,
        ConvolutionConfig, MlpActorCritic, QNetwork, QNetworkConfig, RecurrentActorCritic, RecurrentActorCriticConfig,
        RecurrentKind, RecurrentQNetwork, RecurrentQNetworkConfig, WindowActorCritic, WindowActorCriticConfig,
    };
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

    /// What a policy remembers is passed to it, and a controller passes it on by itself.
    #[test]
    fn a_policy_with_memory_is_served_with_its_state() {
        let (device, rng) = (brasa_test::device(), &mut named_rng(0, "test", 0));
        let spec = EnvSpec::new(Space::uniform_box(-1.0, 1.0, ["a", "b"]), Space::uniform_box(-1.0, 1.0, ["x"]), 2);
        let config = RecurrentActorCriticConfig { width: 4, orthogonal: false, ..Default::default() };
        let network = RecurrentActorCritic::new(&config, &spec.obs, &spec.action, &device, rng).expect("valid");
        let adapt = |policy: &RecurrentActorCritic, _: &PolicyContext<'_>| Ok(policy.clone());
        let policy = LoadedPolicy::new(network, &spec, None, &device, adapt);
        assert_eq!(policy.state_width(), 16);

        let mut controller = policy.controller(&spec);
        let (mut view, mut actions) = (BatchSlabs::new(&spec), Array2::zeros((2, 1)));
        let mut state = PolicyState::default();
        let mut first = None;
        controller.begin();
        for step in 0..4 {
            view.obs.mapv_inplace(|_| rng.random_range(-1.0..1.0));
            // The episode of the second row ends after the first step.
            view.terminated[1] = step == 1;
            state.end_of(&view, &device);
            let served = policy.act_from(view.obs.view(), None, &mut state).expect("they fit");
            controller.act(&view, actions.view_mut()).expect("it acts");
            assert_eq!(served, actions, "step {step}");
            let rows = state.rows().expect("it remembers");
            // A state that was written down is one that acts alike.
            state = PolicyState::from_rows(rows.view(), &device);
            first.get_or_insert((view.obs.clone(), served));
        }
        // Later, the first observation leads to another action; and after a reset, to the first one.
        let (obs, expected) = first.expect("there was a step");
        view.obs.assign(&obs);
        controller.act(&view, actions.view_mut()).expect("it acts");
        assert_ne!(actions, expected);
        controller.begin();
        controller.act(&view, actions.view_mut()).expect("it acts");
        assert_eq!(actions, expected);
        // Rows that go on alone keep what they remember.
        controller.act(&view, actions.view_mut()).expect("it acts");
        controller.begin();
        controller.act(&view, Array2::zeros((2, 1)).view_mut()).expect("it acts");
        controller.keep(&[1]);
        let (mut one, mut alone) = (BatchSlabs::new(&spec.with_n_envs(1)), Array2::zeros((1, 1)));
        one.obs.row_mut(0).assign(&obs.row(1));
        controller.act(&one, alone.view_mut()).expect("it acts");
        assert!((alone[[0, 0]] - actions[[1, 0]]).abs() < 1e-6, "{alone} and {actions}");

        let error = policy.act(obs.view(), None).expect_err("no state").to_string();
        assert_eq!(error, "`state` must be given to a policy that remembers: `act_from`, got none");
        let error = policy.act_one_from(&[0.1, 0.2], None, &mut state).expect_err("two rows").to_string();
        assert_eq!(error, "`state` must have the shape [1, 16] for these rows, got [2, 16]");
    }

    /// Exported policies remember as their networks do, also in a comparison, where an episode ends for one row.
    #[test]
    fn exported_policies_remember_alike() {
        let (device, rng) = (brasa_test::device(), &mut named_rng(0, "test", 0));
        let spec = EnvSpec::new(Space::uniform_box(-9.0, 9.0, ["a", "b"]), Space::uniform_box(-1.0, 1.0, ["x"]), 2);
        let moments = RunningMoments { count: 100.0, mean: vec![1.0, -2.0], squares: vec![400.0, 900.0] };
        let mlp = ActorCriticConfig { orthogonal: false, ..ActorCriticConfig::default() };
        let recurrent = |kind, shared| RecurrentActorCriticConfig {
            kind,
            shared,
            width: 5,
            encoder_hidden: vec![6],
            orthogonal: false,
            ..Default::default()
        };
        fn loaded<P>(policy: P, spec: &EnvSpec, moments: &RunningMoments, device: &Device) -> LoadedPolicy
        where
            P: Policy<Action = Tensor<2>> + Clone + Send + Sync + 'static,
            P::Obs: ObsForm,
        {
            LoadedPolicy::new(policy, spec, Some(moments.clone()), device, |policy, _| Ok(policy.clone()))
        }
        let mut policies = Vec::new();
        for (kind, shared) in [(RecurrentKind::Lstm, false), (RecurrentKind::Gru, true)] {
            let network = RecurrentActorCritic::new(&recurrent(kind, shared), &spec.obs, &spec.action, &device, rng)
                .expect("valid");
            policies.push(loaded(network, &spec, &moments, &device));
        }
        for frames in [1, 3] {
            let config = WindowActorCriticConfig { frames, network: mlp.clone() };
            let network = WindowActorCritic::new(&config, &spec.obs, &spec.action, &device, rng).expect("valid");
            policies.push(loaded(network, &spec, &moments, &device));
        }
        let choice = EnvSpec { action: Space::Discrete(3), ..spec.clone() };
        for (kind, dueling) in [(RecurrentKind::Lstm, false), (RecurrentKind::Gru, true)] {
            let config =
                RecurrentQNetworkConfig { kind, dueling, width: 5, encoder_hidden: vec![6], ..Default::default() };
            let network = RecurrentQNetwork::new(&config, &choice.obs, &choice.action, &device, rng).expect("valid");
            policies.push(loaded(Greedy(network), &choice, &moments, &device));
        }
        for policy in policies {
            let spec = policy.spec().clone();
            let exported = policy.exported().expect("it has layers");
            let file = ExportedPolicy::from_safetensors(&exported.to_safetensors()).expect("it was just written");
            let foreign = LoadedPolicy::of_exported(file, &spec, &device).expect("it fits");
            let [mut ours, mut theirs] = [&policy, &foreign].map(|policy| policy.controller(&spec));
            let (mut view, mut actions) = (BatchSlabs::new(&spec), [Array2::zeros((2, 1)), Array2::zeros((2, 1))]);
            ours.begin();
            theirs.begin();
            for step in 0..100 {
                view.obs.mapv_inplace(|_| rng.random_range(-5.0..5.0));
                view.terminated[1] = step % 30 == 29;
                ours.act(&view, actions[0].view_mut()).expect("it acts");
                theirs.act(&view, actions[1].view_mut()).expect("it acts");
                let gap = (&actions[0] - &actions[1]).iter().fold(0.0f32, |most, gap| most.max(gap.abs()));
                assert!(gap < 1e-5, "step {step}: {} and {}", actions[0], actions[1]);
            }
        }
    }

    /// Convolutions, residual networks, and choices with numbers behind them.
    #[test]
    fn exported_policies_on_images_and_with_mixed_actions_act_alike() {
        let (device, rng) = (brasa_test::device(), &mut named_rng(0, "test", 0));
        let Space::Box(numbers) = Space::named_box([("a", -0.5, 0.5), ("b", -9.0, 9.0)]) else { unreachable!() };
        let hybrid = Space::Hybrid { heads: vec![3, 2], numbers };
        let convolution = |filters, kernel, stride, padding| ConvolutionConfig { filters, kernel, stride, padding };
        let plain = CnnLayers::Convolutions(vec![convolution(4, 3, 2, 1), convolution(3, 2, 1, 0)]);
        let (bytes, shifted) = (Space::image(12, 10, 2), Space::shaped(-1.0, 3.0, [2, 12, 10]));
        let mut policies = Vec::new();
        for (layers, obs, action) in [
            (plain.clone(), bytes.clone(), hybrid.clone()),
            (CnnLayers::Residual(vec![3, 2]), bytes.clone(), Space::uniform_box(-99.0, 99.0, ["x", "y"])),
            (plain.clone(), shifted, Space::uniform_box(-99.0, 99.0, ["x"])),
        ] {
            let spec = EnvSpec::new(obs, action, 1);
            let config = CnnActorCriticConfig { layers, hidden: vec![8], orthogonal: false, ..Default::default() };
            let network =
                CnnActorCritic::convolutional(&config, &spec, &device.clone().autodiff(), rng).expect("valid");
            policies.push(LoadedPolicy::new(network.valid(), &spec, None, &device, |policy, _| Ok(policy.clone())));
        }
        let spec = EnvSpec::new(bytes, Space::Discrete(5), 1);
        let config = CnnQNetworkConfig { layers: plain, hidden: vec![8], ..Default::default() };
        let network = CnnQNetwork::new(&config, &spec.obs, &spec.action, &device, rng).expect("valid");
        // Values, which differ even where the best action does not.
        let obs: Vec<f32> = (0..20 * spec.obs.width()).map(|_| rng.random_range(0.0..255.0)).collect();
        let rows = Tensor::<1>::from_floats(&obs[..], &device).reshape([20, spec.obs.width()]);
        let expected = brasa_core::read_back(network.values(Obs::new(rows)));
        let exported = ExportedPolicy { output: Output::Real, ..network.exported().expect("it has layers") };
        for (got, expected) in exported.act(&obs, None).iter().zip(&expected) {
            assert!((got - expected).abs() < 1e-4, "{got} instead of {expected}");
        }
        let spec = EnvSpec::new(Space::uniform_box(-1.0, 1.0, ["x", "y", "z"]), hybrid, 1);
        let config = ActorCriticConfig { orthogonal: false, ..ActorCriticConfig::default() };
        let network = MlpActorCritic::new(&config, &spec.obs, &spec.action, &device, rng).expect("valid");
        policies.push(LoadedPolicy::new(network, &spec, None, &device, |policy, _| Ok(policy.clone())));
        for policy in policies {
            let spec = policy.spec().clone();
            let Space::Box(space) = &spec.obs else { panic!("numbers") };
            let range = space.low[0]..space.high[0];
            let obs = Array2::from_shape_fn((40, spec.obs.width()), |_| rng.random_range(range.clone()));
            let expected = policy.act(obs.view(), None).expect("they fit");
            let exported = policy.exported().expect("it has layers");
            let got = exported.act(&obs.iter().copied().collect::<Vec<f32>>(), None);
            assert_eq!(got.len(), expected.len());
            for (got, expected) in got.iter().zip(&expected) {
                assert!((got - expected).abs() < 1e-4, "{got} instead of {expected}: {:?}", spec.action);
            }
            let distinct = |column: usize| expected.column(column).iter().any(|x| *x != expected[[0, column]]);
            assert!((0..expected.ncols()).any(distinct), "one action alone shows nothing");
            // A file is a policy of these environments.
            let file = ExportedPolicy::from_safetensors(&exported.to_safetensors()).expect("it was just written");
            let foreign = LoadedPolicy::of_exported(file, &spec, &device).expect("it fits");
            assert_eq!(foreign.act(obs.view(), None).expect("they fit").into_raw_vec_and_offset().0, got);
        }
    }

    #[test]
    fn stochastic_policies_can_be_sampled_and_deterministic_ones_cannot() {
        let (device, rng) = (brasa_test::device(), &mut named_rng(0, "test", 0));
        let spec = EnvSpec::new(Space::uniform_box(-1.0, 1.0, ["x"]), Space::Discrete(2), 50);
        let config = ActorCriticConfig::default();
        let network = MlpActorCritic::new(&config, &spec.obs, &spec.action, &device, rng).expect("valid");
        let policy = LoadedPolicy::new(network, &spec, None, &device, |policy, _| Ok(policy.clone()));
        let act = |mut controller: Box<dyn Controller>| {
            let mut actions = Array2::zeros((50, 1));
            controller.act(&BatchSlabs::new(&spec), actions.view_mut()).expect("it acts");
            actions
        };
        let sampled = |seed| act(policy.controller_that(true, &spec, seed).expect("it is stochastic"));
        assert_eq!(sampled(1), sampled(1));
        assert_ne!(sampled(1), sampled(2));
        // The observations are equal, so the most likely actions are.
        let greedy = act(policy.controller_that(false, &spec, 1).expect("it acts"));
        assert!(greedy.iter().all(|action| *action == greedy[[0, 0]]), "{greedy}");
        assert!((10.0..40.0).contains(&sampled(1).sum()), "untrained actions are about equally likely");

        let values = QNetwork::new(&QNetworkConfig::default(), &spec.obs, &spec.action, &device, rng).expect("valid");
        let policy = LoadedPolicy::new(Greedy(values), &spec, None, &device, |policy, _| Ok(policy.clone()));
        let error = policy.controller_that(true, &spec, 1).err().map(|error| error.to_string());
        let expected =
            "the policy is deterministic: it has no actions to sample (leave out `--sampled` and `train.eval_sampled`)";
        assert_eq!(error.as_deref(), Some(expected));
    }

    /// Threads share a policy, and one environment is served without arrays.
    #[test]
    fn a_policy_serves_single_environments_from_several_threads() {
        let (device, rng) = (brasa_test::device(), &mut named_rng(0, "test", 0));
        let spec =
            EnvSpec { n_agents: 2, ..EnvSpec::new(Space::uniform_box(-1.0, 1.0, ["a", "b"]), Space::Discrete(4), 1) };
        let config = ActorCriticConfig { orthogonal: false, ..ActorCriticConfig::default() };
        let network = MlpActorCritic::new(&config, &spec.obs, &spec.action, &device.clone().autodiff(), rng);
        let keep = |policy: &MlpActorCritic, _: &PolicyContext<'_>| Ok(policy.clone());
        let policy = LoadedPolicy::new(network.expect("valid").valid(), &spec, None, &device, keep);
        let obs = Array2::from_shape_fn((20, 2), |_| rng.random_range(-1.0f32..1.0));
        let expected = policy.act(obs.view(), None).expect("they fit");
        std::thread::scope(|scope| {
            for env in 0..10 {
                let (policy, obs, expected) = (&policy, &obs, &expected);
                scope.spawn(move || {
                    let own: Vec<f32> = obs.rows().into_iter().skip(2 * env).take(2).flatten().copied().collect();
                    let actions = policy.act_one(&own, None).expect("it fits");
                    assert_eq!(actions, [expected[[2 * env, 0]], expected[[2 * env + 1, 0]]]);
                });
            }
        });
        let error = policy.act_one(&[0.0; 3], None).expect_err("two agents have 4 numbers").to_string();
        assert!(error.contains("`obs` must be divisible among 2 agents, got 3"), "{error}");
        policy.act_one(&[0.0; 6], None).expect_err("an agent has two numbers");
    }
}
