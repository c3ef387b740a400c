//! The off-policy loop: act, store, and learn from what is stored.

use std::path::Path;

use brasa_buffers::{Compact, ReplayBuffer, ReplayConfig, Transitions};
use brasa_core::env::wrappers::RunningMoments;
use brasa_core::env::{EnvSpec, field, named_rng};
use brasa_core::{
    Explore, Metrics, NoiseDistribution, NoiseSpec, Normalization, OffPolicyLearner, Policy, Progress, RandomWarmup,
    Rows, VecEnv,
};
use brasa_nn::{Persist, draw_noise};
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::iteration::Tally;
use crate::snapshot::take_over;
use crate::{Checkpoint, Counters, Iteration, Run, StopToken, TrainError, Training, restore_learner, take_checkpoint};

/// When to learn, and from what. Defaults are those of SAC; DQN is usually run with fewer and smaller updates
/// (Stable-Baselines3: `train_freq` 4, `updates_per_step` 0.25, `batch_size` 32).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OffPolicyConfig {
    /// Environment steps with uniformly random actions before the first update. Default 100 (Stable-Baselines3). Too few
    /// and the first updates see one corner of the task only.
    pub learning_starts: u64,
    /// Environment steps, of all environments together, between two blocks of updates. Default 1. Stable-Baselines3
    /// counts steps of the whole vector instead: multiply its number by its number of environments.
    pub train_freq: u64,
    /// Gradient updates per environment step, whatever the number of environments. Default 1. High values use data better
    /// and take longer; far above 1 the critics overfit.
    pub updates_per_step: f64,
    /// Transitions per update; of every agent where a team learns. Default 256.
    pub batch_size: usize,
    /// Environment steps between two readings of metrics. Default 1000. Each reading waits for the device.
    pub log_interval: u64,
    /// Whether checkpoints contain the stored experience, without which a resumed run starts collecting anew. Default on.
    /// It may be large: `bytes_per_transition` of the replay's documentation.
    pub save_replay: bool,
    /// What is stored.
    pub replay: ReplayConfig,
}

impl Default for OffPolicyConfig {
    fn default() -> Self {
        Self {
            learning_starts: 100,
            train_freq: 1,
            updates_per_step: 1.0,
            batch_size: 256,
            log_interval: 1000,
            save_replay: true,
            replay: ReplayConfig::default(),
        }
    }
}

impl OffPolicyConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// [`TrainError::Field`] naming the first field outside its rule; the replay's own error.
    pub fn validate(&self) -> Result<(), TrainError> {
        field::at_least_one("train_freq", self.train_freq)?;
        field::at_least_one("batch_size", self.batch_size as u64)?;
        field::at_least_one("log_interval", self.log_interval)?;
        field::not_negative("updates_per_step", self.updates_per_step)?;
        let rule = "must be at most 1000000";
        field::rule(self.updates_per_step <= 1e6, "updates_per_step", rule, self.updates_per_step)?;
        Ok(self.replay.validate()?)
    }
}

/// Acts, stores transitions, and hands samples of them to a learner.
pub struct OffPolicy<E: VecEnv, L>
where
    E::Obs: Compact,
    E::Action: Compact,
{
    env: E,
    learner: L,
    config: OffPolicyConfig,
    run: Run,
    replay: ReplayBuffer<E::Obs, E::Action>,
    obs: E::Obs,
    held: Option<Held>,
    tally: Tally,
    device: Device,
}

/// Updates per environment step above which a run says how many it makes: most of its time goes there.
const MANY_UPDATES: f64 = 16.0;

/// Exploration noise that lasts for several steps.
struct Held {
    begin: u64,
    noise: Tensor<2>,
}

impl<E, L> OffPolicy<E, L>
where
    E: VecEnv,
    E::Obs: Compact,
    E::Action: Compact,
    L: OffPolicyLearner<Batch = Transitions<E::Obs, E::Action>>,
    L::Policy: RandomWarmup<Obs = E::Obs, Action = E::Action>,
{
    /// Resets the environments and allocates the replay.
    ///
    /// Where the environments ask for it ([`EnvSpec::normalize_on_use`]), observations are stored as they are and normalized
    /// wherever a policy or a learner sees them, which costs two small uploads per vector step.
    ///
    /// # Errors
    /// [`TrainError::Field`] for a setting outside its rule, and for observations that cannot be normalized although they must be; where an environment fails, or is none that the learner can learn
    /// in.
    pub fn new(mut env: E, learner: L, config: OffPolicyConfig, run: Run) -> Result<Self, TrainError> {
        config.validate()?;
        field::at_least_one("total_env_steps", run.total_env_steps)?;
        let rule = "must have steps of one length to be replayed";
        field::rule(!env.spec().has_elapsed, "env", rule, "steps of different lengths")?;
        learner.check_envs(env.spec())?;
        let spec = env.spec();
        let per_row = 8.0 * (spec.obs.width() + spec.mask_width() + spec.action.width()) as f64;
        let bytes = per_row * config.batch_size as f64 * spec.n_agents as f64;
        field::fits_in_memory("batch_size", config.batch_size, bytes)?;
        if config.updates_per_step > MANY_UPDATES {
            let updates = config.updates_per_step * run.total_env_steps as f64;
            tracing::warn!("`updates_per_step` of {} means {updates:.0} updates in this run", config.updates_per_step);
        }
        let device = env.device().clone();
        let obs = env.reset(run.seed)?;
        if let Some(moments) = env.obs_moments().filter(|_| env.spec().normalize_on_use) {
            let can = obs.clone().normalized(&Normalization::new(moments, &device)).is_some();
            let rule = "must have observations of a form that can be normalized";
            field::rule(can, "env", rule, std::any::type_name::<E::Obs>())?;
        }
        let policy = learner.policy(Progress::new(0, run.total_env_steps));
        let (action, _) = policy.act(obs.clone(), Explore::Greedy);
        let mut replay = ReplayBuffer::new(&config.replay, &obs, &action, learner.gamma(), &device)?;
        replay.begin(obs.clone());
        let tally = Tally::new(Counters::default());
        Ok(Self { env, learner, config, run, replay, obs, held: None, tally, device })
    }

    /// The environments.
    pub fn env(&self) -> &E {
        &self.env
    }

    /// Environments and learner, after a run.
    pub fn into_parts(self) -> (E, L) {
        (self.env, self.learner)
    }

    /// What is stored.
    pub fn replay(&self) -> &ReplayBuffer<E::Obs, E::Action> {
        &self.replay
    }

    /// The moments of this moment.
    fn normalization(&self) -> Option<Normalization> {
        let moments = self.env.obs_moments().filter(|_| self.env.spec().normalize_on_use);
        moments.map(|moments| Normalization::new(moments, &self.device))
    }

    /// Observations as policies and learners see them.
    fn seen(&self, obs: E::Obs, normalization: Option<&Normalization>) -> E::Obs {
        match normalization {
            Some(by) => obs.normalized(by).expect("the form was checked at the start"),
            None => obs,
        }
    }

    /// One step of every environment; says whether an episode may have ended.
    fn collect(&mut self, policy: &L::Policy) -> Result<bool, TrainError> {
        let obs = self.seen(self.obs.clone(), self.normalization().as_ref());
        let action = if self.tally.counters.env_steps < self.config.learning_starts {
            let uniform = NoiseSpec { distribution: NoiseDistribution::Uniform, resample_every: 1, ..policy.noise() };
            let noise = self.noise(uniform);
            policy.random_action(obs, noise)
        } else {
            let noise = self.noise(policy.noise());
            policy.act(obs, Explore::Sample(noise)).0
        };
        let in_env = policy.to_env(action.clone());
        self.tally.acted();
        let step = self.env.step(in_env)?;
        self.tally.stepped(&self.env);
        self.obs = step.obs.clone();
        self.replay.push(action, &step);
        self.tally.counters.env_steps += self.env.n_envs() as u64;
        Ok(step.next_obs.is_some())
    }

    /// Noise for the next vector step: that of the last one as long as the policy holds it, at most until the next block
    /// of updates.
    fn noise(&mut self, spec: NoiseSpec) -> Tensor<2> {
        let (n_envs, env_steps) = (self.env.n_envs() as u64, self.tally.counters.env_steps);
        let step = env_steps / n_envs;
        let block = env_steps / self.config.train_freq;
        let first_of_block = (block * self.config.train_freq).div_ceil(n_envs);
        // The step at which this noise begins names it, so that a resumed run draws the same.
        let begin = step - (step - first_of_block) % spec.resample_every as u64;
        if let Some(held) = self.held.as_ref().filter(|held| held.begin == begin && spec.resample_every > 1) {
            return held.noise.clone();
        }
        let purpose = if spec.distribution == NoiseDistribution::Uniform { "uniform noise" } else { "noise" };
        let rng = &mut named_rng(self.run.seed, purpose, begin);
        let noise = draw_noise(spec, self.env.n_rows(), rng, &self.device);
        self.held = (spec.resample_every > 1).then(|| Held { begin, noise: noise.clone() });
        noise
    }

    /// Updates that the steps so far call for and that were not made yet: none between two blocks.
    fn updates_due(&self) -> u64 {
        let Counters { env_steps, updates, .. } = self.tally.counters;
        let before = env_steps - self.env.n_envs() as u64;
        let same_block = env_steps / self.config.train_freq == before / self.config.train_freq;
        // After a resume without stored experience, some has to be collected again.
        let enough = self.config.learning_starts.min(self.config.replay.capacity as u64 / 2);
        let stored = self.replay.n_transitions() as u64;
        if env_steps <= self.config.learning_starts || same_block || stored < enough.max(1) {
            return 0;
        }
        let learned_from = (env_steps - self.config.learning_starts) as f64;
        // A millionth of an update absorbs the rounding of shares such as 0.1.
        ((learned_from * self.config.updates_per_step + 1e-6) as u64).saturating_sub(updates)
    }

    /// The updates that belong to the latest vector step, until somebody stops the run.
    fn learn_block(&mut self, stop: &StopToken, latest: &mut Metrics) {
        let Some(any_episode_end) = self.tally.counters.step_to_learn_from else { return };
        let progress = Progress::new(self.tally.counters.env_steps, self.run.total_env_steps);
        let updates = self.updates_due();
        let normalization = (updates > 0).then(|| self.normalization()).flatten();
        self.tally.acted();
        for _ in 0..updates {
            if stop.is_stopped() {
                return;
            }
            *latest = self.learn(progress, normalization.as_ref());
        }
        self.tally.learned();
        self.learner.after_step(any_episode_end);
        self.tally.counters.step_to_learn_from = None;
    }

    /// One update.
    fn learn(&mut self, progress: Progress, normalization: Option<&Normalization>) -> Metrics {
        let prioritized = self.config.replay.prioritized.as_ref();
        let beta = prioritized.map_or(0.0, |prioritized| prioritized.beta.at(progress.fraction()));
        let rng = &mut named_rng(self.run.seed, "replay", self.tally.counters.updates);
        let mut batch = self.replay.sample(self.config.batch_size, beta, rng);
        if normalization.is_some() {
            batch.obs = self.seen(batch.obs, normalization);
            batch.next_obs = self.seen(batch.next_obs, normalization);
        }
        let rows = prioritized.is_some().then(|| batch.rows.clone());
        let metrics = self.learner.update(batch, progress);
        if let Some(rows) = rows {
            self.replay.set_priorities(&rows, self.learner.td_error());
        }
        self.tally.counters.updates += 1;
        metrics
    }
}

impl<E, L> Training for OffPolicy<E, L>
where
    E: VecEnv,
    E::Obs: Compact,
    E::Action: Compact,
    L: OffPolicyLearner<Batch = Transitions<E::Obs, E::Action>> + Persist,
    L::Policy: RandomWarmup<Obs = E::Obs, Action = E::Action>,
{
    type Learner = L;

    fn learner(&self) -> &L {
        &self.learner
    }

    fn run(&self) -> Run {
        self.run
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn spec(&self) -> &EnvSpec {
        self.env.spec()
    }

    fn obs_moments(&self) -> Option<&RunningMoments> {
        self.env.obs_moments()
    }

    fn counters(&self) -> &Counters {
        &self.tally.counters
    }

    fn iterate(&mut self) -> Result<Iteration, TrainError> {
        Ok(self.iterate_until(&StopToken::default())?.expect("nobody else has this token"))
    }

    /// Goes on until the next reading of metrics is due, and reads them. It can be given up after every step and every update.
    fn iterate_until(&mut self, stop: &StopToken) -> Result<Option<Iteration>, TrainError> {
        let round = self.tally.counters.env_steps / self.config.log_interval;
        let mut latest = Metrics::default();
        // A run that was stopped in the middle of a block of updates owes the rest of them.
        self.learn_block(stop, &mut latest);
        while !self.is_done() && self.tally.counters.env_steps / self.config.log_interval == round {
            if stop.is_stopped() {
                return Ok(None);
            }
            let policy = self.learner.policy(self.progress());
            let any_episode_end = self.collect(&policy)?;
            // It shares the weights: as long as it is there, an update must copy them.
            drop(policy);
            self.tally.counters.step_to_learn_from = Some(any_episode_end);
            self.learn_block(stop, &mut latest);
        }
        if self.tally.counters.step_to_learn_from.is_some() {
            return Ok(None);
        }
        let env_steps = self.tally.counters.env_steps;
        let metrics = latest.read().map_err(|source| TrainError::Metrics { env_steps, source })?;
        self.tally.learned();
        Ok(Some(self.tally.summarize(&mut self.env, self.run.total_env_steps, metrics)))
    }

    fn replays(&self) -> bool {
        true
    }

    /// With the stored experience, unless the settings keep none.
    fn checkpoint(&self) -> Checkpoint {
        let replay = if self.config.save_replay { self.replay.save() } else { Vec::new() };
        take_checkpoint(&self.learner, &self.tally.counters, self.env.obs_moments(), self.env.save(), replay)
    }

    fn init_from(&mut self, checkpoint: &Checkpoint, path: &Path) -> Result<(), TrainError> {
        self.obs = take_over(&mut self.env, &mut self.learner, checkpoint, path, self.run.seed)?;
        self.replay.begin(self.obs.clone());
        Ok(())
    }

    fn restore(&mut self, checkpoint: &Checkpoint, path: &Path) -> Result<(), TrainError> {
        let counters = restore_learner(&mut self.learner, checkpoint, path)?;
        counters.check(self.env.spec(), path)?;
        self.obs = self.env.load(&checkpoint.env)?;
        match checkpoint.replay.is_empty() {
            true => self.replay.begin(self.obs.clone()),
            false => self.replay.load(&checkpoint.replay)?,
        }
        self.held = None;
        self.tally = Tally::new(counters);
        Ok(())
    }
}
