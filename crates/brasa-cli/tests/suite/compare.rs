//! `brasa compare`: groups of runs over several seeds.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use common::page::{assert_layout, browser, data, list, opened};
use common::{arg, brasa, run, succeed};
use serde_json::Value;

/// Two experiments that differ in a learning rate.
fn experiments(dir: &Path, steps: u64) -> [PathBuf; 2] {
    [("fast", 3e-3), ("slow", 1e-4)].map(|(name, learning_rate)| {
        let path = dir.join(format!("{name}.toml"));
        let text = format!(
            "[scenario.cart-pole]\n[train]\ntotal_env_steps = {steps}\nn_envs = 4\neval_interval = 1024\n\
             [network]\nactor_hidden = [16]\ncritic_hidden = [16]\n\
             [ppo]\nn_steps = 64\nbatch_size = 64\nn_epochs = 2\nlearning_rate = {learning_rate}\n"
        );
        fs::write(&path, text).expect("the directory can be written");
        path
    })
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("one JSON document: {error}: {text}"))
}

/// Asserts that the command fails with a message that contains all these words.
fn refused(args: &[&str], words: &[&str]) {
    let output = run(&[&["compare"], args].concat());
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
    words.iter().for_each(|word| assert!(message.contains(word), "{args:?}: no `{word}` in {message}"));
    assert!(output.stdout.is_empty(), "{args:?} printed a result");
}

#[test]
fn experiments_are_trained_measured_and_written() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let [fast, slow] = experiments(dir.path(), 2048);
    let out = dir.path().join("out");
    let args = ["compare", arg(&fast), arg(&slow), "--seeds", "2", "--episodes", "6", "--out", arg(&out)];
    let table = succeed(&args);
    for word in ["fast", "slow", "2 seeds", "rule-based", "+-", "(n=2)", "IQM", "p against fast", "P(better than fast)"]
    {
        assert!(table.contains(word), "no `{word}` in {table}");
    }

    // Finished runs are reused: the second command does not train, and the result is the same.
    let again = run(&[&args[..], &["--json"]].concat());
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(again.status.success() && !said.contains("training"), "{said}");
    let document = json(&String::from_utf8_lossy(&again.stdout));
    assert_eq!((&document["n_episodes"], &document["against"]), (&6.into(), &"fast".into()));
    for name in ["fast", "slow"] {
        let group = &document["groups"][name];
        assert_eq!(group["seeds"], Value::from(vec![0, 1]));
        let found = &group["statistics"]["return"];
        // The values of each run equal those of `eval`.
        for (i, mean) in list(&found["run_means"]).iter().enumerate() {
            let run_dir = group["run_dirs"][i].as_str().expect("a directory");
            let eval = json(&succeed(&["eval", run_dir, "--episodes", "6", "--json"]));
            assert_eq!(&eval["controllers"]["trained"]["return"], mean, "{name}, seed {i}");
        }
        let number = |key: &str| found[key].as_f64().unwrap_or_else(|| panic!("{name}: no {key}"));
        let means: Vec<f64> = list(&found["run_means"]).iter().filter_map(Value::as_f64).collect();
        assert!((number("mean") - (means[0] + means[1]) / 2.0).abs() < 1e-9);
        // t(1) times the standard error of two values.
        assert!((number("half_width") - 12.706_204_736 * (means[0] - means[1]).abs() / 2.0).abs() < 1e-6);
        assert_eq!(found["p_value"].is_number(), name == "slow");
        assert_eq!(found["n_runs"], 2);
        assert!(found["iqm_interval"].is_null(), "two runs are too few for a bootstrap");
    }
    // Changed experiments are others: they would overwrite the runs.
    let changed = ["--set", "ppo.n_epochs=3"];
    refused(&[&args[1..], &changed].concat(), &["fast-seed0"]);
    let elsewhere = dir.path().join("elsewhere");
    let args = [arg(&fast), "--seeds", "1", "--episodes", "2", "--out", arg(&elsewhere)];
    succeed(&[&["compare"], &args[..], &changed, &["--device", "flex"]].concat());
    let written = fs::read_to_string(elsewhere.join("fast-seed0/config.toml")).expect("it is written");
    assert!(written.contains("n_epochs = 3") && written.contains("device = \"flex\""), "{written}");
    refused(&[&[arg(&out.join("fast-seed0"))][..], &changed].concat(), &["--set and --device are for experiments"]);
    let baseline = json(&succeed(&["eval", arg(&out.join("fast-seed0")), "--episodes", "6", "--json"]));
    assert_eq!(document["baselines"]["rule-based"]["return"], baseline["controllers"]["rule-based"]["return"]);

    let csv = fs::read_to_string(out.join("compare.csv")).expect("the file is there");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "group,seed,episode,length,return");
    assert_eq!(lines.len(), 1 + 2 * 2 * 6);
    for group in ["fast", "slow"] {
        let of_group: Vec<f64> = lines
            .iter()
            .filter(|line| line.starts_with(&format!("{group},")))
            .map(|line| line.split(',').nth(4).expect("a field").parse().expect("a number"))
            .collect();
        let mean = document["groups"][group]["statistics"]["return"]["mean"].as_f64().expect("a number");
        assert!((of_group.iter().sum::<f64>() / 12.0 - mean).abs() < 1e-9);
    }

    let page = fs::read_to_string(out.join("compare.html")).expect("the page is there");
    assert!(!page.contains("{{"), "a placeholder was left");
    assert!(!page.contains("src=\"http") && !page.contains("href=\"http"), "the page needs the network");
    let data = data(&page);
    let groups = list(&data["groups"]);
    assert_eq!((&groups[0]["name"], &groups[1]["name"]), (&"fast".into(), &"slow".into()));
    for group in groups {
        for name in ["exploring", "evaluated"] {
            let curve = &group["curves"][name];
            let n = list(&curve["steps"]).len();
            assert!(n > 1, "{name}: {curve}");
            for part in ["mean", "low", "high"] {
                assert_eq!(list(&curve[part]).len(), n, "{name}, {part}");
            }
        }
    }
    if let Some(browser) = browser() {
        let (document, console) = opened(&browser, &dir.path().join("profile"), &out.join("compare.html"), "");
        assert!(console.is_empty(), "{console:?}");
        assert_eq!(document.matches("<canvas").count(), 2, "a plot for each metric");
        // The legend names each group in each plot, and not the edges of its band.
        assert_eq!(document.matches("aria-pressed=\"true\"").count(), 4, "two groups, two metrics");
        assert_layout(&browser, dir.path(), &out.join("compare.html"));
    }

    // The run directories give the same two groups; a single run has no interval.
    let runs = ["fast-seed0", "slow-seed1", "fast-seed1", "slow-seed0"].map(|name| out.join(name));
    let runs: Vec<&str> = runs.iter().map(|path| arg(path)).collect();
    let other = dir.path().join("other");
    let options = ["--episodes", "6", "--out", arg(&other), "--json"];
    let grouped = json(&succeed(&[&["compare"], &runs[..], &options[..]].concat()));
    assert_eq!(grouped["groups"]["slow"]["seeds"], Value::from(vec![1, 0]));
    assert_eq!(grouped["groups"]["fast"]["statistics"], document["groups"]["fast"]["statistics"]);
    let alone = json(&succeed(&[&["compare", runs[0], runs[1]], &options[..]].concat()));
    let alone = &alone["groups"]["slow"]["statistics"]["return"];
    assert!(alone["half_width"].is_null() && alone["iqm_interval"].is_null() && alone["p_value"].is_number());
    // Sampled actions are those of `eval` too.
    let own = ["compare", arg(&fast), arg(&slow), "--seeds", "2", "--episodes", "6", "--out", arg(&out)];
    let sampled = json(&succeed(&[&own[..], &["--sampled", "--json"]].concat()));
    let mean_of = |document: &Value| document["groups"]["fast"]["statistics"]["return"]["run_means"][0].clone();
    let run_dir = out.join("fast-seed0");
    let eval = json(&succeed(&["eval", arg(&run_dir), "--episodes", "6", "--sampled", "--json"]));
    assert_eq!(eval["controllers"]["trained"]["return"], mean_of(&sampled));
    assert_ne!(mean_of(&sampled), mean_of(&document));
    let text = succeed(&[&own[..], &["--sampled"]].concat());
    assert!(text.contains("The actions of the policies were sampled."), "{text}");
}

#[test]
fn what_cannot_be_compared_is_refused_and_nothing_is_trained() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let [fast, slow] = experiments(dir.path(), 512);
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).expect("the directory can be written");
        path
    };
    let out = dir.path().join("out");
    let out_args = ["--seeds", "1", "--out", arg(&out)];
    let pair = |one: &Path, other: &Path, words: &[&str]| {
        refused(&[&[arg(one), arg(other)], &out_args[..]].concat(), &[words, &[arg(one), arg(other)]].concat());
    };

    pair(&fast, &write("pendulum.toml", "[scenario.pendulum]\n[sac]\n"), &["`scenario`", "cart-pole", "pendulum"]);
    let text = fs::read_to_string(&fast).expect("it was written");
    let eval_seed = text.replace("eval_interval", "eval_seed = 5\neval_interval");
    pair(&fast, &write("seed.toml", &eval_seed), &["`train.eval_seed`", "1000003", "5"]);
    let district = |physics: &str| format!("[scenario.citylearn]\nphysics = \"{physics}\"\n");
    let one = write("one.toml", &district("citylearn-3.0"));
    pair(&one, &write("two.toml", &district("clean")), &["`scenario.citylearn.physics`", "citylearn-3.0", "clean"]);
    // The same experiment with two names has the same seeds.
    let copy = write("copy.toml", &text);
    refused(&[&[arg(&fast), arg(&copy)], &out_args[..]].concat(), &["same experiment with the same seed, 0"]);
    refused(&["nowhere.toml"], &["cannot read nowhere.toml"]);
    assert!(!out.exists(), "something was written");

    let unfinished = dir.path().join("unfinished");
    succeed(&["train", arg(&slow), "--out", arg(&unfinished), "--quiet"]);
    refused(&[arg(&unfinished), "--seeds", "3"], &["--seeds is for experiments to train"]);
    let newest = common::newest_checkpoint(&unfinished);
    let older = fs::read_dir(unfinished.join("checkpoints")).expect("there are checkpoints").count();
    assert!(older > 1, "the first checkpoint is kept beside the last");
    fs::remove_dir_all(newest).expect("it can be removed");
    refused(&[arg(&unfinished)], &["of 512 environment steps", "train --resume"]);

    // If a directory of the comparison has another run, it is not changed.
    fs::create_dir(&out).expect("it can be made");
    fs::rename(&unfinished, out.join("fast-seed0")).expect("it can be moved");
    refused(
        &[&[arg(&fast)], &out_args[..]].concat(),
        &["fast-seed0 holds a run of another experiment", "learning_rate"],
    );
}

#[cfg(unix)]
#[test]
fn an_interrupted_comparison_goes_on_where_it_was() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let [fast, _] = experiments(dir.path(), 65_536);
    let (whole, stopped) = (dir.path().join("whole"), dir.path().join("stopped"));
    let args = |out: &'_ Path| {
        let words = ["compare", arg(&fast), "--seeds", "2", "--episodes", "3", "--json", "--out", arg(out)];
        words.map(str::to_owned)
    };
    let mut child = brasa();
    let child = child.args(args(&stopped)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // During the second run.
    let metrics = stopped.join("fast-seed1").join("metrics.jsonl");
    while fs::metadata(&metrics).map_or(0, |file| file.len()) == 0 {
        sleep(Duration::from_millis(5));
    }
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{message}");
    let again = format!("brasa {}", args(&stopped).join(" "));
    assert!(message.contains(&format!("continue with `{again}`")), "{message}");
    assert!(!stopped.join("compare.csv").exists());

    let resumed = run(&args(&stopped).each_ref().map(String::as_str));
    let message = String::from_utf8_lossy(&resumed.stderr);
    assert!(message.contains("Training 1 of 1") && message.contains("seed 1, resumed"), "{message}");
    let expected = json(&succeed(&args(&whole).each_ref().map(String::as_str)));
    let found = json(&String::from_utf8_lossy(&resumed.stdout));
    assert_eq!(found["groups"]["fast"]["statistics"], expected["groups"]["fast"]["statistics"]);
}
