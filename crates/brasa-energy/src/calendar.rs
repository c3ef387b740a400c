//! The days of a simulation: a common year, or the dates of files.

use brasa_power::{
    EnergyError, TraceStart,
    dates::{civil_from_days, day_of_year, weekday},
    fail,
};

/// Days of the calendar without files.
const YEAR_DAYS: u32 = 365;
/// Most days of a calendar from files; more is an error of a date.
const MOST_DAYS: i64 = 3660;

/// The days of a simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Calendar {
    /// 365 days from a Monday, again and again.
    Year,
    /// Days since 1970-01-01, from the first to before the last.
    Dates(i64, i64),
}

/// The date of a day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Date {
    /// 0 to 364.
    pub(crate) day_of_year: u32,
    /// 0 to 11.
    pub(crate) month: u8,
    /// 0 is Monday.
    pub(crate) weekday: u32,
}

impl Calendar {
    /// Rejects days that are too few for an episode, or too many.
    pub(crate) fn check(first: i64, end: i64, needed: u32, field: &str) -> Result<(), EnergyError> {
        let rule =
            format!("must have, with the other files, whole days for an episode ({needed}), at most {MOST_DAYS}");
        match (i64::from(needed)..=MOST_DAYS).contains(&(end - first)) {
            true => Ok(()),
            false => fail(field, &rule, format!("{} days", (end - first).max(0))),
        }
    }

    pub(crate) fn n_days(self) -> u32 {
        match self {
            Self::Year => YEAR_DAYS,
            Self::Dates(first, end) => (end - first) as u32,
        }
    }

    /// Number of days on which an episode of `n_steps` can start.
    pub(crate) fn n_starts(self, n_steps: u32, steps_per_day: u32) -> u32 {
        match self {
            Self::Year => YEAR_DAYS,
            Self::Dates(..) => (self.n_days() + 1).saturating_sub(n_steps.div_ceil(steps_per_day)),
        }
    }

    /// Midnight of a day.
    pub(crate) fn start(self, day: u32) -> TraceStart {
        match self {
            Self::Year => {
                let first = TraceStart { year: None, month: 1, day: 1, hour: 0.0, weekday: None };
                let weekday = Some(day % YEAR_DAYS % 7);
                TraceStart { weekday, ..first.later(24.0 * f64::from(day % YEAR_DAYS)) }
            }
            Self::Dates(first, _) => {
                let days = first + i64::from(day);
                let (year, month, of_month) = civil_from_days(days);
                let (month, of_month) = (month as u32, of_month as u32);
                TraceStart { year: Some(year), month, day: of_month, hour: 0.0, weekday: Some(weekday(days)) }
            }
        }
    }

    pub(crate) fn date(self, day: u32) -> Date {
        match self {
            Self::Year => Date { day_of_year: day, month: month(day), weekday: day % 7 },
            Self::Dates(first, _) => {
                let days = first + i64::from(day);
                let month = (civil_from_days(days).1 - 1) as u8;
                Date { day_of_year: day_of_year(days), month, weekday: weekday(days) }
            }
        }
    }
}

/// Month (0 to 11) of a day (0 to 364) of a common year.
pub(crate) fn month(day: u32) -> u8 {
    const LENGTHS: [u32; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut left = day;
    for (month, length) in LENGTHS.into_iter().enumerate() {
        if left < length {
            return month as u8;
        }
        left -= length;
    }
    11
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_starts_at_midnight_of_its_date() {
        let start = Calendar::Year.start(31);
        assert_eq!((start.year, start.month, start.day, start.weekday), (None, 2, 1, Some(3)));
        // 2024-02-29, a Thursday.
        let start = Calendar::Dates(19_782, 19_800).start(0);
        assert_eq!((start.year, start.month, start.day, start.weekday), (Some(2024), 2, 29, Some(3)));
    }

    #[test]
    fn the_calendar_is_that_of_a_common_year() {
        for (day, expected) in [(0, 0), (30, 0), (31, 1), (58, 1), (59, 2), (364, 11)] {
            assert_eq!(month(day), expected, "{day}");
        }
    }
}
