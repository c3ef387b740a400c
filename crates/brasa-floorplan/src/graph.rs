//! Adjacency of nodes, and shortest paths.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Add;

use crate::Layout;

/// Nodes and edges with the neighbors of all nodes in one array.
///
/// ```
/// use brasa_floorplan::Graph;
///
/// // A path of three nodes, and the distances from its first node.
/// let (edges, lengths_m) = ([(0, 1), (1, 2)], [4.0, 2.5]);
/// let graph = Graph::new(3, edges.into_iter());
/// let mut distances = [0.0f64; 3];
/// graph.field(&[0], |edge, _| lengths_m[edge], &mut distances);
/// assert_eq!(distances, [0.0, 4.0, 6.5]);
/// assert_eq!(graph.edge(2, 1), Some(1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// `[n_nodes + 1]`: index of the first neighbor of each node in `neighbors`.
    first: Vec<usize>,
    /// Neighbors of each node, ascending.
    neighbors: Vec<u32>,
    /// The edge to the neighbor at the same index.
    edges: Vec<u32>,
}

impl Graph {
    /// The graph in which edge `n` joins the `n`th pair of nodes, in both directions.
    ///
    /// # Panics
    /// If a node of an edge is not below `n_nodes`.
    pub fn new(n_nodes: usize, edges: impl Iterator<Item = (usize, usize)>) -> Self {
        let mut lists: Vec<Vec<(u32, u32)>> = vec![Vec::new(); n_nodes];
        for (index, (a, b)) in edges.enumerate() {
            lists[a].push((b as u32, index as u32));
            lists[b].push((a as u32, index as u32));
        }
        lists.iter_mut().for_each(|list| list.sort_unstable());
        let mut first = vec![0];
        first.extend(lists.iter().scan(0, |sum, list| {
            *sum += list.len();
            Some(*sum)
        }));
        let (neighbors, edges) = lists.concat().into_iter().unzip();
        Self { first, neighbors, edges }
    }

    /// Number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.first.len() - 1
    }

    /// Neighbors of `node` and the edges that lead to them, by ascending node.
    pub fn neighbors(&self, node: usize) -> impl ExactSizeIterator<Item = (usize, usize)> + '_ {
        let range = self.first[node]..self.first[node + 1];
        self.neighbors[range.clone()]
            .iter()
            .zip(&self.edges[range])
            .map(|(node, edge)| (*node as usize, *edge as usize))
    }

    /// The edge from `a` to `b`, if they are neighbors.
    pub fn edge(&self, a: usize, b: usize) -> Option<usize> {
        let range = self.first[a]..self.first[a + 1];
        let place = self.neighbors[range.clone()].binary_search(&(b as u32)).ok()?;
        Some(self.edges[range.start + place] as usize)
    }

    /// Smallest costs from the nearest of `sources` to every node, where an edge into a node costs
    /// `cost(edge, node)`; an infinite cost closes the edge.
    ///
    /// The search goes outwards from the sources, so `node` is the end farther from them.
    ///
    /// # Panics
    /// If `out` has not one entry per node.
    pub fn field<T: Cost>(&self, sources: &[usize], cost: impl Fn(usize, usize) -> T, out: &mut [T]) {
        Search::default().run(self, sources, cost, out, |_, _| {});
    }
}

impl Layout {
    /// The places and ways as a graph.
    ///
    /// # Panics
    /// If an edge has an invalid node, which [`Layout::validate`] rejects.
    pub fn graph(&self) -> Graph {
        Graph::new(self.nodes.len(), self.edges.iter().map(|edge| (edge.a, edge.b)))
    }
}

/// The cost of a path: a number that is not negative and not NaN.
///
/// ```
/// use brasa_floorplan::{Cost, Graph};
///
/// /// Numbers of hops from node 0, in any precision.
/// fn hops<T: Cost>(graph: &Graph, one: T) -> Vec<T> {
///     let mut out = vec![T::INFINITY; graph.n_nodes()];
///     graph.field(&[0], |_, _| one, &mut out);
///     out
/// }
///
/// let graph = Graph::new(3, [(0, 1), (1, 2)].into_iter());
/// assert_eq!(hops(&graph, 1.0f32), [0.0, 1.0, 2.0]);
/// assert_eq!(hops(&graph, 1.0f64), [0.0, 1.0, 2.0]);
/// ```
pub trait Cost: Copy + PartialOrd + Add<Output = Self> {
    /// A node with its cost, ordered by cost first.
    type Entry: Copy + Ord;
    /// No cost.
    const ZERO: Self;
    /// More than the cost of any path.
    const INFINITY: Self;

    /// Packs a cost and a node.
    fn entry(self, node: usize) -> Self::Entry;

    /// Unpacks a cost and a node.
    fn split(entry: Self::Entry) -> (Self, usize);
}

/// Cost and node in one number: the order of non-negative floats is that of their bits.
macro_rules! impl_cost {
    ($float:ty, $bits:ty, $entry:ty) => {
        impl Cost for $float {
            type Entry = $entry;
            const ZERO: Self = 0.0;
            const INFINITY: Self = <$float>::INFINITY;

            fn entry(self, node: usize) -> $entry {
                <$entry>::from(self.to_bits()) << 32 | node as $entry
            }

            fn split(entry: $entry) -> (Self, usize) {
                (<$float>::from_bits((entry >> 32) as $bits), (entry & 0xffff_ffff) as usize)
            }
        }
    };
}

impl_cost!(f32, u32, u64);
impl_cost!(f64, u64, u128);

/// Reusable memory of Dijkstra's algorithm.
///
/// ```
/// use brasa_floorplan::{Graph, Search};
///
/// // A triangle whose direct way from 0 to 2 is long.
/// let (edges, lengths_m) = ([(0, 1), (1, 2), (0, 2)], [1.0, 1.0, 5.0]);
/// let graph = Graph::new(3, edges.into_iter());
/// let (mut distances, mut before) = ([0.0f32; 3], [0; 3]);
/// Search::default().run(&graph, &[0], |edge, _| lengths_m[edge], &mut distances, |node, last| before[node] = last);
/// assert_eq!((distances[2], before[2]), (2.0, 1));
/// ```
#[derive(Debug, Clone)]
pub struct Search<T: Cost> {
    open: BinaryHeap<Reverse<T::Entry>>,
}

impl<T: Cost> Default for Search<T> {
    fn default() -> Self {
        Self { open: BinaryHeap::new() }
    }
}

impl<T: Cost> Search<T> {
    /// As [`Graph::field`], and calls `closer(node, before)` whenever a cheaper path to a node is found; the last call
    /// has the predecessor on the shortest path.
    ///
    /// # Panics
    /// If `out` has not one entry per node.
    pub fn run(
        &mut self,
        graph: &Graph,
        sources: &[usize],
        cost: impl Fn(usize, usize) -> T,
        out: &mut [T],
        mut closer: impl FnMut(usize, usize),
    ) {
        assert_eq!(out.len(), graph.n_nodes(), "one cost per node");
        out.fill(T::INFINITY);
        self.open.clear();
        for source in sources {
            out[*source] = T::ZERO;
            self.open.push(Reverse(T::ZERO.entry(*source)));
        }
        while let Some(Reverse(entry)) = self.open.pop() {
            let (so_far, node) = T::split(entry);
            if so_far > out[node] {
                continue;
            }
            for (next, edge) in graph.neighbors(node) {
                let total = so_far + cost(edge, next);
                if total < out[next] {
                    out[next] = total;
                    closer(next, node);
                    self.open.push(Reverse(total.entry(next)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Smallest costs by relaxing every edge until nothing changes.
    fn relaxed(n: usize, edges: &[(usize, usize, u8)], source: usize) -> Vec<f64> {
        let mut out = vec![f64::INFINITY; n];
        out[source] = 0.0;
        for _ in 0..n {
            for (a, b, cost) in edges {
                out[*b] = out[*b].min(out[*a] + f64::from(*cost));
                out[*a] = out[*a].min(out[*b] + f64::from(*cost));
            }
        }
        out
    }

    proptest! {
        #[test]
        fn searches_find_the_least_costs(edges in prop::collection::vec((0usize..12, 0usize..12, 0u8..9), 0..30)) {
            let graph = Graph::new(12, edges.iter().map(|(a, b, _)| (*a, *b)));
            let (mut wide, mut narrow) = ([0.0f64; 12], [0.0f32; 12]);
            graph.field(&[3], |edge, _| f64::from(edges[edge].2), &mut wide);
            let mut before = [usize::MAX; 12];
            let cost = |edge: usize, _| f32::from(edges[edge].2);
            Search::default().run(&graph, &[3], cost, &mut narrow, |node, last| before[node] = last);
            prop_assert_eq!(wide.to_vec(), relaxed(12, &edges, 3));
            prop_assert_eq!(wide, narrow.map(f64::from));
            for node in (0..12).filter(|node| before[*node] != usize::MAX) {
                let cheapest = graph.neighbors(node).filter(|(other, _)| *other == before[node]);
                let cheapest = cheapest.map(|(_, edge)| wide[before[node]] + f64::from(edges[edge].2));
                prop_assert_eq!(cheapest.fold(f64::INFINITY, f64::min), wide[node]);
            }
        }
    }

    #[test]
    fn neighbors_are_sorted_and_edges_are_found() {
        let graph = Graph::new(4, [(2, 0), (1, 2), (3, 2)].into_iter());
        assert_eq!(graph.neighbors(2).collect::<Vec<_>>(), [(0, 0), (1, 1), (3, 2)]);
        assert_eq!((graph.edge(2, 3), graph.edge(3, 2), graph.edge(0, 1)), (Some(2), Some(2), None));
        let mut costs = [0.0; 4];
        graph.field(&[0, 1], |_, into| if into == 3 { f64::INFINITY } else { 1.0 }, &mut costs);
        assert_eq!(costs, [0.0, 0.0, 1.0, f64::INFINITY]);
    }
}
