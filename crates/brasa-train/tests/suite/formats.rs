//! Checkpoints of every format that was ever written are read: `tests/data/format-N` has one of each.
#![allow(clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};

use brasa_train::{Checkpoint, Checkpoints};
use serde_json::json;

/// The content of all of them.
fn content() -> Checkpoint {
    let mut checkpoint =
        Checkpoint { env_steps: 512, env: vec![1, 2, 3, 250], replay: (0..40).collect(), ..Checkpoint::default() };
    let mut put = |name: &str, shape: &[usize], values: &[f32]| {
        let arrays = if name.starts_with("adam") { &mut checkpoint.trainer } else { &mut checkpoint.policy };
        arrays.insert(name.into(), (shape.to_vec(), values.to_vec()));
    };
    put("network.actor.hidden.0.weight", &[2, 3], &[0.5, -1.0, f32::MIN_POSITIVE, 3.25, -0.0, 1e30]);
    put("network.actor.hidden.0.bias", &[3], &[0.0, 1.0, -1.0]);
    put("adam.first", &[1], &[0.25]);
    checkpoint.state = json!({
        "counters": { "env_steps": 512, "iterations": 4, "updates": 0, "episodes": 7, "window": [] },
        "learner": { "learning_rate": 0.1 },
    });
    checkpoint
}

fn fixture(format: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/format-{format}"))
}

/// Files of a checkpoint.
const FILES: [&str; 4] = ["policy.safetensors", "trainer.safetensors", "replay.bin", "manifest.json"];

#[test]
fn every_format_is_read() {
    for format in [1, 2] {
        let (path, found) = Checkpoints::new(fixture(format), 1).latest().expect("it is whole");
        let manifest: serde_json::Value =
            serde_json::from_slice(&fs::read(path.join("manifest.json")).expect("it is there")).expect("it is JSON");
        assert_eq!(manifest["format"], format);
        assert_eq!(found, content(), "format {format}");
        assert_eq!(Checkpoints::new(fixture(format), 1).latest_env_steps().expect("it is whole"), Some(512));
    }
}

/// A change of what is written needs a new format, and a checkpoint of the old one here.
#[test]
fn the_last_format_is_the_one_that_is_written() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let written = Checkpoints::new(dir.path(), 1).save(&content()).expect("the directory can be written");
    for name in FILES {
        let expected = fs::read(fixture(2).join("step-000000000512").join(name)).expect("it is there");
        assert!(fs::read(written.join(name)).expect("it was written") == expected, "{name} differs from format 2");
    }
}

#[test]
fn a_format_of_the_future_is_refused_and_an_old_one_cannot_be_forged() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let written = Checkpoints::new(dir.path(), 1).save(&content()).expect("the directory can be written");
    let manifest = written.join("manifest.json");
    let text = fs::read_to_string(&manifest).expect("it was written");
    for (format, message) in [
        ("3", "`format` must be at least 1 and at most 2, got 3"),
        ("0", "`format` must be at least 1 and at most 2, got 0"),
        ("1", "`manifest_crc32` must not be in a manifest of format 1"),
    ] {
        let changed = text.replace("\"format\": 2", &format!("\"format\": {format}"));
        assert_ne!(changed, text);
        fs::write(&manifest, changed).expect("the directory can be written");
        let error = Checkpoints::new(dir.path(), 1).latest().expect_err("it is refused").to_string();
        assert!(error.contains(message), "{error}");
    }
}
