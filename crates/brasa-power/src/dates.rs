//! Days of the Gregorian calendar as numbers.

/// Days from 1970-01-01 to a date of the Gregorian calendar, which continues before its introduction.
///
/// The year is counted from March, so that a leap day is its last; months then have (153 m + 2) / 5 days before them.
///
/// ```
/// use brasa_power::dates::days_from_civil;
///
/// assert_eq!(days_from_civil(1970, 1, 1), 0);
/// assert_eq!(days_from_civil(2024, 3, 1) - days_from_civil(2024, 2, 28), 2);
/// ```
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month (1 to 12) and day (1 to 31) of a number of days since 1970-01-01.
///
/// ```
/// use brasa_power::dates::{civil_from_days, days_from_civil};
///
/// assert_eq!(civil_from_days(days_from_civil(2024, 2, 28) + 1), (2024, 2, 29));
/// ```
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let leaps = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let (month, day) = ((shifted + 2) % 12 + 1, day_of_year - (153 * shifted + 2) / 5 + 1);
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// Day of the year, 0 to 364; December 31 of a leap year counts as the day before.
///
/// ```
/// use brasa_power::dates::{day_of_year, days_from_civil};
///
/// assert_eq!(day_of_year(days_from_civil(2023, 2, 1)), 31);
/// // A leap year has 366 days, but no day 365.
/// assert_eq!(day_of_year(days_from_civil(2024, 12, 31)), 364);
/// ```
pub fn day_of_year(days: i64) -> u32 {
    let (year, ..) = civil_from_days(days);
    (days - days_from_civil(year, 1, 1)).min(364) as u32
}

/// Day of the week of a number of days since 1970-01-01, a Thursday; 0 is Monday.
///
/// ```
/// use brasa_power::dates::{days_from_civil, weekday};
///
/// // A Monday.
/// assert_eq!(weekday(days_from_civil(2024, 1, 1)), 0);
/// ```
pub fn weekday(days: i64) -> u32 {
    (days + 3).rem_euclid(7) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_days_are_those_of_the_calendar() {
        for day in -800_000..800_000 {
            let (year, month, date) = civil_from_days(day);
            assert_eq!(days_from_civil(year, month, date), day);
        }
        assert_eq!((weekday(0), weekday(19_783), day_of_year(19_783)), (3, 4, 60));
        assert_eq!(day_of_year(days_from_civil(2024, 12, 31)), 364);
    }
}
