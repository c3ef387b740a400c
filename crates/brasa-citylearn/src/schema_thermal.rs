//! The part of a schema on thermal devices, thermal storages and power outages.

use brasa_power::EnergyError;
use serde_json::{Map, Value};

use super::{
    place::{Place, present},
    schema::{DEVICE_KEYS, MOST},
    schema_dynamics::DynamicsSchema,
};

/// The end uses of heat and cold, in CityLearn's order.
pub(super) const USES: [&str; 3] = ["cooling", "heating", "dhw"];

/// Thermal devices, storages and outages of a building.
pub(super) struct ThermalSchema {
    /// CityLearn's class, which enters the seeds of devices.
    pub(super) building_type: String,
    /// By end use.
    pub(super) devices: [Option<DeviceSchema>; 3],
    /// By end use; storages without an active action are left out.
    pub(super) tanks: [Option<TankSchema>; 3],
    pub(super) outages: Option<OutageSchema>,
    /// The network of indoor temperatures.
    pub(super) dynamics: Option<DynamicsSchema>,
    /// Active actions of the building, in the schema's order, without those of thermal storages that it does not have.
    pub(super) actions: Vec<String>,
}

/// A heat pump or an electric heater; missing parameters are sampled.
pub(super) struct DeviceSchema {
    pub(super) device_type: String,
    pub(super) is_heat_pump: bool,
    pub(super) random_seed: Option<u64>,
    pub(super) nominal_kw: f64,
    pub(super) efficiency: Option<f64>,
    pub(super) target_heating_c: Option<f64>,
    pub(super) target_cooling_c: Option<f64>,
    pub(super) sizing: Option<Sizing>,
}

/// A thermal storage; missing parameters are sampled.
pub(super) struct TankSchema {
    pub(super) device_type: String,
    pub(super) random_seed: Option<u64>,
    pub(super) capacity_kwh: f64,
    pub(super) efficiency: Option<f64>,
    pub(super) loss_coefficient: Option<f64>,
    pub(super) initial_soc: f64,
    pub(super) max_input_kw: Option<f64>,
    pub(super) max_output_kw: Option<f64>,
    pub(super) sizing: Option<Sizing>,
}

/// Size from the largest demand in the data, times a factor.
pub(super) struct Sizing {
    pub(super) safety_factor: Option<f64>,
}

/// Source of the outages that a building simulates.
pub(super) enum OutageSchema {
    /// The column `power_outage` of the building's file.
    Data,
    /// CityLearn's `ReliabilityMetricsPowerOutage`.
    Metrics {
        random_seed: u64,
        /// Mean number of days with an outage per year.
        saifi: f64,
        /// Mean duration in minutes.
        caidi: f64,
        /// Steps of a day at which an outage may start; every one if empty.
        start_steps: Vec<u64>,
    },
}

impl ThermalSchema {
    /// Reads the devices of a building; `actions` are its active actions in the schema's order.
    pub(super) fn parse(
        place: &Place,
        building: &Map<String, Value>,
        building_type: &str,
        mut actions: Vec<String>,
    ) -> Result<Self, EnergyError> {
        let (mut devices, mut tanks) = ([const { None }; 3], [const { None }; 3]);
        for (slot, name) in USES.iter().enumerate() {
            let key = format!("{name}_device");
            if let Some(value) = present(building, &key) {
                devices[slot] = Some(parse_device(&place.at(&key), value, slot)?);
            }
            let key = format!("{name}_storage");
            if let Some(value) = present(building, &key).filter(|_| actions.contains(&key)) {
                tanks[slot] = parse_tank(&place.at(&key), value)?;
            } else {
                actions.retain(|action| *action != key);
            }
        }
        let outages = present(building, "power_outage").map(|value| parse_outages(&place.at("power_outage"), value));
        let dynamics = parse_dynamics(place, building, building_type, &actions)?;
        Ok(Self {
            building_type: building_type.into(),
            devices,
            tanks,
            outages: outages.transpose()?.flatten(),
            dynamics,
            actions,
        })
    }
}

/// The network of a building; only buildings with one have actions for devices.
fn parse_dynamics(
    place: &Place,
    building: &Map<String, Value>,
    building_type: &str,
    actions: &[String],
) -> Result<Option<DynamicsSchema>, EnergyError> {
    let value = present(building, "dynamics");
    if building_type.ends_with(".LSTMDynamicsBuilding") != value.is_some() {
        let rule =
            format!("must have `dynamics` if and only if its type is a building with dynamics, got `{building_type}`");
        return Err(place.fail(&rule));
    }
    let is_active = |name: &str| actions.iter().any(|action| action == name);
    let devices = ["cooling_device", "heating_device", "cooling_or_heating_device"].map(is_active);
    if let Some(name) = actions.iter().find(|action| action.ends_with("_device"))
        && value.is_none()
    {
        return Err(place.fail(&format!("has the active action `{name}`, which needs `dynamics`")));
    }
    if devices.iter().filter(|active| **active).count() > 1 {
        let rule = "must have one active action of `cooling_device`, `heating_device` and `cooling_or_heating_device`";
        return Err(place.fail(rule));
    }
    value.map(|value| DynamicsSchema::parse(&place.at("dynamics"), value)).transpose()
}

fn parse_device(place: &Place, value: &Value, slot: usize) -> Result<DeviceSchema, EnergyError> {
    let device_type = place.device_type(value)?;
    let is_heat_pump = device_type.ends_with(".HeatPump");
    // Nothing cools by electric heat.
    let is_known = is_heat_pump || (device_type.ends_with(".ElectricHeater") && slot > 0);
    if !is_known {
        return Err(place.unsupported(&format!("the device type `{device_type}`")));
    }
    let attributes = place.sized_attributes(value)?;
    place.keys(place.object(value)?, &DEVICE_KEYS, &[])?;
    place.at("attributes").keys(attributes, &HEATER_KEYS, &[])?;
    Ok(DeviceSchema {
        is_heat_pump,
        random_seed: place.optional(attributes, "random_seed", 0.0, f64::from(u32::MAX))?.map(|seed| seed as u64),
        nominal_kw: place.optional(attributes, "nominal_power", 0.0, MOST)?.unwrap_or(0.0),
        efficiency: place.optional(attributes, "efficiency", LEAST_EFFICIENCY, 1.0)?,
        target_heating_c: place.optional(attributes, "target_heating_temperature", -273.15, 1000.0)?,
        target_cooling_c: place.optional(attributes, "target_cooling_temperature", -273.15, 1000.0)?,
        sizing: parse_sizing(place, value)?,
        device_type,
    })
}

fn parse_tank(place: &Place, value: &Value) -> Result<Option<TankSchema>, EnergyError> {
    let device_type = place.device_type(value)?;
    if !device_type.ends_with(".StorageTank") {
        return Err(place.unsupported(&format!("the device type `{device_type}`")));
    }
    let attributes = place.sized_attributes(value)?;
    place.keys(place.object(value)?, &DEVICE_KEYS, &[])?;
    place.at("attributes").keys(attributes, &TANK_KEYS, &[])?;
    let sizing = parse_sizing(place, value)?;
    let capacity_kwh = place.optional(attributes, "capacity", 0.0, MOST)?.unwrap_or(0.0);
    if capacity_kwh == 0.0 && sizing.is_none() {
        return Ok(None);
    }
    let positive = f64::MIN_POSITIVE;
    Ok(Some(TankSchema {
        device_type,
        random_seed: place.optional(attributes, "random_seed", 0.0, f64::from(u32::MAX))?.map(|seed| seed as u64),
        capacity_kwh,
        efficiency: place.optional(attributes, "efficiency", positive, 1.0)?,
        loss_coefficient: place.optional(attributes, "loss_coefficient", 0.0, 0.99)?,
        initial_soc: place.optional(attributes, "initial_soc", 0.0, 1.0)?.unwrap_or(0.0),
        max_input_kw: place.optional(attributes, "max_input_power", 0.0, MOST)?,
        max_output_kw: place.optional(attributes, "max_output_power", 0.0, MOST)?,
        sizing,
    }))
}

fn parse_sizing(place: &Place, value: &Value) -> Result<Option<Sizing>, EnergyError> {
    let sizing = place.sizing(value, &["safety_factor"])?;
    let factor = |sizing| place.at("autosize_attributes").optional(sizing, "safety_factor", 0.0, 1e6);
    sizing.map(|sizing| Ok(Sizing { safety_factor: factor(sizing)? })).transpose()
}

/// Least efficiency of what demands are divided by.
const LEAST_EFFICIENCY: f64 = 1e-3;

/// Attributes of heat pumps and electric heaters.
const HEATER_KEYS: [&str; 6] = [
    "nominal_power",
    "efficiency",
    "target_heating_temperature",
    "target_cooling_temperature",
    "random_seed",
    "seconds_per_time_step",
];

/// Attributes of thermal storages.
const TANK_KEYS: [&str; 8] = [
    "capacity",
    "efficiency",
    "loss_coefficient",
    "initial_soc",
    "max_input_power",
    "max_output_power",
    "random_seed",
    "seconds_per_time_step",
];

fn parse_outages(place: &Place, value: &Value) -> Result<Option<OutageSchema>, EnergyError> {
    let object = place.object(value)?;
    let model = "stochastic_power_outage_model";
    place.keys(object, &["simulate_power_outage", "stochastic_power_outage", model], &[])?;
    if !place.flag(object, "simulate_power_outage", false)? {
        return Ok(None);
    }
    if !place.flag(object, "stochastic_power_outage", false)? {
        return Ok(Some(OutageSchema::Data));
    }
    let (place, model) = (place.at(model), place.child(object, model)?);
    place.keys(model, &["type", "attributes"], &[])?;
    let kind = present(model, "type").map(|kind| place.at("type").text(kind)).transpose()?.unwrap_or_default();
    if !kind.ends_with(".ReliabilityMetricsPowerOutage") {
        return Err(place.unsupported(&format!("the outage model `{kind}`")));
    }
    let attributes = place.child(model, "attributes")?;
    let place = place.at("attributes");
    place.keys(attributes, &["random_seed", "saifi", "caidi", "start_time_steps"], &[])?;
    let random_seed = place
        .optional(attributes, "random_seed", 0.0, f64::from(u32::MAX))?
        .ok_or_else(|| place.fail("needs `random_seed`; CityLearn draws outages without one anew each time"))?;
    let start_steps = match present(attributes, "start_time_steps") {
        None => Vec::new(),
        Some(value) => serde_json::from_value(value.clone())
            .map_err(|error| place.at("start_time_steps").fail(&format!("must be a list of whole numbers: {error}")))?,
    };
    Ok(Some(OutageSchema::Metrics {
        random_seed: random_seed as u64,
        saifi: place.optional(attributes, "saifi", 0.0, 365.0)?.unwrap_or(1.436),
        caidi: place.optional(attributes, "caidi", 0.0, 1e6)?.unwrap_or(331.2),
        start_steps,
    }))
}
