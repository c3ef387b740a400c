//! What callers can get wrong.

use brasa_core::env::InvalidField;
use thiserror::Error;

/// A graph, table, layer or policy that cannot be built.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GatError {
    /// A field outside its rule.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// An edge of a node that is not there.
    #[error("edge {edge} goes from node {source_node} to node {destination}, but there are only {n_nodes} nodes")]
    UnknownNode {
        /// Index of the edge.
        edge: usize,
        /// Where it begins.
        source_node: usize,
        /// Where it ends.
        destination: usize,
        /// Nodes that there are.
        n_nodes: usize,
    },
    /// Two edges between the same nodes in the same direction.
    #[error("edges {first} and {second} both go from node {source_node} to node {destination}")]
    RepeatedEdge {
        /// Index of the first.
        first: usize,
        /// Index of the second.
        second: usize,
        /// Where both begin.
        source_node: usize,
        /// Where both end.
        destination: usize,
    },
    /// A graph that does not fit to the others of its table, or a table that does not fit to its network.
    #[error("{0}")]
    Mismatch(String),
}
