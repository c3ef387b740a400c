//! Layer normalization with an activation: one thread per row.

use burn::backend::TensorMetadata;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::activation::{activated, before_activation};
use super::cubecl::{self, prelude::*};
use super::{empty, threads};
use crate::Activation;

#[cube(launch, create_dummy_kernel)]
pub(super) fn layer_norm_forward(
    x: &Tensor<f32>,
    scale: &Tensor<f32>,
    shift: &Tensor<f32>,
    y: &mut Tensor<f32>,
    moments: &mut Tensor<f32>,
    epsilon: f32,
    #[comptime] activation: Option<Activation>,
) {
    let row = ABSOLUTE_POS;
    let width = scale.len();
    if row < moments.shape(0) {
        let first = row * width;
        let mut mean = 0.0f32;
        for i in 0..width {
            mean += x[first + i];
        }
        mean /= f32::cast_from(width);
        let mut variance = 0.0f32;
        for i in 0..width {
            let centered = x[first + i] - mean;
            variance += centered * centered;
        }
        let inverse = 1.0 / (variance / f32::cast_from(width) + epsilon).sqrt();
        for i in 0..width {
            let normalized = (x[first + i] - mean) * inverse;
            y[first + i] = activated(normalized * scale[i] + shift[i], activation);
        }
        moments[2 * row] = mean;
        moments[2 * row + 1] = inverse;
    }
}

/// The gradient of `x`, and per row the parts of the gradients of scale and shift.
#[cube(launch, create_dummy_kernel)]
pub(super) fn layer_norm_backward(
    x: &Tensor<f32>,
    scale: &Tensor<f32>,
    y: &Tensor<f32>,
    moments: &Tensor<f32>,
    grad: &Tensor<f32>,
    grad_x: &mut Tensor<f32>,
    parts: &mut Tensor<f32>,
    #[comptime] activation: Option<Activation>,
) {
    let row = ABSOLUTE_POS;
    let (width, rows) = (scale.len(), moments.shape(0));
    if row < rows {
        let first = row * width;
        let (mean, inverse) = (moments[2 * row], moments[2 * row + 1]);
        let mut sum = 0.0f32;
        let mut product = 0.0f32;
        for i in 0..width {
            let normalized = (x[first + i] - mean) * inverse;
            let before = before_activation(grad[first + i], y[first + i], activation);
            parts[first + i] = before * normalized;
            parts[rows * width + first + i] = before;
            sum += before * scale[i];
            product += before * scale[i] * normalized;
        }
        sum /= f32::cast_from(width);
        product /= f32::cast_from(width);
        for i in 0..width {
            let normalized = (x[first + i] - mean) * inverse;
            grad_x[first + i] = inverse * (parts[rows * width + first + i] * scale[i] - sum - normalized * product);
        }
    }
}

/// The normalized rows, and per row the mean and the inverse standard deviation, `[rows, 2]`.
pub(crate) fn forward(
    x: CubeTensor,
    scale: CubeTensor,
    shift: CubeTensor,
    epsilon: f32,
    activation: Option<Activation>,
) -> (CubeTensor, CubeTensor) {
    let [x, scale, shift] = [x, scale, shift].map(into_contiguous);
    let (shape, width) = (x.shape(), scale.shape()[0]);
    let rows = shape.num_elements() / width.max(1);
    let (y, moments) = (empty(&x, shape), empty(&x, [rows, 2]));
    if rows == 0 {
        return (y, moments);
    }
    let (count, dim) = threads(&y, rows);
    let client = y.client.clone();
    let [x, scale, shift, out, pairs] = [x, scale, shift, y.clone(), moments.clone()].map(CubeTensor::into_tensor_arg);
    layer_norm_forward::launch(&client, count, dim, x, scale, shift, out, pairs, epsilon, activation);
    (y, moments)
}

/// The gradient of `x`, and `[2, rows, width]`: per row the parts of the gradients of scale and shift.
pub(crate) fn backward(
    x: CubeTensor,
    scale: CubeTensor,
    y: CubeTensor,
    moments: CubeTensor,
    grad: CubeTensor,
    activation: Option<Activation>,
) -> (CubeTensor, CubeTensor) {
    let [x, scale, y, moments, grad] = [x, scale, y, moments, grad].map(into_contiguous);
    let (rows, width) = (moments.shape()[0], scale.shape()[0]);
    let (grad_x, parts) = (empty(&x, x.shape()), empty(&x, [2, rows, width]));
    if rows == 0 {
        return (grad_x, parts);
    }
    let (count, dim) = threads(&grad_x, rows);
    let client = grad_x.client.clone();
    let [x, scale, y, moments, grad, out, all] =
        [x, scale, y, moments, grad, grad_x.clone(), parts.clone()].map(CubeTensor::into_tensor_arg);
    layer_norm_backward::launch(&client, count, dim, x, scale, y, moments, grad, out, all, activation);
    (grad_x, parts)
}
