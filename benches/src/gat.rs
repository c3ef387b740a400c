//! One layer of graph attention, forward and backward, on a batch of copies of a building, and PPO with a policy over graphs.

use brasa::buffers::{Discounts, Rollout};
use brasa::contracts::{HostEnv, Obs};
use brasa::env::named_rng;
use brasa::evacuation::{
    Building, Buildings, Evacuation, EvacuationBatch, EvacuationConfig, Reference, RulesConfig, observe,
};
use brasa::nn::Init;
use brasa::ppo::{Ppo, PpoConfig};
use brasa_gat::{
    Gat, GatConfig, Graph, GraphActorCritic, GraphActorCriticConfig, GraphBatch, GraphSpec, Graphs, Version,
};
use burn::tensor::{Device, Tensor, TensorData};

use crate::collect;

/// Rows of a batch.
pub const ROWS: usize = 64;
/// Width of the input.
pub const INPUTS: usize = 64;
/// Heads of a layer.
pub const HEADS: usize = 4;
/// Width of the result per head.
pub const OUTPUTS: usize = 16;
/// Features per edge, if any.
pub const EDGE_FEATURES: usize = 6;
/// Nodes of the building.
pub const NODES: usize = 45;

/// A daycare of three floors: 45 places, 71 ways, so 142 directed edges.
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
#[derive(Debug)]
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
    pub fn new(version: Version, with_edges: bool, device: &Device) -> Self {
        let device = device.clone().autodiff();
        let rng = &mut named_rng(0, "gat", 0);
        let edges = daycare();
        let features = Init::FanIn.draw(edges.len(), EDGE_FEATURES, rng).0;
        let graph = Graph::new(NODES, edges).and_then(|graph| graph.with_edge_features(EDGE_FEATURES, features));
        let graphs = Graphs::new(vec![graph.expect("valid")], &device).expect("valid");
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

    /// Compares the gradient of the input with a difference of the loss along a direction.
    ///
    /// # Panics
    /// If they differ by more than rounding.
    pub fn check(&self) {
        const STEP: f32 = 1e-2;
        let loss = |x: Tensor<3>| (self.layer.forward(x, &self.batch) * self.probe.clone()).sum().into_scalar::<f32>();
        // Along the probe of the output, which has the width of the input.
        let direction = self.probe.clone().detach();
        let moved = |step: f32| loss(self.x.clone().detach() + direction.clone().mul_scalar(step));
        let difference = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
        let slope = (self.forward_backward() * direction.inner()).sum().into_scalar::<f32>();
        let close = (difference - slope).abs() <= 2e-2 * slope.abs().max(1.0);
        assert!(close, "the loss changes by {difference} along a direction, its gradient says {slope}");
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

/// Environments of the office with fires and two responders, and PPO with a lean policy over its graph.
#[derive(Debug)]
pub struct Office {
    scenario: Evacuation,
}

impl Office {
    /// The published building with whole decisions.
    ///
    /// # Panics
    /// Never: the settings are valid.
    pub fn new() -> Self {
        let config =
            EvacuationConfig { buildings: Buildings::Reference(Reference::Office), rules: RulesConfig::default() };
        Self { scenario: Evacuation::new(config).expect("valid") }
    }

    /// `n_envs` of them.
    pub fn envs(&self, n_envs: usize, device: &Device) -> HostEnv<EvacuationBatch> {
        HostEnv::new(self.scenario.batch(0..n_envs), device)
    }

    /// A policy with initial weights on `device`, which may be an autodiff device.
    ///
    /// # Panics
    /// Never: the settings are valid.
    pub fn policy(&self, device: &Device) -> GraphActorCritic {
        let (columns, timing) = (self.scenario.columns(), &self.scenario.config().rules.timing);
        let graph = |building: &Building| {
            Graph::from_edges(building.n_nodes(), &observe::edges(building.layout(), timing)).expect("valid")
        };
        let graphs = self.scenario.buildings().iter().map(graph).collect();
        let config = GraphActorCriticConfig::lean();
        let plain = device.clone().without_autodiff();
        let graphs = Graphs::new(graphs, &plain).expect("valid");
        let spec = GraphSpec {
            nodes: columns.nodes,
            node_features: columns.node,
            privileged_features: columns.privileged,
            agent_features: columns.agent,
        };
        GraphActorCritic::new(&config, spec, graphs, device, &mut named_rng(0, "weights", 0)).expect("valid")
    }

    /// PPO with one epoch per rollout.
    ///
    /// # Panics
    /// Never: the settings are valid.
    pub fn ppo(&self, n_steps: usize, batch_size: usize, device: &Device) -> Ppo<GraphActorCritic> {
        let config = PpoConfig { n_steps, batch_size, n_epochs: 1, gamma: 0.999, ..PpoConfig::default() };
        Ppo::new(self.policy(&device.clone().autodiff()), config, 0).expect("valid")
    }

    /// A rollout for [`Office::ppo`].
    ///
    /// # Panics
    /// Never: all decisions are legal.
    pub fn rollout(&self, n_envs: usize, n_steps: usize, device: &Device) -> Rollout<Obs, Tensor<2>> {
        collect(
            &mut self.envs(n_envs, device),
            &self.policy(device),
            n_steps,
            Discounts { gamma: 0.999, gae_lambda: 0.95 },
        )
    }
}

impl Default for Office {
    fn default() -> Self {
        Self::new()
    }
}
