//! Settings of soft actor-critic.

use brasa_core::Schedule;
use brasa_core::env::{InvalidField, field, whole};
use brasa_nn::{AdamConfig, NnError, off_policy_adam};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Settings of soft actor-critic. Defaults are those of Haarnoja et al. 2018 and Stable-Baselines3.
///
/// ```
/// use brasa_sac::SacConfig;
///
/// let config: SacConfig = serde_json::from_str(r#"{ "tau": 0.01, "learning_rate": 0.001 }"#)?;
/// config.validate()?;
/// assert_eq!((config.tau, config.gamma), (0.01, 0.99));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SacConfig {
    /// Discount per step, 0 to 1. Default 0.99, a horizon of about 100 steps.
    pub gamma: f64,
    /// Weight of the online critics in an update of the target critics, in (0, 1]. Default 0.005. High values make
    /// learning unstable, low ones make it slow.
    pub tau: f64,
    /// Updates between updates of the target critics; the first one follows the first update. Default 1.
    pub target_update_interval: u64,
    /// Step size of Adam for the actor. Default 3e-4.
    pub learning_rate: Schedule,
    /// Step size for the critics. Default that of the actor.
    pub critic_learning_rate: Option<Schedule>,
    /// Step size for the temperature. Default that of the actor.
    pub ent_coef_learning_rate: Option<Schedule>,
    /// Weight of the entropy, the temperature: a number, or `{ auto = 1.0 }` to learn it from this initial value.
    /// Default learned from 1. High values keep the policy random.
    pub ent_coef: EntCoef,
    /// Target entropy in nats of a learned temperature. Default minus the number of actions. Entropy is that of actions
    /// in [-1, 1]: a uniform distribution has 0.69 nats per action.
    pub target_entropy: Option<f64>,
    /// Weight of the mean squared action, in [-1, 1], in the actor's loss (`action_l2` of OpenAI Baselines' HER). Default 0. It keeps
    /// actions away from their bounds, where tanh has no slope: with many actions, of which each hardly changes the values, errors of the
    /// critics can drive them there.
    pub action_l2: f64,
    /// Largest gradient norm of the actor, and of the critics. Default no limit.
    pub max_grad_norm: Option<f64>,
    /// The optimizer of all three. Default epsilon 1e-8.
    #[serde(deserialize_with = "off_policy_adam")]
    pub adam: AdamConfig,
    /// Parts in which a batch is computed, one after the other, before one step with the mean of their gradients. Default 1. The
    /// result is that of the whole batch; memory is that of one part, and time grows a little.
    #[serde(deserialize_with = "whole::count")]
    pub accumulation_steps: u64,
}

/// The temperature.
///
/// ```
/// use brasa_sac::{EntCoef, SacConfig};
///
/// let of = |text| serde_json::from_str::<SacConfig>(text).map(|config| config.ent_coef);
/// assert_eq!(of(r#"{ "ent_coef": 0.2 }"#)?, EntCoef::Fixed(0.2));
/// // Learned, from 0.5 on.
/// assert_eq!(of(r#"{ "ent_coef": { "auto": 0.5 } }"#)?, EntCoef::Auto { auto: 0.5 });
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged, deny_unknown_fields, expecting = "must be a number or { auto = START }, without other keys")]
pub enum EntCoef {
    /// A constant temperature.
    Fixed(f64),
    /// A learned temperature.
    Auto {
        /// The initial value.
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
            action_l2: 0.0,
            max_grad_norm: None,
            adam: AdamConfig::off_policy(),
            accumulation_steps: 1,
        }
    }
}

/// Invalid settings.
///
/// ```
/// use brasa_sac::{SacConfig, SacError};
///
/// let error = SacConfig { tau: 0.0, ..Default::default() }.validate().unwrap_err();
/// assert!(matches!(error, SacError::Field(_)));
/// assert_eq!(error.to_string(), "`tau` must be in (0, 1], got 0");
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SacError {
    /// An invalid setting.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// The networks or optimizers.
    #[error(transparent)]
    Nn(#[from] NnError),
}

impl SacConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// [`SacError::Field`] for the first invalid field.
    pub fn validate(&self) -> Result<(), SacError> {
        field::at_least_one("accumulation_steps", self.accumulation_steps)?;
        field::share("gamma", self.gamma)?;
        field::positive_share("tau", self.tau)?;
        field::at_least_one("target_update_interval", self.target_update_interval)?;
        self.learning_rate.check("learning_rate")?;
        self.critic_learning_rate.map_or(Ok(()), |rate| rate.check("critic_learning_rate"))?;
        self.ent_coef_learning_rate.map_or(Ok(()), |rate| rate.check("ent_coef_learning_rate"))?;
        match self.ent_coef {
            EntCoef::Fixed(value) => field::not_negative("ent_coef", value)?,
            EntCoef::Auto { auto } => field::positive("ent_coef.auto", auto)?,
        }
        field::finite("target_entropy", self.target_entropy.unwrap_or_default())?;
        field::not_negative("action_l2", self.action_l2)?;
        field::positive_or_off("max_grad_norm", self.max_grad_norm)?;
        Ok(self.adam.validate()?)
    }
}
