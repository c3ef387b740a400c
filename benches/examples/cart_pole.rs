//! A complete run of PPO on CartPole-v1, as in `benches/peers/sb3_cartpole.py`; prints one line of JSON.
//!
//! ```text
//! cargo run --release --package brasa-benches --example cart_pole -- --steps 100000 --seed 0
//! ```

use std::time::Instant;

use brasa::env::named_rng;
use brasa::nn::{ActorCriticConfig, MlpActorCritic};
use brasa::ppo::Ppo;
use brasa::train::{OnPolicy, Run, Training, evaluate};
use brasa_benches::{argument, cart_pole_config, cart_poles, place};
use serde_json::json;

brasa_benches::allocator!();

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (total_env_steps, seed): (u64, u64) = (argument("--steps", 100_000)?, argument("--seed", 0)?);
    let place = place();
    let config = cart_pole_config();
    let begin = Instant::now();
    let env = cart_poles(8, &place.device);
    let rng = &mut named_rng(seed, "weights", 0);
    let autodiff = place.device.clone().autodiff();
    let network =
        MlpActorCritic::new(&ActorCriticConfig::default(), &env.spec().obs, &env.spec().action, &autodiff, rng)?;
    let ppo = Ppo::new(network, config, seed)?;
    let mut training = OnPolicy::new(env, ppo, Run { total_env_steps, seed })?;
    while !training.is_done() {
        training.iterate()?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let env_steps = training.counters().env_steps;

    let mut evaluation = cart_poles(20, &place.device);
    let episodes = evaluate(&training.policy(), &mut evaluation, 20, 1000 + seed)?;
    let returns: Vec<f64> = episodes.iter().map(|episode| episode.episode_return).collect();
    let line = json!({
        "library": "brasa",
        "task": "PPO on CartPole-v1",
        "env_steps": env_steps,
        "seconds": seconds,
        "env_steps_per_second": env_steps as f64 / seconds,
        "eval_return": returns.iter().sum::<f64>() / returns.len() as f64,
        "eval_episodes": returns.len(),
        "n_envs": training.spec().n_envs,
        "seed": seed,
        "threads": 1,
        "device": place.name,
        "versions": { "brasa": env!("CARGO_PKG_VERSION") },
    });
    println!("{line}");
    Ok(())
}
