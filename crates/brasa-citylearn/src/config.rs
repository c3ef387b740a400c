//! Settings of a CityLearn scenario.

use brasa_env::field;
use brasa_power::{EnergyError, scenario::check_optimum};
use serde::{Deserialize, Serialize};

use super::{LoadOptions, files::PHASE1};

/// Settings of a CityLearn scenario.
///
/// ```
/// use brasa_citylearn::CityLearnConfig;
///
/// let config = CityLearnConfig { episode_steps: Some(168), random_start: true, ..CityLearnConfig::default() };
/// config.validate()?;
/// let error = CityLearnConfig { episode_steps: None, ..config }.validate().unwrap_err();
/// assert_eq!(error.to_string(), "`random_start` needs `episode_steps`, got true");
/// # Ok::<(), brasa_citylearn::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CityLearnConfig {
    /// The data set: `phase1` (default, part of the crate), the path of a `schema.json`, or its folder.
    pub data: String,
    /// Seed of the device parameters that are missing in the schema; default the schema's seed. Another seed
    /// changes the efficiency curves and all results.
    pub random_seed: Option<u64>,
    /// Whether PV may yield less than 200 or more than 2200 kWh per kWp and year, or 20 and 4400 in data of less than 8000 h; `false` by
    /// default, which catches series in the wrong unit. One home of the 2022 phase 3 data set needs `true`: its PV gives 29.
    pub accept_unlikely_pv: bool,
    /// The rules of batteries and sums; `clean` by default. The other two are for comparison
    /// with published numbers, bugs included.
    pub physics: Physics,
    /// The reward; `challenge-improvement` by default.
    pub reward: Reward,
    /// Whether a step of training is also credited with the change of the energy in the batteries, at the mean worth of the
    /// import that it saves. This is a potential (Ng, Harada, Russell 1999), so the best policy of a long episode is the same;
    /// evaluations never have it. Without it, charging pays hours later, and noise that discharges an empty battery costs
    /// nothing. Default false. Not with the reward `schema`.
    pub shaped: bool,
    /// Weights of the terms of the `challenge` rewards; an error with any other reward.
    pub weights: ChallengeWeights,
    /// Scaling of observations; `normalized` by default. Raw observations range from 0 to 1000 and slow down learning.
    pub observations: Observations,
    /// Steps per episode; all rows of the data by default (one fewer with CityLearn's rules, which have no action
    /// for the last row). Episodes of a few days are enough for training and reset more often.
    pub episode_steps: Option<usize>,
    /// Whether each episode of `episode_steps` starts at a random row; default `false`: episodes start
    /// at the first row, so rows after the length of an episode are never used.
    pub random_start: bool,
    /// Keeps every `n`-th week of the data from training, at least the second: episodes of training lie between these weeks, and each of
    /// these weeks is an episode of the evaluation, which begins with the batteries' initial charge. Needs `episode_steps`
    /// of at most `n - 1` weeks. Default: training and evaluation use all data.
    pub held_out_weeks: Option<usize>,
    /// Whether reports have the baseline `perfect-foresight`, the optimum of the reward; default `false`, because it takes
    /// about a quarter of a minute for five batteries and a year. Needs the crate's feature `optimum` and the physics
    /// `clean`.
    pub optimum: bool,
}

impl Default for CityLearnConfig {
    fn default() -> Self {
        Self {
            data: PHASE1.into(),
            random_seed: None,
            accept_unlikely_pv: false,
            physics: Physics::default(),
            reward: Reward::default(),
            shaped: false,
            weights: ChallengeWeights::default(),
            observations: Observations::default(),
            episode_steps: None,
            random_start: false,
            held_out_weeks: None,
            optimum: false,
        }
    }
}

/// The rules of a district.
///
/// ```
/// use brasa_citylearn::{CityLearnConfig, Physics};
///
/// let config: CityLearnConfig = serde_json::from_str(r#"{ "physics": "citylearn-3.0" }"#)?;
/// assert_eq!(config.physics, Physics::CityLearn30);
/// assert_eq!(Physics::Clean.name(), "clean");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Physics {
    /// As CityLearn 2.1.2, number for number: an action changes the row after the observed one, and the action of a battery
    /// is a fraction of its capacity. For districts of batteries only; missing parameters are constants instead of drawn.
    #[serde(rename = "citylearn-2.1")]
    CityLearn21,
    /// As CityLearn 2.5.0, number for number: the first row counts loads three times and batteries twice, and
    /// after the first observation state of charge and net consumption are 0 in observations.
    #[serde(rename = "citylearn-2.5")]
    CityLearn25,
    /// As CityLearn 3.0.2, number for number.
    #[serde(rename = "citylearn-3.0")]
    CityLearn30,
    /// Without CityLearn's defects: exact for any time step, in f64, one action per row.
    #[default]
    #[serde(rename = "clean")]
    Clean,
}

impl Physics {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Clean, Self::CityLearn30, Self::CityLearn25, Self::CityLearn21];

    /// The name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::CityLearn21 => "citylearn-2.1",
            Self::CityLearn25 => "citylearn-2.5",
            Self::CityLearn30 => "citylearn-3.0",
            Self::Clean => "clean",
        }
    }
}

/// The reward of an agent.
///
/// ```
/// use brasa_citylearn::{CityLearnConfig, Reward};
///
/// let config: CityLearnConfig = serde_json::from_str(r#"{ "reward": "independent-sac" }"#)?;
/// assert_eq!(config.reward, Reward::IndependentSac);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reward {
    /// CityLearn's `RewardFunction`: minus the grid import of the buildings, in kWh.
    GridImport,
    /// Minus the weighted sum of cost, carbon, upward ramps and daily peak, each divided by its mean without storage:
    /// about -1 per step for an idle district.
    Challenge,
    /// [`Reward::Challenge`] minus its value for the same step without storage: above 0 is better than idle.
    /// The difference does not depend on actions, so the optimal policy is the same and the variance is smaller.
    #[default]
    ChallengeImprovement,
    /// The class that the data's schema names, with its attributes; CityLearn's `RewardFunction` if it names none.
    Schema,
    /// CityLearn's `MARL`: minus a hundredth of the square of a building's imports, times the district's imports.
    Marl,
    /// CityLearn's `IndependentSACReward`: minus the imports of the buildings.
    #[serde(rename = "independent-sac")]
    IndependentSac,
    /// CityLearn's `SolarPenaltyReward`: minus imports weighted by what storages hold and exports by their room.
    SolarPenalty,
    /// CityLearn's `ComfortReward`: minus the distances of indoor temperatures from the set points.
    Comfort,
    /// CityLearn's `SolarPenaltyAndComfortReward`: the sum of the last two.
    SolarPenaltyAndComfort,
    /// CityLearn's `Electric_Vehicles_Reward_Function`: points for vehicles near their required state of charge and for charging
    /// with the building's own PV, minus the energy above the limits on chargers.
    ElectricVehicles,
}

impl Reward {
    /// Whether the weights of the challenge apply.
    pub(super) fn is_weighted(self) -> bool {
        matches!(self, Self::Challenge | Self::ChallengeImprovement)
    }

    /// The value of the key `reward`.
    fn shown(self) -> String {
        serde_json::to_string(&self).unwrap_or_else(|_| format!("{self:?}"))
    }

    /// The name in Python of the class of CityLearn that computes the reward; `None` for rewards of the district's sums.
    pub(super) fn class(self) -> Option<&'static str> {
        match self {
            Self::GridImport | Self::Challenge | Self::ChallengeImprovement => None,
            Self::Schema => Some("RewardFunction"),
            Self::Marl => Some("MARL"),
            Self::IndependentSac => Some("IndependentSACReward"),
            Self::SolarPenalty => Some("SolarPenaltyReward"),
            Self::Comfort => Some("ComfortReward"),
            Self::SolarPenaltyAndComfort => Some("SolarPenaltyAndComfortReward"),
            Self::ElectricVehicles => Some("Electric_Vehicles_Reward_Function"),
        }
    }
}

/// Weights of the terms of [`Reward::Challenge`]; they need not sum to 1.
///
/// ```
/// use brasa_citylearn::{ChallengeWeights, CityLearnConfig, Reward};
///
/// let weights = ChallengeWeights { carbon: 1.0, ..ChallengeWeights::default() };
/// CityLearnConfig { weights, ..CityLearnConfig::default() }.validate()?;
/// // No other reward has weights.
/// let error = CityLearnConfig { weights, reward: Reward::Marl, ..CityLearnConfig::default() }.validate().unwrap_err();
/// assert!(error.to_string().starts_with("`weights` must be left out unless"));
/// # Ok::<(), brasa_citylearn::EnergyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChallengeWeights {
    /// Cost of imports; 1/3 by default, as in the score.
    pub cost: f64,
    /// Carbon of imports; 1/3 by default, as in the score.
    pub carbon: f64,
    /// Upward ramps of the district; 1/6 by default, as in the score.
    pub ramping: f64,
    /// Rises of the district's daily peak; 1/6 by default. It replaces the score's load factor, which
    /// is only known at the end of a month.
    pub daily_peak: f64,
    /// Energy that vehicles lack at departure for their required state of charge; 2 by default. A kWh counts
    /// relative to the mean import without storage, so that charging is worth more than the import costs.
    pub vehicle_shortfall: f64,
}

impl Default for ChallengeWeights {
    fn default() -> Self {
        Self { cost: 1.0 / 3.0, carbon: 1.0 / 3.0, ramping: 1.0 / 6.0, daily_peak: 1.0 / 6.0, vehicle_shortfall: 2.0 }
    }
}

/// Scaling of observations.
///
/// ```
/// use brasa_citylearn::{CityLearnConfig, Observations};
///
/// let config: CityLearnConfig = serde_json::from_str(r#"{ "observations": "raw" }"#)?;
/// assert_eq!(config.observations, Observations::Raw);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Observations {
    /// As CityLearn's `NormalizedObservationWrapper`: month, day and hour as cosine and sine, then all numbers scaled
    /// from their range over the data to `[0, 1]`.
    #[default]
    Normalized,
    /// In the units of the data.
    Raw,
}

impl CityLearnConfig {
    /// The options for reading the data.
    pub fn load_options(&self) -> LoadOptions {
        LoadOptions { random_seed: self.random_seed, accept_unlikely_pv: self.accept_unlikely_pv }
    }

    /// Rejects settings that are invalid for any data set.
    ///
    /// # Errors
    /// [`EnergyError::Field`] with the field, its rule and the value.
    pub fn validate(&self) -> Result<(), EnergyError> {
        let ChallengeWeights { cost, carbon, ramping, daily_peak, vehicle_shortfall } = self.weights;
        let weights = [("cost", cost), ("carbon", carbon), ("ramping", ramping), ("daily_peak", daily_peak)];
        for (name, weight) in weights.into_iter().chain([("vehicle_shortfall", vehicle_shortfall)]) {
            // Rewards are 32 bits wide.
            field::rule((0.0..=1e6).contains(&weight), format!("weights.{name}"), "must be from 0 to 1000000", weight)?;
        }
        let is_weighted = self.reward.is_weighted();
        let rule =
            "must be left out unless `reward` is \"challenge\" or \"challenge-improvement\", as no other has weights";
        field::rule(
            is_weighted || self.weights == ChallengeWeights::default(),
            "weights",
            rule,
            format!("`reward = {}`", self.reward.shown()),
        )?;
        field::rule(
            !is_weighted || weights.iter().any(|(_, weight)| *weight != 0.0),
            "weights",
            "must have one weight above 0",
            "zeros",
        )?;
        check_optimum(self.optimum, cfg!(feature = "optimum"))?;
        field::rule(
            !self.optimum || self.physics == Physics::Clean,
            "physics",
            "must be `clean` for `optimum`",
            format!("{:?}", self.physics),
        )?;
        field::rule(self.episode_steps != Some(0), "episode_steps", "must be at least 1", 0)?;
        field::rule(!self.random_start || self.episode_steps.is_some(), "random_start", "needs `episode_steps`", true)?;
        field::rule(
            !self.shaped || self.reward.class().is_none(),
            "shaped",
            "must be false for a reward class of CityLearn",
            true,
        )?;
        let weeks = self.held_out_weeks.unwrap_or(2);
        field::rule(weeks >= 2, "held_out_weeks", "must be at least 2", weeks)?;
        Ok(())
    }
}
