//! The command: results, exit codes and messages.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;
use std::path::Path;

use common::{arg, brasa, newest_checkpoint, run, small_experiment, succeed};
use serde_json::Value;

/// A year of the district with few updates.
const DISTRICT: &str = "[scenario.citylearn]\nphysics = \"citylearn-3.0\"\n\
    [train]\ntotal_env_steps = 512\nn_envs = 2\n[network]\nactor_hidden = [8]\ncritic_hidden = [8]\n\
    [ppo]\nn_steps = 128\nbatch_size = 128\nn_epochs = 1\n";

fn district(dir: &Path) -> std::path::PathBuf {
    let path = dir.join("district.toml");
    fs::write(&path, DISTRICT).expect("the directory can be written");
    path
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("one JSON document: {error}: {text}"))
}

#[test]
fn a_run_leaves_everything_and_eval_repeats_its_result() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = dir.path().join("run");
    let trained = json(&succeed(&["train", arg(&district(dir.path())), "--out", arg(&out), "--json", "--quiet"]));
    for name in ["idle", "basic-rbc", "rule-based", "trained"] {
        let controller = &trained["controllers"][name];
        for figure in ["return", "grid_import_kwh", "carbon_kg", "cost", "peak_kw"] {
            assert!(controller[figure].is_number(), "{name}: no `{figure}`");
        }
        assert!(controller["ratios"]["carbon_kg"].is_number());
    }
    assert_eq!(trained["controllers"]["idle"]["ratios"]["challenge_score"], 1.0);
    let score = trained["controllers"]["rule-based"]["ratios"]["challenge_score"].as_f64().expect("a number");
    assert!((score - 0.9668).abs() < 1e-4, "{score}");

    let names: Vec<String> = fs::read_dir(&out)
        .expect("the run directory is there")
        .map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned())
        .collect();
    for name in ["config.toml", "metrics.jsonl", "checkpoints", "report.html", "result.json"] {
        assert!(names.iter().any(|known| known == name), "no {name} in {names:?}");
    }
    assert!(names.iter().any(|name| name.starts_with("events.out.tfevents.")));
    let page = fs::read_to_string(out.join("report.html")).expect("the report is there");
    assert!(!page.contains("{{"), "a placeholder was left");
    assert!(!page.contains("src=\"http") && !page.contains("href=\"http"), "the page needs the network");

    let again = json(&succeed(&["eval", arg(&out), "--json"]));
    assert_eq!(again["controllers"], trained["controllers"]);
    let sampled = || json(&succeed(&["eval", arg(&out), "--sampled", "--json"]));
    let first = sampled();
    assert_eq!(first["controllers"], sampled()["controllers"], "equal seeds give equal actions");
    assert_ne!(first["controllers"]["trained"], trained["controllers"]["trained"]);
    assert_eq!(first["controllers"]["idle"], trained["controllers"]["idle"]);

    // A run whose evaluations are sampled is the same run.
    let other = dir.path().join("sampled");
    let set = ["--set", "train.eval_sampled=true", "--set", "train.eval_interval=1"];
    let train = ["train", arg(&district(dir.path())), "--out", arg(&other), "--json", "--quiet"].map(str::to_owned);
    let train: Vec<&str> = train.iter().map(String::as_str).chain(set).collect();
    assert_eq!(json(&succeed(&train))["controllers"], first["controllers"]);
    assert_eq!(json(&succeed(&["eval", arg(&other), "--json"]))["controllers"], first["controllers"]);
    let likely = ["eval", arg(&other), "--json", "--set", "train.eval_sampled=false"];
    assert_eq!(json(&succeed(&likely))["controllers"], trained["controllers"]);
}

#[test]
fn evaluations_of_deterministic_policies_cannot_be_sampled() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out) = (dir.path().join("own.toml"), dir.path().join("run"));
    for own in ["[scenario.cart-pole]\n[dqn]\n", "[scenario.pendulum]\n[td3]\n"] {
        fs::write(&config, format!("{own}[train]\neval_sampled = true\n")).expect("it can be written");
        refused(&["train", arg(&config), "--quiet", "--out", arg(&out)], 2, "the policy is deterministic");
        assert!(!out.exists(), "nothing was trained");
    }
}

#[test]
fn baselines_need_no_training() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let document = json(&succeed(&["baseline", arg(&district(dir.path())), "--json"]));
    assert!(document["controllers"].get("trained").is_none());
    let table = succeed(&["baseline", arg(&district(dir.path()))]);
    assert!(table.contains("challenge score"), "{table}");
    let clean =
        succeed(&["baseline", arg(&district(dir.path())), "--json", "--set", "scenario.citylearn.physics=clean"]);
    assert_ne!(json(&clean)["controllers"]["rule-based"], document["controllers"]["rule-based"]);
}

/// Asserts that the command fails with this exit code, and that its message contains these words.
fn refused(args: &[&str], code: i32, words: &str) {
    let output = run(args);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    assert!(message.contains(words), "{args:?}: {message}");
    assert!(output.stdout.is_empty(), "{args:?} printed a result");
}

#[test]
fn wrong_input_is_named_and_nothing_is_written() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    let out = dir.path().join("run");
    let (config, out) = (arg(&config), arg(&out));
    let train = |set: &'static str, words: &str| refused(&["train", config, "--out", out, "--set", set], 2, words);
    train("ppo.gama=0.9", "--set ppo.gama=0.9: [ppo] has no key `gama`. Did you mean `gamma`?");
    train("ppo.gamma=1.5", "`gamma` must be in [0, 1], got 1.5");
    train("train.n_envs=0", "`train.n_envs` must be at least 1, got 0");
    train("network.actor_hidden=[0]", "`actor_hidden` must have widths of at least 1, got [0]");
    train("train.device=abacus", "`device` must be one of");
    train("train.executor={ threads = 9 }", "`train.executor.threads` must be between 1 and `train.n_envs`, got 9");
    refused(&["train", "nowhere.toml"], 2, "cannot read nowhere.toml");
    refused(&["train"], 2, "required arguments");
    refused(&["eval", out], 2, "is not a run directory");
    refused(&["train", "--resume", out], 2, "is not a run directory");
    assert!(!Path::new(out).exists(), "a refused run left something behind");

    let district = district(dir.path());
    let missing = ["train", arg(&district), "--out", out, "--set", "scenario.citylearn.data=/nowhere/schema.json"];
    refused(&missing, 2, "/nowhere/schema.json");
    assert!(!Path::new(out).exists());
}

#[test]
fn a_run_is_never_overwritten() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    let out = dir.path().join("run");
    fs::create_dir(&out).expect("the directory can be made");
    fs::write(out.join("thesis.txt"), "irreplaceable").expect("the file can be written");
    refused(&["train", arg(&config), "--out", arg(&out)], 2, "is not empty");
    assert_eq!(fs::read_to_string(out.join("thesis.txt")).expect("it is still there"), "irreplaceable");
    assert_eq!(fs::read_dir(&out).expect("it is still there").count(), 1);
}

#[test]
fn another_experiment_does_not_resume_a_run() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    let out = dir.path().join("run");
    succeed(&["train", arg(&config), "--out", arg(&out), "--quiet", "--steps", "256"]);
    let other = dir.path().join("other.toml");
    let text = fs::read_to_string(&config).expect("it was written").replace("n_envs = 4", "n_envs = 8");
    fs::write(&other, text).expect("the directory can be written");
    refused(&["train", arg(&other), "--resume", arg(&out)], 2, "differs from");
    let set = ["train", "--resume", arg(&out), "--set", "train.n_envs=8", "--steps", "512"];
    refused(&set, 2, "cannot change `train.n_envs` from 4 to");
}

#[test]
fn broken_checkpoints_are_passed_over_or_named() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    let out = dir.path().join("run");
    succeed(&["train", arg(&config), "--out", arg(&out), "--quiet", "--steps", "512"]);
    succeed(&["train", "--resume", arg(&out), "--quiet", "--steps", "1024"]);
    let newest = newest_checkpoint(&out);
    let weights = newest.join("policy.safetensors");
    let bytes = fs::read(&weights).expect("the checkpoint is whole");
    fs::write(&weights, &bytes[..bytes.len() / 2]).expect("the file can be written");

    // The older one is still complete.
    let output = run(&["eval", arg(&out), "--json"]);
    assert!(output.status.success());
    let warning = String::from_utf8_lossy(&output.stderr);
    assert!(warning.contains("checksum differs") && warning.contains("older checkpoint"), "{warning}");

    for entry in fs::read_dir(out.join("checkpoints")).expect("the run left checkpoints") {
        let manifest = entry.expect("it can be read").path().join("manifest.json");
        fs::write(manifest, "{").expect("the file can be written");
    }
    refused(&["eval", arg(&out), "--json"], 1, "manifest.json is broken");
    refused(&["train", "--resume", arg(&out)], 1, "manifest.json is broken");
}

#[test]
fn devices_are_listed() {
    let text = succeed(&["devices"]);
    assert!(text.contains("flex") && text.contains("works"), "{text}");
    for profile in ["rtx-4060", "rtx-4060-laptop", "rtx-5090", "t4", "v100", "v100-32gb", "v100-pcie", "v100s", "h200"]
    {
        assert!(text.lines().any(|line| line.starts_with(&format!("  {profile} "))), "{profile}: {text}");
    }
    let cpu = text.lines().nth(1).expect("the processor comes first");
    assert!(cpu.starts_with("  cpu ") && cpu.contains(" GiB free"), "{text}");
}

#[test]
fn a_run_begins_with_the_weights_of_another_and_keeps_its_best() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    // Observation moments would already contain the first observations of the new run.
    let raw = ["--set", "train.normalize_obs=false"];
    succeed(&[&["train", arg(&config), "--out", arg(&first), "--quiet", "--steps", "1024"], &raw[..]].concat());
    let start = ["train", arg(&config), "--init-from", arg(&first), "--out", arg(&second), "--quiet", "--steps", "256"];
    succeed(&[&start[..], &["--set", "train.eval_interval=256"], &raw].concat());
    // Before its first iteration the second run has the policy of the first one.
    let policy = |checkpoint: &Path| fs::read(checkpoint.join("policy.safetensors")).expect("the checkpoint is whole");
    let begin = second.join("checkpoints/step-000000000000");
    assert!(policy(&begin) == policy(&newest_checkpoint(&first)));
    assert!(policy(&newest_checkpoint(&second)) != policy(&begin), "and learns");
    // The policy with the best evaluation is the one at the end: it was evaluated once.
    let best = succeed(&["eval", arg(&second), "--best", "--json"]);
    assert_eq!(best, succeed(&["eval", arg(&second), "--json"]));
    assert!(second.join("checkpoints/best/step-000000000256").is_dir());
    refused(&["eval", arg(&first), "--best"], 2, "has no best policy");
    // Moments that are missing.
    let other = dir.path().join("other");
    let set = ["train", arg(&config), "--init-from", arg(&first), "--out", arg(&other)];
    refused(&set, 1, "its observations are not normalized, those of this run are normalized");
    assert!(!other.exists());
}

#[test]
fn an_experiment_is_checked_without_writing_anything() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    let before = fs::read_dir(dir.path()).expect("it is there").count();
    let output = brasa().current_dir(dir.path()).args(["check", arg(&config), "--json"]).output().expect("it starts");
    let found: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!((&found["algorithm"], &found["scenario"]), (&"ppo".into(), &"cart-pole".into()));
    let speed = found["steps_per_sec"].as_f64().expect("a number");
    let expected = 4096.0 / speed;
    assert!((found["expected_secs"].as_f64().expect("a number") - expected).abs() < 1e-6 * expected);
    assert!(found["checkpoint_bytes"].as_u64().expect("a number") > 1000);
    assert_eq!(fs::read_dir(dir.path()).expect("it is there").count(), before);
    refused(&["check", arg(&config), "--set", "ppo.gamma=2"], 2, "`gamma` must be in [0, 1], got 2");
}

#[test]
fn environments_on_the_device_are_asked_for_and_refused_by_name() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    let (plain, scaled) = (["--set", "train.scale_reward=false"], ["--set", "train.env_device=device"]);
    let out = dir.path().join("run");
    let train = ["train", arg(&config), "--out", arg(&out)];
    let output = run(&[&train[..], &plain, &scaled].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains(", f32; environments on the device"), "{said}");
    let written = fs::read_to_string(out.join("config.toml")).expect("it is written");
    assert!(written.contains("env_device = \"device\""), "{written}");
    // The policy is evaluated in the host's environments.
    succeed(&["eval", arg(&out), "--episodes", "2", "--json"]);
    let checked = succeed(&[&["check", arg(&config)][..], &plain, &scaled].concat());
    assert!(checked.contains("4 environments on the device"), "{checked}");

    let elsewhere = dir.path().join("other");
    let train = ["train", arg(&config), "--out", arg(&elsewhere), "--quiet"];
    let words = "`train.env_device` must not be \"device\": `train.scale_reward` is computed on the host only";
    refused(&[&train[..], &scaled].concat(), 2, words);
    refused(&[&train[..], &["--set", "train.env_device=gpu"]].concat(), 2, "unknown variant `gpu`");
    let station = dir.path().join("station.toml");
    fs::write(&station, "[scenario.station]\n[train]\nenv_device = \"device\"\n").expect("there is room");
    refused(&["train", arg(&station), "--out", arg(&elsewhere), "--quiet"], 2, "`station` has no tensor form");
    assert!(!elsewhere.exists());
}
