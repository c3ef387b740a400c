//! `brasa new`: every experiment that it writes runs as it is.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;
use std::path::Path;

use common::page::has_gymnasium;
use common::{arg, brasa, run, succeed};

/// Trains for a few steps in the new directory, with another setting if there is one, and returns the output.
fn train(folder: &Path, config: &str, set: Option<String>) -> std::process::Output {
    let small = ["--steps", "600", "--set", "train.n_envs=2", "--quiet", "--out", "run"];
    let set = set.into_iter().flat_map(|set| ["--set".to_owned(), set]);
    brasa().current_dir(folder).arg("train").arg(config).args(small).args(set).output().expect("the command starts")
}

#[test]
fn what_is_written_can_be_trained() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (name, config, more) in [
        ("site", "site.toml", "pv.csv"),
        ("floor-plan", "building.toml", "plan.wkt"),
        ("network", "network.toml", "network.toml"),
        ("gymnasium", "gymnasium.toml", "gymnasium.toml"),
    ] {
        let folder = dir.path().join(name);
        let said = succeed(&["new", arg(&folder), "--scenario", name]);
        assert!(said.contains(&format!("cd {} && brasa train {config}", folder.display())), "{said}");
        assert!(folder.join(more).exists());
        let text = fs::read_to_string(folder.join(config)).expect("it was written");
        assert!(
            text.starts_with("# ") && text.lines().filter(|line| line.starts_with('#')).count() >= 3,
            "{name}: no comments"
        );
        let given = std::env::var("BRASA_PYTHON").ok();
        let python = given.as_deref().unwrap_or("python3");
        let is_gymnasium = name == "gymnasium";
        if is_gymnasium && given.is_none() && !has_gymnasium(python) {
            eprintln!("SKIPPED: {python} has no gymnasium; set BRASA_PYTHON to a Python with gymnasium");
            continue;
        }
        let output = train(&folder, config, is_gymnasium.then(|| format!("scenario.gymnasium.python={python:?}")));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && folder.join("run/report.html").exists(), "{name}: {said}");
        // A second one does not overwrite the first.
        let again = run(&["new", arg(&folder), "--scenario", name]);
        assert_eq!(again.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&again.stderr).contains("is not empty"));
    }
}

#[test]
fn the_project_in_rust_has_a_manifest_that_fits() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let folder = dir.path().join("room");
    let said = succeed(&["new", arg(&folder), "--scenario", "rust"]);
    assert!(said.contains("cargo run --release -- train room.toml"), "{said}");
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("it was written");
    let manifest: toml::Table = toml::from_str(&read("Cargo.toml")).expect("it is TOML");
    let brasa = &manifest["dependencies"]["brasa"];
    let ours = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../brasa/Cargo.toml")).expect("it is there");
    let ours: toml::Table = toml::from_str(&ours).expect("it is TOML");
    let features = brasa["features"].as_array().expect("a list");
    for feature in features {
        assert!(ours["features"].get(feature.as_str().expect("a name")).is_some(), "there is no feature {feature}");
    }
    assert!(read("src/main.rs").contains("fn main()") && read("src/main.rs").contains("include_str!(\"day.js\")"));
    // The program of an example is that of the template: it is compiled and tested as it is written.
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/own_scenario");
    let compiled = fs::read_to_string(example.join("Cargo.toml")).expect("it is there");
    let compiled: toml::Table = toml::from_str(&compiled).expect("it is TOML");
    let compiled = example.join(compiled["bin"][0]["path"].as_str().expect("a path"));
    let template = compiled.parent().and_then(Path::parent).expect("it is in a directory");
    for name in ["src/main.rs", "src/day.js", "room.toml"] {
        assert_eq!(read(name), fs::read_to_string(template.join(name)).expect("it is there"), "{name}");
    }
    assert!(read("room.toml").contains("[scenario.room]"));
}

#[test]
fn a_wrong_name_lists_the_choices() {
    for args in [&["new", "x"][..], &["new", "x", "--scenario", "sites"]] {
        let output = run(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2));
        assert!(said.contains("floor-plan ") && said.contains("rust "), "{said}");
        assert_eq!(said.contains("did you mean `site`?"), args.len() > 2, "{said}");
    }
}
