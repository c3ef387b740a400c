//! Settings of a replay buffer, and what can be wrong with them.

use brasa_core::Schedule;
use brasa_core::env::InvalidField;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Precision;

/// Settings of a replay buffer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReplayConfig {
    /// Observations kept, over all environments; of every agent of a team. Default 1,000,000, as in Stable-Baselines3.
    /// A transition costs one,
    /// the steps at which an episode ended one more. Small buffers forget what they still need, large ones learn from
    /// policies long gone, and take memory.
    pub capacity: usize,
    /// Rewards summed before the value of the observation reached counts. Default 1. More carry rewards back faster,
    /// but they stem from older policies: beyond about 5 that bias shows.
    pub n_step: usize,
    /// The bits spent on a number of an observation. Default 32. Actions always take 32.
    pub precision: Precision,
    /// Draws surprising transitions more often. Default off: every transition is as likely.
    pub prioritized: Option<PrioritizedConfig>,
}

/// Settings of proportional prioritized replay (Schaul et al. 2016). Defaults are the paper's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrioritizedConfig {
    /// Power of the priorities, at least 0. Default 0.6. 0 draws all transitions alike, 1 in proportion to their
    /// error, so that a few noisy ones make up the batch.
    pub alpha: f64,
    /// Power of the correction for drawing unevenly, 0 to 1. Default from 0.4 to 1 over the run. 0 corrects nothing,
    /// so values are biased; 1 corrects in full, at the price of small steps.
    pub beta: Schedule,
    /// Added to every error, in the unit of the value. Default 1e-6. Near 0 a transition once learned never comes
    /// again; beyond the usual error all are drawn alike.
    pub epsilon: f64,
}

impl Default for ReplayConfig {
    fn default() -> Self {
        Self { capacity: 1_000_000, n_step: 1, precision: Precision::F32, prioritized: None }
    }
}

impl Default for PrioritizedConfig {
    fn default() -> Self {
        Self { alpha: 0.6, beta: Schedule::linear(0.4, 1.0), epsilon: 1e-6 }
    }
}

/// A replay buffer that cannot be made, or bytes that do not fit it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BufferError {
    /// A field outside its rule.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// Saved bytes that belong to another buffer, or are broken.
    #[error("replay state: {reason}")]
    State {
        /// What does not fit.
        reason: String,
    },
}

fn fail(field: &'static str, rule: &'static str, value: impl ToString) -> Result<(), BufferError> {
    Err(BufferError::Field(InvalidField::new(field, rule, value.to_string())))
}

impl ReplayConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// [`BufferError::Field`] naming the first field outside its rule.
    pub fn validate(&self) -> Result<(), BufferError> {
        for (field, value) in [("capacity", self.capacity), ("n_step", self.n_step)] {
            if value == 0 {
                return fail(field, "must be at least 1", value);
            }
        }
        if let Precision::U8 { low, high } = self.precision
            && !(low.is_finite() && high.is_finite() && low < high)
        {
            return fail("precision", "must have finite ends, `low` below `high`", format!("{low} to {high}"));
        }
        self.prioritized.as_ref().map_or(Ok(()), PrioritizedConfig::validate)
    }
}

impl PrioritizedConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// [`BufferError::Field`] naming the first field outside its rule.
    pub fn validate(&self) -> Result<(), BufferError> {
        if !(self.alpha.is_finite() && self.alpha >= 0.0) {
            return fail("alpha", "must be finite and at least 0", self.alpha);
        }
        if let Some(rule) = self.beta.broken_rule() {
            return fail("beta", rule, self.beta);
        }
        if self.beta.largest() > 1.0 {
            return fail("beta", "must be in [0, 1]", self.beta);
        }
        if !(self.epsilon.is_finite() && self.epsilon > 0.0) {
            return fail("epsilon", "must be finite and above 0", self.epsilon);
        }
        Ok(())
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
