//! Clipping of gradients by their norm, on a device.
//!
//! In plain operations it is seven launches, on vectors that a GPU reads in microseconds.

use burn::tensor::Tensor;

/// `min(limit / (norm + epsilon), 1)` of every row: the factor that limits its norm. `[n_rows, n]` to `[n_rows, 1]`, detached.
///
/// ```
/// use brasa_kernels::clip_scale;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// // The norms are 5 and 0.5. A limit of 1 changes the first row only.
/// let grads = Tensor::from_floats([[3.0, 4.0], [0.3, 0.4]], &brasa_device::open_named("cpu")?);
/// assert_eq!(numbers(clip_scale(grads, 1.0, 0.0)), [0.2, 1.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn clip_scale(grads: Tensor<2>, limit: f64, epsilon: f64) -> Tensor<2> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if let Some(grads) = crate::cube::on_device(&grads) {
        return crate::cube::from_device(crate::cube::clip::launch(grads, limit as f32, epsilon as f32));
    }
    let norm = grads.square().sum_dim(1).sqrt();
    (norm + epsilon).recip().mul_scalar(limit).clamp_max(1.0)
}
