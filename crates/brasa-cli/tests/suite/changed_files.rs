//! A run remembers the content of the files from which its scenario was made.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;
use std::path::Path;

use brasa::floorplan::Layout;
use common::{arg, brasa, run, succeed};

/// The command in `dir`, where paths of the experiment are looked up.
fn in_dir(dir: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = brasa().current_dir(dir).args(args).output().expect("the command starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn an_evaluation_on_another_plan_of_the_same_name_is_reported() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (here, elsewhere) = (dir.path().join("here"), dir.path().join("elsewhere"));
    let run_dir = dir.path().join("run");
    for (folder, layout) in [(&here, Layout::office()), (&elsewhere, Layout::warehouse())] {
        fs::create_dir(folder).expect("there is room");
        fs::write(folder.join("plan.json"), layout.to_json()).expect("there is room");
    }
    let text = "[scenario.evacuation]\nbuildings = { file = \"plan.json\" }\n[train]\ntotal_env_steps = 256\nn_envs = 2\n\
        [graph_network]\n[ppo]\nn_steps = 32\nbatch_size = 32\nn_epochs = 1\n";
    fs::write(here.join("small.toml"), text).expect("there is room");
    let (code, _, said) = in_dir(&here, &["train", "small.toml", "--quiet", "--out", arg(&run_dir)]);
    assert_eq!(code, Some(0), "{said}");

    let eval = ["eval", arg(&run_dir), "--episodes", "2"];
    let (code, table, said) = in_dir(&here, &eval);
    assert_eq!(code, Some(0), "{said}");
    assert!(!table.contains("Another content") && !said.contains("Another content"), "{table}{said}");

    let (code, table, said) = in_dir(&elsewhere, &eval);
    assert_eq!(code, Some(0), "{said}");
    let sentence = "Another content than in training: plan.json.";
    assert!(table.contains(sentence) && said.contains(sentence), "{table}{said}");
    let (_, json, _) = in_dir(&elsewhere, &[&eval[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(json["changed_files"], serde_json::json!(["plan.json"]));

    // A run does not go on in another building.
    let resume = ["train", "--resume", arg(&run_dir), "--steps", "512", "--quiet"];
    let (code, _, said) = in_dir(&elsewhere, &resume);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("plan.json differs from the file with which the run began"), "{said}");
    assert_eq!(in_dir(&here, &resume).0, Some(0));
}

/// A run that is killed before its first checkpoint leaves only what its successor replaces.
#[test]
fn a_directory_in_which_nothing_was_learned_can_be_used_again() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out) = (common::small_experiment(dir.path()), dir.path().join("run"));
    let train = ["train", arg(&config), "--quiet", "--steps", "256", "--out", arg(&out)];
    succeed(&train);
    for entry in fs::read_dir(&out).expect("it is a run").map(|entry| entry.expect("an entry").path()) {
        let name = entry.file_name().expect("it has a name").to_string_lossy().into_owned();
        // As after a kill in the first seconds.
        if name == "checkpoints" {
            fs::remove_dir_all(&entry).expect("it is ours");
            fs::create_dir(&entry).expect("there is room");
        } else if ["report.html", "result.json"].contains(&&*name) {
            fs::remove_file(&entry).expect("it is ours");
        }
    }
    let output = run(&train);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
