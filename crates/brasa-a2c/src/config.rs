//! Settings of advantage actor-critic.

use brasa_core::Schedule;
use brasa_core::env::{InvalidField, field, whole};
use brasa_nn::{NnError, OptimizerConfig, RmsPropConfig};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Settings of advantage actor-critic. Defaults are those of Stable-Baselines3, with TensorFlow's RMSprop.
///
/// ```
/// use brasa_a2c::A2cConfig;
///
/// let config: A2cConfig = serde_json::from_str(r#"{ "n_steps": 64, "gamma": 0.98 }"#)?;
/// config.validate()?;
/// assert_eq!((config.n_steps, config.gae_lambda), (64, A2cConfig::default().gae_lambda));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct A2cConfig {
    /// Steps per environment and rollout. Default 5. Short rollouts rely on the critic, long ones update rarely.
    pub n_steps: usize,
    /// Rows per gradient step. Default the whole rollout in one step, as in the paper. A smaller number
    /// takes several steps on shuffled minibatches, each row once; only the first step is exactly on-policy.
    pub batch_size: Option<usize>,
    /// Discount per step, 0 to 1. Default 0.99, a horizon of about 100 steps.
    pub gamma: f64,
    /// Lambda of generalized advantage estimation, 0 to 1. Default 1: the n-step returns of Mnih et al. 2016.
    pub gae_lambda: f64,
    /// Step size of the optimizer. Default 7e-4.
    pub learning_rate: Schedule,
    /// Weight of the entropy bonus. Default 0. High values keep the policy random.
    pub ent_coef: f64,
    /// Weight of the value loss. Default 0.5; it has an effect if actor and critic share layers or gradients are
    /// clipped.
    pub vf_coef: f64,
    /// Largest norm of all gradients together; `inf` for no limit. Default 0.5.
    pub max_grad_norm: Option<f64>,
    /// Whether the advantages of a gradient step are normalized to mean 0 and standard deviation 1. Default off.
    pub normalize_advantage: bool,
    /// Whether the critic learns returns with mean 0 and standard deviation 1, by their running moments (Yu et al. 2022). Default off. It helps
    /// where returns are large, as `train.scale_reward` does, and leaves rewards as they are. Waits for the device once per rollout.
    pub normalize_value: bool,
    /// Environment steps, summed over environments, between two readings of metrics. Default 1: after every rollout. Each reading
    /// waits for the device; between two of them checkpoints, evaluations and the progress line wait too.
    #[serde(deserialize_with = "whole::count")]
    pub log_interval: u64,
    /// The optimizer. Default RMSprop in TensorFlow's style.
    pub optimizer: OptimizerConfig,
    /// Parts in which a minibatch is computed, one after the other, before one step with the mean of their gradients. Default 1. The
    /// result is that of the whole minibatch; memory is that of one part, and time grows a little.
    #[serde(deserialize_with = "whole::count")]
    pub accumulation_steps: u64,
}

impl Default for A2cConfig {
    fn default() -> Self {
        Self {
            n_steps: 5,
            batch_size: None,
            gamma: 0.99,
            gae_lambda: 1.0,
            learning_rate: Schedule::Constant(7e-4),
            ent_coef: 0.0,
            vf_coef: 0.5,
            max_grad_norm: Some(0.5),
            normalize_advantage: false,
            normalize_value: false,
            log_interval: 1,
            optimizer: RmsPropConfig::default().into(),
            accumulation_steps: 1,
        }
    }
}

/// Invalid settings.
///
/// ```
/// use brasa_a2c::{A2cConfig, A2cError};
///
/// let error = A2cConfig { gamma: 1.5, ..Default::default() }.validate().unwrap_err();
/// assert!(matches!(error, A2cError::Field(_)));
/// assert_eq!(error.to_string(), "`gamma` must be in [0, 1], got 1.5");
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum A2cError {
    /// An invalid setting.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// The network or optimizer.
    #[error(transparent)]
    Nn(#[from] NnError),
}

impl A2cConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// [`A2cError::Field`] for the first invalid field.
    pub fn validate(&self) -> Result<(), A2cError> {
        field::at_least_one("accumulation_steps", self.accumulation_steps)?;
        field::at_least_one("n_steps", self.n_steps as u64)?;
        field::at_least_one("batch_size", self.batch_size.unwrap_or(1) as u64)?;
        field::at_least_one("log_interval", self.log_interval)?;
        field::share("gamma", self.gamma)?;
        field::share("gae_lambda", self.gae_lambda)?;
        self.learning_rate.check("learning_rate")?;
        field::not_negative("ent_coef", self.ent_coef)?;
        field::not_negative("vf_coef", self.vf_coef)?;
        field::limit_or_off("max_grad_norm", self.max_grad_norm)?;
        Ok(self.optimizer.validate()?)
    }
}
