//! The constants of a simulation: calendar, prices, sun, arrivals, sockets and the network.

use std::f64::consts::TAU;
use std::ops::Range;

use brasa_env::{field, fingerprint};
use brasa_power::{EnergyError, Starts, TraceStart};

use super::arrivals::{Arrivals, Car};
use super::config::{SocketKind, StationConfig};
use super::data::Data;
use super::network::Network;
use super::reference::Reference;
use super::world::EnvState;
use crate::calendar::{Calendar, Date};
use crate::day_prices::DayPrices;
use crate::solar::{Clouds, Modules, Sun};
use crate::starts::{FirstDay, HeldOut};
use crate::storage::Storage;

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
    /// Whether days are those of files.
    pub(crate) has_dates: bool,
    pub(crate) calendar: Calendar,
    /// The first days of episodes.
    pub(crate) first_day: FirstDay,
    pub(crate) held_out: Option<HeldOut>,
    /// Price of imported energy per period of the calendar, continued by the first ones as far as prices are observed.
    buy_per_kwh: Vec<f64>,
    /// The same over the largest.
    observed_prices: Vec<f32>,
    periods_per_day: u32,
    pub(crate) pv: Option<PvSource>,
    pub(crate) cars: CarSource,
    /// Largest need of a car, in kWh.
    pub(crate) largest_need_kwh: f64,
    pub(crate) network: Network,
    pub(crate) groups: Vec<Group>,
    /// Largest power per socket, in kW.
    pub(crate) socket_kw: Vec<f64>,
    pub(crate) storage: Storage,
    /// Standing loss of the battery in one step, as a fraction.
    pub(crate) standing_loss: f64,
    /// Steps that a driver waits for energy beyond the planned stay.
    pub(crate) patience_steps: i32,
    /// What the reward `improvement` is measured from.
    pub(crate) reference: Option<Reference>,
    /// What is unlikely in the files.
    pub(crate) warnings: Vec<String>,
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
    pub(crate) prices: DayPrices,
}

/// The PV of every step.
#[derive(Debug, Clone)]
pub(crate) enum PvSource {
    /// The sun, with random clouds.
    UnderClouds { suns: Vec<Sun>, clouds: Clouds, modules: Modules },
    /// Power from a file, in kW.
    Given(Vec<f64>),
}

/// The cars of every step.
#[derive(Debug, Clone)]
pub(crate) enum CarSource {
    /// Random cars.
    Random(Box<Arrivals>),
    /// Cars from a file; those of step `i` begin at `first[i]`.
    Given { cars: Vec<Car>, first: Vec<u32> },
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
    ///
    /// # Errors
    /// Those of its files.
    pub(crate) fn new(config: StationConfig) -> Result<Self, EnergyError> {
        let Data { calendar, mut buy_per_kwh, periods_per_day, pv_kw, sessions, warnings } = Data::read(&config)?;
        let step_hours = config.step_hours();
        let steps_per_day = config.steps_per_day();
        let steps_per_hour = steps_per_day / 24;
        let n_days = calendar.n_days();
        let n_steps = n_days * steps_per_day;
        let n_starts = calendar.n_starts(config.n_steps(), steps_per_day);
        if let Some(day) = config.first_day {
            field::rule(day < n_starts, "first_day", format!("must be below {n_starts}"), day)?;
        }
        let has_dates = matches!(calendar, Calendar::Dates(..));
        let held_out = HeldOut::new(config.held_out_days, config.held_out_weeks, calendar)?;
        let starts = match held_out {
            None => Starts::first(n_starts as usize),
            Some(held_out) => {
                if let Some(day) = config.first_day {
                    field::rule(false, "first_day", format!("must not come with `{}`", held_out.field), day)?;
                }
                let (steps, most) = (config.n_steps(), held_out.days * steps_per_day);
                let rule = format!("must be at most {most}, the steps of a part that is held out");
                field::rule(steps <= most, "episode_steps", rule, steps)?;
                held_out.starts(n_days, steps, steps_per_day)?
            }
        };
        let first_day = config.first_day.map_or(FirstDay::Random(starts), |day| FirstDay::InOrder(vec![day]));
        let day = |day: u32| {
            let first = (day * periods_per_day) as usize;
            Day::new(calendar.date(day), &buy_per_kwh[first..][..periods_per_day as usize])
        };
        let days = (0..n_days).map(day).collect();
        let largest = buy_per_kwh.iter().fold(1e-9_f64, |most, price| most.max(price.abs()));
        let ahead = (config.lookahead_hours * periods_per_day / 24) as usize;
        let n_periods = buy_per_kwh.len();
        buy_per_kwh.extend_from_within(..ahead.min(n_periods));
        // A calendar that is shorter than the hours ahead ends with its last price.
        buy_per_kwh.resize(n_periods + ahead, buy_per_kwh[buy_per_kwh.len() - 1]);
        let observed_prices = buy_per_kwh.iter().map(|price| (price / largest) as f32).collect();
        let time = |step: u32| {
            let (sin, cos) = (TAU * f64::from(step) / f64::from(steps_per_day)).sin_cos();
            TimeOfDay { hour: step / steps_per_hour, hour_sin: sin as f32, hour_cos: cos as f32 }
        };
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
        let pv = match pv_kw {
            Some(kw) => Some(PvSource::Given(kw)),
            None => config.has_pv().then(|| PvSource::under_clouds(&config, calendar)),
        };
        let (cars, largest_need_kwh) = match sessions {
            Some(sessions) => {
                let largest_kwh = sessions.iter().map(|(_, car)| car.target_kwh).fold(0.0, f64::max);
                (CarSource::given(sessions, n_steps), largest_kwh)
            }
            None => {
                let largest_kwh = config.cars.iter().map(|model| model.battery_kwh).fold(0.0, f64::max);
                (CarSource::Random(Box::new(Arrivals::new(&config))), largest_kwh)
            }
        };
        Ok(Self {
            step_hours,
            steps_per_day,
            n_steps,
            times: (0..steps_per_day).map(time).collect(),
            days,
            has_dates,
            calendar,
            first_day,
            held_out,
            buy_per_kwh,
            observed_prices,
            periods_per_day,
            pv,
            cars,
            largest_need_kwh,
            socket_kw: groups.iter().flat_map(|group| group.sockets.clone().map(|_| group.socket_kw)).collect(),
            groups,
            network,
            storage: config.battery.storage(),
            standing_loss: 1.0 - (1.0 - config.battery.standing_loss_per_day).powf(step_hours / 24.0),
            reference: None,
            warnings,
            patience_steps: (config.arrivals.patience_hours / step_hours).round() as i32,
            config,
        })
    }

    /// The same site with the episodes of evaluations: those of training, or those within what is held out. Where nothing else is
    /// random, each day is played once.
    pub(crate) fn evaluated(&self) -> Self {
        let mut site = self.clone();
        let n_days = self.n_steps / self.steps_per_day;
        let length = self.config.n_steps().div_ceil(self.steps_per_day);
        if let Some(held_out) = self.held_out {
            let starts = held_out.parts(n_days).flat_map(|part| part.start..part.end + 1 - length);
            site.first_day = FirstDay::InOrder(starts.collect());
        } else if self.is_deterministic() {
            site.first_day = FirstDay::InOrder(self.first_day.days());
        }
        site
    }

    /// Whether nothing in an episode is random but its first day.
    pub(crate) fn is_deterministic(&self) -> bool {
        let has_clouds = self.pv.as_ref().is_some_and(|pv| pv.clouds().is_some());
        !has_clouds && matches!(self.cars, CarSource::Given { .. })
    }

    /// The fingerprint of a day of files.
    pub(crate) fn fingerprint(&self, day: u32) -> u64 {
        let steps = day * self.steps_per_day..(day + 1) * self.steps_per_day;
        let prices = steps.clone().map(|step| self.buy_per_kwh(step));
        let pv = steps.clone().filter_map(|step| match &self.pv {
            Some(PvSource::Given(kw)) => Some(kw[step as usize]),
            _ => None,
        });
        let cars = steps.flat_map(|step| match &self.cars {
            CarSource::Given { cars, first } => &cars[first[step as usize] as usize..first[step as usize + 1] as usize],
            CarSource::Random(_) => &[],
        });
        let cars = cars.flat_map(|car| [car.target_kwh, car.ac_kw, car.dc_kw, f64::from(car.stay_steps)]);
        fingerprint(prices.chain(pv).chain(cars))
    }

    /// The date and time of the next step.
    pub(crate) fn start_of(&self, env: &EnvState) -> TraceStart {
        let step = env.step();
        let midnight = self.calendar.start(step / self.steps_per_day);
        midnight.later(f64::from(step % self.steps_per_day) * self.step_hours)
    }

    /// The time of the day of `step` of the calendar.
    pub(crate) fn time(&self, step: u32) -> &TimeOfDay {
        &self.times[(step % self.steps_per_day) as usize]
    }

    /// The day of `step` of the calendar.
    pub(crate) fn day(&self, step: u32) -> &Day {
        &self.days[(step / self.steps_per_day) as usize]
    }

    fn period(&self, step: u32) -> usize {
        (u64::from(step) * u64::from(self.periods_per_day) / u64::from(self.steps_per_day)) as usize
    }

    /// Price of imported energy in `step`.
    pub(crate) fn buy_per_kwh(&self, step: u32) -> f64 {
        self.buy_per_kwh[self.period(step)]
    }

    /// The prices from `step` on, one per hour, over the largest price.
    pub(crate) fn observed_prices(&self, step: u32) -> impl Iterator<Item = f32> {
        let hours = self.config.lookahead_hours as usize;
        self.observed_prices[self.period(step)..]
            .iter()
            .step_by(self.periods_per_day as usize / 24)
            .copied()
            .take(hours)
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
    fn under_clouds(config: &StationConfig, calendar: Calendar) -> Self {
        let (place, modules) = (config.pv.place(config.utc_offset_hours), config.pv.modules());
        let steps = (0..calendar.n_days()).flat_map(|day| {
            let day_of_year = calendar.date(day).day_of_year;
            (0..config.steps_per_day()).map(move |step| (day_of_year, step))
        });
        let sun = |(day, step)| Sun::at(day, (f64::from(step) + 0.5) * config.step_hours(), &place, &modules);
        Self::UnderClouds { suns: steps.map(sun).collect(), clouds: config.pv.clouds(config.step_hours()), modules }
    }

    /// Power in `step` under the process of the clouds, in kW.
    pub(crate) fn power_kw(&self, step: u32, month: u8, process: f64) -> f64 {
        match self {
            Self::UnderClouds { suns, clouds, modules } => {
                let sun = &suns[step as usize];
                if sun.is_up() { sun.pv_kw(clouds.transmission(process, month), modules) } else { 0.0 }
            }
            Self::Given(kw) => kw[step as usize],
        }
    }

    /// The clouds, if they are random.
    pub(crate) fn clouds(&self) -> Option<&Clouds> {
        match self {
            Self::UnderClouds { clouds, .. } => Some(clouds),
            Self::Given(_) => None,
        }
    }
}

impl CarSource {
    /// Cars ordered by their steps.
    fn given(sessions: Vec<(u32, Car)>, n_steps: u32) -> Self {
        let mut first = vec![0; n_steps as usize + 1];
        sessions.iter().for_each(|(step, _)| first[*step as usize + 1] += 1);
        for step in 0..n_steps as usize {
            first[step + 1] += first[step];
        }
        Self::Given { cars: sessions.into_iter().map(|(_, car)| car).collect(), first }
    }
}

impl Day {
    fn new(date: Date, buy_per_kwh: &[f64]) -> Self {
        let (weekday_sin, weekday_cos) = (TAU * f64::from(date.weekday) / 7.0).sin_cos();
        let (year_sin, year_cos) = (TAU * f64::from(date.day_of_year) / 365.0).sin_cos();
        Self {
            month: date.month,
            is_weekend: date.weekday >= 5,
            weekday_sin: weekday_sin as f32,
            weekday_cos: weekday_cos as f32,
            year_sin: year_sin as f32,
            year_cos: year_cos as f32,
            prices: DayPrices::of(buy_per_kwh),
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
        let site = Site::new(config).expect("it needs no files");
        let last_step = site.n_steps - 1;
        assert_eq!((site.buy_per_kwh(0), site.buy_per_kwh(12 * 30), site.buy_per_kwh(last_step)), (0.0, 6.0, 23.0));
        let seen: Vec<f64> = site.observed_prices(last_step).map(|price| f64::from(price) * 23.0).collect();
        for (seen, expected) in seen.iter().zip([23.0, 0.0, 1.0, 2.0, 3.0, 4.0]) {
            assert!((seen - expected).abs() < 1e-5);
        }
        assert_eq!((site.next(last_step), site.day(last_step).month), (0, 11));
    }

    #[test]
    fn pv_of_the_default_year_is_that_of_a_dutch_roof() {
        let site = Site::new(StationConfig::default()).expect("it needs no files");
        let pv = site.pv.as_ref().expect("the default has PV");
        // The median sky; the mean over clouds is close to it.
        let kwh: f64 =
            (0..site.n_steps).map(|step| pv.power_kw(step, site.day(step).month, 0.0) * site.step_hours).sum();
        assert!((800.0..1000.0).contains(&(kwh / 200.0)), "{} kWh per kW", kwh / 200.0);
    }
}
