//! Random vehicles: arrivals per step, state of charge at arrival, and time at the socket.
//!
//! A vehicle uses one random number: quantile tables convert one half of its bits to the state of charge and the other
//! half to the time at the socket. Arrivals do not depend on the controller, so the vehicles of an episode are the same
//! for all controllers.

use brasa_env::EnvRng;
use rand::Rng;
use rand_distr::{Distribution, Poisson};

use super::config::{IquitosConfig, VehicleClass};
use crate::quantiles::QuantileTable;

const MIN_DWELL_HOURS: f64 = 0.5;
/// Longest time at a socket, in hours.
pub(crate) const MAX_DWELL_HOURS: f64 = 4.0;

/// A vehicle at its arrival.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Arrival {
    /// Energy that it needs from the socket, in kWh, before the charger's losses.
    pub need_kwh: f32,
    /// Steps until it leaves.
    pub dwell_steps: f32,
}

/// The distributions of both classes.
#[derive(Debug, Clone)]
pub(crate) struct Arrivals {
    /// Number of arrivals per class, kind of day and hour; `None` for no arrivals.
    counts: Vec<Option<Poisson<f64>>>,
    soc: QuantileTable,
    dwell_steps: QuantileTable,
    target_soc: f32,
    /// Energy from the socket for a change of the state of charge of 1, per class, in kWh.
    full_kwh: [f32; 2],
}

impl Arrivals {
    /// The distributions of a validated `config`.
    pub(crate) fn new(config: &IquitosConfig) -> Self {
        let vehicles = &config.vehicles;
        let step_hours = config.step_hours();
        let means = [0, 1].into_iter().flat_map(|class| mean_arrivals(config, class));
        // Fails only for a mean of 0, which means no arrivals.
        let counts = means.map(|mean| Poisson::new(mean).ok()).collect();
        let (alpha, beta) = (vehicles.arrival_soc_alpha, vehicles.arrival_soc_beta);
        let soc = QuantileTable::new(0.0, 1.0, |x| x.powf(alpha - 1.0) * (1.0 - x).powf(beta - 1.0));
        let (median, spread) = (vehicles.dwell_median_hours, vehicles.dwell_spread);
        let dwell_steps = QuantileTable::new(MIN_DWELL_HOURS / step_hours, MAX_DWELL_HOURS / step_hours, |steps| {
            let z = (steps * step_hours / median).ln() / spread;
            (-0.5 * z * z).exp() / steps
        });
        let full_kwh = |class: &VehicleClass| (class.battery_kwh / vehicles.charger_efficiency) as f32;
        Self {
            counts,
            soc,
            dwell_steps,
            target_soc: vehicles.target_soc as f32,
            full_kwh: [full_kwh(&vehicles.moto), full_kwh(&vehicles.mototaxi)],
        }
    }

    /// Quantiles, at equal steps of probability, of the state of charge and of the steps at a socket.
    #[cfg(feature = "tensor")]
    pub(super) fn quantiles(&self) -> [&[f32]; 2] {
        [&self.soc.values, &self.dwell_steps.values]
    }

    /// Number of arrivals of `class` in a step in `hour`.
    pub(crate) fn count(&self, class: usize, weekend: bool, hour: u8, rng: &mut EnvRng) -> u32 {
        let index = (class * 2 + usize::from(weekend)) * 24 + usize::from(hour);
        self.counts[index].as_ref().map_or(0, |poisson| poisson.sample(rng) as u32)
    }

    /// One vehicle of `class`.
    pub(crate) fn draw(&self, class: usize, rng: &mut EnvRng) -> Arrival {
        let bits = rng.next_u64();
        let soc = self.soc.at((bits >> 32) as u32);
        let dwell_steps = self.dwell_steps.at(bits as u32);
        Arrival {
            need_kwh: ((self.target_soc - soc) * self.full_kwh[class]).max(0.0),
            // Rounds to the nearest number of steps by a cast, because `round` is a function call on many machines.
            dwell_steps: ((dwell_steps + 0.5) as u32 as f32).max(1.0),
        }
    }
}

/// Mean number of arrivals of `class` in a step, by kind of day and hour: 24 numbers for weekdays, 24 for weekends.
pub(super) fn mean_arrivals(config: &IquitosConfig, class: usize) -> Vec<f64> {
    let vehicles = &config.vehicles;
    let per_day = [&vehicles.moto, &vehicles.mototaxi][class].arrivals_per_day;
    let mean = |factor: f64, hour: u32| factor * per_day * share_of_day(config, hour) * config.step_hours();
    [1.0, vehicles.weekend_factor].into_iter().flat_map(|factor| (0..24).map(move |hour| mean(factor, hour))).collect()
}

/// Fraction of a day's arrivals per hour at `hour`.
fn share_of_day(config: &IquitosConfig, hour: u32) -> f64 {
    let v = &config.vehicles;
    let rush = v.rush_start_hour..v.rush_end_hour;
    let open = v.opening_hour..v.closing_hour;
    let (rush_hours, open_hours) = (rush.len() as f64, open.len() as f64);
    if rush_hours == open_hours {
        // The rush is the whole day, so there are no other hours.
        return if rush.contains(&hour) { 1.0 / rush_hours } else { 0.0 };
    }
    if rush.contains(&hour) {
        v.rush_share / rush_hours
    } else if open.contains(&hour) {
        (1.0 - v.rush_share) / (open_hours - rush_hours)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use brasa_env::episode_rng;

    use super::*;

    #[test]
    fn a_weekday_brings_the_configured_number() {
        let config = IquitosConfig::default();
        let total: f64 = (0..24).map(|hour| share_of_day(&config, hour)).sum();
        assert!((total - 1.0).abs() < 1e-12);
        let (arrivals, mut rng, days) = (Arrivals::new(&config), episode_rng(0, 0, 0), 400);
        let mut per_day = |class, weekend| {
            let count = (0..days * 24).map(|step| arrivals.count(class, weekend, (step % 24) as u8, &mut rng));
            f64::from(count.sum::<u32>()) / f64::from(days)
        };
        assert!((per_day(0, false) - 810.0).abs() < 8.0);
        assert!((per_day(1, false) - 117.0).abs() < 3.0);
        assert!((per_day(0, true) - 567.0).abs() < 8.0);
    }

    #[test]
    fn vehicles_are_inside_their_limits() {
        let (arrivals, mut rng) = (Arrivals::new(&IquitosConfig::default()), episode_rng(0, 0, 0));
        let mut dwell = [0; 5];
        for _ in 0..10_000 {
            let vehicle = arrivals.draw(1, &mut rng);
            assert!((0.0..=0.9 * 4.3 / 0.95 + 1e-5).contains(&vehicle.need_kwh), "{vehicle:?}");
            dwell[vehicle.dwell_steps as usize] += 1;
        }
        assert!(dwell[0] == 0 && dwell[1..].iter().all(|n| *n > 50), "{dwell:?}");
    }
}
