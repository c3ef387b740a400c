//! Settings of TD3.

use brasa_core::Schedule;
use brasa_core::env::{InvalidField, field, whole};
use brasa_nn::{AdamConfig, NnError, off_policy_adam};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Settings of TD3. Defaults are those of Fujimoto et al. 2018 and Stable-Baselines3.
///
/// All noise is in units of actions in [-1, 1], for any bounds of the environment: 0.1 is a twentieth of the range.
///
/// ```
/// use brasa_td3::Td3Config;
///
/// let config: Td3Config = serde_json::from_str(r#"{ "tau": 0.01, "learning_rate": 0.001 }"#)?;
/// config.validate()?;
/// assert_eq!((config.tau, config.gamma), (0.01, 0.99));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Td3Config {
    /// Step size of Adam for actor and critics. Default 1e-3 (the paper; Stable-Baselines3). High values make the critics
    /// diverge or saturate the actor's tanh permanently, low ones learn slowly.
    pub learning_rate: Schedule,
    /// Discount per step, 0 to 1. Default 0.99 (the same sources), a horizon of about 100 steps. Low values
    /// ignore later rewards; at 1 the values of non-terminating tasks grow without limit.
    pub gamma: f64,
    /// Weight of the online networks in an update of the targets, in (0, 1]. Default 0.005 (the same
    /// sources). High values make learning unstable, low ones make it slow.
    pub tau: f64,
    /// Updates of the critics between updates of the actor and of all targets, at least 1. Default 2 (the same sources). At
    /// 1 the actor learns from critics with large errors; high values slow down the actor and all targets.
    pub policy_delay: u64,
    /// Standard deviation of the noise on target actions, at least 0. Default 0.2 (the same sources). At 0 the actor
    /// exploits narrow peaks of the critics; high values smooth out differences between actions.
    pub target_policy_noise: f64,
    /// Largest magnitude of this noise, at least 0. Default 0.5 (the same sources). At 0 there is no noise; with high
    /// values target actions can be far from the policy.
    pub target_noise_clip: f64,
    /// Standard deviation of the Gaussian exploration noise, at least 0. Default 0.1 (the paper; Stable-Baselines3's
    /// default is none). At 0 there is no exploration after the uniformly random start; with high values most actions
    /// are at the bounds.
    pub exploration_noise: f64,
    /// Largest gradient norm of the actor, and of the critics. Default no limit (the same sources).
    /// Low values give all gradients the same norm, high ones have no effect.
    pub max_grad_norm: Option<f64>,
    /// The optimizer of both. Default epsilon 1e-8 (PyTorch). A high epsilon slows down weights with small gradients.
    #[serde(deserialize_with = "off_policy_adam")]
    pub adam: AdamConfig,
    /// Parts in which a batch is computed, one after the other, before one step with the mean of their gradients. Default 1. The
    /// result is that of the whole batch; memory is that of one part, and time grows a little.
    #[serde(deserialize_with = "whole::count")]
    pub accumulation_steps: u64,
}

impl Default for Td3Config {
    fn default() -> Self {
        Self {
            learning_rate: Schedule::Constant(1e-3),
            gamma: 0.99,
            tau: 0.005,
            policy_delay: 2,
            target_policy_noise: 0.2,
            target_noise_clip: 0.5,
            exploration_noise: 0.1,
            max_grad_norm: None,
            adam: AdamConfig::off_policy(),
            accumulation_steps: 1,
        }
    }
}

/// Invalid settings.
///
/// ```
/// use brasa_td3::{Td3Config, Td3Error};
///
/// let error = Td3Config { tau: 0.0, ..Default::default() }.validate().unwrap_err();
/// assert!(matches!(error, Td3Error::Field(_)));
/// assert_eq!(error.to_string(), "`tau` must be in (0, 1], got 0");
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Td3Error {
    /// An invalid setting.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// The networks or optimizers.
    #[error(transparent)]
    Nn(#[from] NnError),
}

impl Td3Config {
    /// Checks every field.
    ///
    /// # Errors
    /// [`Td3Error::Field`] for the first invalid field.
    pub fn validate(&self) -> Result<(), Td3Error> {
        field::at_least_one("accumulation_steps", self.accumulation_steps)?;
        self.learning_rate.check("learning_rate")?;
        field::share("gamma", self.gamma)?;
        field::positive_share("tau", self.tau)?;
        field::at_least_one("policy_delay", self.policy_delay)?;
        field::not_negative("target_policy_noise", self.target_policy_noise)?;
        field::not_negative("target_noise_clip", self.target_noise_clip)?;
        field::not_negative("exploration_noise", self.exploration_noise)?;
        field::positive_or_off("max_grad_norm", self.max_grad_norm)?;
        Ok(self.adam.validate()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change that violates a rule, and the start of the message.
    type Case = (fn(&mut Td3Config), &'static str);

    #[test]
    fn every_field_has_a_rule() {
        assert!(Td3Config::default().validate().is_ok());
        let cases: [Case; 9] = [
            (|c| c.learning_rate = Schedule::Constant(-1.0), "`learning_rate` must be finite and at least 0, got -1"),
            (|c| c.gamma = 1.1, "`gamma` must be in [0, 1], got 1.1"),
            (|c| c.tau = 0.0, "`tau` must be in (0, 1], got 0"),
            (|c| c.policy_delay = 0, "`policy_delay` must be at least 1, got 0"),
            (|c| c.target_policy_noise = f64::NAN, "`target_policy_noise` must be finite and at least 0, got NaN"),
            (|c| c.target_noise_clip = -0.5, "`target_noise_clip` must be finite and at least 0, got -0.5"),
            (|c| c.exploration_noise = -0.1, "`exploration_noise` must be finite and at least 0, got -0.1"),
            (
                |c| c.max_grad_norm = Some(0.0),
                "`max_grad_norm` must be finite and above 0 (leave it out to switch it off), got 0",
            ),
            (|c| c.adam.epsilon = -1.0, "`epsilon`"),
        ];
        for (change, expected) in cases {
            let mut config = Td3Config::default();
            change(&mut config);
            let message = config.validate().expect_err(expected).to_string();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
