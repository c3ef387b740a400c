//! ELU, `x` above 0 and `exp(x) - 1` below, forward and backward.
//!
//! In plain operations it is a mask, an exponential of all elements and a selection, and as many again backward. Here
//! it is one pass or one kernel each way, and the derivative `min(y + 1, 1)` is computed from the stored result.

#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::Dispatch;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, backend_extension};
use burn::tensor::Tensor;

#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use crate::compiled_for;
use crate::node::elementwise_node;

/// Elementwise ELU (Clevert et al. 2016, equation 15, with an alpha of 1).
///
/// # Shapes
/// Any; the output has the shape of the input.
///
/// ```
/// use brasa_kernels::elu;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// let x = Tensor::<1>::from_floats([2.0, 0.0, -1.0], &brasa_device::open_named("cpu")?);
/// let y = numbers(elu(x));
/// assert_eq!(y[..2], [2.0, 0.0]);
/// assert!((y[2] - (-1f32).exp_m1()).abs() < 1e-6);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn elu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    #[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
    if compiled_for(&x.device()) {
        return Tensor::from_dispatch(<Dispatch as EluOps>::brasa_elu(x.into_dispatch()));
    }
    burn::tensor::activation::elu(x, 1.0)
}

/// Backends with an ELU operation.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(any(feature = "cuda", feature = "wgpu")),
    Autodiff
)]
pub(crate) trait EluOps: Backend {
    fn brasa_elu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        plain_elu::<Self>(x)
    }

    /// `grad * min(y + 1, 1)`.
    fn brasa_elu_backward(y: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        plain_elu_backward::<Self>(y, grad)
    }
}

fn plain_elu<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let below = B::float_exp(B::float_clamp_max(x.clone(), 0f32.into()));
    B::float_add(B::relu(x), B::float_add_scalar(below, (-1f32).into()))
}

fn plain_elu_backward<B: Backend>(y: FloatTensor<B>, grad: FloatTensor<B>) -> FloatTensor<B> {
    let slope = B::float_clamp_max(B::float_add_scalar(y, 1f32.into()), 1f32.into());
    B::float_mul(grad, slope)
}

#[cfg(any(feature = "cuda", feature = "wgpu"))]
impl EluOps for burn_cubecl::CubeBackend {
    fn brasa_elu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        match crate::cube::all_f32(&[&x]) {
            true => crate::cube::activation::forward(x, None, Some(crate::Activation::Elu)),
            false => plain_elu::<Self>(x),
        }
    }

    fn brasa_elu_backward(y: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        match crate::cube::all_f32(&[&y, &grad]) {
            true => crate::cube::activation::backward(y, grad, Some(crate::Activation::Elu)),
            false => plain_elu_backward::<Self>(y, grad),
        }
    }
}

#[cfg(feature = "flex")]
impl EluOps for burn::backend::Flex {
    fn brasa_elu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        burn::backend::flex::ops::unary::unary_op(x, elu_f32, |x: f64| if x > 0.0 { x } else { x.exp_m1() })
    }

    fn brasa_elu_backward(y: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        let f32_op = |grad: f32, y: f32| grad * elu_slope_f32(y);
        let f64_op = |grad: f64, y: f64| grad * if y > 0.0 { 1.0 } else { y + 1.0 };
        // The gradient first: nobody else holds it, so the result takes its memory.
        burn::backend::flex::ops::binary::binary_op(grad, y, f32_op, f64_op, None)
    }
}

impl<B: EluOps, C: CheckpointStrategy> EluOps for Autodiff<B, C> {
    fn brasa_elu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        elementwise_node::<B, C>(x, B::brasa_elu, |y, _, grad| [Some(B::brasa_elu_backward(y, grad))])
    }
}

/// The derivative at a result `y`: 1 above 0, `y + 1` below. Not `min`, which would turn a NaN into 1.
#[cfg(feature = "flex")]
#[inline(always)]
pub(crate) fn elu_slope_f32(y: f32) -> f32 {
    if y > 0.0 { 1.0 } else { y + 1.0 }
}

/// `x` above 0, `exp(x) - 1` below, without a branch.
#[cfg(feature = "flex")]
#[inline(always)]
pub(crate) fn elu_f32(x: f32) -> f32 {
    let x = crate::layer::rewritten(x);
    let below = brasa_number::exp_of_negative(if x > 0.0 { 0.0 } else { x }) - 1.0;
    if x > 0.0 { x } else { below }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::TensorData;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_fused_operation_equals_the_plain_one(values in proptest::collection::vec(-6.0f32..6.0, 12)) {
            let device = brasa_test::device().autodiff();
            let x = Tensor::<2>::from_data(TensorData::new(values, [3, 4]), &device).require_grad();
            let weights = Tensor::<2>::from_data(TensorData::new((0..12).map(|i| i as f32).collect(), [3, 4]), &device);
            let run = |y: Tensor<2>| {
                let grads = (y.clone() * weights.clone()).sum().backward();
                let grad = x.grad(&grads).expect("x is a leaf");
                (y.inner().into_data(), grad.into_data())
            };
            let plain = burn::tensor::activation::elu(x.clone(), 1.0);
            let ((y, grad), (plain_y, plain_grad)) = (run(elu(x.clone())), run(plain));
            let pairs = y.iter::<f32>().zip(plain_y.iter::<f32>()).chain(grad.iter::<f32>().zip(plain_grad.iter::<f32>()));
            for (got, expected) in pairs {
                prop_assert!((got - expected).abs() < 1e-5, "{got} instead of {expected}");
            }
        }
    }

    #[test]
    fn far_ends_and_broken_numbers_are_what_they_are() {
        let x = Tensor::<1>::from_floats([-1e9, -0.0, 0.0, 1e9, f32::NAN], &brasa_test::device());
        let y: Vec<f32> = elu(x).into_data().iter::<f32>().collect();
        assert_eq!(y[..4], [-1.0, 0.0, 0.0, 1e9]);
        assert!(y[4].is_nan());
    }
}
