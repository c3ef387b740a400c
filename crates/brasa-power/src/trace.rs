//! Power flows of an episode per step.

use serde::Serialize;

use crate::dates::{civil_from_days, days_from_civil};

/// Power flows of an episode per step, in kW (mean over the step), summed over the site.
///
/// It is the [`brasa_env::Trace`] of every outcome of an energy scenario.
///
/// ```
/// use brasa_power::Trace;
///
/// let mut trace = Trace { step_hours: 0.5, ..Trace::default() };
/// for load_kw in [2.0, 4.0] {
///     trace.load_kw.push(load_kw);
///     trace.grid_kw.push(load_kw);
/// }
/// let energy_kwh: f64 = trace.grid_kw.iter().map(|kw| f64::from(*kw) * trace.step_hours).sum();
/// assert_eq!(energy_kwh, 3.0);
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Trace {
    /// Length of a step, in hours.
    pub step_hours: f64,
    /// When the first step begins, if the data have dates.
    pub start: Option<TraceStart>,
    /// Load without vehicles.
    pub load_kw: Vec<f32>,
    /// PV that could have been produced.
    pub pv_kw: Vec<f32>,
    /// Battery power, positive when charging.
    pub battery_kw: Vec<f32>,
    /// Power of the chargers of vehicles.
    pub ev_kw: Vec<f32>,
    /// Power from the grid, negative when exporting.
    pub grid_kw: Vec<f32>,
    /// Mean state of charge of the batteries, 0 to 1.
    pub soc: Vec<f32>,
    /// Limit of the power from the grid, hard or soft, if there is one.
    pub grid_limit_kw: Option<f64>,
    /// Limit of the power of all chargers together, if there is one.
    pub ev_limit_kw: Option<f64>,
    /// Names of the sockets.
    pub sockets: Vec<String>,
    /// `[step * sockets]`: power into the vehicle at each socket, negative when it discharges; none without a vehicle.
    pub socket_kw: Vec<Option<f32>>,
}

/// The local date and time at which a trace begins.
///
/// ```
/// use brasa_power::TraceStart;
///
/// let noon = TraceStart { year: Some(2024), month: 2, day: 28, hour: 12.0, weekday: Some(2) };
/// let later = noon.later(36.0);
/// assert_eq!((later.month, later.day, later.hour, later.weekday), (3, 1, 0.0, Some(4)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TraceStart {
    /// The year, if the data have one; otherwise dates are those of a common year.
    pub year: Option<i64>,
    /// 1 to 12.
    pub month: u32,
    /// Day of the month, from 1.
    pub day: u32,
    /// Hours since midnight.
    pub hour: f64,
    /// 0 is Monday; `None` if the data have no weekdays.
    pub weekday: Option<u32>,
}

/// A common year for dates without a year.
const COMMON_YEAR: i64 = 2001;

impl TraceStart {
    /// `hours` before midnight of the first day of `month`, in a common year.
    pub fn before_month(month: u32, hours: f64) -> Self {
        let days_back = (hours / 24.0).ceil();
        let days = days_from_civil(COMMON_YEAR, month.into(), 1) - days_back as i64;
        let (_, month, day) = civil_from_days(days);
        Self { year: None, month: month as u32, day: day as u32, hour: 24.0 * days_back - hours, weekday: None }
    }

    /// The same time on the clock, a number of hours later.
    pub fn later(self, hours: f64) -> Self {
        let total = self.hour + hours;
        let passed = (total / 24.0).floor();
        let year = self.year.unwrap_or(COMMON_YEAR);
        let days = days_from_civil(year, self.month.into(), self.day.into()) + passed as i64;
        let (year, month, day) = civil_from_days(days);
        let weekday = self.weekday.map(|weekday| (i64::from(weekday) + passed as i64).rem_euclid(7) as u32);
        let year = self.year.map(|_| year);
        Self { year, month: month as u32, day: day as u32, hour: total - 24.0 * passed, weekday }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_counted_back_from_the_first_of_a_month() {
        let start = TraceStart::before_month(8, 1.0);
        assert_eq!((start.month, start.day, start.hour), (7, 31, 23.0));
        assert_eq!((start.later(1.0).month, start.later(1.0).day, start.later(1.0).hour), (8, 1, 0.0));
        let start = TraceStart::before_month(1, 48.0);
        assert_eq!((start.month, start.day, start.hour), (12, 30, 0.0));
    }

    #[test]
    fn later_times_keep_year_and_weekday() {
        let monday = TraceStart { year: Some(2024), month: 2, day: 26, hour: 12.0, weekday: Some(0) };
        let later = monday.later(7.0 * 24.0 + 13.0);
        let expected = TraceStart { year: Some(2024), month: 3, day: 5, hour: 1.0, weekday: Some(1) };
        assert_eq!(later, expected);
    }
}
