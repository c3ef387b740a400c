//! The optimum of a station with perfect foresight: a linear program of an episode.
//!
//! Variables are energies of a step in kWh. For a car in a group of sockets: charge `c`, discharge `q`, energy gained since its
//! arrival `g`, its share `y` of a socket (1 where it finds one in any case), and for a driver bound by energy its presence `z`.
//! For the station: charge, discharge and energy of the battery, PV that is used, the power `near` at the side of the grid of
//! every node, import and export. With `r` the largest energy of the car in a step at a socket of the group:
//!
//! ```text
//! g_t = g_(t-1) + c - q,   0 <= g <= need y,   c + q <= r z,   z = y for a driver bound by time
//! c <= r (1 - slope (soc_(t-1) - s1))                                            the taper
//! need z_t >= need y - g_(t-1),   z_t <= z_(t-1)                                 who waits for energy occupies a socket
//! sum of z over a group <= its sockets,   sum of y over the groups <= 1
//! sum of z of those before >= sockets (1 - sum of y of this group and of those preferred to it)
//! near >= far / eta,   near >= far eta,   -limit <= near <= limit                far: demand minus supply of a node
//! ```
//!
//! Exact are: the taper, because it falls with the state of charge and so only cuts off a corner; limits and losses of nodes and
//! sockets; the battery without a standing loss; stays of drivers bound by time. Relaxed, so that the optimum is a bound, are:
//!
//! - Which car finds a socket. Where drivers wait for energy this depends on the controller, and the program may admit shares of
//!   cars, and keep a car at a socket that it would leave.
//! - A node may lose more than it does, and PV may be curtailed at any time: only with negative prices does this pay.
//! - The standing loss may leave out the part of the least energy.
//! - Orders are curtailed in proportion; the program chooses any flows within the limits.
//! - Charge and discharge, or import and export, in the same step; the latter pays only with an export dearer than the import.
//!
//! A second program has the cars where a played episode had them. It is the schedule: played in turn, it is improved until it
//! gains no more. What orders of whole levels cannot express is possible in the program: its schedule is played without levels.

use std::ops::Range;

use brasa_lp::{Program, Solution, Variable};
use brasa_power::{EnergyError, optimum::solve};

use super::arrivals::Car;
use super::config::LimitMode;
use super::site::Site;
use super::sockets::{MET_KWH, Sockets};
use super::stays::{Guests, Horizon, Stay, choices, fewest_steps, most_steps};

/// Smallest limit and smallest need in a program, in kWh: an interior point needs some room. More room keeps a bound a bound.
const ROOM_KWH: f64 = 1e-6;

/// Price per kWh of a target that a driver bound by energy misses although the played episode reached it, over the other prices.
const MISSED: f64 = 10.0;

/// Most cars per socket of which a row says that the others find the group full.
const MOST_PRESENT: f64 = 8.0;

/// A schedule.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Charge minus discharge of the battery per step.
    battery_kwh: Vec<f64>,
    cars: Vec<CarPlan>,
    /// Minus the return in the program.
    pub(crate) value: f64,
    /// Minus the return of any controller is at least this, if cars are where they can be.
    pub(crate) bound: f64,
}

/// The schedule of a car from its arrival on.
#[derive(Debug, Clone, Default)]
struct CarPlan {
    /// Energy gained after each step.
    gained_kwh: Vec<f64>,
    /// The step in which a driver bound by energy gets the rest.
    completes: Option<usize>,
}

impl Plan {
    /// Writes the orders of `step` and returns that of the battery; `sockets` are those of one environment.
    pub(crate) fn decide(
        &self,
        site: &Site,
        horizon: &Horizon,
        guests: &Guests<'_>,
        step: usize,
        sockets: &Sockets,
        orders_kw: &mut [f64],
    ) -> f64 {
        for (socket, order) in orders_kw.iter_mut().enumerate() {
            let Some(index) = guests.at[socket] else {
                *order = 0.0;
                continue;
            };
            let ((arrival, car), plan) = (&horizon.cars[index], &self.cars[index]);
            let since = step - arrival;
            let is_last = plan.completes == Some(since);
            *order = match plan.gained_kwh.get(since) {
                Some(gained_kwh) if !is_last => {
                    // A driver bound by energy must not leave before the planned step.
                    let spare_kwh = if car.energy_bound { ROOM_KWH } else { 0.0 };
                    let gained_kwh = gained_kwh.min(car.target_kwh - car.arrival_kwh - spare_kwh);
                    (car.arrival_kwh + gained_kwh - sockets.stored_kwh[socket]) / site.step_hours
                }
                _ => site.socket_kw[socket],
            };
        }
        self.battery_kwh[step] / site.step_hours
    }
}

/// The optimum of the relaxation: a bound, and a first schedule.
///
/// # Errors
/// [`EnergyError::Optimum`] if the solver fails.
pub(crate) fn relaxed(site: &Site, horizon: &Horizon) -> Result<Plan, EnergyError> {
    let mut model = Model::new(site, horizon);
    model.add_choices();
    model.add_station();
    model.plan()
}

/// The best schedule with every car where it was in a played episode.
///
/// # Errors
/// As [`relaxed`].
pub(crate) fn schedule(site: &Site, horizon: &Horizon, stays: &[Option<Stay>]) -> Result<Plan, EnergyError> {
    let mut model = Model::new(site, horizon);
    model.add_stays(stays);
    model.add_station();
    model.plan()
}

/// The share of a socket that a car has: a variable, or all of it.
type Share = Option<Variable>;

/// A car in a group.
struct Course {
    car: usize,
    share: Share,
    /// Energy gained after each step.
    gained: Vec<Variable>,
    completes: bool,
}

struct Model<'a> {
    site: &'a Site,
    horizon: &'a Horizon,
    program: Program,
    courses: Vec<Course>,
    battery: Vec<[Variable; 3]>,
    /// Demand minus supply of every node and step by factors, `[step][node]`.
    far: Vec<Vec<Vec<(Variable, f64)>>>,
    /// Targets that are missed, with prices that are no part of the return.
    missed: Vec<(Variable, f64)>,
    constant: f64,
}

impl<'a> Model<'a> {
    fn new(site: &'a Site, horizon: &'a Horizon) -> Self {
        Self {
            site,
            horizon,
            program: Program::default(),
            courses: Vec::new(),
            battery: Vec::new(),
            far: vec![vec![Vec::new(); site.network.nodes.len()]; horizon.n_steps()],
            missed: Vec::new(),
            constant: 0.0,
        }
    }

    /// All cars where they can be.
    fn add_choices(&mut self) {
        let (site, n_steps) = (self.site, self.horizon.n_steps());
        let weights = &site.config.reward;
        // Per group and step: the variables of presence, and the cars that are certainly there.
        let mut present: Vec<Vec<(Vec<Variable>, usize)>> =
            vec![vec![(Vec::new(), 0_usize); n_steps + 1]; site.groups.len()];
        for (index, choice) in choices(site, self.horizon).into_iter().enumerate() {
            let (arrival, car) = self.horizon.cars[index];
            let end = (arrival + most_steps(site, &car)).min(n_steps + 1);
            let leaves = arrival + most_steps(site, &car) <= n_steps;
            let is_sure = choice.certain && choice.groups.len() == 1;
            let turned_away = if choice.certain { 0.0 } else { weights.turned_away };
            self.constant += turned_away;
            let mut shares = Vec::new();
            for group in choice.groups {
                let share = (!is_sure).then(|| self.program.variable(-turned_away, 0.0, 1.0));
                shares.extend(share.map(|share| (share, 1.0)));
                if share.is_some() {
                    // The driver goes elsewhere, or away, as far as this group is full of those who came before.
                    let (variables, n_certain) = &present[group][arrival];
                    let count = site.groups[group].sockets.len() as f64;
                    // Of many that may be there it says little, and makes the program dense.
                    if variables.len() as f64 <= MOST_PRESENT * count {
                        let others = variables.iter().map(|variable| (*variable, -1.0));
                        let own = shares.iter().map(|(share, _)| (*share, -count));
                        self.program.at_most(others.chain(own), *n_certain as f64 - count);
                    }
                }
                let presence = self.presence(index, group, share, arrival..end, leaves);
                for (step, variable) in (arrival..end).zip(&presence) {
                    let (variables, n_certain) = &mut present[group][step];
                    match variable {
                        Some(variable) => variables.push(*variable),
                        None => *n_certain += 1,
                    }
                }
                let n_played = presence.len().min(n_steps - arrival);
                self.add_course(index, group, share, &presence[..n_played], leaves);
            }
            match choice.certain {
                true if !is_sure => self.program.equal(shares, 1.0),
                false if !shares.is_empty() => self.program.at_most(shares, 1.0),
                _ => {}
            }
        }
        for (group, steps) in site.groups.iter().zip(present) {
            for (variables, n_certain) in steps {
                if variables.len() + n_certain > group.sockets.len() {
                    let free = group.sockets.len() as f64 - n_certain as f64;
                    self.program.at_most(variables.into_iter().map(|variable| (variable, 1.0)), free);
                }
            }
        }
    }

    /// The presence of a car in each of its `steps`; what follows from the energy it gained is added with the course.
    fn presence(&mut self, index: usize, group: usize, share: Share, steps: Range<usize>, leaves: bool) -> Vec<Share> {
        let (site, car) = (self.site, self.horizon.cars[index].1);
        let mut presence = vec![share; steps.len()];
        if !car.energy_bound {
            return presence;
        }
        let overtime = if leaves { site.config.reward.overtime_per_hour * site.step_hours } else { 0.0 };
        let certain = fewest_steps(site, &site.groups[group], &car).min(steps.len());
        for step in certain..steps.len() {
            let cost = if step >= car.stay_steps as usize { overtime } else { 0.0 };
            let variable = self.program.variable(cost, 0.0, 1.0);
            if let Some(before) = presence[step - 1] {
                self.program.at_most([(variable, 1.0), (before, -1.0)], 0.0);
            }
            presence[step] = Some(variable);
        }
        // Until then the driver is there.
        let late = certain.saturating_sub(car.stay_steps as usize) as f64;
        match share {
            Some(share) => self.program.add_cost(share, late * overtime),
            None => self.constant += late * overtime,
        }
        presence
    }

    /// All cars where they were.
    fn add_stays(&mut self, stays: &[Option<Stay>]) {
        let weights = &self.site.config.reward;
        for (index, stay) in stays.iter().enumerate() {
            let (arrival, car) = self.horizon.cars[index];
            let Some(stay) = stay else {
                self.constant += weights.turned_away;
                continue;
            };
            let steps = stay.end - arrival;
            self.add_course(index, stay.group, None, &vec![None; steps], stay.left);
            if stay.left {
                let late = steps.saturating_sub(car.stay_steps as usize) as f64;
                self.constant += weights.overtime_per_hour * self.site.step_hours * late;
            }
            if car.energy_bound && stay.left && steps < most_steps(self.site, &car) {
                // Who left early had the energy.
                let need_kwh = need_kwh(&car);
                let price = MISSED * (1.0 + self.site.config.prices.sell_per_kwh + weights.unmet_per_kwh);
                let missed = self.program.variable(price, 0.0, need_kwh);
                self.missed.push((missed, price));
                if let Some(course) = self.courses.last_mut()
                    && let Some(gained) = course.gained.last()
                {
                    course.completes = true;
                    self.program.equal([(*gained, 1.0), (missed, 1.0)], need_kwh);
                }
            }
        }
    }

    /// The energy of a car in a group: rows, prices, and its part of the group's demand.
    fn add_course(&mut self, index: usize, group: usize, share: Share, presence: &[Share], leaves: bool) {
        let (site, (arrival, car)) = (self.site, self.horizon.cars[index]);
        let (group, weights, sell) = (&site.groups[group], &site.config.reward, site.config.prices.sell_per_kwh);
        let (program, need_kwh) = (&mut self.program, need_kwh(&car));
        let most_kwh = site.rate_kw(group, &car) * site.step_hours;
        let tapers = car.taper_slope > 0.0 && car.target_kwh > car.taper_soc * car.battery_kwh;
        // Factor of `present` on the right side of a row, which moves to the left side if it is a variable.
        let right = |present: Share, factor: f64| match present {
            Some(variable) => (Some((variable, -factor)), 0.0),
            None => (None, factor),
        };
        let mut gained: Vec<Variable> = Vec::with_capacity(presence.len());
        for (step, present) in presence.iter().enumerate() {
            let before = gained.last().copied();
            let charge = program.variable(-sell, 0.0, most_kwh);
            let returns = site.config.v2g && step > 0;
            let discharge = returns.then(|| program.variable(sell + weights.degradation_per_kwh, 0.0, most_kwh));
            let after = program.variable(0.0, 0.0, need_kwh);
            let moved = [(after, 1.0), (charge, -1.0)];
            let rest = before.map(|before| (before, -1.0)).into_iter().chain(discharge.map(|q| (q, 1.0)));
            program.equal(moved.into_iter().chain(rest), 0.0);
            if present.is_some() || discharge.is_some() {
                let (moves, limit) = right(*present, most_kwh);
                let terms = [(charge, 1.0)].into_iter().chain(discharge.map(|q| (q, 1.0)));
                program.at_most(terms.chain(moves), limit);
            }
            if tapers {
                let slope = most_kwh * car.taper_slope;
                let (moves, limit) =
                    right(share, most_kwh + slope * (car.taper_soc - car.arrival_kwh / car.battery_kwh));
                let fallen = before.map(|before| (before, slope / car.battery_kwh));
                program.at_most([(charge, 1.0)].into_iter().chain(fallen).chain(moves), limit);
            }
            let is_last = step + 1 == presence.len();
            if share.is_some() && (is_last || site.config.v2g) {
                let (moves, limit) = right(share, need_kwh);
                program.at_most([(after, 1.0)].into_iter().chain(moves), limit);
            }
            if let (Some(present), Some(before)) = (present, before)
                && Some(*present) != share
            {
                // Present unless the need is met.
                let (moves, missing_kwh) = right(share, -need_kwh);
                let terms = [(before, -1.0), (*present, -need_kwh)].into_iter().chain(moves);
                program.at_most(terms, missing_kwh + ROOM_KWH + MET_KWH);
            }
            let far = &mut self.far[arrival + step][group.node];
            far.push((charge, group.inverse_efficiency));
            far.extend(discharge.map(|q| (q, -group.efficiency)));
            gained.push(after);
        }
        if leaves && let Some(last) = gained.last() {
            // Per kWh that is missing at the departure; less than `MET_KWH` does not count.
            let unmet = weights.unmet_per_kwh;
            program.add_cost(*last, -unmet);
            match share {
                Some(share) => program.add_cost(share, unmet * need_kwh),
                None => self.constant += unmet * need_kwh,
            }
            self.constant -= unmet * (ROOM_KWH + MET_KWH);
        }
        self.courses.push(Course { car: index, share, gained, completes: false });
    }

    /// Battery, PV, nodes and grid.
    fn add_station(&mut self) {
        self.add_battery();
        let (site, program) = (self.site, &mut self.program);
        let (hours, weights, discount) =
            (site.step_hours, &site.config.reward, site.config.prices.export_discount_per_kwh);
        let network = &site.network;
        // Power of the grid in every step with its largest value, and in the step before.
        let (mut peaks, mut before) = (Vec::new(), None);
        for (step, far) in self.far.iter_mut().enumerate() {
            let pv_kwh = self.horizon.pv_kwh[step];
            if pv_kwh > 0.0 {
                let used = program.variable(-weights.curtailed_per_kwh, 0.0, pv_kwh);
                self.constant += weights.curtailed_per_kwh * pv_kwh;
                far[network.pv_node].push((used, -1.0));
            }
            for (index, node) in network.nodes.iter().enumerate().rev() {
                let terms = std::mem::take(&mut far[index]);
                if terms.is_empty() {
                    continue;
                }
                let (limit_kwh, back_kwh) = (node.limit_kw * hours, node.back_limit_kw * hours);
                if index > 0 && limit_kwh.is_infinite() && node.efficiency == 1.0 {
                    far[node.parent].extend(terms);
                    continue;
                }
                // What can flow without limits.
                let (mut most_kwh, mut least_kwh) = (ROOM_KWH, -ROOM_KWH);
                for (variable, factor) in &terms {
                    let (low, high) = program.limits(*variable);
                    most_kwh += (factor * low).max(factor * high) * node.inverse_efficiency;
                    least_kwh += (factor * low).min(factor * high) * node.inverse_efficiency;
                }
                if site.config.limits == LimitMode::Curtail {
                    most_kwh = most_kwh.min(limit_kwh.max(ROOM_KWH));
                    least_kwh = least_kwh.max(-back_kwh.max(ROOM_KWH));
                }
                let near = program.variable(0.0, least_kwh, most_kwh);
                let scaled = |by: f64| terms.iter().map(move |(variable, factor)| (*variable, factor * by));
                if node.efficiency == 1.0 {
                    program.equal(scaled(1.0).chain([(near, -1.0)]), 0.0);
                } else {
                    program.at_most(scaled(node.inverse_efficiency).chain([(near, -1.0)]), 0.0);
                    program.at_most(scaled(node.efficiency).chain([(near, -1.0)]), 0.0);
                }
                if site.config.limits == LimitMode::Penalize && weights.excess_per_kwh > 0.0 {
                    for (sign, limit_kwh, most_kwh) in [(1.0, limit_kwh, most_kwh), (-1.0, back_kwh, -least_kwh)] {
                        if limit_kwh < most_kwh {
                            program.excess(weights.excess_per_kwh, most_kwh - limit_kwh, [(near, sign)], limit_kwh);
                        }
                    }
                }
                if index > 0 {
                    far[node.parent].push((near, 1.0));
                    continue;
                }
                let buy = self.horizon.buy_per_kwh[step];
                let carbon = weights.carbon_per_kg * site.config.prices.carbon_kg_per_kwh;
                let import = program.variable(buy + carbon, 0.0, most_kwh);
                let export = program.variable(discount - buy, 0.0, -least_kwh);
                program.equal([(near, 1.0), (import, -1.0), (export, 1.0)], 0.0);
                if weights.peak_per_kw > 0.0 {
                    peaks.push((near, most_kwh));
                }
                if weights.ramp_per_kw > 0.0 {
                    if let Some((before, width_kwh)) = before {
                        let width_kwh: f64 = width_kwh + most_kwh - least_kwh;
                        program.distance(weights.ramp_per_kw / hours, width_kwh, &[(near, 1.0), (before, -1.0)], 0.0);
                    }
                    before = Some((near, most_kwh - least_kwh));
                }
            }
        }
        let most_kwh = peaks.iter().fold(0.0_f64, |most, (_, kwh)| most.max(*kwh));
        if !peaks.is_empty() {
            let peak = program.variable(weights.peak_per_kw / hours, 0.0, most_kwh);
            peaks.into_iter().for_each(|(near, _)| program.at_most([(near, 1.0), (peak, -1.0)], 0.0));
        }
    }

    fn add_battery(&mut self) {
        let (site, program, storage) = (self.site, &mut self.program, &self.site.storage);
        let (hours, weights) = (site.step_hours, &site.config.reward);
        let start_kwh = site.config.battery.soc_start * site.config.battery.capacity_kwh;
        let power_kwh = storage.power_kw * hours;
        self.constant += weights.stored_per_kwh * start_kwh;
        if power_kwh <= 0.0 || storage.high_kwh <= storage.low_kwh {
            let idle = |kwh: f64, _| storage.after(kwh, 0.0, 0.0, site.standing_loss).stored_kwh;
            self.constant -= weights.stored_per_kwh * (0..self.horizon.n_steps()).fold(start_kwh, idle);
            return;
        }
        let (kept, forgiven_kwh) = (1.0 - site.standing_loss, site.standing_loss * storage.low_kwh);
        let mut stored: Option<Variable> = None;
        for far in &mut self.far {
            let charge = program.variable(0.0, 0.0, power_kwh);
            let discharge = program.variable(weights.degradation_per_kwh, 0.0, power_kwh);
            let after = program.variable(0.0, storage.low_kwh, storage.high_kwh);
            program.at_most([(charge, 1.0), (discharge, 1.0)], power_kwh);
            let (before, at_start_kwh) = match stored {
                Some(stored) => (Some((stored, 1.0)), 0.0),
                None => (None, start_kwh),
            };
            let filled = [(charge, storage.charge_efficiency), (discharge, -1.0 / storage.discharge_efficiency)];
            let filled = || filled.into_iter().chain(before);
            // The charge is limited before the loss.
            program.at_most(filled(), storage.high_kwh - at_start_kwh);
            let change = || [(after, 1.0)].into_iter().chain(filled().map(|(v, factor)| (v, -kept * factor)));
            let right = kept * at_start_kwh;
            if forgiven_kwh > 0.0 {
                program.at_most(change(), right + forgiven_kwh);
                program.at_most(change().map(|(variable, factor)| (variable, -factor)), -right);
            } else {
                program.equal(change(), right);
            }
            far[site.network.battery_node].extend([(charge, 1.0), (discharge, -1.0)]);
            stored = Some(after);
            self.battery.push([charge, discharge, after]);
        }
        if let Some(last) = stored {
            program.add_cost(last, -weights.stored_per_kwh);
        }
    }

    fn plan(&self) -> Result<Plan, EnergyError> {
        let solution = solve(&self.program)?;
        let net = |[charge, discharge, _]: &[Variable; 3]| solution.value(*charge) - solution.value(*discharge);
        let battery_kwh = (0..self.horizon.n_steps()).map(|step| self.battery.get(step).map_or(0.0, net)).collect();
        let missed: f64 = self.missed.iter().map(|(variable, price)| price * solution.value(*variable)).sum();
        Ok(Plan {
            battery_kwh,
            cars: self.car_plans(&solution),
            value: self.program.cost_of(&solution) - missed + self.constant,
            bound: solution.bound() + self.constant,
        })
    }

    /// The plans of all cars; a share of a car is scaled to the whole.
    fn car_plans(&self, solution: &Solution) -> Vec<CarPlan> {
        /// Below this share a car is planned to be turned away; if it is there, it takes nothing.
        const SHARE: f64 = 0.05;
        let mut shares = vec![0.0; self.horizon.cars.len()];
        let mut plans = vec![CarPlan::default(); self.horizon.cars.len()];
        for course in &self.courses {
            shares[course.car] += course.share.map_or(1.0, |share| solution.value(share));
            let plan = &mut plans[course.car];
            plan.gained_kwh.resize(course.gained.len(), 0.0);
            for (total, gained) in plan.gained_kwh.iter_mut().zip(&course.gained) {
                *total += solution.value(*gained).max(0.0);
            }
            plan.completes = course.completes.then(|| course.gained.len() - 1);
        }
        for ((plan, share), (_, car)) in plans.iter_mut().zip(shares).zip(&self.horizon.cars) {
            let scale = if share > SHARE { 1.0 / share } else { 0.0 };
            plan.gained_kwh.iter_mut().for_each(|kwh| *kwh *= scale);
            if car.energy_bound && plan.completes.is_none() {
                let enough_kwh = (1.0 - 1e-4) * (car.target_kwh - car.arrival_kwh);
                plan.completes = plan.gained_kwh.iter().position(|kwh| *kwh >= enough_kwh);
            }
        }
        plans
    }
}

/// Energy that a car can gain, with some room.
fn need_kwh(car: &Car) -> f64 {
    (car.target_kwh - car.arrival_kwh).max(0.0) + ROOM_KWH
}
