//! Policies over graphs as layers of `brasa-export`.

use brasa_core::export::{
    About, Affine, Attention, Edges, ExportedPolicy, GraphNetwork, Head, Layer, Norm, Output, Readout, Residual,
};
use brasa_nn::{Linear, exported_function};
use burn::module::Param;
use burn::tensor::Tensor;

use crate::encoder::Block;
use crate::{Gat, GraphActorCritic, Graphs, Version};

/// The numbers of a parameter.
fn numbers<const D: usize>(param: &Param<Tensor<D>>) -> Vec<f32> {
    // Waits for the device: once per exported policy.
    param.val().into_data().iter::<f32>().collect()
}

fn affine(linear: &Linear) -> Affine {
    let (weight, bias) = linear.numbers();
    Affine { weight, bias }
}

impl GraphActorCritic {
    pub(crate) fn export(&self) -> ExportedPolicy {
        let spec = self.spec;
        let layers: Vec<Attention> = self.encoder.blocks.iter().map(Block::exported).collect();
        let with_edges = layers.iter().any(|layer| !layer.edge.is_empty());
        let ranks = self.table.ranks.as_ref().map(|ranks| {
            // Waits for the device: once per exported policy.
            ranks.clone().into_data().iter::<i64>().map(|rank| rank as usize).collect()
        });
        let head = match (&self.pointer, &self.index, ranks) {
            (Some(pointer), ..) => {
                Head::Pointer { query: affine(&pointer.query), key: affine(&pointer.key), wait: affine(&pointer.wait) }
            }
            (None, Some(index), Some(ranks)) => Head::Index { layers: index.exported(), ranks },
            _ => unreachable!("a policy has one of two heads"),
        };
        let crate::Readout { own, mean, max, agent } = self.readout;
        let network = GraphNetwork {
            n_nodes: spec.nodes,
            node_features: spec.node_features,
            agent_features: spec.agent_features,
            edges: edges(&self.table.graphs, with_edges),
            layers,
            readout: Readout { own, mean, max, agent },
            head,
        };
        ExportedPolicy {
            obs_width: spec.width(),
            n_agents: 1,
            masked: false,
            layers: vec![Layer::Graph(Box::new(network))],
            output: Output::Choice { heads: vec![spec.options()] },
            about: About::default(),
        }
    }
}

fn edges(graphs: &Graphs, with_features: bool) -> Edges {
    let width = if with_features { graphs.edge_width() } else { 0 };
    let (mut nodes, mut starts, mut sources, mut features) = (Vec::new(), vec![0], Vec::new(), Vec::new());
    for graph in graphs.graphs() {
        nodes.push(graph.n_nodes());
        // By destination, with self-loops.
        let attended = graph.attended();
        for node in 0..graphs.n_nodes() {
            sources.extend(attended.edges.iter().filter(|edge| edge[1] == node).map(|edge| edge[0]));
            starts.push(sources.len());
        }
        if with_features {
            features.extend(attended.features);
        }
    }
    Edges { nodes, starts, sources, width, features }
}

impl Block {
    fn exported(&self) -> Attention {
        let residual = match &self.skip {
            Some(skip) => Residual::Projected(numbers(skip)),
            None if self.residual => Residual::Same,
            None => Residual::None,
        };
        let of_layer = self.layer_norm.as_ref().map(|norm| Norm {
            scale: numbers(&norm.scale),
            shift: numbers(&norm.shift),
            mean_scale: Vec::new(),
        });
        let of_graph = self.graph_norm.as_ref().map(|norm| Norm {
            scale: numbers(&norm.scale),
            shift: numbers(&norm.shift),
            mean_scale: numbers(&norm.mean_scale),
        });
        Attention {
            residual,
            norm: of_layer.or(of_graph),
            activation: self.activation.map(exported_function),
            ..self.gat.exported()
        }
    }
}

impl Gat {
    /// The layer without what follows it.
    fn exported(&self) -> Attention {
        let config = &self.config;
        let (heads, outputs, hidden) = (config.heads, config.outputs, config.heads * config.outputs);
        let (weight, attention) = (numbers(&self.weight), numbers(&self.attention));
        let columns = weight.len() / config.inputs;
        let bias = self.projection_bias.as_ref().map_or_else(|| vec![0.0; columns], numbers);
        let part = |first: usize| Affine {
            weight: weight.chunks_exact(columns).flat_map(|row| &row[first..first + hidden]).copied().collect(),
            bias: bias[first..first + hidden].to_vec(),
        };
        let value = part(0);
        let edge_weight = self.edge_weight.as_ref().map(numbers).unwrap_or_default();
        // Version 1 scores one number per head: `a . (W x)` is `(a W) . x`.
        let by_head = |weight: &[f32], vector: &[f32]| -> Vec<f32> {
            let products = weight.chunks_exact(outputs).zip(vector.chunks_exact(outputs).cycle());
            products.map(|(weight, vector)| weight.iter().zip(vector).map(|(w, a)| w * a).sum()).collect()
        };
        let (source, destination, edge, attention) = match config.version {
            Version::V1 => {
                let scored = |vector: &[f32]| Affine { weight: by_head(&value.weight, vector), bias: vec![0.0; heads] };
                let edge_vector = self.edge_attention.as_ref().map(numbers).unwrap_or_default();
                let (source, destination) = (scored(&attention[..hidden]), scored(&attention[hidden..]));
                (source, destination, by_head(&edge_weight, &edge_vector), vec![1.0; heads])
            }
            Version::V2 => (value.clone(), part(columns - hidden), edge_weight, attention),
        };
        Attention {
            heads,
            source,
            destination,
            edge,
            attention,
            slope: config.negative_slope,
            value,
            concat: config.concat,
            bias: self.bias.as_ref().map_or_else(|| vec![0.0; config.width()], numbers),
            residual: Residual::None,
            norm: None,
            activation: None,
        }
    }
}
