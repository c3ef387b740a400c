//! What an evaluation stands on: different episodes, and whether training could see their data.

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{arg, run, succeed};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

/// PPO on the sample of one's own site, a week of files, with episodes of a day.
fn own_site(dir: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("configs/own-site.toml")).expect("it is part of the project");
    let files = format!("\"{}/examples", root.display());
    let path = dir.join("site.toml");
    fs::write(&path, text.replace("\"examples", &files)).expect("it is written");
    path
}

const SHORT: [&str; 8] = [
    "--set",
    "scenario.iquitos.episode_steps=24",
    "--set",
    "train.n_envs=4",
    "--set",
    "ppo.n_steps=48",
    "--steps",
    "384",
];

fn train(config: &Path, out: &Path, more: &[&str]) -> Value {
    json(&succeed(&[&["train", arg(config), "--out", arg(out), "--quiet", "--json"], &SHORT[..], more].concat()))
}

fn eval(run_dir: &Path, more: &[&str]) -> Value {
    json(&succeed(&[&["eval", arg(run_dir), "--json"], more].concat()))
}

const HELD_OUT: [&str; 2] = ["--set", "scenario.iquitos.held_out_days=3"];

#[test]
fn an_evaluation_says_whether_training_saw_its_data() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = own_site(dir.path());
    let [whole, held_out, later] = ["whole", "held-out", "later"].map(|name| dir.path().join(name));
    let result = train(&config, &held_out, &HELD_OUT);
    assert_eq!(result["training_data"], "not seen in training");
    assert_eq!(result["controllers"]["trained"]["n_episodes"], 2);
    let table = succeed(&["eval", arg(&held_out)]);
    assert!(table.contains("2 days that `held_out_days` keeps from training"), "{table}");
    assert!(table.contains("The data of these episodes were not seen in training."), "{table}");
    assert!(table.contains("standard deviation") && table.contains("episodes"), "{table}");

    // A run that was trained on all days saw those that an evaluation holds out afterwards.
    assert_eq!(train(&config, &whole, &[])["training_data"], "seen in training");
    assert_eq!(eval(&whole, &HELD_OUT)["training_data"], "seen in training");
    // So did a run that starts from its weights.
    let start = [&HELD_OUT[..], &["--init-from", arg(&whole)]].concat();
    assert_eq!(train(&config, &later, &start)["training_data"], "seen in training");
    // The record of a run that goes on stays.
    succeed(&["train", "--resume", arg(&held_out), "--quiet", "--steps", "768"]);
    assert_eq!(eval(&held_out, &[])["training_data"], "not seen in training");
    // Another evaluation is the whole week, of which training saw a part.
    let found = eval(&held_out, &["--set", "scenario.iquitos.held_out_days=2"]);
    assert_eq!(found["training_data"], "partly seen in training");
    // Without a record nothing is known but what was seen.
    fs::remove_file(held_out.join("training_data.json")).expect("the run wrote it");
    assert_eq!(eval(&held_out, &[])["training_data"], "unknown");
    // The baselines alone have no training; a policy from a file has an unknown one.
    let file = dir.path().join("policy.safetensors");
    succeed(&["export", arg(&whole), "--format", "safetensors", "--out", arg(&file)]);
    let set = ["--json", "--set", "scenario.iquitos.episode_steps=24"];
    let baselines = json(&succeed(&[&["baseline", arg(&config)], &set[..]].concat()));
    assert!(baselines.get("training_data").is_none());
    let foreign = json(&succeed(&[&["baseline", arg(&config), "--policy", arg(&file)], &set[..]].concat()));
    assert_eq!(foreign["training_data"], "unknown");
}

#[test]
fn copies_of_an_episode_are_no_evidence() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = own_site(dir.path());
    let runs = [0, 1].map(|seed| {
        let out = dir.path().join(format!("run-{seed}"));
        train(&config, &out, &["--seed", &seed.to_string(), "--set", &format!("ppo.n_epochs={}", 1 + seed)]);
        out
    });
    // A pass over files has no randomness: it is played once, whatever is asked for.
    let found = eval(&runs[0], &["--episodes", "20"]);
    assert_eq!(found["controllers"]["uncontrolled"]["n_episodes"], 1);
    let table = succeed(&["eval", arg(&runs[0]), "--episodes", "20"]);
    assert!(table.contains("Different episodes: 1 of 20; copies are not run."), "{table}");
    let out = dir.path().join("compared");
    let args = ["compare", arg(&runs[0]), arg(&runs[1]), "--episodes", "20", "--out", arg(&out)];
    let table = succeed(&args);
    assert!(
        !table.contains("p against") && table.contains("Different episodes: 1 of 20; copies are not run."),
        "{table}"
    );
    let document = json(&succeed(&[&args[..], &["--json"]].concat()));
    assert_eq!((&document["n_episodes"], &document["training_data"]), (&1.into(), &"seen in training".into()));
    let csv = fs::read_to_string(out.join("compare.csv")).expect("it is written");
    assert_eq!(csv.lines().count(), 1 + 2);
}

#[test]
fn a_policy_is_not_compared_in_the_episodes_that_chose_it() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (site, pole) = (dir.path().join("site"), dir.path().join("pole"));
    train(&own_site(dir.path()), &site, &["--set", "train.eval_interval=192"]);
    // There is one pass over the files, and the table states it.
    let chosen = "The policy was chosen by its return in these episodes.";
    let table = succeed(&["eval", arg(&site), "--best"]);
    assert!(table.contains(chosen), "{table}");
    assert!(!succeed(&["eval", arg(&site)]).contains(chosen));
    // Sampled episodes differ from those of evaluations during training.
    let config = common::small_experiment(dir.path());
    let set = ["--set", "train.eval_interval=4096"];
    succeed(&[&["train", arg(&config), "--out", arg(&pole), "--quiet"], &set[..]].concat());
    let metrics = fs::read_to_string(pole.join("metrics.jsonl")).expect("the run wrote it");
    let seen = metrics.lines().filter_map(|line| json(line)["eval/mean_reward"].as_f64()).next_back();
    let found = eval(&pole, &["--best", "--episodes", "20"]);
    assert_ne!(found["controllers"]["trained"]["return"].as_f64(), seen);
    assert!(!succeed(&["eval", arg(&pole), "--best"]).contains(chosen));

    let refused = run(&["train", arg(&config), "--seed", "1000010"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("`train.seed` must not be one of the"), "{said}");
}
