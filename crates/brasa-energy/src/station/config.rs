//! Settings of a charging station.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use crate::actions::SocketActions;
use crate::solar::{Clouds, Modules, Place, season};
use crate::storage::Storage;

/// Settings of a charging station.
///
/// [`StationConfig::default`] is a hub at a shopping center with AC and DC sockets, PV and a battery.
/// [`StationConfig::chargax`] has the layout, the price to drivers and the number of cars that Chargax starts with.
///
/// ```
/// use brasa_energy::station::StationConfig;
///
/// let config = StationConfig { step_minutes: 15, v2g: true, ..StationConfig::default() };
/// config.validate()?;
/// assert_eq!((config.steps_per_day(), config.n_steps(), config.step_hours()), (96, 96, 0.25));
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StationConfig {
    /// Length of a step, in minutes; default 5, must divide 60. A car's power depends on its state of charge at the
    /// start of a step, so long steps charge slightly too fast above the taper.
    pub step_minutes: u32,
    /// Steps of an episode; default one day. After December 31 comes January 1.
    pub episode_steps: Option<u32>,
    /// Day on which episodes start at midnight, from 0; default a random day per episode. Days are those of 2024 without
    /// February 29, a Monday first; with files, those that all of them cover.
    pub first_day: Option<u32>,
    /// Keeps every `n`-th day of the files from training, at least the second: episodes of training lie between these days, and
    /// episodes of evaluations start at each of them in turn. Needs files and `episode_steps` of at most `n - 1` days for
    /// training and one day for evaluations. Default: training and evaluation use all days.
    pub held_out_days: Option<u32>,
    /// `held_out_days` by weeks: every `n`-th week of seven days from the first one. At most one of both, without `first_day`.
    pub held_out_weeks: Option<u32>,
    /// Local standard time minus UTC, in hours; default 1. There is no daylight saving time. It places the sun and converts the times of files.
    pub utc_offset_hours: f64,
    /// The actions; default real numbers.
    pub actions: ActionMode,
    /// The power that the real action of a socket asks for; default linear. With `hold-back` zero actions charge as fast as
    /// possible, as without control. Not for levels.
    pub socket_actions: SocketActions,
    /// Levels of a discrete action between 0 and full power; default 10. A socket has one action more for 0, and as
    /// many again with `v2g`; the battery always has both directions.
    pub levels: u32,
    /// Hours whose prices are observed, the present one included; default 6.
    pub lookahead_hours: u32,
    /// Treatment of orders above the limits of nodes; default they are curtailed.
    pub limits: LimitMode,
    /// Whether cars can be discharged; default false. They are never discharged below their energy at arrival.
    pub v2g: bool,
    /// The tree of splitters. The first is the grid connection; every other names a parent before it.
    pub nodes: Vec<NodeConfig>,
    /// Groups of equal sockets, the leaves of the tree.
    pub sockets: Vec<SocketConfig>,
    /// The stationary battery.
    pub battery: BatteryConfig,
    /// The PV field.
    pub pv: PvConfig,
    /// Models of cars with their shares.
    pub cars: Vec<CarModel>,
    /// Arrivals of cars.
    pub arrivals: ArrivalConfig,
    /// Prices.
    pub prices: PriceConfig,
    /// The reward.
    pub reward: RewardConfig,
    /// Whether reports have the baselines `perfect-foresight`, a schedule for cars, prices and PV that are known in advance, and
    /// `bound`, the return that no controller exceeds. Default false, because each episode takes some seconds. Needs the crate's
    /// feature `optimum`.
    pub optimum: bool,
}

/// Layout of an action.
///
/// ```
/// use brasa_energy::station::{ActionMode, StationConfig};
///
/// let config: StationConfig = serde_json::from_str(r#"{ "actions": "discrete" }"#)?;
/// assert_eq!(config.actions, ActionMode::Discrete);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActionMode {
    /// Numbers in [-1, 1]: the battery, then every socket.
    #[default]
    Continuous,
    /// One choice of a level for the battery and for every socket.
    Discrete,
}

/// Treatment of orders above the limits of nodes.
///
/// ```
/// use brasa_energy::station::{LimitMode, StationConfig};
///
/// let config: StationConfig = serde_json::from_str(r#"{ "limits": "penalize" }"#)?;
/// assert_eq!(config.limits, LimitMode::Penalize);
/// assert_eq!(StationConfig::default().limits, LimitMode::Curtail);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitMode {
    /// Orders are reduced in proportion until every limit is kept; the excess of the orders is reported.
    #[default]
    Curtail,
    /// Orders are executed; the power above the limits is reported, and the reward may weigh it.
    Penalize,
}

/// A splitter: grid connection, transformer, switchboard or cable.
///
/// ```
/// use brasa_energy::station::{NodeConfig, StationConfig};
///
/// let mut config = StationConfig::default();
/// let grid = config.nodes[0].name.clone();
/// // A switchboard of 50 kW below the grid connection.
/// config.nodes.push(NodeConfig::new("roof", Some(&grid), 50.0, 0.99));
/// config.pv.parent = Some("roof".into());
/// config.validate()?;
/// config.nodes.push(NodeConfig::new("shed", Some("nowhere"), 50.0, 0.99));
/// assert!(config.validate().is_err());
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// Its name.
    pub name: String,
    /// The name of the node that feeds it; only the first node has none.
    #[serde(default)]
    pub parent: Option<String>,
    /// Largest power in either direction at the side of the parent, in kW; without any limit it never binds.
    #[serde(default)]
    pub limit_kw: Option<f64>,
    /// The limit as a current per phase, in A, instead of `limit_kw`; needs `voltage_v`.
    #[serde(default)]
    pub limit_a: Option<f64>,
    /// Voltage between a phase and neutral, in V, for `limit_a`.
    #[serde(default)]
    pub voltage_v: Option<f64>,
    /// Phases, 1 or 3, for `limit_a`; default 1.
    #[serde(default = "one_phase")]
    pub phases: u32,
    /// Energy at its far side per energy at the near side, in either direction; default 1.
    #[serde(default = "lossless")]
    pub efficiency: f64,
}

/// A group of equal sockets.
///
/// ```
/// use brasa_energy::station::{SocketConfig, SocketKind};
///
/// let sockets: SocketConfig = serde_json::from_str(
///     r#"{ "name": "ac", "parent": "grid", "count": 8, "kind": "ac",
///          "voltage_v": 230.0, "current_a": 16.0, "phases": 3 }"#,
/// )?;
/// assert_eq!((sockets.kind, sockets.socket_kw()), (SocketKind::Ac, 11.04));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SocketConfig {
    /// Its name; the sockets are called `name_0`, `name_1` and so on.
    pub name: String,
    /// The name of the node that feeds it.
    pub parent: String,
    /// Sockets of the group.
    pub count: u32,
    /// Current of the sockets, which selects the largest power of a car.
    pub kind: SocketKind,
    /// Voltage of a phase, in V.
    pub voltage_v: f64,
    /// Largest current of a phase, in A.
    pub current_a: f64,
    /// Phases; default 1, and 3 for three-phase current. The power of a socket is phases x voltage x current.
    #[serde(default = "one_phase")]
    pub phases: u32,
    /// Energy at the car per energy from the node, in either direction; default 1.
    #[serde(default = "lossless")]
    pub efficiency: f64,
    /// Largest power that the sockets share, in kW at the side of the node; without it they share none.
    #[serde(default)]
    pub limit_kw: Option<f64>,
}

/// Current of a socket.
///
/// ```
/// use brasa_energy::station::{SocketKind, StationConfig};
///
/// // Sockets of both kinds.
/// let config = StationConfig::default();
/// let of_kind = |kind| config.sockets.iter().filter(move |group| group.kind == kind);
/// let n_sockets = |kind| of_kind(kind).map(|group| group.count).sum::<u32>();
/// assert_eq!((n_sockets(SocketKind::Ac) + n_sockets(SocketKind::Dc)) as usize, config.n_sockets());
/// assert!(n_sockets(SocketKind::Dc) > 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SocketKind {
    /// Alternating current: the car's own charger limits the power.
    Ac,
    /// Direct current: the car's battery limits the power.
    Dc,
}

/// The stationary battery.
///
/// ```
/// use brasa_energy::station::{BatteryConfig, StationConfig};
///
/// let config = |battery| StationConfig { battery, ..StationConfig::default() };
/// config(BatteryConfig { capacity_kwh: 0.0, ..BatteryConfig::default() }).validate()?;
/// let error = config(BatteryConfig { soc_min: 1.5, ..BatteryConfig::default() }).validate().unwrap_err();
/// assert!(error.to_string().starts_with("`battery.soc_min`"), "{error}");
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BatteryConfig {
    /// The name of the node that it is connected to; default the first.
    pub parent: Option<String>,
    /// Capacity, in kWh; default 400, an assumption. 0 is a station without a battery.
    pub capacity_kwh: f64,
    /// Largest power in either direction at the node, in kW; default 200, an assumption.
    pub power_kw: f64,
    /// Stored energy per charged energy; default 0.95, an assumption.
    pub charge_efficiency: f64,
    /// Discharged energy per stored energy; default 0.95, an assumption.
    pub discharge_efficiency: f64,
    /// Smallest state of charge; default 0.
    pub soc_min: f64,
    /// Largest state of charge; default 1.
    pub soc_max: f64,
    /// State of charge at the start of an episode; default 0.5.
    pub soc_start: f64,
    /// Fraction of the stored energy lost per day; default 0.
    pub standing_loss_per_day: f64,
}

/// The PV field.
///
/// ```
/// use brasa_energy::station::{PvConfig, StationConfig};
///
/// let config = |pv| StationConfig { pv, ..StationConfig::default() };
/// config(PvConfig { peak_kw: 50.0, ..PvConfig::default() }).validate()?;
/// let error = config(PvConfig { latitude_deg: 100.0, ..PvConfig::default() }).validate().unwrap_err();
/// assert!(error.to_string().starts_with("`pv.latitude_deg`"), "{error}");
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PvConfig {
    /// The name of the node that it is connected to; default the first.
    pub parent: Option<String>,
    /// A CSV file with PV power instead of sun and clouds: columns `time [UTC+01:00]` and `pv [kW]` (or W).
    pub file: Option<PathBuf>,
    /// Rated power of the modules, in kW; default 200, an assumption. 0 is a station without PV. It scales the observation of PV from a file as well.
    pub peak_kw: f64,
    /// Limit of the inverters, in kW; default that of the modules.
    pub inverter_kw: Option<f64>,
    /// Latitude, in degrees, positive in the north; default 52.1 (Utrecht).
    pub latitude_deg: f64,
    /// Longitude, in degrees, positive in the east; default 5.1 (Utrecht).
    pub longitude_deg: f64,
    /// Tilt of the modules from horizontal, in degrees; default 10, a flat roof or a carport.
    pub tilt_deg: f64,
    /// Direction the modules face, clockwise from north, in degrees; default towards the equator: 180 in the north, 0 in the south.
    pub azimuth_deg: Option<f64>,
    /// Losses except those by temperature, as a fraction; default 0.14 (PVWatts).
    pub losses: f64,
    /// Loss of power per degree above 25 Celsius, as a fraction; default 0.004 (crystalline silicon).
    pub temperature_coefficient: f64,
    /// Nominal operating cell temperature, in Celsius; default 45 (crystalline silicon).
    pub noct_c: f64,
    /// Yearly mean temperature of the air, in Celsius; default 10.5 (the Netherlands).
    pub air_c: f64,
    /// Temperature of mid-July minus the yearly mean, in degrees; default 7.5 (the Netherlands) north of the tropics, -7.5 south of them,
    /// and within them proportional to the latitude.
    pub july_swing_c: Option<f64>,
    /// Median of the sky's transmission relative to a clear sky in winter; default 0.45. Winter is October to March in the north and April to
    /// September in the south; within the tropics both seasons approach their mean at the equator. It and the next are
    /// chosen so that a year gives 800 to 1000 kWh per kW at the default place, as roofs in the Netherlands do.
    pub winter_transmission: f64,
    /// The same in summer, the other half of the year; default 0.62.
    pub summer_transmission: f64,
    /// Correlation of the clouds of consecutive hours; default 0.8, an assumption.
    pub cloud_correlation: f64,
    /// Standard deviation of the logit of the transmission; default 0.8, an assumption.
    pub cloud_deviation: f64,
}

/// A model of cars.
///
/// ```
/// use brasa_energy::station::{CarModel, StationConfig};
///
/// let car: CarModel = serde_json::from_str(
///     r#"{ "name": "small", "share": 1.0, "battery_kwh": 40.0, "ac_kw": 7.4, "dc_kw": 50.0 }"#,
/// )?;
/// assert_eq!((car.taper_soc, car.taper_end), (0.8, 0.05));
/// let config = StationConfig { cars: vec![car], ..StationConfig::default() };
/// assert!(config.validate().is_ok());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CarModel {
    /// Its name.
    pub name: String,
    /// Share of the arrivals, relative to the sum of all shares.
    pub share: f64,
    /// Usable capacity of the battery, in kWh.
    pub battery_kwh: f64,
    /// Largest power at AC sockets, in kW.
    pub ac_kw: f64,
    /// Largest power at DC sockets, in kW.
    pub dc_kw: f64,
    /// State of charge from which the largest power falls linearly; default 0.8. 1 for no taper.
    #[serde(default = "taper_soc")]
    pub taper_soc: f64,
    /// Part of the largest power that is left at a state of charge of 1; default 0.05. At 0 a car is never full.
    #[serde(default = "taper_end")]
    pub taper_end: f64,
}

/// Kind of a place, which selects when cars arrive, how long they stay, and what binds their drivers.
///
/// ```
/// use brasa_energy::station::{PlaceKind, StationConfig};
///
/// let config: StationConfig = serde_json::from_str(r#"{ "arrivals": { "place": "highway" } }"#)?;
/// assert_eq!(config.arrivals.place, PlaceKind::Highway);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceKind {
    /// A highway: cars all day, half an hour, most drivers wait for their energy.
    Highway,
    /// Homes: cars in the evening, overnight.
    Residential,
    /// Offices: cars in the morning of workdays, a workday long.
    Workplace,
    /// Shops: cars around noon and in the late afternoon, an hour and a half; more on Saturdays.
    #[default]
    Shopping,
}

/// Arrivals of cars. What is left out is that of the place; `docs/reference/station.md` has the numbers.
///
/// ```
/// use brasa_energy::station::{ArrivalConfig, StationConfig};
///
/// let config = |arrivals| StationConfig { arrivals, ..StationConfig::default() };
/// config(ArrivalConfig { cars_per_day: 40.0, ..ArrivalConfig::default() }).validate()?;
/// let error = config(ArrivalConfig { cars_per_day: -1.0, ..ArrivalConfig::default() }).validate().unwrap_err();
/// assert!(error.to_string().starts_with("`arrivals.cars_per_day`"), "{error}");
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ArrivalConfig {
    /// A CSV file with sessions instead of random cars: columns `arrival [UTC+01:00]`, `departure [UTC+01:00]`, `energy [kWh]`, `socket`
    /// (`ac`, `dc` or `any`) and, if known, `power [kW]`. There must be no other settings of arrivals then, and `cars` is unused. A
    /// session's battery is unknown: its state of charge is the share of the energy that is delivered.
    pub file: Option<PathBuf>,
    /// Kind of the place; default shopping.
    pub place: PlaceKind,
    /// Mean number of cars on a workday; default 120. Cars without a free socket leave and are counted.
    pub cars_per_day: f64,
    /// Arrivals on a day of the weekend relative to a workday.
    pub weekend_factor: Option<f64>,
    /// Relative arrivals per hour of a workday, 24 numbers.
    pub workday_hours: Option<Vec<f64>>,
    /// Relative arrivals per hour of a day of the weekend, 24 numbers.
    pub weekend_hours: Option<Vec<f64>>,
    /// Median of the planned stay, in hours. Stays are lognormal, at least one step and at most 48 hours.
    pub stay_median_hours: Option<f64>,
    /// Standard deviation of the logarithm of the stay.
    pub stay_spread: Option<f64>,
    /// First parameter of the Beta distribution of the state of charge at arrival.
    pub arrival_soc_alpha: Option<f64>,
    /// Second parameter.
    pub arrival_soc_beta: Option<f64>,
    /// Smallest target state of charge; targets are uniform. Default 0.8, as in Chargax.
    pub target_soc_low: f64,
    /// Largest target state of charge; default 0.95, as in Chargax.
    pub target_soc_high: f64,
    /// Share of the drivers that are bound by energy: they leave as soon as their target is reached, and wait for it
    /// beyond their planned stay. The others leave at the end of their stay.
    pub energy_bound_share: Option<f64>,
    /// Time after which drivers that wait for their energy leave without it, in hours; default 2, an assumption.
    pub patience_hours: f64,
}

/// Prices, in one currency per kWh.
///
/// ```
/// use brasa_energy::station::{PriceConfig, StationConfig};
///
/// let config = |prices| StationConfig { prices, ..StationConfig::default() };
/// config(PriceConfig { sell_per_kwh: 0.6, ..PriceConfig::default() }).validate()?;
/// let error = config(PriceConfig { carbon_kg_per_kwh: -1.0, ..PriceConfig::default() }).validate().unwrap_err();
/// assert!(error.to_string().starts_with("`prices.carbon_kg_per_kwh`"), "{error}");
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PriceConfig {
    /// Currency, for reports; default `EUR`.
    pub currency: String,
    /// Price of imported energy per hour: 24 values for every day, or 8760 for the year. Default a closed form with
    /// two peaks on workdays, a dip around noon and dearer winters.
    pub buy_per_kwh: Option<Vec<f64>>,
    /// A CSV file with prices instead: columns `time [UTC+01:00]` and `price [EUR/kWh]` (or per MWh), in `currency`.
    pub file: Option<PathBuf>,
    /// Price of imported energy minus that of exported energy; default 0.03, as in Chargax.
    pub export_discount_per_kwh: f64,
    /// Largest export, in kW; default the limit of the grid connection.
    pub export_limit_kw: Option<f64>,
    /// Emissions of an imported kWh, in kg of CO2; default 0.27, an assumption of the magnitude of Dutch generation.
    pub carbon_kg_per_kwh: f64,
    /// Price that drivers pay per kWh in their battery; default 0.45, an assumption of public charging in Europe.
    /// Discharged energy is paid back at the same price.
    pub sell_per_kwh: f64,
}

/// Weights of the reward: profit minus weighted penalties, in the currency of the prices.
///
/// ```text
/// reward = profit - unmet * (unmet kWh of departing cars) - excess * (kWh above limits)
///          - degradation * (kWh discharged from cars and battery) - turned_away * (cars without a socket)
///          - overtime * (hours that departing cars waited beyond their stay) + stored * (change of stored kWh)
///          - carbon * (kg of CO2) - peak * (kW that the episode's peak rises) - ramp * (kW of change of the power from the grid)
///          - curtailed * (kWh of curtailed PV)
/// profit = sell price * (kWh into cars - kWh out of cars) - buy price * import + export price * export
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RewardConfig {
    /// What a step of training returns; default the sum above. Evaluations always return that.
    pub kind: RewardKind,
    /// Whether a step of training is credited at once with the energy that cars get, instead of with what they miss at their
    /// departure: `unmet_per_kwh` times the fall of the energy that connected cars still want, up to what arriving cars bring,
    /// which no action changes. This is a potential (Ng, Harada, Russell 1999), so the best policy of a long episode is the
    /// same. Default false; evaluations never have it.
    pub shaped: bool,
    /// Per kWh that a departing car lacks; default 0.2. At 0 unmet energy still costs its profit.
    pub unmet_per_kwh: f64,
    /// Per kWh of orders above the limits of nodes; default 0, because they are curtailed.
    pub excess_per_kwh: f64,
    /// Per kWh discharged from cars and the battery; default 0.03, an estimate for lithium batteries.
    pub degradation_per_kwh: f64,
    /// Per car without a free socket; default 0: it costs its profit.
    pub turned_away: f64,
    /// Per hour that a departing car has waited beyond its stay; default 0.
    pub overtime_per_hour: f64,
    /// Per kg of CO2 of imported energy; default 0.
    pub carbon_per_kg: f64,
    /// Per kW that the largest import of the episode rises; default 0. The sum over an episode is that of its peak.
    pub peak_per_kw: f64,
    /// Per kW that the power from the grid changes between steps; default 0.
    pub ramp_per_kw: f64,
    /// Per kWh of curtailed PV; default 0.
    pub curtailed_per_kwh: f64,
    /// Value of a kWh stored in the stationary battery; default 0.1, about the mean price, so that an episode's end does
    /// not reward an empty battery. The sum over an episode is the value of the change.
    pub stored_per_kwh: f64,
}

/// What a step of training returns.
///
/// ```
/// use brasa_energy::station::{RewardKind, StationConfig};
///
/// let config: StationConfig = serde_json::from_str(r#"{ "reward": { "kind": "improvement" } }"#)?;
/// assert_eq!(config.reward.kind, RewardKind::Improvement);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RewardKind {
    /// Profit minus weighted penalties.
    #[default]
    Profit,
    /// The same minus its mean for a station without control at this time of a workday or a day of the weekend, with the
    /// price and the PV of the step. The difference does not depend on actions, so the best policy is the same.
    Improvement,
}

fn one_phase() -> u32 {
    1
}

fn lossless() -> f64 {
    1.0
}

pub(super) fn taper_soc() -> f64 {
    0.8
}

pub(super) fn taper_end() -> f64 {
    0.05
}

impl NodeConfig {
    /// A node with a limit in kW.
    pub fn new(name: &str, parent: Option<&str>, limit_kw: f64, efficiency: f64) -> Self {
        Self {
            name: name.to_owned(),
            parent: parent.map(str::to_owned),
            limit_kw: Some(limit_kw),
            limit_a: None,
            voltage_v: None,
            phases: 1,
            efficiency,
        }
    }

    /// The limit, in kW; infinite without one.
    pub(crate) fn power_kw(&self) -> f64 {
        match (self.limit_kw, self.limit_a, self.voltage_v) {
            (Some(kw), ..) => kw,
            (None, Some(ampere), Some(volt)) => f64::from(self.phases) * ampere * volt / 1000.0,
            _ => f64::INFINITY,
        }
    }
}

impl SocketConfig {
    /// Largest power of a socket at the car, in kW.
    pub fn socket_kw(&self) -> f64 {
        f64::from(self.phases) * self.voltage_v * self.current_a / 1000.0
    }
}

impl BatteryConfig {
    /// The constants of the battery.
    pub(crate) fn storage(&self) -> Storage {
        let efficiencies = (self.charge_efficiency, self.discharge_efficiency);
        Storage::new(self.capacity_kwh, self.power_kw, efficiencies, (self.soc_min, self.soc_max))
    }
}

impl PvConfig {
    /// Mean daily amplitude of the temperature of the air, in degrees.
    const DAY_SWING_C: f64 = 4.0;

    pub(crate) fn place(&self, utc_offset_hours: f64) -> Place {
        Place {
            latitude_deg: self.latitude_deg,
            longitude_deg: self.longitude_deg,
            utc_offset_hours,
            air_c: self.air_c,
            day_swing_c: Self::DAY_SWING_C,
            july_swing_c: self.july_swing_c.unwrap_or(7.5 * season(self.latitude_deg)),
        }
    }

    pub(crate) fn modules(&self) -> Modules {
        Modules {
            peak_kw: self.peak_kw,
            scale: 1.0,
            inverter_kw: self.inverter_kw.unwrap_or(self.peak_kw),
            tilt_deg: self.tilt_deg,
            azimuth_deg: self.azimuth_deg.unwrap_or(if self.latitude_deg < 0.0 { 0.0 } else { 180.0 }),
            losses: self.losses,
            temperature_coefficient: self.temperature_coefficient,
            noct_c: self.noct_c,
        }
    }

    pub(crate) fn clouds(&self, step_hours: f64) -> Clouds {
        let (winter, summer) = (self.winter_transmission, self.summer_transmission);
        let transmissions = std::array::from_fn(|month| {
            let season = season(self.latitude_deg) * if (3..9).contains(&month) { 1.0 } else { -1.0 };
            summer * (0.5 + 0.5 * season) + winter * (0.5 - 0.5 * season)
        });
        Clouds::new(transmissions, self.cloud_correlation, self.cloud_deviation, step_hours)
    }
}

impl Default for BatteryConfig {
    fn default() -> Self {
        Self {
            parent: None,
            capacity_kwh: 400.0,
            power_kw: 200.0,
            charge_efficiency: 0.95,
            discharge_efficiency: 0.95,
            soc_min: 0.0,
            soc_max: 1.0,
            soc_start: 0.5,
            standing_loss_per_day: 0.0,
        }
    }
}

impl Default for PvConfig {
    fn default() -> Self {
        Self {
            parent: None,
            file: None,
            peak_kw: 200.0,
            inverter_kw: None,
            latitude_deg: 52.1,
            longitude_deg: 5.1,
            tilt_deg: 10.0,
            azimuth_deg: None,
            losses: 0.14,
            temperature_coefficient: 0.004,
            noct_c: 45.0,
            air_c: 10.5,
            july_swing_c: None,
            winter_transmission: 0.45,
            summer_transmission: 0.62,
            cloud_correlation: 0.8,
            cloud_deviation: 0.8,
        }
    }
}

impl Default for ArrivalConfig {
    fn default() -> Self {
        Self {
            file: None,
            place: PlaceKind::Shopping,
            cars_per_day: 120.0,
            weekend_factor: None,
            workday_hours: None,
            weekend_hours: None,
            stay_median_hours: None,
            stay_spread: None,
            arrival_soc_alpha: None,
            arrival_soc_beta: None,
            target_soc_low: 0.8,
            target_soc_high: 0.95,
            energy_bound_share: None,
            patience_hours: 2.0,
        }
    }
}

impl Default for PriceConfig {
    fn default() -> Self {
        Self {
            currency: "EUR".into(),
            buy_per_kwh: None,
            file: None,
            export_discount_per_kwh: 0.03,
            export_limit_kw: None,
            carbon_kg_per_kwh: 0.27,
            sell_per_kwh: 0.45,
        }
    }
}

impl Default for RewardConfig {
    fn default() -> Self {
        Self {
            kind: RewardKind::Profit,
            shaped: false,
            unmet_per_kwh: 0.2,
            excess_per_kwh: 0.0,
            degradation_per_kwh: 0.03,
            turned_away: 0.0,
            overtime_per_hour: 0.0,
            carbon_per_kg: 0.0,
            peak_per_kw: 0.0,
            ramp_per_kw: 0.0,
            curtailed_per_kwh: 0.0,
            stored_per_kwh: 0.1,
        }
    }
}

impl StationConfig {
    /// Length of a step, in hours.
    pub fn step_hours(&self) -> f64 {
        f64::from(self.step_minutes) / 60.0
    }

    /// Local standard time minus UTC, in minutes.
    pub(crate) fn utc_offset_minutes(&self) -> i64 {
        (self.utc_offset_hours * 60.0).round() as i64
    }

    /// Steps of a day.
    pub fn steps_per_day(&self) -> u32 {
        24 * (60 / self.step_minutes.clamp(1, 60))
    }

    /// Steps of an episode.
    pub fn n_steps(&self) -> u32 {
        self.episode_steps.unwrap_or(self.steps_per_day())
    }

    /// Sockets of all groups.
    pub fn n_sockets(&self) -> usize {
        self.sockets.iter().map(|group| group.count as usize).sum()
    }

    /// Whether there is a stationary battery.
    pub fn has_battery(&self) -> bool {
        self.battery.capacity_kwh > 0.0
    }

    /// Whether there is PV.
    pub fn has_pv(&self) -> bool {
        self.pv.peak_kw > 0.0
    }
}
