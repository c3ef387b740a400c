//! The dates of the rows of a data set: one row that is missing shifts all that follow, and no number shows it.
//!
//! Files may have the columns `month`, `hour`, `minutes`, `seconds`, `day_type` (1 to 7 from Monday to Sunday, 8 for a special day) and
//! `daylight_savings_status`. Hours are those from 0 to 23 or from 1 to 24; a day changes where the hour begins anew. All rows up to the last
//! that is simulated are checked: each file by itself, and against the first building.

use std::path::PathBuf;

use brasa_env::field;
use brasa_power::{EnergyError, TraceStart, delimited::file_error, fail};

use super::table::Table;

const DAY_S: f64 = 86_400.0;
const HOUR_S: f64 = 3600.0;
/// Days of the months; February may have one more.
const MONTH_DAYS: [u32; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// What the dates of a data set must be.
pub(super) struct Rule {
    pub(super) seconds_per_step: f64,
    /// Last row that is simulated.
    pub(super) last_row: usize,
    /// Rows at which the dates may jump, sorted: those at which an episode of the schema starts.
    pub(super) jumps: Vec<usize>,
}

/// The dates of a file.
pub(super) struct Dates {
    path: PathBuf,
    n_rows: usize,
    /// Seconds since the hour 0, 0 to 24 h.
    clock: Option<Vec<f64>>,
    /// 1 to 12.
    month: Option<Vec<f32>>,
}

impl Dates {
    /// Reads and checks the dates of a table.
    ///
    /// # Errors
    /// [`EnergyError::Cell`] for the first row whose date is not the one after the row before, with the date that was expected;
    /// [`EnergyError::Field`] if the schema's time step is not the one of the rows.
    pub(super) fn read(table: &Table, rule: &Rule) -> Result<Self, EnergyError> {
        let dates = Columns::read(table, rule.last_row + 1)?;
        if let Some(clock) = &dates.clock {
            dates.check_clock(table, clock, rule)?;
            dates.check_days(table, clock, rule)?;
        }
        Ok(Self { path: table.path().clone(), n_rows: table.n_rows(), clock: dates.clock, month: dates.month })
    }

    /// Checks a table against the first building's.
    ///
    /// # Errors
    /// [`EnergyError::Cell`] for the first row at another time than `first` has in this row; [`EnergyError::Schema`] for a file without hours
    /// that has fewer rows, if `whole` says that it should have as many.
    pub(super) fn check_against(&self, table: &Table, first: &Self, whole: bool) -> Result<(), EnergyError> {
        let file = field::printable(&first.path.display().to_string());
        if whole && self.clock.is_none() && self.n_rows < first.n_rows {
            let rule = "a row that is missing shifts all that follow";
            let reason = format!("has {} rows, but {file} has {}: {rule}", self.n_rows, first.n_rows);
            return Err(file_error(&self.path, &reason));
        }
        if let (Some(mine), Some(others)) = (&self.clock, &first.clock) {
            for (row, (mine, other)) in mine.iter().zip(others).enumerate() {
                if (mine - other).rem_euclid(DAY_S) != 0.0 {
                    let rule = format!("must be {}, as in the same row of {file}", shown(*other, *other));
                    return Err(table.cell_error(row, "hour", &rule, &table.shown(row, "hour")));
                }
            }
        }
        if let (Some(mine), Some(others)) = (&self.month, &first.month) {
            // The hour 24 of a day is the hour 0 of the next one.
            let is_same = |row: usize| match (&self.clock, &first.clock) {
                (Some(mine), Some(other)) => mine[row] == other[row],
                _ => true,
            };
            let differs = |row: &usize| mine[*row] != others[*row] && is_same(*row);
            if let Some(row) = (0..mine.len().min(others.len())).find(differs) {
                let rule = format!("must be {}, as in the same row of {file}", others[row]);
                return Err(table.cell_error(row, "month", &rule, &table.shown(row, "month")));
            }
        }
        Ok(())
    }
}

/// The columns of dates of a file.
struct Columns {
    clock: Option<Vec<f64>>,
    month: Option<Vec<f32>>,
    day_type: Option<Vec<f32>>,
    /// Whether the clock is one hour ahead.
    summer: Vec<bool>,
}

impl Columns {
    fn read(table: &Table, n_rows: usize) -> Result<Self, EnergyError> {
        let column = |name: &str, low: f32, high: f32| -> Result<Option<Vec<f32>>, EnergyError> {
            if !table.has(name) {
                return Ok(None);
            }
            let mut values = table.column(name, low, high)?;
            values.truncate(n_rows);
            Ok(Some(values))
        };
        let whole = |name: &str, low: f32, high: f32| {
            let values = column(name, low, high)?;
            match values.iter().flatten().position(|value| value.fract() != 0.0) {
                Some(row) => Err(table.cell_error(row, name, "must be a whole number", &table.shown(row, name))),
                None => Ok(values),
            }
        };
        let (minutes, seconds) = (column("minutes", 0.0, 60.0)?, column("seconds", 0.0, 60.0)?);
        let clock = column("hour", 0.0, 24.0)?.map(|hours| {
            let at =
                |column: &Option<Vec<f32>>, row: usize| column.as_ref().map_or(0.0, |values| f64::from(values[row]));
            let hours = hours.iter().enumerate();
            hours.map(|(row, hour)| f64::from(*hour) * HOUR_S + at(&minutes, row) * 60.0 + at(&seconds, row)).collect()
        });
        let summer = match table.has("daylight_savings_status") {
            true => table.column_or("daylight_savings_status", 0.0, 1.0, 0.0)?,
            false => Vec::new(),
        };
        Ok(Self {
            clock,
            month: whole("month", 1.0, 12.0)?,
            day_type: whole("day_type", 1.0, 8.0)?,
            summer: summer.into_iter().map(|status| status != 0.0).collect(),
        })
    }

    /// Seconds that the clock may be put forward in `row`: none, or an hour where daylight saving time begins or ends.
    fn shifts(&self, row: usize) -> [f64; 2] {
        let is_summer = |row: usize| self.summer.get(row).copied().unwrap_or_default();
        match (is_summer(row - 1), is_summer(row)) {
            (false, true) => [0.0, HOUR_S],
            (true, false) => [0.0, -HOUR_S],
            _ => [0.0; 2],
        }
    }

    /// Seconds from the row before to `row` by `rule`, less those by the clock: a number of days if the clock is right.
    fn behind(&self, clock: &[f64], row: usize, rule: &Rule) -> Option<f64> {
        let behind = |shift: f64| clock[row - 1] + rule.seconds_per_step + shift - clock[row];
        self.shifts(row).map(behind).into_iter().find(|behind| behind.rem_euclid(DAY_S) == 0.0)
    }

    fn check_clock(&self, table: &Table, clock: &[f64], rule: &Rule) -> Result<(), EnergyError> {
        let is_wrong = |row: &usize| rule.jumps.binary_search(row).is_err() && self.behind(clock, *row, rule).is_none();
        let mut wrong = (1..clock.len()).filter(is_wrong);
        let Some(first) = wrong.next() else { return Ok(()) };
        if 2 * (1 + wrong.count()) > clock.len() - 1 {
            let apart = (clock[1] - clock[0]).rem_euclid(DAY_S);
            return fail(
                "seconds_per_time_step",
                &format!("must be the spacing of the rows of {}, {apart} s", table.path().display()),
                rule.seconds_per_step,
            );
        }
        let latest = clock.iter().copied().fold(0.0, f64::max);
        let expected = shown(clock[first - 1] + rule.seconds_per_step, latest);
        let rule = format!("must be {expected}, {} s after the row before", rule.seconds_per_step);
        Err(table.cell_error(first, "hour", &rule, &table.shown(first, "hour")))
    }

    /// Checks that the type of the day and the month are those of the day after, where a day begins.
    fn check_days(&self, table: &Table, clock: &[f64], rule: &Rule) -> Result<(), EnergyError> {
        let fail = |row: usize, name: &str, rule: String| {
            Err(table.cell_error(row, name, &format!("must be {rule}"), &table.shown(row, name)))
        };
        let is_weekday = |day: f32| day < 8.0;
        let mut weekday = self.day_type.as_ref().map(|days| days[0]).filter(|day| is_weekday(*day));
        // Days of the month so far, if its first one is known, else those that were seen.
        let (mut days, mut is_whole) = (1, false);
        for row in 1..clock.len() {
            let jumps = rule.jumps.binary_search(&row).is_ok();
            let is_new_day = self.behind(clock, row, rule).is_none_or(|behind| behind > 0.0);
            let mut is_new_year = jumps;
            if let Some(months) = &self.month {
                let (last, month) = (months[row - 1], months[row]);
                let length = MONTH_DAYS[last as usize - 1];
                days += u32::from(is_new_day && month == last);
                if jumps {
                    (days, is_whole) = (1, false);
                } else if month == last && days > length + u32::from(last == 2.0) {
                    let next = last % 12.0 + 1.0;
                    return fail(row, "month", format!("{next}, as month {last} has {length} days"));
                } else if month != last {
                    if !is_new_day {
                        return fail(row, "month", format!("{last}, as the day of the row before goes on"));
                    }
                    if month != last % 12.0 + 1.0 {
                        let rule = "the month of the row before or the one after it";
                        return fail(row, "month", format!("{last} or {}, {rule}", last % 12.0 + 1.0));
                    }
                    if is_whole && days < length {
                        return fail(
                            row,
                            "month",
                            format!("{last}, as it has {length} days and this is day {}", days + 1),
                        );
                    }
                    is_new_year |= last == 12.0;
                    (days, is_whole) = (1, true);
                }
            }
            if let Some(types) = &self.day_type {
                let (last, day) = (types[row - 1], types[row]);
                if !is_new_day && day != last {
                    return fail(row, "day_type", format!("{last}, as the day of the row before goes on"));
                }
                let expected = weekday.map(|day| if is_new_day { day % 7.0 + 1.0 } else { day });
                // A year may begin with the same weekday as the one before, as simulated ones do.
                if let Some(expected) = expected.filter(|expected| is_weekday(day) && day != *expected && !is_new_year)
                {
                    return fail(row, "day_type", format!("{expected}, or 8 for a special day"));
                }
                weekday = if is_weekday(day) { Some(day) } else { expected.filter(|_| !is_new_year) };
            }
        }
        Ok(())
    }
}

/// When the first row begins, counted back from the first row of another month; `None` without such a row.
pub(super) fn start(months: &[f32], day_types: &[f32], hours: &[f32], step_hours: f64) -> Option<TraceStart> {
    let changed = months.windows(2).position(|pair| pair[0] != pair[1])? + 1;
    let is_next = months[changed] == months[changed - 1] % 12.0 + 1.0;
    // Hours from 1 to 24 are those that end, hours from 0 to 23 those that begin. The last hour of a month is that of its last day.
    let ahead = if hours.contains(&24.0) { 1.0 } else { 0.0 };
    let since_midnight = f64::from(*hours.get(changed)?) - ahead;
    let start = TraceStart::before_month(months[changed] as u32, changed as f64 * step_hours - since_midnight);
    let weekday = day_types.first().filter(|day| **day < 8.0).map(|day| *day as u32 - 1);
    is_next.then_some(TraceStart { weekday, ..start })
}

/// A time of the day as the columns `hour` and `minutes` have it; `latest` shows whether the hour after 23 is 24 or 0.
fn shown(seconds: f64, latest: f64) -> String {
    let seconds = seconds.rem_euclid(DAY_S);
    let (hour, minutes) = ((seconds / HOUR_S).floor(), (seconds % HOUR_S) / 60.0);
    let hour = if hour == 0.0 && latest >= DAY_S { 24.0 } else { hour };
    if minutes == 0.0 { format!("{hour}") } else { format!("{hour} with {minutes} minutes") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_counted_back_from_a_change_of_the_month() {
        // As in the challenge of 2022: the last hour of July, then hours from 1 to 24.
        let found = start(&[7.0, 8.0, 8.0], &[7.0, 1.0, 1.0], &[24.0, 1.0, 2.0], 1.0).expect("the month changes");
        assert_eq!((found.month, found.day, found.hour, found.weekday), (7, 31, 23.0, Some(6)));
        let found = start(&[1.0, 1.0, 2.0], &[], &[22.0, 23.0, 0.0], 1.0).expect("the month changes");
        assert_eq!((found.month, found.day, found.hour, found.weekday), (1, 31, 22.0, None));
        assert_eq!(start(&[7.0, 7.0], &[], &[1.0, 2.0], 1.0), None);
        assert_eq!(start(&[7.0, 12.0], &[], &[23.0, 0.0], 1.0), None, "rows that jump have no date");
    }
}
