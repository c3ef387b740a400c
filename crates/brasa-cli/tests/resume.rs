//! A run that is stopped, killed or interrupted goes on as if nothing had happened.
#![allow(clippy::expect_used)]

mod common;

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use common::{arg, brasa, newest_checkpoint, run, small_experiment, small_off_policy_experiment, succeed};

/// Weights, moments, statistics, environments and counters, bit for bit.
fn assert_same_end(a: &Path, b: &Path) {
    let (a, b) = (newest_checkpoint(a), newest_checkpoint(b));
    assert_eq!(a.file_name(), b.file_name());
    for file in ["policy.safetensors", "trainer.safetensors", "manifest.json"] {
        let read = |dir: &Path| fs::read(dir.join(file)).expect("the checkpoint is whole");
        assert!(read(&a) == read(&b), "{file} differs");
    }
    // Only runs that replay have it.
    let replay = |dir: &Path| fs::read(dir.join("replay.bin")).ok();
    assert!(replay(&a) == replay(&b), "replay.bin differs");
}

#[test]
fn twice_half_a_run_equals_a_whole_one() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    halves_equal_a_whole(dir.path(), &small_experiment(dir.path()));
}

#[test]
fn twice_half_an_off_policy_run_equals_a_whole_one() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    halves_equal_a_whole(dir.path(), &small_off_policy_experiment(dir.path()));
    assert!(newest_checkpoint(&dir.path().join("whole")).join("replay.bin").exists());
}

fn halves_equal_a_whole(dir: &Path, config: &Path) {
    let (whole, halves) = (dir.join("whole"), dir.join("halves"));
    succeed(&["train", arg(config), "--out", arg(&whole), "--quiet"]);
    succeed(&["train", arg(config), "--out", arg(&halves), "--quiet", "--steps", "2048"]);
    succeed(&["train", "--resume", arg(&halves), "--quiet", "--steps", "4096"]);
    assert_same_end(&whole, &halves);

    let metrics = |run: &Path| -> Vec<serde_json::Value> {
        let text = fs::read_to_string(run.join("metrics.jsonl")).expect("the run left metrics");
        let lines = text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON"));
        let timeless = |mut line: serde_json::Value| {
            line.as_object_mut().expect("a line is an object").retain(|name, _| !name.starts_with("time/"));
            line
        };
        lines.map(timeless).collect()
    };
    assert_eq!(metrics(&whole), metrics(&halves));
}

#[test]
fn threads_change_nothing_and_are_remembered() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    let end = |name: &str, set: &str| {
        let out = dir.path().join(name);
        succeed(&["train", arg(&config), "--out", arg(&out), "--quiet", "--steps", "1024", "--set", set]);
        out
    };
    let (one, two) = (end("one", "train.executor=serial"), end("two", "train.executor={ threads = 2 }"));
    let auto = end("auto", "train.executor=auto");
    let weights = |run: &Path| fs::read(newest_checkpoint(run).join("policy.safetensors")).expect("it is whole");
    assert!(weights(&one) == weights(&two) && weights(&one) == weights(&auto));
    // What was chosen stands in the resolved experiment, so that a resume does not choose again.
    let resolved = fs::read_to_string(auto.join("config.toml")).expect("the run left its experiment");
    assert!(!resolved.contains("executor = \"auto\""), "{resolved}");
    succeed(&["train", arg(&config), "--resume", arg(&auto), "--quiet", "--steps", "1024"]);
}

#[test]
fn a_killed_run_goes_on_from_what_it_left() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    let (whole, killed) = (dir.path().join("whole"), dir.path().join("killed"));
    // A checkpoint after every round: the kill often meets one that is being written.
    let set = ["--set", "train.checkpoint_secs=1e-6", "--quiet"];
    succeed(&[&["train", arg(&config), "--out", arg(&whole)], &set[..]].concat());

    let mut attempts = 0;
    for round in 0u64..12 {
        let resumable = killed.join("checkpoints").exists();
        let start = if resumable {
            vec!["train", "--resume", arg(&killed), "--quiet"]
        } else {
            // Killed before the first checkpoint: nothing was lost, and nothing is left that would block a new run.
            let _ = fs::remove_dir_all(&killed);
            [&["train", arg(&config), "--out", arg(&killed)], &set[..]].concat()
        };
        let mut child = brasa().args(start).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        // Moments that differ from round to round, without a clock or generator in the test.
        sleep(Duration::from_millis(15 + round * 37 % 101));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        attempts += 1;
        if killed.join("checkpoints").exists() && newest_checkpoint_exists(&killed) {
            let eval = run(&["eval", arg(&killed), "--json"]);
            assert!(eval.status.success(), "after kill {attempts}: {}", String::from_utf8_lossy(&eval.stderr));
        }
    }
    if !newest_checkpoint_exists(&killed) {
        let _ = fs::remove_dir_all(&killed);
        succeed(&[&["train", arg(&config), "--out", arg(&killed)], &set[..]].concat());
    } else {
        succeed(&["train", "--resume", arg(&killed), "--quiet"]);
    }
    assert_same_end(&whole, &killed);
}

fn newest_checkpoint_exists(run_dir: &Path) -> bool {
    let Ok(entries) = fs::read_dir(run_dir.join("checkpoints")) else { return false };
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("step-"))
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_a_checkpoint_and_says_how_to_go_on() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    let out = dir.path().join("run");
    // Far more steps than the test waits for.
    let child = brasa()
        .args(["train", arg(&config), "--out", arg(&out), "--steps", "100000000"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    while !newest_checkpoint_exists(&out) {
        sleep(Duration::from_millis(5));
    }
    sleep(Duration::from_millis(100));
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains(&format!("go on with `brasa train --resume {}`", out.display())), "{message}");
    let steps = newest_checkpoint(&out);
    let steps: u64 = steps.to_string_lossy().rsplit('-').next().expect("a number").parse().expect("a number");
    assert!(steps > 0);
    succeed(&["train", "--resume", arg(&out), "--quiet", "--steps", &steps.to_string()]);
}
