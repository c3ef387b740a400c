//! Layers one after the other without gradients, without tensors in between.
//!
//! A decision for a few rows takes less time than the bookkeeping of tensors: here it is one pass over two buffers that are kept.

#[cfg(feature = "flex")]
use std::cell::Cell;

use burn::tensor::Tensor;

use crate::{Activation, HostTensor};
#[cfg(feature = "flex")]
use crate::{
    layer::{FORWARD_LAUNCHES, layer_into},
    product::Dims,
    scratch::with_scratch,
};

#[cfg(feature = "flex")]
thread_local! {
    /// The values between two layers, and those behind the second.
    static BETWEEN: Cell<[Vec<f32>; 2]> = const { Cell::new([Vec::new(), Vec::new()]) };
}

/// Rows at a time: what lies between two layers stays in a cache.
#[cfg(feature = "flex")]
const ROWS: usize = 256;

/// Weights `[inputs, outputs]`, bias `[outputs]` and activation of a layer.
///
/// ```
/// use brasa_kernels::{Activation, LayerParts, layer};
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// /// All layers, one after the other.
/// fn forward(x: Tensor<2>, layers: &[LayerParts<'_>]) -> Tensor<2> {
///     layers.iter().fold(x, |x, (weight, bias, activation)| layer(x, (*weight).clone(), (*bias).clone(), *activation))
/// }
///
/// let device = brasa_device::open_named("cpu")?;
/// let (weight, bias) = (Tensor::<2>::from_floats([[-2.0]], &device), Tensor::<1>::zeros([1], &device));
/// let layers = [(&weight, &bias, Some(Activation::Relu)), (&weight, &bias, None)];
/// assert_eq!(numbers(forward(Tensor::from_floats([[1.0], [-3.0]], &device), &layers)), [0.0, -12.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub type LayerParts<'a> = (&'a Tensor<2>, &'a Tensor<1>, Option<Activation>);

/// All layers on `x`, `[n_rows, inputs]`. `None` where a gradient may be asked for, where another device than the CPU computes, and in other
/// formats than 32 bits: there, call [`crate::layer`] for each.
///
/// ```
/// use brasa_kernels::{Activation, infer};
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// let device = brasa_device::open_named("cpu")?;
/// let (weight, bias) = (Tensor::<2>::from_floats([[-2.0]], &device), Tensor::<1>::zeros([1], &device));
/// let layers = || [(&weight, &bias, Some(Activation::Relu)), (&weight, &bias, None)];
/// let x = Tensor::from_floats([[1.0], [-3.0]], &device);
/// assert_eq!(infer(&x, layers()).map(numbers), Some(vec![0.0, -12.0]));
/// // A gradient may be required.
/// assert!(infer(&Tensor::ones([1, 1], &device.clone().autodiff()), layers()).is_none());
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn infer<'a>(x: &Tensor<2>, layers: impl IntoIterator<Item = LayerParts<'a>>) -> Option<Tensor<2>> {
    #[cfg(feature = "flex")]
    {
        if x.is_autodiff() || brasa_device::precision().cast().is_some() {
            return None;
        }
        let ([rows, inputs], numbers) = (x.dims(), HostTensor::of(x)?);
        let mut parts = Vec::new();
        for (weight, bias, activation) in layers {
            if weight.is_autodiff() {
                return None;
            }
            parts.push((HostTensor::of(weight)?, HostTensor::of(bias)?, activation, weight.dims()));
        }
        let outputs = parts.last()?.3[1];
        let is_empty = rows * inputs == 0 || parts.iter().any(|part| part.3[1] == 0);
        if is_empty {
            return None;
        }
        parts.iter().for_each(|(.., [inputs, outputs])| {
            brasa_device::count_product(2 * rows * inputs * outputs, FORWARD_LAUNCHES)
        });
        let mut result = Vec::with_capacity(rows * outputs);
        with_scratch(&BETWEEN, |[from, to]| {
            for x in numbers.chunks(ROWS * inputs) {
                let rows = x.len() / inputs;
                for (i, (weight, bias, activation, [inputs, outputs])) in parts.iter().enumerate() {
                    let x: &[f32] = if i == 0 { x } else { from };
                    let dims = Dims { members: 1, rows, inputs: *inputs, outputs: *outputs };
                    layer_into(x, weight, bias, *activation, dims, to);
                    std::mem::swap(from, to);
                }
                result.extend_from_slice(from);
            }
        });
        Some(HostTensor::tensor(result, [rows, outputs]))
    }
    #[cfg(not(feature = "flex"))]
    {
        let _ = (x, layers.into_iter().next());
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer;
    use burn::tensor::TensorData;

    #[test]
    fn it_is_one_layer_after_the_other() {
        let device = brasa_test::device();
        let tensor = |dims: [usize; 2], seed: f32| {
            let values: Vec<f32> = (0..dims[0] * dims[1]).map(|i| ((i as f32 + seed) * 0.7).sin()).collect();
            Tensor::<2>::from_data(TensorData::new(values, dims), &device)
        };
        for rows in [1, 4, 7, 300] {
            let widths = [3, 17, 64, 2];
            let parts: Vec<_> = widths
                .windows(2)
                .map(|pair| (tensor([pair[0], pair[1]], 0.1), tensor([1, pair[1]], 0.2).squeeze_dim::<1>(0)))
                .collect();
            let activations = [Some(Activation::Tanh), Some(Activation::Relu), None];
            let layers =
                || parts.iter().zip(activations).map(|((weight, bias), activation)| (weight, bias, activation));
            let x = tensor([rows, 3], 0.3);
            let Some(got) = infer(&x, layers()) else {
                return assert!(HostTensor::of(&x).is_none(), "the CPU has this path");
            };
            let expected =
                layers().fold(x, |x, (weight, bias, activation)| layer(x, weight.clone(), bias.clone(), activation));
            assert_eq!(got.into_data(), expected.into_data());
        }
        // With a gradient it is left to the layers.
        let (weight, bias) = (tensor([3, 2], 0.0).autodiff(), Tensor::zeros([2], &device));
        assert!(infer(&tensor([1, 3], 0.0), [(&weight, &bias, None)]).is_none());
        assert!(infer(&tensor([1, 3], 0.0), []).is_none());
    }
}
