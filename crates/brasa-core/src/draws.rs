//! Random numbers from columns of uniform noise.

use std::f64::consts::TAU;
use std::ops::Range;

use brasa_kernels::{Formulas, Matrix, Value, elementwise};
use burn::tensor::Tensor;

/// Hands out the columns of noise, one after the other, for implementations of [`crate::TensorDynamics`].
///
/// ```
/// use brasa_core::Draws;
/// use burn::tensor::Tensor;
///
/// let noise = Tensor::<2>::from_floats([[0.9, 0.2, 0.4, 0.0]], &brasa_device::open_named("cpu")?);
/// let mut draws = Draws::new(noise);
/// assert_eq!(draws.index(1, 6).into_scalar::<f32>(), 5.0);
/// assert_eq!(draws.uniform(3).dims(), [1, 3]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug)]
pub struct Draws {
    noise: Tensor<2>,
    at: usize,
}

impl Draws {
    /// `noise` is `[n_rows, width]`, uniform in `[0, 1)`.
    pub fn new(noise: Tensor<2>) -> Self {
        Self { noise, at: 0 }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.noise.dims()[0]
    }

    /// The places of the next `n` columns, for formulas that read them.
    pub fn columns(&mut self, n: usize) -> Range<usize> {
        self.at += n;
        self.at - n..self.at
    }

    /// The noise, for formulas that read [`Draws::columns`] of it.
    pub fn read<'a>(&self, formulas: &'a Formulas) -> Matrix<'a> {
        formulas.matrix(&self.noise)
    }

    /// `[n_rows, n]`, uniform in `[0, 1)`, from `n` columns.
    ///
    /// # Panics
    /// If there are not enough columns; so do the other methods.
    pub fn uniform(&mut self, n: usize) -> Tensor<2> {
        let columns = self.columns(n);
        self.noise.clone().slice([0..self.n_rows(), columns])
    }

    /// `[n_rows, n]`: whole numbers from 0 to `below - 1`, from `n` columns.
    pub fn index(&mut self, n: usize, below: usize) -> Tensor<2> {
        // A product with a number just below 1 may round up.
        (self.uniform(n) * below as f64).floor().clamp_max(below as f64 - 1.0)
    }

    /// `[n_rows, n]`, normal with mean 0 and deviation 1 (Box and Muller 1958), from [`Draws::width_of_normals`] columns: radii,
    /// then angles. The cosines come before the sines.
    pub fn normal(&mut self, n: usize) -> Tensor<2> {
        let half = Self::width_of_normals(n) / 2;
        let (radius, angle) = (self.columns(half), self.columns(half));
        let n_rows = self.n_rows();
        let [both] = elementwise([n_rows, half], |formulas| {
            let noise = self.read(formulas);
            [Self::normal_pair(noise.columns(radius), noise.columns(angle)).to_vec()]
        });
        if n == 2 * half { both } else { both.slice([0..n_rows, 0..n]) }
    }

    /// Two normal numbers from two uniform ones, as formulas: see [`Draws::normal`].
    pub fn normal_pair<'a>(radius: Value<'a>, angle: Value<'a>) -> [Value<'a>; 2] {
        let (radius, angle) = (((-radius).ln_1p() * -2.0).sqrt(), angle * TAU);
        [radius * angle.cos(), radius * angle.sin()]
    }

    /// Columns that `n` normal numbers take.
    pub fn width_of_normals(n: usize) -> usize {
        2 * n.div_ceil(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_env::named_rng;
    use burn::tensor::TensorData;
    use rand::RngExt;

    #[test]
    fn normal_numbers_have_the_moments_of_their_distribution() {
        let (rows, n) = (4000, 5);
        let width = Draws::width_of_normals(n);
        let mut rng = named_rng(0, "test", 0);
        let noise: Vec<f32> = (0..rows * width).map(|_| rng.random()).collect();
        let noise = Tensor::from_data(TensorData::new(noise, [rows, width]), &brasa_test::device());
        let normal = Draws::new(noise).normal(n);
        assert_eq!(normal.dims(), [rows, n]);
        let normal: Vec<f64> = normal.into_data().iter::<f64>().collect();
        let count = normal.len() as f64;
        let moment = |power: i32| normal.iter().map(|x| x.powi(power)).sum::<f64>() / count;
        for (power, expected, tolerance) in [(1, 0.0, 0.03), (2, 1.0, 0.05), (3, 0.0, 0.12), (4, 3.0, 0.35)] {
            assert!((moment(power) - expected).abs() < tolerance, "moment {power}: {}", moment(power));
        }
        // Neighbors are independent: of one radius come a cosine and a sine.
        let products = normal.chunks(n).map(|row| row[0] * row[3]).sum::<f64>() / rows as f64;
        assert!(products.abs() < 0.06, "{products}");
    }
}
