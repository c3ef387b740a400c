//! Construction of a building node by node.

use crate::{Edge, Layout, Mobility, Node, NodeKind, Occupant};

/// Default length of stairs from floor to floor: a height of 3.2 m at 35 degrees.
const FLIGHT_M: f64 = 5.6;
const FLIGHT_SLOPE_DEG: f64 = 35.0;

/// A building under construction; nodes are referred to by their index.
#[derive(Debug)]
pub(crate) struct Builder {
    layout: Layout,
}

impl Builder {
    pub(crate) fn new(name: &str) -> Self {
        let layout = Layout {
            name: name.into(),
            nodes: Vec::new(),
            edges: Vec::new(),
            occupants: Vec::new(),
            entries: Vec::new(),
        };
        Self { layout }
    }

    /// Adds a place and returns its index.
    pub(crate) fn node(
        &mut self,
        name: impl Into<String>,
        kind: NodeKind,
        floor: i32,
        area_m2: f64,
        length_m: f64,
    ) -> usize {
        let node = Node { name: name.into(), kind, area_m2, length_m, floor, high_risk: false, polygon: None };
        self.layout.nodes.push(node);
        self.layout.nodes.len() - 1
    }

    /// Number of nodes so far.
    pub(crate) fn len(&self) -> usize {
        self.layout.nodes.len()
    }

    /// All edges so far, for changes.
    pub(crate) fn edges(&mut self) -> impl Iterator<Item = &mut Edge> {
        self.layout.edges.iter_mut()
    }

    /// The node at `index`, for changes.
    pub(crate) fn at(&mut self, index: usize) -> &mut Node {
        &mut self.layout.nodes[index]
    }

    /// Adds an open way.
    pub(crate) fn passage(&mut self, a: usize, b: usize, length_m: f64, width_m: f64) -> &mut Edge {
        self.layout.edges.push(Edge::new(a, b, length_m, width_m));
        let last = self.layout.edges.len() - 1;
        &mut self.layout.edges[last]
    }

    /// Adds a way through a door.
    pub(crate) fn door(&mut self, a: usize, b: usize, length_m: f64, width_m: f64) -> &mut Edge {
        let edge = self.passage(a, b, length_m, width_m);
        edge.door = true;
        edge
    }

    /// Number of edges so far.
    pub(crate) fn n_edges(&self) -> usize {
        self.layout.edges.len()
    }

    /// The edge at `index`, for changes.
    pub(crate) fn edge_at(&mut self, index: usize) -> &mut Edge {
        &mut self.layout.edges[index]
    }

    /// Adds stairs from floor to floor.
    pub(crate) fn flight(&mut self, below: usize, above: usize, width_m: f64) {
        self.passage(below, above, FLIGHT_M, width_m).slope_deg = FLIGHT_SLOPE_DEG;
    }

    pub(crate) fn occupant(&mut self, node: usize, mobility: Mobility, health: f64) {
        self.layout.occupants.push(Occupant { node, mobility, health });
    }

    /// The building, with `entries` for responders.
    pub(crate) fn finish(mut self, entries: Vec<usize>) -> Layout {
        self.layout.entries = entries;
        self.layout
    }
}
