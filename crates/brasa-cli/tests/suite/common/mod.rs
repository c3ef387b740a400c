//! Helpers that run the command in tests.

pub mod page;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The command without arguments.
pub fn brasa() -> Command {
    Command::new(env!("CARGO_BIN_EXE_brasa"))
}

/// Runs the command with `args` and waits for its end.
pub fn run(args: &[&str]) -> Output {
    brasa().args(args).output().expect("the command starts")
}

/// Runs the command, which must succeed, and returns its standard output.
pub fn succeed(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the command prints UTF-8")
}

/// A small experiment with every kind of state that a resume must restore.
pub fn small_experiment(dir: &Path) -> PathBuf {
    let path = dir.join("small.toml");
    let text = "[scenario.cart-pole]\n\
        [train]\ntotal_env_steps = 4096\nn_envs = 4\nnormalize_obs = true\nscale_reward = true\n\
        [network]\nactor_hidden = [16]\ncritic_hidden = [16]\n\
        [ppo]\nn_steps = 64\nbatch_size = 64\nn_epochs = 2\nlearning_rate = 3e-3\nadaptive_kl = 0.01\n";
    std::fs::write(&path, text).expect("the directory can be written");
    path
}

/// The same for an off-policy algorithm.
pub fn small_off_policy_experiment(dir: &Path) -> PathBuf {
    let path = dir.join("small-off-policy.toml");
    let text = "[scenario.pendulum]\n\
        [train]\ntotal_env_steps = 4096\nn_envs = 4\nnormalize_obs = true\nreward_scale = 0.1\n\
        reward_smooth_lambda = 0.2\n\
        [actor]\nhidden = [16]\nstd = \"state-dependent\"\n[critics]\nhidden = [16]\n\
        [sac]\ntarget_update_interval = 3\nlearning_rate = 3e-3\n\
        [off_policy]\ntrain_freq = 8\nupdates_per_step = 0.3\nbatch_size = 32\nlog_interval = 256\n\
        [off_policy.replay]\ncapacity = 1500\nn_step = 3\nprecision = \"f16\"\n\
        [off_policy.replay.prioritized]\nalpha = 0.5\nbeta = 0.5\n";
    std::fs::write(&path, text).expect("the directory can be written");
    path
}

/// A path as an argument.
pub fn arg(path: &Path) -> &str {
    path.to_str().expect("temporary directories have plain names")
}

/// The files of the newest checkpoint of a run that do not depend on the clock.
pub fn newest_checkpoint(run_dir: &Path) -> PathBuf {
    let entries = std::fs::read_dir(run_dir.join("checkpoints")).expect("the run left checkpoints");
    let mut finished: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the directory can be read").path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("step-")))
        .collect();
    finished.sort();
    finished.pop().expect("there is a checkpoint")
}

/// Weights, moments, statistics, environments and counters, bit for bit.
pub fn assert_same_end(a: &Path, b: &Path) {
    let (a, b) = (newest_checkpoint(a), newest_checkpoint(b));
    assert_eq!(a.file_name(), b.file_name());
    for file in ["policy.safetensors", "trainer.safetensors", "manifest.json"] {
        let read = |dir: &Path| std::fs::read(dir.join(file)).expect("the checkpoint is whole");
        assert!(read(&a) == read(&b), "{file} differs");
    }
    // Only off-policy runs have it.
    let replay = |dir: &Path| std::fs::read(dir.join("replay.bin")).ok();
    assert!(replay(&a) == replay(&b), "replay.bin differs");
}

/// The metrics of a run that do not depend on the clock.
pub fn timeless_metrics(run: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).expect("the run left metrics");
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON"));
    let timeless = |mut line: serde_json::Value| {
        line.as_object_mut().expect("a line is an object").retain(|name, _| !name.starts_with("time/"));
        line
    };
    lines.map(timeless).collect()
}
