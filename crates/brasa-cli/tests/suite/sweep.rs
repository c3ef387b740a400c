//! `brasa sweep`: every combination is trained once, continued, and compared.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;
use std::path::Path;

use common::{arg, brasa, run, small_experiment, succeed};

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("the sweep has a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.contains("-seed")).collect();
    names.sort();
    names
}

#[test]
fn every_combination_is_trained_and_a_finished_one_is_not_trained_again() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out) = (small_experiment(dir.path()), dir.path().join("sweep"));
    let sweep = [
        "sweep",
        arg(&config),
        "--seeds",
        "0..2",
        "--set",
        "ppo.gamma=0.9,0.98",
        "--set",
        "train.total_env_steps=512",
        "--episodes",
        "2",
        "--out",
        arg(&out),
    ];
    let table = succeed(&sweep);
    let expected =
        ["small-gamma=0.9-seed0", "small-gamma=0.9-seed1", "small-gamma=0.98-seed0", "small-gamma=0.98-seed1"];
    assert_eq!(names(&out), expected);
    assert!(table.contains("small-gamma=0.9") && table.contains("small-gamma=0.98"), "{table}");
    assert!(out.join("compare.html").is_file() && out.join("compare.csv").is_file());
    for name in expected {
        let config = fs::read_to_string(out.join(name).join("config.toml")).expect("the run has its experiment");
        let gamma = if name.contains("0.98") { "gamma = 0.98" } else { "gamma = 0.9\n" };
        assert!(config.contains(gamma) && config.contains(&format!("seed = {}", &name[name.len() - 1..])), "{config}");
    }

    // The same runs as by themselves.
    let alone = dir.path().join("alone");
    succeed(&[
        "train",
        arg(&config),
        "--quiet",
        "--seed",
        "1",
        "--set",
        "ppo.gamma=0.98",
        "--steps",
        "512",
        "--out",
        arg(&alone),
    ]);
    let result = |run: &Path| -> serde_json::Value {
        let text = fs::read_to_string(run.join("result.json")).expect("a result");
        serde_json::from_str(&text).expect("JSON")
    };
    let of_sweep = result(&out.join(expected[3]));
    assert_eq!(of_sweep["controllers"]["trained"], result(&alone)["controllers"]["trained"]);

    // Again: nothing is trained.
    let changed =
        |name: &str| fs::metadata(out.join(name).join("result.json")).and_then(|file| file.modified()).expect("a file");
    let before: Vec<_> = expected.map(changed).into();
    let again = brasa().args(sweep).output().expect("the command starts");
    assert!(again.status.success());
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(said.contains("4 finished before"), "{said}");
    assert_eq!(before, expected.map(changed));
}

#[test]
fn tasks_of_a_cluster_do_together_what_the_sweep_does() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out) = (small_experiment(dir.path()), dir.path().join("sweep"));
    let sweep = [
        "sweep",
        arg(&config),
        "--seeds",
        "3,7",
        "--set",
        "train.total_env_steps=512",
        "--out",
        arg(&out),
        "--episodes",
        "2",
    ];
    let lines = succeed(&[&sweep[..], &["--print", "shell"]].concat());
    assert_eq!(lines.lines().count(), 2);
    assert!(!out.exists(), "a script writes nothing");
    for line in lines.lines() {
        let words = shlex::split(line).expect("the line is for a shell");
        assert_eq!(words[0], "brasa");
        succeed(&words[1..].iter().map(String::as_str).collect::<Vec<_>>());
    }
    assert_eq!(names(&out), ["small-seed3", "small-seed7"]);
    let only = succeed(&[&sweep[..], &["--only", "1"]].concat());
    assert!(only.contains("is finished"), "{only}");
    assert!(succeed(&sweep).contains("small"), "the sweep only compares");
    let slurm = succeed(&[&sweep[..], &["--print", "slurm"]].concat());
    assert!(slurm.contains("#SBATCH --array=0-1\n") && slurm.contains("3,7"), "{slurm}");
}

#[test]
fn a_run_that_fails_is_named_and_the_others_are_kept() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out) = (small_experiment(dir.path()), dir.path().join("sweep"));
    // A file where the second run needs a directory.
    fs::create_dir_all(&out).expect("a directory");
    fs::write(out.join("small-seed1"), "in the way").expect("a file");
    let output =
        run(&["sweep", arg(&config), "--seeds", "0..2", "--set", "train.total_env_steps=512", "--out", arg(&out)]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("small-seed1"), "{said}");
    assert!(out.join("small-seed0").join("result.json").is_file(), "{said}");
}

#[test]
fn wrong_sweeps_are_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out) = (small_experiment(dir.path()), dir.path().join("sweep"));
    let cases: [(&[&str], &str); 13] = [
        // The comparison at the end would be refused.
        (&["--set", "ppo.learning_rate=1e-3,0.001"], "are the same experiment"),
        (&["--set", "train.keep_every=1000,2000"], "are the same experiment"),
        (&["--set", "train.eval_seed=7000000,9000000"], "do not play the same episodes"),
        (&["--seeds", "0"], "must have 1 to"),
        (&["--seeds", "9223372036854775808,1"], "must be at most 9223372036854775807"),
        (&["--seeds", "5..2"], "must have 1 to"),
        (&["--set", "ppo.gamma=0.9,1.5"], "gamma"),
        (&["--set", "ppo.gama=0.9,0.95"], "gama"),
        (&["--set", "ppo.gamma"], "key=value"),
        (&["--set", "ppo.gamma=0.9", "--set", "ppo.gamma=0.8"], "given twice"),
        (&["--set", "train.seed=1,2"], "--seeds"),
        (&["--only", "9"], "must be at most 4"),
        (&["--jobs", "0"], "--jobs"),
    ];
    for (extra, expected) in cases {
        let output = run(&[&["sweep", arg(&config), "--out", arg(&out)], extra].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{extra:?}: {said}");
        assert!(said.contains(expected), "{extra:?}: {said}");
    }
    assert!(!out.exists());
}

/// A second sweep would write the logs of the first one.
#[test]
fn a_directory_has_one_sweep_at_a_time() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out) = (small_experiment(dir.path()), dir.path().join("sweep"));
    fs::create_dir(&out).expect("there is room");
    let lock = fs::File::create(out.join("sweep.lock")).expect("there is room");
    lock.lock().expect("nobody else has it");
    let output = run(&["sweep", arg(&config), "--seeds", "1", "--out", arg(&out)]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("is in use by another sweep"), "{said}");
    assert_eq!(names(&out), [""; 0]);
}

/// The runs of a killed sweep save a checkpoint and end.
#[test]
#[cfg(target_os = "linux")]
fn a_killed_sweep_leaves_no_run_behind() {
    use std::time::{Duration, Instant};

    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out) = (small_experiment(dir.path()), dir.path().join("sweep"));
    let mut sweep = brasa()
        .args(["sweep", arg(&config), "--seeds", "1", "--set", "train.total_env_steps=1000000000", "--out", arg(&out)])
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    let run_dir = out.join("small-seed0");
    let owner = || {
        let text = fs::read_to_string(run_dir.join("lock")).ok()?;
        text.split_once("\"pid\":")?.1.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
    };
    let begin = Instant::now();
    let wait = |what: &str, is_over: &dyn Fn() -> bool| {
        while !is_over() {
            assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    wait("the run trains", &|| owner().is_some() && run_dir.join("metrics.jsonl").is_file());
    let pid = owner().expect("it was there");
    sweep.kill().expect("it is a child");
    sweep.wait().expect("it is a child");
    // A process that ended may wait to be collected.
    let is_alive = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
    };
    wait("the run ends with its sweep", &|| !is_alive());
    let checkpoints = fs::read_dir(run_dir.join("checkpoints")).expect("it is a run");
    assert!(checkpoints.count() > 0, "it saved a checkpoint");
}

#[test]
fn the_command_that_continues_a_sweep_has_all_its_arguments() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out) = (small_experiment(dir.path()), dir.path().join("sweep"));
    let script = succeed(&[
        "sweep",
        arg(&config),
        "--seeds",
        "3",
        "--episodes",
        "7",
        "--json",
        "--jobs",
        "2",
        "--out",
        arg(&out),
        "--print",
        "slurm",
    ]);
    for part in ["--seeds 3", "--episodes 7", "--json", "--jobs 2", "--only"] {
        assert!(script.contains(part), "no {part} in {script}");
    }
}
