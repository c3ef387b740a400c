//! An actor-critic over the nodes of a graph.

use brasa_core::analytic::ByResults;
use brasa_core::env::field;
use brasa_core::export::ExportedPolicy;
use brasa_core::{
    ActionSizes, ActorCritic, Decision, Evaluation, Explore, NetworkSizes, NoiseDistribution, NoiseSpec, Obs, Policy,
};
use brasa_nn::distribution::categorical;
use brasa_nn::{Init, Linear, Mlp, MlpConfig, gradient_in_shards};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::Rng;

use brasa_core::env::GraphSpec;

use crate::config::{GraphActorCriticConfig, HeadConfig, Readout, Trunk};
use crate::encoder::{Encoder, read_out};
use crate::{GatError, GraphBatch, Graphs};

/// Actor and critic over graphs. Rows of observations are those of [`GraphSpec`]. Action `v` is node `v`;
/// the last action is to wait.
///
/// Observations contain indices, so they must not be normalized.
///
/// ```
/// use brasa_core::env::{GraphSpec, named_rng};
/// use brasa_core::{Obs, read_back};
/// use brasa_gat::{Graph, GraphActorCritic, GraphActorCriticConfig, Graphs};
/// use burn::tensor::Tensor;
///
/// // Two rooms with a door. A row has graph, own room and one number per room.
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let graphs = Graphs::new(vec![Graph::new(2, vec![[0, 1], [1, 0]])?], &device)?;
/// let spec = GraphSpec { nodes: 2, node_features: 1, privileged_features: 0, agent_features: 0 };
/// let policy = GraphActorCritic::new(&GraphActorCriticConfig::default(), spec, graphs, &device, rng)?;
/// let obs = Obs::new(Tensor::from_floats([[0.0, 1.0, 0.5, 0.25]], &device));
/// // To room 0, to room 1, or to wait.
/// let probabilities = read_back(policy.probabilities(obs));
/// assert_eq!(probabilities.len(), 3);
/// assert!((probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct GraphActorCritic {
    pub(crate) encoder: Encoder,
    critic_encoder: Option<Encoder>,
    pub(crate) pointer: Option<Pointer>,
    pub(crate) index: Option<Mlp>,
    critic: Mlp,
    #[module(skip)]
    pub(crate) spec: GraphSpec,
    #[module(skip)]
    pub(crate) readout: Readout,
    #[module(skip)]
    pub(crate) table: GraphTable,
}

/// Scores of nodes as dot products of a query and their keys.
#[derive(Module, Debug)]
pub(crate) struct Pointer {
    pub query: Linear,
    pub key: Linear,
    pub wait: Linear,
    #[module(skip)]
    width: usize,
}

/// The graphs of observations.
#[derive(Debug, Clone)]
pub(crate) struct GraphTable {
    pub graphs: Graphs,
    /// `[n_graphs * n_nodes, n_nodes]`, for an index head: the output for each node relative to an own node, 0 if none.
    pub ranks: Option<Tensor<2, Int>>,
    /// Number of outputs of an index head.
    options: Option<usize>,
}

/// The parts of a batch of observations.
struct Seen {
    graphs: GraphBatch,
    own: Tensor<1, Int>,
    agent: Tensor<2>,
    nodes: Tensor<3>,
    /// Features of nodes, then privileged features.
    all: Option<Tensor<3>>,
    /// `[n_rows, n_actions]`: 1 for legal actions.
    legal: Tensor<2>,
    /// For an index head, `[n_rows, n_nodes]`: the output for each node.
    ranks: Option<Tensor<2, Int>>,
}

impl GraphActorCritic {
    /// A policy with initial weights from `rng` for observations of `spec` over `graphs`.
    ///
    /// # Errors
    /// [`GatError`] if a setting is invalid, or graphs do not fit the observations or the head.
    pub fn new(
        config: &GraphActorCriticConfig,
        spec: GraphSpec,
        graphs: Graphs,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, GatError> {
        config.validate()?;
        field::at_least_one("node_features", spec.node_features as u64)?;
        if graphs.n_nodes() != spec.nodes {
            let message = format!("observations have {} nodes, graphs {}", spec.nodes, graphs.n_nodes());
            return Err(GatError::Mismatch(message));
        }
        let edge_features = if config.edge_features { graphs.edge_width() } else { 0 };
        let encoder = Encoder::new(config, spec.node_features, edge_features, device, rng)?;
        let critic_encoder = match config.trunk {
            Trunk::Shared => None,
            Trunk::Separate => {
                let inputs = spec.node_features + spec.privileged_features;
                Some(Encoder::new(config, inputs, edge_features, device, rng)?)
            }
        };
        let width = encoder.width();
        let Readout { own, mean, max, agent } = config.readout;
        let pooled = [own, mean, max].into_iter().filter(|part| *part).count() * width;
        let read = pooled + if agent { spec.agent_features } else { 0 };
        let init = |gain: f64| if config.orthogonal { Init::Orthogonal(gain) } else { Init::FanIn };
        let mlp = |hidden: &[usize], outputs: usize, gain: f64, rng: &mut _| {
            let config = MlpConfig {
                inputs: read,
                hidden: hidden.to_vec(),
                outputs: Some(outputs),
                activation: config.head_activation,
                hidden_init: init(std::f64::consts::SQRT_2),
                output_init: init(gain),
            };
            Mlp::new(&config, device, rng)
        };
        let (pointer, index) = match &config.head {
            HeadConfig::Pointer { width: keys } => {
                // A small query makes all scores small, including that of waiting.
                let query = Linear::new(read, *keys, init(0.01), device, rng);
                let key = Linear::new(width, *keys, init(1.0), device, rng);
                let wait = Linear::new(*keys, 1, init(1.0), device, rng);
                (Some(Pointer { query, key, wait, width: *keys }), None)
            }
            HeadConfig::Index { hidden, options } => (None, Some(mlp(hidden, *options, 0.01, rng))),
        };
        let critic = mlp(&config.critic_hidden, 1, 1.0, rng);
        let options = match &config.head {
            HeadConfig::Pointer { .. } => None,
            HeadConfig::Index { options, .. } => Some(*options),
        };
        let table = GraphTable::new(graphs, options)?;
        Ok(Self { encoder, critic_encoder, pointer, index, critic, spec, readout: config.readout, table })
    }

    /// The same weights with other graphs, such as unseen buildings.
    ///
    /// # Errors
    /// [`GatError`] if the number of edge features differs from training, or the head does not fit.
    pub fn with_graphs(mut self, graphs: Graphs) -> Result<Self, GatError> {
        let (before, now) = (self.table.graphs.edge_width(), graphs.edge_width());
        if before != now {
            return Err(GatError::Mismatch(format!("edges have {now} features, the policy knows {before}")));
        }
        self.spec.nodes = graphs.n_nodes();
        self.table = GraphTable::new(graphs, self.table.options)?;
        Ok(self)
    }

    /// The layout of a row of observations.
    pub fn spec(&self) -> GraphSpec {
        self.spec
    }

    /// The graphs of observations.
    pub fn graphs(&self) -> &Graphs {
        &self.table.graphs
    }

    /// Attention weights of the actor's layers, `[n_rows, n_edges, heads]` each, in the order of [`Graphs::edges`].
    pub fn attention_weights(&self, obs: Obs) -> Vec<Tensor<3>> {
        let seen = self.see(obs);
        self.encoder.weights(seen.nodes, &seen.graphs)
    }

    /// Probabilities of all actions, `[n_rows, n_nodes + 1]`; 0 for illegal ones.
    pub fn probabilities(&self, obs: Obs) -> Tensor<2> {
        let seen = self.see(obs);
        let logits = self.both(&seen).0;
        categorical::log_probs(logits, Some(seen.legal), &[self.spec.options()]).exp()
    }

    fn see(&self, obs: Obs) -> Seen {
        let GraphSpec { nodes, node_features, privileged_features, agent_features } = self.spec;
        let [n_rows, width] = obs.values.dims();
        assert_eq!(width, self.spec.width(), "width of observations of {:?}", self.spec);
        let columns = |from: usize, n: usize| obs.values.clone().slice([0..n_rows, from..from + n]);
        let column = |at: usize| columns(at, 1).squeeze_dim::<1>(1).int();
        let (ids, own) = (column(0), column(1));
        let of_nodes =
            |from: usize, features: usize| columns(from, nodes * features).reshape([n_rows, nodes, features]);
        let first = 2 + agent_features;
        let visible = of_nodes(first, node_features);
        let all = self.critic_encoder.is_some().then(|| match privileged_features {
            0 => visible.clone(),
            n => Tensor::cat(vec![visible.clone(), of_nodes(first + nodes * node_features, n)], 2),
        });
        let graphs = self.table.graphs.batch(ids.clone());
        let (legal, ranks) = self.legal(ids, &own, obs.mask);
        let agent = match agent_features {
            0 => Tensor::zeros([n_rows, 0], &obs.values.device()),
            n => columns(2, n),
        };
        Seen { graphs, own, agent, nodes: visible, all, legal, ranks }
    }

    /// `[n_rows, n_actions]`: 1 for legal actions; and for an index head, `[n_rows, n_nodes]`: the output for each node.
    fn legal(
        &self,
        ids: Tensor<1, Int>,
        own: &Tensor<1, Int>,
        mask: Option<Tensor<2>>,
    ) -> (Tensor<2>, Option<Tensor<2, Int>>) {
        let (n_rows, device) = (ids.dims()[0], ids.device());
        let ranks = self.table.ranks.as_ref().map(|ranks| {
            let lines = ids.clone() * self.spec.nodes as i64 + own.clone();
            ranks.clone().select(0, lines)
        });
        // Padded nodes and nodes without an output are always illegal.
        let there = match &ranks {
            Some(ranks) => ranks.clone().greater_elem(0).float(),
            None => self.table.graphs.node_mask(ids),
        };
        let there = Tensor::cat(vec![there, Tensor::ones([n_rows, 1], &device)], 1);
        (mask.into_iter().fold(there, |there, mask| mask * there), ranks)
    }

    fn read(&self, nodes: &Tensor<3>, seen: &Seen) -> Tensor<2> {
        let readout = Readout { agent: self.readout.agent && self.spec.agent_features > 0, ..self.readout };
        read_out(&readout, nodes, &seen.graphs.node_mask(), &seen.own, &seen.agent)
    }

    /// Logits of all actions `[n_rows, n_nodes + 1]`, and the estimated return `[n_rows]`.
    fn both(&self, seen: &Seen) -> (Tensor<2>, Tensor<1>) {
        let nodes = self.encoder.forward(seen.nodes.clone(), &seen.graphs);
        let read = self.read(&nodes, seen);
        let value = match &self.critic_encoder {
            None => self.critic.forward(read.clone()).squeeze_dim(1),
            Some(_) => self.value_of(seen),
        };
        (self.logits(nodes, read, seen), value)
    }

    fn value_of(&self, seen: &Seen) -> Tensor<1> {
        let nodes = match (&self.critic_encoder, &seen.all) {
            (Some(encoder), Some(all)) => encoder.forward(all.clone(), &seen.graphs),
            _ => self.encoder.forward(seen.nodes.clone(), &seen.graphs),
        };
        self.critic.forward(self.read(&nodes, seen)).squeeze_dim(1)
    }

    fn logits(&self, nodes: Tensor<3>, read: Tensor<2>, seen: &Seen) -> Tensor<2> {
        let [n_rows, n_nodes, width] = nodes.dims();
        if let Some(pointer) = &self.pointer {
            let query = pointer.query.forward(read, None);
            let keys = pointer.key.forward(nodes.reshape([n_rows * n_nodes, width]), None);
            let products = keys.reshape([n_rows, n_nodes, pointer.width]) * query.clone().unsqueeze_dim::<3>(1);
            let scores = products.sum_dim(2).squeeze_dim::<2>(2) / (pointer.width as f64).sqrt();
            return Tensor::cat(vec![scores, pointer.wait.forward(query, None)], 1);
        }
        let (Some(index), Some(ranks)) = (&self.index, &seen.ranks) else {
            unreachable!("a policy has one of two heads");
        };
        let outputs = index.forward(read);
        let wait = outputs.clone().slice([0..n_rows, 0..1]);
        Tensor::cat(vec![outputs.gather(1, ranks.clone()), wait], 1)
    }
}

impl GraphTable {
    fn new(graphs: Graphs, options: Option<usize>) -> Result<Self, GatError> {
        let ranks = options.map(|options| Self::ranks(&graphs, options)).transpose()?;
        Ok(Self { graphs, ranks, options })
    }

    /// Outputs for nodes relative to each own node: 1 for the node itself, from 2 on for its neighbors in order.
    fn ranks(graphs: &Graphs, options: usize) -> Result<Tensor<2, Int>, GatError> {
        let n_nodes = graphs.n_nodes();
        let mut ranks = vec![0i32; graphs.graphs().len() * n_nodes * n_nodes];
        for (index, (graph, lines)) in graphs.graphs().iter().zip(ranks.chunks_exact_mut(n_nodes * n_nodes)).enumerate()
        {
            for (node, line) in lines.chunks_exact_mut(n_nodes).enumerate().take(graph.n_nodes()) {
                line[node] = 1;
                for (rank, neighbor) in graph.neighbors(node).enumerate() {
                    if rank + 2 >= options {
                        let message = format!(
                            "node {node} of graph {index} has {} neighbors, the head outputs for {}",
                            graph.neighbors(node).count(),
                            options - 2
                        );
                        return Err(GatError::Mismatch(message));
                    }
                    line[neighbor] = rank as i32 + 2;
                }
            }
        }
        let lines = graphs.graphs().len() * n_nodes;
        Ok(Tensor::from_data(TensorData::new(ranks, [lines, n_nodes]), &graphs.device()))
    }
}

impl Policy for GraphActorCritic {
    type Obs = Obs;
    type Action = Tensor<2>;
    type Extra = Decision;

    fn noise(&self) -> NoiseSpec {
        NoiseSpec { width: self.spec.options(), distribution: NoiseDistribution::Gumbel, resample_every: 1 }
    }

    fn sizes(&self) -> Option<NetworkSizes> {
        let action = ActionSizes::Choices(vec![self.spec.options()]);
        Some(NetworkSizes { obs: self.spec.width(), privileged: 0..0, action, n_agents: 1 })
    }

    fn act(&self, obs: Obs, explore: Explore) -> (Tensor<2>, Decision) {
        let noise = match explore {
            Explore::Sample(noise) => Some(noise),
            Explore::Greedy => None,
        };
        let seen = self.see(obs);
        let (logits, value) = self.both(&seen);
        let (action, log_prob) = categorical::draw(logits, Some(seen.legal), noise, &[self.spec.options()]);
        (action, Decision { log_prob, value: Some(value) })
    }

    fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        action
    }

    fn has_action_for(&self, obs: &[f32]) -> bool {
        let index = |x: f32, n: usize| (x >= 0.0 && x < n as f32 && x.fract() == 0.0).then_some(x as usize);
        let graphs = self.table.graphs.graphs();
        let graph = index(obs[0], graphs.len()).map(|graph| &graphs[graph]);
        graph.is_some_and(|graph| index(obs[1], graph.n_nodes()).is_some())
    }

    fn exported(&self) -> Option<ExportedPolicy> {
        Some(self.export())
    }
}

impl ActorCritic for GraphActorCritic {
    fn value(&self, obs: Obs) -> Tensor<1> {
        self.value_of(&self.see(obs))
    }

    fn evaluate(&self, obs: Obs, action: Tensor<2>) -> Evaluation {
        let seen = self.see(obs);
        let (logits, value) = self.both(&seen);
        let mask = Some(seen.legal.clone());
        let (log_prob, entropy) = categorical::evaluate(logits, mask, action, &[self.spec.options()]);
        Evaluation { log_prob, entropy, value }
    }

    fn choice(&self, obs: &Obs) -> Option<Tensor<1>> {
        let n_rows = obs.values.dims()[0];
        let column = |at: usize| obs.values.clone().slice([0..n_rows, at..at + 1]).squeeze_dim::<1>(1).int();
        let (legal, _) = self.legal(column(0), &column(1), obs.mask.clone());
        Some(categorical::has_choice(legal, 1))
    }

    /// Large minibatches on several cores.
    fn gradient(&self, obs: &Obs, action: &Tensor<2>, by: &mut ByResults<'_, 3>) -> Option<Vec<f32>> {
        /// Numbers of all nodes of a shard, behind one layer: a shard takes some milliseconds, its own tape some tenths of one.
        const NUMBERS: usize = 100_000;
        let numbers = action.dims()[0] * self.spec.nodes * self.encoder.width();
        gradient_in_shards(self, obs, action, (numbers / NUMBERS).min(8), by)
    }
}
