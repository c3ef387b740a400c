//! `brasa new`: every experiment that it writes runs as it is.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;
use std::path::Path;

use common::{arg, brasa, run, succeed};

/// Trains for a few steps in the new directory, and returns the output.
fn train(folder: &Path, config: &str) -> std::process::Output {
    let small = ["--steps", "600", "--set", "train.n_envs=2", "--quiet", "--out", "run"];
    brasa().current_dir(folder).arg("train").arg(config).args(small).output().expect("the command starts")
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
        let output = train(&folder, config);
        let said = String::from_utf8_lossy(&output.stderr);
        if name == "gymnasium" && said.contains("gymnasium") && !output.status.success() {
            eprintln!("SKIPPED: python3 has no gymnasium: {said}");
            continue;
        }
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
    // The program is that of the example, which is compiled and tested.
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/own_scenario/src/main.rs");
    let without_doc = |text: &str| text.lines().filter(|line| !line.starts_with("//!")).collect::<Vec<_>>().join("\n");
    assert_eq!(without_doc(&read("src/main.rs")), without_doc(&fs::read_to_string(example).expect("it is there")));
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
