//! Initial weights, sampled on the host so that they are the same on every device.

use brasa_core::env::{InvalidField, field};
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// Distribution of initial weights; biases are 0 unless stated otherwise.
///
/// ```
/// use brasa_core::env::named_rng;
/// use brasa_nn::Init;
///
/// let rng = &mut named_rng(0, "weights", 0);
/// let (weight, bias) = Init::Orthogonal(1.0).draw(2, 2, rng);
/// // The rows are orthonormal.
/// assert!((weight[0] * weight[2] + weight[1] * weight[3]).abs() < 1e-6);
/// assert!((weight[0].hypot(weight[1]) - 1.0).abs() < 1e-6);
/// assert_eq!(bias, [0.0, 0.0]);
/// assert!(Init::Within(0.1).draw(2, 2, rng).0.iter().all(|weight| weight.abs() <= 0.1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Init {
    /// Orthonormal rows or columns, whichever are fewer, times this gain (Saxe et al. 2014).
    Orthogonal(f64),
    /// PyTorch's default of a linear layer: weights and biases uniform within `1 / sqrt(inputs)`.
    FanIn,
    /// Uniform within `sqrt(6 / (inputs + outputs))` (Glorot and Bengio 2010), as PyTorch Geometric.
    Glorot,
    /// Weights and biases uniform within this number.
    Within(f64),
}

impl Init {
    /// Refuses a gain or bound that is not above 0.
    ///
    /// # Errors
    /// [`InvalidField`] with the number.
    pub fn check(self, field: &'static str) -> Result<(), InvalidField> {
        let (Self::Orthogonal(gain) | Self::Within(gain)) = self else { return Ok(()) };
        field::rule(gain > 0.0 && gain <= 1e6, field, "must have a gain or bound above 0 and at most 1000000", gain)
    }

    /// Weights `[inputs, outputs]`, row-major, and biases `[outputs]`.
    pub fn draw(self, inputs: usize, outputs: usize, rng: &mut (impl Rng + ?Sized)) -> (Vec<f32>, Vec<f32>) {
        match self {
            Self::Orthogonal(gain) => (orthogonal(inputs, outputs, gain, rng), vec![0.0; outputs]),
            Self::FanIn => {
                let bound = 1.0 / (inputs as f64).sqrt();
                (uniform(inputs * outputs, bound, rng), uniform(outputs, bound, rng))
            }
            Self::Glorot => {
                let bound = (6.0 / (inputs + outputs) as f64).sqrt();
                (uniform(inputs * outputs, bound, rng), vec![0.0; outputs])
            }
            Self::Within(bound) => (uniform(inputs * outputs, bound, rng), uniform(outputs, bound, rng)),
        }
    }
}

/// `n` numbers uniform within `bound`.
fn uniform(n: usize, bound: f64, rng: &mut (impl Rng + ?Sized)) -> Vec<f32> {
    (0..n).map(|_| ((2.0 * rng.random::<f64>() - 1.0) * bound) as f32).collect()
}

/// A matrix with orthonormal rows or columns: Gram-Schmidt on normal vectors, in f64 and in two passes, because one
/// pass loses orthogonality by rounding. The result is uniformly distributed, as with a sign-corrected QR.
fn orthogonal(inputs: usize, outputs: usize, gain: f64, rng: &mut (impl Rng + ?Sized)) -> Vec<f32> {
    let (count, length) = (inputs.min(outputs), inputs.max(outputs));
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(count);
    while basis.len() < count {
        let mut vector: Vec<f64> = (0..length).map(|_| StandardNormal.sample(rng)).collect();
        for _ in 0..2 {
            for earlier in &basis {
                let dot: f64 = vector.iter().zip(earlier).map(|(a, b)| a * b).sum();
                vector.iter_mut().zip(earlier).for_each(|(a, b)| *a -= dot * b);
            }
        }
        let norm = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        // Linearly dependent samples have probability 0, but a division by 0 must be impossible.
        if norm > 1e-8 {
            vector.iter_mut().for_each(|x| *x /= norm);
            basis.push(vector);
        }
    }
    let at = |input: usize, output: usize| if inputs >= outputs { basis[output][input] } else { basis[input][output] };
    (0..inputs * outputs).map(|i| (gain * at(i / outputs, i % outputs)) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn the_shorter_side_is_orthonormal_times_the_gain() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for (inputs, outputs) in [(4, 64), (64, 2), (64, 64)] {
            let (weight, bias) = Init::Orthogonal(2.0).draw(inputs, outputs, &mut rng);
            assert!(bias.iter().all(|b| *b == 0.0));
            let at = |i: usize, o: usize| f64::from(weight[i * outputs + o]);
            let (count, length) = (inputs.min(outputs), inputs.max(outputs));
            for a in 0..count {
                for b in 0..count {
                    let dot: f64 = (0..length)
                        .map(|k| if inputs >= outputs { at(k, a) * at(k, b) } else { at(a, k) * at(b, k) })
                        .sum();
                    let expected = if a == b { 4.0 } else { 0.0 };
                    assert!((dot - expected).abs() < 1e-5, "{inputs}x{outputs}: {a}, {b}: {dot}");
                }
            }
        }
    }

    #[test]
    fn uniform_draws_stay_within_their_bounds() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let (weight, bias) = Init::FanIn.draw(16, 100, &mut rng);
        let largest = weight.iter().chain(&bias).fold(0.0f32, |m, x| m.max(x.abs()));
        assert!(largest <= 0.25 && largest > 0.24, "{largest}");
        let (weight, bias) = Init::Glorot.draw(50, 100, &mut rng);
        let largest = weight.iter().fold(0.0f32, |m, x| m.max(x.abs()));
        assert!(largest <= 0.2 && largest > 0.199 && bias == [0.0; 100], "{largest}");
    }
}
