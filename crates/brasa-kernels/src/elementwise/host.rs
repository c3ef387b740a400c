//! Formulas on the CPU: node by node for a tile of elements, which stays in the cache.

use std::cell::Cell;

use super::{Load, Node, Operation, Part, Program, Rows};
use crate::scratch::with_scratch;

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
#[derive(Default)]
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
    static SCRATCH: Cell<Scratch> = Cell::default();
}

/// What a run computes with; kept between runs.
#[derive(Default)]
struct Scratch {
    /// The tile of each node.
    values: Vec<Tile>,
    places: Places,
}

/// The outputs, row by row. No extent is 0.
pub(super) fn run(program: &Program, inputs: &[&[f32]], numbers: &[f32], [n_rows, width]: [usize; 2]) -> Vec<Vec<f32>> {
    let n = n_rows * width;
    let mut outputs: Vec<Vec<f32>> = program.outputs.iter().map(|values| vec![0.0; n * values.len()]).collect();
    with_scratch(&SCRATCH, |Scratch { values, places }| {
        values.clear();
        values.resize(program.nodes.len(), [0.0; LANES]);
        for (node, tile) in program.nodes.iter().zip(&mut *values) {
            match *node {
                Node::Constant(bits) => tile.fill(f32::from_bits(bits)),
                Node::Given(number) => tile.fill(numbers[number]),
                _ => {}
            }
        }
        for start in (0..n).step_by(LANES) {
            places.set(start, LANES.min(n - start), width);
            for (i, node) in program.nodes.iter().enumerate() {
                let (before, rest) = values.split_at_mut(i);
                compute(node, before, &mut rest[0], inputs, places, [n_rows, width]);
            }
            for (output, values_of) in outputs.iter_mut().zip(&program.outputs) {
                store(output, values_of, values, places, width);
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
    let stride_of = |part: Part| inputs[part.input].len() / part.rows.count(n_rows);
    // The columns of a part, in the row that belongs to a row of the outputs.
    let row_of = |part: Part| {
        let stride = stride_of(part);
        move |row: usize| &inputs[part.input][part.rows.of(row) * stride + part.first..][..part.end - part.first]
    };
    match *node {
        Node::Constant(_) | Node::Given(_) => {}
        Node::Load(Load { part, by_column }) => {
            let (numbers, stride, row_of) = (inputs[part.input], stride_of(part), row_of(part));
            match part.rows {
                Rows::One if !by_column => to.fill(numbers[part.first]),
                Rows::Each if stride == width && by_column || stride == 1 && width == 1 => {
                    let from = places.start + part.first;
                    to[..places.len].copy_from_slice(&numbers[from..from + places.len]);
                }
                Rows::Each if width == 1 => {
                    let from = numbers[places.start * stride + part.first..].iter().step_by(stride);
                    to[..places.len].iter_mut().zip(from).for_each(|(to, number)| *to = *number);
                }
                _ if by_column => {
                    for Run { row, column, begin, end } in &places.runs {
                        to[*begin..*end].copy_from_slice(&row_of(*row)[*column..][..end - begin]);
                    }
                }
                _ => of_rows(to, places, |row| row_of(row)[0]),
            }
        }
        Node::Pick { part, index } => {
            let last = (part.end - part.first - 1) as f32;
            let row_of = row_of(part);
            of_values(to, places, &before[index], row_of, |row, index| row[index.max(0.0).min(last) as u32 as usize]);
        }
        Node::Sum(part) => {
            let row_of = row_of(part);
            of_rows(to, places, |row| sum(row_of(row)));
        }
        Node::Max(part) => {
            let row_of = row_of(part);
            let greater = |a, b| if b > a { b } else { a };
            of_rows(to, places, |row| row_of(row).iter().copied().reduce(greater).expect("there are columns"));
        }
        Node::SumBefore(part) => {
            let row_of = row_of(part);
            for Run { row, column, begin, end } in &places.runs {
                // A tile may begin inside a row.
                let (before, rest) = row_of(*row).split_at(*column);
                let mut sum = before.iter().sum::<f32>();
                for (to, number) in to[*begin..*end].iter_mut().zip(rest) {
                    *to = sum;
                    sum += number;
                }
            }
        }
        Node::SumAfter(part) => {
            let row_of = row_of(part);
            for Run { row, column, begin, end } in &places.runs {
                // A tile may end inside a row.
                let (own, after) = row_of(*row)[*column..].split_at(end - begin);
                let mut sum = after.iter().rev().sum::<f32>();
                for (to, number) in to[*begin..*end].iter_mut().zip(own).rev() {
                    *to = sum;
                    sum += number;
                }
            }
        }
        Node::Rank(part) => {
            let row_of = row_of(part);
            for Run { row, column, begin, end } in &places.runs {
                let row = row_of(*row);
                for (to, own) in to[*begin..*end].iter_mut().zip(*column..) {
                    let (earlier, later) = row.split_at(own);
                    let ahead = earlier.iter().filter(|x| **x >= row[own]).count();
                    *to = (ahead + later.iter().filter(|x| **x > row[own]).count()) as f32;
                }
            }
        }
        Node::Find { part, value } => of_values(to, places, &before[value], row_of(part), |row, value| {
            row.iter().position(|x| *x == value).unwrap_or(row.len()) as f32
        }),
        Node::Count { part, value } => of_values(to, places, &before[value], row_of(part), |row, value| {
            row.iter().map(|x| truth(*x == value)).sum()
        }),
        Node::SumWhere { part, keys, value } => {
            let (row_of, keys_of) = (row_of(part), row_of(keys));
            let both = |row| (row_of(row), keys_of(row));
            of_values(to, places, &before[value], both, |(row, keys), value| sum_where(row, keys, value));
        }
        Node::Step(operation, operands) => {
            let [a, b, c] = operands.map(|operand| &before[operand]);
            step(operation, to, a, b, c);
        }
    }
}

/// The same for all elements of a row.
fn of_rows(to: &mut Tile, places: &Places, of: impl Fn(usize) -> f32) {
    for Run { row, begin, end, .. } in &places.runs {
        to[*begin..*end].fill(of(*row));
    }
}

/// Elements from what `row_of` tells of their row, and from a value of their own.
fn of_values<R: Copy>(
    to: &mut Tile,
    places: &Places,
    values: &Tile,
    row_of: impl Fn(usize) -> R,
    of: impl Fn(R, f32) -> f32,
) {
    for Run { row, begin, end, .. } in &places.runs {
        let row = row_of(*row);
        for (to, value) in to[*begin..*end].iter_mut().zip(&values[*begin..*end]) {
            *to = of(row, *value);
        }
    }
}

fn truth(condition: bool) -> f32 {
    if condition { 1.0 } else { 0.0 }
}

/// The sum in a fixed order, in which eight additions at a time do not wait for each other.
fn sum(numbers: &[f32]) -> f32 {
    let (eights, rest) = numbers.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for eight in eights {
        sums.iter_mut().zip(eight).for_each(|(sum, number)| *sum += number);
    }
    sums.iter().sum::<f32>() + rest.iter().sum::<f32>()
}

/// The sum of the numbers whose keys equal `value`, in the order of [`sum`].
fn sum_where(numbers: &[f32], keys: &[f32], value: f32) -> f32 {
    let ((eights, rest), (key_eights, key_rest)) = (numbers.as_chunks::<8>(), keys.as_chunks::<8>());
    let counted = |number: f32, key: f32| if key == value { number } else { 0.0 };
    let mut sums = [0.0; 8];
    for (eight, keys) in eights.iter().zip(key_eights) {
        for i in 0..8 {
            sums[i] += counted(eight[i], keys[i]);
        }
    }
    sums.iter().sum::<f32>() + rest.iter().zip(key_rest).map(|(number, key)| counted(*number, *key)).sum::<f32>()
}

fn step(operation: Operation, to: &mut Tile, a: &Tile, b: &Tile, c: &Tile) {
    match operation {
        Operation::Add => each(to, |i| a[i] + b[i]),
        Operation::Subtract => each(to, |i| a[i] - b[i]),
        Operation::Multiply => each(to, |i| a[i] * b[i]),
        Operation::Divide => each(to, |i| a[i] / b[i]),
        Operation::Minimum => each(to, |i| if b[i] < a[i] { b[i] } else { a[i] }),
        Operation::Maximum => each(to, |i| if b[i] > a[i] { b[i] } else { a[i] }),
        Operation::Greater => each(to, |i| truth(a[i] > b[i])),
        Operation::GreaterEqual => each(to, |i| truth(a[i] >= b[i])),
        Operation::Equal => each(to, |i| truth(a[i] == b[i])),
        Operation::Select => each(to, |i| if a[i] != 0.0 { b[i] } else { c[i] }),
        Operation::Negate => each(to, |i| -a[i]),
        Operation::Abs => each(to, |i| a[i].abs()),
        Operation::Sqrt => each(to, |i| a[i].sqrt()),
        Operation::Sin => each(to, |i| a[i].sin()),
        Operation::Cos => each(to, |i| a[i].cos()),
        Operation::Exp => each(to, |i| a[i].exp()),
        Operation::Ln => each(to, |i| a[i].ln()),
        Operation::Tanh => each(to, |i| brasa_number::tanh(a[i])),
        Operation::Floor => each(to, |i| a[i].floor()),
    }
}

#[inline(always)]
fn each(to: &mut Tile, value: impl Fn(usize) -> f32) {
    for (i, to) in to.iter_mut().enumerate() {
        *to = value(i);
    }
}
