//! Checkpoints are complete or absent.
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
    // Saving an equal checkpoint again adds none.
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
    // The state after a kill before the rename.
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

#[test]
fn the_same_step_twice_never_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let checkpoints = Checkpoints::new(dir.path(), 1);
    let first = checkpoints.save(&checkpoint(7)).expect("the directory can be written");
    let written = || fs::metadata(first.join("manifest.json")).and_then(|data| data.modified()).expect("it is there");
    let before = written();
    // A resumed run saves its first checkpoint again: no file is written or removed.
    assert_eq!(checkpoints.save(&checkpoint(7)).expect("the directory can be written"), first);
    assert_eq!(written(), before);
    // A different state of the same step is written beside the first one before that is removed.
    let other = Checkpoint { env: vec![9], ..checkpoint(7) };
    let second = checkpoints.save(&other).expect("the directory can be written");
    assert_eq!(second.file_name().and_then(|name| name.to_str()), Some("step-000000000007.1"));
    assert_eq!(checkpoints.latest().expect("there is one"), (second.clone(), other));
    assert_eq!(checkpoints.list().expect("it is there"), [second]);
    // A corrupted checkpoint is not equal.
    fs::write(checkpoints.list().expect("it is there")[0].join("policy.safetensors"), b"half").expect("it is there");
    checkpoints.save(&checkpoint(7)).expect("the directory can be written");
    assert_eq!(checkpoints.latest().expect("there is one").1, checkpoint(7));
}

#[test]
fn a_checkpoint_that_only_lacks_its_name_is_read() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let checkpoints = Checkpoints::new(dir.path(), 2);
    checkpoints.save(&checkpoint(1)).expect("the directory can be written");
    let whole = checkpoints.save(&checkpoint(2)).expect("the directory can be written");
    // The state after a kill just before the rename.
    fs::rename(&whole, dir.path().join(".unfinished-step-000000000002")).expect("it can be renamed");
    assert_eq!(checkpoints.latest().expect("there is one").1, checkpoint(2));
    assert_eq!(checkpoints.latest_env_steps().expect("there is one"), Some(2));
    // Later checkpoints replace it, and unfinished ones are removed.
    checkpoints.save(&checkpoint(3)).expect("the directory can be written");
    let names: Vec<_> =
        fs::read_dir(dir.path()).expect("it is there").flatten().map(|entry| entry.file_name()).collect();
    assert!(names.iter().all(|name| name.to_string_lossy().starts_with("step-")), "{names:?}");
}

#[test]
fn other_names_are_no_checkpoints_and_push_none_out() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let checkpoints = Checkpoints::new(dir.path(), 2);
    let saved = checkpoints.save(&checkpoint(5)).expect("the directory can be written");
    // A copy made by a user, and directories with newer names.
    let copy = dir.path().join("step-best");
    fs::create_dir(&copy).expect("the directory can be written");
    for file in fs::read_dir(&saved).expect("it is there").flatten() {
        fs::copy(file.path(), copy.join(file.file_name())).expect("it can be copied");
    }
    for name in ["step-999999999998", "step-999999999999", "step-9", "step-+00000000009", "step-000000000009.0"] {
        fs::create_dir(dir.path().join(name)).expect("the directory can be written");
    }
    assert_eq!(checkpoints.latest().expect("there is one").0, saved);
    for step in 6..=8 {
        checkpoints.save(&checkpoint(step)).expect("the directory can be written");
        assert_eq!(checkpoints.latest().expect("there is one").1.env_steps, step);
    }
    assert!(copy.is_dir() && !saved.exists());
}

#[test]
fn every_changed_character_of_a_manifest_is_noticed() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let checkpoints = Checkpoints::new(dir.path(), 2);
    let path = checkpoints.save(&checkpoint(2)).expect("the directory can be written").join("manifest.json");
    let whole = fs::read(&path).expect("the file is there");
    let digits: Vec<usize> = (0..whole.len()).filter(|at| whole[*at].is_ascii_digit()).collect();
    assert!(digits.len() > 20);
    for at in digits {
        let mut changed = whole.clone();
        changed[at] = if changed[at] == b'9' { b'8' } else { changed[at] + 1 };
        fs::write(&path, &changed).expect("the file can be written");
        let error =
            checkpoints.latest().expect_err(&format!("digit {at} was changed: {}", String::from_utf8_lossy(&changed)));
        assert!(matches!(error, CheckpointError::Broken { .. }), "{error}");
    }
}

#[test]
fn some_of_every_many_steps_stay() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let checkpoints = Checkpoints::new(dir.path(), 1).keep_every(Some(100));
    for step in [0, 40, 80, 110, 160, 205, 230, 290] {
        checkpoints.save(&checkpoint(step)).expect("the directory can be written");
    }
    let names: Vec<String> = checkpoints.list().expect("it is there").iter().map(|path| name_of(path)).collect();
    assert_eq!(names, ["step-000000000000", "step-000000000110", "step-000000000205", "step-000000000290"]);
}

fn name_of(path: &std::path::Path) -> String {
    path.file_name().expect("it has a name").to_string_lossy().into_owned()
}

#[test]
fn a_run_that_never_saved_starts_over_and_nothing_else_does() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("run");
    let run = RunDir::create(&path).expect("the directory can be made");
    run.write_config("[train]\n").expect("it can be written");
    run.write("metrics.jsonl", b"{}\n").expect("it can be written");
    fs::create_dir(path.join("checkpoints/.unfinished-step-000000000000")).expect("it can be made");
    drop(run);
    // A run that was killed before its first checkpoint does not block its directory.
    let again = RunDir::create(&path).expect("it starts over");
    assert!(!path.join("metrics.jsonl").exists() && !path.join("config.toml").exists());
    again.checkpoints().save(&checkpoint(0)).expect("it can be written");
    drop(again);
    assert!(matches!(RunDir::create(&path), Err(RunDirError::NotEmpty { .. })), "it holds a checkpoint");
    // Files with the same names that no run wrote.
    for (name, text) in [("config.toml", "mine = true\n"), ("lock", "")] {
        let other = tempfile::tempdir().expect("a temporary directory");
        fs::write(other.path().join(name), text).expect("it can be written");
        fs::write(other.path().join("config.toml"), "mine = true\n").expect("it can be written");
        assert!(matches!(RunDir::create(other.path()), Err(RunDirError::NotEmpty { .. })));
        assert_eq!(fs::read_to_string(other.path().join("config.toml")).expect("it stays"), "mine = true\n");
    }
}

#[test]
fn two_processes_never_train_in_one_directory() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("run");
    let first = RunDir::create(&path).expect("the directory can be made");
    let copy = first.clone();
    for refused in [RunDir::open_to_resume(&path), RunDir::create(&path)] {
        let message = refused.expect_err("the first one holds it").to_string();
        assert!(message.contains(&format!("in use by process {} for 0 seconds", std::process::id())), "{message}");
    }
    RunDir::open(&path).expect("reading disturbs nobody");
    drop(first);
    assert!(RunDir::open_to_resume(&path).is_err(), "a copy still holds it");
    drop(copy);
    RunDir::open_to_resume(&path).expect("it is free again");
}

#[test]
fn an_edited_experiment_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run = RunDir::create(dir.path().join("run")).expect("the directory can be made");
    let text = "[train]\nseed = 7\n";
    run.write_config(text).expect("it can be written");
    assert_eq!(run.read_config().expect("it is as written"), text);
    let path = run.file("config.toml");
    let written = fs::read_to_string(&path).expect("it is there");
    for edited in [written.replace("seed = 7", "seed = 8"), text.to_owned(), String::new()] {
        fs::write(&path, edited).expect("it can be written");
        let message = run.read_config().expect_err("it was edited").to_string();
        assert!(message.contains("config.toml was edited") && message.contains("--set KEY=VALUE"), "{message}");
    }
}

#[cfg(unix)]
#[test]
fn links_in_a_run_directory_are_never_followed() {
    use std::os::unix::fs::symlink;

    let dir = tempfile::tempdir().expect("a temporary directory");
    let victim = dir.path().join("thesis.txt");
    fs::write(&victim, "irreplaceable").expect("it can be written");
    for name in ["metrics.jsonl", "lock", "config.toml", "checkpoints/step-000000000009", "notes"] {
        let path = dir.path().join(name.replace('/', "-"));
        drop(RunDir::create(&path).expect("the directory can be made"));
        let _ = fs::remove_file(path.join(name));
        symlink(&victim, path.join(name)).expect("links can be made");
        for refused in [RunDir::open(&path), RunDir::open_to_resume(&path)] {
            let error = refused.expect_err("a link is there");
            assert!(matches!(error, RunDirError::Foreign { .. }), "{name}: {error}");
        }
    }
    // A symbolic link at the path of the next file.
    let target = dir.path().join("result.json");
    symlink(&victim, dir.path().join("result.json.tmp")).expect("links can be made");
    write_atomically(&target, b"new").expect("it can be written");
    assert_eq!(fs::read(&target).expect("it is there"), b"new");
    // A symbolic link inside a checkpoint.
    let checkpoints = Checkpoints::new(dir.path().join("saved"), 2);
    let saved = checkpoints.save(&checkpoint(1)).expect("it can be written");
    fs::rename(saved.join("policy.safetensors"), dir.path().join("moved")).expect("it can be moved");
    symlink(dir.path().join("moved"), saved.join("policy.safetensors")).expect("links can be made");
    let message = checkpoints.latest().expect_err("it is a link").to_string();
    assert!(message.contains("it is neither a file nor a directory"), "{message}");
    assert_eq!(fs::read_to_string(&victim).expect("it is there"), "irreplaceable");
}

/// Who opens a pipe to read it waits for a writer, maybe for ever.
#[cfg(unix)]
#[test]
fn pipes_in_a_run_directory_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for name in ["metrics.jsonl", "files.json", "checkpoints/step-000000000009"] {
        let path = dir.path().join(name.replace('/', "-"));
        drop(RunDir::create(&path).expect("the directory can be made"));
        fs::write(path.join("config.toml"), "").expect("it can be written");
        let made = std::process::Command::new("mkfifo").arg(path.join(name)).status();
        assert!(made.expect("there is mkfifo").success());
        for refused in [RunDir::open(&path), RunDir::open_to_resume(&path)] {
            let error = refused.expect_err("a pipe is there");
            assert!(matches!(error, RunDirError::Foreign { .. }), "{name}: {error}");
        }
    }
}
