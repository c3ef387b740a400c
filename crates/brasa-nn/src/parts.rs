//! Parts of a batch, whose gradients are accumulated.

use std::borrow::Cow;
use std::ops::Range;

use brasa_core::Rows;

/// `n_rows` rows in at most `n_parts` parts that follow each other, of equally many rows; the last one may have fewer. Every part but the last
/// has a multiple of `unit` rows. No rows are one part.
///
/// # Panics
/// If `n_parts` or `unit` is 0.
pub(crate) fn parts(n_rows: usize, n_parts: usize, unit: usize) -> Vec<Range<usize>> {
    let per_part = n_rows.div_ceil(n_parts).next_multiple_of(unit).max(1);
    (0..n_rows.max(1)).step_by(per_part).map(|first| first..n_rows.min(first + per_part)).collect()
}

/// Rows of a batch whose gradient is computed together: all of them, or some.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use std::cell::RefCell;
///
/// use brasa_core::{ActionValues, Obs, Rows};
/// use brasa_nn::{AdamConfig, Data, Forward, Part, QNetwork, Step, Trainable};
/// use burn::tensor::Tensor;
///
/// /// The first value of each observation. It records how many rows each part has.
/// struct First<'a>(&'a Obs, RefCell<Vec<usize>>);
///
/// impl Forward<QNetwork, 1> for First<'_> {
///     fn n_rows(&self) -> usize {
///         self.0.n_rows()
///     }
///     fn recorded(&self, network: &QNetwork, part: &Part) -> [Tensor<1>; 1] {
///         self.1.borrow_mut().push(part.n_rows());
///         [network.values(part.of(self.0).into_owned()).narrow(1, 0, 1).squeeze_dim(1)]
///     }
/// }
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut trainable = Trainable::new(q_network(&device.clone().autodiff())?, AdamConfig::default())?.in_parts(2);
/// let obs = Obs::new(Tensor::zeros([5, 2], &device));
/// let forward = First(&obs, RefCell::default());
/// let data = Data::new([brasa_kernels::LossData::Constant(1.0)]);
/// trainable.learn(&forward, data, &Square, Step::new(1e-2, None), |_| true);
/// assert_eq!(forward.1.into_inner(), [3, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Part {
    n_rows: usize,
    /// Their share of the rows of the batch.
    pub(crate) share: f64,
    /// `None` for the whole batch.
    range: Option<Range<usize>>,
}

impl Part {
    /// `rows` of a batch of `n_rows`.
    pub(crate) fn new(rows: Range<usize>, n_rows: usize) -> Self {
        let is_whole = rows == (0..n_rows);
        let share = if is_whole { 1.0 } else { rows.len() as f64 / n_rows as f64 };
        Self { n_rows: rows.len(), share, range: (!is_whole).then_some(rows) }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The rows of `batch`, without a copy if these are all.
    pub fn of<'a, R: Rows>(&self, batch: &'a R) -> Cow<'a, R> {
        match &self.range {
            Some(range) => Cow::Owned(batch.range(range.clone())),
            None => Cow::Borrowed(batch),
        }
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
        assert_eq!(parts(0, 2, 1), vec![0..0; 1]);
        let batch = burn::tensor::Tensor::<1>::from_floats([1.0, 2.0, 3.0], &brasa_test::device());
        assert!(matches!(Part::new(0..3, 3).of(&batch), Cow::Borrowed(_)));
        let part = Part::new(1..3, 3);
        assert_eq!(part.of(&batch).to_data().iter::<f32>().collect::<Vec<_>>(), [2.0, 3.0]);
        assert_eq!(part.n_rows(), 2);
    }
}
