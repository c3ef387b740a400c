//! The vehicles of a horizon, and how their energy enters a linear program.
//!
//! A vehicle with a need `n` and a socket of `p` kWh per step can take any energies `x` with `x_t <= p` and
//! `sum of x <= n`. For vehicles with the same arrival and departure, the sums that they can take together are
//! limited by `F(j) = sum of min(n, p j)` for any `j` steps: these sets are polymatroids, and so is their sum (Edmonds 1970).
//! `F` is concave, so a group of any size equals at most as many vehicles as it has steps: the one for `b` steps
//! has the power `w_b` and the need `b w_b`, where `w_b` is the change of slope of `F` at `b`.

use std::collections::BTreeMap;

use brasa_lp::{Program, Solution, Variable};

use super::config::VehicleConfig;

/// A vehicle at a socket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Session {
    pub(crate) socket: usize,
    /// First step at the socket, in steps of the horizon.
    pub(crate) first: usize,
    /// Steps at the socket within the horizon.
    pub(crate) steps: usize,
    /// Whether it leaves within the horizon, so that its unmet energy counts.
    pub(crate) leaves: bool,
    /// Energy that it needs from the socket.
    pub(crate) need_kwh: f64,
}

/// Vehicles with the same arrival and departure.
#[derive(Debug)]
pub(crate) struct Group {
    first: usize,
    steps: usize,
    leaves: bool,
    members: Vec<Session>,
    /// Energy per step, of each vehicle that represents the group.
    taken: Vec<Vec<Variable>>,
}

impl Group {
    /// The groups of `sessions`.
    pub(crate) fn of(sessions: &[Session]) -> Vec<Self> {
        let mut groups: BTreeMap<(usize, usize, bool), Vec<Session>> = BTreeMap::new();
        for session in sessions {
            groups.entry((session.first, session.steps, session.leaves)).or_default().push(*session);
        }
        let group = |((first, steps, leaves), members)| Self { first, steps, leaves, members, taken: Vec::new() };
        groups.into_iter().map(group).collect()
    }

    /// Numbers of steps, each with the power of a vehicle that charges so long, whose sum is what the members take.
    fn levels(&self, most_kwh: impl Fn(usize) -> f64) -> Vec<(usize, f64)> {
        let total = |j: usize| self.members.iter().map(|m| m.need_kwh.min(most_kwh(m.socket) * j as f64)).sum::<f64>();
        let totals: Vec<f64> = (0..=self.steps).map(total).collect();
        let slope = |j: usize| if j > self.steps { 0.0 } else { totals[j] - totals[j - 1] };
        let levels = (1..=self.steps).map(|b| (b, slope(b) - slope(b + 1)));
        levels.filter(|(_, power_kwh)| *power_kwh > 1e-9).collect()
    }

    /// Terms that the group adds to a program: its variables, each in four rows.
    pub(crate) fn n_terms(&self, most_kwh: impl Fn(usize) -> f64) -> usize {
        4 * self.steps * self.levels(most_kwh).len()
    }

    /// Adds the variables of the group, which cost `unmet_cost` less per delivered kWh if it leaves, and calls `each` with
    /// the step and the variable of every energy.
    pub(crate) fn add(
        &mut self,
        program: &mut Program,
        most_kwh: impl Fn(usize) -> f64,
        unmet_cost: f64,
        mut each: impl FnMut(usize, Variable),
    ) {
        let cost = if self.leaves { -unmet_cost } else { 0.0 };
        for (b, power_kwh) in self.levels(most_kwh) {
            let taken: Vec<Variable> = (0..self.steps).map(|_| program.variable(cost, 0.0, power_kwh)).collect();
            if b < self.steps {
                program.at_most(taken.iter().map(|variable| (*variable, 1.0)), b as f64 * power_kwh);
            }
            taken.iter().enumerate().for_each(|(step, variable)| each(self.first + step, *variable));
            self.taken.push(taken);
        }
    }

    /// Energy that all members need, if it counts.
    pub(crate) fn counted_need_kwh(&self) -> f64 {
        if self.leaves { self.members.iter().map(|member| member.need_kwh).sum() } else { 0.0 }
    }

    /// Distributes the solution's energy over the members: calls `each` with step, socket and energy.
    ///
    /// In every step, the vehicles that need the most steps at full power charge first, down to a common number of steps.
    /// This keeps `F` of the next steps as large as possible, so that what the solution plans remains possible.
    pub(crate) fn distribute(
        &self,
        solution: &Solution,
        most_kwh: impl Fn(usize) -> f64,
        mut each: impl FnMut(usize, usize, f64),
    ) {
        let mut left: Vec<f64> = self.members.iter().map(|member| member.need_kwh).collect();
        for step in 0..self.steps {
            let planned_kwh = self.taken.iter().map(|taken| solution.value(taken[step]).max(0.0)).sum::<f64>();
            let charge = |left: f64, most: f64, steps: f64| (left - steps * most).clamp(0.0, most.min(left));
            let sum = |left: &[f64], steps: f64| {
                left.iter().zip(&self.members).map(|(left, m)| charge(*left, most_kwh(m.socket), steps)).sum::<f64>()
            };
            let most_steps = |left: &[f64]| {
                left.iter().zip(&self.members).fold(0.0, |most: f64, (left, m)| most.max(left / most_kwh(m.socket)))
            };
            // The sum decreases with the number of steps that remain.
            let (mut low, mut high) = (0.0, most_steps(&left));
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                if sum(&left, middle) > planned_kwh { low = middle } else { high = middle }
            }
            for (left, member) in left.iter_mut().zip(&self.members) {
                let energy = charge(*left, most_kwh(member.socket), high);
                *left -= energy;
                each(self.first + step, member.socket, energy);
            }
        }
    }
}

/// Largest energy of a socket in a step.
pub(crate) fn most_kwh(vehicles: &VehicleConfig, step_hours: f64) -> impl Fn(usize) -> f64 + Copy {
    let (n_motos, moto, mototaxi) = (vehicles.moto.sockets, vehicles.moto.socket_kw, vehicles.mototaxi.socket_kw);
    move |socket| step_hours * if socket < n_motos { moto } else { mototaxi }
}

#[cfg(test)]
mod tests {
    use brasa_env::named_rng;
    use rand::{Rng, RngExt};

    use super::*;

    fn members(rng: &mut (impl Rng + ?Sized), steps: usize) -> Vec<Session> {
        let n = rng.random_range(1..12);
        let member = |socket| Session { socket, first: 3, steps, leaves: true, need_kwh: rng.random_range(0.0..4.0) };
        (0..n).map(member).collect()
    }

    /// The largest weighted energy of single vehicles equals that of their group, and the group's energy can be distributed.
    #[test]
    fn a_group_is_worth_its_members() {
        for case in 0..200 {
            let mut rng = named_rng(case, "group", 0);
            let steps = rng.random_range(1..6);
            let members = members(&mut rng, steps);
            let most = |socket: usize| if socket.is_multiple_of(2) { 1.0 } else { 1.5 };
            // Values and limits per step: the limits make several vertices meet.
            let worth: Vec<f64> = (0..steps).map(|_| rng.random_range(0.1..1.0)).collect();
            let limits: Vec<f64> = (0..steps).map(|_| rng.random_range(0.0..8.0)).collect();

            let mut single = Program::default();
            let mut sums = vec![Vec::new(); steps];
            for member in &members {
                let taken: Vec<Variable> =
                    worth.iter().map(|worth| single.variable(-worth, 0.0, most(member.socket))).collect();
                single.at_most(taken.iter().map(|v| (*v, 1.0)), member.need_kwh);
                taken.iter().zip(&mut sums).for_each(|(variable, sum)| sum.push((*variable, 1.0)));
            }
            sums.into_iter().zip(&limits).for_each(|(sum, limit)| single.at_most(sum, *limit));
            let alone = single.cost_of(&single.solve().unwrap());

            let mut program = Program::default();
            let mut groups = Group::of(&members);
            assert_eq!(groups.len(), 1);
            let mut sums: Vec<Vec<(Variable, f64)>> = vec![Vec::new(); steps];
            groups[0].add(&mut program, most, 0.0, |step, variable| sums[step - 3].push((variable, 1.0)));
            for (step, sum) in sums.iter().enumerate() {
                sum.iter().for_each(|(variable, _)| program.add_cost(*variable, -worth[step]));
                program.at_most(sum.iter().copied(), limits[step]);
            }
            let solution = program.solve().unwrap();
            let together = program.cost_of(&solution);
            assert!((alone - together).abs() < 1e-6, "{case}: {alone} {together}");

            let mut given = vec![0.0; steps];
            let mut left: Vec<f64> = members.iter().map(|member| member.need_kwh).collect();
            groups[0].distribute(&solution, most, |step, socket, energy| {
                assert!(energy <= most(socket) + 1e-12 && energy >= 0.0);
                given[step - 3] += energy;
                left[socket] -= energy;
            });
            assert!(left.iter().all(|left| *left > -1e-9), "{case}: {left:?}");
            for (step, given) in given.iter().enumerate() {
                let planned: f64 = sums[step].iter().map(|(variable, _)| solution.value(*variable)).sum();
                assert!((given - planned).abs() < 1e-6, "{case} {step}: {given} of {planned}");
            }
        }
    }
}
