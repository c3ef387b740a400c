//! One layer of graph attention, forward and backward, on a batch of copies of a building, and an update of a policy.

use brasa::buffers::{Rollout, RolloutBuffer};
use brasa::core::{ActorCritic, Explore, Learner, Obs, Policy, Progress, Rows, StepBatch, Successor};
use brasa::env::{EnvSpec, Space, named_rng};
use brasa::nn::{Init, draw_noise};
use brasa::ppo::{Ppo, PpoConfig};
use brasa_gat::{
    Gat, GatConfig, Graph, GraphActorCritic, GraphActorCriticConfig, GraphBatch, GraphSpec, Graphs, Version,
};
use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;

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

const PROGRESS: Progress = Progress::new(0, 1);

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

/// A lean policy over the daycare with a rollout of random decisions.
pub struct PolicyBench {
    ppo: Ppo<GraphActorCritic>,
    policy: GraphActorCritic,
    rollout: Rollout<Obs, Tensor<2>>,
}

impl PolicyBench {
    /// Rows per step.
    pub const ROWS: usize = 64;
    /// Steps per rollout.
    pub const STEPS: usize = 16;
    /// Rows per minibatch.
    pub const BATCH: usize = 256;
    const SPEC: GraphSpec = GraphSpec { nodes: NODES, node_features: 24, privileged_features: 0, agent_features: 8 };

    /// Constructs a rollout with random nodes and features.
    ///
    /// # Panics
    /// Never: the settings are valid.
    pub fn new(device: &Device) -> Self {
        let rng = &mut named_rng(0, "policy", 0);
        let edges = daycare();
        let features = Init::FanIn.draw(edges.len(), EDGE_FEATURES, rng).0;
        let graph = Graph::new(NODES, edges).and_then(|graph| graph.with_edge_features(EDGE_FEATURES, features));
        let graph = graph.expect("valid");
        let config = GraphActorCriticConfig::lean();
        let graphs = Graphs::new(vec![graph.clone()], device).expect("valid");
        let network = GraphActorCritic::new(&config, Self::SPEC, graphs, &device.clone().autodiff(), rng);
        let settings = PpoConfig { n_steps: Self::STEPS, batch_size: Self::BATCH, n_epochs: 1, ..PpoConfig::default() };
        let ppo = Ppo::new(network.expect("valid"), settings.clone(), 0).expect("valid");

        let policy = ppo.policy(PROGRESS);
        let mut observe = || {
            let (mut values, mut mask) = (Vec::new(), Vec::new());
            for _ in 0..Self::ROWS {
                let own = rng.random_range(0..NODES);
                values.extend([0.0, own as f32]);
                values.extend((2..Self::SPEC.width()).map(|_| rng.random::<f32>()));
                let legal = |node: usize| node == own || node == NODES || graph.neighbors(own).any(|next| next == node);
                mask.extend((0..=NODES).map(|node| f32::from(u8::from(legal(node)))));
            }
            let tensor = |values: Vec<f32>| {
                let width = values.len() / Self::ROWS;
                Tensor::<2>::from_data(TensorData::new(values, [Self::ROWS, width]), device)
            };
            Obs { values: tensor(values), mask: Some(tensor(mask)) }
        };
        let mut obs = observe();
        let (action, _) = policy.act(obs.clone(), Explore::Greedy);
        let (one, actions) = (Space::Discrete(1), Space::Discrete(NODES + 1));
        let spec = EnvSpec { truncation_interval: EnvSpec::NEVER, ..EnvSpec::new(one, actions, Self::ROWS) };
        let mut buffer = RolloutBuffer::new(Self::STEPS, &spec, &obs, &action, device);
        let mut noise_rng = named_rng(0, "noise", 0);
        while !buffer.is_full() {
            let noise = draw_noise(policy.noise(), Self::ROWS, &mut noise_rng, device);
            let (action, decision) = policy.act(obs.clone(), Explore::Sample(noise));
            let next = observe();
            let step = StepBatch {
                obs: next.clone(),
                successor: Successor::Same,
                reward: action.clone().squeeze_dim(1) / NODES as f32,
                terminated: Tensor::zeros([Self::ROWS], device),
                truncated: Tensor::zeros([Self::ROWS], device),
                elapsed: None,
            };
            buffer.push(std::mem::replace(&mut obs, next), action, decision, &step);
        }
        let rollout = buffer.finish(policy.value(obs), |obs| policy.value(obs), settings.gamma, settings.gae_lambda);
        let rollout = rollout.expect("no row is truncated");
        Self { ppo, policy, rollout }
    }

    /// One epoch over the rollout in minibatches.
    pub fn update(&mut self) {
        self.ppo.update(self.rollout.clone(), PROGRESS);
    }

    /// Recomputes the first decisions of the rollout.
    pub fn act(&self) -> Tensor<2> {
        let obs = self.rollout.obs.clone();
        let rows = Tensor::arange(0..Self::ROWS as i64, &obs.values.device());
        self.policy.act(obs.select(rows), Explore::Greedy).0
    }
}
