//! Settings of soft actor-critic.

use brasa_core::Schedule;
use brasa_nn::{AdamConfig, NnError, off_policy_adam};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Settings of soft actor-critic. Defaults are those of Haarnoja et al. 2018 and Stable-Baselines3.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SacConfig {
    /// Discount per step, 0 to 1. Default 0.99: rewards count for about a hundred steps.
    pub gamma: f64,
    /// Share by which target critics follow the learned ones at each of their updates, in (0, 1]. Default 0.005. High
    /// values chase their own estimates, low ones learn from old ones.
    pub tau: f64,
    /// Updates between updates of the target critics, the first of which follows the first update. Default 1.
    pub target_update_interval: u64,
    /// Step size of Adam for the actor. Default 3e-4.
    pub learning_rate: Schedule,
    /// Step size for the critics; absent for the actor's. Default absent.
    pub critic_learning_rate: Option<Schedule>,
    /// Step size for the temperature; absent for the actor's. Default absent.
    pub ent_coef_learning_rate: Option<Schedule>,
    /// Weight of the entropy, the temperature: a number, or `{ auto = 1.0 }` to learn it from that start. Default learned
    /// from 1. High values keep the policy random.
    pub ent_coef: EntCoef,
    /// Entropy in nats that a learned temperature steers to; absent for minus the number of actions. Default absent.
    /// Entropy is that of actions in [-1, 1]: 0.69 per action is uniform.
    pub target_entropy: Option<f64>,
    /// Largest norm of the gradients of actor and of critics, each; absent for no limit. Default absent.
    pub max_grad_norm: Option<f64>,
    /// The optimizer of all three. Default epsilon 1e-8.
    #[serde(deserialize_with = "off_policy_adam")]
    pub adam: AdamConfig,
}

/// The temperature.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EntCoef {
    /// The same throughout.
    Fixed(f64),
    /// Learned.
    Auto {
        /// The start.
        auto: f64,
    },
}

impl Default for SacConfig {
    fn default() -> Self {
        Self {
            gamma: 0.99,
            tau: 0.005,
            target_update_interval: 1,
            learning_rate: Schedule::Constant(3e-4),
            critic_learning_rate: None,
            ent_coef_learning_rate: None,
            ent_coef: EntCoef::Auto { auto: 1.0 },
            target_entropy: None,
            max_grad_norm: None,
            adam: AdamConfig::off_policy(),
        }
    }
}

/// Settings that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SacError {
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
    /// The networks or optimizers.
    #[error(transparent)]
    Nn(#[from] NnError),
}

impl SacConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// [`SacError::Field`] naming the first field outside its rule.
    pub fn validate(&self) -> Result<(), SacError> {
        let fail = |field, rule, value: String| Err(SacError::Field { field, rule, value });
        if !(0.0..=1.0).contains(&self.gamma) {
            return fail("gamma", "must be in [0, 1]", self.gamma.to_string());
        }
        if !(self.tau > 0.0 && self.tau <= 1.0) {
            return fail("tau", "must be in (0, 1]", self.tau.to_string());
        }
        if self.target_update_interval == 0 {
            return fail("target_update_interval", "must be at least 1", "0".into());
        }
        for (field, schedule) in [
            ("learning_rate", Some(&self.learning_rate)),
            ("critic_learning_rate", self.critic_learning_rate.as_ref()),
            ("ent_coef_learning_rate", self.ent_coef_learning_rate.as_ref()),
        ] {
            if let Some((rule, schedule)) = schedule.and_then(|s| s.broken_rule().zip(Some(s))) {
                return fail(field, rule, schedule.to_string());
            }
        }
        match self.ent_coef {
            EntCoef::Fixed(value) if !(value.is_finite() && value >= 0.0) => {
                return fail("ent_coef", "must be finite and at least 0", value.to_string());
            }
            EntCoef::Auto { auto } if !(auto.is_finite() && auto > 0.0) => {
                return fail("ent_coef.auto", "must be finite and above 0", auto.to_string());
            }
            _ => {}
        }
        if let Some(value) = self.target_entropy.filter(|value| !value.is_finite()) {
            return fail("target_entropy", "must be finite", value.to_string());
        }
        if let Some(value) = self.max_grad_norm.filter(|value| !(value.is_finite() && *value > 0.0)) {
            return fail(
                "max_grad_norm",
                "must be finite and above 0 (leave it out to switch it off)",
                value.to_string(),
            );
        }
        Ok(self.adam.validate()?)
    }
}
