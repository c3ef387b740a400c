//! Normalization of node features.

use brasa_nn::leaf;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

/// Keeps the derivative of the square root finite; the value of PyTorch and PyTorch Geometric.
const EPSILON: f64 = 1e-5;

/// `scale (x - k mean) / sqrt(mean((x - k mean)^2) + eps) + shift` per feature over the nodes of one graph, with a
/// learned `k` (Cai et al. 2021, equation 5).
///
/// ```
/// use brasa_core::read_back;
/// use brasa_gat::GraphNorm;
/// use burn::tensor::Tensor;
///
/// // Two nodes and a padded node. The mean over the nodes of the graph is 20 and the deviation is 10.
/// let device = brasa_device::open_named("cpu")?;
/// let x = Tensor::from_floats([[[10.0], [30.0], [500.0]]], &device);
/// let mask = Tensor::from_floats([[1.0, 1.0, 0.0]], &device);
/// let y = read_back(GraphNorm::new(1, &device).forward(x, mask));
/// assert!((y[0] + 1.0).abs() < 1e-4 && (y[1] - 1.0).abs() < 1e-4);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Module, Debug)]
pub struct GraphNorm {
    /// `[width]`: what is multiplied with.
    pub scale: Param<Tensor<1>>,
    /// `[width]`: what is added.
    pub shift: Param<Tensor<1>>,
    /// `[width]`: `k`, the fraction of the mean that is subtracted.
    pub mean_scale: Param<Tensor<1>>,
}

impl GraphNorm {
    /// A layer with `k = 1`, scale 1 and shift 0.
    pub fn new(width: usize, device: &Device) -> Self {
        let ones = || leaf(Tensor::ones([width], device));
        Self { scale: ones(), shift: leaf(Tensor::zeros([width], device)), mean_scale: ones() }
    }

    /// Normalization over the nodes of every graph; padded nodes become 0.
    ///
    /// # Shapes
    /// - `x` and output: `[n_rows, n_nodes, width]`
    /// - `node_mask`: `[n_rows, n_nodes]`, 1 for nodes, 0 for padding
    pub fn forward(&self, x: Tensor<3>, node_mask: Tensor<2>) -> Tensor<3> {
        let mask = node_mask.unsqueeze_dim::<3>(2);
        let count = mask.clone().sum_dim(1);
        let mean = (x.clone() * mask.clone()).sum_dim(1) / count.clone();
        let centered = (x - mean * self.mean_scale.val().unsqueeze()) * mask.clone();
        let variance = centered.clone().square().sum_dim(1) / count;
        let normal = centered / (variance + EPSILON).sqrt();
        (normal * self.scale.val().unsqueeze() + self.shift.val().unsqueeze()) * mask
    }
}
