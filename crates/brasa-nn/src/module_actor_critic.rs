//! Any module of Burn as an actor-critic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brasa_core::env::{BatchSlabs, EnvSpec, panic_message};
use brasa_core::export::{ExportedPolicy, Layer};
use brasa_core::{
    ActionSizes, ActorCritic, Decision, Evaluation, Explore, NetworkSizes, NoiseSpec, ObsForm, ObsParts, Policy,
    PolicyState, Rows, Sequences,
};
use burn::module::{Module, Param};
use burn::tensor::Tensor;

use crate::distribution::{categorical, gaussian, hybrid};
use crate::exported::Layers;
use crate::linear::leaf;
use crate::{Heads, NnError};

/// A custom module that [`ModuleActorCritic`] makes an actor-critic.
///
/// ```
/// use brasa_core::env::{EnvSpec, Space, named_rng};
/// use brasa_core::{Explore, Obs, Policy};
/// use brasa_nn::{ActorCriticModule, Init, Linear, ModuleActorCritic};
/// use burn::{module::Module, tensor::Tensor};
///
/// /// One layer for the means of actions and for the value.
/// #[derive(Module, Debug)]
/// struct Small {
///     layer: Linear,
/// }
///
/// impl ActorCriticModule for Small {
///     type Obs = Obs;
///     fn forward(&self, obs: Obs) -> (Tensor<2>, Tensor<1>) {
///         let outputs = self.layer.forward(obs.values, None);
///         (outputs.clone().narrow(1, 0, 1), outputs.narrow(1, 1, 1).squeeze_dim(1))
///     }
/// }
///
/// let device = brasa_device::open_named("cpu")?;
/// let spec = EnvSpec::new(Space::uniform_box(-1.0, 1.0, ["x"]), Space::uniform_box(-1.0, 1.0, ["push"]), 8);
/// let rng = &mut named_rng(0, "weights", 0);
/// let layer = Linear::new(1, 2, Init::Orthogonal(0.01), &device.clone().autodiff(), rng);
/// let policy = ModuleActorCritic::new(Small { layer }, &spec)?.valid();
/// let (action, _) = policy.act(Obs::new(Tensor::zeros([8, 1], &device)), Explore::Greedy);
/// assert_eq!(brasa_core::read_back(action), [0.0; 8]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no module of an actor-critic",
    note = "implement `ActorCriticModule`: `type Obs = Obs;` and `fn forward(&self, obs: Obs) -> (Tensor<2>, Tensor<1>)`, the outputs of the actor and the values"
)]
pub trait ActorCriticModule: Module {
    /// Form of observations: [`brasa_core::Obs`], or [`brasa_core::TeamObs`] to have once what agents share.
    type Obs: ObsForm;

    /// The outputs of the actor, `[n_rows, outputs]`, and the values, `[n_rows]`. The outputs are the logits of choices, one after the other, or
    /// the means of continuous actions.
    fn forward(&self, obs: Self::Obs) -> (Tensor<2>, Tensor<1>);

    /// Agents whose rows follow one another in every batch, as [`Policy::n_agents`]; 1, the default, if all rows are computed alike.
    fn n_agents(&self) -> usize {
        1
    }

    /// Numbers per row that the module remembers from step to step; 0, the default, for a module without memory.
    fn state_width(&self) -> usize {
        0
    }

    /// [`ActorCriticModule::forward`] from what the module remembers, `[n_rows, state_width]`, and what it remembers after this step. A module with
    /// memory implements this, and `forward` with a state of 0.
    fn step(&self, obs: Self::Obs, state: Tensor<2>) -> (Tensor<2>, Tensor<1>, Tensor<2>) {
        let (outputs, values) = self.forward(obs);
        (outputs, values, state)
    }

    /// Whether [`ActorCriticModule::forward`] takes observations with and without the columns of [`EnvSpec::privileged`], of which the values
    /// alone depend. By default a module takes no such environments.
    fn has_central_critic(&self) -> bool {
        false
    }

    /// The layers from observations to the outputs of the actor, for exported policies ([`Policy::exported`]); `None`, the default, if the module
    /// has no such form.
    fn exported(&self) -> Option<Vec<Layer>> {
        None
    }
}

/// A custom module as an actor-critic for PPO and A2C. Its outputs are logits of choices, or means of continuous actions with a trained
/// standard deviation per dimension. Masks, sampling, log-probabilities and entropies are those of [`ActionHead`](crate::ActionHead).
///
/// ```
/// use brasa_core::env::{EnvSpec, Space};
/// use brasa_core::{ActorCritic, Obs};
/// use brasa_nn::{ActorCriticModule, ModuleActorCritic};
/// use burn::module::Module;
/// use burn::nn::{Linear, LinearConfig};
/// use burn::tensor::Tensor;
///
/// #[derive(Module, Debug)]
/// struct Network {
///     body: Linear,
///     actor: Linear,
///     critic: Linear,
/// }
///
/// impl ActorCriticModule for Network {
///     type Obs = Obs;
///     fn forward(&self, obs: Obs) -> (Tensor<2>, Tensor<1>) {
///         let features = self.body.forward(obs.values).tanh();
///         (self.actor.forward(features.clone()), self.critic.forward(features).squeeze_dim(1))
///     }
/// }
///
/// let device = brasa_device::open_named("cpu")?.autodiff();
/// let layer = |inputs, outputs| LinearConfig::new(inputs, outputs).init(&device);
/// let network = Network { body: layer(4, 64), actor: layer(64, 2), critic: layer(64, 1) };
/// let spec = EnvSpec::new(Space::uniform_box(-1.0, 1.0, ["a", "b", "c", "d"]), Space::Discrete(2), 8);
/// let policy = ModuleActorCritic::new(network, &spec)?;
/// assert_eq!(policy.value(Obs::new(Tensor::zeros([8, 4], &device))).dims(), [8]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct ModuleActorCritic<M: Module> {
    network: M,
    /// Logarithms of standard deviations, `[numbers]`, for continuous actions.
    log_std: Option<Param<Tensor<1>>>,
    #[module(skip)]
    heads: Heads,
    #[module(skip)]
    sizes: NetworkSizes,
}

impl<M: ActorCriticModule> ModuleActorCritic<M> {
    /// `network` on an autodiff device. It is called once, on observations of zeros.
    ///
    /// # Errors
    /// [`NnError::Space`] for a network without parameters, if the shape of its results does not fit the actions of `spec`, and if the network panics
    /// on observations of `spec`, as layers of Burn with other widths do.
    pub fn new(network: M, spec: &EnvSpec) -> Result<Self, NnError> {
        let heads = Heads::new(&spec.action, false)?;
        let Some(device) = network.devices().into_iter().next() else {
            return Err(NnError::Space("a module without parameters cannot be trained".into()));
        };
        let plain = device.clone().without_autodiff();
        let obs = M::Obs::assemble(ObsParts::upload(spec, &BatchSlabs::new(spec), &plain));
        let n_rows = spec.n_rows();
        let observed = format!("{:?}", [n_rows, spec.obs.width()]);
        let inner = network.valid();
        let computed = catch_unwind(AssertUnwindSafe(|| inner.forward(obs)));
        let (outputs, values) = computed.map_err(|panic| {
            let reason = panic_message(&*panic);
            NnError::Space(format!(
                "the network panicked on observations of shape {observed}, which these environments have: {reason}"
            ))
        })?;
        let (found, expected) = ((outputs.dims(), values.dims()), ([n_rows, heads.outputs()], [n_rows]));
        if found != expected {
            return Err(NnError::Space(format!(
                "for {n_rows} rows and these actions a network must return tensors of shapes {:?} and {:?}, got {:?} and {:?}",
                expected.0, expected.1, found.0, found.1
            )));
        }
        let log_std = match &heads {
            Heads::Choice(_) => None,
            Heads::Real { .. } | Heads::Hybrid { .. } => Some(leaf(Tensor::zeros([heads.n_numbers()], &device))),
        };
        let privileged = if network.has_central_critic() { spec.privileged.clone() } else { 0..0 };
        let (action, n_agents) = (ActionSizes::of(&spec.action), network.n_agents());
        let sizes = NetworkSizes { obs: spec.obs.width(), privileged, action, n_agents };
        Ok(Self { network, log_std, heads, sizes })
    }

    /// The module.
    pub fn network(&self) -> &M {
        &self.network
    }

    fn draw(&self, outputs: Tensor<2>, mask: Option<Tensor<2>>, explore: Explore) -> (Tensor<2>, Tensor<1>) {
        let noise = match explore {
            Explore::Sample(noise) => Some(noise),
            Explore::Greedy => None,
        };
        match &self.heads {
            Heads::Choice(heads) => categorical::draw(outputs, mask, noise, heads),
            Heads::Real { .. } => gaussian::draw(outputs, self.log_std(), noise),
            Heads::Hybrid { heads, .. } => hybrid::draw(outputs, self.log_std(), mask, noise, heads),
        }
    }

    fn judge(&self, outputs: Tensor<2>, value: Tensor<1>, mask: Option<Tensor<2>>, action: Tensor<2>) -> Evaluation {
        let (log_prob, entropy) = match &self.heads {
            Heads::Choice(heads) => categorical::evaluate(outputs, mask, action, heads),
            Heads::Real { .. } => gaussian::evaluate(outputs, self.log_std(), action, false),
            Heads::Hybrid { heads, .. } => hybrid::evaluate(outputs, self.log_std(), mask, action, heads),
        };
        Evaluation { log_prob, entropy, value }
    }

    /// What `state` has, or 0.
    fn remembered(&self, state: &PolicyState, obs: &M::Obs) -> Tensor<2> {
        state.numbers.clone().unwrap_or_else(|| {
            let device = self.network.devices().into_iter().next().expect("it has parameters").without_autodiff();
            Tensor::zeros([obs.n_rows(), self.network.state_width()], &device)
        })
    }

    fn log_std(&self) -> Tensor<2> {
        self.log_std.as_ref().expect("continuous actions have one").val().unsqueeze::<2>()
    }
}

impl<M: ActorCriticModule> Policy for ModuleActorCritic<M> {
    type Obs = M::Obs;
    type Action = Tensor<2>;
    type Extra = Decision;

    fn noise(&self) -> NoiseSpec {
        self.heads.noise()
    }

    fn act(&self, obs: M::Obs, explore: Explore) -> (Tensor<2>, Decision) {
        let mask = obs.legal();
        let (outputs, value) = self.network.forward(obs);
        let (action, log_prob) = self.draw(outputs, mask, explore);
        (action, Decision { log_prob, value: Some(value) })
    }

    fn state_width(&self) -> usize {
        self.network.state_width()
    }

    fn act_from(&self, obs: M::Obs, state: &mut PolicyState, explore: Explore) -> (Tensor<2>, Decision) {
        if self.state_width() == 0 {
            return self.act(obs, explore);
        }
        let (mask, before) = (obs.legal(), self.remembered(state, &obs));
        let (outputs, value, after) = self.network.step(obs, before);
        *state = PolicyState { numbers: Some(after) };
        let (action, log_prob) = self.draw(outputs, mask, explore);
        (action, Decision { log_prob, value: Some(value) })
    }

    fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        self.heads.to_env(action)
    }

    fn sizes(&self) -> Option<NetworkSizes> {
        Some(self.sizes.clone())
    }

    fn exported(&self) -> Option<ExportedPolicy> {
        let obs_width = self.sizes.obs - self.sizes.privileged.len();
        let mut layers = Layers::of(obs_width, self.network.exported()?);
        let output = layers.actions(&self.heads);
        Some(layers.policy(self.network.n_agents(), output))
    }
}

impl<M: ActorCriticModule> ActorCritic for ModuleActorCritic<M> {
    fn value(&self, obs: M::Obs) -> Tensor<1> {
        self.network.forward(obs).1
    }

    fn evaluate(&self, obs: M::Obs, action: Tensor<2>) -> Evaluation {
        let mask = obs.legal();
        let (outputs, value) = self.network.forward(obs);
        self.judge(outputs, value, mask, action)
    }

    fn value_from(&self, obs: M::Obs, state: &PolicyState) -> Tensor<1> {
        let before = self.remembered(state, &obs);
        self.network.step(obs, before).1
    }

    fn evaluate_sequences(&self, obs: M::Obs, action: Tensor<2>, sequences: &Sequences) -> Evaluation {
        let steps = sequences.steps(|rows, state| {
            let (outputs, values, after) = self.network.step(obs.range(rows), state);
            ((outputs, values), after)
        });
        let (outputs, values): (Vec<_>, Vec<_>) = steps.into_iter().unzip();
        self.judge(Tensor::cat(outputs, 0), Tensor::cat(values, 0), obs.legal(), action)
    }

    fn choice(&self, obs: &M::Obs) -> Option<Tensor<1>> {
        self.heads.choice(obs.legal().as_ref())
    }
}
