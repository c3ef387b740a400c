//! Environment steps per second of the charging station's presets on one thread.

use brasa::energy::station::{Station, StationConfig};
use brasa_benches::bench_steps;
use criterion::{Criterion, criterion_group, criterion_main};

fn bench(criterion: &mut Criterion) {
    for (name, config) in [("station", StationConfig::default()), ("station_chargax", StationConfig::chargax())] {
        let scenario = Station::new(config).expect("presets are valid");
        bench_steps(criterion, name, &[1, 64, 1024], |n_envs| scenario.batch(0..n_envs).expect("a batch"));
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
