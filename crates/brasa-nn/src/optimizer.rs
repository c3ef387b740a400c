//! Adam and RMSprop, on plain memory and on whole tensors.

use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Deserializer, Serialize};

use crate::NnError;

/// Which optimizer, with its settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimizerConfig {
    /// Adam.
    Adam(AdamConfig),
    /// RMSprop.
    RmsProp(RmsPropConfig),
}

impl From<AdamConfig> for OptimizerConfig {
    fn from(config: AdamConfig) -> Self {
        Self::Adam(config)
    }
}

impl From<RmsPropConfig> for OptimizerConfig {
    fn from(config: RmsPropConfig) -> Self {
        Self::RmsProp(config)
    }
}

impl OptimizerConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// [`NnError::Field`] naming the first field outside its rule.
    pub fn validate(&self) -> Result<(), NnError> {
        match self {
            Self::Adam(config) => config.validate(),
            Self::RmsProp(config) => config.validate(),
        }
    }
}

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
    /// Added to each gradient as this share of its weight (PyTorch's `weight_decay`), at least 0. Default 0. High
    /// values pull all weights to 0.
    pub weight_decay: f64,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-5, weight_decay: 0.0 }
    }
}

/// A table in which anything may be left out.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PartialAdam {
    beta_1: Option<f64>,
    beta_2: Option<f64>,
    epsilon: Option<f64>,
    weight_decay: Option<f64>,
}

impl PartialAdam {
    fn over(self, default: AdamConfig) -> AdamConfig {
        AdamConfig {
            beta_1: self.beta_1.unwrap_or(default.beta_1),
            beta_2: self.beta_2.unwrap_or(default.beta_2),
            epsilon: self.epsilon.unwrap_or(default.epsilon),
            weight_decay: self.weight_decay.unwrap_or(default.weight_decay),
        }
    }
}

/// For `#[serde(deserialize_with)]`: what a table leaves out is that of [`AdamConfig::off_policy`].
///
/// # Errors
/// Where the table is none of Adam's settings.
pub fn off_policy_adam<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AdamConfig, D::Error> {
    Ok(PartialAdam::deserialize(deserializer)?.over(AdamConfig::off_policy()))
}

/// The same where the optimizer may be chosen.
///
/// # Errors
/// Where the table is none of an optimizer's settings.
pub fn off_policy_optimizer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OptimizerConfig, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Partial {
        Adam(PartialAdam),
        RmsProp(RmsPropConfig),
    }
    Ok(match Partial::deserialize(deserializer)? {
        Partial::Adam(partial) => partial.over(AdamConfig::off_policy()).into(),
        Partial::RmsProp(config) => config.into(),
    })
}

impl AdamConfig {
    /// The paper's settings, with the epsilon of 1e-8 that off-policy learners use.
    pub fn off_policy() -> Self {
        Self { epsilon: 1e-8, ..Self::default() }
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`NnError::Field`] naming the first field outside its rule.
    pub fn validate(&self) -> Result<(), NnError> {
        share("beta_1", self.beta_1)?;
        share("beta_2", self.beta_2)?;
        at_least_0("weight_decay", self.weight_decay)?;
        above_0("epsilon", self.epsilon)
    }
}

/// Settings of RMSprop (Tieleman and Hinton 2012).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RmsPropConfig {
    /// Decay of the mean square, in [0, 1). Default 0.99 (the A2C of Mnih et al. 2016).
    pub alpha: f64,
    /// Keeps the division finite, above 0. Default 1e-5 (Stable-Baselines3's A2C); where it stands, `style` says.
    pub epsilon: f64,
    /// Decay of the sum of past steps, in [0, 1). Default 0.
    pub momentum: f64,
    /// Added to each gradient as this share of its weight, at least 0. Default 0.
    pub weight_decay: f64,
    /// Where epsilon stands and how the mean square starts. Default TensorFlow's.
    pub style: RmsPropStyle,
}

/// Two readings of RMSprop that behave differently at the start and for small gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RmsPropStyle {
    /// `g / sqrt(v + epsilon)` with `v` from 1: the first steps are small. What A2C was tuned with.
    #[default]
    Tensorflow,
    /// `g / (sqrt(v) + epsilon)` with `v` from 0.
    Pytorch,
}

impl Default for RmsPropConfig {
    fn default() -> Self {
        Self { alpha: 0.99, epsilon: 1e-5, momentum: 0.0, weight_decay: 0.0, style: RmsPropStyle::Tensorflow }
    }
}

impl RmsPropConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// [`NnError::Field`] naming the first field outside its rule.
    pub fn validate(&self) -> Result<(), NnError> {
        share("alpha", self.alpha)?;
        share("momentum", self.momentum)?;
        at_least_0("weight_decay", self.weight_decay)?;
        above_0("epsilon", self.epsilon)
    }
}

fn check(field: &'static str, value: f64, sound: bool, rule: &'static str) -> Result<(), NnError> {
    if sound { Ok(()) } else { Err(NnError::Field { field, rule, value: value.to_string() }) }
}

fn share(field: &'static str, value: f64) -> Result<(), NnError> {
    check(field, value, (0.0..1.0).contains(&value), "must be in [0, 1)")
}

fn at_least_0(field: &'static str, value: f64) -> Result<(), NnError> {
    check(field, value, value >= 0.0 && value.is_finite(), "must be finite and at least 0")
}

fn above_0(field: &'static str, value: f64) -> Result<(), NnError> {
    check(field, value, value > 0.0 && value.is_finite(), "must be finite and above 0")
}

/// Moments of all parameters, laid end to end in the order in which the module is visited.
///
/// The first are Adam's mean or RMSprop's momentum, the second the mean square.
#[derive(Debug, Clone)]
pub struct OptimizerState {
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

impl OptimizerState {
    pub(crate) fn new(config: &OptimizerConfig, n_params: usize, device: &Device, on_host: bool) -> Self {
        let second = match config {
            OptimizerConfig::RmsProp(RmsPropConfig { style: RmsPropStyle::Tensorflow, .. }) => 1.0,
            _ => 0.0,
        };
        let moments = if on_host {
            Moments::Host { first: vec![0.0; n_params], second: vec![second; n_params] }
        } else {
            Moments::Device {
                first: Tensor::zeros([n_params], device),
                second: Tensor::full([n_params], second, device),
            }
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

/// One step of an optimizer, its scalars worked out. `g` is the clipped gradient plus `weight_decay` times the weight.
///
/// Operations come in PyTorch's order, so that rounding agrees as well.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OptimizerStep {
    /// `m = b1 m + (1 - b1) g`, `v = b2 v + (1 - b2) g^2`,
    /// `w -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)`.
    Adam {
        config: AdamConfig,
        /// Learning rate over the correction of the first moment.
        step_size: f64,
        /// Root of the correction of the second moment.
        root_correction: f64,
    },
    /// `v = a v + (1 - a) g^2`, `m = mu m + g / (sqrt(v) + eps)` or `g / sqrt(v + eps)`, `w -= lr m`.
    RmsProp { config: RmsPropConfig, learning_rate: f64 },
}

impl OptimizerStep {
    /// Step number `step`, from 1.
    pub(crate) fn new(config: &OptimizerConfig, step: u64, learning_rate: f64) -> Self {
        match *config {
            OptimizerConfig::Adam(config) => {
                let correction = |beta: f64| 1.0 - beta.powf(step as f64);
                Self::Adam {
                    config,
                    step_size: learning_rate / correction(config.beta_1),
                    root_correction: correction(config.beta_2).sqrt(),
                }
            }
            OptimizerConfig::RmsProp(config) => Self::RmsProp { config, learning_rate },
        }
    }

    /// The step on plain memory; `scale` multiplies the gradient first (clipping).
    pub(crate) fn on_host(&self, scale: f32, weight: &mut [f32], grad: &[f32], first: &mut [f32], second: &mut [f32]) {
        assert!([grad.len(), first.len(), second.len()].iter().all(|n| *n == weight.len()), "lengths of the moments");
        // Iterators instead of indices: their bounds are in plain sight, so that the loops become vector instructions,
        // compiled once per instruction set and chosen at run time.
        let arch = pulp::Arch::new();
        match *self {
            Self::Adam { config, step_size, root_correction } => {
                let (beta_1, beta_2, epsilon) = (config.beta_1 as f32, config.beta_2 as f32, config.epsilon as f32);
                let (step_size, inverse_root) = (step_size as f32, (1.0 / root_correction) as f32);
                let decay = config.weight_decay as f32;
                arch.dispatch(
                    #[inline(always)]
                    || {
                        for (((w, g), m), v) in weight.iter_mut().zip(grad).zip(first).zip(second) {
                            let g = g * scale + decay * *w;
                            *m = beta_1 * *m + (1.0 - beta_1) * g;
                            *v = beta_2 * *v + (1.0 - beta_2) * g * g;
                            *w -= step_size * *m / (v.sqrt() * inverse_root + epsilon);
                        }
                    },
                );
            }
            Self::RmsProp { config, learning_rate } => {
                let (alpha, epsilon, momentum) = (config.alpha as f32, config.epsilon as f32, config.momentum as f32);
                let (learning_rate, decay) = (learning_rate as f32, config.weight_decay as f32);
                let (inside, outside) = match config.style {
                    RmsPropStyle::Tensorflow => (epsilon, 0.0),
                    RmsPropStyle::Pytorch => (0.0, epsilon),
                };
                arch.dispatch(
                    #[inline(always)]
                    || {
                        for (((w, g), m), v) in weight.iter_mut().zip(grad).zip(first).zip(second) {
                            let g = g * scale + decay * *w;
                            *v = alpha * *v + (1.0 - alpha) * g * g;
                            *m = momentum * *m + g / ((*v + inside).sqrt() + outside);
                            *w -= learning_rate * *m;
                        }
                    },
                );
            }
        }
    }

    /// The step on whole tensors, with a gradient that is clipped already.
    pub(crate) fn on_device(
        &self,
        weight: Tensor<1>,
        mut grad: Tensor<1>,
        first: &mut Tensor<1>,
        second: &mut Tensor<1>,
    ) -> Tensor<1> {
        let decay = match self {
            Self::Adam { config, .. } => config.weight_decay,
            Self::RmsProp { config, .. } => config.weight_decay,
        };
        if decay > 0.0 {
            grad = grad + weight.clone() * decay;
        }
        match *self {
            Self::Adam { config, step_size, root_correction } => {
                *first = first.clone() * config.beta_1 + grad.clone() * (1.0 - config.beta_1);
                *second = second.clone() * config.beta_2 + grad.square() * (1.0 - config.beta_2);
                let root = second.clone().sqrt() / root_correction;
                weight - first.clone() * step_size / (root + config.epsilon)
            }
            Self::RmsProp { config, learning_rate } => {
                *second = second.clone() * config.alpha + grad.clone().square() * (1.0 - config.alpha);
                let root = match config.style {
                    RmsPropStyle::Tensorflow => (second.clone() + config.epsilon).sqrt(),
                    RmsPropStyle::Pytorch => second.clone().sqrt() + config.epsilon,
                };
                *first = first.clone() * config.momentum + grad / root;
                weight - first.clone() * learning_rate
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_take_the_same_steps() {
        let device = brasa_test::device();
        let tensor = |values: &[f32]| Tensor::<1>::from_floats(values, &device);
        let decayed = AdamConfig { weight_decay: 0.1, ..AdamConfig::default() };
        let pytorch = RmsPropConfig { style: RmsPropStyle::Pytorch, momentum: 0.5, ..RmsPropConfig::default() };
        for config in [
            OptimizerConfig::from(AdamConfig::default()),
            decayed.into(),
            RmsPropConfig::default().into(),
            RmsPropConfig { weight_decay: 0.1, ..pytorch }.into(),
        ] {
            let start = if config == RmsPropConfig::default().into() { 1.0 } else { 0.0 };
            let (mut weight, mut first, mut second) = (vec![0.5, -0.25, 2.0], vec![0.0; 3], vec![start; 3]);
            let (mut device_weight, mut device_first, mut device_second) =
                (tensor(&weight), tensor(&first), tensor(&second));
            for step in 1..=5 {
                let grad = [0.1 * step as f32, -1.0, 1e-4];
                let step = OptimizerStep::new(&config, step, 0.01);
                step.on_host(0.5, &mut weight, &grad, &mut first, &mut second);
                let (m, v) = (&mut device_first, &mut device_second);
                device_weight = step.on_device(device_weight, tensor(&grad) * 0.5, m, v);
            }
            for (got, expected) in device_weight.into_data().iter::<f32>().zip(&weight) {
                assert!((got - expected).abs() < 1e-6, "{config:?}: {got} and {expected}");
            }
        }
    }
}
