//! The classic tasks as tensor operations, for devices.
//!
//! The constants and the order of operations are those of the host forms, in 32 bits instead of 64.

mod cart_pole;
mod pendulum;

pub use cart_pole::{CartPoleTensors, TensorCartPole};
pub use pendulum::{PendulumTensors, TensorPendulum};

use brasa_core::ObsParts;
use burn::tensor::Tensor;

/// Observations of one agent without a mask.
fn observed(columns: Vec<Tensor<2>>) -> ObsParts {
    ObsParts { shared: None, own: Some(Tensor::cat(columns, 1)), mask: None, n_agents: 1, actions_per_flag: 1 }
}

/// Column `i` of uniform noise, `[n_envs, 1]`, mapped to `[-limit, limit)`.
fn symmetric(noise: &Tensor<2>, i: usize, limit: f64) -> Tensor<2> {
    let n_envs = noise.dims()[0];
    (noise.clone().slice([0..n_envs, i..i + 1]) * 2.0 - 1.0) * limit
}

fn flat(column: Tensor<2>) -> Tensor<1> {
    let n = column.dims()[0];
    column.reshape([n])
}
