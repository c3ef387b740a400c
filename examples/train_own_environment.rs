//! PPO on a custom environment without a config file: normalized observations, checkpoints, resume, evaluation,
//! the best policy, metrics for TensorBoard. After a stop or a crash, a new start resumes the run.
//!
//! `cargo run --release --package brasa-examples --example train_own_environment`

#[path = "own_environment.rs"]
#[allow(dead_code, reason = "the other example's own main")]
mod own;

use std::ops::Range;

use brasa::device::open_named;
use brasa::env::wrappers::NormalizeObs;
use brasa::nn::ActorCriticConfig;
use brasa::ppo::{Ppo, PpoConfig};
use brasa::prelude::*;
use brasa::train::StopToken;

fn envs(range: Range<usize>) -> Result<impl EnvBatch, EnvError> {
    TimeLimit::new(EnvVec::new(range, |_| own::Room::default())?, 200)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = open_named("cpu")?;
    let env = HostEnv::new(NormalizeObs::new(envs(0..8)?)?, &device);
    let (spec, mut weights) = (env.spec().clone(), named_rng(7, "weights", 0));
    let tracked = device.autodiff(); // only what learns is tracked
    let network = MlpActorCritic::new(&ActorCriticConfig::default(), &spec.obs, &spec.action, &tracked, &mut weights)?;
    let ppo = Ppo::new(network, PpoConfig { n_steps: 128, ..PpoConfig::default() }, 7)?;
    let mut trainer = Trainer::on_policy(env, ppo)
        .seed(7)
        .total_env_steps(100_000)
        .start_or_resume("runs/own-environment")
        .evaluate_every(20_000, envs(0..10)?)
        .stop_on(StopToken::on_ctrl_c())
        .show_progress(Vec::new())
        .build()?;
    let ending = trainer.run()?;
    println!(
        "{ending:?} after {} steps, best mean return {:?}",
        trainer.training().counters().env_steps,
        trainer.best_return()
    );
    Ok(())
}
