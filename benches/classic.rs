//! Environment steps per second of classic control on one thread.

use brasa::classic::{CartPole, Pendulum};
use brasa::env::{Env, EnvVec};
use brasa_benches::bench_steps;
use criterion::{Criterion, criterion_group, criterion_main};

const SIZES: [usize; 3] = [1, 64, 4096];

fn batch<E: Env + Default>(n_envs: usize) -> EnvVec<E> {
    EnvVec::new(0..n_envs, |_| E::default()).expect("there is at least one")
}

fn bench(criterion: &mut Criterion) {
    bench_steps(criterion, "classic/cart-pole", &SIZES, batch::<CartPole>);
    bench_steps(criterion, "classic/pendulum", &SIZES, batch::<Pendulum>);
}

criterion_group!(benches, bench);
criterion_main!(benches);
