//! Formulas in operations of the backend, for devices without a pass of their own.

use burn::tensor::{Int, Tensor};

use super::{Node, Operation, Part, Program, Rows};

/// The outputs, `[n_rows, width * number of values]` each.
pub(super) fn run(program: &Program, inputs: &[Tensor<2>], numbers: &[f32], shape: [usize; 2]) -> Vec<Tensor<2>> {
    let device = inputs[0].device();
    let mut values: Vec<Tensor<2>> = Vec::with_capacity(program.nodes.len());
    // Whether each column of a part equals each element of a value, `[n_rows, width, columns]`.
    let equal = |part: Part, value: usize, values: &[Tensor<2>]| {
        columns(inputs, part, shape[0]).unsqueeze_dim::<3>(1).equal(values[value].clone().unsqueeze_dim(2))
    };
    for node in &program.nodes {
        let value = match *node {
            Node::Constant(bits) => Tensor::full(shape, f32::from_bits(bits), &device),
            Node::Given(number) => Tensor::full(shape, numbers[number], &device),
            Node::Load(load) => {
                let width = if load.by_column { shape[1] } else { 1 };
                columns(inputs, load.part, shape[0]).slice([0..shape[0], 0..width]).expand(shape)
            }
            Node::Pick { part, index } => {
                let last = (part.end - part.first - 1) as f64;
                columns(inputs, part, shape[0]).gather(1, values[index].clone().clamp(0.0, last).int())
            }
            Node::Sum(part) => columns(inputs, part, shape[0]).sum_dim(1).expand(shape),
            Node::Max(part) => columns(inputs, part, shape[0]).max_dim(1).expand(shape),
            Node::SumBefore(part) => {
                let zero = Tensor::zeros([shape[0], 1], &device);
                let before = columns(inputs, part, shape[0]).slice([0..shape[0], 0..shape[1] - 1]);
                Tensor::cat(vec![zero, before], 1).cumsum(1)
            }
            Node::SumAfter(part) => {
                let zero = Tensor::zeros([shape[0], 1], &device);
                let after = columns(inputs, part, shape[0]).slice([0..shape[0], 1..shape[1]]);
                Tensor::cat(vec![after, zero], 1).flip([1]).cumsum(1).flip([1])
            }
            Node::Rank(part) => {
                let part = columns(inputs, part, shape[0]);
                let (own, other) = (part.clone().unsqueeze_dim::<3>(2), part.unsqueeze_dim::<3>(1));
                let tie = own.clone().equal(other.clone()).float();
                let earlier = Tensor::<2>::ones([shape[1]; 2], &device).tril(-1).unsqueeze_dim::<3>(0);
                (other.greater(own).float() + tie * earlier).sum_dim(2).reshape(shape)
            }
            Node::Find { part, value } => {
                let n = part.end - part.first;
                let numbers = Tensor::<1, Int>::arange(0..n as i64, &device).float().reshape([1, 1, n]);
                let numbers = numbers.expand([shape[0], shape[1], n]);
                numbers.mask_fill(equal(part, value, &values).bool_not(), n as f64).min_dim(2).reshape(shape)
            }
            Node::Count { part, value } => equal(part, value, &values).float().sum_dim(2).reshape(shape),
            Node::SumWhere { part, keys, value } => {
                let numbers = columns(inputs, part, shape[0]).unsqueeze_dim::<3>(1);
                (equal(keys, value, &values).float() * numbers).sum_dim(2).reshape(shape)
            }
            Node::Step(operation, [a, b, c]) => step(operation, &values[a], &values[b], &values[c]),
        };
        values.push(value);
    }
    let output = |places: &Vec<usize>| Tensor::cat(places.iter().map(|i| values[*i].clone()).collect(), 1);
    program.outputs.iter().map(output).collect()
}

/// The columns of a part, for each of `n_rows` rows.
fn columns(inputs: &[Tensor<2>], part: Part, n_rows: usize) -> Tensor<2> {
    let input = &inputs[part.input];
    let [n, _] = input.dims();
    let width = part.end - part.first;
    let columns = input.clone().slice([0..n, part.first..part.end]);
    match part.rows {
        Rows::One => columns.expand([n_rows, width]),
        Rows::Each => columns,
        Rows::Groups(size) => columns.unsqueeze_dim::<3>(1).expand([n, size, width]).reshape([n_rows, width]),
        Rows::Cycle(_) => columns.unsqueeze_dim::<3>(0).expand([n_rows / n, n, width]).reshape([n_rows, width]),
    }
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
        Operation::Equal => x.equal(y).float(),
        Operation::Select => c.clone().mask_where(x.not_equal_elem(0.0), y),
        Operation::Negate => -x,
        Operation::Abs => x.abs(),
        Operation::Sqrt => x.sqrt(),
        Operation::Sin => x.sin(),
        Operation::Cos => x.cos(),
        Operation::Exp => x.exp(),
        Operation::Ln => x.log(),
        Operation::Tanh => x.tanh(),
        Operation::Floor => x.floor(),
    }
}
