//! Every number equals that of Gymnasium or PettingZoo alone, with the same seeds and actions.

use crate::common;

use std::io::Write;
use std::process::{Command, Stdio};

use brasa_env::{BatchSlabs, EnvBatch, Split};
use brasa_gym::{GymConfig, GymVec, episode_seed};
use common::{config, has_package, own, play, python, team};
use ndarray::s;
use serde::Deserialize;

#[derive(Deserialize)]
struct Recorded {
    first: Vec<f32>,
    steps: Vec<RecordedStep>,
}

/// Observation before a reset, after it, and reward, terminated and truncated of each agent.
type RecordedStep = (Vec<f32>, Vec<f32>, Vec<f32>, Vec<bool>, Vec<bool>);

const FIRST_ENV: usize = 2;
const N_ENVS: usize = 3;

fn compare(config: &GymConfig, n_steps: usize, n_ends: usize) {
    let seed = 11;
    let mut batch = GymVec::new(config, FIRST_ENV..FIRST_ENV + N_ENVS).expect("the environments start");
    let (seen, actions) = play(&mut batch, seed, n_steps).expect("they run");
    let n_agents = batch.spec().n_agents;
    drop(batch);
    let ends = seen[1..].iter().flat_map(|slabs| (0..N_ENVS).map(|env| slabs.episode_end(env * n_agents)));
    let ends = ends.filter(|end| *end).count();
    assert!(ends >= n_ends, "{}: {ends} episodes ended", config.id);

    let seeds = |env: usize| -> Vec<u32> {
        (0..=ends as u64).map(|episode| episode_seed(seed, (FIRST_ENV + env) as u64, episode, Split::Train)).collect()
    };
    let rows = |step: &ndarray::Array2<f32>| step.rows().into_iter().map(|row| row.to_vec()).collect::<Vec<_>>();
    let task = serde_json::json!({
        "id": config.id,
        "import": config.import,
        "kwargs": config.kwargs,
        "seeds": (0..N_ENVS).map(seeds).collect::<Vec<_>>(),
        "actions": actions.iter().map(rows).collect::<Vec<_>>(),
    });
    let recorded = record(config, &task.to_string());
    assert_eq!(recorded.len(), N_ENVS);
    for (env, recorded) in recorded.iter().enumerate() {
        let of_env = || env * n_agents..(env + 1) * n_agents;
        let row = |slabs: &ndarray::Array2<f32>| slabs.slice(s![of_env(), ..]).iter().copied().collect::<Vec<_>>();
        assert_eq!(row(&seen[0].obs), recorded.first, "{}, environment {env}, reset", config.id);
        for (step, (slabs, (before, after, reward, terminated, truncated))) in
            seen[1..].iter().zip(&recorded.steps).enumerate()
        {
            let place = format!("{}, environment {env}, step {step}", config.id);
            let BatchSlabs { obs, next_obs, .. } = slabs;
            assert_eq!(&row(next_obs), before, "{place}: `next_obs`");
            assert_eq!(&row(obs), after, "{place}: `obs`");
            assert_eq!(slabs.reward.slice(s![of_env()]).to_vec(), *reward, "{place}: rewards");
            assert_eq!(slabs.terminated.slice(s![of_env()]).to_vec(), *terminated, "{place}: terminated");
            assert_eq!(slabs.truncated.slice(s![of_env()]).to_vec(), *truncated, "{place}: truncated");
        }
    }
}

/// Runs `record.py`.
fn record(config: &GymConfig, task: &str) -> Vec<Recorded> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/record.py");
    let python = config.python.as_ref().expect("tests set it");
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the interpreter starts");
    child.stdin.take().expect("it was piped").write_all(task.as_bytes()).expect("it reads its task");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", output.status);
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

#[test]
fn classic_control() {
    if python().is_none() {
        return;
    }
    compare(&config("CartPole-v1"), 300, 20);
    // Both causes of an end.
    compare(&GymConfig { kwargs: limit(15), ..config("CartPole-v1") }, 100, 10);
    compare(&config("Pendulum-v1"), 450, 6);
}

#[test]
fn toy_text() {
    if python().is_none() {
        return;
    }
    compare(&config("Blackjack-v1"), 100, 50);
    compare(&config("FrozenLake-v1"), 150, 20);
}

#[test]
fn mujoco() {
    if has_package("mujoco") {
        compare(&GymConfig { kwargs: limit(40), ..config("HalfCheetah-v5") }, 100, 6);
    }
}

#[test]
fn box2d() {
    if has_package("Box2D") {
        compare(&config("LunarLander-v3"), 250, 3);
    }
}

#[test]
fn spaces_of_every_kind() {
    if python().is_none() {
        return;
    }
    compare(&own("brasa/Rooms-v0", &[]), 80, 10);
    compare(&own("brasa/Masked-v0", &[]), 80, 10);
}

#[test]
fn teams() {
    if python().is_none() {
        return;
    }
    compare(&team(&[]), 150, 20);
    if has_package("mpe2") {
        compare(&config("mpe2.simple_spread_v3:parallel_env"), 60, 6);
        compare(&config("mpe2.simple_reference_v3:parallel_env"), 60, 6);
    }
}

fn limit(steps: i64) -> std::collections::BTreeMap<String, brasa_gym::PyValue> {
    [("max_episode_steps".to_owned(), brasa_gym::PyValue::Int(steps))].into()
}
