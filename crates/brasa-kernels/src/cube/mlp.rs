//! Layers one after the other: the forward pass as one launch, the backward pass as two.
//!
//! A group of threads computes all layers for a block of rows, whose numbers stay in the memory that the group shares.

use burn::backend::TensorMetadata;
use burn::tensor::Shape;
use burn_cubecl::ops::reshape;
use burn_cubecl::tensor::CubeTensor;

use super::activation::{activated, before_activation};
use super::cubecl::{self, prelude::*};
use super::{LANES, empty};
use crate::Activation;

/// Rows that a thread computes together: each weight is read once for all of them.
const TOGETHER: usize = 4;

/// Cells of a gradient that a group computes, and threads that share the rows of each cell.
const CELLS: usize = 32;
const SLICES: usize = LANES / CELLS;

/// Buffers of a launch beside the listed ones: what CubeCL adds for sizes and numbers.
const OTHERS: usize = 2;

/// What the translation of the kernels depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Form {
    /// Inputs, then outputs of every layer.
    pub(crate) widths: Vec<usize>,
    pub(crate) activations: Vec<Option<Activation>>,
    /// Rows of a block, a multiple of [`TOGETHER`].
    pub(crate) block: usize,
    /// Whether all members have the same input.
    pub(crate) shared: bool,
}

impl Form {
    fn n_layers(&self) -> usize {
        self.activations.len()
    }

    /// Numbers of one of the two buffers between layers.
    fn half(&self) -> usize {
        self.block * self.widths.iter().max().expect("there are inputs")
    }
}

/// Several MLPs of one shape side by side.
#[derive(Debug, Clone)]
pub(crate) struct Stack {
    /// `[n, n_rows, inputs]`, or `[1, n_rows, inputs]` for all members.
    pub(crate) x: CubeTensor,
    /// `[n, inputs, outputs]` and `[n, outputs]` of every layer.
    pub(crate) weights: Vec<CubeTensor>,
    pub(crate) biases: Vec<CubeTensor>,
    pub(crate) activations: Vec<Option<Activation>>,
}

/// What a backward pass needs: the networks, and the results `[n, n_rows, outputs]` of every layer.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) stack: Stack,
    pub(crate) results: Vec<CubeTensor>,
}

/// For [`TOGETHER`] rows of `width` cells from `first_cell` on: `start`, and the sum of cells times weights, which are `step` apart.
#[cube]
fn sums_of_rows(
    cells: &Shared<[f32]>,
    first_cell: usize,
    #[comptime] width: usize,
    weight: &OwnedTensor<f32>,
    first_weight: usize,
    step: usize,
    start: f32,
) -> Sequence<RuntimeCell<f32>> {
    let mut sums = Sequence::<RuntimeCell<f32>>::new();
    #[unroll]
    for _ in 0..TOGETHER {
        sums.push(RuntimeCell::<f32>::new(start));
    }
    for k in 0..width {
        let factor = weight[first_weight + k * step];
        #[unroll]
        for j in 0..TOGETHER {
            let sum = sums.index(j);
            sum.store(sum.read() + cells[first_cell + j * width + k] * factor);
        }
    }
    sums
}

#[cube(launch, create_dummy_kernel)]
pub(super) fn mlp_forward(
    x: &Tensor<f32>,
    weights: &Sequence<OwnedTensor<f32>>,
    biases: &Sequence<OwnedTensor<f32>>,
    results: &mut Sequence<OwnedTensor<f32>>,
    n_rows: usize,
    #[comptime] form: Form,
    #[comptime] keeps: bool,
) {
    let lane = UNIT_POS as usize;
    let first = CUBE_POS_X as usize * form.block;
    let member = CUBE_POS_Y as usize;
    let last = comptime!(form.n_layers() - 1);
    let mut cells = Shared::<[f32]>::new_slice(comptime!(2 * form.half()));
    let n_inputs = comptime!(form.widths[0]);
    let from_member = if comptime!(form.shared) { 0usize.runtime() } else { member * x.stride(0) };
    for cell in range_stepped(lane, comptime!(form.block * n_inputs), LANES) {
        let row = first + cell / n_inputs;
        let mut value = 0.0f32;
        if row < n_rows {
            value = x[from_member + row * x.stride(1) + cell % n_inputs * x.stride(2)];
        }
        cells[cell] = value;
    }
    #[unroll]
    for i in 0..comptime!(form.n_layers()) {
        let (inputs, outputs) = comptime!((form.widths[i], form.widths[i + 1]));
        let (from, to) = comptime!((i % 2 * form.half(), (i + 1) % 2 * form.half()));
        let (weight, bias) = (weights.index(i), biases.index(i));
        sync_cube();
        for item in range_stepped(lane, comptime!(form.block / TOGETHER * outputs), LANES) {
            let (column, row) = (item % outputs, item / outputs * TOGETHER);
            let start = bias[member * bias.stride(0) + column * bias.stride(1)];
            let of_column = member * weight.stride(0) + column * weight.stride(2);
            let sums = sums_of_rows(&cells, from + row * inputs, inputs, weight, of_column, weight.stride(1), start);
            #[unroll]
            for j in 0..TOGETHER {
                let value = activated(sums.index(j).read(), comptime!(form.activations[i]));
                if comptime!(i < last) {
                    cells[to + (row + j) * outputs + column] = value;
                }
                if comptime!(keeps || i == last) {
                    let result = results.index_mut(comptime!(if keeps { i } else { 0 }));
                    if first + row + j < n_rows {
                        let place = member * result.stride(0) + (first + row + j) * result.stride(1) + column;
                        result[place] = value;
                    }
                }
            }
        }
    }
}

/// From the gradient of the results: that before the activation of every layer, if the parameters need one, and that of the input, if it
/// does, summed over the members that share it. A group of threads computes `per_group` members.
#[cube(launch, create_dummy_kernel)]
pub(super) fn mlp_deltas(
    grad: &Tensor<f32>,
    results: &Sequence<OwnedTensor<f32>>,
    weights: &Sequence<OwnedTensor<f32>>,
    deltas: &mut Sequence<OwnedTensor<f32>>,
    n_rows: usize,
    per_group: usize,
    #[comptime] form: Form,
    #[comptime] of_params: bool,
    #[comptime] of_x: bool,
) {
    let lane = UNIT_POS as usize;
    let first = CUBE_POS_X as usize * form.block;
    let n_layers = comptime!(form.n_layers());
    let mut cells = Shared::<[f32]>::new_slice(comptime!(2 * form.half()));
    for of_group in 0..per_group {
        let member = CUBE_POS_Y as usize * per_group + of_group;
        // The numbers of the member before have been read then.
        sync_cube();
        let (last, outputs) = comptime!((n_layers - 1, form.widths[n_layers]));
        for cell in range_stepped(lane, comptime!(form.block * outputs), LANES) {
            let (row, column) = (first + cell / outputs, cell % outputs);
            let mut value = 0.0f32;
            if row < n_rows {
                value = grad[member * grad.stride(0) + row * grad.stride(1) + column * grad.stride(2)];
                if comptime!(form.activations[last].is_some()) {
                    let result = results.index(last);
                    let y = result[member * result.stride(0) + row * result.stride(1) + column];
                    value = before_activation(value, y, comptime!(form.activations[last]));
                }
                if of_params {
                    let delta = deltas.index_mut(last);
                    let place = member * delta.stride(0) + row * delta.stride(1) + column;
                    delta[place] = value;
                }
            }
            cells[cell] = value;
        }
        #[unroll]
        for step in 0..n_layers {
            let i = comptime!(n_layers - 1 - step);
            if comptime!(i > 0 || of_x) {
                let (inputs, outputs) = comptime!((form.widths[i], form.widths[i + 1]));
                let (from, to) = comptime!((step % 2 * form.half(), (step + 1) % 2 * form.half()));
                let weight = weights.index(i);
                sync_cube();
                for item in range_stepped(lane, comptime!(form.block / TOGETHER * inputs), LANES) {
                    let (k, row) = (item % inputs, item / inputs * TOGETHER);
                    let of_input = member * weight.stride(0) + k * weight.stride(1);
                    let sums =
                        sums_of_rows(&cells, from + row * outputs, outputs, weight, of_input, weight.stride(2), 0.0);
                    #[unroll]
                    for j in 0..TOGETHER {
                        let mut value = sums.index(j).read();
                        let at = first + row + j;
                        if comptime!(i > 0) {
                            if at < n_rows {
                                let result = results.index(comptime!(i - 1));
                                let y = result[member * result.stride(0) + at * result.stride(1) + k];
                                value = before_activation(value, y, comptime!(form.activations[i - 1]));
                                if of_params {
                                    let delta = deltas.index_mut(comptime!(i - 1));
                                    let place = member * delta.stride(0) + at * delta.stride(1) + k;
                                    delta[place] = value;
                                }
                            }
                            cells[to + (row + j) * inputs + k] = value;
                        } else if at < n_rows {
                            let at_x = comptime!(if of_params { n_layers } else { 0 });
                            let by_x = deltas.index(at_x);
                            let of_member =
                                if comptime!(form.shared) { 0usize.runtime() } else { member * by_x.stride(0) };
                            let place = of_member + at * by_x.stride(1) + k;
                            // The threads of this group alone write here, each always the same numbers.
                            if of_group > 0 {
                                value += by_x[place];
                            }
                            let by_x = deltas.index_mut(at_x);
                            by_x[place] = value;
                        }
                    }
                }
            }
        }
    }
}

/// The gradients of all weights and biases, `grads`, layer by layer: sums over rows in a fixed order.
#[cube(launch, create_dummy_kernel)]
pub(super) fn mlp_gradients(
    x: &Tensor<f32>,
    results: &Sequence<OwnedTensor<f32>>,
    deltas: &Sequence<OwnedTensor<f32>>,
    grads: &mut Sequence<OwnedTensor<f32>>,
    n_rows: usize,
    n_members: usize,
    #[comptime] form: Form,
) {
    let lane = UNIT_POS as usize;
    let (of_group, slice) = (lane % CELLS, lane / CELLS);
    let cell = CUBE_POS_X as usize * CELLS + of_group;
    let mut partial = Shared::<[f32]>::new_slice(LANES);
    let mut sum = 0.0f32;
    let mut start = 0usize.runtime();
    #[unroll]
    for i in 0..comptime!(form.n_layers()) {
        let (inputs, outputs) = comptime!((form.widths[i], form.widths[i + 1]));
        // A bias is the weight of one more input, which is 1.
        let size = comptime!((inputs + 1) * outputs);
        let end = start + n_members * size;
        if cell >= start && cell < end {
            let (member, own) = ((cell - start) / size, (cell - start) % size);
            let (k, column) = (own / outputs, own % outputs);
            let delta = deltas.index(i);
            let of_delta = member * delta.stride(0) + column;
            if k < inputs {
                if comptime!(i == 0) {
                    let of_member = if comptime!(form.shared) { 0usize.runtime() } else { member * x.stride(0) };
                    let of_input = of_member + k * x.stride(2);
                    for row in range_stepped(slice, n_rows, SLICES) {
                        sum += x[of_input + row * x.stride(1)] * delta[of_delta + row * delta.stride(1)];
                    }
                } else {
                    let input = results.index(comptime!(i - 1));
                    let of_input = member * input.stride(0) + k;
                    for row in range_stepped(slice, n_rows, SLICES) {
                        sum += input[of_input + row * input.stride(1)] * delta[of_delta + row * delta.stride(1)];
                    }
                }
            } else {
                for row in range_stepped(slice, n_rows, SLICES) {
                    sum += delta[of_delta + row * delta.stride(1)];
                }
            }
        }
        start = end;
    }
    partial[lane] = sum;
    sync_cube();
    if slice == 0 {
        let mut total = 0.0f32;
        #[unroll]
        for i in 0..SLICES {
            total += partial[i * CELLS + of_group];
        }
        let mut start = 0usize.runtime();
        #[unroll]
        for i in 0..comptime!(form.n_layers()) {
            let (inputs, outputs) = comptime!((form.widths[i], form.widths[i + 1]));
            let size = comptime!((inputs + 1) * outputs);
            let end = start + n_members * size;
            if cell >= start && cell < end {
                let (member, own) = ((cell - start) / size, (cell - start) % size);
                if own < inputs * outputs {
                    let weight = grads.index_mut(comptime!(2 * i));
                    weight[member * inputs * outputs + own] = total;
                } else {
                    let bias = grads.index_mut(comptime!(2 * i + 1));
                    bias[member * outputs + own - inputs * outputs] = total;
                }
            }
            start = end;
        }
    }
}

impl Stack {
    /// See [`as_stack`].
    pub(crate) fn of_rank(mut self, rank: usize) -> Self {
        let stacked = |tensors: Vec<CubeTensor>| tensors.into_iter().map(|tensor| as_stack(tensor, rank)).collect();
        (self.weights, self.biases) = (stacked(self.weights), stacked(self.biases));
        self.x = as_stack(self.x, rank);
        self
    }

    fn n_members(&self) -> usize {
        self.weights[0].shape()[0]
    }

    fn n_rows(&self) -> usize {
        self.x.shape()[1]
    }

    /// The kernel's form; `None` if the device has too little shared memory, or too few places for all buffers.
    pub(crate) fn form(&self) -> Option<Form> {
        /// Groups that keep a device busy.
        const GROUPS: usize = 128;
        let inputs = self.x.shape()[2];
        let widths: Vec<usize> = [inputs].into_iter().chain(self.weights.iter().map(|w| w.shape()[2])).collect();
        let hardware = &self.x.client.properties().hardware;
        let widest = *widths.iter().max().expect("there are inputs");
        let most = hardware.max_shared_memory_size / (2 * size_of::<f32>() * widest);
        let places = 3 * self.weights.len() + 3 + OTHERS;
        if most < TOGETHER
            || (hardware.max_bindings as usize) < places
            || (hardware.max_units_per_cube as usize) < LANES
        {
            return None;
        }
        let rows = self.n_members() * self.n_rows();
        let fits = |block: &usize| *block <= most && rows >= *block * GROUPS;
        let block = [4 * TOGETHER, 2 * TOGETHER].into_iter().find(fits).unwrap_or(TOGETHER);
        let shared = self.x.shape()[0] < self.n_members() || self.n_members() == 1;
        Some(Form { widths, activations: self.activations.clone(), block, shared })
    }

    /// The results, `[n, n_rows, outputs]`, of every layer, or without `keeps` of the last one.
    pub(crate) fn forward(&self, form: &Form, keeps: bool) -> Vec<CubeTensor> {
        let (n_members, n_rows) = (self.n_members(), self.n_rows());
        let outputs = if keeps { &form.widths[1..] } else { &form.widths[form.n_layers()..] };
        let results: Vec<CubeTensor> =
            outputs.iter().map(|width| empty(&self.x, [n_members, n_rows, *width])).collect();
        mlp_forward::launch(
            &self.x.client,
            CubeCount::Static(n_rows.div_ceil(form.block) as u32, n_members as u32, 1),
            CubeDim::new_1d(LANES as u32),
            self.x.clone().into_tensor_arg(),
            arguments(&self.weights),
            arguments(&self.biases),
            arguments(&results),
            n_rows,
            form.clone(),
            keeps,
        );
        results
    }
}

/// Of a network whose matrices have `rank` dimensions: its numbers as a stack, of one member if there are two.
pub(crate) fn as_stack(tensor: CubeTensor, rank: usize) -> CubeTensor {
    let shape = match rank {
        2 => [&[1], &tensor.shape()[..]].concat(),
        _ => return tensor,
    };
    reshape(tensor, Shape::from(shape))
}

/// The opposite.
pub(crate) fn from_stack(tensor: CubeTensor, rank: usize) -> CubeTensor {
    let shape = match rank {
        2 => tensor.shape()[1..].to_vec(),
        _ => return tensor,
    };
    reshape(tensor, Shape::from(shape))
}

fn arguments(tensors: &[CubeTensor]) -> SequenceArg<OwnedTensor<f32>> {
    tensors.iter().map(|tensor| tensor.clone().into_tensor_arg()).collect()
}

impl Kept {
    /// From `grad`, `[n, n_rows, outputs]`: the gradient of the input, and those of weight and bias of every layer.
    pub(crate) fn backward(
        &self,
        grad: CubeTensor,
        of_params: bool,
        of_x: bool,
    ) -> (Option<CubeTensor>, Vec<CubeTensor>) {
        let Self { stack, results } = self;
        let form = stack.form().expect("the forward pass has one");
        let (n_members, n_rows, x) = (stack.n_members(), stack.n_rows(), &stack.x);
        let mut deltas: Vec<CubeTensor> = Vec::new();
        if of_params {
            deltas.extend(results.iter().map(|result| empty(x, result.shape())));
        }
        if of_x {
            deltas.push(empty(x, x.shape()));
        }
        let per_group = if form.shared && of_x { n_members } else { 1 };
        mlp_deltas::launch(
            &x.client,
            CubeCount::Static(n_rows.div_ceil(form.block) as u32, (n_members / per_group) as u32, 1),
            CubeDim::new_1d(LANES as u32),
            grad.into_tensor_arg(),
            arguments(results),
            arguments(&stack.weights),
            arguments(&deltas),
            n_rows,
            per_group,
            form.clone(),
            of_params,
            of_x,
        );
        let by_x = if of_x { deltas.pop() } else { None };
        if !of_params {
            return (by_x, Vec::new());
        }
        let pairs = stack.weights.iter().zip(&stack.biases);
        let grads: Vec<CubeTensor> =
            pairs.flat_map(|(weight, bias)| [weight, bias]).map(|param| empty(x, param.shape())).collect();
        let n_cells: usize = grads.iter().map(|grad| grad.shape().num_elements()).sum();
        mlp_gradients::launch(
            &x.client,
            CubeCount::Static(n_cells.div_ceil(CELLS) as u32, 1, 1),
            CubeDim::new_1d(LANES as u32),
            x.clone().into_tensor_arg(),
            arguments(&results[..results.len() - 1]),
            arguments(&deltas),
            arguments(&grads),
            n_rows,
            n_members,
            form,
        );
        (by_x, grads)
    }
}
