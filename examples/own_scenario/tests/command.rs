//! A custom program, which is the template of `brasa new`, has all features of the command.
#![allow(clippy::expect_used)]

use std::path::Path;
use std::process::{Command, Output};

fn room(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_own-scenario")).args(args).output().expect("the program starts")
}

fn succeed(args: &[&str]) -> String {
    let output = room(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints UTF-8")
}

#[test]
fn trains_resumes_evaluates_compares_and_reports() {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/brasa/templates/rust/room.toml");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out) = (config.to_str().expect("UTF-8"), dir.path().join("run"));
    let out = out.to_str().expect("UTF-8");

    let table = succeed(&["baseline", config]);
    assert!(table.contains("thermostat") && table.contains("energy [kWh]"), "{table}");
    let set = ["--set", "train.eval_interval=1500", "--set", "scenario.room.energy_price=0.5"];
    let trained =
        succeed(&[&["train", config, "--out", out, "--steps", "3072", "--quiet", "--json"], &set[..]].concat());
    let trained: serde_json::Value = serde_json::from_str(&trained).expect("one JSON document");
    assert!(trained["controllers"]["trained"]["energy_kwh"].is_number());
    succeed(&["train", "--resume", out, "--steps", "6144", "--quiet"]);
    let again = succeed(&["eval", out, "--json", "--episodes", "3"]);
    let again: serde_json::Value = serde_json::from_str(&again).expect("one JSON document");
    assert_eq!(again["controllers"]["trained"]["n_episodes"], 3);
    succeed(&["report", out]);
    let page = std::fs::read_to_string(Path::new(out).join("report.html")).expect("the report is there");
    assert!(page.contains("<section id=\"day\">") && page.contains("A day in the room") && !page.contains("{{"));
    assert!(Path::new(out).join("checkpoints/best").is_dir(), "the best policy is kept");

    // Errors name their cause.
    let wrong = room(&["train", config, "--set", "scenario.room.colour=1"]);
    assert_eq!(wrong.status.code(), Some(2));
    let message = String::from_utf8_lossy(&wrong.stderr);
    assert!(message.contains("[scenario.room] has no key `colour`"), "{message}");
    let wrong = room(&["train", config, "--set", "gat.x=1"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("unknown section [gat]"));
}
