//! Hand-fused operations as Burn backend extensions.
//!
//! Each has an implementation in plain operations for every backend, and a test that compares the two. On the CPU (feature
//! `flex`) an operation is one pass over memory, on GPUs (features `cuda` and `wgpu`) one kernel or a few. An operation is
//! added only if a profile justifies it. This crate depends on no policies and no loops.
//!
//! ```
//! use burn::tensor::Tensor;
//!
//! // On the CPU one pass over memory; elsewhere Burn's own operation.
//! let device = brasa_device::open_named("cpu")?;
//! let y = brasa_kernels::tanh(Tensor::<2>::from_floats([[0.0, 1.0]], &device));
//! assert!((y.into_data().iter::<f32>().last().unwrap() - 1.0f32.tanh()).abs() < 1e-6);
//! # Ok::<(), brasa_device::DeviceError>(())
//! ```

#![cfg_attr(
    not(any(feature = "flex", feature = "cuda", feature = "wgpu")),
    allow(
        dead_code,
        unused_imports,
        unused_variables,
        reason = "without a backend of its own only plain operations are left"
    )
)]

mod assign;
mod cell;
mod clip;
mod concat;
#[cfg(feature = "cube")]
mod cube;
mod elementwise;
mod elu;
mod gae;
mod graph_attention;
mod host;
mod host_mlp;
mod host_recurrent;
mod jacobian;
mod launches;
mod layer;
mod layer_norm;
mod mlp;
mod node;
mod options;
#[cfg(feature = "flex")]
mod parallel;
#[cfg(feature = "flex")]
mod product;
mod reused;
mod row_loss;
mod row_rule;
#[cfg(feature = "flex")]
mod scratch;
mod select;
#[cfg(test)]
mod specials;
mod tanh;
#[cfg(feature = "flex")]
mod tiles;
mod total;

pub use assign::{Assignment, assign_rows};
pub use cell::cell_rule;
pub use clip::clip_scale;
pub use concat::{concat, concat_rows, split};
#[cfg(feature = "cuda-source")]
pub use cube::cuda_sources;
pub use elementwise::{Formulas, Matrix, Operand, Value, elementwise, elementwise_list};
pub use elu::elu;
pub use gae::{GaeInput, gae, gae_on_host};
pub use graph_attention::{EdgeTables, graph_attention};
pub use host::HostTensor;
pub use host_mlp::HostMlp;
pub use host_recurrent::{HostRecurrent, RecurrentKind};
pub use jacobian::with_jacobian;
pub use launches::{launches_by_kernel, n_launches};
pub use layer::{Activation, any_width, layer, stacked_layer};
pub use layer_norm::layer_norm;
pub use mlp::{LayerParts, StackedLayerParts, mlp, stacked_mlp};
pub use options::{best_of, best_of_rows, best_output, chosen_of, chosen_output, smallest_of};
pub use reused::{reuse, reused};
pub use row_loss::{
    HostLossData, LossData, LossRows, RowLosses, Standardized, row_loss, row_loss_in_a_kernel, row_loss_on_host,
};
pub use row_rule::{HostColumns, HostColumnsMut, RowInputs, RowSlopes, row_rule};
pub use select::select_rows;
pub use tanh::tanh;
pub use total::total;

/// Whether loops over the memory of tensors ([`HostTensor`]) compute for `device`: it is the CPU, and this crate has the feature `flex`. Another
/// crate may have compiled in the backend alone; then every operation is Burn's.
///
/// ```
/// use brasa_kernels::{HostTensor, runs_on_host};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let x = Tensor::<1>::ones([4], &device);
/// // A loop over memory gets the numbers of a tensor where this holds.
/// assert_eq!(HostTensor::of(&x).is_some(), runs_on_host(&device));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn runs_on_host(device: &burn::tensor::Device) -> bool {
    cfg!(feature = "flex") && brasa_device::runs_on_host(device)
}

/// A tensor without gradients.
fn plain_side<const D: usize>(tensor: burn::tensor::Tensor<D>) -> burn::tensor::Tensor<D> {
    if tensor.is_autodiff() { tensor.inner() } else { tensor }
}

/// Whether the backend of `device` is a feature of this crate: another crate may have compiled it in.
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
fn compiled_for(device: &burn::tensor::Device) -> bool {
    let (host, gpu) = (cfg!(feature = "flex"), cfg!(any(feature = "cuda", feature = "wgpu")));
    let on_host = brasa_device::runs_on_host(device);
    (on_host && host) || (!on_host && gpu)
}
