//! Checkpoints are whole or absent.
#![allow(clippy::expect_used)]

use std::fs;

use brasa_train::{Checkpoint, CheckpointError, Checkpoints, RunDir, RunDirError, write_atomically};

fn checkpoint(env_steps: u64) -> Checkpoint {
    let mut checkpoint = Checkpoint { env_steps, env: vec![1, 2, 3], ..Checkpoint::default() };
    checkpoint
        .policy
        .insert("network.weight".into(), (vec![2, 2], vec![0.5, -1.0, f32::MIN_POSITIVE, env_steps as f32]));
    checkpoint.trainer.insert("adam.first".into(), (vec![1], vec![0.25]));
    checkpoint.state = serde_json::json!({ "rollouts": env_steps, "rate": 0.1 });
    checkpoint
}

#[test]
fn what_is_saved_comes_back_and_old_ones_go() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let checkpoints = Checkpoints::new(dir.path().join("checkpoints"), 2);
    assert!(matches!(checkpoints.latest(), Err(CheckpointError::None { .. })));
    for step in [10, 20, 30] {
        checkpoints.save(&checkpoint(step)).expect("the directory can be written");
    }
    assert_eq!(checkpoints.list().expect("it is there").len(), 2);
    assert_eq!(checkpoints.latest().expect("there is one").1, checkpoint(30));
    // The same step again replaces it.
    checkpoints.save(&checkpoint(30)).expect("the directory can be written");
    assert_eq!(checkpoints.list().expect("it is there").len(), 2);
}

#[test]
fn every_cut_of_every_file_is_noticed() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let checkpoints = Checkpoints::new(dir.path(), 2);
    checkpoints.save(&checkpoint(1)).expect("the directory can be written");
    let newest = checkpoints.save(&checkpoint(2)).expect("the directory can be written");
    for name in ["policy.safetensors", "trainer.safetensors", "manifest.json"] {
        let path = newest.join(name);
        let whole = fs::read(&path).expect("the file is there");
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).expect("the file can be written");
            let found = checkpoints.latest().expect("the older one is whole").1;
            assert_eq!(found.env_steps, 1, "{name} cut to {length} bytes was accepted");
        }
        fs::write(&path, &whole).expect("the file can be written");
        assert_eq!(checkpoints.latest().expect("it is whole again").1.env_steps, 2);
    }
}

#[test]
fn a_writer_that_was_killed_leaves_the_previous_checkpoint() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let checkpoints = Checkpoints::new(dir.path(), 2);
    checkpoints.save(&checkpoint(1)).expect("the directory can be written");
    // What is left when the process dies before the rename.
    let unfinished = dir.path().join(".unfinished-step-000000000002");
    fs::create_dir(&unfinished).expect("the directory can be written");
    fs::write(unfinished.join("policy.safetensors"), b"half").expect("the directory can be written");
    assert_eq!(checkpoints.latest().expect("there is one").1.env_steps, 1);
    checkpoints.save(&checkpoint(2)).expect("the left-over is no obstacle");
    assert_eq!(checkpoints.latest().expect("there is one").1.env_steps, 2);
}

#[test]
fn a_failed_write_changes_nothing() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("missing").join("result.json");
    assert!(write_atomically(&path, b"text").is_err());
    assert!(!path.exists());
    let run = dir.path().join("run");
    fs::create_dir(&run).expect("the directory can be written");
    fs::write(run.join("file"), b"kept").expect("the directory can be written");
    assert!(matches!(RunDir::create(&run), Err(RunDirError::NotEmpty { .. })));
    assert!(matches!(RunDir::open(&run), Err(RunDirError::NoRun { .. })));
}
