//! Formulas on the CPU: node by node for a tile of elements, which stays in the cache.

use std::cell::RefCell;

use super::{Load, Node, Operation, Program};
use crate::HostTensor;

/// Elements of a tile: enough that choosing an operation costs little beside computing it.
const LANES: usize = 64;

type Tile = [f32; LANES];

/// Elements of a row that stand in a tile.
#[derive(Clone, Copy, Default)]
struct Run {
    row: usize,
    /// The column of the first one.
    column: usize,
    /// Their places in the tile.
    begin: usize,
    end: usize,
}

/// The elements of a tile, row by row.
struct Places {
    /// The number of the first one.
    start: usize,
    len: usize,
    runs: Vec<Run>,
}

impl Places {
    /// `len` elements from number `start` on, of a matrix of this width.
    fn set(&mut self, start: usize, len: usize, width: usize) {
        (self.start, self.len) = (start, len);
        self.runs.clear();
        let (mut row, mut column, mut begin) = (start / width, start % width, 0);
        while begin < len {
            let end = len.min(begin + width - column);
            self.runs.push(Run { row, column, begin, end });
            (row, column, begin) = (row + 1, 0, end);
        }
    }
}

thread_local! {
    /// The values of a tile; kept between runs.
    static VALUES: RefCell<Vec<Tile>> = const { RefCell::new(Vec::new()) };
}

/// The outputs, row by row. No extent is 0.
pub(super) fn run(program: &Program, inputs: &[HostTensor], [n_rows, width]: [usize; 2]) -> Vec<Vec<f32>> {
    let n = n_rows * width;
    let inputs: Vec<&[f32]> = inputs.iter().map(|input| &**input).collect();
    let mut outputs: Vec<Vec<f32>> = program.outputs.iter().map(|values| vec![0.0; n * values.len()]).collect();
    VALUES.with_borrow_mut(|values| {
        values.clear();
        values.resize(program.nodes.len(), [0.0; LANES]);
        for (node, tile) in program.nodes.iter().zip(&mut *values) {
            if let Node::Constant(bits) = node {
                tile.fill(f32::from_bits(*bits));
            }
        }
        let mut places = Places { start: 0, len: 0, runs: Vec::with_capacity(LANES) };
        for start in (0..n).step_by(LANES) {
            places.set(start, LANES.min(n - start), width);
            for (i, node) in program.nodes.iter().enumerate() {
                let (before, rest) = values.split_at_mut(i);
                compute(node, before, &mut rest[0], &inputs, &places, [n_rows, width]);
            }
            for (output, values_of) in outputs.iter_mut().zip(&program.outputs) {
                store(output, values_of, values, &places, width);
            }
        }
    });
    outputs
}

/// Writes the values of an output side by side.
fn store(output: &mut [f32], values_of: &[usize], values: &[Tile], places: &Places, width: usize) {
    if let [only] = values_of {
        let part = places.start..places.start + places.len;
        return output[part].copy_from_slice(&values[*only][..places.len]);
    }
    let stride = width * values_of.len();
    for (j, value) in values_of.iter().enumerate() {
        let value = &values[*value];
        if width == 1 {
            let to = output[places.start * stride + j..].iter_mut().step_by(stride);
            to.zip(&value[..places.len]).for_each(|(to, value)| *to = *value);
            continue;
        }
        for Run { row, column, begin, end } in &places.runs {
            let to = row * stride + j * width + column;
            output[to..to + end - begin].copy_from_slice(&value[*begin..*end]);
        }
    }
}

fn compute(
    node: &Node,
    before: &[Tile],
    to: &mut Tile,
    inputs: &[&[f32]],
    places: &Places,
    [n_rows, width]: [usize; 2],
) {
    let row_len = |numbers: &[f32], by_row: bool| if by_row { numbers.len() / n_rows } else { 0 };
    match *node {
        Node::Constant(_) => {}
        Node::Load(Load { input, first, by_row, by_column }) => {
            let numbers = inputs[input];
            let stride = row_len(numbers, by_row);
            if !by_row && !by_column {
                to.fill(numbers[first]);
            } else if stride == width && by_column || stride == 1 && width == 1 {
                let from = places.start + first;
                to[..places.len].copy_from_slice(&numbers[from..from + places.len]);
            } else if width == 1 {
                let from = numbers[places.start * stride + first..].iter().step_by(stride);
                to[..places.len].iter_mut().zip(from).for_each(|(to, number)| *to = *number);
            } else if by_column {
                for Run { row, column, begin, end } in &places.runs {
                    let from = row * stride + first + column;
                    to[*begin..*end].copy_from_slice(&numbers[from..from + end - begin]);
                }
            } else {
                for Run { row, begin, end, .. } in &places.runs {
                    to[*begin..*end].fill(numbers[row * stride + first]);
                }
            }
        }
        Node::Sum { input, first, end: last, by_row } => {
            let numbers = inputs[input];
            let stride = row_len(numbers, by_row);
            for Run { row, begin, end, .. } in &places.runs {
                to[*begin..*end].fill(numbers[row * stride + first..row * stride + last].iter().sum());
            }
        }
        Node::CumulativeSum { input, first, by_row } => {
            let numbers = inputs[input];
            let stride = row_len(numbers, by_row);
            for Run { row, column, begin, end } in &places.runs {
                // A tile may begin inside a row.
                let start = row * stride + first;
                let mut sum = numbers[start..start + column].iter().sum::<f32>();
                let from = start + column;
                for (to, number) in to[*begin..*end].iter_mut().zip(&numbers[from..]) {
                    sum += number;
                    *to = sum;
                }
            }
        }
        Node::Step(operation, operands) => {
            let [a, b, c] = operands.map(|operand| &before[operand]);
            step(operation, to, a, b, c);
        }
    }
}

fn step(operation: Operation, to: &mut Tile, a: &Tile, b: &Tile, c: &Tile) {
    let truth = |condition: bool| if condition { 1.0 } else { 0.0 };
    match operation {
        Operation::Add => each(to, |i| a[i] + b[i]),
        Operation::Subtract => each(to, |i| a[i] - b[i]),
        Operation::Multiply => each(to, |i| a[i] * b[i]),
        Operation::Divide => each(to, |i| a[i] / b[i]),
        Operation::Minimum => each(to, |i| if b[i] < a[i] { b[i] } else { a[i] }),
        Operation::Maximum => each(to, |i| if b[i] > a[i] { b[i] } else { a[i] }),
        Operation::Greater => each(to, |i| truth(a[i] > b[i])),
        Operation::GreaterEqual => each(to, |i| truth(a[i] >= b[i])),
        Operation::Select => each(to, |i| if a[i] != 0.0 { b[i] } else { c[i] }),
        Operation::Negate => each(to, |i| -a[i]),
        Operation::Abs => each(to, |i| a[i].abs()),
        Operation::Sqrt => each(to, |i| a[i].sqrt()),
        Operation::Sin => each(to, |i| a[i].sin()),
        Operation::Cos => each(to, |i| a[i].cos()),
        Operation::Exp => each(to, |i| a[i].exp()),
        Operation::Ln => each(to, |i| a[i].ln()),
        Operation::Floor => each(to, |i| a[i].floor()),
    }
}

#[inline(always)]
fn each(to: &mut Tile, value: impl Fn(usize) -> f32) {
    for (i, to) in to.iter_mut().enumerate() {
        *to = value(i);
    }
}
