//! Running moments of the targets of values.

use brasa_core::ValueScale;
use brasa_core::export::{high_and_low, joined};
use brasa_shards::mean;
use burn::tensor::Tensor;

use crate::{ParamsError, Saved};

/// Share of the earlier moments at an update, as in Yu et al. 2022: over thousands of rollouts, all count nearly equally.
const DECAY: f64 = 0.999_99;
/// Least variance.
const LEAST_VARIANCE: f64 = 1e-5;
/// The name in a [`Saved`] learner.
const NAME: &str = "value_norm";

/// Running mean and deviation of the targets of values, in which a critic learns (PopArt, van Hasselt et al. 2016, without its rescaling of weights, as
/// in MAPPO, Yu et al. 2022).
///
/// Moments are exponential means without the bias of their start. They are the moments of TorchRL's `PopArtValueNorm`.
///
/// ```
/// use brasa_core::ValueScale;
/// use brasa_nn::ValueNorm;
/// use burn::tensor::Tensor;
///
/// let mut norm = ValueNorm::default();
/// assert_eq!(norm.scale(), ValueScale::default());
/// norm.update(&Tensor::from_floats([-30.0, -10.0], &brasa_device::open_named("cpu")?));
/// let ValueScale { mean, deviation } = norm.scale();
/// assert!((mean + 20.0).abs() < 1e-6 && (deviation - 10.0).abs() < 1e-6);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ValueNorm {
    /// Exponential sums, from 0: of means, of mean squares, and of ones.
    sums: [f64; 3],
}

impl ValueNorm {
    /// The unit of values: that of rewards before the first update.
    pub fn scale(&self) -> ValueScale {
        let [mean, square, weight] = self.sums;
        if weight == 0.0 {
            return ValueScale::default();
        }
        let mean = mean / weight;
        let variance = (square / weight - mean * mean).max(LEAST_VARIANCE);
        ValueScale { mean, deviation: variance.sqrt() }
    }

    /// Adds the targets of a rollout, `[n_rows]`, those of all shards ([`brasa_shards`]) alike. Waits for the device.
    pub fn update(&mut self, returns: &Tensor<1>) {
        let center = returns.clone().mean();
        let variance = (returns.clone() - center.clone()).square().mean();
        // Waits for the device.
        let moments = Tensor::cat(vec![center, variance], 0).into_data();
        let moments: Vec<f64> = moments.iter::<f64>().collect();
        let [center, variance] = [moments[0], moments[1]];
        let moments = mean(vec![center, variance + center * center]);
        let sums: Vec<f64> = (self.sums.iter().zip([moments[0], moments[1], 1.0]))
            .map(|(sum, new)| sum * DECAY + new * (1.0 - DECAY))
            .collect();
        // As they are saved, so that a resumed run goes on with equal numbers.
        let [high, low] = high_and_low(&sums);
        self.sums.copy_from_slice(&joined(&high, &low));
    }

    /// Adds the moments to what the policy of a learner is saved with: its values are in this unit.
    pub fn save(&self, saved: &mut Saved) {
        let [high, low] = high_and_low(&self.sums);
        saved.policy.insert(NAME.into(), (vec![2, 3], [high, low].concat()));
    }

    /// The moments of [`ValueNorm::save`]; `None` for a learner without.
    ///
    /// # Errors
    /// [`ParamsError`] if the learner was saved with them and `is_on` is false, or without them and it is true: its critic has another unit.
    pub fn load(saved: &Saved, is_on: bool) -> Result<Option<Self>, ParamsError> {
        match (saved.policy.get(NAME), is_on) {
            (None, false) => Ok(None),
            (Some((_, numbers)), true) if numbers.len() == 6 => {
                let mut norm = Self::default();
                norm.sums.copy_from_slice(&joined(&numbers[..3], &numbers[3..]));
                Ok(Some(norm))
            }
            (Some((shape, _)), is_on) => {
                let expected = if is_on { vec![2, 3] } else { Vec::new() };
                Err(ParamsError::Shape { name: NAME.into(), got: shape.clone(), expected })
            }
            (None, true) => {
                let known = saved.policy.keys().cloned().collect::<Vec<_>>().join(", ");
                Err(ParamsError::Missing { name: NAME.into(), known })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_test::device;

    #[test]
    fn moments_are_exact_for_equal_rollouts_and_survive_a_save() {
        let mut norm = ValueNorm::default();
        let returns = Tensor::from_floats([-503.0, -501.0, -499.0, -497.0], &device());
        for _ in 0..100 {
            norm.update(&returns);
        }
        let ValueScale { mean, deviation } = norm.scale();
        // The deviation over the population, of numbers that are large next to it.
        assert!((mean + 500.0).abs() < 1e-6 && (deviation - 5.0_f64.sqrt()).abs() < 1e-5, "{mean} {deviation}");
        let mut saved = Saved::default();
        norm.save(&mut saved);
        assert_eq!(ValueNorm::load(&saved, true).expect("it was saved"), Some(norm));
        assert!(ValueNorm::load(&saved, false).is_err() && ValueNorm::load(&Saved::default(), true).is_err());
        assert_eq!(ValueNorm::load(&Saved::default(), false).expect("there is none"), None);
    }

    #[test]
    fn earlier_rollouts_count_by_their_age_alone() {
        let mut norm = ValueNorm::default();
        for center in [1.0, 3.0] {
            norm.update(&Tensor::from_floats([center - 1.0, center + 1.0], &device()));
        }
        let ValueScale { mean, deviation } = norm.scale();
        // Two rollouts of deviation 1 around 1 and 3.
        assert!((mean - 2.0).abs() < 1e-4 && (deviation - 2.0_f64.sqrt()).abs() < 1e-4, "{mean} {deviation}");
        let constant = Tensor::from_floats([7.0; 8], &device());
        let mut norm = ValueNorm::default();
        norm.update(&constant);
        assert!((norm.scale().deviation - LEAST_VARIANCE.sqrt()).abs() < 1e-12);
    }
}
