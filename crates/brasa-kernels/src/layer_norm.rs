//! Layer normalization with scale, shift and activation, as one autodiff node.
//!
//! In plain operations it needs eight passes over memory forward and twice as many backward, half of the time of an
//! update of a policy over graphs. On the CPU it is one pass each way, on GPUs one kernel, and backward a sum over rows.

#[cfg(feature = "flex")]
pub(crate) mod host;

#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::Dispatch;
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::autodiff::grads::Gradients;
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::tensor::FloatTensor;
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::{Autodiff, Backend, backend_extension};
use burn::tensor::Tensor;

use crate::{Activation, elu, tanh};

/// Keeps the derivative of the square root finite; PyTorch's value.
const EPSILON: f32 = 1e-5;

/// `activation(scale (x - mean) / sqrt(variance + 1e-5) + shift)` over the last dimension (Ba et al. 2016), with the
/// biased variance.
///
/// # Shapes
/// - `x` and output: `[.., width]`
/// - `scale`, `shift`: `[width]`
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

    /// Gradients of input, scale and shift, from inputs and results of the forward pass.
    fn brasa_layer_norm_backward(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        y: FloatTensor<Self>,
        moments: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        activation: Option<Activation>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
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

    fn brasa_layer_norm_backward(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        y: FloatTensor<Self>,
        moments: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        activation: Option<Activation>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        use burn::backend::{TensorMetadata, ops::FloatTensorOps};
        use burn::tensor::{Shape, Slice};

        let width = scale.shape()[0];
        let (grad_x, parts) = crate::cube::layer_norm::backward(x, scale, y, moments, grad, activation);
        let sums = Self::float_sum_dim(parts, 1);
        let part = |i: usize| {
            let part = Self::float_slice(sums.clone(), &[i..i + 1, 0..1, 0..width].map(Slice::from));
            Self::float_reshape(part, Shape::from([width]))
        };
        (grad_x, part(0), part(1))
    }
}

#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
impl<B: LayerNormOps, C: CheckpointStrategy> LayerNormOps for Autodiff<B, C> {
    fn brasa_layer_norm(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        activation: Option<Activation>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        #[derive(Debug)]
        struct Norm;

        impl<B: LayerNormOps> Backward<B, 3> for Norm {
            /// Input, scale, result, moments; activation.
            type State = ([FloatTensor<B>; 4], Option<Activation>);

            fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
                let parents = ops.parents;
                let ([x, scale, y, moments], activation) = ops.state;
                let grad = grads.consume::<B>(&ops.node);
                let (x, scale, shift) = B::brasa_layer_norm_backward(x, scale, y, moments, grad, activation);
                for (node, grad) in parents.into_iter().zip([x, scale, shift]) {
                    if let Some(node) = node {
                        grads.register::<B>(node.id, grad);
                    }
                }
            }
        }

        let prepared = Norm.prepare::<C>([x.node(), scale.node(), shift.node()]).compute_bound();
        let [x, scale, shift] = [x, scale, shift].map(|tensor| tensor.into_primitive());
        let (y, moments) = match prepared.stateful() {
            OpsKind::Tracked(prepared) => {
                let (y, moments) = B::brasa_layer_norm(x.clone(), scale.clone(), shift, activation);
                let state = ([x, scale, y.clone(), moments.clone()], activation);
                (prepared.finish(state, y), moments)
            }
            OpsKind::UnTracked(prepared) => {
                let (y, moments) = B::brasa_layer_norm(x, scale, shift, activation);
                (prepared.finish(y), moments)
            }
        };
        (y, FloatTensor::<Self>::new(moments))
    }

    fn brasa_layer_norm_backward(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        y: FloatTensor<Self>,
        moments: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        activation: Option<Activation>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        // Second derivatives are not tracked, as in every fused operation here.
        let [x, scale, y, moments, grad] = [x, scale, y, moments, grad].map(|tensor| tensor.into_primitive());
        let (x, scale, shift) = B::brasa_layer_norm_backward(x, scale, y, moments, grad, activation);
        (FloatTensor::<Self>::new(x), FloatTensor::<Self>::new(scale), FloatTensor::<Self>::new(shift))
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
