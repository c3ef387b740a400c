//! Learners solve what they must: probes in seconds, classic control behind `BRASA_SLOW=1`.
#![allow(clippy::expect_used)]

use brasa::classic::probe::{
    ActionReward, ConstantReward, ContinuousIdentity, DelayedReward, DiscreteIdentity, MaskedIdentity,
    MultiDiscreteIdentity, ObservationReward,
};
use brasa::classic::{CartPole, Pendulum};
use brasa::core::{ActorCritic, Explore, HostEnv, Obs, Policy, Schedule, VecEnv};
use brasa::env::wrappers::{EpisodeStats, TimeLimit};
use brasa::env::{Env, EnvVec, named_rng};
use brasa::nn::{ActorCriticConfig, MlpActorCritic, StdKind};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::train::{OnPolicy, OnPolicyConfig, evaluate};
use brasa_test::{device, slow};
use burn::tensor::Tensor;

fn episodes_of<E: Env>(n_envs: usize, limit: Option<u32>, make: impl Fn() -> E) -> HostEnv<Batch<E>> {
    let envs = EnvVec::new(0..n_envs, |_| make()).expect("there is at least one");
    let limited = TimeLimit::new(envs, limit.unwrap_or(1_000_000)).expect("the limit is above 0");
    HostEnv::new(EpisodeStats::new(limited), &device())
}

type Batch<E> = EpisodeStats<TimeLimit<EnvVec<E>>>;

/// Trains PPO and returns the policy.
fn train<E: Env>(
    env: HostEnv<Batch<E>>,
    network: &ActorCriticConfig,
    config: PpoConfig,
    total_env_steps: u64,
    seed: u64,
) -> MlpActorCritic {
    let device = device();
    let rng = &mut named_rng(seed, "weights", 0);
    let (obs_space, action_space) = (env.obs_space().clone(), env.action_space().clone());
    let network = MlpActorCritic::new(network, &obs_space, &action_space, &device.clone().autodiff(), rng)
        .expect("the config is valid");
    let (n_steps, gamma, gae_lambda) = (config.n_steps, config.gamma, config.gae_lambda);
    let mut ppo = Ppo::new(network, config, seed).expect("the config is valid");
    let settings = OnPolicyConfig { total_env_steps, n_steps, gamma, gae_lambda, seed };
    let mut training = OnPolicy::new(env, &ppo.trainable().valid(), settings, &device).expect("the environments start");
    while !training.is_done() {
        training.iterate(&mut ppo).expect("training goes on");
    }
    ppo.trainable().valid()
}

/// Settings that solve a probe within a second or two.
fn quick() -> (ActorCriticConfig, PpoConfig) {
    let network = ActorCriticConfig { actor_hidden: vec![16], critic_hidden: vec![16], ..ActorCriticConfig::default() };
    let config = PpoConfig {
        n_steps: 32,
        batch_size: 64,
        n_epochs: 8,
        learning_rate: Schedule::linear(0.01, 0.0),
        gamma: 0.8,
        ..PpoConfig::default()
    };
    (network, config)
}

fn probe<E: Env>(make: impl Fn() -> E + Copy) -> (MlpActorCritic, f64) {
    let (network, config) = quick();
    let policy = train(episodes_of(8, None, make), &network, config, 20_000, 1);
    let episodes = evaluate(&policy, &mut episodes_of(8, None, make), 64, 99).expect("evaluation runs");
    let mean = episodes.iter().map(|episode| episode.episode_return).sum::<f64>() / episodes.len() as f64;
    (policy, mean)
}

fn value_at(policy: &MlpActorCritic, obs: f32) -> f32 {
    policy.value(Obs::new(Tensor::from_floats([[obs]], &device()))).into_scalar::<f32>()
}

#[test]
fn the_value_of_a_constant_is_learned() {
    let (policy, _) = probe(ConstantReward::default);
    assert!((value_at(&policy, 0.0) - 1.0).abs() < 0.05);
}

#[test]
fn values_follow_the_observation() {
    let (policy, _) = probe(ObservationReward::default);
    for obs in [-1.0, 1.0] {
        assert!((value_at(&policy, obs) - obs).abs() < 0.1, "{}", value_at(&policy, obs));
    }
}

#[test]
fn a_later_reward_is_discounted() {
    let (policy, _) = probe(DelayedReward::default);
    assert!((value_at(&policy, 0.0) - 0.8).abs() < 0.05, "{}", value_at(&policy, 0.0));
    assert!((value_at(&policy, 1.0) - 1.0).abs() < 0.05, "{}", value_at(&policy, 1.0));
}

#[test]
fn the_better_action_is_found() {
    assert_eq!(probe(|| ActionReward).1, 1.0);
}

#[test]
fn actions_follow_the_observation() {
    assert!(probe(|| DiscreteIdentity::new(3)).1 > 0.99);
    assert!(probe(|| MultiDiscreteIdentity::new(vec![2, 3])).1 > 0.99);
}

#[test]
fn real_actions_follow_the_observation() {
    let (_, mean) = probe(ContinuousIdentity::default);
    assert!(mean > -0.02, "{mean}");
}

#[test]
fn squashed_and_dependent_spreads_learn_too() {
    for (squash, std) in [(true, StdKind::Independent), (false, StdKind::Dependent), (true, StdKind::Dependent)] {
        let (network, config) = quick();
        let network = ActorCriticConfig { squash, std, ..network };
        let policy = train(episodes_of(8, None, ContinuousIdentity::default), &network, config, 20_000, 1);
        let mut env = episodes_of(8, None, ContinuousIdentity::default);
        let episodes = evaluate(&policy, &mut env, 64, 99).expect("evaluation runs");
        let mean = episodes.iter().map(|episode| episode.episode_return).sum::<f64>() / episodes.len() as f64;
        assert!(mean > -0.05, "squash {squash}, {std:?}: {mean}");
    }
}

#[test]
fn layers_may_be_shared() {
    let (network, config) = quick();
    let network = ActorCriticConfig { shared_hidden: vec![16], actor_hidden: vec![], critic_hidden: vec![], ..network };
    let policy = train(episodes_of(8, None, || DiscreteIdentity::new(3)), &network, config, 20_000, 1);
    let episodes = evaluate(&policy, &mut episodes_of(8, None, || DiscreteIdentity::new(3)), 64, 99);
    let episodes = episodes.expect("evaluation runs");
    assert!(episodes.iter().filter(|episode| episode.episode_return == 1.0).count() >= 63);
}

#[test]
fn illegal_options_are_never_chosen() {
    let (policy, mean) = probe(|| MaskedIdentity::new(3));
    assert!(mean > 0.99 && mean <= 1.0, "{mean}");
    let mut env = episodes_of(64, None, || MaskedIdentity::new(3));
    let obs = env.reset(5).expect("the environments start");
    let noise = brasa::nn::draw_noise(policy.noise(), 64, &mut named_rng(0, "test", 0), &device());
    let mask = obs.mask.clone().expect("the probe has a mask");
    let (action, decision) = policy.act(obs, Explore::Sample(noise));
    let legal = mask.gather(1, action.int()).min().into_scalar::<f32>();
    assert_eq!(legal, 1.0);
    assert!(decision.log_prob.max().into_scalar::<f32>() <= 0.0);
}

#[test]
fn the_first_ratio_is_exactly_one() {
    let device = device();
    let mut env = episodes_of(4, None, CartPole::default);
    let obs = env.reset(0).expect("the environments start");
    let rng = &mut named_rng(0, "weights", 0);
    let (obs_space, action_space) = (env.obs_space().clone(), env.action_space().clone());
    let autodiff = device.clone().autodiff();
    let network = MlpActorCritic::new(&ActorCriticConfig::default(), &obs_space, &action_space, &autodiff, rng)
        .expect("the config is valid");
    let config = PpoConfig {
        n_steps: 64,
        batch_size: 256,
        n_epochs: 1,
        learning_rate: Schedule::Constant(0.0),
        ..PpoConfig::default()
    };
    let plain = burn::module::Module::valid(&network);
    let noise = brasa::nn::draw_noise(plain.noise(), 4, rng, &device);
    let (action, decision) = plain.act(obs.clone(), Explore::Sample(noise));
    let again = network.evaluate(obs, action).log_prob.inner();
    let ratio = (again - decision.log_prob).exp().into_data();
    assert!(ratio.iter::<f32>().all(|ratio| ratio == 1.0), "{ratio}");

    // The same through the whole loop: before a gradient nothing may have moved.
    let mut ppo = Ppo::new(network, config, 0).expect("the config is valid");
    let settings = OnPolicyConfig { total_env_steps: 256, n_steps: 64, gamma: 0.99, gae_lambda: 0.95, seed: 0 };
    let mut training = OnPolicy::new(env, &plain, settings, &device).expect("the environments start");
    let iteration = training.iterate(&mut ppo).expect("training goes on");
    assert_eq!(iteration.metric("train/clip_fraction"), Some(0.0));
    assert!(iteration.metric("train/approx_kl").expect("it is logged").abs() < 1e-7);
}

/// Mean and spread over seeds of the mean evaluation return.
fn over_seeds(name: &str, returns: &[f64]) -> f64 {
    let mean = returns.iter().sum::<f64>() / returns.len() as f64;
    let spread = (returns.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / returns.len() as f64).sqrt();
    println!("{name}: {mean:.1} +- {spread:.1} over {} seeds: {returns:.1?}", returns.len());
    mean
}

#[test]
fn cart_pole_is_balanced() {
    if !slow("PPO on CartPole-v1, 100k steps, 5 seeds") {
        return;
    }
    let make = |n| episodes_of(n, Some(CartPole::TIME_LIMIT), CartPole::default);
    let returns: Vec<f64> = (0..5)
        .map(|seed| {
            // RL Zoo.
            let config = PpoConfig {
                n_steps: 32,
                batch_size: 256,
                n_epochs: 20,
                gamma: 0.98,
                gae_lambda: 0.8,
                learning_rate: Schedule::linear(1e-3, 0.0),
                clip_range: Schedule::linear(0.2, 0.0),
                ..PpoConfig::default()
            };
            let policy = train(make(8), &ActorCriticConfig::default(), config, 100_000, seed);
            let episodes = evaluate(&policy, &mut make(20), 20, 1000 + seed).expect("evaluation runs");
            episodes.iter().map(|episode| episode.episode_return).sum::<f64>() / 20.0
        })
        .collect();
    assert!(over_seeds("PPO on CartPole-v1", &returns) >= 475.0);
}

#[test]
fn the_pendulum_is_swung_up() {
    if !slow("PPO on Pendulum-v1, 100k steps, 5 seeds") {
        return;
    }
    let make = |n| episodes_of(n, Some(Pendulum::TIME_LIMIT), Pendulum::default);
    let returns: Vec<f64> = (0..5)
        .map(|seed| {
            // RL Zoo, without its state-dependent exploration.
            let config = PpoConfig {
                n_steps: 1024,
                n_epochs: 10,
                gamma: 0.9,
                gae_lambda: 0.95,
                learning_rate: Schedule::Constant(1e-3),
                ..PpoConfig::default()
            };
            let policy = train(make(4), &ActorCriticConfig::default(), config, 100_000, seed);
            let episodes = evaluate(&policy, &mut make(50), 50, 1000 + seed).expect("evaluation runs");
            episodes.iter().map(|episode| episode.episode_return).sum::<f64>() / 50.0
        })
        .collect();
    assert!(over_seeds("PPO on Pendulum-v1", &returns) >= -200.0);
}
