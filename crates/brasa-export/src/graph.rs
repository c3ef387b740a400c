//! A policy over the nodes of graphs, as one layer.

use serde::{Deserialize, Serialize};

use crate::policy::all_finite;
use crate::{Function, Layer};

/// Score of nodes that do not exist, or that the head has no output for.
pub(crate) const ABSENT: f32 = -1e9;
/// Added to variances; the value of PyTorch and PyTorch Geometric.
pub(crate) const EPSILON: f32 = 1e-5;

/// From an observation over a graph to a score of each node, and of waiting as the last one.
///
/// A row has the index of its graph, its own node, features of the agent, features of the nodes (row-major by node), and further numbers
/// that are not read.
///
/// ```
/// # mod net { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/network.inc")); }
/// # use net::*;
/// use brasa_export::{GraphNetwork, Readout};
///
/// let network = GraphNetwork {
///     n_nodes: 2,
///     node_features: 1,
///     agent_features: 0,
///     edges: edges(),
///     layers: vec![attention()],
///     readout: Readout { own: true, mean: false, max: false, agent: false },
///     head: pointer(),
/// };
/// // Graph 0, own node 0, and a feature of each node: the agent goes to node 1.
/// assert_eq!(policy(network).act(&[0.0, 0.0, 2.0, 4.0], None), [1.0]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GraphNetwork {
    /// Nodes of a row; graphs with fewer are padded.
    pub n_nodes: usize,
    /// Features of a node.
    pub node_features: usize,
    /// Features of the agent.
    pub agent_features: usize,
    /// The edges of all graphs.
    pub edges: Edges,
    /// Layers of attention, at least one.
    pub layers: Vec<Attention>,
    /// The input of the head.
    pub readout: Readout,
    /// From the nodes to scores.
    pub head: Head,
}

/// Edges of graphs by destination, with a self-loop at every node.
///
/// ```
/// # mod net { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/network.inc")); }
/// # use net::*;
/// use brasa_export::Edges;
///
/// // A graph of two nodes, each with an edge from itself and from the other node.
/// let (starts, sources) = (vec![0, 2, 4], vec![0, 1, 0, 1]);
/// let edges = Edges { nodes: vec![2], starts, sources, width: 0, features: Vec::new() };
/// let mut network = network();
/// network.edges = edges;
/// assert!(policy(network.clone()).validate().is_ok());
/// network.edges.sources[0] = 7;
/// assert!(policy(network).validate().is_err());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Edges {
    /// Nodes of each graph.
    pub nodes: Vec<usize>,
    /// `[n_graphs * n_nodes + 1]`: the edges that end in node `i` of graph `g` begin at entry `g * n_nodes + i` and end before that of
    /// the next entry. Padded nodes have none.
    pub starts: Vec<usize>,
    /// The node where each edge begins.
    pub sources: Vec<usize>,
    /// Features of an edge that attention reads, 0 for none.
    pub width: usize,
    /// `[n_edges, width]`.
    pub features: Vec<f32>,
}

/// `y = x W + b`.
///
/// ```
/// # mod net { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/network.inc")); }
/// # use net::*;
/// use brasa_export::{Affine, Head};
///
/// // The score of waiting: `0 q + 100`, above the scores of both nodes.
/// let wait = Affine { weight: vec![0.0], bias: vec![100.0] };
/// let mut network = network();
/// let one = Affine { weight: vec![1.0], bias: vec![0.0] };
/// network.head = Head::Pointer { query: one.clone(), key: one, wait };
/// assert_eq!(policy(network).act(&[0.0, 0.0, 2.0, 4.0], None), [2.0]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Affine {
    /// `[inputs, outputs]`.
    pub weight: Vec<f32>,
    /// `[outputs]`.
    pub bias: Vec<f32>,
}

/// One layer of attention over the edges, with what follows it.
///
/// With heads `h`, edges from `j` to `i` with features `t`: scores `e_h = a_h . leaky(source(x_j) + destination(x_i) + t edge)_h`, weights
/// `alpha = softmax over j of e`, and `sum_j alpha_h value(x_j)_h`. Heads are concatenated, or their mean is taken; then follow bias,
/// residual, normalization and activation. Both versions of graph attention have this form; in the first one `a` is 1.
///
/// ```
/// # mod net { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/network.inc")); }
/// # use net::*;
/// use brasa_export::{Attention, Residual};
///
/// // `attention()` gives each node the mean of both nodes, and adds the node itself.
/// let without: Attention = Attention { residual: Residual::None, ..attention() };
/// let mut network = network();
/// network.layers = vec![without];
/// // Without a residual both nodes are equal, with scores of 9: waiting has 30.
/// assert_eq!(policy(network).act(&[0.0, 0.0, 2.0, 4.0], None), [2.0]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Attention {
    /// Number of heads.
    pub heads: usize,
    /// `[inputs, heads * channels]`.
    pub source: Affine,
    /// `[inputs, heads * channels]`.
    pub destination: Affine,
    /// `[edge width, heads * channels]`; empty if edges have no features.
    pub edge: Vec<f32>,
    /// `a`: `[heads * channels]`.
    pub attention: Vec<f32>,
    /// Slope of the leaky ReLU below 0.
    pub slope: f32,
    /// `[inputs, heads * outputs]`.
    pub value: Affine,
    /// Whether heads are concatenated.
    pub concat: bool,
    /// Added to the result.
    pub bias: Vec<f32>,
    /// What is added of the input.
    pub residual: Residual,
    /// Normalization of the sum.
    pub norm: Option<Norm>,
    /// Applied last.
    pub activation: Option<Function>,
}

/// What a layer adds of its input.
///
/// ```
/// # mod net { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/network.inc")); }
/// # use net::*;
/// use brasa_export::Residual;
///
/// let action = |residual| {
///     let mut network = network();
///     network.layers[0].residual = residual;
///     policy(network).act(&[0.0, 0.0, 2.0, 4.0], None)
/// };
/// assert_eq!(action(Residual::Same), [1.0]);
/// // Subtracting the nodes makes node 0 the larger one, and both too small for a move.
/// assert_eq!(action(Residual::Projected(vec![-1.0])), [2.0]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Residual {
    /// Nothing.
    None,
    /// The input.
    Same,
    /// The input times `[inputs, width]`.
    Projected(Vec<f32>),
}

/// Normalization of nodes: `scale (x - k mean) / sqrt(variance + 1e-5) + shift`.
///
/// ```
/// # mod net { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/network.inc")); }
/// # use net::*;
/// use brasa_export::Norm;
///
/// let mut network = network();
/// // Each feature over the nodes of the graph: 5 and 7 become about -1 and 1, times 10.
/// let norm = Norm { scale: vec![10.0], shift: vec![0.0], mean_scale: vec![1.0] };
/// network.layers[0].norm = Some(norm);
/// let policy = policy(network);
/// policy.validate()?;
/// assert_eq!(policy.act(&[0.0, 0.0, 2.0, 4.0], None), [0.0]);
/// # Ok::<(), brasa_export::ExportError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Norm {
    /// `[width]`.
    pub scale: Vec<f32>,
    /// `[width]`.
    pub shift: Vec<f32>,
    /// `[width]`, if each feature is normalized over the nodes of the graph; empty, with `k = 1`, if each node is normalized over its features.
    pub mean_scale: Vec<f32>,
}

/// Parts of the input of the head, in this order.
///
/// ```
/// # mod net { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/network.inc")); }
/// # use net::*;
/// use brasa_export::Readout;
///
/// let mut network = network();
/// network.readout = Readout { own: false, mean: false, max: true, agent: false };
/// // The maximum of the nodes, 7, replaces the own node, 5: node 0 has a score of 35, node 1 a score of 49.
/// assert_eq!(policy(network).act(&[0.0, 0.0, 2.0, 4.0], None), [1.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readout {
    /// The own node.
    pub own: bool,
    /// The mean over the nodes.
    pub mean: bool,
    /// The maximum over the nodes.
    pub max: bool,
    /// The features of the agent.
    pub agent: bool,
}

/// From the nodes to scores.
///
/// ```
/// # mod net { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/network.inc")); }
/// # use net::*;
/// use brasa_export::{Head, Layer};
///
/// let mut network = network();
/// // From node 0, output 1 is node 1; from node 1, output 1 is node 0.
/// let layers = vec![Layer::linear(vec![0.0, 1.0], vec![0.0, 0.0])];
/// network.head = Head::Index { layers, ranks: vec![0, 1, 1, 0] };
/// let policy = policy(network);
/// assert_eq!(policy.act(&[0.0, 0.0, 2.0, 4.0], None), [1.0]);
/// assert_eq!(policy.act(&[0.0, 1.0, 2.0, 4.0], None), [0.0]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Head {
    /// `key(x_i) . q / sqrt(width)` for each node, with `q = query(readout)`, and `wait(q)`.
    Pointer {
        /// From the readout to `[width]`.
        query: Affine,
        /// From a node to `[width]`.
        key: Affine,
        /// From `q` to one number.
        wait: Affine,
    },
    /// Layers on the readout, with one output per index.
    Index {
        /// From the readout to the outputs.
        layers: Vec<Layer>,
        /// `[n_graphs, n_nodes, n_nodes]`: by own node, the output for each node, 0 if it has none. Output 0 is to wait.
        ranks: Vec<usize>,
    },
}

impl Affine {
    pub(crate) fn outputs(&self) -> usize {
        self.bias.len()
    }

    fn check_numbers(&self) -> Result<(), String> {
        all_finite(&[("weight", &self.weight), ("bias", &self.bias)])
    }

    pub(crate) fn forward(&self, x: &[f32]) -> Vec<f32> {
        let mut y = self.bias.clone();
        add_product(x, &self.weight, &mut y);
        y
    }
}

/// The larger number; NaN if one of them is.
fn larger(a: f32, b: f32) -> f32 {
    if b > a || b.is_nan() { b } else { a }
}

/// `y += x W`.
fn add_product(x: &[f32], weight: &[f32], y: &mut [f32]) {
    for (x, row) in x.iter().zip(weight.chunks_exact(y.len())) {
        y.iter_mut().zip(row).for_each(|(y, weight)| *y += x * weight);
    }
}

impl Attention {
    /// Width of a node after this layer.
    pub(crate) fn width(&self) -> usize {
        self.bias.len()
    }

    /// Width of a node before this layer.
    pub(crate) fn inputs(&self) -> usize {
        self.value.weight.len() / self.value.outputs().max(1)
    }

    fn check(&self, inputs: usize, edge_width: usize) -> Result<(), String> {
        let (scores, values) = (self.attention.len(), self.value.outputs());
        if self.heads == 0 || scores == 0 || values == 0 || scores % self.heads + values % self.heads > 0 {
            return Err(format!("{scores} and {values} columns cannot be divided among {} heads", self.heads));
        }
        let width = if self.concat { values } else { values / self.heads };
        let mut rules = vec![
            ("source.weight", self.source.weight.len(), inputs.saturating_mul(scores)),
            ("source.bias", self.source.bias.len(), scores),
            ("destination.weight", self.destination.weight.len(), inputs.saturating_mul(scores)),
            ("destination.bias", self.destination.bias.len(), scores),
            ("edge", self.edge.len(), edge_width.saturating_mul(scores)),
            ("value.weight", self.value.weight.len(), inputs.saturating_mul(values)),
            ("bias", self.bias.len(), width),
        ];
        match &self.residual {
            Residual::None => {}
            Residual::Same => rules.push(("residual", inputs, width)),
            Residual::Projected(weight) => rules.push(("residual", weight.len(), inputs.saturating_mul(width))),
        }
        if let Some(norm) = &self.norm {
            rules.extend([("norm.scale", norm.scale.len(), width), ("norm.shift", norm.shift.len(), width)]);
            let n = norm.mean_scale.len();
            rules.push(("norm.mean_scale", n, if n == 0 { 0 } else { width }));
        }
        all_have(&rules)
    }

    /// `x`: the nodes, `[n, inputs]`. Their edges begin at entry `first` of the starts.
    fn forward(&self, x: &[f32], n: usize, first: usize, edges: &Edges) -> Vec<f32> {
        let (inputs, width) = (x.len() / n, self.width());
        let (channels, outputs) = (self.attention.len() / self.heads, self.value.outputs() / self.heads);
        let all = |affine: &Affine| x.chunks_exact(inputs).flat_map(|x| affine.forward(x)).collect::<Vec<f32>>();
        let (source, destination, value) = (all(&self.source), all(&self.destination), all(&self.value));
        // The numbers of one head in a row.
        let of = |row: usize, head: usize, n: usize| (row * self.heads + head) * n..(row * self.heads + head + 1) * n;
        let mut y = Vec::with_capacity(n * width);
        for node in 0..n {
            let own = edges.starts[first + node]..edges.starts[first + node + 1];
            let mut sums = vec![0.0; self.heads * outputs];
            for head in 0..self.heads {
                let weights = &self.attention[head * channels..(head + 1) * channels];
                let mut scores = Vec::with_capacity(own.len());
                for edge in own.clone() {
                    let mut term = vec![0.0; self.attention.len()];
                    add_product(&edges.features[edge * edges.width..(edge + 1) * edges.width], &self.edge, &mut term);
                    let from = &source[of(edges.sources[edge], head, channels)];
                    let to = &destination[of(node, head, channels)];
                    let term = &term[head * channels..(head + 1) * channels];
                    let sums = from.iter().zip(to).zip(term).map(|((from, to), term)| from + to + term);
                    let leaky = sums.map(|x| if x > 0.0 { x } else { self.slope * x });
                    scores.push(leaky.zip(weights).map(|(x, weight)| x * weight).sum::<f32>());
                }
                let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                scores.iter_mut().for_each(|score| *score = (*score - most).exp());
                let total: f32 = scores.iter().sum();
                let sums = &mut sums[head * outputs..(head + 1) * outputs];
                for (edge, score) in own.clone().zip(&scores) {
                    let value = &value[of(edges.sources[edge], head, outputs)];
                    sums.iter_mut().zip(value).for_each(|(sum, value)| *sum += score / total * value);
                }
            }
            let begin = y.len();
            match self.concat {
                true => y.extend(sums),
                false => {
                    let mean = |column: usize| sums.iter().skip(column).step_by(outputs).sum::<f32>();
                    y.extend((0..outputs).map(|column| mean(column) / self.heads as f32));
                }
            }
            let y = &mut y[begin..];
            y.iter_mut().zip(&self.bias).for_each(|(y, bias)| *y += bias);
            let x = &x[node * inputs..(node + 1) * inputs];
            match &self.residual {
                Residual::None => {}
                Residual::Same => y.iter_mut().zip(x).for_each(|(y, x)| *y += x),
                Residual::Projected(weight) => add_product(x, weight, y),
            }
        }
        if let Some(norm) = &self.norm {
            norm.apply(&mut y);
        }
        if let Some(function) = self.activation {
            y.iter_mut().for_each(|y| *y = function.of(*y));
        }
        y
    }
}

impl Norm {
    /// On the nodes of one graph.
    fn apply(&self, x: &mut [f32]) {
        let width = self.scale.len();
        let n = (x.len() / width) as f32;
        if self.mean_scale.is_empty() {
            for x in x.chunks_exact_mut(width) {
                let mean = x.iter().sum::<f32>() / width as f32;
                let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / width as f32;
                let root = (variance + EPSILON).sqrt();
                for ((x, scale), shift) in x.iter_mut().zip(&self.scale).zip(&self.shift) {
                    *x = (*x - mean) / root * scale + shift;
                }
            }
            return;
        }
        for column in 0..width {
            let of_nodes = || (column..x.len()).step_by(width);
            let mean = self.mean_scale[column] * (of_nodes().map(|i| x[i]).sum::<f32>() / n);
            let variance = of_nodes().map(|i| (x[i] - mean).powi(2)).sum::<f32>() / n;
            let root = (variance + EPSILON).sqrt();
            for i in of_nodes() {
                x[i] = (x[i] - mean) / root * self.scale[column] + self.shift[column];
            }
        }
    }
}

impl GraphNetwork {
    /// Width of the readout.
    pub(crate) fn readout_width(&self) -> usize {
        let node = self.layers.last().map_or(0, Attention::width);
        let Readout { own, mean, max, agent } = self.readout;
        let parts = [own, mean, max].into_iter().filter(|part| *part).count();
        parts * node + if agent { self.agent_features } else { 0 }
    }

    /// Number of scores, if all parts fit together and a row has `obs_width` numbers.
    pub(crate) fn scores(&self, obs_width: usize) -> Result<usize, String> {
        if self.n_nodes == 0 || self.node_features == 0 || self.edges.nodes.is_empty() {
            let (nodes, features, graphs) = (self.n_nodes, self.node_features, self.edges.nodes.len());
            return Err(format!(
                "graphs, nodes and their features must be at least 1, got {graphs}, {nodes} and {features}"
            ));
        }
        let read = self.n_nodes.checked_mul(self.node_features);
        let read = read.and_then(|n| n.checked_add(self.agent_features)?.checked_add(2));
        if read.is_none_or(|read| obs_width < read) {
            let (nodes, features, agent) = (self.n_nodes, self.node_features, self.agent_features);
            return Err(format!(
                "observations must have at least 2 numbers, {agent} of the agent and {nodes} times {features} of the nodes, got {obs_width}"
            ));
        }
        self.edges.check(self.n_nodes)?;
        let mut inputs = self.node_features;
        for (i, layer) in self.layers.iter().enumerate() {
            layer.check(inputs, self.edges.width).map_err(|rule| format!("attention {i}: {rule}"))?;
            inputs = layer.width();
        }
        if self.layers.is_empty() || self.readout_width() == 0 {
            return Err("the network must have layers, and its readout a part".into());
        }
        match &self.head {
            Head::Pointer { query, key, wait } => {
                let width = query.outputs();
                if width == 0 {
                    return Err("`query.bias` must have at least 1 number, got 0".into());
                }
                all_have(&[
                    ("query.weight", query.weight.len(), self.readout_width().saturating_mul(width)),
                    ("key.weight", key.weight.len(), inputs.saturating_mul(width)),
                    ("key.bias", key.bias.len(), width),
                    ("wait.weight", wait.weight.len(), width),
                    ("wait.bias", wait.bias.len(), 1),
                ])?;
            }
            Head::Index { layers, ranks } => {
                if let Some(i) = layers
                    .iter()
                    .position(|layer| matches!(layer, Layer::Graph(_) | Layer::Groups(_) | Layer::Memory(_)))
                {
                    return Err(format!("layer {i} of the head must be a function of the readout alone"));
                }
                let outputs = layers.iter().try_fold(self.readout_width(), |width, layer| layer.width(width, 1))?;
                let n_ranks = self.edges.nodes.len().saturating_mul(self.n_nodes).saturating_mul(self.n_nodes);
                all_have(&[("ranks", ranks.len(), n_ranks)])?;
                if let Some(rank) = ranks.iter().find(|rank| **rank >= outputs) {
                    return Err(format!("`ranks` must be below {outputs}, got {rank}"));
                }
            }
        }
        Ok(self.n_nodes + 1)
    }

    /// Checks that all numbers are finite.
    pub(crate) fn check_numbers(&self) -> Result<(), String> {
        all_finite(&[("edges.features", &self.edges.features)])?;
        for layer in &self.layers {
            for affine in [&layer.source, &layer.destination, &layer.value] {
                affine.check_numbers()?;
            }
            let Attention { edge, attention, bias, slope, .. } = layer;
            all_finite(&[("edge", edge), ("attention", attention), ("bias", bias), ("slope", &[*slope])])?;
            if let Residual::Projected(weight) = &layer.residual {
                all_finite(&[("residual", weight)])?;
            }
            if let Some(Norm { scale, shift, mean_scale }) = &layer.norm {
                all_finite(&[("norm.scale", scale), ("norm.shift", shift), ("norm.mean_scale", mean_scale)])?;
            }
        }
        match &self.head {
            Head::Pointer { query, key, wait } => [query, key, wait].into_iter().try_for_each(Affine::check_numbers),
            Head::Index { layers, .. } => layers.iter().try_for_each(Layer::check_numbers),
        }
    }

    /// The scores for one row: NaN if the row names a graph or node that does not exist.
    pub(crate) fn forward(&self, row: &[f32], scores: &mut Vec<f32>) {
        let index = |x: f32, n: usize| (x >= 0.0 && x < n as f32 && x.fract() == 0.0).then_some(x as usize);
        let graph = index(row[0], self.edges.nodes.len());
        let named = graph.and_then(|graph| Some((graph, index(row[1], self.edges.nodes[graph])?)));
        let Some((graph, own)) = named else {
            scores.clear();
            scores.resize(self.n_nodes + 1, f32::NAN);
            return;
        };
        let n = self.edges.nodes[graph];
        let agent = &row[2..2 + self.agent_features];
        let first = 2 + self.agent_features;
        let mut nodes = row[first..first + n * self.node_features].to_vec();
        for layer in &self.layers {
            nodes = layer.forward(&nodes, n, graph * self.n_nodes, &self.edges);
        }
        let width = nodes.len() / n;
        let column = |column: usize| nodes.iter().skip(column).step_by(width).copied();
        let mut read = Vec::with_capacity(self.readout_width());
        if self.readout.own {
            read.extend_from_slice(&nodes[own * width..(own + 1) * width]);
        }
        if self.readout.mean {
            read.extend((0..width).map(|i| column(i).sum::<f32>() / n as f32));
        }
        if self.readout.max {
            read.extend((0..width).map(|i| column(i).fold(f32::NEG_INFINITY, larger)));
        }
        if self.readout.agent {
            read.extend_from_slice(agent);
        }
        scores.clear();
        scores.resize(self.n_nodes + 1, ABSENT);
        match &self.head {
            Head::Pointer { query, key, wait } => {
                let query = query.forward(&read);
                let root = (query.len() as f32).sqrt();
                let dot = |a: &[f32]| a.iter().zip(&query).map(|(a, b)| a * b).sum::<f32>();
                for (score, node) in scores.iter_mut().zip(nodes.chunks_exact(width)) {
                    *score = dot(&key.forward(node)) / root;
                }
                scores[self.n_nodes] = dot(&wait.weight) + wait.bias[0];
            }
            Head::Index { layers, ranks } => {
                crate::policy::forward_inside(layers, &mut read, &mut Vec::new());
                let ranks = &ranks[(graph * self.n_nodes + own) * self.n_nodes..][..self.n_nodes];
                for (score, rank) in scores.iter_mut().zip(ranks).filter(|(_, rank)| **rank > 0) {
                    *score = read[*rank];
                }
                scores[self.n_nodes] = read[0];
            }
        }
    }
}

impl Edges {
    /// The largest number of edges that end in one node.
    pub(crate) fn n_slots(&self) -> usize {
        self.starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }

    fn check(&self, n_nodes: usize) -> Result<(), String> {
        all_have(&[
            ("edges.starts", self.starts.len(), self.nodes.len().saturating_mul(n_nodes).saturating_add(1)),
            ("edges.features", self.features.len(), self.sources.len().saturating_mul(self.width)),
        ])?;
        for (graph, (own, starts)) in
            self.nodes.iter().zip(self.starts.windows(n_nodes + 1).step_by(n_nodes)).enumerate()
        {
            if *own == 0 || *own > n_nodes {
                return Err(format!("`edges.nodes` must be between 1 and {n_nodes}, got {own} for graph {graph}"));
            }
            for (node, pair) in starts.windows(2).enumerate() {
                let is_right = match node < *own {
                    // Without an edge there is nothing to attend to.
                    true => pair[0] < pair[1] && pair[1] <= self.sources.len(),
                    false => pair[0] == pair[1],
                };
                if !is_right {
                    return Err(format!("`edges.starts` of node {node} of graph {graph} are {pair:?}"));
                }
                if let Some(source) = self.sources[pair[0]..pair[1]].iter().find(|source| **source >= *own) {
                    return Err(format!("an edge to node {node} of graph {graph} begins in node {source} of {own}"));
                }
            }
        }
        Ok(())
    }
}

/// Products saturate: a size that no memory holds is then one that no list has.
fn all_have(rules: &[(&str, usize, usize)]) -> Result<(), String> {
    match rules.iter().find(|(_, got, needed)| got != needed) {
        Some((name, got, needed)) => Err(format!("`{name}` must have {needed} numbers, got {got}")),
        None => Ok(()),
    }
}
