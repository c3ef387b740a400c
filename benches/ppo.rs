//! PPO on CartPole in parts: one decision for eight environments, the same with the environment step, and one update.

use std::hint::black_box;

use brasa::buffers::{Rollout, RolloutBuffer};
use brasa::core::{ActorCritic, Explore, Learner, Obs, Policy, Progress, VecEnv};
use brasa::env::named_rng;
use brasa::nn::{ActorCriticConfig, MlpActorCritic, draw_noise};
use brasa::ppo::Ppo;
use brasa_benches::{CartPoles, cart_pole_config, cart_poles, device, sync};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const N_ENVS: usize = 8;

fn network(env: &CartPoles, device: &Device) -> MlpActorCritic {
    let rng = &mut named_rng(0, "weights", 0);
    let autodiff = device.clone().autodiff();
    MlpActorCritic::new(&ActorCriticConfig::default(), &env.spec().obs, &env.spec().action, &autodiff, rng)
        .expect("the default is valid")
}

/// Collects a rollout.
fn collect(env: &mut CartPoles, policy: &MlpActorCritic, device: &Device) -> Rollout<Obs, Tensor<2>> {
    let config = cart_pole_config();
    let mut obs = env.reset(0).expect("the environments start");
    let (action, _) = policy.act(obs.clone(), Explore::Greedy);
    let mut buffer = RolloutBuffer::new(config.n_steps, env.spec(), &obs, &action, device);
    let mut rng = named_rng(0, "noise", 0);
    while !buffer.is_full() {
        let noise = draw_noise(policy.noise(), N_ENVS, &mut rng, device);
        let (action, decision) = policy.act(obs.clone(), Explore::Sample(noise));
        let step = env.step(policy.to_env(action.clone())).expect("the environments step");
        let before = std::mem::replace(&mut obs, step.obs.clone());
        buffer.push(before, action, decision, &step);
    }
    buffer
        .finish(policy.value(obs), |obs| policy.value(obs), config.gamma, config.gae_lambda)
        .expect("their specification is right")
}

fn bench(criterion: &mut Criterion) {
    let (device, device_name) = device();
    let mut env = cart_poles(N_ENVS, &device);
    let network = network(&env, &device);
    let policy = network.valid();
    let noise = draw_noise(policy.noise(), N_ENVS, &mut named_rng(0, "noise", 1), &device);

    let mut group = criterion.benchmark_group("ppo/cart-pole");
    let mut obs = env.reset(0).expect("the environments start");
    group.throughput(Throughput::Elements(N_ENVS as u64));
    group.bench_function(BenchmarkId::new("act/8-envs", &device_name), |bencher| {
        bencher.iter(|| {
            let decided = policy.act(obs.clone(), Explore::Sample(noise.clone()));
            sync(&device);
            black_box(decided)
        });
    });
    group.bench_function(BenchmarkId::new("act-and-step/8-envs", &device_name), |bencher| {
        bencher.iter(|| {
            let (action, decision) = policy.act(obs.clone(), Explore::Sample(noise.clone()));
            obs = env.step(policy.to_env(action)).expect("the environments step").obs;
            sync(&device);
            black_box(decision)
        });
    });

    // Twenty epochs on one minibatch of all 256 rows. The weights change from iteration to iteration.
    let config = cart_pole_config();
    let rollout = collect(&mut env, &policy, &device);
    let n_rows = rollout.n_rows();
    assert_eq!(n_rows, 256);
    let gradient_steps = config.n_epochs * n_rows / config.batch_size;
    let mut ppo = Ppo::new(network, config, 0).expect("the settings are valid");
    group.throughput(Throughput::Elements(gradient_steps as u64));
    group.bench_function(BenchmarkId::new("update/256-rows", &device_name), |bencher| {
        let progress = Progress::new(50_000, 100_000);
        bencher.iter(|| {
            let metrics = ppo.update(rollout.clone(), progress);
            sync(&device);
            black_box(metrics.read().expect("every figure is finite"))
        });
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
