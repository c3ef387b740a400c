//! Every command that writes to a path of the user: pipes and links stay what they are, `-` is standard output, and a path that cannot be
//! written is wrong input.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use common::page::train;
use common::{arg, run, small_experiment};

/// The arguments that make each command write its result to `out`.
fn commands(dir: &Path, run_dir: &Path, out: &str) -> Vec<Vec<String>> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let config = dir.join("small.toml");
    let mut all: Vec<_> = ["onnx", "c", "safetensors", "js", "html"]
        .map(|format| words(&["export", arg(run_dir), "--format", format, "--out", out]))
        .into();
    all.push(words(&["report", arg(run_dir), "--out", out]));
    all.push(words(&["plan", arg(&config), "--device", "cpu", "--fit", out]));
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../brasa-export/tests/data/stable_baselines3");
    let model = fs::read_dir(model).expect("there are models").map(|entry| entry.expect("an entry").path());
    let model = model.filter(|path| path.extension().is_some_and(|end| end == "zip")).min().expect("there is a model");
    all.push(words(&["import", arg(&model), "--out", out]));
    all
}

fn finished(dir: &Path) -> std::path::PathBuf {
    let config = fs::read_to_string(small_experiment(dir)).expect("it was written");
    train(dir, &config.replace("total_env_steps = 4096", "total_env_steps = 256"))
}

#[test]
fn results_go_where_a_path_leads() {
    let temporary = tempfile::tempdir().expect("there is room");
    let dir = temporary.path();
    let run_dir = finished(dir);
    let (real, link, pipe) = (dir.join("real"), dir.join("link"), dir.join("pipe"));
    symlink("real", &link).expect("links are supported");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is `mkfifo`").success());
    for args in commands(dir, &run_dir, "OUT") {
        let with = |out: &str| args.iter().map(|word| word.replace("OUT", out)).collect::<Vec<_>>();
        let start = |out: &str| {
            let args = with(out);
            run(&args.iter().map(String::as_str).collect::<Vec<_>>())
        };
        fs::write(&real, "old").expect("there is room");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).expect("it is ours");
        let output = start(arg(&link));
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        let written = fs::read(&real).expect("it is there");
        assert!(written.len() > 100 && link.is_symlink(), "{args:?}");
        assert_eq!(fs::metadata(&real).expect("it is there").permissions().mode() & 0o777, 0o600, "{args:?}");

        // The page of a report has the time at which it was written.
        let same = |other: &[u8]| other == written || (args[0] == "report" && other.len() > 100);
        for name in ["-", "/dev/stdout"] {
            let output = start(name);
            assert!(output.status.success() && same(&output.stdout), "{args:?} to {name}");
            assert!(!output.stderr.is_empty(), "{args:?}: the summary goes to standard error");
        }
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).expect("it is a pipe")
        });
        assert!(start(arg(&pipe)).status.success(), "{args:?}");
        assert!(same(&reader.join().expect("it reads")), "{args:?}");
        assert!(fs::metadata(&pipe).expect("it is there").file_type().is_fifo(), "{args:?}");
    }
}

#[test]
fn paths_that_cannot_be_written_are_wrong_input() {
    let temporary = tempfile::tempdir().expect("there is room");
    let dir = temporary.path();
    let run_dir = finished(dir);
    let mut all = commands(dir, &run_dir, "/proc/x");
    all.extend(commands(dir, &run_dir, arg(&dir.join("nowhere/file"))));
    let config = dir.join("small.toml");
    for words in [["train"].as_slice(), &["compare", "--seeds", "1"], &["sweep", "--seeds", "1"]] {
        let words = words.iter().copied().chain([arg(&config), "--out", "/proc/x"]);
        all.push(words.map(str::to_owned).collect());
    }
    for args in all {
        let output = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains("cannot ") && error.contains("No such file or directory"), "{args:?}: {error}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}
