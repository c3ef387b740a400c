//! The last layer of Q-networks, computed only for the actions that are needed.
//!
//! An update needs the value of the action taken, a decision that of the best legal action. With hundreds of actions
//! and few legal ones, most outputs of the dense product `x W + b` are not used, and its gradient is mostly zero. On
//! the CPU the forward and backward passes compute only the needed columns; on other devices the dense product is
//! faster.

#[cfg(feature = "flex")]
mod host;

use brasa_number::{Number, Place, RowRule};
#[cfg(feature = "flex")]
use burn::backend::Dispatch;
#[cfg(feature = "flex")]
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
#[cfg(feature = "flex")]
use burn::backend::tensor::FloatTensor;
#[cfg(feature = "flex")]
use burn::backend::{Autodiff, Backend, backend_extension};
use burn::tensor::Tensor;

#[cfg(feature = "flex")]
use crate::node::node;
use crate::{RowInputs, plain_side, row_rule};

/// One output per row of parallel layers: `y = x W_c + b_c` with `c` the column of the row.
///
/// # Shapes
/// - `x`: `[n, n_rows, inputs]`, or `[1, n_rows, inputs]` for all layers
/// - `weight`: `[n, inputs, outputs]`, or `[1, inputs, outputs]` for all rows
/// - `bias`: `[n, outputs]`, or `[1, outputs]`
/// - `index`: `[n, n_rows]`, the columns, detached
/// - output: `[n, n_rows]`
///
/// # Panics
/// If an index is out of range.
///
/// ```
/// use brasa_kernels::chosen_output;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// // One layer with 1 input and 3 outputs: 1, 2 and 3 times the input.
/// let device = brasa_device::open_named("cpu")?;
/// let x = Tensor::<3>::from_floats([[[1.0], [10.0]]], &device);
/// let weight = Tensor::<3>::from_floats([[[1.0, 2.0, 3.0]]], &device);
/// let index = Tensor::<2>::from_floats([[2.0, 0.0]], &device);
/// let outputs = chosen_output(x, weight, Tensor::zeros([1, 3], &device), index);
/// assert_eq!(numbers(outputs), [3.0, 10.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn chosen_output(x: Tensor<3>, weight: Tensor<3>, bias: Tensor<2>, index: Tensor<2>) -> Tensor<2> {
    #[cfg(feature = "flex")]
    if on_host(&x) && on_host(&weight) {
        let (x, weight, bias) = (x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch());
        let index = index.into_dispatch();
        return Tensor::from_dispatch(<Dispatch as OptionsOps>::brasa_chosen_output(x, weight, bias, index));
    }
    plain_chosen_output(x, weight, bias, index)
}

/// The largest legal output per row: its column (the first one if outputs are equal) and the output. Both are detached.
///
/// A row whose mask is all 0 gets column 0 and an arbitrary finite number.
///
/// # Shapes
/// - `x`, `weight`, `bias`: as for [`chosen_output`]
/// - `mask`: `[n, n_rows, flags]`, 1 for legal columns; each flag covers `outputs / flags` consecutive columns
/// - output: twice `[n, n_rows]`
///
/// ```
/// use brasa_kernels::best_output;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// // The outputs are 1, 2 and 3 times the input. The last action is illegal in the first row.
/// let device = brasa_device::open_named("cpu")?;
/// let x = Tensor::<3>::from_floats([[[1.0], [10.0]]], &device);
/// let weight = Tensor::<3>::from_floats([[[1.0, 2.0, 3.0]]], &device);
/// let mask = Tensor::<3>::from_floats([[[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]], &device);
/// let (action, value) = best_output(x, weight, Tensor::zeros([1, 3], &device), Some(mask));
/// assert_eq!((numbers(action), numbers(value)), (vec![1.0, 2.0], vec![2.0, 30.0]));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn best_output(
    x: Tensor<3>,
    weight: Tensor<3>,
    bias: Tensor<2>,
    mask: Option<Tensor<3>>,
) -> (Tensor<2>, Tensor<2>) {
    let (x, weight, bias) = (plain_side(x), plain_side(weight), plain_side(bias));
    #[cfg(feature = "flex")]
    if on_host(&x)
        && let Some(mask) = mask
    {
        let (x, weight, bias) = (x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch());
        let mask = mask.into_dispatch();
        let (index, value) = <Dispatch as BestOutputOps>::brasa_best_output(x, weight, bias, mask);
        return (Tensor::from_dispatch(index), Tensor::from_dispatch(value));
    }
    best_of(all_outputs(x, weight, bias), mask)
}

pub(crate) fn plain_chosen_output(x: Tensor<3>, weight: Tensor<3>, bias: Tensor<2>, index: Tensor<2>) -> Tensor<2> {
    chosen_of(all_outputs(x, weight, bias), index)
}

fn all_outputs(x: Tensor<3>, weight: Tensor<3>, bias: Tensor<2>) -> Tensor<3> {
    let (n, [_, inputs, outputs]) = (x.dims()[0].max(weight.dims()[0]), weight.dims());
    crate::stacked_layer(x, weight.expand([n, inputs, outputs]), bias.expand([n, outputs]), None)
}

/// One column per row of computed outputs.
///
/// # Shapes
/// - `outputs`: `[n, n_rows, outputs]`
/// - `index`: `[n, n_rows]`
/// - output: `[n, n_rows]`
///
/// ```
/// use brasa_kernels::chosen_of;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// let device = brasa_device::open_named("cpu")?;
/// let outputs = Tensor::<3>::from_floats([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]], &device);
/// assert_eq!(numbers(chosen_of(outputs, Tensor::from_floats([[2.0, 0.0]], &device))), [3.0, 4.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn chosen_of(outputs: Tensor<3>, index: Tensor<2>) -> Tensor<2> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if crate::cube::runs_on(&outputs) {
        let [n, n_rows, width] = outputs.dims();
        let (outputs, index) = (outputs.reshape([n * n_rows, width]), index.reshape([n * n_rows, 1]));
        let rows = RowInputs { results: [&outputs], data: None, taken: Some(&index) };
        let ([], [chosen]) = row_rule(Taken, &rows);
        return chosen.reshape([n, n_rows]);
    }
    outputs.gather(2, index.int().unsqueeze_dim(2)).squeeze_dim(2)
}

/// The number of the column that is taken.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(any(feature = "cuda", feature = "wgpu")), allow(dead_code, reason = "for GPUs, and for tests"))]
struct Taken;

impl RowRule<1, 0, 1, 1> for Taken {
    #[inline(always)]
    fn column<N: Number>(&self, [x]: [N; 1], _: N, at: Place<N>) -> ([N; 0], [N; 1]) {
        ([], [x.or_zero(at.taken)])
    }

    #[inline(always)]
    fn row<N: Number>(&self, sums: [N; 1], _width: N) -> [N; 1] {
        sums
    }
}

/// The first column with the greatest number that the data, 0 or 1, allow, and this number.
#[derive(Debug, Clone, Copy)]
struct Greatest;

impl RowRule<1, 0, 2, 2> for Greatest {
    const HAS_KEY: bool = true;

    #[inline(always)]
    fn key<N: Number>(&self, [x]: [N; 1], allowed: N) -> N {
        // Some GPUs have no infinite constants.
        N::select(allowed.equal(x.constant(0.0)), x.constant(f64::from(f32::MIN)), x)
    }

    #[inline(always)]
    fn column<N: Number>(&self, [x]: [N; 1], _: N, at: Place<N>) -> ([N; 0], [N; 2]) {
        ([], [at.column.or_zero(at.is_top), x.or_zero(at.is_top)])
    }

    #[inline(always)]
    fn row<N: Number>(&self, sums: [N; 2], _width: N) -> [N; 2] {
        sums
    }
}

/// The smallest number of every row, the first one of equal numbers.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(any(feature = "cuda", feature = "wgpu")), allow(dead_code, reason = "for GPUs, and for tests"))]
struct Smallest;

impl RowRule<1, 0, 1, 1> for Smallest {
    const HAS_KEY: bool = true;

    #[inline(always)]
    fn key<N: Number>(&self, [x]: [N; 1], _: N) -> N {
        -x
    }

    #[inline(always)]
    fn column<N: Number>(&self, [x]: [N; 1], _: N, at: Place<N>) -> ([N; 0], [N; 1]) {
        ([], [x.or_zero(at.is_top)])
    }

    #[inline(always)]
    fn row<N: Number>(&self, sums: [N; 1], _width: N) -> [N; 1] {
        sums
    }
}

/// The smallest of the estimates of each row. Its gradient goes to the first one of equal estimates on a GPU, and on the CPU to one of them.
///
/// # Shapes
/// - `estimates`: `[n, n_rows]`
/// - output: `[n_rows]`
///
/// ```
/// use brasa_kernels::smallest_of;
/// use burn::tensor::Tensor;
///
/// // Two critics, three rows.
/// let device = brasa_device::open_named("cpu")?;
/// let estimates = Tensor::from_floats([[1.0, 5.0, -2.0], [3.0, 4.0, -1.0]], &device);
/// assert_eq!(smallest_of(estimates).into_data().iter::<f32>().collect::<Vec<_>>(), [1.0, 4.0, -2.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn smallest_of(estimates: Tensor<2>) -> Tensor<1> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if crate::cube::runs_on(&estimates) {
        let estimates = estimates.transpose();
        let ([], [smallest]) = row_rule(Smallest, &RowInputs { results: [&estimates], data: None, taken: None });
        return smallest;
    }
    estimates.min_dim(0).squeeze_dim(0)
}

/// The same as [`best_output`] on computed outputs. An output that is not a number is the largest, except with WebGPU, whose compilers may
/// assume that there are none.
///
/// # Shapes
/// - `outputs`: `[n, n_rows, outputs]`
/// - `mask`: `[n, n_rows, flags]`
/// - output: twice `[n, n_rows]`
///
/// ```
/// use brasa_kernels::best_of;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// // Four actions, with a flag for each pair of them.
/// let device = brasa_device::open_named("cpu")?;
/// let outputs = Tensor::<3>::from_floats([[[1.0, 2.0, 3.0, 4.0]]], &device);
/// let mask = Tensor::<3>::from_floats([[[1.0, 0.0]]], &device);
/// let (action, value) = best_of(outputs, Some(mask));
/// assert_eq!((numbers(action), numbers(value)), (vec![1.0], vec![2.0]));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn best_of(outputs: Tensor<3>, mask: Option<Tensor<3>>) -> (Tensor<2>, Tensor<2>) {
    let [n, n_rows, _] = outputs.dims();
    let mask = mask.map(|mask| mask.flatten(0, 1));
    let (index, value) = best_of_rows(outputs.flatten(0, 1), mask);
    (index.reshape([n, n_rows]), value.reshape([n, n_rows]))
}

/// [`best_of`] for the rows of a matrix.
///
/// # Shapes
/// - `outputs`: `[n_rows, outputs]`
/// - `mask`: `[n_rows, flags]`
/// - output: twice `[n_rows]`
///
/// ```
/// use brasa_kernels::best_of_rows;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// let device = brasa_device::open_named("cpu")?;
/// let outputs = Tensor::<2>::from_floats([[1.0, 3.0], [5.0, 4.0]], &device);
/// let (index, value) = best_of_rows(outputs, None);
/// assert_eq!((numbers(index), numbers(value)), (vec![1.0, 0.0], vec![3.0, 5.0]));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn best_of_rows(outputs: Tensor<2>, mask: Option<Tensor<2>>) -> (Tensor<1>, Tensor<1>) {
    let [n_rows, width] = outputs.dims();
    let mask = mask.map(|mask| match mask.dims()[1] {
        flags if flags == width => plain_side(mask),
        flags => plain_side(mask).unsqueeze_dim::<3>(2).expand([n_rows, flags, width / flags]).reshape([n_rows, width]),
    });
    let outputs = plain_side(outputs);
    let ([], best) = row_rule(Greatest, &RowInputs { results: [&outputs], data: mask.as_ref(), taken: None });
    best.into()
}

#[cfg(feature = "flex")]
fn on_host<const D: usize>(tensor: &Tensor<D>) -> bool {
    tensor.dtype() == burn::tensor::DType::F32 && brasa_device::runs_on_host(&tensor.device())
}

/// Backends with these operations: the CPU.
#[cfg(feature = "flex")]
#[backend_extension(Flex, Autodiff)]
pub(crate) trait OptionsOps: Backend {
    fn brasa_chosen_output(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        index: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
}

/// The gradients of a chosen output.
#[cfg(feature = "flex")]
pub(crate) trait ChosenOutputBackward: Backend {
    /// Gradients of `x`, `weight` and `bias`, from `x`, `weight` and the columns.
    fn chosen_output_backward(kept: [FloatTensor<Self>; 3], grad: FloatTensor<Self>) -> [FloatTensor<Self>; 3];
}

/// Operations without a gradient.
#[cfg(feature = "flex")]
#[backend_extension(Flex)]
pub(crate) trait BestOutputOps: Backend {
    /// Columns and outputs.
    fn brasa_best_output(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        mask: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}

#[cfg(feature = "flex")]
impl<B: OptionsOps + ChosenOutputBackward, C: CheckpointStrategy> OptionsOps for Autodiff<B, C> {
    fn brasa_chosen_output(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        index: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let index = index.into_primitive();
        let forward = |[x, weight, bias]: [FloatTensor<B>; 3], is_tracked: bool| {
            let kept = is_tracked.then(|| [x.clone(), weight.clone(), index.clone()]);
            (B::brasa_chosen_output(x, weight, bias, index), kept, ())
        };
        node::<B, C, _, _, 3>([x, weight, bias], forward, |kept, _, grad| {
            B::chosen_output_backward(kept, grad).map(Some)
        })
        .0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Device, TensorData};
    use proptest::prelude::*;

    /// Deterministic pseudo-random numbers.
    fn wave<const D: usize>(shape: [usize; D], seed: f32, device: &Device) -> Tensor<D> {
        let n: usize = shape.iter().product();
        let values: Vec<f32> = (0..n).map(|i| ((i as f32 * 1.7 + seed) * 0.9).sin()).collect();
        Tensor::from_data(TensorData::new(values, shape), device)
    }

    /// `[n, n_rows]` numbers below `end`, optionally transposed from a matrix of the other shape.
    fn columns(n: usize, n_rows: usize, end: usize, turned: bool, device: &Device) -> Tensor<2> {
        let values: Vec<f32> = (0..n * n_rows).map(|i| ((i * 7 + i / 3) % end) as f32).collect();
        match turned {
            true => Tensor::<2>::from_data(TensorData::new(values, [n_rows, n]), device).swap_dims(0, 1),
            false => Tensor::from_data(TensorData::new(values, [n, n_rows]), device),
        }
    }

    fn close(got: Vec<f32>, expected: Vec<f32>) -> Result<(), TestCaseError> {
        prop_assert_eq!(got.len(), expected.len());
        for (got, expected) in got.iter().zip(&expected) {
            prop_assert!((got - expected).abs() < 2e-5 * (1.0 + expected.abs()), "{} instead of {}", got, expected);
        }
        Ok(())
    }

    fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    proptest! {
        #[test]
        fn a_chosen_output_equals_its_plain_operations(
            n in 1usize..4, n_rows in 1usize..6, inputs in 1usize..20, outputs in 1usize..30, shared in 0usize..3,
            turned in any::<bool>(), seed in 0.0f32..10.0,
        ) {
            let device = brasa_test::device().autodiff();
            let (x_members, members) = [(n, n), (1, n), (n, 1)][shared];
            let x = wave([x_members, n_rows, inputs], seed, &device).require_grad();
            let weight = wave([members, inputs, outputs], seed + 1.0, &device).require_grad();
            let bias = wave([members, outputs], seed + 2.0, &device).require_grad();
            let index = columns(n, n_rows, outputs, turned, &device);
            let run = |y: Tensor<2>| {
                // A higher power would sum terms much larger than their sum, which loses its last digits.
                let grads = y.clone().square().sum().backward();
                let grad = |tensor: Option<Tensor<3>>| values(tensor.expect("it is a leaf"));
                let bias = values(bias.grad(&grads).expect("it is a leaf"));
                [values(y.inner()), grad(x.grad(&grads)), grad(weight.grad(&grads)), bias].concat()
            };
            let plain = plain_chosen_output(x.clone(), weight.clone(), bias.clone(), index.clone());
            close(run(chosen_output(x.clone(), weight.clone(), bias.clone(), index)), run(plain))?;
        }

        #[test]
        fn the_best_output_equals_its_plain_operations(
            n in 1usize..4, n_rows in 1usize..6, inputs in 1usize..20, flags in 1usize..6, span in 1usize..40,
            shared in 0usize..3, masked in any::<bool>(), turned in any::<bool>(), seed in 0.0f32..10.0,
        ) {
            let device = brasa_test::device();
            let (x_members, members) = [(n, n), (1, n), (n, 1)][shared];
            let x = wave([x_members, n_rows, inputs], seed, &device);
            let weight = wave([members, inputs, flags * span], seed + 1.0, &device);
            let bias = wave([members, flags * span], seed + 2.0, &device);
            // Every row has a legal action.
            let flag = |i: usize| f32::from(u8::from(i % flags + 1 == flags || (i * 5 + seed as usize).is_multiple_of(3)));
            let mask: Vec<f32> = (0..n * n_rows * flags).map(flag).collect();
            let mask = match turned {
                true => Tensor::<3>::from_data(TensorData::new(mask, [n_rows, n, flags]), &device).swap_dims(0, 1),
                false => Tensor::from_data(TensorData::new(mask, [n, n_rows, flags]), &device),
            };
            let mask = masked.then_some(mask);
            let all = x.clone().matmul(weight.clone()) + bias.clone().unsqueeze_dim::<3>(1);
            let all = all.expand([n, n_rows, flags * span]);
            let (_, value) = best_of(all.clone(), mask.clone());
            let (got_index, got_value) = best_output(x, weight, bias, mask.clone());
            // Of two outputs that differ only by rounding either may be the best: the chosen one must be legal and have
            // the largest value.
            let (all, mask) = (values(all), mask.map(values));
            let mut chosen = Vec::new();
            for (row, option) in values(got_index).into_iter().map(|option| option as usize).enumerate() {
                prop_assert!(mask.as_ref().is_none_or(|mask| mask[row * flags + option / span] > 0.0));
                chosen.push(all[row * flags * span + option]);
            }
            close(chosen, values(value.clone()))?;
            close(values(got_value), values(value))?;
        }
    }

    /// The rules of GPUs are the functions of the operations, on any device.
    #[test]
    fn rules_are_the_operations() {
        let device = brasa_test::device().autodiff();
        let x = wave([1, 7, 5], 0.3, &device).reshape([7, 5]).detach().require_grad();
        let index = columns(1, 7, 5, false, &device).reshape([7, 1]).inner();
        let flags: Vec<f32> = (0..35).map(|i| f32::from(u8::from(i % 5 == 4 || i % 3 == 0))).collect();
        let mask = Tensor::<1>::from_floats(&flags[..], &device.clone().without_autodiff()).reshape([7, 5]);
        let run = |y: Tensor<1>| {
            let grads = y.clone().square().sum().backward();
            [values(y.inner()), values(x.grad(&grads).expect("it is a leaf"))].concat()
        };
        let ([], [taken]) = row_rule(Taken, &RowInputs { results: [&x], data: None, taken: Some(&index) });
        let expected = x.clone().gather(1, index.clone().autodiff().int()).squeeze_dim(1);
        close(run(taken), run(expected)).expect("the number that is taken");
        let ([], [smallest]) = row_rule(Smallest, &RowInputs { results: [&x], data: None, taken: None });
        close(run(smallest), run(x.clone().min_dim(1).squeeze_dim(1))).expect("the smallest number");
        close(run(smallest_of(x.clone().transpose())), run(x.clone().min_dim(1).squeeze_dim(1))).expect("the same");
        let ([], [best, value]) = row_rule(Greatest, &RowInputs { results: [&x], data: Some(&mask), taken: None });
        let masked = x.clone().inner().mask_fill(mask.equal_scalar(0.0), f32::NEG_INFINITY);
        let plain = |tensor: Tensor<1>| values(if tensor.is_autodiff() { tensor.inner() } else { tensor });
        assert_eq!(plain(best), values(masked.clone().argmax(1).squeeze_dim::<1>(1).float()));
        assert_eq!(plain(value), values(masked.max_dim(1).squeeze_dim::<1>(1)));
    }

    #[test]
    #[cfg_attr(not(feature = "flex"), ignore = "the loops for the CPU need the feature `flex`")]
    fn what_is_not_a_number_shows() {
        // Compilers for WebGPU may assume that all are numbers.
        let device = brasa_device::open_named("cpu").expect("flex is a default feature");
        let outputs = Tensor::<3>::from_floats([[[1.0, f32::NAN, 3.0], [f32::NAN, 2.0, 5.0]]], &device);
        let mask = Tensor::<3>::from_floats([[[1.0, 1.0, 1.0], [0.0, 1.0, 0.0]]], &device);
        let (index, value) = best_of(outputs, Some(mask));
        assert_eq!(values(index), [1.0, 1.0]);
        let value = values(value);
        assert!(value[0].is_nan() && value[1] == 2.0, "{value:?}");
    }

    #[test]
    fn the_first_of_equals_is_the_best() {
        let device = brasa_test::device();
        let x = Tensor::<3>::ones([1, 1, 2], &device);
        let weight = Tensor::<3>::zeros([1, 2, 60], &device);
        let bias = Tensor::<2>::zeros([1, 60], &device);
        for (flags, expected) in [([0.0, 1.0, 1.0], 20.0), ([0.0, 0.0, 1.0], 40.0), ([0.0, 0.0, 0.0], 0.0)] {
            let mask = Tensor::<3>::from_floats([[flags]], &device);
            let (index, value) = best_output(x.clone(), weight.clone(), bias.clone(), Some(mask));
            assert_eq!((index.into_scalar::<f32>(), value.into_scalar::<f32>()), (expected, 0.0));
        }
    }

    #[test]
    #[cfg_attr(not(feature = "flex"), ignore = "the loops for the CPU need the feature `flex`")]
    #[should_panic(expected = "a column of the layer")]
    fn an_index_beyond_the_last_column_is_refused() {
        // Only the CPU looks at the numbers.
        let device = brasa_device::open_named("cpu").expect("the feature is on");
        let x = Tensor::<3>::ones([1, 1, 2], &device);
        let (weight, bias) = (Tensor::<3>::zeros([1, 2, 3], &device), Tensor::<2>::zeros([1, 3], &device));
        chosen_output(x, weight, bias, Tensor::from_floats([[3.0]], &device));
    }
}
