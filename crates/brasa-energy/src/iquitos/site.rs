//! The constants of a simulation: calendar, profiles, prices, sun, and reference.

use std::f64::consts::TAU;

use brasa_power::{EnergyError, Starts, TraceStart};

use super::config::{ArrivalModel, IquitosConfig, PvConfig, PvModel};
use super::data::Given;
use super::profiles::closed_form_pv_kwh;
use super::solar::{Clouds, Modules, Sun};
use super::vehicles::Arrivals;
use super::world::EnvState;
use crate::calendar::{Calendar, Date};
use crate::day_prices::DayPrices;
use crate::starts::{FirstDay, HeldOut};

/// Hour of the largest emissions, if they vary.
const CARBON_PEAK_HOUR: f64 = 19.5;

/// Tables of a validated config.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) config: IquitosConfig,
    pub(crate) step_hours: f64,
    pub(crate) steps_per_day: u32,
    /// Steps of the calendar: of a year, or of the days of files.
    pub(crate) steps_per_year: u32,
    /// One entry per step of a day.
    times: Vec<TimeOfDay>,
    /// One entry per day of the year.
    days: Vec<Day>,
    pub(crate) pv: PvTable,
    pub(crate) modules: Modules,
    /// `None` if vehicles follow the profile.
    pub(crate) arrivals: Option<Arrivals>,
    /// Standing loss of one step, as a fraction.
    pub(crate) standing_loss: f64,
    pub(crate) reference: Reference,
    /// What files give instead.
    pub(crate) given: Given,
    /// Whether days are those of files.
    pub(crate) has_dates: bool,
    pub(crate) calendar: Calendar,
    pub(crate) first_day: FirstDay,
    pub(crate) held_out: Option<HeldOut>,
    /// A price at which energy can be bought on most days.
    pub(crate) low_price_per_kwh: f64,
    /// Mean emissions of an imported kWh, in kg.
    pub(crate) mean_carbon_kg_per_kwh: f64,
}

/// Values that depend only on the time of the day.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeOfDay {
    pub(crate) hour: u8,
    pub(crate) hour_sin: f32,
    pub(crate) hour_cos: f32,
    pub(crate) is_peak_tariff: bool,
    /// Hours until the peak tariff starts; 0 during it.
    pub(crate) hours_to_peak: f64,
    pub(crate) price_per_kwh: f64,
    pub(crate) carbon_kg_per_kwh: f64,
    pub(crate) mall_kwh: f64,
    pub(crate) profile_kwh: f64,
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
    pub(crate) mall_factor: f64,
    pub(crate) prices: DayPrices,
}

/// The deterministic part of the PV of every step of the year.
#[derive(Debug, Clone)]
pub(crate) enum PvTable {
    /// Energy, in kWh.
    Fixed(Vec<f64>),
    /// The sun, with random clouds.
    UnderClouds(Vec<Sun>, Clouds),
}

/// Statistics of an uncontrolled year: sockets at full power, the battery unused.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Reference {
    /// Means over the steps of the year that training may use.
    pub(crate) carbon_kg: f64,
    /// Without the revenue of exports, so that it is a scale above 0 for a site that earns money.
    pub(crate) gross_cost: f64,
    pub(crate) pv_kwh: f64,
    pub(crate) wanted_kwh: f64,
    pub(crate) peak_rise_kw: f64,
    pub(crate) ramp_kw: f64,
    /// Energy of the vehicles of files per step of the calendar, in kWh; empty without such files.
    pub(crate) given_vehicles_kwh: Vec<f64>,
    /// Mean energy of the vehicles per kind of day (weekday, weekend) and step of the day, in kWh.
    pub(crate) vehicles_kwh: Vec<f64>,
}

impl Site {
    /// Tables of a validated `config` without files, with an empty reference.
    #[cfg(test)]
    pub(crate) fn new(config: IquitosConfig) -> Self {
        Self::with(config, Calendar::Year, Given::default()).expect("a calendar without held-out days has room")
    }

    /// Tables of a validated `config` with what its files give, with an empty reference.
    ///
    /// # Errors
    /// [`EnergyError::Field`] where the calendar has no room for held-out days.
    pub(crate) fn with(config: IquitosConfig, calendar: Calendar, given: Given) -> Result<Self, EnergyError> {
        let step_hours = config.step_hours();
        let steps_per_hour = 60 / config.step_minutes;
        let steps_per_day = 24 * steps_per_hour;
        let times: Vec<TimeOfDay> =
            (0..steps_per_day).map(|step| TimeOfDay::new(&config, step / steps_per_hour, step)).collect();
        let tariff: Vec<f64> = times.iter().map(|time| time.price_per_kwh).collect();
        let n_days = calendar.n_days();
        let day = |day: u32| {
            let first = (day * steps_per_day) as usize;
            let prices = given.price_per_kwh.as_ref().map_or(&tariff[..], |all| &all[first..][..tariff.len()]);
            Day::new(&config, calendar.date(day), DayPrices::of(prices))
        };
        let days: Vec<Day> = (0..n_days).map(day).collect();
        let steps = (0..n_days).flat_map(|day| {
            let day = calendar.date(day).day_of_year;
            (0..steps_per_day).map(move |step| (day, step))
        });
        let modules = config.pv.modules();
        let pv = match (&given.pv_kwh, config.pv.model) {
            (Some(kwh), _) => PvTable::Fixed(kwh.clone()),
            (None, PvModel::ClosedForm) => {
                let share = config.pv.scale * step_hours;
                let kwh =
                    |(day, step)| share * closed_form_pv_kwh(day, step / steps_per_hour, config.pv.closed_form_kwh);
                PvTable::Fixed(steps.map(kwh).collect())
            }
            (None, PvModel::ClearSky) => {
                let sun = |(day, step)| Sun::at(day, (f64::from(step) + 0.5) * step_hours, &PvConfig::PLACE, &modules);
                PvTable::UnderClouds(steps.map(sun).collect(), config.pv.clouds(step_hours))
            }
        };
        let draws = config.vehicles.arrivals == ArrivalModel::Poisson && given.vehicles.is_none();
        let arrivals = draws.then(|| Arrivals::new(&config));
        let mut cheap: Vec<f64> = days.iter().map(|day| day.prices.cheap_per_kwh).collect();
        cheap.sort_by(f64::total_cmp);
        let carbon = given.carbon_kg_per_kwh.as_ref();
        let mean_carbon_kg_per_kwh =
            carbon.map_or(config.grid.carbon_kg_per_kwh, |carbon| carbon.iter().sum::<f64>() / carbon.len() as f64);
        let has_dates = matches!(calendar, Calendar::Dates(..));
        let held_out = HeldOut::new(config.held_out_days, config.held_out_weeks, calendar)?;
        let steps = config.episode_steps.unwrap_or(n_days * steps_per_day);
        let starts = match held_out {
            None => Starts::first((n_days + 1).saturating_sub(steps.div_ceil(steps_per_day)) as usize),
            Some(held_out) => held_out.starts(n_days, steps, steps_per_day)?,
        };
        let first_day = if config.random_start { FirstDay::Random(starts) } else { FirstDay::InOrder(vec![0]) };
        let reference = Reference { vehicles_kwh: vec![0.0; 2 * steps_per_day as usize], ..Default::default() };
        Ok(Self {
            has_dates,
            calendar,
            first_day,
            held_out,
            low_price_per_kwh: cheap[cheap.len() / 2],
            mean_carbon_kg_per_kwh,
            step_hours,
            steps_per_day,
            steps_per_year: n_days * steps_per_day,
            times,
            days,
            pv,
            modules,
            arrivals,
            standing_loss: 1.0 - (1.0 - config.battery.standing_loss_per_day).powf(step_hours / 24.0),
            reference,
            given,
            config,
        })
    }

    /// The date and time of the next step.
    pub(crate) fn start_of(&self, env: &EnvState) -> TraceStart {
        let step = env.step_of_year;
        let midnight = self.calendar.start(step / self.steps_per_day);
        midnight.later(f64::from(step % self.steps_per_day) * self.step_hours)
    }

    /// The same site with the episodes of evaluations: the whole calendar, or each part that is held out.
    pub(crate) fn evaluated(&self) -> Self {
        let mut site = self.clone();
        let n_days = self.steps_per_year / self.steps_per_day;
        let parts = |held_out: HeldOut| held_out.parts(n_days).map(|part| part.start).collect();
        site.first_day = FirstDay::InOrder(self.held_out.map_or(vec![0], parts));
        site.config.episode_steps = self.held_out.map(|held_out| held_out.days * self.steps_per_day);
        site.config.random_start = false;
        site.config.reward.shaped = false;
        site
    }

    /// Steps of an episode.
    pub(crate) fn episode_steps(&self) -> u32 {
        self.config.episode_steps.unwrap_or(self.steps_per_year)
    }

    /// Whether nothing in an episode is random but its first day.
    pub(crate) fn is_deterministic(&self) -> bool {
        let is_fixed = matches!(self.pv, PvTable::Fixed(_)) && self.arrivals.is_none();
        is_fixed && (self.given.load_kwh.is_some() || self.config.mall.noise == 0.0)
    }

    /// The values of the time of the day at `step_of_year`.
    pub(crate) fn time(&self, step_of_year: u32) -> &TimeOfDay {
        &self.times[(step_of_year % self.steps_per_day) as usize]
    }

    /// The values of the day at `step_of_year`.
    pub(crate) fn day(&self, step_of_year: u32) -> &Day {
        &self.days[(step_of_year / self.steps_per_day) as usize]
    }

    /// Price of an imported kWh at `step_of_year`.
    #[inline]
    pub(crate) fn price_per_kwh(&self, step_of_year: u32) -> f64 {
        match &self.given.price_per_kwh {
            Some(prices) => prices[step_of_year as usize],
            None => self.time(step_of_year).price_per_kwh,
        }
    }

    /// Emissions of an imported kWh at `step_of_year`, in kg.
    #[inline]
    pub(crate) fn carbon_kg_per_kwh(&self, step_of_year: u32) -> f64 {
        match &self.given.carbon_kg_per_kwh {
            Some(carbon) => carbon[step_of_year as usize],
            None => self.time(step_of_year).carbon_kg_per_kwh,
        }
    }

    /// Load of the mall at `step_of_year` without noise, in kWh.
    #[cfg(feature = "optimum")]
    pub(crate) fn mean_load_kwh(&self, step_of_year: u32) -> f64 {
        match &self.given.load_kwh {
            Some(load) => load[step_of_year as usize],
            None => self.time(step_of_year).mall_kwh * self.day(step_of_year).mall_factor,
        }
    }

    /// Whether vehicles come and go and need orders, instead of taking a profile.
    pub(crate) fn serves_vehicles(&self) -> bool {
        self.arrivals.is_some() || self.given.vehicles.is_some()
    }

    /// Mean energy of uncontrolled vehicles at `step_of_year`, in kWh.
    pub(crate) fn reference_vehicles_kwh(&self, step_of_year: u32) -> f64 {
        self.reference.vehicles_kwh[self.reference_index(step_of_year)]
    }

    /// Index of `step_of_year` in [`Reference::vehicles_kwh`].
    pub(crate) fn reference_index(&self, step_of_year: u32) -> usize {
        let offset = if self.day(step_of_year).is_weekend { self.steps_per_day } else { 0 };
        (offset + step_of_year % self.steps_per_day) as usize
    }
}

impl TimeOfDay {
    fn new(config: &IquitosConfig, hour: u32, step: u32) -> Self {
        let grid = &config.grid;
        let step_hours = config.step_hours();
        let (sin, cos) = (TAU * f64::from(step) * step_hours / 24.0).sin_cos();
        let is_peak_tariff = (grid.peak_start_hour..grid.peak_end_hour).contains(&hour);
        let to_start = (f64::from(grid.peak_start_hour) - f64::from(step) * step_hours).rem_euclid(24.0);
        let middle = (f64::from(step) + 0.5) * step_hours;
        let swing = grid.carbon_swing * (TAU * (middle - CARBON_PEAK_HOUR) / 24.0).cos();
        Self {
            hour: hour as u8,
            hour_sin: sin as f32,
            hour_cos: cos as f32,
            is_peak_tariff,
            hours_to_peak: if is_peak_tariff { 0.0 } else { to_start },
            price_per_kwh: if is_peak_tariff { grid.peak_price_per_kwh } else { grid.off_peak_price_per_kwh },
            carbon_kg_per_kwh: grid.carbon_kg_per_kwh * (1.0 + swing),
            mall_kwh: config.mall.hourly_kw[hour as usize] * step_hours,
            profile_kwh: config.vehicles.profile_kwh[hour as usize] * step_hours,
        }
    }
}

impl Day {
    fn new(config: &IquitosConfig, date: Date, prices: DayPrices) -> Self {
        let Date { day_of_year, month, weekday } = date;
        let (weekday_sin, weekday_cos) = (TAU * f64::from(weekday) / 7.0).sin_cos();
        let (year_sin, year_cos) = (TAU * f64::from(day_of_year) / 365.0).sin_cos();
        Self {
            month,
            is_weekend: weekday >= 5,
            weekday_sin: weekday_sin as f32,
            weekday_cos: weekday_cos as f32,
            year_sin: year_sin as f32,
            year_cos: year_cos as f32,
            mall_factor: 1.0 + config.mall.weekday_change[weekday as usize],
            prices,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tariff_changes_at_its_hours() {
        let site = Site::new(IquitosConfig { step_minutes: 15, ..Default::default() });
        for (quarter, peak, hours_to_peak) in
            [(0, false, 18.0), (71, false, 0.25), (72, true, 0.0), (91, true, 0.0), (92, false, 19.0)]
        {
            let time = site.time(quarter);
            assert_eq!((time.is_peak_tariff, time.hours_to_peak), (peak, hours_to_peak), "{quarter}");
            assert_eq!(time.price_per_kwh, if peak { 0.45 } else { 0.28 });
        }
    }

    #[test]
    fn shorter_steps_carry_the_same_energy() {
        let sum = |step_minutes| {
            let site = Site::new(IquitosConfig { step_minutes, ..IquitosConfig::seed() });
            let PvTable::Fixed(pv) = &site.pv else { panic!("the seed preset has fixed PV") };
            let times = (0..site.steps_per_year).map(|step| site.time(step));
            let (mall, vehicles) =
                times.fold((0.0, 0.0), |(mall, vehicles), t| (mall + t.mall_kwh, vehicles + t.profile_kwh));
            [pv.iter().sum::<f64>(), mall, vehicles]
        };
        for (hourly, quarterly) in sum(60).into_iter().zip(sum(15)) {
            assert!((hourly - quarterly).abs() < 1e-6 * hourly, "{hourly} {quarterly}");
        }
    }
}
