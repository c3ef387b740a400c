//! Matrix products on the CPU, into memory that is written once.
//!
//! The backend clears the memory of every result and copies it for alignment before the multiplication: a quarter of
//! all instructions of an update of small networks. Here small products are computed by `tiles`, others by `gemm`.

use std::mem::MaybeUninit;

use burn::backend::flex::FlexTensor;
use burn::tensor::{DType, TensorData};

use crate::parallel::in_parallel;
use crate::tiles::{Strided, fits_tiles, multiply_tiles};

/// Memory layout of a batch of matrices.
struct Matrices<'a> {
    data: &'a [f32],
    /// Members, rows, columns.
    dims: [usize; 3],
    /// Strides of members, rows and columns; the stride of a single member is 0.
    strides: [isize; 3],
}

impl<'a> Matrices<'a> {
    fn of(tensor: &'a FlexTensor) -> Self {
        let layout = tensor.layout();
        let (shape, strides) = (layout.shape().to_vec(), layout.strides());
        let rank = shape.len();
        let members = if rank == 3 { shape[0] } else { 1 };
        let member_stride = if members > 1 { strides[0] } else { 0 };
        Self {
            data: &tensor.storage::<f32>()[layout.start_offset()..],
            dims: [members, shape[rank - 2], shape[rank - 1]],
            strides: [member_stride, strides[rank - 2], strides[rank - 1]],
        }
    }

    fn member(&self, member: usize) -> Strided<'a> {
        let [members, row, column] = self.strides.map(|stride| stride as usize);
        Strided { data: &self.data[member * members..], row, column }
    }

    /// Whether every element is inside `data`; the multiplication does not check this.
    fn fits(&self) -> bool {
        let reach = self.dims.iter().zip(self.strides).map(|(n, stride)| (*n as isize - 1).max(0) * stride);
        self.strides.iter().all(|stride| *stride >= 0) && reach.sum::<isize>() < self.data.len() as isize
    }
}

/// `lhs rhs` for matrices, or for batches of them; either batch may have a single member for all of the other.
///
/// `None` for operands of other shapes or types, which the backend's own product handles.
pub(crate) fn product(lhs: &FlexTensor, rhs: &FlexTensor) -> Option<FlexTensor> {
    affine(lhs, rhs, None).map(|(values, _)| values)
}

/// The same, and whether a bias, `[columns]` per member, was added on the way.
pub(crate) fn affine(lhs: &FlexTensor, rhs: &FlexTensor, bias: Option<&[f32]>) -> Option<(FlexTensor, bool)> {
    let rank = lhs.layout().shape().num_dims();
    let same_rank = rank == rhs.layout().shape().num_dims() && (2..=3).contains(&rank);
    if !same_rank || lhs.dtype() != DType::F32 || rhs.dtype() != DType::F32 {
        return None;
    }
    let (left, right) = (Matrices::of(lhs), Matrices::of(rhs));
    let ([left_members, rows, inner], [right_members, right_inner, columns]) = (left.dims, right.dims);
    let members = left_members.max(right_members);
    let alike = [left_members, right_members].iter().all(|n| *n == members || *n == 1);
    if !alike || inner != right_inner || members * rows * inner * columns == 0 || !left.fits() || !right.fits() {
        return None;
    }
    let dims = [rows, inner, columns];
    let in_tiles = fits_tiles(left.member(0), right.member(0), dims);
    let bias = bias.filter(|bias| in_tiles && bias.len() == members * columns);
    let mut values = Vec::new();
    multiply(&left, &right, bias, members, dims, in_tiles, &mut values);
    let shape = if rank == 3 { vec![members, rows, columns] } else { vec![rows, columns] };
    Some((FlexTensor::from_data(TensorData::new(values, shape)), bias.is_some()))
}

/// A product of contiguous matrices, `members` of them side by side.
#[derive(Clone, Copy)]
pub(crate) struct Dims {
    pub members: usize,
    pub rows: usize,
    pub inputs: usize,
    pub outputs: usize,
}

/// Numbers `[members, rows, columns]`, or `[rows, columns]` for all members.
fn matrices(data: &[f32], members: usize, rows: usize, columns: usize) -> Matrices<'_> {
    let own = if data.len() == rows * columns { 1 } else { members };
    assert_eq!(data.len(), own * rows * columns, "the size of a factor");
    let stride = if own > 1 { rows * columns } else { 0 };
    Matrices { data, dims: [own, rows, columns], strides: [stride, columns, 1].map(|stride| stride as isize) }
}

fn turned(of: Matrices<'_>) -> Matrices<'_> {
    let ([members, rows, columns], [member, row, column]) = (of.dims, of.strides);
    Matrices { data: of.data, dims: [members, columns, rows], strides: [member, column, row] }
}

/// `x W` in place of the numbers in `to`, and whether `bias` was added on the way.
pub(crate) fn affine_into(x: &[f32], weight: &[f32], bias: &[f32], dims: Dims, to: &mut Vec<f32>) -> bool {
    let Dims { members, rows, inputs, outputs } = dims;
    let (left, right) = (matrices(x, members, rows, inputs), matrices(weight, members, inputs, outputs));
    assert_eq!(bias.len(), members * outputs, "the size of the bias");
    let dims = [rows, inputs, outputs];
    let in_tiles = fits_tiles(left.member(0), right.member(0), dims);
    multiply(&left, &right, in_tiles.then_some(bias), members, dims, in_tiles, to);
    in_tiles
}

/// The gradient of the weights, `x^T grad`, for `grad` of `[members, rows, outputs]`.
pub(crate) fn weight_grad_into(x: &[f32], grad: &[f32], dims: Dims, to: &mut [f32]) {
    let Dims { members, rows, inputs, outputs } = dims;
    let (left, right) = (turned(matrices(x, members, rows, inputs)), matrices(grad, members, rows, outputs));
    let dims = [inputs, rows, outputs];
    let in_tiles = fits_tiles(left.member(0), right.member(0), dims);
    #[allow(unsafe_code, reason = "a view of numbers that are only written")]
    // SAFETY: `multiply_to` writes numbers alone.
    let to = unsafe { uninit(to) };
    multiply_to(&left, &right, None, members, dims, in_tiles, to);
}

/// The gradient of the input, `grad W^T`, in place of the numbers in `to`.
pub(crate) fn input_grad_into(grad: &[f32], weight: &[f32], dims: Dims, to: &mut Vec<f32>) {
    let Dims { members, rows, inputs, outputs } = dims;
    let (left, right) = (matrices(grad, members, rows, outputs), turned(matrices(weight, members, inputs, outputs)));
    let dims = [rows, outputs, inputs];
    let in_tiles = fits_tiles(left.member(0), right.member(0), dims);
    multiply(&left, &right, None, members, dims, in_tiles, to);
}

/// Numbers that are only written.
///
/// # Safety
/// Nothing but initialized numbers may be written to the result.
#[allow(unsafe_code, reason = "a view of the same memory")]
unsafe fn uninit(numbers: &mut [f32]) -> &mut [MaybeUninit<f32>] {
    let n = numbers.len();
    // SAFETY: the same memory and lifetime; the caller writes only numbers.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), n) }
}

/// The products of all members, in place of the numbers in `values`.
#[allow(unsafe_code, reason = "the output needs no clearing first")]
fn multiply(
    left: &Matrices<'_>,
    right: &Matrices<'_>,
    bias: Option<&[f32]>,
    members: usize,
    dims: [usize; 3],
    in_tiles: bool,
    values: &mut Vec<f32>,
) {
    let length = members.checked_mul(dims[0]).and_then(|rows| rows.checked_mul(dims[2]));
    let length = length.expect("a product fits into memory");
    values.clear();
    values.reserve_exact(length);
    multiply_to(left, right, bias, members, dims, in_tiles, &mut values.spare_capacity_mut()[..length]);
    // SAFETY: every element of every member was written.
    unsafe { values.set_len(length) };
}

/// The products of all members, to as many numbers, all of which are written.
#[allow(unsafe_code, reason = "the multiplications take pointers")]
fn multiply_to(
    left: &Matrices<'_>,
    right: &Matrices<'_>,
    bias: Option<&[f32]>,
    members: usize,
    dims: [usize; 3],
    in_tiles: bool,
    to: &mut [MaybeUninit<f32>],
) {
    let [rows, inner, columns] = dims;
    assert_eq!(to.len(), members * rows * columns, "the size of a product");
    assert!(left.fits() && right.fits() && inner * to.len() > 0, "the sizes of the factors");
    let step = rows_of_a_part(members, dims);
    let parts = to.chunks_exact_mut(rows * columns).enumerate().flat_map(|(member, to)| {
        let parts = to.chunks_mut(step * columns).enumerate();
        parts.map(move |(i, to)| Part { member, first: i * step, to })
    });
    let multiply = |Part { member, first, to }: Part<'_>| {
        let (left, right) = (left.member(member).skip(first, 0), right.member(member));
        let dims = [to.len() / columns, inner, columns];
        let to = to.as_mut_ptr().cast::<f32>();
        // SAFETY: `fits` and the equality of inner dimensions keep reads inside both slices; writes fill the rows and
        // columns of one member. Nothing is read from the output.
        unsafe {
            if in_tiles {
                let bias = bias.map(|bias| &bias[member * columns..(member + 1) * columns]);
                return multiply_tiles(left, right, bias, to, dims);
            }
            gemm::gemm(
                dims[0],
                columns,
                inner,
                to,
                1,
                columns as isize,
                false,
                left.data.as_ptr(),
                left.column as isize,
                left.row as isize,
                right.data.as_ptr(),
                right.column as isize,
                right.row as isize,
                0.0,
                1.0,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
    };
    in_parallel(members * rows.div_ceil(step), parts, multiply);
}

/// Rows of a product that one thread computes.
struct Part<'a> {
    member: usize,
    first: usize,
    to: &'a mut [MaybeUninit<f32>],
}

/// Rows of a part: it depends on the sizes alone, so that the number of threads does not change results.
fn rows_of_a_part(members: usize, [rows, inner, columns]: [usize; 3]) -> usize {
    /// To pass work to another thread takes as long as 1 MFLOP.
    const FLOP: usize = 16_000_000;
    /// More parts than cores balance their loads, but each reads the right factor again.
    const MOST: usize = 8;
    let parts = (2 * members * rows * inner * columns / FLOP).clamp(1, MOST).div_ceil(members);
    // Whole tiles.
    rows.div_ceil(parts).next_multiple_of(24)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::backend::ops::FloatTensorOps;
    use proptest::prelude::*;

    type Flex = burn::backend::Flex;

    /// Numbers between -1 and 1 without a pattern: products of waves add up where their phases agree, and so do errors of rounding.
    fn tensor(shape: &[usize], seed: u32) -> FlexTensor {
        let mut state = 0x9E37_79B9u32.wrapping_mul(seed + 1);
        let numbers = std::iter::repeat_with(|| {
            // Xorshift (Marsaglia 2003).
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            2.0 * (state as f32 / u32::MAX as f32) - 1.0
        });
        FlexTensor::from_data(TensorData::new(numbers.take(shape.iter().product()).collect(), shape.to_vec()))
    }

    fn values(tensor: FlexTensor) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    proptest! {
        #[test]
        fn it_is_the_product_in_64_bits_but_for_rounding(
            rows in 1usize..70, inner in prop_oneof![1usize..40, 120usize..300], columns in 1usize..90, stacked in 0usize..4, turned in 0usize..4,
        ) {
            // One member, two batches, or either one shared.
            let (left_members, right_members) = [(None, None), (Some(3), Some(3)), (Some(1), Some(3)), (Some(3), Some(1))][stacked];
            let shape = |members: Option<usize>, rows, columns| match members {
                Some(members) => vec![members, rows, columns],
                None => vec![rows, columns],
            };
            let make = |members, rows, columns, turn: bool, seed| {
                let rank = shape(members, rows, columns).len();
                match turn {
                    true => Flex::float_swap_dims(tensor(&shape(members, columns, rows), seed), rank - 2, rank - 1),
                    false => tensor(&shape(members, rows, columns), seed),
                }
            };
            let left = make(left_members, rows, inner, turned & 1 > 0, 0);
            let right = make(right_members, inner, columns, turned & 2 > 0, 1);
            let ours = product(&left, &right).expect("these are f32 matrices");
            let theirs = Flex::float_matmul(left.clone(), right.clone());
            prop_assert_eq!(ours.layout().shape(), theirs.layout().shape());
            let (left, right) = (values(left), values(right));
            for (at, (ours, theirs)) in values(ours).into_iter().zip(values(theirs)).enumerate() {
                prop_assert!((ours - theirs).abs() < 1e-4, "{} instead of {}", ours, theirs);
                let (member, row, column) = (at / (rows * columns), at / columns % rows, at % columns);
                let own = |members: Option<usize>| if members == Some(3) { member } else { 0 };
                let (x, w) = (&left[own(left_members) * rows * inner..], &right[own(right_members) * inner * columns..]);
                let terms = (0..inner).map(|k| f64::from(x[row * inner + k]) * f64::from(w[k * columns + column]));
                let (exact, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
                // Of a sum in 32 bits, in whatever order.
                let bound = (inner + 1) as f64 * f64::from(f32::EPSILON / 2.0) * size;
                prop_assert!((f64::from(ours) - exact).abs() <= bound, "{} instead of {} (bound {})", ours, exact, bound);
            }
        }
    }

    #[test]
    fn parts_of_a_large_product_are_those_of_the_whole_on_any_number_of_threads() {
        let (left, right) = (tensor(&[2, 601, 256], 0), tensor(&[2, 256, 130], 1));
        let on = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("threads");
            pool.install(|| values(product(&left, &right).expect("these are f32 matrices")))
        };
        let ours = on(1);
        assert!(rows_of_a_part(2, [601, 256, 130]) < 601, "it is large");
        assert_eq!(on(3), ours);
        let theirs = values(Flex::float_matmul(left.clone(), right.clone()));
        for (ours, theirs) in ours.iter().zip(theirs) {
            assert!((ours - theirs).abs() < 1e-3, "{ours} instead of {theirs}");
        }
    }

    #[test]
    fn what_is_no_matrix_product_is_left_to_the_backend() {
        let matrix = |shape: &[usize]| tensor(shape, 0);
        assert!(product(&matrix(&[2, 3]), &matrix(&[4, 2])).is_none());
        assert!(product(&matrix(&[2, 3, 4]), &matrix(&[3, 4, 2])).is_none());
        assert!(product(&matrix(&[2, 0]), &matrix(&[0, 2])).is_none());
        assert!(product(&matrix(&[1, 2, 3, 4]), &matrix(&[1, 2, 4, 3])).is_none());
    }
}
