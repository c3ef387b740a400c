//! Arguments as users write them: counts, seeds, names that are nearly right, and files of another kind.
#![allow(clippy::expect_used)]

mod common;

use std::fs;

use common::{arg, run, small_experiment, succeed};

#[track_caller]
fn refused(args: &[&str], parts: &[&str]) {
    let output = run(args);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
    parts.iter().for_each(|part| assert!(message.contains(part), "{args:?}: no `{part}` in {message}"));
}

#[test]
fn counts_are_written_in_several_ways() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    for (i, extra) in
        [["--steps", "1_024"], ["--steps", "1.024e3"], ["--set", "train.total_env_steps=1024"]].iter().enumerate()
    {
        let out = dir.path().join(format!("run-{i}"));
        succeed(&[&["train", arg(&config), "--quiet", "--out", arg(&out)], &extra[..]].concat());
        let written = fs::read_to_string(out.join("config.toml")).expect("the run has its experiment");
        assert!(written.contains("total_env_steps = 1024\n"), "{written}");
    }
    // In a file as well.
    let text = fs::read_to_string(&config).expect("it was written");
    let file = dir.path().join("exponent.toml");
    fs::write(&file, text.replace("total_env_steps = 4096", "total_env_steps = 1e3\neval_interval = 5e2"))
        .expect("room");
    succeed(&["check", arg(&file), "--json"]);
    refused(&["train", arg(&config), "--steps", "1.5"], &["--steps", "must be a whole number", "1e6"]);
    refused(&["train", arg(&config), "--seed", "9223372036854775808"], &["--seed", "9223372036854775807"]);
}

#[test]
fn what_was_probably_meant_is_named() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    for (key, meant) in [("ppo.lr", "learning_rate"), ("ppo.batch", "batch_size"), ("train.sed", "seed")] {
        refused(&["train", arg(&config), "--set", &format!("{key}=1")], &[&format!("(did you mean `{meant}`?)")]);
    }
    refused(&["train", arg(&config), "--device", "gpu"], &["(a GPU is `cuda`"]);
    let near = dir.path().join("small");
    refused(&["train", arg(&near)], &["cannot read", "did you mean", "small.toml?"]);
    for (name, text) in [("plan.geojson", "{\"type\": \"FeatureCollection\"}"), ("load.csv", "time,load [kW]\n")] {
        let file = dir.path().join(name);
        fs::write(&file, text).expect("there is room");
        refused(&["train", arg(&file)], &[name, "an experiment is a TOML file"]);
        refused(&["check", arg(&file)], &[name, "an experiment is a TOML file"]);
    }
}

#[test]
fn a_run_without_a_best_policy_names_the_setting() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out) = (small_experiment(dir.path()), dir.path().join("run"));
    succeed(&["train", arg(&config), "--quiet", "--steps", "256", "--out", arg(&out)]);
    refused(&["eval", arg(&out), "--best"], &["has no best policy", "`train.eval_interval`"]);
    refused(&["export", arg(&out), "--best", "--format", "onnx"], &["has no best policy", "`train.eval_interval`"]);
}

/// A run directory from elsewhere must not start a program by being looked at.
#[test]
#[cfg(unix)]
fn a_run_that_names_a_program_is_opened_with_trust_alone() {
    use std::os::unix::fs::PermissionsExt;

    let dir = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| dir.path().join(name);
    let script = format!("#!/bin/sh\ntouch '{}'\n", at("started").display());
    fs::write(at("program"), script).expect("there is room");
    fs::set_permissions(at("program"), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let text =
        format!("[scenario.gymnasium]\nid = \"CartPole-v1\"\npython = {:?}\n[network]\n[ppo]\n", arg(&at("program")));
    let run_dir = brasa::train::RunDir::create(at("run")).expect("there is room");
    run_dir.write_config(&text).expect("there is room");
    drop(run_dir);
    let run_dir = at("run");
    let run_dir = arg(&run_dir);
    let commands: [&[&str]; 5] = [
        &["eval", run_dir],
        &["report", run_dir],
        &["export", run_dir, "--format", "onnx"],
        &["compare", run_dir],
        &["train", "--resume", run_dir],
    ];
    for command in commands {
        refused(command, &["starts the program", "`scenario.gymnasium.python`", "--trust"]);
        assert!(!at("started").exists(), "{command:?}");
    }
    for command in commands {
        // It is no Python: the command starts it, and fails.
        assert!(!run(&[command, &["--trust"]].concat()).status.success());
        assert!(at("started").exists(), "{command:?}");
        fs::remove_file(at("started")).expect("it is there");
    }
}
