//! A function whose derivative is known when it is computed, as one autodiff node.

#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::Dispatch;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, TensorMetadata, backend_extension};
use burn::tensor::{Shape, Tensor};

#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use crate::compiled_for;
use crate::node::node;

/// `y` with another input: a change of `x` by `d` changes `y` by the sum over `w` of `jacobian * d`.
///
/// A loss, or the log-probability of an action, is a few numbers per row. As operations it is dozens of autodiff nodes, each of which takes
/// longer than its arithmetic. With its derivative at hand it is one node per input.
///
/// # Shapes
/// - `y`: `[n]`, with or without gradients of its own
/// - `x`: any with `n * w` numbers, row by row; or with `w`, for all rows
/// - `jacobian`: `[n, w]`, without gradients
/// - output: `[n]`
///
/// ```
/// use brasa_kernels::with_jacobian;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// // `y = x^2`, with its derivative `2 x`.
/// let device = brasa_device::open_named("cpu")?;
/// let x = Tensor::<1>::from_floats([3.0, -1.0], &device.clone().autodiff()).require_grad();
/// let y = Tensor::<1>::from_floats([9.0, 1.0], &device);
/// let jacobian = Tensor::<2>::from_floats([[6.0], [-2.0]], &device);
/// let y = with_jacobian(y, x.clone(), jacobian);
/// let grads = y.sum().backward();
/// assert_eq!(numbers(x.grad(&grads).expect("`y` depends on `x`")), [6.0, -2.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn with_jacobian<const D: usize>(y: Tensor<1>, x: Tensor<D>, jacobian: Tensor<2>) -> Tensor<1> {
    #[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
    if compiled_for(&x.device()) {
        let (y, x, jacobian) = (y.into_dispatch(), x.into_dispatch(), jacobian.into_dispatch());
        return Tensor::from_dispatch(<Dispatch as JacobianOps>::brasa_with_jacobian(y, x, jacobian, false));
    }
    // The sum of products is 0, and so is its derivative except by `x`.
    let [n, width] = jacobian.dims();
    let rows = x.dims().iter().product::<usize>() / width;
    let x = x.reshape([rows, width]);
    let change = x.clone() - x.detach();
    y + (change.expand([n, width]) * jacobian).sum_dim(1).reshape([n])
}

/// `y` with another input, whose gradient is `slopes`, regardless of that of `y`: for numbers from which a backward pass starts. There, the gradient
/// is 1, and a multiplication by it would be a launch.
///
/// # Shapes
/// - `y`: any
/// - `x` and `slopes`: `[n]`, the latter without gradients
pub(crate) fn with_slopes(y: Tensor<1>, x: Tensor<1>, slopes: Tensor<1>) -> Tensor<1> {
    #[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
    if compiled_for(&x.device()) {
        let (y, x, slopes) = (y.into_dispatch(), x.into_dispatch(), slopes.into_dispatch());
        return Tensor::from_dispatch(<Dispatch as JacobianOps>::brasa_with_jacobian(y, x, slopes, true));
    }
    let change = x.clone() - x.detach();
    // The backward pass starts from a 1 for every number of `y`, and only one may count.
    y.slice(0..1) + (change * slopes).sum()
}

/// Backends with this operation.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(any(feature = "cuda", feature = "wgpu")),
    Autodiff
)]
pub(crate) trait JacobianOps: Backend {
    fn brasa_with_jacobian(
        y: FloatTensor<Self>,
        _x: FloatTensor<Self>,
        _jacobian: FloatTensor<Self>,
        _is_start: bool,
    ) -> FloatTensor<Self> {
        y
    }
}

#[cfg(feature = "flex")]
impl JacobianOps for burn::backend::Flex {}

#[cfg(any(feature = "cuda", feature = "wgpu"))]
impl JacobianOps for burn_cubecl::CubeBackend {}

impl<B: JacobianOps, C: CheckpointStrategy> JacobianOps for Autodiff<B, C> {
    fn brasa_with_jacobian(
        y: FloatTensor<Self>,
        x: FloatTensor<Self>,
        jacobian: FloatTensor<Self>,
        is_start: bool,
    ) -> FloatTensor<Self> {
        type Kept<B> = (FloatTensor<B>, Shape, bool);
        let forward = |[y, x]: [FloatTensor<B>; 2], _| (y, Some((jacobian.into_primitive(), x.shape(), is_start)), ());
        let backward = |(jacobian, shape, is_start): Kept<B>, [_, of_x]: [bool; 2], grad: FloatTensor<B>| {
            let grad_x = of_x.then(|| {
                if is_start {
                    return jacobian;
                }
                let column = B::float_reshape(grad.clone(), Shape::from([jacobian.shape()[0], 1]));
                let mut grad_x = B::float_mul(jacobian, column);
                if grad_x.shape().num_elements() != shape.num_elements() {
                    grad_x = B::float_sum_dim(grad_x, 0);
                }
                B::float_reshape(grad_x, shape)
            });
            [Some(grad), grad_x]
        };
        node::<B, C, _, _, 2>([y, x], forward, backward).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_are_those_of_the_function() {
        let device = brasa_test::device().autodiff();
        let plain = device.clone().without_autodiff();
        let x = Tensor::<2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &device).require_grad();
        let all = Tensor::<1>::from_floats([0.5, -1.0], &device).require_grad();
        // y_i = sum_j x_ij^2 a_j
        let literally = |x: Tensor<2>, a: Tensor<1>| (x.square() * a.unsqueeze()).sum_dim(1).reshape([2]);
        let known = |x: Tensor<2>, a: Tensor<1>| {
            let (values, factors) = (x.clone().inner(), a.clone().inner());
            let y = literally(values.clone(), factors.clone());
            let y = with_jacobian(y, x, values.clone() * 2.0 * factors.unsqueeze());
            with_jacobian(y, a, values.square())
        };
        let weights = Tensor::<1>::from_floats([2.0, -3.0], &plain);
        let run = |y: Tensor<1>| {
            let grads = (y.clone() * weights.clone()).sum().backward();
            let mut all_numbers: Vec<f32> = y.inner().into_data().iter().collect();
            all_numbers.extend(x.grad(&grads).expect("a leaf").into_data().iter::<f32>());
            all_numbers.extend(all.grad(&grads).expect("a leaf").into_data().iter::<f32>());
            all_numbers
        };
        assert_eq!(run(known(x.clone(), all.clone())), run(literally(x.clone(), all.clone())));
        // Inputs without gradients are constants.
        let grads = known(x.clone(), all.clone().detach()).sum().backward();
        assert!(x.grad(&grads).is_some() && all.grad(&grads).is_none());
    }
}
