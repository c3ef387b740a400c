//! The schema of a data set: buildings, devices, observations and rows.
//!
//! Features that affect the physics and are not modeled are errors that name them; they are never ignored.

use std::cell::RefCell;

use brasa_env::{field, suggest::nearest};
use brasa_power::{EnergyError, delimited::without_mark};
use serde_json::{Map, Value};

use super::{
    files::Files,
    schema_thermal::ThermalSchema,
    schema_vehicles::{
        ChargerSchema, LimitsSchema, VehicleSchema, parse_chargers, parse_limits, parse_machines, parse_vehicles,
    },
    section::Section,
};

/// Largest capacity in kWh and power in kW: more than all of a country's.
pub(super) const MOST: f64 = 1e9;

/// Random seed of schemas that name none, as those up to CityLearn 2.1.2; the one of the later phase 1 schema.
const DEFAULT_RANDOM_SEED: u64 = 2022;

/// The contents of a schema.
pub(super) struct Schema {
    pub(super) random_seed: u64,
    pub(super) first_row: usize,
    pub(super) last_row: usize,
    pub(super) seconds_per_step: f64,
    /// Active observations in the schema's order, and whether they are shared in a central agent.
    pub(super) observations: Vec<(String, bool)>,
    pub(super) buildings: Vec<BuildingSchema>,
    pub(super) vehicles: Vec<VehicleSchema>,
    /// Name in Python and attributes of the reward's class.
    pub(super) reward: Option<(String, Map<String, Value>)>,
    /// Rows at which an episode of CityLearn starts and dates may jump.
    pub(super) episode_starts: Vec<usize>,
    /// What is unknown and has no effect.
    pub(super) warnings: Vec<String>,
}

/// One building of a schema.
pub(super) struct BuildingSchema {
    pub(super) name: String,
    pub(super) energy_simulation: String,
    pub(super) weather: String,
    pub(super) pricing: Option<String>,
    pub(super) carbon_intensity: Option<String>,
    pub(super) inactive_observations: Vec<String>,
    pub(super) battery: Option<BatterySchema>,
    pub(super) pv_kw: f64,
    pub(super) thermal: ThermalSchema,
    pub(super) chargers: Vec<ChargerSchema>,
    pub(super) limits: Option<LimitsSchema>,
    /// Names and files of washing machines.
    pub(super) machines: Vec<(String, String)>,
}

/// The battery of a building.
pub(super) struct BatterySchema {
    pub(super) device_type: String,
    pub(super) random_seed: Option<u64>,
    pub(super) capacity_kwh: f64,
    pub(super) cells: CellSchema,
    pub(super) sizing: Option<BatterySizing>,
}

/// The parameters of the battery of a building or a vehicle; missing ones are sampled.
pub(super) struct CellSchema {
    /// A battery that is sized needs none.
    pub(super) nominal_power_kw: Option<f64>,
    pub(super) efficiency: Option<f64>,
    pub(super) loss_coefficient: Option<f64>,
    pub(super) capacity_loss_coefficient: Option<f64>,
    pub(super) depth_of_discharge: Option<f64>,
    pub(super) initial_soc: Option<f64>,
    pub(super) power_efficiency_curve: Option<Vec<(f64, f64)>>,
    pub(super) capacity_power_curve: Option<Vec<(f64, f64)>>,
}

/// How CityLearn sizes a battery: a model of a manufacturer, as many times as it takes.
pub(super) struct BatterySizing {
    /// Hours for which it supplies the mean of the daily peaks; drawn if missing.
    pub(super) duration_h: Option<f64>,
    pub(super) safety_factor: f64,
    /// Whether power grows with the number of batteries.
    pub(super) parallel: bool,
}

/// Reads `name` and the folder of its files.
pub(super) fn read(files: &Files, name: &str) -> Result<(Schema, Files), EnergyError> {
    let path = files.path(name);
    let bytes = files.read(name)?;
    let value = json(without_mark(&bytes))
        .map_err(|reason| EnergyError::Schema { path: path.clone(), reason: field::printable(&reason) })?;
    let unknown = RefCell::new(Vec::new());
    let root = Section::root(&path, &value, &unknown)?;
    let folder = root.text("root_directory")?.map_or_else(|| files.clone(), |folder| Files::Folder(folder.into()));
    let mut schema = parse(&root)?;
    let mut unknown = unknown.borrow().clone();
    unknown.sort_by_key(|name| name.matches('.').count());
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().take(MOST_NAMED).map(|name| format!("`{name}`")).collect();
        let more = unknown.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let text = format!("{name}: unknown keys without effect: {}{more}", names.join(", "));
        schema.warnings.push(field::printable(&text));
    }
    Ok((schema, folder))
}

/// Most unknown keys that a warning names.
const MOST_NAMED: usize = 20;

/// Parses a schema.
///
/// # Errors
/// The reason, with what Python writes and JSON does not have.
pub(super) fn json(bytes: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(bytes).map_err(|error| with_hint(bytes, error.to_string()))
}

/// The reason why a schema is no JSON, with what Python writes and JSON does not have.
pub(super) fn with_hint(bytes: &[u8], reason: String) -> String {
    let text = String::from_utf8_lossy(bytes);
    let is_bare = |word: &str| text.split(|c: char| !c.is_alphanumeric() && c != '"').any(|part| part == word);
    match ["NaN", "Infinity"].into_iter().find(|word| is_bare(word)) {
        Some(word) => format!("{reason} (JSON has no `{word}`: write null, or leave the key out)"),
        None => reason,
    }
}

fn parse(root: &Section) -> Result<Schema, EnergyError> {
    let [actions, observations, buildings] = ["actions", "observations", "buildings"].map(|key| root.section(key));
    let vehicles = root.section("electric_vehicles_def")?;
    let (start, seconds) = ("simulation_start_time_step", "seconds_per_time_step");
    if let Some(key) = [start, seconds].into_iter().find(|key| root.raw(key).is_some_and(Value::is_null)) {
        return Err(root.fail_at(key, "must be a number, got null"));
    }
    let first = root.whole(start, 0, u32::MAX)?.unwrap_or(0);
    let seconds_per_step = root.number(seconds, f64::MIN_POSITIVE, 86_400.0)?.unwrap_or(3600.0);
    let (end, last, random_seed) = (root.raw(END), root.whole(END, 0, u32::MAX)?, root.seed()?);
    let (reward, episode_starts) = (parse_reward(root), episode_starts(root));
    root.close(&WITHOUT_EFFECT, &["community_market", "topology_events"])?;

    let needed = |section: Result<Option<_>, _>, key: &str| section?.ok_or_else(|| root.needs(key, ""));
    let mut active_actions = Vec::new();
    for (name, action) in needed(actions, "actions")?.entries()? {
        if action.flag("active", false)? {
            active_actions.push(name);
        }
        action.close(&[], &[])?;
    }
    let mut active_observations = Vec::new();
    for (name, observation) in needed(observations, "observations")?.entries()? {
        let shared = observation.flag("shared_in_central_agent", false)?;
        if observation.flag("active", false)? {
            active_observations.push((current_name(name), shared));
        }
        observation.close(&[], &[])?;
    }
    let mut included = Vec::new();
    for (name, building) in needed(buildings, "buildings")?.entries()? {
        let building = building.named(name);
        if building.flag("include", true)? {
            included.push(parse_building(&building, name, &active_actions)?);
        }
    }
    if included.is_empty() {
        return Err(root.fail("has no building to include"));
    }
    let Some(last) = last else {
        let rule = "must be the last row that is simulated, counted from 0 (8759 for the hours of a year)";
        let got = if end.is_some() { "null" } else { "none" };
        return Err(root.fail_at(END, &format!("{rule}, got {got}; CityLearn has no default")));
    };
    if last <= first {
        return Err(root.fail(&format!("`{END}` must be above the start {first}, got {last}")));
    }
    Ok(Schema {
        random_seed: random_seed.unwrap_or(DEFAULT_RANDOM_SEED),
        first_row: first as usize,
        last_row: last as usize,
        seconds_per_step,
        observations: active_observations,
        vehicles: parse_vehicles(vehicles)?,
        reward,
        buildings: included,
        episode_starts,
        warnings: Vec::new(),
    })
}

/// Key of the last row.
const END: &str = "simulation_end_time_step";

/// Keys of a schema that have no effect on the district.
const WITHOUT_EFFECT: [&str; 16] = [
    // The configuration has these settings.
    "central_agent",
    "rolling_episode_split",
    "random_episode_split",
    "agent",
    // Labels, output and checks of CityLearn.
    "start_date",
    "interface",
    "topology_mode",
    "render",
    "render_mode",
    "render_session_name",
    "metrics_log_interval",
    "debug_timing",
    "check_observation_limits",
    "physics_invariant_checks",
    "terminal_observation_padding",
    "export_kpis_on_episode_end",
];

/// The first rows of the episodes of a schema that has them as pairs of rows, sorted.
fn episode_starts(root: &Section) -> Vec<usize> {
    let pairs = root.get("episode_time_steps").and_then(Value::as_array);
    let first = |pair: &Value| pair.get(0).and_then(Value::as_u64).map(|row| row as usize);
    let mut rows: Vec<usize> = pairs.into_iter().flatten().filter_map(first).collect();
    rows.sort_unstable();
    rows
}

/// The class of the reward; anything else than one class is read as a class without a name, which does not exist.
fn parse_reward(root: &Section) -> Option<(String, Map<String, Value>)> {
    let reward = root.get("reward_function")?;
    let name = reward.get("type").and_then(Value::as_str).unwrap_or_default();
    let attributes = reward.get("attributes").and_then(Value::as_object).cloned().unwrap_or_default();
    Some((name.to_owned(), attributes))
}

/// Keys of a building that affect its physics in CityLearn.
const UNMODELLED_KEYS: [&str; 6] =
    ["occupant", "set_point_hold_time_steps", "noise_std", "electrical_service", "deferrable_appliances", "escalators"];

/// Actions that are read; without a charger, a washing machine or a storage, a building has no action for them.
const ACTIONS: [&str; 9] = [
    "cooling_storage",
    "heating_storage",
    "dhw_storage",
    "electrical_storage",
    "electric_vehicle_storage",
    "washing_machine",
    "cooling_device",
    "heating_device",
    "cooling_or_heating_device",
];

/// CityLearn's names of its plain building, the first of which is the default, and of the one with a network.
const BUILDING_TYPES: [&str; 3] =
    ["citylearn.citylearn.Building", "citylearn.building.Building", "citylearn.building.LSTMDynamicsBuilding"];

fn parse_building(building: &Section, name: &str, active_actions: &[&str]) -> Result<BuildingSchema, EnergyError> {
    let building_type = building.text("type")?.unwrap_or_else(|| BUILDING_TYPES[0].to_owned());
    if !BUILDING_TYPES.contains(&building_type.as_str()) {
        return Err(building.unsupported(&format!("building type \"{building_type}\"")));
    }
    let inactive_actions = building.names("inactive_actions")?;
    for name in inactive_actions.iter().filter(|name| !ACTIONS.contains(&name.as_str())) {
        if let Some(meant) = nearest(name, ACTIONS.into_iter()) {
            return Err(building.fail_at("inactive_actions", &format!("has `{name}`; did you mean `{meant}`?")));
        }
    }
    let actions: Vec<String> = active_actions
        .iter()
        .filter(|action| !inactive_actions.iter().any(|name| name == *action))
        .map(|action| (*action).to_owned())
        .collect();
    if let Some(action) = actions.iter().find(|action| !ACTIONS.contains(&action.as_str())) {
        return Err(building.unsupported(&format!("the active action `{action}`")));
    }
    let is_active = |name: &str| actions.iter().any(|action| action == name);
    let battery = match building.section("electrical_storage")? {
        Some(battery) if is_active("electrical_storage") => parse_battery(&battery)?,
        _ => None,
    };
    let pv_kw = building.section("pv")?.map_or(Ok(0.0), |pv| parse_pv(&pv))?;
    let chargers = parse_chargers(building, is_active("electric_vehicle_storage"))?;
    let machines = parse_machines(building, is_active("washing_machine"))?;
    let limits = parse_limits(building)?;
    let thermal = ThermalSchema::parse(building, &building_type, actions)?;
    if thermal.outages.is_some() && !machines.is_empty() {
        return Err(building.unsupported("power outages (`power_outage`) together with washing machines"));
    }
    let inactive_observations = building.names("inactive_observations")?;
    let [energy_simulation, weather, pricing, carbon_intensity] =
        ["energy_simulation", "weather", "pricing", "carbon_intensity"].map(|key| building.text(key));
    // Equity enters an indicator alone.
    building.close(&["equity_group"], &UNMODELLED_KEYS)?;
    let needed = |file: Result<Option<_>, _>, key: &str| file?.ok_or_else(|| building.needs(key, ""));
    Ok(BuildingSchema {
        name: name.into(),
        energy_simulation: needed(energy_simulation, "energy_simulation")?,
        weather: needed(weather, "weather")?,
        pricing: pricing?,
        carbon_intensity: carbon_intensity?,
        inactive_observations: inactive_observations.iter().map(|name| current_name(name)).collect(),
        battery,
        pv_kw,
        chargers,
        limits,
        machines,
        thermal,
    })
}

/// The nominal power of PV, in kW.
fn parse_pv(pv: &Section) -> Result<f64, EnergyError> {
    let (attributes, sizing) = pv.sized_attributes()?;
    if let Some(sizing) = sizing {
        sizing.close_strictly(&PV_SIZING)?;
        return Err(pv.fail(
            "asks for automatic sizing (`autosize`), which is not modeled: CityLearn computes it with PySAM and a table of \
             installed systems; set `pv` to null, or `autosize` to false with `attributes.nominal_power` in kW",
        ));
    }
    let pv_kw = attributes.number("nominal_power", 0.0, MOST)?.unwrap_or(0.0);
    attributes.close(&["efficiency", "random_seed", "seconds_per_time_step", "phase_connection"], &[])?;
    Ok(pv_kw)
}

fn parse_battery(device: &Section) -> Result<Option<BatterySchema>, EnergyError> {
    let device_type = device.text("type")?.unwrap_or_else(|| "citylearn.energy_model.Battery".into());
    if !device_type.ends_with(".Battery") {
        return Err(device.unsupported(&format!("the device type `{device_type}`")));
    }
    let (attributes, sizing) = device.sized_attributes()?;
    let cells = CellSchema::parse(&attributes)?;
    let (capacity_kwh, random_seed) = (attributes.number("capacity", 0.0, MOST)?, attributes.seed()?);
    attributes.close(&NO_CELL, &[])?;
    let sizing = match sizing {
        None => None,
        Some(sizing) => {
            let read = BatterySizing {
                duration_h: sizing.number("duration", 0.0, 1e6)?,
                safety_factor: sizing.number("safety_factor", 0.0, 1e6)?.unwrap_or(1.0),
                parallel: sizing.flag("parallel", false)?,
            };
            sizing.close_strictly(&[])?;
            Some(read)
        }
    };
    let capacity_kwh = capacity_kwh.unwrap_or(0.0);
    if capacity_kwh == 0.0 && sizing.is_none() {
        return Ok(None);
    }
    if cells.nominal_power_kw.is_none() && sizing.is_none() {
        return Err(attributes.needs("nominal_power", ", in kW"));
    }
    Ok(Some(BatterySchema { device_type, random_seed, capacity_kwh, cells, sizing }))
}

/// Attributes of the battery of a building or a vehicle without an effect.
pub(super) const NO_CELL: [&str; 2] = ["seconds_per_time_step", "phase_connection"];

impl CellSchema {
    /// Reads the attributes of a battery.
    pub(super) fn parse(attributes: &Section) -> Result<Self, EnergyError> {
        // 0 would divide by the efficiency or the power.
        let positive = f64::MIN_POSITIVE;
        Ok(Self {
            nominal_power_kw: attributes.number("nominal_power", positive, MOST)?,
            efficiency: attributes.number("efficiency", positive, 1.0)?,
            loss_coefficient: attributes.number("loss_coefficient", 0.0, 0.99)?,
            capacity_loss_coefficient: attributes.number("capacity_loss_coefficient", 0.0, 1.0)?,
            depth_of_discharge: attributes.number("depth_of_discharge", 0.0, 1.0)?,
            initial_soc: attributes.number("initial_soc", 0.0, 1.0)?,
            power_efficiency_curve: attributes.points("power_efficiency_curve")?,
            capacity_power_curve: attributes.points("capacity_power_curve")?,
        })
    }
}

/// Keys of the sizing of PV in CityLearn.
const PV_SIZING: [&str; 5] =
    ["epw_filepath", "roof_area", "safety_factor", "use_sample_target", "zero_net_energy_proportion"];

/// The name since CityLearn 2.2 of an observation that older schemas name otherwise.
pub(super) fn current_name(name: &str) -> String {
    match name {
        "indoor_dry_bulb_temperature_set_point" => return "indoor_dry_bulb_temperature_cooling_set_point".into(),
        "indoor_dry_bulb_temperature_delta" => return "indoor_dry_bulb_temperature_cooling_delta".into(),
        "cooling_device_cop" => return "cooling_device_efficiency".into(),
        "heating_device_cop" => return "heating_device_efficiency".into(),
        "dhw_device_cop" => return "dhw_device_efficiency".into(),
        _ => {}
    }
    for (old, new) in [("_predicted_6h", "_predicted_1"), ("_predicted_12h", "_predicted_2")] {
        if let Some(stem) = name.strip_suffix(old) {
            return format!("{stem}{new}");
        }
    }
    name.strip_suffix("_predicted_24h").map_or_else(|| name.into(), |stem| format!("{stem}_predicted_3"))
}
