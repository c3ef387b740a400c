//! Running mean and variance of observations on a device.

use brasa_env::wrappers::RunningMoments;
use brasa_export::{high_and_low, joined};
use brasa_kernels::elementwise;
use burn::tensor::{Device, Tensor};

use crate::Normalization;
use crate::obs::row_of;

/// [`RunningMoments`] whose numbers stay on a device, in 32 bits; the mean has two of them. The host has a copy as of the latest reading.
#[derive(Debug, Clone)]
pub(crate) struct DeviceMoments {
    /// Rows seen.
    count: f64,
    /// `[1, width]`: the mean, and its remainders: see [`brasa_export::high_and_low`].
    mean: Tensor<2>,
    mean_low: Tensor<2>,
    /// `[1, width]`: sums of squared deviations from the mean.
    squares: Tensor<2>,
    on_host: RunningMoments,
    grows: bool,
}

impl DeviceMoments {
    /// Moments that [`DeviceMoments::add`] updates.
    pub fn growing(width: usize, device: &Device) -> Self {
        Self::with(RunningMoments::new(width), true, device)
    }

    /// Constant moments.
    pub fn frozen(moments: RunningMoments, device: &Device) -> Self {
        Self::with(moments, false, device)
    }

    fn with(moments: RunningMoments, grows: bool, device: &Device) -> Self {
        let ([mean, mean_low], [squares, _]) = (high_and_low(&moments.mean), high_and_low(&moments.squares));
        let [mean, mean_low, squares] = [mean, mean_low, squares].map(|values| row_of(&values, device));
        Self { count: moments.count, mean, mean_low, squares, on_host: moments, grows }
    }

    /// Replaces the numbers.
    pub fn set(&mut self, moments: RunningMoments, device: &Device) {
        *self = Self::with(moments, self.grows, device);
    }

    /// Adds all rows of `rows`, `[n, width]`, at once (Chan, Golub and LeVeque 1979). Sums are of distances: those of large numbers would
    /// lose what differs between them.
    pub fn add(&mut self, rows: Tensor<2>) {
        if !self.grows {
            return;
        }
        let [n_rows, width] = rows.dims();
        let n = n_rows as f64;
        if self.count == 0.0 {
            // Any origin is right before the first row.
            self.mean = rows.clone().slice([0..1, 0..width]);
        }
        let from_mean = rows - self.mean.clone();
        let mean = from_mean.clone().mean_dim(0);
        let squares = (from_mean - mean.clone()).square().sum_dim(0);
        let count = self.count + n;
        let (share, between) = (n / count, self.count * n / count);
        let [high, low, sum] = elementwise([1, width], |formulas| {
            let parts = [&self.mean, &self.mean_low, &self.squares, &mean, &squares].map(|part| formulas.read(part));
            let [high, low, own, mean, squares] = parts;
            let distance = mean - low;
            let low = low + distance * share;
            // The sum of both as the nearest number and the remainder (Knuth 1969). A compiler of shaders computes `(high + low) - high` as `low`,
            // which has no remainder. It cannot where a factor is not known to it.
            let one = formulas.number(1.0);
            let sum = (high + low) * one;
            let of_low = (sum - high) * one;
            let rest = (high - (sum - of_low)) + (low - of_low);
            [vec![sum], vec![rest], vec![own + squares + distance.square() * between]]
        });
        (self.mean, self.mean_low, self.squares) = (high, low, sum);
        self.count = count;
    }

    /// Mean and deviation for [`crate::Rows::normalized`].
    pub fn normalization(&self) -> Normalization {
        // As on the host: 1 before the second row, and an addend against a division by 0.
        let variance = match self.count < 2.0 {
            true => Tensor::ones_like(&self.squares),
            false => self.squares.clone() / self.count,
        };
        Normalization {
            mean: self.mean.clone(),
            mean_low: self.mean_low.clone(),
            deviation: (variance + RunningMoments::EPSILON).sqrt(),
            clip: RunningMoments::CLIP,
        }
    }

    /// The numbers for [`DeviceMoments::accept`].
    pub fn tensors(&self) -> [Tensor<1>; 3] {
        let [_, width] = self.mean.dims();
        [&self.mean, &self.mean_low, &self.squares].map(|row| row.clone().reshape([width]))
    }

    /// Takes the numbers of [`DeviceMoments::tensors`] from the front of `data`; returns the rest.
    ///
    /// # Panics
    /// If `data` is too short.
    pub fn accept<'a>(&mut self, data: &'a [f32]) -> &'a [f32] {
        let width = self.on_host.mean.len();
        let (mean, rest) = data.split_at(width);
        let (mean_low, rest) = rest.split_at(width);
        let (squares, rest) = rest.split_at(width);
        if self.grows {
            let squares = squares.iter().map(|x| f64::from(*x)).collect();
            self.on_host = RunningMoments { count: self.count, mean: joined(mean, mean_low), squares };
        }
        rest
    }

    /// The moments as of the latest [`DeviceMoments::accept`].
    pub fn on_host(&self) -> &RunningMoments {
        &self.on_host
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::TensorData;
    use ndarray::Array2;

    /// Moments of 50 steps of 7 rows whose columns have these centers, on the device and on the host.
    fn of_columns(centers: [f32; 3]) -> (DeviceMoments, RunningMoments) {
        let device = brasa_test::device();
        let mut on_device = DeviceMoments::growing(3, &device);
        let mut on_host = RunningMoments::new(3);
        for step in 0..50 {
            let rows = Array2::from_shape_fn((7, 3), |(row, column)| {
                ((step * 21 + row * 3 + column) as f32 * 0.7).sin() * 3.0 + centers[column]
            });
            on_host.add(rows.view());
            let data = TensorData::new(rows.iter().copied().collect::<Vec<f32>>(), [7, 3]);
            on_device.add(Tensor::from_data(data, &device));
        }
        let read: Vec<f32> =
            on_device.tensors().into_iter().flat_map(|t| t.into_data().iter::<f32>().collect::<Vec<_>>()).collect();
        assert!(on_device.accept(&read).is_empty());
        (on_device, on_host)
    }

    /// The mean of a column can be so large that 32 bits have no number near it.
    #[test]
    fn they_are_those_of_the_host() {
        for centers in [[0.0, 10.0, 20.0], [5_712_345.3, -1e7, 4e6]] {
            let (moments, on_host) = of_columns(centers);
            assert_eq!(moments.on_host().count, 350.0);
            let (mean, deviation, _) = on_host.normalization();
            for (column, (expected, deviation)) in mean.into_iter().zip(deviation).enumerate() {
                let seen = moments.on_host().mean[column];
                assert!((seen - expected).abs() < 1e-5 * deviation, "mean {seen} instead of {expected}");
                let seen = moments.on_host().variance(column).sqrt();
                assert!((seen - deviation).abs() < 1e-5 * deviation, "deviation {seen} instead of {deviation}");
            }
        }
    }

    #[test]
    fn observations_far_from_0_are_normalized_as_on_the_host() {
        let device = brasa_test::device();
        let (moments, on_host) = of_columns([5_712_345.3, -1e7, 4e6]);
        let far = [5_712_345.3, -1e7, 4e6].map(|center: f32| [center - 2.0, center, center + 1.5]);
        let mut rows = Array2::from_shape_fn((3, 3), |(row, column)| far[column][row]);
        let data = TensorData::new(rows.iter().copied().collect::<Vec<f32>>(), [3, 3]);
        let obs = crate::Obs::new(Tensor::from_data(data, &device));
        on_host.normalize(rows.view_mut());
        for by in [moments.normalization(), Normalization::new(&on_host, &device)] {
            let seen = crate::Rows::normalized(obs.clone(), &by).expect("its form").values.into_data();
            for (seen, expected) in seen.iter::<f32>().zip(&rows) {
                assert!((seen - expected).abs() < 2e-5, "{seen} instead of {expected}");
            }
        }
    }
}
