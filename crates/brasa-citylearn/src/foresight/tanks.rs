//! Thermal storages in the program.
//!
//! A tank is a battery of heat or cold: the device gives `D + x - y` for a demand `D`, a charge `x` and a discharge `y <= D`, with a
//! coefficient of performance that the data determines. A device that is too small for its demand uses all of its power, so that a first
//! part of the discharge saves nothing: the program has the line from the full power at `y = 0` to none at `y = D`, which is below that.

use std::ops::Range;

use brasa_lp::{Program, Solution};
use ndarray::Array2;

use super::super::home_batch::{Households, SteeredTank};
use super::{Device, Flow, Follow, Step, action_towards};

/// The schedule of a district's tanks: `[tank][step]`, in the order of [`Households::steered_tanks`].
pub(super) struct TankPlan(Vec<Vec<Step>>);

impl TankPlan {
    /// Adds all tanks to `flows`, `[step * n_buildings + building]`.
    pub(super) fn add(
        program: &mut Program,
        households: &Households,
        hours: f64,
        rows: &Range<usize>,
        flows: &mut [Flow],
    ) -> Self {
        let n_buildings = households.n_buildings();
        let of_tank = |steered: SteeredTank<'_>| {
            let device = Device::new(&steered.tank.as_battery(), hours, steered.tank.initial_soc);
            let mut before = device.known(steered.tank.initial_soc);
            let mut steps = Vec::with_capacity(rows.len());
            for (step, row) in rows.clone().enumerate() {
                let Thermal { demand_kwh, cop, power_kwh } = Thermal::of(households, &steered, row, hours);
                let [input, output] = steered.limits_kwh(hours);
                let used_kwh = (demand_kwh / cop).min(power_kwh);
                let limits = [input.min((power_kwh - used_kwh) * cop), output.min(demand_kwh)];
                let planned = device.add(program, before, limits);
                before = before.after(&planned);
                let flow = &mut flows[step * n_buildings + steered.building];
                flow.terms.push((planned.charge, 1.0 / cop));
                flow.terms.extend(planned.discharge.map(|taken| (taken, -used_kwh / demand_kwh)));
                flow.most_kwh += limits[0] / cop;
                steps.push(planned);
            }
            steps
        };
        Self(households.steered_tanks().map(of_tank).collect())
    }

    /// Writes the actions of tanks, `[step, action]`.
    pub(super) fn write_actions(
        &self,
        households: &Households,
        hours: f64,
        rows: &Range<usize>,
        solution: &Solution,
        by: Follow,
        actions: &mut Array2<f32>,
    ) {
        for (steered, steps) in households.steered_tanks().zip(&self.0) {
            let mut soc = steered.tank.initial_soc;
            for (step, planned) in steps.iter().enumerate() {
                let thermal = Thermal::of(households, &steered, rows.start + step, hours);
                let after = |action: f64| {
                    let mut soc = soc;
                    let request = (action * steered.tank.capacity_kwh * hours).max(-thermal.demand_kwh);
                    let room = (thermal.power_kwh - thermal.demand_kwh / thermal.cop).max(0.0) * thermal.cop;
                    steered.tank.step_clean(&mut soc, request.min(room), hours);
                    soc
                };
                let limit = f64::from(steered.limit);
                let action = match by {
                    Follow::StateOfCharge => {
                        let soc = solution.value(planned.stored) / steered.tank.capacity_kwh;
                        action_towards(soc, [-limit, limit], after)
                    }
                    Follow::Energy => {
                        let share = planned.energy_kwh(solution) / (steered.tank.capacity_kwh * hours);
                        share.clamp(-limit, limit) as f32
                    }
                };
                soc = after(f64::from(action));
                actions[(step, steered.column)] = action;
            }
        }
    }
}

/// The demand that a tank serves in a row.
struct Thermal {
    demand_kwh: f64,
    /// Heat or cold per electricity.
    cop: f64,
    /// Largest electricity of the device.
    power_kwh: f64,
}

impl Thermal {
    fn of(households: &Households, steered: &SteeredTank<'_>, row: usize, hours: f64) -> Self {
        let data = &households.rows[row * households.n_buildings() + steered.building];
        Self {
            demand_kwh: f64::from(data.demand_kwh[steered.slot]),
            cop: data.cop[steered.slot],
            power_kwh: steered.device_kw * hours,
        }
    }
}
