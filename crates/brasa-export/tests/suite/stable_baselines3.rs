//! Models of Stable-Baselines3 act as they do there (`scripts/record_stable_baselines3.py`).
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use brasa_export::{Archive, ExportedPolicy, Layer, Output};
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
    assert_eq!(all.len(), 29);
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
        let choices = ["ppo", "ppo_old_gym", "ppo_choices", "ppo_bits", "dqn", "dqn_choices_obs", "qrdqn"];
        assert_eq!(is_choice, choices.contains(&name.as_str()), "{name}");
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
    let message = refused(&with_data("ppo", |data| data["observation_space"][":type:"] = "<class 'a.Tuple'>".into()));
    assert!(
        message.contains(
            "its observations must be a Box, Discrete, MultiDiscrete, MultiBinary or Dict of them, got `Tuple`"
        ),
        "{message}"
    );
    let message = refused(&with_data("ppo", |data| data["action_space"][":type:"] = "<class 'a.Text'>".into()));
    assert!(message.contains("must be Box, Discrete, MultiDiscrete or MultiBinary, got `Text`"), "{message}");
    let message = refused(&with_data("sac", |data| data["action_space"]["low"] = "[-1. ... -1.]".into()));
    assert!(message.contains("the bounds `low` of its actions are not complete in the file"), "{message}");
    let message = refused(&with_data("ppo", |data| data["action_space"]["n"] = "5".into()));
    assert!(message.contains("the choices must have 2 actions together"), "{message}");
}

/// What changes the actions of a policy is read, or rejected by its name: nothing is ignored.
#[test]
fn settings_that_change_actions_are_not_ignored() {
    let refused = |name: &str, change: &dyn Fn(&mut serde_json::Value)| {
        let model = with_data(name, change);
        ExportedPolicy::from_stable_baselines3(&model).expect_err("it is refused").to_string()
    };
    for (name, key, value, part) in [
        (
            "ppo",
            "activation_fn",
            "<class 'torch.nn.modules.activation.GELU'>".into(),
            "Tanh, ReLU, LeakyReLU or ELU, got GELU",
        ),
        ("ppo", "activation_fn", "<class 'mine.Tanh'>".into(), "LeakyReLU or ELU, got \"<class 'mine.Tanh'>\""),
        (
            "ppo",
            "activation_fn",
            "functools.partial(<class 'torch.nn.modules.activation.LeakyReLU'>, 0.2)".into(),
            "functools.partial",
        ),
        (
            "ppo",
            "features_extractor_class",
            "<class 'mine.Centered'>".into(),
            "its `features_extractor_class` must be FlattenExtractor",
        ),
        (
            "ppo",
            "features_extractor_kwargs",
            serde_json::json!({ "scale": 2 }),
            "its `features_extractor_kwargs` must be empty",
        ),
        ("ppo", "temperature", 2.into(), "its `policy_kwargs` have `temperature`, whose effect is not known"),
        ("a2c_sde", "squash_output", "maybe".into(), "its `squash_output` must be true or false, got \"maybe\""),
        ("sac_sde", "clip_mean", "[1 2]".into(), "its `clip_mean` must be a number above 0"),
        ("sac_sde", "clip_mean", 0.into(), "its `clip_mean` must be a number above 0"),
    ] {
        let message = refused(name, &|data| data["policy_kwargs"][key] = value.clone());
        assert!(message.contains(part), "`{message}` does not say `{part}`");
    }
    for (space, name) in
        [("action_space", "dqn_choices_obs"), ("action_space", "ppo_choices"), ("observation_space", "dqn_choices_obs")]
    {
        for start in [serde_json::json!(1), "1".into(), "[0 1]".into(), serde_json::json!([0, 0, 2])] {
            let message = refused(name, &|data| data[space]["start"] = start.clone());
            assert!(message.contains(&format!("`start` of its `{space}` must be 0")), "{message}");
        }
    }
    let message = refused("ppo", &|data| data["policy_class"] = serde_json::json!({ "__module__": "__main__" }));
    assert!(
        message.contains("its `policy_class` must be of Stable-Baselines3 or sb3-contrib, got one of `__main__`"),
        "{message}"
    );
    let message = refused("ppo", &|data| data["observation_space"]["_shape"] = "[5]".into());
    assert!(message.contains("its `observation_space` has 5 numbers, but its network reads 4"), "{message}");
    let message = refused("ppo_bits", &|data| data["action_space"]["n"] = 3.into());
    assert!(message.contains("an output for each of 3 bits, got 4"), "{message}");
    let message = refused("qrdqn", &|data| data["action_space"]["n"] = "[3]".into());
    assert!(message.contains("a multiple of 3 outputs, got 10"), "{message}");
    // Each key that has no numbers is named.
    for (name, space, key) in [
        ("ppo", "action_space", "n"),
        ("ppo_choices", "action_space", "nvec"),
        ("ppo_bits", "action_space", "n"),
        ("ppo_discrete_obs", "observation_space", "n"),
        ("dqn_choices_obs", "observation_space", "nvec"),
        ("a2c_bits_obs", "observation_space", "n"),
    ] {
        let message = refused(name, &|data| data[space][key] = serde_json::Value::Null);
        assert!(message.contains(&format!("`{key}` of its `{space}` must be numbers, got null")), "{message}");
    }
    // Numbers instead of texts, as other versions write them.
    let choices = |change: &dyn Fn(&mut serde_json::Value)| {
        ExportedPolicy::from_stable_baselines3(&with_data("ppo_choices", change)).expect("it is a model").output
    };
    let expected = choices(&|_| {});
    assert_eq!(choices(&|data| data["action_space"]["nvec"] = serde_json::json!([3, 2, 4])), expected);
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
