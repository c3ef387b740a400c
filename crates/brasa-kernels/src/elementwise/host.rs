//! Formulas on the CPU: node by node for a tile of elements, which stays in the cache.

use std::cell::RefCell;

use super::{Load, Node, Operation, Program};
use crate::HostTensor;

/// Elements of a tile: enough that choosing an operation costs little beside computing it.
const LANES: usize = 64;

type Tile = [f32; LANES];

thread_local! {
    /// The values of a tile; kept between runs.
    static VALUES: RefCell<Vec<Tile>> = const { RefCell::new(Vec::new()) };
}

/// The outputs, row by row. No extent is 0.
pub(super) fn run(program: &Program, inputs: &[HostTensor], shape: [usize; 2]) -> Vec<Vec<f32>> {
    let [n_rows, width] = shape;
    let n = n_rows * width;
    let mut outputs: Vec<Vec<f32>> = program.outputs.iter().map(|values| vec![0.0; n * values.len()]).collect();
    VALUES.with_borrow_mut(|values| {
        values.clear();
        values.resize(program.nodes.len(), [0.0; LANES]);
        for (node, tile) in program.nodes.iter().zip(&mut *values) {
            if let Node::Constant(bits) = node {
                tile.fill(f32::from_bits(*bits));
            }
        }
        for start in (0..n).step_by(LANES) {
            let elements = start..n.min(start + LANES);
            for (i, node) in program.nodes.iter().enumerate() {
                let (before, rest) = values.split_at_mut(i);
                compute(node, before, &mut rest[0], inputs, elements.clone(), shape);
            }
            for (output, places) in outputs.iter_mut().zip(&program.outputs) {
                for (j, place) in places.iter().enumerate() {
                    let stride = width * places.len();
                    for (value, element) in values[*place].iter().zip(elements.clone()) {
                        output[element / width * stride + j * width + element % width] = *value;
                    }
                }
            }
        }
    });
    outputs
}

fn compute(
    node: &Node,
    before: &[Tile],
    to: &mut Tile,
    inputs: &[HostTensor],
    elements: std::ops::Range<usize>,
    [n_rows, width]: [usize; 2],
) {
    match *node {
        Node::Constant(_) => {}
        Node::Load(Load { input, first, by_row, by_column }) => {
            let numbers = &*inputs[input];
            let stride = if by_row { numbers.len() / n_rows } else { 0 };
            match (by_row, by_column) {
                (false, false) => to.fill(numbers[first]),
                (true, _) if stride == width => {
                    let part = &numbers[elements];
                    to[..part.len()].copy_from_slice(part);
                }
                _ => {
                    for (to, element) in to.iter_mut().zip(elements) {
                        let column = if by_column { element % width } else { 0 };
                        *to = numbers[element / width * stride + first + column];
                    }
                }
            }
        }
        Node::Sum { input, first, end, by_row } => {
            let numbers = &*inputs[input];
            let stride = if by_row { numbers.len() / n_rows } else { 0 };
            for (to, element) in to.iter_mut().zip(elements) {
                let row = element / width * stride;
                *to = numbers[row + first..row + end].iter().sum();
            }
        }
        Node::Step(operation, places) => {
            let [a, b, c] = places.map(|place| &before[place]);
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
