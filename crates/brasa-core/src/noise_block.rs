//! Random numbers for environments on a device, drawn on the host for many steps at once.

use brasa_env::named_rng;
use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;

use crate::NoiseWidths;

/// Largest number of random numbers in an upload, if a step needs fewer.
const BLOCK: usize = 1 << 18;

/// Random numbers of several steps: the rows of a step stand together.
#[derive(Debug)]
pub(crate) struct NoiseBlock {
    pub index: u64,
    pub start: Tensor<2>,
    pub step: Tensor<2>,
}

impl NoiseBlock {
    /// Steps of a block.
    pub fn n_steps(n_envs: usize, NoiseWidths { start, step }: NoiseWidths) -> usize {
        (BLOCK / (n_envs * (start + step)).max(1)).clamp(1, 256)
    }

    /// The block with this index.
    pub fn draw(seed: u64, index: u64, n_rows: usize, widths: NoiseWidths, device: &Device) -> Self {
        let part = |purpose: &str, width: usize| uniform(seed, purpose, index, n_rows, width, device);
        Self { index, start: part("starts", widths.start), step: part("steps", widths.step) }
    }
}

/// `[n_rows, width]` uniform numbers in `[0, 1)`.
pub(crate) fn uniform(seed: u64, purpose: &str, index: u64, n_rows: usize, width: usize, device: &Device) -> Tensor<2> {
    if width == 0 {
        return Tensor::zeros([n_rows, 0], device);
    }
    let mut rng = named_rng(seed, purpose, index);
    let values: Vec<f32> = (0..n_rows * width).map(|_| rng.random()).collect();
    Tensor::from_data(TensorData::new(values, [n_rows, width]), device)
}
