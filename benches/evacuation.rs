//! Decisions per second in buildings with fire on one thread, with random legal decisions.

use std::time::{Duration, Instant};

use brasa::env::{BatchSlabs, EnvBatch, named_rng};
use brasa::evacuation::{Actions, Buildings, Evacuation, EvacuationConfig, Reference, RulesConfig};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ndarray::Array2;
use rand::RngExt;

const N_ENVS: usize = 64;

fn bench(criterion: &mut Criterion) {
    let primitive = RulesConfig { actions: Actions::Primitive, ..RulesConfig::default() };
    let rules = [("hops", RulesConfig::legacy()), ("steps", primitive), ("macro", RulesConfig::default())];
    let mut group = criterion.benchmark_group("evacuation");
    group.throughput(Throughput::Elements(N_ENVS as u64));
    for (name, reference) in
        [("office", Reference::Office), ("daycare", Reference::Daycare), ("warehouse", Reference::Warehouse)]
    {
        for (mode, rules) in &rules {
            let config = EvacuationConfig { buildings: Buildings::Reference(reference), rules: rules.clone() };
            let mut batch = Evacuation::new(config).expect("the settings are valid").batch(0..N_ENVS);
            let mut slabs = BatchSlabs::new(batch.spec());
            batch.reset(0, &mut slabs).expect("the environments start");
            let (mut actions, mut rng) = (Array2::zeros((N_ENVS, 1)), named_rng(0, "actions", 0));
            group.bench_function(BenchmarkId::new(format!("{name}-{mode}"), N_ENVS), |bencher| {
                // Sampling legal decisions is not measured.
                bencher.iter_custom(|iterations| {
                    let mut time = Duration::ZERO;
                    for _ in 0..iterations {
                        for (action, mask) in actions.iter_mut().zip(slabs.mask.rows()) {
                            let n_legal = mask.iter().filter(|legal| **legal > 0.0).count();
                            let choice = rng.random_range(0..n_legal);
                            let mut legal = mask.iter().enumerate().filter(|(_, legal)| **legal > 0.0);
                            *action = legal.nth(choice).map_or(0.0, |(option, _)| option as f32);
                        }
                        let begin = Instant::now();
                        batch.step(actions.view(), &mut slabs).expect("the decisions are legal");
                        time += begin.elapsed();
                    }
                    time
                });
            });
        }
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
