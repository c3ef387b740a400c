//! A normal distribution squashed by tanh, for bounded actions.
//!
//! The stored action is the value `u` before tanh: it cannot be recovered from `tanh(u)` near the bounds.

use std::f32::consts::LN_2;

use burn::tensor::Tensor;
use burn::tensor::activation::softplus;

use super::gaussian;

/// Log-density of `tanh(u)`, `[n_rows]`.
///
/// The change of variables subtracts `ln(1 - tanh(u)^2)`, written as `2 (ln 2 - u - softplus(-2u))`, which does not
/// saturate (Haarnoja et al. 2018, appendix C, in the stable form of Spinning Up).
///
/// # Shapes
/// As [`gaussian::log_prob`], with `u` as the action.
pub fn log_prob(mean: Tensor<2>, log_std: Tensor<2>, u: Tensor<2>) -> Tensor<1> {
    gaussian::log_prob(mean, log_std, u.clone()) - log_derivative(u).sum_dim(1).squeeze_dim::<1>(1)
}

/// `ln(1 - tanh(u)^2)`.
fn log_derivative(u: Tensor<2>) -> Tensor<2> {
    (softplus(u.clone() * -2.0, 1.0) + u - LN_2) * -2.0
}

/// `ln(1 - tanh(u)^2)`, summed over a row.
pub fn log_derivative_of_row(u: &[f32]) -> f32 {
    u.iter().map(|u| -2.0 * ((-2.0 * u).max(0.0) + (-2.0 * u.abs()).exp().ln_1p() + u - LN_2)).sum()
}
