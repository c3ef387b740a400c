//! TD3 solves a probe environment in seconds and Pendulum with `BRASA_SLOW=1`; a resumed run equals an uninterrupted
//! one.
#![allow(clippy::expect_used)]

use crate::common;

use std::path::Path;

use brasa::buffers::{PrioritizedConfig, ReplayConfig};
use brasa::classic::Pendulum;
use brasa::classic::probe::ContinuousIdentity;
use brasa::contracts::{Critics, Explore, Obs, Policy, Schedule};
use brasa::env::{Env, named_rng};
use brasa::nn::{DeterministicActor, DeterministicActorConfig, MlpCritics, MlpCriticsConfig, Persist, draw_noise};
use brasa::td3::{GaussianExploration, Td3, Td3Config};
use brasa::train::{OffPolicy, OffPolicyConfig, Run, Training};
use brasa_test::{device, slow};
use burn::tensor::Tensor;
use common::{TestEnv, episodes_of, mean_return, over_seeds, quick, trained};

type Learner = Td3<DeterministicActor, MlpCritics>;

fn td3<E: Env>(env: &TestEnv<E>, hidden: &[usize], config: Td3Config, seed: u64) -> Learner {
    let (obs, action, device) = (&env.spec().obs, &env.spec().action, device().autodiff());
    let actor = DeterministicActorConfig { hidden: hidden.to_vec(), ..Default::default() };
    let critics = MlpCriticsConfig { hidden: hidden.to_vec(), ..Default::default() };
    let rng = |stream| named_rng(seed, "weights", stream);
    let actor = DeterministicActor::new(&actor, obs, action, &device, &mut rng(0)).expect("the config is valid");
    let critics = MlpCritics::new(&critics, obs, action, &device, &mut rng(1)).expect("the config is valid");
    Td3::new(actor, critics, config, seed).expect("the config is valid")
}

fn quick_td3() -> Td3Config {
    Td3Config { gamma: 0.8, tau: 0.05, learning_rate: Schedule::Constant(5e-3), ..Td3Config::default() }
}

#[test]
fn actions_follow_the_observation_and_critics_know_their_rewards() {
    for (prioritized, n_step) in [(None, 1), (Some(PrioritizedConfig::default()), 3)] {
        let make = ContinuousIdentity::default;
        let (env, mut settings) = (episodes_of(8, None, make), quick());
        settings.replay = ReplayConfig { prioritized, n_step, ..settings.replay };
        let learner = td3(&env, &[32], quick_td3(), 1);
        let training = trained(env, learner, settings, Run { total_env_steps: 6000, seed: 1 });
        let mean = mean_return(&training.learner().actor().valid(), &mut episodes_of(8, None, make), 64, 99);
        assert!(mean > -0.01, "{mean}");
        // One step with minus the squared distance from the target as reward: the value is the reward. The
        // critics are trained on actions near the target, and on uniform ones at the start.
        let critics = training.learner().critics().valid();
        for (target, action) in [(0.5, 0.5), (0.5, 0.2), (-0.5, -0.3), (0.0, 0.2)] {
            let row = |value: f32| Tensor::<2>::from_floats([[value]], &device());
            let values = critics.values(Obs::new(row(target)), row(action)).into_data();
            let expected = -(action - target).powi(2);
            assert!(values.iter::<f32>().all(|value| (value - expected).abs() < 0.1), "{values} instead of {expected}");
        }
    }
}

#[test]
fn training_explores_and_evaluation_does_not() {
    let env = episodes_of(1, None, ContinuousIdentity::default);
    let learner = td3(&env, &[8], Td3Config { exploration_noise: 0.2, ..quick_td3() }, 1);
    let training = OffPolicy::new(env, learner, quick(), Run { total_env_steps: 1000, seed: 1 });
    let policy = training.expect("the environments start").policy();
    let n = 2000;
    let obs = || Obs::new(Tensor::zeros([n, 1], &device()));
    let noise = draw_noise(policy.noise(), n, &mut named_rng(1, "test", 0), &device());
    let greedy = policy.act(obs(), Explore::Greedy).0;
    let explored = policy.act(obs(), Explore::Sample(noise.clone())).0;
    let std = (explored - greedy.clone()).square().mean().sqrt().into_scalar::<f32>();
    assert!((std - 0.2).abs() < 0.01, "{std}");
    let never = GaussianExploration::greedy(policy.actor).act(obs(), Explore::Sample(noise)).0;
    assert_eq!((never - greedy).abs().max().into_scalar::<f32>(), 0.0);
}

#[test]
fn a_resumed_run_continues_bit_for_bit() {
    // There are odd numbers of updates between two readings, so that some checkpoints are between two updates of the
    // actor.
    for (prioritized, n_step) in [(None, 2), (Some(PrioritizedConfig::default()), 1)] {
        let mut settings = OffPolicyConfig { train_freq: 2, log_interval: 50, updates_per_step: 0.3, ..quick() };
        settings.replay = ReplayConfig { capacity: 300, n_step, prioritized, ..ReplayConfig::default() };
        let run = Run { total_env_steps: 600, seed: 5 };
        let start = || {
            let env = episodes_of(2, Some(200), Pendulum::default);
            let learner = td3(&env, &[8], Td3Config::default(), 5);
            OffPolicy::new(env, learner, settings.clone(), run).expect("it starts")
        };
        // The saved state, without values that depend on the clock.
        let learned = |training: &mut OffPolicy<_, _>| {
            let figures = training.iterate().expect("training goes on").metrics;
            figures.into_iter().filter(|(name, _)| name.starts_with("train/")).collect::<Vec<_>>()
        };
        let (mut whole, mut figures, mut checkpoints, mut updates) = (start(), Vec::new(), Vec::new(), Vec::new());
        while !whole.is_done() {
            figures.push(learned(&mut whole));
            checkpoints.push(whole.checkpoint());
            updates.push(whole.counters().updates);
        }
        assert!(updates.iter().any(|updates| updates % 2 == 1), "{updates:?}");
        for at in 3..checkpoints.len() - 1 {
            let mut resumed = start();
            resumed.restore(&checkpoints[at], Path::new("memory")).expect("it is the same run");
            for expected in &figures[at + 1..] {
                assert_eq!(&learned(&mut resumed), expected, "from {} updates", updates[at]);
            }
            assert!(whole.learner().save() == resumed.learner().save(), "from {} updates", updates[at]);
        }
    }
}

#[test]
fn td3_swings_the_pendulum_up() {
    if !slow("TD3 on Pendulum-v1, 20k steps, 5 seeds") {
        return;
    }
    let make = |n| episodes_of(n, Some(Pendulum::TIME_LIMIT), Pendulum::default);
    let returns = common::seeds(|seed| {
        let config = Td3Config { gamma: 0.98, ..Td3Config::default() };
        let settings = OffPolicyConfig {
            learning_starts: 10_000,
            replay: ReplayConfig { capacity: 200_000, ..ReplayConfig::default() },
            ..OffPolicyConfig::default()
        };
        let env = make(1);
        let learner = td3(&env, &[400, 300], config, seed);
        let training = trained(env, learner, settings, Run { total_env_steps: 20_000, seed });
        let mean = mean_return(&training.learner().actor().valid(), &mut make(100), 100, 1000 + seed);
        println!("seed {seed}: {mean:.1}");
        mean
    });
    // The RL Zoo's own run has -151.9.
    assert!(over_seeds("TD3 on Pendulum-v1", &returns) >= -170.0);
}
