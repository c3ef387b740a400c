//! The off-policy loop: act, store transitions, and learn from samples of them.

use std::path::Path;

use brasa_buffers::{Compact, ReplayBuffer, ReplayConfig, Transitions};
use brasa_core::env::wrappers::RunningMoments;
use brasa_core::env::{EnvSpec, InvalidField, field, named_rng, whole};
use brasa_core::{
    Explore, Metrics, NoiseDistribution, NoiseSpec, Normalization, OffPolicyLearner, Policy, PolicyState, Progress,
    RandomWarmup, Rows, StepBatch, VecEnv,
};
use brasa_nn::{Persist, draw_noise};
use brasa_shards::shard;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::evaluate::check_network;
use crate::iteration::Tally;
use crate::sharding::{SharedMoments, all_envs, own_seed};
use crate::snapshot::{take_over, with_state, without_state};
use crate::{Checkpoint, Counters, Iteration, Run, StopToken, TrainError, Training, restore_learner, take_checkpoint};

/// Settings of the off-policy loop. Defaults are those of SAC; DQN usually needs fewer and smaller updates
/// (Stable-Baselines3: `train_freq` 4, `updates_per_step` 0.25, `batch_size` 32).
///
/// ```
/// use brasa_train::OffPolicyConfig;
///
/// let config = OffPolicyConfig { updates_per_step: 0.25, batch_size: 32, ..Default::default() };
/// config.validate()?;
/// let text = r#"{ "updates_per_step": 0.25, "batch_size": 32 }"#;
/// assert_eq!(serde_json::from_str::<OffPolicyConfig>(text)?, config);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OffPolicyConfig {
    /// Environment steps with uniformly random actions before the first update. Default 100 (Stable-Baselines3). With too few,
    /// the first updates cover only a small part of the observations. A run must have more steps.
    #[serde(deserialize_with = "whole::count")]
    pub learning_starts: u64,
    /// Environment steps, summed over environments, between two blocks of updates. Default 1. Stable-Baselines3
    /// counts vector steps instead: multiply its number by its number of environments.
    pub train_freq: u64,
    /// Gradient updates per environment step, independent of the number of environments. Default 1. High values learn more from
    /// each step and take longer; far above 1 the critics overfit.
    pub updates_per_step: f64,
    /// Transitions per update; for a team, transitions of all agents. Default 256. They are sampled with replacement, so a
    /// batch may have more than are stored.
    pub batch_size: usize,
    /// Environment steps between two readings of metrics. Default 1000. Each reading synchronizes with the device.
    pub log_interval: u64,
    /// Whether checkpoints contain the replay buffer. Default on. Without it a resumed run starts with an empty buffer.
    /// Its size can be large: see `bytes_per_transition` in the documentation of the replay buffer.
    pub save_replay: bool,
    /// The replay buffer.
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
    /// [`TrainError::Field`] naming the first field that violates its rule; the error of the replay buffer's settings.
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

/// The off-policy loop: acts, stores transitions, and updates a learner with samples of them.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_train::{OffPolicy, OffPolicyConfig, Run, Training};
///
/// let config = OffPolicyConfig { learning_starts: 16, log_interval: 32, batch_size: 32, ..Default::default() };
/// # let replay = brasa_buffers::ReplayConfig { capacity: 256, ..Default::default() };
/// # let config = OffPolicyConfig { replay, ..config };
/// let mut training = OffPolicy::new(pendulums(4), td3(), config, Run { total_env_steps: 64, seed: 0 })?;
/// training.iterate()?;
/// assert_eq!(training.counters().env_steps, 32);
/// // One update per step of an environment from step 16 on.
/// assert!(training.counters().updates >= 16);
/// # Ok::<(), brasa_train::TrainError>(())
/// ```
#[derive(Debug)]
pub struct OffPolicy<E: VecEnv, L>
where
    E::Obs: Compact,
    E::Action: Compact,
{
    pub(crate) env: E,
    obs: E::Obs,
    /// What the policy remembers.
    state: PolicyState,
    held: Option<Held>,
    pub(crate) updates: Updates<E::Obs, E::Action, L>,
    pub(crate) tally: Tally,
    device: Device,
    moments: SharedMoments,
    is_pipelined: bool,
}

/// A learner, and what it learns from.
#[derive(Debug)]
pub(crate) struct Updates<O: Compact, A: Compact, L> {
    pub(crate) learner: L,
    replay: ReplayBuffer<O, A>,
    pub(crate) config: OffPolicyConfig,
    run: Run,
}

/// The updates that follow a vector step.
struct Block {
    n: u64,
    progress: Progress,
    normalization: Option<Normalization>,
    any_episode_end: bool,
}

/// Above this number of updates per environment step, a run warns: updates take most of its time.
///
/// ```
/// use brasa_train::{MANY_UPDATES, OffPolicyConfig};
///
/// // The default is far below the limit of the warning.
/// assert!(OffPolicyConfig::default().updates_per_step < MANY_UPDATES);
/// ```
pub const MANY_UPDATES: f64 = 16.0;

/// Exploration noise that is used for several steps.
#[derive(Debug)]
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
    /// Resets the environments and allocates the replay buffer.
    ///
    /// With [`EnvSpec::normalize_on_use`], observations are stored unnormalized and are normalized whenever the policy or the
    /// learner uses them. This costs two small uploads per vector step.
    ///
    /// # Errors
    /// [`TrainError::Field`] if a setting violates its rule, or if observations must be normalized but cannot be; any error of
    /// an environment; an error if the learner does not support the environments.
    pub fn new(mut env: E, learner: L, config: OffPolicyConfig, run: Run) -> Result<Self, TrainError> {
        config.validate()?;
        field::at_least_one("total_env_steps", run.total_env_steps)?;
        let (starts, total) = (config.learning_starts, run.total_env_steps);
        if starts >= total {
            let rule = format!("must be below `total_env_steps`, {total}: nothing would be learned");
            return Err(InvalidField::new("learning_starts", rule, starts).into());
        }
        let rule = "must have steps of one length to be replayed";
        field::rule(!env.spec().has_elapsed, "env", rule, "steps of different lengths")?;
        learner.check_envs(&env.spec().with_n_envs(all_envs(&env)))?;
        let spec = env.spec();
        let per_row = 8.0 * (spec.obs.width() + spec.mask_width() + spec.action.width()) as f64;
        let bytes = per_row * config.batch_size as f64 * spec.n_agents as f64;
        field::fits_in_memory("batch_size", config.batch_size, bytes)?;
        if config.updates_per_step > MANY_UPDATES {
            let updates = config.updates_per_step * run.total_env_steps as f64;
            tracing::warn!("`updates_per_step` of {} means {updates:.0} updates in this run", config.updates_per_step);
        }
        let (batch_size, capacity) = (config.batch_size, config.replay.capacity);
        if batch_size > capacity {
            tracing::warn!(
                "`batch_size` of {batch_size} is above `replay.capacity` of {capacity}: batches repeat transitions"
            );
        }
        let device = env.device().clone();
        let policy = learner.policy(Progress::new(0, run.total_env_steps));
        check_network(&policy, env.spec(), &device)?;
        let mut moments = SharedMoments::new(&mut env)?;
        let obs = env.reset(run.seed)?;
        moments.merge(&mut env);
        if let Some(normalization) = env.normalization() {
            let can = obs.clone().normalized(&normalization).is_some();
            let rule = "must have observations of a form that can be normalized";
            field::rule(can, "env", rule, std::any::type_name::<E::Obs>())?;
        }
        let (action, _) = policy.act(obs.clone(), Explore::Greedy);
        let replay = ReplayBuffer::new(&config.replay, env.spec(), &obs, &action, learner.gamma(), &device)?;
        let mut replay = replay.with_memory(policy.state_width())?;
        replay.begin(obs.clone());
        let state = PolicyState::new(env.n_rows(), policy.state_width(), &device);
        let tally = Tally::new(Counters::begin(learner.gamma()));
        let updates = Updates { learner, replay, config, run };
        Ok(Self { env, obs, state, held: None, updates, tally, device, moments, is_pipelined: false })
    }

    /// Takes every vector step in another thread while the learner performs the updates that follow the step before: actions come from the
    /// policy before those updates. This saves time where environments take long. Each run with the same seed still has the same numbers. A
    /// run can be interrupted between two blocks of updates, not inside one.
    #[must_use]
    pub fn pipelined(self, is_pipelined: bool) -> Self {
        Self { is_pipelined, ..self }
    }

    /// The environments.
    pub fn env(&self) -> &E {
        &self.env
    }

    /// Returns the environments and the learner.
    pub fn into_parts(self) -> (E, L) {
        (self.env, self.updates.learner)
    }

    /// The replay buffer.
    pub fn replay(&self) -> &ReplayBuffer<E::Obs, E::Action> {
        &self.updates.replay
    }

    /// Steps every environment once.
    pub(crate) fn collect(&mut self, policy: &L::Policy) -> Result<(), TrainError> {
        let (before, action, in_env) = self.decide(policy);
        self.tally.clock.acted();
        let step = self.env.step(in_env)?;
        self.tally.clock.stepped(&self.env);
        self.store(&before, action, &step)
    }

    /// The actions of the next vector step, as stored, and as environments take them; and what the policy remembered before.
    fn decide(&mut self, policy: &L::Policy) -> (PolicyState, E::Action, E::Action) {
        let before = self.state.clone();
        let obs = seen(self.obs.clone(), self.env.normalization().as_ref());
        let action = if self.tally.counters.env_steps < self.updates.config.learning_starts {
            let uniform = NoiseSpec { distribution: NoiseDistribution::Uniform, resample_every: 1, ..policy.noise() };
            let noise = self.noise(uniform);
            if self.state.numbers.is_some() {
                // A policy remembers what it has seen, whoever acts.
                policy.act_from(obs.clone(), &mut self.state, Explore::Greedy);
            }
            policy.random_action(obs, noise)
        } else {
            let noise = self.noise(policy.noise());
            policy.act_from(obs, &mut self.state, Explore::Sample(noise)).0
        };
        let in_env = policy.to_env(action.clone());
        (before, action, in_env)
    }

    /// Stores a vector step, whose updates are due then.
    fn store(&mut self, before: &PolicyState, action: E::Action, step: &StepBatch<E::Obs>) -> Result<(), TrainError> {
        self.obs = step.obs.clone();
        self.updates.replay.push_from(before, action, step)?;
        self.state.end_after(step);
        self.tally.counters.env_steps += all_envs(&self.env) as u64;
        self.tally.counters.step_to_learn_from = Some(step.successor.any_episode_end());
        Ok(())
    }

    /// Steps every environment once, and performs the updates of the step before at the same time.
    fn collect_and_learn(&mut self, latest: &mut Metrics) -> Result<(), TrainError> {
        let progress = Progress::new(self.tally.counters.env_steps, self.updates.run.total_env_steps);
        let policy = self.updates.learner.policy(progress);
        let (before, action, in_env) = self.decide(&policy);
        // The policy shares the weights: while it exists, an update must copy them.
        drop(policy);
        let block = self.due();
        self.tally.clock.acted();
        let mut clock = self.tally.clock.fork();
        let (env, updates, counters) = (&mut self.env, &mut self.updates, &mut self.tally.counters);
        let take = move || {
            let step = env.step(in_env);
            clock.stepped(env);
            (step, clock)
        };
        let (step, clock) = match block {
            Some(block) if block.n > 0 => {
                let mut stepped = None;
                // The pool's threads run already; a step is too short to start one.
                rayon::in_place_scope(|scope| {
                    scope.spawn(|_| stepped = Some(take()));
                    updates.learn_block(&block, counters, &StopToken::default(), latest);
                    self.tally.clock.learned();
                });
                stepped.expect("the scope ends after the step")
            }
            block => {
                if let Some(block) = block {
                    updates.learn_block(&block, counters, &StopToken::default(), latest);
                }
                take()
            }
        };
        self.tally.clock.join(clock);
        self.store(&before, action, &step?)
    }

    /// Noise for the next vector step. It is resampled every `resample_every` steps, and at the start of a block of updates.
    fn noise(&mut self, spec: NoiseSpec) -> Tensor<2> {
        let (n_envs, env_steps) = (all_envs(&self.env) as u64, self.tally.counters.env_steps);
        let step = env_steps / n_envs;
        let train_freq = self.updates.config.train_freq;
        let first_of_block = (env_steps / train_freq * train_freq).div_ceil(n_envs);
        // The step at which this noise begins is its stream index, so that a resumed run samples the same noise.
        let begin = step - (step - first_of_block) % spec.resample_every as u64;
        if let Some(held) = self.held.as_ref().filter(|held| held.begin == begin && spec.resample_every > 1) {
            return held.noise.clone();
        }
        let purpose = if spec.distribution == NoiseDistribution::Uniform { "uniform noise" } else { "noise" };
        let rng = &mut named_rng(own_seed(self.updates.run.seed), purpose, begin);
        let noise = draw_noise(spec, self.env.n_rows(), rng, &self.device);
        self.held = (spec.resample_every > 1).then(|| Held { begin, noise: noise.clone() });
        noise
    }

    /// Number of updates that are due but not done yet; 0 between two blocks.
    fn updates_due(&self) -> u64 {
        let Counters { env_steps, updates, .. } = self.tally.counters;
        let Updates { config, replay, .. } = &self.updates;
        let before = env_steps - all_envs(&self.env) as u64;
        let same_block = env_steps / config.train_freq == before / config.train_freq;
        // After a resume without the replay buffer, experience must be collected again.
        let n_shards = shard().count as u64;
        let enough = config.learning_starts.min(config.replay.capacity as u64 * n_shards / 2);
        let stored = replay.n_transitions() as u64 * n_shards;
        if env_steps <= config.learning_starts || same_block || stored < enough.max(1) {
            return 0;
        }
        let learned_from = (env_steps - config.learning_starts) as f64;
        // The margin absorbs rounding errors of ratios such as 0.1.
        ((learned_from * config.updates_per_step + 1e-6) as u64).saturating_sub(updates)
    }

    /// The updates of the latest vector step; `None` if they are done.
    fn due(&mut self) -> Option<Block> {
        let any_episode_end = self.tally.counters.step_to_learn_from?;
        let progress = Progress::new(self.tally.counters.env_steps, self.updates.run.total_env_steps);
        let n = self.updates_due();
        if n > 0 {
            self.moments.merge(&mut self.env);
        }
        let normalization = (n > 0).then(|| self.env.normalization()).flatten();
        Some(Block { n, progress, normalization, any_episode_end })
    }

    /// Performs the updates of the latest vector step, unless the run is stopped.
    fn learn_block(&mut self, stop: &StopToken, latest: &mut Metrics) {
        let Some(block) = self.due() else { return };
        self.tally.clock.acted();
        self.updates.learn_block(&block, &mut self.tally.counters, stop, latest);
        self.tally.clock.learned();
    }
}

/// Observations as input of policies and learners.
fn seen<O: Rows>(obs: O, normalization: Option<&Normalization>) -> O {
    match normalization {
        Some(by) => obs.normalized(by).expect("the form was checked at the start"),
        None => obs,
    }
}

impl<O, A, L> Updates<O, A, L>
where
    O: Compact,
    A: Compact,
    L: OffPolicyLearner<Batch = Transitions<O, A>>,
{
    /// Performs a block of updates, unless the run is stopped.
    fn learn_block(&mut self, block: &Block, counters: &mut Counters, stop: &StopToken, latest: &mut Metrics) {
        for _ in 0..block.n {
            if stop.is_stopped() {
                return;
            }
            *latest = self.learn(counters, block.progress, block.normalization.as_ref());
        }
        self.learner.after_step(block.any_episode_end);
        counters.step_to_learn_from = None;
    }

    /// One update.
    pub(crate) fn learn(
        &mut self,
        counters: &mut Counters,
        progress: Progress,
        normalization: Option<&Normalization>,
    ) -> Metrics {
        let rng = &mut named_rng(own_seed(self.run.seed), "replay", counters.updates);
        let mut batch = self.replay.sample(self.config.batch_size, self.replay.beta(progress.fraction()), rng);
        if normalization.is_some() {
            batch.obs = seen(batch.obs, normalization);
            batch.next_obs = seen(batch.next_obs, normalization);
        }
        let rows = self.config.replay.prioritized.is_some().then(|| batch.rows.clone());
        let metrics = self.learner.update(batch, progress);
        if let Some(rows) = rows {
            self.replay.set_priorities(&rows, self.learner.td_error());
        }
        counters.updates += 1;
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
        &self.updates.learner
    }

    fn run(&self) -> Run {
        self.updates.run
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

    /// Continues until the next reading of metrics is due, and reads them. It can be interrupted after every step and update.
    fn iterate_until(&mut self, stop: &StopToken) -> Result<Option<Iteration>, TrainError> {
        let round = self.tally.counters.env_steps / self.updates.config.log_interval;
        let mut latest = Metrics::default();
        // A run that was stopped inside a block of updates first performs the remaining ones. A pipelined one was stopped before its block.
        if !self.is_pipelined {
            self.learn_block(stop, &mut latest);
        }
        while !self.is_done() && self.tally.counters.env_steps / self.updates.config.log_interval == round {
            if stop.is_stopped() {
                return Ok(None);
            }
            if self.is_pipelined {
                self.collect_and_learn(&mut latest)?;
                continue;
            }
            let policy = self.updates.learner.policy(self.progress());
            self.collect(&policy)?;
            // The policy shares the weights: while it exists, an update must copy them.
            drop(policy);
            self.learn_block(stop, &mut latest);
        }
        if self.is_pipelined {
            self.learn_block(&StopToken::default(), &mut latest);
        }
        if self.tally.counters.step_to_learn_from.is_some() {
            return Ok(None);
        }
        // All shards save the same moments.
        self.moments.merge(&mut self.env);
        self.tally.counters.iterations += 1;
        let early = self.updates.replay.early_truncations();
        Ok(Some(self.tally.summarize(&mut self.env, self.updates.run.total_env_steps, latest, early)?))
    }

    fn replays(&self) -> bool {
        true
    }

    /// Includes the replay buffer if [`OffPolicyConfig::save_replay`] is set.
    fn checkpoint(&self) -> Checkpoint {
        let replay = if self.updates.config.save_replay { self.updates.replay.save() } else { Vec::new() };
        let env = with_state(self.env.save(), &self.state);
        take_checkpoint(&self.updates.learner, &self.tally.counters, self.env.obs_moments(), env, replay)
    }

    fn init_from(&mut self, checkpoint: &Checkpoint, path: &Path) -> Result<(), TrainError> {
        let (obs, moments) =
            take_over(&mut self.env, &mut self.updates.learner, checkpoint, path, self.updates.run.seed)?;
        (self.obs, self.moments) = (obs, moments);
        self.state = PolicyState::new(self.env.n_rows(), self.state.width(), &self.device);
        self.updates.replay.begin(self.obs.clone());
        Ok(())
    }

    fn restore(&mut self, checkpoint: &Checkpoint, path: &Path) -> Result<(), TrainError> {
        let counters = restore_learner(&mut self.updates.learner, checkpoint, path)?;
        counters.check(self.env.spec(), self.updates.learner.gamma(), path)?;
        let shape = [self.env.n_rows(), self.state.width()];
        let (env, state) = without_state(&checkpoint.env, shape, &self.device, path)?;
        self.obs = self.env.load(&env)?;
        self.state = state;
        self.moments = SharedMoments::new(&mut self.env)?;
        match checkpoint.replay.is_empty() {
            true => self.updates.replay.begin(self.obs.clone()),
            false => self.updates.replay.load(&checkpoint.replay)?,
        }
        self.held = None;
        self.tally = Tally::new(counters);
        Ok(())
    }
}
