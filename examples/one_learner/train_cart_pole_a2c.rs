//! A2C on CartPole-v1 without the crate `brasa`: one learner and what it needs.
//!
//! `cargo run --release -p example-one-learner --example train_cart_pole_a2c`; a number after `--` replaces the 100,000 steps.

use brasa_a2c::{A2c, A2cConfig};
use brasa_classic::Classic;
use brasa_core::{HostEnv, PolicyController, Schedule};
use brasa_device::open_named;
use brasa_env::{EnvBatch, Evaluation, Scenario, Who, named_rng};
use brasa_nn::{ActorCriticConfig, MlpActorCritic};
use brasa_train::{Trainer, Training};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let steps = std::env::args().nth(1).map_or(Ok(100_000), |steps| steps.parse())?;
    let device = open_named("cpu")?;
    let task = Classic::cart_pole();
    let env = HostEnv::new(task.batch(0..8)?, &device);
    let (spec, rng) = (task.batch(0..1)?.spec().clone(), &mut named_rng(0, "weights", 0));
    // Only what learns is on the autodiff device.
    let tracked = device.clone().autodiff();
    let network = MlpActorCritic::new(&ActorCriticConfig::default(), &spec.obs, &spec.action, &tracked, rng)?;
    let config = A2cConfig { n_steps: 8, learning_rate: Schedule::linear(7e-4, 0.0), ..A2cConfig::default() };
    let mut trainer = Trainer::on_policy(env, A2c::new(network, config, 0)?).total_env_steps(steps).build()?;
    trainer.run()?;

    // The same 20 episodes for everyone.
    let evaluation = Evaluation::new(20, 1000);
    for baseline in ["random", "rule-based"] {
        println!("{baseline:<10} {:6.1}", mean(&task, Who::Baseline(baseline), &evaluation)?);
    }
    let mut trained = PolicyController::new(trainer.training().policy(), &spec, None, &device);
    println!("trained    {:6.1}", mean(&task, Who::Controller(&mut trained), &evaluation)?);
    Ok(())
}

/// Mean return.
fn mean(task: &impl Scenario, who: Who<'_>, evaluation: &Evaluation) -> Result<f64, brasa_env::EnvError> {
    let outcomes = task.evaluate(who, evaluation)?;
    let returns = outcomes.iter().filter_map(|outcome| outcome.episode_return);
    Ok(returns.sum::<f64>() / outcomes.len() as f64)
}
