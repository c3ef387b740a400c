//! PPO on a custom environment without a config file: normalized observations, checkpoints, resume, evaluation,
//! the best policy, metrics for TensorBoard. After a stop or a crash, a new start resumes the run.
//!
//! `cargo run --release -p brasa-examples --example train_own_environment`; a number after `--` replaces the 200,000 steps.

#[path = "own_environment.rs"]
#[allow(dead_code, reason = "the other example's own main")]
mod own;

use std::ops::Range;

use brasa::contracts::PolicyController;
use brasa::device::open_named;
use brasa::env::play_episodes;
use brasa::env::wrappers::NormalizeObs;
use brasa::ndarray::ArrayViewMut2;
use brasa::nn::ActorCriticConfig;
use brasa::ppo::{Ppo, PpoConfig};
use brasa::prelude::*;
use brasa::train::StopToken;
use brasa_examples::steps;

/// Where the run is kept.
const RUN: &str = "runs/own-environment";

fn envs(range: Range<usize>) -> Result<TimeLimit<EnvVec<own::Room>>, EnvError> {
    TimeLimit::new(EnvVec::new(range, |_| own::Room::default())?, 200)
}

/// The mean return over ten days that training did not see.
fn mean_return(controller: &mut dyn Controller) -> Result<f64, EnvError> {
    let episodes = play_episodes(&mut envs(0..10)?, controller, 1000, 0)?;
    Ok(episodes.iter().map(|(episode, _)| episode.episode_return).sum::<f64>() / episodes.len() as f64)
}

/// A controller by a formula of the temperature.
fn rule(power_kw: impl Fn(f32) -> f32) -> impl FnMut(&BatchSlabs, ArrayViewMut2<f32>) -> Result<(), EnvError> {
    move |view, mut actions| {
        actions.zip_mut_with(&view.obs, |power, temperature_c| *power = power_kw(*temperature_c).clamp(0.0, 5.0));
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = open_named("cpu")?;
    let env = HostEnv::new(NormalizeObs::new(envs(0..8)?)?, &device);
    let (spec, mut weights) = (env.spec().clone(), named_rng(7, "weights", 0));
    let tracked = device.clone().autodiff(); // only what learns is tracked
    let network = ActorCriticConfig { squash: true, ..ActorCriticConfig::default() };
    let network = MlpActorCritic::new(&network, &spec.obs, &spec.action, &tracked, &mut weights)?;
    let config =
        PpoConfig { n_steps: 128, gamma: 0.9, learning_rate: Schedule::linear(1e-3, 0.0), ..PpoConfig::default() };
    let mut trainer = Trainer::on_policy(env, Ppo::new(network, config, 7)?)
        .seed(7)
        .total_env_steps(steps(200_000)?)
        .start_or_resume(RUN)
        .evaluate_every(20_000, envs(0..10)?)
        .stop_on(StopToken::on_ctrl_c())
        .show_progress(Vec::new())
        .build()?;
    match trainer.training().counters().env_steps {
        0 => println!("starts a run in {RUN}"),
        _ if trainer.training().is_done() => println!("the run in {RUN} has all its steps: delete it for a new one"),
        steps => println!("resumes the run in {RUN} after {steps} steps"),
    }
    let ending = trainer.run()?;
    let training = trainer.training();
    println!("{ending:?} after {} steps, best evaluation {:?}", training.counters().env_steps, trainer.best_return());

    let proportional = mean_return(&mut rule(|temperature_c| 20.0 - temperature_c))?;
    // The power that reaches 20 C in one step, if the heater has it: nothing is better, but it needs the formula of the room.
    let deadbeat =
        mean_return(&mut rule(|temperature_c| (20.0 - temperature_c - 0.02 * (5.0 - temperature_c)) / 0.15))?;
    let moments = training.obs_moments().cloned();
    let mut policy = PolicyController::new(training.policy(), training.spec(), moments, &device);
    let trained = mean_return(&mut policy)?;
    println!("proportional rule {proportional:8.1}\ndeadbeat rule     {deadbeat:8.1}\ntrained           {trained:8.1}");
    let closed = 100.0 * (trained - proportional) / (deadbeat - proportional);
    println!("the trained policy closes {closed:.0} % of the gap between the rules");
    Ok(())
}
