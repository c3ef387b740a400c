//! An actor-critic that remembers.

use std::ops::Range;

use brasa_core::analytic::ByResults;
use brasa_core::env::{EnvSpec, Space, field};
use brasa_core::export::ExportedPolicy;
use brasa_core::{
    ActorCritic, Decision, Evaluation, Explore, HostActor, HostDecisions, HostObs, NetworkSizes, NoiseSpec, Obs,
    Policy, PolicyState, Sequences,
};
use brasa_kernels::{HostMlp, HostRecurrent, HostTensor, RecurrentKind};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::action_head::HostHead;
use crate::actor_critic::check_widths;
use crate::exported::Layers;
use crate::privileged::{check_apart, seen, seen_rows};
use crate::{
    ActionHead, ActionHeadConfig, Activation, Heads, Init, Linear, Mlp, MlpConfig, NnError, Recurrent, StdKind,
};

/// Shape of an actor-critic with recurrent layers.
///
/// ```
/// use brasa_nn::{RecurrentActorCriticConfig, RecurrentKind};
///
/// let config: RecurrentActorCriticConfig = serde_json::from_str(r#"{ "kind": "gru", "width": 32 }"#)?;
/// assert_eq!((config.kind, config.width), (RecurrentKind::Gru, 32));
/// // By default, actor and critic have a recurrent layer each.
/// assert!(!config.shared);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecurrentActorCriticConfig {
    /// The cell: an LSTM (default, as sb3-contrib) or a GRU, which has three quarters of its weights.
    pub kind: RecurrentKind,
    /// Cells of a recurrent layer. Default 64. More cells remember more, and need more data and time.
    pub width: usize,
    /// Whether actor and critic share one recurrent layer. Default off: a layer each, as sb3-contrib. Sharing saves half the time, but the two
    /// losses interfere.
    pub shared: bool,
    /// Widths of layers between observations and recurrent layers. Default none.
    pub encoder_hidden: Vec<usize>,
    /// Widths of the actor's layers behind its recurrent layer. Default 64.
    pub actor_hidden: Vec<usize>,
    /// Widths of the critic's layers behind its recurrent layer. Default 64.
    pub critic_hidden: Vec<usize>,
    /// Activation of the other layers. Default tanh.
    pub activation: Activation,
    /// Orthogonal initial weights: with gain sqrt(2), 1 for recurrent layers, 0.01 for the actor's and 1 for the critic's last layer; if off,
    /// PyTorch's default. Default on.
    pub orthogonal: bool,
    /// For continuous actions: parameterization of the standard deviation. Default independent of the observation.
    pub std: StdKind,
    /// For continuous actions: logarithm of the initial standard deviation. Default 0.
    pub log_std_init: f64,
    /// Whether continuous actions are squashed by tanh and scaled to their bounds, instead of clipped to them.
    /// Default off. Needs finite bounds.
    pub squash: bool,
    /// With state-dependent exploration: steps with the same noise. Default a whole rollout.
    pub sde_sample_freq: Option<usize>,
}

impl Default for RecurrentActorCriticConfig {
    fn default() -> Self {
        Self {
            kind: RecurrentKind::Lstm,
            width: 64,
            shared: false,
            encoder_hidden: vec![],
            actor_hidden: vec![64],
            critic_hidden: vec![64],
            activation: Activation::Tanh,
            orthogonal: true,
            std: StdKind::Independent,
            log_std_init: 0.0,
            squash: false,
            sde_sample_freq: None,
        }
    }
}

/// Actor and critic with a recurrent layer each, or with one for both, on flat observations, for every kind of action space.
///
/// What it remembers is a [`PolicyState`]: the state of the actor's layer, then that of the critic's.
///
/// ```
/// use brasa_core::env::{Space, named_rng};
/// use brasa_core::{Explore, Obs, Policy, PolicyState};
/// use brasa_nn::{RecurrentActorCritic, RecurrentActorCriticConfig};
/// use burn::tensor::Tensor;
///
/// let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::Discrete(3));
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let policy = RecurrentActorCritic::new(&RecurrentActorCriticConfig::default(), &obs, &action, &device, rng)?;
/// let mut state = PolicyState::new(4, policy.state_width(), &device);
/// for _ in 0..3 {
///     let seen = Obs::new(Tensor::ones([4, 2], &device));
///     let (action, _) = policy.act_from(seen, &mut state, Explore::Greedy);
///     assert_eq!(action.dims(), [4, 1]);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct RecurrentActorCritic {
    encoder: Mlp,
    actor_memory: Recurrent,
    /// `None` if there is one for both.
    critic_memory: Option<Recurrent>,
    actor: Mlp,
    critic: Mlp,
    critic_head: Linear,
    actor_head: ActionHead,
    /// Columns of observations that are for the critic alone.
    #[module(skip)]
    privileged: Range<usize>,
}

impl RecurrentActorCritic {
    /// A network for these spaces, with initial weights from `rng`.
    ///
    /// # Errors
    /// [`NnError`] if a width is 0, a bound is missing for squashing, or `log_std_init` is not finite.
    pub fn new(
        config: &RecurrentActorCriticConfig,
        obs_space: &Space,
        action_space: &Space,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        Self::for_env(config, &EnvSpec::new(obs_space.clone(), action_space.clone(), 1), device, rng)
    }

    /// A network for environments of `spec`, whose actor does not see [`EnvSpec::privileged`].
    ///
    /// # Errors
    /// As [`RecurrentActorCritic::new`]; [`NnError::Field`] for layers that actor and critic have in common where they see different numbers.
    pub fn for_env(
        config: &RecurrentActorCriticConfig,
        spec: &EnvSpec,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        let (obs_space, action_space, privileged) = (&spec.obs, &spec.action, spec.privileged.clone());
        let encoder = &config.encoder_hidden;
        check_apart(&privileged, "encoder_hidden", !encoder.is_empty(), format!("{encoder:?}"))?;
        check_apart(&privileged, "shared", config.shared, config.shared.to_string())?;
        field::at_least_one("width", config.width as u64)?;
        let memory = [config.width, config.kind.n_gates() * config.width];
        for (name, widths) in [
            ("width", &memory[..]),
            ("encoder_hidden", &config.encoder_hidden),
            ("actor_hidden", &config.actor_hidden),
            ("critic_hidden", &config.critic_hidden),
        ] {
            check_widths(name, widths)?;
        }
        let heads = Heads::new(action_space, config.squash)?;
        let init = |gain: f64| if config.orthogonal { Init::Orthogonal(gain) } else { Init::FanIn };
        let body = |inputs: usize, hidden: &[usize], rng: &mut _| {
            let config = MlpConfig::body(inputs, hidden, config.activation, config.orthogonal);
            (Mlp::new(&config, device, rng), hidden.last().copied().unwrap_or(inputs))
        };
        let (encoder, features) = body(obs_space.width(), &config.encoder_hidden, rng);
        let cells = match config.orthogonal {
            true => Init::Orthogonal(1.0),
            false => Init::Within(1.0 / (config.width as f64).sqrt()),
        };
        let mut memory = |inputs| Recurrent::new(config.kind, inputs, config.width, cells, device, rng);
        let actor_memory = memory(features - privileged.len());
        let critic_memory = (!config.shared).then(|| memory(features));
        let (actor, actor_width) = body(config.width, &config.actor_hidden, rng);
        let (critic, critic_width) = body(config.width, &config.critic_hidden, rng);
        let head = ActionHeadConfig {
            init: init(0.01),
            std: config.std,
            log_std_init: config.log_std_init,
            squash: config.squash,
            sde_sample_freq: config.sde_sample_freq,
        };
        let output = Linear::new(actor_width, heads.outputs(), head.init, device, rng);
        let critic_head = Linear::new(critic_width, 1, init(1.0), device, rng);
        let actor_head = ActionHead::behind(&head, actor_width, heads, output, device, rng)?;
        Ok(Self { encoder, actor_memory, critic_memory, actor, critic, critic_head, actor_head, privileged })
    }

    /// The meaning of the outputs of the actor.
    pub fn heads(&self) -> &Heads {
        self.actor_head.heads()
    }

    fn memories(&self) -> impl Iterator<Item = &Recurrent> {
        [Some(&self.actor_memory), self.critic_memory.as_ref()].into_iter().flatten()
    }

    /// What each recurrent layer remembers.
    fn states(&self, numbers: &Tensor<2>) -> Vec<Tensor<2>> {
        let mut first = 0;
        let widths = self.memories().map(Recurrent::state_width);
        let states = widths.map(|width| {
            first += width;
            numbers.clone().narrow(1, first - width, width)
        });
        states.collect()
    }

    /// The numbers of `state`, or 0.
    fn numbers(&self, state: &PolicyState, n_rows: usize, device: &Device) -> Tensor<2> {
        state.numbers.clone().unwrap_or_else(|| Tensor::zeros([n_rows, self.state_width()], device))
    }

    fn of_actor(&self, features: Tensor<2>) -> Tensor<2> {
        seen(&self.privileged, self.actor_memory.inputs(), features)
    }

    fn value_of(&self, remembered: Tensor<2>) -> Tensor<1> {
        self.critic.forward_before(remembered, Some(&self.critic_head)).squeeze_dim(1)
    }

    /// Layers in the memory of the CPU; `None` elsewhere.
    fn on_host(&self) -> Option<HostLayers> {
        let critic_memory = match &self.critic_memory {
            Some(memory) => Some(memory.on_host()?),
            None => None,
        };
        Some(HostLayers {
            encoder: self.encoder.on_host([])?,
            actor_memory: self.actor_memory.on_host()?,
            critic_memory,
            actor: self.actor.on_host([self.actor_head.output()])?,
            critic: self.critic.on_host([&self.critic_head])?,
            privileged: self.privileged.clone(),
            inputs: self.actor_memory.inputs(),
        })
    }

    fn first_steps(&self, obs: &Obs) -> Sequences {
        let (n_rows, device) = (obs.values.dims()[0], obs.values.device().without_autodiff());
        Sequences {
            state: Tensor::zeros([n_rows, self.state_width()], &device),
            starts: Tensor::zeros([n_rows], &device),
        }
    }
}

impl Policy for RecurrentActorCritic {
    type Obs = Obs;
    type Action = Tensor<2>;
    type Extra = Decision;

    fn noise(&self) -> NoiseSpec {
        self.actor_head.noise()
    }

    fn act(&self, obs: Obs, explore: Explore) -> (Tensor<2>, Decision) {
        self.act_from(obs, &mut PolicyState::default(), explore)
    }

    fn state_width(&self) -> usize {
        self.memories().map(Recurrent::state_width).sum()
    }

    fn act_from(&self, obs: Obs, state: &mut PolicyState, explore: Explore) -> (Tensor<2>, Decision) {
        let numbers = self.numbers(state, obs.values.dims()[0], &obs.values.device());
        let (features, mut states) = (self.encoder.forward(obs.values), self.states(&numbers));
        let (remembered, after) = self.actor_memory.step(self.of_actor(features.clone()), states[0].clone());
        states[0] = after;
        let of_critic = match &self.critic_memory {
            None => Some(remembered.clone()),
            // An agent that acts alone has no numbers for the critic.
            Some(memory) if features.dims()[1] != memory.inputs() => None,
            Some(memory) => {
                let (remembered, after) = memory.step(features, states[1].clone());
                states[1] = after;
                Some(remembered)
            }
        };
        *state = PolicyState { numbers: Some(Tensor::cat(states, 1)) };
        let value = of_critic.map(|remembered| self.value_of(remembered));
        let (action, log_prob) = self.actor_head.act_behind(&self.actor, remembered, obs.mask, explore);
        (action, Decision { log_prob, value })
    }

    fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        self.actor_head.to_env(action)
    }

    fn sizes(&self) -> Option<NetworkSizes> {
        let obs = self.encoder.inputs(self.actor_memory.inputs()) + self.privileged.len();
        Some(NetworkSizes { obs, privileged: self.privileged.clone(), action: self.heads().sizes(), n_agents: 1 })
    }

    /// It remembers the state of the actor's layer alone.
    fn exported(&self) -> Option<ExportedPolicy> {
        let mut layers = Layers::default();
        layers.mlp(&self.encoder);
        layers.recurrent(&self.actor_memory);
        layers.mlp(&self.actor);
        Some(layers.head(&self.actor_head))
    }
}

impl ActorCritic for RecurrentActorCritic {
    fn value(&self, obs: Obs) -> Tensor<1> {
        self.value_from(obs, &PolicyState::default())
    }

    fn value_from(&self, obs: Obs, state: &PolicyState) -> Tensor<1> {
        let numbers = self.numbers(state, obs.values.dims()[0], &obs.values.device());
        let memory = self.critic_memory.as_ref().unwrap_or(&self.actor_memory);
        let state = self.states(&numbers).pop().expect("there is a recurrent layer");
        self.value_of(memory.step(self.encoder.forward(obs.values), state).0)
    }

    fn evaluate(&self, obs: Obs, action: Tensor<2>) -> Evaluation {
        let sequences = self.first_steps(&obs);
        self.evaluate_sequences(obs, action, &sequences)
    }

    fn evaluate_sequences(&self, obs: Obs, action: Tensor<2>, sequences: &Sequences) -> Evaluation {
        let features = self.encoder.forward(obs.values);
        let of_actor = self.of_actor(features.clone());
        let inputs = self.memories().zip([of_actor, features]);
        let outputs = inputs.zip(self.states(&sequences.state)).map(|((memory, features), state)| {
            let own = Sequences { state, starts: sequences.starts.clone() };
            memory.forward(features, &own)
        });
        let outputs: Vec<_> = outputs.collect();
        let value = self.value_of(outputs[outputs.len() - 1].clone());
        let (log_prob, entropy) = self.actor_head.evaluate(self.actor.forward(outputs[0].clone()), obs.mask, action);
        Evaluation { log_prob, entropy, value }
    }

    fn choice(&self, obs: &Obs) -> Option<Tensor<1>> {
        self.actor_head.choice(obs.mask.as_ref())
    }

    fn gradient(&self, obs: &Obs, action: &Tensor<2>, by: &mut ByResults<'_, 3>) -> Option<Vec<f32>> {
        self.gradient_of_sequences(obs, action, &self.first_steps(obs), by)
    }

    fn gradient_of_sequences(
        &self,
        obs: &Obs,
        action: &Tensor<2>,
        sequences: &Sequences,
        by: &mut ByResults<'_, 3>,
    ) -> Option<Vec<f32>> {
        let ([n_sequences, _], [n_rows, _]) = (sequences.state.dims(), action.dims());
        let (obs_values, actions) = (HostTensor::of(&obs.values)?, HostTensor::of(action)?);
        if n_rows == 0 || !self.actor_head.has_slopes() {
            return None;
        }
        let mask = match &obs.mask {
            Some(mask) => Some(HostTensor::of(mask)?),
            None => None,
        };
        let (state, starts) = (HostTensor::of(&sequences.state)?, HostTensor::of(&sequences.starts)?);
        let mut layers = self.on_host()?;
        let mut own = layers.own_states(&state, n_sequences);
        layers.forward(&obs_values, n_rows, n_sequences, &starts, &mut own);
        let [outputs, value] = layers.results();
        let features = layers.actor.features(layers.actor_memory.results());
        let of_head = [outputs, features];
        let ([log_prob, entropy], slopes) = self.actor_head.evaluate_on_host(of_head, mask.as_deref(), &actions)?;
        let [mut by_log_prob, by_entropy, mut by_value] = by([&log_prob, &entropy, value])?;
        // Empty for a result on which the loss does not depend.
        [&mut by_log_prob, &mut by_value].into_iter().for_each(|by| by.resize(n_rows, 0.0));
        let (by_outputs, by_log_std) =
            slopes.gradient([&by_log_prob, &by_entropy], [n_rows, self.actor_head.heads().outputs()]);
        let mut gradient = layers.backward(&obs_values, [&by_outputs, &by_value]);
        let end_of_actor = gradient.len() - layers.critic.n_params();
        self.actor_head.put_last(&mut gradient, end_of_actor, by_log_std);
        Some(gradient)
    }

    fn host_actor(&self) -> Option<Box<dyn HostActor>> {
        Some(Box::new(RecurrentActor { layers: self.on_host()?, head: self.actor_head.on_host()? }))
    }

    fn std(&self) -> Option<Tensor<1>> {
        self.actor_head.std()
    }
}

/// The layers in the memory of the CPU, in the order of their parameters.
struct HostLayers {
    encoder: HostMlp,
    actor_memory: HostRecurrent,
    critic_memory: Option<HostRecurrent>,
    /// With its output layer.
    actor: HostMlp,
    critic: HostMlp,
    privileged: Range<usize>,
    /// Numbers that the memory of the actor takes.
    inputs: usize,
}

impl HostLayers {
    /// The states of the recurrent layers, of `[n, state_width]`.
    fn own_states(&self, state: &[f32], n: usize) -> [Vec<f32>; 2] {
        let of_actor = self.actor_memory.n_states();
        let [mut actor, mut critic] = [Vec::new(), Vec::new()];
        for row in state.chunks_exact((state.len() / n.max(1)).max(1)) {
            actor.extend_from_slice(&row[..of_actor]);
            critic.extend_from_slice(&row[of_actor..]);
        }
        [actor, critic]
    }

    /// See [`HostRecurrent::forward`].
    fn forward(
        &mut self,
        x: &[f32],
        n_rows: usize,
        n_sequences: usize,
        starts: &[f32],
        [of_actor, of_critic]: &mut [Vec<f32>; 2],
    ) {
        let features = self.encoder.forward(x, n_rows);
        let of_actor_features = seen_rows(&self.privileged, self.inputs, features, n_rows);
        let actor = self.actor_memory.forward(&of_actor_features, n_sequences, starts, of_actor);
        let critic = match &mut self.critic_memory {
            Some(memory) => memory.forward(features, n_sequences, starts, of_critic),
            None => actor,
        };
        self.actor.forward(actor, n_rows);
        self.critic.forward(critic, n_rows);
    }

    /// Outputs of actor and critic in the last [`HostLayers::forward`].
    fn results(&self) -> [&[f32]; 2] {
        let of_actor = self.actor_memory.results();
        let of_critic = self.critic_memory.as_ref().map_or(of_actor, HostRecurrent::results);
        [self.actor.results(of_actor), self.critic.results(of_critic)]
    }

    /// The gradient of all parameters from the derivatives by the outputs of the last [`HostLayers::forward`], whose input was `x`.
    fn backward(&self, x: &[f32], [by_outputs, by_values]: [&[f32]; 2]) -> Vec<f32> {
        let Self { encoder, actor_memory, critic_memory, actor, critic, privileged, inputs } = self;
        let n_critic_memory = critic_memory.as_ref().map_or(0, HostRecurrent::n_params);
        let counts =
            [encoder.n_params(), actor_memory.n_params(), n_critic_memory, actor.n_params(), critic.n_params()];
        let mut gradient = vec![0.0; counts.iter().sum()];
        let mut rest = &mut gradient[..];
        let [of_encoder, of_actor_memory, of_critic_memory, of_actor, of_critic] = counts.map(|n| {
            let (own, after) = std::mem::take(&mut rest).split_at_mut(n);
            rest = after;
            own
        });
        let (mut by_actor, mut by_critic) = (Vec::new(), Vec::new());
        let features = encoder.results(x);
        actor.backward(actor_memory.results(), by_outputs, Some(of_actor), Some(&mut by_actor));
        let remembered = critic_memory.as_ref().unwrap_or(actor_memory).results();
        critic.backward(remembered, by_values, Some(of_critic), Some(&mut by_critic));
        let add = |to: &mut Vec<f32>, more: &[f32]| to.iter_mut().zip(more).for_each(|(sum, x)| *sum += x);
        if critic_memory.is_none() {
            add(&mut by_actor, &by_critic);
        }
        let wants = !of_encoder.is_empty();
        let (mut by_features, mut more) = (Vec::new(), Vec::new());
        let seen = seen_rows(privileged, *inputs, features, by_values.len());
        actor_memory.backward(&seen, &by_actor, of_actor_memory, wants.then_some(&mut by_features));
        if let Some(memory) = critic_memory {
            memory.backward(features, &by_critic, of_critic_memory, wants.then_some(&mut more));
            add(&mut by_features, &more);
        }
        if wants {
            encoder.backward(x, &by_features, Some(of_encoder), None);
        }
        gradient
    }
}

/// A [`RecurrentActorCritic`] that acts in the memory of the CPU.
struct RecurrentActor {
    layers: HostLayers,
    head: HostHead,
}

impl HostActor for RecurrentActor {
    fn act(
        &mut self,
        obs: HostObs<'_>,
        state: &mut [f32],
        noise: &[f32],
        decisions: &mut HostDecisions,
        in_env: &mut Vec<f32>,
    ) {
        let n_rows = obs.n_rows;
        let mut own = self.layers.own_states(state, n_rows);
        self.layers.forward(obs.values, n_rows, n_rows, &[], &mut own);
        let [outputs, values] = self.layers.results();
        decisions.value.extend_from_slice(values);
        let features = self.layers.actor.features(self.layers.actor_memory.results());
        self.head.draw([outputs, features], obs.mask, noise, decisions, in_env);
        let [actor, critic] = own;
        let (n_actor, width) = (actor.len() / n_rows, state.len() / n_rows);
        for (i, row) in state.chunks_exact_mut(width).enumerate() {
            let (of_actor, of_critic) = row.split_at_mut(n_actor);
            of_actor.copy_from_slice(&actor[i * n_actor..(i + 1) * n_actor]);
            of_critic.copy_from_slice(&critic[i * (width - n_actor)..(i + 1) * (width - n_actor)]);
        }
    }
}
