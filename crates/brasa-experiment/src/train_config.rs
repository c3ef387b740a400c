//! The section `[train]` of an experiment.

use brasa_env::Executor;
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
    /// Seconds between checkpoints. Default 30. A killed run loses at most that much.
    pub checkpoint_secs: f64,
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
        }
    }
}

impl TrainConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] naming the first field outside its rule.
    pub fn validate(&self) -> Result<(), ExperimentError> {
        let fail = |field: &str, rule: &str, value: String| {
            Err(ExperimentError::Input(format!("`train.{field}` {rule}, got {value}")))
        };
        if self.total_env_steps == 0 {
            return fail("total_env_steps", "must be at least 1", "0".into());
        }
        if self.n_envs == 0 {
            return fail("n_envs", "must be at least 1", "0".into());
        }
        if self.eval_interval == Some(0) {
            return fail("eval_interval", "must be at least 1 (leave it out to switch it off)", "0".into());
        }
        if !(self.checkpoint_secs > 0.0 && self.checkpoint_secs.is_finite()) {
            return fail("checkpoint_secs", "must be finite and above 0", self.checkpoint_secs.to_string());
        }
        if let Executor::Threads(n) = self.executor
            && !(1..=self.n_envs).contains(&n)
        {
            return fail("executor.threads", "must be between 1 and `train.n_envs`", n.to_string());
        }
        Ok(())
    }
}
