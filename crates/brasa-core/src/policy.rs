//! Traits of policies and of value estimates.

use brasa_export::ExportedPolicy;
use burn::tensor::Tensor;

use crate::analytic::{ByActions, ByResults, CriticsInput};
use crate::{ActionSizes, HostActor, NetworkSizes, PolicyState, Rows, Sequences, rows_by_field};

/// Maps observations to actions.
///
/// ```
/// use brasa_core::{Explore, NoiseDistribution, NoiseSpec, Obs, Policy, read_back};
/// use burn::tensor::Tensor;
///
/// /// Acts against the observed number, with noise of deviation 1.
/// struct Against;
///
/// impl Policy for Against {
///     type Obs = Obs;
///     type Action = Tensor<2>;
///     type Extra = ();
///     fn noise(&self) -> NoiseSpec {
///         NoiseSpec { width: 1, distribution: NoiseDistribution::Normal, resample_every: 1 }
///     }
///     fn act(&self, obs: Obs, explore: Explore) -> (Tensor<2>, ()) {
///         match explore {
///             Explore::Greedy => (-obs.values, ()),
///             Explore::Sample(noise) => (noise - obs.values, ()),
///         }
///     }
///     fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
///         action.clamp(-1.0, 1.0)
///     }
/// }
///
/// let obs = Obs::new(Tensor::from_floats([[0.5], [3.0]], &brasa_device::open_named("cpu")?));
/// let (action, ()) = Against.act(obs, Explore::Greedy);
/// assert_eq!(read_back(Against.to_env(action)), [-0.5, -1.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no policy",
    note = "networks of `brasa-nn` are policies; a module of Burn becomes one by `ModuleActorCritic::new(network, &spec)`"
)]
pub trait Policy: Send {
    /// Form of observations.
    type Obs: Rows;
    /// Form of actions as stored for learning.
    type Action: Rows;
    /// Additional values stored with an action.
    type Extra: Rows;

    /// The random numbers that one row of [`Policy::act`] consumes.
    fn noise(&self) -> NoiseSpec;

    /// Computes an action for every row; by a policy that remembers, for first steps of episodes.
    fn act(&self, obs: Self::Obs, explore: Explore) -> (Self::Action, Self::Extra);

    /// Numbers per row that the policy remembers from step to step; 0, the default, for a policy without memory.
    fn state_width(&self) -> usize {
        0
    }

    /// [`Policy::act`] with what the policy remembers, which it replaces. By default the policy has no memory.
    fn act_from(&self, obs: Self::Obs, _state: &mut PolicyState, explore: Explore) -> (Self::Action, Self::Extra) {
        self.act(obs, explore)
    }

    /// Converts stored actions to actions for the environment, for example clipped to its bounds.
    fn to_env(&self, action: Self::Action) -> Self::Action;

    /// The sizes of the network, which loops and evaluations compare with those of the environments; `None` if they are unknown.
    fn sizes(&self) -> Option<NetworkSizes> {
        None
    }

    /// Agents whose rows follow one another in every batch: row `i` belongs to agent `i % n_agents`. 1 if all rows are computed alike.
    fn n_agents(&self) -> usize {
        self.sizes().map_or(1, |sizes| sizes.n_agents)
    }

    /// Whether the policy is a distribution over actions. Noise that is for exploration alone, as around the actions of a deterministic policy, does not
    /// count. By default it is if a row consumes random numbers.
    fn is_stochastic(&self) -> bool {
        self.noise().width > 0
    }

    /// Whether a row of observations, as the network sees it, names only what exists, such as one of its graphs. A row that does not has no action.
    fn has_action_for(&self, _obs: &[f32]) -> bool {
        true
    }

    /// The greedy policy as a list of layers, from observations as the network sees them to actions of the environment, for other
    /// programs; `None` if it has no such form.
    fn exported(&self) -> Option<ExportedPolicy> {
        None
    }
}

/// A policy that also estimates the value of observations, for on-policy algorithms.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/policies.inc")); }
/// # use shown::*;
/// use brasa_core::{ActorCritic, Evaluation, Obs, read_back};
/// use burn::tensor::Tensor;
///
/// // `Proportional` is a policy whose actions have the mean `-gain * observation` and a deviation of 1.
/// impl ActorCritic for Proportional {
///     fn value(&self, obs: Obs) -> Tensor<1> {
///         -obs.values.abs().squeeze_dim(1)
///     }
///     fn evaluate(&self, obs: Obs, action: Tensor<2>) -> Evaluation {
///         let noise: Tensor<1> = (action + obs.values.clone() * self.0).squeeze_dim(1);
///         let log_prob = noise.square() * -0.5 - brasa_number::HALF_LN_2_PI;
///         let entropy = log_prob.zeros_like() + brasa_number::HALF_LN_2_PI + 0.5;
///         Evaluation { log_prob, entropy, value: self.value(obs) }
///     }
/// }
///
/// let device = brasa_device::open_named("cpu")?;
/// let [obs, action] = [[[2.0]], [[-1.0]]].map(|rows| Tensor::<2>::from_floats(rows, &device));
/// let evaluation = Proportional(0.5).evaluate(Obs::new(obs), action);
/// assert_eq!(read_back(evaluation.value), [-2.0]);
/// assert_eq!(read_back(evaluation.log_prob), [-0.918_938_5]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no actor-critic",
    note = "PPO and A2C take `MlpActorCritic`, or a module of Burn with `ActorCriticModule` in `ModuleActorCritic::new(network, &spec)`"
)]
pub trait ActorCritic: Policy<Extra = Decision> {
    /// `[n_rows]`: estimated return from each observation.
    fn value(&self, obs: Self::Obs) -> Tensor<1>;

    /// [`ActorCritic::value`] with what the policy remembers. By default the policy has no memory.
    fn value_from(&self, obs: Self::Obs, _state: &PolicyState) -> Tensor<1> {
        self.value(obs)
    }

    /// Log-probabilities, entropies and values for stored observations and actions.
    fn evaluate(&self, obs: Self::Obs, action: Self::Action) -> Evaluation;

    /// [`ActorCritic::evaluate`] for the rows of sequences. By default the policy has no memory.
    fn evaluate_sequences(&self, obs: Self::Obs, action: Self::Action, _sequences: &Sequences) -> Evaluation {
        self.evaluate(obs, action)
    }

    /// `[n_rows]`: 1 for several legal actions, 0 for a single one, which gives no policy gradient; `None` if every row has several.
    fn choice(&self, _obs: &Self::Obs) -> Option<Tensor<1>> {
        None
    }

    /// The gradient of a loss of [`ActorCritic::evaluate`] by all parameters, from derivatives by log-probabilities, entropies and values: see
    /// [`crate::analytic`].
    fn gradient(&self, _obs: &Self::Obs, _action: &Self::Action, _by: &mut ByResults<'_, 3>) -> Option<Vec<f32>> {
        None
    }

    /// [`ActorCritic::gradient`] of [`ActorCritic::evaluate_sequences`]. By default the policy has no memory.
    fn gradient_of_sequences(
        &self,
        obs: &Self::Obs,
        action: &Self::Action,
        _sequences: &Sequences,
        by: &mut ByResults<'_, 3>,
    ) -> Option<Vec<f32>> {
        self.gradient(obs, action, by)
    }

    /// The policy in the memory of the CPU, for one rollout; `None` if it computes elsewhere.
    fn host_actor(&self) -> Option<Box<dyn HostActor>> {
        None
    }

    /// `[n]`: current standard deviations of a Gaussian policy, if they do not depend on the observation; for metrics.
    fn std(&self) -> Option<Tensor<1>> {
        None
    }
}

/// A policy that can sample uniformly random actions, for the steps before learning starts.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/policies.inc")); }
/// # use shown::*;
/// use brasa_core::{Obs, RandomWarmup, read_back};
/// use burn::tensor::Tensor;
///
/// // `Proportional` is a policy. Its actions are in [-1, 1].
/// impl RandomWarmup for Proportional {
///     fn random_action(&self, _: Obs, noise: Tensor<2>) -> Tensor<2> {
///         noise * 2.0 - 1.0
///     }
/// }
///
/// let device = brasa_device::open_named("cpu")?;
/// let [obs, noise] = [[[3.0], [3.0]], [[0.25], [0.75]]].map(|rows| Tensor::<2>::from_floats(rows, &device));
/// assert_eq!(read_back(Proportional(1.0).random_action(Obs::new(obs), noise)), [-0.5, 0.5]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no random actions for the first steps of a run",
    note = "`Trainer::off_policy` takes the policies of SAC, TD3 and DQN; a custom policy implements this trait"
)]
pub trait RandomWarmup: Policy {
    /// Samples an action for every row, uniformly over the legal actions.
    ///
    /// # Shapes
    /// - `noise`: `[n_rows, width of Policy::noise]`, uniform in [0, 1)
    fn random_action(&self, obs: Self::Obs, noise: Tensor<2>) -> Self::Action;
}

/// A policy over continuous actions with differentiable samples (reparameterization); the actor of soft actor-critic.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/policies.inc")); }
/// # use shown::*;
/// use brasa_core::{Explore, Obs, Policy, Reparameterized, read_back};
/// use burn::tensor::Tensor;
///
/// // `Proportional` is a policy that adds noise to its action.
/// impl Reparameterized for Proportional {
///     fn noise_width(&self) -> usize {
///         1
///     }
///     fn rsample(&self, obs: Obs, noise: Tensor<2>) -> (Tensor<2>, Tensor<1>) {
///         let (action, decision) = self.act(obs, Explore::Sample(noise));
///         (action, decision.log_prob)
///     }
/// }
///
/// let device = brasa_device::open_named("cpu")?;
/// let [obs, noise] = [[[2.0]], [[0.5]]].map(|rows| Tensor::<2>::from_floats(rows, &device));
/// let (action, log_prob) = Proportional(1.0).rsample(Obs::new(obs), noise);
/// assert_eq!(read_back(action), [-1.5]);
/// assert!((read_back(log_prob)[0] + 0.125 + 0.918_938_5).abs() < 1e-6);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not sample actions as a differentiable function of noise",
    note = "SAC takes `SquashedActor`, or a network with this trait"
)]
pub trait Reparameterized: Policy {
    /// Standard normal numbers per row that [`Reparameterized::rsample`] consumes.
    fn noise_width(&self) -> usize;

    /// An action for every row as a differentiable function of `noise`, and its log-probability `[n_rows]`.
    ///
    /// # Shapes
    /// - `noise`: `[n_rows, noise_width]`
    fn rsample(&self, obs: Self::Obs, noise: Tensor<2>) -> (Self::Action, Tensor<1>);

    /// The gradient of a loss of [`Reparameterized::rsample`] by all parameters, from derivatives by actions and log-probabilities: see
    /// [`crate::analytic`].
    fn gradient(
        &self,
        _obs: &Self::Obs,
        _noise: &Tensor<2>,
        _by: &mut ByActions<'_, Self::Action, 1>,
    ) -> Option<Vec<f32>> {
        None
    }
}

/// A policy whose greedy action is a differentiable function of the observation; the actor of deterministic policy gradients.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/policies.inc")); }
/// # use shown::*;
/// use brasa_core::{Deterministic, Explore, Obs, read_back};
/// use burn::tensor::Tensor;
///
/// // The greedy action of `Proportional` is a differentiable function of the observation.
/// impl Deterministic for Proportional {}
///
/// fn greedy<P: Deterministic<Obs = Obs, Action = Tensor<2>>>(policy: &P, obs: Obs) -> Vec<f32> {
///     read_back(policy.act(obs, Explore::Greedy).0)
/// }
///
/// let obs = Obs::new(Tensor::from_floats([[2.0]], &brasa_device::open_named("cpu")?));
/// assert_eq!(greedy(&Proportional(0.5), obs), [-1.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub trait Deterministic: Policy {
    /// The gradient of a loss of the greedy actions by all parameters, from derivatives by these actions: see [`crate::analytic`].
    fn gradient(&self, _obs: &Self::Obs, _by: &mut ByActions<'_, Self::Action, 0>) -> Option<Vec<f32>> {
        None
    }
}

/// Several independent estimates of the value of an action.
///
/// ```
/// use brasa_core::{Critics, Obs, read_back};
/// use burn::tensor::Tensor;
///
/// /// Two critics, with the sum and the difference of observation and action.
/// struct Two;
///
/// impl Critics for Two {
///     type Obs = Obs;
///     type Action = Tensor<2>;
///     fn values(&self, obs: Obs, action: Tensor<2>) -> Tensor<2> {
///         Tensor::cat(vec![obs.values.clone() + action.clone(), obs.values - action], 1).transpose()
///     }
/// }
///
/// let device = brasa_device::open_named("cpu")?;
/// let [obs, action] = [[[1.0], [2.0]], [[0.5], [0.5]]].map(|rows| Tensor::<2>::from_floats(rows, &device));
/// let values = Two.values(Obs::new(obs), action);
/// assert_eq!(values.dims(), [2, 2]);
/// assert_eq!(read_back(values.min_dim(0)), [0.5, 1.5]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub trait Critics {
    /// Form of observations.
    type Obs: Rows;
    /// Form of actions as stored.
    type Action: Rows;

    /// `[n_critics, n_rows]`: estimated return of each action, one row per critic.
    fn values(&self, obs: Self::Obs, action: Self::Action) -> Tensor<2>;

    /// The gradient of a loss of [`Critics::values`] by all parameters, or by the numbers of the actions, from derivatives by the values,
    /// `[n_critics, n_rows]`: see [`crate::analytic`].
    fn gradient(
        &self,
        _obs: &Self::Obs,
        _action: &Self::Action,
        _of: CriticsInput,
        _by: &mut ByResults<'_, 1>,
    ) -> Option<Vec<f32>> {
        None
    }
}

/// Values of the actions of a discrete space.
///
/// [`ActionValues::values`] is enough; a network overrides the other methods if it can compute them without the values
/// of all actions. Actions are indices stored as floats.
///
/// ```
/// use brasa_core::{ActionValues, Obs, read_back};
/// use burn::tensor::Tensor;
///
/// /// The negative distance to 0 after a step to the left (0) or to the right (1).
/// struct Distance;
///
/// impl ActionValues for Distance {
///     type Obs = Obs;
///     fn values(&self, obs: Obs) -> Tensor<2> {
///         -Tensor::cat(vec![(obs.values.clone() - 1.0).abs(), (obs.values + 1.0).abs()], 1)
///     }
///     fn n_actions(&self) -> usize {
///         2
///     }
///     fn action_mask(&self, obs: &Obs) -> Option<Tensor<2>> {
///         obs.mask.clone()
///     }
/// }
///
/// let obs = Obs::new(Tensor::from_floats([[2.0], [-3.0]], &brasa_device::open_named("cpu")?));
/// let (action, value) = Distance.best(obs);
/// assert_eq!((read_back(action), read_back(value)), (vec![0.0, 1.0], vec![-1.0, -2.0]));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not estimate values of actions",
    note = "DQN takes `QNetwork`, or a network with this trait: `values`, `n_actions`, `action_mask`"
)]
pub trait ActionValues: Send {
    /// Form of observations.
    type Obs: Rows;

    /// `[n_rows, n_actions]`: estimated return of each action.
    fn values(&self, obs: Self::Obs) -> Tensor<2>;

    /// Number of actions.
    fn n_actions(&self) -> usize;

    /// Numbers of a complete observation, which must be that of the environments; `None` if it is unknown.
    fn obs_width(&self) -> Option<usize> {
        None
    }

    /// See [`Policy::sizes`].
    fn sizes(&self) -> Option<NetworkSizes> {
        self.obs_width().map(|obs| NetworkSizes {
            obs,
            privileged: 0..0,
            action: ActionSizes::Choices(vec![self.n_actions()]),
            n_agents: self.n_learners(),
        })
    }

    /// `[n_rows, n_actions]`: 1 for legal actions, 0 for the others; `None` if all are legal.
    fn action_mask(&self, obs: &Self::Obs) -> Option<Tensor<2>>;

    /// The legal action with the highest value, `[n_rows, 1]`, and its value, `[n_rows]`; the first one if values are
    /// equal.
    ///
    /// For a row without legal actions the result is unspecified.
    fn best(&self, obs: Self::Obs) -> (Tensor<2>, Tensor<1>) {
        let legal = self.action_mask(&obs);
        best_of(self.values(obs), legal)
    }

    /// `[n_rows]`: estimated return of one action per row.
    ///
    /// # Shapes
    /// - `action`: `[n_rows, 1]`, indices
    fn values_of(&self, obs: Self::Obs, action: Tensor<2>) -> Tensor<1> {
        self.values(obs).gather(1, action.int()).squeeze_dim(1)
    }

    /// The gradient of a loss of [`ActionValues::values_of`] by all parameters, from derivatives by these values: see [`crate::analytic`].
    fn gradient(&self, _obs: &Self::Obs, _action: &Tensor<2>, _by: &mut ByResults<'_, 1>) -> Option<Vec<f32>> {
        None
    }

    /// See [`Policy::state_width`].
    fn state_width(&self) -> usize {
        0
    }

    /// [`ActionValues::values`] with what the network remembers, which it replaces. A network with memory overrides this method and
    /// [`ActionValues::state_width`]; the other methods for memory follow from the two.
    fn values_from(&self, obs: Self::Obs, _state: &mut PolicyState) -> Tensor<2> {
        self.values(obs)
    }

    /// [`ActionValues::best`] with what the network remembers, which it replaces.
    fn best_from(&self, obs: Self::Obs, state: &mut PolicyState) -> (Tensor<2>, Tensor<1>) {
        if self.state_width() == 0 {
            return self.best(obs);
        }
        let legal = self.action_mask(&obs);
        best_of(self.values_from(obs, state), legal)
    }

    /// [`ActionValues::values_of`] for the rows of sequences.
    fn values_of_sequences(&self, obs: Self::Obs, action: Tensor<2>, sequences: &Sequences) -> Tensor<1> {
        let values = sequences.steps(|rows, before| {
            let mut state = PolicyState { numbers: Some(before) };
            let values = self.values_from(obs.range(rows), &mut state);
            (values, state.numbers.expect("a network with memory leaves a state"))
        });
        Tensor::cat(values, 0).gather(1, action.int()).squeeze_dim(1)
    }

    /// `[n_rows, state_width]`: what the network remembers after each row of sequences.
    fn states_of_sequences(&self, obs: Self::Obs, sequences: &Sequences) -> Tensor<2> {
        let states = sequences.steps(|rows, before| {
            let mut state = PolicyState { numbers: Some(before) };
            self.values_from(obs.range(rows), &mut state);
            let after = state.numbers.expect("a network with memory leaves a state");
            (after.clone(), after)
        });
        Tensor::cat(states, 0)
    }

    /// [`ActionValues::gradient`] of [`ActionValues::values_of_sequences`].
    fn gradient_of_sequences(
        &self,
        _obs: &Self::Obs,
        _action: &Tensor<2>,
        _sequences: &Sequences,
        _by: &mut ByResults<'_, 1>,
    ) -> Option<Vec<f32>> {
        None
    }

    /// Uniform random numbers per row that [`ActionValues::random_action`] consumes.
    fn random_action_width(&self) -> usize {
        self.n_actions()
    }

    /// `[n_rows, 1]`: a legal action, sampled uniformly.
    ///
    /// # Shapes
    /// - `noise`: `[n_rows, random_action_width]`, uniform in [0, 1)
    fn random_action(&self, obs: &Self::Obs, noise: Tensor<2>) -> Tensor<2> {
        best_of(noise, self.action_mask(obs)).0
    }

    /// Number of independent learners in this network. It is 1 unless the first dimension of every parameter counts
    /// learners.
    ///
    /// Row `i` belongs to learner `i % n_learners`. The loss is the sum over learners of the mean over their rows, and
    /// gradients are clipped per learner, so that the result equals separate learners.
    fn n_learners(&self) -> usize {
        1
    }

    /// The network as a list of layers whose scores are the values; `None` if it has no such form. See [`Policy::exported`].
    fn exported(&self) -> Option<ExportedPolicy> {
        None
    }
}

/// The greedy policy of a Q-network: it takes the action with the highest value.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/policies.inc")); }
/// # use shown::*;
/// use brasa_core::{Explore, Greedy, Obs, Policy, read_back};
/// use burn::tensor::Tensor;
///
/// // `Distance` has a higher value for a step to the left (0) where the place is positive.
/// let obs = Obs::new(Tensor::from_floats([[2.0], [-3.0]], &brasa_device::open_named("cpu")?));
/// let (action, ()) = Greedy(Distance).act(obs, Explore::Greedy);
/// assert_eq!(read_back(action), [0.0, 1.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Greedy<N>(
    /// The Q-network, on the non-autodiff device.
    pub N,
);

impl<N: ActionValues> Policy for Greedy<N> {
    type Obs = N::Obs;
    type Action = Tensor<2>;
    type Extra = ();

    fn noise(&self) -> NoiseSpec {
        NoiseSpec { width: 0, distribution: NoiseDistribution::Uniform, resample_every: 1 }
    }

    fn act(&self, obs: N::Obs, explore: Explore) -> (Tensor<2>, ()) {
        self.act_from(obs, &mut PolicyState::default(), explore)
    }

    fn state_width(&self) -> usize {
        self.0.state_width()
    }

    fn act_from(&self, obs: N::Obs, state: &mut PolicyState, _explore: Explore) -> (Tensor<2>, ()) {
        let (choice, value) = self.0.best_from(obs, state);
        // A value that is no number is that of no action: NaN stays NaN.
        (choice + (value.clone() - value).unsqueeze_dim(1), ())
    }

    fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        action
    }

    fn sizes(&self) -> Option<NetworkSizes> {
        self.0.sizes()
    }

    fn exported(&self) -> Option<ExportedPolicy> {
        self.0.exported()
    }
}

/// The legal column with the largest number, `[n_rows, 1]`, the first one if numbers are equal; and that number, `[n_rows]`.
fn best_of(values: Tensor<2>, legal: Option<Tensor<2>>) -> (Tensor<2>, Tensor<1>) {
    let n_rows = values.dims()[0];
    let (choice, value) = brasa_kernels::best_of_rows(values, legal);
    (choice.reshape([n_rows, 1]), value)
}

/// Values stored with an action of an [`ActorCritic`].
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/policies.inc")); }
/// # use shown::*;
/// use brasa_core::{Decision, Explore, Obs, Policy, read_back};
/// use burn::tensor::Tensor;
///
/// let obs = Obs::new(Tensor::from_floats([[2.0]], &brasa_device::open_named("cpu")?));
/// let (action, Decision { log_prob, value }) = Proportional(0.5).act(obs, Explore::Greedy);
/// // The log-density of a normal distribution at its mean. This policy has no value.
/// assert_eq!((read_back(action), read_back(log_prob)), (vec![-1.0], vec![-0.918_938_5]));
/// assert!(value.is_none());
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Decision {
    /// `[n_rows]`: log-probability (log-density for continuous actions) of the stored action, summed over its
    /// dimensions.
    pub log_prob: Tensor<1>,
    /// `[n_rows]`: estimated return. `None` where a separate critic would compute it row by row: the values of a whole rollout are then
    /// computed together, by [`ActorCritic::value`].
    pub value: Option<Tensor<1>>,
}

rows_by_field!([] Decision { log_prob, value });

/// Log-probabilities, entropies and values under the current policy.
///
/// ```
/// use brasa_core::{Evaluation, read_back};
/// use burn::tensor::Tensor;
///
/// /// The probability ratio of proximal policy optimization.
/// fn ratio(now: &Evaluation, old_log_prob: Tensor<1>) -> Tensor<1> {
///     (now.log_prob.clone() - old_log_prob).exp()
/// }
///
/// let device = brasa_device::open_named("cpu")?;
/// let [log_prob, entropy, value] = [-0.5, 0.7, 1.0].map(|x| Tensor::<1>::from_floats([x], &device));
/// let now = Evaluation { log_prob: log_prob.clone(), entropy, value };
/// assert_eq!(read_back(ratio(&now, log_prob)), [1.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// `[n_rows]`: log-probability under the current policy.
    pub log_prob: Tensor<1>,
    /// `[n_rows]`: entropy of the policy in nats, or its estimate `-log_prob` if there is no closed form.
    pub entropy: Tensor<1>,
    /// `[n_rows]`: estimated return.
    pub value: Tensor<1>,
}

rows_by_field!([] Evaluation { log_prob, entropy, value });

/// Whether to explore.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/policies.inc")); }
/// # use shown::*;
/// use brasa_core::{Explore, Obs, Policy, read_back};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let obs = Obs::new(Tensor::from_floats([[2.0]], &device));
/// let act = |explore| read_back(Proportional(1.0).act(obs.clone(), explore).0);
/// assert_eq!(act(Explore::Greedy), [-2.0]);
/// assert_eq!(act(Explore::Sample(Tensor::from_floats([[0.5]], &device))), [-1.5]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "a handle that is passed once per step")]
pub enum Explore {
    /// Samples from the policy with noise of [`Policy::noise`], `[n_rows, width]`.
    Sample(Tensor<2>),
    /// Takes the most probable action.
    Greedy,
}

/// The random numbers that a policy needs per row.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/policies.inc")); }
/// # use shown::*;
/// use brasa_core::{NoiseDistribution, NoiseSpec, Policy};
///
/// // One normal number per row, new at each step.
/// let noise = Proportional(1.0).noise();
/// let expected = NoiseSpec { width: 1, distribution: NoiseDistribution::Normal, resample_every: 1 };
/// assert_eq!(noise, expected);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoiseSpec {
    /// Numbers per row.
    pub width: usize,
    /// Their distribution.
    pub distribution: NoiseDistribution,
    /// Number of steps that use the same noise, at most one rollout; 1 for new noise at each step.
    pub resample_every: usize,
}

/// The distribution of exploration noise.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/policies.inc")); }
/// # use shown::*;
/// use brasa_core::{Greedy, NoiseDistribution, Policy};
///
/// assert_eq!(Proportional(1.0).noise().distribution, NoiseDistribution::Normal);
/// // A greedy policy needs no noise, so its distribution has no effect.
/// assert_eq!(Greedy(Distance).noise().width, 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoiseDistribution {
    /// Standard normal.
    Normal,
    /// Standard Gumbel: the argmax of `logits + noise` is a sample of the categorical distribution.
    Gumbel,
    /// Uniform in [0, 1).
    Uniform,
    /// Standard Gumbel for the first numbers of a row, and standard normal for the others: for choices with real numbers.
    GumbelThenNormal {
        /// How many numbers of a row are Gumbel.
        n_gumbel: usize,
    },
}
