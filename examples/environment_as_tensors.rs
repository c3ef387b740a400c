//! Environments as tensor operations: 256 cart-poles on the device of the learner, where no step leaves it.
//!
//! `cargo run --release -p brasa-examples --example environment_as_tensors`; a number after `--` replaces the 400,000 steps.

use brasa::classic::tensor::TensorCartPole;
use brasa::classic::{CartPole, Classic};
use brasa::core::TensorEnv;
use brasa::nn::ActorCriticConfig;
use brasa::ppo::{Ppo, PpoConfig};
use brasa::prelude::*;
use brasa_examples::{compare, steps};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Another device, for example `cuda`, needs no other change.
    let device = brasa::device::open_named("cpu")?;
    let env = TensorEnv::new(TensorCartPole::default(), 256, &device)?.with_time_limit(CartPole::TIME_LIMIT)?;
    let (spec, rng) = (env.spec().clone(), &mut named_rng(0, "weights", 0));
    let network = ActorCriticConfig::default();
    let network = MlpActorCritic::new(&network, &spec.obs, &spec.action, &device.clone().autodiff(), rng)?;
    let config = PpoConfig { n_steps: 32, batch_size: 1024, gamma: 0.98, gae_lambda: 0.8, ..PpoConfig::default() };
    let config = PpoConfig { learning_rate: Schedule::linear(2e-3, 0.0), ..config };
    let mut trainer =
        Trainer::on_policy(env, Ppo::new(network, config, 0)?).total_env_steps(steps(400_000)?).build()?;
    trainer.run()?;
    // Played in the environments of the host, which have the same rules.
    compare(&Classic::cart_pole(), trainer.training(), &["random", "rule-based", "bound"])
}
