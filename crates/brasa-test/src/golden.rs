//! Golden numbers, recorded from an independent implementation.

use burn::tensor::{Device, Tensor, TensorData};
use serde::Deserialize;

/// One recorded array.
#[derive(Debug, Clone, Deserialize)]
pub struct Weights {
    /// Shape; matrices are `[inputs, outputs]`.
    pub shape: Vec<usize>,
    /// Values, row-major.
    pub values: Vec<f32>,
}

/// `[values]` on `device`.
pub fn vector(values: &[f32], device: &Device) -> Tensor<1> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), device)
}

/// `[n_rows, width]` on `device`; the width follows from the number of values.
pub fn matrix(values: &[f32], n_rows: usize, device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values.to_vec(), [n_rows, values.len() / n_rows]), device)
}

/// Panics unless all differences are at most `tolerance`, relative to the expected value if it is above 1.
pub fn close(what: &str, got: impl IntoIterator<Item = f64>, expected: impl IntoIterator<Item = f64>, tolerance: f64) {
    let (got, expected): (Vec<f64>, Vec<f64>) = (got.into_iter().collect(), expected.into_iter().collect());
    assert_eq!(got.len(), expected.len(), "{what}: number of values");
    for (i, (got, expected)) in got.iter().zip(&expected).enumerate() {
        let allowed = tolerance * expected.abs().max(1.0);
        assert!((got - expected).abs() <= allowed, "{what}[{i}]: {got} instead of {expected}");
    }
}
