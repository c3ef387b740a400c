//! An experiment: one file in `configs/`.

use std::path::Path;

use brasa::env::Executor;
use brasa::nn::ActorCriticConfig;
use brasa::ppo::PpoConfig;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::error::CliError;
use crate::scenario::ScenarioConfig;

/// A scenario and how to learn it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What to control.
    pub scenario: ScenarioConfig,
    /// How long, how wide, where.
    #[serde(default)]
    pub train: TrainConfig,
    /// Shape of the network.
    #[serde(default)]
    pub network: ActorCriticConfig,
    /// The algorithm.
    #[serde(default)]
    pub ppo: PpoConfig,
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
    /// Device. Default `cpu`.
    pub device: String,
    /// How environments are stepped. Default `auto`: measures, chooses and says so.
    pub executor: Executor,
    /// Whether observations get mean 0 and deviation 1 from running moments. Default off: the energy scenarios scale
    /// their own.
    pub normalize_obs: bool,
    /// Whether rewards are divided by the spread of the discounted return. Default off.
    pub scale_reward: bool,
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
            device: "cpu".into(),
            executor: Executor::Auto,
            normalize_obs: false,
            scale_reward: false,
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
            experiment.validate()?;
            return Ok(experiment);
        }
        let mut table: Table = toml::from_str(text).map_err(wrong)?;
        for item in overrides {
            set(&mut table, item)?;
        }
        let experiment: Self = Value::Table(table)
            .try_into()
            .map_err(|error: toml::de::Error| CliError::Input(format!("--set: {}", error.to_string().trim_end())))?;
        experiment.validate()?;
        Ok(experiment)
    }

    /// Checks what can be checked before anything is built.
    pub fn validate(&self) -> Result<(), CliError> {
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
        if !(train.checkpoint_secs > 0.0 && train.checkpoint_secs.is_finite()) {
            return fail("checkpoint_secs", "must be finite and above 0", train.checkpoint_secs.to_string());
        }
        if let Executor::Threads(n) = train.executor
            && !(1..=train.n_envs).contains(&n)
        {
            return fail("executor.threads", "must be between 1 and `train.n_envs`", n.to_string());
        }
        self.ppo.validate().map_err(|error| CliError::Input(format!("[ppo] {error}")))?;
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
    fn overrides_reach_nested_values() {
        let overrides = [
            "ppo.gamma=0.5".to_owned(),
            "train.device=cuda:1".into(),
            "ppo.learning_rate={ linear = { from = 1e-3, to = 0.0 } }".into(),
        ];
        let experiment = Experiment::parse(TEXT, "test", &overrides).expect("the overrides are valid");
        assert_eq!(experiment.ppo.gamma, 0.5);
        assert_eq!(experiment.train.device, "cuda:1");
        assert_eq!(experiment.ppo.learning_rate.at(0.5), 5e-4);
    }

    #[test]
    fn mistakes_are_named() {
        let message =
            |text: &str, set: &[String]| Experiment::parse(text, "file", set).expect_err("it is wrong").to_string();
        assert!(message("[scenario.cart-pole]\n[ppo]\ngama = 0.9", &[]).contains("unknown field `gama`"));
        assert!(message("[scenario.moon]", &[]).contains("unknown variant `moon`"));
        assert!(message(TEXT, &["ppo.gamma=2".into()]).contains("`gamma` must be in [0, 1], got 2"));
        assert!(message(TEXT, &["ppo.gamma".into()]).contains("must look like key=value"));
        assert!(message(TEXT, &["ppo.gama=1".into()]).contains("unknown field `gama`"));
        assert!(message(TEXT, &["train.n_envs=0".into()]).contains("`train.n_envs` must be at least 1, got 0"));
    }
}
