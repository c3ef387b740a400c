//! Reads the schedules of chargers and what agents observe of them.

use std::collections::HashMap;

use brasa_power::{EnergyError, delimited::is_missing, fail};

use super::{
    Battery, Charger, Curve, Vehicle,
    district::{Observed, Tables, What},
    limits::{ChargingLimits, Phase},
    plugs::{NO_SOC, Plug, PlugState},
    sampling::{DeviceDraw, vehicle_initial_soc},
    schema::{BuildingSchema, Schema},
    schema_vehicles::{ChargerSchema, LimitsSchema, VehicleSchema},
};

/// Depth of discharge in CityLearn 2.5 of vehicles without one.
const DEPTH_CITYLEARN25: f64 = 0.1;

/// Largest number of steps to a departure or an arrival.
const MOST_STEPS: f32 = 1e6;

/// Value of an unknown number of steps, as in CityLearn.
const NO_STEPS: f32 = -1.0;

/// The vehicles of a schema, with their missing parameters drawn from the schema's seed.
pub(super) fn make_vehicles(schema: &Schema, random_seed: u64) -> Result<Vec<Vehicle>, EnergyError> {
    schema.vehicles.iter().map(|vehicle| make_vehicle(vehicle, random_seed)).collect()
}

fn make_vehicle(schema: &VehicleSchema, random_seed: u64) -> Result<Vehicle, EnergyError> {
    let draw = DeviceDraw::from_seed(random_seed as u32);
    let curves = |efficiency: f64, power: Option<&[(f64, f64)]>, capacity: Option<&[(f64, f64)]>| {
        let field = |name: &str| format!("{}.battery.{name}", schema.name);
        let drawn = draw.power_efficiency_curve(efficiency);
        let power = Curve::through(&field("power_efficiency_curve"), power.unwrap_or(&drawn))?;
        let drawn = draw.capacity_power_curve();
        let capacity = Curve::through(&field("capacity_power_curve"), capacity.unwrap_or(&drawn))?;
        Ok::<_, EnergyError>((power, capacity))
    };
    let cells = &schema.cells;
    let efficiency = cells.efficiency.unwrap_or_else(|| draw.efficiency());
    let (power_efficiency, capacity_power) =
        curves(efficiency, cells.power_efficiency_curve.as_deref(), cells.capacity_power_curve.as_deref())?;
    let battery = Battery {
        capacity_kwh: schema.capacity_kwh,
        nominal_power_kw: schema.nominal_power_kw,
        efficiency,
        loss_coefficient: cells.loss_coefficient.unwrap_or(0.0),
        capacity_loss_coefficient: cells.capacity_loss_coefficient.unwrap_or_else(|| draw.capacity_loss_coefficient()),
        depth_of_discharge: cells.depth_of_discharge.unwrap_or(1.0),
        initial_soc: cells.initial_soc.unwrap_or_else(|| vehicle_initial_soc(random_seed, &schema.name)),
        power_efficiency,
        capacity_power,
    };
    let (power_efficiency, capacity_power) = curves(draw.efficiency(), None, None)?;
    let battery_citylearn25 = Battery {
        efficiency: draw.efficiency(),
        loss_coefficient: draw.loss_coefficient(),
        capacity_loss_coefficient: draw.capacity_loss_coefficient(),
        depth_of_discharge: cells.depth_of_discharge.unwrap_or(DEPTH_CITYLEARN25),
        power_efficiency,
        capacity_power,
        ..battery
    };
    Ok(Vehicle { name: schema.name.clone(), battery, battery_citylearn25 })
}

/// A charger of the building with the index `building`.
pub(super) fn make_charger(schema: &ChargerSchema, building: usize) -> Result<Charger, EnergyError> {
    let curve = |name: &str, points: &Option<Vec<(f64, f64)>>| match points {
        Some(points) => Curve::through(&format!("{}.{name}", schema.name), points),
        None => Ok(Curve::constant(schema.efficiency)),
    };
    Ok(Charger {
        name: schema.name.clone(),
        building,
        max_charging_kw: schema.max_charging_kw,
        min_charging_kw: schema.min_charging_kw,
        max_discharging_kw: schema.max_discharging_kw,
        min_discharging_kw: schema.min_discharging_kw,
        charge_efficiency: curve("charge_efficiency_curve", &schema.charge_curve)?,
        discharge_efficiency: curve("discharge_efficiency_curve", &schema.discharge_curve)?,
    })
}

/// The limits of the building with the index `building`; `first_charger` is the index of the first of its `chargers`.
pub(super) fn make_limits(
    schema: &LimitsSchema,
    (building, name): (usize, &str),
    chargers: &[ChargerSchema],
    first_charger: usize,
) -> Result<ChargingLimits, EnergyError> {
    let phases = schema.phases.iter().map(|phase| {
        let index = |wanted: &String| {
            let place = chargers.iter().position(|charger| charger.name == *wanted);
            let field = format!("{name}.charging_constraints.{}.chargers", phase.name);
            match place {
                Some(place) => Ok(first_charger + place),
                None => fail(&field, "must be chargers of the building", wanted),
            }
        };
        let chargers = phase.chargers.iter().map(index).collect::<Result<_, _>>()?;
        Ok(Phase { name: phase.name.clone(), limit_kw: phase.limit_kw, chargers })
    });
    Ok(ChargingLimits {
        building,
        building_kw: schema.building_kw,
        phases: phases.collect::<Result<_, EnergyError>>()?,
    })
}

/// The observations of the limits of a building; `first_shown` is the index of the first number that they show.
pub(super) fn observe_limits(
    schema: &LimitsSchema,
    limits: &ChargingLimits,
    chargers: &[ChargerSchema],
    first_charger: usize,
    first_shown: usize,
    n_rows: usize,
) -> Vec<Observed> {
    let mut observed = Vec::new();
    let mut add = |name: String, what| observed.push(Observed { name, building: Some(limits.building), what });
    if schema.show_phases {
        let mut names: Vec<&str> = limits.phases.iter().map(|phase| phase.name.as_str()).collect();
        names.sort_unstable();
        let phase_of = |charger: usize| limits.phases.iter().find(|phase| phase.chargers.contains(&charger));
        let all = first_charger..first_charger + chargers.len();
        if all.clone().any(|charger| phase_of(charger).is_none()) {
            names.push(UNASSIGNED);
        }
        for (charger, index) in chargers.iter().zip(all) {
            let mine = phase_of(index).map_or(UNASSIGNED, |phase| phase.name.as_str());
            for name in &names {
                let on = if *name == mine { 1.0 } else { 0.0 };
                add(format!("charging_phase_one_hot_{}_{name}", charger.name), What::Series(vec![on; n_rows]));
            }
        }
    }
    let building = limits.building_kw.map(|_| "charging_building_headroom_kw".to_owned());
    let phases = limits.phases.iter().filter(|phase| phase.limit_kw.is_some());
    let headrooms =
        building.into_iter().chain(phases.map(|phase| format!("charging_phase_{}_headroom_kw", phase.name)));
    for (place, name) in headrooms.enumerate().filter(|_| schema.show_headroom) {
        add(name, What::Limit(first_shown + place));
    }
    if schema.show_violation {
        add("charging_constraint_violation_kwh".into(), What::Limit(first_shown + limits.n_shown() - 1));
    }
    observed
}

/// CityLearn's name of the phase of chargers without one.
const UNASSIGNED: &str = "unassigned";

/// The schedule of a charger, and the numbers of it that agents observe.
pub(super) struct Timetable {
    /// By row.
    pub(super) plugs: Vec<Plug>,
    /// Whether its states of charge are percentages.
    pub(super) in_percent: bool,
    departure_steps: Vec<f32>,
    arrival_steps: Vec<f32>,
}

impl Timetable {
    /// Reads the file of a charger by the names of its columns.
    ///
    /// Empty cells are unknown.
    pub(super) fn read(tables: &mut Tables, schema: &Schema, file: &str) -> Result<Self, EnergyError> {
        let table = tables.table(file)?;
        let state = table.column_or("electric_vehicle_charger_state", 1.0, 3.0, 0.0)?;
        let names = table.texts("electric_vehicle_id")?;
        let departure_steps = table.column_or("electric_vehicle_departure_time", NO_STEPS, MOST_STEPS, NO_STEPS)?;
        let arrival_steps =
            table.column_or("electric_vehicle_estimated_arrival_time", NO_STEPS, MOST_STEPS, NO_STEPS)?;
        let required = table.column_or("electric_vehicle_required_soc_departure", NO_SOC, 100.0, NO_SOC)?;
        let arrival = table.column_or("electric_vehicle_estimated_soc_arrival", NO_SOC, 100.0, NO_SOC)?;
        let in_percent = required.iter().chain(&arrival).any(|soc| *soc > 1.0);
        let session = "electric_vehicle_session_id";
        let sessions = if table.has(session) { table.texts(session)? } else { Vec::new() };
        let indices: HashMap<&str, usize> =
            schema.vehicles.iter().enumerate().map(|(index, vehicle)| (vehicle.name.as_str(), index)).collect();
        let whole_steps = |steps: Vec<f32>| -> Vec<f32> {
            steps[schema.first_row..=schema.last_row].iter().map(|steps| steps.trunc()).collect()
        };
        let (departure_steps, arrival_steps) = (whole_steps(departure_steps), whole_steps(arrival_steps));
        let mut plugs: Vec<Plug> = Vec::with_capacity(departure_steps.len());
        for row in schema.first_row..=schema.last_row {
            let name = names[row].as_str();
            let state = match state[row] {
                1.0 => PlugState::Connected,
                2.0 => PlugState::Arriving,
                3.0 => PlugState::Away,
                0.0 => PlugState::Unknown,
                other => {
                    let rule = "must be 1 (connected), 2 (arriving) or 3 (away)";
                    return Err(table.cell_error(row, "electric_vehicle_charger_state", rule, &other.to_string()));
                }
            };
            let vehicle = match name {
                name if is_missing(name) => None,
                name => Some(*indices.get(name).ok_or_else(|| {
                    let rule = "must be a vehicle of `electric_vehicles_def`";
                    table.cell_error(row, "electric_vehicle_id", rule, name)
                })?),
            };
            let index = row - schema.first_row;
            let last = plugs.last();
            if let (Some(last), PlugState::Connected, Some(now)) = (last, state, vehicle)
                && matches!(last.state, PlugState::Arriving | PlugState::Away)
                && last.vehicle.is_some_and(|before| before != now)
            {
                let rule = "must be the vehicle that arrived in the row before";
                return Err(table.cell_error(row, "electric_vehicle_id", rule, name));
            }
            let named = |row: usize| sessions.get(row).map(String::as_str).filter(|id| !is_missing(id));
            let other_session = index > 0
                && match named(row) {
                    Some(id) => named(row - 1).is_some_and(|last| last != id),
                    // Without names, a countdown that starts anew after its end.
                    None => departure_steps[index - 1] <= 1.0 && departure_steps[index] > departure_steps[index - 1],
                };
            let departure_steps = departure_steps[index];
            plugs.push(Plug {
                state,
                vehicle,
                other_session,
                required: required[row],
                arrival: arrival[row],
                departure_steps,
            });
        }
        Ok(Self { plugs, in_percent, departure_steps, arrival_steps })
    }

    /// The observations of the charger `charger`, the one with the index `index`: those that the schema has active for its building.
    pub(super) fn observe(
        &self,
        schema: &Schema,
        building: &BuildingSchema,
        (index, charger): (usize, &Charger),
        vehicles: &[Vehicle],
    ) -> Vec<Observed> {
        let plugs = &self.plugs;
        let rows = |value: &dyn Fn(usize, &Plug) -> f32| {
            What::Series(plugs.iter().enumerate().map(|(row, plug)| value(row, plug)).collect())
        };
        let while_connected = |value: &dyn Fn(usize, usize) -> f32, none: f32| {
            rows(&|row, plug| plug.connected().map_or(none, |vehicle| value(row, vehicle)))
        };
        let all = [
            ("electric_vehicle_charger_", "_connected_state", while_connected(&|_, _| 1.0, 0.0)),
            (
                "connected_electric_vehicle_at_charger_",
                "_departure_time",
                while_connected(&|row, _| self.departure_steps[row], NO_STEPS),
            ),
            ("connected_electric_vehicle_at_charger_", "_required_soc_departure", What::RequiredSoc(index)),
            ("connected_electric_vehicle_at_charger_", "_soc", What::VehicleSoc(index)),
            (
                "connected_electric_vehicle_at_charger_",
                "_battery_capacity",
                while_connected(&|_, vehicle| vehicles[vehicle].battery.capacity_kwh as f32, -1.0),
            ),
            (
                "electric_vehicle_charger_",
                "_incoming_state",
                rows(&|_, plug| if plug.arriving().is_some() { 1.0 } else { 0.0 }),
            ),
            (
                "incoming_electric_vehicle_at_charger_",
                "_estimated_arrival_time",
                rows(&|row, plug| if plug.arriving().is_some() { self.arrival_steps[row] } else { NO_STEPS }),
            ),
            ("incoming_electric_vehicle_at_charger_", "_estimated_soc_arrival", What::ArrivalSoc(index)),
        ];
        let active = |prefix: &str, suffix: &str| {
            let general = format!("{}{suffix}", prefix.trim_end_matches('_'));
            schema.observations.iter().any(|(name, _)| *name == general)
                && !building.inactive_observations.contains(&general)
        };
        all.into_iter()
            .filter(|(prefix, suffix, _)| active(prefix, suffix))
            .map(|(prefix, suffix, what)| Observed {
                name: format!("{prefix}{}{suffix}", charger.name),
                building: Some(charger.building),
                what,
            })
            .collect()
    }
}
