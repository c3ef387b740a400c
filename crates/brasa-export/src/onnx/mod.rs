//! Exported policies as ONNX: a model of protocol buffers, IR version 8, operators of version 17.

mod graph;
mod image;
mod memory;

use crate::policy::inner_widths;
use crate::{ExportError, ExportedPolicy, Groups, Layer, NO_ACTION, high_and_low};

const IR_VERSION: u64 = 8;
const OPSET: u64 = 17;
/// Types of elements.
const FLOAT: u64 = 1;
const INT64: u64 = 7;
const BOOL: u64 = 9;
/// The name of the first dimension, which may have any size.
const BATCH: &str = "batch";

/// A protocol buffer that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn int(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    fn float(mut self, field: u64, value: f32) -> Self {
        self.varint(field << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    fn message(self, field: u64, value: Message) -> Self {
        self.bytes(field, &value.0)
    }
}

/// A `GraphProto` that is being written.
#[derive(Default)]
struct Graph {
    nodes: Message,
    constants: Message,
    n_names: usize,
    /// What is remembered after the step, layer by layer, and its columns.
    remembered: Vec<String>,
    n_remembered: usize,
}

impl Graph {
    fn name(&mut self, of: &str) -> String {
        self.n_names += 1;
        format!("{of}_{}", self.n_names)
    }

    /// A constant of numbers.
    fn floats(&mut self, dims: &[usize], values: &[f32]) -> String {
        self.constant(dims, FLOAT, values.iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    /// A list of indices.
    fn ints(&mut self, values: &[i64]) -> String {
        self.ints_of(&[values.len()], values)
    }

    /// A constant of indices.
    fn ints_of(&mut self, dims: &[usize], values: &[i64]) -> String {
        self.constant(dims, INT64, values.iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    fn constant(&mut self, dims: &[usize], kind: u64, raw: Vec<u8>) -> String {
        let name = self.name("constant");
        let tensor = dims.iter().fold(Message::default(), |tensor, dim| tensor.int(1, *dim as u64));
        let tensor = tensor.int(2, kind).text(8, &name).bytes(9, &raw);
        self.constants = std::mem::take(&mut self.constants).message(5, tensor);
        name
    }

    /// The columns from `begin` to `end` of the last dimension of `x`.
    fn columns(&mut self, x: &str, begin: usize, end: usize) -> String {
        let [begin, end, axis] = [begin as i64, end as i64, -1].map(|index| self.ints(&[index]));
        self.node("Slice", &[x, &begin, &end, &axis], vec![])
    }

    /// An operator with its inputs and attributes; the name of its result.
    fn node(&mut self, operator: &str, inputs: &[&str], attributes: Vec<Message>) -> String {
        let output = self.name(&operator.to_ascii_lowercase());
        self.node_to(&output, operator, inputs, attributes);
        output
    }

    /// The same with a result of a given name.
    fn node_to(&mut self, output: &str, operator: &str, inputs: &[&str], attributes: Vec<Message>) {
        let node = inputs.iter().fold(Message::default(), |node, input| node.text(1, input));
        let node = node.text(2, output).text(4, operator);
        let node = attributes.into_iter().fold(node, |node, attribute| node.message(5, attribute));
        self.nodes = std::mem::take(&mut self.nodes).message(1, node);
    }
}

/// An attribute of a node: an integer.
fn attribute(name: &str, value: i64) -> Message {
    Message::default().text(1, name).int(3, value as u64).int(20, 2)
}

/// An attribute of a node: a number.
fn float_attribute(name: &str, value: f32) -> Message {
    Message::default().text(1, name).float(2, value).int(20, 1)
}

/// An attribute of a node: a list of integers.
fn ints_attribute(name: &str, values: &[i64]) -> Message {
    let list = values.iter().fold(Message::default().text(1, name), |list, value| list.int(8, *value as u64));
    list.int(20, 7)
}

/// An input or output of the model: its first dimension has any size.
fn value(name: &str, kind: u64, dims: &[usize]) -> Message {
    let batch = Message::default().message(1, Message::default().text(2, BATCH));
    let shape = dims.iter().fold(batch, |shape, dim| shape.message(1, Message::default().int(1, *dim as u64)));
    let tensor = Message::default().int(1, kind).message(2, shape);
    Message::default().text(1, name).message(2, Message::default().message(1, tensor))
}

impl ExportedPolicy {
    /// The bytes of an ONNX model.
    ///
    /// Inputs: `obs` (float, `[batch, obs_width]`) and, if environments say which actions are legal, `mask` (float, `[batch, n_actions]`,
    /// 0 for illegal ones). Outputs: `action` (float `[batch, action_width]`, or int64 for choices alone) and, for choices, `scores` (float,
    /// `[batch, n_actions]`): logits or action values, without the mask. With several agents the second dimension of each counts
    /// them. A policy that remembers has the input `state` and the output `next_state` too (float, `[batch, state_width]`): 0 where an episode
    /// begins, then what the model returned. Invalid input gives NaN and -1, as in [`ExportedPolicy::act`]. `metadata_props` have
    /// [`About`](crate::About) under `brasa.run`, `brasa.step`, `brasa.config`, `brasa.version`, `brasa.obs` and `brasa.actions`.
    ///
    /// # Errors
    /// [`ExportError::Layer`] if the layers do not fit together.
    pub fn to_onnx(&self) -> Result<Vec<u8>, ExportError> {
        let widths = self.widths()?;
        let mut graph = Graph::default();
        let mut x = "obs".to_owned();
        for (layer, operation) in self.layers.iter().enumerate() {
            x = add(&mut graph, operation, x, [widths[layer], widths[layer + 1]], self.n_agents);
        }
        let with_agents = |width: usize| match self.n_agents {
            1 => vec![width],
            n => vec![n, width],
        };
        let mut inputs = vec![value("obs", FLOAT, &with_agents(self.obs_width))];
        let mut outputs = Vec::new();
        // Operators of some programs drop NaN: observations are checked by themselves.
        let is_nan = count_of(&mut graph, "obs", |graph, x| graph.node("IsNaN", &[x], vec![]));
        let zero = graph.floats(&[], &[0.0]);
        let is_unknown = graph.node("Greater", &[&is_nan, &zero], vec![]);
        let nan = graph.floats(&[], &[f32::NAN]);
        let mut remembered = None;
        if graph.n_remembered > 0 {
            let dims = with_agents(graph.n_remembered);
            inputs.push(value("state", FLOAT, &dims));
            remembered = Some(value("next_state", FLOAT, &dims));
            graph.add_next_state(&is_unknown);
        }
        let (heads, n_actions) = (self.output.heads(), self.n_actions());
        let n_numbers = self.action_width() - heads.len();
        if heads.is_empty() {
            graph.node_to("action", "Where", &[&is_unknown, &nan, &x], vec![]);
            outputs.push(value("action", FLOAT, &with_agents(n_numbers)));
        } else {
            let all = graph.node("Where", &[&is_unknown, &nan, &x], vec![]);
            let scores = if n_numbers > 0 { graph.columns(&all, 0, n_actions) } else { all.clone() };
            graph.node_to("scores", "Identity", &[&scores], vec![]);
            if self.masked {
                inputs.push(value("mask", FLOAT, &with_agents(n_actions)));
            }
            let mut parts = add_choices(&mut graph, heads, self.masked);
            let kind = if n_numbers > 0 { FLOAT } else { INT64 };
            if n_numbers > 0 {
                let to_float = |part: &String| graph.node("Cast", &[part], vec![attribute("to", FLOAT as i64)]);
                parts = parts.iter().map(to_float).collect();
                parts.push(graph.columns(&all, n_actions, n_actions + n_numbers));
            }
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            graph.node_to("action", "Concat", &parts, vec![attribute("axis", -1)]);
            outputs.push(value("action", kind, &with_agents(heads.len() + n_numbers)));
            outputs.push(value("scores", FLOAT, &with_agents(n_actions)));
        }
        outputs.extend(remembered);
        let Graph { nodes, constants, .. } = graph;
        let mut all = Message(nodes.0).text(2, "policy");
        all.0.extend(constants.0);
        let all = inputs.into_iter().fold(all, |graph, input| graph.message(11, input));
        let all = outputs.into_iter().fold(all, |graph, output| graph.message(12, output));
        let about = "greedy actions of the environment for raw observations";
        let model = Message::default()
            .int(1, IR_VERSION)
            .text(2, "brasa")
            .text(3, env!("CARGO_PKG_VERSION"))
            .text(6, about)
            .message(7, all)
            .message(8, Message::default().text(1, "").int(2, OPSET));
        let model = self.about.entries().into_iter().fold(model, |model, (key, value)| {
            model.message(14, Message::default().text(1, &format!("brasa.{key}")).text(2, &value))
        });
        Ok(model.0)
    }
}

/// The choices of `heads` from `scores`, and `mask` where actions may be illegal: an index each.
fn add_choices(graph: &mut Graph, heads: &[usize], masked: bool) -> Vec<String> {
    let (zero, none) = (graph.floats(&[], &[0.0]), graph.ints_of(&[], &[NO_ACTION as i64]));
    let mut first = 0;
    let mut choices = Vec::new();
    for n in heads {
        let own = |graph: &mut Graph, x: &str| match heads.len() {
            1 => x.to_owned(),
            _ => graph.columns(x, first, first + n),
        };
        let mut scores = own(graph, "scores");
        let n_nan = count_of(graph, &scores, |graph, x| graph.node("IsNaN", &[x], vec![]));
        let mut is_wrong = graph.node("Greater", &[&n_nan, &zero], vec![]);
        if masked {
            let mask = own(graph, "mask");
            let n_nan = count_of(graph, &mask, |graph, mask| graph.node("IsNaN", &[mask], vec![]));
            let is_nan = graph.node("Greater", &[&n_nan, &zero], vec![]);
            let n_legal = count_of(graph, &mask, |graph, mask| graph.node("Greater", &[mask, &zero], vec![]));
            let is_stuck = graph.node("Equal", &[&n_legal, &zero], vec![]);
            is_wrong = graph.node("Or", &[&is_wrong, &is_nan], vec![]);
            is_wrong = graph.node("Or", &[&is_wrong, &is_stuck], vec![]);
            let is_legal = graph.node("Greater", &[&mask, &zero], vec![]);
            let lowest = graph.floats(&[], &[f32::NEG_INFINITY]);
            scores = graph.node("Where", &[&is_legal, &scores, &lowest], vec![]);
        }
        let best = graph.node("ArgMax", &[&scores], vec![attribute("axis", -1), attribute("keepdims", 1)]);
        choices.push(graph.node("Where", &[&is_wrong, &none, &best], vec![]));
        first += n;
    }
    choices
}

/// The number of columns of `x` for which `is` holds, `[..., 1]`.
fn count_of(graph: &mut Graph, x: &str, is: impl FnOnce(&mut Graph, &str) -> String) -> String {
    let flags = is(graph, x);
    let flags = graph.node("Cast", &[&flags], vec![attribute("to", FLOAT as i64)]);
    let last = graph.ints(&[-1]);
    graph.node("ReduceSum", &[&flags, &last], vec![attribute("keepdims", 1)])
}

/// Adds a layer on `x`; the name of its result.
fn add(graph: &mut Graph, layer: &Layer, x: String, [n, next]: [usize; 2], n_agents: usize) -> String {
    match layer {
        Layer::Normalize { mean, deviation, clip } => {
            // Numbers of 64 bits are not portable.
            let ([mean, mean_low], [deviation, _]) = (high_and_low(mean), high_and_low(deviation));
            let [mean, mean_low, deviation] = [mean, mean_low, deviation].map(|values| graph.floats(&[n], &values));
            let (low, high) = (graph.floats(&[], &[-clip]), graph.floats(&[], &[*clip]));
            let x = graph.node("Sub", &[&x, &mean], vec![]);
            let x = graph.node("Sub", &[&x, &mean_low], vec![]);
            let x = graph.node("Div", &[&x, &deviation], vec![]);
            graph.node("Clip", &[&x, &low, &high], vec![])
        }
        Layer::Scale { factor, offset } => {
            let [factor, offset] = [factor, offset].map(|values| graph.floats(&[values.len()], values));
            let x = graph.node("Mul", &[&x, &factor], vec![]);
            graph.node("Add", &[&x, &offset], vec![])
        }
        Layer::Clip { low, high } => {
            let (low, high) = (graph.floats(&[n], low), graph.floats(&[n], high));
            let x = graph.node("Max", &[&x, &low], vec![]);
            graph.node("Min", &[&x, &high], vec![])
        }
        Layer::Activation(function) => graph::add_function(graph, &x, *function),
        Layer::Graph(network) => network.add_to(graph, &x),
        Layer::Groups(groups) => add_groups(graph, groups, &x, n_agents),
        Layer::Memory(memory) => memory.add_to(graph, &x, n),
        Layer::Image(layer) => layer.add_to(graph, &x, n_agents),
        Layer::Residual(layers) => {
            let widths = inner_widths(layers, n, "a residual").expect("the layers were checked");
            let inner = layers.iter().zip(widths.windows(2));
            let inside = inner.fold(x.clone(), |x, (layer, of)| add(graph, layer, x, [of[0], of[1]], n_agents));
            graph.node("Add", &[&x, &inside], vec![])
        }
        Layer::Linear { weight, bias, .. } => {
            let x = match weight.len() == n * next {
                true => {
                    let weight = graph.floats(&[n, next], weight);
                    graph.node("MatMul", &[&x, &weight], vec![])
                }
                // `[batch, agents, 1, n]` by `[agents, n, next]`.
                false => {
                    let weight = graph.floats(&[n_agents, n, next], weight);
                    let axis = graph.ints(&[2]);
                    let rows = graph.node("Unsqueeze", &[&x, &axis], vec![]);
                    let product = graph.node("MatMul", &[&rows, &weight], vec![]);
                    graph.node("Squeeze", &[&product, &axis], vec![])
                }
            };
            let bias = match bias.len() == next {
                true => graph.floats(&[next], bias),
                false => graph.floats(&[n_agents, next], bias),
            };
            graph.node("Add", &[&x, &bias], vec![])
        }
    }
}

/// The columns of each group, `[batch, n_groups, width]`, and the layers on the last dimension. With several agents they are the second one.
fn add_groups(graph: &mut Graph, groups: &Groups, x: &str, n_agents: usize) -> String {
    let columns: Vec<i64> = groups.columns.iter().map(|column| *column as i64).collect();
    let columns = graph.ints_of(&[groups.n_groups(), groups.width], &columns);
    let mut y = graph.node("Gather", &[x, &columns], vec![attribute("axis", -1)]);
    let widths = groups.widths();
    for (layer, widths) in groups.layers.iter().zip(widths.windows(2)) {
        y = add(graph, layer, y, [widths[0], widths[1]], 1);
    }
    // 0 keeps a dimension, -1 is what is left.
    let shape: &[i64] = if n_agents == 1 { &[0, -1] } else { &[0, 0, -1] };
    let shape = graph.ints(shape);
    graph.node("Reshape", &[&y, &shape], vec![])
}
