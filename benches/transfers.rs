//! Copies between the memory of the host and the device.

use std::hint::black_box;

use brasa_bench_kit::{bench, settings};
use brasa_benches::{allocator, place};
use burn::tensor::{Tensor, TensorData};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

allocator!();

fn transfers(criterion: &mut Criterion) {
    let place = place();
    for (size, n) in [("256-numbers", 256_usize), ("65536-numbers", 1 << 16), ("4194304-numbers", 1 << 22)] {
        let numbers: Vec<f32> = (0..n).map(|i| (i % 1000) as f32).collect();
        let upload = || Tensor::<1>::from_data(TensorData::new(numbers.clone(), [n]), &place.device);
        let throughput = || Throughput::Bytes(4 * n as u64);
        let mut checked = None;
        bench(criterion, "transfer/upload", size, &place.name, throughput(), |bencher| {
            checked.get_or_insert_with(|| {
                let back: Vec<f32> = upload().into_data().iter::<f32>().collect();
                assert_eq!(back, numbers, "numbers come back as they were");
            });
            bencher.iter(|| {
                let tensor = upload();
                place.sync();
                black_box(tensor)
            });
        });
        let mut tensor = None;
        bench(criterion, "transfer/download", size, &place.name, throughput(), |bencher| {
            let tensor = tensor.get_or_insert_with(upload);
            bencher.iter(|| black_box(tensor.clone().into_data()));
        });
    }
}

criterion_group! { name = benches; config = settings(); targets = transfers }
criterion_main!(benches);
