//! Formulas on the CPU: node by node for a tile of elements, which stays in the cache.

use std::cell::RefCell;

use super::{Load, Node, Operation, Program};
use crate::HostTensor;

/// Elements of a tile: enough that choosing an operation costs little beside computing it.
const LANES: usize = 64;

type Tile = [f32; LANES];

/// Elements of a tile: their number, and row and column of each.
struct Places {
    start: usize,
    len: usize,
    rows: [usize; LANES],
    columns: [usize; LANES],
}

impl Places {
    /// The first tile of a matrix of this width.
    fn new(n: usize, width: usize) -> Self {
        // Divisions once; further tiles add.
        let (rows, columns) = (std::array::from_fn(|i| i / width), std::array::from_fn(|i| i % width));
        Self { start: 0, len: n.min(LANES), rows, columns }
    }

    fn advance(&mut self, n: usize, width: usize) {
        self.start += LANES;
        self.len = n.saturating_sub(self.start).min(LANES);
        let (rows, columns) = (LANES / width, LANES % width);
        for (row, column) in self.rows.iter_mut().zip(&mut self.columns) {
            let next = *column + columns;
            let over = usize::from(next >= width);
            (*row, *column) = (*row + rows + over, next - over * width);
        }
    }

    /// Row and column of every element.
    fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        self.rows.iter().copied().zip(self.columns.iter().copied()).take(self.len)
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
        let mut places = Places::new(n, width);
        while places.len > 0 {
            for (i, node) in program.nodes.iter().enumerate() {
                let (before, rest) = values.split_at_mut(i);
                compute(node, before, &mut rest[0], &inputs, &places, n_rows);
            }
            for (output, values_of) in outputs.iter_mut().zip(&program.outputs) {
                store(output, values_of, values, &places, width);
            }
            places.advance(n, width);
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
        for (value, (row, column)) in values[*value].iter().zip(places.iter()) {
            output[row * stride + j * width + column] = *value;
        }
    }
}

fn compute(node: &Node, before: &[Tile], to: &mut Tile, inputs: &[&[f32]], places: &Places, n_rows: usize) {
    let row_len = |numbers: &[f32], by_row: bool| if by_row { numbers.len() / n_rows } else { 0 };
    match *node {
        Node::Constant(_) => {}
        Node::Load(Load { input, first, by_row, by_column }) => {
            let numbers = inputs[input];
            let stride = row_len(numbers, by_row);
            match (by_row, by_column) {
                (false, false) => to.fill(numbers[first]),
                (false, true) => {
                    for (to, (_, column)) in to.iter_mut().zip(places.iter()) {
                        *to = numbers[first + column];
                    }
                }
                (true, false) => {
                    for (to, (row, _)) in to.iter_mut().zip(places.iter()) {
                        *to = numbers[row * stride + first];
                    }
                }
                (true, true) => {
                    for (to, (row, column)) in to.iter_mut().zip(places.iter()) {
                        *to = numbers[row * stride + first + column];
                    }
                }
            }
        }
        Node::Sum { input, first, end, by_row } => {
            let numbers = inputs[input];
            let stride = row_len(numbers, by_row);
            for (to, (row, _)) in to.iter_mut().zip(places.iter()) {
                *to = numbers[row * stride + first..row * stride + end].iter().sum();
            }
        }
        Node::CumulativeSum { input, first, by_row } => {
            let numbers = inputs[input];
            let stride = row_len(numbers, by_row);
            // Elements come row by row, so that each adds to the one before it. A tile may begin inside a row.
            let mut sum = None;
            for (to, (row, column)) in to.iter_mut().zip(places.iter()) {
                let start = row * stride + first;
                sum = match sum {
                    Some(sum) if column > 0 => Some(sum + numbers[start + column]),
                    _ => Some(numbers[start..=start + column].iter().sum::<f32>()),
                };
                *to = sum.unwrap_or_default();
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
