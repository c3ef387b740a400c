//! What a run on replayed transitions takes.

use brasa_buffers::{Compact, ReplayBuffer, ReplayConfig, Transitions};
use brasa_core::{OffPolicyLearner, Policy, Progress, RandomWarmup, Rows, VecEnv};
use brasa_nn::Persist;

use super::{Acting, FEW, Footprint, Work, at_rows, checkpoint_bytes, passing_work, work, workspace};
use crate::{OffPolicy, OffPolicyConfig, Run, TrainError};

impl<E, L> OffPolicy<E, L>
where
    E: VecEnv,
    E::Obs: Compact,
    E::Action: Compact,
    L: OffPolicyLearner<Batch = Transitions<E::Obs, E::Action>>,
    L::Policy: RandomWarmup<Obs = E::Obs, Action = E::Action>,
{
    /// Measures memory and work of a run with `n_envs` environments on fewer ones: `envs` creates as many as it is told to.
    /// `None` if [`brasa_device::Meter`] is not the allocator of the program.
    ///
    /// # Errors
    /// Any error of `envs` and `learner`, and of an environment.
    pub fn footprint<X>(
        mut envs: impl FnMut(usize) -> Result<E, X>,
        learner: impl FnOnce() -> Result<L, X>,
        config: &OffPolicyConfig,
        n_envs: usize,
        run: Run,
    ) -> Result<Option<Footprint>, X>
    where
        L: Persist,
        X: From<TrainError>,
    {
        let Some((learner, _, built)) = work(learner) else { return Ok(None) };
        let learner = learner?;
        let saved = learner.save();
        let (weights, moments, gradients) = (saved.policy_bytes(), saved.moments_bytes(), saved.gradient_bytes());
        drop(saved);
        let policy = learner.policy(Progress::new(0, run.total_env_steps));
        let Acting { env, obs, action, acting, stepping, env_bytes } =
            Acting::measured(&mut envs, &policy, n_envs, run)?;
        let n_rows = n_envs * env.spec().n_agents;
        let whole = env.spec().with_n_envs(n_envs);
        let stored = ReplayBuffer::bytes_of(&config.replay, &whole, &obs, &action, env.device())
            + ReplayBuffer::<E::Obs, E::Action>::memory_bytes(
                &config.replay,
                &whole,
                policy.state_width(),
                env.device(),
            );
        let (noise, obs_bytes) = (policy.noise(), obs.bytes_per_row());
        let bookkeeping = ReplayBuffer::<E::Obs, E::Action>::bookkeeping_bytes(&config.replay, n_envs);
        let length = config.replay.sequences.map_or(0, |sequences| sequences.burn_in + sequences.length);
        let span = config.replay.n_step + length;
        let small = ReplayConfig { capacity: (span + 16) * env.n_rows(), ..config.replay.clone() };
        let config = OffPolicyConfig { replay: small, ..config.clone() };
        let mut small = Self::new(
            env,
            learner,
            OffPolicyConfig { learning_starts: 0, updates_per_step: 1.0, ..config.clone() },
            run,
        )?;
        for _ in 0..span + 8 {
            small.collect(&policy)?;
        }
        drop(policy);
        // Away from the start of an episode, where a target network may share its memory with the network.
        small.updates.learner.after_step(false);
        let progress = Progress::new(0, run.total_env_steps);
        let normalization = small.env.normalization();
        let (updates, counters) = (&mut small.updates, &mut small.tally.counters);
        updates.config.batch_size = FEW;
        let (_, _, grown) =
            work(|| drop(updates.learn(counters, progress, normalization.as_ref()))).expect("it measures, as before");
        let learning = at_rows(config.batch_size, |rows| {
            updates.config.batch_size = rows;
            let learn = || updates.learn(counters, progress, normalization.as_ref());
            Ok::<_, X>(passing_work(learn).expect("it measures, as before"))
        })?;
        let checkpoint = checkpoint_bytes(&small.updates.learner, &small.env, n_envs);
        let steps = run.total_env_steps.div_ceil(n_envs as u64) as f64;
        let learned_from = run.total_env_steps.saturating_sub(config.learning_starts) as f64;
        let footprint = Footprint {
            weights,
            learner: (built + grown - weights).max(0.0),
            moments,
            gradients,
            bookkeeping,
            stored,
            stored_as: "replay buffer",
            stored_on_host: config.replay.on_host,
            recordings: 0.0,
            staging: n_rows as f64 * ((noise.width * size_of::<f32>()) as f64 + 2.0 * obs_bytes),
            envs: env_bytes,
            workspace: workspace(),
            checkpoint,
            batch_rows: config.batch_size,
            acting: Work { times: steps, ..acting },
            stepping: Work { times: steps, ..stepping },
            learning: Work { times: (learned_from * config.updates_per_step).floor(), ..learning },
        };
        Ok(Some(footprint.recorded(small.updates.learner.n_recordings(), learning.bytes)))
    }
}
