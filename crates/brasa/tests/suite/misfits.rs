//! A network that does not fit its environments, and environments that do not fit their use, are errors when a loop or an evaluation is built:
//! they neither train nor panic deep inside.
#![allow(clippy::expect_used)]

use brasa::classic::{CartPole, Pendulum};
use brasa::dqn::{Dqn, DqnConfig};
use brasa::env::wrappers::{EpisodeStats, NormalizeObs};
use brasa::nn::{ActorCriticConfig, QNetwork, QNetworkConfig};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::prelude::*;
use brasa::train::{OffPolicyConfig, evaluate};
use brasa_test::device;

type Envs = TimeLimit<EnvVec<CartPole>>;

fn envs(n: usize) -> Envs {
    let envs = EnvVec::new(0..n, |_| CartPole::default()).expect("there is at least one");
    TimeLimit::new(envs, CartPole::TIME_LIMIT).expect("the limit is above 0")
}

fn numbers(n: usize) -> Space {
    Space::uniform_box(-1.0, 1.0, (0..n).map(|i| i.to_string()))
}

fn network(obs: usize, action: &Space) -> MlpActorCritic {
    let config = ActorCriticConfig { actor_hidden: vec![8], critic_hidden: vec![8], ..ActorCriticConfig::default() };
    let rng = &mut named_rng(2, "weights", 0);
    MlpActorCritic::new(&config, &numbers(obs), action, &device().autodiff(), rng).expect("it is valid")
}

fn ppo(obs: usize, action: &Space, gamma: f64) -> Ppo<MlpActorCritic> {
    let config = PpoConfig { n_steps: 32, batch_size: 32, gamma, ..PpoConfig::default() };
    Ppo::new(network(obs, action), config, 2).expect("it is valid")
}

/// Observations and actions of a network, and a part of the error for CartPole, which has 4 numbers and two actions.
fn misfits() -> [(usize, Space, &'static str); 4] {
    [
        (8, Space::Discrete(2), "observations of 8 numbers, the environments have 4"),
        (4, Space::Discrete(9), "one of 9 actions, those of the environments one of 2 actions"),
        (4, numbers(1), "1 number, those of the environments one of 2 actions"),
        (4, Space::MultiDiscrete(vec![2, 2]), "choices among [2, 2] actions, those of the environments one of 2"),
    ]
}

#[test]
fn networks_of_other_sizes_are_refused_by_every_loop() {
    for (obs, action, part) in misfits() {
        let env = HostEnv::new(envs(2), &device());
        let error = Trainer::on_policy(env, ppo(obs, &action, 0.99)).build().expect_err("it does not fit").to_string();
        assert!(error.contains(part), "{error}");

        let (policy, mut env) = (network(obs, &action), HostEnv::new(EpisodeStats::new(envs(2)), &device()));
        let error = evaluate(&policy, &mut env, 1, 0).expect_err("it does not fit").to_string();
        assert!(error.contains(part), "{error}");
    }
    let (rng, config) = (&mut named_rng(2, "weights", 0), QNetworkConfig::default());
    let make = |obs, n, rng: &mut _| {
        QNetwork::new(&config, &numbers(obs), &Space::Discrete(n), &device().autodiff(), rng).expect("it is valid")
    };
    for (obs, n, part) in [(8, 2, "observations of 8 numbers"), (4, 9, "one of 9 actions")] {
        let learner = Dqn::new(make(obs, n, rng), DqnConfig::default()).expect("it is valid");
        let env = HostEnv::new(envs(2), &device());
        let built = Trainer::off_policy(env, learner, OffPolicyConfig::default()).build();
        let error = built.expect_err("it does not fit").to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn environments_on_an_autodiff_device_are_refused() {
    let env = HostEnv::new(envs(2), &device().autodiff());
    let built = Trainer::on_policy(env, ppo(4, &Space::Discrete(2), 0.99)).build();
    let error = built.expect_err("it is the wrong device").to_string();
    assert!(error.contains("`env` must be on a device without autodiff"), "{error}");
}

#[test]
fn evaluations_with_moments_or_spaces_of_their_own_are_refused() {
    let trainer = || Trainer::on_policy(HostEnv::new(envs(2), &device()), ppo(4, &Space::Discrete(2), 0.99));
    let normalized = NormalizeObs::new(envs(2)).expect("they can be normalized");
    let built = trainer().evaluate_every(64, normalized).build();
    let error = built.expect_err("it is normalized twice").to_string();
    assert!(error.contains("`evaluate_every` must not normalize observations"), "{error}");

    let others = EnvVec::new(0..2, |_| Pendulum::default()).expect("there is at least one");
    let error = trainer().evaluate_every(64, others).build().expect_err("it is another task").to_string();
    assert!(error.starts_with("`evaluate_every` must have environments like those of training, got "), "{error}");
    assert!(error.contains("observations of 4 numbers, the environments have 3"), "{error}");
}

#[test]
fn a_run_is_not_resumed_with_another_discount() {
    let folder = tempfile::tempdir().expect("there is room");
    let run = folder.path().join("run");
    let trainer = |gamma| {
        let env = HostEnv::new(envs(2), &device());
        Trainer::on_policy(env, ppo(4, &Space::Discrete(2), gamma)).total_env_steps(64)
    };
    trainer(0.99).run_dir(&run).build().expect("all settings hold").run().expect("it trains");
    let error = trainer(0.9).resume(&run).build().expect_err("its values have another discount").to_string();
    assert!(error.contains("its discount `gamma` is 0.99, that of this run 0.9"), "{error}");
    trainer(0.99).resume(&run).build().expect("it is the same run");
}
