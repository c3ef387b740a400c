//! Readers of experiments and checkpoints survive broken files: no panic, no endless loop, no memory without end.
#![allow(clippy::expect_used)]

use std::fs;
use std::path::Path;

use brasa::train::{Checkpoint, Checkpoints};
use brasa_test::{memory::Counting, mutate::hold_reader};

#[global_allocator]
static MEMORY: Counting = Counting::new();

/// Files of each reader where nobody asks for a million.
const FEW: u64 = 1000;

#[test]
fn experiments() {
    let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let file = |name: &str| fs::read(configs.join(name)).expect("it is in the repository");
    let files = ["cart-pole-ppo.toml", "pendulum-sac.toml", "uara-physical.toml", "iquitos-ppo.toml"].map(file);
    let registry = brasa::registry();
    hold_reader("TOML", &files, &MEMORY, FEW, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        // What is accepted can be written and is read again as the same.
        let read = registry.parse(&text, "file", &[]).map(|experiment| {
            let written = experiment.to_toml();
            let again = registry.parse(&written, "again", &[]).expect("it was written here");
            assert_eq!(again.to_toml(), written);
        });
        // The place in the file has lines.
        read.map_err(|error| error.to_string().replace('\n', " "))
            .inspect_err(|error| assert!(!error.contains("panicked"), "{error}"))
    });
}

#[test]
fn checkpoints() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let checkpoints = Checkpoints::new(dir.path(), 1);
    let mut checkpoint = Checkpoint { env_steps: 7, env: vec![1, 2, 3], replay: vec![5; 300], ..Checkpoint::default() };
    checkpoint.policy.insert("network.weight".into(), (vec![2, 2], vec![0.5, -1.0, 2.0, 3.0]));
    checkpoint.trainer.insert("adam.first".into(), (vec![1], vec![0.25]));
    checkpoint.state = serde_json::json!({ "counters": { "env_steps": 7 }, "learner": { "updates": 0.1 } });
    let saved = checkpoints.save(&checkpoint).expect("the directory can be written");
    for name in ["manifest.json", "policy.safetensors", "trainer.safetensors", "replay.bin"] {
        let path = saved.join(name);
        let whole = fs::read(&path).expect("it is there");
        hold_reader(&format!("checkpoint, {name}"), std::slice::from_ref(&whole), &MEMORY, FEW, |bytes| {
            fs::write(&path, bytes).expect("it can be written");
            // Spaces between the words of a manifest are nobody's loss.
            checkpoints.latest().map(|(_, found)| assert_eq!(found, checkpoint))
        });
        fs::write(&path, &whole).expect("it can be written");
    }
}
