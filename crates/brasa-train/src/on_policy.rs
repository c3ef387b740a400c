//! The on-policy loop: collect a rollout, learn from it, throw it away.

use std::collections::VecDeque;
use std::time::Instant;

use brasa_buffers::{Rollout, RolloutBuffer};
use brasa_core::env::{Episode, named_rng};
use brasa_core::{ActorCritic, Explore, Learner, Progress, Sink, VecEnv};
use brasa_nn::draw_noise;
use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use crate::TrainError;

/// Episodes that running means cover (Stable-Baselines3's `stats_window_size`).
const WINDOW: usize = 100;

/// What the loop needs to know besides environment and learner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OnPolicyConfig {
    /// Environment steps of the whole run; the last rollout may go beyond.
    pub total_env_steps: u64,
    /// Steps per environment and rollout.
    pub n_steps: usize,
    /// Discount per step.
    pub gamma: f64,
    /// Weight of long returns in the advantage.
    pub gae_lambda: f64,
    /// Seed of environments and exploration.
    pub seed: u64,
}

/// Collects rollouts and hands them to a learner.
pub struct OnPolicy<E: VecEnv> {
    env: E,
    config: OnPolicyConfig,
    buffer: RolloutBuffer<E::Obs, E::Action>,
    obs: E::Obs,
    counters: Counters,
    device: Device,
    started: Instant,
    steps_before: u64,
}

/// How far a run is; all that a resume needs of the loop itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Environment steps, all environments together.
    pub env_steps: u64,
    /// Rollouts collected and learned from.
    pub rollouts: u64,
    /// Episodes that ended.
    pub episodes: u64,
    /// The latest episodes.
    pub window: VecDeque<Episode>,
}

/// What one round of collecting and learning brought.
#[derive(Debug, Clone, PartialEq)]
pub struct Iteration {
    /// Environment steps so far.
    pub env_steps: u64,
    /// Environment steps of the whole run.
    pub total_env_steps: u64,
    /// Environment steps per second since the loop started.
    pub steps_per_sec: f64,
    /// Figures by name.
    pub metrics: Vec<(String, f64)>,
    /// Episodes that ended in this round.
    pub ended: Vec<Episode>,
}

impl Iteration {
    /// The figure called `name`.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// Hands all figures to a sink.
    ///
    /// # Errors
    /// Where the sink cannot keep them.
    pub fn report(&self, sink: &mut dyn Sink) -> Result<(), TrainError> {
        for (name, value) in &self.metrics {
            sink.scalar(self.env_steps, name, *value)?;
        }
        Ok(sink.flush()?)
    }
}

impl<E: VecEnv> OnPolicy<E> {
    /// Resets the environments and allocates the buffer. `policy` shows the shape of its decisions.
    ///
    /// # Errors
    /// [`TrainError::Field`] for a setting outside its rule; where an environment fails.
    pub fn new<P>(mut env: E, policy: &P, config: OnPolicyConfig, device: &Device) -> Result<Self, TrainError>
    where
        P: ActorCritic<Obs = E::Obs, Action = E::Action>,
    {
        for (field, value) in [("total_env_steps", config.total_env_steps), ("n_steps", config.n_steps as u64)] {
            if value == 0 {
                return Err(TrainError::Field { field, rule: "must be at least 1", value: "0".into() });
            }
        }
        let obs = env.reset(config.seed)?;
        let (action, _) = policy.act(obs.clone(), Explore::Greedy);
        let buffer = RolloutBuffer::new(config.n_steps, &obs, &action, device);
        Ok(Self {
            env,
            config,
            buffer,
            obs,
            counters: Counters::default(),
            device: device.clone(),
            started: Instant::now(),
            steps_before: 0,
        })
    }

    /// The environments.
    pub fn env(&self) -> &E {
        &self.env
    }

    /// How far the run is.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Goes on from saved counters and environments.
    ///
    /// # Errors
    /// Where the saved environments do not fit.
    pub fn restore(&mut self, counters: Counters, env: &[u8]) -> Result<(), TrainError> {
        self.obs = self.env.load(env)?;
        self.steps_before = counters.env_steps;
        self.counters = counters;
        self.started = Instant::now();
        Ok(())
    }

    /// Whether all steps are taken.
    pub fn is_done(&self) -> bool {
        self.counters.env_steps >= self.config.total_env_steps
    }

    /// Collects one rollout, learns from it and reads the metrics.
    ///
    /// # Errors
    /// Where an environment fails or a metric is not finite.
    pub fn iterate<L>(&mut self, learner: &mut L) -> Result<Iteration, TrainError>
    where
        L: Learner<Batch = Rollout<E::Obs, E::Action>>,
        L::Policy: ActorCritic<Obs = E::Obs, Action = E::Action>,
    {
        let progress = Progress { env_steps: self.counters.env_steps, total_env_steps: self.config.total_env_steps };
        let rollout = self.collect(&learner.policy())?;
        let metrics = learner.update(rollout, progress);
        let env_steps = self.counters.env_steps;
        let metrics = metrics.read().map_err(|source| TrainError::Metrics { env_steps, source })?;
        Ok(self.summarize(metrics))
    }

    fn collect<P>(&mut self, policy: &P) -> Result<Rollout<E::Obs, E::Action>, TrainError>
    where
        P: ActorCritic<Obs = E::Obs, Action = E::Action>,
    {
        let n_rows = self.env.n_rows();
        let mut rng = named_rng(self.config.seed, "noise", self.counters.rollouts);
        // One upload for the whole rollout.
        let noise = draw_noise(policy.noise(), self.config.n_steps * n_rows, &mut rng, &self.device);
        for step in 0..self.config.n_steps {
            let noise = noise.clone().slice(step * n_rows..(step + 1) * n_rows);
            let (action, decision) = policy.act(self.obs.clone(), Explore::Sample(noise));
            let result = self.env.step(policy.to_env(action.clone()))?;
            let end_value = result.next_obs.clone().map(|obs| policy.value(obs));
            let obs = std::mem::replace(&mut self.obs, result.obs.clone());
            self.buffer.push(obs, action, decision, &result, end_value);
        }
        self.counters.env_steps += (self.config.n_steps * self.env.n_envs()) as u64;
        self.counters.rollouts += 1;
        let last_value = policy.value(self.obs.clone());
        Ok(self.buffer.finish(last_value, self.config.gamma, self.config.gae_lambda))
    }

    /// Adds what the loop knows to what the learner reported.
    fn summarize(&mut self, learned: Vec<(&'static str, f64)>) -> Iteration {
        let mut ended = Vec::new();
        self.env.drain_episodes(&mut ended);
        let counters = &mut self.counters;
        counters.episodes += ended.len() as u64;
        counters.window.extend(ended.iter().cloned());
        let surplus = counters.window.len().saturating_sub(WINDOW);
        counters.window.drain(..surplus);

        let elapsed_secs = self.started.elapsed().as_secs_f64();
        let steps_per_sec = (counters.env_steps - self.steps_before) as f64 / elapsed_secs.max(1e-9);
        let mut metrics: Vec<(String, f64)> = vec![
            ("time/total_timesteps".into(), counters.env_steps as f64),
            ("time/iterations".into(), counters.rollouts as f64),
            ("time/fps".into(), steps_per_sec),
            ("time/time_elapsed".into(), elapsed_secs),
        ];
        let n = counters.window.len();
        if n > 0 {
            let mean = |of: &dyn Fn(&Episode) -> f64| counters.window.iter().map(of).sum::<f64>() / n as f64;
            metrics.push(("rollout/ep_rew_mean".into(), mean(&|episode| episode.episode_return)));
            metrics.push(("rollout/ep_len_mean".into(), mean(&|episode| episode.length as f64)));
            for (i, name) in self.env.info_names().iter().enumerate() {
                metrics.push((format!("rollout/{name}"), mean(&|episode| episode.info[i])));
            }
        }
        metrics.extend(learned.into_iter().map(|(name, value)| (name.to_owned(), value)));
        Iteration {
            env_steps: counters.env_steps,
            total_env_steps: self.config.total_env_steps,
            steps_per_sec,
            metrics,
            ended,
        }
    }
}
