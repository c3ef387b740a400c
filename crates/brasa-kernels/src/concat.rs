//! Matrices beside each other as one matrix, and back.
//!
//! Optimizers work on one vector of all parameters. In plain operations every parameter is a launch in each direction, which for a small
//! network is more than everything that the optimizer does.

use burn::tensor::Tensor;

/// Matrices `[n_rows, width]`, each with its own width, beside each other.
///
/// Gradients pass through, in plain operations.
///
/// # Shapes
/// - output: `[n_rows, all widths together]`
///
/// # Panics
/// If there is no matrix, or their rows differ.
///
/// ```
/// use brasa_kernels::concat;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// let device = brasa_device::open_named("cpu")?;
/// let wide = Tensor::<2>::from_floats([[1.0, 2.0], [4.0, 5.0]], &device);
/// let narrow = Tensor::<2>::from_floats([[3.0], [6.0]], &device);
/// assert_eq!(numbers(concat(vec![wide, narrow])), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn concat(mut parts: Vec<Tensor<2>>) -> Tensor<2> {
    assert!(!parts.is_empty(), "at least one matrix");
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let n_rows = parts[0].dims()[0];
    assert!(parts.iter().all(|part| part.dims()[0] == n_rows), "the same number of rows");
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if !parts.iter().any(|part| part.is_autodiff() || part.dims().contains(&0))
        && let Some(parts) = parts.iter().map(crate::cube::on_device).collect()
    {
        return crate::cube::from_device(crate::cube::concat::launch_concat(parts));
    }
    Tensor::cat(parts, 1)
}

/// The rows of all parts one after the other. Gradients pass through.
///
/// Burn launches a copy for every part on a GPU. Here, a launch has many parts.
///
/// # Panics
/// If there is no part, or their shapes differ in more than the number of rows.
///
/// ```
/// use brasa_kernels::concat_rows;
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let steps = vec![Tensor::<1>::from_floats([1.0, 2.0], &device), Tensor::from_floats([3.0, 4.0], &device)];
/// assert_eq!(concat_rows(steps).into_data().iter::<f32>().collect::<Vec<_>>(), [1.0, 2.0, 3.0, 4.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn concat_rows<const D: usize>(mut parts: Vec<Tensor<D>>) -> Tensor<D> {
    assert!(!parts.is_empty(), "at least one part");
    if parts.len() == 1 {
        return parts.remove(0);
    }
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if parts.iter().all(|part| !part.is_autodiff() && crate::cube::runs_on(part)) {
        let mut shape = parts[0].dims();
        assert!(parts.iter().all(|part| part.dims()[1..] == shape[1..]), "rows of one shape");
        shape[0] = parts.iter().map(|part| part.dims()[0]).sum();
        let flat = |part: Tensor<D>| {
            let n = part.dims().iter().product::<usize>();
            part.reshape([1, n])
        };
        return concat(parts.into_iter().map(flat).collect()).reshape(shape);
    }
    Tensor::cat(parts, 0)
}

/// The columns of `whole` as matrices of these widths. Gradients pass through, in plain operations.
///
/// # Shapes
/// - `whole`: `[n_rows, all widths together]`
/// - output: `[n_rows, width]` each
///
/// # Panics
/// If `whole` has another number of columns than all widths together.
///
/// ```
/// use brasa_kernels::split;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// let whole = Tensor::from_floats([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], &brasa_device::open_named("cpu")?);
/// let mut parts = split(whole, &[2, 1]);
/// assert_eq!(numbers(parts.remove(1)), [3.0, 6.0]);
/// assert_eq!(parts[0].dims(), [2, 2]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn split(whole: Tensor<2>, widths: &[usize]) -> Vec<Tensor<2>> {
    let [n_rows, n_columns] = whole.dims();
    assert_eq!(n_columns, widths.iter().sum::<usize>(), "all widths together");
    if widths.len() == 1 {
        return vec![whole];
    }
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if !(whole.is_autodiff() || n_rows == 0 || widths.contains(&0))
        && let Some(whole) = crate::cube::on_device(&whole)
    {
        return crate::cube::concat::launch_split(&whole, widths).into_iter().map(crate::cube::from_device).collect();
    }
    let mut end = 0;
    let mut next = |width: usize| {
        end += width;
        whole.clone().slice([0..n_rows, end - width..end])
    };
    widths.iter().map(|width| next(*width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_from_the_whole() {
        let device = brasa_test::device();
        // More than one launch takes.
        for n_rows in [1, 3] {
            let mut next = 0.0;
            let widths: Vec<usize> = (0..40).map(|i| 1 + (i * 7) % 5).collect();
            let parts: Vec<Tensor<2>> = widths
                .iter()
                .map(|width| {
                    let numbers: Vec<f32> = (0..n_rows * width).map(|i| next + i as f32).collect();
                    next += numbers.len() as f32;
                    Tensor::<1>::from_floats(&numbers[..], &device).reshape([n_rows, *width])
                })
                .collect();
            let whole = concat(parts.clone());
            assert_eq!(whole.dims(), [n_rows, widths.iter().sum()]);
            let mut column = 0;
            for (part, back) in parts.iter().zip(split(whole.clone(), &widths)) {
                let width = part.dims()[1];
                let columns = whole.clone().slice([0..n_rows, column..column + width]);
                assert_eq!(part.to_data(), columns.into_data());
                assert_eq!(part.to_data(), back.into_data());
                column += width;
            }
        }
    }

    #[test]
    fn rows_follow_one_another() {
        let device = brasa_test::device();
        let part = |rows: usize, first: f32| {
            let numbers: Vec<f32> = (0..rows * 6).map(|i| first + i as f32).collect();
            Tensor::<1>::from_floats(&numbers[..], &device).reshape([rows, 2, 3])
        };
        let parts: Vec<Tensor<3>> = (0..20).map(|i| part(1 + i % 3, 100.0 * i as f32)).collect();
        assert_eq!(concat_rows(parts.clone()).into_data(), Tensor::cat(parts, 0).into_data());
    }

    #[test]
    fn columns_of_another_matrix_are_parts_too() {
        let device = brasa_test::device();
        let numbers: Vec<f32> = (0..12).map(|i| i as f32).collect();
        let turned = Tensor::<1>::from_floats(&numbers[..], &device).reshape([4, 3]).transpose();
        let whole = concat(vec![turned.clone().narrow(1, 1, 2), turned]);
        let expected =
            [[3.0, 6.0, 0.0, 3.0, 6.0, 9.0], [4.0, 7.0, 1.0, 4.0, 7.0, 10.0], [5.0, 8.0, 2.0, 5.0, 8.0, 11.0]];
        assert_eq!(whole.into_data(), Tensor::<2>::from_floats(expected, &device).into_data());
    }

    #[test]
    #[should_panic(expected = "the same number of rows")]
    fn rows_must_agree() {
        let device = brasa_test::device();
        concat(vec![Tensor::zeros([1, 2], &device), Tensor::zeros([2, 2], &device)]);
    }

    #[test]
    #[should_panic(expected = "all widths together")]
    fn widths_must_cover_all_columns() {
        split(Tensor::zeros([1, 3], &brasa_test::device()), &[1, 1]);
    }
}
