//! Exploration noise, sampled on the host and uploaded once.

use brasa_core::{NoiseDistribution, NoiseSpec};
use burn::tensor::{Device, Tensor, TensorData};
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Gumbel, StandardNormal};

/// Upper bound of Gumbel noise. The largest value from a uniform f32 below 1 is 16.6, but the sampler also returns 1
/// once in 16 million times, and the resulting infinity would exceed every mask.
const LARGEST_GUMBEL: f32 = 17.0;

/// `[n_rows, spec.width]` random numbers from `rng`.
///
/// ```
/// use brasa_core::{NoiseDistribution, NoiseSpec, env::named_rng};
/// use brasa_nn::draw_noise;
///
/// let spec = NoiseSpec { width: 3, distribution: NoiseDistribution::Normal, resample_every: 1 };
/// let device = brasa_device::open_named("cpu")?;
/// let noise = draw_noise(spec, 8, &mut named_rng(0, "noise", 0), &device);
/// assert_eq!(noise.dims(), [8, 3]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn draw_noise(spec: NoiseSpec, n_rows: usize, rng: &mut (impl Rng + ?Sized), device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(noise_numbers(spec, n_rows, rng), [n_rows, spec.width]), device)
}

/// The same in the memory of the CPU, row by row.
///
/// ```
/// use brasa_core::{NoiseDistribution, NoiseSpec, env::named_rng};
/// use brasa_nn::noise_numbers;
///
/// let spec = NoiseSpec { width: 2, distribution: NoiseDistribution::Uniform, resample_every: 1 };
/// let numbers = noise_numbers(spec, 4, &mut named_rng(0, "noise", 0));
/// assert!(numbers.len() == 8 && numbers.iter().all(|x| (0.0..1.0).contains(x)));
/// ```
pub fn noise_numbers(spec: NoiseSpec, n_rows: usize, rng: &mut (impl Rng + ?Sized)) -> Vec<f32> {
    let n = n_rows * spec.width;
    let standard = Gumbel::new(0.0f32, 1.0).expect("a scale of 1 is valid");
    match spec.distribution {
        NoiseDistribution::Normal => (0..n).map(|_| StandardNormal.sample(rng)).collect(),
        NoiseDistribution::Uniform => (0..n).map(|_| rng.random()).collect(),
        NoiseDistribution::Gumbel => (0..n).map(|_| standard.sample(rng).min(LARGEST_GUMBEL)).collect(),
        NoiseDistribution::GumbelThenNormal { n_gumbel } => (0..n)
            .map(|index| match index % spec.width < n_gumbel {
                true => standard.sample(rng).min(LARGEST_GUMBEL),
                false => StandardNormal.sample(rng),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// A generator with all bits set: the largest uniform number.
    struct Ones;

    impl rand::TryRng for Ones {
        type Error = Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            Ok(u32::MAX)
        }
        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            Ok(u64::MAX)
        }
        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
            bytes.fill(u8::MAX);
            Ok(())
        }
    }

    #[test]
    fn noise_never_outweighs_a_mask() {
        let device = brasa_device::open_named("cpu").expect("flex is a default feature");
        let spec = NoiseSpec { width: 3, distribution: NoiseDistribution::Gumbel, resample_every: 1 };
        let largest = draw_noise(spec, 1, &mut Ones, &device).max().into_scalar::<f32>();
        assert_eq!(largest, LARGEST_GUMBEL);
    }
}
