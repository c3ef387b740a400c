//! The JSON Schema of configs and the pages of the reference, which the command writes. `BRASA_BLESS=1` writes them anew.
#![allow(clippy::expect_used)]

use crate::common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use common::succeed;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The file at `path` is what `args` print.
fn assert_written(path: &str, args: &[&str]) {
    let (path, text) = (root().join(path), succeed(args));
    if env::var_os("BRASA_BLESS").is_some() {
        fs::create_dir_all(path.parent().expect("it has a directory")).expect("it can be made");
        fs::write(&path, &text).expect("it can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let line = found.lines().zip(text.lines()).position(|(a, b)| a != b).map_or(0, |line| line + 1);
    assert!(found == text, "{} is out of date from line {line}: set BRASA_BLESS=1", path.display());
}

#[test]
fn the_schema_and_the_pages_are_those_of_the_command() {
    assert_written("configs/schema.json", &["schema"]);
    assert_written("docs/reference/settings.md", &["reference", "settings"]);
    assert_written("docs/reference/commands.md", &["reference", "commands"]);
}

/// The configs with the depth of their directory below `configs`.
fn configs() -> Vec<(PathBuf, usize)> {
    fn collect(folder: &Path, depth: usize, found: &mut Vec<(PathBuf, usize)>) {
        for entry in fs::read_dir(folder).expect("it can be read") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                collect(&path, depth + 1, found);
            } else if path.extension().is_some_and(|end| end == "toml") {
                found.push((path, depth));
            }
        }
    }
    let mut found = Vec::new();
    collect(&root().join("configs"), 0, &mut found);
    found.sort();
    found
}

#[test]
fn every_config_names_its_schema() {
    let all = configs();
    assert!(all.len() > 30, "{}", all.len());
    for (path, depth) in &all {
        let expected = format!("#:schema {}schema.json\n", "../".repeat(*depth));
        let text = fs::read_to_string(path).expect("it can be read");
        if env::var_os("BRASA_BLESS").is_some() && !text.starts_with("#:schema ") {
            fs::write(path, format!("{expected}{text}")).expect("it can be written");
            continue;
        }
        assert!(text.starts_with(&expected), "{} must begin with {expected}", path.display());
    }
}

#[test]
fn taplo_accepts_every_config_and_no_wrong_one() {
    if Command::new("taplo").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no taplo; no config was compared with its schema");
        return;
    }
    let check = |paths: &[PathBuf]| {
        let output = Command::new("taplo").arg("check").args(paths).current_dir(root()).output().expect("it starts");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let all: Vec<PathBuf> = configs().into_iter().map(|(path, _)| path).collect();
    let (is_valid, said) = check(&all);
    assert!(is_valid, "{said}");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let wrong = dir.path().join("wrong.toml");
    let schema = root().join("configs/schema.json").canonicalize().expect("it is there");
    for broken in ["[ppo]\ngama = 0.9\n", "[ppo]\ngamma = \"high\"\n", "[pppo]\n"] {
        let text = format!("#:schema {}\n[scenario.cart-pole]\n{broken}", schema.display());
        fs::write(&wrong, text).expect("there is room");
        assert!(!check(std::slice::from_ref(&wrong)).0, "{broken}");
    }
}
