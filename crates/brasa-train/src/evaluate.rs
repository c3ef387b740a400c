//! Evaluation of a policy.

use brasa_core::env::{Episode, field};
use brasa_core::{Explore, Policy, VecEnv};

use crate::TrainError;

/// Steps between two readings of episodes from a device; a reading waits for it.
const STEPS_BETWEEN_READINGS: u64 = 32;

/// Plays `n_episodes` (at least 1) with `policy`, without exploration. Returns the episodes sorted by environment, and those
/// of one environment in the order in which they were played.
///
/// The number of episodes per environment is fixed in advance: `n_episodes / n_envs`, and one more for the first
/// `n_episodes % n_envs` environments. Taking the episodes that end first would overrepresent short ones. The environments
/// must not be those of training.
///
/// # Errors
/// [`TrainError::Field`] if the environments keep no episode statistics ([`EnvSpec::keeps_episodes`]), or if they return
/// observations that are not normalized yet; any error of an environment.
///
/// [`EnvSpec::keeps_episodes`]: brasa_core::env::EnvSpec::keeps_episodes
pub fn evaluate<E, P>(policy: &P, env: &mut E, n_episodes: usize, seed: u64) -> Result<Vec<Episode>, TrainError>
where
    E: VecEnv,
    P: Policy<Obs = E::Obs, Action = E::Action>,
{
    let rule = "must keep episode statistics: wrap the environments in `EpisodeStats`";
    field::rule(env.spec().keeps_episodes, "env", rule, "environments without them")?;
    let rule = "must have observations as the policy saw them (`NormalizeObs::frozen` in place of `watching`)";
    field::rule(!env.spec().normalize_on_use, "env", rule, "observations as they are")?;
    let (n_episodes, n_envs) = (n_episodes.max(1), env.n_envs());
    let quota = |env: usize| n_episodes / n_envs + usize::from(env < n_episodes % n_envs);
    let mut episodes: Vec<Vec<Episode>> = vec![Vec::new(); n_envs];
    let mut ended = Vec::new();
    let mut obs = env.reset(seed)?;
    // Drop episodes recorded before this evaluation.
    env.drain_episodes(&mut ended)?;
    ended.clear();
    // Environments of the host hand out episodes at no cost.
    let every = if env.pending_episodes().is_some() { STEPS_BETWEEN_READINGS } else { 1 };
    let mut steps = 0;
    while episodes.iter().enumerate().any(|(env, episodes)| episodes.len() < quota(env)) {
        let (action, _) = policy.act(obs, Explore::Greedy);
        obs = env.step(policy.to_env(action))?.obs;
        steps += 1;
        if steps % every != 0 {
            continue;
        }
        env.drain_episodes(&mut ended)?;
        for episode in ended.drain(..) {
            if episodes[episode.env].len() < quota(episode.env) {
                episodes[episode.env].push(episode);
            }
        }
    }
    Ok(episodes.into_iter().flatten().collect())
}
