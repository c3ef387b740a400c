//! Steps per second of a batch with random actions, as one line of JSON.
//!
//!     cargo run --release -p brasa-gym --example steps_per_second -- CartPole-v1 N_ENVS N_WORKERS SECONDS
//!
//! `benches/peers/gymnasium_steps.py` does the same with Gymnasium's own vector environments.

use std::time::{Duration, Instant};

use brasa_env::{BatchSlabs, EnvBatch, named_rng, random_actions};
use brasa_gym::{GymConfig, GymVec};
use ndarray::Array2;

/// Different actions, used in turns: drawing them costs as much as a step of the batch.
const N_ACTIONS: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [id, n_envs, n_workers, seconds] = &arguments[..] else {
        return Err("usage: steps_per_second ID N_ENVS N_WORKERS SECONDS".into());
    };
    let (n_envs, n_workers, seconds): (usize, usize, f64) = (n_envs.parse()?, n_workers.parse()?, seconds.parse()?);
    let begin = Instant::now();
    let config = GymConfig { n_workers: Some(n_workers), ..GymConfig::new(id) };
    let mut envs = GymVec::new(&config, 0..n_envs)?;
    let start_secs = begin.elapsed().as_secs_f64();
    let mut slabs = BatchSlabs::new(envs.spec());
    let mut rng = named_rng(0, "actions", 0);
    let mut actions = vec![Array2::zeros((n_envs, envs.spec().action.width())); N_ACTIONS];
    for actions in &mut actions {
        random_actions(envs.spec(), slabs.mask.view(), actions, &mut rng)?;
    }
    envs.reset(0, &mut slabs)?;
    let (begin, mut steps, mut ends) = (Instant::now(), 0, 0);
    while begin.elapsed() < Duration::from_secs_f64(seconds) {
        envs.step(actions[steps % N_ACTIONS].view(), &mut slabs)?;
        ends += (0..n_envs).filter(|env| slabs.episode_end(*env)).count();
        steps += 1;
    }
    let rate = (steps * n_envs) as f64 / begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    drop(envs);
    let end_secs = begin.elapsed().as_secs_f64();
    println!(
        "{{\"library\": \"brasa-gym\", \"task\": \"{id}\", \"n_envs\": {n_envs}, \"n_workers\": {n_workers}, \
         \"env_steps_per_second\": {rate:.0}, \"episodes\": {ends}, \"start_secs\": {start_secs:.2}, \"end_secs\": {end_secs:.3}}}"
    );
    Ok(())
}
