//! Samples of a squashed Gaussian with their log-density: one thread per row.

use std::f32::consts::{LN_2, PI};

use burn::backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;

use super::cubecl::{self, prelude::*};
use super::{at, empty, threads};

#[cube(launch, create_dummy_kernel)]
pub(super) fn squash_forward(
    mean: &Tensor<f32>,
    log_std: &Tensor<f32>,
    noise: &Tensor<f32>,
    both: &mut Tensor<f32>,
    constant: f32,
    ln_2: f32,
) {
    let row = ABSOLUTE_POS;
    let n = mean.shape(1);
    if row < both.shape(0) {
        let mut log_prob = f32::cast_from(n) * constant;
        for i in 0..n {
            let (deviate, log_scale) = (noise[at(noise, row, i)], log_std[at(log_std, row, i)]);
            let u = mean[at(mean, row, i)] + log_scale.exp() * deviate;
            both[row * (n + 1) + i] = u.tanh();
            // softplus(x) = max(x, 0) + ln(1 + exp(-|x|)) of x = -2u.
            let x = -(u + u);
            let softplus = select(x > 0.0, x, 0.0) + (-x.abs()).exp().log1p();
            log_prob -= 0.5 * deviate * deviate + log_scale - 2.0 * (softplus + u - ln_2);
        }
        both[row * (n + 1) + n] = log_prob;
    }
}

#[cube(launch, create_dummy_kernel)]
pub(super) fn squash_backward(
    both: &Tensor<f32>,
    log_std: &Tensor<f32>,
    noise: &Tensor<f32>,
    grad: &Tensor<f32>,
    out: &mut Tensor<f32>,
) {
    let n = log_std.shape(1);
    if ABSOLUTE_POS < out.shape(0) * n {
        let (row, i) = (ABSOLUTE_POS / n, ABSOLUTE_POS % n);
        let (action, grad_log_prob) = (both[at(both, row, i)], grad[at(grad, row, n)]);
        // d tanh = 1 - a^2; d log-density / d u = 2 a.
        let grad_mean = grad[at(grad, row, i)] * (1.0 - action * action) + grad_log_prob * 2.0 * action;
        let deviation = log_std[at(log_std, row, i)].exp() * noise[at(noise, row, i)];
        out[row * 2 * n + i] = grad_mean;
        out[row * 2 * n + n + i] = grad_mean * deviation - grad_log_prob;
    }
}

/// `[n_rows, n + 1]`: the actions, and in the last column the log-density.
pub(crate) fn forward(mean: CubeTensor, log_std: CubeTensor, noise: CubeTensor) -> CubeTensor {
    let (n_rows, n) = (mean.shape()[0], mean.shape()[1]);
    let both = empty(&mean, [n_rows, n + 1]);
    if n_rows == 0 {
        return both;
    }
    let (count, dim) = threads(&both, n_rows);
    let (client, out) = (both.client.clone(), both.clone().into_tensor_arg());
    let [mean, log_std, noise] = [mean, log_std, noise].map(CubeTensor::into_tensor_arg);
    squash_forward::launch(&client, count, dim, mean, log_std, noise, out, -0.5 * (2.0 * PI).ln(), LN_2);
    both
}

/// Gradients of mean and `log_std`, `[n_rows, 2 n]`, from `both` of the forward pass and its gradient.
pub(crate) fn backward(both: CubeTensor, log_std: CubeTensor, noise: CubeTensor, grad: CubeTensor) -> CubeTensor {
    let (n_rows, n) = (log_std.shape()[0], log_std.shape()[1]);
    let result = empty(&both, [n_rows, 2 * n]);
    if n_rows * n == 0 {
        return result;
    }
    let (count, dim) = threads(&result, n_rows * n);
    let (client, out) = (result.client.clone(), result.clone().into_tensor_arg());
    let [both, log_std, noise, grad] = [both, log_std, noise, grad].map(CubeTensor::into_tensor_arg);
    squash_backward::launch(&client, count, dim, both, log_std, noise, grad, out);
    result
}
