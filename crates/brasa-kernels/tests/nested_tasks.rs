//! Every public kernel on the CPU from tasks of rayon: while a kernel waits for its parts, its thread may start another task with a kernel.

#![cfg(feature = "flex")]

mod common;

use brasa_kernels::{
    Activation, EdgeTables, GaeInput, HostMlp, best_output, chosen_output, clip_scale, concat, elementwise, elu, gae,
    graph_attention, layer, layer_norm, mlp, split, stacked_layer, tanh, with_jacobian,
};
use burn::tensor::{Int, Tensor, TensorData};
use common::squashed_rsample;
use rayon::prelude::*;

/// Enough rows and columns that the products are computed in parts.
const ROWS: usize = 512;
const WIDTH: usize = 256;
const TASKS: usize = 32;

fn wave<const D: usize>(shape: [usize; D], phase: f32) -> Tensor<D> {
    let n: usize = shape.iter().product();
    let values: Vec<f32> = (0..n).map(|i| ((i as f32 + 1.0) * (1.7 + phase)).sin() / 16.0).collect();
    Tensor::from_data(TensorData::new(values, shape), &brasa_test::device())
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

fn layers_in_one_pass() -> Vec<f32> {
    let (first, second) = ((wave([WIDTH, WIDTH], 0.2), wave([WIDTH], 0.3)), (wave([WIDTH, 4], 0.4), wave([4], 0.5)));
    let parts = [(&first.0, &first.1, Some(Activation::Tanh)), (&second.0, &second.1, None)];
    values(mlp(&wave([ROWS, WIDTH], 0.1), parts).expect("the CPU has this path"))
}

fn a_layer() -> Vec<f32> {
    let weight = wave([WIDTH, WIDTH], 0.2).autodiff().require_grad();
    let x = wave([ROWS, WIDTH], 0.1).autodiff();
    let grads = layer(x, weight.clone(), wave([WIDTH], 0.3).autodiff(), Some(Activation::Elu)).sum().backward();
    values(weight.grad(&grads).expect("it is a leaf"))
}

fn layers_side_by_side() -> Vec<f32> {
    let [x, weight] = [wave([2, ROWS, WIDTH], 0.1), wave([2, WIDTH, WIDTH], 0.2)];
    values(stacked_layer(x, weight, wave([2, WIDTH], 0.3), Some(Activation::Relu)))
}

/// Narrow factors are copied to kept memory.
fn narrow_layers() -> Vec<f32> {
    let narrow = |columns| layer(wave([ROWS, WIDTH], 0.1), wave([WIDTH, columns], 0.2), wave([columns], 0.3), None);
    [1, 2, 4, 7].into_iter().flat_map(|columns| values(narrow(columns))).collect()
}

fn a_network_in_memory() -> Vec<f32> {
    let mut mlp = HostMlp::default();
    mlp.push(&wave([WIDTH, WIDTH], 0.2), &wave([WIDTH], 0.3), Some(Activation::Tanh)).expect("the CPU has this path");
    let x = values(wave([ROWS, WIDTH], 0.1));
    let grad = mlp.forward(&x, ROWS).to_vec();
    let (mut gradient, mut by_x) = (vec![0.0; mlp.n_params()], Vec::new());
    mlp.backward(&x, &grad, Some(&mut gradient), Some(&mut by_x));
    [gradient, by_x].concat()
}

fn formulas() -> Vec<f32> {
    let (a, b) = (wave([ROWS, WIDTH], 0.1), wave([ROWS, 1], 0.2));
    let [result] = elementwise([ROWS, WIDTH], |formulas| {
        let (a, b) = (formulas.read(&a), formulas.read(&b));
        [vec![a * b + (a - b).square().sqrt()]]
    });
    values(result)
}

fn attention() -> Vec<f32> {
    const NODES: usize = 8;
    let table = |values: Vec<i32>| {
        let n = values.len();
        Tensor::<2, Int>::from_data(TensorData::new(values, [1, n]), &brasa_test::device())
    };
    let ids = || Tensor::<1, Int>::zeros([ROWS], &brasa_test::device());
    let nodes = 0..NODES as i32;
    let tables = EdgeTables {
        ids: ids(),
        edge_ids: ids(),
        starts: table((0..=NODES as i32).collect()),
        sources: table(nodes.clone().map(|node| (node + 1) % NODES as i32).collect()),
        destinations: table(nodes.clone().collect()),
        edge_mask: Tensor::ones([1, NODES], &brasa_test::device()),
        slots: table(nodes.collect()).reshape([1, NODES, 1]),
    };
    values(graph_attention(wave([ROWS, NODES, 32], 0.1), wave([1, 4, 8], 0.2), None, &tables, 0.2).0)
}

fn best_and_chosen_outputs() -> Vec<f32> {
    let (x, weight, bias) = (wave([2, ROWS, WIDTH], 0.1), wave([2, WIDTH, 64], 0.2), wave([2, 64], 0.3));
    let (index, best) = best_output(x.clone(), weight.clone(), bias.clone(), None);
    [values(chosen_output(x, weight, bias, index.clone())), values(index), values(best)].concat()
}

fn advantages() -> Vec<f32> {
    let grid = |phase| wave([16, ROWS], phase);
    let none = || grid(0.0).zeros_like();
    let (reward, value, next_value) = (grid(0.1), grid(0.2), grid(0.3));
    values(gae(
        GaeInput { reward, value, next_value, terminated: none(), episode_end: none(), discount: None },
        0.99,
        0.95,
    ))
}

fn draws() -> Vec<f32> {
    let (action, log_prob) = squashed_rsample(wave([ROWS, 4], 0.1), wave([ROWS, 4], 0.2), wave([ROWS, 4], 0.3));
    [values(action), values(log_prob)].concat()
}

fn rows_alone() -> Vec<f32> {
    let x = || wave([ROWS, WIDTH], 0.1);
    let normed = layer_norm(x(), wave([WIDTH], 0.2), wave([WIDTH], 0.3), Some(Activation::Tanh));
    let parts = split(concat(vec![tanh(x()), elu(x())]), &[WIDTH, WIDTH]);
    let jacobian = with_jacobian(wave([1], 0.1), x(), wave([1, ROWS * WIDTH], 0.4));
    let factors = clip_scale(wave([4, WIDTH], 0.5), 0.1, 1e-6);
    [values(normed), parts.into_iter().flat_map(values).collect(), values(jacobian), values(factors)].concat()
}

#[test]
fn kernels_can_be_called_from_tasks_that_wait_for_each_other() {
    let kernels: [fn() -> Vec<f32>; 11] = [
        layers_in_one_pass,
        a_layer,
        layers_side_by_side,
        narrow_layers,
        a_network_in_memory,
        formulas,
        attention,
        best_and_chosen_outputs,
        advantages,
        draws,
        rows_alone,
    ];
    let expected: Vec<Vec<f32>> = kernels.iter().map(|kernel| kernel()).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().expect("threads");
    pool.install(|| {
        (0..TASKS * kernels.len()).into_par_iter().with_max_len(1).for_each(|task| {
            let kernel = task % kernels.len();
            assert!(kernels[kernel]() == expected[kernel], "kernel {kernel} in a task");
        });
    });
}

/// A format is that of a scope, not of what the thread does while the scope waits.
#[test]
fn a_format_does_not_reach_other_tasks() {
    use brasa_device::{Precision, autocast, precision};

    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads");
    let wide = |phase| wave([ROWS, WIDTH], phase);
    pool.install(|| {
        (0..TASKS).into_par_iter().with_max_len(1).for_each(|task| {
            assert_eq!(precision(), Precision::F32, "task {task}");
            // TF32 is a format of GPUs; on the CPU the products keep 32 bits, in parts.
            autocast(Precision::Tf32, || {
                drop(layer(wide(0.1), wave([WIDTH, WIDTH], 0.2), wave([WIDTH], 0.3), None));
                assert_eq!(precision(), Precision::Tf32, "task {task}");
            });
        });
    });
}
