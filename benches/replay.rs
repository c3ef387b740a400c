//! ReplayBuffer: time of storing a step and of sampling a batch, relative to a plain copy of the same rows; and memory.

use std::hint::black_box;

use brasa::buffers::{Precision, PrioritizedConfig, ReplayBuffer, ReplayConfig};
use brasa::core::{Obs, StepBatch, Successor};
use brasa::env::{EnvSpec, Space, named_rng};
use brasa_benches::{device, sync};
use burn::tensor::{Device, Tensor};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rand::RngExt;

const GAMMA: f64 = 0.99;
/// Observations and actions of HalfCheetah.
const OBS: usize = 17;
const ACTION: usize = 6;
const BATCH: usize = 256;
/// Steps of an episode.
const EPISODE: usize = 200;
const MILLION: usize = 1_000_000;

fn rows(n: usize, width: usize, device: &Device) -> Tensor<2> {
    Tensor::ones([n, width], device)
}

/// A step at which no episode or all episodes ended.
fn step(n: usize, end: bool, device: &Device) -> StepBatch<Obs> {
    let obs = || Obs::new(rows(n, OBS, device));
    StepBatch {
        obs: obs(),
        successor: if end { Successor::Rows(obs()) } else { Successor::Same },
        reward: Tensor::ones([n], device),
        terminated: Tensor::zeros([n], device),
        truncated: Tensor::full([n], f32::from(end), device),
        elapsed: None,
    }
}

/// Environments with a limit of [`EPISODE`] steps.
fn spec(n: usize) -> EnvSpec {
    let space = || Space::uniform_box(-1.0, 1.0, ["x"]);
    EnvSpec { truncation_interval: EPISODE as u64, ..EnvSpec::new(space(), space(), n) }
}

/// A full buffer for `n` rows per step.
fn full(config: &ReplayConfig, n: usize, device: &Device) -> ReplayBuffer<Obs, Tensor<2>> {
    let action = rows(n, ACTION, device);
    let (inside, end) = (step(n, false, device), step(n, true, device));
    let mut replay =
        ReplayBuffer::new(config, &inside.obs, &action, GAMMA, &spec(n), device).expect("the settings are sound");
    replay.begin(inside.obs.clone());
    for i in 0..config.capacity / n {
        replay.push(action.clone(), if i % EPISODE == EPISODE - 1 { &end } else { &inside }).expect("it fits");
    }
    sync(device);
    replay
}

fn push(criterion: &mut Criterion) {
    let (device, device_name) = device();
    let mut group = criterion.benchmark_group("replay/push one row");
    for (name, prioritized) in [("uniform", None), ("prioritized", Some(PrioritizedConfig::default()))] {
        for capacity in [10_000, MILLION] {
            let config = ReplayConfig { capacity, prioritized: prioritized.clone(), ..ReplayConfig::default() };
            let mut replay = full(&config, 1, &device);
            let (action, inside) = (rows(1, ACTION, &device), step(1, false, &device));
            group.bench_function(BenchmarkId::new(format!("{name}, capacity {capacity}"), &device_name), |bencher| {
                bencher.iter(|| {
                    replay.push(action.clone(), &inside).expect("it fits");
                    sync(&device);
                });
            });
        }
    }
    group.finish();
}

fn sample(criterion: &mut Criterion) {
    let (device, device_name) = device();
    let mut group = criterion.benchmark_group(format!("replay/{BATCH} rows of {MILLION}"));

    let memory = vec![1.0f32; MILLION * (OBS + ACTION)];
    let mut copy = vec![0.0f32; BATCH * (2 * OBS + ACTION)];
    let mut rng = named_rng(0, "bench", 0);
    group.bench_function(BenchmarkId::new("copy of rows drawn evenly", "host"), |bencher| {
        bencher.iter(|| {
            for row in copy.chunks_exact_mut(2 * OBS + ACTION) {
                let at = rng.random_range(0..MILLION as u32 - 1) as usize * (OBS + ACTION);
                row.copy_from_slice(&memory[at..at + 2 * OBS + ACTION]);
            }
            black_box(&mut copy);
        });
    });
    drop(memory);

    let prioritized = Some(PrioritizedConfig::default());
    for (name, n_step, precision, prioritized) in [
        ("uniform", 1, Precision::F32, None),
        ("uniform, 3 steps", 3, Precision::F32, None),
        ("uniform, f16", 1, Precision::F16, None),
        ("prioritized", 1, Precision::F32, prioritized),
    ] {
        let config = ReplayConfig { capacity: MILLION, n_step, precision, prioritized, ..ReplayConfig::default() };
        let mut replay = full(&config, 16, &device);
        group.bench_function(BenchmarkId::new(format!("sample, {name}"), &device_name), |bencher| {
            bencher.iter(|| {
                let batch = replay.sample(BATCH, 0.4, &mut rng);
                sync(&device);
                black_box(batch)
            });
        });
        if config.prioritized.is_some() {
            let batch = replay.sample(BATCH, 0.4, &mut rng);
            group.bench_function(BenchmarkId::new("set_priorities", &device_name), |bencher| {
                bencher.iter(|| {
                    replay.set_priorities(&batch.rows, batch.reward.clone());
                    sync(&device);
                });
            });
        }
    }
    group.finish();
}

/// Prints the memory for 530 observations and 129 actions.
fn memory(_: &mut Criterion) {
    let (device, _) = device();
    let (obs, action) = (Obs::new(rows(1, 530, &device)), rows(1, 129, &device));
    let make = |capacity, precision| {
        let config = ReplayConfig { capacity, precision, ..ReplayConfig::default() };
        ReplayBuffer::new(&config, &obs, &action, GAMMA, &spec(1), &device).expect("the settings are sound")
    };
    let half = make(MILLION, Precision::F16);
    println!("replay/memory of 530 + 129 numbers: {} bytes per transition in f16,", half.bytes_per_transition());
    println!("{} in f32;", make(1000, Precision::F32).bytes_per_transition());
    println!("{MILLION} observations in f16: {:.3} GB", half.bytes() as f64 / 1e9);
}

criterion_group!(benches, memory, push, sample);
criterion_main!(benches);
