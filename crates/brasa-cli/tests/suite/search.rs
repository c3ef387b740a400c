//! `brasa search`: trials, resuming, pruning, the best settings and the page.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::page::{assert_layout, browser, data, list, opened};
use common::{arg, brasa, run, small_experiment, succeed};
use serde_json::Value;

const SPACE: &str = "[search.space]\n\"ppo.learning_rate\" = { low = 1e-5, high = 1e-1, log = true }\n\
    \"ppo.n_epochs\" = { low = 1, high = 4, integer = true }\n\"ppo.batch_size\" = { choice = [32, 64] }\n";

/// A small experiment with a search.
fn experiment(dir: &Path, search: &str, space: &str) -> PathBuf {
    let path = small_experiment(dir);
    let text = fs::read_to_string(&path).expect("it was written");
    let text = text.replace("[train]\n", "[train]\nexecutor = \"serial\"\n").replace("4096", "1024");
    fs::write(&path, format!("{text}[search]\nevaluations = 4\n{search}\n{space}")).expect("there is room");
    path
}

/// The trials without times.
fn trials(out: &Path) -> Vec<Value> {
    let text = fs::read_to_string(out.join("trials.jsonl")).unwrap_or_default();
    let timeless = |line: &str| {
        let mut trial: Value = serde_json::from_str(line).expect("a line is JSON");
        trial["secs"].take();
        trial
    };
    text.lines().map(timeless).collect()
}

fn wait(what: &str, mut is_over: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_over() {
        assert!(begin.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_killed_search_continues_with_the_same_trials_and_its_best_settings_can_be_trained() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = experiment(dir.path(), "trials = 7\nstartup_trials = 3\nreport_seeds = 2\n", SPACE);
    let (whole, killed) = (dir.path().join("whole"), dir.path().join("killed"));
    let search = |out: &Path| {
        let words = ["search", arg(&config), "--jobs", "1", "--episodes", "2", "--json", "--out", arg(out)];
        words.map(str::to_owned).to_vec()
    };
    let text = succeed(&search(&whole).iter().map(String::as_str).collect::<Vec<_>>());

    let mut process = brasa().args(search(&killed)).stderr(std::process::Stdio::null()).spawn().expect("it starts");
    wait("four trials begin", || trials(&killed).len() >= 4);
    process.kill().expect("it is a child");
    process.wait().expect("it is a child");
    assert!(trials(&killed).len() < 7, "it was killed before its end");
    // At once: the run of the killed search may not even have begun, and ends first.
    let output = run(&["search", arg(&killed), "--jobs", "1", "--episodes", "2", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(trials(&killed), trials(&whole));

    let document: Value = serde_json::from_str(&text).expect("it is JSON");
    let again: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(document["best"]["settings"], again["best"]["settings"]);
    let n = |state: &str| document["trials"][state].as_u64().expect("a number");
    assert_eq!((n("complete") + n("pruned"), n("failed")), (7, 0));
    let all = trials(&whole);
    let values = all.iter().filter(|trial| trial["state"] == "complete").filter_map(|trial| trial["value"].as_f64());
    assert_eq!(document["best"]["value"].as_f64(), values.reduce(f64::max));
    // The first trial has the settings of the experiment; seeds of the comparison are not those of the trials.
    assert_eq!(list(&all[0]["set"]).len(), 0);
    if !document["comparison"].is_null() {
        let groups = document["comparison"]["groups"].as_object().expect("groups");
        assert!(groups.len() == 2 && groups.values().all(|group| group["seeds"] == Value::from(vec![1, 2])), "{text}");
    }
    let best = fs::read_to_string(whole.join("best.toml")).expect("it was written");
    assert!(!best.contains("[search"), "{best}");
    succeed(&[
        "train",
        arg(&whole.join("best.toml")),
        "--quiet",
        "--steps",
        "256",
        "--out",
        arg(&dir.path().join("trained")),
    ]);

    // More trials, and none again.
    succeed(&["search", arg(&whole), "--jobs", "1", "--episodes", "2", "--trials", "8", "--quiet"]);
    let more = trials(&whole);
    assert_eq!((more.len(), &more[..7]), (8, &all[..]));
    let output = run(&["search", arg(&config), "--set", "search.seed=5", "--out", arg(&whole)]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("`search.seed`"), "{said}");
    page_is_whole(dir.path(), &whole);
}

fn page_is_whole(dir: &Path, out: &Path) {
    let path = out.join("search.html");
    let page = fs::read_to_string(&path).expect("the page is there");
    assert!(!page.contains("{{") && !page.contains("src=\"http"), "{}", page.len());
    let data = data(&page);
    assert_eq!((list(&data["trials"]).len(), list(&data["space"]).len()), (8, 3));
    assert_eq!(data["space"][0]["choices"], Value::from(vec!["32", "64"]));
    if let Some(browser) = browser() {
        let (document, console) = opened(&browser, &dir.join("profile"), &path, "");
        assert!(console.is_empty(), "{console:?}");
        assert_eq!(document.matches("<canvas").count(), 1);
        assert!(document.matches("<polyline").count() >= 7, "a line for each trial");
        assert_layout(&browser, dir, &path);
    }
}

/// The means over all seeds select the best trial, not the value that the trial had.
#[test]
fn a_final_trains_the_leading_trials_with_more_seeds() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let search = "trials = 4\npruner = \"none\"\nfinalists = 2\nfinal_seeds = 2\nreport_seeds = 1\n";
    let (config, out) = (experiment(dir.path(), search, SPACE), dir.path().join("search"));
    let words = ["search", arg(&config), "--jobs", "2", "--episodes", "2", "--json", "--out", arg(&out)];
    let document: Value = serde_json::from_str(&succeed(&words)).expect("it is JSON");
    let last = |number: u64, seed: u64| {
        let path = out.join(format!("trials/{number:04}-seed{seed}/metrics.jsonl"));
        let text = fs::read_to_string(path).expect("it was trained");
        let of = |line: &str| serde_json::from_str::<Value>(line).expect("a line is JSON")["eval/mean_reward"].as_f64();
        text.lines().rev().find_map(of).expect("it was evaluated")
    };
    let trials = trials(&out);
    let value = |trial: &Value, name: &str| trial[name].as_f64();
    let mut by_value: Vec<&Value> = trials.iter().collect();
    by_value.sort_by(|a, b| value(b, "value").partial_cmp(&value(a, "value")).expect("numbers"));
    let means: Vec<f64> = by_value[..2]
        .iter()
        .map(|trial| {
            let number = trial["number"].as_u64().expect("a number");
            let mean = (0..3).map(|seed| last(number, seed)).sum::<f64>() / 3.0;
            assert!((value(trial, "final_value").expect("it was in the final") - mean).abs() < 1e-9, "{trial}");
            mean
        })
        .collect();
    assert!(by_value[2..].iter().all(|trial| trial["final_value"].is_null()), "{trials:?}");
    let best = if means[1] > means[0] { by_value[1] } else { by_value[0] };
    assert_eq!(document["best"]["trial"], best["number"]);
    assert_eq!(document["best"]["final_value"], best["final_value"]);
    if !document["comparison"].is_null() {
        // The seed of the comparison is none of the final.
        let groups = document["comparison"]["groups"].as_object().expect("groups");
        assert!(groups.values().all(|group| group["seeds"] == Value::from(vec![3])), "{document}");
    }
}

#[test]
fn a_trial_that_is_worse_than_the_median_is_stopped_and_can_be_loaded() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    // With all but the last rate, a policy learns to balance; a run is much longer than the time between two looks.
    let space = "[search.space]\n\"ppo.learning_rate\" = { choice = [1e-2, 5e-3, 3e-3, 1.0] }\n";
    let config =
        experiment(dir.path(), "trials = 8\nstartup_trials = 2\nreport_seeds = 0\nsampler = \"random\"\n", space);
    let out = dir.path().join("search");
    succeed(&["search", arg(&config), "--set", "search.steps=120000", "--jobs", "2", "--out", arg(&out), "--quiet"]);
    let all = trials(&out);
    let pruned: Vec<&Value> = all.iter().filter(|trial| trial["state"] == "pruned").collect();
    assert!(!pruned.is_empty(), "{all:?}");
    for trial in pruned {
        let evaluations = list(&trial["evaluations"]);
        assert!(evaluations.len() < 4 && evaluations.last().expect("there is one")[1] == trial["value"], "{trial}");
        let run_dir = out.join(format!("trials/{:04}-seed0", trial["number"].as_u64().expect("a number")));
        succeed(&["eval", arg(&run_dir), "--episodes", "1", "--json"]);
    }
    let is_short = |trial: &Value| {
        let run_dir = out.join(format!("trials/{:04}-seed0", trial["number"].as_u64().expect("a number")));
        !run_dir.join("result.json").is_file()
    };
    assert!(all.iter().any(is_short), "a run was stopped before its end");
}

#[test]
fn a_trial_with_invalid_settings_fails_and_the_search_goes_on() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let space = "[search.space]\n\"ppo.n_steps\" = { choice = [64, 0] }\n";
    let config = experiment(dir.path(), "trials = 5\nreport_seeds = 0\nsampler = \"random\"\nseeds = 2\n", space);
    let out = dir.path().join("search");
    let text = succeed(&["search", arg(&config), "--set", "search.steps=256", "--out", arg(&out)]);
    let all = trials(&out);
    let failed: Vec<&Value> = all.iter().filter(|trial| trial["state"] == "failed").collect();
    assert!(!failed.is_empty() && failed.len() < 5, "{all:?}");
    for trial in failed {
        assert!(trial["reason"].as_str().is_some_and(|reason| reason.contains("n_steps")), "{trial}");
    }
    assert!(text.contains("failed\nBest: trial 0, eval/mean_reward"), "{text}");
    assert!(out.join("trials/0000-seed1/result.json").is_file(), "a trial has two seeds");
}

#[test]
fn wrong_searches_are_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = dir.path().join("search");
    let cases = [
        ("trials = 0", SPACE, "`search.trials` must be between 1 and 100000, got 0"),
        ("metric = \"eval/speed\"", SPACE, "`search.metric` must be one of eval/mean_reward"),
        ("metric = \"eval/mean_ep_length\"", SPACE, "`search.direction` must be \"maximize\" or \"minimize\""),
        ("steps = 3", SPACE, "`search.evaluations` must be between 1 and the 3 steps of a run, got 4"),
        ("", "", "[search.space] must have at least one setting"),
        (
            "",
            "[search.space]\n\"ppo.gama\" = { low = 0.8, high = 0.9 }\n",
            "no value of `search.space.\"ppo.gama\"` is valid",
        ),
        ("", "[search.space]\n\"ppo.gamma\" = { low = 5, high = 9 }\n", "gamma"),
        (
            "",
            "[search.space]\n\"ppo.gamma\" = { low = 0.9, high = 0.8 }\n",
            "must be above `low`, which is 0.9, got 0.8",
        ),
        ("", "[search.space]\n\"train.seed\" = { low = 0, high = 9, integer = true }\n", "must not be searched"),
    ];
    for (search, space, expected) in cases {
        let config = experiment(dir.path(), search, space);
        let output = run(&["search", arg(&config), "--out", arg(&out)]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{search} {space}: {said}");
        assert!(said.contains(expected), "{search} {space}: {said}");
    }
    let plain = small_experiment(dir.path());
    for (args, expected) in [
        (vec!["search", arg(&plain), "--out", arg(&out)], "needs the section [search.space]"),
        (vec!["search", arg(dir.path())], "there is no search.toml"),
        (vec!["search", arg(dir.path()), "--set", "search.seed=1"], "--set and --device are for a new search"),
    ] {
        let output = run(&args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(expected), "{args:?}: {said}");
    }
    assert!(!out.exists());
}
