//! A normal distribution behind tanh, for bounded actions.
//!
//! The stored action is the value `u` before tanh: it cannot be recovered from `tanh(u)` near the bounds.

use std::f32::consts::{LN_2, PI};

use burn::tensor::Tensor;
use burn::tensor::activation::softplus;

use super::gaussian;

/// Log-density of `tanh(u)`, `[n_rows]`.
///
/// The change of variables subtracts `ln(1 - tanh(u)^2)`, written as `2 (ln 2 - u - softplus(-2u))`, which does not
/// saturate (Haarnoja et al. 2018, appendix C, in the stable form of Spinning Up).
///
/// # Shapes
/// As [`gaussian::log_prob`], `u` taking the place of the action.
pub fn log_prob(mean: Tensor<2>, log_std: Tensor<2>, u: Tensor<2>) -> Tensor<1> {
    gaussian::log_prob(mean, log_std, u.clone()) - log_derivative(u).sum_dim(1).squeeze_dim::<1>(1)
}

/// The action `tanh(mean + std noise)` and its log-density, `[n_rows]`, both differentiable in mean and deviation.
///
/// # Shapes
/// - `mean`, `noise`: `[n_rows, n]`
/// - `log_std`: `[n_rows, n]` or `[1, n]`
pub fn draw(mean: Tensor<2>, log_std: Tensor<2>, noise: Tensor<2>) -> (Tensor<2>, Tensor<1>) {
    let n = mean.dims()[1] as f32;
    let u = mean + log_std.clone().exp() * noise.clone();
    // The Gaussian's own density at u depends on the deviation alone: (u - mean) / std is the noise.
    let constant = noise.square().sum_dim(1).squeeze_dim::<1>(1) * -0.5 - 0.5 * (2.0 * PI).ln() * n;
    let log_prob = constant - (log_std + log_derivative(u.clone())).sum_dim(1).squeeze_dim::<1>(1);
    (brasa_kernels::tanh(u), log_prob)
}

/// `ln(1 - tanh(u)^2)`.
fn log_derivative(u: Tensor<2>) -> Tensor<2> {
    (softplus(u.clone() * -2.0, 1.0) + u - LN_2) * -2.0
}
