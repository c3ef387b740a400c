//! Adam and RMSprop: their settings, and what they keep between steps.

mod step;

pub(crate) use step::{OptimizerStep, are_zero};

use brasa_core::env::{InvalidField, field};
use brasa_core::read_back;
use burn::tensor::{Device, Tensor, TensorData};
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
