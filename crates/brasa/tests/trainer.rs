//! A run of the `Trainer` without the command: its files, and its resume.
#![allow(clippy::expect_used)]

use brasa::classic::CartPole;
use brasa::core::ActorCritic;
use brasa::nn::{ActorCriticConfig, Persist};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::prelude::*;
use brasa::train::{Ending, OnPolicy, OnPolicyStart, RunDir, StopToken, TrainError, TrainerBuilder};
use brasa_test::device;

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
    let seen = std::rc::Rc::new(std::cell::Cell::new(0));
    let count = std::rc::Rc::clone(&seen);
    let mut trainer = builder()
        .run_dir(&path)
        .evaluate_every(512, envs(5))
        .callback(move |training: &Training4, iteration| {
            count.set(count.get() + 1);
            iteration.metrics.push(("own/steps".into(), training.counters().env_steps as f64));
            Ok(())
        })
        .build()
        .expect("everything stands");
    assert_eq!(trainer.run().expect("it trains"), Ending::Done);
    assert_eq!(seen.get(), 2048 / 256);
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
    let mut second = builder().start_or_resume(&path).build().expect("it goes on");
    assert_eq!(second.training().counters().env_steps, 1024);
    assert_eq!(second.run().expect("it trains"), Ending::Done);
    assert!(weights(second.training()) == weights(whole.training()));
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let message = |builder: Builder| builder.build().err().expect("it is wrong").to_string();
    assert_eq!(message(builder().total_env_steps(0)), "`total_env_steps` must be at least 1, got 0");
    assert_eq!(message(builder().checkpoint_every_secs(0.0)), "`checkpoint_secs` must be finite and above 0, got 0");
    assert_eq!(message(builder().evaluate_every(0, envs(1))), "`evaluate_every` must be at least 1, got 0");
    assert!(message(builder().resume(dir.path().join("nowhere"))).contains("is no run directory"));
    std::fs::write(dir.path().join("thesis.txt"), "irreplaceable").expect("the directory can be written");
    assert!(message(builder().run_dir(dir.path())).contains("is not empty"));
    assert!(message(builder().start_or_resume(dir.path())).contains("is not empty"));
    assert_eq!(std::fs::read_dir(dir.path()).expect("it is there").count(), 1);
    // Checkpoints of other environments are an error with a reason.
    let run = dir.path().join("run");
    builder().total_env_steps(256).run_dir(&run).build().expect("it stands").run().expect("it trains");
    let env = HostEnv::new(envs(8), &device());
    let learner = ppo(env.spec(), 64);
    let error = Trainer::on_policy(env, learner).resume(&run).build().err().expect("there were four environments");
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
    let error = Ppo::new(network, PpoConfig::default(), 0).err().expect("it cannot learn");
    assert!(error.to_string().contains("autodiff side of its device"), "{error}");
}
