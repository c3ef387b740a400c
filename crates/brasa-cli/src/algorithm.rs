//! Which algorithm learns, with everything that belongs to it.

use std::path::Path;

use brasa::a2c::A2cConfig;
use brasa::core::{Explore, NoiseSpec, Obs, Policy, TeamObs};
use brasa::dqn::{DqnConfig, EpsilonGreedy};
use brasa::env::{EnvBatch, EnvRng, named_rng};
use brasa::gat::{Aggregation, GraphActorCritic};
use brasa::nn::{
    MlpActorCritic, MlpCritics, MlpCriticsConfig, PairQNetwork, PairSpec, QNetwork, SquashedActor, SquashedActorConfig,
    TeamQNetwork, TeamQNetworkConfig,
};
use brasa::ppo::PpoConfig;
use brasa::sac::SacConfig;
use brasa::train::{Checkpoint, OffPolicyConfig, restore_policy};
use burn::tensor::{Device, Tensor};

use crate::actor_critic::{AnyActorCritic, GraphWorld, Network};
use crate::error::CliError;
use crate::value_network::{AnyQNetwork, ValueNetwork};

/// An algorithm with its networks and, where it replays, its loop.
#[derive(Debug, Clone, PartialEq)]
pub enum Algorithm {
    Ppo { ppo: PpoConfig, network: Network },
    A2c { a2c: A2cConfig, network: Network },
    Sac { sac: SacConfig, actor: SquashedActorConfig, critics: MlpCriticsConfig, off_policy: OffPolicyConfig },
    Dqn { dqn: DqnConfig, network: ValueNetwork, off_policy: OffPolicyConfig },
}

impl Algorithm {
    /// Its usual name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ppo { .. } => "PPO",
            Self::A2c { .. } => "A2C",
            Self::Sac { .. } => "SAC",
            Self::Dqn { .. } => "DQN",
        }
    }

    /// Discount per step.
    pub fn gamma(&self) -> f64 {
        match self {
            Self::Ppo { ppo, .. } => ppo.gamma,
            Self::A2c { a2c, .. } => a2c.gamma,
            Self::Sac { sac, .. } => sac.gamma,
            Self::Dqn { dqn, .. } => dqn.gamma,
        }
    }

    /// Whether it learns from stored transitions.
    pub fn replays(&self) -> bool {
        matches!(self, Self::Sac { .. } | Self::Dqn { .. })
    }

    /// Share of random actions while it learns, if it explores in that way.
    pub fn exploration(&self) -> Option<Exploration> {
        let Self::Dqn { dqn, .. } = self else { return None };
        let (start, end) = match dqn.greedy_ramp {
            Some(ramp) => (1.0 - ramp.min, 1.0 - ramp.max),
            None => (dqn.epsilon.at(0.0), dqn.epsilon.at(1.0)),
        };
        // Where nothing is left at the end, the beginning says more.
        let at_the_end = Exploration { epsilon: end, when: "the end" };
        Some(if end > 0.0 { at_the_end } else { Exploration { epsilon: start, when: "the beginning" } })
    }

    /// Checks every setting.
    pub fn validate(&self) -> Result<(), CliError> {
        fn section(name: &str, error: impl std::fmt::Display) -> CliError {
            CliError::Input(format!("[{name}] {error}"))
        }
        if let Self::Ppo { network: Network::Graph(graph), .. } | Self::A2c { network: Network::Graph(graph), .. } =
            self
        {
            graph.validate().map_err(|error| section("graph_network", error))?;
        }
        match self {
            Self::Ppo { ppo, .. } => ppo.validate().map_err(|error| section("ppo", error)),
            Self::A2c { a2c, .. } => a2c.validate().map_err(|error| section("a2c", error)),
            Self::Sac { sac, off_policy, .. } => {
                sac.validate().map_err(|error| section("sac", error))?;
                off_policy.validate().map_err(|error| section("off_policy", error))
            }
            Self::Dqn { dqn, off_policy, .. } => {
                dqn.validate().map_err(|error| section("dqn", error))?;
                off_policy.validate().map_err(|error| section("off_policy", error))
            }
        }
    }
}

/// How much a learner explores.
#[derive(Debug, Clone, Copy)]
pub struct Exploration {
    /// Share of random actions.
    pub epsilon: f64,
    /// When: `the end` or `the beginning` of training.
    pub when: &'static str,
}

/// What networks are made for.
pub struct Spaces<'a> {
    pub batch: &'a dyn EnvBatch,
    /// What graph networks need to know.
    pub graphs: Option<&'a GraphWorld>,
    /// How observations and options consist of pairs, if they do.
    pub pairs: Option<PairSpec>,
    pub device: &'a Device,
    pub seed: u64,
}

impl Spaces<'_> {
    /// A stream of its own for each network.
    fn rng(&self, index: u64) -> EnvRng {
        named_rng(self.seed, "weights", index)
    }

    pub fn actor_critic(&self, network: &Network) -> Result<AnyActorCritic, CliError> {
        let rng = &mut self.rng(0);
        Ok(match network {
            Network::Mlp(config) => {
                let (obs, action) = (&self.batch.spec().obs, &self.batch.spec().action);
                AnyActorCritic::Mlp(MlpActorCritic::new(config, obs, action, self.device, rng)?)
            }
            Network::Graph(config) => {
                let message = "[graph_network] needs a scenario that plays on graphs, such as evacuation";
                let world = self.graphs.ok_or_else(|| CliError::Input(message.into()))?;
                let table =
                    world.table(Aggregation::auto(config.version, world.spec.nodes, self.device), self.device)?;
                AnyActorCritic::Graph(GraphActorCritic::new(config, world.spec, table, self.device, rng)?)
            }
        })
    }

    pub fn squashed_actor(&self, config: &SquashedActorConfig) -> Result<SquashedActor, CliError> {
        let (obs, action) = (&self.batch.spec().obs, &self.batch.spec().action);
        Ok(SquashedActor::new(config, obs, action, self.device, &mut self.rng(0))?)
    }

    pub fn critics(&self, config: &MlpCriticsConfig) -> Result<MlpCritics, CliError> {
        let (obs, action) = (&self.batch.spec().obs, &self.batch.spec().action);
        Ok(MlpCritics::new(config, obs, action, self.device, &mut self.rng(1))?)
    }

    /// A network that judges the options of single rows; `None` for that of a team.
    pub fn q_network(&self, config: &ValueNetwork) -> Result<Option<AnyQNetwork>, CliError> {
        let (obs, action) = (&self.batch.spec().obs, &self.batch.spec().action);
        let rng = &mut self.rng(0);
        Ok(match config {
            ValueNetwork::Flat(config) => {
                Some(AnyQNetwork::Flat(QNetwork::new(config, obs, action, self.device, rng)?))
            }
            ValueNetwork::Pair(config) => {
                let message = "[pair_q_network] needs a scenario whose options are pairs, such as uara";
                let spec = self.pairs.ok_or_else(|| CliError::Input(message.into()))?;
                Some(AnyQNetwork::Pair(PairQNetwork::new(config, spec, self.device, rng)?))
            }
            ValueNetwork::Team(_) => None,
        })
    }

    pub fn team_q_network(&self, config: &TeamQNetworkConfig) -> Result<TeamQNetwork, CliError> {
        let (obs, action) = (&self.batch.spec().obs, &self.batch.spec().action);
        Ok(TeamQNetwork::new(config, self.batch.n_agents(), obs, action, self.device, &mut self.rng(0))?)
    }
}

/// A policy of any of the algorithms.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "one value per run")]
pub enum AnyPolicy {
    ActorCritic(AnyActorCritic),
    Squashed(SquashedActor),
    Greedy(EpsilonGreedy<AnyQNetwork>),
    Team(EpsilonGreedy<TeamQNetwork>),
}

impl AnyPolicy {
    /// The policy of a checkpoint that lies at `path`.
    pub fn load(
        algorithm: &Algorithm,
        spaces: &Spaces<'_>,
        checkpoint: &Checkpoint,
        path: &Path,
    ) -> Result<Self, CliError> {
        Ok(match algorithm {
            Algorithm::Ppo { network, .. } | Algorithm::A2c { network, .. } => {
                Self::ActorCritic(restore_policy(spaces.actor_critic(network)?, checkpoint, path)?)
            }
            Algorithm::Sac { actor, .. } => {
                Self::Squashed(restore_policy(spaces.squashed_actor(actor)?, checkpoint, path)?)
            }
            Algorithm::Dqn { network: ValueNetwork::Team(network), .. } => {
                let network = restore_policy(spaces.team_q_network(network)?, checkpoint, path)?;
                Self::Team(EpsilonGreedy::greedy(network))
            }
            Algorithm::Dqn { network, .. } => {
                let network = spaces.q_network(network)?.expect("the team's network is above");
                Self::Greedy(EpsilonGreedy::greedy(restore_policy(network, checkpoint, path)?))
            }
        })
    }
}

impl AnyPolicy {
    /// The same policy on other graphs, if it acts on graphs.
    pub fn on(self, world: &GraphWorld) -> Result<Self, CliError> {
        Ok(match self {
            Self::ActorCritic(AnyActorCritic::Graph(network)) => {
                let table = world.table(network.graphs().aggregation(), &network.graphs().device())?;
                Self::ActorCritic(AnyActorCritic::Graph(network.with_graphs(table)?))
            }
            other => other,
        })
    }
}

impl Policy for AnyPolicy {
    type Obs = Obs;
    type Action = Tensor<2>;
    type Extra = ();

    fn noise(&self) -> NoiseSpec {
        match self {
            Self::ActorCritic(policy) => policy.noise(),
            Self::Squashed(policy) => policy.noise(),
            Self::Greedy(policy) => policy.noise(),
            Self::Team(policy) => policy.noise(),
        }
    }

    fn act(&self, obs: Obs, explore: Explore) -> (Tensor<2>, ()) {
        match self {
            Self::ActorCritic(policy) => (policy.act(obs, explore).0, ()),
            Self::Squashed(policy) => policy.act(obs, explore),
            Self::Greedy(policy) => policy.act(obs, explore),
            Self::Team(policy) => policy.act(team_obs(obs, policy.network.n_agents()), explore),
        }
    }

    fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        match self {
            Self::ActorCritic(policy) => policy.to_env(action),
            Self::Squashed(policy) => policy.to_env(action),
            Self::Greedy(policy) => policy.to_env(action),
            Self::Team(policy) => policy.to_env(action),
        }
    }
}

/// What the agents of a team see, from rows that repeat what they share.
fn team_obs(obs: Obs, n_agents: usize) -> TeamObs {
    TeamObs { shared: None, own: Some(obs.values), mask: obs.mask, n_agents, options_per_flag: 1 }
}
