//! Settings of deep Q-learning.

use brasa_core::Schedule;
use brasa_core::env::{InvalidField, field, whole};

use brasa_nn::{AdamConfig, NnError, OptimizerConfig, off_policy_optimizer};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Settings of deep Q-learning. Defaults are those of Stable-Baselines3, except `double`.
///
/// ```
/// use brasa_dqn::DqnConfig;
///
/// let config: DqnConfig = serde_json::from_str(r#"{ "double": false, "target_update_interval": 500 }"#)?;
/// config.validate()?;
/// assert_eq!((config.double, config.gamma), (false, 0.99));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DqnConfig {
    /// Discount per step, 0 to 1. Default 0.99, a horizon of about 100 steps.
    pub gamma: f64,
    /// Weight of the online network in an update of the target network, in (0, 1]. Default 1: a copy.
    pub tau: f64,
    /// Updates between updates of the target network. Default 2500: Stable-Baselines3's 10,000 environment steps with
    /// one update per four steps (`updates_per_step` 0.25). Short intervals make learning unstable, long ones make it
    /// slow.
    pub target_update_interval: u64,
    /// Counts steps within the episode instead of updates: the target is updated if the step of the newest transition
    /// is a multiple of `target_update_interval`, so at the first step of every episode. This is the behavior of
    /// published code of user association; the period then depends on the length of episodes. Needs a single
    /// environment. Default off.
    pub target_update_within_episode: bool,
    /// Whether the online network chooses the next action and the target network evaluates it (van Hasselt et al.
    /// 2016). Default on: the maximum over one network overestimates.
    pub double: bool,
    /// Whether values are those of returns that are compressed (Pohlen et al. 2018), which R2D2 uses in place of clipped rewards. Default off. See
    /// [`rescaled`](crate::rescaled).
    pub rescale: bool,
    /// The loss of an error. Default Huber's, whose gradient is limited.
    pub loss: DqnLoss,
    /// Step size of the optimizer. Default 1e-4.
    pub learning_rate: Schedule,
    /// Probability of a random action, over the first `exploration_fraction` of the run, then constant. Default linear
    /// from 1 to 0.05.
    pub epsilon: Schedule,
    /// Fraction of the run in which `epsilon` changes, in (0, 1]. Default 0.1.
    pub exploration_fraction: f64,
    /// Reduces exploration within each episode, instead of `epsilon`. Needs a single environment. Default off.
    pub greedy_ramp: Option<GreedyRamp>,
    /// Largest norm of all gradients of a learner together; `inf` for no limit. Default 10.
    pub max_grad_norm: Option<f64>,
    /// Clips every element of a gradient to this magnitude, instead of `max_grad_norm`; some published settings use 1.
    /// Default off.
    pub max_grad_value: Option<f64>,
    /// The optimizer. Default Adam with epsilon 1e-8.
    #[serde(deserialize_with = "off_policy_optimizer")]
    pub optimizer: OptimizerConfig,
    /// Parts in which a batch is computed, one after the other, before one step with the mean of their gradients. Default 1. The
    /// result is that of the whole batch; memory is that of one part, and time grows a little.
    #[serde(deserialize_with = "whole::count")]
    pub accumulation_steps: u64,
}

/// The loss of a value, from its target and the weight of the row: `w f(d)` with `d = Q(s, a) - y`. It reports the value, too.
///
/// ```
/// use brasa_dqn::{DqnConfig, DqnLoss};
/// use brasa_number::RowLoss;
///
/// // Values of 1.5 and 4, both with the target 1 and the weight 1.
/// assert_eq!(DqnLoss::Huber.row([1.5], [1.0, 1.0]), [0.125, 1.5]);
/// assert_eq!(DqnLoss::Huber.row([4.0], [1.0, 1.0]), [2.5, 4.0]);
/// assert_eq!(DqnLoss::Squared.row([4.0], [1.0, 1.0]), [9.0, 4.0]);
/// let config: DqnConfig = serde_json::from_str(r#"{ "loss": "squared" }"#)?;
/// assert_eq!(config.loss, DqnLoss::Squared);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DqnLoss {
    /// `d^2 / 2` within 1 and `|d| - 1/2` outside, as in Stable-Baselines3 (PyTorch's `smooth_l1_loss`).
    #[default]
    Huber,
    /// `d^2`, as in CleanRL (PyTorch's `mse_loss`).
    Squared,
}

/// Number of finished episodes of a run, and of steps in the current one.
///
/// ```
/// use brasa_dqn::EpisodeClock;
///
/// let mut clock = EpisodeClock::default();
/// for episode_end in [false, true, false] {
///     clock.advance(episode_end);
/// }
/// assert_eq!(clock, EpisodeClock { episode: 1, step: 1 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EpisodeClock {
    /// Finished episodes.
    pub episode: u64,
    /// Steps of the current episode.
    pub step: u64,
}

impl EpisodeClock {
    /// Advances by one step.
    pub fn advance(&mut self, episode_end: bool) {
        *self = match episode_end {
            true => Self { episode: self.episode + 1, step: 0 },
            false => Self { step: self.step + 1, ..*self },
        };
    }
}

/// Exploration as in published code of user association: the probability of the greedy action is
/// `min(max, min + increment * step * (episode + 1))`, with the step counted within the episode.
///
/// ```
/// use brasa_dqn::{EpisodeClock, GreedyRamp};
///
/// let ramp = GreedyRamp { min: 0.0, max: 0.75, increment: 0.25 };
/// let share = |episode, step| ramp.greedy_share(EpisodeClock { episode, step });
/// assert_eq!([share(0, 0), share(0, 1), share(1, 1), share(0, 9)], [0.0, 0.25, 0.5, 0.75]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GreedyRamp {
    /// Probability of the greedy action at the first step of an episode, 0 to 1.
    pub min: f64,
    /// The largest probability, `min` to 1. Below 1, joint actions of many agents rarely contain no random action.
    pub max: f64,
    /// Increment per step in the first episode, at least 0; twice this in the second episode, and so on.
    pub increment: f64,
}

impl GreedyRamp {
    /// Probability of the greedy action at this step of an episode.
    pub fn greedy_share(&self, clock: EpisodeClock) -> f64 {
        self.max.min(self.min + self.increment * clock.step as f64 * (clock.episode + 1) as f64)
    }
}

impl Default for DqnConfig {
    fn default() -> Self {
        Self {
            gamma: 0.99,
            tau: 1.0,
            target_update_interval: 2500,
            target_update_within_episode: false,
            double: true,
            rescale: false,
            loss: DqnLoss::default(),
            learning_rate: Schedule::Constant(1e-4),
            epsilon: Schedule::linear(1.0, 0.05),
            exploration_fraction: 0.1,
            greedy_ramp: None,
            max_grad_norm: Some(10.0),
            max_grad_value: None,
            optimizer: AdamConfig::off_policy().into(),
            accumulation_steps: 1,
        }
    }
}

/// Invalid settings.
///
/// ```
/// use brasa_dqn::{DqnConfig, DqnError};
///
/// let error = DqnConfig { tau: 0.0, ..Default::default() }.validate().unwrap_err();
/// assert!(matches!(error, DqnError::Field(_)));
/// assert_eq!(error.to_string(), "`tau` must be in (0, 1], got 0");
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DqnError {
    /// An invalid setting.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// The network or optimizer.
    #[error(transparent)]
    Nn(#[from] NnError),
}

impl DqnConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// [`DqnError::Field`] for the first invalid field.
    pub fn validate(&self) -> Result<(), DqnError> {
        field::at_least_one("accumulation_steps", self.accumulation_steps)?;
        field::share("gamma", self.gamma)?;
        field::positive_share("tau", self.tau)?;
        field::positive_share("exploration_fraction", self.exploration_fraction)?;
        field::at_least_one("target_update_interval", self.target_update_interval)?;
        self.learning_rate.check("learning_rate")?;
        let shares = self.epsilon.broken_rule().is_none() && self.epsilon.largest() <= 1.0;
        field::rule(shares, "epsilon", "must have values in [0, 1]", self.epsilon)?;
        if let Some(GreedyRamp { min, max, increment }) = self.greedy_ramp {
            let ordered = 0.0 <= min && min <= max && max <= 1.0;
            field::rule(ordered, "greedy_ramp", "must have 0 <= min <= max <= 1", format!("{min} to {max}"))?;
            field::not_negative("increment", increment)?;
        }
        field::limit_or_off("max_grad_norm", self.max_grad_norm)?;
        field::positive_or_off("max_grad_value", self.max_grad_value)?;
        Ok(self.optimizer.validate()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_ramp_starts_anew_in_every_episode_and_steepens() {
        let ramp = GreedyRamp { min: 0.0, max: 0.9, increment: 0.003 };
        let share = |episode, step| ramp.greedy_share(EpisodeClock { episode, step });
        assert_eq!([share(0, 0), share(7, 0)], [0.0, 0.0]);
        assert!((share(0, 100) - 0.3).abs() < 1e-12 && (share(2, 10) - 0.09).abs() < 1e-12);
        // The maximum is reached after 300 / (episode + 1) steps.
        assert!(share(0, 299) < 0.899 && share(0, 301) == 0.9 && share(9, 31) == 0.9 && share(9, 400) == 0.9);
    }

    #[test]
    fn messages_name_field_rule_and_value() {
        let text = |config: DqnConfig| config.validate().expect_err("the value is out of range").to_string();
        let ramp = |min, max, increment| DqnConfig {
            greedy_ramp: Some(GreedyRamp { min, max, increment }),
            ..DqnConfig::default()
        };
        assert_eq!(text(ramp(0.5, 0.4, 0.1)), "`greedy_ramp` must have 0 <= min <= max <= 1, got 0.5 to 0.4");
        assert!(text(ramp(f64::NAN, 0.4, 0.1)).starts_with("`greedy_ramp` must have"));
        assert_eq!(text(ramp(0.0, 0.9, -1.0)), "`increment` must be finite and at least 0, got -1");
        let cut = DqnConfig { max_grad_value: Some(0.0), ..DqnConfig::default() };
        let rule = "must be finite and above 0 (leave it out to switch it off)";
        assert_eq!(text(cut), format!("`max_grad_value` {rule}, got 0"));
        assert!(ramp(0.0, 0.9, 0.003).validate().is_ok());
    }
}
