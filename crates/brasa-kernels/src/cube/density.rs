//! The log-density of independent normal distributions with its derivatives: one thread per row.

use burn::backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;

use super::cubecl::{self, prelude::*};
use super::{at, empty, threads};

#[cube(launch, create_dummy_kernel)]
pub(super) fn density(
    mean: &Tensor<f32>,
    log_std: &Tensor<f32>,
    action: &Tensor<f32>,
    log_prob: &mut Tensor<f32>,
    by_mean: &mut Tensor<f32>,
    by_log_std: &mut Tensor<f32>,
    half_log_2_pi: f32,
    #[comptime] shared: bool,
) {
    let row = ABSOLUTE_POS;
    let n = mean.shape(1);
    if row < mean.shape(0) {
        let mut half = half_log_2_pi * f32::cast_from(n);
        for i in 0..n {
            let mut log_scale = log_std[i * log_std.stride(1)];
            if !shared {
                log_scale = log_std[at(log_std, row, i)];
            }
            let inverse = (-log_scale).exp();
            let scaled = (action[at(action, row, i)] - mean[at(mean, row, i)]) * inverse;
            half += 0.5 * scaled * scaled + log_scale;
            by_mean[row * n + i] = scaled * inverse;
            by_log_std[row * n + i] = scaled * scaled - 1.0;
        }
        log_prob[row] = -half;
    }
}

/// Log-densities, `[n_rows]`, and derivatives by mean and `log_std`, `[n_rows, n]`, of means and actions `[n_rows, n]`; `log_std` has one row
/// or as many, and nothing is empty.
pub(crate) fn launch(mean: CubeTensor, log_std: CubeTensor, action: CubeTensor, half_log_2_pi: f32) -> [CubeTensor; 3] {
    let (n_rows, n) = (mean.shape()[0], mean.shape()[1]);
    let shared = log_std.shape()[0] == 1;
    let out = [empty(&mean, [n_rows]), empty(&mean, [n_rows, n]), empty(&mean, [n_rows, n])];
    let (count, dim) = threads(&mean, n_rows);
    let client = mean.client.clone();
    let [mean, log_std, action] = [mean, log_std, action].map(CubeTensor::into_tensor_arg);
    let [log_prob, by_mean, by_log_std] = out.clone().map(CubeTensor::into_tensor_arg);
    density::launch(&client, count, dim, mean, log_std, action, log_prob, by_mean, by_log_std, half_log_2_pi, shared);
    out
}
