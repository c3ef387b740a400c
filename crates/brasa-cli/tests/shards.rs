//! Runs of several shards: resumed, killed and on several MPI ranks, each equals the uninterrupted run of one process bit for bit.
#![allow(clippy::expect_used)]

#[allow(dead_code, reason = "the suite needs the rest")]
#[path = "suite/common/mod.rs"]
mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use common::{arg, assert_same_end, run, small_experiment, small_off_policy_experiment, succeed};

/// Every learner and network, with every kind of state that shards share.
fn experiments(dir: &Path) -> Vec<(&'static str, PathBuf)> {
    let write = |name: &'static str, text: &str| {
        let path = dir.join(format!("{name}.toml"));
        fs::write(&path, text).expect("the directory can be written");
        (name, path)
    };
    let from = |name: &'static str, path: PathBuf, n_shards: usize| {
        let text = fs::read_to_string(path).expect("it was written");
        write(name, &text.replace("[train]", &format!("[train]\nn_shards = {n_shards}")))
    };
    vec![
        from("ppo", small_experiment(dir), 4),
        from("sac", small_off_policy_experiment(dir), 4),
        write(
            "a2c",
            "[scenario.cart-pole]\n[train]\nn_shards = 4\nn_envs = 8\ntotal_env_steps = 4096\n\
            [network]\nactor_hidden = [16]\ncritic_hidden = [16]\n[a2c]\nn_steps = 8\nnormalize_advantage = true\nnormalize_value = true\n",
        ),
        write(
            "memory",
            "[scenario.cart-pole-no-velocity]\n[train]\nn_shards = 4\nn_envs = 8\ntotal_env_steps = 4096\n\
            [recurrent_network]\nkind = \"gru\"\nwidth = 8\nactor_hidden = []\ncritic_hidden = []\n\
            [ppo]\nn_steps = 32\nsequence_length = 8\nbatch_size = 64\nn_epochs = 2\n",
        ),
        write(
            "td3",
            "[scenario.pendulum]\n[train]\nn_shards = 4\nn_envs = 4\ntotal_env_steps = 4096\n\
            [deterministic_actor]\nhidden = [16]\n[critics]\nhidden = [16]\n[td3]\n\
            [off_policy]\ntrain_freq = 16\nupdates_per_step = 0.1\nbatch_size = 32\nlog_interval = 512\n",
        ),
        write(
            "dqn",
            "[scenario.cart-pole]\n[train]\nn_shards = 4\nn_envs = 8\ntotal_env_steps = 4096\n[q_network]\nhidden = [16]\n\
            [dqn]\nepsilon = 0.1\n[off_policy]\ntrain_freq = 16\nupdates_per_step = 0.1\nbatch_size = 32\nlog_interval = 512\n",
        ),
        write(
            "replayed-memory",
            "[scenario.cart-pole-no-velocity]\n[train]\nn_shards = 4\nn_envs = 8\ntotal_env_steps = 4096\n\
            [recurrent_q_network]\nkind = \"gru\"\nwidth = 8\nhidden = []\n[dqn]\nepsilon = 0.1\n\
            [off_policy]\ntrain_freq = 16\nupdates_per_step = 0.1\nbatch_size = 64\nlog_interval = 512\n\
            [off_policy.replay]\ncapacity = 2000\nsequences = { length = 4, burn_in = 2 }\n",
        ),
        write(
            "team",
            "[scenario.uara]\nusers = 2\nchannels = 2\nepisode_steps = 10\n[train]\nn_shards = 4\nn_envs = 4\ntotal_env_steps = 4096\n[team_q_network]\nhidden = [16]\n\
            sharing = \"independent\"\n[dqn]\nepsilon = 0.1\nmax_grad_norm = 1.0\n[off_policy]\ntrain_freq = 16\nupdates_per_step = 0.1\n\
            batch_size = 32\nlog_interval = 512\n[off_policy.replay]\ncapacity = 800\n",
        ),
        write(
            "graphs",
            "[scenario.evacuation.buildings.generated]\ncount = 4\n[scenario.evacuation.buildings.generated.generator]\n\
            nodes = [10, 12]\nfloors = [1, 1]\n[train]\nn_shards = 4\nn_envs = 4\ntotal_env_steps = 4096\n\
            [graph_network]\n[ppo]\nn_steps = 32\nbatch_size = 64\nn_epochs = 2\ntarget_kl = 0.02\n",
        ),
    ]
}

#[test]
fn twice_half_a_sharded_run_equals_a_whole_one() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (name, config) in experiments(dir.path()) {
        let (whole, halves) = (dir.path().join(name), dir.path().join(format!("{name}-halves")));
        succeed(&["train", arg(&config), "--out", arg(&whole), "--quiet"]);
        succeed(&["train", arg(&config), "--out", arg(&halves), "--quiet", "--steps", "2048"]);
        succeed(&["train", "--resume", arg(&halves), "--quiet", "--steps", "4096"]);
        assert_same_end(&whole, &halves);
        let result = fs::read_to_string(whole.join("result.json")).expect("the run was compared with baselines");
        assert!(result.contains("\"env_steps\""), "{result}");
    }
}

/// Two devices of the same kind compute what one computes: here the processor twice.
#[test]
fn several_devices_share_the_shards() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (_, config) = experiments(dir.path()).swap_remove(0);
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    succeed(&["train", arg(&config), "--out", arg(&one), "--quiet"]);
    succeed(&["train", arg(&config), "--out", arg(&two), "--quiet", "--device", "cpu, cpu"]);
    assert_same_end(&one, &two);
    // Every shard opens its own: the second one has no such device.
    let output =
        run(&["train", arg(&config), "--out", arg(&dir.path().join("none")), "--quiet", "--device", "cpu,cuda:9"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && message.contains("cuda"), "{message}");
    assert!(!dir.path().join("none").exists(), "nothing is written");
}

#[test]
fn a_sharded_run_that_is_killed_goes_on() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (_, config) = experiments(dir.path()).swap_remove(0);
    let (whole, killed) = (dir.path().join("whole"), dir.path().join("killed"));
    let set = ["--set", "train.checkpoint_secs=1e-6", "--quiet"];
    succeed(&[&["train", arg(&config), "--out", arg(&whole)], &set[..]].concat());
    kill_and_resume(6, &|| common::brasa(), &config, &killed, &set);
    succeed(&["train", "--resume", arg(&killed), "--quiet"]);
    assert_same_end(&whole, &killed);
}

/// Starts and kills a run several times. Afterwards it has a checkpoint.
fn kill_and_resume(n_kills: u64, program: &dyn Fn() -> Command, config: &Path, out: &Path, set: &[&str]) {
    for round in 0..n_kills {
        let resumes = out.join("config.toml").exists();
        let start = match resumes {
            true => vec!["train", "--resume", arg(out), "--quiet"],
            false => [&["train", arg(config), "--out", arg(out)], set].concat(),
        };
        let mut child = program().args(start).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        // Moments that differ in every round, without a clock or random generator in the test.
        sleep(Duration::from_millis(20 + round * 67 % 301));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
    }
    // At least one start lived long enough to write its experiment.
    assert!(out.join("config.toml").exists());
}

#[test]
fn sizes_that_cannot_be_shared_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    let refused = |set: &[&str]| {
        let out = dir.path().join("refused");
        let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
        let output = run(&[&["train", arg(&config), "--out", arg(&out)], &set[..]].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(!out.exists(), "nothing is written");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let message = refused(&["train.n_shards=3"]);
    assert!(message.contains("`train.n_shards` must be a power of two, got 3"), "{message}");
    let message = refused(&["train.n_shards=8"]);
    assert!(message.contains("`train.n_envs` must be a multiple of `train.n_shards`, which is 8, got 4"), "{message}");
    let message = refused(&["train.n_shards=4", "train.device=\"cpu,cpu,cpu\""]);
    let rule = "`train.n_shards` must be a multiple of the number of devices, which is 3, got 4";
    assert!(message.contains(rule), "{message}");
    let message = refused(&["train.n_shards=4", "ppo.batch_size=66"]);
    assert!(
        message.contains("`ppo.batch_size` must be a multiple of `train.n_shards`, which is 4, got 66"),
        "{message}"
    );
    let message = refused(&["train.n_shards=4", "train.on_oom=shrink"]);
    assert!(message.contains("`train.on_oom` must be \"stop\" if the run has several shards"), "{message}");
}

#[test]
fn another_number_of_shards_cannot_resume() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (_, config) = experiments(dir.path()).swap_remove(0);
    let out = dir.path().join("run");
    succeed(&["train", arg(&config), "--out", arg(&out), "--quiet", "--steps", "1024"]);
    let output = run(&["train", "--resume", arg(&out), "--steps", "2048", "--set", "train.n_shards=2"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("cannot change `train.n_shards` from 4 to 2 on resume"), "{message}");
    // The policy is that of any other run.
    succeed(&["eval", arg(&out), "--json"]);
}

#[cfg(feature = "mpi")]
mod ranks {
    use super::common::newest_checkpoint;
    use super::*;

    /// The command on several ranks; `None` without `mpirun`.
    fn on_ranks(n_ranks: usize) -> Option<Command> {
        let found = Command::new("mpirun").arg("--version").output();
        if found.is_err() {
            eprintln!("SKIPPED: there is no mpirun");
            return None;
        }
        let mut mpirun = Command::new("mpirun");
        mpirun.args(["-n", &n_ranks.to_string(), env!("CARGO_BIN_EXE_brasa")]);
        Some(mpirun)
    }

    fn succeed_on(n_ranks: usize, args: &[&str]) -> bool {
        let Some(mut mpirun) = on_ranks(n_ranks) else { return false };
        let output = mpirun.args(args).output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?} on {n_ranks} ranks: {text}");
        true
    }

    #[test]
    fn every_number_of_ranks_gives_the_same_run() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for (name, config) in experiments(dir.path()) {
            let whole = dir.path().join(name);
            succeed(&["train", arg(&config), "--out", arg(&whole), "--quiet", "--steps", "1024"]);
            for n_ranks in [1, 2, 4] {
                let out = dir.path().join(format!("{name}-{n_ranks}"));
                if !succeed_on(n_ranks, &["train", arg(&config), "--out", arg(&out), "--quiet", "--steps", "1024"]) {
                    return;
                }
                assert_same_end(&whole, &out);
                assert_eq!(common::timeless_metrics(&whole), common::timeless_metrics(&out));
            }
            // Half on two ranks, the rest on four.
            let halves = dir.path().join(format!("{name}-halves"));
            succeed_on(2, &["train", arg(&config), "--out", arg(&halves), "--quiet", "--steps", "512"]);
            succeed_on(4, &["train", "--resume", arg(&halves), "--quiet", "--steps", "1024"]);
            assert_same_end(&whole, &halves);
        }
    }

    #[test]
    fn a_rank_that_is_killed_ends_all_and_any_number_of_ranks_goes_on() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (_, config) = experiments(dir.path()).swap_remove(0);
        let (whole, killed) = (dir.path().join("whole"), dir.path().join("killed"));
        let set = ["--set", "train.checkpoint_secs=1e-6", "--quiet"];
        succeed(&[&["train", arg(&config), "--out", arg(&whole)], &set[..]].concat());
        let n_kills = if std::env::var_os("BRASA_SLOW").is_some() { 50 } else { 4 };
        for round in 0u64..n_kills {
            let Some(mut mpirun) = on_ranks([4, 1, 2][round as usize % 3]) else { return };
            let resumes = killed.join("config.toml").exists();
            let start = match resumes {
                true => vec!["train", "--resume", arg(&killed), "--quiet"],
                false => [&["train", arg(&config), "--out", arg(&killed)], &set[..]].concat(),
            };
            let mut child = mpirun.args(start).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
            sleep(Duration::from_millis(100 + round * 67 % 501));
            // One of the ranks, the others hang on it.
            let ranks = Command::new("pgrep").args(["-f", arg(&killed)]).output().expect("pgrep runs");
            let ranks = String::from_utf8_lossy(&ranks.stdout).into_owned();
            let own = child.id().to_string();
            let ranks: Vec<&str> = ranks.lines().filter(|pid| **pid != own).collect();
            if let Some(pid) = ranks.get(round as usize % ranks.len().max(1)) {
                let _ = Command::new("kill").args(["-KILL", pid]).status();
            }
            let begin = std::time::Instant::now();
            while child.try_wait().expect("it can be asked").is_none() {
                assert!(begin.elapsed() < Duration::from_secs(60), "the other ranks go on without the killed one");
                sleep(Duration::from_millis(5));
            }
        }
        succeed(&["train", "--resume", arg(&killed), "--quiet"]);
        assert_same_end(&whole, &killed);
    }

    #[test]
    fn two_runs_in_one_directory_are_refused() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (_, config) = experiments(dir.path()).swap_remove(0);
        let out = dir.path().join("run");
        let Some(mut mpirun) = on_ranks(2) else { return };
        let long = ["train", arg(&config), "--out", arg(&out), "--quiet", "--steps", "100000000"];
        let mut first = mpirun.args(long).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        while !out.join("config.toml").exists() {
            sleep(Duration::from_millis(5));
        }
        let second =
            on_ranks(2).expect("it was there").args(["train", "--resume", arg(&out)]).output().expect("it starts");
        let stopped = Command::new("kill").args(["-INT", &first.id().to_string()]).status();
        assert!(stopped.expect("kill runs").success());
        first.wait().expect("it ends");
        let message = String::from_utf8_lossy(&second.stderr);
        assert!(!second.status.success() && message.contains("is in use by"), "{message}");
    }

    #[test]
    fn a_number_of_ranks_that_does_not_divide_the_shards_is_refused() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (_, config) = experiments(dir.path()).swap_remove(0);
        let out = dir.path().join("run");
        let Some(mut mpirun) = on_ranks(3) else { return };
        let output = mpirun.args(["train", arg(&config), "--out", arg(&out)]).output().expect("it starts");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(
            message.contains("`train.n_shards` must be a multiple of the number of ranks, which is 3, got 4"),
            "{message}"
        );
        assert!(newest_checkpoint_of(&out).is_none());
    }

    fn newest_checkpoint_of(out: &Path) -> Option<PathBuf> {
        out.join("checkpoints").exists().then(|| newest_checkpoint(out))
    }
}
