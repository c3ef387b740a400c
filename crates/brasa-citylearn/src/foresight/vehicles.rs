//! Electric vehicles in the program.
//!
//! A vehicle is a battery with a step for every row in which it is connected; between sessions it keeps its energy or has the one of its
//! arrival. With the efficiency of the charger between `lo` and `hi`, a charge `c` at the vehicle is `c / hi` to `c / lo` on the grid side
//! and a discharge `d` is `d lo` to `d hi`. Limits of phases and buildings hold for the sums on the grid side. A departure with less energy
//! than required costs the shortfall.

use std::ops::Range;

use brasa_lp::{Program, Solution, Variable};
use ndarray::Array2;

use super::super::vehicles::{Charger, Mobility};
use super::super::{Battery, BatteryState, Curve};
use super::{Device, Flow, Follow, Step, action_towards};

/// A vehicle in a step at a charger.
struct Visit {
    step: usize,
    vehicle: usize,
    charger: usize,
    planned: Step,
}

/// The vehicles of a district.
pub(super) struct VehiclePlan {
    /// In the order of steps, of each vehicle.
    visits: Vec<Visit>,
}

impl VehiclePlan {
    /// Adds all vehicles to `flows`, `[step * n_buildings + building]`; a kWh that a departing one lacks costs `shortfall`.
    pub(super) fn add(
        program: &mut Program,
        mobility: &Mobility,
        (n_buildings, hours): (usize, f64),
        rows: &Range<usize>,
        flows: &mut [Flow],
        shortfall: f64,
    ) -> Self {
        let mut visits = Vec::new();
        // `[step][charger]`: charge on the grid side.
        let mut charging: Vec<Vec<(usize, (Variable, f64))>> = (0..rows.len()).map(|_| Vec::new()).collect();
        let start = mobility.started(rows.start);
        for (vehicle, battery) in mobility.batteries.iter().enumerate() {
            let first_soc = start[vehicle].soc;
            let arrivals = rows.clone().skip(1).filter_map(|row| mobility.visit(row, vehicle).set_soc());
            let device = Device::new(battery, hours, arrivals.fold(first_soc, f64::min));
            let mut before = device.known(first_soc);
            for (step, row) in rows.clone().enumerate() {
                let visit = mobility.visit(row, vehicle);
                if let Some(soc) = visit.set_soc().filter(|_| step > 0) {
                    before = device.known(soc);
                }
                let Some(charger) = visit.charger else { continue };
                let of = &mobility.chargers[charger];
                let [charge, discharge] = [&of.charge_efficiency, &of.discharge_efficiency].map(extremes);
                let most_kwh = [of.max_charging_kw, of.max_discharging_kw].map(|most_kw| most_kw * hours);
                let at_vehicle = [most_kwh[0] * charge[1], most_kwh[1] / discharge[0]];
                let planned = device.add(program, before, at_vehicle);
                before = before.after(&planned);
                let grid = at_grid(program, planned.charge, [1.0 / charge[1], 1.0 / charge[0]], most_kwh[0]);
                charging[step].push((charger, grid));
                let flow = &mut flows[step * n_buildings + of.building];
                flow.terms.push(grid);
                if let Some(taken) = planned.discharge {
                    let (variable, factor) = at_grid(program, taken, [discharge[0], discharge[1]], most_kwh[1]);
                    flow.terms.push((variable, -factor));
                }
                flow.most_kwh += most_kwh[0];
                if let Some(required) = visit.required.filter(|_| shortfall > 0.0) {
                    let required_kwh = f64::from(required) * battery.capacity_kwh;
                    program.excess(shortfall, required_kwh.max(0.0), [(planned.stored, -1.0)], -required_kwh);
                }
                visits.push(Visit { step, vehicle, charger, planned });
            }
        }
        for limits in &mobility.limits {
            let in_building = |charger: usize| mobility.chargers[charger].building == limits.building;
            for of_step in &charging {
                let mut limit = |limit_kw: f64, holds: &dyn Fn(usize) -> bool| {
                    let terms: Vec<_> =
                        of_step.iter().filter(|(charger, _)| holds(*charger)).map(|(_, grid)| *grid).collect();
                    if !terms.is_empty() {
                        program.at_most(terms, limit_kw * hours);
                    }
                };
                if let Some(limit_kw) = limits.building_kw {
                    limit(limit_kw, &in_building);
                }
                for phase in &limits.phases {
                    if let Some(limit_kw) = phase.limit_kw {
                        limit(limit_kw, &|charger| phase.chargers.contains(&charger));
                    }
                }
            }
        }
        Self { visits }
    }

    /// Writes the actions of chargers, `[step, action]`.
    pub(super) fn write_actions(
        &self,
        mobility: &Mobility,
        hours: f64,
        rows: &Range<usize>,
        solution: &Solution,
        by: Follow,
        actions: &mut Array2<f32>,
    ) {
        let mut states = mobility.started(rows.start);
        // The last step of each vehicle whose arrival was applied.
        let mut seen = vec![0; states.len()];
        for Visit { step, vehicle, charger, planned } in &self.visits {
            let (state, battery, of) =
                (&mut states[*vehicle], &mobility.batteries[*vehicle], &mobility.chargers[*charger]);
            for step in seen[*vehicle] + 1..=*step {
                if let Some(soc) = mobility.visit(rows.start + step, *vehicle).set_soc() {
                    state.soc = soc;
                }
            }
            seen[*vehicle] = *step;
            let action = match by {
                Follow::StateOfCharge => {
                    let soc = solution.value(planned.stored) / battery.capacity_kwh;
                    let least = if of.max_discharging_kw > 0.0 { -1.0 } else { 0.0 };
                    action_towards(soc, [least, 1.0], |action| after(of, battery, *state, action, hours).soc)
                }
                Follow::Energy => {
                    let kwh = planned.energy_kwh(solution);
                    let limit_kw = if kwh >= 0.0 { of.max_charging_kw } else { of.max_discharging_kw };
                    let grid_kwh = match kwh >= 0.0 {
                        true => kwh / extremes(&of.charge_efficiency)[1],
                        false => kwh * extremes(&of.discharge_efficiency)[1],
                    };
                    let share = if limit_kw > 0.0 { grid_kwh / (hours * limit_kw) } else { 0.0 };
                    share.clamp(-1.0, 1.0) as f32
                }
            };
            *state = after(of, battery, *state, f64::from(action), hours);
            actions[(*step, mobility.action_columns[*charger])] = action;
        }
    }
}

/// A vehicle after a step.
fn after(charger: &Charger, battery: &Battery, mut state: BatteryState, action: f64, hours: f64) -> BatteryState {
    let (battery_kw, _) = charger.battery_kw(action);
    battery.step_clean(&mut state, battery_kw / battery.nominal_power_kw, hours);
    state
}

/// Energy on the grid side for `at_vehicle`: `least` to `most` times it, as a variable and its factor.
fn at_grid(program: &mut Program, at_vehicle: Variable, [least, most]: [f64; 2], limit_kwh: f64) -> (Variable, f64) {
    if most - least <= 1e-12 * most {
        return (at_vehicle, least);
    }
    let grid = program.variable(0.0, 0.0, limit_kwh);
    program.at_most([(at_vehicle, least), (grid, -1.0)], 0.0);
    program.at_most([(grid, 1.0), (at_vehicle, -most)], 0.0);
    (grid, 1.0)
}

/// The smallest and largest value of a curve.
fn extremes(curve: &Curve) -> [f64; 2] {
    let values = curve.points().into_iter().map(|(_, y)| y);
    values.fold([f64::MAX, 0.0], |[least, most], y| [least.min(y), most.max(y)])
}
