//! The cars at the sockets of all environments, as a struct of arrays.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::arrivals::Car;
use super::network::Powers;
use super::site::{Group, Site};

/// Energy below which a need is met, in kWh: far above rounding, far below a meter.
pub(crate) const MET_KWH: f64 = 1e-9;

/// One entry per socket, environment by environment; everything is 0 at a free socket.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Sockets {
    pub(crate) occupied: Vec<bool>,
    /// Energy in the car.
    pub(crate) stored_kwh: Vec<f64>,
    /// Energy at arrival, below which the car is not discharged.
    pub(crate) floor_kwh: Vec<f64>,
    /// Energy that the driver wants.
    pub(crate) target_kwh: Vec<f64>,
    /// 1 over the capacity of the battery.
    pub(crate) per_capacity: Vec<f64>,
    /// Largest power of this car at this socket.
    rate_kw: Vec<f64>,
    taper_soc: Vec<f64>,
    taper_slope: Vec<f64>,
    /// Steps left of the planned stay; negative beyond it.
    pub(crate) stay_steps: Vec<i32>,
    pub(crate) energy_bound: Vec<bool>,
    /// Largest charging power in the next step, by car, socket and need.
    pub(crate) most_kw: Vec<f64>,
    /// Power at the car in the last step, negative when discharged.
    pub(crate) power_kw: Vec<f64>,
}

/// Departures of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Departed {
    pub(crate) cars: u32,
    pub(crate) unmet_kwh: f64,
    pub(crate) overtime_steps: u32,
}

/// Energy at the sockets in a step, in kW.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Charged {
    pub(crate) into_cars_kw: f64,
    pub(crate) out_of_cars_kw: f64,
    pub(crate) lost_kw: f64,
}

/// Whether a driver who needs `wanted_kw` prefers a socket to another; each is given by the largest power of the car there and
/// that of the socket.
#[inline]
pub(crate) fn is_preferred(wanted_kw: f64, (rate_kw, socket_kw): (f64, f64), other: (f64, f64)) -> bool {
    match (rate_kw >= wanted_kw, other.0 >= wanted_kw) {
        (true, true) => (rate_kw, socket_kw) < other,
        (false, false) => rate_kw > other.0,
        (suffices, _) => suffices,
    }
}

impl Sockets {
    /// `n` free sockets.
    pub(crate) fn new(n: usize) -> Self {
        let zeros = || vec![0.0; n];
        Self {
            occupied: vec![false; n],
            stored_kwh: zeros(),
            floor_kwh: zeros(),
            target_kwh: zeros(),
            per_capacity: zeros(),
            rate_kw: zeros(),
            taper_soc: zeros(),
            taper_slope: zeros(),
            stay_steps: vec![0; n],
            energy_bound: vec![false; n],
            most_kw: zeros(),
            power_kw: zeros(),
        }
    }

    /// Whether all arrays have `n` entries, as those of another state may not.
    pub(crate) fn has(&self, n: usize) -> bool {
        let floats = [
            &self.stored_kwh,
            &self.floor_kwh,
            &self.target_kwh,
            &self.per_capacity,
            &self.rate_kw,
            &self.taper_soc,
            &self.taper_slope,
            &self.most_kw,
            &self.power_kw,
        ];
        floats.iter().all(|values| values.len() == n)
            && self.occupied.len() == n
            && self.stay_steps.len() == n
            && self.energy_bound.len() == n
    }

    /// Frees the socket at `place`.
    pub(crate) fn free(&mut self, place: usize) {
        self.occupied[place] = false;
        self.energy_bound[place] = false;
        self.stay_steps[place] = 0;
        for values in [
            &mut self.stored_kwh,
            &mut self.floor_kwh,
            &mut self.target_kwh,
            &mut self.per_capacity,
            &mut self.rate_kw,
            &mut self.taper_soc,
            &mut self.taper_slope,
            &mut self.most_kw,
            &mut self.power_kw,
        ] {
            values[place] = 0.0;
        }
    }

    /// Plugs `car` in at `place`, where it charges with at most `rate_kw`.
    fn plug_in(&mut self, place: usize, car: &Car, rate_kw: f64) {
        self.occupied[place] = true;
        self.stored_kwh[place] = car.arrival_kwh;
        self.floor_kwh[place] = car.arrival_kwh;
        self.target_kwh[place] = car.target_kwh;
        self.per_capacity[place] = 1.0 / car.battery_kwh;
        self.rate_kw[place] = rate_kw;
        self.taper_soc[place] = car.taper_soc;
        self.taper_slope[place] = car.taper_slope;
        self.stay_steps[place] = car.stay_steps as i32;
        self.energy_bound[place] = car.energy_bound;
        self.power_kw[place] = 0.0;
    }

    /// Limits `orders_kw` to what the cars can take and, with `v2g`, give; writes them as powers, and their demand and
    /// supply at the nodes of the groups to `network`.
    pub(crate) fn request(&mut self, places: Range<usize>, orders_kw: &[f64], site: &Site, network: &mut [Powers]) {
        let power_kw = &mut self.power_kw[places.clone()];
        let most_kw = &self.most_kw[places.clone()];
        if site.config.v2g {
            let per_hour = 1.0 / site.step_hours;
            let stored_kwh = &self.stored_kwh[places.clone()];
            let floor_kwh = &self.floor_kwh[places.clone()];
            let rate_kw = &self.rate_kw[places];
            for i in 0..power_kw.len() {
                let least_kw = -rate_kw[i].min((stored_kwh[i] - floor_kwh[i]) * per_hour).max(0.0);
                power_kw[i] = orders_kw[i].min(most_kw[i]).max(least_kw);
            }
        } else {
            for ((power, order), most) in power_kw.iter_mut().zip(orders_kw).zip(most_kw) {
                *power = order.min(*most).max(0.0);
            }
        }
        for group in &site.groups {
            let (mut taken_kw, mut given_kw) = (0.0, 0.0);
            for power in &power_kw[group.sockets.clone()] {
                taken_kw += power.max(0.0);
                given_kw += (-power).max(0.0);
            }
            let node = &mut network[group.node];
            node.taken_kw = taken_kw * group.inverse_efficiency;
            node.given_kw = given_kw * group.efficiency;
        }
    }

    /// Charges and discharges the cars with the requested powers times the factors of their groups.
    pub(crate) fn charge(&mut self, places: Range<usize>, site: &Site, network: &[Powers]) -> Charged {
        let mut charged = Charged::default();
        let power_kw = &mut self.power_kw[places.clone()];
        let stored_kwh = &mut self.stored_kwh[places];
        for group in &site.groups {
            let (take, give) = (network[group.node].take, network[group.node].give);
            let (mut into_kw, mut out_kw) = (0.0, 0.0);
            let sockets = power_kw[group.sockets.clone()].iter_mut().zip(&mut stored_kwh[group.sockets.clone()]);
            for (power, stored) in sockets {
                *power *= if *power > 0.0 { take } else { give };
                *stored += *power * site.step_hours;
                into_kw += power.max(0.0);
                out_kw += (-*power).max(0.0);
            }
            charged.into_cars_kw += into_kw;
            charged.out_of_cars_kw += out_kw;
            charged.lost_kw += into_kw * (group.inverse_efficiency - 1.0) + out_kw * (1.0 - group.efficiency);
        }
        charged
    }

    /// Advances the stays by one step and frees the sockets of departing cars.
    pub(crate) fn depart(&mut self, places: Range<usize>, patience_steps: i32) -> Departed {
        let mut departed = Departed::default();
        for place in places {
            if !self.occupied[place] {
                continue;
            }
            let left = self.stay_steps[place] - 1;
            self.stay_steps[place] = left;
            let need_kwh = self.target_kwh[place] - self.stored_kwh[place];
            let leaves = match self.energy_bound[place] {
                true => need_kwh <= MET_KWH || left <= -patience_steps,
                false => left <= 0,
            };
            if leaves {
                departed.cars += 1;
                departed.unmet_kwh += if need_kwh > MET_KWH { need_kwh } else { 0.0 };
                departed.overtime_steps += (-left).max(0) as u32;
                self.free(place);
            }
        }
        departed
    }

    /// Finds a socket for `car`: of the groups with a free socket whose power suffices for its stay the slowest, and
    /// otherwise the fastest; the first of equals. Returns whether there was one.
    pub(crate) fn admit(&mut self, places: &Range<usize>, car: &Car, site: &Site) -> bool {
        let stay_hours = f64::from(car.stay_steps) * site.step_hours;
        let wanted_kw = (car.target_kwh - car.arrival_kwh) / stay_hours;
        let mut best: Option<(usize, f64, &Group)> = None;
        for group in &site.groups {
            let rate_kw = site.rate_kw(group, car);
            let is_better = |(_, best_kw, best_group): &(usize, f64, &Group)| {
                is_preferred(wanted_kw, (rate_kw, group.socket_kw), (*best_kw, best_group.socket_kw))
            };
            if rate_kw <= 0.0 || !best.as_ref().is_none_or(is_better) {
                continue;
            }
            let first = places.start + group.sockets.start;
            let occupied = &self.occupied[first..places.start + group.sockets.end];
            if let Some(free) = occupied.iter().position(|occupied| !occupied) {
                best = Some((first + free, rate_kw, group));
            }
        }
        let Some((place, rate_kw, _)) = best else { return false };
        self.plug_in(place, car, rate_kw);
        true
    }

    /// Computes the largest charging powers of the next step.
    pub(crate) fn refresh(&mut self, places: Range<usize>, step_hours: f64) {
        let per_hour = 1.0 / step_hours;
        let most_kw = &mut self.most_kw[places.clone()];
        let n = most_kw.len();
        let stored_kwh = &self.stored_kwh[places.clone()][..n];
        let target_kwh = &self.target_kwh[places.clone()][..n];
        let per_capacity = &self.per_capacity[places.clone()][..n];
        let rate_kw = &self.rate_kw[places.clone()][..n];
        let taper_soc = &self.taper_soc[places.clone()][..n];
        let taper_slope = &self.taper_slope[places][..n];
        for i in 0..n {
            let above = (stored_kwh[i] * per_capacity[i] - taper_soc[i]).max(0.0);
            let tapered_kw = rate_kw[i] * (1.0 - taper_slope[i] * above);
            let need_kw = (target_kwh[i] - stored_kwh[i]) * per_hour;
            most_kw[i] = tapered_kw.min(need_kw).max(0.0);
        }
    }
}
