//! The on-policy loop: collect a rollout, learn from it, throw it away.

use brasa_buffers::{Rollout, RolloutBuffer};
use brasa_core::env::named_rng;
use brasa_core::{ActorCritic, Explore, Learner, Progress, VecEnv};
use brasa_nn::draw_noise;
use burn::tensor::Device;

use crate::iteration::Tally;
use crate::{Counters, Iteration, TrainError};

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
    tally: Tally,
    device: Device,
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
        Ok(Self { env, config, buffer, obs, tally: Tally::new(Counters::default()), device: device.clone() })
    }

    /// The environments.
    pub fn env(&self) -> &E {
        &self.env
    }

    /// How far the run is.
    pub fn counters(&self) -> &Counters {
        &self.tally.counters
    }

    /// Goes on from saved counters and environments.
    ///
    /// # Errors
    /// Where the saved environments do not fit.
    pub fn restore(&mut self, counters: Counters, env: &[u8]) -> Result<(), TrainError> {
        self.obs = self.env.load(env)?;
        self.tally = Tally::new(counters);
        Ok(())
    }

    /// Whether all steps are taken.
    pub fn is_done(&self) -> bool {
        self.tally.counters.env_steps >= self.config.total_env_steps
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
        let progress = Progress::new(self.tally.counters.env_steps, self.config.total_env_steps);
        let rollout = self.collect(&learner.policy(progress))?;
        let metrics = learner.update(rollout, progress);
        let env_steps = self.tally.counters.env_steps;
        let metrics = metrics.read().map_err(|source| TrainError::Metrics { env_steps, source })?;
        Ok(self.tally.summarize(&mut self.env, self.config.total_env_steps, metrics))
    }

    fn collect<P>(&mut self, policy: &P) -> Result<Rollout<E::Obs, E::Action>, TrainError>
    where
        P: ActorCritic<Obs = E::Obs, Action = E::Action>,
    {
        let n_rows = self.env.n_rows();
        let mut rng = named_rng(self.config.seed, "noise", self.tally.counters.iterations);
        // One upload for the whole rollout.
        let spec = policy.noise();
        let noise = draw_noise(spec, self.config.n_steps.div_ceil(spec.hold) * n_rows, &mut rng, &self.device);
        for step in 0..self.config.n_steps {
            let block = step / spec.hold;
            let noise = noise.clone().slice(block * n_rows..(block + 1) * n_rows);
            let (action, decision) = policy.act(self.obs.clone(), Explore::Sample(noise));
            let result = self.env.step(policy.to_env(action.clone()))?;
            let end_value = result.next_obs.clone().map(|obs| policy.value(obs));
            let obs = std::mem::replace(&mut self.obs, result.obs.clone());
            self.buffer.push(obs, action, decision, &result, end_value);
        }
        self.tally.counters.env_steps += (self.config.n_steps * self.env.n_envs()) as u64;
        let last_value = policy.value(self.obs.clone());
        Ok(self.buffer.finish(last_value, self.config.gamma, self.config.gae_lambda))
    }
}
