//! Cells of recurrent layers: from one text a loop over memory, a kernel, or operations of the backend.

use std::array::from_fn;

use brasa_number::{CellRule, Dual};
use burn::tensor::Tensor;

use crate::{elementwise, with_jacobian};

/// The numbers of cells, `[n_rows, width]` each, from matrices of this shape, with gradients where one of them has gradients.
///
/// ```
/// use brasa_kernels::cell_rule;
/// use brasa_number::Gru;
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let zeros = || Tensor::<2>::zeros([1, 2], &device);
/// let before = Tensor::from_floats([[1.0, -1.0]], &device);
/// // Gates of 0 are half open: half of what was remembered stays.
/// let [after] = cell_rule(Gru, [zeros(), zeros(), zeros(), zeros(), before]);
/// assert_eq!(after.into_data().iter::<f32>().collect::<Vec<_>>(), [0.5, -0.5]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
///
/// # Panics
/// If the shapes differ.
pub fn cell_rule<const IN: usize, const OUT: usize>(
    rule: impl CellRule<IN, OUT>,
    from: [Tensor<2>; IN],
) -> [Tensor<2>; OUT] {
    let shape = from[0].dims();
    let plain = from.each_ref().map(|x| crate::plain_side(x.clone()));
    let plain = plain.each_ref();
    if from.iter().all(|x| !x.is_autodiff()) {
        return elementwise(shape, |formulas| rule.cell(plain.map(|x| formulas.read(x))).map(|y| vec![y]));
    }
    let [all] = elementwise(shape, |formulas| {
        let cell = rule.cell(Dual::variables(plain.map(|x| formulas.read(x))));
        let slopes = cell.iter().flat_map(|y| (0..IN).map(|i| y.by(i)));
        [cell.iter().map(|y| y.value).chain(slopes).collect()]
    });
    let [n_rows, width] = shape;
    let n = n_rows * width;
    let part = |i: usize| all.clone().slice([0..n_rows, i * width..(i + 1) * width]).reshape([n]);
    from_fn(|o| {
        let tracked = from.iter().enumerate().filter(|(_, x)| x.is_autodiff());
        let cell = tracked
            .fold(part(o), |cell, (i, x)| with_jacobian(cell, x.clone(), part(OUT + o * IN + i).reshape([n, 1])));
        cell.reshape(shape)
    })
}

#[cfg(test)]
mod tests {
    use brasa_number::{Gru, Lstm};
    use burn::tensor::TensorData;
    use burn::tensor::activation::sigmoid;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Values and gradients, against Burn's operations on its tape.
        #[test]
        fn cells_and_their_gradients_are_those_of_operations(rows in 1usize..5, width in 1usize..9, seed in 0.0f32..9.0) {
            let device = brasa_test::device().autodiff();
            let leaf = |i: usize| {
                let values = (0..rows * width).map(|k| 2.0 * ((k * 7 + i) as f32 + seed).sin()).collect::<Vec<_>>();
                Tensor::<2>::from_data(TensorData::new(values, [rows, width]), &device).require_grad()
            };
            let leaves: [Tensor<2>; 5] = from_fn(leaf);
            let probe = |k: f32, y: Tensor<2>| y.clone() * k + y.square();
            let numbers = |loss: Tensor<2>| {
                let grads = loss.clone().sum().backward();
                let gradients = leaves.iter().map(|x| x.grad(&grads).expect("all have effects").into_data());
                let numbers = gradients.chain([loss.inner().into_data()]);
                numbers.flat_map(|data| data.iter::<f32>().collect::<Vec<_>>()).collect::<Vec<_>>()
            };
            let [i, f, g, o, c] = leaves.clone();
            let memory = sigmoid(f) * c + sigmoid(i) * g.tanh();
            let plain = probe(0.5, sigmoid(o) * memory.clone().tanh()) + probe(-1.5, memory);
            let [h, c] = cell_rule(Lstm, leaves.clone());
            let close = |ours: Vec<f32>, theirs: Vec<f32>| {
                ours.iter().zip(&theirs).all(|(a, b)| (a - b).abs() < 2e-5 * (1.0 + b.abs())) && ours.len() == theirs.len()
            };
            prop_assert!(close(numbers(probe(0.5, h) + probe(-1.5, c)), numbers(plain)));
            let [r, z, n_x, n_h, h] = leaves.clone();
            let (candidate, keeps) = ((n_x + sigmoid(r) * n_h).tanh(), sigmoid(z));
            let plain = probe(0.5, (keeps.clone().neg() + 1.0) * candidate + keeps * h);
            let [h] = cell_rule(Gru, leaves.clone());
            prop_assert!(close(numbers(probe(0.5, h)), numbers(plain)));
        }
    }
}
