//! Settings of a replay buffer, and errors.

use brasa_core::Schedule;
use brasa_core::env::{EnvSpec, InvalidField, field};
use brasa_device::DeviceError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::MOST_STEPS;
use crate::Precision;

/// Settings of a replay buffer.
///
/// ```
/// use brasa_buffers::{PrioritizedConfig, ReplayConfig};
///
/// let config: ReplayConfig = toml::from_str("capacity = 50_000\nn_step = 3\nprioritized = {}")?;
/// assert_eq!((config.capacity, config.n_step), (50_000, 3));
/// assert_eq!(config.prioritized, Some(PrioritizedConfig::default()));
/// config.validate()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReplayConfig {
    /// Number of stored observations over all environments; for independent learners, per agent. Default 1,000,000, as
    /// in Stable-Baselines3. A transition takes one, and a step with the end of an episode one more. Small buffers lose
    /// useful experience; large ones contain experience of old policies and take more memory.
    pub capacity: usize,
    /// Number of rewards in n-step returns. Default 1. Larger values propagate rewards faster, but without off-policy
    /// correction: above about 5 the bias becomes visible.
    pub n_step: usize,
    /// The bits spent on a number of an observation. Default 32. Actions always take 32.
    pub precision: Precision,
    /// Whether transitions are stored in the memory of the host if the run is on another device. Default off. For a buffer that does
    /// not fit on a GPU: each step then waits for the device, and each update uploads its batch.
    pub on_host: bool,
    /// Prioritized sampling by TD error. Default off: uniform sampling.
    pub prioritized: Option<PrioritizedConfig>,
    /// Sequences instead of single transitions, for a network that remembers, and only for one.
    pub sequences: Option<SequenceConfig>,
}

/// Sequences of a replay buffer (Kapturowski et al. 2019). A sequence begins with what the policy remembered there, and goes on over the ends of
/// episodes.
///
/// ```
/// use brasa_buffers::{ReplayConfig, SequenceConfig};
///
/// let config: ReplayConfig = toml::from_str("sequences = { length = 20, burn_in = 10 }")?;
/// assert_eq!(config.sequences, Some(SequenceConfig { length: 20, burn_in: 10, ..SequenceConfig::default() }));
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SequenceConfig {
    /// Steps to learn from. Default 16. Gradients go back through so many steps.
    pub length: usize,
    /// Steps before them, from which a network computes what it remembers by now, without learning. Default 0: what the policy remembered
    /// when it acted, which is outdated if the network has changed much since then.
    pub burn_in: usize,
    /// With priorities: the share of the greatest error of a sequence in its priority, 0 to 1; the rest is that of the mean error.
    /// Default 0.9.
    pub max_share: f64,
}

impl Default for SequenceConfig {
    fn default() -> Self {
        Self { length: 16, burn_in: 0, max_share: 0.9 }
    }
}

impl SequenceConfig {
    /// Sequences that have at least `batch_size` steps to learn from.
    ///
    /// ```
    /// use brasa_buffers::SequenceConfig;
    ///
    /// assert_eq!(SequenceConfig::default().n_sequences(256), 16);
    /// ```
    pub fn n_sequences(&self, batch_size: usize) -> usize {
        batch_size.div_ceil(self.length)
    }
}

/// Settings of proportional prioritized replay (Schaul et al. 2016). Defaults are the paper's.
///
/// ```
/// use brasa_buffers::PrioritizedConfig;
/// use brasa_core::Schedule;
///
/// let config = PrioritizedConfig { alpha: 0.5, ..PrioritizedConfig::default() };
/// config.validate()?;
/// // The importance-sampling weights correct completely at the end of the run.
/// assert_eq!(config.beta.at(1.0), 1.0);
/// let config = PrioritizedConfig { beta: Schedule::Constant(1.5), ..config };
/// assert_eq!(config.validate().unwrap_err().to_string(), "`beta` must be in [0, 1], got 1.5");
/// # Ok::<(), brasa_buffers::BufferError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PrioritizedConfig {
    /// Exponent of the priorities, at least 0. Default 0.6. 0 is uniform sampling; 1 samples in proportion to the
    /// error, so that a few noisy transitions can dominate a batch.
    pub alpha: f64,
    /// Exponent of the importance-sampling weights, 0 to 1. Default linear from 0.4 to 1 over the run. 0 corrects
    /// nothing, so values are biased; 1 corrects completely, with smaller steps.
    pub beta: Schedule,
    /// Added to every absolute TD error, in the unit of the value. Default 1e-6. With values near 0 a learned
    /// transition is never sampled again; values above typical errors give uniform sampling.
    pub epsilon: f64,
}

impl Default for ReplayConfig {
    fn default() -> Self {
        Self {
            capacity: 1_000_000,
            n_step: 1,
            precision: Precision::F32,
            on_host: false,
            prioritized: None,
            sequences: None,
        }
    }
}

impl Default for PrioritizedConfig {
    fn default() -> Self {
        Self { alpha: 0.6, beta: Schedule::linear(0.4, 1.0), epsilon: 1e-6 }
    }
}

/// A replay buffer that cannot be constructed, or saved bytes that do not fit.
///
/// ```
/// use brasa_buffers::{BufferError, ReplayConfig};
///
/// let error = ReplayConfig { capacity: 0, ..ReplayConfig::default() }.validate().unwrap_err();
/// assert!(matches!(error, BufferError::Field(_)));
/// assert_eq!(error.to_string(), "`capacity` must be at least 1, got 0");
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BufferError {
    /// An invalid setting.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// The host cannot store tensors in this program.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A row was truncated at a step where its environments permit no truncation: a successor would be overwritten.
    #[error(
        "`truncation_interval` must be at most the steps between two truncations of an environment, got {}: a row was truncated \
        sooner. Build the buffer from the `EnvSpec` of the environments that are stepped",
        interval_text(*.interval)
    )]
    EarlyTruncation {
        /// The interval of the specification.
        interval: u64,
    },
    /// Saved bytes of another buffer, or invalid bytes.
    #[error("replay state: {reason}")]
    State {
        /// The reason.
        reason: String,
    },
}

impl BufferError {
    /// The error of a buffer for environments of `spec` whose number of early truncations was read from the device.
    ///
    /// # Errors
    /// [`BufferError::EarlyTruncation`] if `number` is above 0.
    pub fn of_early_truncations(spec: &EnvSpec, number: f32) -> Result<(), Self> {
        match number > 0.0 {
            true => Err(Self::EarlyTruncation { interval: spec.truncation_interval }),
            false => Ok(()),
        }
    }
}

fn interval_text(interval: u64) -> String {
    if interval == EnvSpec::NEVER { "`EnvSpec::NEVER`".to_owned() } else { interval.to_string() }
}

impl ReplayConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// [`BufferError::Field`] for the first invalid field.
    pub fn validate(&self) -> Result<(), BufferError> {
        for (field, value) in [("capacity", self.capacity), ("n_step", self.n_step)] {
            field::at_least_one(field, value as u64)?;
        }
        if let Precision::U8 { low, high } = self.precision {
            let holds = low.is_finite() && high.is_finite() && low < high && (high - low).is_finite();
            let rule = "must have finite ends at a finite distance, `low` below `high`";
            field::rule(holds, "precision", rule, format!("{low} to {high}"))?;
        }
        if let Some(SequenceConfig { length, burn_in, max_share }) = self.sequences {
            field::at_least_one("length", length as u64)?;
            field::at_most("length", length as u64, MOST_STEPS)?;
            field::at_most("burn_in", burn_in as u64, MOST_STEPS)?;
            field::share("max_share", max_share)?;
        }
        self.prioritized.as_ref().map_or(Ok(()), PrioritizedConfig::validate)
    }
}

impl PrioritizedConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// [`BufferError::Field`] for the first invalid field.
    pub fn validate(&self) -> Result<(), BufferError> {
        field::not_negative("alpha", self.alpha)?;
        self.beta.check("beta")?;
        field::rule(self.beta.largest() <= 1.0, "beta", "must be in [0, 1]", self.beta)?;
        Ok(field::positive("epsilon", self.epsilon)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_from_toml() {
        let text = r#"
            capacity = 5000
            n_step = 3
            precision = { u8 = { low = 0.0, high = 255.0 } }
            prioritized = { beta = 0.5 }
        "#;
        let config: ReplayConfig = toml::from_str(text).expect("it is sound");
        assert_eq!(config.precision, Precision::U8 { low: 0.0, high: 255.0 });
        let prioritized = PrioritizedConfig { beta: Schedule::from(0.5), ..PrioritizedConfig::default() };
        assert_eq!(config.prioritized, Some(prioritized));
        assert_eq!(toml::from_str::<ReplayConfig>(&toml::to_string(&config).expect("TOML")).expect("TOML"), config);
        let half: ReplayConfig = toml::from_str("precision = \"f16\"").expect("it is sound");
        assert_eq!(half, ReplayConfig { precision: Precision::F16, ..ReplayConfig::default() });
        assert!(toml::from_str::<ReplayConfig>("capasity = 1").is_err());
    }

    #[test]
    fn messages_name_field_rule_and_value() {
        let text = |config: ReplayConfig| config.validate().expect_err("the value is out of range").to_string();
        let prioritized = |config| ReplayConfig { prioritized: Some(config), ..ReplayConfig::default() };
        let zero = ReplayConfig { n_step: 0, ..ReplayConfig::default() };
        assert_eq!(text(zero), "`n_step` must be at least 1, got 0");
        let sequences = |config| ReplayConfig { sequences: Some(config), ..ReplayConfig::default() };
        let none = SequenceConfig { length: 0, ..SequenceConfig::default() };
        assert_eq!(text(sequences(none)), "`length` must be at least 1, got 0");
        let long = SequenceConfig { burn_in: 2000, ..SequenceConfig::default() };
        assert!(text(sequences(long)).starts_with("`burn_in` must be at most 1000"));
        let more = SequenceConfig { max_share: 1.5, ..SequenceConfig::default() };
        assert!(text(sequences(more)).starts_with("`max_share` must be in [0, 1]"));
        let negative = PrioritizedConfig { alpha: -1.0, ..PrioritizedConfig::default() };
        assert_eq!(text(prioritized(negative)), "`alpha` must be finite and at least 0, got -1");
        for beta in [Schedule::from(7.0), Schedule::linear(0.4, 1.5)] {
            let message = text(prioritized(PrioritizedConfig { beta, ..PrioritizedConfig::default() }));
            assert_eq!(message, format!("`beta` must be in [0, 1], got {beta}"));
        }
        let none = PrioritizedConfig { epsilon: 0.0, ..PrioritizedConfig::default() };
        assert_eq!(text(prioritized(none)), "`epsilon` must be finite and above 0, got 0");
        assert!(ReplayConfig::default().validate().is_ok());
    }
}
