//! Settings of the Iquitos microgrid, with two presets.

use std::path::PathBuf;

use brasa_power::{EnergyError, fail};
use serde::{Deserialize, Serialize};

use super::profiles;
pub use super::reward_config::{RewardConfig, RewardKind};
use super::solar::{Clouds, Modules, Place};
pub use crate::actions::SocketActions;
use crate::storage::Storage;

/// Settings of the microgrid.
///
/// [`IquitosConfig::default`] is the recommended task: physical PV under clouds, random vehicles, time-of-use
/// tariff with a demand charge. [`IquitosConfig::seed`] is the deterministic year of the original study, whose
/// yearly sums are known and tested.
///
/// ```
/// use brasa_energy::iquitos::IquitosConfig;
///
/// let week = Some(7 * 96);
/// let config = IquitosConfig { step_minutes: 15, episode_steps: week, random_start: true, ..Default::default() };
/// config.validate()?;
/// let error = IquitosConfig { step_minutes: 7, ..config }.validate().unwrap_err();
/// assert!(error.to_string().starts_with("`step_minutes` must divide 60"));
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IquitosConfig {
    /// Length of a step, in minutes; default 60, must divide 60. Shorter steps resolve vehicles better and take
    /// proportionally more time; hourly profiles are constant within an hour.
    pub step_minutes: u32,
    /// Steps of a training episode; default the whole year. A window below one day does not contain the
    /// daily cycle of the battery; whole years give few episodes. Evaluations run the whole year.
    pub episode_steps: Option<u32>,
    /// Whether an episode starts at midnight of a random day; default false: January 1. Needs
    /// `episode_steps`. Without it, short windows are always in January.
    pub random_start: bool,
    /// Keeps every `n`-th day of the files from training, at least the second: episodes of training lie between these days, and
    /// each of these days is an episode of the evaluation, with a demand charge of its own. Needs files and `episode_steps` of
    /// at most `n - 1` days. Default: training and evaluation use all days.
    pub held_out_days: Option<u32>,
    /// `held_out_days` by weeks: every `n`-th week of seven days from the first one. At most one of both.
    pub held_out_weeks: Option<u32>,
    /// The actions; default one number per socket and one for the battery.
    pub actions: ActionMode,
    /// The power that the action of a socket, or of a class of them, asks for; default linear.
    pub socket_actions: SocketActions,
    /// The observations of the sockets; default every socket.
    pub observations: ObservationMode,
    /// The photovoltaic field.
    pub pv: PvConfig,
    /// The battery.
    pub battery: BatteryConfig,
    /// The mall.
    pub mall: MallConfig,
    /// Sockets and vehicles.
    pub vehicles: VehicleConfig,
    /// Prices and emissions of the grid.
    pub grid: GridConfig,
    /// The reward.
    pub reward: RewardConfig,
    /// Whether reports have the baselines that solve linear programs: `receding-horizon`, which plans the next day in every
    /// step, `perfect-forecast` with files, `perfect-foresight` and `bound`. Default false, because they take about a minute per
    /// evaluated year by the hour, and more by shorter steps. Needs the crate's feature `optimum` and a reward other than `seed`.
    pub optimum: bool,
    /// One's own site from CSV files.
    pub files: FileConfig,
}

/// CSV files, each of which replaces a part of the simulated year. Their headers state units and offsets from UTC;
/// `docs/how-to/own-csv.md` has the columns. The calendar is the whole local days that all series cover, with their true weekdays.
///
/// ```
/// use brasa_energy::iquitos::{FileConfig, Iquitos, IquitosConfig};
///
/// let files = FileConfig { load: Some("mine/load.csv".into()), ..FileConfig::default() };
/// let config = IquitosConfig { files, ..IquitosConfig::default() };
/// config.validate()?;
/// // The file is read when the scenario is made.
/// let error = Iquitos::new(config).unwrap_err();
/// assert!(error.to_string().starts_with("cannot read mine/load.csv"));
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileConfig {
    /// Local standard time minus UTC, in hours; default -5. There is no daylight saving time.
    pub utc_offset_hours: f64,
    /// PV: columns `time [UTC-05:00]` and `pv [kW]` (or W), at most `pv.peak_kw`. Of `pv`, only `peak_kw` is used then.
    pub pv: Option<PathBuf>,
    /// Load without vehicles: columns `time [UTC-05:00]` and `load [kW]` (or W). `mall` is unused then.
    pub load: Option<PathBuf>,
    /// Prices of imported energy: columns `time [UTC-05:00]` and `price [PEN/kWh]` (or per MWh), in `grid.currency`, not
    /// negative. The tariffs of `grid` are unused then; its peak hours remain what `rule-based` and observations know.
    pub prices: Option<PathBuf>,
    /// Emissions of imported energy: columns `time [UTC-05:00]` and `carbon [kg/kWh]` (or g).
    pub carbon: Option<PathBuf>,
    /// Sessions of vehicles: columns `arrival [UTC-05:00]`, `departure [UTC-05:00]`, `energy [kWh]` (or Wh) at the socket and
    /// `class` (`moto` or `mototaxi`).
    pub vehicles: Option<PathBuf>,
    /// A forecast of `pv` with its columns, one value per time, for the baseline `receding-horizon`. Default: the day before.
    pub pv_forecast: Option<PathBuf>,
    /// A forecast of `load` with its columns, for the same. Default: the week before, in the first week the day before.
    pub load_forecast: Option<PathBuf>,
    /// Sockets of both classes: columns `class`, `sockets`, `power [kW]` of a socket and `battery [kWh]` of a vehicle. It
    /// replaces these numbers of `vehicles.moto` and `vehicles.mototaxi`.
    pub sockets: Option<PathBuf>,
}

impl Default for FileConfig {
    fn default() -> Self {
        Self {
            utc_offset_hours: PvConfig::PLACE.utc_offset_hours,
            pv: None,
            load: None,
            prices: None,
            carbon: None,
            vehicles: None,
            pv_forecast: None,
            load_forecast: None,
            sockets: None,
        }
    }
}

/// Layout of an action.
///
/// ```
/// use brasa_energy::iquitos::{ActionMode, IquitosConfig};
///
/// let config: IquitosConfig = serde_json::from_str(r#"{ "actions": "aggregate" }"#)?;
/// assert_eq!(config.actions, ActionMode::Aggregate);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActionMode {
    /// The battery, then every socket.
    #[default]
    PerSocket,
    /// The battery, then one cap for all moto sockets and one for all mototaxi sockets.
    Aggregate,
}

/// Observations of the sockets.
///
/// ```
/// use brasa_energy::iquitos::{IquitosConfig, ObservationMode};
///
/// let config: IquitosConfig = serde_json::from_str(r#"{ "observations": "compact" }"#)?;
/// assert_eq!(config.observations, ObservationMode::Compact);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ObservationMode {
    /// Four numbers per socket.
    #[default]
    Full,
    /// Four sums per class of vehicles.
    Compact,
}

/// The photovoltaic field: 4162 kWp behind 3201.2 kW of inverters.
///
/// ```
/// use brasa_energy::iquitos::{IquitosConfig, PvConfig};
///
/// let config = |pv| IquitosConfig { pv, ..IquitosConfig::default() };
/// config(PvConfig { scale: 0.5, ..PvConfig::default() }).validate()?;
/// let error = config(PvConfig { peak_kw: 0.0, ..PvConfig::default() }).validate().unwrap_err();
/// assert!(error.to_string().starts_with("`pv.peak_kw`"), "{error}");
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PvConfig {
    /// Model of the PV power; default a clear-sky model with random clouds.
    pub model: PvModel,
    /// Factor on all PV; default 1. 0 is a site without PV; above 1 the inverters clip more.
    pub scale: f64,
    /// Energy of the closed-form year, in kWh; default 8,043,140 (original data set). That is 1933 kWh per kWp,
    /// more than the irradiation of Iquitos allows: use it for comparison only.
    pub closed_form_kwh: f64,
    /// Rated power of the modules, in kW; default 4162 (original configuration).
    pub peak_kw: f64,
    /// Limit of the inverters, in kW; default 3201.2 (original configuration). Below half of `peak_kw` most of
    /// the power around noon is clipped.
    pub inverter_kw: f64,
    /// Tilt of the modules from horizontal, in degrees; default 10 (original configuration).
    pub tilt_deg: f64,
    /// Direction the modules face, clockwise from north, in degrees; default 0, north, for a site south of the
    /// equator (original configuration).
    pub azimuth_deg: f64,
    /// Losses except those by temperature, as a fraction; default 0.1362, the product of soiling 3 %, shading 2 %,
    /// mismatch 2 %, wiring 2 %, connections 0.5 %, light-induced 1.5 %, nameplate 1 %, age 0.5 % and
    /// availability 2 % (the defaults of NREL's PVWatts).
    pub losses: f64,
    /// Loss of power per degree above 25 Celsius, as a fraction; default 0.0045 (crystalline silicon).
    pub temperature_coefficient: f64,
    /// Nominal operating cell temperature, in Celsius; default 45 (crystalline silicon).
    pub noct_c: f64,
    /// Median of the sky's transmission relative to a clear sky from December to May; default 0.62. The original
    /// fallback has 0.55 (and 0.15 less in the afternoon), which yields far less than satellite data of Iquitos.
    pub wet_transmission: f64,
    /// The same from June to November; default 0.73 (0.70 in the original fallback).
    pub dry_transmission: f64,
    /// Correlation of the clouds of consecutive hours; default 0.8. Near 1, whole weeks are sunny
    /// or dark; at 0, clouds are white noise and cannot be predicted from the last step.
    pub cloud_correlation: f64,
    /// Standard deviation of the logit of the transmission; default 0.8. At 0 the year is deterministic; above 2
    /// the sky is mostly either clear or black.
    pub cloud_deviation: f64,
}

/// Model of the PV power.
///
/// ```
/// use brasa_energy::iquitos::{IquitosConfig, PvModel};
///
/// let config: IquitosConfig = serde_json::from_str(r#"{ "pv": { "model": "closed-form" } }"#)?;
/// assert_eq!(config.pv.model, PvModel::ClosedForm);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PvModel {
    /// Sun geometry, Haurwitz clear sky and random clouds.
    #[default]
    ClearSky,
    /// The deterministic bell curve of the original data set.
    ClosedForm,
}

/// The battery: 4520 kWh and 2712 kW.
///
/// ```
/// use brasa_energy::iquitos::{BatteryConfig, IquitosConfig};
///
/// let config = |battery| IquitosConfig { battery, ..IquitosConfig::default() };
/// config(BatteryConfig { capacity_kwh: 1000.0, ..BatteryConfig::default() }).validate()?;
/// let error = config(BatteryConfig { soc_min: 1.5, ..BatteryConfig::default() }).validate().unwrap_err();
/// assert!(error.to_string().starts_with("`battery.soc_min`"), "{error}");
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BatteryConfig {
    /// Capacity, in kWh; default 4520 (original configuration). 0 is a site without a battery.
    pub capacity_kwh: f64,
    /// Largest power in either direction at the bus, in kW; default 2712 (original configuration).
    pub power_kw: f64,
    /// Stored energy per charged energy; default 0.95 (original study).
    pub charge_efficiency: f64,
    /// Discharged energy per stored energy; default 0.95 (original study).
    pub discharge_efficiency: f64,
    /// Smallest state of charge; default 0.10 (the original study's consistent script).
    pub soc_min: f64,
    /// Largest state of charge; default 0.95 (the same).
    pub soc_max: f64,
    /// State of charge at the start of an episode; default 0.50 (the same).
    pub soc_start: f64,
    /// Fraction of the stored energy lost per day; default 0.001 (original configuration), 0 in the seed
    /// preset. Energy below `soc_min` is not lost.
    pub standing_loss_per_day: f64,
    /// Cost of wear per charged or discharged kWh, in the currency of the tariff; default 0. 0.02 USD is a common
    /// estimate for lithium batteries; a value above half the price difference makes the battery uneconomic.
    pub wear_cost_per_kwh: f64,
    /// Whether the battery may be charged with imported energy; default true. Otherwise charging is limited
    /// to the surplus of PV.
    pub charge_from_grid: bool,
}

/// The mall: 24 hourly values, 33,885 kWh per day.
///
/// ```
/// use brasa_energy::iquitos::{IquitosConfig, MallConfig};
///
/// let config = |mall| IquitosConfig { mall, ..IquitosConfig::default() };
/// config(MallConfig { noise: 0.0, ..MallConfig::default() }).validate()?;
/// let error = config(MallConfig { noise: -0.1, ..MallConfig::default() }).validate().unwrap_err();
/// assert!(error.to_string().starts_with("`mall.noise`"), "{error}");
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MallConfig {
    /// Load per hour of the day, in kW; default the 24 values of the original data set.
    pub hourly_kw: [f64; 24],
    /// Load relative to the mean by day of the week, Monday first; default -3, -3, -3, -2, 2, 6 and 3 %, an
    /// assumption that leaves the weekly energy unchanged; 0 in the seed preset.
    pub weekday_change: [f64; 7],
    /// Standard deviation of the load of a step, as a fraction; default 0.03, 0 in the seed preset. Noise is clipped
    /// at four standard deviations.
    pub noise: f64,
}

/// Sockets for motos and mototaxis.
///
/// ```
/// use brasa_energy::iquitos::{IquitosConfig, VehicleConfig};
///
/// let config = |vehicles| IquitosConfig { vehicles, ..IquitosConfig::default() };
/// config(VehicleConfig { feeder_limit_kw: 272.0, ..VehicleConfig::default() }).validate()?;
/// let error = config(VehicleConfig { target_soc: 1.5, ..VehicleConfig::default() }).validate().unwrap_err();
/// assert!(error.to_string().starts_with("`vehicles.target_soc`"), "{error}");
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VehicleConfig {
    /// Model of arrivals; default random arrivals.
    pub arrivals: ArrivalModel,
    /// Motos.
    pub moto: VehicleClass,
    /// Mototaxis.
    pub mototaxi: VehicleClass,
    /// Energy of the vehicles per hour of the day for [`ArrivalModel::Profile`], in kWh; default the original
    /// data set, 3252 kWh per day.
    pub profile_kwh: [f64; 24],
    /// Limit of the total power of all sockets, in kW; default 150 (original configuration); in the seed preset 272,
    /// the installed power, which never binds. Orders above it are reduced in proportion and reported. Profiles ignore
    /// the limit.
    pub feeder_limit_kw: f64,
    /// First hour of the day with arrivals; default 9 (original configuration).
    pub opening_hour: u32,
    /// First hour without arrivals; default 22 (the same).
    pub closing_hour: u32,
    /// First hour of the rush; default 18 (the same).
    pub rush_start_hour: u32,
    /// First hour after the rush; default 22 (the same: 18 to 21 o'clock inclusive).
    pub rush_end_hour: u32,
    /// Fraction of the daily arrivals during the rush; default 0.5 (the same).
    pub rush_share: f64,
    /// Factor on arrivals on Saturday and Sunday; default 0.7 (original profiles).
    pub weekend_factor: f64,
    /// Median time at a socket, in hours; default 1, an assumption between the 0.5 h sessions of the original
    /// sizing and a visit to the mall. Clipped to 0.5 to 4 h and rounded to steps. Longer times allow more
    /// shifting, but sockets are occupied longer.
    pub dwell_median_hours: f64,
    /// Standard deviation of the logarithm of the time at a socket; default 0.6, an assumption.
    pub dwell_spread: f64,
    /// First parameter of the Beta distribution of the state of charge at arrival; default 2.
    pub arrival_soc_alpha: f64,
    /// Second parameter; default 8, so that the mean is 0.2 (original data set).
    pub arrival_soc_beta: f64,
    /// Target state of charge of vehicles at departure; default 0.9 (original data set).
    pub target_soc: f64,
    /// Energy in a vehicle's battery per energy from the socket; default 0.95 (original configuration).
    pub charger_efficiency: f64,
}

/// One class of vehicles and its sockets; a config that names one gives all four numbers.
///
/// ```
/// use brasa_energy::iquitos::{IquitosConfig, VehicleClass};
///
/// let mut config = IquitosConfig::default();
/// config.vehicles.mototaxi = VehicleClass { sockets: 4, socket_kw: 3.0, battery_kwh: 4.3, arrivals_per_day: 30.0 };
/// config.validate()?;
/// assert_eq!(config.vehicles.moto.sockets, 112);
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VehicleClass {
    /// Sockets; 112 for motos and 16 for mototaxis (original configuration).
    pub sockets: usize,
    /// Largest power of a socket, in kW; 2 and 3 (original configuration).
    pub socket_kw: f64,
    /// Battery of a vehicle, in kWh; 2.1 and 4.3 (middle of the original ranges 2.0 to 2.5 and 4 to 5).
    pub battery_kwh: f64,
    /// Arrivals on a weekday; 810 and 117 (the original fleets of 900 and 130 times 0.9). Vehicles without a
    /// free socket leave and are counted, so much larger numbers have little effect.
    pub arrivals_per_day: f64,
}

/// Model of arrivals.
///
/// ```
/// use brasa_energy::iquitos::{ArrivalModel, IquitosConfig};
///
/// let config: IquitosConfig = serde_json::from_str(r#"{ "vehicles": { "arrivals": "profile" } }"#)?;
/// assert_eq!(config.vehicles.arrivals, ArrivalModel::Profile);
/// assert_eq!(IquitosConfig::default().vehicles.arrivals, ArrivalModel::Poisson);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalModel {
    /// Poisson arrivals with random states of charge and times at the socket.
    #[default]
    Poisson,
    /// The same fixed energy every day, distributed over all sockets by their power and always served: orders to the
    /// sockets have no effect.
    Profile,
}

/// Prices and emissions of the isolated grid of Iquitos.
///
/// ```
/// use brasa_energy::iquitos::{GridConfig, IquitosConfig};
///
/// let config = |grid| IquitosConfig { grid, ..IquitosConfig::default() };
/// config(GridConfig { demand_charge_per_kw: 0.0, ..GridConfig::default() }).validate()?;
/// let error = config(GridConfig { peak_price_per_kwh: -1.0, ..GridConfig::default() }).validate().unwrap_err();
/// assert!(error.to_string().starts_with("`grid.peak_price_per_kwh`"), "{error}");
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GridConfig {
    /// Currency of all prices, for reports; default `PEN` (soles), `USD` in the seed preset.
    pub currency: String,
    /// Price of an imported kWh in peak hours; default 0.45 (Peruvian time-of-use tariff, hora punta).
    pub peak_price_per_kwh: f64,
    /// Price of an imported kWh at other times; default 0.28 (hora fuera de punta).
    pub off_peak_price_per_kwh: f64,
    /// First peak hour; default 18 (the same tariff).
    pub peak_start_hour: u32,
    /// First hour after the peak; default 23 (the same).
    pub peak_end_hour: u32,
    /// Demand charge on the largest mean power of a step in each month, in currency per kW; default 35, an assumption
    /// of the right magnitude for medium voltage in Peru. The cost of a rise of the monthly peak belongs to the step of
    /// the rise, so costs add up exactly. At 0 there is no incentive to flatten the load.
    pub demand_charge_per_kw: f64,
    /// Revenue per exported kWh; default 0 (the original study has no price for export).
    pub export_price_per_kwh: f64,
    /// Largest export, in kW; default 0: surplus PV is curtailed, and the battery never discharges more than the site
    /// uses. An isolated grid can accept little export.
    pub export_limit_kw: f64,
    /// Emissions of an imported kWh, in kg of CO2; default 0.4521 (thermal plant of Iquitos, original study).
    pub carbon_kg_per_kwh: f64,
    /// Daily variation of the emissions as a fraction, largest at 19:30 when diesel generators run; default 0; 0.15 is
    /// a plausible variant.
    pub carbon_swing: f64,
    /// Import above this power is excess, in kW; default 2000, just below the mall's evening peak. Below
    /// the mean load excess is unavoidable; above 2400 it never occurs.
    pub soft_limit_kw: f64,
}

impl Default for IquitosConfig {
    fn default() -> Self {
        Self {
            step_minutes: 60,
            episode_steps: None,
            random_start: false,
            held_out_days: None,
            held_out_weeks: None,
            actions: ActionMode::default(),
            socket_actions: SocketActions::default(),
            observations: ObservationMode::default(),
            pv: PvConfig::default(),
            battery: BatteryConfig::default(),
            mall: MallConfig::default(),
            vehicles: VehicleConfig::default(),
            grid: GridConfig::default(),
            reward: RewardConfig::default(),
            optimum: false,
            files: FileConfig::default(),
        }
    }
}

impl Default for PvConfig {
    fn default() -> Self {
        Self {
            model: PvModel::ClearSky,
            scale: 1.0,
            closed_form_kwh: profiles::CLOSED_FORM_KWH,
            peak_kw: 4162.0,
            inverter_kw: 3201.2,
            tilt_deg: 10.0,
            azimuth_deg: 0.0,
            losses: 0.1362,
            temperature_coefficient: 0.0045,
            noct_c: 45.0,
            wet_transmission: 0.62,
            dry_transmission: 0.73,
            cloud_correlation: 0.8,
            cloud_deviation: 0.8,
        }
    }
}

impl PvConfig {
    /// Iquitos, with UTC-5 and no seasons.
    pub(crate) const PLACE: Place = Place {
        latitude_deg: -3.75,
        longitude_deg: -73.25,
        utc_offset_hours: -5.0,
        air_c: 26.5,
        day_swing_c: 5.0,
        july_swing_c: 0.0,
    };

    /// The modules.
    pub(crate) fn modules(&self) -> Modules {
        Modules {
            peak_kw: self.peak_kw,
            scale: self.scale,
            inverter_kw: self.inverter_kw,
            tilt_deg: self.tilt_deg,
            azimuth_deg: self.azimuth_deg,
            losses: self.losses,
            temperature_coefficient: self.temperature_coefficient,
            noct_c: self.noct_c,
        }
    }

    /// The clouds; December to May is wet.
    pub(crate) fn clouds(&self, step_hours: f64) -> Clouds {
        let (wet, dry) = (self.wet_transmission, self.dry_transmission);
        let transmissions = std::array::from_fn(|month| if month < 5 || month == 11 { wet } else { dry });
        Clouds::new(transmissions, self.cloud_correlation, self.cloud_deviation, step_hours)
    }
}

impl BatteryConfig {
    /// The constants of the battery.
    pub(crate) fn storage(&self) -> Storage {
        let efficiencies = (self.charge_efficiency, self.discharge_efficiency);
        Storage::new(self.capacity_kwh, self.power_kw, efficiencies, (self.soc_min, self.soc_max))
    }
}

impl Default for BatteryConfig {
    fn default() -> Self {
        Self {
            capacity_kwh: 4520.0,
            power_kw: 2712.0,
            charge_efficiency: 0.95,
            discharge_efficiency: 0.95,
            soc_min: 0.10,
            soc_max: 0.95,
            soc_start: 0.50,
            standing_loss_per_day: 0.001,
            wear_cost_per_kwh: 0.0,
            charge_from_grid: true,
        }
    }
}

impl Default for MallConfig {
    fn default() -> Self {
        Self {
            hourly_kw: profiles::mall_hourly_kw(),
            weekday_change: [-0.03, -0.03, -0.03, -0.02, 0.02, 0.06, 0.03],
            noise: 0.03,
        }
    }
}

impl Default for VehicleConfig {
    fn default() -> Self {
        Self {
            arrivals: ArrivalModel::Poisson,
            moto: VehicleClass { sockets: 112, socket_kw: 2.0, battery_kwh: 2.1, arrivals_per_day: 810.0 },
            mototaxi: VehicleClass { sockets: 16, socket_kw: 3.0, battery_kwh: 4.3, arrivals_per_day: 117.0 },
            profile_kwh: profiles::VEHICLES_HOURLY_KWH,
            feeder_limit_kw: 150.0,
            opening_hour: 9,
            closing_hour: 22,
            rush_start_hour: 18,
            rush_end_hour: 22,
            rush_share: 0.5,
            weekend_factor: 0.7,
            dwell_median_hours: 1.0,
            dwell_spread: 0.6,
            arrival_soc_alpha: 2.0,
            arrival_soc_beta: 8.0,
            target_soc: 0.9,
            charger_efficiency: 0.95,
        }
    }
}

impl Default for GridConfig {
    fn default() -> Self {
        Self {
            currency: "PEN".into(),
            peak_price_per_kwh: 0.45,
            off_peak_price_per_kwh: 0.28,
            peak_start_hour: 18,
            peak_end_hour: 23,
            demand_charge_per_kw: 35.0,
            export_price_per_kwh: 0.0,
            export_limit_kw: 0.0,
            carbon_kg_per_kwh: 0.4521,
            carbon_swing: 0.0,
            soft_limit_kw: 2000.0,
        }
    }
}

impl IquitosConfig {
    /// The deterministic year of the original study: closed-form PV, the same day of load and vehicles every day,
    /// one flat price of 0.20 USD, no limit on the feeder, no standing loss.
    pub fn seed() -> Self {
        let mut config = Self::default();
        config.pv.model = PvModel::ClosedForm;
        config.battery.standing_loss_per_day = 0.0;
        config.mall.weekday_change = [0.0; 7];
        config.mall.noise = 0.0;
        config.vehicles.arrivals = ArrivalModel::Profile;
        config.vehicles.feeder_limit_kw = 272.0;
        config.grid.currency = "USD".into();
        config.grid.peak_price_per_kwh = 0.20;
        config.grid.off_peak_price_per_kwh = 0.20;
        config.grid.demand_charge_per_kw = 0.0;
        config
    }

    /// The preset `name`: `default` or `seed`.
    ///
    /// # Errors
    /// [`EnergyError::Field`] for any other name.
    pub fn preset(name: &str) -> Result<Self, EnergyError> {
        match name {
            "default" => Ok(Self::default()),
            "seed" => Ok(Self::seed()),
            _ => fail("preset", "must be default or seed", name),
        }
    }

    /// Steps of a year of 365 days.
    pub fn steps_per_year(&self) -> u32 {
        365 * 24 * (60 / self.step_minutes.clamp(1, 60))
    }

    /// Length of a step, in hours.
    pub fn step_hours(&self) -> f64 {
        f64::from(self.step_minutes) / 60.0
    }

    /// Number of sockets of both classes.
    pub fn n_sockets(&self) -> usize {
        self.vehicles.moto.sockets + self.vehicles.mototaxi.sockets
    }
}
