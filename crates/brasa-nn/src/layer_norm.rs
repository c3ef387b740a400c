//! Layer normalization.

use brasa_kernels::{Activation, HostMlp, layer_norm};
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use crate::leaf;

/// Layer normalization: `(x - mean) / sqrt(variance + 1e-5)` over the features of one row, then a learned scale and
/// shift (Ba et al. 2016).
///
/// Rows are independent, so padding needs no mask.
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::{Activation, LayerNorm};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let layer = LayerNorm::new(2, &device);
/// // The mean is 20 and the deviation is 10.
/// let y = read_back(layer.forward(Tensor::<2>::from_floats([[10.0, 30.0]], &device), Some(Activation::Relu)));
/// assert!(y[0] == 0.0 && (y[1] - 1.0).abs() < 1e-5);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Module, Debug)]
pub struct LayerNorm {
    /// `[width]`: what is multiplied with.
    pub scale: Param<Tensor<1>>,
    /// `[width]`: what is added.
    pub shift: Param<Tensor<1>>,
}

impl LayerNorm {
    /// A layer with scale 1 and shift 0.
    pub fn new(width: usize, device: &Device) -> Self {
        Self { scale: leaf(Tensor::ones([width], device)), shift: leaf(Tensor::zeros([width], device)) }
    }

    /// The normalized rows, followed by an optional activation.
    ///
    /// # Shapes
    /// - `x` and output: `[.., width]`
    pub fn forward<const D: usize>(&self, x: Tensor<D>, activation: Option<Activation>) -> Tensor<D> {
        layer_norm(x, self.scale.val(), self.shift.val(), activation)
    }
}

/// Several parallel layer normalizations, each with its own scale and shift.
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::StackedLayerNorm;
/// use burn::tensor::Tensor;
///
/// // Two layers on one row each.
/// let device = brasa_device::open_named("cpu")?;
/// let layers = StackedLayerNorm::new(2, 2, &device);
/// let x = Tensor::from_floats([[[10.0, 30.0]], [[3.0, 1.0]]], &device);
/// let y = read_back(layers.forward(x, None));
/// assert!(y.iter().zip([-1.0, 1.0, 1.0, -1.0]).all(|(got, expected)| (got - expected).abs() < 1e-4));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Module, Debug)]
pub struct StackedLayerNorm {
    scale: Param<Tensor<2>>,
    shift: Param<Tensor<2>>,
}

impl StackedLayerNorm {
    /// `n` layers with scale 1 and shift 0.
    pub fn new(n: usize, width: usize, device: &Device) -> Self {
        Self { scale: leaf(Tensor::ones([n, width], device)), shift: leaf(Tensor::zeros([n, width], device)) }
    }

    /// Normalizes the last layer of `mlp`; `None` where that cannot compute it.
    pub(crate) fn push_to(&self, mlp: &mut HostMlp) -> Option<()> {
        mlp.normalize(&*self.scale, &*self.shift)
    }

    /// Every layer on its part of `x`, followed by an optional activation.
    ///
    /// # Shapes
    /// - `x` and output: `[n, n_rows, width]`
    pub fn forward(&self, x: Tensor<3>, activation: Option<Activation>) -> Tensor<3> {
        let [n, _, _] = x.dims();
        let row = |of: &Param<Tensor<2>>, i: usize| of.val().narrow(0, i, 1).squeeze_dim::<1>(0);
        // The kernel has one scale for all rows.
        let parts =
            (0..n).map(|i| layer_norm(x.clone().narrow(0, i, 1), row(&self.scale, i), row(&self.shift, i), activation));
        Tensor::cat(parts.collect(), 0)
    }
}
