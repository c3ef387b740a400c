//! The optimum of a district with perfect foresight, as a linear program over the complete data.
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
//! Tanks of heat and cold are such batteries behind a heat pump or heater ([`tanks`]). Vehicles are such batteries while they are
//! connected, behind the efficiency of their charger ([`vehicles`]); washing machines have a share of a start in each row of their
//! window ([`machines`]).
//!
//! Some things are not linear, so that the program is better than any controller and its solution a bound: curves whose
//! efficiency rises with power, aging, devices too small for their demand, smallest powers of chargers, whole starts of machines, and
//! that a battery cannot charge and discharge at once to lose energy, which would soften ramps. The simulation follows the schedule by
//! its states of charge, and by its energies; the better one counts.

mod device;
mod machines;
mod tanks;
mod vehicles;

use std::ops::Range;

use brasa_env::{BatchSlabs, EnvError, Who};
use brasa_lp::{Program, Solution, Variable};
use brasa_power::{EnergyError, Optimum, fail, optimum::solve};
use ndarray::{Array2, ArrayViewMut2};

use self::device::{Device, Step, action_towards};
use self::machines::MachinePlan;
use self::tanks::TankPlan;
use self::vehicles::VehiclePlan;
use super::world::World;
use super::{CityLearn, Physics, Recording, Reward};

impl CityLearn {
    /// The optimum of the return over the complete data with perfect foresight, and the recording of its schedule in the
    /// simulation.
    ///
    /// A linear program, solved by an interior point method; a year by the hour takes seconds per battery and charger.
    ///
    /// # Errors
    /// [`EnergyError::Field`] with CityLearn's own rules, which are not those of the program, and for districts with power outages or
    /// predicted temperatures; [`EnergyError::Optimum`] if the solver fails.
    pub fn optimum(&self) -> Result<(Optimum, Recording), EnergyError> {
        self.optimum_of(0..self.world.all_steps())
    }

    /// The optimum of an episode over these rows.
    pub(super) fn optimum_of(&self, rows: Range<usize>) -> Result<(Optimum, Recording), EnergyError> {
        let world = &*self.world;
        if world.physics != Physics::Clean {
            return fail("physics", "must be `clean` for the optimum", format!("{:?}", world.physics));
        }
        world.check_reward("for the optimum")?;
        check_homes(world, rows.clone())?;
        let model = Model::new(world, rows.clone());
        let solution = solve(&model.program)?;
        let mut best: Option<(f64, Recording)> = None;
        for by in [Follow::StateOfCharge, Follow::Energy] {
            let actions = model.actions(world, &solution, by);
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
        let planned = model.program.cost_of(&solution) + model.constant;
        let bound = solution.bound() + model.constant;
        Ok((Optimum { value, planned, bound }, recording))
    }
}

/// Refuses what changes demands by actions, which is not linear.
pub(super) fn check_homes(world: &World, rows: Range<usize>) -> Result<(), EnergyError> {
    let Some(homes) = &world.homes else { return Ok(()) };
    let buildings = || world.building_names.join(", ");
    if homes.has_dynamics() {
        return fail("data", "must have no predicted temperatures for the optimum", buildings());
    }
    let mut cells = rows.start * world.n_buildings..rows.end * world.n_buildings;
    match cells.any(|index| homes.is_outage(index)) {
        true => fail("data", "must have no power outage for the optimum", buildings()),
        false => Ok(()),
    }
}

/// How the simulation follows a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follow {
    StateOfCharge,
    Energy,
}

/// What the devices of a building add to its consumption in a step.
#[derive(Default)]
struct Flow {
    /// Energy per unit of a variable, in kWh, negative for a discharge.
    terms: Vec<(Variable, f64)>,
    /// The largest sum.
    most_kwh: f64,
}

/// Weights of the objective, per unit.
struct Weights {
    cost: f64,
    carbon: f64,
    ramp: f64,
    peak: f64,
    import: f64,
    shortfall: f64,
}

struct Model {
    program: Program,
    rows: Range<usize>,
    /// `[battery][step]`, by column of the action; empty for other columns.
    batteries: Vec<Vec<Step>>,
    tanks: Option<TankPlan>,
    vehicles: Option<VehiclePlan>,
    machines: Vec<MachinePlan>,
    /// Part of the objective that no variable changes.
    constant: f64,
}

impl Model {
    fn new(world: &World, rows: Range<usize>) -> Self {
        let hours = world.hours;
        let weights = match world.reward {
            Reward::GridImport => Weights { cost: 0.0, carbon: 0.0, ramp: 0.0, peak: 0.0, import: 1.0, shortfall: 0.0 },
            _ => {
                let [cost, carbon, ramp, peak] = world.scaled_weights;
                Weights { cost, carbon, ramp, peak, import: 0.0, shortfall: world.shortfall_weight }
            }
        };
        let mut this = Self {
            program: Program::default(),
            rows: rows.clone(),
            batteries: (0..world.n_actions()).map(|_| Vec::new()).collect(),
            tanks: None,
            vehicles: None,
            machines: Vec::new(),
            constant: 0.0,
        };
        // `[step * n_buildings + building]`.
        let mut flows: Vec<Flow> = (0..rows.len() * world.n_buildings).map(|_| Flow::default()).collect();
        this.add_batteries(world, &mut flows);
        if let Some(homes) = &world.homes {
            this.tanks = Some(TankPlan::add(&mut this.program, homes, hours, &rows, &mut flows));
        }
        if let Some(mobility) = &world.mobility {
            let plan = VehiclePlan::add(
                &mut this.program,
                mobility,
                (world.n_buildings, hours),
                &rows,
                &mut flows,
                weights.shortfall,
            );
            this.vehicles = Some(plan);
        }
        for machine in &world.machines {
            this.machines.push(MachinePlan::add(&mut this.program, machine, world.n_buildings, &rows, &mut flows));
        }
        this.add_objective(world, &flows, &weights);
        this
    }

    /// The batteries of buildings.
    fn add_batteries(&mut self, world: &World, flows: &mut [Flow]) {
        for (building, battery) in world.batteries.iter().enumerate() {
            let (Some(battery), Some(column)) = (battery, world.action_columns[building]) else { continue };
            let device = Device::new(battery, world.hours, battery.initial_soc);
            let mut before = device.known(battery.initial_soc);
            for of_step in flows.chunks_exact_mut(world.n_buildings) {
                let step = device.add(&mut self.program, before, [device.power_kwh; 2]);
                before = before.after(&step);
                let flow = &mut of_step[building];
                flow.terms.push((step.charge, 1.0));
                flow.terms.extend(step.discharge.map(|discharge| (discharge, -1.0)));
                flow.most_kwh += device.power_kwh;
                self.batteries[column].push(step);
            }
        }
    }

    /// Imports, ramps and peaks, and what they cost.
    fn add_objective(&mut self, world: &World, flows: &[Flow], weights: &Weights) {
        let (hours, n_buildings, rows) = (world.hours, world.n_buildings, self.rows.clone());
        let program = &mut self.program;
        let of_row = |row: usize| (row * n_buildings..(row + 1) * n_buildings).map(|index| world.idle_kwh(index)).sum();
        let idle_kwh: Vec<f64> = rows.clone().map(of_row).collect();
        // Larger than any change by the devices, in both directions.
        let swing_kwh = flows.chunks_exact(n_buildings).map(|step| {
            let size = |flow: &Flow| {
                let size = |(variable, factor): &(Variable, f64)| factor.abs() * program.limits(*variable).1;
                flow.terms.iter().map(size).sum::<f64>()
            };
            step.iter().map(size).sum()
        });
        let swing_kwh: f64 = swing_kwh.fold(0.0, f64::max);
        let days = idle_kwh.chunks(world.steps_per_day()).map(|day| day.iter().copied().fold(f64::MIN, f64::max));
        let most_of_day: Vec<f64> = days.map(|kwh| (kwh + swing_kwh).max(0.0) / hours).collect();
        let mut peak = None;
        // What the devices added in the step before.
        let mut before: Vec<(Variable, f64)> = Vec::new();
        for (step, index) in rows.clone().enumerate() {
            let mut of_district = Vec::new();
            for building in 0..n_buildings {
                let data = &world.series[index * n_buildings + building];
                let flow = &flows[step * n_buildings + building];
                let rest_kwh = world.idle_kwh(index * n_buildings + building);
                let cost =
                    weights.import + weights.cost * f64::from(data.price) + weights.carbon * f64::from(data.carbon);
                if flow.terms.is_empty() {
                    self.constant += cost * rest_kwh.max(0.0);
                    continue;
                }
                let most_kwh = (rest_kwh + flow.most_kwh).max(0.0);
                program.excess(cost, most_kwh, flow.terms.iter().copied(), -rest_kwh);
                of_district.extend(flow.terms.iter().map(|(variable, factor)| (*variable, factor / hours)));
            }
            if weights.ramp > 0.0 && step > 0 {
                let change_kwh = idle_kwh[step] - idle_kwh[step - 1];
                let most_kw = (change_kwh + 2.0 * swing_kwh).max(0.0) / hours;
                let terms = of_district.iter().copied().chain(before.iter().map(|(v, factor)| (*v, -factor)));
                program.excess(weights.ramp, most_kw, terms, -change_kwh / hours);
            }
            if weights.peak > 0.0 {
                let (day, first) = (step / world.steps_per_day(), step % world.steps_per_day() == 0);
                let of_day = match peak {
                    Some(of_day) if !first => of_day,
                    _ => program.variable(weights.peak, 0.0, most_of_day[day]),
                };
                peak = Some(of_day);
                program.at_most(of_district.iter().copied().chain([(of_day, -1.0)]), -idle_kwh[step] / hours);
            }
            before = of_district;
        }
        if world.reward == Reward::ChallengeImprovement {
            let [cost, carbon_kg, ramps, peaks] = world.reference_sums(rows);
            self.constant -= weights.cost * cost
                + weights.carbon * carbon_kg
                + (weights.ramp * ramps + weights.peak * peaks) / hours;
        }
    }

    /// The actions, `[step, action]`, with which the simulation follows the schedule.
    fn actions(&self, world: &World, solution: &Solution, by: Follow) -> Array2<f32> {
        let mut actions = Array2::zeros((self.rows.len(), world.n_actions()));
        for (battery, column) in world.batteries.iter().zip(&world.action_columns) {
            let (Some(battery), Some(column)) = (battery, *column) else { continue };
            let mut state = battery.start_clean();
            for (step, planned) in self.batteries[column].iter().enumerate() {
                let action = match by {
                    Follow::StateOfCharge => {
                        let soc = solution.value(planned.stored) / battery.capacity_kwh;
                        action_towards(soc, [-1.0, 1.0], |action| {
                            let mut state = state;
                            battery.step_clean(&mut state, action, world.hours);
                            state.soc
                        })
                    }
                    Follow::Energy => (planned.energy_kwh(solution) / (battery.nominal_power_kw * world.hours)) as f32,
                };
                battery.step_clean(&mut state, f64::from(action), world.hours);
                actions[(step, column)] = action;
            }
        }
        if let (Some(plan), Some(homes)) = (&self.tanks, &world.homes) {
            plan.write_actions(homes, world.hours, &self.rows, solution, by, &mut actions);
        }
        if let (Some(plan), Some(mobility)) = (&self.vehicles, &world.mobility) {
            plan.write_actions(mobility, world.hours, &self.rows, solution, by, &mut actions);
        }
        for (plan, column) in self.machines.iter().zip(&world.machine_columns) {
            plan.starts(solution).for_each(|step| actions[(step, *column)] = 1.0);
        }
        actions
    }
}
