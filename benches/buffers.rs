//! Advantage estimation relative to a copy of its inputs; storing and sampling transitions relative to a copy of rows, with and without
//! priorities.

use std::hint::black_box;

use brasa::buffers::{GaeInput, Precision, PrioritizedConfig, ReplayBuffer, ReplayConfig, gae, gae_on_host};
use brasa::contracts::{Obs, StepBatch, Successor};
use brasa::env::{EnvSpec, Space, named_rng};
use brasa_bench_kit::{Place, bench, settings};
use brasa_benches::{allocator, place};
use burn::tensor::{Device, Tensor, TensorData};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use rand::RngExt;

allocator!();

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

/// The sum of discounted TD errors until the end of the episode, by its definition and in 64 bits.
fn defined(input: &GaeInput<Vec<f32>>, n_rows: usize, at: usize) -> f64 {
    let number = |values: &[f32], at: usize| f64::from(values[at]);
    let (mut sum, mut weight) = (0.0, 1.0);
    for step in (at..input.reward.len()).step_by(n_rows) {
        let next = GAMMA * number(&input.next_value, step) * (1.0 - number(&input.terminated, step));
        sum += weight * (number(&input.reward, step) + next - number(&input.value, step));
        if input.episode_end[step] > 0.0 {
            break;
        }
        weight *= GAMMA * LAMBDA;
    }
    sum
}

/// Compares advantages with their definition, for some of them.
fn check(advantage: impl Iterator<Item = f32>, input: &GaeInput<Vec<f32>>, n_rows: usize) {
    for (at, got) in advantage.enumerate().step_by(997) {
        let expected = defined(input, n_rows, at);
        assert!((f64::from(got) - expected).abs() < 1e-3, "advantage {at} is {got} instead of {expected}");
    }
}

fn advantages(criterion: &mut Criterion) {
    let place = place();
    for (n_steps, n_rows) in [(256, 8), (8192, 128)] {
        let n = n_steps * n_rows;
        let input = rollout(n);
        let size = format!("{n_steps}-steps-{n_rows}-rows");
        let throughput = || Throughput::Elements(n as u64);

        let mut copies = [(); 5].map(|()| vec![0.0f32; n]);
        bench(criterion, "gae/copy-of-inputs", &size, "cpu", throughput(), |bencher| {
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
        gae_on_host(&slices, n_rows, GAMMA as f32, LAMBDA as f32, &mut advantage);
        check(advantage.iter().copied(), &input, n_rows);
        bench(criterion, "gae/slices", &size, "cpu", throughput(), |bencher| {
            bencher.iter(|| {
                gae_on_host(black_box(&slices), n_rows, GAMMA as f32, LAMBDA as f32, &mut advantage);
                black_box(&mut advantage);
            });
        });

        let tensor =
            |part: &[f32]| Tensor::<2>::from_data(TensorData::new(part.to_vec(), [n_steps, n_rows]), &place.device);
        let owned = || GaeInput {
            reward: tensor(reward),
            value: tensor(value),
            next_value: tensor(next_value),
            terminated: tensor(terminated),
            episode_end: tensor(episode_end),
            discount: None,
        };
        let run = |tensors| {
            let advantage = gae(tensors, GAMMA, LAMBDA);
            place.sync();
            advantage
        };
        check(run(owned()).into_data().iter::<f32>(), &input, n_rows);
        // A tensor with other owners is copied by the scan on the host; a rollout has tensors of both kinds.
        let tensors = owned();
        bench(criterion, "gae/shared-tensors", &size, &place.name, throughput(), |bencher| {
            bencher.iter(|| black_box(run(tensors.clone())));
        });
        bench(criterion, "gae/owned-tensors", &size, &place.name, throughput(), |bencher| {
            bencher.iter_batched(owned, run, BatchSize::PerIteration);
        });
    }
}

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
fn full(config: &ReplayConfig, n: usize, place: &Place) -> ReplayBuffer<Obs, Tensor<2>> {
    let device = &place.device;
    let action = rows(n, ACTION, device);
    let (inside, end) = (step(n, false, device), step(n, true, device));
    let mut replay =
        ReplayBuffer::new(config, &spec(n), &inside.obs, &action, GAMMA, device).expect("the settings are sound");
    replay.begin(inside.obs.clone());
    for i in 0..config.capacity / n {
        replay.push(action.clone(), if i % EPISODE == EPISODE - 1 { &end } else { &inside }).expect("it fits");
    }
    place.sync();
    replay
}

fn push(criterion: &mut Criterion) {
    let place = place();
    for (name, prioritized) in [("replay", None), ("prioritized-replay", Some(PrioritizedConfig::default()))] {
        for (size, capacity) in [("1-row-of-10000", 10_000), ("1-row-of-1000000", MILLION)] {
            let config = ReplayConfig { capacity, prioritized: prioritized.clone(), ..ReplayConfig::default() };
            let mut made = None;
            bench(criterion, &format!("{name}/push"), size, &place.name, Throughput::Elements(1), |bencher| {
                let (replay, action, inside) = made.get_or_insert_with(|| {
                    let replay = full(&config, 1, &place);
                    assert!(replay.n_transitions() > capacity / 2, "the buffer is full");
                    (replay, rows(1, ACTION, &place.device), step(1, false, &place.device))
                });
                bencher.iter(|| {
                    replay.push(action.clone(), inside).expect("it fits");
                    place.sync();
                });
            });
        }
    }
}

fn sample(criterion: &mut Criterion) {
    let place = place();
    let (size, throughput) = (format!("{BATCH}-rows-of-{MILLION}"), || Throughput::Elements(BATCH as u64));
    let mut rng = named_rng(0, "bench", 0);

    let mut made = None;
    bench(criterion, "replay/copy-of-rows", &size, "cpu", throughput(), |bencher| {
        let (memory, copy) = made
            .get_or_insert_with(|| (vec![1.0f32; MILLION * (OBS + ACTION)], vec![0.0f32; BATCH * (2 * OBS + ACTION)]));
        bencher.iter(|| {
            for row in copy.chunks_exact_mut(2 * OBS + ACTION) {
                let at = rng.random_range(0..MILLION as u32 - 1) as usize * (OBS + ACTION);
                row.copy_from_slice(&memory[at..at + 2 * OBS + ACTION]);
            }
            black_box(&mut *copy);
        });
    });
    drop(made);

    for (what, n_step, precision, prioritized) in [
        ("replay/sample", 1, Precision::F32, None),
        ("replay/sample-3-steps", 3, Precision::F32, None),
        ("replay/sample-f16", 1, Precision::F16, None),
        ("prioritized-replay/sample", 1, Precision::F32, Some(PrioritizedConfig::default())),
    ] {
        let config = ReplayConfig {
            capacity: MILLION,
            n_step: n_step as usize,
            precision,
            prioritized,
            ..ReplayConfig::default()
        };
        let mut made = None;
        let make = || {
            let mut replay = full(&config, 16, &place);
            check_sample(&mut replay, n_step);
            replay
        };
        bench(criterion, what, &size, &place.name, throughput(), |bencher| {
            let replay = made.get_or_insert_with(make);
            bencher.iter(|| {
                let batch = replay.sample(BATCH, 0.4, &mut rng);
                place.sync();
                black_box(batch)
            });
        });
        if config.prioritized.is_some() {
            bench(criterion, "prioritized-replay/set-priorities", &size, &place.name, throughput(), |bencher| {
                let replay = made.get_or_insert_with(make);
                let batch = replay.sample(BATCH, 0.4, &mut named_rng(0, "bench", 1));
                bencher.iter(|| {
                    replay.set_priorities(&batch.rows, batch.reward.clone());
                    place.sync();
                });
            });
        }
    }
}

/// Every step has reward 1: that of a transition is the sum of discounts.
fn check_sample(replay: &mut ReplayBuffer<Obs, Tensor<2>>, n_step: i32) {
    let batch = replay.sample(BATCH, 0.4, &mut named_rng(0, "check", 0));
    let whole: f64 = (0..n_step).map(|step| GAMMA.powi(step)).sum();
    let rewards: Vec<f64> = batch.reward.into_data().iter::<f64>().collect();
    assert!(rewards.iter().all(|reward| (1.0 - 1e-6..=whole + 1e-6).contains(reward)), "got {rewards:?}");
    assert_eq!(batch.obs.values.mean().into_scalar::<f32>(), 1.0, "stored observations are ones");
}

criterion_group! { name = benches; config = settings(); targets = advantages, push, sample }
criterion_main!(benches);
