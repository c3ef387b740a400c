//! Inputs of attention: slices of tensors, and graphs from tables.

use burn::backend::flex::FlexTensor;

use crate::host::Integers;

/// The elements of a contiguous tensor.
pub fn floats(tensor: &FlexTensor) -> &[f32] {
    let first = tensor.layout().start_offset();
    &tensor.storage::<f32>()[first..first + tensor.layout().num_elements()]
}

#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub rows: usize,
    pub nodes: usize,
    pub edges: usize,
    pub heads: usize,
    pub channels: usize,
    /// `heads * channels`.
    pub hidden: usize,
    /// Columns of the projection.
    pub width: usize,
    /// Attention vectors per head: 2 for version 1, 1 for version 2.
    pub vectors: usize,
}

pub struct Problem<'a> {
    pub shape: Shape,
    pub projected: &'a [f32],
    pub attention: &'a [f32],
    edge: Option<&'a [f32]>,
    ids: Integers<'a>,
    edge_ids: Integers<'a>,
    starts: Integers<'a>,
    pub sources: Integers<'a>,
    pub slope: f32,
}

impl<'a> Problem<'a> {
    pub fn new(
        projected: &'a FlexTensor,
        attention: &'a FlexTensor,
        edge: Option<&'a FlexTensor>,
        [ids, edge_ids, starts, sources]: [&'a FlexTensor; 4],
        slope: f32,
    ) -> Self {
        let (dims, attention_dims) = (projected.layout().shape().to_vec(), attention.layout().shape().to_vec());
        let [rows, nodes, width] = [dims[0], dims[1], dims[2]];
        let [vectors, heads, channels] = [attention_dims[0], attention_dims[1], attention_dims[2]];
        let (hidden, edges) = (heads * channels, sources.layout().shape()[1]);
        let shape = Shape { rows, nodes, edges, heads, channels, hidden, width, vectors };
        let fits = width == hidden || (vectors == 1 && width == 2 * hidden);
        assert!(fits && (1..=2).contains(&vectors), "values of {width} columns, attention {attention_dims:?}");
        assert_eq!(ids.layout().num_elements(), rows, "one graph per row");
        assert_eq!(edge_ids.layout().num_elements(), rows, "one line of the edge term per row");
        assert_eq!(starts.layout().shape()[1], nodes + 1, "tables are made for as many nodes");
        if let Some(edge) = edge {
            let columns = if vectors == 2 { heads } else { hidden };
            assert_eq!(edge.layout().shape()[1..], [edges, columns], "the edge term");
        }
        Self {
            shape,
            projected: floats(projected),
            attention: floats(attention),
            edge: edge.map(floats),
            ids: Integers::of(ids),
            edge_ids: Integers::of(edge_ids),
            starts: Integers::of(starts),
            sources: Integers::of(sources),
            slope,
        }
    }

    /// The graph of a row as (first edges, sources), read into reused memory.
    pub fn graph<'s>(&self, row: usize, scratch: &'s mut GraphScratch) -> (&'s [usize], &'s [usize]) {
        let id = self.ids.at(row);
        // Consecutive rows often have the same graph.
        if scratch.id != Some(id) {
            self.starts.read_line(id, &mut scratch.starts);
            self.sources.read_line(id, &mut scratch.sources);
            let (starts, sources) = (&scratch.starts, &scratch.sources);
            let own = starts.last().copied().unwrap_or(0);
            assert!(starts.is_sorted() && own <= sources.len(), "first edges of graph {id}");
            assert!(sources[..own].iter().all(|source| *source < self.shape.nodes), "sources of graph {id}");
            scratch.id = Some(id);
        }
        (&scratch.starts, &scratch.sources)
    }

    /// The edge term of a row, and its first index.
    pub fn edge_line(&self, row: usize, columns: usize) -> Option<(&'a [f32], usize)> {
        let length = self.shape.edges * columns;
        let first = self.edge_ids.at(row) * length;
        self.edge.map(|edge| (&edge[first..first + length], first))
    }
}

pub struct GraphScratch {
    id: Option<usize>,
    starts: Vec<usize>,
    pub sources: Vec<usize>,
}

impl GraphScratch {
    pub fn new(shape: Shape) -> Self {
        Self { id: None, starts: vec![0; shape.nodes + 1], sources: vec![0; shape.edges] }
    }
}
