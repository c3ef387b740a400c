//! Parts of a batch, whose gradients are accumulated.

use std::borrow::Cow;
use std::ops::Range;

use burn::tensor::Tensor;

/// `n_rows` rows in at most `n_parts` parts that follow each other, of equally many rows; the last one may have fewer. Every part but the last
/// has a multiple of `unit` rows.
///
/// # Panics
/// If `n_parts` or `unit` is 0.
pub fn parts(n_rows: usize, n_parts: usize, unit: usize) -> Vec<Range<usize>> {
    let per_part = n_rows.div_ceil(n_parts).next_multiple_of(unit).max(1);
    (0..n_rows).step_by(per_part).map(|first| first..n_rows.min(first + per_part)).collect()
}

/// The rows of a tensor in `range`; the tensor itself if these are all.
///
/// # Panics
/// If there are fewer rows.
pub fn rows_in<const D: usize>(tensor: &Tensor<D>, range: Range<usize>) -> Cow<'_, Tensor<D>> {
    match range == (0..tensor.dims()[0]) {
        true => Cow::Borrowed(tensor),
        false => Cow::Owned(tensor.clone().slice(range)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_one_part() {
        assert_eq!(parts(10, 3, 1), [0..4, 4..8, 8..10]);
        assert_eq!(parts(10, 3, 3), [0..6, 6..10]);
        assert_eq!(parts(2, 5, 1), [0..1, 1..2]);
        assert_eq!(parts(7, 1, 1), vec![0..7; 1]);
        assert!(parts(0, 2, 1).is_empty());
        let tensor = Tensor::<1>::from_floats([1.0, 2.0, 3.0], &brasa_test::device());
        assert!(matches!(rows_in(&tensor, 0..3), Cow::Borrowed(_)));
        assert_eq!(rows_in(&tensor, 1..3).to_data().iter::<f32>().collect::<Vec<_>>(), [2.0, 3.0]);
    }
}
