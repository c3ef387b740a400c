//! On-policy learners solve probe environments in seconds, and classic control with `BRASA_SLOW=1`.
#![allow(clippy::expect_used)]

use crate::common;

use brasa::a2c::{A2c, A2cConfig};
use brasa::buffers::Rollout;
use brasa::classic::probe::{
    ActionReward, ConstantReward, ContinuousIdentity, DelayedReward, DiscreteIdentity, HybridIdentity, MaskedIdentity,
    MultiDiscreteIdentity, ObservationReward,
};
use brasa::classic::{Acrobot, CartPole, Pendulum};
use brasa::contracts::{ActorCritic, Explore, HostEnv, Obs, OnPolicyLearner, Policy, Schedule, VecEnv};
use brasa::device::autocast;
use brasa::env::{Env, EnvBatch, named_rng};
use brasa::nn::{ActorCriticConfig, MlpActorCritic, Persist, StdKind};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::train::{OnPolicy, Run, Training};
use brasa_test::{device, slow};
use burn::tensor::Tensor;
use common::{episodes_of, frozen, low_precisions, mean_return, normalized, over_seeds, seeds};

/// PPO or A2C.
#[derive(Clone)]
enum Algorithm {
    Ppo(PpoConfig),
    A2c(A2cConfig),
}

/// Trains to the end; returns the policy and its environments.
fn train<B: EnvBatch>(
    env: HostEnv<B>,
    network: &ActorCriticConfig,
    algorithm: Algorithm,
    total_env_steps: u64,
    seed: u64,
) -> (MlpActorCritic, HostEnv<B>) {
    fn finish<B: EnvBatch, L>(env: HostEnv<B>, learner: L, run: Run) -> (MlpActorCritic, HostEnv<B>)
    where
        L: OnPolicyLearner<Batch = Rollout<Obs, Tensor<2>>, Policy = MlpActorCritic> + Persist,
    {
        let mut training = OnPolicy::new(env, learner, run).expect("the environments start");
        while !training.is_done() {
            training.iterate().expect("training goes on");
        }
        (training.policy(), training.into_parts().0)
    }
    let rng = &mut named_rng(seed, "weights", 0);
    let network = MlpActorCritic::new(network, &env.spec().obs, &env.spec().action, &device().autodiff(), rng)
        .expect("the config is valid");
    let run = Run { total_env_steps, seed };
    match algorithm {
        Algorithm::Ppo(config) => finish(env, Ppo::new(network, config, seed).expect("the config is valid"), run),
        Algorithm::A2c(config) => finish(env, A2c::new(network, config, seed).expect("the config is valid"), run),
    }
}

/// Settings that solve a probe within a second or two.
fn quick() -> (ActorCriticConfig, Algorithm) {
    let network = ActorCriticConfig { actor_hidden: vec![16], critic_hidden: vec![16], ..ActorCriticConfig::default() };
    let config = PpoConfig {
        n_steps: 32,
        batch_size: 64,
        n_epochs: 8,
        learning_rate: Schedule::linear(0.01, 0.0),
        gamma: 0.8,
        ..PpoConfig::default()
    };
    (network, Algorithm::Ppo(config))
}

/// The same for A2C: many small rollouts, because each has one gradient step.
fn quick_a2c() -> (ActorCriticConfig, Algorithm) {
    let (network, _) = quick();
    let config = A2cConfig { learning_rate: Schedule::linear(0.02, 0.0), gamma: 0.8, ..A2cConfig::default() };
    (network, Algorithm::A2c(config))
}

/// PPO's policy and its mean return without exploration.
fn probe<E: Env>(make: impl Fn() -> E + Copy) -> (MlpActorCritic, f64) {
    probe_with(quick(), make)
}

fn probe_with<E: Env>(
    (network, algorithm): (ActorCriticConfig, Algorithm),
    make: impl Fn() -> E + Copy,
) -> (MlpActorCritic, f64) {
    let (policy, _) = train(episodes_of(8, None, make), &network, algorithm, 20_000, 1);
    let mean = mean_return(&policy, &mut episodes_of(8, None, make), 64, 99);
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
    assert_eq!(probe(ActionReward::default).1, 1.0);
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
fn choices_and_numbers_are_learned_together() {
    let (policy, mean) = probe(HybridIdentity::default);
    assert!(mean > 0.95, "{mean}");
    let (_, mean) = probe_with(quick_a2c(), HybridIdentity::default);
    assert!(mean > 0.9, "{mean}");
    // Sampled numbers are within their bounds, in the form of environments.
    let obs = episodes_of(64, None, HybridIdentity::default).reset(5).expect("the environments start");
    let noise = brasa::nn::draw_noise(policy.noise(), 64, &mut named_rng(0, "test", 0), &device());
    let (action, _) = policy.act(obs, Explore::Sample(noise));
    let rows = brasa::contracts::read_back(policy.to_env(action));
    assert!(rows.chunks(2).all(|row| [0.0, 1.0].contains(&row[0]) && row[1].abs() <= 1.0), "{rows:?}");
}

#[test]
fn both_learn_with_products_in_16_bits() {
    for precision in low_precisions() {
        autocast(precision, || {
            for settings in [quick(), quick_a2c()] {
                let (_, mean) = probe_with(settings, || DiscreteIdentity::new(3));
                assert!(mean > 0.99, "{precision}: {mean}");
            }
            let (_, mean) = probe(ContinuousIdentity::default);
            assert!(mean > -0.02, "{precision}: {mean}");
        });
    }
}

#[test]
fn squashed_and_dependent_spreads_learn_too() {
    for (squash, std) in [
        (true, StdKind::Independent),
        (false, StdKind::Dependent),
        (true, StdKind::Dependent),
        (false, StdKind::StateDependent),
    ] {
        let (network, ppo) = quick();
        let network = ActorCriticConfig { squash, std, ..network };
        let (_, mean) = probe_with((network, ppo), ContinuousIdentity::default);
        assert!(mean > -0.05, "squash {squash}, {std:?}: {mean}");
    }
}

#[test]
fn layers_may_be_shared() {
    let (network, ppo) = quick();
    let network = ActorCriticConfig { shared_hidden: vec![16], actor_hidden: vec![], critic_hidden: vec![], ..network };
    assert!(probe_with((network, ppo), || DiscreteIdentity::new(3)).1 > 0.98);
}

#[test]
fn a2c_solves_the_probes_too() {
    let (policy, _) = probe_with(quick_a2c(), ObservationReward::default);
    for obs in [-1.0, 1.0] {
        assert!((value_at(&policy, obs) - obs).abs() < 0.1, "{}", value_at(&policy, obs));
    }
    let (policy, _) = probe_with(quick_a2c(), DelayedReward::default);
    assert!((value_at(&policy, 0.0) - 0.8).abs() < 0.05, "{}", value_at(&policy, 0.0));
    assert_eq!(probe_with(quick_a2c(), ActionReward::default).1, 1.0);
    assert!(probe_with(quick_a2c(), || DiscreteIdentity::new(3)).1 > 0.99);
    let (_, mean) = probe_with(quick_a2c(), || MaskedIdentity::new(3));
    assert!(mean > 0.99 && mean <= 1.0, "{mean}");
    let (_, mean) = probe_with(quick_a2c(), ContinuousIdentity::default);
    assert!(mean > -0.05, "{mean}");
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
    let (obs_space, action_space) = (env.spec().obs.clone(), env.spec().action.clone());
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

    // The same in the whole loop: the ratio is 1 before the first gradient step.
    let ppo = Ppo::new(network, config, 0).expect("the config is valid");
    let mut training = OnPolicy::new(env, ppo, Run { total_env_steps: 256, seed: 0 }).expect("the environments start");
    let iteration = training.iterate().expect("training goes on");
    assert_eq!(iteration.metric("train/clip_fraction"), Some(0.0));
    assert!(iteration.metric("train/approx_kl").expect("it is logged").abs() < 1e-7);
}

#[test]
fn ppo_balances_the_pole() {
    if !slow("PPO on CartPole-v1, 100k steps, 5 seeds") {
        return;
    }
    let make = |n| episodes_of(n, Some(CartPole::TIME_LIMIT), CartPole::default);
    // The settings of long runs are RL Zoo's.
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
    let returns = seeds(|seed| {
        let algorithm = Algorithm::Ppo(config.clone());
        let (policy, _) = train(make(8), &ActorCriticConfig::default(), algorithm, 100_000, seed);
        mean_return(&policy, &mut make(50), 50, 1000 + seed)
    });
    assert!(over_seeds("PPO on CartPole-v1", &returns) >= 475.0);
}

#[test]
fn ppo_swings_the_pendulum_up() {
    if !slow("PPO on Pendulum-v1, 100k steps, 5 seeds") {
        return;
    }
    let make = |n| episodes_of(n, Some(Pendulum::TIME_LIMIT), Pendulum::default);
    let network =
        ActorCriticConfig { std: StdKind::StateDependent, sde_sample_freq: Some(4), ..ActorCriticConfig::default() };
    let config = PpoConfig {
        n_steps: 1024,
        n_epochs: 10,
        gamma: 0.9,
        gae_lambda: 0.95,
        learning_rate: Schedule::Constant(1e-3),
        ..PpoConfig::default()
    };
    let returns = seeds(|seed| {
        let (policy, _) = train(make(4), &network, Algorithm::Ppo(config.clone()), 100_000, seed);
        mean_return(&policy, &mut make(50), 50, 1000 + seed)
    });
    assert!(over_seeds("PPO on Pendulum-v1", &returns) >= -200.0);
}

#[test]
fn ppo_swings_the_acrobot_up() {
    if !slow("PPO on Acrobot-v1, 1M steps, 5 seeds") {
        return;
    }
    let config = PpoConfig { n_steps: 256, n_epochs: 4, gamma: 0.99, gae_lambda: 0.94, ..PpoConfig::default() };
    let returns = seeds(|seed| {
        let env = normalized(16, Acrobot::TIME_LIMIT, config.gamma, Acrobot::default);
        let algorithm = Algorithm::Ppo(config.clone());
        let (policy, trained_in) = train(env, &ActorCriticConfig::default(), algorithm, 1_000_000, seed);
        let mut env = frozen(50, Acrobot::TIME_LIMIT, &trained_in, Acrobot::default);
        mean_return(&policy, &mut env, 50, 1000 + seed)
    });
    assert!(over_seeds("PPO on Acrobot-v1", &returns) >= -91.7);
}

#[test]
fn a2c_balances_the_pole() {
    if !slow("A2C on CartPole-v1, 500k steps, 5 seeds") {
        return;
    }
    let make = |n| episodes_of(n, Some(CartPole::TIME_LIMIT), CartPole::default);
    let returns = seeds(|seed| {
        let algorithm = Algorithm::A2c(A2cConfig::default());
        let (policy, _) = train(make(8), &ActorCriticConfig::default(), algorithm, 500_000, seed);
        mean_return(&policy, &mut make(50), 50, 1000 + seed)
    });
    assert!(over_seeds("A2C on CartPole-v1", &returns) >= 475.0);
}

#[test]
fn a2c_swings_the_pendulum_up() {
    if !slow("A2C on Pendulum-v1, 1M steps, 5 seeds") {
        return;
    }
    let network = ActorCriticConfig {
        std: StdKind::StateDependent,
        log_std_init: -2.0,
        orthogonal: false,
        ..ActorCriticConfig::default()
    };
    let config = A2cConfig {
        n_steps: 8,
        gamma: 0.9,
        gae_lambda: 0.9,
        vf_coef: 0.4,
        learning_rate: Schedule::linear(7e-4, 0.0),
        ..A2cConfig::default()
    };
    let returns = seeds(|seed| {
        let env = normalized(8, Pendulum::TIME_LIMIT, config.gamma, Pendulum::default);
        let (policy, trained_in) = train(env, &network, Algorithm::A2c(config.clone()), 1_000_000, seed);
        let mut env = frozen(50, Pendulum::TIME_LIMIT, &trained_in, Pendulum::default);
        mean_return(&policy, &mut env, 50, 1000 + seed)
    });
    assert!(over_seeds("A2C on Pendulum-v1", &returns) >= -266.2);
}
