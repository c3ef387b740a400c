//! The vehicles, chargers and washing machines of a schema.

use brasa_power::EnergyError;
use serde_json::{Map, Value};

use super::{
    place::{Place, is_off, present},
    schema::{BATTERY_KEYS, DEVICE_KEYS, MOST},
};

/// An electric vehicle; missing parameters are sampled.
pub(super) struct VehicleSchema {
    pub(super) name: String,
    pub(super) capacity_kwh: f64,
    pub(super) nominal_power_kw: f64,
    pub(super) initial_soc: Option<f64>,
    pub(super) depth_of_discharge: Option<f64>,
    pub(super) efficiency: Option<f64>,
    pub(super) loss_coefficient: Option<f64>,
    pub(super) capacity_loss_coefficient: Option<f64>,
    pub(super) power_efficiency_curve: Option<Vec<(f64, f64)>>,
    pub(super) capacity_power_curve: Option<Vec<(f64, f64)>>,
}

/// A charger of a building.
pub(super) struct ChargerSchema {
    pub(super) name: String,
    /// File of its schedule.
    pub(super) schedule: String,
    pub(super) max_charging_kw: f64,
    pub(super) min_charging_kw: f64,
    pub(super) max_discharging_kw: f64,
    pub(super) min_discharging_kw: f64,
    pub(super) efficiency: f64,
    pub(super) charge_curve: Option<Vec<(f64, f64)>>,
    pub(super) discharge_curve: Option<Vec<(f64, f64)>>,
}

/// The limits on the chargers of a building.
pub(super) struct LimitsSchema {
    pub(super) building_kw: Option<f64>,
    pub(super) phases: Vec<PhaseSchema>,
    /// Whether agents observe the room below the limits, the violation, and the phase of each charger.
    pub(super) show_headroom: bool,
    pub(super) show_violation: bool,
    pub(super) show_phases: bool,
}

/// A phase of a building, with the names of its chargers.
pub(super) struct PhaseSchema {
    pub(super) name: String,
    pub(super) limit_kw: Option<f64>,
    pub(super) chargers: Vec<String>,
}

/// Power limit of chargers without one, in kW; CityLearn's constant.
const DEFAULT_POWER_KW: f64 = 50.0;

pub(super) fn parse_vehicles(place: &Place, root: &Map<String, Value>) -> Result<Vec<VehicleSchema>, EnergyError> {
    if present(root, "electric_vehicles_def").is_none() {
        return Ok(Vec::new());
    }
    let mut vehicles = Vec::new();
    for (name, vehicle) in place.child(root, "electric_vehicles_def")? {
        let place = place.at("electric_vehicles_def").at(name);
        place.plain(name)?;
        let vehicle = place.object(vehicle)?;
        place.keys(vehicle, &["include", "type", "battery"], &[])?;
        if !place.flag(vehicle, "include", true)? {
            continue;
        }
        let battery = vehicle.get("battery").ok_or_else(|| place.fail("needs `battery`"))?;
        let place = place.at("battery");
        let attributes = place.attributes(battery)?;
        place.keys(place.object(battery)?, &DEVICE_KEYS, &[])?;
        place.at("attributes").keys(attributes, &BATTERY_KEYS, &[])?;
        let optional = |key: &str, low: f64, high: f64| optional(&place, attributes, key, low, high);
        let positive = f64::MIN_POSITIVE;
        let needed = |key: &str, unit: &str| {
            optional(key, positive, MOST)?.ok_or_else(|| place.fail(&format!("needs `{key}`, in {unit}")))
        };
        vehicles.push(VehicleSchema {
            name: name.clone(),
            capacity_kwh: needed("capacity", "kWh")?,
            nominal_power_kw: needed("nominal_power", "kW")?,
            initial_soc: optional("initial_soc", 0.0, 1.0)?,
            depth_of_discharge: optional("depth_of_discharge", 0.0, 1.0)?,
            efficiency: optional("efficiency", positive, 1.0)?,
            loss_coefficient: optional("loss_coefficient", 0.0, 0.99)?,
            capacity_loss_coefficient: optional("capacity_loss_coefficient", 0.0, 1.0)?,
            power_efficiency_curve: place.points(attributes, "power_efficiency_curve")?,
            capacity_power_curve: place.points(attributes, "capacity_power_curve")?,
        });
    }
    Ok(vehicles)
}

/// Keys of a charger.
const CHARGER_KEYS: [&str; 6] =
    ["type", "autosize", "autosize_attributes", "attributes", "charger_simulation", "noise_std"];

/// Attributes of a charger; the first is a limit of no version, and the second a label.
const CHARGER_ATTRIBUTES: [&str; 11] = [
    "nominal_power",
    "charger_type",
    "efficiency",
    "charge_efficiency_curve",
    "discharge_efficiency_curve",
    "max_charging_power",
    "min_charging_power",
    "max_discharging_power",
    "min_discharging_power",
    "seconds_per_time_step",
    "phase_connection",
];

/// The chargers of `building`; `steered` is whether they have actions.
pub(super) fn parse_chargers(
    place: &Place,
    building: &Map<String, Value>,
    steered: bool,
) -> Result<Vec<ChargerSchema>, EnergyError> {
    if present(building, "chargers").is_none() {
        return Ok(Vec::new());
    }
    let mut chargers = Vec::new();
    for (name, charger) in place.child(building, "chargers")? {
        let place = place.at("chargers").at(name);
        place.plain(name)?;
        if !steered {
            return Err(place.fail("needs the active action `electric_vehicle_storage`"));
        }
        let charger_object = place.object(charger)?;
        let schedule =
            present(charger_object, "charger_simulation").ok_or_else(|| place.fail("needs `charger_simulation`"))?;
        if present(charger_object, "noise_std").is_some_and(|noise| noise.as_f64() != Some(0.0)) {
            return Err(place.unsupported("noise in the states of charge (`noise_std`)"));
        }
        let schedule = place.at("charger_simulation").text(schedule)?;
        place.keys(charger_object, &CHARGER_KEYS, &[])?;
        let attributes = place.attributes(charger)?;
        place.at("attributes").keys(attributes, &CHARGER_ATTRIBUTES, &[])?;
        let power = |key: &str, default: f64| -> Result<f64, EnergyError> {
            Ok(optional(&place, attributes, key, 0.0, MOST)?.unwrap_or(default))
        };
        let charger = ChargerSchema {
            name: name.clone(),
            schedule,
            max_charging_kw: power("max_charging_power", DEFAULT_POWER_KW)?,
            min_charging_kw: power("min_charging_power", 0.0)?,
            max_discharging_kw: power("max_discharging_power", DEFAULT_POWER_KW)?,
            min_discharging_kw: power("min_discharging_power", 0.0)?,
            efficiency: optional(&place, attributes, "efficiency", f64::MIN_POSITIVE, 1.0)?.unwrap_or(1.0),
            charge_curve: place.points(attributes, "charge_efficiency_curve")?,
            discharge_curve: place.points(attributes, "discharge_efficiency_curve")?,
        };
        for (direction, least, most) in [
            ("charging", charger.min_charging_kw, charger.max_charging_kw),
            ("discharging", charger.min_discharging_kw, charger.max_discharging_kw),
        ] {
            if least > most {
                let rule =
                    format!("`min_{direction}_power` must be at most `max_{direction}_power` {most}, got {least}");
                return Err(place.fail(&rule));
            }
        }
        chargers.push(charger);
    }
    Ok(chargers)
}

/// The limits on the chargers of `building`, if it has any.
pub(super) fn parse_limits(place: &Place, building: &Map<String, Value>) -> Result<Option<LimitsSchema>, EnergyError> {
    if building.get("charging_constraints").is_none_or(is_off) {
        return Ok(None);
    }
    let limits = place.child(building, "charging_constraints")?;
    let place = place.at("charging_constraints");
    place.keys(
        limits,
        &["building_limit_kw", "phases", "observations"],
        &["electrical_service", "expose_observations"],
    )?;
    let blank = Map::new();
    let shown = match present(limits, "observations") {
        Some(_) => place.child(limits, "observations")?,
        None => &blank,
    };
    place.at("observations").keys(shown, &["headroom", "violation", "phase_encoding"], &["headroom_export"])?;
    let mut phases: Vec<PhaseSchema> = Vec::new();
    for (index, phase) in present(limits, "phases").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let place = place.at("phases").at(&index.to_string());
        let phase = place.object(phase)?;
        place.keys(phase, &["name", "limit_kw", "chargers"], &[])?;
        let name = match present(phase, "name") {
            Some(name) => place.at("name").text(name)?,
            None => format!("phase_{}", index + 1),
        };
        let chargers = place.names(phase, "chargers")?;
        if let Some(twice) = chargers.iter().find(|name| phases.iter().any(|phase| phase.chargers.contains(name))) {
            return Err(place.fail(&format!("must have chargers of no other phase, got {twice}")));
        }
        phases.push(PhaseSchema { name, limit_kw: optional(&place, phase, "limit_kw", 0.0, MOST)?, chargers });
    }
    Ok(Some(LimitsSchema {
        building_kw: optional(&place, limits, "building_limit_kw", 0.0, MOST)?,
        show_headroom: place.flag(shown, "headroom", true)?,
        show_violation: place.flag(shown, "violation", true)?,
        show_phases: place.flag(shown, "phase_encoding", false)? && !phases.is_empty(),
        phases,
    }))
}

/// Names and files of the washing machines of `building`; `steered` is whether they have actions.
pub(super) fn parse_machines(
    place: &Place,
    building: &Map<String, Value>,
    steered: bool,
) -> Result<Vec<(String, String)>, EnergyError> {
    if building.get("washing_machines").is_none_or(is_off) {
        return Ok(Vec::new());
    }
    let mut machines = Vec::new();
    for (name, machine) in place.child(building, "washing_machines")? {
        let place = place.at("washing_machines").at(name);
        place.plain(name)?;
        if !steered {
            return Err(place.fail("needs the active action `washing_machine`"));
        }
        let machine = place.object(machine)?;
        place.keys(machine, &["type", "autosize", FILE], &[])?;
        if place.flag(machine, "autosize", false)? {
            return Err(place.unsupported("automatic sizing (`autosize`)"));
        }
        let file = present(machine, FILE).ok_or_else(|| place.fail(&format!("needs `{FILE}`")))?;
        machines.push((name.clone(), place.at(FILE).text(file)?));
    }
    Ok(machines)
}

/// Key of the file of a washing machine.
const FILE: &str = "washing_machine_energy_simulation";

fn optional(
    place: &Place,
    attributes: &Map<String, Value>,
    key: &str,
    low: f64,
    high: f64,
) -> Result<Option<f64>, EnergyError> {
    match present(attributes, key) {
        None => Ok(None),
        Some(value) => place.in_range(key, place.at(key).number(value)?, low, high).map(Some),
    }
}
