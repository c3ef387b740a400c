//! Formulas of the elements of matrices as one kernel per set of formulas, with one thread per element.

use burn_cubecl::tensor::CubeTensor;

use super::cubecl::{self, prelude::*};
use super::{empty, threads};
use crate::elementwise::{Load, Node, Operation, Program};

/// Buffers of a launch beside inputs and outputs: what CubeCL tells of sizes.
const OTHERS: usize = 1;

#[cube(launch, create_dummy_kernel)]
pub(super) fn elementwise(
    inputs: &Sequence<OwnedTensor<f32>>,
    outputs: &mut Sequence<OwnedTensor<f32>>,
    n_rows: usize,
    width: usize,
    #[comptime] program: Program,
) {
    let (row, column) = (ABSOLUTE_POS / width, ABSOLUTE_POS % width);
    if row < n_rows {
        let mut values = Sequence::<f32>::new();
        #[unroll]
        for i in 0..comptime!(program.nodes.len()) {
            let value = value_of(inputs, &values, row, column, comptime!(program.nodes[i]));
            values.push(value);
        }
        #[unroll]
        for i in 0..comptime!(program.outputs.len()) {
            let output = outputs.index_mut(i);
            let start = row * output.stride(0);
            #[unroll]
            for j in 0..comptime!(program.outputs[i].len()) {
                let to = start + (comptime!(j) * width + column) * output.stride(1);
                output[to] = *values.index(comptime!(program.outputs[i][j]));
            }
        }
    }
}

#[cube]
fn value_of(
    inputs: &Sequence<OwnedTensor<f32>>,
    values: &Sequence<f32>,
    row: usize,
    column: usize,
    #[comptime] node: Node,
) -> f32 {
    match comptime!(node) {
        Node::Constant(bits) => f32::new(comptime!(f32::from_bits(bits))),
        Node::Load(load) => element(inputs, row, column, load),
        Node::Sum { input, first, end, by_row } => sum(inputs, row, end, input, first, by_row),
        Node::CumulativeSum { input, first, by_row } => {
            sum(inputs, row, comptime!(first) + column + 1, input, first, by_row)
        }
        Node::Step(operation, operands) => step(
            *values.index(comptime!(operands[0])),
            *values.index(comptime!(operands[1])),
            *values.index(comptime!(operands[2])),
            operation,
        ),
    }
}

#[cube]
fn element(inputs: &Sequence<OwnedTensor<f32>>, row: usize, column: usize, #[comptime] load: Load) -> f32 {
    let input = inputs.index(comptime!(load.input));
    let mut place = comptime!(load.first) * input.stride(1);
    if comptime!(load.by_column) {
        place += column * input.stride(1);
    }
    if comptime!(load.by_row) {
        place += row * input.stride(0);
    }
    input[place]
}

/// The sum of the columns from `first` to before `end`.
#[cube]
fn sum(
    inputs: &Sequence<OwnedTensor<f32>>,
    row: usize,
    end: usize,
    #[comptime] input: usize,
    #[comptime] first: usize,
    #[comptime] by_row: bool,
) -> f32 {
    let input = inputs.index(input);
    let mut start = 0usize.runtime();
    if by_row {
        start += row * input.stride(0);
    }
    let mut sum = 0.0f32;
    for column in first..end {
        sum += input[start + column * input.stride(1)];
    }
    sum
}

#[cube]
fn step(a: f32, b: f32, c: f32, #[comptime] operation: Operation) -> f32 {
    match comptime!(operation) {
        Operation::Add => a + b,
        Operation::Subtract => a - b,
        Operation::Multiply => a * b,
        Operation::Divide => a / b,
        Operation::Minimum => select(b < a, b, a),
        Operation::Maximum => select(b > a, b, a),
        Operation::Greater => select(a > b, 1.0, 0.0),
        Operation::GreaterEqual => select(a >= b, 1.0, 0.0),
        Operation::Select => select(a != 0.0, b, c),
        Operation::Negate => -a,
        Operation::Abs => a.abs(),
        Operation::Sqrt => a.sqrt(),
        Operation::Sin => a.sin(),
        Operation::Cos => a.cos(),
        Operation::Exp => a.exp(),
        Operation::Ln => a.ln(),
        Operation::Floor => a.floor(),
    }
}

/// The outputs of `program`; no extent of `shape` is 0. `None` if the device has too few places for all matrices.
pub(crate) fn launch(program: &Program, inputs: Vec<CubeTensor>, shape: [usize; 2]) -> Option<Vec<CubeTensor>> {
    let [n_rows, width] = shape;
    let like = inputs[0].clone();
    let places = like.client.properties().hardware.max_bindings as usize;
    if inputs.len() + program.outputs.len() + OTHERS > places {
        return None;
    }
    let outputs: Vec<CubeTensor> =
        program.outputs.iter().map(|values| empty(&like, [n_rows, values.len() * width])).collect();
    let (count, dim) = threads(&like, n_rows * width);
    elementwise::launch(
        &like.client,
        count,
        dim,
        inputs.into_iter().map(CubeTensor::into_tensor_arg).collect(),
        outputs.iter().map(|output| output.clone().into_tensor_arg()).collect(),
        n_rows,
        width,
        program.clone(),
    );
    Some(outputs)
}
