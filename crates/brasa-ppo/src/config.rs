//! Settings of proximal policy optimization.

use brasa_core::Schedule;
use brasa_core::env::{InvalidField, field};
use brasa_nn::{AdamConfig, NnError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Settings of proximal policy optimization. Defaults are those of Stable-Baselines3.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PpoConfig {
    /// Steps per environment and rollout. Default 2048. Short rollouts lean on the critic, long ones use stale data.
    pub n_steps: usize,
    /// Rows per minibatch. Default 64. At least the rollout's rows means one minibatch of everything.
    pub batch_size: usize,
    /// Passes over a rollout. Default 10. Many passes move the policy away from the data that it is learned from.
    pub n_epochs: usize,
    /// Discount per step, 0 to 1. Default 0.99: rewards count for about a hundred steps.
    pub gamma: f64,
    /// Weight of long returns in the advantage, 0 to 1. Default 0.95. 0 trusts the critic alone, 1 not at all.
    pub gae_lambda: f64,
    /// Step size of Adam. Default 3e-4.
    pub learning_rate: Schedule,
    /// Largest change of an action's probability that is rewarded, as a share. Default 0.2.
    pub clip_range: Schedule,
    /// Largest change of a value estimate per rollout; its unit is the reward's. Default off: ablations find it
    /// neutral or harmful (Andrychowicz et al. 2021).
    pub clip_range_vf: Option<f64>,
    /// Weight of the entropy bonus. Default 0. High values keep the policy random.
    pub ent_coef: f64,
    /// Weight of the value loss. Default 0.5; matters where actor and critic share layers or gradients are clipped.
    pub vf_coef: f64,
    /// Largest norm of all gradients together; `inf` for no limit. Default 0.5.
    pub max_grad_norm: Option<f64>,
    /// Whether advantages of a minibatch get mean 0 and deviation 1. Default on.
    pub normalize_advantage: bool,
    /// Ends the passes over a rollout once the policy has moved 1.5 times this far (Kullback-Leibler divergence).
    /// Default off. Waits for the device once per minibatch.
    pub target_kl: Option<f64>,
    /// Adapts the learning rate to keep the divergence of an update near this value: a third less above twice, half
    /// as much again below half of it (Schulman et al. 2017, section 4, with the factors of rl_games). Default off.
    pub adaptive_kl: Option<f64>,
    /// The optimizer.
    pub adam: AdamConfig,
}

impl Default for PpoConfig {
    fn default() -> Self {
        Self {
            n_steps: 2048,
            batch_size: 64,
            n_epochs: 10,
            gamma: 0.99,
            gae_lambda: 0.95,
            learning_rate: Schedule::Constant(3e-4),
            clip_range: Schedule::Constant(0.2),
            clip_range_vf: None,
            ent_coef: 0.0,
            vf_coef: 0.5,
            max_grad_norm: Some(0.5),
            normalize_advantage: true,
            target_kl: None,
            adaptive_kl: None,
            adam: AdamConfig::default(),
        }
    }
}

/// Settings that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PpoError {
    /// A field outside its rule.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// The network or optimizer.
    #[error(transparent)]
    Nn(#[from] NnError),
}

impl PpoConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// [`PpoError::Field`] naming the first field outside its rule.
    pub fn validate(&self) -> Result<(), PpoError> {
        for (field, value) in [("n_steps", self.n_steps), ("batch_size", self.batch_size), ("n_epochs", self.n_epochs)]
        {
            field::at_least_one(field, value as u64)?;
        }
        field::share("gamma", self.gamma)?;
        field::share("gae_lambda", self.gae_lambda)?;
        self.learning_rate.check("learning_rate")?;
        self.clip_range.check("clip_range")?;
        field::not_negative("ent_coef", self.ent_coef)?;
        field::not_negative("vf_coef", self.vf_coef)?;
        field::positive_or_off("clip_range_vf", self.clip_range_vf)?;
        field::positive_or_off("target_kl", self.target_kl)?;
        field::positive_or_off("adaptive_kl", self.adaptive_kl)?;
        field::limit_or_off("max_grad_norm", self.max_grad_norm)?;
        let constant = self.adaptive_kl.is_none() || matches!(self.learning_rate, Schedule::Constant(_));
        let rule = "must be a plain number, the start, where `adaptive_kl` is set";
        field::rule(constant, "learning_rate", rule, self.learning_rate)?;
        Ok(self.adam.validate()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_field_rule_and_value() {
        let text = |change: fn(&mut PpoConfig)| {
            let mut config = PpoConfig::default();
            change(&mut config);
            config.validate().expect_err("the value is out of range").to_string()
        };
        assert_eq!(text(|c| c.gamma = 1.5), "`gamma` must be in [0, 1], got 1.5");
        assert_eq!(text(|c| c.n_steps = 0), "`n_steps` must be at least 1, got 0");
        assert_eq!(
            text(|c| c.clip_range = Schedule::from(-0.1)),
            "`clip_range` must be finite and at least 0, got -0.1"
        );
        assert!(text(|c| c.target_kl = Some(0.0)).starts_with("`target_kl` must be finite and above 0"));
        assert_eq!(text(|c| c.adam.beta_1 = 1.0), "`beta_1` must be in [0, 1), got 1");
    }
}
