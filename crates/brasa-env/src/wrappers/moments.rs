//! Running mean and variance of many columns.

use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

use crate::EnvError;

/// Mean and variance per column of all rows seen so far, in `f64` (Chan, Golub and LeVeque 1979).
///
/// ```
/// use brasa_env::wrappers::RunningMoments;
/// use ndarray::array;
///
/// let mut moments = RunningMoments::new(2);
/// moments.add(array![[1.0, 10.0], [3.0, 30.0]].view());
/// assert_eq!((moments.mean[1], moments.variance(1)), (20.0, 100.0));
/// let mut rows = array![[3.0, 10.0]];
/// moments.normalize(rows.view_mut());
/// assert_eq!(rows, array![[1.0, -1.0]]);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunningMoments {
    /// Rows seen.
    pub count: f64,
    /// Mean of each column.
    pub mean: Vec<f64>,
    /// Sum of squared deviations from the mean of each column.
    pub squares: Vec<f64>,
}

impl RunningMoments {
    /// Largest magnitude of a normalized value, as in VecNormalize of Stable-Baselines3.
    pub const CLIP: f32 = 10.0;
    /// Added to the variance, so that a constant column is not divided by 0 (the same source).
    pub const EPSILON: f64 = 1e-8;

    /// Moments of `width` columns without rows.
    pub fn new(width: usize) -> Self {
        Self { count: 0.0, mean: vec![0.0; width], squares: vec![0.0; width] }
    }

    /// Checks that they are those of `width` columns.
    ///
    /// # Errors
    /// [`EnvError::State`] for another width.
    pub fn check_width(&self, width: usize) -> Result<(), EnvError> {
        match self.mean.len() {
            n if n == width => Ok(()),
            n => Err(EnvError::State { reason: format!("moments of {n} columns for observations of {width}") }),
        }
    }

    /// Adds all rows of `rows`, `[n, width]`.
    ///
    /// # Panics
    /// If the width differs.
    pub fn add(&mut self, rows: ArrayView2<f32>) {
        assert_eq!(rows.ncols(), self.mean.len(), "width of the rows");
        for row in rows.rows() {
            self.add_row(row.iter());
        }
    }

    /// Adds complete observations of agents: row `i` of `own`, `[n_envs * n_agents, own width]`, behind row `i / n_agents` of `shared`,
    /// `[n_envs, shared width]`.
    ///
    /// # Panics
    /// If the widths differ, or the number of rows of `shared` does not divide that of `own`.
    pub fn add_shared(&mut self, shared: ArrayView2<f32>, own: ArrayView2<f32>) {
        assert_eq!(shared.ncols() + own.ncols(), self.mean.len(), "width of the rows");
        assert!(
            own.nrows().is_multiple_of(shared.nrows().max(1)),
            "a row of `shared` belongs to as many rows as another"
        );
        let n_agents = own.nrows() / shared.nrows().max(1);
        for (index, own) in own.rows().into_iter().enumerate() {
            self.add_row(shared.row(index / n_agents).into_iter().chain(own));
        }
    }

    fn add_row<'a>(&mut self, row: impl Iterator<Item = &'a f32>) {
        self.count += 1.0;
        for ((x, mean), squares) in row.zip(&mut self.mean).zip(&mut self.squares) {
            let distance = f64::from(*x) - *mean;
            *mean += distance / self.count;
            *squares += distance * (f64::from(*x) - *mean);
        }
    }

    /// The moments of rows without `columns`.
    #[must_use]
    pub fn without(&self, columns: &Range<usize>) -> Self {
        let kept = |values: &[f64]| {
            let values = values.iter().enumerate().filter(|(column, _)| !columns.contains(column));
            values.map(|(_, value)| *value).collect()
        };
        Self { count: self.count, mean: kept(&self.mean), squares: kept(&self.squares) }
    }

    /// The moments of the rows of both.
    ///
    /// # Panics
    /// If the widths differ.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        assert_eq!(self.mean.len(), other.mean.len(), "width of the moments");
        let count = self.count + other.count;
        if count == 0.0 {
            return self.clone();
        }
        let column = |i: usize| {
            let distance = other.mean[i] - self.mean[i];
            let mean = self.mean[i] + distance * other.count / count;
            let between = distance * distance * self.count * other.count / count;
            (mean, self.squares[i] + other.squares[i] + between)
        };
        let (mean, squares) = (0..self.mean.len()).map(column).unzip();
        Self { count, mean, squares }
    }

    /// The moments of the rows that were added after `earlier`, a former copy of this value: the inverse of
    /// [`RunningMoments::merged`].
    ///
    /// # Panics
    /// If the widths differ.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        assert_eq!(self.mean.len(), earlier.mean.len(), "width of the moments");
        let count = self.count - earlier.count;
        if count <= 0.0 {
            return Self::new(self.mean.len());
        }
        let column = |i: usize| {
            let mean = self.mean[i] + (self.mean[i] - earlier.mean[i]) * earlier.count / count;
            let distance = mean - earlier.mean[i];
            let between = distance * distance * earlier.count * count / self.count;
            // Rounding may leave a little less than nothing.
            (mean, (self.squares[i] - earlier.squares[i] - between).max(0.0))
        };
        let (mean, squares) = (0..self.mean.len()).map(column).unzip();
        Self { count, mean, squares }
    }

    /// Subtracts the mean, divides by the standard deviation and clips to +-10, per column.
    ///
    /// # Panics
    /// If the width differs.
    pub fn normalize(&self, rows: ArrayViewMut2<f32>) {
        assert_eq!(rows.ncols(), self.mean.len(), "width of the rows");
        self.normalize_from(0, rows);
    }

    /// [`RunningMoments::normalize`] of rows that have only columns from `first` on.
    ///
    /// # Panics
    /// If there are fewer columns.
    pub fn normalize_from(&self, first: usize, mut rows: ArrayViewMut2<f32>) {
        for mut row in rows.rows_mut() {
            for (column, x) in (first..).zip(row.iter_mut()) {
                *x = (((f64::from(*x) - self.mean[column]) / self.deviation(column)) as f32)
                    .clamp(-Self::CLIP, Self::CLIP);
            }
        }
    }

    /// Mean, standard deviation and clip value of [`RunningMoments::normalize`], for other implementations.
    pub fn normalization(&self) -> (Vec<f64>, Vec<f64>, f32) {
        (self.mean.clone(), (0..self.mean.len()).map(|column| self.deviation(column)).collect(), Self::CLIP)
    }

    /// Standard deviation of a column, above 0.
    fn deviation(&self, column: usize) -> f64 {
        (self.variance(column) + Self::EPSILON).sqrt()
    }

    /// Population variance of a column; 1 before the second row, to avoid a division by 0.
    pub fn variance(&self, column: usize) -> f64 {
        if self.count < 2.0 { 1.0 } else { self.squares[column] / self.count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn equals_the_two_pass_formula() {
        let mut moments = RunningMoments::new(2);
        moments.add(array![[1.0, 10.0], [2.0, 10.0]].view());
        moments.add(array![[6.0, 10.0]].view());
        assert!((moments.mean[0] - 3.0).abs() < 1e-12);
        assert!((moments.variance(0) - 14.0 / 3.0).abs() < 1e-12);
        assert_eq!(moments.variance(1), 0.0);
    }

    #[test]
    fn merging_equals_adding_all_rows_and_can_be_undone() {
        let rows = |n: usize, seed: f32| {
            let of = |(i, j): (usize, usize)| ((i as f32 + seed) * 1.3).sin() * (1.0 + 9.0 * j as f32) + 3.0;
            ndarray::Array2::from_shape_fn((n, 2), of)
        };
        let (first, second) = (rows(40, 0.0), rows(7, 0.5));
        let of = |all: &[&ndarray::Array2<f32>]| {
            let mut moments = RunningMoments::new(2);
            all.iter().for_each(|rows| moments.add(rows.view()));
            moments
        };
        let near = |a: &RunningMoments, b: &RunningMoments| {
            assert_eq!(a.count, b.count);
            for (a, b) in a.mean.iter().zip(&b.mean).chain(a.squares.iter().zip(&b.squares)) {
                assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{a} instead of {b}");
            }
        };
        let (a, b, both) = (of(&[&first]), of(&[&second]), of(&[&first, &second]));
        near(&a.merged(&b), &both);
        near(&both.since(&a), &b);
        let none = RunningMoments::new(2);
        assert_eq!(none.merged(&none), none);
        near(&none.merged(&a), &a);
        near(&a.merged(&none), &a);
        assert_eq!(a.since(&a), none);
    }
}
