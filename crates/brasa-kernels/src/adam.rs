//! Clipping of gradients by their norm, and a step of Adam, over flat parameters on a device.
//!
//! In plain operations the first is seven launches and the second thirteen, on vectors that a GPU reads in microseconds.

#[cfg(any(feature = "cuda", feature = "wgpu"))]
use burn::backend::{Backend, Dispatch, backend_extension, tensor::FloatTensor};
use burn::tensor::Tensor;

use crate::elementwise;

/// The scalars of a step of Adam (Kingma and Ba 2015).
///
/// ```
/// use brasa_kernels::AdamStep;
///
/// /// Step `t` of Adam, from 1 on.
/// fn step(t: i32, learning_rate: f64) -> AdamStep {
///     let (beta_1, beta_2) = (0.9f64, 0.999f64);
///     let [first, second] = [beta_1, beta_2].map(|beta| 1.0 - beta.powi(t));
///     let (step_size, root_correction) = (learning_rate / first, second.sqrt());
///     AdamStep { beta_1, beta_2, epsilon: 1e-8, weight_decay: 0.0, step_size, root_correction }
/// }
///
/// // The bias corrections fade out.
/// assert!((step(1, 0.1).step_size - 1.0).abs() < 1e-9);
/// assert!((step(10_000, 0.1).step_size - 0.1).abs() < 1e-9);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamStep {
    /// Decay of the first moment.
    pub beta_1: f64,
    /// Decay of the second moment.
    pub beta_2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// Factor of the weight that is added to its gradient.
    pub weight_decay: f64,
    /// Learning rate divided by the bias correction of the first moment.
    pub step_size: f64,
    /// Root of the bias correction of the second moment.
    pub root_correction: f64,
}

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
    if crate::cube::runs_on(&grads) {
        let grads = grads.into_dispatch();
        return Tensor::from_dispatch(<Dispatch as AdamOps>::brasa_clip_scale(grads, limit as f32, epsilon as f32));
    }
    let norm = grads.square().sum_dim(1).sqrt();
    (norm + epsilon).recip().mul_scalar(limit).clamp_max(1.0)
}

/// New weight, first and second moment: with `g` the gradient plus `weight_decay` times the weight,
/// `m = beta_1 m + (1 - beta_1) g`, `v = beta_2 v + (1 - beta_2) g^2`, `w -= step_size m / (sqrt(v) / root_correction + epsilon)`.
///
/// With the first factor, `[1]`, the gradient is multiplied by it before. With the second one, `[2]`, its numbers are `step_size` and
/// `root_correction`: data, for a step that is recorded.
///
/// # Shapes
/// All others `[n]`, detached.
///
/// ```
/// use brasa_kernels::{AdamStep, adam};
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// // The first step with a learning rate of 0.1: each weight moves by 0.1, regardless of its gradient.
/// let device = brasa_device::open_named("cpu")?;
/// let step = AdamStep {
///     beta_1: 0.9,
///     beta_2: 0.999,
///     epsilon: 1e-8,
///     weight_decay: 0.0,
///     step_size: 0.1 / (1.0 - 0.9),
///     root_correction: (1.0f64 - 0.999).sqrt(),
/// };
/// let [weight, grad] = [[1.0, 1.0], [0.5, -20.0]].map(|row| Tensor::<1>::from_floats(row, &device));
/// let (first, second) = (weight.zeros_like(), weight.zeros_like());
/// let (weight, ..) = adam(weight, grad, first, second, step, [None, None]);
/// for (weight, expected) in numbers(weight).into_iter().zip([0.9, 1.1]) {
///     assert!((weight - expected).abs() < 1e-5);
/// }
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn adam(
    weight: Tensor<1>,
    grad: Tensor<1>,
    first: Tensor<1>,
    second: Tensor<1>,
    step: AdamStep,
    [scale, factors]: [Option<&Tensor<1>>; 2],
) -> (Tensor<1>, Tensor<1>, Tensor<1>) {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if factors.is_none() && crate::cube::runs_on(&weight) && weight.dims()[0] > 0 {
        let is_scaled = scale.is_some();
        // Without a factor, a kernel has a place for it.
        let scale = scale.unwrap_or(&weight).clone();
        let [weight, grad, first, second, scale] = [weight, grad, first, second, scale].map(Tensor::into_dispatch);
        let (weight, first, second) =
            <Dispatch as AdamOps>::brasa_adam(weight, grad, first, second, scale, is_scaled, step);
        return (Tensor::from_dispatch(weight), Tensor::from_dispatch(first), Tensor::from_dispatch(second));
    }
    let n = weight.dims()[0];
    let factors = match factors {
        Some(factors) => factors.clone(),
        None => Tensor::from_floats([step.step_size as f32, step.root_correction as f32], &weight.device()),
    };
    let [weight, first, second] = elementwise([n, 1], |formulas| {
        let [w, grad, first, second] =
            [&weight, &grad, &first, &second].map(|numbers| formulas.read(&numbers.clone().reshape([n, 1])));
        let factors = formulas.matrix(&factors.reshape([1, 2]));
        let (step_size, root_correction) = (factors.column(0), factors.column(1));
        let grad = match scale {
            Some(scale) => grad * formulas.matrix(&scale.clone().reshape([1, 1])).column(0),
            None => grad,
        };
        let grad = grad + w * step.weight_decay;
        let first = first * step.beta_1 + grad * (1.0 - step.beta_1);
        let second = second * step.beta_2 + grad * grad * (1.0 - step.beta_2);
        let new = w - first * step_size / (second.sqrt() / root_correction + step.epsilon);
        [vec![new], vec![first], vec![second]]
    });
    (weight.reshape([n]), first.reshape([n]), second.reshape([n]))
}

/// Backends with kernels for the optimizer.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
#[backend_extension(Cube)]
pub(crate) trait AdamOps: Backend {
    /// The factor of every row.
    fn brasa_clip_scale(grads: FloatTensor<Self>, limit: f32, epsilon: f32) -> FloatTensor<Self>;

    /// New weight, first and second moment.
    fn brasa_adam(
        weight: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        is_scaled: bool,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

#[cfg(any(feature = "cuda", feature = "wgpu"))]
impl AdamOps for burn_cubecl::CubeBackend {
    fn brasa_clip_scale(grads: FloatTensor<Self>, limit: f32, epsilon: f32) -> FloatTensor<Self> {
        crate::cube::adam::launch_clip_scale(grads, limit, epsilon)
    }

    fn brasa_adam(
        weight: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        is_scaled: bool,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        crate::cube::adam::launch([weight, grad, first, second, scale], is_scaled, step)
    }
}
