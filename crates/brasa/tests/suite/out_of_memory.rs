//! What a run does whose device has no memory left: it ends with an error that names settings, or goes on with smaller ones.
#![allow(clippy::expect_used)]

use std::path::{Path, PathBuf};

use brasa::buffers::{Rollout, Transitions};
use brasa::contracts::{Learner, Metrics, Obs, OffPolicyLearner, OnPolicyLearner, Progress};
use brasa::experiment::{App, ExperimentError, Registry};
use brasa::nn::{ActorCriticRole, Boxed, CriticsRole, ParamsError, Persist, Saved, StochasticActorRole};
use brasa::ppo::{Ppo, PpoConfig, PpoError};
use brasa::sac::{Sac, SacConfig, SacError};
use burn::tensor::Tensor;

/// A learner whose device fails as CubeCL does, in its third update on more than `limit` rows.
struct Hungry<L> {
    inner: L,
    limit: usize,
    n_updates: u32,
}

impl<L> Hungry<L> {
    fn eat(&mut self, n_rows: usize) {
        self.n_updates += 1;
        if self.n_updates == 3 && n_rows > self.limit {
            panic!(
                "called `Result::unwrap()` on an `Err` value: out of device memory allocating 4096 bytes\n  0: main"
            );
        }
    }
}

impl<L: Persist> Persist for Hungry<L> {
    fn save(&self) -> Saved {
        self.inner.save()
    }

    fn load(&mut self, saved: &Saved) -> Result<(), ParamsError> {
        self.inner.load(saved)
    }
}

type HungryPpo = Hungry<Ppo<Boxed<ActorCriticRole>>>;

impl Learner for HungryPpo {
    type Batch = Rollout<Obs, Tensor<2>>;
    type Policy = Boxed<ActorCriticRole>;

    fn update(&mut self, batch: Self::Batch, progress: Progress) -> Metrics {
        let config = self.inner.config();
        self.eat(config.batch_size / config.accumulation_steps as usize);
        self.inner.update(batch, progress)
    }

    fn policy(&self, progress: Progress) -> Self::Policy {
        self.inner.policy(progress)
    }
}

impl OnPolicyLearner for HungryPpo {
    fn n_steps(&self) -> usize {
        self.inner.n_steps()
    }

    fn batch_rows(&self, n_rows: usize) -> usize {
        self.inner.batch_rows(n_rows)
    }

    fn gamma(&self) -> f64 {
        self.inner.gamma()
    }

    fn gae_lambda(&self) -> f64 {
        self.inner.gae_lambda()
    }
}

type HungrySac = Hungry<Sac<Boxed<StochasticActorRole>, Boxed<CriticsRole>>>;

impl Learner for HungrySac {
    type Batch = Transitions<Obs, Tensor<2>>;
    type Policy = Boxed<StochasticActorRole>;

    fn update(&mut self, batch: Self::Batch, progress: Progress) -> Metrics {
        self.eat(batch.reward.dims()[0]);
        self.inner.update(batch, progress)
    }

    fn policy(&self, progress: Progress) -> Self::Policy {
        self.inner.policy(progress)
    }
}

impl OffPolicyLearner for HungrySac {
    fn gamma(&self) -> f64 {
        self.inner.gamma()
    }

    fn td_error(&self) -> Tensor<1> {
        self.inner.td_error()
    }
}

/// The algorithms `hungry-ppo`, content with 64 rows at a time, and `hungry-sac`, content with nothing.
fn app() -> App {
    let mut registry = Registry::default();
    let algorithms = registry.algorithms();
    algorithms.on_policy("hungry-ppo", |network, config: PpoConfig, seed| {
        Ok::<_, PpoError>(HungryPpo { inner: Ppo::new(network, config, seed)?, limit: 64, n_updates: 0 })
    });
    algorithms.actor_and_critics::<StochasticActorRole, _, _, _>(
        "hungry-sac",
        |actor, critics, config: SacConfig, seed| {
            Ok::<_, SacError>(HungrySac { inner: Sac::new(actor, critics, config, seed)?, limit: 0, n_updates: 0 })
        },
    );
    App::new("test").with(brasa::registry()).with(registry)
}

/// Trains; returns the result and the run directory.
fn train(dir: &Path, config: &str) -> (Result<String, ExperimentError>, PathBuf) {
    let (path, out) = (dir.join("config.toml"), dir.join("run"));
    std::fs::write(&path, config).expect("the directory can be written");
    let args = ["test", "train", "--quiet", "--json", "--out"].map(PathBuf::from);
    (app().run_from(args.into_iter().chain([out.clone(), path])), out)
}

fn changes(run_dir: &Path) -> Vec<(String, String, u64)> {
    let text = std::fs::read_to_string(run_dir.join("out_of_memory.jsonl")).expect("settings were lowered");
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a line is JSON"));
    let text = |value: &serde_json::Value| value.as_str().expect("it is text").to_owned();
    lines
        .map(|line| (text(&line["key"]), text(&line["value"]), line["env_steps"].as_u64().expect("a number")))
        .collect()
}

const PPO: &str = "[scenario.cart-pole]\n[network]\nactor_hidden = [8]\ncritic_hidden = [8]\n\
    [hungry-ppo]\nn_steps = 64\nbatch_size = 256\nn_epochs = 1\n";

#[test]
fn the_error_names_settings_to_lower_and_the_last_checkpoint_stays() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let train_section = "[train]\nn_envs = 4\ntotal_env_steps = 2048\ncheckpoint_secs = 0.001\n";
    let (result, run_dir) = train(dir.path(), &format!("{train_section}{PPO}"));
    let error = result.expect_err("it runs out of memory");
    assert!(matches!(error, ExperimentError::OutOfMemory(_)));
    assert_eq!(
        error.to_string(),
        "the device has too little memory: out of device memory allocating 4096 bytes: raise `hungry-ppo.accumulation_steps`, \
         or lower `hungry-ppo.batch_size`, \
         `hungry-ppo.n_steps`, `train.n_envs`; `train.on_oom = \"shrink\"` does it by itself"
    );
    let args = ["test", "train", "--quiet", "--resume"].map(PathBuf::from).into_iter().chain([run_dir]);
    let smaller = ["--set", "hungry-ppo.batch_size=64"].map(PathBuf::from);
    app().run_from(args.chain(smaller)).expect("the checkpoint can be resumed with a smaller batch");
}

#[test]
fn a_run_that_may_shrink_goes_on_with_the_largest_parts_that_fit() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let train_section = "[train]\nn_envs = 4\ntotal_env_steps = 2048\ncheckpoint_secs = 0.001\non_oom = \"shrink\"\n";
    let (result, run_dir) = train(dir.path(), &format!("{train_section}{PPO}"));
    let document: serde_json::Value = serde_json::from_str(&result.expect("it goes on")).expect("the result is JSON");
    assert_eq!(document["env_steps"], 2048);
    let key = || "hungry-ppo.accumulation_steps".to_owned();
    let changes = changes(&run_dir);
    // A checkpoint may take longer than an iteration: then it is older.
    assert!(changes[0].2 <= 512 && changes[1].2 <= changes[0].2 + 512, "{changes:?}");
    assert_eq!(
        changes.iter().map(|(key, value, _)| (key.clone(), value.as_str())).collect::<Vec<_>>(),
        [(key(), "2"), (key(), "4")]
    );
    let config = std::fs::read_to_string(run_dir.join("config.toml")).expect("it is there");
    assert!(config.contains("batch_size = 256\n") && config.contains("n_steps = 64\n"), "{config}");
}

#[test]
fn parts_then_batch_then_precision_then_capacity_are_lowered_until_nothing_is_left() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = "[scenario.pendulum]\n[train]\nn_envs = 1\ntotal_env_steps = 2000\ncheckpoint_secs = 0.001\non_oom = \"shrink\"\n\
        [actor]\nhidden = [8]\n[critics]\nhidden = [8]\n[hungry-sac]\n\
        [off_policy]\nbatch_size = 64\nlearning_starts = 20\nlog_interval = 10\n[off_policy.replay]\ncapacity = 25000\n";
    let (result, run_dir) = train(dir.path(), config);
    let error = result.expect_err("nothing is left to lower").to_string();
    assert!(
        error.contains("lower `off_policy.batch_size`, `off_policy.replay.precision`, `off_policy.replay.capacity`"),
        "{error}"
    );
    assert!(!error.contains("shrink"), "{error}");
    let changes: Vec<_> = changes(&run_dir).into_iter().map(|(key, value, _)| format!("{key} {value}")).collect();
    assert_eq!(
        changes,
        [
            "hungry-sac.accumulation_steps 2",
            "off_policy.batch_size 32",
            "off_policy.replay.precision f16",
            "off_policy.replay.capacity 12500"
        ]
    );
}
