//! Running mean and variance of observations on a device.

use brasa_env::wrappers::RunningMoments;
use burn::tensor::{Device, Tensor};

use crate::Normalization;

/// [`RunningMoments`] whose numbers stay on a device, in 32 bits. The host has a copy as of the latest reading.
#[derive(Debug, Clone)]
pub(crate) struct DeviceMoments {
    /// Rows seen.
    count: f64,
    /// `[1, width]`.
    mean: Tensor<2>,
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
        let upload = |values: &[f64]| {
            let values: Vec<f32> = values.iter().map(|x| *x as f32).collect();
            Tensor::<1>::from_floats(values.as_slice(), device).unsqueeze()
        };
        let (mean, squares) = (upload(&moments.mean), upload(&moments.squares));
        Self { count: moments.count, mean, squares, on_host: moments, grows }
    }

    /// Replaces the numbers.
    pub fn set(&mut self, moments: RunningMoments, device: &Device) {
        *self = Self::with(moments, self.grows, device);
    }

    /// Adds all rows of `rows`, `[n, width]`, at once (Chan, Golub and LeVeque 1979).
    pub fn add(&mut self, rows: Tensor<2>) {
        if !self.grows {
            return;
        }
        let n = rows.dims()[0] as f64;
        let mean = rows.clone().mean_dim(0);
        let squares = (rows - mean.clone()).square().sum_dim(0);
        let distance = mean - self.mean.clone();
        let count = self.count + n;
        self.mean.inplace(|own| own + distance.clone() * (n / count));
        self.squares.inplace(|own| own + squares + distance.square() * (self.count * n / count));
        self.count = count;
    }

    /// Mean and deviation for [`crate::Rows::normalized`].
    pub fn normalization(&self) -> Normalization {
        let [_, width] = self.mean.dims();
        // As on the host: 1 before the second row, and an addend against a division by 0.
        let variance = match self.count < 2.0 {
            true => Tensor::ones_like(&self.squares),
            false => self.squares.clone() / self.count,
        };
        Normalization {
            mean: self.mean.clone().reshape([width]),
            deviation: (variance + RunningMoments::EPSILON).sqrt().reshape([width]),
            clip: RunningMoments::CLIP,
        }
    }

    /// The numbers for [`DeviceMoments::accept`].
    pub fn tensors(&self) -> [Tensor<1>; 2] {
        let [_, width] = self.mean.dims();
        [self.mean.clone().reshape([width]), self.squares.clone().reshape([width])]
    }

    /// Takes the numbers of [`DeviceMoments::tensors`] from the front of `data`; returns the rest.
    ///
    /// # Panics
    /// If `data` is too short.
    pub fn accept<'a>(&mut self, data: &'a [f32]) -> &'a [f32] {
        let width = self.on_host.mean.len();
        let (mean, rest) = data.split_at(width);
        let (squares, rest) = rest.split_at(width);
        if self.grows {
            let wide = |values: &[f32]| values.iter().map(|x| f64::from(*x)).collect();
            self.on_host = RunningMoments { count: self.count, mean: wide(mean), squares: wide(squares) };
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

    #[test]
    fn they_are_those_of_the_host() {
        let device = brasa_test::device();
        let mut on_device = DeviceMoments::growing(3, &device);
        let mut on_host = RunningMoments::new(3);
        for step in 0..50 {
            let rows = Array2::from_shape_fn((7, 3), |(row, column)| {
                ((step * 21 + row * 3 + column) as f32 * 0.7).sin() * 3.0 + column as f32 * 10.0
            });
            on_host.add(rows.view());
            let data = TensorData::new(rows.iter().copied().collect::<Vec<f32>>(), [7, 3]);
            on_device.add(Tensor::from_data(data, &device));
        }
        let (mean, deviation, _) = on_host.normalization();
        let seen = on_device.normalization();
        for (seen, expected) in [(seen.mean, mean), (seen.deviation, deviation)] {
            for (seen, expected) in seen.into_data().iter::<f32>().zip(expected) {
                assert!((seen - expected).abs() < 1e-4 * expected.abs().max(1.0), "{seen} instead of {expected}");
            }
        }
        let read: Vec<f32> =
            on_device.tensors().into_iter().flat_map(|t| t.into_data().iter::<f32>().collect::<Vec<_>>()).collect();
        assert!(on_device.accept(&read).is_empty());
        assert_eq!(on_device.on_host().count, 350.0);
        assert!((on_device.on_host().mean[2] - on_host.mean[2]).abs() < 1e-4);
    }
}
