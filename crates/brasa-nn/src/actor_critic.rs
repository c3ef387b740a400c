//! An MLP actor-critic.

use brasa_core::env::Space;
use brasa_core::{ActorCritic, Decision, Evaluation, Explore, NoiseDistribution, NoiseSpec, Obs, Policy};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::action_bounds::scale;
use crate::distribution::{categorical, gaussian, squashed};
use crate::gaussian_std::{self, GaussianStd};
use crate::{Activation, Init, Linear, Mlp, MlpConfig, NnError, StdKind};

/// Shape of an MLP actor-critic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActorCriticConfig {
    /// Widths of hidden layers that actor and critic share. Default none: sharing saves time, and lets the two
    /// losses disturb each other.
    pub shared_hidden: Vec<usize>,
    /// Widths of the actor's own hidden layers. Default 64, 64 (Stable-Baselines3).
    pub actor_hidden: Vec<usize>,
    /// Widths of the critic's own hidden layers. Default 64, 64 (Stable-Baselines3).
    pub critic_hidden: Vec<usize>,
    /// Between layers. Default tanh (Stable-Baselines3).
    pub activation: Activation,
    /// Orthogonal initial weights with gains root 2, 0.01 for the actor's and 1 for the critic's last layer; without
    /// it, PyTorch's default. Default on: a small last layer makes the first policy nearly uniform.
    pub orthogonal: bool,
    /// For real actions: how the spread is found. Default independent of the observation.
    pub std: StdKind,
    /// Logarithm of the initial standard deviation. Default 0. Very low values do not explore, high ones act at random.
    pub log_std_init: f64,
    /// Whether real actions go through tanh and are scaled to their bounds, instead of being clipped to them.
    /// Default off. Needs finite bounds.
    pub squash: bool,
    /// With state-dependent exploration: steps that share the same noise; absent for a whole rollout. Default absent.
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

/// What the outputs of the actor mean.
#[derive(Debug, Clone, PartialEq)]
pub enum Heads {
    /// Logits of one or several choices; options per choice.
    Choice(Vec<usize>),
    /// Means of real actions, clipped or squashed to these bounds on their way to the environment.
    Real {
        /// Lower bounds.
        low: Vec<f32>,
        /// Upper bounds.
        high: Vec<f32>,
        /// Whether tanh bounds them.
        squash: bool,
    },
}

/// Actor and critic as MLPs over flat observations, for every kind of action space.
#[derive(Module, Debug)]
pub struct MlpActorCritic {
    shared: Option<Mlp>,
    actor: Mlp,
    gaussian_std: Option<GaussianStd>,
    critic: Mlp,
    critic_head: Linear,
    actor_head: Linear,
    #[module(skip)]
    heads: Heads,
    #[module(skip)]
    resample_every: usize,
}

impl MlpActorCritic {
    /// An MLP for these spaces, with weights drawn from `rng`.
    ///
    /// # Errors
    /// [`NnError`] where a width is 0, a bound is missing for squashing, or `log_std_init` is not finite.
    pub fn new(
        config: &ActorCriticConfig,
        obs_space: &Space,
        action_space: &Space,
        device: &Device,
        rng: &mut impl Rng,
    ) -> Result<Self, NnError> {
        for (field, widths) in [
            ("shared_hidden", &config.shared_hidden),
            ("actor_hidden", &config.actor_hidden),
            ("critic_hidden", &config.critic_hidden),
        ] {
            check_widths(field, widths)?;
        }
        if !config.log_std_init.is_finite() {
            let value = config.log_std_init.to_string();
            return Err(NnError::Field { field: "log_std_init", rule: "must be finite", value });
        }
        let heads = heads(config, action_space)?;
        let init = |gain: f64| if config.orthogonal { Init::Orthogonal(gain) } else { Init::FanIn };
        let root_2 = std::f64::consts::SQRT_2;
        let body = |inputs: usize, hidden: &[usize], rng: &mut _| {
            let config = MlpConfig {
                inputs,
                hidden: hidden.to_vec(),
                outputs: None,
                activation: config.activation,
                hidden_init: init(root_2),
                output_init: init(1.0),
            };
            (Mlp::new(&config, device, rng), hidden.last().copied().unwrap_or(inputs))
        };
        let (shared, width) = match config.shared_hidden.as_slice() {
            [] => (None, obs_space.width()),
            hidden => {
                let (shared, width) = body(obs_space.width(), hidden, rng);
                (Some(shared), width)
            }
        };
        let (actor, actor_width) = body(width, &config.actor_hidden, rng);
        let (critic, critic_width) = body(width, &config.critic_hidden, rng);
        let outputs = match &heads {
            Heads::Choice(heads) => heads.iter().sum(),
            Heads::Real { low, .. } => low.len(),
        };
        let actor_head = Linear::new(actor_width, outputs, init(0.01), device, rng);
        let critic_head = Linear::new(critic_width, 1, init(1.0), device, rng);
        let gaussian_std = match heads {
            Heads::Real { .. } => {
                let widths = [actor_width, outputs];
                Some(GaussianStd::new(config.std, widths, config.log_std_init, init(0.01), device, rng))
            }
            Heads::Choice(_) => None,
        };
        let resample_every = gaussian_std::resample_every(config.sde_sample_freq);
        Ok(Self { shared, actor, gaussian_std, critic, critic_head, actor_head, heads, resample_every })
    }

    /// What the outputs of the actor mean.
    pub fn heads(&self) -> &Heads {
        &self.heads
    }

    fn features(&self, obs: Tensor<2>) -> Tensor<2> {
        match &self.shared {
            Some(shared) => shared.forward(obs),
            None => obs,
        }
    }

    /// The actor's last hidden layer and its outputs.
    fn actor(&self, features: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let hidden = self.actor.forward(features);
        (hidden.clone(), self.actor_head.forward(hidden, None))
    }

    fn gaussian_std(&self) -> &GaussianStd {
        self.gaussian_std.as_ref().expect("real actions always have a gaussian_std")
    }

    fn critic(&self, features: Tensor<2>) -> Tensor<1> {
        self.critic_head.forward(self.critic.forward(features), None).squeeze_dim(1)
    }
}

/// Whether every layer has a width.
pub(crate) fn check_widths(field: &'static str, widths: &[usize]) -> Result<(), NnError> {
    match widths.contains(&0) {
        true => Err(NnError::Field { field, rule: "must have widths of at least 1", value: format!("{widths:?}") }),
        false => Ok(()),
    }
}

fn heads(config: &ActorCriticConfig, action_space: &Space) -> Result<Heads, NnError> {
    Ok(match action_space {
        Space::Discrete(n) => Heads::Choice(vec![*n]),
        Space::MultiDiscrete(heads) => Heads::Choice(heads.clone()),
        Space::Box(space) => {
            let unbounded = space.low.iter().chain(&space.high).position(|bound| !bound.is_finite());
            if let (true, Some(index)) = (config.squash, unbounded) {
                let name = &space.names[index % space.names.len()];
                return Err(NnError::Space(format!("`squash` needs finite bounds, but action `{name}` has none")));
            }
            Heads::Real { low: space.low.clone(), high: space.high.clone(), squash: config.squash }
        }
    })
}

impl Policy for MlpActorCritic {
    type Obs = Obs;
    type Action = Tensor<2>;
    type Extra = Decision;

    fn noise(&self) -> NoiseSpec {
        match &self.heads {
            Heads::Choice(heads) => {
                NoiseSpec { width: heads.iter().sum(), distribution: NoiseDistribution::Gumbel, resample_every: 1 }
            }
            Heads::Real { low, .. } => self.gaussian_std().noise(low.len(), self.resample_every),
        }
    }

    fn act(&self, obs: Obs, explore: Explore) -> (Tensor<2>, Decision) {
        let noise = match explore {
            Explore::Sample(noise) => Some(noise),
            Explore::Greedy => None,
        };
        let features = self.features(obs.values);
        let value = self.critic(features.clone());
        let (hidden, output) = self.actor(features);
        let (action, log_prob) = match &self.heads {
            Heads::Choice(heads) => {
                let log_probs = categorical::log_probs(output, obs.mask, heads);
                let action = categorical::choose(log_probs.clone(), noise, heads);
                let log_prob = categorical::log_prob(log_probs, action.clone(), heads);
                (action, log_prob)
            }
            Heads::Real { squash, .. } => {
                let log_std = self.gaussian_std().log_std(&hidden);
                let action = match noise {
                    Some(noise) => output.clone() + self.gaussian_std().deviate(&hidden, log_std.clone(), noise),
                    None => output.clone(),
                };
                let log_prob = if *squash { squashed::log_prob } else { gaussian::log_prob };
                let log_prob = log_prob(output, log_std, action.clone());
                (action, log_prob)
            }
        };
        (action, Decision { log_prob, value })
    }

    fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        let Heads::Real { low, high, squash } = &self.heads else { return action };
        if *squash {
            return scale(brasa_kernels::tanh(action), low, high);
        }
        let device = action.device();
        let row = |values: &[f32]| Tensor::<1>::from_floats(values, &device).unsqueeze::<2>();
        action.max_pair(row(low)).min_pair(row(high))
    }
}

impl ActorCritic for MlpActorCritic {
    fn value(&self, obs: Obs) -> Tensor<1> {
        self.critic(self.features(obs.values))
    }

    fn evaluate(&self, obs: Obs, action: Tensor<2>) -> Evaluation {
        let n_rows = action.dims()[0];
        let choice = match &self.heads {
            Heads::Choice(heads) => obs.mask.clone().map(|mask| categorical::has_choice(mask, heads.len())),
            Heads::Real { .. } => None,
        };
        let features = self.features(obs.values);
        let value = self.critic(features.clone());
        let (hidden, output) = self.actor(features);
        let (log_prob, entropy) = match &self.heads {
            Heads::Choice(heads) => {
                let log_probs = categorical::log_probs(output, obs.mask, heads);
                let entropy = categorical::entropy(log_probs.clone());
                (categorical::log_prob(log_probs, action, heads), entropy)
            }
            Heads::Real { squash, .. } => {
                let log_std = self.gaussian_std().log_std(&hidden);
                if *squash {
                    // No closed form: minus the log-density estimates it.
                    let log_prob = squashed::log_prob(output, log_std, action);
                    (log_prob.clone(), -log_prob)
                } else {
                    let entropy = gaussian::entropy(log_std.clone());
                    let entropy = if entropy.dims()[0] == n_rows { entropy } else { entropy.expand([n_rows]) };
                    (gaussian::log_prob(output, log_std, action), entropy)
                }
            }
        };
        Evaluation { log_prob, entropy, value, choice }
    }

    fn std(&self) -> Option<Tensor<1>> {
        self.gaussian_std.as_ref().and_then(GaussianStd::std)
    }
}
