//! A table of graphs on a device, and batches of rows from it.
//!
//! Observations contain the index of their graph in the table; graphs are neither uploaded again nor read back.

use std::sync::Arc;

use brasa_core::env::InvalidField;
use brasa_kernels::EdgeTables;
use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::{GatError, Graph};

/// Graphs padded to the largest, uploaded once. Cloning copies a handle.
///
/// Padded nodes have a self-loop, so that every softmax has a term, and are excluded from pooling and normalization.
///
/// ```
/// use brasa_core::read_back;
/// use brasa_gat::{Graph, Graphs};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let [small, large] = [Graph::new(2, vec![[0, 1]])?, Graph::new(3, vec![[0, 1], [1, 2]])?];
/// let graphs = Graphs::new(vec![small, large], &device)?;
/// assert_eq!(graphs.n_nodes(), 3);
/// // The small graph has a padded node.
/// let mask = graphs.node_mask(Tensor::from_ints([0], &device));
/// assert_eq!(read_back(mask), [1.0, 1.0, 0.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Graphs(Arc<Table>);

#[derive(Debug)]
struct Table {
    /// `[n_graphs]`: 0, 1, ... A range of numbers that is made for a batch would be an upload.
    numbers: Tensor<1, Int>,
    graphs: Vec<Graph>,
    edges: Vec<Vec<[usize; 2]>>,
    n_nodes: usize,
    edge_width: usize,
    /// `[n_graphs, n_nodes]`: 1 for the graph's own nodes.
    node_mask: Tensor<2>,
    /// `[n_graphs, n_edges]`: 1 for the graph's own edges, including the self-loops of padded nodes.
    edge_mask: Tensor<2>,
    /// `[n_graphs, n_edges, edge_width]`.
    edge_features: Option<Tensor<3>>,
    /// `[n_graphs, n_nodes + 1]`: the first edge of every node, in the order of destinations, and the end.
    starts: Tensor<2, Int>,
    /// `[n_graphs, n_edges]`.
    sources: Tensor<2, Int>,
    /// `[n_graphs, n_edges]`.
    destinations: Tensor<2, Int>,
    /// `[n_graphs, n_nodes, n_slots]`: the edges of every node, padded with its last one.
    slots: Tensor<3, Int>,
}

impl Graphs {
    /// Uploads graphs to the non-autodiff `device`, padded to the largest.
    ///
    /// # Errors
    /// [`GatError`] if there are none, or their numbers of edge features differ.
    pub fn new(graphs: Vec<Graph>, device: &Device) -> Result<Self, GatError> {
        Self::padded(graphs, 0, device)
    }

    /// The same, padded to at least `n_nodes` nodes, for observations of a fixed size.
    ///
    /// # Errors
    /// As [`Graphs::new`].
    pub fn padded(graphs: Vec<Graph>, n_nodes: usize, device: &Device) -> Result<Self, GatError> {
        let Some(first) = graphs.first() else {
            return Err(GatError::Field(InvalidField::new("graphs", "must not be empty", "none")));
        };
        let edge_width = first.edge_width();
        if let Some(index) = graphs.iter().position(|graph| graph.edge_width() != edge_width) {
            let other = graphs[index].edge_width();
            let message = format!("graph {index} has {other} features per edge, graph 0 has {edge_width}");
            return Err(GatError::Mismatch(message));
        }
        let n_nodes = graphs.iter().map(Graph::n_nodes).max().unwrap_or(0).max(n_nodes);
        let device = device.clone().without_autodiff();
        Ok(Self(Arc::new(Table::new(graphs, n_nodes, edge_width, &device))))
    }

    /// The graphs.
    pub fn graphs(&self) -> &[Graph] {
        &self.0.graphs
    }

    /// Nodes of every padded graph.
    pub fn n_nodes(&self) -> usize {
        self.0.n_nodes
    }

    /// Features per edge.
    pub fn edge_width(&self) -> usize {
        self.0.edge_width
    }

    /// The non-autodiff device of the table.
    pub fn device(&self) -> Device {
        self.0.node_mask.device()
    }

    /// `[source, destination]` of the edges of a graph in the order of attention weights.
    ///
    /// # Panics
    /// If there is no such graph.
    pub fn edges(&self, graph: usize) -> &[[usize; 2]] {
        &self.0.edges[graph]
    }

    /// `[n_rows, n_nodes]`: 1 for nodes of the graph of each row, 0 for padding.
    ///
    /// # Shapes
    /// - `ids`: `[n_rows]`, as in [`Graphs::batch`]
    pub fn node_mask(&self, ids: Tensor<1, Int>) -> Tensor<2> {
        self.0.node_mask.clone().select(0, ids)
    }

    /// One row per entry of `ids`, the index of its graph. Does not wait for the device.
    ///
    /// # Shapes
    /// - `ids`: `[n_rows]`
    pub fn batch(&self, ids: Tensor<1, Int>) -> GraphBatch {
        let table = &*self.0;
        let n_rows = ids.dims()[0];
        // Terms of edges alone are computed once per line: per graph of the table, or per row if there are fewer rows.
        let per_graph = table.graphs.len() <= n_rows;
        let edge_ids = match per_graph {
            true => ids.clone(),
            false => table.numbers.clone().slice(0..n_rows),
        };
        let edge_features = table.edge_features.clone();
        let edge_features = edge_features.map(|all| if per_graph { all } else { all.select(0, ids.clone()) });
        let edges = EdgeTables {
            ids: ids.clone(),
            edge_ids,
            starts: table.starts.clone(),
            sources: table.sources.clone(),
            destinations: table.destinations.clone(),
            edge_mask: table.edge_mask.clone(),
            slots: table.slots.clone(),
        };
        let node_mask = self.node_mask(ids.clone());
        GraphBatch { ids, n_nodes: table.n_nodes, node_mask, edge_features, edges }
    }
}

/// The graphs of a batch of rows.
///
/// ```
/// use brasa_core::read_back;
/// use brasa_gat::{Graph, Graphs};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let [small, large] = [Graph::new(1, vec![])?, Graph::new(2, vec![[0, 1]])?];
/// let graphs = Graphs::new(vec![small, large], &device)?;
/// // Three rows of observations, with the index of the graph of each row.
/// let batch = graphs.batch(Tensor::from_ints([1, 0, 1], &device));
/// assert_eq!(read_back(batch.node_mask()), [1.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
/// assert!(batch.edge_features().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct GraphBatch {
    ids: Tensor<1, Int>,
    n_nodes: usize,
    node_mask: Tensor<2>,
    edge_features: Option<Tensor<3>>,
    edges: EdgeTables,
}

impl GraphBatch {
    /// `[n_rows]`: the graph of each row.
    pub fn ids(&self) -> Tensor<1, Int> {
        self.ids.clone()
    }

    /// Nodes of every padded graph.
    pub fn n_nodes(&self) -> usize {
        self.n_nodes
    }

    /// `[n_rows, n_nodes]`: 1 for nodes of the graph, 0 for padding.
    pub fn node_mask(&self) -> Tensor<2> {
        self.node_mask.clone()
    }

    /// `[n_lines, n_edges, edge_width]`: edge features with one line per graph of the table, or per row if there are
    /// fewer rows; `None` without edge features.
    pub fn edge_features(&self) -> Option<Tensor<3>> {
        self.edge_features.clone()
    }

    /// The same batch with other edge features, such as learned ones.
    ///
    /// # Panics
    /// If their shape does not fit.
    pub fn with_edge_features(mut self, features: Tensor<3>) -> Self {
        let dims = self.edge_features.as_ref().map(Tensor::dims);
        assert_eq!(dims, Some(features.dims()), "features of edges");
        self.edge_features = Some(features);
        self
    }

    pub(crate) fn edges(&self) -> &EdgeTables {
        &self.edges
    }
}

impl Table {
    fn new(graphs: Vec<Graph>, n_nodes: usize, edge_width: usize, device: &Device) -> Self {
        let n_graphs = graphs.len();
        let attended: Vec<_> = graphs.iter().map(Graph::attended).collect();
        // A graph's own edges, then the self-loops of padded nodes; sorted by destination.
        let all: Vec<Vec<[usize; 2]>> = graphs
            .iter()
            .zip(&attended)
            .map(|(graph, own)| {
                own.edges.iter().copied().chain((graph.n_nodes()..n_nodes).map(|node| [node, node])).collect()
            })
            .collect();
        let n_edges = all.iter().map(Vec::len).max().unwrap_or(0);
        let ids = |values: Vec<i32>, width: usize| {
            Tensor::<2, Int>::from_data(TensorData::new(values, [n_graphs, width]), device)
        };
        let mask = |counts: Vec<usize>, width: usize| {
            let values = counts.iter().flat_map(|count| (0..width).map(|i| f32::from(u8::from(i < *count)))).collect();
            Tensor::<2>::from_data(TensorData::new::<f32, _>(values, [n_graphs, width]), device)
        };
        let node_mask = mask(graphs.iter().map(Graph::n_nodes).collect(), n_nodes);
        let edge_mask = mask(all.iter().map(Vec::len).collect(), n_edges);
        let edge_features = (edge_width > 0).then(|| {
            let mut values = vec![0.0f32; n_graphs * n_edges * edge_width];
            for (line, own) in values.chunks_exact_mut(n_edges * edge_width).zip(&attended) {
                line[..own.features.len()].copy_from_slice(&own.features);
            }
            Tensor::from_data(TensorData::new(values, [n_graphs, n_edges, edge_width]), device)
        });
        let (starts, slots, n_slots) = by_destination(&all, n_nodes);
        // Padding after a graph's edges is arbitrary; its last node keeps the order.
        let end = |end: usize| {
            let last = [n_nodes - 1; 2];
            let padded = all.iter().flat_map(|edges| (0..n_edges).map(|e| *edges.get(e).unwrap_or(&last)));
            ids(padded.map(|edge| edge[end] as i32).collect(), n_edges)
        };
        let (starts, sources, destinations) = (ids(starts, n_nodes + 1), end(0), end(1));
        let slots = ids(slots, n_nodes * n_slots).reshape([n_graphs, n_nodes, n_slots]);
        let edges = attended.into_iter().map(|own| own.edges).collect();
        Self {
            numbers: Tensor::arange(0..n_graphs as i64, device),
            graphs,
            edges,
            n_nodes,
            edge_width,
            node_mask,
            edge_mask,
            edge_features,
            starts,
            sources,
            destinations,
            slots,
        }
    }
}

/// Per graph the first edge of every node and the end; per graph and node its edges, padded with the last one; and the
/// largest number of edges of a node.
fn by_destination(all: &[Vec<[usize; 2]>], n_nodes: usize) -> (Vec<i32>, Vec<i32>, usize) {
    let mut starts = Vec::with_capacity(all.len() * (n_nodes + 1));
    for edges in all {
        starts.extend((0..=n_nodes).map(|node| edges.partition_point(|edge| edge[1] < node) as i32));
    }
    let degrees = starts.chunks_exact(n_nodes + 1).flat_map(|line| line.windows(2).map(|pair| pair[1] - pair[0]));
    let most = degrees.max().unwrap_or(0) as usize;
    let mut slots = Vec::with_capacity(all.len() * n_nodes * most);
    for line in starts.chunks_exact(n_nodes + 1) {
        for pair in line.windows(2) {
            slots.extend((0..most as i32).map(|slot| (pair[0] + slot).min(pair[1] - 1)));
        }
    }
    (starts, slots, most)
}
