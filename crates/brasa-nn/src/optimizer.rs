//! Adam and RMSprop, on plain memory and on tensors.

use brasa_core::env::{InvalidField, field};
use brasa_core::read_back;
use brasa_kernels::{AdamStep, adam};
use burn::tensor::{Device, Tensor, TensorData};
use pulp::{Simd, WithSimd};
use serde::{Deserialize, Deserializer, Serialize};

use crate::NnError;
use crate::held::InPlace;

/// An optimizer with its settings.
///
/// ```
/// use brasa_nn::{AdamConfig, OptimizerConfig};
///
/// let config: OptimizerConfig = serde_json::from_str(r#"{ "rms-prop": { "alpha": 0.95 } }"#)?;
/// assert!(matches!(config, OptimizerConfig::RmsProp(config) if config.alpha == 0.95));
/// let invalid = OptimizerConfig::from(AdamConfig { beta_1: 1.0, ..AdamConfig::default() });
/// assert_eq!(invalid.validate().unwrap_err().to_string(), "`beta_1` must be in [0, 1), got 1");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// [`NnError::Field`] for the first invalid field.
    pub fn validate(&self) -> Result<(), NnError> {
        match self {
            Self::Adam(config) => config.validate(),
            Self::RmsProp(config) => config.validate(),
        }
    }
}

/// Settings of Adam (Kingma and Ba 2015).
///
/// ```
/// use brasa_nn::AdamConfig;
///
/// let config: AdamConfig = serde_json::from_str(r#"{ "weight_decay": 0.01 }"#)?;
/// assert_eq!((config.weight_decay, config.epsilon), (0.01, 1e-5));
/// config.validate()?;
/// // Off-policy learners have a smaller epsilon.
/// assert_eq!(AdamConfig::off_policy().epsilon, 1e-8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdamConfig {
    /// Decay of the first moment, in [0, 1). Default 0.9 (the paper).
    pub beta_1: f64,
    /// Decay of the second moment, in [0, 1). Default 0.999 (the paper).
    pub beta_2: f64,
    /// Added to the root of the second moment, above 0. Default 1e-5, as in on-policy implementations since the
    /// original PPO; SAC and DQN use 1e-8. Larger values reduce the steps of weights with small gradients.
    pub epsilon: f64,
    /// Factor of the weight that is added to its gradient (PyTorch's `weight_decay`), at least 0. Default 0. High
    /// values pull all weights to 0.
    pub weight_decay: f64,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-5, weight_decay: 0.0 }
    }
}

/// A table with optional fields.
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

/// For `#[serde(deserialize_with)]`: missing fields are those of [`AdamConfig::off_policy`].
///
/// # Errors
/// If the table has no valid settings of Adam.
///
/// ```
/// use brasa_nn::AdamConfig;
///
/// #[derive(serde::Deserialize)]
/// struct Settings {
///     #[serde(deserialize_with = "brasa_nn::off_policy_adam")]
///     adam: AdamConfig,
/// }
///
/// // The missing epsilon is 1e-8.
/// let settings: Settings = serde_json::from_str(r#"{ "adam": { "beta_1": 0.5 } }"#)?;
/// assert_eq!(settings.adam, AdamConfig { beta_1: 0.5, ..AdamConfig::off_policy() });
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn off_policy_adam<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AdamConfig, D::Error> {
    Ok(PartialAdam::deserialize(deserializer)?.over(AdamConfig::off_policy()))
}

/// The same for a selectable optimizer.
///
/// # Errors
/// If the table has no valid settings of an optimizer.
///
/// ```
/// use brasa_nn::{AdamConfig, OptimizerConfig};
///
/// #[derive(serde::Deserialize)]
/// struct Settings {
///     #[serde(deserialize_with = "brasa_nn::off_policy_optimizer")]
///     optimizer: OptimizerConfig,
/// }
///
/// let settings: Settings = serde_json::from_str(r#"{ "optimizer": { "adam": {} } }"#)?;
/// assert_eq!(settings.optimizer, AdamConfig::off_policy().into());
/// # Ok::<(), serde_json::Error>(())
/// ```
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
    /// The paper's settings, with an epsilon of 1e-8 as used by off-policy learners.
    pub fn off_policy() -> Self {
        Self { epsilon: 1e-8, ..Self::default() }
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`NnError::Field`] for the first invalid field.
    pub fn validate(&self) -> Result<(), NnError> {
        decay("beta_1", self.beta_1)?;
        decay("beta_2", self.beta_2)?;
        field::not_negative("weight_decay", self.weight_decay)?;
        Ok(field::positive("epsilon", self.epsilon)?)
    }
}

/// Settings of RMSprop (Tieleman and Hinton 2012).
///
/// ```
/// use brasa_nn::{RmsPropConfig, RmsPropStyle};
///
/// let config: RmsPropConfig = serde_json::from_str(r#"{ "style": "pytorch" }"#)?;
/// assert_eq!((config.style, config.alpha), (RmsPropStyle::Pytorch, 0.99));
/// let error = RmsPropConfig { epsilon: 0.0, ..config }.validate().unwrap_err();
/// assert_eq!(error.to_string(), "`epsilon` must be finite and above 0, got 0");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RmsPropConfig {
    /// Decay of the mean square, in [0, 1). Default 0.99 (the A2C of Mnih et al. 2016).
    pub alpha: f64,
    /// Keeps the division finite, above 0. Default 1e-5 (Stable-Baselines3's A2C); `style` defines its position.
    pub epsilon: f64,
    /// Decay of the sum of past steps, in [0, 1). Default 0.
    pub momentum: f64,
    /// Factor of the weight that is added to its gradient, at least 0. Default 0.
    pub weight_decay: f64,
    /// Position of epsilon and initial mean square. Default TensorFlow's.
    pub style: RmsPropStyle,
}

/// Two variants of RMSprop that differ at the start and for small gradients.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_nn::{RmsPropConfig, RmsPropStyle, Trainable};
///
/// let device = brasa_device::open_named("cpu")?.autodiff();
/// let mean_square = |style| -> Result<f32, brasa_nn::NnError> {
///     let config = RmsPropConfig { style, ..RmsPropConfig::default() };
///     Ok(Trainable::new(q_network(&device)?, config)?.state().read().1[0])
/// };
/// // The mean square before the first step.
/// assert_eq!(mean_square(RmsPropStyle::Tensorflow)?, 1.0);
/// assert_eq!(mean_square(RmsPropStyle::Pytorch)?, 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RmsPropStyle {
    /// `g / sqrt(v + epsilon)` with initial `v = 1`: the first steps are small. The original A2C was tuned with it.
    #[default]
    Tensorflow,
    /// `g / (sqrt(v) + epsilon)` with initial `v = 0`.
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
    /// [`NnError::Field`] for the first invalid field.
    pub fn validate(&self) -> Result<(), NnError> {
        decay("alpha", self.alpha)?;
        decay("momentum", self.momentum)?;
        field::not_negative("weight_decay", self.weight_decay)?;
        Ok(field::positive("epsilon", self.epsilon)?)
    }
}

/// A decay, whose inverse distance to 1 is a number of steps.
fn decay(field: &'static str, value: f64) -> Result<(), InvalidField> {
    field::rule((0.0..1.0).contains(&value), field, "must be in [0, 1)", value)
}

/// Moments of all parameters, concatenated in the order in which the module is visited.
///
/// The first moments are Adam's mean or RMSprop's momentum, the second moments are the mean square. RMSprop without momentum, the default,
/// keeps no first moments.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_nn::{AdamConfig, Trainable};
///
/// let device = brasa_device::open_named("cpu")?.autodiff();
/// let mut trainable = Trainable::new(q_network(&device)?, AdamConfig::default())?;
/// let (first, second) = trainable.state().read();
/// assert_eq!(first.len(), 2 * 8 + 8 + 8 * 3 + 3);
/// // A saved state continues after 100 steps. Another length is rejected.
/// assert!(trainable.state_mut().write(100, first, second));
/// assert_eq!(trainable.state().steps(), 100);
/// assert!(!trainable.state_mut().write(100, vec![0.0], vec![0.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct OptimizerState {
    pub(crate) steps: u64,
    pub(crate) moments: Moments,
}

/// Storage of the moments by device: plain memory with one fused loop on the CPU, tensors elsewhere.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "one value per learner")]
pub(crate) enum Moments {
    Host { first: Vec<f32>, second: Vec<f32> },
    Device { first: Option<InPlace>, second: InPlace },
}

impl OptimizerState {
    pub(crate) fn new(config: &OptimizerConfig, n_params: usize, device: &Device, on_host: bool) -> Self {
        let second = match config {
            OptimizerConfig::RmsProp(RmsPropConfig { style: RmsPropStyle::Tensorflow, .. }) => 1.0,
            _ => 0.0,
        };
        let has_first = !matches!(config, OptimizerConfig::RmsProp(RmsPropConfig { momentum: 0.0, .. }));
        let moments = if on_host {
            let first = if has_first { vec![0.0; n_params] } else { Vec::new() };
            Moments::Host { first, second: vec![second; n_params] }
        } else {
            Moments::Device {
                first: has_first.then(|| Tensor::zeros([n_params], device).into()),
                second: Tensor::full([n_params], second, device).into(),
            }
        };
        Self { steps: 0, moments }
    }

    /// Number of steps.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// First and second moments, for a checkpoint; waits for the device. The first ones are empty if the optimizer keeps none.
    pub fn read(&self) -> (Vec<f32>, Vec<f32>) {
        let host = |numbers: &InPlace| read_back(numbers.get());
        match &self.moments {
            Moments::Host { first, second } => (first.clone(), second.clone()),
            Moments::Device { first, second } => (first.as_ref().map_or(Vec::new(), host), host(second)),
        }
    }

    /// Restores saved moments; returns `false` if their length differs. First moments of an optimizer that keeps none are ignored.
    pub fn write(&mut self, steps: u64, mut first: Vec<f32>, second: Vec<f32>) -> bool {
        let (has_first, n) = match &self.moments {
            Moments::Host { first, second } => (!first.is_empty(), second.len()),
            Moments::Device { first, second } => (first.is_some(), second.get().dims()[0]),
        };
        if has_first && first.len() != n || second.len() != n {
            return false;
        }
        if !has_first {
            first.clear();
        }
        self.steps = steps;
        self.moments = match &self.moments {
            Moments::Host { .. } => Moments::Host { first, second },
            Moments::Device { second: old, .. } => {
                let device = old.get().device();
                let upload = |values: Vec<f32>| Tensor::<1>::from_data(TensorData::new(values, [n]), &device).into();
                Moments::Device { first: has_first.then(|| upload(first)), second: upload(second) }
            }
        };
        true
    }
}

/// One step of an optimizer with its scalars. `g` is the clipped gradient plus `weight_decay` times the weight.
///
/// Operations have PyTorch's order, so that rounding agrees as well.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OptimizerStep {
    /// `m = b1 m + (1 - b1) g`, `v = b2 v + (1 - b2) g^2`,
    /// `w -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)`.
    Adam(AdamStep),
    /// `v = a v + (1 - a) g^2`, `m = mu m + g / (sqrt(v) + eps)` or `g / sqrt(v + eps)`, `w -= lr m`.
    RmsProp { config: RmsPropConfig, learning_rate: f64 },
}

impl OptimizerStep {
    /// Step number `step`, from 1.
    pub(crate) fn new(config: &OptimizerConfig, step: u64, learning_rate: f64) -> Self {
        match *config {
            OptimizerConfig::Adam(config) => {
                let correction = |beta: f64| 1.0 - beta.powf(step as f64);
                let AdamConfig { beta_1, beta_2, epsilon, weight_decay } = config;
                let step_size = learning_rate / correction(beta_1);
                let root_correction = correction(beta_2).sqrt();
                Self::Adam(AdamStep { beta_1, beta_2, epsilon, weight_decay, step_size, root_correction })
            }
            OptimizerConfig::RmsProp(config) => Self::RmsProp { config, learning_rate },
        }
    }

    /// The step on plain memory; the gradient is multiplied by `scale` first (clipping). `first` is empty if the optimizer keeps none.
    pub(crate) fn on_host(&self, scale: f32, weight: &mut [f32], grad: &[f32], first: &mut [f32], second: &mut [f32]) {
        let n_first = if first.is_empty() { weight.len() } else { first.len() };
        assert!([grad.len(), n_first, second.len()].iter().all(|n| *n == weight.len()), "lengths of the moments");
        // Compiled once per instruction set and selected at run time.
        let arch = pulp::Arch::new();
        match *self {
            Self::Adam(step) => {
                let adam = Adam {
                    beta_1: step.beta_1 as f32,
                    beta_2: step.beta_2 as f32,
                    epsilon: step.epsilon as f32,
                    decay: step.weight_decay as f32,
                    step_size: step.step_size as f32,
                    inverse_root: (1.0 / step.root_correction) as f32,
                    scale,
                };
                arch.dispatch(Pass { each: adam, weight, grad, first, second });
            }
            Self::RmsProp { config, learning_rate } => {
                let epsilon = config.epsilon as f32;
                let (inside, outside) = match config.style {
                    RmsPropStyle::Tensorflow => (epsilon, 0.0),
                    RmsPropStyle::Pytorch => (0.0, epsilon),
                };
                let rms_prop = RmsProp {
                    alpha: config.alpha as f32,
                    momentum: config.momentum as f32,
                    decay: config.weight_decay as f32,
                    learning_rate: learning_rate as f32,
                    inside,
                    outside,
                    scale,
                };
                arch.dispatch(Pass { each: rms_prop, weight, grad, first, second });
            }
        }
    }

    /// What changes from step to step: Adam's step size and the root of its correction, or the learning rate.
    pub(crate) fn factors(&self) -> [f64; 2] {
        match self {
            Self::Adam(step) => [step.step_size, step.root_correction],
            Self::RmsProp { learning_rate, .. } => [*learning_rate, 0.0],
        }
    }

    /// The step on tensors. Both factors may be missing: by which the gradient is multiplied, `[1]`, and [`OptimizerStep::factors`] as data,
    /// `[2]`.
    pub(crate) fn on_device(
        &self,
        weight: Tensor<1>,
        mut grad: Tensor<1>,
        first: &mut Option<Tensor<1>>,
        second: &mut Tensor<1>,
        [scale, factors]: [Option<&Tensor<1>>; 2],
    ) -> Tensor<1> {
        match *self {
            Self::Adam(step) => {
                let mean = first.take().expect("Adam keeps a mean");
                let updated = adam(weight, grad, mean, second.clone(), step, [scale, factors]);
                (*first, *second) = (Some(updated.1), updated.2);
                updated.0
            }
            Self::RmsProp { config, learning_rate } => {
                if let Some(scale) = scale {
                    grad = grad * scale.clone();
                }
                if config.weight_decay > 0.0 {
                    grad = grad + weight.clone() * config.weight_decay;
                }
                *second = second.clone() * config.alpha + grad.clone().square() * (1.0 - config.alpha);
                let root = match config.style {
                    RmsPropStyle::Tensorflow => (second.clone() + config.epsilon).sqrt(),
                    RmsPropStyle::Pytorch => second.clone().sqrt() + config.epsilon,
                };
                let change = match first.take() {
                    Some(momentum) => first.insert(momentum * config.momentum + grad / root).clone(),
                    None => grad / root,
                };
                match factors {
                    Some(factors) => weight - change * factors.clone().slice(0..1),
                    None => weight - change * learning_rate,
                }
            }
        }
    }
}

/// Numbers per block of the optimizer: one or two vector registers.
const LANES: usize = 16;

/// A step of an optimizer for single numbers.
///
/// In networks with many actions most gradients are exactly 0, because few actions are taken; those of actions that are
/// never legal are always 0. Blocks of zero gradients have a faster path to the same result.
trait Elementwise: Copy {
    /// One number: weight, gradient, first and second moment.
    fn one(self, weight: &mut f32, grad: f32, first: &mut f32, second: &mut f32);

    /// The same for a block whose gradients are all 0; the result is bit-identical.
    fn idle(self, weight: &mut [f32; LANES], first: &mut [f32; LANES], second: &mut [f32; LANES]);

    /// Whether the faster path is valid for a gradient of 0.
    fn may_idle(self) -> bool;
}

/// One step for all numbers of a parameter.
struct Pass<'a, E> {
    each: E,
    weight: &'a mut [f32],
    grad: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
}

impl<E: Elementwise> WithSimd for Pass<'_, E> {
    type Output = ();

    // A closure of this size would not be compiled for the selected instruction set.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { each, weight, grad, first, second } = self;
        let has_first = !first.is_empty();
        let (weights, weight) = weight.as_chunks_mut::<LANES>();
        let (grads, grad) = grad.as_chunks::<LANES>();
        let (firsts, first) = first.as_chunks_mut::<LANES>();
        let (seconds, second) = second.as_chunks_mut::<LANES>();
        if has_first {
            for (((weight, grad), first), second) in weights.iter_mut().zip(grads).zip(firsts).zip(seconds) {
                block(each, weight, grad, first, second);
            }
            for (((weight, grad), first), second) in weight.iter_mut().zip(grad).zip(first).zip(second) {
                each.one(weight, *grad, first, second);
            }
        } else {
            // The past moment is 0, and the new one is dropped.
            for ((weight, grad), second) in weights.iter_mut().zip(grads).zip(seconds) {
                block(each, weight, grad, &mut [0.0; LANES], second);
            }
            for ((weight, grad), second) in weight.iter_mut().zip(grad).zip(second) {
                each.one(weight, *grad, &mut 0.0, second);
            }
        }
    }
}

/// One step for a block.
#[inline(always)]
fn block<E: Elementwise>(
    each: E,
    weight: &mut [f32; LANES],
    grad: &[f32; LANES],
    first: &mut [f32; LANES],
    second: &mut [f32; LANES],
) {
    if each.may_idle() && are_zero(grad) {
        // Unchanged memory is not written.
        if !(are_zero(first) && are_zero(second)) {
            each.idle(weight, first, second);
        }
        return;
    }
    for i in 0..LANES {
        each.one(&mut weight[i], grad[i], &mut first[i], &mut second[i]);
    }
}

/// Whether all numbers of a block are 0, of either sign.
#[inline(always)]
pub(crate) fn are_zero(values: &[f32; LANES]) -> bool {
    values.iter().fold(0, |bits, x| bits | x.to_bits()) << 1 == 0
}

/// Smaller moments become 0. The moments of a weight without gradients decay, and numbers without a full mantissa, to which they decay, take
/// a processor thirty times as long. The steps that such moments make are far below the last digit of any weight.
const TINY_MEAN: f32 = 1e-30;
const TINY_SQUARE: f32 = f32::MIN_POSITIVE;
/// The share of the square of a smaller gradient is below [`TINY_SQUARE`].
const TINY_ROOT: f32 = 4e-18;

/// `x`, or 0 if it is smaller than `tiny`; a NaN remains one.
#[inline(always)]
fn or_zero(x: f32, tiny: f32) -> f32 {
    if x.abs() < tiny { 0.0 } else { x }
}

#[derive(Clone, Copy)]
struct Adam {
    beta_1: f32,
    beta_2: f32,
    epsilon: f32,
    decay: f32,
    step_size: f32,
    inverse_root: f32,
    scale: f32,
}

impl Elementwise for Adam {
    #[inline(always)]
    fn one(self, w: &mut f32, g: f32, m: &mut f32, v: &mut f32) {
        let g = g * self.scale + self.decay * *w;
        *m = or_zero(self.beta_1 * *m + (1.0 - self.beta_1) * g, TINY_MEAN);
        let g = or_zero(g, TINY_ROOT);
        *v = or_zero(self.beta_2 * *v + (1.0 - self.beta_2) * g * g, TINY_SQUARE);
        *w -= self.step_size * *m / (v.sqrt() * self.inverse_root + self.epsilon);
    }

    #[inline(always)]
    fn idle(self, weight: &mut [f32; LANES], first: &mut [f32; LANES], second: &mut [f32; LANES]) {
        for i in 0..LANES {
            self.one(&mut weight[i], 0.0, &mut first[i], &mut second[i]);
        }
    }

    #[inline(always)]
    fn may_idle(self) -> bool {
        self.decay == 0.0
    }
}

#[derive(Clone, Copy)]
struct RmsProp {
    alpha: f32,
    momentum: f32,
    decay: f32,
    learning_rate: f32,
    /// Epsilon inside the root, or outside.
    inside: f32,
    outside: f32,
    scale: f32,
}

impl Elementwise for RmsProp {
    #[inline(always)]
    fn one(self, w: &mut f32, g: f32, m: &mut f32, v: &mut f32) {
        let g = g * self.scale + self.decay * *w;
        let root = or_zero(g, TINY_ROOT);
        *v = or_zero(self.alpha * *v + (1.0 - self.alpha) * root * root, TINY_SQUARE);
        *m = or_zero(self.momentum * *m + g / ((*v + self.inside).sqrt() + self.outside), TINY_MEAN);
        *w -= self.learning_rate * *m;
    }

    /// Without root and division, because the numerator is 0.
    #[inline(always)]
    fn idle(self, weight: &mut [f32; LANES], first: &mut [f32; LANES], second: &mut [f32; LANES]) {
        for i in 0..LANES {
            second[i] = or_zero(second[i] * self.alpha, TINY_SQUARE);
            first[i] = or_zero(first[i] * self.momentum, TINY_MEAN);
            weight[i] -= self.learning_rate * first[i];
        }
    }

    #[inline(always)]
    fn may_idle(self) -> bool {
        self.decay == 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_take_the_same_steps() {
        let device = brasa_test::device();
        let tensor = |values: &[f32]| Tensor::<1>::from_floats(values, &device);
        let half = tensor(&[0.5]);
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
            if config == RmsPropConfig::default().into() {
                first.clear();
            }
            let (mut device_weight, mut device_second) = (tensor(&weight), tensor(&second));
            let mut device_first = (!first.is_empty()).then(|| tensor(&first));
            for i in 1..=5 {
                let grad = [0.1 * i as f32, -1.0, 1e-4];
                let step = OptimizerStep::new(&config, i, 0.01);
                step.on_host(0.5, &mut weight, &grad, &mut first, &mut second);
                let (m, v) = (&mut device_first, &mut device_second);
                // Every other one as in a recording.
                let factors = (i % 2 == 0).then(|| tensor(&step.factors().map(|factor| factor as f32)));
                device_weight = step.on_device(device_weight, tensor(&grad), m, v, [Some(&half), factors.as_ref()]);
            }
            for (got, expected) in device_weight.into_data().iter::<f32>().zip(&weight) {
                assert!((got - expected).abs() < 1e-6, "{config:?}: {got} and {expected}");
            }
        }
    }

    /// 35 numbers: two blocks and a rest.
    #[test]
    fn steps_without_momentum_need_no_first_moment() {
        let config = OptimizerConfig::from(RmsPropConfig::default());
        let grad: Vec<f32> = (0..35).map(|i| if i < 16 { 0.0 } else { (i as f32).sin() }).collect();
        let (mut with, mut without) = ((vec![0.5; 35], vec![0.0; 35], vec![1.0; 35]), (vec![0.5; 35], vec![1.0; 35]));
        for step in 1..4 {
            let step = OptimizerStep::new(&config, step, 0.01);
            step.on_host(0.7, &mut with.0, &grad, &mut with.1, &mut with.2);
            step.on_host(0.7, &mut without.0, &grad, &mut [], &mut without.1);
        }
        assert_eq!((with.0, with.2), without);
    }

    #[test]
    fn moments_without_gradients_become_0_without_an_effect_on_weights() {
        let config = OptimizerConfig::from(AdamConfig::off_policy());
        let (mut weight, mut first, mut second) = (vec![0.5f32], vec![0.0], vec![0.0]);
        for step in 1..=200_000 {
            let grad = if step == 1 { 1e-3 } else { 0.0 };
            OptimizerStep::new(&config, step, 1e-3).on_host(1.0, &mut weight, &[grad], &mut first, &mut second);
            assert!(first[0] == 0.0 || first[0].is_normal());
            assert!(second[0] == 0.0 || second[0].is_normal());
        }
        assert_eq!((first[0], second[0]), (0.0, 0.0));
        // As in 64 bits without a limit.
        let (mut exact, mut m, mut v) = (0.5f64, 0.0, 0.0);
        for step in 1..=1000 {
            let grad: f64 = if step == 1 { 1e-3 } else { 0.0 };
            m = 0.9 * m + 0.1 * grad;
            v = 0.999 * v + 0.001 * grad * grad;
            exact -= 1e-3 / (1.0 - 0.9f64.powi(step)) * m / (v.sqrt() / (1.0 - 0.999f64.powi(step)).sqrt() + 1e-8);
        }
        assert!((f64::from(weight[0]) - exact).abs() < 1e-6, "{} instead of {exact}", weight[0]);
    }

    #[test]
    fn gradients_of_0_go_the_short_way_to_the_same_result() {
        let pytorch = RmsPropConfig { style: RmsPropStyle::Pytorch, momentum: 0.5, ..RmsPropConfig::default() };
        for config in [
            OptimizerConfig::from(AdamConfig::default()),
            AdamConfig { weight_decay: 0.1, ..AdamConfig::default() }.into(),
            RmsPropConfig::default().into(),
            pytorch.into(),
        ] {
            // Blocks with and without gradients, some with earlier moments, and a remainder.
            let n = 5 * LANES + 3;
            let grad: Vec<f32> =
                (0..n).map(|i| if (i / LANES).is_multiple_of(2) { 0.0 } else { (i as f32).sin() }).collect();
            let start = |seed: f32| -> Vec<f32> {
                (0..n).map(|i| if i < 3 * LANES { 0.0 } else { (i as f32 * seed).cos().abs() }).collect()
            };
            let [mut weight, mut first, mut second] = [0.3, 0.7, 1.1].map(start);
            let [mut one_weight, mut one_first, mut one_second] = [0.3, 0.7, 1.1].map(start);
            for step in 1..4 {
                let step = OptimizerStep::new(&config, step, 0.01);
                step.on_host(0.7, &mut weight, &grad, &mut first, &mut second);
                // Pieces shorter than a block do not use the faster path.
                let at = |values: &mut Vec<f32>, i: usize| values[i..i + 1].to_vec();
                for i in 0..n {
                    let (mut w, mut m, mut v) = (at(&mut one_weight, i), at(&mut one_first, i), at(&mut one_second, i));
                    step.on_host(0.7, &mut w, &grad[i..i + 1], &mut m, &mut v);
                    (one_weight[i], one_first[i], one_second[i]) = (w[0], m[0], v[0]);
                }
            }
            assert_eq!((&weight, &first, &second), (&one_weight, &one_first, &one_second), "{config:?}");
        }
    }
}
