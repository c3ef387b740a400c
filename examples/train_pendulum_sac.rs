//! Trains SAC on Pendulum-v1 with the crates alone: environments, actor and critics, learner, replay buffer, loop.

use brasa::buffers::ReplayConfig;
use brasa::classic::Pendulum;
use brasa::core::{HostEnv, Schedule};
use brasa::device::open_named;
use brasa::env::wrappers::TimeLimit;
use brasa::env::{EnvVec, named_rng};
use brasa::nn::{MlpCritics, MlpCriticsConfig, SquashedActor, SquashedActorConfig};
use brasa::sac::{Sac, SacConfig};
use brasa::train::{OffPolicy, OffPolicyConfig, Run, Training, evaluate};
use burn::tensor::Device;

type Pendulums = HostEnv<TimeLimit<EnvVec<Pendulum>>>;

fn pendulums(n_envs: usize, device: &Device) -> Result<Pendulums, Box<dyn std::error::Error>> {
    let envs = EnvVec::new(0..n_envs, |_| Pendulum::default())?;
    Ok(HostEnv::new(TimeLimit::new(envs, Pendulum::TIME_LIMIT)?, device))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The code below runs on any device and names no backend.
    let device = open_named("cpu")?;
    let seed = 0;
    let env = pendulums(1, &device)?;

    // Only trained modules use autodiff; environments, replay buffer and target networks are on the non-autodiff
    // device.
    let tracked = device.clone().autodiff();
    let (obs_space, action_space) = (&env.spec().obs, &env.spec().action);
    let weights = |index| named_rng(seed, "weights", index);
    let actor = SquashedActorConfig { hidden: vec![64, 64], ..SquashedActorConfig::default() };
    let actor = SquashedActor::new(&actor, obs_space, action_space, &tracked, &mut weights(0))?;
    let critics = MlpCriticsConfig { hidden: vec![64, 64], ..MlpCriticsConfig::default() };
    let critics = MlpCritics::new(&critics, obs_space, action_space, &tracked, &mut weights(1))?;
    let config = SacConfig { learning_rate: Schedule::Constant(1e-3), ..SacConfig::default() };
    let sac = Sac::new(actor, critics, config, seed)?;

    let settings = OffPolicyConfig {
        updates_per_step: 1.0, // whatever the number of environments
        replay: ReplayConfig { capacity: 20_000, ..ReplayConfig::default() },
        ..OffPolicyConfig::default()
    };
    let mut training = OffPolicy::new(env, sac, settings, Run { total_env_steps: 20_000, seed })?;
    println!("{} bytes per transition", training.replay().bytes_per_transition());
    while !training.is_done() {
        // Runs `log_interval` environment steps.
        let iteration = training.iterate()?;
        let figure = |name| iteration.metric(name).unwrap_or(f64::NAN);
        println!(
            "{:>6} steps  {:>6.0} steps/s  return {:>7.1}  temperature {:.3}",
            iteration.env_steps,
            iteration.steps_per_sec,
            figure("rollout/ep_rew_mean"),
            figure("train/ent_coef")
        );
    }

    let episodes = evaluate(&training.policy(), &mut pendulums(20, &device)?, 20, 1000)?;
    let mean = episodes.iter().map(|episode| episode.episode_return).sum::<f64>() / episodes.len() as f64;
    println!("evaluation over {} episodes: {mean:.1}", episodes.len());
    Ok(())
}
