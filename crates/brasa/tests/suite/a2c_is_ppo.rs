//! A2C is PPO with one epoch, one minibatch, no clipping and the same optimizer (Huang et al. 2022, arXiv 2205.09123).
#![allow(clippy::expect_used)]

use brasa::a2c::{A2c, A2cConfig};
use brasa::classic::CartPole;
use brasa::contracts::{HostEnv, OnPolicyLearner, Schedule};
use brasa::env::wrappers::{EpisodeStats, TimeLimit};
use brasa::env::{EnvVec, named_rng};
use brasa::nn::{ActorCriticConfig, AdamConfig, MlpActorCritic, Persist};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::train::{OnPolicy, Run, Training};
use brasa_test::device;

#[test]
fn both_learn_the_same_weights() {
    let device = device();
    let (n_envs, n_steps, gamma, gae_lambda) = (4, 8, 0.97, 0.9);
    let env = || {
        let envs = EnvVec::new(0..n_envs, |_| CartPole::default()).expect("there is at least one");
        let limited = TimeLimit::new(envs, CartPole::TIME_LIMIT).expect("the limit is above 0");
        HostEnv::new(EpisodeStats::new(limited), &device)
    };
    let network = {
        let env = env();
        let (rng, autodiff) = (&mut named_rng(3, "weights", 0), device.clone().autodiff());
        MlpActorCritic::new(&ActorCriticConfig::default(), &env.spec().obs, &env.spec().action, &autodiff, rng)
            .expect("the config is valid")
    };
    let adam = AdamConfig::default();
    let learning_rate = Schedule::Constant(3e-3);
    let a2c = A2cConfig {
        n_steps,
        gamma,
        gae_lambda,
        learning_rate,
        ent_coef: 0.01,
        optimizer: adam.into(),
        ..A2cConfig::default()
    };
    let ppo = PpoConfig {
        n_steps,
        batch_size: n_steps * n_envs,
        n_epochs: 1,
        gamma,
        gae_lambda,
        learning_rate,
        ent_coef: 0.01,
        normalize_advantage: false,
        adam,
        // Before the first gradient step every ratio is 1, so no clip range has an effect.
        clip_range: Schedule::Constant(1e-3),
        ..PpoConfig::default()
    };
    fn train<L>(learner: L, env: Env) -> Vec<f32>
    where
        L: OnPolicyLearner<
                Batch = brasa::buffers::Rollout<brasa::contracts::Obs, burn::tensor::Tensor<2>>,
                Policy = MlpActorCritic,
            > + Persist,
    {
        let run = Run { total_env_steps: 1000, seed: 3 };
        let mut training = OnPolicy::new(env, learner, run).expect("the environments start");
        while !training.is_done() {
            training.iterate().expect("training goes on");
        }
        training.learner().save().policy.into_values().flat_map(|(_, values)| values).collect()
    }
    let first = train(A2c::new(network.clone(), a2c, 3).expect("valid"), env());
    let second = train(Ppo::new(network, ppo, 3).expect("valid"), env());
    assert_eq!(first.len(), second.len());
    for (a2c, ppo) in first.iter().zip(&second) {
        assert!((a2c - ppo).abs() < 1e-5, "{a2c} and {ppo}");
    }
}

type Env = HostEnv<EpisodeStats<TimeLimit<EnvVec<CartPole>>>>;
