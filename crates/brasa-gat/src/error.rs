//! Errors of graphs and policies.

use brasa_core::env::InvalidField;
use thiserror::Error;

/// A graph, table, layer or policy that cannot be built.
///
/// ```
/// use brasa_gat::{GatError, Graph};
///
/// let error = Graph::new(2, vec![[0, 1], [1, 2]]).unwrap_err();
/// assert!(matches!(error, GatError::UnknownNode { edge: 1, .. }));
/// assert_eq!(error.to_string(), "edge 1 goes from node 1 to node 2, but there are only 2 nodes");
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GatError {
    /// An invalid setting.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// An edge of a node that does not exist.
    #[error("edge {edge} goes from node {source_node} to node {destination}, but there are only {n_nodes} nodes")]
    UnknownNode {
        /// Index of the edge.
        edge: usize,
        /// Its source.
        source_node: usize,
        /// Its destination.
        destination: usize,
        /// Number of nodes.
        n_nodes: usize,
    },
    /// Two edges between the same nodes in the same direction.
    #[error("edges {first} and {second} both go from node {source_node} to node {destination}")]
    RepeatedEdge {
        /// Index of the first.
        first: usize,
        /// Index of the second.
        second: usize,
        /// The source of both.
        source_node: usize,
        /// The destination of both.
        destination: usize,
    },
    /// A graph that does not fit the others of its table, or a table that does not fit its network.
    #[error("{0}")]
    Mismatch(String),
}
