//! The schema of a data set: buildings, devices, observations and rows.
//!
//! Features that affect the physics and are not modeled are errors that name them; they are never ignored.

use std::cell::RefCell;

use brasa_env::{field, suggest::nearest};
use brasa_power::{EnergyError, delimited::without_mark};
use serde_json::{Map, Value};

use super::{
    files::Files,
    place::{Place, present},
    schema_thermal::ThermalSchema,
    schema_vehicles::{
        ChargerSchema, LimitsSchema, VehicleSchema, parse_chargers, parse_limits, parse_machines, parse_vehicles,
    },
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

/// The parameters of a battery; missing ones are sampled.
pub(super) struct BatterySchema {
    pub(super) device_type: String,
    pub(super) random_seed: Option<u64>,
    pub(super) capacity_kwh: f64,
    pub(super) nominal_power_kw: f64,
    pub(super) efficiency: Option<f64>,
    pub(super) loss_coefficient: Option<f64>,
    pub(super) capacity_loss_coefficient: Option<f64>,
    pub(super) depth_of_discharge: Option<f64>,
    pub(super) initial_soc: Option<f64>,
    pub(super) power_efficiency_curve: Option<Vec<(f64, f64)>>,
    pub(super) capacity_power_curve: Option<Vec<(f64, f64)>>,
    pub(super) sizing: Option<BatterySizing>,
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
    let place = Place::root(&path, &unknown);
    let root = place.object(&value)?;
    let folder = match root.get("root_directory").filter(|value| !value.is_null()) {
        None => files.clone(),
        Some(folder) => Files::Folder(place.at("root_directory").text(folder)?.into()),
    };
    let mut schema = parse(&place, root)?;
    let unknown = unknown.borrow();
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

fn parse(place: &Place, root: &Map<String, Value>) -> Result<Schema, EnergyError> {
    place.keys(root, &ROOT_KEYS, &["community_market", "topology_events"])?;
    let number = |key: &str, default: f64| match root.get(key) {
        Some(Value::Null) if key != "random_seed" => Err(place.at(key).fail("must be a number, got null")),
        _ => place.number_or(root, key, default),
    };
    let mut active_actions = Vec::new();
    for (name, action) in place.child(root, "actions")? {
        let place = place.at("actions").at(name);
        let action = place.object(action)?;
        place.keys(action, &["active"], &[])?;
        if place.flag(action, "active", false)? {
            active_actions.push(name.as_str());
        }
    }
    let mut observations = Vec::new();
    for (name, observation) in place.child(root, "observations")? {
        let place = place.at("observations").at(name);
        place.plain(name)?;
        let observation = place.object(observation)?;
        place.keys(observation, &["active", "shared_in_central_agent"], &[])?;
        if place.flag(observation, "active", false)? {
            observations.push((current_name(name), place.flag(observation, "shared_in_central_agent", false)?));
        }
    }
    let mut buildings = Vec::new();
    for (name, building) in place.child(root, "buildings")? {
        let place = place.at(name);
        let building = place.object(building)?;
        place.plain(name)?;
        if place.flag(building, "include", true)? {
            buildings.push(parse_building(&place, name, building, &active_actions)?);
        }
    }
    if buildings.is_empty() {
        return Err(place.fail("has no building to include"));
    }
    let whole = |key: &str, default: f64| -> Result<u64, EnergyError> {
        let value = number(key, default)?;
        let is_whole = value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value);
        let rule = format!("must be a whole number from 0 to {}, got {value}", u32::MAX);
        if is_whole { Ok(value as u64) } else { Err(place.at(key).fail(&rule)) }
    };
    if present(root, END).is_none() {
        let got = if root.contains_key(END) { "null" } else { "none" };
        let rule = "must be the last row that is simulated, counted from 0 (8759 for the hours of a year)";
        return Err(place.at(END).fail(&format!("{rule}, got {got}; CityLearn has no default")));
    }
    let (first, last) = (whole("simulation_start_time_step", 0.0)?, whole(END, 0.0)?);
    if last <= first {
        return Err(place.fail(&format!("`simulation_end_time_step` must be above the start {first}, got {last}")));
    }
    let seconds_per_step = number("seconds_per_time_step", 3600.0)?;
    if !(seconds_per_step > 0.0 && seconds_per_step <= 86_400.0) {
        return Err(place.fail(&format!("`seconds_per_time_step` must be in (0, 86400], got {seconds_per_step}")));
    }
    Ok(Schema {
        random_seed: whole("random_seed", DEFAULT_RANDOM_SEED as f64)?,
        first_row: first as usize,
        last_row: last as usize,
        seconds_per_step,
        observations,
        vehicles: parse_vehicles(place, root)?,
        reward: parse_reward(root),
        buildings,
        episode_starts: episode_starts(root),
        warnings: Vec::new(),
    })
}

/// Key of the last row.
const END: &str = "simulation_end_time_step";

/// Keys of a schema that are read, and those that have no effect on the district.
const ROOT_KEYS: [&str; 27] = [
    "root_directory",
    "random_seed",
    "simulation_start_time_step",
    END,
    "seconds_per_time_step",
    "observations",
    "actions",
    "buildings",
    "electric_vehicles_def",
    "reward_function",
    "episode_time_steps",
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
fn episode_starts(root: &Map<String, Value>) -> Vec<usize> {
    let pairs = root.get("episode_time_steps").and_then(Value::as_array);
    let first = |pair: &Value| pair.get(0).and_then(Value::as_u64).map(|row| row as usize);
    let mut rows: Vec<usize> = pairs.into_iter().flatten().filter_map(first).collect();
    rows.sort_unstable();
    rows
}

/// The class of the reward; anything else than one class is read as a class without a name, which does not exist.
fn parse_reward(root: &Map<String, Value>) -> Option<(String, Map<String, Value>)> {
    let reward = present(root, "reward_function")?;
    let name = reward.get("type").and_then(Value::as_str).unwrap_or_default();
    let attributes = reward.get("attributes").and_then(Value::as_object).cloned().unwrap_or_default();
    Some((name.to_owned(), attributes))
}

/// Keys of a building that are read below or do not affect its physics.
const READ_KEYS: [&str; 22] = [
    "include",
    "energy_simulation",
    "weather",
    "carbon_intensity",
    "pricing",
    "inactive_observations",
    "inactive_actions",
    "electrical_storage",
    "pv",
    "chargers",
    "charging_constraints",
    "washing_machines",
    "type",
    "cooling_device",
    "heating_device",
    "dhw_device",
    "cooling_storage",
    "heating_storage",
    "dhw_storage",
    "power_outage",
    "dynamics",
    // It enters an indicator alone.
    "equity_group",
];

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

fn parse_building(
    place: &Place,
    name: &str,
    building: &Map<String, Value>,
    active_actions: &[&str],
) -> Result<BuildingSchema, EnergyError> {
    let building_type = match present(building, "type") {
        None => BUILDING_TYPES[0].to_owned(),
        Some(kind) => place.at("type").text(kind)?,
    };
    if !BUILDING_TYPES.contains(&building_type.as_str()) {
        return Err(place.unsupported(&format!("building type \"{building_type}\"")));
    }
    place.keys(building, &READ_KEYS, &UNMODELLED_KEYS)?;
    let inactive_actions = place.names(building, "inactive_actions")?;
    for name in inactive_actions.iter().filter(|name| !ACTIONS.contains(&name.as_str())) {
        if let Some(meant) = nearest(name, ACTIONS.into_iter()) {
            return Err(place.at("inactive_actions").fail(&format!("has `{name}`; did you mean `{meant}`?")));
        }
    }
    let actions: Vec<String> = active_actions
        .iter()
        .filter(|action| !inactive_actions.iter().any(|name| name == *action))
        .map(|action| (*action).to_owned())
        .collect();
    if let Some(action) = actions.iter().find(|action| !ACTIONS.contains(&action.as_str())) {
        return Err(place.unsupported(&format!("the active action `{action}`")));
    }
    let is_active = |name: &str| actions.iter().any(|action| action == name);
    let steered = is_active("electrical_storage");
    let battery = match present(building, "electrical_storage") {
        Some(value) if steered => parse_battery(&place.at("electrical_storage"), value)?,
        _ => None,
    };
    let pv_kw = match present(building, "pv") {
        Some(value) => {
            let place = place.at("pv");
            place.keys(place.object(value)?, &DEVICE_KEYS, &[])?;
            if place.sizing(value, &PV_SIZING)?.is_some() {
                return Err(place.fail(
                    "asks for automatic sizing (`autosize`), which is not modeled: CityLearn computes it with PySAM and a table of \
                     installed systems; set `pv` to null, or `autosize` to false with `attributes.nominal_power` in kW",
                ));
            }
            let attributes = place.attributes(value)?;
            let known = ["nominal_power", "efficiency", "random_seed", "seconds_per_time_step", "phase_connection"];
            place.at("attributes").keys(attributes, &known, &[])?;
            place.in_range("nominal_power", place.number_or(attributes, "nominal_power", 0.0)?, 0.0, MOST)?
        }
        None => 0.0,
    };
    let file = |key: &str| present(building, key).map(|value| place.at(key).text(value)).transpose();
    let needed = |key: &str| file(key)?.ok_or_else(|| place.fail(&format!("needs `{key}`")));
    let chargers = parse_chargers(place, building, is_active("electric_vehicle_storage"))?;
    let machines = parse_machines(place, building, is_active("washing_machine"))?;
    let thermal = ThermalSchema::parse(place, building, &building_type, actions)?;
    if thermal.outages.is_some() && !machines.is_empty() {
        return Err(place.unsupported("power outages (`power_outage`) together with washing machines"));
    }
    Ok(BuildingSchema {
        name: name.into(),
        energy_simulation: needed("energy_simulation")?,
        weather: needed("weather")?,
        pricing: file("pricing")?,
        carbon_intensity: file("carbon_intensity")?,
        inactive_observations: place
            .names(building, "inactive_observations")?
            .iter()
            .map(|name| current_name(name))
            .collect(),
        battery,
        pv_kw,
        chargers,
        limits: parse_limits(place, building)?,
        machines,
        thermal,
    })
}

fn parse_battery(place: &Place, value: &Value) -> Result<Option<BatterySchema>, EnergyError> {
    let attributes = place.sized_attributes(value)?;
    place.keys(place.object(value)?, &DEVICE_KEYS, &[])?;
    place.at("attributes").keys(attributes, &BATTERY_KEYS, &[])?;
    let device_type = match place.object(value)?.contains_key("type") {
        true => place.device_type(value)?,
        false => "citylearn.energy_model.Battery".into(),
    };
    if !device_type.ends_with(".Battery") {
        return Err(place.unsupported(&format!("the device type `{device_type}`")));
    }
    let optional = |key: &str, low: f64, high: f64| place.optional(attributes, key, low, high);
    let sizing = match place.sizing(value, &["duration", "safety_factor", "parallel"])? {
        None => None,
        Some(sizing) => {
            let place = place.at("autosize_attributes");
            Some(BatterySizing {
                duration_h: place.optional(sizing, "duration", 0.0, 1e6)?,
                safety_factor: place.optional(sizing, "safety_factor", 0.0, 1e6)?.unwrap_or(1.0),
                parallel: place.flag(sizing, "parallel", false)?,
            })
        }
    };
    let capacity_kwh = optional("capacity", 0.0, MOST)?.unwrap_or(0.0);
    if capacity_kwh == 0.0 && sizing.is_none() {
        return Ok(None);
    }
    // 0 would divide by the efficiency or the power.
    let positive = f64::MIN_POSITIVE;
    Ok(Some(BatterySchema {
        device_type,
        random_seed: optional("random_seed", 0.0, f64::from(u32::MAX))?.map(|seed| seed as u64),
        capacity_kwh,
        nominal_power_kw: match optional("nominal_power", positive, MOST)? {
            Some(power_kw) => power_kw,
            None if sizing.is_some() => 0.0,
            None => return Err(place.fail("needs `nominal_power`, in kW")),
        },
        efficiency: optional("efficiency", positive, 1.0)?,
        loss_coefficient: optional("loss_coefficient", 0.0, 0.99)?,
        capacity_loss_coefficient: optional("capacity_loss_coefficient", 0.0, 1.0)?,
        depth_of_discharge: optional("depth_of_discharge", 0.0, 1.0)?,
        initial_soc: optional("initial_soc", 0.0, 1.0)?,
        power_efficiency_curve: place.points(attributes, "power_efficiency_curve")?,
        capacity_power_curve: place.points(attributes, "capacity_power_curve")?,
        sizing,
    }))
}

/// Keys of a device.
pub(super) const DEVICE_KEYS: [&str; 4] = ["type", "autosize", "autosize_attributes", "attributes"];

/// Keys of the sizing of PV in CityLearn.
const PV_SIZING: [&str; 5] =
    ["epw_filepath", "roof_area", "safety_factor", "use_sample_target", "zero_net_energy_proportion"];

/// Attributes of a battery, of a building or a vehicle.
pub(super) const BATTERY_KEYS: [&str; 12] = [
    "capacity",
    "nominal_power",
    "efficiency",
    "loss_coefficient",
    "capacity_loss_coefficient",
    "depth_of_discharge",
    "initial_soc",
    "power_efficiency_curve",
    "capacity_power_curve",
    "random_seed",
    "seconds_per_time_step",
    "phase_connection",
];

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
