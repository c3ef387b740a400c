//! The factors that clip gradients to a norm.

use burn::backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;

use super::cubecl::{self, prelude::*};
use super::{LANES, at, empty, sum_of_lanes};

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

/// `min(limit / (norm + epsilon), 1)` of every row, `[n_rows, 1]`.
pub(crate) fn launch(grads: CubeTensor, limit: f32, epsilon: f32) -> CubeTensor {
    let n_rows = grads.shape()[0];
    let scale = empty(&grads, [n_rows, 1]);
    let (client, out) = (scale.client.clone(), scale.clone().into_tensor_arg());
    let (count, dim) = (CubeCount::Static(n_rows as u32, 1, 1), CubeDim::new_1d(LANES as u32));
    clip_scale::launch(&client, count, dim, grads.into_tensor_arg(), out, limit, epsilon);
    scale
}
