//! Rows written into several matrices at once.
//!
//! A step of environments writes a few numbers into every array of a buffer. On a GPU, each of these writes would be a launch.

use burn::tensor::{DType, Tensor};

use crate::HostTensor;

/// Rows that replace rows of a matrix.
///
/// ```
/// use brasa_kernels::{Assignment, assign_rows};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let (mut obs, mut reward) = (Tensor::<2>::zeros([3, 2], &device), Tensor::<2>::zeros([3, 1], &device));
/// assign_rows(vec![
///     Assignment { matrix: &mut obs, first: 2, rows: Tensor::from_floats([[1.0, 2.0]], &device) },
///     Assignment { matrix: &mut reward, first: 1, rows: Tensor::from_floats([[3.0]], &device) },
/// ]);
/// assert_eq!(obs.into_data().iter::<f32>().collect::<Vec<_>>(), [0.0, 0.0, 0.0, 0.0, 1.0, 2.0]);
/// assert_eq!(reward.into_data().iter::<f32>().collect::<Vec<_>>(), [0.0, 3.0, 0.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug)]
pub struct Assignment<'a> {
    /// `[n, width]`.
    pub matrix: &'a mut Tensor<2>,
    /// The first row that is replaced.
    pub first: usize,
    /// `[n_rows, width]`, with `first + n_rows` at most `n`.
    pub rows: Tensor<2>,
}

/// Replaces rows of matrices, in place where there is no other handle to the memory.
///
/// On a GPU, this is one launch for up to eight matrices in 32 bits without another handle.
///
/// # Panics
/// If rows and matrix differ in width, or rows would stand behind the last one of the matrix.
pub fn assign_rows(parts: Vec<Assignment<'_>>) {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    let mut together = Vec::new();
    for Assignment { matrix, first, rows } in parts {
        let ([n, width], [n_rows, own_width]) = (matrix.dims(), rows.dims());
        assert_eq!(own_width, width, "rows as wide as their matrix");
        assert!(first + n_rows <= n, "{n_rows} rows from {first} on, of {n}");
        let is_plain = !(matrix.is_autodiff() || rows.is_autodiff());
        #[cfg(any(feature = "cuda", feature = "wgpu"))]
        if n_rows * width > 0
            && n * width <= u32::MAX as usize
            && is_plain
            && matrix.can_mut()
            && let (Some(matrix), Some(rows)) = (crate::cube::on_device(matrix), crate::cube::on_device(&rows))
        {
            together.push((matrix, first as u32, rows));
            continue;
        }
        if is_plain
            && matrix.dtype() == DType::F32
            && let Some(numbers) = HostTensor::of(&rows)
        {
            // The handle of the rows takes the place of the matrix meanwhile.
            let all = std::mem::replace(matrix, rows);
            let place = first * width..(first + n_rows) * width;
            *matrix = HostTensor::changed(all, |all| all[place].copy_from_slice(&numbers));
            continue;
        }
        matrix.inplace(|matrix| matrix.slice_assign(first..first + n_rows, rows));
    }
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    crate::cube::assign::launch(&together);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_where_they_are_written() {
        let device = brasa_test::device();
        let numbers = |n: usize, first: f32| -> Vec<f32> { (0..n).map(|i| first + i as f32).collect() };
        let matrix = |rows: usize, width: usize, first: f32| {
            Tensor::<1>::from_floats(&numbers(rows * width, first)[..], &device).reshape([rows, width])
        };
        // More than one launch takes, of several widths, with none, one and several rows.
        let mut all: Vec<Tensor<2>> = (0..20).map(|i| matrix(9, 1 + i % 4, 1000.0 * i as f32)).collect();
        let places: Vec<[usize; 2]> = (0..20).map(|i| [i % 5, (i % 3).min(9 - i % 5)]).collect();
        let mut expected: Vec<Vec<f32>> = all.iter().map(|all| all.to_data().iter().collect()).collect();
        for ((expected, [first, n]), i) in expected.iter_mut().zip(&places).zip(0..) {
            let width = 1 + i % 4;
            expected[first * width..][..n * width].copy_from_slice(&numbers(n * width, 0.5 + i as f32));
        }
        let parts = all.iter_mut().zip(&places).zip(0..).map(|((all, [first, n]), i)| {
            let rows = matrix(*n, 1 + i % 4, 0.5 + i as f32);
            Assignment { matrix: all, first: *first, rows }
        });
        assign_rows(parts.collect());
        for (all, expected) in all.iter().zip(expected) {
            assert_eq!(all.to_data().iter::<f32>().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn other_handles_keep_their_numbers() {
        let device = brasa_test::device();
        let mut all = Tensor::<2>::zeros([3, 2], &device);
        let before = all.clone();
        assign_rows(vec![Assignment { matrix: &mut all, first: 1, rows: Tensor::ones([2, 2], &device) }]);
        assert_eq!(before.into_data().iter::<f32>().sum::<f32>(), 0.0);
        assert_eq!(all.into_data().iter::<f32>().collect::<Vec<_>>(), [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn rows_of_a_transposed_matrix_are_written_as_they_read() {
        let device = brasa_test::device();
        let mut all = Tensor::<2>::zeros([3, 2], &device);
        let rows = Tensor::<2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &device).transpose();
        assign_rows(vec![Assignment { matrix: &mut all, first: 1, rows }]);
        assert_eq!(all.into_data().iter::<f32>().collect::<Vec<_>>(), [0.0, 0.0, 1.0, 3.0, 2.0, 4.0]);
    }

    #[test]
    #[should_panic(expected = "2 rows from 2 on, of 3")]
    fn rows_have_a_place() {
        let device = brasa_test::device();
        let rows = Tensor::zeros([2, 2], &device);
        assign_rows(vec![Assignment { matrix: &mut Tensor::zeros([3, 2], &device), first: 2, rows }]);
    }
}
