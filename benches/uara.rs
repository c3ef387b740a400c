//! Steps of cellular networks per second on one thread, with random legal actions; a step is one of all 30 or 50 users.

use std::time::{Duration, Instant};

use brasa::env::{BatchSlabs, EnvBatch, named_rng};
use brasa::uara::baselines::greedy;
use brasa::uara::{Candidates, LayoutConfig, Redraw, Uara, UaraConfig};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ndarray::Array2;
use rand::RngExt;

/// Number of precomputed sets of actions of all users.
const DRAWS: usize = 16;

fn bench(criterion: &mut Criterion) {
    // Every network has its own layout, so that results do not profit from the cache.
    let layouts = |config: UaraConfig| UaraConfig {
        layout: LayoutConfig { redraw: Redraw::Environment, ..config.layout },
        candidates: Candidates::Covered,
        ..config
    };
    let presets = [
        ("cly2020", layouts(UaraConfig::cly2020()), [1, 256]),
        ("zhao2019", layouts(UaraConfig::zhao2019()), [1, 256]),
        ("physical", UaraConfig::physical(), [1, 16]),
    ];
    let mut group = criterion.benchmark_group("uara");
    for (name, config, sizes) in &presets {
        let scenario = Uara::new(config.clone()).expect("the settings are valid");
        for n_envs in *sizes {
            let mut batch = scenario.batch(0..n_envs);
            let mut slabs = BatchSlabs::new(batch.spec());
            batch.reset(0, &mut slabs).expect("the environments start");
            let mut rng = named_rng(0, "actions", 0);
            let span = batch.spec().actions_per_flag();
            let draws: Vec<Array2<f32>> = (0..DRAWS)
                .map(|_| {
                    Array2::from_shape_fn((batch.n_rows(), 1), |(row, _)| {
                        let n = batch.spec().action.n_actions();
                        let mut options = std::iter::repeat_with(|| rng.random_range(0..n));
                        let legal = |option: &usize| slabs.mask.ncols() == 0 || slabs.mask[[row, option / span]] > 0.0;
                        options.find(legal).expect("there is always another draw") as f32
                    })
                })
                .collect();
            let mut at = 0;
            group.throughput(Throughput::Elements(n_envs as u64));
            group.bench_function(BenchmarkId::new(*name, n_envs), |bencher| {
                bencher.iter_custom(|iterations| {
                    let mut time = Duration::ZERO;
                    for _ in 0..iterations {
                        at = (at + 1) % DRAWS;
                        let begin = Instant::now();
                        batch.step(draws[at].view(), &mut slabs).expect("the choices are legal");
                        time += begin.elapsed();
                    }
                    time
                });
            });
        }
        let mut batch = scenario.batch(0..1);
        batch.reset(0, &mut BatchSlabs::new(batch.spec())).expect("the environment starts");
        let snapshot = batch.snapshot(0);
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::new("greedy", name), |bencher| {
            bencher.iter(|| greedy(&snapshot, scenario.objective()));
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
