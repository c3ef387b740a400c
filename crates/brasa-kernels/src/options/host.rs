//! Chosen and best outputs on the CPU: only the needed columns are read and written.

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::tensor::TensorData;
use pulp::{Simd, WithSimd};

use super::{BestOutputOps, ChosenOutputBackward, OptionsOps};

/// A batch of row-major matrices. A single member is shared by all.
#[derive(Clone, Copy)]
struct Stack<'a> {
    data: &'a [f32],
    /// Members, rows, columns.
    dims: [usize; 3],
    /// Strides of members and rows.
    strides: [usize; 2],
}

impl<'a> Stack<'a> {
    fn of(tensor: &'a FlexTensor) -> Self {
        let layout = tensor.layout();
        let (shape, strides) = (layout.shape(), layout.strides());
        Self {
            data: &tensor.storage::<f32>()[layout.start_offset()..],
            dims: [shape[0], shape[1], shape[2]],
            strides: [strides[0] as usize, strides[1] as usize],
        }
    }

    #[inline(always)]
    fn row(&self, member: usize, row: usize) -> &'a [f32] {
        let member = if self.dims[0] == 1 { 0 } else { member };
        let start = member * self.strides[0] + row * self.strides[1];
        &self.data[start..start + self.dims[2]]
    }

    /// A member with contiguous rows.
    #[inline(always)]
    fn member(&self, member: usize) -> &'a [f32] {
        let start = if self.dims[0] == 1 { 0 } else { member * self.strides[0] };
        &self.data[start..start + self.dims[1] * self.dims[2]]
    }
}

/// The tensor itself if its rows are contiguous, else a contiguous copy.
fn with_rows(tensor: &FlexTensor) -> FlexTensor {
    let strides = tensor.layout().strides();
    let sound = strides.last() == Some(&1) && strides.iter().all(|stride| *stride >= 0);
    if sound { tensor.clone() } else { tensor.to_contiguous() }
}

fn tensor<const D: usize>(values: Vec<f32>, dims: [usize; D]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, dims))
}

fn numbers(tensor: &FlexTensor) -> &[f32] {
    let first = tensor.layout().start_offset();
    &tensor.storage::<f32>()[first..first + tensor.layout().num_elements()]
}

/// Inputs of a pass over chosen columns.
struct Chosen<'a> {
    x: Stack<'a>,
    weight: Stack<'a>,
    /// `[n, n_rows]`.
    index: &'a [f32],
    n_rows: usize,
}

impl Chosen<'_> {
    /// Calls `each` with layer, row and column.
    #[inline(always)]
    fn for_each(&self, mut each: impl FnMut(usize, usize, usize)) {
        for (at, index) in self.index.iter().enumerate() {
            let column = *index as usize;
            assert!(*index >= 0.0 && column < self.weight.dims[2], "{index} is not a column of the layer");
            each(at / self.n_rows, at % self.n_rows, column);
        }
    }
}

impl OptionsOps for Flex {
    fn brasa_chosen_output(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        index: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let (x, weight, bias) = (with_rows(&x), weight.to_contiguous(), bias.to_contiguous());
        let index = index.to_contiguous();
        let (n, n_rows) = (index.layout().shape()[0], index.layout().shape()[1]);
        let task = Chosen { x: Stack::of(&x), weight: Stack::of(&weight), index: numbers(&index), n_rows };
        let outputs = task.weight.dims[2];
        let bias = numbers(&bias);
        let bias_stride = if bias.len() == outputs { 0 } else { outputs };
        let mut y = Vec::with_capacity(n * n_rows);
        task.for_each(|layer, row, column| {
            let weights = task.weight.member(layer)[column..].iter().step_by(outputs);
            let products = task.x.row(layer, row).iter().zip(weights).map(|(x, w)| x * w);
            y.push(bias[layer * bias_stride + column] + products.sum::<f32>());
        });
        tensor(y, [n, n_rows])
    }
}

impl ChosenOutputBackward for Flex {
    fn chosen_output_backward(
        [x, weight, index]: [FloatTensor<Self>; 3],
        grad: FloatTensor<Self>,
    ) -> [FloatTensor<Self>; 3] {
        let (x, weight) = (with_rows(&x), weight.to_contiguous());
        let (index, grad) = (index.to_contiguous(), grad.to_contiguous());
        let n_rows = index.layout().shape()[1];
        let task = Chosen { x: Stack::of(&x), weight: Stack::of(&weight), index: numbers(&index), n_rows };
        let ([x_members, _, inputs], [members, _, outputs]) = (task.x.dims, task.weight.dims);
        let grad = numbers(&grad);
        let mut grad_x = vec![0.0f32; x_members * n_rows * inputs];
        let mut grad_weight = vec![0.0f32; members * inputs * outputs];
        let mut grad_bias = vec![0.0f32; members * outputs];
        // The gradient of a shared member is the sum over all.
        let (x_step, step) = (usize::from(x_members > 1), usize::from(members > 1));
        task.for_each(|layer, row, column| {
            let grad = grad[layer * n_rows + row];
            let weights = task.weight.member(layer)[column..].iter().step_by(outputs);
            let to_x = &mut grad_x[(layer * x_step * n_rows + row) * inputs..][..inputs];
            to_x.iter_mut().zip(weights).for_each(|(to, w)| *to += grad * w);
            let to_weight = &mut grad_weight[layer * step * inputs * outputs..][..inputs * outputs];
            let to_weight = to_weight[column..].iter_mut().step_by(outputs);
            to_weight.zip(task.x.row(layer, row)).for_each(|(to, x)| *to += grad * x);
            grad_bias[layer * step * outputs + column] += grad;
        });
        [
            tensor(grad_x, [x_members, n_rows, inputs]),
            tensor(grad_weight, [members, inputs, outputs]),
            tensor(grad_bias, [members, outputs]),
        ]
    }
}

/// Columns that are computed together; they fit in registers.
const BLOCK: usize = 16;

/// The search for the best column of every row.
struct Best<'a> {
    x: Stack<'a>,
    weight: Stack<'a>,
    /// `[members, outputs]`.
    bias: &'a [f32],
    mask: Stack<'a>,
    index: &'a mut Vec<f32>,
    value: &'a mut Vec<f32>,
}

impl WithSimd for Best<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { x, weight, bias, mask, index, value } = self;
        let ([layers, n_rows, flags], outputs) = (mask.dims, weight.dims[2]);
        let span = outputs / flags;
        for layer in 0..layers {
            let weights = weight.member(layer);
            let bias = if weight.dims[0] == 1 { &bias[..outputs] } else { &bias[layer * outputs..][..outputs] };
            for row in 0..n_rows {
                let x = x.row(layer, row);
                let mut best = None;
                for flag in mask.row(layer, row).iter().enumerate().filter(|(_, legal)| **legal != 0.0).map(|(f, _)| f)
                {
                    let end = (flag + 1) * span;
                    let mut at = flag * span;
                    while at + BLOCK <= end {
                        search::<BLOCK>(x, weights, bias, at, &mut best);
                        at += BLOCK;
                    }
                    while at + 4 <= end {
                        search::<4>(x, weights, bias, at, &mut best);
                        at += 4;
                    }
                    while at < end {
                        search::<1>(x, weights, bias, at, &mut best);
                        at += 1;
                    }
                }
                let (column, output) = best.unwrap_or((0, 0.0));
                index.push(column as f32);
                value.push(output);
            }
        }
    }
}

/// Computes `N` columns from `at` on.
#[inline(always)]
fn search<const N: usize>(x: &[f32], weights: &[f32], bias: &[f32], at: usize, best: &mut Option<(usize, f32)>) {
    let mut sums = [0.0f32; N];
    sums.copy_from_slice(&bias[at..at + N]);
    for (x, weights) in x.iter().zip(weights.chunks_exact(bias.len())) {
        let weights = &weights[at..at + N];
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum += x * weight;
        }
    }
    // Few blocks hold a new best one: the largest of each is found without branches. A NaN counts as the largest, and the
    // first one stays: a diverged network must not look as if it had a best action.
    let largest = sums.iter().fold(f32::NEG_INFINITY, |a, b| if *b <= a || a.is_nan() { a } else { *b });
    if best.is_none_or(|(_, best)| largest > best || (largest.is_nan() && !best.is_nan())) {
        let first = sums.iter().position(|sum| *sum == largest || sum.is_nan()).unwrap_or(0);
        *best = Some((at + first, sums[first]));
    }
}

impl BestOutputOps for Flex {
    fn brasa_best_output(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        mask: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (x, weight, bias) = (with_rows(&x), weight.to_contiguous(), bias.to_contiguous());
        let mask = with_rows(&mask);
        let (x, weight, mask) = (Stack::of(&x), Stack::of(&weight), Stack::of(&mask));
        let [layers, n_rows, flags] = mask.dims;
        let bias = numbers(&bias);
        assert!(flags > 0 && weight.dims[2].is_multiple_of(flags), "a flag speaks for as many columns as any other");
        let mut index = Vec::with_capacity(layers * n_rows);
        let mut value = Vec::with_capacity(layers * n_rows);
        let task = Best { x, weight, bias, mask, index: &mut index, value: &mut value };
        // Compiled once per instruction set and selected at run time.
        pulp::Arch::new().dispatch(task);
        (tensor(index, [layers, n_rows]), tensor(value, [layers, n_rows]))
    }
}
