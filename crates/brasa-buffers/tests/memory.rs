//! Storing and sampling allocate no memory in proportion to the capacity.

use std::alloc::System;

use brasa_buffers::{Precision, PrioritizedConfig, ReplayBuffer, ReplayConfig};
use brasa_core::env::named_rng;
use brasa_core::{StepBatch, Successor};
use brasa_device::{Meter, measure};
use brasa_test::spec_of_rows;
use burn::tensor::Tensor;

#[global_allocator]
static ALLOCATOR: Meter<System> = Meter(System);

/// Bytes allocated by a call.
fn asked_for<T>(what: impl FnOnce() -> T) -> u64 {
    measure(what).1.expect("nothing else is measured").allocated
}

const WIDTH: usize = 17;
const BATCH: usize = 64;

/// Bytes allocated by a step, by a step with the end of an episode, by a batch, and by its priorities.
fn costs(config: &ReplayConfig) -> [u64; 4] {
    let device = brasa_device::open_named("cpu").expect("flex is a default feature");
    let row = |width: usize| Tensor::<2>::ones([1, width], &device);
    let step = |successor| StepBatch {
        obs: row(WIDTH),
        successor,
        reward: Tensor::ones([1], &device),
        terminated: Tensor::zeros([1], &device),
        truncated: Tensor::zeros([1], &device),
        elapsed: None,
    };
    let (inside, end) = (step(Successor::Same), step(Successor::Rows(row(WIDTH))));
    let mut replay = ReplayBuffer::new(config, &spec_of_rows(1, 1), &row(WIDTH), &row(6), 0.99, &device)
        .expect("the settings are sound");
    replay.begin(row(WIDTH));
    let mut rng = named_rng(0, "test", 0);
    for _ in 0..200 {
        replay.push(row(6), &inside).expect("it fits");
    }
    let push = asked_for(|| replay.push(row(6), &inside));
    let push_end = asked_for(|| replay.push(row(6), &end));
    let batch = replay.sample(BATCH, 0.4, &mut rng);
    let sample = asked_for(|| replay.sample(BATCH, 0.4, &mut rng));
    let priorities = asked_for(|| replay.set_priorities(&batch.rows, batch.reward.clone()));
    [push, push_end, sample, priorities]
}

/// One test: allocations of another one in the same process would count too.
#[test]
fn costs_do_not_grow_with_the_capacity() {
    shared_successors_cost_the_same_in_every_capacity();
    for precision in [Precision::F32, Precision::F16, Precision::U8 { low: 0.0, high: 1.0 }] {
        for prioritized in [None, Some(PrioritizedConfig::default())] {
            for n_step in [1, 3] {
                let config = |capacity| {
                    let prioritized = prioritized.clone();
                    ReplayConfig { capacity, n_step, precision, prioritized, ..ReplayConfig::default() }
                };
                let (small, large) = (costs(&config(500)), costs(&config(500_000)));
                assert_eq!(small, large, "{:?}", config(500_000));
                // A row has 68 bytes; a batch has 64 rows of two observations and an action, which are cast.
                let limits = [20_000, 30_000, 200_000, 50_000];
                assert!(large.iter().zip(limits).all(|(cost, limit)| *cost < limit), "{large:?} of {limits:?} bytes");
            }
        }
    }
}

/// Successors that several steps share are merged beside the ring and then moved into it.
fn shared_successors_cost_the_same_in_every_capacity() {
    let device = brasa_device::open_named("cpu").expect("flex is a default feature");
    let row = |width: usize| Tensor::<2>::ones([1, width], &device);
    let cost = |capacity: usize| {
        let step = |truncated: bool| StepBatch {
            obs: row(WIDTH),
            successor: Successor::Rows(row(WIDTH)),
            reward: Tensor::ones([1], &device),
            terminated: Tensor::zeros([1], &device),
            truncated: Tensor::full([1], f32::from(truncated), &device),
            elapsed: None,
        };
        // As environments on a device: successors at every step, and one truncation in four steps.
        let (end, inside) = (step(true), step(false));
        let push = |replay: &mut ReplayBuffer<_, _>, at: usize| {
            replay.push(row(6), if at.is_multiple_of(4) { &end } else { &inside }).expect("it fits");
        };
        let config = ReplayConfig { capacity, ..ReplayConfig::default() };
        let mut replay =
            ReplayBuffer::new(&config, &spec_of_rows(1, 4), &row(WIDTH), &row(6), 0.99, &device).expect("sound");
        replay.begin(row(WIDTH));
        (0..40).for_each(|at| push(&mut replay, at));
        asked_for(|| (40..48).for_each(|at| push(&mut replay, at)))
    };
    let (small, large) = (cost(500), cost(500_000));
    assert_eq!(small, large);
    assert!(large < 8 * 30_000, "{large} bytes");
}
