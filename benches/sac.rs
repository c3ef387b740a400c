//! One update of soft actor-critic, sampling included, and the matrix products that it contains.

use brasa_benches::sac::{Products, SacBench, SacShape};
use brasa_benches::{device, sync};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn bench(criterion: &mut Criterion) {
    let (device, device_name) = device();
    let mut group = criterion.benchmark_group("sac");
    group.throughput(Throughput::Elements(1));
    for (name, shape) in [("64-64-batch-100", SacShape::SMALL), ("256-256-batch-256", SacShape::LARGE)] {
        let mut learner = SacBench::new(shape, &device);
        group.bench_function(BenchmarkId::new(format!("update/{name}"), &device_name), |bencher| {
            bencher.iter(|| {
                learner.update();
                sync(&device);
            });
        });
        let products = Products::new(shape, &device);
        group.bench_function(BenchmarkId::new(format!("products/{name}"), &device_name), |bencher| {
            bencher.iter(|| {
                products.multiply();
                sync(&device);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
