//! The cars of an episode that is known in advance: where they can stay, and where they stayed under a controller.

use brasa_power::scenario::Evaluated;

use super::arrivals::Car;
use super::site::{Group, Site};
use super::sockets::{MET_KWH, Sockets, is_preferred};
use super::world::Outside;

/// What no controller changes: cars, prices and PV of an episode.
#[derive(Debug, Clone)]
pub(crate) struct Horizon {
    /// Cars with the step of the episode in which they arrive, in their order. The last ones come after the last step, which
    /// counts those that find no socket.
    pub(crate) cars: Vec<(usize, Car)>,
    pub(crate) buy_per_kwh: Vec<f64>,
    pub(crate) pv_kwh: Vec<f64>,
}

impl Horizon {
    /// An episode of an evaluation.
    pub(crate) fn of_episode(site: &Site, Evaluated { index, seed }: Evaluated) -> Self {
        let mut outside = Outside::begin(site, seed, 0, 0, index);
        let mut horizon = Self { cars: Vec::new(), buy_per_kwh: Vec::new(), pv_kwh: Vec::new() };
        for step in 0..site.config.n_steps() as usize {
            outside.cars(site, |car| horizon.cars.push((step, car)));
            horizon.buy_per_kwh.push(site.buy_per_kwh(outside.step));
            horizon.pv_kwh.push(outside.pv_kw * site.step_hours);
            outside.advance(site);
        }
        let n_steps = horizon.n_steps();
        outside.cars(site, |car| horizon.cars.push((n_steps, car)));
        horizon
    }

    pub(crate) fn n_steps(&self) -> usize {
        self.pv_kwh.len()
    }
}

/// Steps after which `car` leaves at the latest.
pub(crate) fn most_steps(site: &Site, car: &Car) -> usize {
    let patience = if car.energy_bound { site.patience_steps as usize } else { 0 };
    car.stay_steps as usize + patience
}

/// Steps before which `car` cannot leave a socket of `group`.
pub(crate) fn fewest_steps(site: &Site, group: &Group, car: &Car) -> usize {
    let most = most_steps(site, car);
    if !car.energy_bound {
        return most;
    }
    let rate_kwh = site.rate_kw(group, car) * site.step_hours;
    let (mut stored_kwh, mut steps) = (car.arrival_kwh, 0);
    while steps < most && (steps == 0 || car.target_kwh - stored_kwh > MET_KWH) {
        let above = (stored_kwh / car.battery_kwh - car.taper_soc).max(0.0);
        let kwh = (rate_kwh * (1.0 - car.taper_slope * above)).min(car.target_kwh - stored_kwh);
        stored_kwh += kwh.max(0.0);
        steps += 1;
    }
    steps
}

/// The groups at which a car can end up, whatever the controller does.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Choice {
    pub(crate) groups: Vec<usize>,
    /// Whether it finds a socket in any case.
    pub(crate) certain: bool,
}

/// The choices of all cars, from the fewest and the most cars that can be at each group in each step.
///
/// A driver bound by time stays as planned. One bound by energy stays at least until the target can be reached at full power, and
/// at most as long as the patience lasts.
pub(crate) fn choices(site: &Site, horizon: &Horizon) -> Vec<Choice> {
    let n_steps = horizon.n_steps();
    let mut fewest = vec![vec![0_usize; n_steps + 1]; site.groups.len()];
    let mut most = fewest.clone();
    let mut choices = Vec::with_capacity(horizon.cars.len());
    for (step, car) in &horizon.cars {
        let mut order: Vec<usize> = Vec::new();
        let wanted_kw = (car.target_kwh - car.arrival_kwh) / (f64::from(car.stay_steps) * site.step_hours);
        let power = |group: usize| (site.rate_kw(&site.groups[group], car), site.groups[group].socket_kw);
        for group in (0..site.groups.len()).filter(|group| power(*group).0 > 0.0) {
            // Behind all that it is not preferred to.
            let place = order.iter().position(|other| is_preferred(wanted_kw, power(group), power(*other)));
            order.insert(place.unwrap_or(order.len()), group);
        }
        let mut choice = Choice::default();
        for group in order {
            let count = site.groups[group].sockets.len();
            if fewest[group][*step] >= count {
                continue;
            }
            choice.groups.push(group);
            if most[group][*step] < count {
                choice.certain = true;
                break;
            }
        }
        let until = |steps: usize| (step + steps).min(n_steps + 1);
        for group in &choice.groups {
            most[*group][*step..until(most_steps(site, car))].iter_mut().for_each(|cars| *cars += 1);
        }
        if let ([group], true) = (&choice.groups[..], choice.certain) {
            let steps = fewest_steps(site, &site.groups[*group], car);
            fewest[*group][*step..until(steps)].iter_mut().for_each(|cars| *cars += 1);
        }
        choices.push(choice);
    }
    choices
}

/// Where a car stayed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stay {
    pub(crate) group: usize,
    /// The first step without it.
    pub(crate) end: usize,
    /// Whether it left within the episode.
    pub(crate) left: bool,
}

/// Follows the cars of an episode while it is played.
#[derive(Debug)]
pub(crate) struct Guests<'a> {
    horizon: &'a Horizon,
    /// The car at every socket.
    pub(crate) at: Vec<Option<usize>>,
    /// Where every car stayed so far; none was turned away.
    pub(crate) stays: Vec<Option<Stay>>,
    /// Cars of the horizon that came before.
    next: usize,
}

impl<'a> Guests<'a> {
    pub(crate) fn new(site: &Site, horizon: &'a Horizon) -> Self {
        let (at, stays) = (vec![None; site.socket_kw.len()], vec![None; horizon.cars.len()]);
        Self { horizon, at, stays, next: 0 }
    }

    /// Looks at the sockets of one environment before `step`; call it once per step and after the last one.
    pub(crate) fn look(&mut self, site: &Site, step: usize, sockets: &Sockets) {
        let n_steps = self.horizon.n_steps();
        let first = self.next;
        while self.horizon.cars.get(self.next).is_some_and(|(arrival, _)| *arrival <= step) {
            self.next += 1;
        }
        for (index, group) in site.groups.iter().enumerate() {
            for socket in group.sockets.clone() {
                let is_there = |car: usize| {
                    let (arrival, car) = &self.horizon.cars[car];
                    sockets.occupied[socket]
                        && sockets.floor_kwh[socket] == car.arrival_kwh
                        && sockets.target_kwh[socket] == car.target_kwh
                        && sockets.stay_steps[socket] == car.stay_steps as i32 - (step - arrival) as i32
                };
                if let Some(car) = self.at[socket] {
                    if is_there(car) {
                        continue;
                    }
                    if let Some(stay) = &mut self.stays[car] {
                        (stay.end, stay.left) = (step, true);
                    }
                }
                let new = (first..self.next).find(|car| self.stays[*car].is_none() && is_there(*car));
                self.at[socket] = new;
                if let Some(car) = new {
                    self.stays[car] = Some(Stay { group: index, end: n_steps, left: false });
                }
            }
        }
    }
}
