//! Settings of advantage actor-critic.

use brasa_core::Schedule;
use brasa_core::env::{InvalidField, field};
use brasa_nn::{NnError, OptimizerConfig, RmsPropConfig};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Settings of advantage actor-critic. Defaults are those of Stable-Baselines3, with TensorFlow's RMSprop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct A2cConfig {
    /// Steps per environment and rollout. Default 5. Short rollouts lean on the critic, long ones update rarely.
    pub n_steps: usize,
    /// Rows per gradient step; absent for the whole rollout in one step, which is the published algorithm. A smaller number
    /// takes several steps on shuffled parts of a rollout, each row once; only the first is exactly on-policy.
    pub batch_size: Option<usize>,
    /// Discount per step, 0 to 1. Default 0.99: rewards count for about a hundred steps.
    pub gamma: f64,
    /// Weight of long returns in the advantage, 0 to 1. Default 1: the n-step returns of Mnih et al. 2016.
    pub gae_lambda: f64,
    /// Step size of the optimizer. Default 7e-4.
    pub learning_rate: Schedule,
    /// Weight of the entropy bonus. Default 0. High values keep the policy random.
    pub ent_coef: f64,
    /// Weight of the value loss. Default 0.5; matters where actor and critic share layers or gradients are clipped.
    pub vf_coef: f64,
    /// Largest norm of all gradients together; `inf` for no limit. Default 0.5.
    pub max_grad_norm: Option<f64>,
    /// Whether advantages of a gradient step get mean 0 and deviation 1. Default off.
    pub normalize_advantage: bool,
    /// The optimizer. Default RMSprop in TensorFlow's style.
    pub optimizer: OptimizerConfig,
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
            optimizer: RmsPropConfig::default().into(),
        }
    }
}

/// Settings that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum A2cError {
    /// A field outside its rule.
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
    /// [`A2cError::Field`] naming the first field outside its rule.
    pub fn validate(&self) -> Result<(), A2cError> {
        field::at_least_one("n_steps", self.n_steps as u64)?;
        field::at_least_one("batch_size", self.batch_size.unwrap_or(1) as u64)?;
        field::share("gamma", self.gamma)?;
        field::share("gae_lambda", self.gae_lambda)?;
        self.learning_rate.check("learning_rate")?;
        field::not_negative("ent_coef", self.ent_coef)?;
        field::not_negative("vf_coef", self.vf_coef)?;
        field::limit_or_off("max_grad_norm", self.max_grad_norm)?;
        Ok(self.optimizer.validate()?)
    }
}
