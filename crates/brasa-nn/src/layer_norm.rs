//! Layer normalization.

use brasa_kernels::{Activation, HostMlp, layer_norm};
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use crate::leaf;

/// Layer normalization: `(x - mean) / sqrt(variance + 1e-5)` over the features of one row, then a learned scale and
/// shift (Ba et al. 2016).
///
/// Rows are independent, so padding needs no mask.
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
