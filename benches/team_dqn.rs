//! Acting and learning of 30 independent deep Q-learners in one batch.

use brasa::nn::Sharing;
use brasa_benches::team_dqn::{TeamBench, TeamShape};
use brasa_benches::{device, sync};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn bench(criterion: &mut Criterion) {
    let (device, device_name) = device();
    let mut group = criterion.benchmark_group("team-dqn");
    group.throughput(Throughput::Elements(1));
    let published = TeamShape::PUBLISHED;
    for (name, shape) in [
        ("30-agents-batch-32", published),
        ("30-agents-batch-8", TeamShape { batch: 8, ..published }),
        ("30-agents-batch-32-dueling", TeamShape { dueling: true, ..published }),
        ("30-agents-batch-32-trunk", TeamShape { sharing: Sharing::Trunk, ..published }),
        ("30-agents-batch-32-all", TeamShape { sharing: Sharing::All, ..published }),
    ] {
        let mut team = TeamBench::new(shape, &device);
        for (task, work) in [("act", TeamBench::act as fn(&mut TeamBench)), ("learn", TeamBench::learn)] {
            group.bench_function(BenchmarkId::new(format!("{task}/{name}"), &device_name), |bencher| {
                bencher.iter(|| {
                    work(&mut team);
                    sync(&device);
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
