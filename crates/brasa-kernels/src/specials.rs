//! Every kernel against its plain operations where a number is NaN, infinite, a zero with a sign or denormal.
//!
//! A kernel that turns NaN into a number hides that training diverged.

use burn::tensor::{Device, Tensor, TensorData};

use crate::graph_attention::tests::{N_EDGES, N_NODES, tables};
use crate::graph_attention::{graph_attention, plain_graph_attention};
use crate::layer::activate;
use crate::layer_norm::plain_layer_norm;
use crate::options::plain_chosen_output;
use crate::{
    Activation, RowInputs, best_of, best_output, chosen_output, elu, layer_norm, row_rule, stacked_layer, tanh,
};
use brasa_number::NormalDraw;
use burn::tensor::activation::softplus;
use std::f32::consts::{LN_2, PI};

const DENORMAL: f32 = f32::MIN_POSITIVE / 4.0;

/// Numbers that arithmetic treats apart.
const SPECIALS: [f32; 8] =
    [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.0, DENORMAL, -DENORMAL, f32::MIN_POSITIVE];

const ACTIVATIONS: [Option<Activation>; 4] =
    [None, Some(Activation::Tanh), Some(Activation::Relu), Some(Activation::Elu)];

fn device() -> Device {
    brasa_test::device().autodiff()
}

fn leaf<const D: usize>(values: Vec<f32>, shape: [usize; D]) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), &device()).require_grad()
}

/// Ordinary numbers that repeat.
fn wave(n: usize, phase: f32) -> Vec<f32> {
    (0..n).map(|i| ((i as f32 + 1.0) * (1.7 + phase)).sin() * 1.5).collect()
}

/// `wave` with `special` at `place`.
fn wave_with(n: usize, phase: f32, place: usize, special: f32) -> Vec<f32> {
    let mut values = wave(n, phase);
    values[place] = special;
    values
}

/// The numbers of input `which`, with `special` in the middle where `is_special`.
fn part(is_special: bool, which: usize, n: usize, special: f32) -> Vec<f32> {
    match is_special {
        true => wave_with(n, which as f32, n / 2, special),
        false => wave(n, which as f32),
    }
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

/// A result and the gradients of its leaves, where each result is weighted by its own number.
fn with_grads<const D: usize, const N: usize>(y: Tensor<D>, leaves: [&Tensor<D>; N]) -> Vec<f32> {
    let n = y.shape().num_elements();
    let probe = Tensor::<1>::from_data(TensorData::new(wave(n, 0.4), [n]), &device()).reshape(y.shape());
    let grads = (y.clone() * probe).sum().backward();
    let mut all = values(y.inner());
    leaves.into_iter().for_each(|leaf| all.extend(values(leaf.grad(&grads).expect("it is a leaf"))));
    all
}

/// Equal, near each other, or neither of them finite: whether infinities cancel to NaN depends on the order of a sum, and either
/// shows.
fn assert_same(got: &[f32], expected: &[f32], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        let near = (got - expected).abs() <= 2e-5 * expected.abs().max(1.0);
        let same = got == expected || (!got.is_finite() && !expected.is_finite()) || near;
        assert!(same, "{what}, number {i}: {got:e} instead of {expected:e}");
    }
}

#[test]
#[cfg_attr(not(feature = "flex"), ignore = "the loops for the CPU need the feature `flex`")]
fn activations_alone() {
    let x = leaf(SPECIALS.to_vec(), [1, SPECIALS.len()]);
    assert_same(&with_grads(tanh(x.clone()), [&x]), &with_grads(x.clone().tanh(), [&x]), "tanh");
    let plain = burn::tensor::activation::elu(x.clone(), 1.0);
    // The plain form goes through both sides of its choice and multiplies the gradient of the other one by 0, which is NaN
    // where that side is infinite: the result is compared with it, the gradient with the derivative.
    let got = with_grads(elu(x.clone()), [&x]);
    assert_same(&got[..SPECIALS.len()], &values(plain.inner()), "elu");
    let slope = |x: f32| if x > 0.0 { 1.0 } else { x.exp() };
    let expected: Vec<f32> =
        SPECIALS.iter().zip(wave(SPECIALS.len(), 0.4)).map(|(x, probe)| probe * slope(*x)).collect();
    assert_same(&got[SPECIALS.len()..], &expected, "gradient of elu");
}

#[test]
fn layers() {
    for activation in ACTIVATIONS {
        for special in SPECIALS {
            // In the input, in the weights, in the bias; the shapes go through the product for few rows and the general one.
            for (place, rows, inputs, outputs) in
                [(0, 5, 3, 4), (1, 5, 3, 4), (2, 5, 3, 4), (0, 40, 17, 33), (1, 40, 17, 33)]
            {
                let part = |which: usize, n: usize| part(which == place, which, n, special);
                let x = leaf(part(0, rows * inputs), [1, rows, inputs]);
                let weight = leaf(part(1, inputs * outputs), [1, inputs, outputs]);
                let bias = leaf(part(2, outputs), [1, outputs]);
                let fused = stacked_layer(x.clone(), weight.clone(), bias.clone(), activation);
                let plain = x.clone().matmul(weight.clone()) + bias.clone().unsqueeze_dim(1);
                let plain = match activation {
                    // See `activations_alone`.
                    Some(Activation::Elu) => elu(plain),
                    _ => activate(plain, activation),
                };
                let what = format!("{activation:?} of {special} at {place} with {rows} rows");
                assert_same(&with_grads(fused, [&x, &weight]), &with_grads(plain, [&x, &weight]), &what);
            }
        }
    }
}

#[test]
fn norms() {
    for activation in ACTIVATIONS {
        for special in SPECIALS {
            for place in 0..3 {
                let part = |which: usize, n: usize| part(which == place, which, n, special);
                let x = leaf(part(0, 3 * 20), [3, 20]);
                let (scale, shift) = (leaf(part(1, 20), [20]), leaf(part(2, 20), [20]));
                let fused = layer_norm(x.clone(), scale.clone(), shift.clone(), activation);
                let plain = plain_layer_norm(x.clone(), scale, shift, activation);
                let what = format!("{activation:?} of {special} at {place}");
                assert_same(&with_grads(fused, [&x]), &with_grads(plain, [&x]), &what);
            }
        }
    }
}

#[test]
fn draws() {
    let rule = NormalDraw { squash: true, log_std_range: None };
    for special in SPECIALS {
        for place in 0..2 {
            let part = |which: usize| match which == place {
                true => wave_with(6, which as f32, 2, special),
                false => wave(6, which as f32),
            };
            let (mean, log_std) = (leaf(part(0), [2, 3]), leaf(part(1), [2, 3]));
            let noise = Tensor::<2>::from_data(TensorData::new(wave(6, 2.0), [2, 3]), &device()).inner();
            let both = |action: Tensor<2>, log_prob: Tensor<1>| {
                values(Tensor::cat(vec![action, log_prob.unsqueeze_dim(1)], 1).inner())
            };
            let rows = RowInputs { results: [&mean, &log_std], data: Some(&noise), taken: None };
            let ([action], [log_prob]) = row_rule(rule, &rows);
            let ours = both(action, log_prob);
            let noise = Tensor::from_inner(noise);
            let u = mean + log_std.clone().exp() * noise.clone();
            let derivative = (softplus(u.clone() * -2.0, 1.0) + u.clone() - LN_2) * -2.0;
            let constant = noise.square().sum_dim(1).squeeze_dim::<1>(1) * -0.5 - 0.5 * (2.0 * PI).ln() * 3.0;
            let plain = both(u.tanh(), constant - (log_std + derivative).sum_dim(1).squeeze_dim::<1>(1));
            assert_same(&ours, &plain, &format!("{special} at {place}"));
        }
    }
}

#[test]
fn outputs_of_single_columns() {
    for special in SPECIALS {
        for place in 0..3 {
            let (rows, inputs, outputs) = (3, 5, 40);
            let part = |which: usize, n: usize| part(which == place, which, n, special);
            let x = leaf(part(0, rows * inputs), [1, rows, inputs]);
            let weight = leaf(part(1, inputs * outputs), [1, inputs, outputs]);
            let bias = leaf(part(2, outputs), [1, outputs]);
            let what = format!("{special} at {place}");
            let index = Tensor::<2>::from_floats([[20.0, 0.0, 39.0]], &device());
            let with_grads = |y: Tensor<2>| with_grads(y.unsqueeze_dim::<3>(2), [&x, &weight]);
            let fused = with_grads(chosen_output(x.clone(), weight.clone(), bias.clone(), index.clone()));
            let plain = with_grads(plain_chosen_output(x.clone(), weight.clone(), bias.clone(), index));
            // The dense form multiplies columns that were not chosen by 0, which is NaN where they are not finite: gradients
            // are compared where the dense ones are numbers.
            for (i, (got, expected)) in fused.iter().zip(&plain).enumerate() {
                if i < rows || expected.is_finite() {
                    assert_same(&[*got], &[*expected], &format!("{what}, {i}"));
                }
            }
            // Blocks of 16, of 4 and single columns.
            let mask = Tensor::<3>::ones([1, rows, 1], &brasa_test::device());
            let all = x.clone().matmul(weight.clone()) + bias.clone().unsqueeze_dim::<3>(1);
            let (_, expected) = best_of(all.inner(), Some(mask.clone()));
            let (_, got) = best_output(x, weight, bias, Some(mask));
            assert_same(&values(got), &values(expected), &what);
        }
    }
}

#[test]
fn attention_over_graphs() {
    let (heads, channels) = (2, 8);
    let hidden = heads * channels;
    let tables = tables(&brasa_test::device());
    for special in SPECIALS {
        for vectors in [1, 2] {
            for place in 0..3 {
                let part = |which: usize, n: usize| part(which == place, which, n, special);
                let projected = leaf(part(0, 3 * N_NODES * hidden), [3, N_NODES, hidden]);
                let attention = leaf(part(1, vectors * hidden), [vectors, heads, channels]);
                let width = if vectors == 2 { heads } else { hidden };
                let edge = Some(leaf(part(2, 2 * N_EDGES * width), [2, N_EDGES, width]));
                let run = |f: fn(Tensor<3>, Tensor<3>, Option<Tensor<3>>, &_, f32) -> (Tensor<3>, Tensor<3>)| {
                    let (out, _) = f(projected.clone(), attention.clone(), edge.clone(), &tables, 0.2);
                    values(out.inner())
                };
                let what = format!("{special} at {place} with {vectors} attention vectors");
                assert_same(&run(graph_attention), &run(plain_graph_attention), &what);
            }
        }
    }
}
