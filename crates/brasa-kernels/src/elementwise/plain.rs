//! Formulas in operations of the backend, for devices without a pass of their own.

use burn::tensor::Tensor;

use super::{Node, Operation, Program};

/// The outputs, `[n_rows, width * number of values]` each.
pub(super) fn run(program: &Program, inputs: &[Tensor<2>], shape: [usize; 2]) -> Vec<Tensor<2>> {
    let device = inputs[0].device();
    let mut values: Vec<Tensor<2>> = Vec::with_capacity(program.nodes.len());
    for node in &program.nodes {
        let value = match *node {
            Node::Constant(bits) => Tensor::full(shape, f32::from_bits(bits), &device),
            Node::Load(load) => {
                let [n_rows, _] = inputs[load.input].dims();
                let width = if load.by_column { shape[1] } else { 1 };
                let columns = load.first..load.first + width;
                inputs[load.input].clone().slice([0..n_rows, columns]).expand(shape)
            }
            Node::Sum { input, first, end, .. } => {
                let [n_rows, _] = inputs[input].dims();
                inputs[input].clone().slice([0..n_rows, first..end]).sum_dim(1).expand(shape)
            }
            Node::CumulativeSum { input, first, .. } => {
                let [n_rows, _] = inputs[input].dims();
                inputs[input].clone().slice([0..n_rows, first..first + shape[1]]).cumsum(1).expand(shape)
            }
            Node::Step(operation, [a, b, c]) => step(operation, &values[a], &values[b], &values[c]),
        };
        values.push(value);
    }
    let output = |places: &Vec<usize>| Tensor::cat(places.iter().map(|i| values[*i].clone()).collect(), 1);
    program.outputs.iter().map(output).collect()
}

fn step(operation: Operation, a: &Tensor<2>, b: &Tensor<2>, c: &Tensor<2>) -> Tensor<2> {
    let (x, y) = (a.clone(), b.clone());
    match operation {
        Operation::Add => x + y,
        Operation::Subtract => x - y,
        Operation::Multiply => x * y,
        Operation::Divide => x / y,
        Operation::Minimum => x.clone().mask_where(x.greater(y.clone()), y),
        Operation::Maximum => x.clone().mask_where(x.lower(y.clone()), y),
        Operation::Greater => x.greater(y).float(),
        Operation::GreaterEqual => x.greater_equal(y).float(),
        Operation::Select => c.clone().mask_where(x.not_equal_elem(0.0), y),
        Operation::Negate => -x,
        Operation::Abs => x.abs(),
        Operation::Sqrt => x.sqrt(),
        Operation::Sin => x.sin(),
        Operation::Cos => x.cos(),
        Operation::Exp => x.exp(),
        Operation::Ln => x.log(),
        Operation::Floor => x.floor(),
    }
}
