//! Generalized advantage estimation: one thread per row scans from the last step to the first.

use burn::backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;

use super::cubecl::{self, prelude::*};
use super::{at, empty, threads};

#[cube(launch, create_dummy_kernel)]
pub(super) fn gae(
    reward: &Tensor<f32>,
    value: &Tensor<f32>,
    next_value: &Tensor<f32>,
    terminated: &Tensor<f32>,
    episode_end: &Tensor<f32>,
    discount: &Tensor<f32>,
    advantage: &mut Tensor<f32>,
    gamma: f32,
    lambda: f32,
    #[comptime] with_discount: bool,
) {
    let row = ABSOLUTE_POS;
    let (n_steps, n_rows) = (advantage.shape(0), advantage.shape(1));
    if row < n_rows {
        let mut later = 0.0f32;
        for i in 0..n_steps {
            let step = n_steps - 1 - i;
            let mut discounted = gamma;
            if with_discount {
                discounted = discount[at(discount, step, row)];
            }
            let bootstrap =
                discounted * (1.0 - terminated[at(terminated, step, row)]) * next_value[at(next_value, step, row)];
            let delta = reward[at(reward, step, row)] + bootstrap - value[at(value, step, row)];
            later = delta + discounted * lambda * (1.0 - episode_end[at(episode_end, step, row)]) * later;
            advantage[step * n_rows + row] = later;
        }
    }
}

/// Advantages of inputs `[n_steps, n_rows]`: reward, value, next value, terminated, episode end, discount.
pub(crate) fn launch(inputs: [CubeTensor; 6], with_discount: bool, gamma: f32, lambda: f32) -> CubeTensor {
    let shape = inputs[0].shape();
    let advantage = empty(&inputs[0], shape.clone());
    if shape.num_elements() == 0 {
        return advantage;
    }
    let (count, dim) = threads(&advantage, shape[1]);
    let client = advantage.client.clone();
    let [reward, value, next_value, terminated, episode_end, discount] = inputs.map(CubeTensor::into_tensor_arg);
    let out = advantage.clone().into_tensor_arg();
    gae::launch(
        &client,
        count,
        dim,
        reward,
        value,
        next_value,
        terminated,
        episode_end,
        discount,
        out,
        gamma,
        lambda,
        with_discount,
    );
    advantage
}
