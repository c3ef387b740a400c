//! The optimum of a district with perfect foresight, as a linear programme over the complete data.
//!
//! Variables per step and battery: charge `c` and discharge `d` on the grid side, what they add (`a`) and take (`b`) inside,
//! and the stored energy `s`; per building the import `g`; for the district the upward ramp and the daily peak. With the
//! one-way efficiency `sqrt(eta(p))` of the power `p`:
//!
//! ```text
//! a  <= the smallest concave function above  c sqrt(eta(c / h))
//! b  >= the largest convex function below    d / sqrt(eta(d / h))
//! s_t - floor <= k (s_(t-1) - floor) + a - k b,   b <= s_(t-1) - floor,   k = (1 - loss)^h,   floor <= s <= capacity
//! c + d <= h P cpc(s_(t-1)),   g >= load - pv + c - d
//! ```
//!
//! Three things are not linear, so that the programme is better than any battery and its solution a bound: curves whose
//! efficiency rises with power, aging, and that a battery cannot charge and discharge at once to lose energy, which would
//! soften ramps. The simulation follows the schedule by its state of charge, and by its energies; the better one counts.

use std::ops::Range;

use brasa_env::{BatchSlabs, EnvError, Who};
use ndarray::{Array2, ArrayViewMut2};

use super::world::{Totals, World};
use super::{Battery, BatteryState, CityLearn, Physics, Recording, Reward};
use crate::error::fail;
use crate::program::{Program, Solution, Variable};
use crate::{EnergyError, Optimum};

/// Intervals in which a curve is bounded by its larger or smaller end.
const INTERVALS: usize = 200;

impl CityLearn {
    /// The optimum of the return over the complete data with perfect foresight, and the recording of its schedule in the
    /// simulation.
    ///
    /// A linear programme, solved by an interior point method; a year by the hour takes seconds per battery.
    ///
    /// # Errors
    /// [`EnergyError::Field`] with CityLearn's own rules, which are not those of the programme;
    /// [`EnergyError::Optimum`] if the solver fails.
    pub fn optimum(&self) -> Result<(Optimum, Recording), EnergyError> {
        self.optimum_of(0..self.world.all_steps())
    }

    /// The optimum of an episode over these rows.
    pub(super) fn optimum_of(&self, rows: Range<usize>) -> Result<(Optimum, Recording), EnergyError> {
        let world = &*self.world;
        if world.physics != Physics::Clean {
            return fail("physics", "must be `clean` for the optimum", format!("{:?}", world.physics));
        }
        if world.mobility.is_some() {
            return fail("data", "must have no vehicles for the optimum", &self.config().data);
        }
        world.check_plain("for the optimum")?;
        let programme = Programme::new(world, rows.clone());
        let solution = programme.program.solve()?;
        let mut best: Option<(f64, Recording)> = None;
        for by in [Follow::StateOfCharge, Follow::Energy] {
            let actions = programme.actions(world, &solution, by);
            let mut step = 0;
            let mut follow = |_: &BatchSlabs, mut out: ArrayViewMut2<f32>| -> Result<(), EnvError> {
                out.row_mut(0).assign(&actions.row(step));
                step += 1;
                Ok(())
            };
            let recording = self.record_rows(Who::Controller(&mut follow), 0, rows.clone())?;
            let value = -recording.reward.iter().map(|reward| f64::from(*reward)).sum::<f64>();
            if best.as_ref().is_none_or(|(best, _)| value < *best) {
                best = Some((value, recording));
            }
        }
        let (value, recording) = best.expect("the schedule was followed twice");
        let planned = programme.program.cost_of(&solution) + programme.constant;
        let bound = solution.bound + programme.constant;
        Ok((Optimum { value, planned, bound }, recording))
    }
}

/// How the simulation follows a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follow {
    StateOfCharge,
    Energy,
}

/// The variables of a battery in a step, in kWh.
struct Step {
    charge: Variable,
    discharge: Variable,
    /// Stored after the step.
    stored: Variable,
}

struct Programme {
    program: Program,
    /// `[battery][step]`.
    batteries: Vec<Vec<Step>>,
    /// Part of the objective that no variable changes.
    constant: f64,
}

impl Programme {
    fn new(world: &World, rows: Range<usize>) -> Self {
        let mut program = Program::default();
        let hours = world.hours;
        // Cost per unit of cost, carbon, ramp and daily peak; and per kWh of import.
        let ([w_cost, w_carbon, w_ramp, w_peak], w_import) = match world.reward {
            Reward::GridImport => ([0.0; 4], 1.0),
            _ => (world.scaled_weights, 0.0),
        };
        let devices: Vec<Option<Device>> =
            world.batteries.iter().map(|battery| battery.as_ref().map(|battery| Device::new(battery, hours))).collect();
        let swing_kwh: f64 = devices.iter().flatten().map(|device| device.power_kwh).sum();
        let steps = rows.len();
        let idle_kwh: Vec<f64> = rows.clone().map(|row| world.without_storage(row, false).net_kwh).collect();
        let days = idle_kwh.chunks(world.steps_per_day()).map(|day| day.iter().copied().fold(f64::MIN, f64::max));
        let most_of_day: Vec<f64> = days.map(|kwh| (kwh + swing_kwh).max(0.0) / hours).collect();

        let mut batteries: Vec<Vec<Step>> = (0..world.n_actions()).map(|_| Vec::with_capacity(steps)).collect();
        let mut constant = 0.0;
        let mut peak = None;
        // Charges and discharges of the step before.
        let mut before: Vec<(Variable, f64)> = Vec::new();
        for (step, index) in rows.clone().enumerate() {
            let row = &world.series[index * world.n_buildings..(index + 1) * world.n_buildings];
            let mut batteries_kw = Vec::with_capacity(2 * world.n_actions());
            for (building, data) in row.iter().enumerate() {
                let rest_kwh = world.net_without_storage(index * world.n_buildings + building, false);
                let cost = w_import + w_cost * f64::from(data.price) + w_carbon * f64::from(data.carbon);
                let (Some(device), Some(column)) = (&devices[building], world.action_columns[building]) else {
                    constant += cost * rest_kwh.max(0.0);
                    continue;
                };
                let before = batteries[column].last().map(|step| step.stored);
                let step @ Step { charge, discharge, .. } = device.add(&mut program, before);
                batteries[column].push(step);
                let import = program.variable(cost, 0.0, (rest_kwh + device.power_kwh).max(0.0));
                program.at_most([(charge, 1.0), (discharge, -1.0), (import, -1.0)], -rest_kwh);
                batteries_kw.extend([(charge, 1.0 / hours), (discharge, -1.0 / hours)]);
            }
            if w_ramp > 0.0 && step > 0 {
                let change_kwh = idle_kwh[step] - idle_kwh[step - 1];
                let ramp = program.variable(w_ramp, 0.0, (change_kwh + 2.0 * swing_kwh).max(0.0) / hours);
                let terms = batteries_kw.iter().copied().chain(before.iter().map(|(v, factor)| (*v, -factor)));
                program.at_most(terms.chain([(ramp, -1.0)]), -change_kwh / hours);
            }
            if w_peak > 0.0 {
                let (day, first) = (step / world.steps_per_day(), step % world.steps_per_day() == 0);
                let of_day = match peak {
                    Some(of_day) if !first => of_day,
                    _ => program.variable(w_peak, 0.0, most_of_day[day]),
                };
                peak = Some(of_day);
                program.at_most(batteries_kw.iter().copied().chain([(of_day, -1.0)]), -idle_kwh[step] / hours);
            }
            before = batteries_kw;
        }
        if world.reward == Reward::ChallengeImprovement {
            let sum = |term: fn(&Totals) -> f64| world.reference[rows.clone()].iter().map(term).sum::<f64>();
            let ramps: f64 = idle_kwh.windows(2).map(|pair| (pair[1] - pair[0]).max(0.0)).sum();
            let peaks: f64 =
                idle_kwh.chunks(world.steps_per_day()).map(|day| day.iter().copied().fold(0.0, f64::max)).sum();
            constant -= w_cost * sum(|row| row.cost)
                + w_carbon * sum(|row| row.carbon_kg)
                + (w_ramp * ramps + w_peak * peaks) / hours;
        }
        Self { program, batteries, constant }
    }

    /// The actions, `[step, battery]`, with which the batteries of the simulation follow the schedule.
    fn actions(&self, world: &World, solution: &Solution, by: Follow) -> Array2<f32> {
        let n_steps = self.batteries.iter().map(Vec::len).max().unwrap_or(0);
        let mut actions = Array2::zeros((n_steps, world.n_actions()));
        for (battery, column) in world.batteries.iter().zip(&world.action_columns) {
            let (Some(battery), Some(column)) = (battery, *column) else { continue };
            let mut state = battery.start_clean();
            for (step, planned) in self.batteries[column].iter().enumerate() {
                let action = match by {
                    Follow::StateOfCharge => {
                        let soc = solution.value(planned.stored) / battery.capacity_kwh;
                        action_towards(battery, state, soc, world.hours)
                    }
                    Follow::Energy => {
                        let energy_kwh = solution.value(planned.charge) - solution.value(planned.discharge);
                        (energy_kwh / (battery.nominal_power_kw * world.hours)) as f32
                    }
                };
                battery.step_clean(&mut state, f64::from(action), world.hours);
                actions[(step, column)] = action;
            }
        }
        actions
    }
}

/// The action after which the state of charge is closest to `soc`; the state of charge rises with the action.
fn action_towards(battery: &Battery, state: BatteryState, soc: f64, hours: f64) -> f32 {
    let after = |action: f64| {
        let mut state = state;
        battery.step_clean(&mut state, action, hours);
        state.soc
    };
    // Standing losses are not replaced by nothing: idle where that is close enough.
    if (after(0.0) - soc).abs() < 1e-9 {
        return 0.0;
    }
    let (mut low, mut high) = (-1.0, 1.0);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if after(middle) < soc { low = middle } else { high = middle }
    }
    (0.5 * (low + high)) as f32
}

/// The linear limits of a battery.
struct Device {
    /// Largest energy of a step on the grid side.
    power_kwh: f64,
    floor_kwh: f64,
    full_kwh: f64,
    start_kwh: f64,
    /// Fraction of the stored energy that is left after a step.
    kept: f64,
    /// Whether the state of charge is never below the floor.
    is_kept_whole: bool,
    /// Smallest one-way efficiency.
    least_efficiency: f64,
    /// Slope and height of lines that limit `a` from above, as functions of `c`.
    gains: Vec<(f64, f64)>,
    /// The same for `b` from below, as functions of `d`.
    takes: Vec<(f64, f64)>,
    /// The same for `c + d` from above, as functions of the stored energy.
    powers: Vec<(f64, f64)>,
}

impl Device {
    fn new(battery: &Battery, hours: f64) -> Self {
        let nominal_kwh = battery.nominal_power_kw * hours;
        let curve = &battery.power_efficiency;
        let gain = |x: f64, efficiency: f64| (x * nominal_kwh, x * nominal_kwh * efficiency.sqrt());
        let take = |x: f64, efficiency: f64| (x * nominal_kwh, x * nominal_kwh / efficiency.sqrt());
        // In each interval the efficiency is at most that of its better end.
        let (mut gains, mut takes) = (Vec::new(), Vec::new());
        for interval in 0..INTERVALS {
            let ends = [interval, interval + 1].map(|end| end as f64 / INTERVALS as f64);
            let breaks = curve.points().into_iter().filter(|(x, _)| ends[0] < *x && *x < ends[1]);
            let best = breaks.map(|(_, y)| y).chain(ends.map(|x| curve.at(x))).fold(0.0, f64::max);
            gains.extend(ends.map(|x| gain(x, best)));
            takes.extend(ends.map(|x| take(x, best)).map(|(x, y)| (x, -y)));
        }
        let capacity_kwh = battery.capacity_kwh;
        let floor_kwh = battery.minimum_soc() * capacity_kwh;
        // Energy below the floor counts as the floor, with the largest power below it.
        let limit = &battery.capacity_power;
        let (low, high): (Vec<_>, Vec<_>) = limit.points().into_iter().partition(|(x, _)| *x <= battery.minimum_soc());
        let of_floor = low.iter().map(|(_, y)| *y).fold(limit.at(battery.minimum_soc()), f64::max);
        let limits = std::iter::once((battery.minimum_soc(), of_floor)).chain(high);
        let limits: Vec<(f64, f64)> = limits.map(|(x, y)| (x * capacity_kwh, y * nominal_kwh)).collect();
        Self {
            power_kwh: nominal_kwh * battery.capacity_power.points().iter().fold(0.0, |most, (_, y)| y.max(most)),
            floor_kwh,
            full_kwh: capacity_kwh,
            start_kwh: (battery.initial_soc * capacity_kwh).max(floor_kwh),
            kept: (1.0 - battery.loss_coefficient).powf(hours),
            is_kept_whole: floor_kwh == 0.0
                || battery.loss_coefficient == 0.0 && battery.initial_soc >= battery.minimum_soc(),
            least_efficiency: curve.points().iter().fold(1.0, |least: f64, (_, y)| y.min(least)).sqrt(),
            gains: few(upper_hull(&gains)),
            takes: few(upper_hull(&takes)).into_iter().map(|(slope, height)| (-slope, -height)).collect(),
            powers: upper_hull(&limits),
        }
    }

    /// Adds a step after the stored energy `before`.
    fn add(&self, program: &mut Program, before: Option<Variable>) -> Step {
        let charge = program.variable(0.0, 0.0, self.power_kwh);
        let discharge = program.variable(0.0, 0.0, self.power_kwh);
        let after = program.variable(0.0, self.floor_kwh, self.full_kwh);
        let span_kwh = self.full_kwh - self.floor_kwh;
        let gained = linear(program, charge, &self.gains, span_kwh, 1.0);
        let taken = linear(program, discharge, &self.takes, span_kwh, -1.0);
        // What is known of the energy before: a variable, or the start of the episode.
        let known_kwh = if before.is_none() { self.start_kwh } else { 0.0 };
        let before = |factor: f64| before.map(|variable| (variable, factor));
        program.at_most(
            [(after, 1.0), (gained.0, -gained.1), (taken.0, self.kept * taken.1)].into_iter().chain(before(-self.kept)),
            self.kept * known_kwh + (1.0 - self.kept) * self.floor_kwh,
        );
        if self.is_kept_whole {
            // Energy is not lost on purpose, which would soften ramps: at worst all of it has the smallest efficiency.
            let least = self.least_efficiency;
            program.at_most(
                [(after, -1.0), (charge, self.kept * least), (discharge, -1.0 / least)]
                    .into_iter()
                    .chain(before(self.kept)),
                -self.kept * known_kwh,
            );
        }
        program.at_most([(taken.0, taken.1)].into_iter().chain(before(-1.0)), known_kwh - self.floor_kwh);
        for (slope, height) in &self.powers {
            program.at_most(
                [(charge, 1.0), (discharge, 1.0)].into_iter().chain(before(-slope)),
                height + slope * known_kwh,
            );
        }
        Step { charge, discharge, stored: after }
    }
}

/// A variable and its factor that is limited by `lines` of `of`, from above (`sign` 1) or below (-1).
fn linear(program: &mut Program, of: Variable, lines: &[(f64, f64)], most: f64, sign: f64) -> (Variable, f64) {
    if let [(slope, height)] = lines
        && height.abs() < 1e-12
    {
        return (of, *slope);
    }
    let variable = program.variable(0.0, 0.0, most);
    for (slope, height) in lines {
        program.at_most([(variable, sign), (of, -sign * slope)], sign * height);
    }
    (variable, 1.0)
}

/// Slope and height of the edges of the smallest concave function above `points`, which are ordered by `x`.
fn upper_hull(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for point in points {
        while let [.., a, b] = hull[..]
            && (b.1 - a.1) * (point.0 - a.0) <= (point.1 - a.1) * (b.0 - a.0)
        {
            hull.pop();
        }
        match hull.last() {
            Some(last) if last.0 == point.0 => {
                let highest = last.1.max(point.1);
                hull.pop();
                hull.push((point.0, highest));
            }
            _ => hull.push(*point),
        }
    }
    let edge = |pair: &[(f64, f64)]| {
        let slope = (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0);
        (slope, pair[0].1 - slope * pair[0].0)
    };
    hull.windows(2).map(edge).collect()
}

/// At most four of the lines, the first and the last among them: fewer lines are a weaker limit, and a smaller programme.
fn few(lines: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    const MOST: usize = 4;
    if lines.len() <= MOST {
        return lines;
    }
    let last = lines.len() - 1;
    (0..MOST).map(|i| lines[i * last / (MOST - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Curve;
    use super::*;

    fn battery() -> Battery {
        let curve = [(0.0, 0.83), (0.3, 0.83), (0.7, 0.9), (0.8, 0.9), (1.0, 0.85)];
        Battery {
            capacity_kwh: 6.4,
            nominal_power_kw: 5.0,
            efficiency: 0.9,
            loss_coefficient: 0.006,
            capacity_loss_coefficient: 1e-5,
            depth_of_discharge: 0.9,
            initial_soc: 0.4,
            power_efficiency: Curve::through("curve", &curve).unwrap(),
            capacity_power: Curve::through("curve", &[(0.0, 1.0), (0.8, 1.0), (1.0, 0.2)]).unwrap(),
        }
    }

    #[test]
    fn every_step_of_a_battery_keeps_the_linear_limits() {
        for (hours, loss_coefficient, depth_of_discharge) in
            [(1.0, 0.006, 0.9), (0.25, 0.006, 0.9), (1.0, 0.0, 0.9), (1.0, 0.006, 1.0)]
        {
            let battery = Battery { loss_coefficient, depth_of_discharge, ..battery() };
            let device = Device::new(&battery, hours);
            let below = |lines: &[(f64, f64)], x: f64| lines.iter().fold(f64::MAX, |y, (s, h)| y.min(s * x + h));
            let above = |lines: &[(f64, f64)], x: f64| lines.iter().fold(0.0_f64, |y, (s, h)| y.max(s * x + h));
            for start in 0..=40 {
                for request in -40..=40 {
                    let soc = f64::from(start) / 40.0;
                    let mut state = BatteryState { soc, ..battery.start_clean() };
                    let energy = battery.step_clean(&mut state, f64::from(request) / 40.0, hours);
                    let (charge, discharge) = (energy.max(0.0), (-energy).max(0.0));
                    // Energy below the floor counts as the floor.
                    let inside = |soc: f64| (soc * battery.capacity_kwh).max(device.floor_kwh);
                    let (before, after) = (inside(soc), inside(state.soc));
                    let (gain, take) = (below(&device.gains, charge), above(&device.takes, discharge));
                    let room =
                        device.kept * before + gain - device.kept * take + (1.0 - device.kept) * device.floor_kwh;
                    assert!(after <= room + 1e-9, "{soc} {request}: {after} above {room}");
                    if device.is_kept_whole && soc >= battery.minimum_soc() {
                        let least = device.least_efficiency;
                        let least = device.kept * (before + charge * least) - discharge / least;
                        assert!(after >= least - 1e-9, "{soc} {request}: {after} below {least}");
                    }
                    assert!(take <= before - device.floor_kwh + 1e-9, "{soc} {request}: takes {take} of {before}");
                    let most = below(&device.powers, before);
                    assert!(charge + discharge <= most + 1e-9, "{soc} {request}: {energy} above {most}");
                }
            }
        }
    }

    #[test]
    fn a_constant_efficiency_needs_one_line() {
        let device = Device::new(&Battery { power_efficiency: Curve::constant(0.81), ..battery() }, 1.0);
        assert_eq!((device.gains.len(), device.takes.len(), device.powers.len()), (1, 1, 2));
        assert!((device.gains[0].0 - 0.9).abs() < 1e-12 && (device.takes[0].0 - 1.0 / 0.9).abs() < 1e-12);
    }
}
