//! Steps of environments, on the host and on a device.

use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

use brasa_core::VecEnv;
use brasa_env::{BatchSlabs, EnvBatch, EnvSpec, named_rng};
use burn::tensor::{Tensor, TensorData};
use criterion::{Criterion, Throughput};
use ndarray::{Array2, ArrayView2};

use crate::{Place, bench};

/// Sets of random actions that a bench cycles through.
const SETS: u64 = 16;

/// Uniformly random legal actions, one row per agent. They depend on `seed` and `mask` alone; `mask` has no columns where every action
/// is legal.
///
/// # Panics
/// If a row has no legal action.
pub fn random_actions(spec: &EnvSpec, mask: ArrayView2<'_, f32>, seed: u64) -> Array2<f32> {
    let mut actions = Array2::zeros((spec.n_rows(), spec.action.width()));
    let rng = &mut named_rng(seed, "actions", 0);
    brasa_env::random_actions(spec, mask, &mut actions, rng).expect("every row has a legal action");
    actions
}

/// Measures a step of a batch on the host with random legal actions, for every number of environments in `sizes`. `make` constructs the
/// environments with these indices. The part of the id of the device is `cpu`.
///
/// Before the clock starts, two batches take the same steps: all numbers must be finite and equal.
///
/// # Panics
/// If a step fails, or the two batches differ.
pub fn bench_steps<B: EnvBatch>(
    criterion: &mut Criterion,
    what: &str,
    sizes: &[usize],
    make: impl Fn(Range<usize>) -> B,
) {
    for &n_envs in sizes {
        let mut started = None;
        let throughput = Throughput::Elements(n_envs as u64);
        bench(criterion, what, format!("{n_envs}-envs"), "cpu", throughput, |bencher| {
            let (batch, slabs, seed) = started.get_or_insert_with(|| {
                check_steps(&make, n_envs);
                let mut batch = make(0..n_envs);
                let mut slabs = BatchSlabs::new(batch.spec());
                batch.reset(0, &mut slabs).expect("the environments start");
                (batch, slabs, 0)
            });
            // Sampling actions is not measured. Where every action is always legal they are sampled once.
            let fixed = slabs.mask.is_empty();
            let sets: Vec<_> =
                (0..SETS).filter(|_| fixed).map(|set| random_actions(batch.spec(), slabs.mask.view(), set)).collect();
            bencher.iter_custom(|rounds| {
                if fixed {
                    let begin = Instant::now();
                    for _ in 0..rounds {
                        *seed += 1;
                        let actions = &sets[(*seed % SETS) as usize];
                        batch.step(actions.view(), slabs).expect("the environments step");
                        black_box(slabs.reward[0]);
                    }
                    return begin.elapsed();
                }
                let mut time = Duration::ZERO;
                for _ in 0..rounds {
                    *seed += 1;
                    let actions = random_actions(batch.spec(), slabs.mask.view(), *seed);
                    let begin = Instant::now();
                    batch.step(actions.view(), slabs).expect("the environments step");
                    time += begin.elapsed();
                }
                time
            });
        });
    }
}

/// Steps two batches alike.
fn check_steps<B: EnvBatch>(make: &impl Fn(Range<usize>) -> B, n_envs: usize) {
    let mut batches = [make(0..n_envs), make(0..n_envs)];
    let mut slabs = batches.each_ref().map(|batch| BatchSlabs::new(batch.spec()));
    for (batch, slabs) in batches.iter_mut().zip(&mut slabs) {
        batch.reset(1, slabs).expect("the environments start");
    }
    for step in 0..SETS {
        let actions = random_actions(batches[0].spec(), slabs[0].mask.view(), step);
        for (batch, slabs) in batches.iter_mut().zip(&mut slabs) {
            batch.step(actions.view(), slabs).expect("the environments step");
        }
        let [first, second] = &slabs;
        assert!(first.reward.iter().chain(&first.obs).all(|number| number.is_finite()), "a step has finite numbers");
        assert_eq!((&first.reward, &first.obs), (&second.reward, &second.obs), "steps with one seed are equal");
    }
}

/// Measures a step of environments on a device with actions that are already there, for every number of environments in `sizes`.
///
/// Before the clock starts, a step must have a finite reward for every row.
///
/// # Panics
/// If a step fails, or a reward is not finite.
pub fn bench_device_steps<E>(
    criterion: &mut Criterion,
    what: &str,
    sizes: &[usize],
    place: &Place,
    make: impl Fn(usize, &Place) -> E,
) where
    E: VecEnv<Action = Tensor<2>>,
{
    for &n_envs in sizes {
        let mut started = None;
        let throughput = Throughput::Elements(n_envs as u64);
        bench(criterion, what, format!("{n_envs}-envs"), &place.name, throughput, |bencher| {
            let (env, actions) = started.get_or_insert_with(|| {
                let mut env = make(n_envs, place);
                env.reset(0).expect("the environments start");
                let shape = [env.n_rows(), env.spec().action.width()];
                let all_legal = Array2::zeros((env.n_rows(), 0));
                let values = random_actions(env.spec(), all_legal.view(), 0).into_iter().collect::<Vec<f32>>();
                let actions = Tensor::<2>::from_data(TensorData::new(values, shape), &place.device);
                let reward = env.step(actions.clone()).expect("the environments step").reward.into_data();
                assert_eq!(reward.iter::<f32>().filter(|reward| reward.is_finite()).count(), env.n_rows());
                (env, actions)
            });
            let mut episodes = Vec::new();
            bencher.iter_custom(|rounds| {
                let begin = Instant::now();
                for _ in 0..rounds {
                    black_box(env.step(actions.clone()).expect("the environments step"));
                }
                place.sync();
                let time = begin.elapsed();
                env.drain_episodes(&mut episodes).expect("every number is finite");
                episodes.clear();
                time
            });
        });
    }
}
