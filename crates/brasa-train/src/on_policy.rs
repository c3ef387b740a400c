//! The on-policy loop: collect a rollout, learn from it, discard it.

use std::path::Path;
use std::thread;

use brasa_buffers::{Discounts, HostRollout, Rollout, RolloutBuffer};
use brasa_core::env::wrappers::RunningMoments;
use brasa_core::env::{EnvSpec, field, named_rng};
use brasa_core::{
    ActorCritic, Explore, HostActor, HostObs, Metrics, NoiseSpec, OnPolicyLearner, Policy, PolicyState, Progress,
    ValueScale, VecEnv,
};
use brasa_device::{autocast, precision};
use brasa_nn::{Arrays, Persist, draw_noise, noise_numbers};
use burn::tensor::{Device, Tensor, TensorData};

use crate::evaluate::check_network;
use crate::iteration::{Clock, Tally};
use crate::sharding::{SharedMoments, all_envs, own_seed};
use crate::snapshot::{ahead_of, put_ahead, take_over, with_state, without_state};
use crate::{Checkpoint, Counters, Iteration, Run, StopToken, TrainError, Training, restore_learner, take_checkpoint};

/// The on-policy loop: collects rollouts and updates a learner with them.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_train::{OnPolicy, Run, Training};
///
/// let mut training = OnPolicy::new(cart_poles(4), ppo(), Run { total_env_steps: 128, seed: 0 })?;
/// while !training.is_done() {
///     training.iterate()?;
/// }
/// assert_eq!(training.counters().env_steps, 128);
/// let (_envs, learner) = training.into_parts();
/// # drop(learner);
/// # Ok::<(), brasa_train::TrainError>(())
/// ```
#[derive(Debug)]
pub struct OnPolicy<E: VecEnv, L> {
    rollouts: Rollouts<E>,
    learner: L,
    run: Run,
    tally: Tally,
    moments: SharedMoments,
    is_pipelined: bool,
    ahead: Option<Ahead<E::Obs, E::Action>>,
}

/// Environments, and what collects rollouts of them.
#[derive(Debug)]
struct Rollouts<E: VecEnv> {
    env: E,
    obs: E::Obs,
    /// What the policy remembers before the next step.
    state: PolicyState,
    /// `None` until a rollout needs it: those in the memory of the CPU do not.
    buffer: Option<RolloutBuffer<E::Obs, E::Action>>,
    device: Device,
    n_steps: usize,
    discounts: Discounts,
    seed: u64,
}

/// A rollout that was collected during the update before.
#[derive(Debug)]
struct Ahead<O, A> {
    rollout: Rollout<O, A>,
    /// State of the environments before the rollout, what the policy remembered, and the weights that acted in it: a resumed run collects it
    /// again.
    env: Vec<u8>,
    state: PolicyState,
    policy: Arrays,
}

impl<E, L> OnPolicy<E, L>
where
    E: VecEnv,
    L: OnPolicyLearner<Batch = Rollout<E::Obs, E::Action>>,
    L::Policy: ActorCritic<Obs = E::Obs, Action = E::Action>,
{
    /// Resets the environments. The learner determines rollout length and discounts.
    ///
    /// # Errors
    /// [`TrainError::Field`] if a setting violates its rule; any error of an environment.
    pub fn new(mut env: E, learner: L, run: Run) -> Result<Self, TrainError> {
        field::at_least_one("total_env_steps", run.total_env_steps)?;
        field::at_least_one("n_steps", learner.n_steps() as u64)?;
        let rule = "must normalize its observations itself (`NormalizeObs::new` in place of `watching`)";
        field::rule(!env.spec().normalize_on_use, "env", rule, "observations as they are")?;
        let spec = env.spec();
        let per_row = 4.0 * (spec.obs.width() + spec.mask_width() + spec.action.width() + 8) as f64;
        field::fits_in_memory("n_steps", learner.n_steps(), per_row * spec.n_rows() as f64 * learner.n_steps() as f64)?;
        let device = env.device().clone();
        let policy = learner.policy(Progress::new(0, run.total_env_steps));
        check_network(&policy, env.spec(), &device)?;
        let state = PolicyState::new(env.n_rows(), policy.state_width(), &device);
        drop(policy);
        let mut moments = SharedMoments::new(&mut env)?;
        let obs = env.reset(run.seed)?;
        moments.merge(&mut env);
        let tally = Tally::new(Counters::begin(learner.gamma()));
        let discounts = Discounts { gamma: learner.gamma(), gae_lambda: learner.gae_lambda() };
        let n_steps = learner.n_steps();
        let seed = own_seed(run.seed);
        let rollouts = Rollouts { env, obs, state, buffer: None, device, n_steps, discounts, seed };
        Ok(Self { rollouts, learner, run, tally, moments, is_pipelined: false, ahead: None })
    }

    /// Collects every rollout but the first one while the learner learns from the one before, in another thread, with the policy of one update
    /// earlier. This saves time where environments take long. Each run with the same seed still has the same numbers.
    #[must_use]
    pub fn pipelined(self, is_pipelined: bool) -> Self {
        Self { is_pipelined, ..self }
    }

    /// The environments.
    pub fn env(&self) -> &E {
        &self.rollouts.env
    }

    /// Returns the environments and the learner.
    pub fn into_parts(self) -> (E, L) {
        (self.rollouts.env, self.learner)
    }
}

impl<E, L> OnPolicy<E, L>
where
    E: VecEnv,
    L: OnPolicyLearner<Batch = Rollout<E::Obs, E::Action>> + Persist,
    L::Policy: ActorCritic<Obs = E::Obs, Action = E::Action>,
{
    /// Learns from a rollout and, if another one follows, collects it at the same time.
    fn learn_and_collect(
        &mut self,
        rollout: Rollout<E::Obs, E::Action>,
        progress: Progress,
    ) -> Result<Metrics, TrainError> {
        // Taken before the update and the rollout: from these, a resumed run collects the rollout again.
        let (policy, scale) = (self.learner.policy(progress), self.learner.value_scale());
        let (env, weights) = (self.rollouts.env.save(), self.learner.save().policy);
        let state = self.rollouts.state.clone();
        let (index, mut clock) = (self.tally.counters.iterations + 1, self.tally.clock.fork());
        let (rollouts, precision) = (&mut self.rollouts, precision());
        let (metrics, collected) = thread::scope(|scope| {
            let collecting = scope.spawn(move || {
                let rollout = autocast(precision, || rollouts.collect(policy, scale, index, &mut clock));
                (rollout, clock)
            });
            let metrics = self.learner.update(rollout, progress);
            self.tally.clock.learned();
            (metrics, collecting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let (rollout, clock) = collected;
        self.tally.clock.join(clock);
        self.ahead = Some(Ahead { rollout: rollout?, env, state, policy: weights });
        self.moments.merge(&mut self.rollouts.env);
        Ok(metrics)
    }
}

impl<E: VecEnv> Rollouts<E> {
    /// The rollout `index` of the run. `scale` is the unit of the policy's values.
    fn collect<P>(
        &mut self,
        policy: P,
        scale: ValueScale,
        index: u64,
        clock: &mut Clock,
    ) -> Result<Rollout<E::Obs, E::Action>, TrainError>
    where
        P: ActorCritic<Obs = E::Obs, Action = E::Action>,
    {
        let policy = &policy;
        let value_of = |obs, state: &PolicyState| scale.to_rewards(policy.value_from(obs, state));
        let n_rows = self.env.n_rows();
        let mut rng = named_rng(self.seed, "noise", index);
        let spec = policy.noise();
        let n_noises = self.n_steps.div_ceil(spec.resample_every) * n_rows;
        if let Some(actor) = self.env.on_host().and_then(|_| policy.host_actor()) {
            let noise = noise_numbers(spec, n_noises, &mut rng);
            return self.collect_on_host((policy, scale), actor, &noise, clock);
        }
        // One upload for the whole rollout.
        let noise = draw_noise(spec, n_noises, &mut rng, &self.device);
        for step in 0..self.n_steps {
            let block = step / spec.resample_every;
            let noise = noise.clone().slice(block * n_rows..(block + 1) * n_rows);
            let before = self.state.clone();
            let (action, mut decision) = policy.act_from(self.obs.clone(), &mut self.state, Explore::Sample(noise));
            decision.value = decision.value.map(|value| scale.to_rewards(value));
            let in_env = policy.to_env(action.clone());
            clock.acted();
            let result = self.env.step(in_env)?;
            clock.stepped(&self.env);
            let obs = std::mem::replace(&mut self.obs, result.obs.clone());
            let new = || RolloutBuffer::new(self.n_steps, self.env.spec(), &obs, &action, &self.device);
            let buffer = self.buffer.get_or_insert_with(new);
            buffer.remember(&before, &self.state);
            buffer.push(obs, action, decision, &result);
            self.state.end_after(&result);
        }
        let last_value = value_of(self.obs.clone(), &self.state);
        let buffer = self.buffer.as_mut().expect("there is at least one step");
        Ok(buffer.finish(last_value, value_of, self.discounts)?)
    }

    /// The same without tensors, for environments in the memory of the CPU.
    fn collect_on_host<P>(
        &mut self,
        (policy, scale): (&P, ValueScale),
        mut actor: Box<dyn HostActor>,
        noise: &[f32],
        clock: &mut Clock,
    ) -> Result<Rollout<E::Obs, E::Action>, TrainError>
    where
        P: ActorCritic<Obs = E::Obs, Action = E::Action>,
    {
        let state_width = policy.state_width();
        let mut rollout = HostRollout::new(self.n_steps, self.env.spec(), state_width);
        let mut state: Vec<f32> = match &self.state.numbers {
            // Host only: the policy computes on the CPU.
            Some(numbers) => numbers.to_data().iter::<f32>().collect(),
            None => Vec::new(),
        };
        let NoiseSpec { width, resample_every, .. } = policy.noise();
        let width = width * self.env.n_rows();
        let env = self.env.on_host().expect("they were in the memory of the CPU before this rollout");
        let mut in_env = Vec::new();
        for step in 0..self.n_steps {
            let obs = env.observed();
            rollout.observe(obs, &state);
            let block = step / resample_every * width;
            actor.act(obs, &mut state, &noise[block..block + width], &mut rollout.decisions, &mut in_env);
            clock.acted();
            let results = env.step(&in_env)?;
            clock.stepped_on_host();
            rollout.push(results, &state);
            if state_width > 0 {
                let rows = state.chunks_exact_mut(state_width).enumerate();
                rows.filter(|(row, _)| results.episode_end(*row)).for_each(|(_, state)| state.fill(0.0));
            }
        }
        if let Some(numbers) = &mut self.state.numbers {
            *numbers = Tensor::from_data(TensorData::new(state, numbers.dims()), &self.device);
        }
        let HostObs { values, mask, .. } = env.observed();
        self.obs = env.obs(values.to_vec(), mask.map(<[f32]>::to_vec));
        scale.to_rewards_on_host(&mut rollout.decisions.value);
        let value_of = |obs, state: &PolicyState| scale.to_rewards(policy.value_from(obs, state));
        Ok(rollout.finish(env, (self.obs.clone(), &self.state), value_of, self.discounts, &self.device))
    }
}

impl<E, L> Training for OnPolicy<E, L>
where
    E: VecEnv,
    L: OnPolicyLearner<Batch = Rollout<E::Obs, E::Action>> + Persist,
    L::Policy: ActorCritic<Obs = E::Obs, Action = E::Action>,
{
    type Learner = L;

    fn learner(&self) -> &L {
        &self.learner
    }

    fn run(&self) -> Run {
        self.run
    }

    fn device(&self) -> &Device {
        &self.rollouts.device
    }

    fn spec(&self) -> &EnvSpec {
        self.rollouts.env.spec()
    }

    fn obs_moments(&self) -> Option<&RunningMoments> {
        self.rollouts.env.obs_moments()
    }

    fn counters(&self) -> &Counters {
        &self.tally.counters
    }

    fn iterate(&mut self) -> Result<Iteration, TrainError> {
        Ok(self.iterate_until(&StopToken::default())?.expect("nobody else has this token"))
    }

    /// Collects rollouts and learns from them until the next reading of metrics is due, and reads them. It can be interrupted after every
    /// rollout.
    fn iterate_until(&mut self, stop: &StopToken) -> Result<Option<Iteration>, TrainError> {
        let interval = self.learner.log_interval();
        let round = self.tally.counters.env_steps / interval;
        let mut most_early: Option<Tensor<1>> = None;
        loop {
            let progress = self.progress();
            let rollout = match self.ahead.take() {
                Some(ahead) => ahead.rollout,
                None => {
                    // The policy shares the weights: while it exists, an update must copy them.
                    let (policy, scale) = (self.learner.policy(progress), self.learner.value_scale());
                    let (index, clock) = (self.tally.counters.iterations, &mut self.tally.clock);
                    let rollout = self.rollouts.collect(policy, scale, index, clock)?;
                    self.moments.merge(&mut self.rollouts.env);
                    rollout
                }
            };
            self.tally.counters.counted_ahead = false;
            self.tally.counters.env_steps += (self.rollouts.n_steps * all_envs(&self.rollouts.env)) as u64;
            self.tally.clock.acted();
            let metrics = match self.is_pipelined && !self.is_done() {
                true => self.learn_and_collect(rollout, progress)?,
                false => self.learner.update(rollout, progress),
            };
            self.tally.counters.iterations += 1;
            let early = self.rollouts.buffer.as_ref().and_then(RolloutBuffer::early_truncations);
            most_early = match (most_early, early) {
                (Some(before), Some(now)) => Some(before.max_pair(now)),
                (before, now) => before.or(now),
            };
            if self.is_done() || self.tally.counters.env_steps / interval != round {
                let total = self.run.total_env_steps;
                let iteration = self.tally.summarize(&mut self.rollouts.env, total, metrics, most_early)?;
                self.tally.counters.counted_ahead = self.ahead.is_some();
                return Ok(Some(iteration));
            }
            self.tally.clock.learned();
            if stop.is_stopped() {
                return Ok(None);
            }
        }
    }

    fn checkpoint(&self) -> Checkpoint {
        let env = &self.rollouts.env;
        let saved = match &self.ahead {
            Some(ahead) => with_state(ahead.env.clone(), &ahead.state),
            None => with_state(env.save(), &self.rollouts.state),
        };
        let mut checkpoint = take_checkpoint(&self.learner, &self.tally.counters, env.obs_moments(), saved, Vec::new());
        if let Some(ahead) = &self.ahead {
            put_ahead(&mut checkpoint, &ahead.policy);
        }
        checkpoint
    }

    fn init_from(&mut self, checkpoint: &Checkpoint, path: &Path) -> Result<(), TrainError> {
        let (obs, moments) = take_over(&mut self.rollouts.env, &mut self.learner, checkpoint, path, self.run.seed)?;
        (self.rollouts.obs, self.moments) = (obs, moments);
        // All episodes begin.
        let Rollouts { env, state, device, .. } = &mut self.rollouts;
        *state = PolicyState::new(env.n_rows(), state.width(), device);
        Ok(())
    }

    /// A rollout that was collected ahead is collected again, by the weights that had collected it.
    fn restore(&mut self, checkpoint: &Checkpoint, path: &Path) -> Result<(), TrainError> {
        let counters = restore_learner(&mut self.learner, checkpoint, path)?;
        counters.check(self.rollouts.env.spec(), self.learner.gamma(), path)?;
        let shape = [self.rollouts.env.n_rows(), self.rollouts.state.width()];
        let (env, state) = without_state(&checkpoint.env, shape, &self.rollouts.device, path)?;
        self.rollouts.obs = self.rollouts.env.load(&env)?;
        self.rollouts.state = state;
        self.moments = SharedMoments::new(&mut self.rollouts.env)?;
        self.tally = Tally::new(counters);
        self.ahead = None;
        if let Some(weights) = ahead_of(checkpoint) {
            let earlier = Checkpoint { policy: weights.clone(), ..checkpoint.clone() };
            restore_learner(&mut self.learner, &earlier, path)?;
            let (policy, scale) = (self.learner.policy(self.progress()), self.learner.value_scale());
            let state = self.rollouts.state.clone();
            let (index, clock) = (self.tally.counters.iterations, &mut self.tally.clock);
            let rollout = self.rollouts.collect(policy, scale, index, clock)?;
            self.ahead = Some(Ahead { rollout, env, state, policy: weights });
            self.moments.merge(&mut self.rollouts.env);
            restore_learner(&mut self.learner, checkpoint, path)?;
            if self.tally.counters.counted_ahead {
                self.rollouts.env.drain_episodes(&mut Vec::new())?;
            }
        }
        Ok(())
    }
}
