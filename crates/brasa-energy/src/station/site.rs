//! The constants of a simulation: calendar, prices, sun, arrivals, sockets and the network.

use std::f64::consts::TAU;
use std::ops::Range;

use super::arrivals::{Arrivals, Car};
use super::config::{SocketKind, StationConfig};
use super::network::Network;
use super::profiles;
use crate::calendar::month;
use crate::solar::{Clouds, Modules, Sun};
use crate::storage::Storage;

/// Days of the calendar: 2024 without February 29.
const DAYS: u32 = 365;

/// Tables of a validated config.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) config: StationConfig,
    pub(crate) step_hours: f64,
    pub(crate) steps_per_day: u32,
    /// Steps of the calendar; after the last one comes the first.
    pub(crate) n_steps: u32,
    times: Vec<TimeOfDay>,
    days: Vec<Day>,
    /// Price of imported energy per hour of the calendar.
    buy_per_kwh: Vec<f64>,
    /// The same over the largest, continued into the next year by the hours that are observed ahead.
    observed_prices: Vec<f32>,
    pub(crate) pv: Option<PvSource>,
    pub(crate) arrivals: Arrivals,
    pub(crate) network: Network,
    pub(crate) groups: Vec<Group>,
    /// Largest power per socket, in kW.
    pub(crate) socket_kw: Vec<f64>,
    pub(crate) storage: Storage,
    /// Standing loss of the battery in one step, as a fraction.
    pub(crate) standing_loss: f64,
    /// Steps that a driver waits for energy beyond the planned stay.
    pub(crate) patience_steps: i32,
}

/// Values that depend only on the time of the day.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeOfDay {
    pub(crate) hour: u32,
    pub(crate) hour_sin: f32,
    pub(crate) hour_cos: f32,
}

/// Values that depend only on the day.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Day {
    pub(crate) month: u8,
    pub(crate) is_weekend: bool,
    pub(crate) weekday_sin: f32,
    pub(crate) weekday_cos: f32,
    pub(crate) year_sin: f32,
    pub(crate) year_cos: f32,
    /// A quarter of the day's hours are at most as dear as the first, and at least as dear as the second.
    pub(crate) cheap_per_kwh: f64,
    pub(crate) dear_per_kwh: f64,
}

/// The sun of every step, with random clouds.
#[derive(Debug, Clone)]
pub(crate) struct PvSource {
    suns: Vec<Sun>,
    pub(crate) clouds: Clouds,
    modules: Modules,
}

/// A group of equal sockets.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// Its sockets.
    pub(crate) sockets: Range<usize>,
    /// Its node of the network.
    pub(crate) node: usize,
    pub(crate) kind: SocketKind,
    pub(crate) socket_kw: f64,
    pub(crate) efficiency: f64,
    pub(crate) inverse_efficiency: f64,
}

impl Site {
    /// Tables of a validated `config`.
    pub(crate) fn new(config: StationConfig) -> Self {
        let step_hours = config.step_hours();
        let steps_per_day = config.steps_per_day();
        let steps_per_hour = steps_per_day / 24;
        let n_steps = DAYS * steps_per_day;
        let buy_per_kwh: Vec<f64> = match &config.prices.buy_per_kwh {
            Some(values) => (0..DAYS * 24).map(|hour| values[hour as usize % values.len()]).collect(),
            None => (0..DAYS * 24).map(|hour| profiles::buy_per_kwh(hour / 24, hour % 24)).collect(),
        };
        let largest = buy_per_kwh.iter().fold(1e-9_f64, |most, price| most.max(price.abs()));
        let ahead = config.lookahead_hours as usize;
        let observed_prices = buy_per_kwh.iter().cycle().take(buy_per_kwh.len() + ahead);
        let observed_prices = observed_prices.map(|price| (price / largest) as f32).collect();
        let time = |step: u32| {
            let (sin, cos) = (TAU * f64::from(step) / f64::from(steps_per_day)).sin_cos();
            TimeOfDay { hour: step / steps_per_hour, hour_sin: sin as f32, hour_cos: cos as f32 }
        };
        let days = (0..DAYS).map(|day| Day::new(day, &buy_per_kwh[day as usize * 24..][..24])).collect();
        let network = Network::new(&config);
        let mut first = 0;
        let groups = config.sockets.iter().enumerate().map(|(index, group)| {
            let sockets = first..first + group.count as usize;
            first = sockets.end;
            Group {
                sockets,
                node: network.group_node(index),
                kind: group.kind,
                socket_kw: group.socket_kw(),
                efficiency: group.efficiency,
                inverse_efficiency: 1.0 / group.efficiency,
            }
        });
        let groups: Vec<Group> = groups.collect();
        Self {
            step_hours,
            steps_per_day,
            n_steps,
            times: (0..steps_per_day).map(time).collect(),
            days,
            buy_per_kwh,
            observed_prices,
            pv: config.has_pv().then(|| PvSource::new(&config, n_steps)),
            arrivals: Arrivals::new(&config),
            socket_kw: groups.iter().flat_map(|group| group.sockets.clone().map(|_| group.socket_kw)).collect(),
            groups,
            network,
            storage: config.battery.storage(),
            standing_loss: 1.0 - (1.0 - config.battery.standing_loss_per_day).powf(step_hours / 24.0),
            patience_steps: (config.arrivals.patience_hours / step_hours).round() as i32,
            config,
        }
    }

    /// The time of the day of `step` of the calendar.
    pub(crate) fn time(&self, step: u32) -> &TimeOfDay {
        &self.times[(step % self.steps_per_day) as usize]
    }

    /// The day of `step` of the calendar.
    pub(crate) fn day(&self, step: u32) -> &Day {
        &self.days[(step / self.steps_per_day) as usize]
    }

    fn hour_of_calendar(&self, step: u32) -> usize {
        (step * 24 / self.steps_per_day) as usize
    }

    /// Price of imported energy in `step`.
    pub(crate) fn buy_per_kwh(&self, step: u32) -> f64 {
        self.buy_per_kwh[self.hour_of_calendar(step)]
    }

    /// The prices from `step` on, one per hour, over the largest price.
    pub(crate) fn observed_prices(&self, step: u32) -> &[f32] {
        &self.observed_prices[self.hour_of_calendar(step)..][..self.config.lookahead_hours as usize]
    }

    /// The step after `step`.
    pub(crate) fn next(&self, step: u32) -> u32 {
        if step + 1 == self.n_steps { 0 } else { step + 1 }
    }

    /// Largest power of `car` at a socket of `group`.
    pub(crate) fn rate_kw(&self, group: &Group, car: &Car) -> f64 {
        let car_kw = match group.kind {
            SocketKind::Ac => car.ac_kw,
            SocketKind::Dc => car.dc_kw,
        };
        car_kw.min(group.socket_kw)
    }
}

impl PvSource {
    fn new(config: &StationConfig, n_steps: u32) -> Self {
        let (place, modules) = (config.pv.place(), config.pv.modules());
        let steps_per_day = config.steps_per_day();
        let sun = |step: u32| {
            let hour = (f64::from(step % steps_per_day) + 0.5) * config.step_hours();
            Sun::at(step / steps_per_day, hour, &place, &modules)
        };
        Self { suns: (0..n_steps).map(sun).collect(), clouds: config.pv.clouds(config.step_hours()), modules }
    }

    /// Power in `step` under the process of the clouds, in kW.
    pub(crate) fn power_kw(&self, step: u32, month: u8, process: f64) -> f64 {
        let sun = &self.suns[step as usize];
        if sun.is_up() { sun.pv_kw(self.clouds.transmission(process, month), &self.modules) } else { 0.0 }
    }
}

impl Day {
    fn new(day: u32, buy_per_kwh: &[f64]) -> Self {
        let weekday = day % 7;
        let (weekday_sin, weekday_cos) = (TAU * f64::from(weekday) / 7.0).sin_cos();
        let (year_sin, year_cos) = (TAU * f64::from(day) / f64::from(DAYS)).sin_cos();
        let mut sorted = buy_per_kwh.to_vec();
        sorted.sort_by(f64::total_cmp);
        Self {
            month: month(day),
            is_weekend: weekday >= 5,
            weekday_sin: weekday_sin as f32,
            weekday_cos: weekday_cos as f32,
            year_sin: year_sin as f32,
            year_cos: year_cos as f32,
            cheap_per_kwh: sorted[sorted.len() / 4],
            dear_per_kwh: sorted[sorted.len() * 3 / 4],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_of_a_day_repeat_and_continue_into_the_next_year() {
        let mut config = StationConfig::default();
        config.prices.buy_per_kwh = Some((0..24).map(f64::from).collect());
        let site = Site::new(config);
        let last_step = site.n_steps - 1;
        assert_eq!((site.buy_per_kwh(0), site.buy_per_kwh(12 * 30), site.buy_per_kwh(last_step)), (0.0, 6.0, 23.0));
        let seen: Vec<f64> = site.observed_prices(last_step).iter().map(|price| f64::from(*price) * 23.0).collect();
        for (seen, expected) in seen.iter().zip([23.0, 0.0, 1.0, 2.0, 3.0, 4.0]) {
            assert!((seen - expected).abs() < 1e-5);
        }
        assert_eq!((site.next(last_step), site.day(last_step).month), (0, 11));
        assert_eq!((site.day(0).cheap_per_kwh, site.day(0).dear_per_kwh), (6.0, 18.0));
    }

    #[test]
    fn pv_of_the_default_year_is_that_of_a_dutch_roof() {
        let site = Site::new(StationConfig::default());
        let pv = site.pv.as_ref().expect("the default has PV");
        // The median sky; the mean over clouds is close to it.
        let kwh: f64 =
            (0..site.n_steps).map(|step| pv.power_kw(step, site.day(step).month, 0.0) * site.step_hours).sum();
        assert!((800.0..1000.0).contains(&(kwh / 200.0)), "{} kWh per kW", kwh / 200.0);
    }
}
