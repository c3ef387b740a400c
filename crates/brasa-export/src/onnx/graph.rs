//! Attention over graphs in ONNX: lists of neighbors padded to the longest one.

use super::{BOOL, Graph, INT64, attribute, float_attribute, ints_attribute};
use crate::graph::{ABSENT, EPSILON};
use crate::{Affine, Attention, Edges, Function, GraphNetwork, Head, Norm, Residual};

/// The graphs of the rows of a batch.
struct Rows {
    /// `[batch, n_nodes, n_slots, 1]`: the nodes that each node attends to.
    sources: String,
    /// `[batch, n_nodes, n_slots, 1]`: 0, or [`ABSENT`] for slots without an edge.
    absent_slots: String,
    /// `[batch, n_nodes, n_slots, edge width]`.
    features: Option<String>,
    /// `[batch, n_nodes, 1]`: 1 for nodes, 0 for padding.
    nodes: String,
    /// `[batch, 1, 1]`.
    count: String,
}

impl GraphNetwork {
    /// Adds the network on observations `x`; the name of the scores, `[batch, n_nodes + 1]`.
    pub(super) fn add_to(&self, graph: &mut Graph, x: &str) -> String {
        let n = self.n_nodes;
        // `[batch, 1]`: an index below `end`, 0 instead of another number, and whether it is one.
        let index = |graph: &mut Graph, column: usize, end: &str| {
            let zero = graph.floats(&[], &[0.0]);
            let column = graph.columns(x, column, column + 1);
            let whole = graph.node("Floor", &[&column], vec![]);
            let is_whole = graph.node("Equal", &[&column, &whole], vec![]);
            let is_below = graph.node("Less", &[&column, end], vec![]);
            let is_above = graph.node("GreaterOrEqual", &[&column, &zero], vec![]);
            let is_within = graph.node("And", &[&is_below, &is_above], vec![]);
            let is_index = graph.node("And", &[&is_within, &is_whole], vec![]);
            let index = graph.node("Where", &[&is_index, &column, &zero], vec![]);
            (graph.node("Cast", &[&index], vec![attribute("to", INT64 as i64)]), is_index)
        };
        let n_graphs = graph.floats(&[], &[self.edges.nodes.len() as f32]);
        let (id, is_graph) = index(graph, 0, &n_graphs);
        let axis = graph.ints(&[1]);
        let id = graph.node("Squeeze", &[&id, &axis], vec![]);
        let rows = Rows::new(graph, &self.edges, n, &id);
        let n_own = graph.node("Squeeze", &[&rows.count, &axis], vec![]);
        let (own, is_own) = index(graph, 1, &n_own);
        let is_there = graph.node("And", &[&is_graph, &is_own], vec![]);
        let first = 2 + self.agent_features;
        let features = graph.columns(x, first, first + n * self.node_features);
        let mut nodes = reshaped(graph, &features, &[-1, n as i64, self.node_features as i64]);
        for layer in &self.layers {
            nodes = layer.add_to(graph, &nodes, &rows);
        }
        let mut parts = Vec::new();
        if self.readout.own {
            parts.push(graph.node("GatherND", &[&nodes, &own], vec![attribute("batch_dims", 1)]));
        }
        if self.readout.mean {
            let there = graph.node("Mul", &[&nodes, &rows.nodes], vec![]);
            let sum = graph.node("ReduceSum", &[&there, &axis], vec![attribute("keepdims", 0)]);
            let count = graph.node("Squeeze", &[&rows.count, &axis], vec![]);
            parts.push(graph.node("Div", &[&sum, &count], vec![]));
        }
        if self.readout.max {
            let (one, far) = (graph.floats(&[], &[1.0]), graph.floats(&[], &[-ABSENT]));
            let absent = graph.node("Sub", &[&rows.nodes, &one], vec![]);
            let absent = graph.node("Mul", &[&absent, &far], vec![]);
            let there = graph.node("Add", &[&nodes, &absent], vec![]);
            let axes = vec![ints_attribute("axes", &[1]), attribute("keepdims", 0)];
            parts.push(graph.node("ReduceMax", &[&there], axes));
        }
        if self.readout.agent && self.agent_features > 0 {
            parts.push(graph.columns(x, 2, first));
        }
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let mut read = graph.node("Concat", &parts, vec![attribute("axis", 1)]);
        let scores = match &self.head {
            Head::Pointer { query, key, wait } => {
                let query_row = affine(graph, &read, query);
                let keys = affine(graph, &nodes, key);
                let (last, root) = (graph.ints(&[2]), graph.floats(&[], &[(query.outputs() as f32).sqrt()]));
                let column = graph.node("Unsqueeze", &[&query_row, &last], vec![]);
                let products = graph.node("MatMul", &[&keys, &column], vec![]);
                let products = graph.node("Div", &[&products, &root], vec![]);
                let scores = masked(graph, &products, &rows.nodes);
                let scores = graph.node("Squeeze", &[&scores, &last], vec![]);
                let wait = affine(graph, &query_row, wait);
                graph.node("Concat", &[&scores, &wait], vec![attribute("axis", 1)])
            }
            Head::Index { layers, ranks } => {
                let mut width = self.readout_width();
                for layer in layers {
                    let next = layer.width(width, 1).expect("the layers were checked");
                    read = super::add(graph, layer, read, [width, next], 1);
                    width = next;
                }
                let ranks: Vec<i64> = ranks.iter().map(|rank| *rank as i64).collect();
                let ranks = graph.ints_of(&[self.edges.nodes.len(), n, n], &ranks);
                let of_graph = graph.node("Gather", &[&ranks, &id], vec![attribute("axis", 0)]);
                let ranks = graph.node("GatherND", &[&of_graph, &own], vec![attribute("batch_dims", 1)]);
                let scores = graph.node("GatherElements", &[&read, &ranks], vec![attribute("axis", 1)]);
                let there = graph.node("Cast", &[&ranks], vec![attribute("to", BOOL as i64)]);
                let absent = graph.floats(&[], &[ABSENT]);
                let scores = graph.node("Where", &[&there, &scores, &absent], vec![]);
                let wait = graph.columns(&read, 0, 1);
                graph.node("Concat", &[&scores, &wait], vec![attribute("axis", 1)])
            }
        };
        let nan = graph.floats(&[], &[f32::NAN]);
        graph.node("Where", &[&is_there, &scores, &nan], vec![])
    }
}

impl Rows {
    fn new(graph: &mut Graph, edges: &Edges, n_nodes: usize, id: &str) -> Self {
        let (n_graphs, n_slots) = (edges.nodes.len(), edges.n_slots());
        let n_all = n_graphs * n_nodes;
        let mut sources = vec![0i64; n_all * n_slots];
        let mut absent = vec![ABSENT; n_all * n_slots];
        let mut features = vec![0.0f32; n_all * n_slots * edges.width];
        for node in 0..n_all {
            for (slot, edge) in (edges.starts[node]..edges.starts[node + 1]).enumerate() {
                let at = node * n_slots + slot;
                sources[at] = edges.sources[edge] as i64;
                absent[at] = 0.0;
                let own = &edges.features[edge * edges.width..(edge + 1) * edges.width];
                features[at * edges.width..(at + 1) * edges.width].copy_from_slice(own);
            }
        }
        let there = edges.nodes.iter().flat_map(|own| (0..n_nodes).map(move |node| f32::from(u8::from(node < *own))));
        let there: Vec<f32> = there.collect();
        let counts: Vec<f32> = edges.nodes.iter().map(|own| *own as f32).collect();
        let slots = [n_graphs, n_nodes, n_slots];
        let sources = graph.ints_of(&[slots[0], slots[1], slots[2], 1], &sources);
        let absent = graph.floats(&[slots[0], slots[1], slots[2], 1], &absent);
        let nodes = graph.floats(&[n_graphs, n_nodes, 1], &there);
        let count = graph.floats(&[n_graphs, 1, 1], &counts);
        let features = (edges.width > 0).then(|| graph.floats(&[slots[0], slots[1], slots[2], edges.width], &features));
        let mut of_rows = |table: &str| graph.node("Gather", &[table, id], vec![attribute("axis", 0)]);
        Self {
            sources: of_rows(&sources),
            absent_slots: of_rows(&absent),
            nodes: of_rows(&nodes),
            count: of_rows(&count),
            features: features.map(|features| of_rows(&features)),
        }
    }
}

impl Attention {
    fn add_to(&self, graph: &mut Graph, x: &str, rows: &Rows) -> String {
        let (heads, columns, values) = (self.heads as i64, self.attention.len(), self.value.outputs() as i64);
        let of_sources = |graph: &mut Graph, of_nodes: &str| {
            graph.node("GatherND", &[of_nodes, &rows.sources], vec![attribute("batch_dims", 1)])
        };
        let source = affine(graph, x, &self.source);
        let source = of_sources(graph, &source);
        let destination = affine(graph, x, &self.destination);
        let axis = graph.ints(&[2]);
        let destination = graph.node("Unsqueeze", &[&destination, &axis], vec![]);
        let mut sum = graph.node("Add", &[&source, &destination], vec![]);
        if let Some(features) = &rows.features {
            let weight = graph.floats(&[self.edge.len() / columns, columns], &self.edge);
            let term = graph.node("MatMul", &[features, &weight], vec![]);
            sum = graph.node("Add", &[&sum, &term], vec![]);
        }
        let leaky = graph.node("LeakyRelu", &[&sum], vec![float_attribute("alpha", self.slope)]);
        let attention = graph.floats(&[columns], &self.attention);
        let products = graph.node("Mul", &[&leaky, &attention], vec![]);
        let channels = columns as i64 / heads;
        let products = reshaped(graph, &products, &[0, 0, 0, heads, channels]);
        let last = graph.ints(&[4]);
        let scores = graph.node("ReduceSum", &[&products, &last], vec![attribute("keepdims", 0)]);
        let scores = graph.node("Add", &[&scores, &rows.absent_slots], vec![]);
        // `[batch, n_nodes, n_slots, heads]`
        let weights = graph.node("Softmax", &[&scores], vec![attribute("axis", 2)]);
        let weights = graph.node("Unsqueeze", &[&weights, &last], vec![]);
        let value = affine(graph, x, &self.value);
        let value = of_sources(graph, &value);
        let value = reshaped(graph, &value, &[0, 0, 0, heads, values / heads]);
        let weighted = graph.node("Mul", &[&value, &weights], vec![]);
        let y = graph.node("ReduceSum", &[&weighted, &axis], vec![attribute("keepdims", 0)]);
        let mut y = match self.concat {
            true => reshaped(graph, &y, &[0, 0, values]),
            false => {
                let axes = vec![ints_attribute("axes", &[2]), attribute("keepdims", 0)];
                graph.node("ReduceMean", &[&y], axes)
            }
        };
        let bias = graph.floats(&[self.width()], &self.bias);
        y = graph.node("Add", &[&y, &bias], vec![]);
        match &self.residual {
            Residual::None => {}
            Residual::Same => y = graph.node("Add", &[&y, x], vec![]),
            Residual::Projected(weight) => {
                let weight = graph.floats(&[self.inputs(), self.width()], weight);
                let projected = graph.node("MatMul", &[x, &weight], vec![]);
                y = graph.node("Add", &[&y, &projected], vec![]);
            }
        }
        if let Some(norm) = &self.norm {
            y = norm.add_to(graph, &y, rows);
        }
        match self.activation {
            Some(function) => add_function(graph, &y, function),
            None => y,
        }
    }
}

impl Norm {
    fn add_to(&self, graph: &mut Graph, x: &str, rows: &Rows) -> String {
        let width = self.scale.len();
        let (scale, shift) = (graph.floats(&[width], &self.scale), graph.floats(&[width], &self.shift));
        if self.mean_scale.is_empty() {
            let attributes = vec![attribute("axis", -1), float_attribute("epsilon", EPSILON)];
            return graph.node("LayerNormalization", &[x, &scale, &shift], attributes);
        }
        let axis = graph.ints(&[1]);
        let mean_of = |graph: &mut Graph, x: &str| {
            let there = graph.node("Mul", &[x, &rows.nodes], vec![]);
            let sum = graph.node("ReduceSum", &[&there, &axis], vec![attribute("keepdims", 1)]);
            graph.node("Div", &[&sum, &rows.count], vec![])
        };
        let mean = mean_of(graph, x);
        let mean_scale = graph.floats(&[width], &self.mean_scale);
        let mean = graph.node("Mul", &[&mean, &mean_scale], vec![]);
        let centered = graph.node("Sub", &[x, &mean], vec![]);
        let square = graph.node("Mul", &[&centered, &centered], vec![]);
        let variance = mean_of(graph, &square);
        let epsilon = graph.floats(&[], &[EPSILON]);
        let variance = graph.node("Add", &[&variance, &epsilon], vec![]);
        let root = graph.node("Sqrt", &[&variance], vec![]);
        let normal = graph.node("Div", &[&centered, &root], vec![]);
        let scaled = graph.node("Mul", &[&normal, &scale], vec![]);
        graph.node("Add", &[&scaled, &shift], vec![])
    }
}

pub(super) fn add_function(graph: &mut Graph, x: &str, function: Function) -> String {
    match function {
        Function::Tanh => graph.node("Tanh", &[x], vec![]),
        Function::Relu => graph.node("Relu", &[x], vec![]),
        Function::LeakyRelu(slope) => graph.node("LeakyRelu", &[x], vec![float_attribute("alpha", slope)]),
        Function::Elu => graph.node("Elu", &[x], vec![float_attribute("alpha", 1.0)]),
    }
}

fn affine(graph: &mut Graph, x: &str, affine: &Affine) -> String {
    let outputs = affine.outputs();
    let weight = graph.floats(&[affine.weight.len() / outputs, outputs], &affine.weight);
    let bias = graph.floats(&[outputs], &affine.bias);
    let y = graph.node("MatMul", &[x, &weight], vec![]);
    graph.node("Add", &[&y, &bias], vec![])
}

fn reshaped(graph: &mut Graph, x: &str, shape: &[i64]) -> String {
    let shape = graph.ints(shape);
    graph.node("Reshape", &[x, &shape], vec![])
}

/// [`ABSENT`] instead of the scores of padded nodes.
fn masked(graph: &mut Graph, scores: &str, nodes: &str) -> String {
    let there = graph.node("Cast", &[nodes], vec![attribute("to", BOOL as i64)]);
    let absent = graph.floats(&[], &[ABSENT]);
    graph.node("Where", &[&there, scores, &absent], vec![])
}
