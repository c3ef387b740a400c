//! DQN on CartPole-v1: Q-network, learner, replay buffer and run, next to two baselines.
//!
//! `cargo run --release -p brasa-examples --example train_cart_pole_dqn`; a number after `--` replaces the 50,000 steps.

use brasa::buffers::ReplayConfig;
use brasa::classic::Classic;
use brasa::dqn::{Dqn, DqnConfig};
use brasa::nn::{QNetwork, QNetworkConfig};
use brasa::prelude::*;
use brasa::train::OffPolicyConfig;
use brasa_examples::{compare, steps};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = brasa::device::open_named("cpu")?;
    let task = Classic::cart_pole();
    let env = HostEnv::new(task.batch(0..1)?, &device);
    let (spec, rng) = (env.spec().clone(), &mut named_rng(0, "weights", 0));
    let network = QNetworkConfig { hidden: vec![256, 256], ..QNetworkConfig::default() };
    let network = QNetwork::new(&network, &spec.obs, &spec.action, &device.clone().autodiff(), rng)?;
    // The settings of RL Zoo: 128 updates after every 256 steps.
    let config = DqnConfig {
        learning_rate: Schedule::Constant(2.3e-3),
        epsilon: Schedule::linear(1.0, 0.04),
        exploration_fraction: 0.16,
        target_update_interval: 10,
        ..DqnConfig::default()
    };
    let settings = OffPolicyConfig {
        learning_starts: 1000,
        train_freq: 256,
        updates_per_step: 0.5,
        batch_size: 64,
        replay: ReplayConfig { capacity: 100_000, ..ReplayConfig::default() },
        ..OffPolicyConfig::default()
    };
    let mut trainer =
        Trainer::off_policy(env, Dqn::new(network, config)?, settings).total_env_steps(steps(50_000)?).build()?;
    trainer.run()?;
    compare(&task, trainer.training(), &["random", "rule-based", "bound"])
}
