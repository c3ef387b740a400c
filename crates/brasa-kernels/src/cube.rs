//! Kernels for GPUs in CubeCL, which translates them for CUDA, Vulkan, Metal and WebGPU.
//!
//! Small networks need more launches than arithmetic, so each kernel replaces a chain of launches. Kernels compute in f32 and
//! take inputs with any strides; their outputs are contiguous. Every sum has a fixed order: no atomic operations.

pub(crate) mod activation;
pub(crate) mod assign;
pub(crate) mod clip;
pub(crate) mod concat;
pub(crate) mod elementwise;
pub(crate) mod gae;
pub(crate) mod graph_attention;
pub(crate) mod layer_norm;
pub(crate) mod mlp;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub(crate) mod product;
pub(crate) mod row_loss;
pub(crate) mod row_rule;
#[cfg(feature = "cuda-source")]
mod source;
pub(crate) mod total;

use burn::tensor::{DType, Shape};
pub(crate) use burn_cubecl::cubecl;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

#[cfg(feature = "cuda-source")]
pub use source::cuda_sources;

/// Whether the tensor is on a device with these kernels, and in f32.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub(crate) fn runs_on<const D: usize>(tensor: &burn::tensor::Tensor<D>) -> bool {
    let device = tensor.device();
    !brasa_device::runs_on_host(&device) && crate::compiled_for(&device) && tensor.dtype() == DType::F32
}

/// The memory of a tensor with 32 bits on a GPU, of one with gradients that of its numbers; `None` on other devices.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub(crate) fn on_device<const D: usize>(tensor: &burn::tensor::Tensor<D>) -> Option<CubeTensor> {
    let plain = crate::plain_side(tensor.clone());
    plain.try_into_primitive::<burn_cubecl::CubeBackend>().ok().filter(|tensor| tensor.dtype == DType::F32)
}

/// The tensor of a result.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub(crate) fn from_device<const D: usize>(tensor: CubeTensor) -> burn::tensor::Tensor<D> {
    burn::tensor::Tensor::from_primitive::<burn_cubecl::CubeBackend>(tensor)
}

/// Whether all tensors are in f32.
pub(crate) fn all_f32(tensors: &[&CubeTensor]) -> bool {
    tensors.iter().all(|tensor| tensor.dtype == DType::F32)
}

/// Uninitialized and contiguous, on the device of `like`.
fn empty(like: &CubeTensor, shape: impl Into<Shape>) -> CubeTensor {
    empty_device_contiguous_dtype(like.client.clone(), like.device.clone(), shape.into(), DType::F32)
}

/// The launch of one thread per element of `0..n`, with `n` above 0.
fn threads(like: &CubeTensor, n: usize) -> (CubeCount, CubeDim) {
    let dim = CubeDim::new(&like.client, n);
    (cubecl::calculate_cube_count_elemwise(&like.client, n, dim), dim)
}

/// The place of an element of a matrix in memory.
#[cube]
fn at(matrix: &Tensor<f32>, row: usize, column: usize) -> usize {
    row * matrix.stride(0) + column * matrix.stride(1)
}

/// Threads of a group that sums.
const LANES: usize = 256;

/// The sum over the threads of a group of [`LANES`], for each of them. The order is fixed.
#[cube]
fn sum_of_lanes(sums: &mut Shared<[f32]>, lane: usize, value: f32) -> f32 {
    // An earlier result has been read then.
    sync_cube();
    sums[lane] = value;
    let mut half = (LANES / 2).runtime();
    while half > 0 {
        sync_cube();
        if lane < half {
            sums[lane] += sums[lane + half];
        }
        half /= 2;
    }
    sync_cube();
    sums[0]
}
