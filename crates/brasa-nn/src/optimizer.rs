//! Adam with a global gradient norm.

use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::NnError;

/// Settings of Adam (Kingma and Ba 2015).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamConfig {
    /// Decay of the first moment, in [0, 1). Default 0.9 (the paper).
    pub beta_1: f64,
    /// Decay of the second moment, in [0, 1). Default 0.999 (the paper).
    pub beta_2: f64,
    /// Added to the root of the second moment, above 0. Default 1e-5: on-policy implementations since the original
    /// PPO; SAC and DQN use 1e-8. Larger values damp the steps of rarely used weights.
    pub epsilon: f64,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-5 }
    }
}

impl AdamConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// [`NnError::Field`] naming the first field outside its rule.
    pub fn validate(&self) -> Result<(), NnError> {
        for (field, value) in [("beta_1", self.beta_1), ("beta_2", self.beta_2)] {
            if !(0.0..1.0).contains(&value) {
                return Err(NnError::Field { field, rule: "must be in [0, 1)", value: value.to_string() });
            }
        }
        if !(self.epsilon > 0.0 && self.epsilon.is_finite()) {
            let value = self.epsilon.to_string();
            return Err(NnError::Field { field: "epsilon", rule: "must be finite and above 0", value });
        }
        Ok(())
    }
}

/// Moments of all parameters, laid end to end in the order in which the module is visited.
#[derive(Debug, Clone)]
pub struct AdamState {
    pub(crate) steps: u64,
    pub(crate) moments: Moments,
}

/// Where moments live follows the device: one fused loop over plain memory on the host's processor, whole-vector
/// operations elsewhere.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "one value per learner")]
pub(crate) enum Moments {
    Host { first: Vec<f32>, second: Vec<f32> },
    Device { first: Tensor<1>, second: Tensor<1> },
}

impl AdamState {
    pub(crate) fn new(n_params: usize, device: &Device, on_host: bool) -> Self {
        let moments = if on_host {
            Moments::Host { first: vec![0.0; n_params], second: vec![0.0; n_params] }
        } else {
            let zeros = || Tensor::zeros([n_params], device);
            Moments::Device { first: zeros(), second: zeros() }
        };
        Self { steps: 0, moments }
    }

    /// Steps taken.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// First and second moments, for a checkpoint; waits for the device.
    pub fn read(&self) -> (Vec<f32>, Vec<f32>) {
        let host = |tensor: &Tensor<1>| tensor.to_data().iter::<f32>().collect();
        match &self.moments {
            Moments::Host { first, second } => (first.clone(), second.clone()),
            Moments::Device { first, second } => (host(first), host(second)),
        }
    }

    /// Goes on from saved moments; `false` where they have another length.
    pub fn write(&mut self, steps: u64, first: Vec<f32>, second: Vec<f32>) -> bool {
        let n = match &self.moments {
            Moments::Host { first, .. } => first.len(),
            Moments::Device { first, .. } => first.dims()[0],
        };
        if first.len() != n || second.len() != n {
            return false;
        }
        self.steps = steps;
        self.moments = match &self.moments {
            Moments::Host { .. } => Moments::Host { first, second },
            Moments::Device { first: old, .. } => {
                let upload = |values: Vec<f32>| Tensor::from_data(TensorData::new(values, [n]), &old.device());
                Moments::Device { first: upload(first), second: upload(second) }
            }
        };
        true
    }
}

/// One step of Adam, its scalars worked out:
///
/// `m = b1 m + (1 - b1) g`, `v = b2 v + (1 - b2) g^2`, `w -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)`:
/// PyTorch's order of operations, so that rounding agrees as well.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdamStep {
    beta_1: f64,
    beta_2: f64,
    epsilon: f64,
    /// Learning rate over the correction of the first moment.
    step_size: f64,
    /// Root of the correction of the second moment.
    root_correction: f64,
}

impl AdamStep {
    /// Step number `step`, from 1.
    pub(crate) fn new(config: &AdamConfig, step: u64, learning_rate: f64) -> Self {
        let correction = |beta: f64| 1.0 - beta.powf(step as f64);
        Self {
            beta_1: config.beta_1,
            beta_2: config.beta_2,
            epsilon: config.epsilon,
            step_size: learning_rate / correction(config.beta_1),
            root_correction: correction(config.beta_2).sqrt(),
        }
    }

    /// The step on plain memory; `scale` multiplies the gradient first (clipping).
    pub(crate) fn on_host(&self, scale: f32, weight: &mut [f32], grad: &[f32], first: &mut [f32], second: &mut [f32]) {
        let (beta_1, beta_2, epsilon) = (self.beta_1 as f32, self.beta_2 as f32, self.epsilon as f32);
        let (step_size, inverse_root) = (self.step_size as f32, (1.0 / self.root_correction) as f32);
        let n = weight.len();
        let (grad, first, second) = (&grad[..n], &mut first[..n], &mut second[..n]);
        for i in 0..n {
            let g = grad[i] * scale;
            first[i] = beta_1 * first[i] + (1.0 - beta_1) * g;
            second[i] = beta_2 * second[i] + (1.0 - beta_2) * g * g;
            weight[i] -= step_size * first[i] / (second[i].sqrt() * inverse_root + epsilon);
        }
    }

    /// The step on whole tensors; `scale` has one element, so that nothing waits for the device.
    pub(crate) fn on_device(
        &self,
        scale: Option<Tensor<1>>,
        weight: Tensor<1>,
        grad: Tensor<1>,
        first: &mut Tensor<1>,
        second: &mut Tensor<1>,
    ) -> Tensor<1> {
        let grad = match scale {
            Some(scale) => grad * scale,
            None => grad,
        };
        *first = first.clone() * self.beta_1 + grad.clone() * (1.0 - self.beta_1);
        *second = second.clone() * self.beta_2 + grad.square() * (1.0 - self.beta_2);
        let root = second.clone().sqrt() / self.root_correction;
        weight - first.clone() * self.step_size / (root + self.epsilon)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_take_the_same_steps() {
        let device = brasa_test::device();
        let tensor = |values: &[f32]| Tensor::<1>::from_floats(values, &device);
        let (mut weight, mut first, mut second) = (vec![0.5, -0.25, 2.0], vec![0.0; 3], vec![0.0; 3]);
        let (mut device_weight, mut device_first, mut device_second) =
            (tensor(&weight), tensor(&first), tensor(&second));
        for step in 1..=5 {
            let grad = [0.1 * step as f32, -1.0, 1e-4];
            let adam = AdamStep::new(&AdamConfig::default(), step, 0.01);
            adam.on_host(0.5, &mut weight, &grad, &mut first, &mut second);
            let scale = Some(tensor(&[0.5]));
            let (m, v) = (&mut device_first, &mut device_second);
            device_weight = adam.on_device(scale, device_weight, tensor(&grad), m, v);
        }
        for (got, expected) in device_weight.into_data().iter::<f32>().zip(&weight) {
            assert!((got - expected).abs() < 1e-6, "{got} and {expected}");
        }
    }
}
