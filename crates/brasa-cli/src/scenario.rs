//! Scenarios by name: their environments and their yardsticks.

use brasa::classic::{Acrobot, CartPole, MountainCar, MountainCarContinuous, Pendulum};
use brasa::energy::EnergyScenario;
use brasa::energy::citylearn::{CityLearn, CityLearnConfig};
use brasa::energy::iquitos::{Iquitos, IquitosConfig};
use brasa::env::wrappers::{EpisodeStats, NormalizeObs, RunningMoments, ScaleReward, ShapeReward, TimeLimit};
use brasa::env::{Choice, Env, EnvBatch, EnvError, EnvVec, Executor, execute};
use brasa::evacuation::{Evacuation, EvacuationConfig};
use brasa::nn::PairSpec;
use brasa::uara::{BsAgentBatch, BsAgentConfig, Part, Uara, UaraConfig};
use serde::{Deserialize, Serialize};

use crate::actor_critic::GraphWorld;
use crate::comparison::Comparison;
use crate::error::CliError;
use crate::eval::Trained;
use crate::experiment::Experiment;

/// What to control: exactly one scenario, with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(clippy::large_enum_variant, reason = "one value per run")]
pub enum ScenarioConfig {
    /// A CityLearn district.
    #[serde(rename = "citylearn")]
    CityLearn(CityLearnConfig),
    /// The Iquitos microgrid.
    Iquitos(IquitosConfig),
    /// Sweeping buildings on fire.
    Evacuation(EvacuationConfig),
    /// Users of a cellular network.
    Uara(UaraConfig),
    /// Stations that choose users, as published.
    UaraBsAgent(BsAgentConfig),
    /// CartPole-v1.
    CartPole(Classic),
    /// Pendulum-v1.
    Pendulum(Classic),
    /// Acrobot-v1.
    Acrobot(Classic),
    /// MountainCar-v0.
    MountainCar(Classic),
    /// MountainCarContinuous-v0.
    MountainCarContinuous(Classic),
}

/// Classic tasks have nothing to set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Classic {}

impl ScenarioConfig {
    /// Whether observations are graphs laid out flat.
    pub fn plays_on_graphs(&self) -> bool {
        matches!(self, Self::Evacuation(_))
    }

    /// The section with the network of DQN where an experiment names none.
    pub fn q_network(&self) -> &'static str {
        match self {
            Self::Uara(config) if config.observes(Part::State) => "team_q_network",
            Self::Uara(_) => "pair_q_network",
            Self::UaraBsAgent(_) => "team_q_network",
            _ => "q_network",
        }
    }

    /// Whether observations have one range by themselves.
    pub fn is_normalized(&self) -> bool {
        matches!(self, Self::Uara(_) | Self::UaraBsAgent(_))
    }

    pub fn validate(&self) -> Result<(), CliError> {
        match self {
            Self::CityLearn(config) => Ok(config.validate()?),
            Self::Iquitos(config) => Ok(config.validate()?),
            Self::Evacuation(config) => Ok(config.validate()?),
            Self::Uara(config) => Ok(config.validate()?),
            Self::UaraBsAgent(config) => Ok(config.validate()?),
            _ => Ok(()),
        }
    }
}

/// A scenario that is ready to run.
#[allow(clippy::large_enum_variant, reason = "one value per run")]
pub enum Scenario {
    CityLearn(CityLearn),
    Iquitos(Iquitos),
    Evacuation(Evacuation),
    Uara(Uara),
    UaraBsAgent(BsAgentConfig),
    CartPole,
    Pendulum,
    Acrobot,
    MountainCar,
    MountainCarContinuous,
}

impl Scenario {
    /// Reads the scenario's data.
    pub fn build(config: &ScenarioConfig) -> Result<Self, CliError> {
        Ok(match config {
            ScenarioConfig::CityLearn(config) => Self::CityLearn(CityLearn::new(config.clone())?),
            ScenarioConfig::Iquitos(config) => Self::Iquitos(Iquitos::new(config.clone())?),
            ScenarioConfig::Evacuation(config) => Self::Evacuation(Evacuation::new(config.clone())?),
            ScenarioConfig::Uara(config) => Self::Uara(Uara::new(config.clone())?),
            ScenarioConfig::UaraBsAgent(config) => Self::UaraBsAgent(config.clone()),
            ScenarioConfig::CartPole(_) => Self::CartPole,
            ScenarioConfig::Pendulum(_) => Self::Pendulum,
            ScenarioConfig::Acrobot(_) => Self::Acrobot,
            ScenarioConfig::MountainCar(_) => Self::MountainCar,
            ScenarioConfig::MountainCarContinuous(_) => Self::MountainCarContinuous,
        })
    }

    /// `n_envs` environments that keep episode statistics.
    pub fn envs(&self, n_envs: usize, executor: Executor) -> Result<(Box<dyn EnvBatch>, Choice), CliError> {
        fn classic<E: Env>(
            executor: Executor,
            n_envs: usize,
            limit: u32,
            make: fn() -> E,
        ) -> Result<(Box<dyn EnvBatch>, Choice), EnvError> {
            execute(executor, n_envs, |envs| TimeLimit::new(EnvVec::new(envs, |_| make())?, limit))
        }
        fn energy<S: EnergyScenario>(
            scenario: &S,
            executor: Executor,
            n_envs: usize,
        ) -> Result<(Box<dyn EnvBatch>, Choice), EnvError>
        where
            S::Batch: 'static,
        {
            execute(executor, n_envs, |envs| scenario.batch(envs).map_err(|error| EnvError::Scenario(Box::new(error))))
        }
        let (batch, choice) = match self {
            Self::CityLearn(scenario) => energy(scenario, executor, n_envs)?,
            Self::Iquitos(scenario) => energy(scenario, executor, n_envs)?,
            Self::Evacuation(scenario) => execute(executor, n_envs, |envs| Ok(scenario.batch(envs)))?,
            Self::Uara(scenario) => execute(executor, n_envs, |envs| Ok(scenario.batch(envs)))?,
            Self::UaraBsAgent(config) => execute(executor, n_envs, |envs| {
                BsAgentBatch::new(config.clone(), envs).map_err(|error| EnvError::Scenario(Box::new(error)))
            })?,
            Self::CartPole => classic(executor, n_envs, CartPole::TIME_LIMIT, CartPole::default)?,
            Self::Pendulum => classic(executor, n_envs, Pendulum::TIME_LIMIT, Pendulum::default)?,
            Self::Acrobot => classic(executor, n_envs, Acrobot::TIME_LIMIT, Acrobot::default)?,
            Self::MountainCar => classic(executor, n_envs, MountainCar::TIME_LIMIT, MountainCar::default)?,
            Self::MountainCarContinuous => {
                classic(executor, n_envs, MountainCarContinuous::TIME_LIMIT, MountainCarContinuous::default)?
            }
        };
        Ok((Box::new(EpisodeStats::new(batch)), choice))
    }

    /// The environments of a training run, wrapped as the experiment says.
    pub fn training_envs(&self, experiment: &Experiment) -> Result<(Box<dyn EnvBatch>, Choice), CliError> {
        let (train, algorithm) = (&experiment.train, experiment.algorithm());
        let (mut batch, choice) = self.envs(train.n_envs, train.executor)?;
        if train.reward_scale != 1.0 || train.reward_smooth_lambda != 0.0 {
            batch = Box::new(ShapeReward::new(batch, train.reward_scale, train.reward_smooth_lambda)?);
        }
        if train.scale_reward {
            batch = Box::new(ScaleReward::new(batch, algorithm.gamma())?);
        }
        if train.normalize_obs {
            batch = match algorithm.replays() {
                true => Box::new(NormalizeObs::watching(batch)?),
                false => Box::new(NormalizeObs::new(batch)?),
            };
        }
        Ok((batch, choice))
    }

    /// Environments to evaluate in, normalized as training did.
    pub fn eval_envs(&self, n_envs: usize, moments: Option<&RunningMoments>) -> Result<Box<dyn EnvBatch>, CliError> {
        let (batch, _) = self.envs(n_envs, Executor::Serial)?;
        Ok(match moments {
            Some(moments) => Box::new(NormalizeObs::frozen(batch, moments.clone())?),
            None => batch,
        })
    }

    /// The controllers to compare with, if the scenario has any.
    pub fn yardsticks(&self) -> Option<&dyn Yardsticks> {
        match self {
            Self::CityLearn(scenario) => Some(scenario),
            Self::Iquitos(scenario) => Some(scenario),
            Self::Evacuation(scenario) => Some(scenario),
            Self::Uara(scenario) => Some(scenario),
            _ => None,
        }
    }

    /// How observations and options consist of pairs, if they do.
    pub fn pairs(&self) -> Option<PairSpec> {
        match self {
            Self::Uara(scenario) => crate::uara::pairs(scenario),
            _ => None,
        }
    }

    /// What graph networks need to know, if the scenario plays on graphs.
    pub fn graphs(&self) -> Result<Option<GraphWorld>, CliError> {
        match self {
            Self::Evacuation(scenario) => GraphWorld::of(scenario).map(Some),
            _ => Ok(None),
        }
    }
}

/// A scenario with controllers that do not learn.
pub trait Yardsticks {
    /// Runs every controller that does not learn, and the trained policy where there is one, over `episodes` or as many
    /// as the scenario finds enough.
    fn compare(&self, trained: Option<&Trained<'_>>, seed: u64, episodes: Option<u64>) -> Result<Comparison, CliError>;

    /// A quick look at a policy that still learns, acting without exploring: metrics by their names, none where a scenario
    /// has no quick look.
    fn score(&self, _trained: &Trained<'_>, _seed: u64) -> Result<Vec<(&'static str, f64)>, CliError> {
        Ok(Vec::new())
    }
}
