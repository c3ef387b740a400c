//! Structure of observations and actions that a scenario declares for networks, by type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Values of different types, one of each, such as the graphs that observations refer to or the pairs that actions
/// consist of.
///
/// A scenario inserts values and a network reads those that it needs; neither depends on the other.
///
/// ```
/// use brasa_env::Extensions;
///
/// struct Rooms(usize);
/// let extensions = Extensions::default().with(Rooms(6));
/// assert_eq!(extensions.get::<Rooms>().map(|rooms| rooms.0), Some(6));
/// assert!(extensions.get::<String>().is_none());
/// ```
#[derive(Clone, Default)]
pub struct Extensions(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Extensions {
    /// Adds `value`, which replaces a value of the same type.
    pub fn with<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
        self
    }

    /// The value of type `T`.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

impl std::fmt::Debug for Extensions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Extensions({} values)", self.0.len())
    }
}

/// Layout of observations and actions over pairs of two kinds of items.
///
/// A row has `context` numbers, then `first_features` blocks of one number per item of the first kind, then
/// `second_features` blocks of one number per item of the second kind. Action `(i * n_second + j) * levels + level` is
/// the pair of item `i` of the first kind and item `j` of the second.
///
/// ```
/// use brasa_env::PairSpec;
///
/// // The hour, then 2 features of each of 3 responders, then 1 feature of each of 5 tasks.
/// let pairs =
///     PairSpec { context: 1, n_first: 3, first_features: 2, n_second: 5, second_features: 1, levels: 1 };
/// assert_eq!(pairs.width(), 1 + 3 * 2 + 5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairSpec {
    /// Numbers that belong to no item.
    pub context: usize,
    /// Items of the first kind.
    pub n_first: usize,
    /// Features per item of the first kind.
    pub first_features: usize,
    /// Items of the second kind.
    pub n_second: usize,
    /// Features per item of the second kind.
    pub second_features: usize,
    /// Actions per pair.
    pub levels: usize,
}

impl PairSpec {
    /// Numbers of a row.
    pub fn width(&self) -> usize {
        self.context + self.n_first * self.first_features + self.n_second * self.second_features
    }
}

/// Layout of a row of observations over graphs: graph index, own node, features of the agent, features of
/// nodes (row-major by node), privileged node features.
///
/// ```
/// use brasa_env::GraphSpec;
///
/// let spec = GraphSpec { nodes: 4, node_features: 3, privileged_features: 1, agent_features: 2 };
/// assert_eq!(spec.width(), 2 + 2 + 4 * (3 + 1));
/// // To each of the 4 nodes, or to wait.
/// assert_eq!(spec.options(), 5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphSpec {
    /// Nodes per padded graph.
    pub nodes: usize,
    /// Features per node for actor and critic.
    pub node_features: usize,
    /// Additional features per node for a critic with its own trunk; the actor never reads them.
    pub privileged_features: usize,
    /// Features of the agent.
    pub agent_features: usize,
}

impl GraphSpec {
    /// Numbers per row.
    pub fn width(&self) -> usize {
        2 + self.agent_features + self.nodes * (self.node_features + self.privileged_features)
    }

    /// Actions per row: every node, then waiting.
    pub fn options(&self) -> usize {
        self.nodes + 1
    }
}

/// The graphs that observations refer to by their index.
///
/// ```
/// use brasa_env::{Extensions, GraphEdges, GraphSpec, GraphWorld};
///
/// let spec = GraphSpec { nodes: 2, node_features: 1, privileged_features: 0, agent_features: 0 };
/// let corridor = GraphEdges::new(2, &[(0, 1, [4.5]), (1, 0, [4.5])]);
/// // A scenario returns the graphs in its extensions, and a network reads them.
/// let extensions = Extensions::default().with(GraphWorld { spec, graphs: vec![corridor] });
/// assert_eq!(extensions.get::<GraphWorld>().map(|world| world.graphs.len()), Some(1));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GraphWorld {
    /// Layout of a row.
    pub spec: GraphSpec,
    /// The graphs.
    pub graphs: Vec<GraphEdges>,
}

/// One graph as its edges.
///
/// ```
/// use brasa_env::GraphEdges;
///
/// // Three nodes in a row. Each edge has its length and a flag for stairs.
/// let graph = GraphEdges::new(3, &[(0, 1, [2.0, 0.0]), (1, 2, [5.0, 1.0])]);
/// assert_eq!(graph.ends, [[0, 1], [1, 2]]);
/// assert_eq!((graph.edge_width, &graph.features[2..]), (2, &[5.0, 1.0][..]));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GraphEdges {
    /// Number of nodes.
    pub n_nodes: usize,
    /// Source and destination of each directed edge.
    pub ends: Vec<[usize; 2]>,
    /// Features per edge.
    pub edge_width: usize,
    /// `[n_edges, edge_width]`, row-major.
    pub features: Vec<f32>,
}

impl GraphEdges {
    /// A graph of edges `(source, destination, features)`, each with `K` features.
    pub fn new<const K: usize>(n_nodes: usize, edges: &[(usize, usize, [f32; K])]) -> Self {
        Self {
            n_nodes,
            ends: edges.iter().map(|(source, destination, _)| [*source, *destination]).collect(),
            edge_width: K,
            features: edges.iter().flat_map(|(_, _, features)| *features).collect(),
        }
    }
}
