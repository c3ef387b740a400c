//! A policy trained by the command is loaded by a library, and by Python from its file alone.
#![allow(clippy::expect_used)]

use crate::common;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use brasa::device::open_named;
use brasa::env::named_rng;
use brasa::ndarray::Array2;
use brasa::rand::RngExt;
use common::page::train;
use common::{arg, newest_checkpoint, succeed};

/// A short run of PPO on CartPole.
const CART_POLE: &str = "[scenario.cart-pole]\n[train]\ntotal_env_steps = 4096\nn_envs = 4\nnormalize_obs = true\n\
    [network]\nactor_hidden = [16, 8]\ncritic_hidden = [8]\nactivation = \"tanh\"\n[ppo]\nn_steps = 128\nbatch_size = 256\n";

fn observations(n: usize) -> Array2<f32> {
    let rng = &mut named_rng(5, "test", 0);
    Array2::from_shape_fn((n, 4), |_| rng.random_range(-2.0..2.0))
}

#[test]
fn python_and_rust_act_alike_on_what_the_command_trained() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = train(dir.path(), CART_POLE);
    let device = open_named("cpu").expect("flex is a default feature");
    let policy = brasa::load_policy(&out, &device).expect("the run is whole");
    assert_eq!(policy.spec().obs.width(), 4);
    let obs = observations(64);
    let actions: Vec<f64> =
        policy.act(obs.view(), None).expect("they fit").iter().map(|action| f64::from(*action)).collect();
    assert!(actions.contains(&0.0) && actions.contains(&1.0), "{actions:?}");

    let has = Command::new("python3").args(["-c", "import numpy, safetensors.numpy"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: no python3 with numpy and safetensors; nobody has read the weights from outside");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/act.py");
    let weights = newest_checkpoint(&out).join("policy.safetensors");
    let mut python = Command::new("python3");
    python.arg(script).arg(weights).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut python = python.spawn().expect("it starts");
    let rows: Vec<Vec<f32>> = obs.rows().into_iter().map(|row| row.to_vec()).collect();
    let rows = serde_json::to_string(&rows).expect("numbers always serialize");
    python.stdin.take().expect("it is piped").write_all(rows.as_bytes()).expect("it reads");
    let output = python.wait_with_output().expect("it ends");
    let answer: Vec<f64> = serde_json::from_slice(&output.stdout).expect("a list of actions");
    assert_eq!(answer, actions);
}

/// The code in the document equals the code of the tested script.
#[test]
fn the_document_shows_the_tested_lines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).expect("it is there");
    let page = read("docs/reference/weights.md");
    let (_, shown) = page.split_once("```python\n").expect("it has lines of Python");
    let (shown, _) = shown.split_once("```").expect("they end");
    assert!(read("scripts/act.py").contains(shown), "docs/reference/weights.md and scripts/act.py differ");
}

#[test]
fn policies_of_every_kind_of_network_are_loaded() {
    let device = open_named("cpu").expect("flex is a default feature");
    let quick = "[off_policy]\nlearning_starts = 50\nbatch_size = 16\nlog_interval = 64\n[off_policy.replay]\ncapacity = 1000\n";
    let team = "[scenario.uara]\nusers = 5\nchannels = 3\nepisode_steps = 5\nobserve = [\"state\"]\n[scenario.uara.layout]\n\
        redraw = \"never\"\n";
    for (name, experiment) in [
        ("sac", format!("[scenario.pendulum]\n[sac]\n[actor]\nhidden = [8]\n[critics]\nhidden = [8]\n{quick}")),
        (
            "td3",
            format!(
                "[scenario.pendulum]\n[td3]\n[deterministic_actor]\nhidden = [8]\n[critics]\nhidden = [8]\n{quick}"
            ),
        ),
        ("dqn", format!("[scenario.cart-pole]\n[dqn]\n[q_network]\nhidden = [8]\n{quick}")),
        (
            "pairs",
            format!(
                "[scenario.uara]\nusers = 5\nchannels = 3\nepisode_steps = 5\n[dqn]\n[pair_q_network]\nhidden = [8]\n{quick}"
            ),
        ),
        ("team", format!("{team}[dqn]\n[team_q_network]\nhidden = [8]\n{quick}")),
    ] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let config = dir.path().join("experiment.toml");
        let text = format!("{experiment}[train]\ntotal_env_steps = 128\nn_envs = 1\n");
        std::fs::write(&config, text).expect("the directory can be written");
        let out = dir.path().join("run");
        succeed(&["train", arg(&config), "--out", arg(&out), "--quiet"]);
        brasa::load_policy(&out, &device).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
