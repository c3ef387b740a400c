//! A run that is stopped, killed or interrupted and then resumed equals an uninterrupted run.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use common::{
    arg, assert_same_end, brasa, newest_checkpoint, run, small_experiment, small_off_policy_experiment, succeed,
    timeless_metrics,
};

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

#[test]
fn the_scale_of_losses_in_16_bits_is_resumed_too() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    let text = fs::read_to_string(&config).expect("it was written").replace("[train]", "[train]\nprecision = \"f16\"");
    fs::write(&config, text).expect("it can be written");
    halves_equal_a_whole(dir.path(), &config);
    let metrics = fs::read_to_string(dir.path().join("whole/metrics.jsonl")).expect("the run left metrics");
    assert!(metrics.lines().all(|line| line.contains("\"train/loss_scale\":") && line.contains("skipped_steps")));
}

fn halves_equal_a_whole(dir: &Path, config: &Path) {
    let (whole, halves) = (dir.join("whole"), dir.join("halves"));
    succeed(&["train", arg(config), "--out", arg(&whole), "--quiet"]);
    succeed(&["train", arg(config), "--out", arg(&halves), "--quiet", "--steps", "2048"]);
    succeed(&["train", "--resume", arg(&halves), "--quiet", "--steps", "4096"]);
    assert_same_end(&whole, &halves);

    assert_eq!(timeless_metrics(&whole), timeless_metrics(&halves));
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
    // `config.toml` has the selected executor, so that a resumed run uses the same.
    let resolved = fs::read_to_string(auto.join("config.toml")).expect("the run left its experiment");
    assert!(!resolved.contains("executor = \"auto\""), "{resolved}");
    succeed(&["train", arg(&config), "--resume", arg(&auto), "--quiet", "--steps", "1024"]);
}

#[test]
fn a_killed_run_goes_on_from_what_it_left() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    let (whole, killed) = (dir.path().join("whole"), dir.path().join("killed"));
    // With a checkpoint after every iteration, the kill often interrupts one that is being written.
    let set = ["--set", "train.checkpoint_secs=1e-6", "--quiet"];
    succeed(&[&["train", arg(&config), "--out", arg(&whole)], &set[..]].concat());

    let mut attempts = 0;
    for round in 0u64..12 {
        // A run that was killed before its first checkpoint blocks neither a resume nor a new run.
        let resumes = killed.join("config.toml").exists() && (newest_checkpoint_exists(&killed) || round % 2 == 0);
        let start = match resumes {
            true => vec!["train", "--resume", arg(&killed), "--quiet"],
            false => [&["train", arg(&config), "--out", arg(&killed)], &set[..]].concat(),
        };
        let mut child = brasa().args(start).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        // Moments that differ in every iteration, without a clock or random generator in the test.
        sleep(Duration::from_millis(5 + round * 37 % 101));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        attempts += 1;
        if killed.join("checkpoints").exists() && newest_checkpoint_exists(&killed) {
            let eval = run(&["eval", arg(&killed), "--json"]);
            assert!(eval.status.success(), "after kill {attempts}: {}", String::from_utf8_lossy(&eval.stderr));
        }
    }
    match killed.join("config.toml").exists() {
        true => succeed(&["train", "--resume", arg(&killed), "--quiet"]),
        false => succeed(&[&["train", arg(&config), "--out", arg(&killed)], &set[..]].concat()),
    };
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
    // Many more steps than the test waits for.
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
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(message.contains(&format!("continue with `brasa train --resume {}`", out.display())), "{message}");
    let steps = newest_checkpoint(&out);
    let steps: u64 = steps.to_string_lossy().rsplit('-').next().expect("a number").parse().expect("a number");
    assert!(steps > 0);
    succeed(&["train", "--resume", arg(&out), "--quiet", "--steps", &steps.to_string()]);
}

/// A closed terminal ends a run, but not one that `nohup` started.
#[cfg(unix)]
#[test]
fn a_hangup_ends_a_run_unless_it_is_ignored() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    for (name, trap) in [("ends", ""), ("stays", "trap '' HUP; ")] {
        if trap.is_empty() && hangups_are_ignored() {
            eprintln!("SKIPPED: these tests were started by `nohup`, so no run ends at a hangup");
            continue;
        }
        let out = dir.path().join(name);
        let command = format!("{trap}exec \"$0\" train \"$1\" --out \"$2\" --steps 100000000");
        let mut child = std::process::Command::new("sh")
            .args(["-c", &command, env!("CARGO_BIN_EXE_brasa"), arg(&config), arg(&out)])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        while !newest_checkpoint_exists(&out) {
            sleep(Duration::from_millis(5));
        }
        let pid = child.id().to_string();
        let send = |signal: &str| {
            assert!(std::process::Command::new("kill").args([signal, &pid]).status().expect("kill runs").success());
        };
        send("-HUP");
        if !trap.is_empty() {
            sleep(Duration::from_secs(2));
            assert!(child.try_wait().expect("it can be asked").is_none(), "an ignored hangup ended it");
            send("-TERM");
        }
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Whether programs that this process starts inherit that hangups are ignored.
#[cfg(unix)]
fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Sends a signal to the process after `wait`. Returns the time until it ended, its exit status and its output.
#[cfg(unix)]
fn interrupted(mut child: std::process::Child, wait: Duration) -> (Duration, Option<i32>, String) {
    sleep(wait);
    assert!(child.try_wait().expect("it can be asked").is_none(), "it ended before the signal");
    let pid = child.id().to_string();
    let begin = std::time::Instant::now();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    (begin.elapsed(), output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// An iteration of PPO that takes minutes. It does not check for signals, so it is discarded.
#[cfg(unix)]
#[test]
fn a_signal_inside_a_long_update_stops_within_seconds_and_leaves_what_was_before() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    let (whole, cut) = (dir.path().join("whole"), dir.path().join("cut"));
    succeed(&["train", arg(&config), "--out", arg(&whole), "--quiet", "--steps", "1024"]);
    succeed(&["train", arg(&config), "--out", arg(&cut), "--quiet", "--steps", "512"]);
    let child = brasa()
        .args(["train", "--resume", arg(&cut), "--steps", "1024", "--set", "ppo.n_epochs=1000000"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let (took, status, message) = interrupted(child, Duration::from_secs(2));
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(status, Some(130), "{message}");
    assert!(message.contains("continue with `brasa train --resume"), "{message}");
    succeed(&["train", "--resume", arg(&cut), "--quiet", "--set", "ppo.n_epochs=2"]);
    assert_same_end(&whole, &cut);
}

/// An off-policy learner stops between two updates of a block.
#[cfg(unix)]
#[test]
fn a_signal_inside_a_block_of_updates_goes_on_bit_for_bit() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_off_policy_experiment(dir.path());
    // Blocks of 8,000 updates.
    let set =
        ["--quiet", "--steps", "2048", "--set", "off_policy.train_freq=1000", "--set", "off_policy.updates_per_step=8"];
    let (whole, cut) = (dir.path().join("whole"), dir.path().join("cut"));
    succeed(&[&["train", arg(&config), "--out", arg(&whole)], &set[..]].concat());
    let child = brasa()
        .args([&["train", arg(&config), "--out", arg(&cut)], &set[..]].concat())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let (took, status, message) = interrupted(child, Duration::from_millis(700));
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(status, Some(130), "{message}");
    let manifest = fs::read_to_string(newest_checkpoint(&cut).join("manifest.json")).expect("the checkpoint is whole");
    assert!(
        manifest.contains("\"step_to_learn_from\": false") || manifest.contains("\"step_to_learn_from\": true"),
        "{manifest}"
    );
    succeed(&["train", "--resume", arg(&cut), "--quiet"]);
    assert_same_end(&whole, &cut);
}

#[cfg(unix)]
#[test]
fn a_signal_after_the_training_ends_the_comparison() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = dir.path().join("run");
    let config = dir.path().join("networks.toml");
    // Twenty simulated years take longer than the test waits.
    let text = "[scenario.iquitos]\n[train]\ntotal_env_steps = 64\nn_envs = 1\n[ppo]\nn_steps = 64\nbatch_size = 64\n";
    fs::write(&config, text).expect("the directory can be written");
    let child = brasa()
        .args(["train", arg(&config), "--out", arg(&out)])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    while !newest_checkpoint_is(&out, "step-000000000064") {
        sleep(Duration::from_millis(5));
    }
    let (took, status, message) = interrupted(child, Duration::from_millis(30));
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(status, Some(130), "{message}");
    assert!(message.contains(&format!("brasa report {}", out.display())), "{message}");
}

#[cfg(unix)]
fn newest_checkpoint_is(run_dir: &Path, name: &str) -> bool {
    run_dir.join("checkpoints").join(name).exists()
}

/// The pipe of the progress is closed, and the disk for the result is full.
#[cfg(unix)]
#[test]
fn readers_that_go_away_end_no_run() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    let (out, full) = (dir.path().join("run"), dir.path().join("full"));
    let mut child = brasa()
        .args(["train", arg(&config), "--out", arg(&out)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop((child.stdout.take(), child.stderr.take()));
    assert!(child.wait().expect("it ends").success());
    assert!(newest_checkpoint_is(&out, "step-000000004096") && out.join("report.html").exists());

    if !Path::new("/dev/full").exists() {
        eprintln!("SKIPPED: this system has no /dev/full");
        return;
    }
    let device = || fs::OpenOptions::new().write(true).open("/dev/full").expect("this system has one");
    let status = brasa().args(["train", arg(&config), "--out", arg(&full)]).stdout(device()).stderr(device()).status();
    assert_eq!(status.expect("it starts").code(), Some(1), "the result was not written, and says so");
    assert!(newest_checkpoint_is(&full, "step-000000004096"));
}

#[test]
fn a_resume_refuses_what_would_be_another_run() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    let out = dir.path().join("run");
    succeed(&["train", arg(&config), "--out", arg(&out), "--quiet", "--steps", "1024"]);
    let kept = || fs::read_to_string(out.join("config.toml")).expect("the run left its experiment");
    let before = kept();
    for (more, named) in [
        (["--steps", "10"], "`train.total_env_steps` must be at least 1024, the steps that the run has taken, got 10"),
        (["--set", "train.n_envs=8"], "cannot change `train.n_envs` from 4 to 8 on resume"),
        (["--set", "network.actor_hidden=[8]"], "does not fit"),
    ] {
        let output = run(&[&["train", "--resume", arg(&out), "--quiet"], &more[..]].concat());
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains(named), "{more:?}: {message}");
        assert_eq!(kept(), before, "{more:?}");
    }
    // An edit by a user.
    fs::write(out.join("config.toml"), before.replace("seed = 0", "seed = 1")).expect("it can be written");
    let output = run(&["train", "--resume", arg(&out), "--quiet"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && message.contains("config.toml was edited"), "{message}");
}
