//! Layer normalization with scale, shift and activation, as one autodiff node.
//!
//! In plain operations it needs eight passes over memory forward and twice as many backward, half of the time of an
//! update of a policy over graphs. On the CPU it is one pass each way, on GPUs one kernel, and backward a sum over rows.

#[cfg(feature = "flex")]
pub(crate) mod host;

#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::Dispatch;
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::tensor::FloatTensor;
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::{Autodiff, Backend, backend_extension};
use burn::tensor::Tensor;

#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use crate::node::node;
use crate::{Activation, elu, tanh};

/// Keeps the derivative of the square root finite; PyTorch's value.
const EPSILON: f32 = 1e-5;

/// `activation(scale (x - mean) / sqrt(variance + 1e-5) + shift)` over the last dimension (Ba et al. 2016), with the
/// biased variance.
///
/// # Shapes
/// - `x` and output: `[.., width]`
/// - `scale`, `shift`: `[width]`
///
/// ```
/// use brasa_kernels::{Activation, layer_norm};
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// let device = brasa_device::open_named("cpu")?;
/// let x = Tensor::<2>::from_floats([[10.0, 30.0]], &device);
/// let (scale, shift) = (Tensor::ones([2], &device), Tensor::from_floats([0.5, 0.5], &device));
/// // The mean is 20 and the deviation is 10: -1 and 1, then the shift and the activation.
/// let y = numbers(layer_norm(x, scale, shift, Some(Activation::Relu)));
/// assert!(y[0] == 0.0 && (y[1] - 1.5).abs() < 1e-5);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn layer_norm<const D: usize>(
    x: Tensor<D>,
    scale: Tensor<1>,
    shift: Tensor<1>,
    activation: Option<Activation>,
) -> Tensor<D> {
    #[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
    {
        let single = [x.dtype(), scale.dtype(), shift.dtype()].iter().all(|d| *d == burn::tensor::DType::F32);
        if single && crate::compiled_for(&x.device()) {
            let (x, scale, shift) = (x.into_dispatch(), scale.into_dispatch(), shift.into_dispatch());
            let (y, _) = <Dispatch as LayerNormOps>::brasa_layer_norm(x, scale, shift, activation);
            return Tensor::from_dispatch(y);
        }
    }
    plain_layer_norm(x, scale, shift, activation)
}

pub(crate) fn plain_layer_norm<const D: usize>(
    x: Tensor<D>,
    scale: Tensor<1>,
    shift: Tensor<1>,
    activation: Option<Activation>,
) -> Tensor<D> {
    let centered = x.clone() - x.mean_dim(D - 1);
    let variance = centered.clone().square().mean_dim(D - 1);
    let y = centered / (variance + EPSILON).sqrt() * scale.unsqueeze() + shift.unsqueeze();
    match activation {
        Some(Activation::Tanh) => tanh(y),
        Some(Activation::Relu) => burn::tensor::activation::relu(y),
        Some(Activation::Elu) => elu(y),
        None => y,
    }
}

/// Backends with a fused layer norm.
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(any(feature = "cuda", feature = "wgpu")),
    Autodiff
)]
pub(crate) trait LayerNormOps: Backend {
    /// The normalized rows, and per row the mean and the inverse standard deviation.
    fn brasa_layer_norm(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        activation: Option<Activation>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}

/// The gradients of a layer norm.
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
pub(crate) trait LayerNormBackward: Backend {
    /// Gradients of input, scale and shift, from input, scale, result and moments of the forward pass.
    fn layer_norm_backward(
        kept: [FloatTensor<Self>; 4],
        grad: FloatTensor<Self>,
        activation: Option<Activation>,
    ) -> [FloatTensor<Self>; 3];
}

#[cfg(any(feature = "cuda", feature = "wgpu"))]
impl LayerNormOps for burn_cubecl::CubeBackend {
    fn brasa_layer_norm(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        activation: Option<Activation>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        crate::cube::layer_norm::forward(x, scale, shift, EPSILON, activation)
    }
}

#[cfg(any(feature = "cuda", feature = "wgpu"))]
impl LayerNormBackward for burn_cubecl::CubeBackend {
    fn layer_norm_backward(
        [x, scale, y, moments]: [FloatTensor<Self>; 4],
        grad: FloatTensor<Self>,
        activation: Option<Activation>,
    ) -> [FloatTensor<Self>; 3] {
        use burn::backend::{TensorMetadata, ops::FloatTensorOps};
        use burn::tensor::{Shape, Slice};

        let width = scale.shape()[0];
        let (grad_x, parts) = crate::cube::layer_norm::backward(x, scale, y, moments, grad, activation);
        let sums = Self::float_sum_dim(parts, 1);
        let part = |i: usize| {
            let part = Self::float_slice(sums.clone(), &[i..i + 1, 0..1, 0..width].map(Slice::from));
            Self::float_reshape(part, Shape::from([width]))
        };
        [grad_x, part(0), part(1)]
    }
}

#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
impl<B: LayerNormOps + LayerNormBackward, C: CheckpointStrategy> LayerNormOps for Autodiff<B, C> {
    fn brasa_layer_norm(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        activation: Option<Activation>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let forward = |[x, scale, shift]: [FloatTensor<B>; 3], is_tracked: bool| {
            let kept = is_tracked.then(|| (x.clone(), scale.clone()));
            let (y, moments) = B::brasa_layer_norm(x, scale, shift, activation);
            let kept = kept.map(|(x, scale)| ([x, scale, y.clone(), moments.clone()], activation));
            (y, kept, moments)
        };
        let backward =
            |(kept, activation), _: [bool; 3], grad| B::layer_norm_backward(kept, grad, activation).map(Some);
        let (y, moments) = node::<B, C, _, _, 3>([x, scale, shift], forward, backward);
        (y, FloatTensor::<Self>::new(moments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::TensorData;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_pass_equals_its_plain_operations(
            width in 2usize..40, seed in 0.0f32..100.0, turned in proptest::bool::ANY,
            activation in prop_oneof![
                Just(None), Just(Some(Activation::Tanh)), Just(Some(Activation::Relu)), Just(Some(Activation::Elu)),
            ],
        ) {
            let device = brasa_test::device().autodiff();
            let numbers = |n: usize, phase: f32| -> Vec<f32> {
                (0..n).map(|i| ((i as f32 + 1.0) * (phase + 0.37 * seed)).sin() * 2.0).collect()
            };
            let dims = if turned { [2, width, 3] } else { [2, 3, width] };
            // Neighbors in a row differ: with a variance near 0 both implementations divide by rounding errors.
            let stride = if turned { 3 } else { 1 };
            let spread = |(i, x): (usize, f32)| if (i / stride) % width % 2 == 0 { x + 3.0 } else { x - 3.0 };
            let values = numbers(6 * width, 1.7).into_iter().enumerate().map(spread).collect();
            let x = Tensor::<3>::from_data(TensorData::new::<f32, _>(values, dims), &device).require_grad();
            let vector = |phase| Tensor::<1>::from_data(TensorData::new(numbers(width, phase), [width]), &device);
            let (scale, shift) = (vector(0.3).require_grad(), vector(0.7).require_grad());
            let probe = Tensor::<3>::from_data(TensorData::new(numbers(6 * width, 2.9), [2, 3, width]), &device);
            let run = |norm: fn(Tensor<3>, Tensor<1>, Tensor<1>, Option<Activation>) -> Tensor<3>| {
                let input = if turned { x.clone().swap_dims(1, 2) } else { x.clone() };
                let y = norm(input, scale.clone(), shift.clone(), activation);
                let grads = (y.clone() * probe.clone()).sum().backward();
                let mut all: Vec<f32> = y.inner().into_data().iter::<f32>().collect();
                all.extend(x.grad(&grads).expect("a leaf").into_data().iter::<f32>());
                all.extend(scale.grad(&grads).expect("a leaf").into_data().iter::<f32>());
                all.extend(shift.grad(&grads).expect("a leaf").into_data().iter::<f32>());
                all
            };
            for (got, expected) in run(layer_norm).iter().zip(&run(plain_layer_norm)) {
                let close = (got - expected).abs() < 1e-4 * expected.abs().max(1.0);
                prop_assert!(close, "{} instead of {}", got, expected);
            }
        }
    }

    #[test]
    fn off_the_tape_it_stays_off() {
        let device = brasa_test::device();
        let x = Tensor::<2>::from_floats([[1.0, 3.0], [5.0, 5.0]], &device);
        let y = layer_norm(x, Tensor::ones([2], &device), Tensor::zeros([2], &device), None);
        assert!(!y.is_autodiff());
        let y: Vec<f32> = y.into_data().iter::<f32>().collect();
        for (got, expected) in y.iter().zip([-1.0, 1.0, 0.0, 0.0]) {
            assert!((got - expected).abs() < 1e-5, "{y:?}");
        }
    }
}
