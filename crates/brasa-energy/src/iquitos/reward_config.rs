//! Settings of the reward of the microgrid.

use serde::{Deserialize, Serialize};

/// Settings of the reward.
///
/// ```
/// use brasa_energy::iquitos::{IquitosConfig, RewardConfig};
///
/// let config = |reward| IquitosConfig { reward, ..IquitosConfig::default() };
/// config(RewardConfig { peak: 0.1, ..RewardConfig::default() }).validate()?;
/// let error = config(RewardConfig { carbon: -1.0, ..RewardConfig::default() }).validate().unwrap_err();
/// assert!(error.to_string().starts_with("`reward.carbon`"));
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RewardConfig {
    /// The formula; default [`RewardKind::Normalised`].
    pub kind: RewardKind,
    /// Weight of carbon; default 0.50 (original weights, as are the next four).
    pub carbon: f64,
    /// Weight of cost; default 0.15.
    pub cost: f64,
    /// Weight of solar energy; default 0.20.
    pub solar: f64,
    /// Weight of the vehicles' unmet energy; default 0.10. Near 0 the optimal policy charges no vehicles.
    pub vehicles: f64,
    /// Weight of the excess import; default 0.05.
    pub grid: f64,
    /// Weight of rises of each month's peak import, over their mean in the uncontrolled year; default 0, because the demand
    /// charge is a cost. This weight and the next two are not for `seed`.
    pub peak: f64,
    /// Weight of the change of the power from the grid between steps, over its mean in the uncontrolled year; default 0.
    pub ramp: f64,
    /// Weight of the battery's charge and discharge, over that of a step at full power; default 0.
    pub wear: f64,
    /// Weight of orders to the sockets beyond the limit of the feeder, over that limit; default 0, because they are reduced. Not for `seed`.
    pub feeder: f64,
    /// Whether a step of training is credited at once with what pays later: the change of the stored energy, at the worth of
    /// the import that it saves by the cheaper tariff, and the energy delivered to vehicles, instead of the energy missed at
    /// their departure. Default false. These are potentials (Ng, Harada, Russell 1999) up to what no action changes, so the
    /// best policy of a long episode is the same; evaluations never have them. Without them, a battery that is emptied at
    /// once is the best of the first steps of an episode. Not with the formula `seed`.
    pub shaped: bool,
}

impl RewardConfig {
    /// The weights with their names; those behind the first five are not for `seed`.
    pub(super) fn weights(&self) -> [(&'static str, f64); 9] {
        [
            ("carbon", self.carbon),
            ("cost", self.cost),
            ("solar", self.solar),
            ("vehicles", self.vehicles),
            ("grid", self.grid),
            ("peak", self.peak),
            ("ramp", self.ramp),
            ("wear", self.wear),
            ("feeder", self.feeder),
        ]
    }
}

/// The formula of the reward.
///
/// ```
/// use brasa_energy::iquitos::{IquitosConfig, RewardKind};
///
/// let config: IquitosConfig = serde_json::from_str(r#"{ "reward": { "kind": "improvement" } }"#)?;
/// assert_eq!(config.reward.kind, RewardKind::Improvement);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RewardKind {
    /// Five costs, each divided by its value in the uncontrolled year, so that weights are comparable:
    ///
    /// ```text
    /// reward = -w_carbon   kg of CO2 / mean kg of the reference
    ///          -w_cost     cost / mean cost of the reference, without its revenue of exports
    ///          -w_solar    curtailed PV / mean PV
    ///          -w_vehicles unmet energy of departing vehicles / mean energy wanted
    ///          -w_grid     import beyond the soft limit / soft limit
    /// ```
    #[default]
    Normalised,
    /// [`RewardKind::Normalised`] minus its value for the same step without control: no battery, and the mean energy of
    /// uncontrolled vehicles. Above 0 is better than that. The difference does not depend on actions, so the optimal policy is
    /// the same; the weather, and the demand charge at the start of a month, no longer dominate the variance.
    Improvement,
    /// The original formula, for comparison. Its thresholds of 130, 200 and 250 kWh fit a site of 150 kW, but the
    /// mall alone consumes 788 to 2101 kW, so most of its terms are always at their minimum. Its solar term
    /// grows with the import. Its vehicle term rewards the mean state of charge of the connected vehicles.
    Seed,
}

impl Default for RewardConfig {
    fn default() -> Self {
        Self {
            kind: RewardKind::Normalised,
            carbon: 0.50,
            cost: 0.15,
            solar: 0.20,
            vehicles: 0.10,
            grid: 0.05,
            peak: 0.0,
            ramp: 0.0,
            wear: 0.0,
            feeder: 0.0,
            shaped: false,
        }
    }
}
