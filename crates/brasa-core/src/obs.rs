//! Flat observations with an optional action mask.

use std::ops::Range;

use brasa_env::wrappers::RunningMoments;
use burn::tensor::{Device, Int, Tensor};

use crate::Rows;

/// What a policy over flat vectors sees.
#[derive(Debug, Clone)]
pub struct Obs {
    /// `[n_rows, obs width]`.
    pub values: Tensor<2>,
    /// `[n_rows, options]`: 1 for legal options of the next action, 0 for the others.
    pub mask: Option<Tensor<2>>,
}

impl Obs {
    /// Observations without a mask.
    pub fn new(values: Tensor<2>) -> Self {
        Self { values, mask: None }
    }

    /// The same observations with mean 0 and deviation 1.
    pub fn normalized(self, by: &Normalization) -> Self {
        let values = (self.values - by.mean.clone().unsqueeze()) / by.deviation.clone().unsqueeze();
        Self { values: values.clamp(-by.clip, by.clip), mask: self.mask }
    }
}

impl Rows for Obs {
    fn n_rows(&self) -> usize {
        self.values.n_rows()
    }

    fn zeroed(&self, n_rows: usize, device: &Device) -> Self {
        Self { values: self.values.zeroed(n_rows, device), mask: self.mask.zeroed(n_rows, device) }
    }

    fn select(&self, indices: Tensor<1, Int>) -> Self {
        Self { mask: self.mask.select(indices.clone()), values: Rows::select(&self.values, indices) }
    }

    fn assign(&mut self, range: Range<usize>, rows: Self) {
        self.values.assign(range.clone(), rows.values);
        self.mask.assign(range, rows.mask);
    }
}

/// Moments of observations on a device.
#[derive(Debug, Clone)]
pub struct Normalization {
    /// `[obs width]`: what is subtracted.
    pub mean: Tensor<1>,
    /// `[obs width]`: what is divided by.
    pub deviation: Tensor<1>,
    /// Largest magnitude of the result.
    pub clip: f32,
}

impl Normalization {
    /// Uploads the moments of a run.
    pub fn new(moments: &RunningMoments, device: &Device) -> Self {
        let (mean, deviation, clip) = moments.normalization();
        let upload = |values: Vec<f32>| Tensor::from_floats(values.as_slice(), device);
        Self { mean: upload(mean), deviation: upload(deviation), clip }
    }
}
