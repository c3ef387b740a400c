//! Formulas of the elements of matrices, computed in one pass over memory: one launch on a GPU, whatever their length.
//!
//! A rule of an environment is a dozen formulas of a few numbers per row. In operations of a backend each of them is a launch, which takes
//! longer than what it computes.

#[cfg(feature = "flex")]
mod host;
mod plain;
mod program;
mod value;

pub(crate) use program::{Load, Node, Operation, Part, Program, Rows};
pub use value::{Operand, Value};

use std::cell::RefCell;
use std::ops::Range;

use burn::tensor::Tensor;

use crate::{HostTensor, plain_side, runs_on_host};

/// Where formulas are recorded: see [`elementwise`].
///
/// ```
/// use brasa_kernels::elementwise;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// let device = brasa_device::open_named("cpu")?;
/// let x = Tensor::<2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &device);
/// // A matrix of one row belongs to all rows.
/// let offset = Tensor::<2>::from_floats([[10.0, 20.0]], &device);
/// let [y] = elementwise([2, 2], |formulas| [vec![formulas.read(&x) + formulas.read(&offset)]]);
/// assert_eq!(numbers(y), [11.0, 22.0, 13.0, 24.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug)]
pub struct Formulas {
    shape: [usize; 2],
    inputs: RefCell<Vec<Input>>,
    numbers: RefCell<Vec<f32>>,
    nodes: RefCell<Vec<Node>>,
}

/// A matrix that formulas read, without gradients.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "formulas have few inputs, and a box is one more allocation for each of them"
)]
pub(crate) enum Input {
    /// Its numbers in 32 bits in the memory of the CPU, and its shape.
    Host(HostTensor, [usize; 2]),
    /// On another device, or of another type.
    Other(Tensor<2>),
}

impl Input {
    /// A vector is a column.
    fn of<const D: usize>(matrix: &Tensor<D>) -> Self {
        let dims = match matrix.dims()[..] {
            [n] => [n, 1],
            [n, width] => [n, width],
            ref dims => panic!("a matrix or a vector, got {dims:?}"),
        };
        // On a GPU, a failed conversion would copy a handle and format a message for every matrix.
        let numbers = runs_on_host(&matrix.device()).then(|| HostTensor::of(matrix)).flatten();
        match numbers {
            Some(numbers) => Self::Host(numbers, dims),
            None => Self::Other(plain_side(matrix.clone()).reshape(dims)),
        }
    }

    pub(crate) fn dims(&self) -> [usize; 2] {
        match self {
            Self::Host(_, dims) => *dims,
            Self::Other(matrix) => matrix.dims(),
        }
    }

    pub(crate) fn tensor(&self) -> Tensor<2> {
        match self {
            Self::Host(numbers, dims) => HostTensor::tensor(numbers.to_vec(), *dims),
            Self::Other(matrix) => matrix.clone(),
        }
    }

    #[cfg(feature = "flex")]
    fn on_host(&self) -> Option<&[f32]> {
        match self {
            Self::Host(numbers, _) => Some(numbers),
            Self::Other(_) => None,
        }
    }

    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    pub(crate) fn on_device(&self) -> Option<burn_cubecl::tensor::CubeTensor> {
        match self {
            Self::Host(..) => None,
            Self::Other(matrix) => crate::cube::on_device(matrix),
        }
    }
}

/// A matrix that formulas read.
///
/// ```
/// use brasa_kernels::elementwise;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// let x = Tensor::<2>::from_floats([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]], &brasa_device::open_named("cpu")?);
/// // The range of the columns of each row, and the number of the greatest column.
/// let [range, best] = elementwise([2, 1], |formulas| {
///     let x = formulas.matrix(&x);
///     let top = x.max(0..3);
///     [vec![top - x.column(0).min(x.column(1)).min(x.column(2))], vec![x.find(0..3, top)]]
/// });
/// assert_eq!((numbers(range), numbers(best)), (vec![2.0, 2.0], vec![0.0, 1.0]));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    formulas: &'a Formulas,
    index: usize,
    rows: Rows,
    width: usize,
}

impl Formulas {
    /// A matrix for the formulas, or a vector as a column, without gradients. It has a row per row of the outputs, or per group of as many that
    /// follow each other, or one for all of them.
    ///
    /// # Panics
    /// If its number of rows does not divide that of the outputs, or it has more than two dimensions.
    pub fn matrix<const D: usize>(&self, matrix: &Tensor<D>) -> Matrix<'_> {
        self.input(Input::of(matrix), |n| Rows::Groups(self.shape[0] / n))
    }

    /// A matrix, or a vector as a column, whose rows belong to the first rows of the outputs, to the next ones, and so on.
    ///
    /// # Panics
    /// If its number of rows does not divide that of the outputs, or it has more than two dimensions.
    pub fn cycle<const D: usize>(&self, matrix: &Tensor<D>) -> Matrix<'_> {
        self.input(Input::of(matrix), Rows::Cycle)
    }

    fn input(&self, input: Input, several: impl Fn(usize) -> Rows) -> Matrix<'_> {
        let [n_rows, _] = self.shape;
        let [n, width] = input.dims();
        let rows = match n {
            1 => Rows::One,
            _ if n == n_rows => Rows::Each,
            _ if n > 0 && n_rows.is_multiple_of(n) => several(n),
            _ => panic!("{n} rows where there are {n_rows}"),
        };
        let mut inputs = self.inputs.borrow_mut();
        inputs.push(input);
        Matrix { formulas: self, index: inputs.len() - 1, rows, width }
    }

    /// The elements of a matrix as wide as the formulas, or of a column for all of theirs: [`Formulas::matrix`] with [`Matrix::columns`].
    ///
    /// # Panics
    /// If it has another shape.
    pub fn read<const D: usize>(&self, matrix: &Tensor<D>) -> Value<'_> {
        let matrix = self.matrix(matrix);
        matrix.columns(0..matrix.width)
    }

    /// The same number for all elements.
    pub fn constant(&self, value: f64) -> Value<'_> {
        self.push(Node::Constant((value as f32).to_bits()))
    }

    /// The same number for all elements, an argument of each launch on a GPU: another value needs no translation.
    ///
    /// ```
    /// use brasa_kernels::elementwise;
    /// use burn::tensor::Tensor;
    ///
    /// let x = Tensor::<2>::from_floats([[1.0], [2.0]], &brasa_device::open_named("cpu")?);
    /// for learning_rate in [0.5, 0.25] {
    ///     let [y] = elementwise([2, 1], |formulas| [vec![formulas.read(&x) * formulas.number(learning_rate)]]);
    ///     let rate = learning_rate as f32;
    ///     assert_eq!(y.into_data().iter::<f32>().collect::<Vec<_>>(), [rate, 2.0 * rate]);
    /// }
    /// # Ok::<(), brasa_device::DeviceError>(())
    /// ```
    pub fn number(&self, value: f64) -> Value<'_> {
        let mut numbers = self.numbers.borrow_mut();
        numbers.push(value as f32);
        self.push(Node::Given(numbers.len() - 1))
    }

    /// A number that a kernel around the formulas computes.
    #[cfg(feature = "cube")]
    pub(crate) fn given(&self, number: usize) -> Value<'_> {
        self.push(Node::Given(number))
    }

    fn push(&self, node: Node) -> Value<'_> {
        let mut nodes = self.nodes.borrow_mut();
        // Constants and inputs are few, and one computes with them often.
        let known = match node {
            Node::Step(..) => None,
            _ => nodes.iter().position(|other| *other == node),
        };
        let index = known.unwrap_or_else(|| {
            nodes.push(node);
            nodes.len() - 1
        });
        Value::new(self, index)
    }
}

impl<'a> Matrix<'a> {
    /// As many columns as the formulas have, or one for all of theirs.
    ///
    /// # Panics
    /// If the range has another length or is not inside the matrix.
    pub fn columns(self, range: Range<usize>) -> Value<'a> {
        let [_, width] = self.formulas.shape;
        assert!(range.len() == width || range.len() == 1, "{} columns where there are {width}", range.len());
        let by_column = range.len() == width && width > 1;
        self.formulas.push(Node::Load(Load { part: self.part(range), by_column }))
    }

    fn part(self, range: Range<usize>) -> Part {
        assert!(range.end <= self.width, "columns {range:?} of a matrix with {}", self.width);
        Part { input: self.index, rows: self.rows, first: range.start, end: range.end }
    }

    /// A part with as many columns as the formulas.
    fn part_of_width(self, range: Range<usize>) -> Part {
        let [_, width] = self.formulas.shape;
        assert!(range.len() == width, "{} columns where there are {width}", range.len());
        self.part(range)
    }

    /// One column for all columns of the formulas.
    ///
    /// # Panics
    /// If the matrix has no such column.
    pub fn column(self, column: usize) -> Value<'a> {
        self.columns(column..column + 1)
    }

    /// One of these columns: the first one where `index` is 0. It is a whole number; one outside is the nearest inside.
    ///
    /// # Panics
    /// If the range is empty or not inside the matrix.
    pub fn pick(self, range: Range<usize>, index: Value<'a>) -> Value<'a> {
        assert!(!range.is_empty(), "one of the columns {range:?}");
        self.formulas.push(Node::Pick { part: self.part(range), index: index.index() })
    }

    /// The sum of columns of each row, from the first to the last, for all columns of the formulas.
    ///
    /// # Panics
    /// If the range is not inside the matrix.
    pub fn sum(self, range: Range<usize>) -> Value<'a> {
        self.formulas.push(Node::Sum(self.part(range)))
    }

    /// The greatest of the columns of each row, for all columns of the formulas. What is not a number does not count, unless it is the first one.
    ///
    /// # Panics
    /// If the range is empty or not inside the matrix.
    pub fn max(self, range: Range<usize>) -> Value<'a> {
        assert!(!range.is_empty(), "the greatest of the columns {range:?}");
        self.formulas.push(Node::Max(self.part(range)))
    }

    /// The sum of as many columns as the formulas have, from the first of `range` to the one before the place of the element.
    ///
    /// # Panics
    /// If the range has another length or is not inside the matrix.
    pub fn sum_before(self, range: Range<usize>) -> Value<'a> {
        self.formulas.push(Node::SumBefore(self.part_of_width(range)))
    }

    /// The sum of as many columns as the formulas have, from the last of `range` to the one behind the place of the element.
    ///
    /// # Panics
    /// If the range has another length or is not inside the matrix.
    pub fn sum_after(self, range: Range<usize>) -> Value<'a> {
        self.formulas.push(Node::SumAfter(self.part_of_width(range)))
    }

    /// How many of as many columns as the formulas have are greater than the one in the place of the element, or equal and before it: 0 for
    /// the greatest.
    ///
    /// # Panics
    /// If the range has another length or is not inside the matrix.
    pub fn rank(self, range: Range<usize>) -> Value<'a> {
        self.formulas.push(Node::Rank(self.part_of_width(range)))
    }

    /// The number of columns in `range` before the first one that equals `value`; the length of the range if none does.
    ///
    /// # Panics
    /// If the range is not inside the matrix.
    pub fn find(self, range: Range<usize>, value: Value<'a>) -> Value<'a> {
        self.formulas.push(Node::Find { part: self.part(range), value: value.index() })
    }

    /// How many columns in `range` equal `value`.
    ///
    /// # Panics
    /// If the range is not inside the matrix.
    pub fn count(self, range: Range<usize>, value: Value<'a>) -> Value<'a> {
        self.formulas.push(Node::Count { part: self.part(range), value: value.index() })
    }

    /// The sum of the columns in `range` in whose places `keys` equals `value`.
    ///
    /// # Panics
    /// If the range is not inside the matrix, or `keys` has another number of columns.
    pub fn sum_where(self, range: Range<usize>, keys: Matrix<'a>, value: Value<'a>) -> Value<'a> {
        assert!(keys.width == range.len(), "{} keys for {} columns", keys.width, range.len());
        let keys = keys.part(0..keys.width);
        self.formulas.push(Node::SumWhere { part: self.part(range), keys, value: value.index() })
    }
}

/// Matrices whose elements are formulas of elements of other matrices.
///
/// `record` is called once; it reads matrices from [`Formulas`], and returns, for each output, the values that stand beside each other in it.
/// On a GPU a set of formulas is translated once and is one launch. A constant that often changes is better a [`Formulas::number`].
///
/// ```
/// use brasa_kernels::elementwise;
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// // Position and speed of two bodies after 0.1 s.
/// let state = Tensor::<2>::from_floats([[0.0, 1.0], [2.0, -1.0]], &device);
/// let push = Tensor::<2>::from_floats([[0.5], [3.0]], &device);
/// let [next, stopped] = elementwise([2, 1], |formulas| {
///     let state = formulas.matrix(&state);
///     let (position, speed) = (state.column(0), state.column(1));
///     let push = formulas.read(&push).clamp(-1.0, 1.0);
///     let next = speed + push * 0.1;
///     [vec![position + speed * 0.1, next], vec![next.abs().lower(0.9)]]
/// });
/// next.into_data().assert_approx_eq::<f32>(&[[0.1, 1.05], [1.9, -0.9]].into(), Default::default());
/// assert_eq!(stopped.into_data().iter::<f32>().collect::<Vec<_>>(), [0.0, 0.0]);
///
/// // The places of three runners in each of two races.
/// let speeds = Tensor::<2>::from_floats([[3.0, 1.0, 2.0], [5.0, 6.0, 4.0]], &device);
/// let [faster] = elementwise([6, 3], |formulas| {
///     let own = formulas.read(&speeds.clone().reshape([6, 1]));
///     // A row of `speeds` belongs to three rows of the output.
///     [vec![formulas.read(&speeds).greater(own)]]
/// });
/// let [places] = elementwise([6, 1], |formulas| [vec![formulas.matrix(&faster).sum(0..3) + 1.0]]);
/// assert_eq!(places.into_data().iter::<f32>().collect::<Vec<_>>(), [1.0, 3.0, 2.0, 2.0, 1.0, 3.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
///
/// # Shapes
/// - `shape`: `[n_rows, width]` of every value
/// - outputs: `[n_rows, width * number of values]` each
///
/// # Panics
/// If no matrix is read, or an output has no value.
pub fn elementwise<const N: usize>(
    shape: [usize; 2],
    record: impl for<'a> FnOnce(&'a Formulas) -> [Vec<Value<'a>>; N],
) -> [Tensor<2>; N] {
    let results = elementwise_list(shape, |formulas| record(formulas).into());
    results.try_into().unwrap_or_else(|_| unreachable!("an output per list of values"))
}

/// [`elementwise`] with a number of outputs that is not known before. A GPU may have places for about a dozen matrices per launch; with more of
/// them, every operation is a launch.
///
/// # Panics
/// If no matrix is read, or an output has no value.
///
/// ```
/// use brasa_kernels::elementwise_list;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// // The powers of `x` up to a number that is known at run time.
/// let (x, n) = (Tensor::<2>::from_floats([[2.0], [3.0]], &brasa_device::open_named("cpu")?), 3);
/// let powers = elementwise_list([2, 1], |formulas| {
///     let x = formulas.read(&x);
///     std::iter::successors(Some(x), |power| Some(*power * x)).take(n).map(|power| vec![power]).collect()
/// });
/// let powers: Vec<_> = powers.into_iter().map(numbers).collect();
/// assert_eq!(powers, [[2.0, 3.0], [4.0, 9.0], [8.0, 27.0]]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn elementwise_list(
    shape: [usize; 2],
    record: impl for<'a> FnOnce(&'a Formulas) -> Vec<Vec<Value<'a>>>,
) -> Vec<Tensor<2>> {
    let Recorded { program, inputs, numbers } = recorded(shape, record);
    assert!(!inputs.is_empty(), "formulas read at least one matrix");
    if shape.contains(&0) {
        let device = inputs[0].tensor().device();
        let zeros = |values: &Vec<usize>| Tensor::zeros([shape[0], values.len() * shape[1]], &device);
        return program.outputs.iter().map(zeros).collect();
    }
    brasa_device::count_launches(1);
    run(program, &inputs, &numbers, shape)
}

/// Formulas as data, and the matrices and numbers that they read.
pub(crate) struct Recorded {
    pub(crate) program: Program,
    pub(crate) inputs: Vec<Input>,
    numbers: Vec<f32>,
}

/// See [`elementwise_list`].
pub(crate) fn recorded(
    shape: [usize; 2],
    record: impl for<'a> FnOnce(&'a Formulas) -> Vec<Vec<Value<'a>>>,
) -> Recorded {
    let formulas = Formulas {
        shape,
        inputs: RefCell::default(),
        numbers: RefCell::default(),
        // Most sets of formulas have fewer nodes, so that the list does not grow.
        nodes: RefCell::new(Vec::with_capacity(16)),
    };
    let outputs = record(&formulas).into_iter().map(|values| {
        assert!(!values.is_empty(), "a value in every output");
        values.iter().map(|value| value.index()).collect()
    });
    let outputs = outputs.collect();
    Recorded {
        program: Program { nodes: formulas.nodes.into_inner(), outputs },
        inputs: formulas.inputs.into_inner(),
        numbers: formulas.numbers.into_inner(),
    }
}

fn run(program: Program, inputs: &[Input], numbers: &[f32], shape: [usize; 2]) -> Vec<Tensor<2>> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if let Some(inputs) = inputs.iter().map(Input::on_device).collect::<Option<Vec<_>>>()
        && let Some(outputs) = crate::cube::elementwise::launch(&program, inputs, numbers, shape)
    {
        return outputs.into_iter().map(crate::cube::from_device).collect();
    }
    #[cfg(feature = "flex")]
    if let Some(inputs) = inputs.iter().map(Input::on_host).collect::<Option<Vec<_>>>() {
        let outputs = host::run(&program, &inputs, numbers, shape).into_iter();
        return outputs
            .map(|numbers| {
                let width = numbers.len() / shape[0];
                HostTensor::tensor(numbers, [shape[0], width])
            })
            .collect();
    }
    let inputs: Vec<Tensor<2>> = inputs.iter().map(Input::tensor).collect();
    plain::run(&program, &inputs, numbers, shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(n_rows: usize, width: usize, seed: usize) -> Tensor<2> {
        let number = |i: usize| ((i * 37 + seed * 11) % 101) as f32 / 23.0 - 2.0;
        let numbers: Vec<f32> = (0..n_rows * width).map(number).collect();
        Tensor::<1>::from_floats(&numbers[..], &brasa_test::device()).reshape([n_rows, width])
    }

    /// Every operation, on inputs of every kind.
    fn everything<'a>(formulas: &'a Formulas, inputs: [&Tensor<2>; 6], width: usize) -> [Vec<Value<'a>>; 2] {
        let [wide, row, column, large, groups, cycle] = inputs;
        let (large, groups, cycle) = (formulas.matrix(large), formulas.matrix(groups), formulas.cycle(cycle));
        let (a, b, c) = (formulas.read(wide), formulas.read(row), formulas.read(column));
        let (d, e, f) = (large.columns(1..1 + width), large.column(0), large.sum(1..3));
        let first = vec![
            a + b - c * d / (e.abs() + 1.0),
            a.min(b).max(c).clamp(-1.0, d),
            (a * b).sin() + (c - d).cos() - (-f).exp(),
            large.sum_before(1..1 + width) - d,
            groups.sum_after(1..1 + width) + cycle.column(0),
            groups.columns(0..width) * cycle.columns(1..1 + width) + cycle.pick(1..3, b * 2.0) - large.pick(0..3, a),
            a.square().sqrt() + (b.abs() + 0.5).ln() + (a.abs() * 0.3).ln_1p() + (a * 1e-4).ln_1p() + (c * 2.0).tanh(),
        ];
        let second = vec![
            !a.greater(b).and(c.lower(d)).or(e.greater_equal(f)),
            large.column(1).equal(d),
            b.lower_equal(0.0).select(a.floor(), 7.5),
            cycle.rank(1..1 + width) + groups.rank(0..width) * 0.1,
            large.find(0..3, large.column(1)) - cycle.find(0..2, groups.column(0)),
            groups.sum(0..3) + cycle.sum(0..2) + large.max(0..3) - groups.max(1..2),
            groups.count(0..width + 1, groups.column(1)) + large.sum_where(1..3 + width, groups, groups.column(1)),
            (a / 0.0).greater(1.0).select(a / 0.0, c),
            a * formulas.number(1.5) + formulas.number(-0.25),
        ];
        [first, second]
    }

    #[test]
    fn the_passes_equal_operations_of_the_backend() {
        for ([n_rows, width], group) in [
            ([1, 1], 1),
            ([1, 3], 1),
            ([2, 1], 2),
            ([6, 1], 3),
            ([6, 3], 2),
            ([70, 2], 7),
            ([64, 1], 4),
            ([33, 5], 11),
            ([3, 80], 1),
        ] {
            let inputs = [
                matrix(n_rows, width, 1),
                matrix(1, width, 2),
                matrix(n_rows, 1, 3),
                // Rows that do not lie one after the other.
                matrix(width + 4, n_rows, 4).transpose(),
                // A row per group, and as many rows as a group has.
                matrix(n_rows / group, width + 2, 5),
                matrix(group, width + 2, 6),
            ];
            let shape = [n_rows, width];
            let Recorded { program, inputs, numbers } =
                recorded(shape, |formulas| everything(formulas, inputs.each_ref(), width).into());
            let tensors: Vec<Tensor<2>> = inputs.iter().map(Input::tensor).collect();
            let expected = plain::run(&program, &tensors, &numbers, shape);
            for (a, b) in run(program, &inputs, &numbers, shape).into_iter().zip(expected) {
                let [a, b] = [a.into_data(), b.into_data()];
                assert_eq!(a.shape(), b.shape());
                for (i, (a, b)) in a.iter::<f32>().zip(b.iter::<f32>()).enumerate() {
                    let same = (a - b).abs() <= 1e-5 * b.abs().max(1.0) || a == b || (a.is_nan() && b.is_nan());
                    assert!(same, "{a} instead of {b} at {i} of {shape:?}");
                }
            }
        }
    }

    #[test]
    fn small_logarithms_keep_their_digits() {
        let x = [1e-7f32, -1e-6, 3e-4, -0.2, 0.2499, 0.25, 3.0, -0.999];
        let inputs = Tensor::<2>::from_floats([x], &brasa_test::device());
        let [logarithms] = elementwise([1, x.len()], |formulas| [vec![formulas.read(&inputs).ln_1p()]]);
        for (x, logarithm) in x.into_iter().zip(logarithms.into_data().iter::<f32>()) {
            let expected = f64::from(x).ln_1p();
            assert!((f64::from(logarithm) / expected - 1.0).abs() < 1e-6, "{logarithm} instead of {expected}");
        }
    }

    #[test]
    fn what_is_not_a_number_stays_so() {
        let nan = Tensor::<2>::from_floats([[f32::NAN]], &brasa_test::device());
        let [results] = elementwise([1, 1], |formulas| {
            let x = formulas.read(&nan);
            [vec![x.min(1.0), x.max(1.0), x.clamp(0.0, 1.0), x.abs(), x.sqrt(), x.floor(), -x]]
        });
        assert!(results.into_data().iter::<f32>().all(f32::is_nan));
    }

    #[test]
    fn nothing_is_computed_for_no_rows() {
        let device = brasa_test::device();
        let (none, one) = (Tensor::<2>::zeros([0, 2], &device), Tensor::<2>::zeros([1, 2], &device));
        for (rows, input) in [(0, &none), (0, &one)] {
            let [x] = elementwise([rows, 2], |formulas| [vec![formulas.read(input); 3]]);
            assert_eq!(x.dims(), [0, 6]);
        }
    }

    #[test]
    #[should_panic(expected = "3 columns where there are 2")]
    fn columns_must_fit() {
        let input = matrix(1, 3, 0);
        elementwise([1, 2], |formulas| [vec![formulas.read(&input)]]);
    }

    #[test]
    #[should_panic(expected = "2 rows where there are 3")]
    fn rows_must_fit() {
        let input = matrix(2, 1, 0);
        elementwise([3, 1], |formulas| [vec![formulas.read(&input)]]);
    }

    #[test]
    fn a_vector_is_a_column() {
        let device = brasa_test::device();
        let vector = Tensor::<1>::from_floats([1.0, 2.0, 3.0], &device);
        let [sums] = elementwise([3, 2], |formulas| {
            let rows = formulas.matrix(&matrix(3, 2, 0));
            [vec![formulas.read(&vector) + rows.columns(0..2) * 0.0]]
        });
        assert_eq!(sums.into_data().iter::<f32>().collect::<Vec<_>>(), [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
        let [turns] = elementwise([6, 1], |formulas| [vec![formulas.cycle(&vector).column(0)]]);
        assert_eq!(turns.into_data().iter::<f32>().collect::<Vec<_>>(), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    }

    #[test]
    #[should_panic(expected = "a matrix or a vector, got [1, 1, 1]")]
    fn a_cube_is_neither() {
        elementwise([1, 1], |formulas| [vec![formulas.read(&Tensor::<3>::zeros([1; 3], &brasa_test::device()))]]);
    }
}
