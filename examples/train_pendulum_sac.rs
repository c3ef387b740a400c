//! SAC on Pendulum-v1: actor and critics, learner, replay buffer and run, next to two baselines.
//!
//! `cargo run --release -p brasa-examples --example train_pendulum_sac`; a number after `--` replaces the 20,000 steps.

use brasa::buffers::ReplayConfig;
use brasa::classic::Classic;
use brasa::nn::{MlpCritics, MlpCriticsConfig, SquashedActor, SquashedActorConfig};
use brasa::prelude::*;
use brasa::sac::{Sac, SacConfig};
use brasa::train::OffPolicyConfig;
use brasa_examples::{compare, steps};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = brasa::device::open_named("cpu")?;
    let task = Classic::pendulum();
    let env = HostEnv::new(task.batch(0..1)?, &device);

    // Only trained modules use autodiff; environments, replay buffer and target networks are on the non-autodiff device.
    let tracked = device.clone().autodiff();
    let spec = env.spec().clone();
    let weights = |index| named_rng(0, "weights", index);
    let actor = SquashedActorConfig { hidden: vec![64, 64], ..SquashedActorConfig::default() };
    let actor = SquashedActor::new(&actor, &spec.obs, &spec.action, &tracked, &mut weights(0))?;
    let critics = MlpCriticsConfig { hidden: vec![64, 64], ..MlpCriticsConfig::default() };
    let critics = MlpCritics::new(&critics, &spec.obs, &spec.action, &tracked, &mut weights(1))?;
    let sac =
        Sac::new(actor, critics, SacConfig { learning_rate: Schedule::Constant(1e-3), ..SacConfig::default() }, 0)?;

    let settings = OffPolicyConfig {
        updates_per_step: 1.0, // whatever the number of environments
        replay: ReplayConfig { capacity: 20_000, ..ReplayConfig::default() },
        ..OffPolicyConfig::default()
    };
    let mut trainer = Trainer::off_policy(env, sac, settings).total_env_steps(steps(20_000)?).build()?;
    println!("{} bytes per transition", trainer.training().replay().bytes_per_transition());
    trainer.run()?;
    compare(&task, trainer.training(), &["random", "rule-based"])
}
