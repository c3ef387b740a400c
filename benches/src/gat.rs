//! One layer of graph attention, forward and backward, on a batch of copies of a building.

use brasa::env::named_rng;
use brasa::nn::Init;
use brasa_gat::{Aggregation, Gat, GatConfig, Graph, GraphBatch, Graphs, Version};
use burn::tensor::{Device, Tensor, TensorData};

/// Rows of a batch.
pub const ROWS: usize = 64;
/// Width of the input.
pub const INPUTS: usize = 64;
/// Heads of a layer.
pub const HEADS: usize = 4;
/// Width of the result per head.
pub const OUTPUTS: usize = 16;
/// Features per edge, where edges have some.
pub const EDGE_FEATURES: usize = 6;
/// Nodes of the building.
pub const NODES: usize = 45;

/// A daycare of three floors: 45 places, 71 connections, so 142 directed edges.
pub fn daycare() -> Vec<[usize; 2]> {
    let mut connections = Vec::new();
    for floor in 0..3 {
        let at = |place: usize| floor * 14 + place;
        // Three parts of a corridor, six nurseries two by two, a nurse's room, two playrooms, a kitchen and a store.
        let [nurse, play_0, play_1, kitchen, store] = [9, 10, 11, 12, 13].map(at);
        connections.extend([[at(0), at(1)], [at(1), at(2)]]);
        connections.extend((0..6).map(|nursery| [at(3 + nursery), at(nursery / 2)]));
        connections.extend((0..6).map(|nursery| [nurse, at(3 + nursery)]));
        connections.extend([play_0, play_1, kitchen, store].map(|room| [nurse, room]));
        connections.extend([[play_0, at(2)], [play_1, at(0)], [kitchen, at(0)], [store, at(2)]]);
    }
    connections.extend([[1, 15], [15, 29], [42, 0], [43, 2], [44, 30]]);
    connections.iter().flat_map(|[a, b]| [[*a, *b], [*b, *a]]).collect()
}

/// A layer and its input.
pub struct GatBench {
    layer: Gat,
    batch: GraphBatch,
    x: Tensor<3>,
    probe: Tensor<3>,
}

impl GatBench {
    /// A layer with fixed weights and numbers.
    ///
    /// # Panics
    /// Never: the settings are valid.
    pub fn new(version: Version, with_edges: bool, aggregation: Aggregation, device: &Device) -> Self {
        let device = device.clone().autodiff();
        let rng = &mut named_rng(0, "gat", 0);
        let edges = daycare();
        let features = Init::FanIn.draw(edges.len(), EDGE_FEATURES, rng).0;
        let graph = Graph::new(NODES, edges).and_then(|graph| graph.with_edge_features(EDGE_FEATURES, features));
        let graphs = Graphs::new(vec![graph.expect("valid")], aggregation, &device).expect("valid");
        let mut config = GatConfig::new(version, INPUTS, OUTPUTS, HEADS);
        config.edge_features = if with_edges { EDGE_FEATURES } else { 0 };
        let layer = Gat::new(&config, &device, rng).expect("valid");
        let mut random = |width: usize| {
            let values = Init::Glorot.draw(ROWS * NODES, width, rng).0;
            Tensor::<3>::from_data(TensorData::new(values, [ROWS, NODES, width]), &device)
        };
        let (x, probe) = (random(INPUTS), random(HEADS * OUTPUTS));
        let batch = graphs.batch(Tensor::zeros([ROWS], &device.without_autodiff()));
        Self { layer, batch, x, probe }
    }

    /// Forward and backward, down to gradients of input and weights; the gradient of the input.
    ///
    /// # Panics
    /// Never: the input is a leaf.
    pub fn forward_backward(&self) -> Tensor<3> {
        let x = self.x.clone().detach().require_grad();
        let loss = (self.layer.forward(x.clone(), &self.batch) * self.probe.clone()).sum();
        let grads = loss.backward();
        x.grad(&grads).expect("the input is a leaf")
    }
}
