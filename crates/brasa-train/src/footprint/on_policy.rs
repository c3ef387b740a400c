//! What a run on rollouts takes.

use brasa_buffers::{Discounts, MOST_VALUED_ROWS, Remembered, Rollout, RolloutBuffer};
use brasa_core::env::EnvSpec;
use brasa_core::{
    ActorCritic, Decision, Explore, OnPolicyLearner, Policy, Progress, Rows, StepBatch, Successor, VecEnv,
};
use brasa_nn::Persist;
use burn::tensor::Tensor;

use super::{Acting, Footprint, Work, at_rows, checkpoint_bytes, passing_work, work, workspace, wrapping};
use crate::{OnPolicy, Run, TrainError};

impl<E, L> OnPolicy<E, L>
where
    E: VecEnv,
    L: OnPolicyLearner<Batch = Rollout<E::Obs, E::Action>>,
    L::Policy: ActorCritic<Obs = E::Obs, Action = E::Action>,
{
    /// Measures memory and work of a run with `n_envs` environments on fewer ones: `envs` creates as many as it is told to.
    /// `None` if [`brasa_device::Meter`] is not the allocator of the program.
    ///
    /// # Errors
    /// Any error of `envs` and `learner`, and of an environment.
    pub fn footprint<X>(
        mut envs: impl FnMut(usize) -> Result<E, X>,
        learner: impl FnOnce() -> Result<L, X>,
        n_envs: usize,
        run: Run,
    ) -> Result<Option<Footprint>, X>
    where
        L: Persist,
        X: From<TrainError>,
    {
        let Some((learner, _, built)) = work(learner) else { return Ok(None) };
        let mut learner = learner?;
        let saved = learner.save();
        let (weights, moments, gradients) = (saved.policy_bytes(), saved.moments_bytes(), saved.gradient_bytes());
        drop(saved);
        let progress = Progress::new(0, run.total_env_steps);
        let policy = learner.policy(progress);
        let Acting { mut env, obs, action, acting, stepping, env_bytes } =
            Acting::measured(&mut envs, &policy, n_envs, run)?;
        let on_host = env.on_host().is_some() && policy.host_actor().is_some();
        let (device, spec) = (env.device().clone(), env.spec());
        let n_rows = n_envs * spec.n_agents;
        // The host stores the observation before a reset only where there is one.
        let interval = if on_host { u64::MAX } else { spec.truncation_interval };
        let n_steps = learner.n_steps();
        let (total, state_width) = (n_steps * n_rows, policy.state_width());
        let remembers = state_width > 0;
        // Of a policy that remembers, rows stand in sequences.
        let n_agents = policy.n_agents();
        let unit = if remembers { n_steps * n_agents } else { n_agents };
        let rollout = |rows: usize| {
            let picked = wrapping(rows, obs.n_rows(), &device);
            let zeros = || Tensor::<1>::zeros([rows], &device);
            Rollout {
                obs: obs.select(picked.clone()),
                action: action.select(picked),
                log_prob: zeros(),
                value: zeros(),
                // Equal advantages would be normalized to 0 / 0.
                advantage: Tensor::arange(0..rows as i64, &device).float(),
                returns: zeros(),
                remembered: remembers
                    .then(|| Remembered { state: Tensor::zeros([rows, state_width], &device), starts: zeros() }),
            }
        };
        let (_, Decision { value, .. }) = policy.act(obs.clone(), Explore::Greedy);
        let values_come_with_actions = value.is_some();
        // The policy shares the weights: while it exists, an update must copy them.
        drop((policy, value));
        let first = rollout(unit);
        let (_, _, grown) = work(|| drop(learner.update(first, progress))).expect("it measures, as before");
        let batch_rows = learner.batch_rows(total).next_multiple_of(unit);
        let mut learning = at_rows(batch_rows / unit, |units| {
            // As in a run, the rollout lives on while its minibatches are learned from.
            let whole = rollout(units * unit);
            let batch = whole.clone();
            Ok::<_, X>(passing_work(|| learner.update(batch, progress)).expect("it measures, as before"))
        })?;
        // Minibatches have up to two sizes.
        let recorded = learning.bytes * (batch_rows + total % batch_rows) as f64 / batch_rows as f64;
        let policy = learner.policy(progress);
        let finishing = at_rows(total, |steps| {
            let (one, chosen) = (obs.select(wrapping(1, 1, &device)), action.select(wrapping(1, 1, &device)));
            let zeros = || Tensor::<1>::zeros([1], &device);
            let one_row = EnvSpec { n_agents: 1, ..env.spec().with_n_envs(1) };
            let mut buffer = RolloutBuffer::new(steps, &one_row, &one, &chosen, &device);
            for _ in 0..steps {
                let step = StepBatch {
                    obs: one.clone(),
                    successor: Successor::Same,
                    reward: zeros(),
                    terminated: zeros(),
                    truncated: zeros(),
                    elapsed: None,
                };
                let decision = Decision { log_prob: zeros(), value: Some(zeros()) };
                buffer.push(one.clone(), chosen.clone(), decision, &step);
            }
            let discounts = Discounts { gamma: 0.99, gae_lambda: 0.95 };
            let finish =
                || buffer.finish(zeros(), |obs, _| policy.value(obs), discounts).expect("no row was truncated");
            Ok::<_, X>(passing_work(finish).expect("it measures, as before"))
        })?;
        let valuing = match values_come_with_actions {
            true => Work::default(),
            false => at_rows(total.min(MOST_VALUED_ROWS) / n_agents, |teams| {
                let obs = obs.select(wrapping(teams * n_agents, obs.n_rows(), &device));
                Ok::<_, X>(passing_work(|| policy.value(obs.clone())).expect("it measures, as before"))
            })?,
        };
        // A rollout ends with the estimate of its advantages.
        let acting = Work { bytes: acting.bytes.max(finishing.bytes + valuing.bytes), ..acting };
        // A minibatch, and the order of all rows.
        let per_row = rollout(1).bytes_per_row();
        let checkpoint = checkpoint_bytes(&learner, &env, n_envs);
        let copies = match batch_rows < total {
            true => batch_rows as f64 * per_row + total as f64 * size_of::<u32>() as f64,
            false => 0.0,
        };
        // Without tensors, rewards and flags make room for advantages and returns.
        let advantages = if on_host { 0.0 } else { 2.0 * 4.0 * total as f64 };
        learning.bytes += advantages + copies;
        let bookkeeping = if on_host { 0.0 } else { RolloutBuffer::<E::Obs, E::Action>::bookkeeping_bytes(n_steps) };
        let iterations = run.total_env_steps.div_ceil((n_steps * n_envs) as u64) as f64;
        learning.times = iterations * total.div_ceil(batch_rows) as f64;
        // What it remembered before each step, and where an episode begins.
        let remembered = if remembers { (total * (state_width + 1) * size_of::<f32>()) as f64 } else { 0.0 };
        let noise = policy.noise();
        let staged = n_steps.div_ceil(noise.resample_every) * noise.width * size_of::<f32>();
        let times = iterations * n_steps as f64;
        let footprint = Footprint {
            weights,
            learner: (built + grown - weights).max(0.0),
            moments,
            gradients,
            bookkeeping,
            stored: RolloutBuffer::bytes(n_steps, n_rows, interval, &obs, &action) + remembered,
            stored_as: "rollout",
            stored_on_host: false,
            recordings: 0.0,
            staging: n_rows as f64 * (staged as f64 + 2.0 * obs.bytes_per_row()),
            envs: env_bytes,
            workspace: workspace(),
            checkpoint,
            batch_rows,
            acting: Work { times, ..acting },
            stepping: Work { times, ..stepping },
            learning,
        };
        Ok(Some(footprint.recorded(learner.n_recordings(), recorded)))
    }
}
