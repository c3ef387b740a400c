//! The section `[train]` of an experiment.

use std::path::PathBuf;

use brasa_device::{DeviceError, GpuSettings, Precision, open_named};
use brasa_env::{Executor, InvalidField, field, whole};
use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use crate::ExperimentError;

/// Settings of training.
///
/// ```
/// use brasa_experiment::TrainConfig;
///
/// let train: TrainConfig = toml::from_str("total_env_steps = 200_000\nn_envs = 6")?;
/// train.validate()?;
/// let error = TrainConfig { n_shards: 4, ..train }.validate().unwrap_err();
/// assert_eq!(error.to_string(), "`train.n_envs` must be a multiple of `train.n_shards`, which is 4, got 6");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Environment steps of the whole run. Default 100,000.
    #[serde(deserialize_with = "whole::count")]
    pub total_env_steps: u64,
    /// Number of environments. Default 8. More of them decorrelate a rollout and use more cores.
    pub n_envs: usize,
    /// Number of shards into which environments, minibatches and stored experience are divided: a power of two. Default 1. Each is
    /// computed by one thread, and the ranks that `mpirun` starts divide the shards among themselves. The result of a run depends
    /// on the number of shards, but not on that of ranks.
    pub n_shards: usize,
    /// Seed of weights, exploration and environments. Default 0.
    pub seed: u64,
    /// Seed of evaluations, the same for every controller. Default 1,000,003. `seed` must not be one of the million seeds from it
    /// on, which are those of episodes. Evaluations during training have other seeds, so that the best policy is not measured
    /// in the episodes that chose it.
    pub eval_seed: u64,
    /// Environment steps between evaluations of the policy without exploration. They give the `eval/` metrics and determine the
    /// best policy. Default none: only the final policy is evaluated.
    #[serde(deserialize_with = "whole::maybe")]
    pub eval_interval: Option<u64>,
    /// Whether evaluations sample the actions of a stochastic policy as training does. Default off: they take the most likely ones. Agents that share a
    /// policy and see alike all take the same most likely action, and different sampled ones.
    pub eval_sampled: bool,
    /// Device: `cpu`, `cuda`, `cuda:1`, `wgpu`, a profile, or `auto` for the best one of the machine. Default `cpu`. Settings of
    /// `[when.PROFILE]` apply on a device with that profile. Several devices, as in `cuda:0,cuda:1`, divide the shards among themselves.
    pub device: String,
    /// Format in which layers multiply during rollouts and updates: `f32`, the default, `tf32`, `bf16`, or `f16` with scaled losses.
    /// Evaluations use 32 bits.
    pub precision: Precision,
    /// How a GPU holds memory, and chooses and keeps kernels. The CPU ignores it.
    #[serde(skip_serializing_if = "GpuSettings::is_unset")]
    pub gpu: GpuSettings,
    /// What to do if the device has no memory left: `stop`, the default, or `shrink`: lowers a setting (batch, rollout, precision or
    /// capacity of the replay buffer) and resumes from the last checkpoint. `out_of_memory.jsonl` in the run directory lists the changes.
    pub on_oom: OnOom,
    /// What to do if a loss, another metric or a weight is no finite number: `stop`, the default, or `retry`: goes back to the last checkpoint
    /// with half the learning rate, the second time with products in 32 bits, and twice more with half the learning rate. `diverged.jsonl` in
    /// the run directory lists the changes.
    pub on_nan: OnNan,
    /// Where environments are computed: `host`, `device` (as tensor operations on `device`), or `auto`, the default: on the device
    /// if it is not the CPU and the scenario has such a form.
    pub env_device: EnvDevice,
    /// Executor of environments on the host. Default `auto`: measures the executors, selects one and reports it.
    pub executor: Executor,
    /// Whether environments step while the learner computes, in another thread. Default no. Then actions come from the policy of one update
    /// earlier: another, equally repeatable run. It saves time where environments and learner take about as long, and costs the memory of
    /// another rollout.
    pub pipeline: bool,
    /// Whether a GPU records gradient steps and replays each as one launch. Default no. It saves time where networks are small. Batches of one
    /// size are recorded, at most four sizes. Several shards, separate policies, and learners whose host decides about every step record nothing. The
    /// tensors of an own network must be parts of it. Each recording keeps the memory of its gradient step, which `brasa plan` counts.
    pub capture: bool,
    /// Whether observations are normalized to mean 0 and deviation 1 by running moments. Default off: many scenarios scale their
    /// observations.
    pub normalize_obs: bool,
    /// Whether critics see the observations of all agents of an environment, and actors those of their agent (MAPPO, Yu et al. 2022). Default off:
    /// then both see what one agent sees (IPPO). The policy acts without the others' observations in either case. Rollouts take as many times the
    /// memory as there are agents.
    pub central_critic: bool,
    /// The policy of each agent of an environment, by its index: with `[0, 0, 0, 1]`, three agents share a policy and the last one has another.
    /// Default none: all agents share one policy. A learner from rollouts has a network for each policy, with equal settings.
    pub policies: Vec<usize>,
    /// Whether rewards are divided by the standard deviation of the discounted return. Default off.
    pub scale_reward: bool,
    /// Factor of the rewards, above 0. Default 1. `scale_reward` cancels it.
    pub reward_scale: f64,
    /// Weight of past rewards in exponentially smoothed rewards, in [0, 1). Default 0. Other values change the task.
    pub reward_smooth_lambda: f64,
    /// Seconds between checkpoints. Default 30. A killed run loses the steps since the last one. Saving takes at most 5 % of the
    /// run: if one checkpoint takes long, as with a large replay buffer, the interval is at least 20 times that duration.
    pub checkpoint_secs: f64,
    /// Environment steps between checkpoints, which are saved however long that takes. Default none: only `checkpoint_secs` counts,
    /// which otherwise applies, too.
    #[serde(deserialize_with = "whole::maybe")]
    pub checkpoint_interval: Option<u64>,
    /// Number of newest checkpoints to keep. Default 2.
    pub keep_checkpoints: usize,
    /// Also keeps the first checkpoint of every this many environment steps. Default none.
    #[serde(deserialize_with = "whole::maybe")]
    pub keep_every: Option<u64>,
    /// Environment steps after which the memory pools of a GPU give back what is not in use, for other programs. Default none: pools keep it, which is
    /// faster. An out-of-memory error that `on_oom` answers does it once.
    #[serde(deserialize_with = "whole::maybe")]
    pub cleanup_interval: Option<u64>,
    /// The config to use instead of this one, which has published settings and is kept as a record; `train` says so. Default none.
    pub good_recipe: Option<PathBuf>,
    /// Whether the run directory also gets the metrics as a table, `metrics.csv`. Default no: `metrics.jsonl` has them.
    pub metrics_csv: bool,
    /// Directory of a run from whose weights, optimizer and normalization this run starts. Default none.
    pub init_from: Option<PathBuf>,
}

/// What a run does whose device has no memory left.
///
/// ```
/// use brasa_experiment::{OnOom, TrainConfig};
///
/// let train: TrainConfig = toml::from_str("on_oom = \"shrink\"")?;
/// assert_eq!(train.on_oom, OnOom::Shrink);
/// assert_eq!(TrainConfig::default().on_oom, OnOom::Stop);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnOom {
    /// It ends with an error that names the settings to lower.
    #[default]
    Stop,
    /// It lowers a setting and continues from its last checkpoint.
    Shrink,
}

/// What a run does whose numbers are no longer finite.
///
/// ```
/// use brasa_experiment::{OnNan, TrainConfig};
///
/// let train: TrainConfig = toml::from_str("on_nan = \"retry\"")?;
/// assert_eq!(train.on_nan, OnNan::Retry);
/// // Several shards cannot go back.
/// let error = TrainConfig { n_shards: 2, ..train }.validate().unwrap_err();
/// assert_eq!(error.to_string(), "`train.on_nan` must be \"stop\" if the run has several shards, got retry");
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnNan {
    /// It ends with an error that names settings which may help.
    #[default]
    Stop,
    /// It changes settings and continues from its last checkpoint.
    Retry,
}

/// Where the environments of a training run are computed.
///
/// ```
/// use brasa_experiment::{EnvDevice, TrainConfig};
///
/// let train: TrainConfig = toml::from_str("env_device = \"host\"")?;
/// assert_eq!(train.env_device, EnvDevice::Host);
/// assert_eq!(TrainConfig::default().env_device, EnvDevice::Auto);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EnvDevice {
    /// On the device where this is possible, except that the CPU counts as the host.
    #[default]
    Auto,
    /// On the host, with threads.
    Host,
    /// On the device, as tensor operations.
    Device,
}

/// The largest seed: the integers of TOML have a sign.
pub(crate) const MOST_SEED: u64 = i64::MAX as u64;

/// Seeds of episodes of an evaluation that no training may use.
const MOST_EPISODES: u64 = 1 << 20;

/// The seed of evaluations during training: their episodes choose the best policy, those of `eval_seed` compare it.
pub(crate) fn look_seed(eval_seed: u64) -> u64 {
    eval_seed.wrapping_add(1 << 40)
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            total_env_steps: 100_000,
            n_envs: 8,
            n_shards: 1,
            seed: 0,
            eval_seed: brasa_train::EVAL_SEED,
            eval_interval: None,
            eval_sampled: false,
            device: "cpu".into(),
            precision: Precision::F32,
            gpu: GpuSettings::default(),
            on_oom: OnOom::Stop,
            on_nan: OnNan::Stop,
            env_device: EnvDevice::Auto,
            executor: Executor::Auto,
            pipeline: false,
            capture: false,
            normalize_obs: false,
            central_critic: false,
            policies: vec![],
            scale_reward: false,
            reward_scale: 1.0,
            reward_smooth_lambda: 0.0,
            checkpoint_secs: 30.0,
            checkpoint_interval: None,
            keep_checkpoints: 2,
            keep_every: None,
            cleanup_interval: None,
            good_recipe: None,
            metrics_csv: false,
            init_from: None,
        }
    }
}

impl TrainConfig {
    /// The devices, at least one.
    pub(crate) fn devices(&self) -> Vec<&str> {
        self.device.split(',').map(str::trim).collect()
    }

    /// The device that plans, evaluations and single shards use.
    pub(crate) fn first_device(&self) -> &str {
        self.devices()[0]
    }

    /// Opens the device that plans, evaluations and single shards use, with the settings of GPUs.
    pub(crate) fn open_device(&self) -> Result<Device, DeviceError> {
        self.gpu.apply()?;
        open_named(self.first_device())
    }

    /// Opens the device `named` in place of the one of the experiment, if there is one. The processor needs no settings of GPUs.
    pub(crate) fn open_device_or(&self, named: Option<&str>) -> Result<Device, DeviceError> {
        let Some(name) = named else { return self.open_device() };
        if name != "cpu" {
            self.gpu.apply()?;
        }
        open_named(name)
    }

    /// The device of the shard `index`.
    pub(crate) fn device_of_shard(&self, index: usize) -> &str {
        let devices = self.devices();
        devices[index % devices.len()]
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] naming the first field that violates its rule.
    pub fn validate(&self) -> Result<(), ExperimentError> {
        self.check().map_err(ExperimentError::input)
    }

    fn check(&self) -> Result<(), InvalidField> {
        field::at_least_one("train.total_env_steps", self.total_env_steps)?;
        field::at_most("train.seed", self.seed, MOST_SEED)?;
        field::at_most("train.eval_seed", self.eval_seed, MOST_SEED)?;
        field::at_least_one("train.n_envs", self.n_envs as u64)?;
        let (n_shards, n_envs) = (self.n_shards, self.n_envs);
        let rule = "must be a power of two";
        field::rule(n_shards.is_power_of_two(), "train.n_shards", rule, n_shards)?;
        let rule = format!("must be a multiple of `train.n_shards`, which is {n_shards}");
        field::rule(n_envs.is_multiple_of(n_shards), "train.n_envs", rule, n_envs)?;
        let n_devices = self.devices().len();
        let rule = format!("must be a multiple of the number of devices, which is {n_devices}");
        field::rule(n_shards.is_multiple_of(n_devices), "train.n_shards", rule, n_shards)?;
        if n_shards > 1 {
            let rule = "must be \"stop\" if the run has several shards";
            field::rule(self.on_oom == OnOom::Stop, "train.on_oom", rule, "shrink")?;
            field::rule(self.on_nan == OnNan::Stop, "train.on_nan", rule, "retry")?;
            let rule = "must not be \"device\" if the run has several shards";
            field::rule(self.env_device != EnvDevice::Device, "train.env_device", rule, "device")?;
        }
        // Episodes of evaluations use the seeds from `eval_seed` on, those during training the seeds from `look_seed` on.
        let of_evaluations = [self.eval_seed, look_seed(self.eval_seed)];
        let is_used = of_evaluations.into_iter().any(|first| self.seed.wrapping_sub(first) < MOST_EPISODES);
        let rule = format!("must not be one of the {MOST_EPISODES} seeds of episodes from {} on", self.eval_seed);
        field::rule(!is_used, "train.seed", rule, self.seed)?;
        let rule = "must be at least 1 (leave it out to switch it off)";
        field::rule(self.eval_interval != Some(0), "train.eval_interval", rule, 0)?;
        field::duration_secs("train.checkpoint_secs", self.checkpoint_secs)?;
        // Rewards are 32-bit numbers: beyond this even small ones overflow in sums.
        let scale = self.reward_scale;
        field::rule(scale > 0.0 && scale <= 1e6, "train.reward_scale", "must be above 0 and at most 1000000", scale)?;
        field::at_least_one("train.keep_checkpoints", self.keep_checkpoints as u64)?;
        let rule = "must be at least 1 (leave it out to switch it off)";
        field::rule(self.keep_every != Some(0), "train.keep_every", rule, 0)?;
        field::rule(self.cleanup_interval != Some(0), "train.cleanup_interval", rule, 0)?;
        field::rule(self.checkpoint_interval != Some(0), "train.checkpoint_interval", rule, 0)?;
        if let Executor::Threads(n) = self.executor {
            let fits = (1..=self.n_envs).contains(&n);
            field::rule(fits, "train.executor.threads", "must be between 1 and `train.n_envs`", n)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_gpus_hold_for_a_device_that_the_command_names_and_not_for_the_processor() {
        let text = "total_env_steps = 1\nn_envs = 1\ndevice = \"wgpu\"\n[gpu]\nautotune = \"full\"\n";
        let train: TrainConfig = toml::from_str(text).expect("a config");
        if train.gpu.apply().is_ok() {
            eprintln!("SKIPPED: this program was built with `autotune`");
            return;
        }
        assert!(train.open_device_or(Some("cpu")).is_ok());
        for named in [None, Some("wgpu"), Some("cuda")] {
            let error = train.open_device_or(named).expect_err("this program chooses no kernels").to_string();
            assert!(error.starts_with("`train.gpu.autotune` needs a program built with"), "{named:?}: {error}");
        }
    }
}
