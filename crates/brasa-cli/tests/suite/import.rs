//! Policies from files: models of Stable-Baselines3, and exported policies, play in experiments.
//!
//! Their actions are compared with Stable-Baselines3's in `brasa-export`.
#![allow(clippy::expect_used)]

use crate::common;

use std::path::{Path, PathBuf};

use common::page::{train, trained};
use common::{arg, run, succeed};

const CART_POLE: &str = "[scenario.cart-pole]\n[train]\ntotal_env_steps = 2048\nn_envs = 2\nnormalize_obs = true\n\
    [network]\nshared_hidden = [8]\n[ppo]\nn_steps = 64\nbatch_size = 64\n";

/// A model that Stable-Baselines3 wrote.
fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../brasa-export/tests/data/stable_baselines3").join(name)
}

fn config(dir: &Path, text: &str) -> PathBuf {
    let path = dir.join("config.toml");
    std::fs::write(&path, text).expect("the directory can be written");
    path
}

fn refused(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn models_of_stable_baselines3_play() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (experiment, name, about) in [
        ("cart-pole", "ppo.zip", "from 4 numbers to 1 index"),
        ("cart-pole", "dqn.zip", "from 4 numbers to 1 index"),
        ("pendulum", "a2c.zip", "from 3 numbers to 1 number"),
        ("pendulum", "sac_sde.zip", "from 3 numbers to 1 number"),
    ] {
        let config = config(dir.path(), &format!("[scenario.{experiment}]\n[ppo]\n"));
        let imported = dir.path().join(format!("{name}.safetensors"));
        let said = succeed(&["import", arg(&model(name)), "--out", arg(&imported)]);
        assert!(said.contains(about), "{said}");
        let play = |policy: &Path| succeed(&["baseline", arg(&config), "--policy", arg(policy), "--json"]);
        let row = trained(&play(&imported));
        assert!(row["return"].as_f64().is_some_and(f64::is_finite), "{row}");
        assert_eq!(row, trained(&play(&model(name))), "{name}");
    }
}

#[test]
fn statistics_of_observations_are_part_of_the_policy() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = config(dir.path(), "[scenario.pendulum]\n[ppo]\n");
    let play = |policy: &Path| trained(&succeed(&["baseline", arg(&config), "--policy", arg(policy), "--json"]));
    let (zip, pickle) = (model("ppo_normalized.zip"), model("ppo_normalized.pkl"));
    let imported = dir.path().join("normalized.safetensors");
    succeed(&["import", arg(&zip), "--vec-normalize", arg(&pickle), "--out", arg(&imported)]);
    assert_ne!(play(&imported)["return"], play(&zip)["return"]);
    let said = refused(&["import", arg(&zip), "--vec-normalize", arg(&zip), "--out", arg(&imported)]);
    assert!(said.contains("ppo_normalized.zip: ") && said.contains("`VecNormalize`"), "{said}");
}

#[test]
fn an_exported_policy_plays_as_its_run_does() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = train(dir.path(), CART_POLE);
    succeed(&["export", arg(&out), "--format", "safetensors"]);
    let config = config(dir.path(), CART_POLE);
    let exported = out.join("exported.safetensors");
    let played = succeed(&["baseline", arg(&config), "--policy", arg(&exported), "--json"]);
    let evaluated = succeed(&["eval", arg(&out), "--json"]);
    assert_eq!(trained(&played), trained(&evaluated));
}

#[test]
fn what_does_not_fit_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = config(dir.path(), "[scenario.cart-pole]\n[ppo]\n");
    let play = |policy: &Path| refused(&["baseline", arg(&config), "--policy", arg(policy)]);
    let said = play(&model("a2c.zip"));
    assert!(
        said.contains("a2c.zip: the policy does not fit: its numbers of an observation must be 4, got 3"),
        "{said}"
    );
    let said = play(&dir.path().join("none.zip"));
    assert!(said.contains("none.zip") && said.contains("No such file"), "{said}");
    let said = play(&config);
    assert!(said.contains("config.toml"), "{said}");
    let truncated = dir.path().join("half.zip");
    let bytes = std::fs::read(model("ppo.zip")).expect("the fixture is there");
    std::fs::write(&truncated, &bytes[..bytes.len() / 2]).expect("the directory can be written");
    let said = refused(&["import", arg(&truncated)]);
    assert!(said.contains("half.zip"), "{said}");
    assert!(!dir.path().join("half.safetensors").exists());
    // A file that nobody named is not replaced.
    let copy = dir.path().join("ppo.zip");
    std::fs::write(&copy, bytes).expect("the directory can be written");
    succeed(&["import", arg(&copy)]);
    let said = refused(&["import", arg(&copy)]);
    assert!(said.contains("ppo.safetensors exists: choose another file with --out"), "{said}");
}
