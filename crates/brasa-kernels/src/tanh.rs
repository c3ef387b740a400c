//! The hyperbolic tangent, alone and behind a linear layer, forward and backward.
//!
//! On the host's processor the standard library's tangent took 60 % of the time of a PPO update of two networks of
//! 64 x 64; here it is a rational function that the compiler turns into vector instructions. On every backend the
//! derivative comes from the stored result, `1 - y^2`, where Burn's own computes the tangent a second time. A whole layer
//! is one node of the tape, and on the host's processor bias and tangent are one pass over the product.

#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::Dispatch;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, unary};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, backend_extension};
use burn::tensor::Tensor;
use burn::tensor::module::linear;

/// The tangent of every element.
///
/// # Shapes
/// Any; the output has the input's.
pub fn tanh<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    #[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
    if compiled_for(&x.device()) {
        return Tensor::from_dispatch(<Dispatch as TanhOps>::brasa_tanh(x.into_dispatch()));
    }
    x.tanh()
}

/// `tanh(x W + b)`.
///
/// # Shapes
/// - `x`: `[n_rows, inputs]`
/// - `weight`: `[inputs, outputs]`
/// - `bias`: `[outputs]`
/// - output: `[n_rows, outputs]`
pub fn linear_tanh(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
    #[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
    if compiled_for(&x.device()) {
        let (x, weight, bias) = (x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch());
        return Tensor::from_dispatch(<Dispatch as TanhOps>::brasa_linear_tanh(x, weight, bias));
    }
    linear(x, weight, Some(bias)).tanh()
}

/// Whether this crate was told of the backend behind `device`: others may have compiled it in.
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
fn compiled_for(device: &burn::tensor::Device) -> bool {
    let (host, gpu) = (cfg!(feature = "flex"), cfg!(any(feature = "cuda", feature = "wgpu")));
    let on_host = brasa_device::runs_on_host(device);
    (on_host && host) || (!on_host && gpu)
}

/// Backends with a tangent of their own.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(any(feature = "cuda", feature = "wgpu")),
    Fusion: cfg(feature = "fusion"),
    Autodiff
)]
trait TanhOps: Backend {
    #[fusion(default)]
    fn brasa_tanh(x: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::float_tanh(x)
    }

    #[fusion(default)]
    fn brasa_linear_tanh(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::brasa_tanh(Self::linear(x, weight, Some(bias)))
    }

    /// `grad * (1 - y^2)`.
    #[fusion(default)]
    fn brasa_tanh_backward(y: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        let squared = Self::float_mul(y.clone(), y);
        Self::float_mul(grad, Self::float_add_scalar(Self::float_neg(squared), 1f32.into()))
    }
}

#[cfg(any(feature = "cuda", feature = "wgpu"))]
impl TanhOps for burn::backend::Cube {}

#[cfg(feature = "flex")]
impl TanhOps for burn::backend::Flex {
    fn brasa_tanh(x: FloatTensor<Self>) -> FloatTensor<Self> {
        burn::backend::flex::ops::unary::unary_op(x, tanh_f32, f64::tanh)
    }

    fn brasa_linear_tanh(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        use burn::backend::ops::FloatTensorOps;
        use burn::tensor::DType;

        let mut y = Self::float_matmul(x, weight);
        let plain = y.is_unique() && y.layout().is_contiguous() && y.layout().start_offset() == 0;
        if !plain || y.dtype() != DType::F32 || bias.dtype() != DType::F32 {
            let width = bias.layout().shape()[0];
            let bias = Self::float_reshape(bias, burn::tensor::Shape::new([1, width]));
            return Self::brasa_tanh(Self::float_add(y, bias));
        }
        let bias = bias.to_contiguous();
        let first = bias.layout().start_offset();
        let bias = &bias.storage::<f32>()[first..first + bias.layout().num_elements()];
        // Compiled once per instruction set and chosen at run time.
        let values = y.storage_mut::<f32>();
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for row in values.chunks_exact_mut(bias.len()) {
                    for (value, bias) in row.iter_mut().zip(bias) {
                        *value = tanh_f32(*value + bias);
                    }
                }
            },
        );
        y
    }

    fn brasa_tanh_backward(y: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        let (f32_op, f64_op) = (|grad: f32, y: f32| grad * (1.0 - y * y), |grad: f64, y: f64| grad * (1.0 - y * y));
        // The gradient first: nobody else holds it, so the result takes its memory.
        burn::backend::flex::ops::binary::binary_op(grad, y, f32_op, f64_op, None)
    }
}

impl<B: TanhOps, C: CheckpointStrategy> TanhOps for Autodiff<B, C> {
    fn brasa_tanh(x: FloatTensor<Self>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Tanh;

        impl<B: TanhOps> Backward<B, 1> for Tanh {
            /// The result of the forward pass.
            type State = FloatTensor<B>;

            fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
                unary::<B, _>(ops.parents, ops.node, grads, |grad| B::brasa_tanh_backward(ops.state, grad));
            }
        }

        match Tanh.prepare::<C>([x.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let y = B::brasa_tanh(x.into_primitive());
                prep.finish(y.clone(), y)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::brasa_tanh(x.into_primitive())),
        }
    }

    fn brasa_linear_tanh(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct LinearTanh;

        impl<B: TanhOps> Backward<B, 3> for LinearTanh {
            /// Input, weight and result of the forward pass.
            type State = [FloatTensor<B>; 3];

            fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
                let [node_x, node_weight, node_bias] = ops.parents;
                let [x, weight, y] = ops.state;
                let grad = B::brasa_tanh_backward(y, grads.consume::<B>(&ops.node));
                if let Some(node) = node_x {
                    grads.register::<B>(node.id, B::linear_x_backward(weight, grad.clone()));
                }
                if let Some(node) = node_weight {
                    grads.register::<B>(node.id, B::linear_weight_backward(x, grad.clone()));
                }
                if let Some(node) = node_bias {
                    grads.register::<B>(node.id, B::linear_bias_backward(grad));
                }
            }
        }

        match LinearTanh.prepare::<C>([x.node(), weight.node(), bias.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let (x, weight) = (x.into_primitive(), weight.into_primitive());
                let y = B::brasa_linear_tanh(x.clone(), weight.clone(), bias.into_primitive());
                prep.finish([x, weight, y.clone()], y)
            }
            OpsKind::UnTracked(prep) => {
                let (x, weight, bias) = (x.into_primitive(), weight.into_primitive(), bias.into_primitive());
                prep.finish(B::brasa_linear_tanh(x, weight, bias))
            }
        }
    }
}

/// `tanh(x)` within 2e-7, without a branch and with one division.
///
/// With `u = x / 2` and `s = u^2`, Lambert's continued fraction `u / (1 + s / (3 + s / (5 + ...)))` cut after seven terms
/// gives `tanh(u) = u p(s) / q(s)`, and doubling the argument `tanh(x) = 2 u p q / (q^2 + s p^2)`. All coefficients
/// are positive, so nothing cancels, and the doubling shrinks what error the cut leaves at the far end.
#[cfg_attr(not(feature = "flex"), allow(dead_code, reason = "only the host's processor uses it"))]
#[inline(always)]
fn tanh_f32(x: f32) -> f32 {
    // Beyond 9.1 the tangent is 1 in f32.
    let u = 0.5 * x.clamp(-9.1, 9.1);
    let s = u * u;
    let p = ((s + 378.0) * s + 17_325.0) * s + 135_135.0;
    let q = ((28.0 * s + 3_150.0) * s + 62_370.0) * s + 135_135.0;
    2.0 * u * p * q / (q * q + s * p * p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::TensorData;
    use proptest::prelude::*;

    #[test]
    fn the_fraction_is_the_tangent() {
        for i in -200_000..=200_000 {
            let x = i as f32 * 6e-5;
            let (got, expected) = (f64::from(tanh_f32(x)), f64::from(x).tanh());
            assert!((got - expected).abs() <= 2e-7 + 3e-7 * expected.abs(), "tanh({x}) is {expected}, not {got}");
        }
        for (x, expected) in [(0.0, 0.0), (50.0, 1.0), (f32::INFINITY, 1.0), (f32::NEG_INFINITY, -1.0)] {
            assert!((tanh_f32(x) - expected).abs() < 2e-7);
        }
        assert!(tanh_f32(f32::NAN).is_nan());
    }

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

    proptest! {
        #[test]
        fn the_fused_layer_equals_the_plain_one(values in proptest::collection::vec(-2.0f32..2.0, 5 * 3 + 3 * 4 + 4)) {
            let device = brasa_test::device().autodiff();
            let part = |from: usize, n: usize| TensorData::new(values[from..from + n].to_vec(), [n]);
            let x = Tensor::<1>::from_data(part(0, 15), &device).reshape([5, 3]).detach().require_grad();
            let weight = Tensor::<1>::from_data(part(15, 12), &device).reshape([3, 4]).detach().require_grad();
            let bias = Tensor::<1>::from_data(part(27, 4), &device).require_grad();
            let run = |y: Tensor<2>| {
                let grads = y.clone().powi_scalar(3).sum().backward();
                let mut all: Vec<f32> = y.inner().into_data().iter::<f32>().collect();
                all.extend(x.grad(&grads).expect("x is a leaf").into_data().iter::<f32>());
                all.extend(weight.grad(&grads).expect("weight is a leaf").into_data().iter::<f32>());
                all.extend(bias.grad(&grads).expect("bias is a leaf").into_data().iter::<f32>());
                all
            };
            let fused = run(linear_tanh(x.clone(), weight.clone(), bias.clone()));
            let plain = run(linear(x.clone(), weight.clone(), Some(bias.clone())).tanh());
            for (got, expected) in fused.iter().zip(&plain) {
                prop_assert!((got - expected).abs() < 2e-5, "{got} instead of {expected}");
            }
        }
    }

    #[test]
    fn frozen_parts_get_no_gradient() {
        let device = brasa_test::device().autodiff();
        let x = Tensor::<2>::ones([2, 3], &device);
        let weight = Tensor::<2>::ones([3, 4], &device).require_grad();
        let grads = linear_tanh(x.clone(), weight.clone(), Tensor::zeros([4], &device)).sum().backward();
        assert!(weight.grad(&grads).is_some());
        assert!(x.grad(&grads).is_none());
    }

    #[test]
    fn plain_tensors_stay_plain() {
        let x = Tensor::<1>::from_floats([0.5, -0.5], &brasa_test::device());
        assert!(!tanh(x).is_autodiff());
    }
}
