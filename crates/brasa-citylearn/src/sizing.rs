//! The parameters of batteries: those of the schema, those that are drawn, and those that CityLearn sizes by itself (`autosize`).
//!
//! A battery that is sized is a model of a manufacturer, as many times as a building needs it. It supplies the mean of the daily peaks of
//! the building's consumption without storage and PV for some hours. The models are CityLearn's `battery_choices.yaml`, with the numbers of the manufacturers. One of those whose power is at most the mean peak is drawn.

use brasa_power::EnergyError;

use super::{
    Battery, Curve,
    sampling::{DeviceDraw, Draws, seed_of},
    schema::{BatterySchema, BatterySizing, BuildingSchema},
};

/// What the missing parameters of a battery become.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Missing {
    /// Drawn, as in CityLearn 2.5 and 3.0.
    Drawn,
    /// The constants of CityLearn 2.1.
    Constant,
}

/// Constants of CityLearn 2.1 for missing parameters of a battery.
const EFFICIENCY: f64 = 0.9;
const LOSS_COEFFICIENT: f64 = 0.006;
const CAPACITY_LOSS_COEFFICIENT: f64 = 1e-5;
const POWER_EFFICIENCY: [(f64, f64); 5] = [(0.0, 0.83), (0.3, 0.83), (0.7, 0.9), (0.8, 0.9), (1.0, 0.85)];
const CAPACITY_POWER: [(f64, f64); 3] = [(0.0, 1.0), (0.8, 1.0), (1.0, 0.2)];

/// The battery of `building`, for a mean daily peak of its consumption.
pub(super) fn make_battery(
    schema: &BatterySchema,
    building: &BuildingSchema,
    (random_seed, peak_kw): (u64, f64),
    missing: Missing,
) -> Result<Battery, EnergyError> {
    let BuildingSchema { name: building, thermal, .. } = building;
    let cells = &schema.cells;
    let seed = match schema.random_seed {
        Some(seed) => seed as u32,
        None => seed_of(random_seed, building, &thermal.building_type, "electrical_storage", &schema.device_type),
    };
    let draw = DeviceDraw::from_seed(seed);
    let or = |given: Option<f64>, drawn: f64, constant: f64| match missing {
        Missing::Drawn => given.unwrap_or(drawn),
        Missing::Constant => given.unwrap_or(constant),
    };
    let efficiency = or(cells.efficiency, draw.efficiency(), EFFICIENCY);
    let depth_of_discharge = cells.depth_of_discharge.unwrap_or(1.0);
    let curve = |name: &str, given: &Option<Vec<(f64, f64)>>, drawn: &[(f64, f64)], constant: &[(f64, f64)]| {
        let missing = if missing == Missing::Drawn { drawn } else { constant };
        Curve::through(&format!("{building}.electrical_storage.{name}"), given.as_deref().unwrap_or(missing))
    };
    let (drawn_efficiency, drawn_power) = (draw.power_efficiency_curve(efficiency), draw.capacity_power_curve());
    let given = (&cells.power_efficiency_curve, &cells.capacity_power_curve);
    let aging = (draw.capacity_loss_coefficient(), CAPACITY_LOSS_COEFFICIENT);
    let battery = Battery {
        capacity_kwh: schema.capacity_kwh,
        nominal_power_kw: cells.nominal_power_kw.unwrap_or(0.0),
        efficiency,
        loss_coefficient: or(cells.loss_coefficient, draw.loss_coefficient(), LOSS_COEFFICIENT),
        capacity_loss_coefficient: or(cells.capacity_loss_coefficient, aging.0, aging.1),
        depth_of_discharge,
        initial_soc: cells.initial_soc.unwrap_or(1.0 - depth_of_discharge),
        power_efficiency: curve("power_efficiency_curve", given.0, &drawn_efficiency, &POWER_EFFICIENCY)?,
        capacity_power: curve("capacity_power_curve", given.1, &drawn_power, &CAPACITY_POWER)?,
    };
    let Some(sizing) = &schema.sizing else { return Ok(battery) };
    // The curves and the initial state of charge remain those from before the sizing, as in CityLearn.
    let sized = Sized::new(sizing, seed, peak_kw);
    Ok(Battery {
        capacity_kwh: sized.capacity_kwh,
        nominal_power_kw: sized.nominal_power_kw,
        efficiency: sized.efficiency,
        loss_coefficient: sized.loss_coefficient,
        capacity_loss_coefficient: sized.capacity_loss_coefficient,
        depth_of_discharge: sized.depth_of_discharge,
        ..battery
    })
}

/// A battery of a manufacturer; what its data sheet does not have is drawn.
struct Model {
    capacity_kwh: f64,
    depth_of_discharge: Option<f64>,
    power_kw: f64,
    efficiency: Option<f64>,
    loss_coefficient: Option<f64>,
}

const fn model(
    capacity_kwh: f64,
    depth_of_discharge: Option<f64>,
    power_kw: f64,
    efficiency: Option<f64>,
    loss_coefficient: Option<f64>,
) -> Model {
    Model { capacity_kwh, depth_of_discharge, power_kw, efficiency, loss_coefficient }
}

/// In CityLearn's order, on which the draw depends.
const MODELS: [Model; 10] = [
    // Tesla Powerwall 2
    model(13.5, None, 3.3, Some(0.9), None),
    // PowerPlus LiFe2433P
    model(3.3, Some(1.0), 1.61, Some(0.96), Some(0.001_598_17)),
    // BYD LVS
    model(4.0, None, 3.32, Some(0.95), None),
    // Huawei LUNA2000-5-S0
    model(5.0, Some(0.85), 2.5, None, None),
    // Goodwe LX U5.4-L
    model(5.4, Some(0.9), 2.88, None, None),
    // AES LiFePO4 Solar Stationary Battery
    model(7.39, Some(0.9), 7.07, Some(0.98), Some(0.0003)),
    // Enphase IQ Battery 10
    model(10.5, Some(0.96), 3.84, Some(0.96), None),
    // Enphase IQ Battery 3
    model(3.5, Some(0.96), 1.28, Some(0.96), None),
    // SolarEdge Home Battery
    model(9.7, Some(1.0), 5.0, Some(0.945), None),
    // NeoVolta NV14
    model(14.4, Some(1.0), 7.68, Some(0.97), None),
];

/// The parameters of a battery that are sized.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sized {
    pub(super) capacity_kwh: f64,
    pub(super) nominal_power_kw: f64,
    pub(super) depth_of_discharge: f64,
    pub(super) efficiency: f64,
    pub(super) loss_coefficient: f64,
    pub(super) capacity_loss_coefficient: f64,
}

impl Sized {
    /// The battery with the random `seed` for a mean daily peak of `peak_kw`.
    pub(super) fn new(sizing: &BatterySizing, seed: u32, peak_kw: f64) -> Self {
        let draw = DeviceDraw::from_seed(seed);
        let mut choices: Vec<&Model> = MODELS.iter().filter(|model| model.power_kw <= peak_kw).collect();
        if choices.is_empty() {
            choices.extend(MODELS.iter().min_by(|a, b| a.power_kw.total_cmp(&b.power_kw)));
        }
        // The generator starts anew for every number.
        let chosen = choices[Draws::new(seed).below(choices.len() as u32) as usize];
        let duration_h = sizing.duration_h.unwrap_or_else(|| draw.uniform(1.5, 3.5));
        let count = (peak_kw * duration_h * sizing.safety_factor / chosen.capacity_kwh).floor().max(1.0);
        Self {
            capacity_kwh: chosen.capacity_kwh * count,
            nominal_power_kw: chosen.power_kw * if sizing.parallel { count } else { 1.0 },
            depth_of_discharge: chosen.depth_of_discharge.unwrap_or(1.0),
            efficiency: chosen.efficiency.unwrap_or_else(|| draw.efficiency()),
            loss_coefficient: chosen.loss_coefficient.unwrap_or_else(|| draw.loss_coefficient()),
            capacity_loss_coefficient: draw.capacity_loss_coefficient(),
        }
    }
}

/// The mean of the largest powers of all days, in kW, of energies per step of `hours`; the last day may be a part of one.
pub(super) fn mean_daily_peak_kw(energies_kwh: &[f32], hours: f64) -> f64 {
    let steps_per_day = ((24.0 / hours).round() as usize).max(1);
    let days = energies_kwh.chunks(steps_per_day);
    let n_days = days.len().max(1) as f64;
    days.map(|day| f64::from(day.iter().copied().fold(0.0, f32::max))).sum::<f64>() / n_days / hours
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A case of `scripts/record_battery_sizes.py`.
    #[derive(serde::Deserialize)]
    struct Case {
        seed: u32,
        peak_kw: f64,
        duration: Option<f64>,
        safety_factor: f64,
        parallel: bool,
        result: [f64; 6],
    }

    #[test]
    fn sizes_equal_the_package() {
        let cases = include_str!("../tests/data/battery_sizes.json");
        for case in serde_json::from_str::<Vec<Case>>(cases).expect("a recorded file") {
            let Case { seed, peak_kw, duration, safety_factor, parallel, result } = case;
            let sized = Sized::new(&BatterySizing { duration_h: duration, safety_factor, parallel }, seed, peak_kw);
            let got = [
                sized.capacity_kwh,
                sized.nominal_power_kw,
                sized.depth_of_discharge,
                sized.efficiency,
                sized.loss_coefficient,
                sized.capacity_loss_coefficient,
            ];
            for (got, expected) in got.into_iter().zip(result) {
                approx::assert_abs_diff_eq!(got, expected, epsilon = 1e-12);
            }
        }
    }

    #[test]
    fn peaks_are_those_of_days() {
        let mut energies = vec![1.0_f32; 48];
        (energies[3], energies[30]) = (5.0, 3.0);
        assert_eq!(mean_daily_peak_kw(&energies, 1.0), 4.0);
        assert_eq!(mean_daily_peak_kw(&energies, 0.5), 10.0);
        assert_eq!(mean_daily_peak_kw(&[], 1.0), 0.0);
    }
}
