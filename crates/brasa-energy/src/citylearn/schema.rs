//! The schema of a data set: buildings, devices, observations and rows.
//!
//! Features that affect the physics and are not modeled are errors that name them; they are never ignored.

use std::path::Path;

use serde_json::{Map, Value};

use brasa_env::field;

use super::{
    files::{Files, without_mark},
    schema_thermal::ThermalSchema,
    schema_vehicles::{
        ChargerSchema, LimitsSchema, VehicleSchema, parse_chargers, parse_limits, parse_machines, parse_vehicles,
    },
};
use crate::EnergyError;

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
}

/// Reads `name` and the folder of its files.
pub(super) fn read(files: &Files, name: &str) -> Result<(Schema, Files), EnergyError> {
    let path = files.path(name);
    let bytes = files.read(name)?;
    let value: Value = serde_json::from_slice(without_mark(&bytes))
        .map_err(|error| EnergyError::Schema { path: path.clone(), reason: field::printable(&error.to_string()) })?;
    let place = Place { path: &path, name: String::new() };
    let root = place.object(&value)?;
    let folder = match root.get("root_directory").filter(|value| !value.is_null()) {
        None => files.clone(),
        Some(folder) => Files::Folder(place.at("root_directory").text(folder)?.into()),
    };
    Ok((parse(&place, root)?, folder))
}

fn parse(place: &Place, root: &Map<String, Value>) -> Result<Schema, EnergyError> {
    let number = |key: &str, default: f64| place.number_or(root, key, default);
    let mut active_actions = Vec::new();
    for (name, action) in place.child(root, "actions")? {
        let place = place.at("actions").at(name);
        if place.flag(place.object(action)?, "active", false)? {
            active_actions.push(name.as_str());
        }
    }
    let mut observations = Vec::new();
    for (name, observation) in place.child(root, "observations")? {
        let place = place.at("observations").at(name);
        place.plain(name)?;
        let observation = place.object(observation)?;
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
    let (first, last) = (whole("simulation_start_time_step", 0.0)?, whole("simulation_end_time_step", 8759.0)?);
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
    })
}

/// The class of the reward; anything else than one class is read as a class without a name, which does not exist.
fn parse_reward(root: &Map<String, Value>) -> Option<(String, Map<String, Value>)> {
    let reward = present(root, "reward_function")?;
    let name = reward.get("type").and_then(Value::as_str).unwrap_or_default();
    let attributes = reward.get("attributes").and_then(Value::as_object).cloned().unwrap_or_default();
    Some((name.to_owned(), attributes))
}

/// Keys of a building that are read below or do not affect its physics.
const READ_KEYS: [&str; 21] = [
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
];

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
    for (key, value) in building {
        if !READ_KEYS.contains(&key.as_str()) && !is_off(value) {
            return Err(place.unsupported(&format!("`{key}`")));
        }
    }
    let inactive_actions = place.names(building, "inactive_actions")?;
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
            let attributes = place.attributes(value)?;
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
    let attributes = place.attributes(value)?;
    let device_type = match place.object(value)?.contains_key("type") {
        true => place.device_type(value)?,
        false => "citylearn.energy_model.Battery".into(),
    };
    if !device_type.ends_with(".Battery") {
        return Err(place.unsupported(&format!("the device type `{device_type}`")));
    }
    let optional = |key: &str, low: f64, high: f64| place.optional(attributes, key, low, high);
    let capacity_kwh = optional("capacity", 0.0, MOST)?.unwrap_or(0.0);
    if capacity_kwh == 0.0 {
        return Ok(None);
    }
    // 0 would divide by the efficiency or the power.
    let positive = f64::MIN_POSITIVE;
    Ok(Some(BatterySchema {
        device_type,
        random_seed: optional("random_seed", 0.0, f64::from(u32::MAX))?.map(|seed| seed as u64),
        capacity_kwh,
        nominal_power_kw: optional("nominal_power", positive, MOST)?
            .ok_or_else(|| place.fail("needs `nominal_power`, in kW"))?,
        efficiency: optional("efficiency", positive, 1.0)?,
        loss_coefficient: optional("loss_coefficient", 0.0, 0.99)?,
        capacity_loss_coefficient: optional("capacity_loss_coefficient", 0.0, 1.0)?,
        depth_of_discharge: optional("depth_of_discharge", 0.0, 1.0)?,
        initial_soc: optional("initial_soc", 0.0, 1.0)?,
        power_efficiency_curve: place.points(attributes, "power_efficiency_curve")?,
        capacity_power_curve: place.points(attributes, "capacity_power_curve")?,
    }))
}

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

pub(super) fn present<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|value| !value.is_null())
}

/// Whether a value has no effect: null, false, 0, or an empty list, text or object.
pub(super) fn is_off(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
    }
}

/// A place in the schema, for messages.
pub(super) struct Place<'a> {
    path: &'a Path,
    name: String,
}

impl<'a> Place<'a> {
    pub(super) fn at(&self, key: &str) -> Place<'a> {
        let name = if self.name.is_empty() { key.into() } else { format!("{}.{key}", self.name) };
        Place { path: self.path, name }
    }

    pub(super) fn fail(&self, reason: &str) -> EnergyError {
        let reason = if self.name.is_empty() { reason.into() } else { format!("`{}` {reason}", self.name) };
        EnergyError::Schema { path: self.path.into(), reason: field::printable(&reason) }
    }

    pub(super) fn unsupported(&self, feature: &str) -> EnergyError {
        self.fail(&format!("asks for {feature}, which is not modelled"))
    }

    pub(super) fn object<'v>(&self, value: &'v Value) -> Result<&'v Map<String, Value>, EnergyError> {
        value.as_object().ok_or_else(|| self.fail(&format!("must be an object, got {value}")))
    }

    pub(super) fn child<'v>(
        &self,
        object: &'v Map<String, Value>,
        key: &str,
    ) -> Result<&'v Map<String, Value>, EnergyError> {
        let value = present(object, key).ok_or_else(|| self.fail(&format!("needs `{key}`")))?;
        self.at(key).object(value)
    }

    pub(super) fn attributes<'v>(&self, device: &'v Value) -> Result<&'v Map<String, Value>, EnergyError> {
        let device = self.object(device)?;
        if self.flag(device, "autosize", false)? {
            return Err(self.unsupported("automatic sizing (`autosize`)"));
        }
        self.child(device, "attributes")
    }

    /// The attributes of a device that may be sized automatically; none if it has none.
    pub(super) fn sized_attributes<'v>(&self, device: &'v Value) -> Result<&'v Map<String, Value>, EnergyError> {
        self.child(self.object(device)?, "attributes")
    }

    /// The class of a device.
    pub(super) fn device_type(&self, device: &Value) -> Result<String, EnergyError> {
        let kind = present(self.object(device)?, "type").ok_or_else(|| self.fail("needs `type`"))?;
        self.at("type").text(kind)
    }

    /// A number that may be missing.
    pub(super) fn optional(
        &self,
        object: &Map<String, Value>,
        key: &str,
        low: f64,
        high: f64,
    ) -> Result<Option<f64>, EnergyError> {
        match present(object, key) {
            None => Ok(None),
            Some(value) => self.in_range(key, self.at(key).number(value)?, low, high).map(Some),
        }
    }

    pub(super) fn text(&self, value: &Value) -> Result<String, EnergyError> {
        let text = value.as_str().ok_or_else(|| self.fail(&format!("must be a text, got {value}")))?;
        if text.contains(char::is_control) {
            return Err(self.fail(&format!("must hold no control characters, got {value}")));
        }
        Ok(text.to_owned())
    }

    pub(super) fn number(&self, value: &Value) -> Result<f64, EnergyError> {
        value.as_f64().ok_or_else(|| self.fail(&format!("must be a number, got {value}")))
    }

    /// Refuses names that a terminal or a page would obey instead of showing them.
    pub(super) fn plain(&self, name: &str) -> Result<(), EnergyError> {
        match name.contains(char::is_control) {
            true => Err(self.fail("must be a name without control characters")),
            false => Ok(()),
        }
    }

    /// Whether something is switched on; whatever is neither true nor false is refused, as it would be read as one of them.
    pub(super) fn flag(&self, object: &Map<String, Value>, key: &str, default: bool) -> Result<bool, EnergyError> {
        match object.get(key) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            // As Python, and so CityLearn, reads it.
            Some(Value::Null) => Ok(false),
            Some(other) => Err(self.at(key).fail(&format!("must be true or false, got {other}"))),
        }
    }

    pub(super) fn number_or(&self, object: &Map<String, Value>, key: &str, default: f64) -> Result<f64, EnergyError> {
        present(object, key).map_or(Ok(default), |value| self.at(key).number(value))
    }

    pub(super) fn in_range(&self, key: &str, value: f64, low: f64, high: f64) -> Result<f64, EnergyError> {
        if value >= low && value <= high {
            return Ok(value);
        }
        let rule = match (low, high) {
            (f64::MIN_POSITIVE, high) => format!("must be in (0, {high}]"),
            (low, high) => format!("must be in [{low}, {high}]"),
        };
        Err(self.at(key).fail(&format!("{rule}, got {value}")))
    }

    pub(super) fn names(&self, object: &Map<String, Value>, key: &str) -> Result<Vec<String>, EnergyError> {
        let Some(value) = present(object, key) else { return Ok(Vec::new()) };
        let place = self.at(key);
        let list = value.as_array().ok_or_else(|| place.fail(&format!("must be a list, got {value}")))?;
        list.iter().map(|name| place.text(name)).collect()
    }

    pub(super) fn points(
        &self,
        object: &Map<String, Value>,
        key: &str,
    ) -> Result<Option<Vec<(f64, f64)>>, EnergyError> {
        let Some(value) = present(object, key) else { return Ok(None) };
        let points = serde_json::from_value(value.clone());
        points.map(Some).map_err(|error| self.at(key).fail(&format!("must be a list of pairs: {error}")))
    }
}
