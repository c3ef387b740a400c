//! Environment steps per second of the Iquitos microgrid's default preset on one thread.

use brasa::energy::iquitos::{Iquitos, IquitosConfig};
use brasa_benches::bench_steps;
use criterion::{Criterion, criterion_group, criterion_main};

fn bench(criterion: &mut Criterion) {
    let scenario = Iquitos::new(IquitosConfig::default()).expect("the default is valid");
    bench_steps(criterion, "iquitos", &[1, 64, 1024], |n_envs| scenario.batch(0..n_envs).expect("a batch"));
}

criterion_group!(benches, bench);
criterion_main!(benches);
