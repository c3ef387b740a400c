//! Fault tests: kills at any moment, kills and errors at every file-system call, full and read-only disks, bad input.
//!
//! A small part always runs; `BRASA_SLOW=1` runs all and prints the figures of `docs/explanation/reliability.md`.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use common::{arg, brasa, newest_checkpoint, run, succeed};

/// A run of about a second for every algorithm, with a checkpoint after every iteration.
const RUNS: [(&str, &str); 7] = [
    (
        "ppo",
        "[scenario.cart-pole]\n[train]\ntotal_env_steps = 4096\nn_envs = 4\nnormalize_obs = true\nscale_reward = true\n\
        [network]\nactor_hidden = [16]\ncritic_hidden = [16]\n[ppo]\nn_steps = 64\nbatch_size = 64\nn_epochs = 2\n",
    ),
    (
        "a2c",
        "[scenario.cart-pole]\n[train]\ntotal_env_steps = 8192\nn_envs = 8\n\
        [network]\nactor_hidden = [16]\ncritic_hidden = [16]\n[a2c]\nn_steps = 64\n",
    ),
    (
        "dqn",
        "[scenario.cart-pole]\n[train]\ntotal_env_steps = 3000\nn_envs = 2\n[q_network]\nhidden = [16]\n[dqn]\n\
        [off_policy]\nlearning_starts = 200\nbatch_size = 32\nlog_interval = 250\n[off_policy.replay]\ncapacity = 2000\n\
        [off_policy.replay.prioritized]\nalpha = 0.5\nbeta = 0.5\n",
    ),
    (
        "sac",
        "[scenario.pendulum]\n[train]\ntotal_env_steps = 1500\nn_envs = 2\nnormalize_obs = true\n[actor]\nhidden = [16]\n\
        [critics]\nhidden = [16]\n[sac]\n[off_policy]\nlearning_starts = 200\nupdates_per_step = 0.5\nbatch_size = 32\n\
        log_interval = 125\n[off_policy.replay]\ncapacity = 1000\nn_step = 3\n",
    ),
    (
        "td3",
        "[scenario.pendulum]\n[train]\ntotal_env_steps = 1500\nn_envs = 2\n[deterministic_actor]\nhidden = [16]\n\
        [critics]\nhidden = [16]\n[td3]\n[off_policy]\nlearning_starts = 200\nupdates_per_step = 0.5\nbatch_size = 32\n\
        log_interval = 125\n[off_policy.replay]\ncapacity = 1000\n",
    ),
    (
        "team",
        "[scenario.uara]\nusers = 4\nepisode_steps = 40\n[train]\ntotal_env_steps = 600\nn_envs = 1\n\
        [team_q_network]\nhidden = [16]\n[dqn]\n[off_policy]\nlearning_starts = 50\nbatch_size = 8\nlog_interval = 50\n\
        [off_policy.replay]\ncapacity = 400\n",
    ),
    (
        "gat",
        "[scenario.evacuation]\nbuildings = { reference = \"office\" }\n[train]\ntotal_env_steps = 512\nn_envs = 2\n\
        [ppo]\nn_steps = 32\nbatch_size = 32\nn_epochs = 1\n",
    ),
];

const EVERY_ROUND: [&str; 3] = ["--quiet", "--set", "train.checkpoint_secs=1e-6"];

fn write_config(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(format!("{name}.toml"));
    fs::write(&path, text).expect("the directory can be written");
    path
}

/// Starts a run, or resumes that of an earlier process, from any state of its directory.
fn start_or_resume(config: &Path, out: &Path) -> Command {
    let mut command = brasa();
    match out.join("config.toml").exists() {
        true => command.args(["train", "--resume", arg(out), "--quiet"]),
        false => command.args(["train", arg(config), "--out", arg(out)]).args(EVERY_ROUND),
    };
    command
}

/// The final state of a run, except for values that depend on the clock.
fn end(run_dir: &Path) -> Vec<(String, Vec<u8>)> {
    let newest = newest_checkpoint(run_dir);
    let mut files: Vec<_> = fs::read_dir(&newest).expect("it is there").flatten().map(|entry| entry.path()).collect();
    files.sort();
    let name = |path: &Path| path.file_name().expect("it has a name").to_string_lossy().into_owned();
    let mut end: Vec<_> =
        files.iter().map(|path| (name(path), fs::read(path).expect("the checkpoint is whole"))).collect();
    end.push((name(&newest), Vec::new()));
    end
}

fn assert_same_end(what: &str, whole: &[(String, Vec<u8>)], run_dir: &Path) {
    let end = end(run_dir);
    let names = |end: &[(String, Vec<u8>)]| end.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(whole), names(&end), "{what}");
    for ((name, a), (_, b)) in whole.iter().zip(&end) {
        assert!(a == b, "{what}: {name} differs");
    }
}

#[test]
fn kills_at_any_moment_lose_nothing() {
    let kills_per_run = if brasa_test::slow("killing 1,001 times") { 143 } else { 4 };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut report = Vec::new();
    for (name, text) in RUNS {
        let config = write_config(dir.path(), name, text);
        let whole = dir.path().join(format!("{name}-whole"));
        succeed(&[&["train", arg(&config), "--out", arg(&whole)], &EVERY_ROUND[..]].concat());
        let whole = end(&whole);
        let (mut kills, mut runs) = (0, 0);
        while kills < kills_per_run {
            let out = dir.path().join(format!("{name}-{runs}"));
            runs += 1;
            loop {
                let mut child = start_or_resume(&config, &out)
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .expect("it starts");
                // Different moments, without a clock or random generator in the test.
                sleep(Duration::from_millis(3 + (kills as u64 * 37 + runs as u64 * 11) % 150));
                if kills == kills_per_run || child.try_wait().expect("it can be asked").is_some() {
                    assert!(child.wait().expect("it ends").success(), "{name}, after {kills} kills");
                    break;
                }
                child.kill().expect("it can be killed");
                child.wait().expect("it ends");
                kills += 1;
            }
            // The process ended by itself, or this was the last kill: now the run is resumed to its end.
            succeed(&["train", "--resume", arg(&out), "--quiet"]);
            assert_same_end(&format!("{name}, after {kills} kills"), &whole, &out);
            fs::remove_dir_all(&out).expect("it can be removed");
        }
        report.push(format!("{name}: {kills} kills in {runs} runs"));
    }
    println!("kill -9 at random moments, every run resumed to the same bytes: {}", report.join(", "));
}

/// Compiles the shim. Prints a notice and returns `None` if there is no C compiler.
fn shim(dir: &Path) -> Option<PathBuf> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/common/faults_shim.c");
    let library = dir.join("faults_shim.so");
    let compiled = Command::new("cc").args(["-O1", "-shared", "-fPIC", "-o", arg(&library), source, "-ldl"]).output();
    match compiled {
        Ok(output) if output.status.success() && cfg!(target_os = "linux") => Some(library),
        other => {
            eprintln!("SKIPPED: faults at file-system calls need Linux and `cc`: {other:?}");
            None
        }
    }
}

#[test]
fn a_fault_at_any_file_system_call_loses_nothing() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let Some(shim) = shim(dir.path()) else { return };
    let slow = brasa_test::slow("a fault at every file-system call");
    let (step, runs) = if slow { (1, &RUNS[..]) } else { (29, &RUNS[..1]) };
    for (name, text) in runs {
        let config = write_config(dir.path(), name, text);
        // A few rounds: the calls of one are those of the next.
        let mut table: toml::Table = toml::from_str(text).expect("it is TOML");
        let steps = table["train"]["total_env_steps"].as_integer().expect("a number") / 4;
        table["train"]["total_env_steps"] = steps.into();
        fs::write(&config, table.to_string()).expect("the directory can be written");
        let with_fault = |out: &Path, at: usize, kind: &str| {
            let mut command = start_or_resume(&config, out);
            command
                .env("LD_PRELOAD", &shim)
                .env("FAULT_DIR", out)
                .env("FAULT_AT", at.to_string())
                .env("FAULT_KIND", kind);
            command.env("FAULT_COUNT", dir.path().join("count")).env("FAULT_HIT", dir.path().join("hit"));
            command.output().expect("it starts")
        };
        let whole = dir.path().join(format!("{name}-whole"));
        assert!(with_fault(&whole, 0, "kill").status.success());
        let n_calls: usize =
            fs::read_to_string(dir.path().join("count")).expect("the shim counted").trim().parse().expect("a number");
        assert!(n_calls > 50, "{n_calls} calls: the shim saw nothing");
        let whole = end(&whole);
        let mut faults = 0;
        for kind in ["kill", "ENOSPC", "EIO"] {
            // Slow runs save less often and have fewer calls: until no call is left.
            for at in (1..).step_by(step) {
                let what = format!("{name}: {kind} at call {at} of about {n_calls}");
                let (out, hit) = (dir.path().join("run"), dir.path().join("hit"));
                let output = with_fault(&out, at, kind);
                if fs::remove_file(&hit).is_err() {
                    fs::remove_dir_all(&out).expect("it can be removed");
                    assert!(at > 20, "{what}: the fault did not happen");
                    break;
                }
                let message = String::from_utf8_lossy(&output.stderr);
                // A directory that cannot be removed is not an error: such a run succeeds.
                let code = output.status.code();
                assert!(code.is_none() || code == Some(0) || code == Some(1), "{what}: {code:?}, {message}");
                if code == Some(1) {
                    let named = message.contains("No space left") || message.contains("Input/output error");
                    assert!(named, "{what}: {message}");
                }
                let output = start_or_resume(&config, &out).output().expect("it starts");
                assert!(output.status.success(), "{what}, resumed: {}", String::from_utf8_lossy(&output.stderr));
                assert_same_end(&what, &whole, &out);
                fs::remove_dir_all(&out).expect("it can be removed");
                faults += 1;
            }
        }
        println!("{name}: {faults} faults (kill, ENOSPC, EIO) at file-system calls, each resumed to the same bytes");
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_wrong_input() {
    use std::os::unix::fs::PermissionsExt;

    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = write_config(dir.path(), "ppo", RUNS[0].1);
    let closed = dir.path().join("closed");
    fs::create_dir(&closed).expect("the directory can be written");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).expect("it is ours");
    // The superuser can write to every directory except this one.
    for out in [closed.join("run"), PathBuf::from("/proc/brasa-run")] {
        if fs::create_dir(closed.join("probe")).is_ok() && out.starts_with(&closed) {
            continue;
        }
        let output = run(&["train", arg(&config), "--out", arg(&out), "--quiet"]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(arg(&out)), "{message}");
    }
}

#[test]
fn the_second_process_in_one_directory_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = write_config(dir.path(), "ppo", RUNS[0].1);
    let out = dir.path().join("run");
    let mut first = brasa()
        .args(["train", arg(&config), "--out", arg(&out), "--steps", "100000000", "--quiet"])
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    while !out.join("checkpoints/step-000000000000").exists() {
        sleep(Duration::from_millis(5));
    }
    let refused = |args: &[&str]| -> Output {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
        output
    };
    let output = refused(&["train", "--resume", arg(&out), "--quiet"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains(&format!("in use by process {}", first.id())), "{message}");
    refused(&["train", arg(&config), "--out", arg(&out), "--quiet"]);
    // Reading needs no lock.
    succeed(&["eval", arg(&out), "--json"]);
    first.kill().expect("it can be killed");
    first.wait().expect("it ends");
    // The lock is released when its owner ends, also by a kill.
    let newest = newest_checkpoint(&out);
    let steps: u64 = newest.to_string_lossy().rsplit('-').next().and_then(|n| n.parse().ok()).expect("a number");
    succeed(&["train", "--resume", arg(&out), "--quiet", "--steps", &steps.max(1).to_string()]);
}
