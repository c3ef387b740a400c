//! Measuring a policy.

use brasa_core::env::Episode;
use brasa_core::{Explore, Policy, VecEnv};

use crate::TrainError;

/// Runs `policy` without exploration until every environment has ended its share of `n_episodes`.
///
/// Each environment contributes an equal number of episodes, rounded up, so that short episodes do not count more
/// often than long ones. The environment must keep episode statistics and must not be the one that trains.
///
/// # Errors
/// Where an environment fails.
pub fn evaluate<E, P>(policy: &P, env: &mut E, n_episodes: usize, seed: u64) -> Result<Vec<Episode>, TrainError>
where
    E: VecEnv,
    P: Policy<Obs = E::Obs, Action = E::Action>,
{
    let share = n_episodes.div_ceil(env.n_envs());
    let mut counted = vec![0; env.n_envs()];
    let (mut episodes, mut ended) = (Vec::new(), Vec::new());
    let mut obs = env.reset(seed)?;
    while counted.iter().any(|count| *count < share) {
        let (action, _) = policy.act(obs, Explore::Greedy);
        obs = env.step(policy.to_env(action))?.obs;
        env.drain_episodes(&mut ended);
        for episode in ended.drain(..) {
            if counted[episode.env] < share {
                counted[episode.env] += 1;
                episodes.push(episode);
            }
        }
    }
    episodes.truncate(n_episodes.max(1));
    Ok(episodes)
}
