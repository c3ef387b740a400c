//! Models of Stable-Baselines3 act as they do there (`scripts/record_stable_baselines3.py`).
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use brasa_exchange::{Archive, ExportedPolicy, Layer, Output};
use serde::Deserialize;

#[derive(Deserialize)]
struct Expected {
    obs: Vec<f32>,
    action: Vec<f64>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/stable_baselines3")
}

fn model(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(format!("{name}.zip"))).expect("it was recorded")
}

#[test]
fn recorded_models_take_the_recorded_actions() {
    let text = std::fs::read_to_string(folder().join("expected.json")).expect("it was recorded");
    let mut all: BTreeMap<String, serde_json::Value> = serde_json::from_str(&text).expect("a map");
    all.remove("versions").expect("the versions were recorded");
    assert_eq!(all.len(), 12);
    for (name, expected) in all {
        let Expected { obs, action } = serde_json::from_value(expected).expect("observations and actions");
        let mut policy = ExportedPolicy::from_stable_baselines3(&model(&name)).expect("it is a model");
        if let Ok(statistics) = std::fs::read(folder().join(format!("{name}.pkl"))) {
            policy = policy.with_vec_normalize(&statistics).expect("it has statistics");
            assert_eq!(matches!(policy.layers[0], Layer::Normalize { .. }), name == "ppo_normalized");
        }
        let got = policy.act(&obs, None);
        assert_eq!(got.len(), action.len(), "{name}");
        for (i, (got, expected)) in got.iter().zip(&action).enumerate() {
            let gap = (f64::from(*got) - expected).abs();
            assert!(gap <= 2e-6 * expected.abs().max(1.0), "{name}, {i}: {got} instead of {expected}");
        }
        let distinct = |x: f64| action.iter().filter(|action| **action == x).count();
        assert!(distinct(action[0]) < action.len(), "{name}: one action alone shows nothing");
        let is_choice = matches!(policy.output, Output::Choice { .. });
        assert_eq!(is_choice, ["ppo", "ppo_choices", "dqn"].contains(&name.as_str()), "{name}");
    }
}

/// A model with a changed `data`.
fn with_data(name: &str, change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let mut archive = Archive::new(Cursor::new(model(name))).expect("an archive");
    let mut data: serde_json::Value = serde_json::from_slice(&archive.read("data").expect("an entry")).expect("JSON");
    change(&mut data);
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (entry, bytes) in [
        ("data", serde_json::to_vec(&data).expect("JSON")),
        ("policy.pth", archive.read("policy.pth").expect("an entry")),
    ] {
        writer.start_file(entry, options).expect("a file");
        writer.write_all(&bytes).expect("in memory");
    }
    writer.finish().expect("in memory").into_inner()
}

#[test]
fn what_cannot_be_read_is_named() {
    let refused = |bytes: &[u8]| ExportedPolicy::from_stable_baselines3(bytes).expect_err("it is refused").to_string();
    let message = refused(b"not a model");
    assert!(message.contains("this model of Stable-Baselines3 cannot be used: it is not a zip archive"), "{message}");
    let message = refused(&model("ppo")[..2000]);
    assert!(message.contains("it is not a zip archive"), "{message}");
    let message = refused(&with_data("ppo", |data| data["observation_space"][":type:"] = "<class 'a.Dict'>".into()));
    assert!(message.contains("its observations must be a `Box`, got `Dict`"), "{message}");
    let message = refused(&with_data("ppo", |data| data["action_space"][":type:"] = "<class 'a.MultiBinary'>".into()));
    assert!(message.contains("must be Box, Discrete from 0, or MultiDiscrete, got `MultiBinary`"), "{message}");
    let message = refused(&with_data("ppo_relu", |data| {
        data["policy_kwargs"]["activation_fn"] = "<class 'torch.nn.modules.activation.GELU'>".into();
    }));
    assert!(message.contains("its `activation_fn` must be Tanh, ReLU or ELU, got GELU"), "{message}");
    let message = refused(&with_data("sac", |data| data["action_space"]["low"] = "[-1. ... -1.]".into()));
    assert!(message.contains("the bounds `low` of its actions are not complete in the file"), "{message}");
    let message = refused(&with_data("ppo", |data| data["action_space"]["n"] = "5".into()));
    assert!(message.contains("the choices must have 2 actions together"), "{message}");
}

#[test]
fn the_largest_bounds_of_actions_do_not_overflow() {
    let with_bounds = |low: &str, high: &str| {
        let model = with_data("sac", |data| {
            data["action_space"]["low"] = low.into();
            data["action_space"]["high"] = high.into();
        });
        ExportedPolicy::from_stable_baselines3(&model)
    };
    let policy = with_bounds("[-3.4028235e+38 0.]", "[3.4028235e+38 3.4028235e+38]").expect("the bounds are finite");
    let actions = policy.act(&[0.3, -0.2, 1.0, 30.0, -20.0, 9.0], None);
    assert!(actions.iter().all(|action| action.is_finite()) && actions[0] != 0.0, "{actions:?}");
    let message = with_bounds("[-1. -1.]", "[1. inf]").expect_err("tanh has no scale").to_string();
    assert!(message.contains("the bounds of its squashed actions must be finite, got inf"), "{message}");
}

#[test]
fn statistics_keep_64_bits() {
    let policy = ExportedPolicy::from_stable_baselines3(&model("ppo_normalized")).expect("it is a model");
    let statistics = std::fs::read(folder().join("ppo_normalized.pkl")).expect("it was recorded");
    let policy = policy.with_vec_normalize(&statistics).expect("it has statistics");
    let Layer::Normalize { mean, deviation, .. } = &policy.layers[0] else { panic!("it is normalized") };
    assert!(mean.iter().chain(deviation).all(|x| f64::from(*x as f32) != *x), "{mean:?}, {deviation:?}");
}

#[test]
fn statistics_that_do_not_fit_are_refused() {
    let statistics = std::fs::read(folder().join("ppo_normalized.pkl")).expect("it was recorded");
    let refused = |name: &str, bytes: &[u8]| {
        let policy = ExportedPolicy::from_stable_baselines3(&model(name)).expect("it is a model");
        policy.with_vec_normalize(bytes).expect_err("it is refused").to_string()
    };
    // Statistics of three numbers, observations of four.
    let message = refused("ppo", &statistics);
    assert!(message.contains("layer 0: `mean` must have 4 numbers, got 3"), "{message}");
    let message = refused("ppo_normalized", b"\x80\x04]\x94.");
    assert!(message.contains("`VecNormalize`: it must be an object"), "{message}");
    for length in 0..statistics.len() {
        refused("ppo_normalized", &statistics[..length]);
    }
    // Whatever else a byte says, nothing but an error or other numbers may follow.
    for (i, flip) in (0..statistics.len()).flat_map(|i| [(i, 1), (i, 0x80), (i, 0xff)]) {
        let mut changed = statistics.clone();
        changed[i] ^= flip;
        let policy = ExportedPolicy::from_stable_baselines3(&model("ppo_normalized")).expect("it is a model");
        drop(policy.with_vec_normalize(&changed));
    }
}
