//! The sum of all numbers, in one launch.

use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::cubecl::{self, prelude::*};
use super::{LANES, empty, sum_of_lanes};

#[cube(launch, create_dummy_kernel)]
pub(super) fn total(x: &Tensor<f32>, sum: &mut Tensor<f32>) {
    let lane = UNIT_POS as usize;
    let mut shared = Shared::<[f32]>::new_slice(LANES);
    let mut own = 0.0f32;
    for i in range_stepped(lane, x.len(), LANES) {
        own += x[i];
    }
    let whole = sum_of_lanes(&mut shared, lane, own);
    if lane == 0 {
        sum[0] = whole;
    }
}

/// `[1]`.
pub(crate) fn launch(x: CubeTensor) -> CubeTensor {
    let x = into_contiguous(x);
    let sum = empty(&x, [1]);
    let (count, dim) = (CubeCount::Static(1, 1, 1), CubeDim::new_1d(LANES as u32));
    total::launch(&sum.client, count, dim, x.into_tensor_arg(), sum.clone().into_tensor_arg());
    sum
}
