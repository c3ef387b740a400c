//! The vehicles and chargers of a schema.

use serde_json::{Map, Value};

use super::schema::{MOST, Place, present};
use crate::EnergyError;

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
        if !place.flag(vehicle, "include", true)? {
            continue;
        }
        let battery = vehicle.get("battery").ok_or_else(|| place.fail("needs `battery`"))?;
        let place = place.at("battery");
        let attributes = place.attributes(battery)?;
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
        let attributes = place.attributes(charger)?;
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
