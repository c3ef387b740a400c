//! Settings of proximal policy optimization.

use brasa_core::Schedule;
use brasa_core::env::{InvalidField, field, whole};
use brasa_nn::{AdamConfig, NnError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Settings of proximal policy optimization. Defaults are those of Stable-Baselines3.
///
/// ```
/// use brasa_ppo::PpoConfig;
///
/// let config: PpoConfig = serde_json::from_str(r#"{ "n_steps": 64, "gamma": 0.98 }"#)?;
/// config.validate()?;
/// assert_eq!((config.n_steps, config.batch_size), (64, PpoConfig::default().batch_size));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PpoConfig {
    /// Steps per environment and rollout. Default 2048. Short rollouts rely on the critic, long ones use older data.
    pub n_steps: usize,
    /// Rows per minibatch. Default 64. With at least the rows of a rollout there is one minibatch.
    pub batch_size: usize,
    /// Epochs per rollout. Default 10. With many epochs the policy moves away from the policy of the data.
    pub n_epochs: usize,
    /// Discount per step, 0 to 1. Default 0.99, a horizon of about 100 steps.
    pub gamma: f64,
    /// Lambda of generalized advantage estimation, 0 to 1. Default 0.95. 0 relies on the critic (bias), 1 on returns
    /// (variance).
    pub gae_lambda: f64,
    /// Step size of Adam. Default 3e-4.
    pub learning_rate: Schedule,
    /// Clip range of the probability ratio, `[1 - c, 1 + c]`. Default 0.2.
    pub clip_range: Schedule,
    /// Factor, above 1, by which the objective of an action with negative advantage is at least its advantage (dual clip, Ye et al. 2020,
    /// usually 3). Default off. It limits updates from data of an older policy, as with `train.pipeline`.
    pub dual_clip: Option<f64>,
    /// Largest change of a value estimate per rollout, in the unit of the reward. Default off: ablations find value
    /// clipping neutral or harmful (Andrychowicz et al. 2021).
    pub clip_range_vf: Option<f64>,
    /// The loss of a value that has left `clip_range_vf`. Default `"clipped"`. Without `clip_range_vf` it has no effect.
    pub vf_loss: ValueLoss,
    /// Weight of the entropy bonus. Default 0. High values keep the policy random.
    pub ent_coef: f64,
    /// Weight of the value loss. Default 0.5; it has an effect if actor and critic share layers or gradients are
    /// clipped.
    pub vf_coef: f64,
    /// Largest norm of all gradients together; `inf` for no limit. Default 0.5.
    pub max_grad_norm: Option<f64>,
    /// Whether the advantages of a minibatch are normalized to mean 0 and standard deviation 1. Default on.
    pub normalize_advantage: bool,
    /// Whether the critic learns returns with mean 0 and standard deviation 1, by their running moments (Yu et al. 2022). Default off. It helps
    /// where returns are large, as `train.scale_reward` does, and leaves rewards as they are. Waits for the device once per rollout.
    pub normalize_value: bool,
    /// Stops the epochs of an update at 1.5 times this Kullback-Leibler divergence. Default off. Waits for the device
    /// once per minibatch.
    pub target_kl: Option<f64>,
    /// Adapts the learning rate to keep the divergence of an update near this value: divided by 1.5 above twice the
    /// value, multiplied by 1.5 below half of it (Schulman et al. 2017, section 4, with the factors of rl_games). A
    /// schedule of `learning_rate` multiplies the adapted rate by its share of the initial value. Default off.
    pub adaptive_kl: Option<f64>,
    /// With a network that remembers: steps of a sequence, through which gradients go back. Default a whole rollout. It divides `n_steps`.
    /// Short sequences are faster, and what happened before them is only what the network remembered at collection.
    pub sequence_length: Option<usize>,
    /// Environment steps, summed over environments, between two readings of metrics. Default 1: after every rollout. Each reading
    /// waits for the device; between two of them checkpoints, evaluations and the progress line wait too.
    #[serde(deserialize_with = "whole::count")]
    pub log_interval: u64,
    /// The optimizer.
    pub adam: AdamConfig,
    /// Parts in which a minibatch is computed, one after the other, before one step with the mean of their gradients. Default 1. The
    /// result is that of the whole minibatch; memory is that of one part, and time grows a little.
    #[serde(deserialize_with = "whole::count")]
    pub accumulation_steps: u64,
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
            dual_clip: None,
            clip_range_vf: None,
            vf_loss: ValueLoss::default(),
            ent_coef: 0.0,
            vf_coef: 0.5,
            max_grad_norm: Some(0.5),
            normalize_advantage: true,
            normalize_value: false,
            target_kl: None,
            adaptive_kl: None,
            sequence_length: None,
            log_interval: 1,
            adam: AdamConfig::default(),
            accumulation_steps: 1,
        }
    }
}

/// The squared error of a value that is clipped (`clip_range_vf`), from the clipped value and from the value itself.
///
/// ```
/// use brasa_number::RowLoss;
/// use brasa_ppo::{Surrogate, ValueLoss};
///
/// let error = |vf_loss| {
///     let loss = Surrogate { dual_clip: None, clip_range_vf: Some(0.5), vf_loss, vf_coef: 0.5, ent_coef: 0.0 };
///     // A value that has risen from 0 to 1, with the target 2. From the clipped value, 0.5, the target is farther away.
///     let [_, _, error, ..] = loss.row([0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 2.0, 1.0, 0.2]);
///     let [_, _, below, ..] = loss.row([0.0, 0.0, 1.0], [0.0, 0.0, 0.0, -2.0, 1.0, 0.2]);
///     [error, below]
/// };
/// assert_eq!(error(ValueLoss::Clipped), [1.5 * 1.5, 2.5 * 2.5]);
/// assert_eq!(error(ValueLoss::Larger), [1.5 * 1.5, 3.0 * 3.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ValueLoss {
    /// The error of the clipped value alone, as in Stable-Baselines3. A value outside of the range has no gradient.
    #[default]
    Clipped,
    /// The larger of the errors of both, as in OpenAI Baselines, CleanRL, TorchRL and rejax. A value outside of the range that moved away from its
    /// target has a gradient.
    Larger,
}

/// Invalid settings.
///
/// ```
/// use brasa_ppo::{PpoConfig, PpoError};
///
/// let error = PpoConfig { gamma: 1.5, ..Default::default() }.validate().unwrap_err();
/// assert!(matches!(error, PpoError::Field(_)));
/// assert_eq!(error.to_string(), "`gamma` must be in [0, 1], got 1.5");
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PpoError {
    /// An invalid setting.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// The network or optimizer.
    #[error(transparent)]
    Nn(#[from] NnError),
}

/// Most passes over a rollout: five orders of magnitude above any recipe.
const MAX_EPOCHS: u64 = 1_000_000;

impl PpoConfig {
    /// Steps of the sequences of a network that remembers.
    pub fn sequence_length(&self) -> usize {
        self.sequence_length.unwrap_or(self.n_steps)
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`PpoError::Field`] for the first invalid field.
    pub fn validate(&self) -> Result<(), PpoError> {
        field::at_least_one("accumulation_steps", self.accumulation_steps)?;
        for (field, value) in [("n_steps", self.n_steps), ("batch_size", self.batch_size), ("n_epochs", self.n_epochs)]
        {
            field::at_least_one(field, value as u64)?;
        }
        let length = self.sequence_length();
        let divides = length > 0 && self.n_steps.is_multiple_of(length);
        field::rule(divides, "sequence_length", "must divide `n_steps`", format!("{length} for {}", self.n_steps))?;
        field::at_least_one("log_interval", self.log_interval)?;
        field::at_most("n_epochs", self.n_epochs as u64, MAX_EPOCHS)?;
        field::share("gamma", self.gamma)?;
        field::share("gae_lambda", self.gae_lambda)?;
        self.learning_rate.check("learning_rate")?;
        self.clip_range.check("clip_range")?;
        field::not_negative("ent_coef", self.ent_coef)?;
        field::not_negative("vf_coef", self.vf_coef)?;
        field::positive_or_off("clip_range_vf", self.clip_range_vf)?;
        if let Some(factor) = self.dual_clip {
            field::rule(
                factor > 1.0 && factor.is_finite(),
                "dual_clip",
                "must be above 1 (leave it out to switch it off)",
                factor,
            )?;
        }
        field::positive_or_off("target_kl", self.target_kl)?;
        field::positive_or_off("adaptive_kl", self.adaptive_kl)?;
        field::limit_or_off("max_grad_norm", self.max_grad_norm)?;
        let adapts = self.adaptive_kl.is_none() || self.learning_rate.at(0.0) > 0.0;
        let rule = "must begin above 0 if `adaptive_kl` is set";
        field::rule(adapts, "learning_rate", rule, self.learning_rate)?;
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
