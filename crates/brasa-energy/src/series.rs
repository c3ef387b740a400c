//! Series and events from CSV files whose header states units and time zone.
//!
//! ```text
//! time [UTC+01:00],price [EUR/MWh]
//! 2024-03-01 00:00,61.20
//! 2024-03-01 01:00,58.04
//! ```
//!
//! A column is `name [unit]`; the unit of a time is its offset from UTC, which holds for the whole file: there is no daylight
//! saving time. A time is `YYYY-MM-DD HH:MM`, with `T` or a space; seconds are cut off. It may state an offset, `Z` or `+01:00`, which must be
//! that of the heading; a heading without one leaves it to the times. A row of a series lasts from its time to that of the next row. Other
//! columns are allowed, a column that is read and given twice is not. Every error names file, row and column.

use std::path::{Path, PathBuf};

use brasa_env::field;
use brasa_power::{
    EnergyError,
    dates::{civil_from_days, days_from_civil},
    delimited::{Delimited, file_error, given_twice},
};

/// Minutes of a day.
pub(crate) const DAY_MINUTES: i64 = 24 * 60;

/// Least energy of a session, in kWh; below it nothing was charged.
const LEAST_SESSION_KWH: f64 = 1e-3;

/// A CSV file with unparsed cells.
pub(crate) struct CsvFile {
    path: PathBuf,
    text: Delimited,
}

/// A column and its unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    index: usize,
    /// What a number of the column is multiplied with.
    factor: f64,
}

/// A column of times and the offset of its clock from UTC.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeColumn {
    index: usize,
    /// `None` if every time states its own.
    offset_minutes: Option<i64>,
}

impl CsvFile {
    /// Reads the file at `path`.
    pub(crate) fn read(path: &Path) -> Result<Self, EnergyError> {
        let bytes = std::fs::read(path).map_err(|cause| EnergyError::Read { path: path.to_owned(), cause })?;
        Ok(Self { path: path.to_owned(), text: Delimited::read(path, &bytes)? })
    }

    /// Rows without the header.
    pub(crate) fn n_rows(&self) -> usize {
        self.text.records.len()
    }

    /// The column `name`, whose unit is one of `units` with their factors.
    pub(crate) fn column(&self, name: &str, units: &[(&str, f64)]) -> Result<Column, EnergyError> {
        let known = units.iter().map(|(unit, _)| format!("`{name} [{unit}]`")).collect::<Vec<_>>().join(" or ");
        let (index, unit) = self.find(name)?.ok_or_else(|| self.missing(name, &known))?;
        match units.iter().find(|(known, _)| *known == unit) {
            Some((_, factor)) => Ok(Column { index, factor: *factor }),
            None => Err(self.error(1, index, format!("must state its unit as {known}"), &self.text.header[index])),
        }
    }

    /// The column `name`, if there is one.
    pub(crate) fn optional(&self, name: &str, units: &[(&str, f64)]) -> Result<Option<Column>, EnergyError> {
        self.find(name)?.map(|_| self.column(name, units)).transpose()
    }

    /// The column `name` of words, without a unit.
    pub(crate) fn words(&self, name: &str) -> Result<usize, EnergyError> {
        let index = self.text.header.iter().position(|column| column == name);
        index.ok_or_else(|| self.missing(name, "no other name"))
    }

    /// The column `name` of times.
    pub(crate) fn times(&self, name: &str) -> Result<TimeColumn, EnergyError> {
        let example = format!("`{name} [UTC+01:00]`");
        let (index, unit) = self.find(name)?.ok_or_else(|| self.missing(name, &example))?;
        let states_offset = |row: usize| parse_time(&self.text(row, index)).is_some_and(|(_, offset)| offset.is_some());
        match parse_offset(unit) {
            Some(offset) => Ok(TimeColumn { index, offset_minutes: Some(offset) }),
            None if unit.is_empty() && self.n_rows() > 0 && states_offset(0) => {
                Ok(TimeColumn { index, offset_minutes: None })
            }
            None => {
                let rule = format!("must state its offset from UTC, such as {example}");
                Err(self.error(1, index, rule, &self.text.header[index]))
            }
        }
    }

    /// The number in `row` (from 0), between `low` and `high` after the conversion of its unit.
    pub(crate) fn number(&self, row: usize, column: Column, low: f64, high: f64) -> Result<f64, EnergyError> {
        let text = self.text(row, column.index);
        let fail = |rule: String| Err(self.error(row + 2, column.index, rule, &text));
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => {
                let value = value * column.factor;
                let unit = 1.0 / column.factor;
                if (low..=high).contains(&value) {
                    return Ok(value);
                }
                fail(format!("must be between {} and {}", low * unit, high * unit))
            }
            Ok(_) => fail("must be finite".into()),
            Err(_) => fail("must be a number".into()),
        }
    }

    /// The word in `row`.
    pub(crate) fn word(&self, row: usize, index: usize) -> String {
        self.text(row, index)
    }

    /// The time in `row`, in minutes since 1970-01-01 00:00 UTC.
    pub(crate) fn minute(&self, row: usize, column: TimeColumn) -> Result<i64, EnergyError> {
        let text = self.text(row, column.index);
        let fail = |rule: &str| Err(self.error(row + 2, column.index, rule.into(), &text));
        let Some((minute, own)) = parse_time(&text) else { return fail("must be a time as `2024-03-01 00:00`") };
        match (own, column.offset_minutes) {
            (Some(own), Some(heading)) if own != heading => {
                fail("must have the offset from UTC that the heading states, or the heading none")
            }
            (Some(offset), _) | (None, Some(offset)) => Ok(minute - offset),
            (None, None) => fail("must state its offset from UTC, as the first row does"),
        }
    }

    /// Arrival and departure of the session in `row`, in minutes since 1970-01-01 00:00 UTC; `None` for a session of less than
    /// [`LEAST_SESSION_KWH`].
    ///
    /// # Errors
    /// [`EnergyError::Cell`] for a departure that is not after the arrival, or after it by more than `most_hours`.
    pub(crate) fn stay(
        &self,
        row: usize,
        (arrival, departure): (TimeColumn, TimeColumn),
        most_hours: i64,
        energy_kwh: f64,
    ) -> Result<Option<(i64, i64)>, EnergyError> {
        let (begin, end) = (self.minute(row, arrival)?, self.minute(row, departure)?);
        let minutes = end - begin;
        if energy_kwh < LEAST_SESSION_KWH && minutes >= 0 {
            return Ok(None);
        }
        if !(1..=most_hours * 60).contains(&minutes) {
            let reason = "a longer stay is storage, so end it then or leave it out";
            let rule = format!("must be after the arrival, by at most {most_hours} hours ({reason})");
            return Err(self.time_error(row, departure, rule));
        }
        Ok(Some((begin, end)))
    }

    /// An error of the time in `row`.
    pub(crate) fn time_error(&self, row: usize, column: TimeColumn, rule: String) -> EnergyError {
        self.error(row + 2, column.index, rule, &self.text(row, column.index))
    }

    /// An error of the word in `row`.
    pub(crate) fn word_error(&self, row: usize, index: usize, rule: String) -> EnergyError {
        self.error(row + 2, index, rule, &self.text(row, index))
    }

    /// An error of the file as a whole.
    pub(crate) fn file_error(&self, reason: String) -> EnergyError {
        file_error(&self.path, &reason)
    }

    /// The index and the unit of the column `name`; a column without brackets has an empty unit.
    ///
    /// Two columns of this name are an error, whatever their units: nothing says which one counts.
    fn find(&self, name: &str) -> Result<Option<(usize, &str)>, EnergyError> {
        let mut found = self.text.header.iter().enumerate().filter_map(|(index, column)| {
            let (own, unit) = column.split_once('[').unwrap_or((column, ""));
            (own.trim() == name).then(|| (index, unit.trim_end_matches(']').trim()))
        });
        match (found.next(), found.next()) {
            (Some((first, _)), Some((second, _))) => {
                Err(given_twice(&self.path, name, (&self.text.header, first, second)))
            }
            (only, _) => Ok(only),
        }
    }

    fn text(&self, row: usize, index: usize) -> String {
        self.text.cell(row, index)
    }

    fn missing(&self, name: &str, aliases: &str) -> EnergyError {
        EnergyError::MissingColumn { path: self.path.clone(), column: name.into(), aliases: aliases.into() }
    }

    /// `row` counts from 1, the header.
    fn error(&self, row: usize, index: usize, rule: String, value: &str) -> EnergyError {
        EnergyError::Cell {
            path: self.path.clone(),
            row,
            column: field::printable(&self.text.header[index]),
            rule,
            value: field::printable(value),
        }
    }
}

/// Values at equal intervals.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    /// The begin of the first value, in minutes since 1970-01-01 00:00 UTC.
    pub(crate) start_minute: i64,
    pub(crate) interval_minutes: i64,
    pub(crate) values: Vec<f64>,
}

impl Series {
    /// The series `name` of the file at `path`: a column `time` and one with one of `units`, each value between `low` and
    /// `high`.
    ///
    /// # Errors
    /// [`EnergyError::Cell`] for the row after a gap, a repeated row and everything that is no number or time.
    pub(crate) fn read(
        path: &Path,
        name: &str,
        units: &[(&str, f64)],
        low: f64,
        high: f64,
    ) -> Result<Self, EnergyError> {
        let file = CsvFile::read(path)?;
        let (times, column) = (file.times("time")?, file.column(name, units)?);
        if file.n_rows() < 2 {
            return Err(file.file_error(format!("must have at least two rows, got {}", file.n_rows())));
        }
        let start_minute = file.minute(0, times)?;
        let interval_minutes = file.minute(1, times)? - start_minute;
        if !(1..=DAY_MINUTES).contains(&interval_minutes) {
            let rule = "must be 1 minute to 1 day after the row before".into();
            return Err(file.time_error(1, times, rule));
        }
        let mut values = Vec::with_capacity(file.n_rows());
        for row in 0..file.n_rows() {
            let minute = file.minute(row, times)?;
            let expected = start_minute + row as i64 * interval_minutes;
            if minute != expected {
                let expected = show(expected + times.offset_minutes.unwrap_or(0));
                let rule = format!("must be {expected}, {interval_minutes} minutes after the row before");
                return Err(file.time_error(row, times, rule));
            }
            values.push(file.number(row, column, low, high)?);
        }
        Ok(Self { start_minute, interval_minutes, values })
    }

    /// The end of the last value.
    pub(crate) fn end_minute(&self) -> i64 {
        self.start_minute + self.values.len() as i64 * self.interval_minutes
    }

    /// The whole days of a clock, `offset_minutes` ahead of UTC, that all of `series` cover: from the first to before the last,
    /// counted from 1970-01-01; `None` without series.
    pub(crate) fn whole_days<'a>(
        series: impl IntoIterator<Item = &'a Self>,
        offset_minutes: i64,
    ) -> Option<(i64, i64)> {
        let days = |series: &Self| {
            let (start, end) = (series.start_minute + offset_minutes, series.end_minute() + offset_minutes);
            (-(-start).div_euclid(DAY_MINUTES), end.div_euclid(DAY_MINUTES))
        };
        series.into_iter().map(days).reduce(|a, b| (a.0.max(b.0), a.1.min(b.1)))
    }

    /// The means over `n` steps of `step_minutes` from `start_minute` on, which the series covers; `None` if the steps do not
    /// fit to the intervals.
    pub(crate) fn resample(&self, start_minute: i64, step_minutes: i64, n: usize) -> Option<Vec<f64>> {
        let before = start_minute - self.start_minute;
        let finer = step_minutes.min(self.interval_minutes);
        let fits = before % finer == 0 && step_minutes.max(self.interval_minutes) % finer == 0;
        let covers = before >= 0 && start_minute + n as i64 * step_minutes <= self.end_minute();
        let at = |minute: i64| self.values[(minute / self.interval_minutes) as usize];
        let parts = step_minutes / finer;
        // A step longer than an interval must begin with one, and a shorter one must not span two.
        (fits && covers).then(|| {
            let mean = |step: usize| {
                let begin = before + step as i64 * step_minutes;
                (0..parts).map(|part| at(begin + part * finer)).sum::<f64>() / parts as f64
            };
            (0..n).map(mean).collect()
        })
    }
}

/// The offset of `UTC`, `UTC+1`, `UTC-05:30` in minutes.
fn parse_offset(unit: &str) -> Option<i64> {
    let rest = unit.strip_prefix("UTC")?;
    if rest.is_empty() {
        return Some(0);
    }
    let (sign, rest) = match rest.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest.split_once(':') {
        Some(parts) => parts,
        None if rest.len() == 4 => rest.split_at_checked(2)?,
        None => (rest, "0"),
    };
    let (hours, minutes) = (digits(hours, 14)?, digits(minutes, 59)?);
    Some(sign * (60 * hours + minutes))
}

/// A number of at most four digits, not above `most`.
fn digits(text: &str, most: i64) -> Option<i64> {
    let is_number = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = if is_number { text.parse().ok()? } else { return None };
    (value <= most).then_some(value)
}

/// Minutes from 1970-01-01 00:00 to a time on the same clock, and the offset from UTC that the time states. Seconds are cut off.
fn parse_time(text: &str) -> Option<(i64, Option<i64>)> {
    let (date, time) = text.split_once(['T', ' '])?;
    let mut date = date.splitn(3, '-');
    let (year, month, day) = (digits(date.next()?, 9999)?, digits(date.next()?, 12)?, digits(date.next()?, 31)?);
    let (time, offset) = match time.find(['Z', '+', '-']) {
        None => (time, None),
        Some(at) if &time[at..] == "Z" => (&time[..at], Some(0)),
        Some(at) => (&time[..at], Some(parse_offset(&format!("UTC{}", &time[at..]))?)),
    };
    let mut time = time.trim_end().splitn(3, ':');
    let (hour, minute) = (digits(time.next()?, 23)?, digits(time.next()?, 59)?);
    let has_seconds = time.next().is_none_or(|seconds| {
        let (whole, parts) = seconds.split_once('.').unwrap_or((seconds, "0"));
        digits(whole, 59).is_some() && !parts.is_empty() && parts.bytes().all(|byte| byte.is_ascii_digit())
    });
    let day_number = days_from_civil(year, month, day);
    let is_date = year >= 1 && civil_from_days(day_number) == (year, month, day);
    (is_date && has_seconds).then_some((day_number * DAY_MINUTES + hour * 60 + minute, offset))
}

/// A time as files write it.
pub(crate) fn show(minute: i64) -> String {
    let (year, month, day) = civil_from_days(minute.div_euclid(DAY_MINUTES));
    let minute = minute.rem_euclid(DAY_MINUTES);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", minute / 60, minute % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Series, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("prices.csv");
        std::fs::write(&path, text).expect("it is written");
        let units = [("EUR/kWh", 1.0), ("EUR/MWh", 1e-3)];
        Series::read(&path, "price", &units, -10.0, 10.0).map_err(|error| {
            let message = error.to_string();
            message.strip_prefix(&format!("{}", path.display())).expect("it names the file").to_owned()
        })
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (text, minute) in [
            ("1970-01-01 00:00", 0),
            ("1969-12-31T23:59", -1),
            ("2000-02-29 12:30:00", 11_016 * DAY_MINUTES + 750),
            ("2024-03-01 00:00", 19_783 * DAY_MINUTES),
        ] {
            assert_eq!(parse_time(text), Some((minute, None)), "{text}");
        }
        for (text, offset) in [
            ("1970-01-01T00:10:59Z", Some(0)),
            ("1970-01-01 00:10:30.125", None),
            ("1970-01-01 00:10+01:00", Some(60)),
            ("1970-01-01 00:10+0130", Some(90)),
            ("1970-01-01 00:10:00 -05:30", Some(-330)),
        ] {
            assert_eq!(parse_time(text), Some((10, offset)), "{text}");
        }
        for text in [
            "2023-02-29 00:00",
            "2024-13-01 00:00",
            "2024-01-01",
            "2024-01-01 24:00",
            "2024-01-01 10:00:60",
            "2024-01-01 10:00:30.",
            "2024-01-01 10:00 CET",
            "2024-01-01 10:00+25",
            "2024-01-01 10:00Zulu",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
        assert_eq!(show(19_783 * DAY_MINUTES + 61), "2024-03-01 01:01");
    }

    #[test]
    fn units_and_offsets_are_converted() {
        let text = "time [UTC+01:00],note,price [EUR/MWh]\n2024-03-01 00:00,x,61\n2024-03-01T01:00:00,,-58\n";
        let series = read(text).expect("it is valid");
        assert_eq!(series.start_minute, 19_783 * DAY_MINUTES - 60);
        assert_eq!((series.interval_minutes, series.values), (60, vec![0.061, -0.058]));
        let offsets = ["UTC", "UTC+1", "UTC-05:30", "CET", "", "UTC+15", "UTC+"].map(parse_offset);
        assert_eq!(offsets, [Some(0), Some(60), Some(-330), None, None, None, None]);
    }

    #[test]
    fn times_may_state_their_offset() {
        let stated =
            read("time,price [EUR/kWh]\n2024-03-01T00:00:00Z,1\n2024-03-01T02:00:05+01:00,2\n").expect("it is valid");
        assert_eq!((stated.start_minute, stated.interval_minutes), (19_783 * DAY_MINUTES, 60));
        let head = "time [UTC+01:00],price [EUR/kWh]\n2024-03-01 00:00:00+01:00,1\n";
        assert_eq!(read(&format!("{head}2024-03-01 01:00,1\n")).expect("it is valid").interval_minutes, 60);
        let rule = "must have the offset from UTC that the heading states, or the heading none";
        assert_eq!(
            read(&format!("{head}2024-03-01T00:00Z,1\n")).expect_err("two clocks"),
            format!(", row 3, column `time [UTC+01:00]`: {rule}, got `2024-03-01T00:00Z`")
        );
        let error = read("time,price [EUR/kWh]\n2024-03-01T00:00Z,1\n2024-03-01T01:00,2\n").expect_err("no clock");
        assert!(error.contains("row 3") && error.contains("as the first row does"), "{error}");
    }

    #[test]
    fn a_column_given_twice_is_refused_with_both_headings() {
        let error = read("time [UTC],price [EUR/MWh],price [EUR/kWh]\n").expect_err("which one counts?");
        assert_eq!(error, ": must have `price` once, got column 2 `price [EUR/MWh]` and column 3 `price [EUR/kWh]`");
        let error = read("time [UTC],time [UTC+01:00],price [EUR/kWh]\n").expect_err("which one counts?");
        assert!(error.contains("must have `time` once"), "{error}");
        // What is not read may be there twice.
        let text = "time [UTC],t [C],t [F],price [EUR/kWh]\n2024-03-01 00:00,1,1,1\n2024-03-01 01:00,1,1,1\n";
        assert!(read(text).is_ok());
    }

    #[test]
    fn what_is_wrong_is_named_with_row_and_column() {
        let head = "time [UTC],price [EUR/kWh]\n";
        for (text, message) in [
            (
                "time,price [EUR/kWh]\n",
                ", row 1, column `time`: must state its offset from UTC, such as `time [UTC+01:00]`, got `time`",
            ),
            (
                "time [UTC],price\n",
                ", row 1, column `price`: must state its unit as `price [EUR/kWh]` or `price [EUR/MWh]`, got `price`",
            ),
            (
                "time [UTC],cost [EUR/kWh]\n",
                ": no column `price` (also looked for: `price [EUR/kWh]` or `price [EUR/MWh]`)",
            ),
            (&format!("{head}2024-01-01 00:00,1\n"), ": must have at least two rows, got 1"),
            (
                &format!("{head}2024-01-01 00:00,1\n2024-01-01 00:00,1\n"),
                ", row 3, column `time [UTC]`: must be 1 minute to 1 day after the row before, got `2024-01-01 00:00`",
            ),
            (
                &format!("{head}2024-01-01 00:00,1\n2024-01-01 01:00,1\n2024-01-01 03:00,1\n"),
                ", row 4, column `time [UTC]`: must be 2024-01-01 02:00, 60 minutes after the row before, got `2024-01-01 03:00`",
            ),
            (
                &format!("{head}2024-01-01 00:00,1\n2024-01-01 01:00,\n"),
                ", row 3, column `price [EUR/kWh]`: must be a number, got ``",
            ),
            (
                &format!("{head}2024-01-01 00:00,inf\n2024-01-01 01:00,1\n"),
                ", row 2, column `price [EUR/kWh]`: must be finite, got `inf`",
            ),
            (
                &format!("{head}2024-01-01 00:00,1\n2024-01-01 01:00,11\n"),
                ", row 3, column `price [EUR/kWh]`: must be between -10 and 10, got `11`",
            ),
            (
                &format!("{head}1.1.2024,1\n2024-01-01 01:00,1\n"),
                ", row 2, column `time [UTC]`: must be a time as `2024-03-01 00:00`, got `1.1.2024`",
            ),
        ] {
            assert_eq!(read(text).expect_err(message), message);
        }
    }

    #[test]
    fn steps_repeat_or_average_intervals() {
        let series = Series { start_minute: 0, interval_minutes: 30, values: vec![1.0, 3.0, 5.0, 7.0] };
        assert_eq!(series.resample(0, 60, 2), Some(vec![2.0, 6.0]));
        assert_eq!(series.resample(30, 15, 3), Some(vec![3.0, 3.0, 5.0]));
        assert_eq!(series.resample(30, 60, 1), Some(vec![4.0]));
        // Steps that span two values in part, that begin within one of them, or beyond the end.
        assert_eq!(
            (series.resample(0, 20, 2), series.resample(10, 60, 1), series.resample(0, 60, 3)),
            (None, None, None)
        );
        assert_eq!(series.resample(15, 15, 2), Some(vec![1.0, 3.0]));
    }
}
