//! Trains PPO on CartPole-v1 with the crates alone: environments, network, learner, loop.

use brasa::classic::CartPole;
use brasa::core::{HostEnv, Schedule};
use brasa::device::open_named;
use brasa::env::wrappers::TimeLimit;
use brasa::env::{EnvVec, named_rng};
use brasa::nn::{ActorCriticConfig, MlpActorCritic};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::train::{OnPolicy, Run, Training, evaluate};
use burn::tensor::Device;

type CartPoles = HostEnv<TimeLimit<EnvVec<CartPole>>>;

fn cart_poles(n_envs: usize, device: &Device) -> Result<CartPoles, Box<dyn std::error::Error>> {
    let envs = EnvVec::new(0..n_envs, |_| CartPole::default())?;
    Ok(HostEnv::new(TimeLimit::new(envs, CartPole::TIME_LIMIT)?, device))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The code below runs on any device and names no backend.
    let device = open_named("cpu")?;
    let seed = 0;
    let env = cart_poles(8, &device)?;

    let config = PpoConfig {
        n_steps: 32,
        batch_size: 256,
        n_epochs: 20,
        gamma: 0.98,
        gae_lambda: 0.8,
        learning_rate: Schedule::linear(1e-3, 0.0),
        clip_range: Schedule::linear(0.2, 0.0),
        ..PpoConfig::default()
    };
    let network = MlpActorCritic::new(
        &ActorCriticConfig::default(),
        &env.spec().obs,
        &env.spec().action,
        &device.clone().autodiff(), // only what learns is tracked
        &mut named_rng(seed, "weights", 0),
    )?;
    let ppo = Ppo::new(network, config, seed)?;
    let mut training = OnPolicy::new(env, ppo, Run { total_env_steps: 100_000, seed })?;
    while !training.is_done() {
        let iteration = training.iterate()?;
        if iteration.env_steps % 20_480 == 0 {
            let mean = iteration.metric("rollout/ep_rew_mean").unwrap_or(f64::NAN);
            println!("{:>6} steps  {:>6.0} steps/s  return {mean:.1}", iteration.env_steps, iteration.steps_per_sec);
        }
    }

    let episodes = evaluate(&training.policy(), &mut cart_poles(20, &device)?, 20, 1000)?;
    let mean = episodes.iter().map(|episode| episode.episode_return).sum::<f64>() / episodes.len() as f64;
    println!("evaluation over {} episodes: {mean:.1}", episodes.len());
    Ok(())
}
