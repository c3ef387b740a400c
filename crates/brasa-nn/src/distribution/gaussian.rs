//! Independent normal distributions.

use std::f32::consts::{E, PI};

use burn::tensor::Tensor;

/// Log-density of `action`, `[n_rows]`: the sum over dimensions.
///
/// # Shapes
/// - `mean`, `action`: `[n_rows, n]`
/// - `log_std`: `[n_rows, n]` or `[1, n]`
pub fn log_prob(mean: Tensor<2>, log_std: Tensor<2>, action: Tensor<2>) -> Tensor<1> {
    let n = mean.dims()[1];
    let scaled = (action - mean) * (-log_std.clone()).exp();
    let half = (scaled.square() * 0.5 + log_std).sum_dim(1).squeeze_dim::<1>(1);
    -half - 0.5 * (2.0 * PI).ln() * n as f32
}

/// Entropy in nats: `sum(log_std) + n/2 ln(2 pi e)`, one number per row of `log_std`.
pub fn entropy(log_std: Tensor<2>) -> Tensor<1> {
    let n = log_std.dims()[1];
    log_std.sum_dim(1).squeeze_dim::<1>(1) + 0.5 * (2.0 * PI * E).ln() * n as f32
}
