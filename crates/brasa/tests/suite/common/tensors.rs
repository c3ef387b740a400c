//! Tensors and numbers of two forms of an environment.

use brasa_test::device;
use burn::tensor::{Tensor, TensorData};

/// The numbers of a tensor.
pub fn floats<const D: usize>(tensor: &Tensor<D>) -> Vec<f32> {
    tensor.to_data().iter().collect()
}

/// A tensor with `rows` rows on the device of tests.
pub fn matrix(values: Vec<f32>, rows: usize) -> Tensor<2> {
    let width = values.len() / rows;
    Tensor::from_data(TensorData::new(values, [rows, width]), &device())
}

/// Asserts that numbers agree within 1e-4, relative where they are above 1.
pub fn close(a: &[f32], b: &[f32], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= 1e-4 * b.abs().max(1.0), "{what}, number {i}: {a} instead of {b}");
    }
}
