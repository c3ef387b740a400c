//! District steps per second of the CityLearn 2022 phase 1 district (five buildings) on one thread.

use brasa::energy::citylearn::{CityLearn, CityLearnConfig};
use brasa_benches::bench_steps;
use criterion::{Criterion, criterion_group, criterion_main};

fn bench(criterion: &mut Criterion) {
    let scenario = CityLearn::new(CityLearnConfig::default()).expect("the default is valid");
    bench_steps(criterion, "district", &[1, 64, 4096], |n_envs| scenario.batch(0..n_envs).expect("a batch"));
}

criterion_group!(benches, bench);
criterion_main!(benches);
