//! Evaluation of a policy.

use brasa_core::env::{EnvError, EnvSpec, Episode, InvalidField, MAX_EPISODE_STEPS, field};
use brasa_core::{Explore, Policy, PolicyState, VecEnv};

use burn::tensor::Device;

use crate::TrainError;

/// Steps between two readings of episodes from a device; a reading waits for it.
const STEPS_BETWEEN_READINGS: u64 = 32;

/// Rejects a network that cannot learn from these environments because of its sizes, and environments on an autodiff device.
pub(crate) fn check_network(policy: &impl Policy, spec: &EnvSpec, device: &Device) -> Result<(), TrainError> {
    check_device(device)?;
    policy.sizes().map_or(Ok(()), |sizes| sizes.check(spec))?;
    Ok(())
}

fn check_device(device: &Device) -> Result<(), TrainError> {
    let rule = "must be on a device without autodiff (`Device::without_autodiff`)";
    Ok(field::rule(!device.is_autodiff(), "env", rule, "environments on an autodiff device")?)
}

/// Rejects environments of an evaluation in which the policy cannot act, or which normalize observations themselves.
pub(crate) fn check_evaluation(policy: &impl Policy, spec: &EnvSpec, normalizes: bool) -> Result<(), TrainError> {
    let rule = "must not normalize observations: the moments of training are applied";
    field::rule(!normalizes, "evaluate_every", rule, "normalized observations")?;
    match policy.sizes().map(|sizes| sizes.check_acting(spec)) {
        Some(Err(error)) => {
            let rule = "must have environments like those of training";
            Err(InvalidField::new("evaluate_every", rule, error).into())
        }
        _ => Ok(()),
    }
}

/// Plays `n_episodes` (at least 1) with `policy`, without exploration. Returns the episodes sorted by environment, and those
/// of one environment in the order in which they were played.
///
/// The number of episodes per environment is fixed in advance: `n_episodes / n_envs`, and one more for the first
/// `n_episodes % n_envs` environments. Taking the episodes that end first would overrepresent short ones. The environments
/// must not be those of training.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_core::HostEnv;
/// use brasa_core::env::wrappers::EpisodeStats;
/// use brasa_train::evaluate;
///
/// # let (network, device) = (ppo().network, device());
/// # let envs = brasa_core::env::EnvVec::new(0..4, |_| brasa_classic::CartPole::default())?;
/// # let envs = brasa_core::env::wrappers::TimeLimit::new(envs, 500)?;
/// let mut test_envs = HostEnv::new(EpisodeStats::new(envs), &device);
/// let episodes = evaluate(&network, &mut test_envs, 6, 1)?;
/// // Environments 0 and 1 take two episodes each.
/// let envs: Vec<_> = episodes.iter().map(|episode| episode.env).collect();
/// assert_eq!(envs, [0, 0, 1, 1, 2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`TrainError::Field`] if the environments keep no episode statistics ([`EnvSpec::keeps_episodes`]), or if they return
/// observations that are not normalized yet; [`EnvError::Space`] for a policy of other sizes; any error of an environment, also [`EnvError::Endless`] if no episode ends for
/// [`MAX_EPISODE_STEPS`] steps.
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
    check_device(env.device())?;
    policy.sizes().map_or(Ok(()), |sizes| sizes.check_acting(env.spec()))?;
    let (n_episodes, n_envs) = (n_episodes.max(1), env.n_envs());
    let quota = |env: usize| n_episodes / n_envs + usize::from(env < n_episodes % n_envs);
    let mut episodes: Vec<Vec<Episode>> = vec![Vec::new(); n_envs];
    let mut ended = Vec::new();
    let mut obs = env.reset(seed)?;
    let mut state = PolicyState::new(env.n_rows(), policy.state_width(), env.device());
    // Drop episodes recorded before this evaluation.
    env.drain_episodes(&mut ended)?;
    ended.clear();
    // Environments of the host hand out episodes at no cost.
    let every = if env.pending_episodes().is_some() { STEPS_BETWEEN_READINGS } else { 1 };
    let (mut steps, mut last_end) = (0, 0);
    while let Some(missing) = (0..n_envs).find(|env| episodes[*env].len() < quota(*env)) {
        if steps - last_end > MAX_EPISODE_STEPS {
            return Err(EnvError::Endless { env: missing, steps: steps - last_end }.into());
        }
        let (action, _) = policy.act_from(obs, &mut state, Explore::Greedy);
        let step = env.step(policy.to_env(action))?;
        state.end_after(&step);
        obs = step.obs;
        steps += 1;
        if steps % every != 0 {
            continue;
        }
        env.drain_episodes(&mut ended)?;
        for episode in ended.drain(..) {
            if episodes[episode.env].len() < quota(episode.env) {
                last_end = steps;
                episodes[episode.env].push(episode);
            }
        }
    }
    Ok(episodes.into_iter().flatten().collect())
}
