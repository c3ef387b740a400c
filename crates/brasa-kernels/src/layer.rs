//! A layer `activation(x W + b)`, or several parallel ones, as one autodiff node.
//!
//! A small network spends most of its time outside of products: in autodiff and in passes over memory. Here product,
//! bias and activation are one autodiff node. On the CPU, bias and activation are one pass over the product, and the
//! gradient of the activation is computed from the stored result. On GPUs each pass after the product is one
//! kernel. Products are computed in the format of [`brasa_device::autocast`], everything else in that of the input.

use brasa_device::{Precision, autocast, precision};
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::Dispatch;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, TensorMetadata, backend_extension};
use burn::tensor::{Shape, Tensor};
use serde::{Deserialize, Serialize};

#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use crate::compiled_for;
use crate::elu::EluOps;
use crate::mlp::{mlp, stacked_mlp};
use crate::node::node;
#[cfg(feature = "flex")]
use crate::product::Dims;
use crate::tanh::TanhOps;

/// How the layers of an MLP are launched on a GPU: in one pass over all of them ([`crate::mlp`]), or one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Whether this is the first and the last layer of it.
    Whole { first: bool, last: bool },
    /// A product, then bias and activation.
    OneByOne,
}

impl Pass {
    /// The layer at `index` of `n`.
    pub(crate) fn new(is_whole: bool, index: usize, n: usize) -> Self {
        if is_whole { Self::Whole { first: index == 0, last: index + 1 == n } } else { Self::OneByOne }
    }

    /// Launches of the layer forward.
    pub(crate) fn forward(self) -> usize {
        match self {
            Self::Whole { first, .. } => usize::from(first),
            Self::OneByOne => 2,
        }
    }

    /// Launches backward beside those of products: one by one, the derivative of the activation and the gradient of the bias.
    pub(crate) fn backward(self, activation: Option<Activation>, of_params: bool) -> usize {
        match self {
            Self::Whole { last, .. } => usize::from(last) * (1 + usize::from(of_params)),
            Self::OneByOne => usize::from(activation.is_some()) + usize::from(of_params),
        }
    }

    /// Launches of a product backward.
    pub(crate) fn product(self) -> usize {
        usize::from(self == Self::OneByOne)
    }
}

/// The activation function of a layer.
///
/// ```
/// use brasa_kernels::Activation;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// let x = Tensor::<1>::from_floats([2.0, -1.0], &brasa_device::open_named("cpu")?);
/// assert_eq!(numbers(Activation::Relu.apply(x.clone())), [2.0, 0.0]);
/// assert!((numbers(Activation::Tanh.apply(x))[0] - 2f32.tanh()).abs() < 1e-6);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// Smooth and bounded; the usual choice for on-policy control.
    #[default]
    Tanh,
    /// Cheap; the usual choice for off-policy learning.
    Relu,
    /// Smooth and unbounded above (Clevert et al. 2016); the usual choice after graph attention.
    Elu,
}

/// `activation(x W + b)`, or `x W + b` without an activation.
///
/// # Shapes
/// - `x`: `[n_rows, inputs]`
/// - `weight`: `[inputs, outputs]`
/// - `bias`: `[outputs]`
/// - output: `[n_rows, outputs]`
///
/// # Panics
/// If rows have another width than the inputs of the layer.
///
/// ```
/// use brasa_kernels::{Activation, layer};
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// let device = brasa_device::open_named("cpu")?;
/// let x = Tensor::from_floats([[1.0, 2.0]], &device);
/// let weight = Tensor::from_floats([[1.0, -1.0], [0.5, -0.5]], &device);
/// let bias = Tensor::from_floats([0.25, 0.25], &device);
/// // Before the activation, the outputs are 2.25 and -1.75.
/// assert_eq!(numbers(layer(x, weight, bias, Some(Activation::Relu))), [2.25, 0.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[track_caller]
pub fn layer(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>, activation: Option<Activation>) -> Tensor<2> {
    let ([_, width], [inputs, _]) = (x.dims(), weight.dims());
    assert_eq!(width, inputs, "numbers in a row (left), compared with the inputs of the layer");
    mlp(&x, [(&weight, &bias, activation)]).unwrap_or_else(|| one_layer(x, weight, bias, activation, Pass::OneByOne))
}

/// A matrix by a weight and a bias, or several by as many. The bias has one dimension less.
pub(crate) fn one_layer<const D: usize, const E: usize>(
    x: Tensor<D>,
    weight: Tensor<D>,
    bias: Tensor<E>,
    activation: Option<Activation>,
    pass: Pass,
) -> Tensor<D> {
    brasa_device::count_product(2 * x.dims()[D - 2] * weight.dims().iter().product::<usize>(), pass.forward());
    #[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
    if compiled_for(&x.device()) {
        let (x, weight, bias) = (x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch());
        return Tensor::from_dispatch(<Dispatch as LayerOps>::brasa_layer(x, weight, bias, activation, pass));
    }
    activate(x.matmul(weight) + bias.unsqueeze_dim(D - 2), activation)
}

/// The same for several parallel layers, each with its own weights.
///
/// # Shapes
/// - `x`: `[n, n_rows, inputs]`, or `[1, n_rows, inputs]` for all of them
/// - `weight`: `[n, inputs, outputs]`
/// - `bias`: `[n, outputs]`
/// - output: `[n, n_rows, outputs]`
///
/// # Panics
/// If rows have another width than the inputs of the layers.
///
/// ```
/// use brasa_kernels::stacked_layer;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// // Two layers on one input: the double and the negative, plus 1.
/// let device = brasa_device::open_named("cpu")?;
/// let x = Tensor::<3>::from_floats([[[3.0]]], &device);
/// let weight = Tensor::<3>::from_floats([[[2.0]], [[-1.0]]], &device);
/// assert_eq!(numbers(stacked_layer(x, weight, Tensor::ones([2, 1], &device), None)), [7.0, -2.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[track_caller]
pub fn stacked_layer(x: Tensor<3>, weight: Tensor<3>, bias: Tensor<2>, activation: Option<Activation>) -> Tensor<3> {
    let ([_, _, width], [_, inputs, _]) = (x.dims(), weight.dims());
    assert_eq!(width, inputs, "numbers in a row (left), compared with the inputs of the layers");
    let whole = stacked_mlp(&x, [(&weight, &bias, activation)]);
    whole.unwrap_or_else(|| one_layer(x, weight, bias, activation, Pass::OneByOne))
}

/// Whether layers on `x` may have any width: on the CPU, and on GPUs while this crate launches their products.
///
/// Burn's own products on GPUs are chosen by measurement, and have been wrong for widths such as 1, 7 or 126. Those of 32 bits are
/// launched here with bounds that are checked, so only other formats need widths of multiples of 8.
///
/// ```
/// use brasa_kernels::any_width;
/// use burn::tensor::Tensor;
///
/// // On the CPU, a layer may have 7 outputs.
/// assert!(any_width(&Tensor::<2>::zeros([1, 3], &brasa_device::open_named("cpu")?)));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn any_width<const D: usize>(x: &Tensor<D>) -> bool {
    let ours = cfg!(any(feature = "cuda", feature = "wgpu"));
    brasa_device::runs_on_host(&x.device())
        || (ours && precision() == Precision::F32 && x.dtype() == burn::tensor::DType::F32)
}

pub(crate) fn activate<const D: usize>(x: Tensor<D>, activation: Option<Activation>) -> Tensor<D> {
    match activation {
        Some(activation) => activation.apply(x),
        None => x,
    }
}

impl Activation {
    /// The elementwise activation, for use without a layer.
    pub fn apply<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Tanh => x.tanh(),
            Self::Relu => burn::tensor::activation::relu(x),
            Self::Elu => burn::tensor::activation::elu(x, 1.0),
        }
    }
}

/// Backends with a layer operation. Tensors have rank 2, or rank 3 for parallel layers; the rank of a bias is one less.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(any(feature = "cuda", feature = "wgpu")),
    Autodiff
)]
pub(crate) trait LayerOps: Backend + TanhOps + EluOps {
    fn brasa_layer(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        activation: Option<Activation>,
        _pass: Pass,
    ) -> FloatTensor<Self> {
        plain_layer::<Self>(x, weight, bias, activation)
    }

    /// The product of matrices, or of batches of them.
    fn brasa_product(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> {
        cast_product::<Self>(lhs, rhs)
    }

    /// The gradient of the activation's input, from that of its output and the layer's result.
    fn brasa_layer_grad(
        y: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        activation: Option<Activation>,
    ) -> FloatTensor<Self> {
        plain_layer_grad::<Self>(y, grad, activation)
    }

    /// The gradient of the bias: the sum over rows.
    fn brasa_layer_bias_grad(grad: FloatTensor<Self>) -> FloatTensor<Self> {
        let mut dims = grad.shape().to_vec();
        let rows = dims.len() - 2;
        dims.remove(rows);
        Self::float_reshape(Self::float_sum_dim(grad, rows), Shape::from(dims))
    }
}

/// The product in the format of [`brasa_device::autocast`].
fn cast_product<B: Backend>(lhs: FloatTensor<B>, rhs: FloatTensor<B>) -> FloatTensor<B> {
    match precision().cast() {
        None => B::float_matmul(lhs, rhs),
        Some(format) => {
            let whole = lhs.dtype().into();
            let [lhs, rhs] = [lhs, rhs].map(|factor| B::float_cast(factor, format));
            B::float_cast(B::float_matmul(lhs, rhs), whole)
        }
    }
}

fn plain_layer<B: LayerOps>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    bias: FloatTensor<B>,
    activation: Option<Activation>,
) -> FloatTensor<B> {
    let y = B::brasa_product(x, weight);
    add_bias::<B>(y, bias, activation)
}

fn plain_layer_grad<B: LayerOps>(
    y: FloatTensor<B>,
    grad: FloatTensor<B>,
    activation: Option<Activation>,
) -> FloatTensor<B> {
    match activation {
        Some(Activation::Tanh) => B::brasa_tanh_backward(y, grad),
        // If the result is 0, the gradient is 0.
        Some(Activation::Relu) => B::relu_backward(y, grad),
        Some(Activation::Elu) => B::brasa_elu_backward(y, grad),
        None => grad,
    }
}

/// A bias with a dimension of size 1 in place of the rows.
fn as_row<B: Backend>(bias: FloatTensor<B>) -> FloatTensor<B> {
    let mut dims = bias.shape().to_vec();
    dims.insert(dims.len() - 1, 1);
    B::float_reshape(bias, Shape::from(dims))
}

fn add_bias<B: LayerOps>(y: FloatTensor<B>, bias: FloatTensor<B>, activation: Option<Activation>) -> FloatTensor<B> {
    let y = B::float_add(y, as_row::<B>(bias));
    match activation {
        Some(Activation::Tanh) => B::brasa_tanh(y),
        Some(Activation::Relu) => B::relu(y),
        Some(Activation::Elu) => B::brasa_elu(y),
        None => y,
    }
}

#[cfg(any(feature = "cuda", feature = "wgpu"))]
impl LayerOps for burn_cubecl::CubeBackend {
    fn brasa_layer(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        activation: Option<Activation>,
        _pass: Pass,
    ) -> FloatTensor<Self> {
        let y = Self::brasa_product(x, weight);
        match crate::cube::all_f32(&[&y, &bias]) {
            true => crate::cube::activation::forward(y, Some(as_row::<Self>(bias)), activation),
            false => add_bias::<Self>(y, bias, activation),
        }
    }

    /// Burn's own product rounds factors to TF32 wherever tensor cores have it.
    fn brasa_product(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> {
        let exact = precision() == Precision::F32 && crate::cube::all_f32(&[&lhs, &rhs]);
        let empty = [&lhs, &rhs].iter().any(|factor| factor.shape().num_elements() == 0);
        if exact && !empty { crate::cube::product::exact(lhs, rhs) } else { cast_product::<Self>(lhs, rhs) }
    }

    fn brasa_layer_grad(
        y: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        activation: Option<Activation>,
    ) -> FloatTensor<Self> {
        match activation.is_some() && crate::cube::all_f32(&[&y, &grad]) {
            true => crate::cube::activation::backward(y, grad, activation),
            false => plain_layer_grad::<Self>(y, grad, activation),
        }
    }
}

/// A number that a loop replaces where a condition holds. Without the sum, the compiler writes only what changes, by masked stores, which are slow on AMD
/// processors without AVX-512.
#[inline(always)]
pub(crate) fn rewritten(x: f32) -> f32 {
    x + 0.0
}

/// `max(x, 0)` that keeps a NaN, which `f32::max` would turn into 0: a diverged network must show.
#[inline(always)]
pub(crate) fn relu_f32(x: f32) -> f32 {
    let x = rewritten(x);
    if x <= 0.0 { 0.0 } else { x }
}

/// The gradient before a ReLU, from that of its result `y`. A result that is NaN passes the gradient, as in Burn's own operation.
#[cfg(feature = "flex")]
#[inline(always)]
fn relu_grad_f32(grad: f32, y: f32) -> f32 {
    let grad = rewritten(grad);
    if y <= 0.0 { 0.0 } else { grad }
}

/// Bias and activation over a stack of products.
#[cfg(feature = "flex")]
struct Finish<'a> {
    values: &'a mut [f32],
    /// Of each member; `None` if it is added already.
    bias: Option<&'a [f32]>,
    rows: usize,
    outputs: usize,
    activation: Option<Activation>,
}

#[cfg(feature = "flex")]
impl pulp::WithSimd for Finish<'_> {
    type Output = ();

    // A closure of this size would not be compiled for the selected instruction set.
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) {
        let Self { values, bias, rows, outputs, activation } = self;
        let Some(bias) = bias else {
            return match activation {
                Some(Activation::Tanh) => values.iter_mut().for_each(|x| *x = brasa_number::tanh(*x)),
                Some(Activation::Relu) => values.iter_mut().for_each(|x| *x = relu_f32(*x)),
                Some(Activation::Elu) => values.iter_mut().for_each(|x| *x = crate::elu::elu_f32(*x)),
                None => {}
            };
        };
        for (member, bias) in values.chunks_exact_mut(rows * outputs).zip(bias.chunks_exact(outputs)) {
            for row in member.chunks_exact_mut(outputs) {
                let pairs = row.iter_mut().zip(bias);
                match activation {
                    Some(Activation::Tanh) => pairs.for_each(|(x, b)| *x = brasa_number::tanh(*x + b)),
                    Some(Activation::Relu) => pairs.for_each(|(x, b)| *x = relu_f32(*x + b)),
                    Some(Activation::Elu) => pairs.for_each(|(x, b)| *x = crate::elu::elu_f32(*x + b)),
                    None => pairs.for_each(|(x, b)| *x += b),
                }
            }
        }
    }
}

/// A layer of contiguous matrices, none of which is empty, in place of the numbers in `to`.
#[cfg(feature = "flex")]
pub(crate) fn layer_into(
    x: &[f32],
    weight: &[f32],
    bias: &[f32],
    activation: Option<Activation>,
    dims: Dims,
    to: &mut Vec<f32>,
) {
    let has_bias = crate::product::affine_into(x, weight, bias, dims, to);
    let bias = (!has_bias).then_some(bias);
    pulp::Arch::new().dispatch(Finish { values: to, bias, rows: dims.rows, outputs: dims.outputs, activation });
}

/// From the gradient of a layer's result `y` to that of its product, in place; and the gradient of its bias, the sum over the rows of each
/// member.
#[cfg(feature = "flex")]
pub(crate) fn grad_before(
    y: &[f32],
    grad: &mut [f32],
    activation: Option<Activation>,
    dims: Dims,
    bias: Option<&mut [f32]>,
) {
    assert_eq!(y.len(), grad.len(), "a gradient for every result");
    pulp::Arch::new().dispatch(Before { y, grad, activation, dims, bias });
}

#[cfg(feature = "flex")]
struct Before<'a> {
    y: &'a [f32],
    grad: &'a mut [f32],
    activation: Option<Activation>,
    dims: Dims,
    bias: Option<&'a mut [f32]>,
}

#[cfg(feature = "flex")]
impl pulp::WithSimd for Before<'_> {
    type Output = ();

    // A closure of this size would not be compiled for the selected instruction set.
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) {
        match self.activation {
            Some(Activation::Tanh) => self.rows(|grad, y| grad * (1.0 - y * y)),
            Some(Activation::Relu) => self.rows(relu_grad_f32),
            Some(Activation::Elu) => self.rows(|grad, y| grad * crate::elu::elu_slope_f32(y)),
            None => self.rows(|grad, _| grad),
        }
    }
}

#[cfg(feature = "flex")]
impl Before<'_> {
    #[inline(always)]
    fn rows(self, slope: impl Fn(f32, f32) -> f32) {
        let Self { y, grad, dims, bias, .. } = self;
        let Some(bias) = bias else {
            return grad.iter_mut().zip(y).for_each(|(grad, y)| *grad = slope(*grad, *y));
        };
        let size = dims.rows * dims.outputs;
        let members = grad.chunks_exact_mut(size).zip(y.chunks_exact(size)).zip(bias.chunks_exact_mut(dims.outputs));
        for ((grad, y), sums) in members {
            sums.fill(0.0);
            for (grad, y) in grad.chunks_exact_mut(dims.outputs).zip(y.chunks_exact(dims.outputs)) {
                for ((grad, y), sum) in grad.iter_mut().zip(y).zip(sums.iter_mut()) {
                    *grad = slope(*grad, *y);
                    *sum += *grad;
                }
            }
        }
    }
}

#[cfg(feature = "flex")]
impl LayerOps for burn::backend::Flex {
    fn brasa_layer(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        activation: Option<Activation>,
        _pass: Pass,
    ) -> FloatTensor<Self> {
        use burn::tensor::DType;

        let bias = bias.to_contiguous();
        let of_bias = match bias.dtype() {
            DType::F32 => {
                let first = bias.layout().start_offset();
                Some(&bias.storage::<f32>()[first..first + bias.layout().num_elements()])
            }
            _ => None,
        };
        let fused = match precision().cast() {
            None => of_bias.and_then(|bias| crate::product::affine(&x, &weight, Some(bias))),
            Some(_) => None,
        };
        let (mut y, has_bias) = fused.unwrap_or_else(|| (Self::brasa_product(x, weight), false));
        let plain = y.is_unique() && y.layout().is_contiguous() && y.layout().start_offset() == 0;
        let Some(of_bias) = of_bias.filter(|_| plain && y.dtype() == DType::F32) else {
            return add_bias::<Self>(y, bias, activation);
        };
        let dims = y.shape().to_vec();
        let (rows, outputs) = (dims[dims.len() - 2], dims[dims.len() - 1]);
        if rows * outputs == 0 {
            return y;
        }
        let bias = (!has_bias).then_some(of_bias);
        // Compiled once per instruction set and selected at run time.
        pulp::Arch::new().dispatch(Finish { values: y.storage_mut::<f32>(), bias, rows, outputs, activation });
        y
    }

    fn brasa_product(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> {
        use burn::backend::ops::FloatTensorOps;

        if precision().cast().is_some() {
            return cast_product::<Self>(lhs, rhs);
        }
        crate::product::product(&lhs, &rhs).unwrap_or_else(|| Self::float_matmul(lhs, rhs))
    }

    fn brasa_layer_grad(
        y: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        activation: Option<Activation>,
    ) -> FloatTensor<Self> {
        match activation {
            Some(Activation::Tanh) => Self::brasa_tanh_backward(y, grad),
            Some(Activation::Relu) => {
                let f64_op = |grad: f64, y: f64| if y <= 0.0 { 0.0 } else { grad };
                // The gradient first: nobody else holds it, so the result takes its memory.
                burn::backend::flex::ops::binary::binary_op(grad, y, relu_grad_f32, f64_op, None)
            }
            Some(Activation::Elu) => Self::brasa_elu_backward(y, grad),
            None => grad,
        }
    }

    fn brasa_layer_bias_grad(grad: FloatTensor<Self>) -> FloatTensor<Self> {
        use burn::tensor::{DType, TensorData};

        let mut dims = grad.shape().to_vec();
        let outputs = dims[dims.len() - 1];
        let rows = dims.remove(dims.len() - 2);
        let grad = grad.to_contiguous();
        if grad.dtype() != DType::F32 || rows * outputs == 0 {
            use burn::backend::ops::FloatTensorOps;
            let axis = dims.len() - 1;
            return Self::float_reshape(Self::float_sum_dim(grad, axis), Shape::from(dims));
        }
        let first = grad.layout().start_offset();
        let values = &grad.storage::<f32>()[first..first + grad.layout().num_elements()];
        let mut sums = vec![0.0f32; values.len() / rows];
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for (member, sums) in values.chunks_exact(rows * outputs).zip(sums.chunks_exact_mut(outputs)) {
                    for row in member.chunks_exact(outputs) {
                        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
                    }
                }
            },
        );
        burn::backend::flex::FlexTensor::from_data(TensorData::new(sums, dims))
    }
}

/// What the backward pass of a layer needs: input, weight, result, activation, the format of the products, and what it counts as.
type Kept<B> = ([FloatTensor<B>; 3], Option<Activation>, Precision, Pass);

impl<B: LayerOps, C: CheckpointStrategy> LayerOps for Autodiff<B, C> {
    fn brasa_layer(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        activation: Option<Activation>,
        pass: Pass,
    ) -> FloatTensor<Self> {
        let forward = |[x, weight, bias]: [FloatTensor<B>; 3], is_tracked: bool| {
            let kept = is_tracked.then(|| (x.clone(), weight.clone()));
            let y = B::brasa_layer(x, weight, bias, activation, pass);
            let kept = kept.map(|(x, weight)| ([x, weight, y.clone()], activation, precision(), pass));
            (y, kept, ())
        };
        node::<B, C, _, _, 3>([x, weight, bias], forward, layer_backward::<B>).0
    }
}

fn layer_backward<B: LayerOps>(
    ([x, weight, y], activation, precision, pass): Kept<B>,
    [of_x, of_weight, of_bias]: [bool; 3],
    grad: FloatTensor<B>,
) -> [Option<FloatTensor<B>>; 3] {
    let grad = B::brasa_layer_grad(y, grad, activation);
    brasa_device::count_launches(pass.backward(activation, of_bias));
    let rank = grad.shape().num_dims();
    let flop = 2 * grad.shape()[rank - 2] * weight.shape().num_elements();
    let product = |lhs, rhs| {
        brasa_device::count_product(flop, pass.product());
        autocast(precision, || B::brasa_product(lhs, rhs))
    };
    let transpose = |tensor| B::float_swap_dims(tensor, rank - 2, rank - 1);
    let grad_x = of_x.then(|| {
        let grad_x = product(grad.clone(), transpose(weight));
        // The gradient of a shared input is the sum over members.
        if grad_x.shape()[0] == x.shape()[0] { grad_x } else { B::float_sum_dim(grad_x, 0) }
    });
    let grad_weight = of_weight.then(|| product(transpose(x), grad.clone()));
    [grad_x, grad_weight, of_bias.then(|| B::brasa_layer_bias_grad(grad))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::TensorData;
    use proptest::prelude::*;

    const ACTIVATIONS: [Option<Activation>; 4] =
        [None, Some(Activation::Tanh), Some(Activation::Relu), Some(Activation::Elu)];

    fn close(got: &[f32], expected: &[f32]) -> Result<(), TestCaseError> {
        prop_assert_eq!(got.len(), expected.len());
        for (got, expected) in got.iter().zip(expected) {
            prop_assert!((got - expected).abs() < 5e-5, "{} instead of {}", got, expected);
        }
        Ok(())
    }

    // Sums in another order differ in the last digits of their terms: numbers that are small enough for the bound.
    proptest! {
        #[test]
        fn a_layer_equals_its_plain_operations(values in proptest::collection::vec(-0.7f32..0.7, 5 * 3 + 3 * 4 + 4)) {
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
            for activation in ACTIVATIONS {
                let fused = run(layer(x.clone(), weight.clone(), bias.clone(), activation));
                let plain = run(activate(x.clone().matmul(weight.clone()) + bias.clone().unsqueeze(), activation));
                close(&fused, &plain)?;
            }
        }

        #[test]
        fn layers_side_by_side_equal_layers_alone(
            values in proptest::collection::vec(-0.7f32..0.7, 2 * (5 * 3 + 3 * 4 + 4)), shared in proptest::bool::ANY,
        ) {
            let device = brasa_test::device().autodiff();
            let part = |from: usize, n: usize| TensorData::new(values[from..from + n].to_vec(), [n]);
            let n_inputs = if shared { 1 } else { 2 };
            let x = Tensor::<1>::from_data(part(0, 15 * n_inputs), &device).reshape([n_inputs, 5, 3]);
            let x = x.detach().require_grad();
            let weight = Tensor::<1>::from_data(part(30, 24), &device).reshape([2, 3, 4]).detach().require_grad();
            let bias = Tensor::<1>::from_data(part(54, 8), &device).reshape([2, 4]).detach().require_grad();
            let run = |y: Tensor<3>| {
                let grads = y.clone().powi_scalar(3).sum().backward();
                let mut all: Vec<f32> = y.inner().into_data().iter::<f32>().collect();
                all.extend(x.grad(&grads).expect("x is a leaf").into_data().iter::<f32>());
                all.extend(weight.grad(&grads).expect("weight is a leaf").into_data().iter::<f32>());
                all.extend(bias.grad(&grads).expect("bias is a leaf").into_data().iter::<f32>());
                all
            };
            for activation in ACTIVATIONS {
                let stacked = run(stacked_layer(x.clone(), weight.clone(), bias.clone(), activation));
                let alone = (0..2).map(|i| {
                    let member = if shared { 0 } else { i };
                    layer(
                        x.clone().slice(member..member + 1).squeeze_dim(0),
                        weight.clone().slice(i..i + 1).squeeze_dim(0),
                        bias.clone().slice(i..i + 1).squeeze_dim(0),
                        activation,
                    )
                });
                let alone = run(Tensor::stack(alone.collect(), 0));
                close(&stacked, &alone)?;
            }
        }
    }

    #[test]
    #[cfg_attr(not(feature = "flex"), ignore = "the loops for the CPU need the feature `flex`")]
    fn products_are_rounded_to_the_format_of_the_forward_pass_and_nothing_else_is() {
        let device = brasa_test::device().autodiff();
        let row = |values: [f32; 3]| Tensor::<2>::from_floats([values], &device).require_grad();
        // 1 + 2^-9 is a number of 10 bits of mantissa, not of 7; 1 + 2^-12 needs 12 bits.
        let fine = 1.0 + 2f32.powi(-9);
        let finer = 1.0 + 2f32.powi(-12);
        let close = |x: f32, y: f32| (x - y).abs() < 1e-6;
        for (precision, of_fine, of_finer) in [
            (Precision::F32, fine, finer),
            (Precision::Tf32, fine, 1.0),
            (Precision::F16, fine, 1.0),
            (Precision::Bf16, 1.0, 1.0),
        ] {
            if let Err(error) = precision.check(&device) {
                eprintln!("SKIPPED: {error}");
                continue;
            }
            let (x, weight) = (row([fine, finer, 2.0]), row([fine, finer, 2.0]).transpose().detach().require_grad());
            let bias = Tensor::<1>::from_floats([finer], &device).require_grad();
            let y = autocast(precision, || layer(x.clone(), weight.clone(), bias.clone(), None));
            let expected = of_fine * of_fine + of_finer * of_finer + 4.0 + finer;
            // The product itself is stored in the format.
            let spacing =
                precision.cast().map_or(1e-6, |_| 2f32.powi(if precision == Precision::F16 { -8 } else { -5 }));
            let got = y.clone().inner().into_scalar::<f32>();
            assert!((got - expected).abs() <= spacing, "{precision}: {got} instead of {expected}");
            // Outside of the scope: the format of the forward pass counts.
            let grads = (y * finer).sum().backward();
            let grad = |tensor: Tensor<2>| tensor.grad(&grads).expect("it is a leaf").into_data();
            for grad in [grad(x), grad(weight)] {
                let grad: Vec<f32> = grad.iter::<f32>().collect();
                let expected = [of_finer * of_fine, of_finer * of_finer, 2.0 * of_finer];
                assert!(
                    grad.iter().zip(expected).all(|(got, expected)| close(*got, expected)),
                    "{precision}: {grad:?}"
                );
            }
            let bias = bias.grad(&grads).expect("it is a leaf").into_scalar::<f32>();
            assert!(close(bias, finer), "{precision}: {bias}");
        }
    }

    #[test]
    fn frozen_parts_get_no_gradient() {
        let device = brasa_test::device().autodiff();
        let x = Tensor::<2>::ones([2, 3], &device);
        let weight = Tensor::<2>::ones([3, 4], &device).require_grad();
        let grads = layer(x.clone(), weight.clone(), Tensor::zeros([4], &device), None).sum().backward();
        assert!(weight.grad(&grads).is_some());
        assert!(x.grad(&grads).is_none());
    }
}
