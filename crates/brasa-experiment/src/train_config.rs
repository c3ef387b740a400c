//! The section `[train]` of an experiment.

use std::path::PathBuf;

use brasa_env::{Executor, InvalidField, field};
use serde::{Deserialize, Serialize};

use crate::ExperimentError;

/// How long, how wide and where to train.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Environment steps of the whole run. Default 100,000.
    pub total_env_steps: u64,
    /// Environments. Default 8. More decorrelate a rollout and use more cores.
    pub n_envs: usize,
    /// Seed of weights, exploration and environments. Default 0.
    pub seed: u64,
    /// Seed of evaluations, the same for every controller. Default 1,000,003: no training run meets it.
    pub eval_seed: u64,
    /// Environment steps between quick evaluations of the policy without exploration; they become the `eval/` metrics and
    /// decide which policy is kept as the best. Default none: only the end is measured.
    pub eval_interval: Option<u64>,
    /// Device. Default `cpu`.
    pub device: String,
    /// How environments are stepped. Default `auto`: measures, chooses and says so.
    pub executor: Executor,
    /// Whether observations get mean 0 and deviation 1 from running moments. Default off: many scenarios scale their own.
    pub normalize_obs: bool,
    /// Whether rewards are divided by the spread of the discounted return. Default off.
    pub scale_reward: bool,
    /// What rewards are multiplied with, above 0. Default 1. `scale_reward` divides it out again.
    pub reward_scale: f64,
    /// Weight of the past in exponentially smoothed rewards, in [0, 1). Default 0: with it the task is another one.
    pub reward_smooth_lambda: f64,
    /// Seconds between checkpoints. Default 30. A killed run loses what happened since the last one. Saving takes at most a
    /// twentieth of the time: where one takes long, as with a large replay, they are 20 times as long apart.
    pub checkpoint_secs: f64,
    /// Checkpoints that stay, the newest ones. Default 2.
    pub keep_checkpoints: usize,
    /// Environment steps of which the first checkpoint stays besides the newest ones. Default none.
    pub keep_every: Option<u64>,
    /// Directory of a run whose weights, optimizer and normalization this one begins with. Default none.
    pub init_from: Option<PathBuf>,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            total_env_steps: 100_000,
            n_envs: 8,
            seed: 0,
            eval_seed: brasa_train::EVAL_SEED,
            eval_interval: None,
            device: "cpu".into(),
            executor: Executor::Auto,
            normalize_obs: false,
            scale_reward: false,
            reward_scale: 1.0,
            reward_smooth_lambda: 0.0,
            checkpoint_secs: 30.0,
            keep_checkpoints: 2,
            keep_every: None,
            init_from: None,
        }
    }
}

impl TrainConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] naming the first field outside its rule.
    pub fn validate(&self) -> Result<(), ExperimentError> {
        self.check().map_err(ExperimentError::input)
    }

    fn check(&self) -> Result<(), InvalidField> {
        field::at_least_one("train.total_env_steps", self.total_env_steps)?;
        field::at_least_one("train.n_envs", self.n_envs as u64)?;
        let rule = "must be at least 1 (leave it out to switch it off)";
        field::rule(self.eval_interval != Some(0), "train.eval_interval", rule, 0)?;
        field::positive("train.checkpoint_secs", self.checkpoint_secs)?;
        let rule = "must be at most 3e10";
        field::rule(self.checkpoint_secs <= 3e10, "train.checkpoint_secs", rule, self.checkpoint_secs)?;
        field::at_least_one("train.keep_checkpoints", self.keep_checkpoints as u64)?;
        let rule = "must be at least 1 (leave it out to switch it off)";
        field::rule(self.keep_every != Some(0), "train.keep_every", rule, 0)?;
        if let Executor::Threads(n) = self.executor {
            let fits = (1..=self.n_envs).contains(&n);
            field::rule(fits, "train.executor.threads", "must be between 1 and `train.n_envs`", n)?;
        }
        Ok(())
    }
}
