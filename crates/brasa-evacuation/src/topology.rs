//! A building laid out for computing: neighbors in one array, travel times between all pairs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Layout, Timing};

/// The graph of a [`Layout`] in compressed rows, with clear-air travel times.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// `[n_nodes + 1]`: where the neighbors of each node begin in `neighbors`.
    first: Vec<usize>,
    /// Neighbours of each node, ascending.
    neighbors: Vec<u32>,
    /// The edge that leads to the neighbor at the same place, an index of [`Layout::edges`].
    edges: Vec<u32>,
    /// `[n_nodes * n_nodes]`: shortest travel times in clear air, in the unit of [`Timing::travel`].
    distances: Vec<f64>,
}

impl Topology {
    /// The graph of `layout`, whose edges are valid.
    pub fn new(layout: &Layout, timing: &Timing) -> Self {
        let n = layout.nodes.len();
        let mut lists: Vec<Vec<(u32, u32)>> = vec![Vec::new(); n];
        for (index, edge) in layout.edges.iter().enumerate() {
            lists[edge.a].push((edge.b as u32, index as u32));
            lists[edge.b].push((edge.a as u32, index as u32));
        }
        lists.iter_mut().for_each(|list| list.sort_unstable());
        let mut first = vec![0];
        first.extend(lists.iter().scan(0, |sum, list| {
            *sum += list.len();
            Some(*sum)
        }));
        let flat = lists.concat();
        let mut topology = Self {
            first,
            neighbors: flat.iter().map(|(node, _)| *node).collect(),
            edges: flat.iter().map(|(_, edge)| *edge).collect(),
            distances: Vec::new(),
        };
        let travel: Vec<f64> = layout.edges.iter().map(|edge| timing.travel(edge)).collect();
        let mut all = vec![f64::INFINITY; n * n];
        let mut heap = BinaryHeap::new();
        for source in 0..n {
            topology.search(&mut heap, &[source], |edge, _| travel[edge], &mut all[source * n..(source + 1) * n]);
        }
        topology.distances = all;
        topology
    }

    /// Number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.first.len() - 1
    }

    /// Neighbours of `node` and the edges that lead to them, by ascending node.
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

    /// Shortest travel time from `a` to `b` in clear air, in the unit of [`Timing::travel`].
    pub fn distance(&self, a: usize, b: usize) -> f64 {
        self.distances[a * self.n_nodes() + b]
    }

    /// Shortest travel times from `a` to every node in clear air, in the unit of [`Timing::travel`].
    pub fn distances_from(&self, a: usize) -> &[f64] {
        &self.distances[a * self.n_nodes()..(a + 1) * self.n_nodes()]
    }

    /// Shortest times from the nearest of `sources` to every node, where walking along an edge into a node costs
    /// `cost(edge, node)`; an infinite cost closes the way.
    ///
    /// The graph is walked outwards from the sources, so `node` is the end farther from them.
    ///
    /// # Panics
    /// If `out` has not one entry per node.
    pub fn field(&self, sources: &[usize], cost: impl Fn(usize, usize) -> f64, out: &mut [f64]) {
        self.search(&mut BinaryHeap::new(), sources, cost, out);
    }

    fn search(
        &self,
        heap: &mut BinaryHeap<Reverse<(Time, usize)>>,
        sources: &[usize],
        cost: impl Fn(usize, usize) -> f64,
        out: &mut [f64],
    ) {
        assert_eq!(out.len(), self.n_nodes(), "one time per node");
        out.fill(f64::INFINITY);
        heap.clear();
        for source in sources {
            out[*source] = 0.0;
            heap.push(Reverse((Time(0.0), *source)));
        }
        while let Some(Reverse((Time(time), node))) = heap.pop() {
            if time > out[node] {
                continue;
            }
            for (next, edge) in self.neighbors(node) {
                let later = time + cost(edge, next);
                if later < out[next] {
                    out[next] = later;
                    heap.push(Reverse((Time(later), next)));
                }
            }
        }
    }
}

/// A time that can be ordered: never NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Time(f64);

impl Eq for Time {}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
