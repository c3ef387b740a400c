//! Reading of buildings' thermal devices, storages, demands and outages.

use std::f64::consts::TAU;

use brasa_env::field;
use brasa_power::EnergyError;

use super::{
    district::{Columns, Tables},
    dynamics::{Dynamics, Scale},
    homes::{Home, HomeRow, Room},
    lstm::Lstm,
    observation::PERIODS,
    outages,
    schema::{BuildingSchema, Schema},
    schema_dynamics::DynamicsSchema,
    schema_thermal::{OutageSchema, USES},
    thermal::{Device, Site, Tank},
};

/// CityLearn's comfort band if the data has none.
const COMFORT_BAND_K: f32 = 2.0;

/// The thermal part of a district and its outages.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Homes {
    pub(super) homes: Vec<Home>,
    /// `[row * n_buildings + building]`.
    pub(super) rows: Vec<HomeRow>,
    /// Whether any building has a thermal demand, a steered storage or outages; otherwise nothing here has an effect.
    pub(super) matter: bool,
}

impl Homes {
    pub(super) fn read(tables: &mut Tables, schema: &Schema, random_seed: u64) -> Result<Self, EnergyError> {
        let n_buildings = schema.buildings.len();
        let n_rows = schema.last_row - schema.first_row + 1;
        let mut read = Self {
            homes: Vec::with_capacity(n_buildings),
            rows: vec![HomeRow::default(); n_rows * n_buildings],
            matter: false,
        };
        for (index, building) in schema.buildings.iter().enumerate() {
            read.add(tables, schema, building, (index, random_seed))?;
        }
        Ok(read)
    }

    fn add(
        &mut self,
        tables: &mut Tables,
        schema: &Schema,
        building: &BuildingSchema,
        (index, random_seed): (usize, u64),
    ) -> Result<(), EnergyError> {
        let thermal = &building.thermal;
        let site = Site { random_seed, building: &building.name, building_type: &thermal.building_type };
        let n_rows = schema.last_row - schema.first_row + 1;
        let outdoor_c = tables.temperatures(schema, building)?;
        let mut home = Home { devices: [Device::NONE; 3], tanks: [const { None }; 3], dynamics: None };
        let mut rows = vec![HomeRow::default(); n_rows];
        for (slot, name) in USES.iter().enumerate() {
            let demand_kwh = tables.demand(&format!("{name}_demand"), schema, building)?;
            if let Some(device) = &thermal.devices[slot] {
                home.devices[slot] = Device::new(device, slot, site, &demand_kwh, &outdoor_c);
            } else if let Some(row) = demand_kwh.iter().position(|energy| *energy != 0.0) {
                return Err(EnergyError::Schema {
                    path: tables.path(&building.energy_simulation),
                    reason: format!(
                        "`{}` has `{name}_demand` in row {}, but no `{name}_device`",
                        building.name,
                        schema.first_row + row + 2
                    ),
                });
            }
            let tank = thermal.tanks[slot].as_ref();
            home.tanks[slot] = tank.and_then(|tank| Tank::new(tank, slot, site, &demand_kwh));
            self.matter |= home.tanks[slot].is_some();
            for (row, demand) in demand_kwh.iter().enumerate() {
                let cop = home.devices[slot].cop(slot, outdoor_c[row]);
                rows[row].demand_kwh[slot] = *demand;
                rows[row].cop[slot] = cop;
                rows[row].ideal_kwh += (f64::from(*demand) / cop) as f32;
                self.matter |= *demand != 0.0;
            }
        }
        let watts_per_kw = tables.demand("solar_generation", schema, building)?;
        for (row, watts) in rows.iter_mut().zip(watts_per_kw) {
            row.pv_kwh = building.pv_kw * f64::from(watts) / 1000.0 * (schema.seconds_per_step / 3600.0);
        }
        if let Some(outages) = &thermal.outages {
            self.matter = true;
            let hours = schema.seconds_per_step / 3600.0;
            let signals = match outages {
                OutageSchema::Metrics { .. } => outages::drawn(outages, n_rows, hours),
                OutageSchema::Data => tables.outages(schema, building)?,
            };
            for (row, is_outage) in rows.iter_mut().zip(signals.into_iter().flatten()) {
                row.is_outage = is_outage;
            }
        }
        let mut optional = |name: &str, default: f32| Columns::optional(name, default, tables, schema, building);
        let temperature_c = optional("indoor_dry_bulb_temperature", 0.0)?;
        let cooling_set_c = optional("indoor_dry_bulb_temperature_cooling_set_point", 0.0)?;
        let heating_set_c = optional("indoor_dry_bulb_temperature_heating_set_point", 0.0)?;
        let (band_k, occupants) = (optional("comfort_band", COMFORT_BAND_K)?, optional("occupant_count", 0.0)?);
        let hvac_mode = optional("hvac_mode", 1.0)?;
        for (row, values) in rows.iter_mut().enumerate() {
            values.room = Room {
                temperature_c: temperature_c[row],
                cooling_set_c: cooling_set_c[row],
                heating_set_c: heating_set_c[row],
                band_k: band_k[row],
                occupants: occupants[row],
                hvac_mode: hvac_mode[row] as u8,
            };
        }
        if let Some(dynamics) = &thermal.dynamics {
            self.matter = true;
            home.dynamics = Some(read_dynamics(dynamics, tables, schema, building)?);
        }
        let n_buildings = schema.buildings.len();
        for (row, values) in rows.into_iter().enumerate() {
            self.rows[row * n_buildings + index] = values;
        }
        self.homes.push(home);
        Ok(())
    }

    /// The rows of a building.
    pub(super) fn of(&self, building: usize) -> impl Iterator<Item = &HomeRow> {
        self.rows.iter().skip(building).step_by(self.homes.len())
    }
}

/// The network of a building, with its weights from the file beside the one that the schema names.
fn read_dynamics(
    dynamics: &DynamicsSchema,
    tables: &mut Tables,
    schema: &Schema,
    building: &BuildingSchema,
) -> Result<Dynamics, EnergyError> {
    let stem = dynamics.file.strip_suffix(".pth").unwrap_or(&dynamics.file);
    let file = format!("{}.safetensors", stem.strip_suffix(".safetensors").unwrap_or(stem));
    let fail = |reason: String| EnergyError::Schema { path: tables.path(&file), reason: field::printable(&reason) };
    let bytes = tables.bytes(&file).map_err(|error| {
        fail(format!(
            "`{}` needs the weights of `{}` in this file, which `brasa data import` writes: {error}",
            building.name, dynamics.file
        ))
    })?;
    let lstm = Lstm::read(&bytes, dynamics.inputs.len(), dynamics.hidden, dynamics.layers).map_err(fail)?;
    let n_rows = schema.last_row - schema.first_row + 1;
    let n_inputs = dynamics.inputs.len();
    let mut model = Dynamics {
        lstm,
        lookback: dynamics.lookback,
        n_inputs,
        known: vec![0.0; n_rows * n_inputs],
        temperature: (n_inputs, Scale { low: 0.0, high: 1.0 }),
        demands: Vec::new(),
    };
    for (place, (name, scale)) in dynamics.inputs.iter().enumerate() {
        if name == "indoor_dry_bulb_temperature" {
            model.temperature = (place, *scale);
        } else if let Some(slot) = USES.iter().position(|part| name.strip_suffix("_demand") == Some(*part)) {
            model.demands.push((place, slot, *scale));
        } else {
            let values = input(name, tables, schema, building)?;
            for (row, value) in values.into_iter().enumerate() {
                model.known[row * n_inputs + place] = scale.scaled(value);
            }
        }
    }
    if model.temperature.0 == n_inputs {
        let path = tables.path("schema.json");
        let reason =
            format!("`{}` needs `indoor_dry_bulb_temperature` among the inputs of its dynamics", building.name);
        return Err(EnergyError::Schema { path, reason });
    }
    Ok(model)
}

/// A known input of a network: periodic ones as sine and cosine.
fn input(name: &str, tables: &mut Tables, schema: &Schema, building: &BuildingSchema) -> Result<Vec<f64>, EnergyError> {
    for (suffix, wave) in [("_sin", f64::sin as fn(f64) -> f64), ("_cos", f64::cos)] {
        let period = PERIODS.iter().find(|(periodic, _)| name.strip_suffix(suffix) == Some(*periodic));
        if let Some((periodic, period)) = period {
            let values = tables.known(periodic, schema, building)?;
            return Ok(values.into_iter().map(|x| wave(TAU * f64::from(x) / *period as f64)).collect());
        }
    }
    let optional = [
        "occupant_count",
        "indoor_dry_bulb_temperature_cooling_set_point",
        "indoor_dry_bulb_temperature_heating_set_point",
    ];
    let values = match optional.contains(&name) {
        true => Columns::optional(name, 0.0, tables, schema, building)?,
        false if name == "solar_generation" => {
            let reason = format!("`{}` has dynamics with the input `{name}`, which is not modeled", building.name);
            return Err(EnergyError::Schema { path: tables.path("schema.json"), reason });
        }
        false => tables.known(name, schema, building)?,
    };
    Ok(values.into_iter().map(f64::from).collect())
}

/// The known series of a building that CityLearn derives from its data, by the name of the observation.
pub(super) fn derived(
    name: &str,
    tables: &mut Tables,
    schema: &Schema,
    (building, index): (&BuildingSchema, usize),
    homes: &Homes,
) -> Result<Option<Vec<f32>>, EnergyError> {
    if let Some(slot) = USES.iter().position(|part| name.strip_suffix("_device_efficiency") == Some(*part)) {
        return Ok(Some(homes.of(index).map(|row| row.cop[slot] as f32).collect()));
    }
    let n_rows = schema.last_row - schema.first_row + 1;
    let default = match name {
        "power_outage" => {
            return Ok(Some(homes.of(index).map(|row| f32::from(u8::from(row.is_outage))).collect()));
        }
        "indoor_dry_bulb_temperature_cooling_delta" | "indoor_dry_bulb_temperature_heating_delta" => {
            let temperature = Columns::optional("indoor_dry_bulb_temperature", 0.0, tables, schema, building)?;
            let set_point = name.replace("_delta", "_set_point");
            let set_point = Columns::optional(&set_point, 0.0, tables, schema, building)?;
            return Ok(Some(temperature.iter().zip(set_point).map(|(actual, wanted)| actual - wanted).collect()));
        }
        "comfort_band" => COMFORT_BAND_K,
        "hvac_mode" => 1.0,
        "occupant_count"
        | "daylight_savings_status"
        | "average_unmet_cooling_setpoint_difference"
        | "indoor_relative_humidity"
        | "indoor_dry_bulb_temperature_cooling_set_point"
        | "indoor_dry_bulb_temperature_heating_set_point" => 0.0,
        _ => return Ok(None),
    };
    let values = Columns::optional(name, default, tables, schema, building)?;
    debug_assert_eq!(values.len(), n_rows, "a column has all rows");
    Ok(Some(values))
}
