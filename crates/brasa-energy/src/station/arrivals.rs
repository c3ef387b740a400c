//! Random cars: arrivals per step, and what every car brings and wants.
//!
//! Every arriving car draws the same number of random numbers, whether it finds a socket or not, so arrivals do not
//! depend on the controller.

use brasa_env::EnvRng;
use rand::Rng;

use super::config::StationConfig;
use crate::quantiles::QuantileTable;

/// Longest planned stay, in hours.
pub(crate) const MAX_STAY_HOURS: f64 = 48.0;

/// A car at its arrival.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Car {
    /// Energy in its battery.
    pub(crate) arrival_kwh: f64,
    /// Energy that its driver wants, at least that at arrival.
    pub(crate) target_kwh: f64,
    /// Capacity of its battery.
    pub(crate) battery_kwh: f64,
    /// Largest power at AC and at DC sockets; 0 where it cannot charge.
    pub(crate) ac_kw: f64,
    pub(crate) dc_kw: f64,
    /// State of charge where the taper begins, and the fall of the relative power per state of charge above it.
    pub(crate) taper_soc: f64,
    pub(crate) taper_slope: f64,
    /// Planned steps at the station.
    pub(crate) stay_steps: u32,
    /// Whether the driver leaves with the energy instead of with the time.
    pub(crate) energy_bound: bool,
}

/// The distributions of a config.
#[derive(Debug, Clone)]
pub(crate) struct Arrivals {
    /// Per kind of day and hour.
    counts: Vec<CountTable>,
    /// Models with the cumulative shares before the next one, scaled to 32 bits.
    models: Vec<(u32, Car)>,
    soc: QuantileTable,
    stay_hours: QuantileTable,
    target_low: f64,
    target_range: f64,
    /// Share of the drivers bound by energy, scaled to 16 bits.
    energy_bound: u32,
    steps_per_hour: f64,
}

impl Arrivals {
    /// The distributions of a validated `config`.
    pub(crate) fn new(config: &StationConfig) -> Self {
        let (arrivals, place) = (&config.arrivals, config.arrivals.place.profile());
        let total: f64 = config.cars.iter().map(|model| model.share).sum();
        let mut before = 0.0;
        let models = config.cars.iter().map(|model| {
            before += model.share / total;
            let taper_slope = match model.taper_soc < 1.0 {
                true => (1.0 - model.taper_end) / (1.0 - model.taper_soc),
                false => 0.0,
            };
            let car = Car {
                arrival_kwh: 0.0,
                target_kwh: 0.0,
                battery_kwh: model.battery_kwh,
                ac_kw: model.ac_kw,
                dc_kw: model.dc_kw,
                taper_soc: model.taper_soc,
                taper_slope,
                stay_steps: 0,
                energy_bound: false,
            };
            ((before * f64::from(u32::MAX)) as u32, car)
        });
        let alpha = arrivals.arrival_soc_alpha.unwrap_or(place.arrival_soc.0);
        let beta = arrivals.arrival_soc_beta.unwrap_or(place.arrival_soc.1);
        let median = arrivals.stay_median_hours.unwrap_or(place.stay_median_hours);
        let spread = arrivals.stay_spread.unwrap_or(place.stay_spread);
        // The table is even in hours, so it ends where the distribution does.
        let longest = (median * (5.0 * spread).exp()).min(MAX_STAY_HOURS);
        Self {
            counts: mean_arrivals(config).into_iter().map(CountTable::new).collect(),
            models: models.collect(),
            soc: QuantileTable::new(0.0, 1.0, |x| x.powf(alpha - 1.0) * (1.0 - x).powf(beta - 1.0)),
            stay_hours: QuantileTable::new(0.0, longest, |hours| {
                let z = (hours / median).ln() / spread;
                (-0.5 * z * z).exp() / hours
            }),
            target_low: arrivals.target_soc_low,
            target_range: arrivals.target_soc_high - arrivals.target_soc_low,
            energy_bound: (arrivals.energy_bound_share.unwrap_or(place.energy_bound_share) * 65536.0) as u32,
            steps_per_hour: 1.0 / config.step_hours(),
        }
    }

    /// Number of arrivals in a step in `hour` of a workday or a day of the weekend.
    pub(crate) fn count(&self, weekend: bool, hour: u32, rng: &mut EnvRng) -> u32 {
        self.counts[usize::from(weekend) * 24 + hour as usize].at(rng.next_u32())
    }

    /// One car.
    pub(crate) fn draw(&self, rng: &mut EnvRng) -> Car {
        let (first, second) = (rng.next_u64(), rng.next_u64());
        let soc = f64::from(self.soc.at((first >> 32) as u32));
        let stay_steps = f64::from(self.stay_hours.at(first as u32)) * self.steps_per_hour;
        let model = (second >> 32) as u32;
        let model = self.models.iter().position(|(below, _)| model <= *below).unwrap_or(self.models.len() - 1);
        let car = self.models[model].1;
        let target = self.target_low + self.target_range * ((second >> 16 & 0xffff) as f64 / 65536.0);
        Car {
            arrival_kwh: soc * car.battery_kwh,
            target_kwh: target.max(soc) * car.battery_kwh,
            stay_steps: ((stay_steps + 0.5) as u32).max(1),
            energy_bound: ((second & 0xffff) as u32) < self.energy_bound,
            ..car
        }
    }
}

/// Mean number of arrivals in a step: 24 hours of workdays, 24 of the weekend.
fn mean_arrivals(config: &StationConfig) -> Vec<f64> {
    let (arrivals, place) = (&config.arrivals, config.arrivals.place.profile());
    let [workday, weekend] = place.hours();
    let workday = arrivals.workday_hours.clone().unwrap_or(workday);
    let weekend = arrivals.weekend_hours.clone().unwrap_or(weekend);
    let factor = arrivals.weekend_factor.unwrap_or(place.weekend_factor);
    let mean = |hours: Vec<f64>, factor: f64| {
        let total: f64 = hours.iter().sum();
        let cars = if total > 0.0 { factor * arrivals.cars_per_day / total } else { 0.0 };
        hours.into_iter().map(move |share| share * cars * config.step_hours())
    };
    mean(workday, 1.0).chain(mean(weekend, factor)).collect()
}

/// Poisson numbers by inversion: the cumulative probabilities of 0, 1, 2 and so on, scaled to 32 bits.
#[derive(Debug, Clone)]
struct CountTable {
    below: Vec<u32>,
}

impl CountTable {
    fn new(mean: f64) -> Self {
        const SCALE: f64 = (1_u64 << 32) as f64;
        let mut below = Vec::new();
        let (mut log_probability, mut cumulative, mut count) = (-mean, 0.0, 0.0);
        loop {
            cumulative += f64::exp(log_probability);
            let threshold = cumulative * SCALE;
            // Beyond the mean, the rest has a probability below 2^-32.
            if (count >= mean && threshold >= SCALE - 1.0) || below.len() > 1 << 20 {
                return Self { below };
            }
            below.push(threshold as u32);
            count += 1.0;
            log_probability += (mean / count).ln();
        }
    }

    fn at(&self, bits: u32) -> u32 {
        // Nearly all tables have some ten entries, and most numbers are 0 or 1.
        if self.below.len() <= 32 {
            self.below.iter().position(|below| bits < *below).unwrap_or(self.below.len()) as u32
        } else {
            self.below.partition_point(|below| *below <= bits) as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use brasa_env::episode_rng;

    use super::super::config::{ArrivalConfig, PlaceKind};
    use super::*;

    #[test]
    fn counts_have_mean_and_variance_of_poisson() {
        // The last one is the most that a config can ask for.
        for mean in [0.0, 0.05, 0.9, 4.0, 300.0, 1e5] {
            let (table, mut rng, n) = (CountTable::new(mean), episode_rng(0, 0, 0), 200_000);
            let rest = 10.0 + 7.0 * mean.sqrt();
            assert!((table.below.len() as f64) < mean + rest, "{mean}: {} entries", table.below.len());
            let counts: Vec<f64> = (0..n).map(|_| f64::from(table.at(rng.next_u32()))).collect();
            let seen = counts.iter().sum::<f64>() / f64::from(n);
            let variance = counts.iter().map(|count| (count - seen).powi(2)).sum::<f64>() / f64::from(n);
            assert!((seen - mean).abs() <= 4.0 * (mean / f64::from(n)).sqrt(), "{mean}: {seen}");
            assert!((variance - mean).abs() <= 0.03 * mean, "{mean}: {variance}");
        }
    }

    #[test]
    fn a_day_brings_the_configured_number() {
        for place in [PlaceKind::Highway, PlaceKind::Residential, PlaceKind::Workplace, PlaceKind::Shopping] {
            let arrivals = ArrivalConfig { place, cars_per_day: 100.0, ..ArrivalConfig::default() };
            let config = StationConfig { arrivals, ..StationConfig::default() };
            let per_day = |day: usize| {
                let means = &mean_arrivals(&config)[24 * day..24 * (day + 1)];
                means.iter().sum::<f64>() * 12.0
            };
            assert!((per_day(0) - 100.0).abs() < 1e-9);
            assert!((per_day(1) - 100.0 * place.profile().weekend_factor).abs() < 1e-9);
        }
    }

    #[test]
    fn cars_are_what_the_config_says() {
        let config = StationConfig::default();
        let (arrivals, mut rng, n) = (Arrivals::new(&config), episode_rng(3, 0, 0), 40_000);
        let cars: Vec<Car> = (0..n).map(|_| arrivals.draw(&mut rng)).collect();
        let share = |is: &dyn Fn(&Car) -> bool| cars.iter().filter(|car| is(car)).count() as f64 / f64::from(n);
        for model in &config.cars {
            assert!((share(&|car| car.battery_kwh == model.battery_kwh) - model.share).abs() < 0.01, "{}", model.name);
        }
        assert!((share(&|car| car.energy_bound) - 0.1).abs() < 0.01);
        assert!((share(&|car| f64::from(car.stay_steps) < 1.4 * 12.0) - 0.5).abs() < 0.02);
        assert!(cars.iter().all(|car| {
            car.stay_steps >= 1
                && car.arrival_kwh >= 0.0
                && car.arrival_kwh <= car.target_kwh
                && car.target_kwh <= car.battery_kwh
        }));
        let wanted = cars.iter().map(|car| car.target_kwh / car.battery_kwh).sum::<f64>() / f64::from(n);
        assert!((wanted - 0.875).abs() < 0.01, "{wanted}");
    }
}
