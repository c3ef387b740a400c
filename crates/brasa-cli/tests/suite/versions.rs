//! A run that was resumed with other settings keeps every version of its experiment, and is no seed of the last one.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;

use common::{arg, run, small_experiment, small_off_policy_experiment, succeed};

#[test]
fn settings_that_change_on_the_way_are_kept_with_their_step() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, changed, straight) = (small_experiment(dir.path()), dir.path().join("a"), dir.path().join("b"));
    let rate = "ppo.learning_rate=0.001";
    succeed(&["train", arg(&config), "--quiet", "--steps", "512", "--out", arg(&changed)]);
    succeed(&["train", "--resume", arg(&changed), "--quiet", "--steps", "1024", "--set", rate]);
    succeed(&[
        "train",
        arg(&config),
        "--quiet",
        "--steps",
        "1024",
        "--seed",
        "1",
        "--set",
        rate,
        "--out",
        arg(&straight),
    ]);

    let read = |name: &str| fs::read_to_string(changed.join(name)).expect("the run has it");
    let (before, now) = (read("config-until-000000000512.toml"), read("config.toml"));
    assert!(before.contains("learning_rate = 0.003") && before.contains("total_env_steps = 512"), "{before}");
    assert!(now.contains("learning_rate = 0.001") && now.contains("total_env_steps = 1024"), "{now}");
    // A resume without a change is no version.
    succeed(&["train", "--resume", arg(&changed), "--quiet"]);
    let names = fs::read_dir(&changed).expect("it is a run").map(|entry| entry.expect("an entry").file_name());
    assert_eq!(names.filter(|name| name.to_string_lossy().starts_with("config-until-")).count(), 1);

    let out = dir.path().join("compare");
    let json = succeed(&["compare", arg(&changed), arg(&straight), "--episodes", "2", "--json", "--out", arg(&out)]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(json["groups"].as_object().map(serde_json::Map::len), Some(2), "{json}");
}

#[test]
fn another_replay_buffer_is_resumed_empty_if_the_user_says_so() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out) = (small_off_policy_experiment(dir.path()), dir.path().join("run"));
    succeed(&["train", arg(&config), "--quiet", "--steps", "1024", "--out", arg(&out)]);
    let resume =
        ["train", "--resume", arg(&out), "--quiet", "--steps", "1536", "--set", "off_policy.replay.capacity=1200"];
    let output = run(&resume);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("steps of capacity") && said.contains("--forget-replay"), "{said}");
    succeed(&[&resume[..], &["--forget-replay"]].concat());
}
