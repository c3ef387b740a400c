//! PPO on CartPole-v1: environments, network, learner and run, next to two baselines.
//!
//! `cargo run --release -p brasa-examples --example train_cart_pole`; a number after `--` replaces the 100,000 steps.

use brasa::classic::Classic;
use brasa::nn::ActorCriticConfig;
use brasa::ppo::{Ppo, PpoConfig};
use brasa::prelude::*;
use brasa_examples::{compare, steps};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The code below runs on any device and names no backend.
    let device = brasa::device::open_named("cpu")?;
    let task = Classic::cart_pole();
    let env = HostEnv::new(task.batch(0..8)?, &device);
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
    let (spec, rng) = (env.spec().clone(), &mut named_rng(0, "weights", 0));
    let tracked = device.clone().autodiff(); // only what learns is tracked
    let network = MlpActorCritic::new(&ActorCriticConfig::default(), &spec.obs, &spec.action, &tracked, rng)?;
    let ppo = Ppo::new(network, config, 0)?;
    let mut trainer = Trainer::on_policy(env, ppo).total_env_steps(steps(100_000)?).build()?;
    trainer.run()?;
    compare(&task, trainer.training(), &["random", "rule-based", "bound"])
}
