//! A building as a graph with travel times between all pairs of nodes.

use brasa_floorplan::{Graph, Search};

use crate::{Layout, Timing};

/// The graph of a [`Layout`] with clear-air travel times.
///
/// ```
/// use brasa_evacuation::{Layout, Timing, Topology};
///
/// let office = Layout::office();
/// let topology = Topology::new(&office, &Timing::hops());
/// let (room, exit) = (office.rooms().next().expect("a room"), office.exits().next().expect("an exit"));
/// // As many ticks as ways.
/// assert!(topology.distance(room, exit) >= 1.0);
/// assert_eq!(topology.distance(room, exit), topology.distances_from(exit)[room]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    graph: Graph,
    /// `[n_nodes * n_nodes]`: shortest travel times in clear air, in the unit of [`Timing::travel`].
    distances: Vec<f64>,
}

impl Topology {
    /// The graph of `layout`, whose edges are valid.
    pub fn new(layout: &Layout, timing: &Timing) -> Self {
        let graph = layout.graph();
        let n = graph.n_nodes();
        let travel: Vec<f64> = layout.edges.iter().map(|edge| timing.travel(edge)).collect();
        let mut distances = vec![f64::INFINITY; n * n];
        let mut search = Search::default();
        for (source, times) in distances.chunks_exact_mut(n.max(1)).enumerate() {
            search.run(&graph, &[source], |edge, _| travel[edge], times, |_, _| {});
        }
        Self { graph, distances }
    }

    /// The graph without travel times.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.graph.n_nodes()
    }

    /// Neighbors of `node` and the edges that lead to them, by ascending node.
    pub fn neighbors(&self, node: usize) -> impl ExactSizeIterator<Item = (usize, usize)> + '_ {
        self.graph.neighbors(node)
    }

    /// The edge from `a` to `b`, if they are neighbors.
    pub fn edge(&self, a: usize, b: usize) -> Option<usize> {
        self.graph.edge(a, b)
    }

    /// Shortest travel time from `a` to `b` in clear air, in the unit of [`Timing::travel`].
    pub fn distance(&self, a: usize, b: usize) -> f64 {
        self.distances[a * self.n_nodes() + b]
    }

    /// Shortest travel times from `a` to every node in clear air, in the unit of [`Timing::travel`].
    pub fn distances_from(&self, a: usize) -> &[f64] {
        &self.distances[a * self.n_nodes()..(a + 1) * self.n_nodes()]
    }

    /// Shortest times from the nearest of `sources` to every node, as [`Graph::field`].
    ///
    /// # Panics
    /// If `out` has not one entry per node.
    pub fn field(&self, sources: &[usize], cost: impl Fn(usize, usize) -> f64, out: &mut [f64]) {
        self.graph.field(sources, cost, out);
    }
}
