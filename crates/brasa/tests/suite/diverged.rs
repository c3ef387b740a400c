//! Runs whose numbers do not stay finite: errors that name what helps, and runs that go back and retry.

use std::path::{Path, PathBuf};

use brasa::contracts::{Learner, Metrics, OnPolicyLearner, Progress};
use brasa::experiment::{App, ExperimentError, Registry};
use brasa::nn::{ActorCriticRole, Boxed, ParamsError, Persist, Saved};
use brasa::ppo::{Ppo, PpoConfig, PpoError};

/// PPO that reports a loss of NaN in every third update while its learning rate is above a limit.
struct Fragile {
    inner: Ppo<Boxed<ActorCriticRole>>,
    limit: f64,
    n_updates: u32,
}

impl Learner for Fragile {
    type Batch = <Ppo<Boxed<ActorCriticRole>> as Learner>::Batch;
    type Policy = Boxed<ActorCriticRole>;

    fn update(&mut self, batch: Self::Batch, progress: Progress) -> Metrics {
        self.n_updates += 1;
        let mut metrics = self.inner.update(batch, progress);
        if self.n_updates.is_multiple_of(3) && self.inner.config().learning_rate.at(0.0) > self.limit {
            metrics.push("train/policy_loss", f64::NAN);
        }
        metrics
    }

    fn policy(&self, progress: Progress) -> Self::Policy {
        self.inner.policy(progress)
    }
}

impl OnPolicyLearner for Fragile {
    fn n_steps(&self) -> usize {
        self.inner.n_steps()
    }

    fn gamma(&self) -> f64 {
        self.inner.gamma()
    }

    fn gae_lambda(&self) -> f64 {
        self.inner.gae_lambda()
    }
}

impl Persist for Fragile {
    fn save(&self) -> Saved {
        self.inner.save()
    }

    fn load(&mut self, saved: &Saved) -> Result<(), ParamsError> {
        self.inner.load(saved)
    }
}

/// The result of a training run with these lines in `[train]` and `[fragile-ppo]`, whose learner is content with `limit`; and its directory.
fn train(dir: &Path, limit: f64, train: &str, ppo: &str) -> (Result<String, ExperimentError>, PathBuf) {
    let mut registry = Registry::default();
    registry.algorithms().on_policy("fragile-ppo", |network, config: PpoConfig, seed| {
        Ok::<_, PpoError>(Fragile { inner: Ppo::new(network, config, seed)?, limit: LIMIT.get(), n_updates: 0 })
    });
    LIMIT.set(limit);
    let app = App::new("test").with(brasa::registry()).with(registry);
    let (path, out) = (dir.join("config.toml"), dir.join("run"));
    let config = format!(
        "[scenario.cart-pole]\n[network]\nactor_hidden = [8]\ncritic_hidden = [8]\n\
         [train]\nn_envs = 4\ntotal_env_steps = 2048\ncheckpoint_secs = 0.001\n{train}\n\
         [fragile-ppo]\nn_steps = 64\nn_epochs = 1\n{ppo}\n"
    );
    std::fs::write(&path, config).expect("the directory can be written");
    let args = ["test", "train", "--quiet", "--json", "--out"].map(PathBuf::from);
    (app.run_from(args.into_iter().chain([out.clone(), path])), out)
}

thread_local! {
    /// The constructor of a learner is a plain function.
    static LIMIT: std::cell::Cell<f64> = const { std::cell::Cell::new(0.0) };
}

/// Key, value before and value after of every change.
fn changes(run_dir: &Path) -> Vec<[String; 3]> {
    let text = std::fs::read_to_string(run_dir.join("diverged.jsonl")).expect("settings were changed");
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a line is JSON"));
    lines
        .map(|line| ["key", "before", "value"].map(|name| line[name].as_str().expect("it is text").to_owned()))
        .collect()
}

#[test]
fn the_error_names_what_helps() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (result, _) = train(dir.path(), 1e-3, "", "learning_rate = 3e-3");
    let error = result.expect_err("it diverges");
    assert!(matches!(error, ExperimentError::Diverged(_)));
    let text = error.to_string();
    let all =
        ["`train/policy_loss` is NaN", "learning rate", "clipping", "entropy", "32 bits", "`train.on_nan = \"retry\"`"];
    assert!(all.iter().all(|part| text.contains(part)), "{text}");
}

#[test]
fn a_run_goes_on_with_half_the_learning_rate_until_it_holds() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (result, run_dir) = train(dir.path(), 1e-3, "on_nan = \"retry\"", "learning_rate = 3e-3");
    let document: serde_json::Value = serde_json::from_str(&result.expect("it goes on")).expect("the result is JSON");
    assert_eq!(document["env_steps"], 2048);
    let key = || "fragile-ppo.learning_rate".to_owned();
    let expected = [[key(), "0.003".into(), "0.0015".into()], [key(), "0.0015".into(), "0.00075".into()]];
    assert_eq!(changes(&run_dir), expected);
    let config = std::fs::read_to_string(run_dir.join("config.toml")).expect("it is there");
    assert!(config.contains("learning_rate = 0.00075"), "{config}");
}

#[test]
fn schedules_are_halved_and_precision_comes_second_until_nothing_is_left() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let settings = "learning_rate = { linear = { from = 8e-3, to = 1e-3 } }\nadaptive_kl = 0.01";
    let (result, run_dir) = train(dir.path(), 0.0, "on_nan = \"retry\"\nprecision = \"bf16\"", settings);
    let text = result.expect_err("nothing helps").to_string();
    assert!(text.contains("4 attempts with other settings did not help"), "{text}");
    let changes = changes(&run_dir);
    assert_eq!(changes.len(), 4, "{changes:?}");
    assert!(changes[0][2].contains("from = 0.004") && changes[0][2].contains("to = 0.0005"), "{changes:?}");
    assert_eq!(changes[1], ["train.precision", "bf16", "f32"].map(String::from));
    assert!(changes[3][2].contains("from = 0.001"), "{changes:?}");
}
