//! One's own site from CSV files: prices, PV and sessions, on one calendar.
//!
//! Without files the calendar is 2024 without February 29, and December 31 is followed by January 1. With files it is the
//! whole days of local time that all series cover, and episodes stay within it.

use std::path::Path;

use brasa_power::{EnergyError, fail};

use super::arrivals::{Car, MAX_STAY_HOURS};
use super::config::{SocketKind, StationConfig};
use super::profiles;
use crate::calendar::{Calendar, Date};
use crate::remarks::{check_prices, check_sessions, read_pv};
use crate::series::{CsvFile, DAY_MINUTES, Series, show};

/// Largest price per kWh in a file; more is an error of units.
const MOST_PRICE: f64 = 1000.0;
/// Largest energy of a session, in kWh.
const MOST_SESSION_KWH: f64 = 2000.0;

/// What drives a station from outside.
#[derive(Debug, Clone)]
pub(crate) struct Data {
    pub(crate) calendar: Calendar,
    /// Prices of imported energy at equal periods, at most an hour long.
    pub(crate) buy_per_kwh: Vec<f64>,
    pub(crate) periods_per_day: u32,
    /// PV per step from a file, in kW.
    pub(crate) pv_kw: Option<Vec<f64>>,
    /// Cars from a file, with the step of the calendar in which they arrive, ordered by it.
    pub(crate) sessions: Option<Vec<(u32, Car)>>,
    /// What is unlikely in the files.
    pub(crate) warnings: Vec<String>,
}

impl Data {
    /// Reads the files of a validated `config`.
    pub(crate) fn read(config: &StationConfig) -> Result<Self, EnergyError> {
        let currency = &config.prices.currency;
        let (per_kwh, per_mwh) = (format!("{currency}/kWh"), format!("{currency}/MWh"));
        let prices = config
            .prices
            .file
            .as_deref()
            .map(|path| Series::read(path, "price", &[(&per_kwh, 1.0), (&per_mwh, 1e-3)], -MOST_PRICE, MOST_PRICE));
        let prices = prices.transpose()?;
        let mut warnings = Vec::new();
        if let (Some(path), Some(prices)) = (&config.prices.file, &prices) {
            check_prices(path, prices, currency, &mut warnings);
        }
        let pv = config.pv.file.as_deref().map(|path| read_pv(path, config.pv.peak_kw, &mut warnings)).transpose()?;
        let sessions = config.arrivals.file.as_deref();
        let sessions = sessions.map(|path| read_sessions(path, config, &mut warnings)).transpose()?;

        let offset = config.utc_offset_minutes();
        let mut days = Series::whole_days([&prices, &pv].into_iter().flatten(), offset);
        if days.is_none()
            && let Some(sessions) = &sessions
        {
            days = sessions.days();
        }
        let calendar = days.map_or(Calendar::Year, |(first, end)| Calendar::Dates(first, end));
        if let Calendar::Dates(first, end) = calendar {
            let field =
                [(prices.is_some(), "prices.file"), (pv.is_some(), "pv.file"), (sessions.is_some(), "arrivals.file")];
            let field = field.into_iter().find_map(|(given, field)| given.then_some(field)).unwrap_or("prices.file");
            Calendar::check(first, end, config.n_steps().div_ceil(config.steps_per_day()), field)?;
        }

        let step_minutes = i64::from(config.step_minutes);
        let resample = |field: &str, series: &Series, minutes: i64| {
            let Calendar::Dates(first, end) = calendar else { return fail(field, "must cover the calendar", "none") };
            let n = (end - first) * DAY_MINUTES / minutes;
            let rule = format!("must have an interval that fits to steps of {minutes} minutes from midnight on");
            let resampled = series.resample(first * DAY_MINUTES - offset, minutes, n as usize);
            resampled.map_or_else(|| fail(field, &rule, format!("{} minutes", series.interval_minutes)), Ok)
        };
        let (buy_per_kwh, periods_per_day) = match &prices {
            Some(series) => {
                let minutes = step_minutes.max(series.interval_minutes.min(60));
                // An hour is a whole number of periods, so that prices can be observed hours ahead.
                if 60 % minutes != 0 {
                    let rule = "must have an interval that divides an hour or is a number of hours";
                    return fail("prices.file", rule, format!("{} minutes", series.interval_minutes));
                }
                (resample("prices.file", series, minutes)?, (DAY_MINUTES / minutes) as u32)
            }
            None => (prices_of(config, calendar), 24),
        };
        let pv_kw = pv.map(|series| resample("pv.file", &series, step_minutes)).transpose()?;
        let sessions = sessions.map(|sessions| sessions.on(calendar, config)).transpose()?;
        Ok(Self { calendar, buy_per_kwh, periods_per_day, pv_kw, sessions, warnings })
    }
}

/// Hourly prices without a file.
fn prices_of(config: &StationConfig, calendar: Calendar) -> Vec<f64> {
    let hours = (0..calendar.n_days()).flat_map(|day| (0..24).map(move |hour| (calendar.date(day), hour)));
    let price = |(date, hour): (Date, u32)| match &config.prices.buy_per_kwh {
        Some(values) => values[(date.day_of_year * 24 + hour) as usize % values.len()],
        None => profiles::buy_per_kwh(date.day_of_year, date.weekday >= 5, hour),
    };
    hours.map(price).collect()
}

/// The sessions of a file, ordered by arrival.
struct Sessions {
    file: CsvFile,
    /// Row, arrival in minutes of local time, and the car.
    cars: Vec<(usize, i64, Car)>,
}

/// Reads sessions: `arrival` and `departure`, `energy`, `socket` (`ac`, `dc` or `any`), and the car's largest `power` where
/// it is known.
fn read_sessions(path: &Path, config: &StationConfig, warnings: &mut Vec<String>) -> Result<Sessions, EnergyError> {
    let file = CsvFile::read(path)?;
    let (arrival, departure) = (file.times("arrival")?, file.times("departure")?);
    let energy = file.column("energy", &[("kWh", 1.0), ("Wh", 1e-3)])?;
    let power = file.optional("power", &[("kW", 1.0), ("W", 1e-3)])?;
    let socket = file.words("socket")?;
    let step_minutes = i64::from(config.step_minutes);
    let largest_kw = config.sockets.iter().map(|group| group.socket_kw()).fold(0.0, f64::max);
    let mut cars = Vec::with_capacity(file.n_rows());
    let (mut n_empty, mut largest_kwh) = (0, 0.0_f64);
    for row in 0..file.n_rows() {
        let energy_kwh = file.number(row, energy, 0.0, MOST_SESSION_KWH)?;
        let Some((begin, end)) = file.stay(row, (arrival, departure), MAX_STAY_HOURS as i64, energy_kwh)? else {
            n_empty += 1;
            continue;
        };
        largest_kwh = largest_kwh.max(energy_kwh);
        let kw = power.map_or(Ok(largest_kw), |power| file.number(row, power, 1e-3, 1e4))?;
        let (ac_kw, dc_kw) = match file.word(row, socket).as_str() {
            "ac" => (kw, 0.0),
            "dc" => (0.0, kw),
            "any" => (kw, kw),
            _ => return Err(file.word_error(row, socket, "must be `ac`, `dc` or `any`".into())),
        };
        for (kind, kw) in [(SocketKind::Ac, ac_kw), (SocketKind::Dc, dc_kw)] {
            let is_only = ac_kw == 0.0 || dc_kw == 0.0;
            if is_only && kw > 0.0 && config.sockets.iter().all(|group| group.kind != kind) {
                return Err(file.word_error(row, socket, "must be a kind of sockets of the station".into()));
            }
        }
        // Both times go to the step that contains them.
        let step = |minute: i64| (minute + config.utc_offset_minutes()).div_euclid(step_minutes);
        let stay_steps = (step(end) - step(begin)).max(1) as u32;
        // The battery is unknown: the car wants to be full, and its capacity is the energy of the session.
        let car = Car {
            arrival_kwh: 0.0,
            target_kwh: energy_kwh,
            battery_kwh: energy_kwh,
            ac_kw,
            dc_kw,
            taper_soc: 1.0,
            taper_slope: 0.0,
            stay_steps,
            energy_bound: false,
        };
        cars.push((row, step(begin) * step_minutes, car));
    }
    if cars.is_empty() {
        return Err(file.file_error("must have at least one session with energy".into()));
    }
    check_sessions(path, n_empty, largest_kwh, warnings);
    cars.sort_by_key(|(_, arrival, _)| *arrival);
    Ok(Sessions { file, cars })
}

impl Sessions {
    /// The days from the first to the last arrival.
    fn days(&self) -> Option<(i64, i64)> {
        let day = |(_, arrival, _): &(usize, i64, Car)| arrival.div_euclid(DAY_MINUTES);
        Some((self.cars.first().map(day)?, self.cars.last().map(day)? + 1))
    }

    /// The cars with their steps; the calendar must have all arrivals.
    fn on(self, calendar: Calendar, config: &StationConfig) -> Result<Vec<(u32, Car)>, EnergyError> {
        let Calendar::Dates(first, end) = calendar else { return fail("arrivals.file", "must have days", "none") };
        let arrivals = self.file.times("arrival")?;
        let step = |(row, arrival, car): &(usize, i64, Car)| {
            if !(first * DAY_MINUTES..end * DAY_MINUTES).contains(arrival) {
                let (first, end) = (show(first * DAY_MINUTES), show(end * DAY_MINUTES));
                let rule = format!("must be between {first} and {end} of local time, the days of the other files");
                return Err(self.file.time_error(*row, arrivals, rule));
            }
            Ok((((arrival - first * DAY_MINUTES) / i64::from(config.step_minutes)) as u32, *car))
        };
        self.cars.iter().map(step).collect()
    }
}
