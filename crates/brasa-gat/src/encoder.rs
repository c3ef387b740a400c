//! A stack of attention layers, and the readout of the last one.

use brasa_kernels::{elu, runs_on_host};
use brasa_nn::{Activation, Init, LayerNorm, affine, leaf};
use burn::module::{Module, Param};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::Rng;

use crate::config::{GraphActorCriticConfig, Norm, Readout};
use crate::{Gat, GatConfig, GatError, GraphBatch, GraphNorm};

/// Subtracted from padded nodes, to exclude them from a maximum.
const FAR: f32 = 1e9;

/// Attention layers with optional residual connection, normalization and activation.
#[derive(Module, Debug)]
pub(crate) struct Encoder {
    pub blocks: Vec<Block>,
}

#[derive(Module, Debug)]
pub(crate) struct Block {
    pub gat: Gat,
    /// `[inputs, width]`: projection of the residual connection, if widths differ.
    pub skip: Option<Param<Tensor<2>>>,
    pub layer_norm: Option<LayerNorm>,
    pub graph_norm: Option<GraphNorm>,
    #[module(skip)]
    pub residual: bool,
    #[module(skip)]
    pub activation: Option<Activation>,
}

impl Encoder {
    /// An encoder on `inputs` features per node and `edge_features` per edge.
    pub fn new(
        config: &GraphActorCriticConfig,
        inputs: usize,
        edge_features: usize,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, GatError> {
        let (mut blocks, mut inputs) = (Vec::with_capacity(config.layers.len()), inputs);
        for (index, layer) in config.layers.iter().enumerate() {
            let mut gat = GatConfig::new(config.version, inputs, layer.outputs, layer.heads);
            gat.concat = layer.concat;
            gat.edge_features = edge_features;
            let width = gat.width();
            let skip = (config.residual && width != inputs).then(|| {
                let values = Init::Glorot.draw(inputs, width, rng).0;
                leaf(Tensor::<2>::from_data(TensorData::new(values, [inputs, width]), device))
            });
            let finished = index + 1 < config.layers.len() || config.finish_last;
            let has = |norm| finished && config.norm == norm;
            blocks.push(Block {
                gat: Gat::new(&gat, device, rng)?,
                skip,
                layer_norm: has(Norm::Layer).then(|| LayerNorm::new(width, device)),
                graph_norm: has(Norm::Graph).then(|| GraphNorm::new(width, device)),
                residual: config.residual,
                activation: finished.then_some(config.activation),
            });
            inputs = width;
        }
        Ok(Self { blocks })
    }

    /// Width of the last layer.
    pub fn width(&self) -> usize {
        self.blocks.last().map_or(0, |block| block.gat.config().width())
    }

    /// `[n_rows, n_nodes, inputs]` to `[n_rows, n_nodes, width]`; values of padded nodes are arbitrary.
    pub fn forward(&self, x: Tensor<3>, graphs: &GraphBatch) -> Tensor<3> {
        self.blocks.iter().fold(x, |x, block| block.forward(x, graphs, false).0)
    }

    /// Attention weights of every layer, `[n_rows, n_edges, heads]` each.
    pub fn weights(&self, mut x: Tensor<3>, graphs: &GraphBatch) -> Vec<Tensor<3>> {
        let step = |block: &Block| {
            let (out, weights) = block.forward(x.clone(), graphs, true);
            x = out;
            weights
        };
        self.blocks.iter().filter_map(step).collect()
    }
}

impl Block {
    fn forward(&self, x: Tensor<3>, graphs: &GraphBatch, with_weights: bool) -> (Tensor<3>, Option<Tensor<3>>) {
        let [n_rows, n_nodes, inputs] = x.dims();
        let (mut y, weights) = if with_weights {
            let (y, weights) = self.gat.forward_with_weights(x.clone(), graphs);
            (y, Some(weights))
        } else {
            (self.gat.forward(x.clone(), graphs), None)
        };
        if let Some(skip) = &self.skip {
            let width = y.dims()[2];
            let skipped = affine(x.reshape([n_rows * n_nodes, inputs]), skip.val(), None, None);
            y = y + skipped.reshape([n_rows, n_nodes, width]);
        } else if self.residual {
            y = y + x;
        }
        if let Some(norm) = &self.layer_norm {
            return (norm.forward(y, self.activation), weights);
        }
        if let Some(norm) = &self.graph_norm {
            y = norm.forward(y, graphs.node_mask());
        }
        let y = match self.activation {
            Some(Activation::Elu) => elu(y),
            Some(Activation::Tanh) => brasa_kernels::tanh(y),
            Some(Activation::Relu) => relu(y),
            None => y,
        };
        (y, weights)
    }
}

/// One vector per row, `[n_rows, width]`: own node, mean and maximum over nodes, features of the agent.
///
/// # Shapes
/// - `nodes`: `[n_rows, n_nodes, width of the encoder]`
/// - `node_mask`: `[n_rows, n_nodes]`
/// - `own`: `[n_rows]`, below `n_nodes`
/// - `agent`: `[n_rows, agent features]`
pub(crate) fn read_out(
    readout: &Readout,
    nodes: &Tensor<3>,
    node_mask: &Tensor<2>,
    own: &Tensor<1, Int>,
    agent: &Tensor<2>,
) -> Tensor<2> {
    let [n_rows, n_nodes, width] = nodes.dims();
    let mask = node_mask.clone().unsqueeze_dim::<3>(2);
    let mut parts = Vec::with_capacity(4);
    if readout.own {
        parts.push(match runs_on_host(&own.device()) {
            true => {
                let first = Tensor::<1, Int>::arange(0..n_rows as i64, &own.device()) * n_nodes as i64;
                nodes.clone().reshape([n_rows * n_nodes, width]).select(0, own.clone() + first)
            }
            // Elsewhere, a range of numbers would be an upload.
            false => {
                let places = own.clone().reshape([n_rows, 1, 1]).expand([n_rows, 1, width]);
                nodes.clone().gather(1, places).squeeze_dim(1)
            }
        });
    }
    if readout.mean {
        let count = node_mask.clone().sum_dim(1);
        parts.push((nodes.clone() * mask.clone()).sum_dim(1).squeeze_dim::<2>(1) / count);
    }
    if readout.max {
        parts.push((nodes.clone() + (mask - 1.0) * FAR).max_dim(1).squeeze_dim(1));
    }
    if readout.agent {
        parts.push(agent.clone());
    }
    Tensor::cat(parts, 1)
}
