//! Critics learn large returns by their running moments.
#![allow(clippy::expect_used)]

use std::path::Path;

use brasa::a2c::{A2c, A2cConfig};
use brasa::buffers::Rollout;
use brasa::classic::Pendulum;
use brasa::contracts::{HostEnv, Obs, OnPolicyLearner, Schedule, ValueScale};
use brasa::env::wrappers::TimeLimit;
use brasa::env::{EnvSpec, EnvVec, named_rng};
use brasa::nn::{ActorCriticConfig, MlpActorCritic, Persist};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::train::{OnPolicy, Run, Training};
use burn::tensor::{Device, Tensor};

fn device() -> Device {
    brasa::device::open_named("cpu").expect("flex is a default feature")
}

type Pendulums = HostEnv<TimeLimit<EnvVec<Pendulum>>>;

fn pendulums() -> Pendulums {
    let envs = EnvVec::new(0..8, |_| Pendulum::default()).expect("there are some");
    HostEnv::new(TimeLimit::new(envs, 200).expect("above 0"), &device())
}

fn network(spec: &EnvSpec) -> MlpActorCritic {
    let config = ActorCriticConfig { actor_hidden: vec![32], critic_hidden: vec![32], ..Default::default() };
    let rng = &mut named_rng(0, "weights", 0);
    MlpActorCritic::new(&config, &spec.obs, &spec.action, &device().autodiff(), rng).expect("valid")
}

fn ppo(spec: &EnvSpec, normalize_value: bool) -> Ppo<MlpActorCritic> {
    let learning_rate = Schedule::Constant(1e-3);
    let config =
        PpoConfig { n_steps: 200, batch_size: 200, gamma: 0.95, normalize_value, learning_rate, ..Default::default() };
    Ppo::new(network(spec), config, 0).expect("valid")
}

fn a2c(spec: &EnvSpec, normalize_value: bool) -> A2c<MlpActorCritic> {
    let learning_rate = Schedule::Constant(3e-3);
    let config = A2cConfig { n_steps: 5, gamma: 0.95, normalize_value, learning_rate, ..Default::default() };
    A2c::new(network(spec), config, 0).expect("valid")
}

/// The explained variance of the last update, and the unit of values then.
fn train<L>(learner: impl Fn(&EnvSpec) -> L) -> (f64, ValueScale)
where
    L: OnPolicyLearner<Batch = Rollout<Obs, Tensor<2>>, Policy = MlpActorCritic> + Persist,
{
    let env = pendulums();
    let learner = learner(env.spec());
    let mut training = OnPolicy::new(env, learner, Run { total_env_steps: 25_600, seed: 0 }).expect("it starts");
    loop {
        let iteration = training.iterate().expect("it trains");
        if training.is_done() {
            let explained = iteration.metric("train/explained_variance").expect("it is a metric");
            return (explained, training.learner().value_scale());
        }
    }
}

#[test]
fn a_critic_learns_returns_far_from_0() {
    for (name, [plain, normal]) in [
        ("ppo", [false, true].map(|is_on| train(|spec| ppo(spec, is_on)))),
        ("a2c", [false, true].map(|is_on| train(|spec| a2c(spec, is_on)))),
    ] {
        assert_eq!(plain.1, ValueScale::default());
        // A step of Pendulum has a reward of -16 to 0, and the returns of a random policy are about -100.
        assert!(normal.1.mean < -20.0 && normal.1.deviation > 10.0, "{name}: {:?}", normal.1);
        assert!(normal.0 > 0.5 && normal.0 > plain.0 + 0.2, "{name}: {} instead of {}", normal.0, plain.0);
    }
}

#[test]
fn a_checkpoint_of_another_unit_is_an_error() {
    let start = |is_on: bool| {
        let env = pendulums();
        let learner = ppo(env.spec(), is_on);
        OnPolicy::new(env, learner, Run { total_env_steps: 3_200, seed: 0 }).expect("it starts")
    };
    for is_on in [false, true] {
        let mut first = start(is_on);
        first.iterate().expect("it trains");
        let saved = first.checkpoint();
        start(is_on).restore(&saved, Path::new("memory")).expect("it is the same run");
        let error = start(!is_on).restore(&saved, Path::new("memory")).expect_err("the unit differs");
        assert!(error.to_string().contains("`value_norm`"), "{error}");
    }
}
