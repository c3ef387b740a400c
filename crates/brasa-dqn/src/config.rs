//! Settings of deep Q-learning.

use brasa_core::Schedule;
use brasa_core::env::{InvalidField, field};

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
    /// Counts steps within the episode instead of updates: the target is updated where the step of the newest transition
    /// is a multiple of `target_update_interval`, so at the first step of every episode. What the published code of user
    /// association does; the period then depends on the length of episodes. Needs a single environment. Default off.
    pub target_update_within_episode: bool,
    /// Whether the online network chooses the next action that the target network values (van Hasselt et al. 2016).
    /// Default on: a single network's largest estimate is too large.
    pub double: bool,
    /// Step size of the optimizer. Default 1e-4.
    pub learning_rate: Schedule,
    /// Share of actions that are random, over the first `exploration_fraction` of the run; the last value holds from
    /// there on. Default linear from 1 to 0.05.
    pub epsilon: Schedule,
    /// Share of the run in which `epsilon` changes, in (0, 1]. Default 0.1.
    pub exploration_fraction: f64,
    /// Explores less and less within each episode, in place of `epsilon`. Needs a single environment. Default off.
    pub greedy_ramp: Option<GreedyRamp>,
    /// Largest norm of all gradients of a learner together; `inf` for no limit. Default 10.
    pub max_grad_norm: Option<f64>,
    /// Cuts every number of a gradient at this magnitude, in place of `max_grad_norm`; some published recipes use 1.
    /// Default off.
    pub max_grad_value: Option<f64>,
    /// The optimizer. Default Adam with epsilon 1e-8.
    #[serde(deserialize_with = "off_policy_optimizer")]
    pub optimizer: OptimizerConfig,
}

/// How many episodes ended since the beginning of a run, and the steps taken in the one under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EpisodeClock {
    /// Episodes that ended.
    pub episode: u64,
    /// Steps of the episode under way.
    pub step: u64,
}

impl EpisodeClock {
    /// One step later.
    pub fn advance(&mut self, episode_end: bool) {
        *self = match episode_end {
            true => Self { episode: self.episode + 1, step: 0 },
            false => Self { step: self.step + 1, ..*self },
        };
    }
}

/// Exploration as in published code of user association: the probability of the best option is
/// `min(max, min + increment * step * (episode + 1))`, with the step counted within the episode.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GreedyRamp {
    /// Probability of the best option at the first step of an episode, 0 to 1.
    pub min: f64,
    /// The largest probability, `min` to 1. Below 1 a team of many agents never acts well together while it learns.
    pub max: f64,
    /// What a step adds in the first episode, at least 0; in the second episode twice that, and so on.
    pub increment: f64,
}

impl GreedyRamp {
    /// Probability of the best option at this point of an episode.
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
            learning_rate: Schedule::Constant(1e-4),
            epsilon: Schedule::linear(1.0, 0.05),
            exploration_fraction: 0.1,
            greedy_ramp: None,
            max_grad_norm: Some(10.0),
            max_grad_value: None,
            optimizer: AdamConfig::off_policy().into(),
        }
    }
}

/// Settings that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DqnError {
    /// A field outside its rule.
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
    /// [`DqnError::Field`] naming the first field outside its rule.
    pub fn validate(&self) -> Result<(), DqnError> {
        field::share("gamma", self.gamma)?;
        field::positive_share("tau", self.tau)?;
        field::positive_share("exploration_fraction", self.exploration_fraction)?;
        field::at_least_one("target_update_interval", self.target_update_interval)?;
        self.learning_rate.check("learning_rate")?;
        let shares = self.epsilon.broken_rule().is_none() && [0.0, 1.0].iter().all(|at| self.epsilon.at(*at) <= 1.0);
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
        // 300 / (episode + 1) steps to the top.
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
