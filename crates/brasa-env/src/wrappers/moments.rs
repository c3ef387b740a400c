//! Running mean and variance of many columns.

use ndarray::{ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

use crate::EnvError;

/// Mean and variance per column of all rows seen so far, in `f64` (Chan, Golub and LeVeque 1979).
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
            self.count += 1.0;
            for ((x, mean), squares) in row.iter().zip(&mut self.mean).zip(&mut self.squares) {
                let distance = f64::from(*x) - *mean;
                *mean += distance / self.count;
                *squares += distance * (f64::from(*x) - *mean);
            }
        }
    }

    /// Subtracts the mean, divides by the standard deviation and clips to +-10, per column.
    ///
    /// # Panics
    /// If the width differs.
    pub fn normalize(&self, mut rows: ArrayViewMut2<f32>) {
        assert_eq!(rows.ncols(), self.mean.len(), "width of the rows");
        for mut row in rows.rows_mut() {
            for (column, x) in row.iter_mut().enumerate() {
                let deviation = (self.variance(column) + Self::EPSILON).sqrt();
                *x = (((f64::from(*x) - self.mean[column]) / deviation) as f32).clamp(-Self::CLIP, Self::CLIP);
            }
        }
    }

    /// Mean, standard deviation and clip value of [`RunningMoments::normalize`], for other implementations.
    pub fn normalization(&self) -> (Vec<f32>, Vec<f32>, f32) {
        let deviation = |column| (self.variance(column) + Self::EPSILON).sqrt() as f32;
        (self.mean.iter().map(|x| *x as f32).collect(), (0..self.mean.len()).map(deviation).collect(), Self::CLIP)
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
}
