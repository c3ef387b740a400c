//! Actors and critics of a team, computed as one batched network.

use std::f64::consts::SQRT_2;
use std::ops::Range;

use brasa_core::TeamObs;
use brasa_core::env::{EnvSpec, field};
use brasa_core::export::Layer;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::actor_critic::check_widths;
use crate::exported::Layers;
use crate::privileged::seen;
use crate::team_rows::TeamRows;
use crate::{
    Activation, ActorCriticModule, Heads, Init, MlpConfig, ModuleActorCritic, NnError, Sharing, StackedLinear,
    StackedMlp,
};

/// Shape of a [`TeamActorCritic`].
///
/// ```
/// use brasa_nn::{Sharing, TeamActorCriticConfig};
///
/// let config: TeamActorCriticConfig = serde_json::from_str(r#"{ "sharing": "independent" }"#)?;
/// assert_eq!((config.sharing, &config.actor_hidden[..]), (Sharing::Independent, &[64, 64][..]));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TeamActorCriticConfig {
    /// Widths of the hidden layers of the actors. Default 64, 64.
    pub actor_hidden: Vec<usize>,
    /// Widths of the hidden layers of the critics. Default 64, 64.
    pub critic_hidden: Vec<usize>,
    /// Activation of the hidden layers. Default tanh.
    pub activation: Activation,
    /// The weights that agents share. Default all: one policy, which knows the agent's number.
    pub sharing: Sharing,
}

impl Default for TeamActorCriticConfig {
    fn default() -> Self {
        let hidden = vec![64, 64];
        Self {
            actor_hidden: hidden.clone(),
            critic_hidden: hidden,
            activation: Activation::Tanh,
            sharing: Sharing::All,
        }
    }
}

/// MLPs on [`TeamObs`]: a policy and a value for each agent. Agents with own weights are one batched product, which reads once what all agents
/// see alike. Critics may be central ([`EnvSpec::privileged`]).
///
/// The weights are orthogonal with gain sqrt(2), 0.01 for the last layer of the actors and 1 for that of the critics.
///
/// ```
/// use brasa_core::env::{EnvSpec, Space, named_rng};
/// use brasa_core::{ActorCritic, Shared, TeamObs};
/// use brasa_nn::{TeamActorCritic, TeamActorCriticConfig};
/// use burn::tensor::Tensor;
///
/// // Four agents in each of two environments. All agents of an environment see two shared numbers.
/// let spaces = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::Discrete(3));
/// let spec = EnvSpec { n_agents: 4, shared_width: 2, ..EnvSpec::new(spaces.0, spaces.1, 2) };
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let network = TeamActorCritic::new(&TeamActorCriticConfig::default(), &spec, &device, rng)?;
/// let shared = Some(Shared::PerEnv(Tensor::zeros([2, 2], &device)));
/// let seen = TeamObs { shared, own: None, mask: None, n_agents: 4, actions_per_flag: 1 };
/// assert_eq!(network.value(seen).dims(), [8]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct TeamActorCritic {
    actor: StackedMlp,
    actor_head: StackedLinear,
    critic: StackedMlp,
    critic_head: StackedLinear,
    #[module(skip)]
    rows: TeamRows,
    /// Columns of observations that are for critics alone.
    #[module(skip)]
    privileged: Range<usize>,
    /// Numbers of a complete observation.
    #[module(skip)]
    width: usize,
}

impl TeamActorCritic {
    /// Networks of the agents of `spec`, with initial weights from `rng`.
    ///
    /// # Errors
    /// [`NnError`] if a width is 0.
    #[allow(clippy::new_ret_no_self, reason = "the network is the module with the distribution of its actions")]
    pub fn new(
        config: &TeamActorCriticConfig,
        spec: &EnvSpec,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<ModuleActorCritic<Self>, NnError> {
        check_widths("actor_hidden", &config.actor_hidden)?;
        check_widths("critic_hidden", &config.critic_hidden)?;
        field::at_least_one("n_agents", spec.n_agents as u64)?;
        let rows = TeamRows { sharing: config.sharing, n_agents: spec.n_agents };
        let init = Init::Orthogonal(SQRT_2);
        let (width, privileged) = (spec.obs.width(), spec.privileged.clone());
        let mut stack = |width: usize, hidden: &[usize], outputs, gain| {
            let body = MlpConfig {
                inputs: rows.inputs(width),
                hidden: hidden.to_vec(),
                outputs: None,
                activation: config.activation,
                hidden_init: init,
                output_init: init,
            };
            let width = hidden.last().copied().unwrap_or(body.inputs);
            let body = StackedMlp::new(rows.n_bodies(), &body, device, rng);
            let head = StackedLinear::new(rows.n_heads(), width, outputs, Init::Orthogonal(gain), device, rng);
            (body, head)
        };
        let outputs = Heads::new(&spec.action, false)?.outputs();
        let (actor, actor_head) = stack(width - privileged.len(), &config.actor_hidden, outputs, 0.01);
        let (critic, critic_head) = stack(width, &config.critic_hidden, 1, 1.0);
        ModuleActorCritic::new(Self { actor, actor_head, critic, critic_head, rows, privileged, width }, spec)
    }
}

impl ActorCriticModule for TeamActorCritic {
    type Obs = TeamObs;

    /// The values of rows without the columns of critics alone are 0.
    fn forward(&self, obs: TeamObs) -> (Tensor<2>, Tensor<1>) {
        let results = |head: &StackedLinear, hidden| self.rows.by_row(head.forward(hidden, None));
        if self.privileged.is_empty() {
            let [hidden, of_critic] = [&self.actor, &self.critic].map(|body| self.rows.hidden(body, &obs));
            return (results(&self.actor_head, hidden), results(&self.critic_head, of_critic).squeeze_dim(1));
        }
        let rows = obs.rows();
        let seen = seen(&self.privileged, self.width - self.privileged.len(), rows.clone());
        let outputs = results(&self.actor_head, self.rows.hidden_of_rows(&self.actor, seen));
        let [n_rows, width] = rows.dims();
        let values = match width == self.width {
            true => results(&self.critic_head, self.rows.hidden_of_rows(&self.critic, rows)).squeeze_dim(1),
            false => Tensor::zeros([n_rows], &rows.device()),
        };
        (outputs, values)
    }

    fn has_central_critic(&self) -> bool {
        true
    }

    fn n_agents(&self) -> usize {
        self.rows.n_agents
    }

    fn exported(&self) -> Option<Vec<Layer>> {
        let mut layers = Layers::default();
        layers.stacked_mlp(&self.actor);
        layers.stacked_linear(&self.actor_head);
        self.rows.number_agents(&mut layers);
        Some(layers.list())
    }
}
