//! Formulas on the CPU: node by node for a tile of elements, which stays in the cache.

use std::cell::RefCell;

use super::{Load, Node, Operation, Part, Program, Rows};
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
    // The numbers of an input, and the place of a part in the row that belongs to a row of the outputs.
    let numbers_of = |part: Part| {
        let numbers = inputs[part.input];
        let stride = numbers.len() / part.rows.count(n_rows);
        (numbers, stride, move |row: usize| part.rows.of(row) * stride + part.first)
    };
    match *node {
        Node::Constant(_) => {}
        Node::Load(Load { part, by_column }) => {
            let (numbers, stride, start_of) = numbers_of(part);
            match part.rows {
                Rows::One if !by_column => to.fill(numbers[part.first]),
                Rows::Each if stride == width && by_column || stride == 1 && width == 1 => {
                    let from = places.start + part.first;
                    to[..places.len].copy_from_slice(&numbers[from..from + places.len]);
                }
                Rows::Each if width == 1 => {
                    let from = numbers[start_of(places.start)..].iter().step_by(stride);
                    to[..places.len].iter_mut().zip(from).for_each(|(to, number)| *to = *number);
                }
                _ if by_column => {
                    for Run { row, column, begin, end } in &places.runs {
                        let from = start_of(*row) + column;
                        to[*begin..*end].copy_from_slice(&numbers[from..from + end - begin]);
                    }
                }
                _ => {
                    for Run { row, begin, end, .. } in &places.runs {
                        to[*begin..*end].fill(numbers[start_of(*row)]);
                    }
                }
            }
        }
        Node::Pick { part, index } => {
            let (numbers, _, start_of) = numbers_of(part);
            let last = (part.end - part.first - 1) as f32;
            for Run { row, begin, end, .. } in &places.runs {
                let numbers = &numbers[start_of(*row)..];
                for (to, index) in to[*begin..*end].iter_mut().zip(&before[index][*begin..*end]) {
                    *to = numbers[index.max(0.0).min(last) as u32 as usize];
                }
            }
        }
        Node::Sum(part) => {
            let (numbers, _, start_of) = numbers_of(part);
            for Run { row, begin, end, .. } in &places.runs {
                let start = start_of(*row);
                to[*begin..*end].fill(sum(&numbers[start..start + part.end - part.first]));
            }
        }
        Node::Max(part) => {
            let (numbers, _, start_of) = numbers_of(part);
            for Run { row, begin, end, .. } in &places.runs {
                let row = &numbers[start_of(*row)..][..part.end - part.first];
                let greatest = row[1..].iter().fold(row[0], |greatest, x| if *x > greatest { *x } else { greatest });
                to[*begin..*end].fill(greatest);
            }
        }
        Node::SumBefore(part) => {
            let (numbers, _, start_of) = numbers_of(part);
            for Run { row, column, begin, end } in &places.runs {
                // A tile may begin inside a row.
                let start = start_of(*row);
                let mut sum = numbers[start..start + column].iter().sum::<f32>();
                for (to, number) in to[*begin..*end].iter_mut().zip(&numbers[start + column..]) {
                    *to = sum;
                    sum += number;
                }
            }
        }
        Node::SumAfter(part) => {
            let (numbers, _, start_of) = numbers_of(part);
            for Run { row, column, begin, end } in &places.runs {
                // A tile may end inside a row.
                let (start, n) = (start_of(*row), end - begin);
                let row = &numbers[start..start + width];
                let mut sum = row[column + n..].iter().rev().sum::<f32>();
                for (to, number) in to[*begin..*end].iter_mut().zip(&row[*column..column + n]).rev() {
                    *to = sum;
                    sum += number;
                }
            }
        }
        Node::Rank(part) => {
            let (numbers, _, start_of) = numbers_of(part);
            for Run { row, column, begin, end } in &places.runs {
                let start = start_of(*row);
                let row = &numbers[start..start + width];
                for (to, own) in to[*begin..*end].iter_mut().zip(*column..) {
                    let (earlier, later) = row.split_at(own);
                    let ahead = earlier.iter().filter(|x| **x >= row[own]).count();
                    *to = (ahead + later.iter().filter(|x| **x > row[own]).count()) as f32;
                }
            }
        }
        Node::Find { part, value } => {
            let (numbers, _, start_of) = numbers_of(part);
            let n = part.end - part.first;
            for Run { row, begin, end, .. } in &places.runs {
                let row = &numbers[start_of(*row)..][..n];
                for (to, value) in to[*begin..*end].iter_mut().zip(&before[value][*begin..*end]) {
                    *to = row.iter().position(|x| x == value).unwrap_or(n) as f32;
                }
            }
        }
        Node::Count { part, value } => {
            let (numbers, _, start_of) = numbers_of(part);
            let n = part.end - part.first;
            for Run { row, begin, end, .. } in &places.runs {
                let row = &numbers[start_of(*row)..][..n];
                for (to, value) in to[*begin..*end].iter_mut().zip(&before[value][*begin..*end]) {
                    *to = row.iter().map(|x| truth(x == value)).sum();
                }
            }
        }
        Node::SumWhere { part, keys, value } => {
            let ((numbers, _, start_of), (key_numbers, _, start_of_keys)) = (numbers_of(part), numbers_of(keys));
            let n = part.end - part.first;
            for Run { row, begin, end, .. } in &places.runs {
                let (numbers, keys) = (&numbers[start_of(*row)..][..n], &key_numbers[start_of_keys(*row)..][..n]);
                for (to, value) in to[*begin..*end].iter_mut().zip(&before[value][*begin..*end]) {
                    *to = sum_where(numbers, keys, *value);
                }
            }
        }
        Node::Step(operation, operands) => {
            let [a, b, c] = operands.map(|operand| &before[operand]);
            step(operation, to, a, b, c);
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
        Operation::Floor => each(to, |i| a[i].floor()),
    }
}

#[inline(always)]
fn each(to: &mut Tile, value: impl Fn(usize) -> f32) {
    for (i, to) in to.iter_mut().enumerate() {
        *to = value(i);
    }
}
