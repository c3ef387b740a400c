//! The part of a schema on thermal devices, thermal storages and power outages.

use brasa_power::EnergyError;

use super::{schema::MOST, schema_dynamics::DynamicsSchema, section::Section};

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
        building: &Section,
        building_type: &str,
        mut actions: Vec<String>,
    ) -> Result<Self, EnergyError> {
        let (mut devices, mut tanks) = ([const { None }; 3], [const { None }; 3]);
        for (slot, name) in USES.iter().enumerate() {
            if let Some(device) = building.section(&format!("{name}_device"))? {
                devices[slot] = Some(parse_device(&device, slot)?);
            }
            let key = format!("{name}_storage");
            match building.section(&key)? {
                Some(tank) if actions.contains(&key) => tanks[slot] = parse_tank(&tank)?,
                _ => actions.retain(|action| *action != key),
            }
        }
        let outages = building.section("power_outage")?.map(|outages| parse_outages(&outages));
        let dynamics = parse_dynamics(building, building_type, &actions)?;
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
    building: &Section,
    building_type: &str,
    actions: &[String],
) -> Result<Option<DynamicsSchema>, EnergyError> {
    let dynamics = building.section("dynamics")?;
    if building_type.ends_with(".LSTMDynamicsBuilding") != dynamics.is_some() {
        let rule =
            format!("must have `dynamics` if and only if its type is a building with dynamics, got `{building_type}`");
        return Err(building.fail(&rule));
    }
    let is_active = |name: &str| actions.iter().any(|action| action == name);
    let devices = ["cooling_device", "heating_device", "cooling_or_heating_device"].map(is_active);
    if let Some(name) = actions.iter().find(|action| action.ends_with("_device"))
        && dynamics.is_none()
    {
        return Err(building.fail(&format!("has the active action `{name}`, which needs `dynamics`")));
    }
    if devices.iter().filter(|active| **active).count() > 1 {
        let rule = "must have one active action of `cooling_device`, `heating_device` and `cooling_or_heating_device`";
        return Err(building.fail(rule));
    }
    dynamics.map(|dynamics| DynamicsSchema::parse(&dynamics)).transpose()
}

/// The class of a device, which must be one of `known`.
fn device_type(device: &Section, known: &[&str]) -> Result<String, EnergyError> {
    let device_type = device.text("type")?.ok_or_else(|| device.needs("type", ""))?;
    match known.iter().any(|kind| device_type.ends_with(kind)) {
        true => Ok(device_type),
        false => Err(device.unsupported(&format!("the device type `{device_type}`"))),
    }
}

fn parse_device(device: &Section, slot: usize) -> Result<DeviceSchema, EnergyError> {
    // Nothing cools by electric heat.
    let known = [".HeatPump", ".ElectricHeater"];
    let device_type = device_type(device, &known[..if slot == 0 { 1 } else { 2 }])?;
    let (attributes, sizing) = device.sized_attributes()?;
    let read = DeviceSchema {
        is_heat_pump: device_type.ends_with(".HeatPump"),
        random_seed: attributes.seed()?,
        nominal_kw: attributes.number("nominal_power", 0.0, MOST)?.unwrap_or(0.0),
        efficiency: attributes.number("efficiency", LEAST_EFFICIENCY, 1.0)?,
        target_heating_c: attributes.number("target_heating_temperature", -273.15, 1000.0)?,
        target_cooling_c: attributes.number("target_cooling_temperature", -273.15, 1000.0)?,
        sizing: sizing.map(|sizing| Sizing::parse(&sizing)).transpose()?,
        device_type,
    };
    attributes.close(&["seconds_per_time_step"], &[])?;
    Ok(read)
}

fn parse_tank(device: &Section) -> Result<Option<TankSchema>, EnergyError> {
    let device_type = device_type(device, &[".StorageTank"])?;
    let (attributes, sizing) = device.sized_attributes()?;
    let read = TankSchema {
        device_type,
        random_seed: attributes.seed()?,
        capacity_kwh: attributes.number("capacity", 0.0, MOST)?.unwrap_or(0.0),
        efficiency: attributes.number("efficiency", f64::MIN_POSITIVE, 1.0)?,
        loss_coefficient: attributes.number("loss_coefficient", 0.0, 0.99)?,
        initial_soc: attributes.number("initial_soc", 0.0, 1.0)?.unwrap_or(0.0),
        max_input_kw: attributes.number("max_input_power", 0.0, MOST)?,
        max_output_kw: attributes.number("max_output_power", 0.0, MOST)?,
        sizing: sizing.map(|sizing| Sizing::parse(&sizing)).transpose()?,
    };
    attributes.close(&["seconds_per_time_step"], &[])?;
    Ok(Some(read).filter(|tank| tank.capacity_kwh > 0.0 || tank.sizing.is_some()))
}

impl Sizing {
    fn parse(sizing: &Section) -> Result<Self, EnergyError> {
        let safety_factor = sizing.number("safety_factor", 0.0, 1e6)?;
        sizing.close_strictly(&[])?;
        Ok(Self { safety_factor })
    }
}

/// Least efficiency of what demands are divided by.
const LEAST_EFFICIENCY: f64 = 1e-3;

fn parse_outages(outages: &Section) -> Result<Option<OutageSchema>, EnergyError> {
    let simulates = outages.flag("simulate_power_outage", false)?;
    let is_stochastic = outages.flag("stochastic_power_outage", false)?;
    let (key, at_random) = ("stochastic_power_outage_model", simulates && is_stochastic);
    let model = if at_random { outages.section(key)? } else { None };
    outages.close(&[key], &[])?;
    if !at_random {
        return Ok(simulates.then_some(OutageSchema::Data));
    }
    let model = model.ok_or_else(|| outages.needs(key, ""))?;
    let kind = model.text("type")?.unwrap_or_default();
    if !kind.ends_with(".ReliabilityMetricsPowerOutage") {
        return Err(model.unsupported(&format!("the outage model `{kind}`")));
    }
    let attributes = model.section("attributes")?;
    model.close(&[], &[])?;
    let attributes = attributes.ok_or_else(|| model.needs("attributes", ""))?;
    let start_steps = match attributes.get("start_time_steps") {
        None => Vec::new(),
        Some(value) => serde_json::from_value(value.clone()).map_err(|error| {
            attributes.fail_at("start_time_steps", &format!("must be a list of whole numbers: {error}"))
        })?,
    };
    let (saifi, caidi) = (attributes.number("saifi", 0.0, 365.0)?, attributes.number("caidi", 0.0, 1e6)?);
    let random_seed = attributes.seed()?;
    attributes.close(&[], &[])?;
    Ok(Some(OutageSchema::Metrics {
        random_seed: random_seed
            .ok_or_else(|| attributes.needs("random_seed", "; CityLearn draws outages without one anew each time"))?,
        saifi: saifi.unwrap_or(1.436),
        caidi: caidi.unwrap_or(331.2),
        start_steps,
    }))
}
