//! An experiment: one file in `configs/`.

use std::path::Path;

use brasa::a2c::A2cConfig;
use brasa::dqn::DqnConfig;
use brasa::env::Executor;
use brasa::gat::GraphActorCriticConfig;
use brasa::nn::{
    ActorCriticConfig, MlpCriticsConfig, PairQNetworkConfig, QNetworkConfig, SquashedActorConfig, TeamQNetworkConfig,
};
use brasa::ppo::PpoConfig;
use brasa::sac::SacConfig;
use brasa::train::OffPolicyConfig;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::actor_critic::Network;
use crate::algorithm::Algorithm;
use crate::error::CliError;
use crate::scenario::ScenarioConfig;
use crate::value_network::ValueNetwork;

/// A scenario and how to learn it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What to control.
    pub scenario: ScenarioConfig,
    /// How long, how wide, where.
    #[serde(default)]
    pub train: TrainConfig,
    /// Proximal policy optimization; what learns where no section names another algorithm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ppo: Option<PpoConfig>,
    /// Advantage actor-critic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a2c: Option<A2cConfig>,
    /// Soft actor-critic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sac: Option<SacConfig>,
    /// Deep Q-learning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dqn: Option<DqnConfig>,
    /// Network of PPO and A2C.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<ActorCriticConfig>,
    /// Network of PPO and A2C over graphs; what acts in buildings where no section names another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph_network: Option<GraphActorCriticConfig>,
    /// Actor of SAC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<SquashedActorConfig>,
    /// Critics of SAC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critics: Option<MlpCriticsConfig>,
    /// Network of DQN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q_network: Option<QNetworkConfig>,
    /// Network of DQN over options that are pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pair_q_network: Option<PairQNetworkConfig>,
    /// Networks of a team of DQN learners, computed as one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team_q_network: Option<TeamQNetworkConfig>,
    /// Loop and replay of SAC and DQN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off_policy: Option<OffPolicyConfig>,
}

/// How long, how wide and where to train.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Environment steps of the whole run. Default 100,000.
    pub total_env_steps: u64,
    /// Environments. Default 8. More decorrelate a rollout and use more cores.
    pub n_envs: usize,
    /// Seed of weights, exploration and environments. Default 0.
    pub seed: u64,
    /// Seed of evaluations, the same for every controller. Default 1,000,003: no training run meets it.
    pub eval_seed: u64,
    /// Environment steps between quick looks at the policy without exploration, in the scenarios that have them; they
    /// become the `eval/` metrics. Default none: only the end is measured.
    pub eval_interval: Option<u64>,
    /// Device. Default `cpu`.
    pub device: String,
    /// How environments are stepped. Default `auto`: measures, chooses and says so.
    pub executor: Executor,
    /// Whether observations get mean 0 and deviation 1 from running moments. Default off: the energy scenarios scale
    /// their own.
    pub normalize_obs: bool,
    /// Whether rewards are divided by the spread of the discounted return. Default off.
    pub scale_reward: bool,
    /// What rewards are multiplied with, above 0. Default 1. `scale_reward` divides it out again.
    pub reward_scale: f64,
    /// Weight of the past in exponentially smoothed rewards, in [0, 1). Default 0: with it the task is another one.
    pub reward_smooth_lambda: f64,
    /// Seconds between checkpoints. Default 30. A killed run loses at most that much.
    pub checkpoint_secs: f64,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            total_env_steps: 100_000,
            n_envs: 8,
            seed: 0,
            eval_seed: 1_000_003,
            eval_interval: None,
            device: "cpu".into(),
            executor: Executor::Auto,
            normalize_obs: false,
            scale_reward: false,
            reward_scale: 1.0,
            reward_smooth_lambda: 0.0,
            checkpoint_secs: 30.0,
        }
    }
}

impl Experiment {
    /// Reads a file and applies `overrides` such as `ppo.gamma=0.95`.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Self, CliError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| CliError::Input(format!("cannot read {}: {error}", path.display())))?;
        Self::parse(&text, &path.display().to_string(), overrides)
    }

    /// The experiment in `text`, which came from `origin`.
    pub fn parse(text: &str, origin: &str, overrides: &[String]) -> Result<Self, CliError> {
        let wrong = |error: toml::de::Error| CliError::Input(format!("{origin}: {}", error.to_string().trim_end()));
        // Errors of the file itself point to its lines; the second pass has the overrides and no lines left.
        let experiment: Self = toml::from_str(text).map_err(wrong)?;
        if overrides.is_empty() {
            return experiment.resolve();
        }
        let mut table: Table = toml::from_str(text).map_err(wrong)?;
        for item in overrides {
            set(&mut table, item)?;
        }
        let experiment: Self = Value::Table(table)
            .try_into()
            .map_err(|error: toml::de::Error| CliError::Input(format!("--set: {}", error.to_string().trim_end())))?;
        experiment.resolve()
    }

    /// Writes out what the algorithm at hand has by default, refuses sections of other algorithms, and checks the rest.
    fn resolve(mut self) -> Result<Self, CliError> {
        let algorithms = [
            ("ppo", self.ppo.is_some()),
            ("a2c", self.a2c.is_some()),
            ("sac", self.sac.is_some()),
            ("dqn", self.dqn.is_some()),
        ];
        let named: Vec<&str> = algorithms.into_iter().filter(|(_, named)| *named).map(|(name, _)| name).collect();
        let name = match named[..] {
            [] => "ppo",
            [name] => name,
            _ => {
                let message = format!("one algorithm learns, but there are [{}]", named.join("] and ["));
                return Err(CliError::Input(message));
            }
        };
        let on_graphs = self.graph_network.is_some() || (self.network.is_none() && self.scenario.plays_on_graphs());
        if self.graph_network.is_some() && self.network.is_some() {
            return Err(CliError::Input("one network learns, but there are [network] and [graph_network]".into()));
        }
        let q_networks = [
            ("q_network", self.q_network.is_some()),
            ("pair_q_network", self.pair_q_network.is_some()),
            ("team_q_network", self.team_q_network.is_some()),
        ];
        let given: Vec<&str> = q_networks.into_iter().filter(|(_, given)| *given).map(|(part, _)| part).collect();
        let q_network = match given[..] {
            [] => self.scenario.q_network(),
            [part] => part,
            _ => {
                let message = format!("one network learns, but there are [{}]", given.join("] and ["));
                return Err(CliError::Input(message));
            }
        };
        let of_dqn = [q_network, "off_policy"];
        let parts = match name {
            "ppo" | "a2c" if on_graphs => &["graph_network"][..],
            "ppo" | "a2c" => &["network"],
            "sac" => &["actor", "critics", "off_policy"],
            _ => &of_dqn,
        };
        for (part, given) in [
            ("network", self.network.is_some()),
            ("graph_network", self.graph_network.is_some()),
            ("actor", self.actor.is_some()),
            ("critics", self.critics.is_some()),
            ("q_network", self.q_network.is_some()),
            ("pair_q_network", self.pair_q_network.is_some()),
            ("team_q_network", self.team_q_network.is_some()),
            ("off_policy", self.off_policy.is_some()),
        ] {
            if given && !parts.contains(&part) {
                let parts = parts.join("], [");
                return Err(CliError::Input(format!("[{part}] is no part of {name}, which has [{parts}]")));
            }
            if parts.contains(&part) {
                match part {
                    "network" => drop(self.network.get_or_insert_default()),
                    "graph_network" => drop(self.graph_network.get_or_insert_default()),
                    "actor" => drop(self.actor.get_or_insert_default()),
                    "critics" => drop(self.critics.get_or_insert_default()),
                    "q_network" => drop(self.q_network.get_or_insert_default()),
                    "pair_q_network" => drop(self.pair_q_network.get_or_insert_default()),
                    "team_q_network" => drop(self.team_q_network.get_or_insert_default()),
                    _ => drop(self.off_policy.get_or_insert_default()),
                }
            }
        }
        if named.is_empty() {
            self.ppo = Some(PpoConfig::default());
        }
        self.validate()?;
        Ok(self)
    }

    /// The algorithm with everything that belongs to it.
    pub fn algorithm(&self) -> Algorithm {
        let network = || match self.graph_network.clone() {
            Some(graph) => Network::Graph(graph),
            None => Network::Mlp(self.network.clone().unwrap_or_default()),
        };
        let off_policy = || self.off_policy.clone().unwrap_or_default();
        if let Some(a2c) = self.a2c.clone() {
            return Algorithm::A2c { a2c, network: network() };
        }
        if let Some(sac) = self.sac.clone() {
            let (actor, critics) = (self.actor.clone().unwrap_or_default(), self.critics.clone().unwrap_or_default());
            return Algorithm::Sac { sac, actor, critics, off_policy: off_policy() };
        }
        if let Some(dqn) = self.dqn.clone() {
            let network = match (self.team_q_network.clone(), self.pair_q_network.clone()) {
                (Some(team), _) => ValueNetwork::Team(team),
                (None, Some(pair)) => ValueNetwork::Pair(pair),
                (None, None) => ValueNetwork::Flat(self.q_network.clone().unwrap_or_default()),
            };
            return Algorithm::Dqn { dqn, network, off_policy: off_policy() };
        }
        Algorithm::Ppo { ppo: self.ppo.clone().unwrap_or_default(), network: network() }
    }

    /// Checks what can be checked before anything is built.
    fn validate(&self) -> Result<(), CliError> {
        let train = &self.train;
        let fail = |field: &str, rule: &str, value: String| {
            Err(CliError::Input(format!("`train.{field}` {rule}, got {value}")))
        };
        if train.total_env_steps == 0 {
            return fail("total_env_steps", "must be at least 1", "0".into());
        }
        if train.n_envs == 0 {
            return fail("n_envs", "must be at least 1", "0".into());
        }
        if train.eval_interval == Some(0) {
            return fail("eval_interval", "must be at least 1 (leave it out to switch it off)", "0".into());
        }
        if !(train.checkpoint_secs > 0.0 && train.checkpoint_secs.is_finite()) {
            return fail("checkpoint_secs", "must be finite and above 0", train.checkpoint_secs.to_string());
        }
        if let Executor::Threads(n) = train.executor
            && !(1..=train.n_envs).contains(&n)
        {
            return fail("executor.threads", "must be between 1 and `train.n_envs`", n.to_string());
        }
        let algorithm = self.algorithm();
        algorithm.validate()?;
        if train.scale_reward && algorithm.replays() {
            let rule = "must be off where rewards are stored: they would keep the scale of their time (`train.reward_scale` \
                        is constant)";
            return fail("scale_reward", rule, "true".into());
        }
        if train.normalize_obs && self.scenario.is_normalized() {
            let rule = "must be off where observations are normalized by themselves";
            return fail("normalize_obs", rule, "true".into());
        }
        if train.normalize_obs && self.graph_network.is_some() {
            return fail("normalize_obs", "must be off where observations name nodes of graphs", "true".into());
        }
        self.scenario.validate()
    }

    /// The whole experiment with every default written out.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("an experiment always serializes")
    }
}

/// Sets `a.b.c=value` in nested tables; a value that is no TOML is a string.
fn set(table: &mut Table, item: &str) -> Result<(), CliError> {
    let wrong = || CliError::Input(format!("--set must look like key=value, got `{item}`"));
    let (key, text) = item.split_once('=').ok_or_else(wrong)?;
    let mut names: Vec<&str> = key.split('.').map(str::trim).collect();
    let last = names.pop().filter(|name| !name.is_empty()).ok_or_else(wrong)?;
    let mut place = table;
    for name in names {
        let next = place.entry(name).or_insert_with(|| Value::Table(Table::new()));
        place = next.as_table_mut().ok_or_else(|| CliError::Input(format!("--set {item}: `{name}` is no section")))?;
    }
    let parsed = toml::from_str::<Table>(&format!("value = {text}")).ok().and_then(|mut t| t.remove("value"));
    place.insert(last.to_owned(), parsed.unwrap_or_else(|| Value::String(text.to_owned())));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[scenario.cart-pole]\n[ppo]\ngamma = 0.9\n";

    #[test]
    fn every_shipped_config_loads() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        let mut count = 0;
        for entry in std::fs::read_dir(dir).expect("configs are there") {
            let path = entry.expect("the directory can be read").path();
            let experiment = Experiment::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
            // What is written into a run directory must read as the same experiment.
            let again = Experiment::parse(&experiment.to_toml(), "resolved", &[]).expect("it was written by us");
            assert_eq!(again, experiment, "{}", path.display());
            count += 1;
        }
        assert!(count >= 3);
    }

    #[test]
    fn configs_of_networks_are_the_presets() {
        use brasa::uara::{BsAgentConfig, Candidates, Parity, UaraConfig};
        let covered = |config| UaraConfig { candidates: Candidates::Covered, ..config };
        let published = Parity { bootstrap_success: true, unguarded_distance: true };
        let cases = [
            ("uara-physical", ScenarioConfig::Uara(UaraConfig::physical())),
            ("uara-cly2020", ScenarioConfig::Uara(covered(UaraConfig::cly2020()))),
            ("uara-cly2020-published", ScenarioConfig::Uara(UaraConfig { parity: published, ..UaraConfig::cly2020() })),
            ("uara-zhao2019", ScenarioConfig::Uara(covered(UaraConfig::zhao2019()))),
            ("uara-bs-agent-2025", ScenarioConfig::UaraBsAgent(BsAgentConfig::default())),
            ("uara-bs-agent-2025-optimized", ScenarioConfig::UaraBsAgent(BsAgentConfig::default())),
        ];
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        for (name, expected) in cases {
            let path = dir.join(name).with_extension("toml");
            assert_eq!(Experiment::load(&path, &[]).expect("it is valid").scenario, expected, "{name}");
        }
    }

    #[test]
    fn overrides_reach_nested_values() {
        let overrides = [
            "ppo.gamma=0.5".to_owned(),
            "train.device=cuda:1".into(),
            "ppo.learning_rate={ linear = { from = 1e-3, to = 0.0 } }".into(),
        ];
        let experiment = Experiment::parse(TEXT, "test", &overrides).expect("the overrides are valid");
        let ppo = experiment.ppo.expect("the file has the section");
        assert_eq!(ppo.gamma, 0.5);
        assert_eq!(experiment.train.device, "cuda:1");
        assert_eq!(ppo.learning_rate.at(0.5), 5e-4);
    }

    #[test]
    fn a_table_that_leaves_epsilon_out_keeps_that_of_its_algorithm() {
        let read = |text: &str| {
            let text = format!("[scenario.pendulum]\n{text}");
            Experiment::parse(&text, "test", &[]).expect("the file is valid").algorithm()
        };
        let Algorithm::Sac { sac, .. } = read("[sac.adam]\nbeta_1 = 0.8") else { panic!("SAC is named") };
        assert_eq!((sac.adam.beta_1, sac.adam.epsilon), (0.8, 1e-8));
        let Algorithm::Ppo { ppo, .. } = read("[ppo.adam]\nbeta_1 = 0.8") else { panic!("PPO is named") };
        assert_eq!((ppo.adam.beta_1, ppo.adam.epsilon), (0.8, 1e-5));
        let Algorithm::Dqn { dqn, .. } = read("[dqn.optimizer.adam]\nweight_decay = 1e-4") else {
            panic!("DQN is named")
        };
        let expected = brasa::nn::AdamConfig { weight_decay: 1e-4, epsilon: 1e-8, ..Default::default() };
        assert_eq!(dqn.optimizer, expected.into());
    }

    #[test]
    fn mistakes_are_named() {
        let message =
            |text: &str, set: &[String]| Experiment::parse(text, "file", set).expect_err("it is wrong").to_string();
        assert!(message("[scenario.cart-pole]\n[ppo]\ngama = 0.9", &[]).contains("unknown field `gama`"));
        assert!(message("[scenario.cart-pole]\n[dqn]\n[ppo]", &[]).contains("there are [ppo] and [dqn]"));
        assert!(message("[scenario.cart-pole]\n[train]\nscale_reward = true\n[dqn]", &[]).contains("must be off"));
        let stray = message("[scenario.cart-pole]\n[dqn]\n[network]", &[]);
        assert_eq!(stray, "[network] is no part of dqn, which has [q_network], [off_policy]");
        assert!(message("[scenario.moon]", &[]).contains("unknown variant `moon`"));
        assert!(message(TEXT, &["ppo.gamma=2".into()]).contains("`gamma` must be in [0, 1], got 2"));
        assert!(message(TEXT, &["ppo.gamma".into()]).contains("must look like key=value"));
        assert!(message(TEXT, &["ppo.gama=1".into()]).contains("unknown field `gama`"));
        assert!(message(TEXT, &["train.n_envs=0".into()]).contains("`train.n_envs` must be at least 1, got 0"));
    }
}
