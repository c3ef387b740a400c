//! The hyperbolic tangent, forward and backward.
//!
//! On the CPU the standard library's tanh took 60 % of the time of a PPO update of two networks of
//! 64 x 64; here it is a rational function that the compiler vectorizes. On every backend the
//! derivative `1 - y^2` is computed from the stored result; Burn's own computes tanh a second time.

#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::Dispatch;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, backend_extension};
use burn::tensor::Tensor;

#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use crate::compiled_for;
use crate::node::elementwise_node;

/// Elementwise tanh.
///
/// # Shapes
/// Any; the output has the shape of the input.
///
/// ```
/// use brasa_kernels::tanh;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// let x = Tensor::<1>::from_floats([0.5], &brasa_device::open_named("cpu")?.autodiff()).require_grad();
/// let y = tanh(x.clone());
/// let value = numbers(y.clone())[0];
/// assert!((value - 0.5f32.tanh()).abs() < 1e-6);
/// let slope = x.grad(&y.backward()).map(numbers);
/// assert!((slope.expect("`y` depends on `x`")[0] - (1.0 - value * value)).abs() < 1e-6);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn tanh<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    #[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
    if compiled_for(&x.device()) {
        return Tensor::from_dispatch(<Dispatch as TanhOps>::brasa_tanh(x.into_dispatch()));
    }
    x.tanh()
}

/// Backends with a tanh operation.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(any(feature = "cuda", feature = "wgpu")),
    Autodiff
)]
pub(crate) trait TanhOps: Backend {
    fn brasa_tanh(x: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::float_tanh(x)
    }

    /// `grad * (1 - y^2)`.
    fn brasa_tanh_backward(y: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        plain_tanh_backward::<Self>(y, grad)
    }
}

fn plain_tanh_backward<B: Backend>(y: FloatTensor<B>, grad: FloatTensor<B>) -> FloatTensor<B> {
    let squared = B::float_mul(y.clone(), y);
    B::float_mul(grad, B::float_add_scalar(B::float_neg(squared), 1f32.into()))
}

#[cfg(any(feature = "cuda", feature = "wgpu"))]
impl TanhOps for burn_cubecl::CubeBackend {
    fn brasa_tanh_backward(y: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        match crate::cube::all_f32(&[&y, &grad]) {
            true => crate::cube::activation::backward(y, grad, Some(crate::Activation::Tanh)),
            false => plain_tanh_backward::<Self>(y, grad),
        }
    }
}

#[cfg(feature = "flex")]
impl TanhOps for burn::backend::Flex {
    fn brasa_tanh(x: FloatTensor<Self>) -> FloatTensor<Self> {
        burn::backend::flex::ops::unary::unary_op(x, brasa_number::tanh, f64::tanh)
    }

    fn brasa_tanh_backward(y: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        let (f32_op, f64_op) = (|grad: f32, y: f32| grad * (1.0 - y * y), |grad: f64, y: f64| grad * (1.0 - y * y));
        // The gradient comes first: it has a single owner, so the result reuses its memory.
        burn::backend::flex::ops::binary::binary_op(grad, y, f32_op, f64_op, None)
    }
}

impl<B: TanhOps, C: CheckpointStrategy> TanhOps for Autodiff<B, C> {
    fn brasa_tanh(x: FloatTensor<Self>) -> FloatTensor<Self> {
        elementwise_node::<B, C>(x, B::brasa_tanh, |y, _, grad| [Some(B::brasa_tanh_backward(y, grad))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::TensorData;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_fused_operation_equals_the_plain_one(values in proptest::collection::vec(-6.0f32..6.0, 12)) {
            let device = brasa_test::device();
            let x = Tensor::<2>::from_data(TensorData::new(values, [3, 4]), &device.autodiff()).require_grad();
            let weights = Tensor::<2>::from_data(TensorData::new((0..12).map(|i| i as f32).collect(), [3, 4]), &x.device());
            let run = |y: Tensor<2>| {
                let grads = (y.clone() * weights.clone()).sum().backward();
                let grad = x.grad(&grads).expect("x is a leaf");
                (y.inner().into_data(), grad.into_data())
            };
            let ((y, grad), (plain_y, plain_grad)) = (run(tanh(x.clone())), run(x.clone().tanh()));
            let pairs = y.iter::<f32>().zip(plain_y.iter::<f32>()).chain(grad.iter::<f32>().zip(plain_grad.iter::<f32>()));
            for (got, expected) in pairs {
                prop_assert!((got - expected).abs() < 1e-5, "{got} instead of {expected}");
            }
        }
    }

    #[test]
    fn plain_tensors_stay_plain() {
        let x = Tensor::<1>::from_floats([0.5, -0.5], &brasa_test::device());
        assert!(!tanh(x).is_autodiff());
    }
}
