//! The unit of the values of a policy.

use burn::tensor::Tensor;

/// The unit of the values of a policy: a value in the unit of rewards is `mean + deviation * value`.
///
/// By default a value is in the unit of rewards already. A loop asks the learner ([`crate::OnPolicyLearner::value_scale`]).
///
/// ```
/// use brasa_core::{ValueScale, read_back};
/// use burn::tensor::Tensor;
///
/// let scale = ValueScale { mean: -100.0, deviation: 20.0 };
/// let value = Tensor::<1>::from_floats([0.0, 1.5], &brasa_device::open_named("cpu")?);
/// assert_eq!(read_back(scale.to_rewards(value.clone())), [-100.0, -70.0]);
/// assert_eq!(read_back(scale.normalize(scale.to_rewards(value))), [0.0, 1.5]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValueScale {
    /// The value in the unit of rewards where that of the policy is 0.
    pub mean: f64,
    /// Rewards per unit of value, above 0.
    pub deviation: f64,
}

impl Default for ValueScale {
    fn default() -> Self {
        Self { mean: 0.0, deviation: 1.0 }
    }
}

impl ValueScale {
    /// Values in the unit of rewards, from those of the policy.
    pub fn to_rewards<const D: usize>(self, value: Tensor<D>) -> Tensor<D> {
        match self == Self::default() {
            true => value,
            false => value * (self.deviation as f32) + self.mean as f32,
        }
    }

    /// [`ValueScale::to_rewards`] of numbers in the memory of the CPU.
    pub fn to_rewards_on_host(self, values: &mut [f32]) {
        if self != Self::default() {
            values.iter_mut().for_each(|value| *value = *value * (self.deviation as f32) + self.mean as f32);
        }
    }

    /// Values as those of the policy, from values in the unit of rewards.
    pub fn normalize<const D: usize>(self, value: Tensor<D>) -> Tensor<D> {
        match self == Self::default() {
            true => value,
            false => (value - self.mean as f32) / self.deviation as f32,
        }
    }
}
