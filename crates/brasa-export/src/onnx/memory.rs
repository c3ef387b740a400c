//! Layers that remember in ONNX.

use super::{Graph, attribute};
use crate::{Affine, Cell, Memory};

impl Graph {
    /// The next `n` columns of what was remembered before the step.
    fn recall(&mut self, n: usize) -> String {
        let first = self.n_remembered;
        self.n_remembered += n;
        self.columns("state", first, first + n)
    }

    fn affine(&mut self, x: &str, affine: &Affine) -> String {
        let n = affine.bias.len();
        let (weight, bias) =
            (self.floats(&[affine.weight.len() / n, n], &affine.weight), self.floats(&[n], &affine.bias));
        let product = self.node("MatMul", &[x, &weight], vec![]);
        self.node("Add", &[&product, &bias], vec![])
    }

    /// Adds the output `next_state`. Rows whose observation is unknown remember what they did.
    pub(super) fn add_next_state(&mut self, is_unknown: &str) {
        let parts: Vec<String> = std::mem::take(&mut self.remembered);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let all = self.node("Concat", &parts, vec![attribute("axis", -1)]);
        self.node_to("next_state", "Where", &[is_unknown, "state", &all], vec![]);
    }
}

impl Memory {
    /// Adds the layer on `x`, with `width` columns; the name of its result.
    pub(super) fn add_to(&self, graph: &mut Graph, x: &str, width: usize) -> String {
        let n = self.state_width(width);
        match self {
            Self::Window { .. } if n == 0 => x.to_owned(),
            Self::Window { .. } => {
                let before = graph.recall(n);
                let rows = graph.node("Concat", &[&before, x], vec![attribute("axis", -1)]);
                let after = graph.columns(&rows, width, width + n);
                graph.remembered.push(after);
                rows
            }
            Self::Recurrent { cell, input, output } => {
                let cells = output.bias.len() / cell.n_gates();
                let before = graph.recall(n);
                let h = graph.columns(&before, 0, cells);
                let (from_x, from_h) = (graph.affine(x, input), graph.affine(&h, output));
                let gate = |graph: &mut Graph, of: &str, i: usize| graph.columns(of, i * cells, (i + 1) * cells);
                match cell {
                    Cell::Lstm => {
                        let sums = graph.node("Add", &[&from_x, &from_h], vec![]);
                        let [i, f, g, o] = ["Sigmoid", "Sigmoid", "Tanh", "Sigmoid"];
                        let [i, f, g, o] = [(0, i), (1, f), (2, g), (3, o)].map(|(place, function)| {
                            let sum = gate(graph, &sums, place);
                            graph.node(function, &[&sum], vec![])
                        });
                        let c = graph.columns(&before, cells, 2 * cells);
                        let kept = graph.node("Mul", &[&f, &c], vec![]);
                        let added = graph.node("Mul", &[&i, &g], vec![]);
                        let memory = graph.node("Add", &[&kept, &added], vec![]);
                        let shown = graph.node("Tanh", &[&memory], vec![]);
                        let h = graph.node("Mul", &[&o, &shown], vec![]);
                        graph.remembered.extend([h.clone(), memory]);
                        h
                    }
                    Cell::Gru => {
                        let [r, z] = [0, 1].map(|place| {
                            let [a, b] = [&from_x, &from_h].map(|of| gate(graph, of, place));
                            let sum = graph.node("Add", &[&a, &b], vec![]);
                            graph.node("Sigmoid", &[&sum], vec![])
                        });
                        let [n_x, n_h] = [&from_x, &from_h].map(|of| gate(graph, of, 2));
                        let reset = graph.node("Mul", &[&r, &n_h], vec![]);
                        let sum = graph.node("Add", &[&n_x, &reset], vec![]);
                        let candidate = graph.node("Tanh", &[&sum], vec![]);
                        let change = graph.node("Sub", &[&h, &candidate], vec![]);
                        let change = graph.node("Mul", &[&z, &change], vec![]);
                        let h = graph.node("Add", &[&candidate, &change], vec![]);
                        graph.remembered.push(h.clone());
                        h
                    }
                }
            }
        }
    }
}
