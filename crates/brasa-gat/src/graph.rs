//! One graph on the host.

use brasa_core::env::{InvalidField, field};
use std::collections::HashMap;

use crate::GatError;

/// Nodes and directed edges, with optional edge features; node features are part of the observations.
///
/// An undirected graph has each edge in both directions.
///
/// ```
/// use brasa_gat::{GatError, Graph};
///
/// // Three rooms in a row. Each door leads in both directions and has its width in m.
/// let rooms = Graph::from_edges(3, &[(0, 1, [1.2]), (1, 0, [1.2]), (1, 2, [0.9]), (2, 1, [0.9])])?;
/// assert_eq!(rooms.neighbors(1).collect::<Vec<_>>(), [0, 2]);
/// assert_eq!(rooms.edge_features(), [1.2, 1.2, 0.9, 0.9]);
/// # Ok::<(), GatError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    n_nodes: usize,
    edges: Vec<[usize; 2]>,
    edge_width: usize,
    edge_features: Vec<f32>,
}

/// Edges for attention: sorted by destination and source, with one self-loop per node.
///
/// ```
/// use brasa_gat::{Attended, GatError, Graph};
///
/// let Attended { edges, features } = Graph::from_edges(2, &[(0, 1, [4.5])])?.attended();
/// // Each node has a self-loop. Its features are the mean over the edges that end in the node.
/// assert_eq!(edges, [[0, 0], [0, 1], [1, 1]]);
/// assert_eq!(features, [0.0, 4.5, 4.5]);
/// # Ok::<(), GatError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Attended {
    /// `[source, destination]` of each edge.
    pub edges: Vec<[usize; 2]>,
    /// `[n_edges, edge_width]`, row-major; a self-loop has the mean over the edges that end in its node, or 0 without
    /// any.
    pub features: Vec<f32>,
}

impl Graph {
    /// A graph of `[source, destination]` edges without features.
    ///
    /// # Errors
    /// [`GatError`] if there is no node, a node of an edge does not exist, or an edge is duplicated.
    pub fn new(n_nodes: usize, edges: Vec<[usize; 2]>) -> Result<Self, GatError> {
        field::at_least_one("n_nodes", n_nodes as u64)?;
        let mut seen = HashMap::with_capacity(edges.len());
        for (index, &[source, destination]) in edges.iter().enumerate() {
            if source.max(destination) >= n_nodes {
                return Err(GatError::UnknownNode { edge: index, source_node: source, destination, n_nodes });
            }
            // Edge lists count both, a matrix counts one: results would depend on the aggregation.
            if let Some(first) = seen.insert([source, destination], index) {
                return Err(GatError::RepeatedEdge { first, second: index, source_node: source, destination });
            }
        }
        Ok(Self { n_nodes, edges, edge_width: 0, edge_features: Vec::new() })
    }

    /// A graph of edges `(source, destination, features)`, each with `K` features.
    ///
    /// # Errors
    /// As [`Graph::new`] and [`Graph::with_edge_features`].
    pub fn from_edges<const K: usize>(n_nodes: usize, edges: &[(usize, usize, [f32; K])]) -> Result<Self, GatError> {
        let ends = edges.iter().map(|(source, destination, _)| [*source, *destination]).collect();
        let features = edges.iter().flat_map(|(_, _, features)| *features).collect();
        Self::new(n_nodes, ends)?.with_edge_features(K, features)
    }

    /// The same graph with `[n_edges, width]` edge features, row-major.
    ///
    /// # Errors
    /// [`GatError`] if their number does not fit or one is not finite.
    pub fn with_edge_features(mut self, width: usize, features: Vec<f32>) -> Result<Self, GatError> {
        if features.len() != self.edges.len() * width {
            let value = format!("{} numbers for {} edges and {width} features", features.len(), self.edges.len());
            let rule = "must have one row per edge";
            return Err(GatError::Field(InvalidField::new("edge_features", rule, value)));
        }
        if let Some(index) = features.iter().position(|feature| !feature.is_finite()) {
            let value = format!("{} for edge {}", features[index], index / width);
            return Err(GatError::Field(InvalidField::new("edge_features", "must be finite", value)));
        }
        self.edge_width = width;
        self.edge_features = features;
        Ok(self)
    }

    /// Number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.n_nodes
    }

    /// `[source, destination]` of each edge, in the given order.
    pub fn edges(&self) -> &[[usize; 2]] {
        &self.edges
    }

    /// Features per edge.
    pub fn edge_width(&self) -> usize {
        self.edge_width
    }

    /// `[n_edges, edge_width]` edge features, row-major.
    pub fn edge_features(&self) -> &[f32] {
        &self.edge_features
    }

    /// The destinations of the edges from `node`, in the order of the edges, without the node itself.
    pub fn neighbors(&self, node: usize) -> impl Iterator<Item = usize> {
        self.edges.iter().filter(move |edge| edge[0] == node && edge[1] != node).map(|edge| edge[1])
    }

    /// The edges for attention: existing self-loops are replaced by one self-loop per node.
    pub fn attended(&self) -> Attended {
        let width = self.edge_width;
        let feature = |edge: usize| self.edge_features[edge * width..(edge + 1) * width].iter();
        let mut means = vec![0.0f64; self.n_nodes * width];
        let mut counts = vec![0usize; self.n_nodes];
        let between: Vec<usize> = (0..self.edges.len()).filter(|e| self.edges[*e][0] != self.edges[*e][1]).collect();
        for &edge in &between {
            let node = self.edges[edge][1];
            counts[node] += 1;
            let sums = &mut means[node * width..(node + 1) * width];
            sums.iter_mut().zip(feature(edge)).for_each(|(sum, x)| *sum += f64::from(*x));
        }
        // The source of the features: the edge itself, or the mean of a node.
        let loops = (0..self.n_nodes).map(|node| ([node, node], None));
        let mut all: Vec<_> = between.iter().map(|edge| (self.edges[*edge], Some(*edge))).chain(loops).collect();
        all.sort_unstable_by_key(|(edge, _)| [edge[1], edge[0]]);
        let mut features = Vec::with_capacity(all.len() * width);
        for &([node, _], from) in &all {
            match from {
                Some(edge) => features.extend(feature(edge)),
                None => {
                    let count = counts[node].max(1) as f64;
                    features.extend(means[node * width..(node + 1) * width].iter().map(|sum| (sum / count) as f32));
                }
            }
        }
        Attended { edges: all.into_iter().map(|(edge, _)| edge).collect(), features }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_replaced_by_means_of_what_comes_in() {
        let graph = Graph::new(3, vec![[2, 0], [1, 1], [1, 0], [0, 1]]).expect("valid");
        let graph = graph.with_edge_features(1, vec![4.0, 100.0, 2.0, 7.0]).expect("valid");
        let attended = graph.attended();
        assert_eq!(attended.edges, [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 2]]);
        assert_eq!(attended.features, [3.0, 2.0, 4.0, 7.0, 7.0, 0.0]);
        assert_eq!(graph.neighbors(1).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn broken_graphs_are_named() {
        let message = |edges| Graph::new(2, edges).expect_err("broken").to_string();
        assert_eq!(message(vec![[0, 1], [1, 0], [0, 1]]), "edges 0 and 2 both go from node 0 to node 1");
        assert_eq!(message(vec![[0, 2]]), "edge 0 goes from node 0 to node 2, but there are only 2 nodes");
        assert_eq!(Graph::new(0, vec![]).expect_err("broken").to_string(), "`n_nodes` must be at least 1, got 0");
        let two = || Graph::new(2, vec![[0, 1]]).expect("valid");
        assert!(two().with_edge_features(2, vec![0.0]).is_err());
        assert!(two().with_edge_features(1, vec![f32::NAN]).is_err());
    }
}
