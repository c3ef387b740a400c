//! Every kernel on every GPU backend that is compiled in, against the CPU: results and gradients, sizes of all kinds.
//!
//! A backend without a driver is skipped with a message. `wgpu` also runs on a software driver (Debian: `mesa-vulkan-drivers`).

#![cfg(any(feature = "cuda", feature = "wgpu"))]

mod common;

use brasa_kernels::{
    Activation, EdgeTables, GaeInput, clip_scale, elementwise, elu, gae, graph_attention, layer, layer_norm,
    stacked_layer, tanh,
};
use burn::tensor::{Device, Int, Tensor, TensorData};
use common::squashed_rsample;

const ROWS: [usize; 4] = [1, 3, 64, 1000];
const WIDTHS: [usize; 4] = [1, 17, 64, 256];
const ACTIVATIONS: [Option<Activation>; 4] =
    [None, Some(Activation::Tanh), Some(Activation::Relu), Some(Activation::Elu)];

fn cpu() -> Device {
    brasa_device::open_named("cpu").expect("flex is a feature of the tests")
}

fn gpus(test: &str) -> Vec<Device> {
    let compiled = [("cuda", cfg!(feature = "cuda")), ("wgpu", cfg!(feature = "wgpu"))];
    let open = |name| match brasa_device::open_named(name) {
        Ok(device) => Some(device),
        Err(error) => {
            eprintln!("SKIPPED: {test} on {name}: {error}");
            None
        }
    };
    compiled.into_iter().filter(|(_, compiled)| *compiled).filter_map(|(name, _)| open(name)).collect()
}

/// Numbers of magnitude 1 without a period.
fn wave(n: usize, phase: f32) -> Vec<f32> {
    (0..n).map(|i| ((i as f32 + 1.0) * (1.7 + phase)).sin()).collect()
}

fn tensor<const D: usize>(values: Vec<f32>, shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

/// The same computation on the CPU and on each GPU, as named lists of numbers.
fn compare(test: &str, run: impl Fn(&Device) -> Vec<(&'static str, Vec<f32>)>) {
    let gpus = gpus(test);
    if gpus.is_empty() {
        return;
    }
    let expected = run(&cpu());
    for gpu in gpus {
        for ((name, got), (_, expected)) in run(&gpu).into_iter().zip(&expected) {
            assert_eq!(got.len(), expected.len(), "{test}, {name}");
            let scale = expected.iter().fold(1.0f32, |most, x| most.max(x.abs()));
            for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
                let near = (got - expected).abs() <= 1e-5 * scale;
                assert!(near, "{test}, {name}, number {i}: {got:e} instead of {expected:e}");
            }
        }
    }
}

/// The result, and the gradient of each leaf where every number of the result has its own weight.
fn with_grads<const D: usize>(y: Tensor<D>, leaves: &[(&'static str, Leaf)]) -> Vec<(&'static str, Vec<f32>)> {
    let n = y.shape().num_elements();
    let probe = tensor(wave(n, 0.4), [n], &y.device()).reshape(y.shape());
    let grads = (y.clone() * probe).sum().backward();
    let mut all = vec![("result", values(y.inner()))];
    all.extend(leaves.iter().map(|(name, leaf)| (*name, leaf.grad(&grads))));
    all
}

/// A flat leaf, so that leaves of any rank are one type.
struct Leaf(Tensor<1>);

impl Leaf {
    fn new(values: Vec<f32>, device: &Device) -> Self {
        let n = values.len();
        Self(tensor(values, [n], &device.clone().autodiff()).require_grad())
    }

    fn shaped<const D: usize>(&self, shape: [usize; D]) -> Tensor<D> {
        self.0.clone().reshape(shape)
    }

    fn grad(&self, grads: &burn::tensor::Gradients) -> Vec<f32> {
        values(self.0.grad(grads).expect("it is a leaf"))
    }
}

#[test]
fn products_of_layers_have_32_bits() {
    // Tensor cores would round 1 + 2^-13 to the 10 bits of TF32.
    let finer = 1.0 + 2.0f32.powi(-13);
    compare("products of layers", |device| {
        let factors = |value: f32| tensor(vec![value; 16 * 16], [16, 16], device);
        let sums = values(layer(factors(finer), factors(1.0), tensor(vec![0.0; 16], [16], device), None));
        assert!(sums.iter().all(|sum| *sum == 16.0 * finer), "{sums:?}");
        vec![("sums", sums)]
    });
}

#[test]
fn advantages() {
    for n_steps in [1, 2, 5, 128] {
        for n_rows in ROWS {
            for with_discount in [false, true] {
                compare(&format!("{n_steps} steps of {n_rows} rows, {with_discount}"), |device| {
                    let n = n_steps * n_rows;
                    let grid = |values: Vec<f32>| tensor(values, [n_steps, n_rows], device);
                    let flags = |phase: f32, from: f32| {
                        grid(wave(n, phase).into_iter().map(|x| f32::from(u8::from(x > from))).collect())
                    };
                    let terminated = flags(0.3, 0.9);
                    let input = GaeInput {
                        reward: grid(wave(n, 0.0)),
                        value: grid(wave(n, 0.1)),
                        // Not contiguous.
                        next_value: tensor(wave(n, 0.2), [n_rows, n_steps], device).swap_dims(0, 1),
                        episode_end: terminated.clone().max_pair(flags(0.5, 0.9)),
                        terminated,
                        discount: with_discount
                            .then(|| grid(wave(n, 0.7).into_iter().map(|x| 0.9 + 0.09 * x).collect())),
                    };
                    vec![("advantage", values(gae(input, 0.99, 0.95)))]
                });
            }
        }
    }
}

#[test]
fn activations_alone() {
    for rows in ROWS {
        for width in WIDTHS {
            for (name, activation) in
                [("tanh", tanh as fn(Tensor<2>) -> Tensor<2>), ("elu", elu as fn(Tensor<2>) -> Tensor<2>)]
            {
                for turned in [false, true] {
                    compare(&format!("{name} of {rows} x {width}, {turned}"), |device| {
                        let x = Leaf::new(wave(rows * width, 0.1).into_iter().map(|x| 3.0 * x).collect(), device);
                        let input = match turned {
                            true => x.shaped([width, rows]).swap_dims(0, 1),
                            false => x.shaped([rows, width]),
                        };
                        with_grads(activation(input), &[("x", x)])
                    });
                }
            }
        }
    }
}

#[test]
fn layers() {
    for rows in ROWS {
        for (i, inputs) in WIDTHS.into_iter().enumerate() {
            // Every pair of neighbors, and squares.
            for outputs in [inputs, WIDTHS[(i + 1) % WIDTHS.len()]] {
                for activation in ACTIVATIONS {
                    let name = format!("layer {rows} x {inputs} x {outputs}, {activation:?}");
                    compare(&name, |device| {
                        let scale = 1.0 / (inputs as f32).sqrt();
                        let x = Leaf::new(wave(rows * inputs, 0.1), device);
                        let weight =
                            Leaf::new(wave(inputs * outputs, 0.3).into_iter().map(|w| w * scale).collect(), device);
                        let bias = Leaf::new(wave(outputs, 0.7), device);
                        let y = layer(
                            x.shaped([rows, inputs]),
                            weight.shaped([inputs, outputs]),
                            bias.shaped([outputs]),
                            activation,
                        );
                        with_grads(y, &[("x", x), ("weight", weight), ("bias", bias)])
                    });
                }
            }
        }
    }
}

#[test]
fn parallel_layers() {
    let n = 3;
    for rows in ROWS {
        for width in WIDTHS {
            for shared in [false, true] {
                for activation in ACTIVATIONS {
                    let name = format!("{n} layers {rows} x {width}, {shared}, {activation:?}");
                    compare(&name, |device| {
                        let members = if shared { 1 } else { n };
                        let scale = 1.0 / (width as f32).sqrt();
                        let x = Leaf::new(wave(members * rows * width, 0.1), device);
                        let weight =
                            Leaf::new(wave(n * width * width, 0.3).into_iter().map(|w| w * scale).collect(), device);
                        let bias = Leaf::new(wave(n * width, 0.7), device);
                        let y = stacked_layer(
                            x.shaped([members, rows, width]),
                            weight.shaped([n, width, width]),
                            bias.shaped([n, width]),
                            activation,
                        );
                        with_grads(y, &[("x", x), ("weight", weight), ("bias", bias)])
                    });
                }
            }
        }
    }
}

#[test]
fn draws() {
    for rows in ROWS {
        for n in [1, 2, 17] {
            compare(&format!("{rows} draws of {n}"), |device| {
                let mean = Leaf::new(wave(rows * n, 0.1), device);
                let log_std = Leaf::new(wave(rows * n, 0.3), device);
                let noise = tensor(wave(rows * n, 0.7), [n, rows], device).swap_dims(0, 1);
                let (action, log_prob) = squashed_rsample(mean.shaped([rows, n]), log_std.shaped([rows, n]), noise);
                let both = Tensor::cat(vec![action, log_prob.unsqueeze_dim(1)], 1);
                with_grads(both, &[("mean", mean), ("log_std", log_std)])
            });
        }
    }
}

#[test]
fn norms_of_layers() {
    for rows in ROWS {
        // Of width 1 the variance is 0 and gradients are rounding errors.
        for width in [2, 17, 64, 256] {
            for activation in ACTIVATIONS {
                for turned in [false, true] {
                    compare(&format!("layer norm {rows} x {width}, {activation:?}, {turned}"), |device| {
                        // Neighbors in a row differ: with a variance near 0 both divide by rounding errors.
                        let stride = if turned { rows } else { 1 };
                        let spread =
                            |(i, x): (usize, f32)| if (i / stride) % width % 2 == 0 { x + 3.0 } else { x - 3.0 };
                        let x = wave(rows * width, 0.1).into_iter().enumerate().map(spread).collect();
                        let x = Leaf::new(x, device);
                        let (scale, shift) = (Leaf::new(wave(width, 0.3), device), Leaf::new(wave(width, 0.7), device));
                        let input = match turned {
                            true => x.shaped([width, rows, 1]).swap_dims(0, 2),
                            false => x.shaped([1, rows, width]),
                        };
                        let y = layer_norm(input, scale.shaped([width]), shift.shaped([width]), activation);
                        with_grads(y, &[("x", x), ("scale", scale), ("shift", shift)])
                    });
                }
            }
        }
    }
}

/// Two graphs of the same size: a ring where every node also knows itself, and a path, padded.
fn graphs(n_nodes: usize, n_rows: usize, device: &Device) -> EdgeTables {
    let n_edges = 2 * n_nodes;
    let ring = (0..n_nodes).flat_map(|i| [[i, i], [(i + 1) % n_nodes, i]]).collect::<Vec<_>>();
    let path = (0..n_nodes).flat_map(|i| (i.saturating_sub(1)..=i).map(move |j| [j, i])).collect::<Vec<_>>();
    let (mut starts, mut sources, mut destinations, mut mask, mut slots) = (vec![], vec![], vec![], vec![], vec![]);
    for edges in [ring, path] {
        starts.extend((0..=n_nodes).map(|node| edges.iter().filter(|edge| edge[1] < node).count() as i32));
        let padded =
            |end: usize| (0..n_edges).map(|e| edges.get(e).map_or(0, |edge| edge[end] as i32)).collect::<Vec<_>>();
        sources.extend(padded(0));
        destinations.extend(padded(1));
        mask.extend((0..n_edges).map(|e| f32::from(u8::from(e < edges.len()))));
        for node in 0..n_nodes {
            let own: Vec<i32> = (0..edges.len()).filter(|e| edges[*e][1] == node).map(|e| e as i32).collect();
            slots.extend((0..2).map(|slot: usize| own[slot.min(own.len() - 1)]));
        }
    }
    let table = |values: Vec<i32>, n: usize| Tensor::<2, Int>::from_data(TensorData::new(values, [2, n]), device);
    let ids = || {
        Tensor::from_data(TensorData::new((0..n_rows).map(|row| row as i32 % 2).collect::<Vec<_>>(), [n_rows]), device)
    };
    EdgeTables {
        ids: ids(),
        edge_ids: ids(),
        starts: table(starts, n_nodes + 1),
        sources: table(sources, n_edges),
        destinations: table(destinations, n_edges),
        edge_mask: Tensor::from_data(TensorData::new(mask, [2, n_edges]), device),
        slots: table(slots, 2 * n_nodes).reshape([2, n_nodes, 2]),
    }
}

#[test]
fn attention_over_graphs() {
    for (n_rows, n_nodes, heads, channels) in [(1, 1, 1, 1), (3, 5, 2, 3), (64, 17, 4, 8), (5, 64, 1, 17)] {
        for (first, shared, with_edge) in
            [(true, true, false), (true, true, true), (false, true, false), (false, false, true), (false, true, true)]
        {
            let name = format!("attention {n_rows} x {n_nodes} x {heads} x {channels}, {first} {shared} {with_edge}");
            compare(&name, |device| {
                let hidden = heads * channels;
                let (width, vectors) = (if shared { hidden } else { 2 * hidden }, if first { 2 } else { 1 });
                let columns = if first { heads } else { hidden };
                let projected = Leaf::new(wave(n_rows * n_nodes * width, 0.1), device);
                let attention = Leaf::new(wave(vectors * hidden, 0.3), device);
                let edge = Leaf::new(wave(2 * 2 * n_nodes * columns, 0.7), device);
                let (out, weights) = graph_attention(
                    projected.shaped([n_rows, n_nodes, width]),
                    attention.shaped([vectors, heads, channels]),
                    with_edge.then(|| edge.shaped([2, 2 * n_nodes, columns])),
                    &graphs(n_nodes, n_rows, device),
                    0.2,
                );
                let mut leaves = vec![("projected", projected), ("attention", attention)];
                if with_edge {
                    leaves.push(("edge", edge));
                }
                let mut all = with_grads(out, &leaves);
                all.push(("weights", values(weights)));
                all
            });
        }
    }
}

/// Every operation, with matrices that have a row or a column for all or for groups of rows, and columns of a larger one.
#[test]
fn formulas() {
    for rows in ROWS {
        for width in [1, 17, 64] {
            compare(&format!("formulas of {rows} x {width}"), |device| {
                let matrix = |shape: [usize; 2], phase| tensor(wave(shape[0] * shape[1], phase), shape, device);
                let [wide, one_row, column] = [([rows, width], 0.1), ([1, width], 0.2), ([rows, 1], 0.3)]
                    .map(|(shape, phase)| matrix(shape, phase));
                // Its rows do not lie one after the other.
                let large = matrix([width + 3, rows], 0.4).transpose();
                let group = (2..=rows).find(|n| rows.is_multiple_of(*n)).unwrap_or(1);
                let [groups, cycle] = [matrix([rows / group, width + 1], 0.5), matrix([group, width + 1], 0.6)];
                let [numbers, conditions] = elementwise([rows, width], |formulas| {
                    let large = formulas.matrix(&large);
                    let (a, b, c) = (formulas.read(&wide), formulas.read(&one_row), formulas.read(&column));
                    let (d, e) = (large.columns(2..2 + width), large.column(1));
                    let (groups, cycle) = (formulas.matrix(&groups), formulas.cycle(&cycle));
                    let numbers = vec![
                        a + b * c - d / (e.square() + 1.0) + c * formulas.number(0.3),
                        a.min(b).max(c).clamp(-0.5, 0.7),
                        (a + b).sin() + (c - d).cos() + (-e).exp(),
                        a.abs().sqrt() + (b.square() + 0.5).ln() + (a * 0.9).ln_1p() + (a * 1e-3).ln_1p() * 1e3,
                        large.sum(1..width + 3) / width as f64 + large.sum_before(0..width) / width as f64,
                        (groups.sum_after(1..1 + width) + cycle.sum(0..width + 1)) / width as f64,
                        cycle.max(0..width) - large.max(1..3),
                        a.greater(0.0).select((a * 9.0).floor(), 0.5),
                        groups.columns(0..width) * cycle.columns(1..1 + width),
                        large.pick(0..width, a * width as f64) - cycle.pick(0..2, b * 2.0),
                        (groups.rank(0..width) - large.rank(3..3 + width)) / width as f64,
                        groups.count(0..width, groups.column(0))
                            + large.sum_where(1..2 + width, groups, groups.column(0)),
                        (groups.find(0..width, groups.column(width / 2)) - large.find(0..3, d)) / width as f64,
                    ];
                    let both = a.greater(b).and(c.lower(d));
                    let conditions = vec![both, both.or(e.greater_equal(0.0)), !b.lower_equal(0.0), a.equal(a.max(b))];
                    [numbers, conditions]
                });
                vec![("numbers", values(numbers)), ("conditions", values(conditions))]
            });
        }
    }
}

#[test]
fn factors_of_several_rows() {
    for rows in ROWS {
        for width in WIDTHS {
            compare(&format!("factors of {rows} x {width}"), |device| {
                let grads = tensor(wave(rows * width, 0.3), [width, rows], device).swap_dims(0, 1);
                vec![("scale", values(clip_scale(grads, 0.5, 1e-6)))]
            });
        }
    }
}
