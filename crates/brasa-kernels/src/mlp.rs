//! Layers one after the other, in one pass over all of them.
//!
//! A decision for a few rows takes less time than the bookkeeping of tensors: on the CPU, without gradients, it is one pass over two buffers
//! that are kept. On a GPU, small networks need more launches than arithmetic: forward is one launch, backward two.

#[cfg(feature = "flex")]
use std::cell::Cell;

use brasa_device::{Precision, precision};
use burn::tensor::Tensor;

use crate::layer::{Pass, one_layer};
use crate::{Activation, HostTensor};
#[cfg(feature = "flex")]
use crate::{layer::layer_into, product::Dims, scratch::with_scratch};

#[cfg(feature = "flex")]
thread_local! {
    /// The values between two layers, and those behind the second.
    static BETWEEN: Cell<[Vec<f32>; 2]> = const { Cell::new([Vec::new(), Vec::new()]) };
}

/// Rows at a time: what lies between two layers stays in a cache.
#[cfg(feature = "flex")]
const ROWS: usize = 256;

/// Weights `[inputs, outputs]`, bias `[outputs]` and activation of a layer.
///
/// ```
/// use brasa_kernels::{Activation, LayerParts, layer};
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// /// All layers, one after the other.
/// fn forward(x: Tensor<2>, layers: &[LayerParts<'_>]) -> Tensor<2> {
///     layers.iter().fold(x, |x, (weight, bias, activation)| layer(x, (*weight).clone(), (*bias).clone(), *activation))
/// }
///
/// let device = brasa_device::open_named("cpu")?;
/// let (weight, bias) = (Tensor::<2>::from_floats([[-2.0]], &device), Tensor::<1>::zeros([1], &device));
/// let layers = [(&weight, &bias, Some(Activation::Relu)), (&weight, &bias, None)];
/// assert_eq!(numbers(forward(Tensor::from_floats([[1.0], [-3.0]], &device), &layers)), [0.0, -12.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub type LayerParts<'a> = (&'a Tensor<2>, &'a Tensor<1>, Option<Activation>);

/// Weights `[n, inputs, outputs]`, bias `[n, outputs]` and activation of `n` parallel layers.
///
/// ```
/// use brasa_kernels::{StackedLayerParts, stacked_layer};
/// use burn::tensor::Tensor;
///
/// fn forward(x: Tensor<3>, (weight, bias, activation): StackedLayerParts<'_>) -> Tensor<3> {
///     stacked_layer(x, weight.clone(), bias.clone(), activation)
/// }
///
/// let device = brasa_device::open_named("cpu")?;
/// let (weight, bias) = (Tensor::zeros([2, 3, 4], &device), Tensor::zeros([2, 4], &device));
/// assert_eq!(forward(Tensor::zeros([1, 5, 3], &device), (&weight, &bias, None)).dims(), [2, 5, 4]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub type StackedLayerParts<'a> = (&'a Tensor<3>, &'a Tensor<2>, Option<Activation>);

/// All layers on `x`, in one pass. `None` for networks that are too large for it on a GPU, in other formats than 32 bits, and without rows
/// or outputs: there, call [`crate::layer`] for each.
///
/// Gradients pass through, except those of gradients.
///
/// # Shapes
/// - `x`: `[n_rows, inputs]` of the first layer
/// - output: `[n_rows, outputs]` of the last layer
///
/// # Panics
/// If rows have another width than the inputs of a layer.
///
/// ```
/// use brasa_kernels::{Activation, mlp};
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// let device = brasa_device::open_named("cpu")?;
/// let (weight, bias) = (Tensor::<2>::from_floats([[-2.0]], &device), Tensor::<1>::zeros([1], &device));
/// let layers = [(&weight, &bias, Some(Activation::Relu)), (&weight, &bias, None)];
/// let x = Tensor::from_floats([[1.0], [-3.0]], &device);
/// assert_eq!(mlp(&x, layers).map(numbers), Some(vec![0.0, -12.0]));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[track_caller]
pub fn mlp<'a>(x: &Tensor<2>, layers: impl IntoIterator<Item = LayerParts<'a>>) -> Option<Tensor<2>> {
    let layers: Vec<_> = layers.into_iter().collect();
    infer(x, &layers).or_else(|| in_one_pass(x, &layers))
}

/// The same for several parallel MLPs, each with its own weights.
///
/// # Shapes
/// - `x`: `[n, n_rows, inputs]`, or `[1, n_rows, inputs]` for all of them
/// - output: `[n, n_rows, outputs]`
///
/// # Panics
/// As [`mlp`].
///
/// ```
/// use brasa_kernels::stacked_mlp;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// // Two networks on one input: four times it, and it.
/// let device = brasa_device::open_named("cpu")?;
/// let x = Tensor::<3>::from_floats([[[3.0]]], &device);
/// let (weight, bias) = (Tensor::<3>::from_floats([[[2.0]], [[-1.0]]], &device), Tensor::zeros([2, 1], &device));
/// assert_eq!(stacked_mlp(&x, [(&weight, &bias, None); 2]).map(numbers), Some(vec![12.0, 3.0]));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[track_caller]
pub fn stacked_mlp<'a>(x: &Tensor<3>, layers: impl IntoIterator<Item = StackedLayerParts<'a>>) -> Option<Tensor<3>> {
    in_one_pass(x, &layers.into_iter().collect::<Vec<_>>())
}

/// Whether a GPU computes networks of these `[inputs, outputs]` in one pass over `n_rows` rows.
///
/// A pass has no tiles of weights in fast memory: above some size, separate products take less time than the launches that the pass saves. The
/// limit is an estimate from the rates of a Tesla T4 (2 TFLOP/s of a product, half of it for a pass, 5 us per launch); no GPU was measured.
pub(crate) fn is_in_one_pass(
    members: usize,
    n_rows: usize,
    mut sizes: impl ExactSizeIterator<Item = [usize; 2]> + Clone,
) -> bool {
    /// Multiplications and additions.
    const FLOP: usize = 1 << 27;
    /// Numbers of a row between layers: four rows take half of the shared memory that every device has, 16 KiB.
    const WIDEST: usize = 512;
    /// Kernels have so many buffers.
    const LAYERS: usize = 5;
    /// Groups of threads in one launch.
    const BLOCKS: usize = 1 << 15;
    let n_params: usize = sizes.clone().map(|[inputs, outputs]| members * (inputs + 1) * outputs).sum();
    let is_small = n_rows.saturating_mul(2 * n_params) <= FLOP && n_rows <= 4 * BLOCKS && members <= BLOCKS;
    let fits =
        (1..=LAYERS).contains(&sizes.len()) && sizes.all(|size| size.into_iter().all(|n| (1..=WIDEST).contains(&n)));
    n_rows > 0 && fits && is_small && n_params <= 32 * BLOCKS
}

/// Inputs and outputs of every layer.
fn sizes<const D: usize, const E: usize>(
    layers: &[(&Tensor<D>, &Tensor<E>, Option<Activation>)],
) -> impl ExactSizeIterator<Item = [usize; 2]> + Clone {
    layers.iter().map(|(weight, ..)| [D - 2, D - 1].map(|dim| weight.dims()[dim]))
}

#[track_caller]
fn in_one_pass<const D: usize, const E: usize>(
    x: &Tensor<D>,
    layers: &[(&Tensor<D>, &Tensor<E>, Option<Activation>)],
) -> Option<Tensor<D>> {
    let mut width = x.dims()[D - 1];
    for [inputs, outputs] in sizes(layers) {
        assert_eq!(width, inputs, "numbers in a row (left), compared with the inputs of the layer");
        width = outputs;
    }
    let n_members = layers.first()?.0.dims()[..D - 2].iter().product();
    if precision() != Precision::F32 || !is_in_one_pass(n_members, x.dims()[D - 2], sizes(layers)) {
        return None;
    }
    if crate::runs_on_host(&x.device()) {
        let layer = |x, (i, (weight, bias, activation)): (usize, &(&Tensor<D>, &Tensor<E>, Option<Activation>))| {
            one_layer(x, (*weight).clone(), (*bias).clone(), *activation, Pass::new(true, i, layers.len()))
        };
        return Some(layers.iter().enumerate().fold(x.clone(), layer));
    }
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    {
        let y = on_gpu::run(x, layers)?;
        for (i, [inputs, outputs]) in sizes(layers).enumerate() {
            let flop = 2 * n_members * x.dims()[D - 2] * inputs * outputs;
            brasa_device::count_product(flop, Pass::new(true, i, layers.len()).forward());
        }
        Some(y)
    }
    #[cfg(not(any(feature = "cuda", feature = "wgpu")))]
    None
}

/// By the kernels, with gradients if one is asked for.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod on_gpu {
    use burn::backend::Autodiff;
    use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
    use burn::backend::tensor::FloatTensor;
    use burn_cubecl::CubeBackend;
    use burn_cubecl::tensor::CubeTensor;

    use super::*;
    use crate::cube::mlp::{Form, Kept, Stack, as_stack, from_stack};
    use crate::cube::{from_device, on_device};
    use crate::node::node;

    type OnTape = FloatTensor<Autodiff<CubeBackend>>;

    pub(super) fn run<const D: usize, const E: usize>(
        x: &Tensor<D>,
        layers: &[(&Tensor<D>, &Tensor<E>, Option<Activation>)],
    ) -> Option<Tensor<D>> {
        let activations: Vec<_> = layers.iter().map(|layer| layer.2).collect();
        let stack = Stack {
            x: on_device(x)?,
            weights: layers.iter().map(|layer| on_device(layer.0)).collect::<Option<_>>()?,
            biases: layers.iter().map(|layer| on_device(layer.1)).collect::<Option<_>>()?,
            activations: activations.clone(),
        };
        let stack = stack.of_rank(D);
        let form = stack.form()?;
        let is_on_tape = |layer: &(&Tensor<D>, &Tensor<E>, _)| layer.0.is_autodiff() || layer.1.is_autodiff();
        if !x.is_autodiff() && !layers.iter().any(is_on_tape) {
            let mut results = stack.forward(&form, false);
            return Some(from_device(from_stack(results.remove(0), D)));
        }
        let mut inputs = vec![on_tape(x)?];
        for (weight, bias, _) in layers {
            inputs.extend([on_tape(weight)?, on_tape(bias)?]);
        }
        let plan = (form, activations, D);
        let y = match layers.len() {
            1 => record::<3>(inputs, plan),
            2 => record::<5>(inputs, plan),
            3 => record::<7>(inputs, plan),
            4 => record::<9>(inputs, plan),
            5 => record::<11>(inputs, plan),
            n => unreachable!("{n} layers are too many for one pass"),
        };
        Some(Tensor::from_primitive::<Autodiff<CubeBackend>>(y))
    }

    fn on_tape<const D: usize>(tensor: &Tensor<D>) -> Option<OnTape> {
        let tensor = if tensor.is_autodiff() { tensor.clone() } else { tensor.clone().autodiff() };
        tensor.try_into_primitive::<Autodiff<CubeBackend>>().ok()
    }

    /// One autodiff node with input, and weight and bias of every layer, of `rank` dimensions.
    fn record<const N: usize>(
        inputs: Vec<OnTape>,
        (form, activations, rank): (Form, Vec<Option<Activation>>, usize),
    ) -> OnTape {
        let inputs: [OnTape; N] = inputs.try_into().expect("two tensors for every layer");
        let forward = |inputs: [CubeTensor; N], is_tracked: bool| {
            let mut inputs = inputs.into_iter();
            let x = inputs.next().expect("an input");
            let (mut weights, mut biases) = (Vec::new(), Vec::new());
            while let (Some(weight), Some(bias)) = (inputs.next(), inputs.next()) {
                weights.push(weight);
                biases.push(bias);
            }
            let stack = Stack { x, weights, biases, activations }.of_rank(rank);
            let results = stack.forward(&form, is_tracked);
            let y = results.last().expect("there is a layer").clone();
            let kept = is_tracked.then_some((Kept { stack, results }, rank));
            (from_stack(y, rank), kept, ())
        };
        node::<CubeBackend, NoCheckpointing, _, _, N>(inputs, forward, backward::<N>).0
    }

    fn backward<const N: usize>(
        (kept, rank): (Kept, usize),
        needed: [bool; N],
        grad: CubeTensor,
    ) -> [Option<CubeTensor>; N] {
        let (of_x, of_params) = (needed[0], needed[1..].contains(&true));
        let pass = Pass::Whole { first: true, last: true };
        brasa_device::count_launches(pass.backward(None, of_params));
        let (by_x, by_params) = kept.backward(as_stack(grad, rank), of_params, of_x);
        let by_x = [by_x.map(|by_x| from_stack(by_x, rank))];
        // A weight has the rank of the input, a bias one dimension less.
        let by_params = by_params.into_iter().map(|by_param| Some(from_stack(by_param, rank)));
        let mut all = by_x.into_iter().chain(by_params).chain(std::iter::repeat_with(|| None));
        needed.map(|is_needed| all.next().flatten().filter(|_| is_needed))
    }
}

/// Without gradients, on the CPU.
fn infer(x: &Tensor<2>, layers: &[LayerParts<'_>]) -> Option<Tensor<2>> {
    #[cfg(feature = "flex")]
    {
        if x.is_autodiff() || precision().cast().is_some() {
            return None;
        }
        let ([n_rows, inputs], numbers) = (x.dims(), HostTensor::of(x)?);
        let mut parts = Vec::new();
        for (weight, bias, activation) in layers {
            if weight.is_autodiff() || bias.is_autodiff() {
                return None;
            }
            parts.push((HostTensor::of(*weight)?, HostTensor::of(*bias)?, *activation, weight.dims()));
        }
        let outputs = parts.last()?.3[1];
        let is_empty = n_rows * inputs == 0 || parts.iter().any(|part| part.3[1] == 0);
        if is_empty {
            return None;
        }
        let is_whole = is_in_one_pass(1, n_rows, sizes(layers));
        for (i, [inputs, outputs]) in sizes(layers).enumerate() {
            let launches = Pass::new(is_whole, i, layers.len()).forward();
            brasa_device::count_product(2 * n_rows * inputs * outputs, launches);
        }
        let mut result = Vec::with_capacity(n_rows * outputs);
        with_scratch(&BETWEEN, |[from, to]| {
            for x in numbers.chunks(ROWS * inputs) {
                let rows = x.len() / inputs;
                for (i, (weight, bias, activation, [inputs, outputs])) in parts.iter().enumerate() {
                    let x: &[f32] = if i == 0 { x } else { from };
                    let dims = Dims { members: 1, rows, inputs: *inputs, outputs: *outputs };
                    if i + 1 < parts.len() || n_rows > ROWS {
                        layer_into(x, weight, bias, *activation, dims, to);
                        std::mem::swap(from, to);
                    } else {
                        layer_into(x, weight, bias, *activation, dims, &mut result);
                    }
                }
                if n_rows > ROWS {
                    result.extend_from_slice(from);
                }
            }
        });
        Some(HostTensor::tensor(result, [n_rows, outputs]))
    }
    #[cfg(not(feature = "flex"))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::TensorData;
    use proptest::prelude::*;

    #[test]
    fn it_is_one_layer_after_the_other() {
        let device = brasa_test::device();
        let tensor = |dims: [usize; 2], seed: f32| {
            let values: Vec<f32> = (0..dims[0] * dims[1]).map(|i| ((i as f32 + seed) * 0.7).sin()).collect();
            Tensor::<2>::from_data(TensorData::new(values, dims), &device)
        };
        for rows in [1, 4, 7, 300] {
            let widths = [3, 17, 64, 2];
            let parts: Vec<_> = widths
                .windows(2)
                .map(|pair| (tensor([pair[0], pair[1]], 0.1), tensor([1, pair[1]], 0.2).squeeze_dim::<1>(0)))
                .collect();
            let activations = [Some(Activation::Tanh), Some(Activation::Relu), None];
            let layers =
                || parts.iter().zip(activations).map(|((weight, bias), activation)| (weight, bias, activation));
            let x = tensor([rows, 3], 0.3);
            let Some(got) = infer(&x, &layers().collect::<Vec<_>>()) else {
                return assert!(HostTensor::of(&x).is_none(), "the CPU has this path");
            };
            let expected = layers().fold(x, |x, (weight, bias, activation)| {
                one_layer(x, weight.clone(), bias.clone(), activation, Pass::OneByOne)
            });
            assert_eq!(got.into_data(), expected.into_data());
        }
        // With a gradient it is left to the layers.
        let (weight, bias) = (tensor([3, 2], 0.0).autodiff(), Tensor::zeros([2], &device));
        assert!(infer(&tensor([1, 3], 0.0), &[(&weight, &bias, None)]).is_none());
        assert!(infer(&tensor([1, 3], 0.0), &[]).is_none());
    }

    proptest! {
        /// On a GPU these are other kernels.
        #[test]
        fn one_pass_equals_layers_alone(
            members in 1usize..4, rows in 1usize..70, widths in proptest::collection::vec(1usize..40, 2..6), shared in any::<bool>(),
            of_x in any::<bool>(), of_params in any::<bool>(),
        ) {
            let device = brasa_test::device().autodiff();
            let leaf = |dims: [usize; 3], seed: f32, is_needed: bool| {
                let scale = 1.0 / (dims[1] as f32).sqrt();
                let numbers: Vec<f32> = (0..dims.iter().product()).map(|i| ((i as f32 + seed) * 0.7).sin() * scale).collect();
                let tensor = Tensor::<3>::from_data(TensorData::new(numbers, dims), &device);
                if is_needed { tensor.require_grad() } else { tensor }
            };
            let x = leaf([if shared { 1 } else { members }, rows, widths[0]], 0.3, of_x);
            let activations = [Some(Activation::Tanh), Some(Activation::Elu), None, Some(Activation::Relu)];
            let params: Vec<_> = widths
                .windows(2)
                .map(|pair| {
                    let weight = leaf([members, pair[0], pair[1]], 0.1, of_params);
                    let bias = leaf([1, members, pair[1]], 0.2, false).squeeze_dim::<2>(0).detach();
                    (weight, if of_params { bias.require_grad() } else { bias })
                })
                .collect();
            let layers: Vec<_> =
                params.iter().zip(activations).map(|((weight, bias), activation)| (weight, bias, activation)).collect();
            let numbers = |y: Tensor<3>| {
                let mut all = vec![y.clone().inner().into_data().iter::<f32>().collect::<Vec<_>>()];
                let weights = leaf(y.dims(), 0.9, false);
                if of_x || of_params {
                    let grads = (y * weights).sum().backward();
                    let mut add = |numbers: Option<burn::tensor::TensorData>| {
                        all.push(numbers.map_or(Vec::new(), |numbers| numbers.iter::<f32>().collect()));
                    };
                    add(x.grad(&grads).map(Tensor::into_data));
                    for (weight, bias) in &params {
                        add(weight.grad(&grads).map(Tensor::into_data));
                        add(bias.grad(&grads).map(Tensor::into_data));
                    }
                }
                all
            };
            let alone = |x, (weight, bias, activation): &StackedLayerParts<'_>| {
                one_layer(x, (*weight).clone(), (*bias).clone(), *activation, Pass::OneByOne)
            };
            let expected = numbers(layers.iter().fold(x.clone(), alone));
            let got = numbers(stacked_mlp(&x, layers.iter().copied()).expect("it is small"));
            for (place, (got, expected)) in got.iter().zip(&expected).enumerate() {
                prop_assert_eq!(got.len(), expected.len());
                for (got, expected) in got.iter().zip(expected) {
                    let close = (got - expected).abs() < 2e-5 * expected.abs().max(1.0);
                    prop_assert!(close, "{} instead of {} in tensor {}", got, expected, place);
                }
            }
            if members == 1 {
                let flat: Vec<_> = params
                    .iter()
                    .map(|(weight, bias)| (weight.clone().squeeze_dim::<2>(0), bias.clone().squeeze_dim::<1>(0)))
                    .collect();
                let layers = flat.iter().zip(activations).map(|((weight, bias), activation)| (weight, bias, activation));
                let y = mlp(&x.clone().squeeze_dim::<2>(0), layers).expect("it is small");
                prop_assert_eq!(&numbers(y.unsqueeze()), &got);
            }
        }
    }

    #[test]
    fn large_networks_and_other_formats_are_left_to_single_layers() {
        let device = brasa_test::device().autodiff();
        let pass = |inputs: usize, outputs: usize| {
            let (weight, bias) = (Tensor::zeros([inputs, outputs], &device), Tensor::zeros([outputs], &device));
            mlp(&Tensor::zeros([2, inputs], &device), [(&weight, &bias, None)])
        };
        assert!(pass(3, 4).is_some() && pass(3, 0).is_none() && pass(600, 4).is_none());
        assert!(brasa_device::autocast(Precision::Bf16, || pass(3, 4)).is_none());
        let sizes = |n: usize| [[256, 256]].into_iter().cycle().take(n).collect::<Vec<_>>();
        let is_whole = |rows, n| is_in_one_pass(1, rows, sizes(n).into_iter());
        assert!(is_whole(256, 3) && !is_whole(2048, 3) && !is_whole(256, 6) && !is_whole(0, 1) && !is_whole(1, 0));
    }

    #[test]
    #[should_panic(expected = "numbers in a row (left), compared with the inputs of the layer")]
    fn rows_must_fit() {
        let device = brasa_test::device().autodiff();
        let (weight, bias) = (Tensor::zeros([3, 2], &device), Tensor::zeros([2], &device));
        mlp(&Tensor::zeros([1, 2], &device), [(&weight, &bias, None)]);
    }
}
