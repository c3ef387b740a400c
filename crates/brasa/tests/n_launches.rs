//! Kernels that a gradient step, a step of environments and a step of a replaying loop launch on a GPU: what the time of small networks and rules depends on there.
//!
//! On the CPU, nothing is launched. There, the test compares what plans assume ([`brasa::device::count_launches`]) with the recorded numbers.
//!
//! One test, because the counter sees every thread of the process.
#![allow(clippy::expect_used)]

use std::alloc::System;

use brasa::buffers::{ReplayConfig, Rollout, Transitions};
use brasa::citylearn::{CityLearn, CityLearnConfig};
use brasa::classic::tensor::{TensorCartPole, TensorPendulum};
use brasa::contracts::{Learner, Obs, Progress, TeamObs, TensorDynamics, TensorEnv, VecEnv};
use brasa::device::{Meter, measure, runs_on_host};
use brasa::dqn::{Dqn, DqnConfig};
use brasa::energy::iquitos::{Iquitos, IquitosConfig};
use brasa::env::{Space, named_rng};
use brasa::nn::{
    ActorCriticConfig, MlpActorCritic, MlpCritics, MlpCriticsConfig, QNetwork, QNetworkConfig, SquashedActor,
    SquashedActorConfig, TeamQNetwork, TeamQNetworkConfig,
};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::sac::{Sac, SacConfig};
use brasa::train::{OffPolicy, OffPolicyConfig, Run, Training};
use brasa::uara::{Uara, UaraConfig};
use brasa_kernels::launches_by_kernel;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::RngExt;

#[global_allocator]
static ALLOCATOR: Meter<System> = Meter(System);

const ROWS: usize = 32;

/// Launches per gradient step and per step of environments, recorded on `wgpu` with a software driver.
const RECORDED: [(&str, usize); 9] = [
    ("PPO", 27),
    ("SAC", 55),
    ("DQN", 19),
    ("cart-pole", 5),
    ("pendulum", 4),
    ("district", 13),
    ("microgrid", 28),
    ("network of users", 22),
    ("network of walking users", 30),
];

/// Launches per step of a replaying loop without updates: acting, environment and storing.
const RECORDED_IN_LOOPS: [(&str, usize); 3] = [("SAC", 11), ("DQN", 17), ("team of DQN", 34)];

/// Launches of `work` on a GPU, those of a plan on the CPU.
fn launches(device: &Device, work: impl FnOnce()) -> usize {
    match runs_on_host(device) {
        true => measure(work).1.expect("the allocator is installed").launches as usize,
        false => {
            let kernels = launches_by_kernel(work);
            println!("{kernels:?}");
            kernels.values().sum()
        }
    }
}

fn tensor<const D: usize>(shape: [usize; D], stream: u64, device: &Device) -> Tensor<D> {
    let mut rng = named_rng(0, "data", stream);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| rng.random_range(-1.0..1.0)).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn space(width: usize) -> Space {
    Space::uniform_box(-1.0, 1.0, (0..width).map(|i| i.to_string()))
}

/// A second minibatch of the same update.
fn ppo(device: &Device) -> usize {
    let config = ActorCriticConfig::default();
    let rng = &mut named_rng(0, "weights", 0);
    let network = MlpActorCritic::new(&config, &space(4), &Space::Discrete(2), &device.clone().autodiff(), rng);
    let config = PpoConfig { batch_size: ROWS, n_epochs: 1, target_kl: None, ..PpoConfig::default() };
    let mut ppo = Ppo::new(network.expect("valid"), config, 0).expect("valid");
    let mut update = |n_batches: usize| {
        let n = ROWS * n_batches;
        let rollout = Rollout {
            obs: Obs::new(tensor([n, 4], 1, device)),
            action: Tensor::zeros([n, 1], device),
            log_prob: tensor([n], 3, device),
            value: tensor([n], 6, device),
            advantage: tensor([n], 4, device),
            returns: tensor([n], 5, device),
            remembered: None,
        };
        launches(device, || drop(ppo.update(rollout, Progress::new(0, 1))))
    };
    update(1);
    let one = update(1);
    update(2) - one
}

fn batch(device: &Device, n_actions: usize) -> Transitions<Obs, Tensor<2>> {
    Transitions {
        obs: Obs::new(tensor([ROWS, 3], 1, device)),
        action: tensor([ROWS, n_actions], 2, device),
        reward: tensor([ROWS], 3, device),
        next_obs: Obs::new(tensor([ROWS, 3], 4, device)),
        discount: Tensor::full([ROWS], 0.99, device),
        weight: None,
        sequences: None,
        rows: Tensor::<1, Int>::arange(0..ROWS as i64, device),
    }
}

/// The second update, when the optimizers have their moments.
fn second<L: Learner<Batch = Transitions<Obs, Tensor<2>>>>(
    mut learner: L,
    batch: Transitions<Obs, Tensor<2>>,
    device: &Device,
) -> usize {
    drop(learner.update(batch.clone(), Progress::new(0, 1)));
    launches(device, || drop(learner.update(batch, Progress::new(0, 1))))
}

fn sac(device: &Device) -> usize {
    let (autodiff, rng) = (device.clone().autodiff(), &mut named_rng(0, "weights", 0));
    let actor = SquashedActor::new(&SquashedActorConfig::default(), &space(3), &space(1), &autodiff, rng);
    let critics = MlpCritics::new(&MlpCriticsConfig::default(), &space(3), &space(1), &autodiff, rng);
    let sac = Sac::new(actor.expect("valid"), critics.expect("valid"), SacConfig::default(), 0);
    second(sac.expect("valid"), batch(device, 1), device)
}

fn dqn(device: &Device) -> usize {
    let (autodiff, rng) = (device.clone().autodiff(), &mut named_rng(0, "weights", 0));
    let network = QNetwork::new(&QNetworkConfig::default(), &space(3), &Space::Discrete(3), &autodiff, rng);
    let dqn = Dqn::new(network.expect("valid"), DqnConfig::default()).expect("valid");
    second(dqn, Transitions { action: Tensor::zeros([ROWS, 1], device), ..batch(device, 1) }, device)
}

/// A vectorized step without an upload of noise, in which no episode ends.
fn env_step<D: TensorDynamics>((dynamics, time_limit): (D, u32), device: &Device) -> usize {
    let env: TensorEnv<D> = TensorEnv::new(dynamics, 8, device).expect("valid");
    let mut env = env.with_time_limit(time_limit).expect("above 0");
    env.reset(0).expect("it starts");
    let action = Tensor::zeros([env.n_rows(), env.spec().action.width()], device);
    let mut step = || drop(env.step(action.clone()).expect("it steps"));
    step();
    launches(device, step)
}

fn env_steps(device: &Device) -> [usize; 6] {
    let district = CityLearn::new(CityLearnConfig::default()).expect("valid").tensors(device).expect("valid");
    let microgrid = Iquitos::new(IquitosConfig::default()).expect("valid").tensors(device).expect("valid");
    let network = |config: UaraConfig| Uara::new(config).expect("valid").tensors(device).expect("valid");
    [
        env_step((TensorCartPole::default(), 500), device),
        env_step((TensorPendulum::default(), 200), device),
        env_step(district, device),
        env_step(microgrid, device),
        env_step(network(UaraConfig::cly2020()), device),
        env_step(network(UaraConfig::physical()), device),
    ]
}

/// Of one environment on the device.
fn loop_steps(device: &Device) -> [usize; 3] {
    let (autodiff, run) = (device.clone().autodiff(), Run { total_env_steps: 1000, seed: 0 });
    let replay = ReplayConfig { capacity: 30_000, ..ReplayConfig::default() };
    let config = OffPolicyConfig {
        learning_starts: 20,
        updates_per_step: 0.0,
        log_interval: 100,
        replay,
        ..OffPolicyConfig::default()
    };
    fn steps(mut training: impl Training, device: &Device) -> usize {
        let mut hundred = || drop(training.iterate().expect("it trains"));
        hundred();
        launches(device, hundred) / 100
    }
    let rng = &mut named_rng(0, "weights", 0);
    let env: TensorEnv<_> = TensorEnv::new(TensorPendulum::default(), 1, device).expect("valid");
    let env = env.with_time_limit(200).expect("above 0");
    let [obs, action] = [&env.spec().obs, &env.spec().action];
    let actor = SquashedActor::new(&SquashedActorConfig::default(), obs, action, &autodiff, rng).expect("valid");
    let critics = MlpCritics::new(&MlpCriticsConfig::default(), obs, action, &autodiff, rng).expect("valid");
    let sac = Sac::new(actor, critics, SacConfig::default(), 0).expect("valid");
    let sac = steps(OffPolicy::new(env, sac, config.clone(), run).expect("valid"), device);

    let env: TensorEnv<_> = TensorEnv::new(TensorCartPole::default(), 1, device).expect("valid");
    let env = env.with_time_limit(500).expect("above 0");
    let [obs, action] = [&env.spec().obs, &env.spec().action];
    let network = QNetwork::new(&QNetworkConfig::default(), obs, action, &autodiff, rng).expect("valid");
    let dqn = Dqn::new(network, DqnConfig::default()).expect("valid");
    let dqn = steps(OffPolicy::new(env, dqn, config.clone(), run).expect("valid"), device);

    let (dynamics, time_limit) = Uara::new(UaraConfig::cly2020()).expect("valid").tensors(device).expect("valid");
    let env: TensorEnv<_, TeamObs> = TensorEnv::in_form(dynamics, 1, device).expect("valid");
    let env = env.with_time_limit(time_limit).expect("above 0");
    let [obs, action] = [&env.spec().obs, &env.spec().action];
    let network = TeamQNetworkConfig::default();
    let network = TeamQNetwork::new(&network, env.spec().n_agents, obs, action, &autodiff, rng).expect("valid");
    let team = Dqn::new(network, DqnConfig::default()).expect("valid");
    [sac, dqn, steps(OffPolicy::new(env, team, config, run).expect("valid"), device)]
}

#[test]
fn training_launches_few_kernels() {
    let device = brasa_test::device();
    let on_host = runs_on_host(&device);
    let counts = [ppo(&device), sac(&device), dqn(&device)].into_iter().chain(env_steps(&device));
    for (i, ((name, recorded), launches)) in RECORDED.into_iter().zip(counts).enumerate() {
        let of = if i < 3 { "gradient step" } else { "step of environments" };
        if on_host {
            println!("{name}: {launches} of {recorded} launches per {of} are in a plan");
            // A plan is a lower bound, and does without Burn's operations.
            let least = recorded / 3;
            assert!((least..=recorded).contains(&launches), "{name}: {launches} of {recorded} launches in a plan");
            continue;
        }
        println!("{name}: {launches} launches per {of}");
        // A tenth more, as sums over rows differ between backends.
        let most = recorded + recorded.div_ceil(10);
        assert!(launches <= most, "{name}: {launches} launches instead of {most}");
    }
    // Acting and storing are mostly operations of Burn, which a plan does without.
    if on_host {
        return;
    }
    for ((name, recorded), launches) in RECORDED_IN_LOOPS.into_iter().zip(loop_steps(&device)) {
        println!("{name}: {launches} launches per step of a loop");
        let most = recorded + recorded.div_ceil(10);
        assert!(launches <= most, "{name}: {launches} launches instead of {most}");
    }
}
