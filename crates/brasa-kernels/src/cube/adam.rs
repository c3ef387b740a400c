//! The factors that clip gradients to a norm, and a step of Adam over flat parameters.

use burn::backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;

use super::cubecl::{self, prelude::*};
use super::{LANES, at, empty, sum_of_lanes, threads};
use crate::AdamStep;

#[cube(launch, create_dummy_kernel)]
pub(super) fn clip_scale(grads: &Tensor<f32>, scale: &mut Tensor<f32>, limit: f32, epsilon: f32) {
    let row = CUBE_POS;
    let lane = UNIT_POS as usize;
    let mut sums = Shared::<[f32]>::new_slice(LANES);
    let mut sum = 0.0f32;
    for column in range_stepped(lane, grads.shape(1), LANES) {
        let grad = grads[at(grads, row, column)];
        sum += grad * grad;
    }
    let square = sum_of_lanes(&mut sums, lane, sum);
    if lane == 0 {
        let factor = limit / (square.sqrt() + epsilon);
        scale[row] = select(factor > 1.0, 1.0, factor);
    }
}

#[cube(launch, create_dummy_kernel)]
pub(super) fn adam(
    weight: &Tensor<f32>,
    grad: &Tensor<f32>,
    first: &Tensor<f32>,
    second: &Tensor<f32>,
    scale: &Tensor<f32>,
    new_weight: &mut Tensor<f32>,
    new_first: &mut Tensor<f32>,
    new_second: &mut Tensor<f32>,
    beta_1: f32,
    beta_2: f32,
    other_beta_1: f32,
    other_beta_2: f32,
    epsilon: f32,
    decay: f32,
    step_size: f32,
    root_correction: f32,
    #[comptime] is_scaled: bool,
) {
    let i = ABSOLUTE_POS;
    if i < new_weight.len() {
        let w = weight[i * weight.stride(0)];
        let mut g = grad[i * grad.stride(0)];
        if is_scaled {
            g *= scale[0];
        }
        g += decay * w;
        let m = beta_1 * first[i * first.stride(0)] + other_beta_1 * g;
        let v = beta_2 * second[i * second.stride(0)] + other_beta_2 * g * g;
        new_first[i] = m;
        new_second[i] = v;
        new_weight[i] = w - step_size * m / (v.sqrt() / root_correction + epsilon);
    }
}

/// `min(limit / (norm + epsilon), 1)` of every row, `[n_rows, 1]`.
pub(crate) fn launch_clip_scale(grads: CubeTensor, limit: f32, epsilon: f32) -> CubeTensor {
    let n_rows = grads.shape()[0];
    let scale = empty(&grads, [n_rows, 1]);
    let (client, out) = (scale.client.clone(), scale.clone().into_tensor_arg());
    let (count, dim) = (CubeCount::Static(n_rows as u32, 1, 1), CubeDim::new_1d(LANES as u32));
    clip_scale::launch(&client, count, dim, grads.into_tensor_arg(), out, limit, epsilon);
    scale
}

/// New weight, first and second moment, from weight, gradient, moments, and the factor of the gradient; all flat.
pub(crate) fn launch(
    [weight, grad, first, second, scale]: [CubeTensor; 5],
    is_scaled: bool,
    step: AdamStep,
) -> (CubeTensor, CubeTensor, CubeTensor) {
    let n = weight.shape()[0];
    let [new_weight, new_first, new_second] = [0; 3].map(|_| empty(&weight, [n]));
    let (count, dim) = threads(&weight, n);
    let client = weight.client.clone();
    let [weight, grad, first, second, scale, w, m, v] =
        [weight, grad, first, second, scale, new_weight.clone(), new_first.clone(), new_second.clone()]
            .map(CubeTensor::into_tensor_arg);
    adam::launch(
        &client,
        count,
        dim,
        weight,
        grad,
        first,
        second,
        scale,
        w,
        m,
        v,
        step.beta_1 as f32,
        step.beta_2 as f32,
        (1.0 - step.beta_1) as f32,
        (1.0 - step.beta_2) as f32,
        step.epsilon as f32,
        step.weight_decay as f32,
        step.step_size as f32,
        step.root_correction as f32,
        is_scaled,
    );
    (new_weight, new_first, new_second)
}
