//! A layer of graph attention, forward and backward, and PPO with a lean policy.

use std::hint::black_box;

use brasa_benches::gat::{GatBench, HEADS, INPUTS, NODES, OUTPUTS, PolicyBench, ROWS};
use brasa_benches::{device, sync};
use brasa_gat::Version;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn bench(criterion: &mut Criterion) {
    let (device, device_name) = device();
    let mut group = criterion.benchmark_group(format!("gat/{ROWS}x{NODES}x{INPUTS}-{HEADS}x{OUTPUTS}"));
    group.throughput(Throughput::Elements(ROWS as u64));
    for (name, version) in [("v1", Version::V1), ("v2", Version::V2)] {
        for (edges, with_edges) in [("", false), ("-edges", true)] {
            let bench = GatBench::new(version, with_edges, &device);
            group.bench_function(BenchmarkId::new(format!("{name}{edges}"), &device_name), |bencher| {
                bencher.iter(|| {
                    let grad = bench.forward_backward();
                    sync(&device);
                    black_box(grad)
                });
            });
        }
    }
    group.finish();

    let mut policy = PolicyBench::new(&device);
    let (rows, steps, batch) = (PolicyBench::ROWS, PolicyBench::STEPS, PolicyBench::BATCH);
    let mut group = criterion.benchmark_group(format!("gat/lean-{NODES}-nodes"));
    group.throughput(Throughput::Elements(rows as u64));
    group.bench_function(BenchmarkId::new(format!("act/{rows}-rows"), &device_name), |bencher| {
        bencher.iter(|| {
            let action = policy.act();
            sync(&device);
            black_box(action)
        });
    });
    group.throughput(Throughput::Elements((rows * steps) as u64));
    group.bench_function(BenchmarkId::new(format!("update/{rows}x{steps}-by-{batch}"), &device_name), |bencher| {
        bencher.iter(|| {
            policy.update();
            sync(&device);
        });
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
