//! Parts of a batch, whose gradients are accumulated.

use std::ops::Range;

/// `n_rows` rows in at most `n_parts` parts that follow each other, of equally many rows; the last one may have fewer. Every part but the last
/// has a multiple of `unit` rows.
///
/// # Panics
/// If `n_parts` or `unit` is 0.
pub fn parts(n_rows: usize, n_parts: usize, unit: usize) -> Vec<Range<usize>> {
    let per_part = n_rows.div_ceil(n_parts).next_multiple_of(unit).max(1);
    (0..n_rows).step_by(per_part).map(|first| first..n_rows.min(first + per_part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_one_part() {
        assert_eq!(parts(10, 3, 1), [0..4, 4..8, 8..10]);
        assert_eq!(parts(10, 3, 3), [0..6, 6..10]);
        assert_eq!(parts(2, 5, 1), [0..1, 1..2]);
        assert_eq!(parts(7, 1, 1), [0..7]);
        assert!(parts(0, 2, 1).is_empty());
    }
}
