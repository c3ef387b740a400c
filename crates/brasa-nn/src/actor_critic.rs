//! An MLP actor-critic.

use std::ops::Range;

use brasa_core::analytic::ByResults;
use brasa_core::env::{EnvSpec, Space, field};
use brasa_core::export::ExportedPolicy;
use brasa_core::{
    ActorCritic, Decision, Evaluation, Explore, HostActor, HostDecisions, HostObs, NetworkSizes, NoiseSpec, Obs, Policy,
};
use brasa_kernels::{HostMlp, HostTensor};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::action_head::HostHead;
use crate::branches::Branches;
use crate::exported::Layers;
use crate::privileged::{check_apart, seen, seen_rows};
use crate::{ActionHead, ActionHeadConfig, Activation, Heads, Init, Linear, Mlp, MlpConfig, NnError, StdKind};

/// Shape of an MLP actor-critic.
///
/// ```
/// use brasa_nn::{ActorCriticConfig, StdKind};
///
/// let config: ActorCriticConfig = serde_json::from_str(r#"{ "actor_hidden": [128], "std": "dependent" }"#)?;
/// assert_eq!((&config.actor_hidden[..], config.std), (&[128][..], StdKind::Dependent));
/// // Other settings have their defaults.
/// assert_eq!(config.critic_hidden, [64, 64]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ActorCriticConfig {
    /// Widths of hidden layers that actor and critic share. Default none: sharing saves time, but the two losses
    /// interfere. A critic that sees more than the actor shares none.
    pub shared_hidden: Vec<usize>,
    /// Widths of the actor's own hidden layers. Default 64, 64 (Stable-Baselines3).
    pub actor_hidden: Vec<usize>,
    /// Widths of the critic's own hidden layers. Default 64, 64 (Stable-Baselines3).
    pub critic_hidden: Vec<usize>,
    /// Activation of the hidden layers. Default tanh (Stable-Baselines3).
    pub activation: Activation,
    /// Orthogonal initial weights with gain sqrt(2), 0.01 for the actor's and 1 for the critic's last layer; if off,
    /// PyTorch's default. Default on: a small last layer makes the first policy nearly uniform.
    pub orthogonal: bool,
    /// For continuous actions: parameterization of the standard deviation. Default independent of the observation.
    pub std: StdKind,
    /// Logarithm of the initial standard deviation. Default 0. Very low values do not explore, high ones act randomly.
    pub log_std_init: f64,
    /// Whether continuous actions are squashed by tanh and scaled to their bounds, instead of clipped to them.
    /// Default off. Needs finite bounds.
    pub squash: bool,
    /// With state-dependent exploration: steps with the same noise. Default a whole rollout.
    pub sde_sample_freq: Option<usize>,
}

impl Default for ActorCriticConfig {
    fn default() -> Self {
        Self {
            shared_hidden: vec![],
            actor_hidden: vec![64, 64],
            critic_hidden: vec![64, 64],
            activation: Activation::Tanh,
            orthogonal: true,
            std: StdKind::Independent,
            log_std_init: 0.0,
            squash: false,
            sde_sample_freq: None,
        }
    }
}

/// Actor and critic as MLPs on flat observations, for every kind of action space.
///
/// ```
/// use brasa_core::env::{Space, named_rng};
/// use brasa_core::{ActorCritic, Explore, Obs, Policy};
/// use brasa_nn::{ActorCriticConfig, MlpActorCritic};
/// use burn::tensor::Tensor;
///
/// let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::uniform_box(-5.0, 5.0, ["power_kw"]));
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let network = MlpActorCritic::new(&ActorCriticConfig::default(), &obs, &action, &device, rng)?;
/// let seen = Obs::new(Tensor::zeros([4, 2], &device));
/// assert_eq!(network.value(seen.clone()).dims(), [4]);
/// // A large sample is clipped to the bounds of the action.
/// let (action, _) = network.act(seen, Explore::Sample(Tensor::full([4, 1], 100.0, &device)));
/// assert_eq!(brasa_core::read_back(network.to_env(action)), [5.0; 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct MlpActorCritic {
    shared: Option<Mlp>,
    actor: Mlp,
    critic: Mlp,
    critic_head: Linear,
    actor_head: ActionHead,
    /// Columns of observations that the critic alone sees.
    #[module(skip)]
    privileged: Range<usize>,
}

impl MlpActorCritic {
    /// An MLP for these spaces, with initial weights from `rng`.
    ///
    /// # Errors
    /// [`NnError`] if a width is 0, a bound is missing for squashing, or `log_std_init` is not finite.
    pub fn new(
        config: &ActorCriticConfig,
        obs_space: &Space,
        action_space: &Space,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        Self::for_env(config, &EnvSpec::new(obs_space.clone(), action_space.clone(), 1), device, rng)
    }

    /// [`MlpActorCritic::new`] for environments of `spec`. The actor does not see [`EnvSpec::privileged`], the critic does: with the observations
    /// of [`JointObs`](brasa_core::env::wrappers::JointObs), PPO with this network is MAPPO (Yu et al. 2022, arXiv 2103.01955).
    ///
    /// ```
    /// use brasa_core::env::{EnvSpec, Space, named_rng};
    /// use brasa_core::{Explore, Obs, Policy};
    /// use brasa_nn::{ActorCriticConfig, MlpActorCritic};
    /// use burn::tensor::Tensor;
    ///
    /// let obs = Space::uniform_box(-1.0, 1.0, ["x", "y"]);
    /// let spec = EnvSpec { n_agents: 3, ..EnvSpec::new(obs, Space::Discrete(5), 1) }.joint()?;
    /// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
    /// let network = MlpActorCritic::for_env(&ActorCriticConfig::default(), &spec, &device, rng)?;
    /// // The critic sees the six numbers of the team, and the actor acts with the two numbers of its agent.
    /// network.act(Obs::new(Tensor::zeros([3, 6], &device)), Explore::Greedy);
    /// network.act(Obs::new(Tensor::zeros([3, 2], &device)), Explore::Greedy);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`MlpActorCritic::new`], and for `shared_hidden` where critics see more than actors.
    pub fn for_env(
        config: &ActorCriticConfig,
        spec: &EnvSpec,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        let (obs_space, action_space, privileged) = (&spec.obs, &spec.action, spec.privileged.clone());
        for (field, widths) in [
            ("shared_hidden", &config.shared_hidden),
            ("actor_hidden", &config.actor_hidden),
            ("critic_hidden", &config.critic_hidden),
        ] {
            check_widths(field, widths)?;
        }
        let shared = &config.shared_hidden;
        check_apart(&privileged, "shared_hidden", !shared.is_empty(), format!("{shared:?}"))?;
        let heads = Heads::new(action_space, config.squash)?;
        let init = |gain: f64| if config.orthogonal { Init::Orthogonal(gain) } else { Init::FanIn };
        let body = |inputs: usize, hidden: &[usize], rng: &mut _| {
            let config = MlpConfig::body(inputs, hidden, config.activation, config.orthogonal);
            (Mlp::new(&config, device, rng), hidden.last().copied().unwrap_or(inputs))
        };
        let (shared, width) = match config.shared_hidden.as_slice() {
            [] => (None, obs_space.width()),
            hidden => {
                let (shared, width) = body(obs_space.width(), hidden, rng);
                (Some(shared), width)
            }
        };
        let (actor, actor_width) = body(width - privileged.len(), &config.actor_hidden, rng);
        let (critic, critic_width) = body(width, &config.critic_hidden, rng);
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
        Ok(Self { shared, actor, critic, critic_head, actor_head, privileged })
    }

    /// The meaning of the outputs of the actor.
    pub fn heads(&self) -> &Heads {
        self.actor_head.heads()
    }

    fn features(&self, obs: Tensor<2>) -> Tensor<2> {
        match &self.shared {
            Some(shared) => shared.forward(obs),
            None => obs,
        }
    }

    /// The features that the actor sees.
    fn of_actor(&self, features: Tensor<2>) -> Tensor<2> {
        seen(&self.privileged, self.actor_inputs(), features)
    }

    fn actor_inputs(&self) -> usize {
        self.actor.inputs(self.actor_head.output().inputs())
    }

    /// The shared layers in the memory of the CPU; none without them.
    fn body_on_host(&self) -> Option<HostMlp> {
        match &self.shared {
            Some(shared) => shared.on_host([]),
            None => Some(HostMlp::default()),
        }
    }

    fn critic(&self, features: Tensor<2>) -> Tensor<1> {
        self.critic.forward_before(features, Some(&self.critic_head)).squeeze_dim(1)
    }
}

/// Checks that every width is at least 1, and that the weights between the layers can be held with their gradients and the two
/// moments of Adam.
pub(crate) fn check_widths(field: &'static str, widths: &[usize]) -> Result<(), NnError> {
    const MOST: usize = 1 << 20;
    let shown = format!("{widths:?}");
    field::rule(!widths.contains(&0), field, "must have widths of at least 1", &shown)?;
    field::rule(widths.iter().all(|width| *width <= MOST), field, "must have widths of at most 1048576", &shown)?;
    let weights: f64 = widths.windows(2).map(|pair| pair[0] as f64 * pair[1] as f64).sum();
    Ok(field::fits_in_memory(field, &shown, 16.0 * weights)?)
}

impl Policy for MlpActorCritic {
    type Obs = Obs;
    type Action = Tensor<2>;
    type Extra = Decision;

    fn noise(&self) -> NoiseSpec {
        self.actor_head.noise()
    }

    fn act(&self, obs: Obs, explore: Explore) -> (Tensor<2>, Decision) {
        let features = self.features(obs.values);
        // A separate critic is faster on a whole rollout.
        let value = self.shared.is_some().then(|| self.critic(features.clone()));
        let features = self.of_actor(features);
        let (action, log_prob) = self.actor_head.act_behind(&self.actor, features, obs.mask, explore);
        (action, Decision { log_prob, value })
    }

    fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        self.actor_head.to_env(action)
    }

    fn sizes(&self) -> Option<NetworkSizes> {
        let inputs = self.shared.as_ref().map_or(self.actor_inputs(), |shared| shared.inputs(0));
        let privileged = self.privileged.clone();
        let obs = inputs + privileged.len();
        Some(NetworkSizes { obs, privileged, action: self.heads().sizes(), n_agents: 1 })
    }

    fn exported(&self) -> Option<ExportedPolicy> {
        let mut layers = Layers::default();
        self.shared.iter().chain([&self.actor]).for_each(|mlp| layers.mlp(mlp));
        Some(layers.head(&self.actor_head))
    }
}

impl ActorCritic for MlpActorCritic {
    fn value(&self, obs: Obs) -> Tensor<1> {
        self.critic(self.features(obs.values))
    }

    fn evaluate(&self, obs: Obs, action: Tensor<2>) -> Evaluation {
        let features = self.features(obs.values);
        let value = self.critic(features.clone());
        let seen = self.of_actor(features);
        let (log_prob, entropy) = self.actor_head.evaluate_behind(&self.actor, seen, obs.mask, action);
        Evaluation { log_prob, entropy, value }
    }

    fn choice(&self, obs: &Obs) -> Option<Tensor<1>> {
        self.actor_head.choice(obs.mask.as_ref())
    }

    fn gradient(&self, obs: &Obs, action: &Tensor<2>, by: &mut ByResults<'_, 3>) -> Option<Vec<f32>> {
        let (n_rows, obs_values, actions) = (action.dims()[0], HostTensor::of(&obs.values)?, HostTensor::of(action)?);
        if n_rows == 0 || !self.actor_head.has_slopes() {
            return None;
        }
        let mask = match &obs.mask {
            Some(mask) => Some(HostTensor::of(mask)?),
            None => None,
        };
        let body = self.body_on_host()?;
        let output = self.actor_head.output();
        let branches = [self.actor.on_host([output])?, self.critic.on_host([&self.critic_head])?];
        let n_actor = body.n_params() + branches[0].n_params();
        let mut networks = Branches { body, branches };
        let seen = seen_rows(&self.privileged, self.actor_inputs(), &obs_values, n_rows);
        networks.forward_apart([&seen, &obs_values], n_rows);
        let ([outputs, value], features) = networks.results_apart([&seen, &obs_values]);
        let evaluated = self.actor_head.evaluate_on_host([outputs, features], mask.as_deref(), &actions)?;
        let ([log_prob, entropy], slopes) = evaluated;
        let [mut by_log_prob, by_entropy, mut by_value] = by([&log_prob, &entropy, value])?;
        // Empty for a result on which the loss does not depend.
        [&mut by_log_prob, &mut by_value].into_iter().for_each(|by| by.resize(n_rows, 0.0));
        let (by_outputs, by_log_std) =
            slopes.gradient([&by_log_prob, &by_entropy], [n_rows, self.actor_head.heads().outputs()]);
        let mut gradient = networks.backward_apart([&seen, &obs_values], [&by_outputs, &by_value]);
        self.actor_head.put_last(&mut gradient, n_actor, by_log_std);
        Some(gradient)
    }

    fn host_actor(&self) -> Option<Box<dyn HostActor>> {
        let head = self.actor_head.on_host()?;
        let actor = self.actor.on_host([self.actor_head.output()])?;
        // As in `act`: a separate critic is faster on a whole rollout.
        let critic = match &self.shared {
            Some(_) => Some(self.critic.on_host([&self.critic_head])?),
            None => None,
        };
        let (privileged, inputs) = (self.privileged.clone(), self.actor_inputs());
        Some(Box::new(MlpActor { body: self.body_on_host()?, actor, critic, head, privileged, inputs }))
    }

    fn std(&self) -> Option<Tensor<1>> {
        self.actor_head.std()
    }
}

/// The layers of a [`MlpActorCritic`] that act, in the memory of the CPU.
struct MlpActor {
    body: HostMlp,
    actor: HostMlp,
    /// On the layers of the actor.
    critic: Option<HostMlp>,
    head: HostHead,
    /// Columns that the critic alone sees; none if there is a body.
    privileged: Range<usize>,
    /// Inputs of the actor.
    inputs: usize,
}

impl HostActor for MlpActor {
    fn act(
        &mut self,
        obs: HostObs<'_>,
        _state: &mut [f32],
        noise: &[f32],
        decisions: &mut HostDecisions,
        in_env: &mut Vec<f32>,
    ) {
        let features = self.body.forward(obs.values, obs.n_rows);
        if let Some(critic) = &mut self.critic {
            decisions.value.extend_from_slice(critic.forward(features, obs.n_rows));
        }
        let seen = seen_rows(&self.privileged, self.inputs, features, obs.n_rows);
        self.actor.forward(&seen, obs.n_rows);
        let results = [self.actor.results(&seen), self.actor.features(&seen)];
        self.head.draw(results, obs.mask, noise, decisions, in_env);
    }
}
