//! Bias and activation in one pass, and the gradient of an activation from its result.

use burn::backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;

use super::cubecl::std::tensor::layout::linear::{LinearView, LinearViewMut};
use super::cubecl::{self, prelude::*};
use super::{empty, threads};
use crate::Activation;

#[cube(launch, create_dummy_kernel)]
pub(super) fn activation_forward(
    x: LinearView<'_, f32>,
    bias: LinearView<'_, f32>,
    mut y: LinearViewMut<'_, f32>,
    #[comptime] activation: Option<Activation>,
    #[comptime] with_bias: bool,
) {
    if y.is_in_bounds(ABSOLUTE_POS) {
        let mut sum = x.read(ABSOLUTE_POS);
        if with_bias {
            sum += bias.read(ABSOLUTE_POS);
        }
        y.write(ABSOLUTE_POS, activated(sum, activation));
    }
}

#[cube(launch, create_dummy_kernel)]
pub(super) fn activation_backward(
    y: LinearView<'_, f32>,
    grad: LinearView<'_, f32>,
    mut out: LinearViewMut<'_, f32>,
    #[comptime] activation: Option<Activation>,
) {
    if out.is_in_bounds(ABSOLUTE_POS) {
        out.write(ABSOLUTE_POS, before_activation(grad.read(ABSOLUTE_POS), y.read(ABSOLUTE_POS), activation));
    }
}

/// The activation of one number; a NaN stays one.
#[cube]
pub(super) fn activated(x: f32, #[comptime] activation: Option<Activation>) -> f32 {
    match activation {
        Some(Activation::Tanh) => x.tanh(),
        Some(Activation::Relu) => select(x <= 0.0, 0.0, x),
        Some(Activation::Elu) => select(x > 0.0, x, x.exp() - 1.0),
        None => x,
    }
}

/// The gradient before an activation, from the gradient after it and its result `y`.
#[cube]
pub(super) fn before_activation(grad: f32, y: f32, #[comptime] activation: Option<Activation>) -> f32 {
    match activation {
        Some(Activation::Tanh) => grad * (1.0 - y * y),
        Some(Activation::Relu) => select(y <= 0.0, 0.0, grad),
        Some(Activation::Elu) => select(y > 0.0, grad, grad * (y + 1.0)),
        None => grad,
    }
}

/// `activation(x + bias)`; a bias has the rank of `x` and is repeated over dimensions of size 1.
pub(crate) fn forward(x: CubeTensor, bias: Option<CubeTensor>, activation: Option<Activation>) -> CubeTensor {
    let (y, with_bias) = (empty(&x, x.shape()), bias.is_some());
    let n = y.shape().num_elements();
    if n == 0 {
        return y;
    }
    let (count, dim) = threads(&y, n);
    let bias = bias.unwrap_or_else(|| x.clone()).into_linear_view_like(&y);
    let (client, out) = (y.client.clone(), y.clone().into_linear_view());
    activation_forward::launch(&client, count, dim, x.into_linear_view(), bias, out, activation, with_bias);
    y
}

/// The gradient of the input from the result and its gradient.
pub(crate) fn backward(y: CubeTensor, grad: CubeTensor, activation: Option<Activation>) -> CubeTensor {
    let out = empty(&y, y.shape());
    let n = out.shape().num_elements();
    if n == 0 {
        return out;
    }
    let (count, dim) = threads(&out, n);
    let (client, view) = (out.client.clone(), out.clone().into_linear_view());
    activation_backward::launch(&client, count, dim, y.into_linear_view(), grad.into_linear_view(), view, activation);
    out
}
