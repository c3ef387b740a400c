//! The classic tasks as tensor operations, for devices.
//!
//! The constants and the order of operations are those of the host forms, in 32 bits instead of 64.

mod cart_pole;
mod pendulum;

pub use cart_pole::TensorCartPole;
pub use pendulum::TensorPendulum;

use brasa_core::ObsParts;
use burn::tensor::Tensor;

/// Observations of one agent without a mask.
fn observed(values: Tensor<2>) -> ObsParts {
    ObsParts { shared: None, own: Some(values), mask: None, n_agents: 1, actions_per_flag: 1 }
}

fn flat(column: Tensor<2>) -> Tensor<1> {
    let n = column.dims()[0];
    column.reshape([n])
}
