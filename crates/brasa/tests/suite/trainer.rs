//! A run of the `Trainer` without the command: its files, and its resume.
#![allow(clippy::expect_used)]

use brasa::classic::{CartPole, Pendulum};
use brasa::contracts::ActorCritic;
use brasa::nn::{ActorCriticConfig, Persist};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::prelude::*;
use brasa::train::{Ending, OnPolicy, OnPolicyStart, RunDir, StopToken, TrainError, TrainerBuilder};
use brasa_test::device;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

type Envs = TimeLimit<EnvVec<CartPole>>;
type Training4 = OnPolicy<HostEnv<Envs>, Ppo<MlpActorCritic>>;
type Builder = TrainerBuilder<OnPolicyStart<HostEnv<Envs>, Ppo<MlpActorCritic>>>;

fn envs(n: usize) -> Envs {
    let envs = EnvVec::new(0..n, |_| CartPole::default()).expect("there is at least one");
    TimeLimit::new(envs, CartPole::TIME_LIMIT).expect("the limit is above 0")
}

fn ppo(spec: &EnvSpec, n_steps: usize) -> Ppo<MlpActorCritic> {
    let config = ActorCriticConfig { actor_hidden: vec![8], critic_hidden: vec![8], ..ActorCriticConfig::default() };
    let rng = &mut named_rng(2, "weights", 0);
    let network =
        MlpActorCritic::new(&config, &spec.obs, &spec.action, &device().autodiff(), rng).expect("it is valid");
    Ppo::new(network, PpoConfig { n_steps, batch_size: 64, n_epochs: 2, ..PpoConfig::default() }, 2)
        .expect("it is valid")
}

/// 2,048 steps of four environments, with rollouts of 256.
fn builder() -> Builder {
    let env = HostEnv::new(envs(4), &device());
    let learner = ppo(env.spec(), 64);
    Trainer::on_policy(env, learner).seed(2).total_env_steps(2048)
}

fn weights(training: &Training4) -> Vec<f32> {
    training.learner().save().policy.into_values().flat_map(|(_, values)| values).collect()
}

#[test]
fn a_run_leaves_metrics_checkpoints_and_the_best_policy() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("run");
    let seen = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&seen);
    let mut trainer = builder()
        .run_dir(&path)
        .evaluate_every(512, envs(5))
        .callback(move |training: &Training4, iteration| {
            count.fetch_add(1, Ordering::Relaxed);
            iteration.metrics.push(("own/steps".into(), training.counters().env_steps as f64));
            Ok(())
        })
        .build()
        .expect("everything stands");
    assert_eq!(trainer.run().expect("it trains"), Ending::Done);
    assert_eq!(seen.load(Ordering::Relaxed), 2048 / 256);
    let best = trainer.best_return().expect("it was evaluated");

    let run_dir = RunDir::open(&path).expect("it is a run");
    let lines = run_dir.metrics().expect("there are metrics");
    let evaluations: Vec<f64> = lines.iter().filter_map(|line| line.get("eval/mean_reward")?.as_f64()).collect();
    assert_eq!(evaluations.len(), 4);
    assert_eq!(best, evaluations.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    assert!(lines.iter().all(|line| line["own/steps"].as_f64() == line["env_steps"].as_f64()));
    let (_, kept) = run_dir.best().latest().expect("the best policy is kept");
    assert_eq!(kept.state["mean_return"], best);
    let (at, last) = run_dir.checkpoints().latest().expect("there is a checkpoint");
    assert_eq!(last.env_steps, 2048);
    // With a known network the file is enough.
    let policy = brasa::train::restore_policy(trainer.training().policy(), &last, &at).expect("it is the same network");
    let obs = Obs::new(burn::tensor::Tensor::zeros([1, 4], &device()));
    let value = |policy: &MlpActorCritic| policy.value(obs.clone()).into_scalar::<f32>();
    assert_eq!(value(&policy), value(&trainer.training().policy()));
}

/// The best policy may be newer than the checkpoint from which a run resumes: it stays until a better one is found, whatever the
/// step of that one.
#[test]
fn the_best_policy_survives_a_resume_from_an_older_checkpoint() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("run");
    let run = |measured: fn(u64) -> f64| {
        let measure = move |training: &Training4| {
            Ok(vec![("eval/mean_reward".to_owned(), measured(training.counters().env_steps))])
        };
        let mut trainer = builder().start_or_resume(&path).measure_every(512, measure).build().expect("it stands");
        trainer.run().expect("it trains");
        let run_dir = RunDir::open(&path).expect("it is a run");
        let newest = run_dir.checkpoints().list().expect("they are listed").pop().expect("there is one");
        assert_eq!(run_dir.checkpoints().latest_env_steps().expect("it is read"), Some(2048));
        std::fs::remove_dir_all(newest).expect("it is removed");
        assert_eq!(run_dir.best().list().expect("they are listed").len(), 1);
        (trainer.best_return(), run_dir.best().latest_env_steps().expect("it is read"))
    };
    assert_eq!(run(|env_steps| if env_steps == 1024 { 9.0 } else { 1.0 }), (Some(9.0), Some(1024)));
    assert_eq!(run(|_| 7.0), (Some(9.0), Some(1024)));
    assert_eq!(run(|env_steps| if env_steps == 512 { 10.0 } else { 1.0 }), (Some(10.0), Some(512)));
}

#[test]
fn a_stopped_run_goes_on_bit_for_bit() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("run");
    let mut whole = builder().build().expect("it stands");
    whole.run().expect("it trains");

    let token = StopToken::default();
    let stop = token.clone();
    let mut first = builder()
        .start_or_resume(&path)
        .stop_on(token)
        .callback(move |training: &Training4, _| {
            if training.counters().env_steps >= 1024 {
                stop.stop();
            }
            Ok(())
        })
        .build()
        .expect("it stands");
    assert_eq!(first.run().expect("it trains"), Ending::Stopped);
    assert_eq!(first.training().counters().env_steps, 1024);
    // As long as it lives the directory is its own.
    let message = builder().start_or_resume(&path).build().expect_err("it is locked").to_string();
    assert!(message.contains("in use by process"), "{message}");
    drop(first);
    let mut second = builder().start_or_resume(&path).build().expect("it goes on");
    assert_eq!(second.training().counters().env_steps, 1024);
    assert_eq!(second.run().expect("it trains"), Ending::Done);
    assert!(weights(second.training()) == weights(whole.training()));
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let message = |builder: Builder| builder.build().expect_err("it is wrong").to_string();
    assert_eq!(message(builder().total_env_steps(0)), "`total_env_steps` must be at least 1, got 0");
    assert_eq!(message(builder().checkpoint_every_secs(0.0)), "`checkpoint_secs` must be finite and above 0, got 0");
    assert_eq!(message(builder().evaluate_every(0, envs(1))), "`evaluate_every` must be at least 1, got 0");
    // Nobody would normalize what such environments leave as it is.
    let env =
        HostEnv::new(brasa::env::wrappers::NormalizeObs::watching(envs(4)).expect("it may be normalized"), &device());
    let learner = ppo(env.spec(), 64);
    let watched = Trainer::on_policy(env, learner).build().expect_err("it is wrong").to_string();
    assert!(watched.starts_with("`env` must normalize its observations itself (`NormalizeObs::new`"), "{watched}");
    assert!(message(builder().resume(dir.path().join("nowhere"))).contains("is not a run directory"));
    std::fs::write(dir.path().join("thesis.txt"), "irreplaceable").expect("the directory can be written");
    assert!(message(builder().run_dir(dir.path())).contains("is not empty"));
    assert!(message(builder().start_or_resume(dir.path())).contains("is not empty"));
    assert_eq!(std::fs::read_dir(dir.path()).expect("it is there").count(), 1);
    // Checkpoints of other environments are an error with a reason.
    let run = dir.path().join("run");
    builder().total_env_steps(256).run_dir(&run).build().expect("it stands").run().expect("it trains");
    let env = HostEnv::new(envs(8), &device());
    let learner = ppo(env.spec(), 64);
    let error = Trainer::on_policy(env, learner).resume(&run).build().expect_err("there were four environments");
    assert!(matches!(error, TrainError::Env(_)), "{error}");
    assert!(error.to_string().contains("it holds 4 environments, the batch 8"), "{error}");
}

/// A network on a non-autodiff device is an error at construction, not a panic in the first update.
#[test]
fn a_network_without_autodiff_cannot_be_trained() {
    let (obs, action) = (CartPole::default().obs_space(), CartPole::default().action_space());
    let rng = &mut named_rng(0, "weights", 0);
    let network =
        MlpActorCritic::new(&ActorCriticConfig::default(), &obs, &action, &device(), rng).expect("it is valid");
    let error = Ppo::new(network, PpoConfig::default(), 0).expect_err("it cannot learn");
    let text = error.to_string();
    assert!(text.contains("MlpActorCritic` must be constructed on an autodiff device"), "{text}");
}

/// Environment `i` ends its episodes after `2 + 10 i` steps, whatever is done; a step pays 1.
struct Timed {
    length: u32,
    steps: u32,
}

impl brasa::env::Env for Timed {
    type State = u32;

    fn obs_space(&self) -> brasa::env::Space {
        brasa::env::Space::uniform_box(0.0, 100.0, ["step"])
    }

    fn action_space(&self) -> brasa::env::Space {
        brasa::env::Space::Discrete(2)
    }

    fn reset(&mut self, _: &mut brasa::env::EnvRng, mut obs: ndarray::ArrayViewMut1<f32>) {
        self.steps = 0;
        obs[0] = 0.0;
    }

    fn step(
        &mut self,
        _: ndarray::ArrayView1<f32>,
        _: &mut brasa::env::EnvRng,
        mut obs: ndarray::ArrayViewMut1<f32>,
    ) -> brasa::env::Step {
        self.steps += 1;
        obs[0] = self.steps as f32;
        brasa::env::Step { reward: 1.0, terminated: self.steps == self.length, truncated: false }
    }

    fn state(&self) -> u32 {
        self.steps
    }

    fn set_state(&mut self, steps: u32) {
        self.steps = steps;
    }
}

#[test]
fn a_learning_rate_that_is_too_high_is_not_blamed_on_the_environment() {
    let limited = TimeLimit::new(EnvVec::new(0..4, |_| Pendulum::default()).expect("there are some"), 200);
    let env = HostEnv::new(limited.expect("the limit is above 0"), &device());
    let rng = &mut named_rng(2, "weights", 0);
    let (config, device) = (ActorCriticConfig::default(), device().autodiff());
    let spec = env.spec();
    let network = MlpActorCritic::new(&config, &spec.obs, &spec.action, &device, rng).expect("it is valid");
    let config = PpoConfig { n_steps: 64, learning_rate: 1e30.into(), max_grad_norm: None, ..PpoConfig::default() };
    let learner = Ppo::new(network, config, 2).expect("it is valid");
    let mut trainer = Trainer::on_policy(env, learner).total_env_steps(100_000).build().expect("it stands");
    let message = trainer.run().expect_err("it diverges").to_string();
    assert!(message.contains("training has diverged") && message.contains("learning rate"), "{message}");
}

#[test]
fn a_policy_that_chooses_nan_is_not_blamed_on_the_environment() {
    let env = EnvVec::new(0..2, |_| Pendulum::default()).expect("there are some");
    let mut env = HostEnv::new(env, &device());
    env.reset(1).expect("it starts");
    let action = burn::tensor::Tensor::<2>::from_floats([[0.5], [f32::NAN]], &device());
    let message = env.step(action).expect_err("it is refused").to_string();
    assert!(message.starts_with("the policy chose the action NaN for environment 1"), "{message}");
}

#[test]
fn evaluation_does_not_prefer_short_episodes() {
    let timed =
        |n| EnvVec::new(0..n, |i| Timed { length: 2 + 10 * i as u32, steps: 0 }).expect("there is at least one");
    let mut env = HostEnv::new(timed(4), &device());
    let network = {
        let rng = &mut named_rng(2, "weights", 0);
        let config = ActorCriticConfig::default();
        MlpActorCritic::new(&config, &env.spec().obs, &env.spec().action, &device(), rng).expect("it is valid")
    };
    let mut lengths = |n| -> Vec<(usize, u64)> {
        let episodes = brasa::train::evaluate(&network, &mut env, n, 5).expect("it plays");
        episodes.iter().map(|episode| (episode.env, episode.length)).collect()
    };
    // Those that end first are all of environment 0.
    assert_eq!(lengths(6), [(0, 2), (0, 2), (1, 12), (1, 12), (2, 22), (3, 32)]);
    assert_eq!(lengths(2), [(0, 2), (1, 12)]);
    assert_eq!(lengths(4), [(0, 2), (1, 12), (2, 22), (3, 32)]);
}
