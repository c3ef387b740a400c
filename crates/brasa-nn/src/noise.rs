//! Exploration noise, drawn on the host and uploaded once.

use brasa_core::{NoiseLaw, NoiseSpec};
use burn::tensor::{Device, Tensor, TensorData};
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Gumbel, StandardNormal};

/// `[n_rows, spec.width]` random numbers from `rng`.
pub fn draw_noise(spec: NoiseSpec, n_rows: usize, rng: &mut impl Rng, device: &Device) -> Tensor<2> {
    let n = n_rows * spec.width;
    let values: Vec<f32> = match spec.law {
        NoiseLaw::Normal => (0..n).map(|_| StandardNormal.sample(rng)).collect(),
        NoiseLaw::Uniform => (0..n).map(|_| rng.random()).collect(),
        NoiseLaw::Gumbel => {
            let gumbel = Gumbel::new(0.0f32, 1.0).expect("a scale of 1 is valid");
            (0..n).map(|_| gumbel.sample(rng)).collect()
        }
    };
    Tensor::from_data(TensorData::new(values, [n_rows, spec.width]), device)
}
