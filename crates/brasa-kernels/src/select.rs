//! Rows of a tensor by their indices.

use burn::tensor::{Int, Tensor};

use crate::HostTensor;
#[cfg(feature = "flex")]
use crate::host::{HostIndices, Integers};
#[cfg(feature = "flex")]
use crate::parallel::in_parallel;

/// Numbers of a part that one thread copies.
#[cfg(feature = "flex")]
const PART: usize = 1 << 18;

/// The rows at `indices`, `[n]`, in this order; an index may occur more than once.
///
/// # Panics
/// If an index is not below the number of rows. On GPUs, such a row has undefined numbers.
///
/// ```
/// use brasa_kernels::select_rows;
/// use burn::tensor::{Int, Tensor};
///
/// let device = brasa_device::open_named("cpu")?;
/// let rows = Tensor::<2>::from_floats([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], &device);
/// let selected = select_rows(&rows, &Tensor::<1, Int>::from_ints([2, 0, 2], &device));
/// assert_eq!(selected.into_data().iter::<f32>().collect::<Vec<_>>(), [5.0, 6.0, 1.0, 2.0, 5.0, 6.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn select_rows<const D: usize>(rows: &Tensor<D>, indices: &Tensor<1, Int>) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if !rows.is_autodiff()
        && let (Some(numbers), Some(indices)) = (HostTensor::of(rows), HostIndices::of(indices))
    {
        let (mut dims, n) = (rows.dims(), indices.len());
        let width = dims[1..].iter().product::<usize>();
        dims[0] = n;
        let selected = match (indices.integers(), width) {
            (_, 0) => Vec::new(),
            (Integers::Narrow(indices), _) => gathered(&numbers, indices, |i| *i as usize, width),
            (Integers::Wide(indices), _) => gathered(&numbers, indices, |i| *i as usize, width),
        };
        return HostTensor::tensor(selected, dims);
    }
    rows.clone().select(0, indices.clone())
}

/// Rows of `width` numbers.
#[cfg(feature = "flex")]
fn gathered<I: Sync>(rows: &[f32], indices: &[I], of: impl Fn(&I) -> usize + Sync, width: usize) -> Vec<f32> {
    match width {
        1 => narrow::<I, 1>(rows, indices, of),
        2 => narrow::<I, 2>(rows, indices, of),
        3 => narrow::<I, 3>(rows, indices, of),
        4 => narrow::<I, 4>(rows, indices, of),
        _ => {
            let mut selected = vec![0.0; indices.len() * width];
            let per_part = (PART / width).max(1);
            let parts = selected.chunks_mut(per_part * width).zip(indices.chunks(per_part));
            in_parallel(indices.len().div_ceil(per_part), parts, |(to, indices)| {
                for (to, i) in to.chunks_exact_mut(width).zip(indices) {
                    to.copy_from_slice(&rows[of(i) * width..][..width]);
                }
            });
            selected
        }
    }
}

/// Rows that are copied as one value.
#[cfg(feature = "flex")]
fn narrow<I, const W: usize>(rows: &[f32], indices: &[I], of: impl Fn(&I) -> usize) -> Vec<f32> {
    let (rows, _) = rows.as_chunks::<W>();
    indices.iter().map(|i| rows[of(i)]).collect::<Vec<[f32; W]>>().into_flattened()
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::TensorData;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_are_those_of_the_backend(n_rows in 1usize..50, width in 0usize..7, picks in proptest::collection::vec(any::<u16>(), 0..80)) {
            let device = brasa_test::device();
            let numbers: Vec<f32> = (0..n_rows * width).map(|i| i as f32 * 0.5).collect();
            let rows = Tensor::<2>::from_data(TensorData::new(numbers.clone(), [n_rows, width]), &device);
            let picks: Vec<i32> = picks.iter().map(|pick| i32::from(*pick) % n_rows as i32).collect();
            let indices = Tensor::<1, Int>::from_data(TensorData::new(picks.clone(), [picks.len()]), &device);
            let selected = select_rows(&rows, &indices);
            prop_assert_eq!(selected.dims(), [picks.len(), width]);
            let expected: Vec<f32> =
                picks.iter().flat_map(|i| numbers[*i as usize * width..][..width].iter().copied()).collect();
            prop_assert_eq!(selected.into_data().iter::<f32>().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn parts_of_many_rows_are_those_of_all() {
        let device = brasa_test::device();
        let rows = Tensor::<3>::from_data(
            TensorData::new((0..600).map(|i| i as f32).collect::<Vec<_>>(), [50, 3, 4]),
            &device,
        );
        // More numbers than one part has.
        let picks: Vec<i32> = (0..100_000).map(|i| i * 7 % 50).collect();
        let indices = Tensor::<1, Int>::from_data(TensorData::new(picks.clone(), [picks.len()]), &device);
        let selected: Vec<f32> = select_rows(&rows, &indices).into_data().iter().collect();
        for (row, pick) in selected.chunks_exact(12).zip(picks) {
            assert!(row.iter().enumerate().all(|(i, x)| *x == (pick * 12) as f32 + i as f32));
        }
    }
}
