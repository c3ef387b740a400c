//! The optimum with perfect foresight, as a linear program over a horizon.
//!
//! Variables per step, in kWh at the bus: charge `c`, discharge `d`, stored energy `s`, import `g`, export `x`, curtailed PV
//! `u`, import beyond the soft limit `o`, and the energy of the vehicles (`super::sessions`); per month: the peak of the
//! import. With PV and load known:
//!
//! ```text
//! g + pv + d  = load + vehicles + c + x + u
//! s_t         = (1 - l) (s_(t-1) + eta_c c - d / eta_d)
//! peak_month >= g / dt,    o >= g - soft limit,    sum of vehicles <= limit of the feeder
//! ```
//!
//! The objective is linear in them. Two rules of the simulation are not:
//!
//! - The standing loss `l` does not take energy below the minimum. The bound allows `s_t <= (1 - l) (...) + l s_min`, which is
//!   true of every battery. A second program has the schedule: the battery is at its minimum after the same steps as in the
//!   first, and pays the loss in all others.
//! - The battery serves load, vehicles and export alone: `d <= max(0, load + vehicles + export limit - pv)`. Where PV exceeds the
//!   load by less than the vehicles may take, the smallest concave function above it is the limit.
//!
//! A battery that charges from PV alone has the limit `c <= max(0, pv - load)`, although vehicles take PV first. The result of
//! the schedule is therefore that of its simulation; the gap to the bound says what these rules cost.

use std::ops::Range;
use std::sync::Arc;

use brasa_lp::{Program, Solution, Variable};
use brasa_power::{EnergyError, fail, optimum::solve, scenario::Evaluated};

use super::config::RewardKind;
use super::dispatch::{BatteryOrder, Flows};
use super::reward::terms;
use super::sessions::{Group, Session, most_kwh};
use super::site::Site;
use super::world::World;
use crate::storage::Storage;

/// Weights of the raw objectives of a step; the optimum has the smallest weighted sum over a year. They are not negative.
///
/// ```
/// use brasa_energy::iquitos::{Iquitos, IquitosConfig, Objective};
///
/// let iquitos = Iquitos::new(IquitosConfig::default())?;
/// // The weights by which `Iquitos::optimum` maximizes the return.
/// let of_return: Objective = iquitos.objective_of_return()?;
/// assert!(of_return.carbon_kg > 0.0 && of_return.cost > 0.0);
/// // Carbon alone.
/// let carbon = Objective { carbon_kg: 1.0, ..Objective::default() };
/// assert_eq!(carbon.cost, 0.0);
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Objective {
    /// Per kg of CO2.
    pub carbon_kg: f64,
    /// Per unit of cost in the currency of the tariff, demand charge and wear included.
    pub cost: f64,
    /// Per kWh of curtailed PV.
    pub pv_curtailed_kwh: f64,
    /// Per kWh that departing vehicles miss.
    pub ev_unmet_kwh: f64,
    /// Per kWh of import beyond the soft limit.
    pub grid_excess_kwh: f64,
    /// Per kW that the peak import of a month rises.
    pub peak_rise_kw: f64,
    /// Per kW that the power from the grid changes between steps.
    pub ramp_kw: f64,
    /// Per kWh that is charged or discharged.
    pub battery_kwh: f64,
}

impl Objective {
    /// Minus the reward, up to a constant.
    pub(super) fn of_return(site: &Site) -> Result<Self, EnergyError> {
        if site.config.reward.kind == RewardKind::Seed {
            return fail("reward.kind", "must be linear, which `seed` is not", "seed");
        }
        let terms = terms(&Flows::<f64>::default(), site);
        let per = |name: &str| {
            let term = terms.iter().find(|term| term.name == name).expect("a term of the reward");
            if term.scale > 0.0 { term.weight / term.scale } else { 0.0 }
        };
        Ok(Self {
            carbon_kg: per("carbon"),
            cost: per("cost"),
            pv_curtailed_kwh: per("solar"),
            ev_unmet_kwh: per("vehicles"),
            grid_excess_kwh: per("grid"),
            peak_rise_kw: per("peak"),
            ramp_kw: per("ramp"),
            battery_kwh: per("wear"),
        })
    }

    fn validate(&self) -> Result<(), EnergyError> {
        let fields = [
            ("carbon_kg", self.carbon_kg),
            ("cost", self.cost),
            ("pv_curtailed_kwh", self.pv_curtailed_kwh),
            ("ev_unmet_kwh", self.ev_unmet_kwh),
            ("grid_excess_kwh", self.grid_excess_kwh),
            ("peak_rise_kw", self.peak_rise_kw),
            ("ramp_kw", self.ramp_kw),
            ("battery_kwh", self.battery_kwh),
        ];
        for (name, weight) in fields {
            if !(weight.is_finite() && weight >= 0.0) {
                return fail(&format!("objective.{name}"), "must be finite and at least 0", weight);
            }
        }
        Ok(())
    }
}

/// What no controller changes: PV, load and vehicles of consecutive steps, and the state before them.
#[derive(Debug, Clone)]
pub(crate) struct Horizon {
    /// First step of the year.
    pub(crate) first_step: u32,
    pub(crate) pv_kwh: Vec<f64>,
    pub(crate) load_kwh: Vec<f64>,
    pub(crate) price_per_kwh: Vec<f64>,
    pub(crate) carbon_kg_per_kwh: Vec<f64>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) stored_kwh: f64,
    /// Largest import of the month before the first step.
    pub(crate) month_peak_kw: f64,
    /// Power from the grid in the step before the first, if there was one.
    pub(crate) grid_kw: Option<f64>,
}

impl Horizon {
    /// An episode of the evaluation, such as a complete year.
    pub(crate) fn of_episode(year: &Arc<Site>, episode: Evaluated) -> Self {
        let n_steps = year.episode_steps() as usize;
        let mut world = World::of_episode(Arc::clone(year), episode);
        world.begin(0, 0);
        let first_step = world.state.envs[0].step_of_year;
        let steps = || first_step..first_step + n_steps as u32;
        let orders_kw = vec![0.0; year.config.n_sockets()];
        let mut horizon = Self {
            first_step,
            pv_kwh: Vec::with_capacity(n_steps),
            load_kwh: Vec::with_capacity(n_steps),
            price_per_kwh: steps().map(|step| year.price_per_kwh(step)).collect(),
            carbon_kg_per_kwh: steps().map(|step| year.carbon_kg_per_kwh(step)).collect(),
            sessions: Vec::new(),
            stored_kwh: world.state.envs[0].stored_kwh,
            month_peak_kw: 0.0,
            grid_kw: None,
        };
        let mut stays = vec![0.0; orders_kw.len()];
        for step in 0..n_steps {
            let env = &world.state.envs[0];
            horizon.pv_kwh.push(env.pv_kwh);
            horizon.load_kwh.push(env.load_kwh);
            let sockets = world.sockets(0);
            for (socket, (need, stay)) in sockets.need_kwh.iter().zip(sockets.dwell_steps).enumerate() {
                // A vehicle that stays has one step less than before; any other is new.
                if year.serves_vehicles() && *stay > 0.0 && stays[socket] <= 1.0 {
                    let (steps, need_kwh) = (*stay as usize, f64::from(*need));
                    horizon.sessions.push(Session {
                        socket,
                        first: step,
                        steps: steps.min(n_steps - step),
                        leaves: step + steps <= n_steps,
                        need_kwh,
                    });
                }
                stays[socket] = *stay;
            }
            world.play(0, &orders_kw, BatteryOrder::Power(0.0));
        }
        horizon
    }

    fn steps(&self) -> Range<usize> {
        0..self.pv_kwh.len()
    }

    fn step_of_year(&self, site: &Site, step: usize) -> u32 {
        (self.first_step + step as u32) % site.steps_per_year
    }
}

/// Treatment of the standing loss where the battery is at its minimum.
enum Standing {
    /// Any step may lose less than the simulation does: a bound.
    Forgiven,
    /// As in the simulation, with the steps that end at the minimum of the battery.
    Paid { at_low: Vec<bool> },
}

/// Price of a standing loss that nobody pays, relative to that of its import.
const UNPAID: f64 = 3.0;

/// A battery with less than this share of its capacity above the minimum is there.
const LOW: f64 = 1e-4;

/// The optimum of a horizon.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Charge minus discharge of every step.
    pub(crate) battery_kwh: Vec<f64>,
    /// Energy of every socket in every step, `[step * n_sockets + socket]`.
    pub(crate) sockets_kwh: Vec<f32>,
    /// The objective of this plan.
    pub(crate) value: f64,
    /// No controller has a smaller objective.
    pub(crate) bound: f64,
}

/// The optimum of `horizon`, as the simulation can follow it, with a bound.
///
/// # Errors
/// [`EnergyError::Field`] for invalid weights, [`EnergyError::Optimum`] if the solver fails.
pub(crate) fn plan(site: &Site, horizon: &Horizon, objective: &Objective) -> Result<Plan, EnergyError> {
    objective.validate()?;
    let relaxed = Model::new(site, horizon, objective, &Standing::Forgiven);
    let solution = solve(&relaxed.program)?;
    let bound = relaxed.bound(&solution);
    let battery = &site.config.battery;
    let low_kwh = battery.storage().low_kwh;
    if site.standing_loss * low_kwh == 0.0 {
        return Ok(relaxed.plan(site, horizon, &solution, bound));
    }
    let at_low = relaxed.at_low(&solution, low_kwh + LOW * battery.capacity_kwh);
    let schedule = Model::new(site, horizon, objective, &Standing::Paid { at_low });
    let solution = solve(&schedule.program)?;
    Ok(schedule.plan(site, horizon, &solution, bound))
}

/// Terms of the program of a horizon, roughly: those of its vehicles, and up to 21 per step for the rest.
pub(crate) fn n_terms(site: &Site, horizon: &Horizon) -> f64 {
    let most = most_kwh(&site.config.vehicles, site.step_hours);
    let of_vehicles: usize = Group::of(&horizon.sessions).iter().map(|group| group.n_terms(most)).sum();
    (of_vehicles + 21 * horizon.pv_kwh.len()) as f64
}

/// A plan whose later steps nobody follows: without the second program of [`plan`]. Each kWh that is stored after it saves
/// `kept_value`.
///
/// # Errors
/// As [`plan`].
pub(crate) fn plan_ahead(
    site: &Site,
    horizon: &Horizon,
    objective: &Objective,
    kept_value: f64,
) -> Result<Plan, EnergyError> {
    let mut model = Model::new(site, horizon, objective, &Standing::Forgiven);
    if let Some([.., last]) = model.battery.last() {
        model.program.add_cost(*last, -kept_value);
    }
    let solution = solve(&model.program)?;
    let bound = model.bound(&solution);
    Ok(model.plan(site, horizon, &solution, bound))
}

/// The program of a horizon.
struct Model {
    program: Program,
    /// Charge, discharge and stored energy of every step; empty without a battery.
    battery: Vec<[Variable; 3]>,
    groups: Vec<Group>,
    /// Standing losses that the battery does not pay, and energy above its minimum, with prices that are no part of the
    /// objective.
    unpaid_prices: Vec<(Variable, f64)>,
    /// Part of the objective that no variable changes.
    constant: f64,
}

/// A program that grows step by step.
struct Growing<'a> {
    site: &'a Site,
    horizon: &'a Horizon,
    objective: &'a Objective,
    standing: &'a Standing,
    program: Program,
    /// Energy that vehicles take, for every step.
    taken: Vec<Vec<Variable>>,
    battery: Vec<[Variable; 3]>,
    unpaid_prices: Vec<(Variable, f64)>,
    constant: f64,
    most_import_kw: f64,
    /// Stored energy after the step before.
    stored: Option<Variable>,
    /// Exchange with the grid in the step before, in kW.
    before: Option<Vec<(Variable, f64)>>,
    /// The latest month and its peak.
    peak: Option<(u8, Variable)>,
}

impl Growing<'_> {
    fn profile_kwh(&self, step: usize) -> f64 {
        match self.site.serves_vehicles() {
            true => 0.0,
            false => self.site.time(self.horizon.step_of_year(self.site, step)).profile_kwh,
        }
    }

    fn feeder_kwh(&self) -> f64 {
        self.site.config.vehicles.feeder_limit_kw * self.site.step_hours
    }

    fn battery_kwh(&self) -> f64 {
        self.site.config.battery.power_kw * self.site.step_hours
    }

    fn most_import_kwh(&self, step: usize) -> f64 {
        self.horizon.load_kwh[step] + self.profile_kwh(step).max(self.feeder_kwh()) + self.battery_kwh()
    }

    fn per_import(&self, step: usize) -> f64 {
        let (objective, horizon) = (self.objective, self.horizon);
        objective.carbon_kg * horizon.carbon_kg_per_kwh[step] + objective.cost * horizon.price_per_kwh[step]
    }

    /// The balance of energy at the grid.
    fn add_step(&mut self, step: usize) {
        let (grid, hours) = (&self.site.config.grid, self.site.step_hours);
        let (pv_kwh, load_kwh) = (self.horizon.pv_kwh[step], self.horizon.load_kwh[step]);
        let import = self.program.variable(self.per_import(step), 0.0, self.most_import_kwh(step));
        let curtailed = self.program.variable(self.objective.pv_curtailed_kwh, 0.0, pv_kwh);
        let mut balance = vec![(import, 1.0), (curtailed, -1.0)];
        let mut exchange = vec![(import, 1.0)];
        if grid.export_limit_kw > 0.0 {
            let revenue = self.objective.cost * grid.export_price_per_kwh;
            let export_kwh = (grid.export_limit_kw * hours).min(pv_kwh + self.battery_kwh());
            let export = self.program.variable(-revenue, 0.0, export_kwh);
            balance.push((export, -1.0));
            exchange.push((export, -1.0));
        }
        if !self.taken[step].is_empty() {
            let feeder_kwh = self.feeder_kwh();
            self.program.at_most(self.taken[step].iter().map(|variable| (*variable, 1.0)), feeder_kwh);
            balance.extend(self.taken[step].iter().map(|variable| (*variable, -1.0)));
        }
        let battery = &self.site.config.battery;
        if battery.capacity_kwh > 0.0 && battery.power_kw > 0.0 {
            let [charge, discharge] = self.add_battery(step);
            balance.extend([(charge, -1.0), (discharge, 1.0)]);
        }
        let profile_kwh = self.profile_kwh(step);
        self.program.equal(balance, load_kwh + profile_kwh - pv_kwh);

        let soft_kwh = grid.soft_limit_kw * hours;
        let most_excess_kwh = self.most_import_kwh(step) - soft_kwh;
        if self.objective.grid_excess_kwh > 0.0 && most_excess_kwh > 0.0 {
            self.program.excess(self.objective.grid_excess_kwh, most_excess_kwh, [(import, 1.0)], soft_kwh);
        }
        if self.objective.ramp_kw > 0.0 {
            self.add_ramp(exchange.iter().map(|(variable, sign)| (*variable, sign / hours)).collect());
        }
        let per_kw = self.objective.cost * grid.demand_charge_per_kw + self.objective.peak_rise_kw;
        if per_kw > 0.0 {
            self.add_peak(step, per_kw, import);
        }
    }

    /// Charge and discharge.
    fn add_battery(&mut self, step: usize) -> [Variable; 2] {
        let (site, horizon) = (self.site, self.horizon);
        let battery = &site.config.battery;
        let Storage { low_kwh, high_kwh, .. } = battery.storage();
        let (power_kwh, feeder_kwh) = (self.battery_kwh(), self.feeder_kwh());
        let (pv_kwh, load_kwh) = (horizon.pv_kwh[step], horizon.load_kwh[step]);
        let wear = self.objective.cost * battery.wear_cost_per_kwh + self.objective.battery_kwh;
        let surplus_kwh = (pv_kwh - load_kwh).max(0.0);
        let most_kwh = if battery.charge_from_grid { power_kwh } else { power_kwh.min(surplus_kwh) };
        let charge = self.program.variable(wear, 0.0, most_kwh);
        let discharge = self.program.variable(wear, 0.0, power_kwh);
        self.program.at_most([(charge, 1.0), (discharge, 1.0)], power_kwh);
        // The battery serves load, vehicles and export alone: discharge <= max(0, rest + vehicles).
        let export_kwh = site.config.grid.export_limit_kw * site.step_hours;
        let rest_kwh = load_kwh + self.profile_kwh(step) - pv_kwh + export_kwh;
        let most_taken_kwh = if self.taken[step].is_empty() { 0.0 } else { feeder_kwh };
        let (slope, right) = match rest_kwh >= 0.0 || most_taken_kwh == 0.0 {
            true => (1.0, rest_kwh.max(0.0)),
            // The smallest concave function above it, up to the limit of the feeder.
            false => ((rest_kwh + most_taken_kwh).max(0.0) / most_taken_kwh, 0.0),
        };
        let vehicles = self.taken[step].iter().map(|variable| (*variable, -slope));
        self.program.at_most(vehicles.chain([(discharge, 1.0)]), right);
        let after = self.program.variable(0.0, low_kwh, high_kwh);
        self.add_storage(step, [charge, discharge, after], low_kwh);
        // The charge is limited before the loss.
        let filled = [(charge, battery.charge_efficiency), (discharge, -1.0 / battery.discharge_efficiency)];
        let room_kwh = high_kwh - if self.stored.is_none() { horizon.stored_kwh } else { 0.0 };
        let stored = self.stored.map(|stored| (stored, 1.0));
        self.program.at_most(filled.into_iter().chain(stored), room_kwh);
        self.stored = Some(after);
        self.battery.push([charge, discharge, after]);
        [charge, discharge]
    }

    /// Stored energy after a step, by that before and the standing loss.
    fn add_storage(&mut self, step: usize, [charge, discharge, after]: [Variable; 3], low_kwh: f64) {
        let battery = &self.site.config.battery;
        let kept = 1.0 - self.site.standing_loss;
        let moved = [
            (after, 1.0),
            (charge, -kept * battery.charge_efficiency),
            (discharge, kept / battery.discharge_efficiency),
        ];
        let (from, right) = match self.stored {
            Some(stored) => (Some((stored, -kept)), 0.0),
            None => (None, kept * self.horizon.stored_kwh),
        };
        let (moved, forgiven_kwh) = (moved.into_iter().chain(from), self.site.standing_loss * low_kwh);
        match self.standing {
            Standing::Forgiven if forgiven_kwh > 0.0 => {
                self.program.at_most(moved.clone(), right + forgiven_kwh);
                self.program.at_most(moved.map(|(variable, factor)| (variable, -factor)), -right);
            }
            Standing::Paid { at_low } => {
                let (is_low, price) = (at_low[step], UNPAID * self.per_import(step));
                // Elsewhere it is only for plans that were impossible without.
                let unpaid = self.add_unpaid(if is_low { 0.0 } else { price }, forgiven_kwh);
                self.program.equal(moved.chain([(unpaid, -1.0)]), right);
                if is_low {
                    // Above the minimum only where the battery cannot give away the rest, without takers.
                    let above = self.add_unpaid(price, LOW * battery.capacity_kwh);
                    self.program.at_most([(after, 1.0), (above, -1.0)], low_kwh);
                }
            }
            _ => self.program.equal(moved, right),
        }
    }

    fn add_unpaid(&mut self, price: f64, most_kwh: f64) -> Variable {
        let variable = self.program.variable(price, 0.0, most_kwh);
        self.unpaid_prices.push((variable, price));
        variable
    }

    fn add_ramp(&mut self, now: Vec<(Variable, f64)>) {
        let given_kw = self.horizon.grid_kw;
        if self.before.is_some() || given_kw.is_some() {
            let most_kw = 2.0 * (self.most_import_kw + self.site.config.grid.export_limit_kw);
            let grid_kw = if self.before.is_some() { 0.0 } else { given_kw.unwrap_or(0.0) };
            let from = self.before.iter().flatten().map(|(variable, factor)| (*variable, -factor));
            let change: Vec<_> = now.iter().copied().chain(from).collect();
            self.program.distance(self.objective.ramp_kw, most_kw, &change, grid_kw);
        }
        self.before = Some(now);
    }

    fn add_peak(&mut self, step: usize, per_kw: f64, import: Variable) {
        let month = self.site.day(self.horizon.step_of_year(self.site, step)).month;
        let of_month = match self.peak {
            Some((of, variable)) if of == month => variable,
            _ => {
                let so_far_kw = if self.peak.is_none() { self.horizon.month_peak_kw } else { 0.0 };
                self.constant -= per_kw * so_far_kw;
                self.program.variable(per_kw, so_far_kw, so_far_kw.max(self.most_import_kw))
            }
        };
        self.peak = Some((month, of_month));
        self.program.at_most([(import, 1.0 / self.site.step_hours), (of_month, -1.0)], 0.0);
    }
}

impl Model {
    fn new(site: &Site, horizon: &Horizon, objective: &Objective, standing: &Standing) -> Self {
        let (mut program, n_steps) = (Program::default(), horizon.pv_kwh.len());
        let mut groups = Group::of(&horizon.sessions);
        let mut taken: Vec<Vec<Variable>> = vec![Vec::new(); n_steps];
        let most = most_kwh(&site.config.vehicles, site.step_hours);
        for group in &mut groups {
            group.add(&mut program, most, objective.ev_unmet_kwh, |step, variable| taken[step].push(variable));
        }
        let needs_kwh: f64 = groups.iter().map(Group::counted_need_kwh).sum();
        let mut growing = Growing {
            site,
            horizon,
            objective,
            standing,
            program,
            taken,
            battery: Vec::new(),
            unpaid_prices: Vec::new(),
            constant: objective.ev_unmet_kwh * needs_kwh,
            most_import_kw: 0.0,
            stored: None,
            before: None,
            peak: None,
        };
        let most_import_kwh = horizon.steps().fold(0.0, |most: f64, step| most.max(growing.most_import_kwh(step)));
        growing.most_import_kw = most_import_kwh / site.step_hours;
        horizon.steps().for_each(|step| growing.add_step(step));
        let Growing { program, battery, unpaid_prices, constant, .. } = growing;
        Self { program, battery, groups, unpaid_prices, constant }
    }

    fn plan(&self, site: &Site, horizon: &Horizon, solution: &Solution, bound: f64) -> Plan {
        let n_sockets = site.config.n_sockets();
        let mut sockets_kwh = vec![0.0; n_sockets * horizon.pv_kwh.len()];
        let most = most_kwh(&site.config.vehicles, site.step_hours);
        for group in &self.groups {
            group.distribute(solution, most, |step, socket, kwh| sockets_kwh[step * n_sockets + socket] = kwh as f32);
        }
        let net = |[charge, discharge, _]: &[Variable; 3]| solution.value(*charge) - solution.value(*discharge);
        let battery_kwh = horizon.steps().map(|step| self.battery.get(step).map_or(0.0, net)).collect();
        let unpaid: f64 = self.unpaid_prices.iter().map(|(loss, price)| solution.value(*loss) * price).sum();
        let value = self.program.cost_of(solution) - unpaid + self.constant;
        Plan { battery_kwh, sockets_kwh, value, bound }
    }

    /// Whether each step ends with at most `low_kwh`.
    fn at_low(&self, solution: &Solution, low_kwh: f64) -> Vec<bool> {
        self.battery.iter().map(|step| solution.value(step[2]) <= low_kwh).collect()
    }

    fn bound(&self, solution: &Solution) -> f64 {
        solution.bound() + self.constant
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iquitos::{Iquitos, IquitosConfig};

    /// What `plan` says of a comparison is near what its program has.
    #[test]
    fn terms_are_counted_before_there_is_a_model() {
        for (step_minutes, tolerance) in [(60, 0.1), (30, 0.1)] {
            let config = IquitosConfig { step_minutes, optimum: true, ..IquitosConfig::default() };
            let scenario = Iquitos::new(config).expect("it is valid");
            let site = scenario.year();
            let horizon = Horizon::of_episode(site, Evaluated { index: 0, seed: 0 });
            let objective = Objective::of_return(site).expect("the reward is linear");
            let model = Model::new(site, &horizon, &objective, &Standing::Forgiven);
            let (there, counted) = (model.program.n_terms() as f64, n_terms(site, &horizon));
            assert!((counted / there - 1.0).abs() < tolerance, "{step_minutes}: {counted} instead of {there}");
        }
    }
}
