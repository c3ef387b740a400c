//! Observations: CityLearn's list for a central agent, raw or normalized.
//!
//! All values except states of charge and net consumptions are known in advance and are computed once per row; a step
//! copies a row and fills in the others.

use std::f64::consts::TAU;

use brasa_env::Space;

use super::{
    Observations, Physics,
    district::{District, Observed, What},
    dynamics::Dynamics,
    homes::Sensor,
    plugs::{NO_SOC, Plug},
    schema_thermal::USES,
};

/// The precomputed observations of a district.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) space: Space,
    pub(super) width: usize,
    /// `[row * width + column]`, zero where dynamic.
    rows: Vec<f32>,
    pub(super) dynamic: Vec<Dynamic>,
}

/// A component that depends on actions: `(value - low) * scale`.
#[derive(Debug)]
pub(super) struct Dynamic {
    pub(super) column: usize,
    pub(super) source: Source,
    low: f64,
    scale: f64,
}

/// The value of a component that depends on actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// State of charge of a building's battery.
    Soc(usize),
    /// Net consumption of a building.
    Net(usize),
    /// State of charge of the vehicle at a charger.
    Charger(usize),
    /// Number shown by the limits on chargers.
    Limit(usize),
    /// A quantity of a building with thermal demand.
    Home(usize, Sensor),
}

impl Dynamic {
    /// The value that becomes 0, and the factor.
    #[cfg(feature = "tensor")]
    pub(super) fn range(&self) -> (f64, f64) {
        (self.low, self.scale)
    }

    pub(super) fn scaled(&self, value: f64) -> f32 {
        ((value - self.low) * self.scale) as f32
    }
}

/// Largest values of periodic observations; CityLearn's constants.
pub(super) const PERIODS: [(&str, usize); 4] = [("hour", 24), ("day_type", 7), ("month", 12), ("minutes", 60)];

/// Slack for rounding in bounds; net consumption is also observed before a step, without the battery.
const SLACK: f64 = 1e-3;

impl Layout {
    pub(super) fn new(district: &District, kind: Observations, physics: Physics) -> Self {
        let mut columns = Vec::new();
        let mut items = Vec::new();
        let mut dynamic = Vec::new();
        for observed in &district.observed {
            add(district, observed, (kind, physics), &mut columns, &mut items, &mut dynamic);
        }
        let width = columns.len();
        let mut rows = vec![0.0; district.n_rows() * width];
        for (column, values) in columns.iter().enumerate() {
            for (row, value) in values.iter().enumerate() {
                rows[row * width + column] = *value as f32;
            }
        }
        Self { space: Space::named_box(items), width, rows, dynamic }
    }

    /// The components of `row` that do not depend on actions.
    pub(super) fn row(&self, row: usize) -> &[f32] {
        &self.rows[row * self.width..(row + 1) * self.width]
    }
}

fn add(
    district: &District,
    observed: &Observed,
    (kind, physics): (Observations, Physics),
    columns: &mut Vec<Vec<f64>>,
    items: &mut Vec<(String, f32, f32)>,
    dynamic: &mut Vec<Dynamic>,
) {
    let named = |name: &str| match observed.building {
        Some(building) => format!("{}.{name}", district.buildings[building].name),
        None => name.into(),
    };
    let raw = kind == Observations::Raw;
    if let What::Home(building, sensor) = observed.what
        && physics != Physics::Clean
        && let Some(values) = district.homes.of(building).map(|row| sensor.in_data(row)).collect()
    {
        let known = Observed { what: What::Series(values), ..observed.clone() };
        return add(district, &known, (kind, physics), columns, items, dynamic);
    }
    match &observed.what {
        What::Series(_) | What::RequiredSoc(_) | What::ArrivalSoc(_) => {
            let values = known(district, &observed.what, physics);
            let period = PERIODS.iter().find(|(name, _)| *name == observed.name);
            match period.filter(|_| !raw) {
                Some((name, period)) => {
                    for (suffix, wave) in [("cos", f64::cos as fn(f64) -> f64), ("sin", f64::sin)] {
                        let at = |x: f64| wave(TAU * x / *period as f64);
                        let (low, high) = range((1..=*period).map(|x| at(x as f64)));
                        columns.push(values.iter().map(|x| ((at(*x) - low) / (high - low)).clamp(0.0, 1.0)).collect());
                        items.push((named(&format!("{name}_{suffix}")), 0.0, 1.0));
                    }
                }
                None => {
                    let data = range(values.iter().copied());
                    let range = charger_range(&observed.name, values.len(), physics);
                    let (low, high) = match range.or_else(|| fixed_range(&observed.name, data)) {
                        // The ranges of 2.5 are constants that the data may leave.
                        Some(fixed) if physics == Physics::CityLearn25 => fixed,
                        Some((low, high)) => (low, high.max(data.1)),
                        None => data,
                    };
                    let span = high - low;
                    let scaled = |x: f64| if span > 0.0 { (x - low) / span } else { 0.0 };
                    let (least, most) = (low.min(data.0), high.max(data.1));
                    let bounds = if raw { (least, most) } else { (scaled(least).min(0.0), scaled(most).max(1.0)) };
                    items.push((named(&observed.name), bounds.0 as f32, bounds.1 as f32));
                    columns.push(if raw { values } else { values.into_iter().map(scaled).collect() });
                }
            }
        }
        What::Soc(building) | What::Net(building) => {
            let is_net = matches!(observed.what, What::Net(_));
            let (low, high) = if is_net { net_range(district, *building) } else { (0.0, 1.0) };
            let (shift, scale) = if raw { (0.0, 1.0) } else { (low, 1.0 / (high - low)) };
            let slack = if is_net { SLACK * (high - low) } else { 0.0 };
            // CityLearn leaves chargers out of the range, so scaled numbers may be outside 0 to 1.
            let (out_kwh, in_kwh) = if is_net { charger_range_kwh(district, *building) } else { (0.0, 0.0) };
            let bound = |value: f64| ((value - shift) * scale) as f32;
            items.push((named(&observed.name), bound(low - slack - out_kwh), bound(high + slack + in_kwh)));
            let source = if is_net { Source::Net(*building) } else { Source::Soc(*building) };
            dynamic.push(Dynamic { column: columns.len(), source, low: shift, scale });
            columns.push(Vec::new());
        }
        What::VehicleSoc(charger) => {
            let (low, high) = (f64::from(-0.1_f32), 1.0);
            let (shift, scale) = if raw { (0.0, 1.0) } else { (low, 1.0 / (high - low)) };
            let bound = |value: f64| ((value - shift) * scale) as f32;
            items.push((named(&observed.name), bound(low), bound(high)));
            let source = Source::Charger(*charger);
            dynamic.push(Dynamic { column: columns.len(), source, low: shift, scale });
            columns.push(Vec::new());
        }
        What::Limit(place) => {
            let building = observed.building.expect("limits belong to a building");
            let (low, high) = limit_range(district, building, *place, physics);
            let span = high - low;
            let (shift, scale) = if raw { (0.0, 1.0) } else { (low, if span > 0.0 { 1.0 / span } else { 0.0 }) };
            let bound = |value: f64| ((value - shift) * scale) as f32;
            // The room below a limit is computed as a difference.
            let slack = SLACK * high.max(1.0);
            items.push((named(&observed.name), bound(-slack), bound(high + slack)));
            dynamic.push(Dynamic { column: columns.len(), source: Source::Limit(*place), low: shift, scale });
            columns.push(Vec::new());
        }
        What::Home(building, sensor) => {
            let (low, high) = home_range(district, *building, *sensor);
            let span = high - low;
            let (shift, scale) = if raw { (0.0, 1.0) } else { (low, if span > 0.0 { 1.0 / span } else { 0.0 }) };
            let bound = |value: f64| ((value - shift) * scale) as f32;
            let slack = SLACK * span.max(1e-3);
            let (least, most) = home_bounds(district, *building, *sensor, (low, high));
            items.push((named(&observed.name), bound(least - slack), bound(most + slack)));
            let source = Source::Home(*building, *sensor);
            dynamic.push(Dynamic { column: columns.len(), source, low: shift, scale });
            columns.push(Vec::new());
        }
    }
}

/// The values that do not depend on actions, by row.
fn known(district: &District, what: &What, physics: Physics) -> Vec<f64> {
    let schedule = &district.schedule;
    let soc = |charger: usize, value: fn(&Plug) -> f32| -> Vec<f64> {
        let plugs = schedule.plugs.iter().skip(charger).step_by(schedule.chargers.len());
        plugs.map(|plug| f64::from(schedule.fraction(charger, value(plug), physics))).collect()
    };
    match what {
        What::Series(values) => values.iter().map(|value| f64::from(*value)).collect(),
        What::RequiredSoc(charger) => soc(*charger, |plug| plug.connected().map_or(NO_SOC, |_| plug.required)),
        What::ArrivalSoc(charger) => soc(*charger, |plug| plug.arriving().map_or(NO_SOC, |_| plug.arrival)),
        What::Soc(_) | What::Net(_) | What::VehicleSoc(_) | What::Limit(_) | What::Home(..) => Vec::new(),
    }
}

/// CityLearn's range of an observation of a charger or washing machine, which does not depend on the data.
fn charger_range(name: &str, n_rows: usize, physics: Physics) -> Option<(f64, f64)> {
    if name.starts_with("charging_phase_one_hot_") {
        return Some((0.0, 1.0));
    }
    if name.ends_with("_start_time_step") || name.ends_with("_end_time_step") {
        return Some((-1.0, if physics == Physics::CityLearn25 { 24.0 } else { n_rows as f64 }));
    }
    if !name.contains("electric_vehicle_") {
        return None;
    }
    if name.ends_with("_state") {
        return Some((0.0, 1.0));
    }
    if name.contains("_departure_time") || name.contains("_estimated_arrival_time") {
        // 3.0 takes the length of the data, so its scaled numbers are close to 0.
        return Some((-1.0, if physics == Physics::CityLearn30 { n_rows.max(24) as f64 } else { 24.0 }));
    }
    Some(if name.ends_with("_battery_capacity") { (-1.0, 100.0) } else { (f64::from(-0.1_f32), 1.0) })
}

/// How far CityLearn expects temperatures to leave the range of the data, in K.
const TEMPERATURE_DELTA: f64 = 20.0;

/// CityLearn's range of a series that is not the range `data` of its values.
fn fixed_range(name: &str, data: (f64, f64)) -> Option<(f64, f64)> {
    match name {
        "indoor_dry_bulb_temperature" => Some((data.0 - TEMPERATURE_DELTA, data.1 + TEMPERATURE_DELTA)),
        "indoor_dry_bulb_temperature_cooling_delta" | "indoor_dry_bulb_temperature_heating_delta" => {
            Some((-TEMPERATURE_DELTA, TEMPERATURE_DELTA))
        }
        "comfort_band" => Some((0.0, data.1)),
        "power_outage" => Some((0.0, 1.0)),
        name if USES.iter().any(|part| name.strip_suffix("_demand") == Some(*part)) => Some((0.0, 2.0 * data.1)),
        _ => None,
    }
}

/// CityLearn's range of a quantity of a building with thermal demand.
fn home_range(district: &District, building: usize, sensor: Sensor) -> (f64, f64) {
    let homes = &district.homes;
    let nominal_kwh = |slot: usize| homes.homes[building].devices[slot].nominal_kw * district.hours_per_step;
    let most = |of: fn(f32, f64) -> f64, slot: usize| {
        homes.of(building).map(|row| of(row.demand_kwh[slot], row.cop[slot])).fold(0.0, f64::max)
    };
    match sensor {
        Sensor::TankSoc(_) => (0.0, 1.0),
        Sensor::Served(slot) => (0.0, 2.0 * most(|demand, _| f64::from(demand), slot)),
        Sensor::Device(slot) => (0.0, nominal_kwh(slot)),
        Sensor::Tank(slot) => (-most(|demand, cop| f64::from(demand) / cop, slot), nominal_kwh(slot)),
        Sensor::Battery => {
            let battery = district.buildings[building].battery.as_ref();
            let most = battery.map_or(0.0, |battery| battery.nominal_power_kw * district.hours_per_step);
            (-most, most)
        }
        Sensor::Temperature => {
            let (low, high) = range(homes.of(building).map(|row| f64::from(row.room.temperature_c)));
            (low - TEMPERATURE_DELTA, high + TEMPERATURE_DELTA)
        }
        Sensor::CoolingDelta | Sensor::HeatingDelta => (-TEMPERATURE_DELTA, TEMPERATURE_DELTA),
    }
}

/// Bounds of the same quantity: what devices can give may be above CityLearn's range, and so may predicted temperatures.
fn home_bounds(district: &District, building: usize, sensor: Sensor, (low, high): (f64, f64)) -> (f64, f64) {
    let homes = &district.homes;
    let home = &homes.homes[building];
    let predicted = home.dynamics.as_ref().map(Dynamics::range_c);
    match sensor {
        Sensor::Served(slot) => {
            let nominal_kwh = home.devices[slot].nominal_kw * district.hours_per_step;
            let most = homes.of(building).map(|row| nominal_kwh * row.cop[slot]).fold(high, f64::max);
            (low, most)
        }
        Sensor::Temperature | Sensor::CoolingDelta | Sensor::HeatingDelta => {
            let (coldest, hottest) = predicted.unwrap_or((low, high));
            let set_c = homes.of(building).map(|row| match sensor {
                Sensor::CoolingDelta => f64::from(row.room.cooling_set_c),
                Sensor::HeatingDelta => f64::from(row.room.heating_set_c),
                _ => 0.0,
            });
            let (least_set_c, most_set_c) = range(set_c);
            (low.min(coldest - most_set_c), high.max(hottest - least_set_c))
        }
        _ => (low, high),
    }
}

/// Range of net consumption: from the lowest load with full discharge to the highest with full charge, minus PV.
fn net_range(district: &District, building: usize) -> (f64, f64) {
    let battery = district.buildings[building].battery.as_ref();
    let energy_kwh = battery.map_or(0.0, |battery| battery.nominal_power_kw) * district.hours_per_step;
    let net = district.series.iter().skip(building).step_by(district.buildings.len());
    let (low, high) = range(net.map(|row| f64::from(row.load_kwh) - f64::from(row.pv_kwh)));
    let devices = district.homes.homes[building].devices.iter();
    let devices_kwh: f64 = devices.map(|device| device.nominal_kw * district.hours_per_step).sum();
    let (low, high) = ((low - energy_kwh).min(0.0), high + energy_kwh + devices_kwh);
    // A building without load, PV and battery also needs a range.
    (low, if high > low { high } else { low + 1.0 })
}

/// CityLearn's range of a number that the limits on chargers show. In 2.5 the room has no range and is always 0.
fn limit_range(district: &District, building: usize, place: usize, physics: Physics) -> (f64, f64) {
    let shown = district.schedule.limits.iter().flat_map(|limits| limits.limits_kw().map(Some).chain([None]));
    match shown.into_iter().nth(place).flatten() {
        Some(limit_kw) if physics == Physics::CityLearn25 => (limit_kw, limit_kw),
        Some(limit_kw) => (0.0, limit_kw),
        None => {
            let (out_kwh, in_kwh) = charger_range_kwh(district, building);
            let battery = district.buildings[building].battery.as_ref();
            let battery_kwh = battery.map_or(0.0, |battery| battery.nominal_power_kw * district.hours_per_step);
            (0.0, if physics == Physics::CityLearn25 { in_kwh } else { in_kwh + out_kwh + battery_kwh })
        }
    }
}

/// Most energy out of and into the chargers of a building in a step, in kWh.
fn charger_range_kwh(district: &District, building: usize) -> (f64, f64) {
    let chargers = district.schedule.chargers.iter().filter(|charger| charger.building == building);
    chargers.fold((0.0, 0.0), |(out_kwh, in_kwh), charger| {
        let hours = district.hours_per_step;
        (out_kwh + charger.max_discharging_kw * hours, in_kwh + charger.max_charging_kw * hours)
    })
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}
