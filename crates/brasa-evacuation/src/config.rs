//! Settings of the scenario.

use serde::{Deserialize, Serialize};

use brasa_env::field;

use crate::{EvacuationError, Mobility, Sweeps, Timing};

/// Largest team.
///
/// ```
/// use brasa_evacuation::{MAX_RESPONDERS, RulesConfig};
///
/// RulesConfig { responders: [1, MAX_RESPONDERS], ..RulesConfig::default() }.validate()?;
/// assert!(RulesConfig { responders: [1, MAX_RESPONDERS + 1], ..RulesConfig::default() }.validate().is_err());
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
pub const MAX_RESPONDERS: usize = 8;

/// Most ticks of an episode, of a way and of a search.
pub(crate) const MAX_TICKS: u32 = 1_000_000;
/// Most people that a responder leads at a time.
const MAX_ESCORTED: usize = 1000;
/// Largest weight and factor: rewards and figures are 32 bits wide.
const MAX_WEIGHT: f64 = 1e6;

/// What happens inside a building, and what responders know and may do.
///
/// ```
/// use brasa_evacuation::{HazardConfig, RulesConfig};
///
/// let hazards = HazardConfig { enabled: false, ..HazardConfig::default() };
/// let rules = RulesConfig { responders: [1, 4], hazards, ..RulesConfig::default() };
/// rules.validate()?;
/// assert_eq!(rules.timeout_secs, 1200.0);
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RulesConfig {
    /// Smallest and largest team; each episode samples a size. Default 2 and 2. From 1 to 8.
    pub responders: [usize; 2],
    /// Durations of walking and searching.
    pub timing: Timing,
    /// Number of sweeps per room. Default by risk.
    pub sweeps: Sweeps,
    /// The condition of success. Default all clear.
    pub goal: Goal,
    /// The kind of decisions. Default macro.
    pub actions: Actions,
    /// Knowledge of responders about each other and about the building.
    pub knowledge: KnowledgeConfig,
    /// Fire and smoke.
    pub hazards: HazardConfig,
    /// The people inside.
    pub occupants: OccupantConfig,
    /// The responders.
    pub crew: CrewConfig,
    /// The reward.
    pub reward: RewardConfig,
    /// Time after which an episode ends and whoever is inside is lost, in s. Default 1,200.
    pub timeout_secs: f64,
}

/// The condition of success.
///
/// ```
/// use brasa_evacuation::{Goal, RulesConfig};
///
/// let rules: RulesConfig = serde_json::from_str(r#"{ "goal": "sweep" }"#)?;
/// assert_eq!(rules.goal, Goal::Sweep);
/// assert_eq!(RulesConfig::default().goal, Goal::AllClear);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Every accessible room is swept, and every living person that can be reached is outside.
    #[default]
    AllClear,
    /// Every accessible room is swept.
    Sweep,
}

impl Goal {
    /// Whether success depends on people besides rooms.
    pub(crate) fn counts_people(self) -> bool {
        self == Goal::AllClear
    }
}

/// The kind of decisions.
///
/// ```
/// use brasa_evacuation::{Actions, RulesConfig};
///
/// let rules: RulesConfig = serde_json::from_str(r#"{ "actions": "primitive" }"#)?;
/// assert_eq!(rules.actions, Actions::Primitive);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Actions {
    /// Go to a room and search it, escort people to an exit, or wait, on the shortest known path.
    #[default]
    Macro,
    /// Move to a neighbor, search here, or wait.
    Primitive,
}

/// Knowledge of responders.
///
/// ```
/// use brasa_evacuation::{KnowledgeConfig, RulesConfig};
///
/// let rules = |knowledge| RulesConfig { knowledge, ..RulesConfig::default() };
/// rules(KnowledgeConfig { loss: 0.5, ..KnowledgeConfig::default() }).validate()?;
/// let error = rules(KnowledgeConfig { loss: 1.5, ..KnowledgeConfig::default() }).validate().unwrap_err();
/// assert!(error.to_string().contains("`knowledge.loss`"), "{error}");
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KnowledgeConfig {
    /// The mode. Default full.
    pub mode: Knowledge,
    /// Local mode: delay of messages, in s. Default 5.
    pub delay_secs: f64,
    /// Local mode: probability that a message is lost. Default 0.05.
    pub loss: f64,
    /// Local mode: range of messages, in m of walking distance. Default no limit.
    pub radius_m: Option<f64>,
}

/// Modes of knowledge.
///
/// ```
/// use brasa_evacuation::{Knowledge, RulesConfig};
///
/// let rules: RulesConfig = serde_json::from_str(r#"{ "knowledge": { "mode": "local" } }"#)?;
/// assert_eq!(rules.knowledge.mode, Knowledge::Local);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Knowledge {
    /// All responders know the complete state.
    #[default]
    Full,
    /// All responders immediately know the observations of each.
    Shared,
    /// Each responder knows its own observations and the received messages.
    Local,
}

/// Fire and smoke.
///
/// ```
/// use brasa_evacuation::{HazardConfig, RulesConfig};
///
/// let rules = |hazards| RulesConfig { hazards, ..RulesConfig::default() };
/// rules(HazardConfig { enabled: false, ..HazardConfig::default() }).validate()?;
/// let error = rules(HazardConfig { spread_chance: 1.5, ..HazardConfig::default() }).validate().unwrap_err();
/// assert!(error.to_string().contains("`hazards.spread_chance`"), "{error}");
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HazardConfig {
    /// Whether there is a fire. Default on: it starts in a random room in each episode.
    pub enabled: bool,
    /// Period of growth and spread of fire, in s. Default 15.
    pub period_secs: f64,
    /// Probability that fire crosses an edge in one period. Default 0.3.
    pub spread_chance: f64,
    /// Factor on this probability for a fire door. Default 0.3.
    pub fire_door_factor: f64,
    /// Intensity of a new fire, 0 to 1. Default 0.4.
    pub ignition: f64,
    /// Growth of a fire in one period. Default 0.1.
    pub growth: f64,
    /// Intensity from which a place is impassable; above 1 for never. Default 0.7.
    pub impassable: f64,
    /// Model of smoke. Default transport.
    pub smoke: Smoke,
    /// Transport: smoke production of a fire of intensity 1, in m2 of floor with dense smoke per s. Default 1.
    pub smoke_m2_per_s: f64,
    /// Transport: exchange velocity of smoke through an opening, in m/s. Default 0.3.
    pub exchange_m_per_s: f64,
    /// Transport: factor on the exchange for a door. Default 0.3.
    pub door_leak: f64,
    /// Transport: factor on the exchange for a fire door. Default 0.05.
    pub fire_door_leak: f64,
    /// Transport: fraction of the smoke at an exit that leaves per s. Default 0.1.
    pub exit_venting_per_s: f64,
    /// Reduction of speed in dense smoke, as a fraction. Default 0.8.
    pub smoke_slowdown: f64,
    /// Smallest walking speed in smoke, in m/s. Default 0.1, as in evacuation models coupled with fire models.
    pub min_speed_m_per_s: f64,
}

/// Model of smoke.
///
/// ```
/// use brasa_evacuation::{RulesConfig, Smoke};
///
/// let rules: RulesConfig = serde_json::from_str(r#"{ "hazards": { "smoke": "neighbors" } }"#)?;
/// assert_eq!(rules.hazards.smoke, Smoke::Neighbors);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Smoke {
    /// Smoke is produced by fires, exchanged through openings, and leaves at exits.
    #[default]
    Transport,
    /// Smoke becomes denser once per period next to fires, and never moves or clears.
    Neighbors,
}

/// The people inside.
///
/// ```
/// use brasa_evacuation::{OccupantConfig, RulesConfig};
///
/// let rules = |occupants| RulesConfig { occupants, ..RulesConfig::default() };
/// rules(OccupantConfig { unaware_share: 0.0, ..OccupantConfig::default() }).validate()?;
/// let error = rules(OccupantConfig { unaware_share: -0.1, ..OccupantConfig::default() }).validate().unwrap_err();
/// assert!(error.to_string().contains("`occupants.unaware_share`"), "{error}");
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OccupantConfig {
    /// Mean reaction time to the alarm, in s. Default 60.
    pub alarm_mean_secs: f64,
    /// Its standard deviation, in s. Default 30.
    pub alarm_std_secs: f64,
    /// Fraction of people that do not hear the alarm, and react only to smoke or a responder. Default 0.3.
    pub unaware_share: f64,
    /// Walking speeds of adults, children and people of limited mobility, in m/s. Default 0.8, 0.5, 0.4.
    pub speeds_m_per_s: [f64; 3],
    /// Factor on the speed of escorted people. Default 1.8.
    pub assisted_factor: f64,
    /// Speed of a responder that carries a person, in m/s. Default 0.5.
    pub carried_speed_m_per_s: f64,
    /// Whether adults, children, and people of limited mobility walk out alone once aware. Default adults only.
    pub walks_alone: [bool; 3],
    /// Whether a leaving adult takes along a child from the same place. Default on.
    pub adults_lead_children: bool,
    /// Factors on the injury by fire and smoke: adults, children, limited mobility. Default 1, 1.5, 1.8.
    pub vulnerability: [f64; 3],
    /// Health below which a person cannot walk: adults, children, people of limited mobility. Default 40, 60, 50.
    pub tenable_health: [f64; 3],
    /// Weights in the reward: adults, children, limited mobility. Default 1, 3, 2.
    pub weights: [f64; 3],
    /// Health lost per s in a fire of intensity 1. Default 2.
    pub fire_harm_per_s: f64,
    /// Health lost per s in dense smoke. Default 0.6.
    pub smoke_harm_per_s: f64,
    /// Density from which people notice smoke. Default 0.2.
    pub smoke_noticed: f64,
    /// Capacity of an opening, in people per m and s. Default 1.3. People wait in front of it, and choose their way out
    /// by walking and waiting time.
    pub flow_per_m_s: f64,
}

/// The responders.
///
/// ```
/// use brasa_evacuation::{CrewConfig, RulesConfig};
///
/// let rules = |crew| RulesConfig { crew, ..RulesConfig::default() };
/// rules(CrewConfig { capacity: 4, ..CrewConfig::default() }).validate()?;
/// let error = rules(CrewConfig { wait_secs: 0.0, ..CrewConfig::default() }).validate().unwrap_err();
/// assert!(error.to_string().contains("`crew.wait_secs`"), "{error}");
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CrewConfig {
    /// Health lost per s in a fire of intensity 1. Default 0.3.
    pub fire_harm_per_s: f64,
    /// Health lost per s in dense smoke. Default 0.06.
    pub smoke_harm_per_s: f64,
    /// Largest number of people that one responder escorts. Default 2.
    pub capacity: usize,
    /// Duration of waiting, in s. Default 5.
    pub wait_secs: f64,
}

/// Settings of the reward; all terms are dimensionless, so that returns are comparable across buildings.
///
/// The reward of a step is the team's: `-time dt / T + rescue w_out - death w_dead + potential (F(s') - F(s))`, where
/// `T` is the proven lower bound of the building for this team, `w` are fractions of the total weight of all people,
/// and the potential `F` is minus the remaining work (searches and the cheapest edges of rooms) divided by the team
/// size and by `T`; 0 at the end.
///
/// ```
/// use brasa_evacuation::{RewardConfig, RulesConfig};
///
/// let rules = |reward| RulesConfig { reward, ..RulesConfig::default() };
/// rules(RewardConfig { death: 5.0, ..RewardConfig::default() }).validate()?;
/// let error = rules(RewardConfig { death: f64::NAN, ..RewardConfig::default() }).validate().unwrap_err();
/// assert!(error.to_string().contains("`reward.death`"), "{error}");
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RewardConfig {
    /// Weight of time relative to the lower bound. Default 1.
    pub time: f64,
    /// Weight of people outside. Default 1.
    pub rescue: f64,
    /// For everybody dead, left behind, or inside at the time limit. Default 2.
    pub death: f64,
    /// Weight of the potential. Default 1; it changes the timing of rewards, not the optimal policy.
    pub potential: f64,
}

impl Default for RulesConfig {
    fn default() -> Self {
        Self {
            responders: [2, 2],
            timing: Timing::default(),
            sweeps: Sweeps::default(),
            goal: Goal::default(),
            actions: Actions::default(),
            knowledge: KnowledgeConfig::default(),
            hazards: HazardConfig::default(),
            occupants: OccupantConfig::default(),
            crew: CrewConfig::default(),
            reward: RewardConfig::default(),
            timeout_secs: 1200.0,
        }
    }
}

impl Default for KnowledgeConfig {
    fn default() -> Self {
        Self { mode: Knowledge::Full, delay_secs: 5.0, loss: 0.05, radius_m: None }
    }
}

impl Default for HazardConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            period_secs: 15.0,
            spread_chance: 0.3,
            fire_door_factor: 0.3,
            ignition: 0.4,
            growth: 0.1,
            impassable: 0.7,
            smoke: Smoke::Transport,
            smoke_m2_per_s: 1.0,
            exchange_m_per_s: 0.3,
            door_leak: 0.3,
            fire_door_leak: 0.05,
            exit_venting_per_s: 0.1,
            smoke_slowdown: 0.8,
            min_speed_m_per_s: 0.1,
        }
    }
}

impl Default for OccupantConfig {
    fn default() -> Self {
        Self {
            alarm_mean_secs: 60.0,
            alarm_std_secs: 30.0,
            unaware_share: 0.3,
            speeds_m_per_s: [0.8, 0.5, 0.4],
            assisted_factor: 1.8,
            carried_speed_m_per_s: 0.5,
            walks_alone: [true, false, false],
            adults_lead_children: true,
            vulnerability: [1.0, 1.5, 1.8],
            tenable_health: [40.0, 60.0, 50.0],
            weights: [1.0, 3.0, 2.0],
            fire_harm_per_s: 2.0,
            smoke_harm_per_s: 0.6,
            smoke_noticed: 0.2,
            flow_per_m_s: 1.3,
        }
    }
}

impl Default for CrewConfig {
    fn default() -> Self {
        Self { fire_harm_per_s: 0.3, smoke_harm_per_s: 0.06, capacity: 2, wait_secs: 5.0 }
    }
}

impl Default for RewardConfig {
    fn default() -> Self {
        Self { time: 1.0, rescue: 1.0, death: 2.0, potential: 1.0 }
    }
}

impl RulesConfig {
    /// The rules of the earlier system, for comparison with its figures: an edge takes one tick of 5 s, every room is
    /// swept once, success is the sweep alone, fire and smoke are observed but block no path, decisions are single
    /// moves.
    ///
    /// Its defects are not reproduced: no state is carried into the next episode, an episode does not end when all
    /// responders search, and rescued means outside.
    pub fn legacy() -> Self {
        let default = Self::default();
        Self {
            timing: Timing::hops(),
            sweeps: Sweeps::Once,
            goal: Goal::Sweep,
            actions: Actions::Primitive,
            hazards: HazardConfig {
                period_secs: 25.0,
                spread_chance: 0.15,
                impassable: 2.0,
                smoke: Smoke::Neighbors,
                smoke_slowdown: 0.0,
                ..default.hazards.clone()
            },
            occupants: OccupantConfig {
                alarm_mean_secs: 25.0,
                alarm_std_secs: 10.0,
                unaware_share: 0.0,
                fire_harm_per_s: 0.2,
                smoke_harm_per_s: 0.06,
                ..default.occupants.clone()
            },
            crew: CrewConfig { fire_harm_per_s: 0.1, smoke_harm_per_s: 0.04, ..default.crew.clone() },
            timeout_secs: 2500.0,
            ..default
        }
    }

    /// Checks every setting.
    ///
    /// # Errors
    /// [`EvacuationError::Field`] naming the field, its rule and the value.
    pub fn validate(&self) -> Result<(), EvacuationError> {
        let [fewest, most] = self.responders;
        let value = format!("{fewest} and {most}");
        field::rule(
            1 <= fewest && fewest <= most && most <= MAX_RESPONDERS,
            "responders",
            "must be two ordered numbers from 1 to 8",
            value,
        )?;
        self.timing.validate()?;
        let (hazards, occupants, crew, knowledge) = (&self.hazards, &self.occupants, &self.crew, &self.knowledge);
        for (field, value) in [
            ("timeout_secs", self.timeout_secs),
            ("hazards.period_secs", hazards.period_secs),
            ("hazards.min_speed_m_per_s", hazards.min_speed_m_per_s),
            ("occupants.assisted_factor", occupants.assisted_factor),
            ("occupants.carried_speed_m_per_s", occupants.carried_speed_m_per_s),
            ("occupants.flow_per_m_s", occupants.flow_per_m_s),
            ("crew.wait_secs", crew.wait_secs),
        ] {
            field::rule(value > 0.0 && value.is_finite(), field, "must be positive", value)?;
        }
        for (field, value) in [
            ("knowledge.loss", knowledge.loss),
            ("hazards.spread_chance", hazards.spread_chance),
            ("hazards.fire_door_factor", hazards.fire_door_factor),
            ("hazards.ignition", hazards.ignition),
            ("hazards.growth", hazards.growth),
            ("hazards.door_leak", hazards.door_leak),
            ("hazards.fire_door_leak", hazards.fire_door_leak),
            ("hazards.exit_venting_per_s", hazards.exit_venting_per_s),
            ("hazards.smoke_slowdown", hazards.smoke_slowdown),
            ("occupants.unaware_share", occupants.unaware_share),
            ("occupants.smoke_noticed", occupants.smoke_noticed),
        ] {
            field::share(field, value)?;
        }
        let durations = [
            ("timeout_secs", self.timeout_secs),
            ("hazards.period_secs", hazards.period_secs),
            ("crew.wait_secs", crew.wait_secs),
            ("knowledge.delay_secs", knowledge.delay_secs),
            ("occupants.alarm_mean_secs", occupants.alarm_mean_secs),
            ("occupants.alarm_std_secs", occupants.alarm_std_secs),
        ];
        let factors = [
            ("hazards.smoke_m2_per_s", hazards.smoke_m2_per_s),
            ("hazards.exchange_m_per_s", hazards.exchange_m_per_s),
            ("hazards.impassable", hazards.impassable),
            ("occupants.assisted_factor", occupants.assisted_factor),
            ("occupants.carried_speed_m_per_s", occupants.carried_speed_m_per_s),
            ("occupants.flow_per_m_s", occupants.flow_per_m_s),
            ("occupants.fire_harm_per_s", occupants.fire_harm_per_s),
            ("occupants.smoke_harm_per_s", occupants.smoke_harm_per_s),
            ("crew.fire_harm_per_s", crew.fire_harm_per_s),
            ("crew.smoke_harm_per_s", crew.smoke_harm_per_s),
            ("reward.time", self.reward.time),
            ("reward.rescue", self.reward.rescue),
            ("reward.death", self.reward.death),
            ("reward.potential", self.reward.potential),
        ];
        let radius = [("knowledge.radius_m", knowledge.radius_m.unwrap_or(0.0))];
        for (field, value) in durations.into_iter().chain(factors).chain(radius) {
            field::rule(value >= 0.0 && value.is_finite(), field, "must not be negative", value)?;
        }
        let tick_secs = self.timing.tick_secs;
        for (field, secs) in durations {
            let value = format!("{secs:e} s, which are {:.3e} ticks", secs / tick_secs);
            let rule = format!("must be at most {MAX_TICKS} ticks of `timing.tick_secs`, {tick_secs:e} s");
            field::rule(secs / tick_secs <= f64::from(MAX_TICKS), field, rule, value)?;
        }
        for (field, value) in factors {
            field::rule(value <= MAX_WEIGHT, field, format!("must be at most {MAX_WEIGHT}"), format!("{value:e}"))?;
        }
        for (field, values) in [
            ("occupants.speeds_m_per_s", &occupants.speeds_m_per_s),
            ("occupants.vulnerability", &occupants.vulnerability),
            ("occupants.weights", &occupants.weights),
        ] {
            let rule = format!("must be positive and at most {MAX_WEIGHT}");
            field::rule(
                values.iter().all(|value| *value > 0.0 && *value <= MAX_WEIGHT),
                field,
                rule,
                format!("{values:?}"),
            )?;
        }
        let value = format!("{:?}", occupants.tenable_health);
        field::rule(
            occupants.tenable_health.iter().all(|value| (0.0..100.0).contains(value)),
            "occupants.tenable_health",
            "must be in [0, 100)",
            value,
        )?;
        let rule = format!("must be from 1 to {MAX_ESCORTED}");
        field::rule((1..=MAX_ESCORTED).contains(&crew.capacity), "crew.capacity", rule, crew.capacity)?;
        Ok(())
    }

    /// Whole ticks in `secs`, at least 1.
    pub(crate) fn ticks(&self, secs: f64) -> u32 {
        (secs / self.timing.tick_secs - 1e-9).ceil().max(1.0) as u32
    }

    /// Summed weight of people of each mobility.
    pub(crate) fn weight(&self, mobility: Mobility) -> f64 {
        self.occupants.weights[mobility.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid_and_errors_name_the_field() {
        RulesConfig::default().validate().expect("the default is valid");
        RulesConfig::legacy().validate().expect("the preset is valid");
        let rules = RulesConfig { responders: [0, 2], ..RulesConfig::default() };
        let error = rules.validate().expect_err("nobody is no team").to_string();
        assert_eq!(error, "`responders` must be two ordered numbers from 1 to 8, got 0 and 2");
        let hazards = HazardConfig { spread_chance: 1.5, ..HazardConfig::default() };
        let error = RulesConfig { hazards, ..RulesConfig::default() }.validate().expect_err("no chance").to_string();
        assert_eq!(error, "`hazards.spread_chance` must be in [0, 1], got 1.5");
    }
}
