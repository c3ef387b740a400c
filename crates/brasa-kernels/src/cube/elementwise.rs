//! Formulas of the elements of matrices as one kernel per set of formulas, with one thread per element.

use burn_cubecl::tensor::CubeTensor;

use super::cubecl::{self, prelude::*};
use super::{empty, threads};
use crate::elementwise::{Load, Node, Operation, Part, Program, Rows};

/// Buffers of a launch beside inputs and outputs: what CubeCL tells of sizes.
pub(super) const OTHERS: usize = 1;

#[cube(launch, create_dummy_kernel)]
pub(super) fn elementwise(
    inputs: &Sequence<OwnedTensor<f32>>,
    outputs: &mut Sequence<OwnedTensor<f32>>,
    given: &Sequence<f32>,
    n_rows: usize,
    width: usize,
    #[comptime] program: Program,
) {
    let (row, column) = (ABSOLUTE_POS / width, ABSOLUTE_POS % width);
    if row < n_rows {
        let mut values = Sequence::<f32>::new();
        #[unroll]
        for i in 0..comptime!(program.nodes.len()) {
            let value = value_of(inputs, given, &values, row, column, comptime!(program.nodes[i]));
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
pub(super) fn value_of(
    inputs: &Sequence<OwnedTensor<f32>>,
    given: &Sequence<f32>,
    values: &Sequence<f32>,
    row: usize,
    column: usize,
    #[comptime] node: Node,
) -> f32 {
    match comptime!(node) {
        Node::Constant(bits) => f32::new(comptime!(f32::from_bits(bits))),
        Node::Load(load) => element(inputs, row, column, load),
        Node::Pick { part, index } => {
            let index = *values.index(index);
            let last = comptime!((part.end - part.first - 1) as f32);
            // What is not a number counts as 0.
            let index = select(index > 0.0, select(index < last, index, last), 0.0);
            let input = inputs.index(comptime!(part.input));
            input[start_of(inputs, row, part) + usize::cast_from(index) * input.stride(1)]
        }
        Node::Sum(part) => sum(inputs, row, 0, comptime!(part.end - part.first).runtime(), part),
        Node::Max(part) => greatest(inputs, row, part),
        Node::SumBefore(part) => sum(inputs, row, 0, column, part),
        Node::SumAfter(part) => sum(inputs, row, column + 1, comptime!(part.end - part.first).runtime(), part),
        Node::Rank(part) => rank(inputs, row, column, part),
        Node::Find { part, value } => find(inputs, row, *values.index(value), part),
        Node::Count { part, value } => count(inputs, row, *values.index(value), part),
        Node::SumWhere { part, keys, value } => sum_where(inputs, row, *values.index(value), part, keys),
        Node::Given(number) => *given.index(number),
        Node::Step(operation, operands) => step(
            *values.index(comptime!(operands[0])),
            *values.index(comptime!(operands[1])),
            *values.index(comptime!(operands[2])),
            operation,
        ),
    }
}

/// The place of the first column of a part.
#[cube]
fn start_of(inputs: &Sequence<OwnedTensor<f32>>, row: usize, #[comptime] part: Part) -> usize {
    let input = inputs.index(comptime!(part.input));
    let start = comptime!(part.first) * input.stride(1);
    match comptime!(part.rows) {
        Rows::One => start,
        Rows::Each => start + row * input.stride(0),
        Rows::Groups(size) => start + row / comptime!(size) * input.stride(0),
        Rows::Cycle(n) => start + row % comptime!(n) * input.stride(0),
    }
}

#[cube]
fn element(inputs: &Sequence<OwnedTensor<f32>>, row: usize, column: usize, #[comptime] load: Load) -> f32 {
    let input = inputs.index(comptime!(load.part.input));
    let mut place = start_of(inputs, row, comptime!(load.part));
    if comptime!(load.by_column) {
        place += column * input.stride(1);
    }
    input[place]
}

/// The sum of the columns of a part from `begin` to before `end`.
#[cube]
fn sum(inputs: &Sequence<OwnedTensor<f32>>, row: usize, begin: usize, end: usize, #[comptime] part: Part) -> f32 {
    let input = inputs.index(comptime!(part.input));
    let start = start_of(inputs, row, part);
    let mut sum = 0.0f32;
    for column in begin..end {
        sum += input[start + column * input.stride(1)];
    }
    sum
}

#[cube]
fn greatest(inputs: &Sequence<OwnedTensor<f32>>, row: usize, #[comptime] part: Part) -> f32 {
    let input = inputs.index(comptime!(part.input));
    let start = start_of(inputs, row, part);
    let mut greatest = input[start];
    for column in 1..comptime!(part.end - part.first) {
        let x = input[start + column * input.stride(1)];
        greatest = select(x > greatest, x, greatest);
    }
    greatest
}

#[cube]
fn rank(inputs: &Sequence<OwnedTensor<f32>>, row: usize, column: usize, #[comptime] part: Part) -> f32 {
    let input = inputs.index(comptime!(part.input));
    let start = start_of(inputs, row, part);
    let own = input[start + column * input.stride(1)];
    let mut rank = 0.0f32;
    for other in 0..comptime!(part.end - part.first) {
        let x = input[start + other * input.stride(1)];
        let ahead = x > own || (x == own && other < column);
        rank += select(ahead, 1.0, 0.0);
    }
    rank
}

#[cube]
fn find(inputs: &Sequence<OwnedTensor<f32>>, row: usize, value: f32, #[comptime] part: Part) -> f32 {
    let input = inputs.index(comptime!(part.input));
    let start = start_of(inputs, row, part);
    let n = comptime!(part.end - part.first);
    let mut place = comptime!(n as f32).runtime();
    for i in 0..n {
        // From the last one, so that the first one remains.
        let column = n - 1 - i;
        place = select(input[start + column * input.stride(1)] == value, f32::cast_from(column), place);
    }
    place
}

#[cube]
fn count(inputs: &Sequence<OwnedTensor<f32>>, row: usize, value: f32, #[comptime] part: Part) -> f32 {
    let input = inputs.index(comptime!(part.input));
    let start = start_of(inputs, row, part);
    let mut count = 0.0f32;
    for column in 0..comptime!(part.end - part.first) {
        count += select(input[start + column * input.stride(1)] == value, 1.0, 0.0);
    }
    count
}

#[cube]
fn sum_where(
    inputs: &Sequence<OwnedTensor<f32>>,
    row: usize,
    value: f32,
    #[comptime] part: Part,
    #[comptime] keys: Part,
) -> f32 {
    let (input, key_input) = (inputs.index(comptime!(part.input)), inputs.index(comptime!(keys.input)));
    let (start, start_of_keys) = (start_of(inputs, row, part), start_of(inputs, row, keys));
    let mut sum = 0.0f32;
    for column in 0..comptime!(part.end - part.first) {
        let counts = key_input[start_of_keys + column * key_input.stride(1)] == value;
        sum += select(counts, input[start + column * input.stride(1)], 0.0);
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
        Operation::Equal => select(a == b, 1.0, 0.0),
        Operation::Select => select(a != 0.0, b, c),
        Operation::Negate => -a,
        Operation::Abs => a.abs(),
        Operation::Sqrt => a.sqrt(),
        Operation::Sin => a.sin(),
        Operation::Cos => a.cos(),
        Operation::Exp => a.exp(),
        Operation::Ln => a.ln(),
        Operation::Tanh => a.tanh(),
        Operation::Floor => a.floor(),
    }
}

/// The outputs of `program`; no extent of `shape` is 0. `None` if the device has too few places for all matrices.
pub(crate) fn launch(
    program: &Program,
    inputs: Vec<CubeTensor>,
    numbers: &[f32],
    shape: [usize; 2],
) -> Option<Vec<CubeTensor>> {
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
        numbers.iter().copied().collect(),
        n_rows,
        width,
        program.clone(),
    );
    Some(outputs)
}
