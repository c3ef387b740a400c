//! Steps per second of CartPole-v1 with random actions, as one line of JSON.
//!
//!     cargo run --release -p brasa-classic --example cart_pole_steps -- N_ENVS SECONDS [N_THREADS [f64|f32]]
//!
//! `benches/peers/envpool_steps.py` and `benches/peers/pufferlib_steps.py` do the same with other libraries.

use std::time::{Duration, Instant};

use brasa_classic::Classic;
use brasa_env::{BatchSlabs, EnvBatch, Executor, Precision, execute, named_rng, random_actions};
use ndarray::Array2;

/// Sets of actions, used in turns: to draw one takes as long as a step.
const N_ACTIONS: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (n_envs, seconds, n_threads, precision): (usize, f64, usize, _) = match arguments[..] {
        [n_envs, seconds] => (n_envs.parse()?, seconds.parse()?, 1, "f64"),
        [n_envs, seconds, n_threads] => (n_envs.parse()?, seconds.parse()?, n_threads.parse()?, "f64"),
        [n_envs, seconds, n_threads, precision @ ("f64" | "f32")] => {
            (n_envs.parse()?, seconds.parse()?, n_threads.parse()?, precision)
        }
        _ => return Err("usage: cart_pole_steps N_ENVS SECONDS [N_THREADS [f64|f32]]".into()),
    };
    let task = Classic::cart_pole().with_precision(if precision == "f32" { Precision::F32 } else { Precision::F64 });
    let (mut envs, _) = execute(Executor::Threads(n_threads), n_envs, |envs| task.batch(envs))?;
    let mut slabs = BatchSlabs::new(envs.spec());
    let mut rng = named_rng(0, "actions", 0);
    let mut actions = vec![Array2::zeros((n_envs, envs.spec().action.width())); N_ACTIONS];
    for actions in &mut actions {
        random_actions(envs.spec(), slabs.mask.view(), actions, &mut rng)?;
    }
    envs.reset(0, &mut slabs)?;
    let (begin, mut steps) = (Instant::now(), 0);
    while begin.elapsed() < Duration::from_secs_f64(seconds) {
        for actions in &actions {
            envs.step(actions.view(), &mut slabs)?;
        }
        steps += N_ACTIONS;
    }
    let rate = (steps * n_envs) as f64 / begin.elapsed().as_secs_f64();
    println!(r#"{{"library": "brasa", "task": "CartPole-v1", "n_envs": {n_envs}, "env_steps_per_second": {rate:.0}}}"#);
    Ok(())
}
