//! The calendar of a common year.

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
    fn the_calendar_is_that_of_a_common_year() {
        for (day, expected) in [(0, 0), (30, 0), (31, 1), (58, 1), (59, 2), (364, 11)] {
            assert_eq!(month(day), expected, "{day}");
        }
    }
}
