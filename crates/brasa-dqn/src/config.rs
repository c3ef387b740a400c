//! Settings of deep Q-learning.

use brasa_core::Schedule;
use brasa_nn::{AdamConfig, NnError, OptimizerConfig, off_policy_optimizer};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Settings of deep Q-learning. Defaults are those of Stable-Baselines3, apart from `double`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DqnConfig {
    /// Discount per step, 0 to 1. Default 0.99: rewards count for about a hundred steps.
    pub gamma: f64,
    /// Share by which the target network follows the learned one at each of its updates, in (0, 1]. Default 1: a copy.
    pub tau: f64,
    /// Updates between updates of the target network. Default 2500: Stable-Baselines3's 10,000 environment steps, if there
    /// is one update per four of them (`updates_per_step` 0.25). Short intervals chase their own estimates, long ones learn from old ones.
    pub target_update_interval: u64,
    /// Whether the learned network chooses the next action that the target network judges (van Hasselt et al. 2016).
    /// Default on: a single network's largest estimate is too large.
    pub double: bool,
    /// Step size of the optimizer. Default 1e-4.
    pub learning_rate: Schedule,
    /// Share of actions that are random, over the first `exploration_fraction` of the run; the last value holds from
    /// there on. Default linear from 1 to 0.05.
    pub epsilon: Schedule,
    /// Share of the run in which `epsilon` changes, in (0, 1]. Default 0.1.
    pub exploration_fraction: f64,
    /// Largest norm of all gradients together; absent for no limit. Default 10.
    pub max_grad_norm: Option<f64>,
    /// The optimizer. Default Adam with epsilon 1e-8.
    #[serde(deserialize_with = "off_policy_optimizer")]
    pub optimizer: OptimizerConfig,
}

impl Default for DqnConfig {
    fn default() -> Self {
        Self {
            gamma: 0.99,
            tau: 1.0,
            target_update_interval: 2500,
            double: true,
            learning_rate: Schedule::Constant(1e-4),
            epsilon: Schedule::linear(1.0, 0.05),
            exploration_fraction: 0.1,
            max_grad_norm: Some(10.0),
            optimizer: AdamConfig::off_policy().into(),
        }
    }
}

/// Settings that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DqnError {
    /// A field outside its rule.
    #[error("`{field}` {rule}, got {value}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// What it must be.
        rule: &'static str,
        /// What it was.
        value: String,
    },
    /// The network or optimizer.
    #[error(transparent)]
    Nn(#[from] NnError),
}

impl DqnConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// [`DqnError::Field`] naming the first field outside its rule.
    pub fn validate(&self) -> Result<(), DqnError> {
        let fail = |field, rule, value: String| Err(DqnError::Field { field, rule, value });
        if !(0.0..=1.0).contains(&self.gamma) {
            return fail("gamma", "must be in [0, 1]", self.gamma.to_string());
        }
        for (field, value) in [("tau", self.tau), ("exploration_fraction", self.exploration_fraction)] {
            if !(value > 0.0 && value <= 1.0) {
                return fail(field, "must be in (0, 1]", value.to_string());
            }
        }
        if self.target_update_interval == 0 {
            return fail("target_update_interval", "must be at least 1", "0".into());
        }
        if let Some(rule) = self.learning_rate.broken_rule() {
            return fail("learning_rate", rule, self.learning_rate.to_string());
        }
        if self.epsilon.broken_rule().is_some() || [0.0, 1.0].iter().any(|at| self.epsilon.at(*at) > 1.0) {
            return fail("epsilon", "must have values in [0, 1]", self.epsilon.to_string());
        }
        if let Some(value) = self.max_grad_norm.filter(|value| !(value.is_finite() && *value > 0.0)) {
            return fail(
                "max_grad_norm",
                "must be finite and above 0 (leave it out to switch it off)",
                value.to_string(),
            );
        }
        Ok(self.optimizer.validate()?)
    }
}
