//! Cumulative sums.

use burn::tensor::Tensor;

/// `y[i, j] = sum_(k <= j) x[i, k]`, as `log2(n)` sums of the tensor and a shifted copy (Hillis and Steele 1986).
///
/// Burn's own cumulative sum has a cost of `n^2` per row on GPUs.
///
/// # Shapes
/// - `x`, output: `[n_rows, n]`
///
/// ```
/// use brasa_core::{cumulative_sum, read_back};
/// use burn::tensor::Tensor;
///
/// let x = Tensor::from_floats([[1.0, 2.0, 3.0], [0.5, 0.0, 0.5]], &brasa_device::open_named("cpu")?);
/// assert_eq!(read_back(cumulative_sum(x)), [1.0, 3.0, 6.0, 0.5, 0.5, 1.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn cumulative_sum(x: Tensor<2>) -> Tensor<2> {
    let [n_rows, n] = x.dims();
    let mut sums = x;
    let mut shift = 1;
    while shift < n {
        let before = Tensor::zeros([n_rows, shift], &sums.device());
        let shifted = Tensor::cat(vec![before, sums.clone().slice([0..n_rows, 0..n - shift])], 1);
        sums = sums + shifted;
        shift *= 2;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::TensorData;

    #[test]
    fn every_length_is_summed() {
        for n in [1, 2, 3, 7, 8, 26, 128] {
            let values: Vec<f32> = (0..3 * n).map(|i| ((i * 5) % 7) as f32).collect();
            let x = Tensor::<2>::from_data(TensorData::new(values.clone(), [3, n]), &brasa_test::device());
            let got: Vec<f32> = cumulative_sum(x).into_data().iter().collect();
            let sum = |row: &[f32]| {
                let mut sum = 0.0;
                row.iter()
                    .map(|x| {
                        sum += x;
                        sum
                    })
                    .collect::<Vec<f32>>()
            };
            assert_eq!(got, values.chunks(n).flat_map(sum).collect::<Vec<f32>>(), "{n} numbers");
        }
    }
}
