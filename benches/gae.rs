//! Advantage estimation relative to a plain copy of its five inputs; the target is at most twice the time.

use std::hint::black_box;

use brasa::buffers::{GaeInput, gae, gae_on_host};
use brasa::env::named_rng;
use brasa_benches::{device, sync};
use burn::tensor::{Tensor, TensorData};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rand::RngExt;

const GAMMA: f64 = 0.99;
const LAMBDA: f64 = 0.95;

/// Rewards and values of a synthetic rollout; an episode has about 100 steps, every fourth end is a time limit.
fn rollout(n: usize) -> GaeInput<Vec<f32>> {
    let mut rng = named_rng(0, "bench", 0);
    let mut values = || (0..n).map(|_| rng.random::<f32>()).collect::<Vec<_>>();
    let (reward, value, next_value, ends) = (values(), values(), values(), values());
    let terminated = ends.iter().map(|x| f32::from(u8::from(*x < 0.0075))).collect();
    let episode_end = ends.iter().map(|x| f32::from(u8::from(*x < 0.01))).collect();
    GaeInput { reward, value, next_value, terminated, episode_end, discount: None }
}

fn parts(input: &GaeInput<Vec<f32>>) -> [&[f32]; 5] {
    [&input.reward, &input.value, &input.next_value, &input.terminated, &input.episode_end]
}

fn bench(criterion: &mut Criterion) {
    let (device, device_name) = device();
    for (n_steps, n_rows) in [(256, 8), (8192, 128)] {
        let n = n_steps * n_rows;
        let input = rollout(n);
        let mut group = criterion.benchmark_group(format!("gae/{n_steps}x{n_rows}"));
        group.throughput(Throughput::Elements(n as u64));

        let mut copies = [(); 5].map(|()| vec![0.0f32; n]);
        group.bench_function(BenchmarkId::new("copy of the inputs", "host"), |bencher| {
            bencher.iter(|| {
                for (copy, part) in copies.iter_mut().zip(parts(&input)) {
                    copy.copy_from_slice(black_box(part));
                }
                black_box(&mut copies);
            });
        });

        let mut advantage = vec![0.0; n];
        let [reward, value, next_value, terminated, episode_end] = parts(&input);
        let slices = GaeInput { reward, value, next_value, terminated, episode_end, discount: None };
        group.bench_function(BenchmarkId::new("gae_on_host", "host"), |bencher| {
            bencher.iter(|| {
                gae_on_host(black_box(&slices), n_rows, GAMMA as f32, LAMBDA as f32, &mut advantage);
                black_box(&mut advantage);
            });
        });

        let tensor = |part: &[f32]| Tensor::<2>::from_data(TensorData::new(part.to_vec(), [n_steps, n_rows]), &device);
        let owned = || GaeInput {
            reward: tensor(reward),
            value: tensor(value),
            next_value: tensor(next_value),
            terminated: tensor(terminated),
            episode_end: tensor(episode_end),
            discount: None,
        };
        let tensors = owned();
        sync(&device);
        // A tensor with other owners is copied by the scan on the host; a rollout has tensors of both kinds.
        group.bench_function(BenchmarkId::new("gae of shared tensors", &device_name), |bencher| {
            bencher.iter(|| {
                let advantage = gae(tensors.clone(), GAMMA, LAMBDA);
                sync(&device);
                black_box(advantage)
            });
        });
        group.bench_function(BenchmarkId::new("gae of owned tensors", &device_name), |bencher| {
            let run = |tensors| {
                let advantage = gae(tensors, GAMMA, LAMBDA);
                sync(&device);
                advantage
            };
            bencher.iter_batched(owned, run, BatchSize::PerIteration);
        });
        group.finish();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
