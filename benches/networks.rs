//! An MLP with two hidden layers on 256 rows, forward and backward, by width and by the number format of products.

use std::hint::black_box;

use brasa::device::{Precision, autocast};
use brasa::env::named_rng;
use brasa::nn::{Activation, Init, Mlp, MlpConfig, named_params};
use brasa_bench_kit::{Place, bench, settings};
use brasa_benches::{allocator, place};
use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

allocator!();

const ROWS: usize = 256;
const INPUTS: usize = 16;
const OUTPUTS: usize = 8;

/// The network on the autodiff device and its input on the plain one.
fn mlp(hidden: usize, place: &Place) -> (Mlp, Tensor<2>) {
    let config = MlpConfig {
        inputs: INPUTS,
        hidden: vec![hidden; 2],
        outputs: Some(OUTPUTS),
        activation: Activation::Tanh,
        hidden_init: Init::Orthogonal(1.0),
        output_init: Init::Orthogonal(1.0),
    };
    let rng = &mut named_rng(0, "weights", 0);
    let network = Mlp::new(&config, &place.device.clone().autodiff(), rng);
    let (values, _) = Init::FanIn.draw(ROWS, INPUTS, rng);
    (network, Tensor::from_data(TensorData::new(values, [ROWS, INPUTS]), &place.device))
}

/// The network in 64 bits, layer by layer.
fn expected(network: &Mlp, x: &Tensor<2>) -> Vec<f64> {
    let mut rows: Vec<f64> = x.clone().into_data().iter::<f64>().collect();
    let params = named_params(network);
    let layers = params.chunks_exact(2);
    let last = layers.len() - 1;
    for (index, layer) in layers.enumerate() {
        let [weight, bias] = layer else { unreachable!("a layer has a weight and a bias") };
        let (inputs, outputs) = (weight.shape[0], weight.shape[1]);
        let next = rows.chunks_exact(inputs).flat_map(|row| {
            (0..outputs).map(move |output| {
                let products = row.iter().enumerate().map(|(i, x)| x * f64::from(weight.values[i * outputs + output]));
                let sum = products.sum::<f64>() + f64::from(bias.values[output]);
                if index == last { sum } else { sum.tanh() }
            })
        });
        rows = next.collect();
    }
    rows
}

/// Compares the network with its form in 64 bits. Formats with 8 to 11 bits of mantissa differ by more.
fn check(network: &Mlp, x: &Tensor<2>, precision: Precision) {
    let tolerance = if precision == Precision::F32 { 1e-4 } else { 5e-2 };
    let got = autocast(precision, || network.valid().forward(x.clone())).into_data();
    for (got, expected) in got.iter::<f64>().zip(expected(network, x)) {
        assert!((got - expected).abs() <= tolerance, "a result in {precision} is {got} instead of {expected}");
    }
}

fn networks(criterion: &mut Criterion) {
    let place = place();
    for precision in Precision::ALL {
        if let Err(error) = precision.check(&place.device) {
            eprintln!("networks in {precision} are left out: {error}");
            continue;
        }
        for hidden in [64, 256, 1024] {
            let (size, throughput) = (format!("{hidden}-wide"), || Throughput::Elements(ROWS as u64));
            let mut made = None;
            let make = || {
                let (network, x) = mlp(hidden, &place);
                check(&network, &x, precision);
                (network.valid(), network, x)
            };
            bench(criterion, &format!("mlp/forward-{precision}"), &size, &place.name, throughput(), |bencher| {
                let (plain, _, x) = made.get_or_insert_with(make);
                bencher.iter(|| {
                    let y = autocast(precision, || plain.forward(x.clone()));
                    place.sync();
                    black_box(y)
                });
            });
            let mut made = None;
            let what = format!("mlp/forward-backward-{precision}");
            bench(criterion, &what, &size, &place.name, throughput(), |bencher| {
                let (_, network, x) = made.get_or_insert_with(make);
                let tracked = Tensor::<2>::from_inner(x.clone());
                bencher.iter(|| {
                    let grads = autocast(precision, || network.forward(tracked.clone()).sum().backward());
                    place.sync();
                    black_box(grads)
                });
            });
        }
    }
}

criterion_group! { name = benches; config = settings(); targets = networks }
criterion_main!(benches);
