//! Checkpoints on a disk, and decisions of an exported policy.

use std::hint::black_box;

use brasa::contracts::{Explore, Obs, Policy};
use brasa::env::{EnvSpec, Space, named_rng};
use brasa::experiment::LoadedPolicy;
use brasa::nn::{ActorCriticConfig, MlpActorCritic};
use brasa::ppo::Ppo;
use brasa::train::{Checkpoint, Checkpoints, OnPolicy, Training};
use brasa_bench_kit::{bench, settings};
use brasa_benches::{ENDLESS, allocator, cart_pole_config, cart_poles, place};
use brasa_export::ExportedPolicy;
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

allocator!();

fn network(hidden: usize, obs: usize, action: &Space, device: &Device) -> MlpActorCritic {
    let config = ActorCriticConfig {
        actor_hidden: vec![hidden; 2],
        critic_hidden: vec![hidden; 2],
        ..ActorCriticConfig::default()
    };
    let obs = Space::uniform_box(-1.0, 1.0, (0..obs).map(|i| i.to_string()));
    let (autodiff, rng) = (device.clone().autodiff(), &mut named_rng(0, "weights", 0));
    MlpActorCritic::new(&config, &obs, action, &autodiff, rng).expect("the settings are valid")
}

/// A checkpoint of PPO after an iteration, and one that was written and read.
fn checkpoint(hidden: usize, device: &Device, store: &Checkpoints) -> Checkpoint {
    let ppo = Ppo::new(network(hidden, 4, &Space::Discrete(2), device), cart_pole_config(), 0).expect("valid");
    let mut training = OnPolicy::new(cart_poles(8, device), ppo, ENDLESS).expect("valid");
    training.iterate().expect("an iteration succeeds");
    let checkpoint = training.checkpoint();
    store.save(&checkpoint).expect("it can be written");
    assert!(store.latest().expect("it can be read").1 == checkpoint, "a checkpoint is read as it was written");
    checkpoint
}

fn checkpoints(criterion: &mut Criterion) {
    let place = place();
    let dir = tempfile::tempdir().expect("there is a place for temporary files");
    for hidden in [64, 512] {
        let store = Checkpoints::new(dir.path().join(hidden.to_string()), 1);
        let size = format!("{hidden}-wide");
        let mut saved = None;
        bench(criterion, "checkpoint/write", &size, &place.name, Throughput::Elements(1), |bencher| {
            let checkpoint = saved.get_or_insert_with(|| checkpoint(hidden, &place.device, &store));
            bencher.iter(|| store.replace(checkpoint).expect("it can be written"));
        });
        let mut written = None;
        bench(criterion, "checkpoint/read", &size, &place.name, Throughput::Elements(1), |bencher| {
            written.get_or_insert_with(|| checkpoint(hidden, &place.device, &store));
            bencher.iter(|| black_box(store.latest().expect("it can be read")));
        });
    }
}

fn exported(criterion: &mut Criterion) {
    let place = place();
    const WIDTH: usize = 17;
    let action = Space::uniform_box(-1.0, 1.0, (0..6).map(|i| i.to_string()));
    for n_rows in [1, 64] {
        let obs: Vec<f32> = (0..n_rows * WIDTH).map(|i| (i as f32 * 0.37).sin()).collect();
        let make = || -> (MlpActorCritic, ExportedPolicy, Obs) {
            let network = network(64, WIDTH, &action, &place.device).valid();
            let policy = network.exported().expect("MLPs have this form");
            let tensor = Tensor::from_data(TensorData::new(obs.clone(), [n_rows, WIDTH]), &place.device);
            (network, policy, Obs::new(tensor))
        };
        let (size, throughput) = (format!("{n_rows}-rows"), || Throughput::Elements(n_rows as u64));
        let mut made = None;
        bench(criterion, "exported-policy/act", &size, "cpu", throughput(), |bencher| {
            let (_, policy, _) = made.get_or_insert_with(|| {
                let (network, policy, seen) = make();
                let action = network.to_env(network.act(seen.clone(), Explore::Greedy).0);
                let tensors = action.into_data();
                let close = |(a, b): (f32, f32)| (a - b).abs() < 1e-4;
                assert!(tensors.iter::<f32>().zip(policy.act(&obs, None)).all(close), "both forms act alike");
                (network, policy, seen)
            });
            bencher.iter(|| black_box(policy.act(&obs, None)));
        });
        let mut made = None;
        bench(criterion, "exported-policy/act-with-burn", &size, &place.name, throughput(), |bencher| {
            let (network, _, seen) = made.get_or_insert_with(make);
            bencher.iter(|| {
                let action = network.to_env(network.act(seen.clone(), Explore::Greedy).0);
                place.sync();
                black_box(action)
            });
        });
    }
    // What a server pays for one environment: checks, the network, and the two ways between numbers and tensors.
    let mut made = None;
    bench(criterion, "loaded-policy/act-one", "1-rows", &place.name, Throughput::Elements(1), |bencher| {
        let (policy, obs) = made.get_or_insert_with(|| {
            let obs = Space::uniform_box(-1.0, 1.0, (0..WIDTH).map(|i| i.to_string()));
            let spec = EnvSpec::new(obs, action.clone(), 1);
            let network = network(64, WIDTH, &action, &place.device).valid();
            let policy = LoadedPolicy::new(network, &spec, None, &place.device, |policy, _| Ok(policy.clone()));
            (policy, (0..WIDTH).map(|i| (i as f32 * 0.37).sin()).collect::<Vec<f32>>())
        });
        bencher.iter(|| black_box(policy.act_one(obs, None).expect("it fits")));
    });
}

criterion_group! { name = benches; config = settings(); targets = checkpoints, exported }
criterion_main!(benches);
