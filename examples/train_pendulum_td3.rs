//! TD3 on Pendulum-v1: deterministic actor, twin critics and run, next to two baselines.
//!
//! `cargo run --release -p brasa-examples --example train_pendulum_td3`; a number after `--` replaces the 20,000 steps.

use brasa::buffers::ReplayConfig;
use brasa::classic::Classic;
use brasa::nn::{DeterministicActor, DeterministicActorConfig, MlpCritics, MlpCriticsConfig};
use brasa::prelude::*;
use brasa::td3::{Td3, Td3Config};
use brasa::train::OffPolicyConfig;
use brasa_examples::{compare, steps};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = brasa::device::open_named("cpu")?;
    let task = Classic::pendulum();
    let env = HostEnv::new(task.batch(0..1)?, &device);
    let (spec, tracked) = (env.spec().clone(), device.clone().autodiff());
    let weights = |index| named_rng(0, "weights", index);
    let actor = DeterministicActorConfig { hidden: vec![64, 64], ..DeterministicActorConfig::default() };
    let actor = DeterministicActor::new(&actor, &spec.obs, &spec.action, &tracked, &mut weights(0))?;
    let critics = MlpCriticsConfig { hidden: vec![64, 64], ..MlpCriticsConfig::default() };
    let critics = MlpCritics::new(&critics, &spec.obs, &spec.action, &tracked, &mut weights(1))?;
    let td3 = Td3::new(actor, critics, Td3Config { gamma: 0.98, ..Td3Config::default() }, 0)?;
    let settings = OffPolicyConfig {
        learning_starts: 1000,
        replay: ReplayConfig { capacity: 20_000, ..ReplayConfig::default() },
        ..OffPolicyConfig::default()
    };
    let mut trainer = Trainer::off_policy(env, td3, settings).total_env_steps(steps(20_000)?).build()?;
    trainer.run()?;
    compare(&task, trainer.training(), &["random", "rule-based"])
}
