//! One's own site from CSV files, on one calendar.

use std::ops::Range;
use std::path::{Path, PathBuf};

use brasa_power::{EnergyError, fail};

use super::config::{IquitosConfig, VehicleClass};
use super::vehicles::Arrival;
use crate::calendar::Calendar;
use crate::remarks::{check_carbon, check_load, check_prices, check_sessions, read_pv};
use crate::series::{CsvFile, DAY_MINUTES, Series, show};

/// Largest price per kWh; more is an error of units.
const MOST_PRICE: f64 = 1000.0;
/// Largest load, in kW.
const MOST_KW: f64 = 1e6;
/// Longest session, in hours.
const MOST_HOURS: i64 = 24;
/// The classes of vehicles, in their order.
const CLASSES: [&str; 2] = ["moto", "mototaxi"];

/// What files give, per step of the calendar.
#[cfg_attr(not(feature = "optimum"), allow(dead_code, reason = "planners alone read forecasts"))]
#[derive(Debug, Clone, Default)]
pub(crate) struct Given {
    pub(crate) pv_kwh: Option<Vec<f64>>,
    pub(crate) load_kwh: Option<Vec<f64>>,
    pub(crate) price_per_kwh: Option<Vec<f64>>,
    pub(crate) carbon_kg_per_kwh: Option<Vec<f64>>,
    pub(crate) vehicles: Option<Vehicles>,
    pub(crate) pv_forecast_kwh: Option<Vec<f64>>,
    pub(crate) load_forecast_kwh: Option<Vec<f64>>,
    /// What is unlikely in the files.
    pub(crate) warnings: Vec<String>,
}

impl Given {
    /// The numbers of the steps `steps`, in a fixed order.
    pub(crate) fn values(&self, steps: Range<u32>) -> impl Iterator<Item = f64> {
        let series = [&self.pv_kwh, &self.load_kwh, &self.price_per_kwh, &self.carbon_kg_per_kwh];
        let columns = steps.start as usize..steps.end as usize;
        let series = series.into_iter().flatten().flat_map(move |values| values[columns.clone()].iter().copied());
        let arrivals = self.vehicles.iter().flat_map(move |vehicles| {
            let steps = steps.clone();
            (0..2).flat_map(move |class| steps.clone().flat_map(move |step| vehicles.at(class, step)))
        });
        series.chain(arrivals.flat_map(|arrival| [arrival.need_kwh, arrival.dwell_steps].map(f64::from)))
    }
}

/// Vehicles of both classes, ordered by arrival; those of step `i` begin at `first[class][i]`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Vehicles {
    arrivals: [Vec<Arrival>; 2],
    first: [Vec<u32>; 2],
}

impl Vehicles {
    /// The vehicles of `class` that arrive in `step`.
    pub(crate) fn at(&self, class: usize, step: u32) -> &[Arrival] {
        let (first, step) = (&self.first[class], step as usize);
        &self.arrivals[class][first[step] as usize..first[step + 1] as usize]
    }

    /// Steps of the longest stay.
    pub(crate) fn longest_steps(&self) -> f32 {
        self.arrivals.iter().flatten().fold(1.0, |most, arrival| most.max(arrival.dwell_steps))
    }
}

/// Replaces the sockets of `config` by those of its file.
///
/// # Errors
/// [`EnergyError::Cell`] for what is no class, count, power or capacity; a class that is missing or repeated.
pub(crate) fn read_sockets(config: &mut IquitosConfig) -> Result<(), EnergyError> {
    let Some(path) = &config.files.sockets else { return Ok(()) };
    let file = CsvFile::read(path)?;
    let (class, sockets) = (file.words("class")?, file.words("sockets")?);
    let (power, battery) =
        (file.column("power", &[("kW", 1.0), ("W", 1e-3)])?, file.column("battery", &[("kWh", 1.0)])?);
    let mut seen = [false; 2];
    for row in 0..file.n_rows() {
        let index = class_of(&file, row, class)?;
        if std::mem::replace(&mut seen[index], true) {
            return Err(file.word_error(row, class, "must be a class once".into()));
        }
        let count = file.word(row, sockets).parse().ok().filter(|count| (1..=10_000).contains(count));
        let Some(count) = count else {
            return Err(file.word_error(row, sockets, "must be a number of sockets from 1 to 10000".into()));
        };
        let of_class = [&mut config.vehicles.moto, &mut config.vehicles.mototaxi];
        let VehicleClass { sockets, socket_kw, battery_kwh, .. } =
            of_class.into_iter().nth(index).expect("two classes");
        (*sockets, *socket_kw) = (count, file.number(row, power, 1e-3, 1e4)?);
        *battery_kwh = file.number(row, battery, 1e-3, 2000.0)?;
    }
    match seen {
        [true, true] => Ok(()),
        _ => Err(file.file_error("must have a row for `moto` and one for `mototaxi`".into())),
    }
}

/// Reads the series and sessions of a validated `config`.
///
/// # Errors
/// Those of the files, and [`EnergyError::Field`] for series that do not fit to each other or to the steps.
pub(crate) fn read(config: &IquitosConfig) -> Result<(Calendar, Given), EnergyError> {
    let (files, currency) = (&config.files, &config.grid.currency);
    let (per_kwh, per_mwh) = (format!("{currency}/kWh"), format!("{currency}/MWh"));
    let kw = [("kW", 1.0), ("W", 1e-3)];
    let mut warnings = Vec::new();
    let series = |path: &Option<PathBuf>, name: &str, units: &[(&str, f64)], high: f64| {
        path.as_deref().map(|path| Series::read(path, name, units, 0.0, high)).transpose()
    };
    let mut pv_of = |path: &Option<PathBuf>| {
        path.as_deref().map(|path| read_pv(path, config.pv.peak_kw, &mut warnings)).transpose()
    };
    let (pv, pv_forecast) = (pv_of(&files.pv)?, pv_of(&files.pv_forecast)?);
    let load = series(&files.load, "load", &kw, MOST_KW)?;
    let prices = series(&files.prices, "price", &[(&per_kwh, 1.0), (&per_mwh, 1e-3)], MOST_PRICE)?;
    let carbon = series(&files.carbon, "carbon", &[("kg/kWh", 1.0), ("g/kWh", 1e-3)], 2.0)?;
    let load_forecast = series(&files.load_forecast, "load", &kw, MOST_KW)?;
    for (path, load) in [(&files.load, &load), (&files.load_forecast, &load_forecast)] {
        if let (Some(path), Some(load)) = (path, load) {
            check_load(path, load, &mut warnings);
        }
    }
    if let (Some(path), Some(prices)) = (&files.prices, &prices) {
        check_prices(path, prices, currency, &mut warnings);
    }
    if let (Some(path), Some(carbon)) = (&files.carbon, &carbon) {
        check_carbon(path, carbon, &mut warnings);
    }
    let sessions = files.vehicles.as_deref().map(|path| Sessions::read(path, config, &mut warnings)).transpose()?;

    let offset = (files.utc_offset_hours * 60.0).round() as i64;
    let all = [
        ("files.pv", &pv),
        ("files.load", &load),
        ("files.prices", &prices),
        ("files.carbon", &carbon),
        ("files.pv_forecast", &pv_forecast),
        ("files.load_forecast", &load_forecast),
    ];
    let mut days = Series::whole_days(all.iter().filter_map(|(_, series)| series.as_ref()), offset);
    let mut field = all.iter().find_map(|(field, series)| series.is_some().then_some(*field));
    if days.is_none()
        && let Some(sessions) = &sessions
    {
        (days, field) = (sessions.days(), Some("files.vehicles"));
    }
    let Some((first, end)) = days else { return Ok((Calendar::Year, Given::default())) };
    let steps_per_day = 24 * 60 / config.step_minutes;
    let needed = config.episode_steps.map_or(1, |steps| steps.div_ceil(steps_per_day));
    Calendar::check(first, end, needed, field.unwrap_or("files"))?;

    let minutes = i64::from(config.step_minutes);
    let resample = |field: &str, series: &Option<Series>, factor: f64| {
        let Some(series) = series else { return Ok(None) };
        let n = (end - first) * DAY_MINUTES / minutes;
        let rule = format!("must have an interval that fits to steps of {minutes} minutes from midnight on");
        match series.resample(first * DAY_MINUTES - offset, minutes, n as usize) {
            Some(values) => Ok(Some(values.into_iter().map(|value| value * factor).collect())),
            None => fail(field, &rule, format!("{} minutes", series.interval_minutes)),
        }
    };
    let hours = config.step_hours();
    let given = Given {
        pv_kwh: resample("files.pv", &pv, hours)?,
        load_kwh: resample("files.load", &load, hours)?,
        price_per_kwh: resample("files.prices", &prices, 1.0)?,
        carbon_kg_per_kwh: resample("files.carbon", &carbon, 1.0)?,
        pv_forecast_kwh: resample("files.pv_forecast", &pv_forecast, hours)?,
        load_forecast_kwh: resample("files.load_forecast", &load_forecast, hours)?,
        vehicles: sessions.map(|sessions| sessions.on(first, end, minutes)).transpose()?,
        warnings,
    };
    Ok((Calendar::Dates(first, end), given))
}

/// The class in `row`.
fn class_of(file: &CsvFile, row: usize, column: usize) -> Result<usize, EnergyError> {
    let class = file.word(row, column);
    let index = CLASSES.iter().position(|name| *name == class);
    index.ok_or_else(|| file.word_error(row, column, "must be `moto` or `mototaxi`".into()))
}

/// The sessions of a file.
struct Sessions {
    file: CsvFile,
    /// Row, class, arrival in minutes of local time, and the vehicle; ordered by arrival.
    rows: Vec<(usize, usize, i64, Arrival)>,
}

impl Sessions {
    fn read(path: &Path, config: &IquitosConfig, warnings: &mut Vec<String>) -> Result<Self, EnergyError> {
        let file = CsvFile::read(path)?;
        let (arrival, departure) = (file.times("arrival")?, file.times("departure")?);
        let energy = file.column("energy", &[("kWh", 1.0), ("Wh", 1e-3)])?;
        let class = file.words("class")?;
        let vehicles = &config.vehicles;
        let most_kwh =
            [&vehicles.moto, &vehicles.mototaxi].map(|class| class.battery_kwh / vehicles.charger_efficiency);
        let (minutes, offset) = (i64::from(config.step_minutes), (config.files.utc_offset_hours * 60.0).round() as i64);
        let mut rows = Vec::with_capacity(file.n_rows());
        let (mut n_empty, mut largest_kwh) = (0, 0.0_f64);
        for row in 0..file.n_rows() {
            // More than a full battery, with the charger's losses, is an error of units.
            let class = class_of(&file, row, class)?;
            let need_kwh = file.number(row, energy, 0.0, most_kwh[class])?;
            let Some((begin, end)) = file.stay(row, (arrival, departure), MOST_HOURS, need_kwh)? else {
                n_empty += 1;
                continue;
            };
            largest_kwh = largest_kwh.max(need_kwh);
            // Both times go to the step that contains them.
            let step = |minute: i64| (minute + offset).div_euclid(minutes);
            let dwell_steps = (step(end) - step(begin)).max(1) as f32;
            rows.push((row, class, step(begin) * minutes, Arrival { need_kwh: need_kwh as f32, dwell_steps }));
        }
        if rows.is_empty() {
            return Err(file.file_error("must have at least one session with energy".into()));
        }
        check_sessions(path, n_empty, largest_kwh, warnings);
        rows.sort_by_key(|(_, _, arrival, _)| *arrival);
        Ok(Self { file, rows })
    }

    /// The days from the first to the last arrival.
    fn days(&self) -> Option<(i64, i64)> {
        let day = |(_, _, arrival, _): &(usize, usize, i64, Arrival)| arrival.div_euclid(DAY_MINUTES);
        Some((self.rows.first().map(day)?, self.rows.last().map(day)? + 1))
    }

    /// The vehicles by class and step; the days from `first` to before `end` must have all arrivals.
    fn on(self, first: i64, end: i64, minutes: i64) -> Result<Vehicles, EnergyError> {
        let n_steps = ((end - first) * DAY_MINUTES / minutes) as usize;
        let column = self.file.times("arrival")?;
        let mut vehicles = Vehicles { arrivals: [vec![], vec![]], first: [vec![0; n_steps + 1], vec![0; n_steps + 1]] };
        for (row, class, arrival, vehicle) in &self.rows {
            if !(first * DAY_MINUTES..end * DAY_MINUTES).contains(arrival) {
                let (first, end) = (show(first * DAY_MINUTES), show(end * DAY_MINUTES));
                let rule = format!("must be between {first} and {end} of local time, the days of the other files");
                return Err(self.file.time_error(*row, column, rule));
            }
            vehicles.arrivals[*class].push(*vehicle);
            vehicles.first[*class][((arrival - first * DAY_MINUTES) / minutes) as usize + 1] += 1;
        }
        for first in &mut vehicles.first {
            for step in 0..n_steps {
                first[step + 1] += first[step];
            }
        }
        Ok(vehicles)
    }
}
