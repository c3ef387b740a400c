//! Attention on the host's processor: one pass per destination, forward and backward.

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::tensor::{DType, TensorData};

use super::GraphAttentionOps;
use crate::exp::exp_of_negative;

/// Partial sums that the compiler may keep in one vector register.
const LANES: usize = 8;

impl GraphAttentionOps for Flex {
    fn brasa_graph_attention(
        projected: FloatTensor<Self>,
        attention: FloatTensor<Self>,
        edge: FloatTensor<Self>,
        with_edge: bool,
        ids: IntTensor<Self>,
        edge_ids: IntTensor<Self>,
        starts: IntTensor<Self>,
        sources: IntTensor<Self>,
        slope: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (projected, attention) = (projected.to_contiguous(), attention.to_contiguous());
        let edge = edge.to_contiguous();
        let problem = Problem::new(
            &projected,
            &attention,
            with_edge.then_some(&edge),
            [&ids, &edge_ids, &starts, &sources],
            slope,
        );
        let shape = problem.shape;
        let mut out = vec![0.0f32; shape.rows * shape.nodes * shape.hidden];
        let mut weights = vec![0.0f32; shape.rows * shape.edges * shape.heads];
        // Compiled once per instruction set and number of channels, and chosen at run time.
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || match shape.channels {
                8 => forward::<8>(&problem, &mut out, &mut weights),
                16 => forward::<16>(&problem, &mut out, &mut weights),
                32 => forward::<32>(&problem, &mut out, &mut weights),
                _ => forward::<0>(&problem, &mut out, &mut weights),
            },
        );
        let tensor = |values, dims: [usize; 3]| FlexTensor::from_data(TensorData::new(values, dims));
        let out = tensor(out, [shape.rows, shape.nodes, shape.hidden]);
        (out, tensor(weights, [shape.rows, shape.edges, shape.heads]))
    }

    fn brasa_graph_attention_backward(
        projected: FloatTensor<Self>,
        attention: FloatTensor<Self>,
        edge: FloatTensor<Self>,
        with_edge: bool,
        ids: IntTensor<Self>,
        edge_ids: IntTensor<Self>,
        starts: IntTensor<Self>,
        sources: IntTensor<Self>,
        slope: f32,
        weights: FloatTensor<Self>,
        grad: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let (projected, attention) = (projected.to_contiguous(), attention.to_contiguous());
        let edge = edge.to_contiguous();
        let (weights, grad) = (weights.to_contiguous(), grad.to_contiguous());
        let problem = Problem::new(
            &projected,
            &attention,
            with_edge.then_some(&edge),
            [&ids, &edge_ids, &starts, &sources],
            slope,
        );
        let shape = problem.shape;
        let mut grads = Grads {
            projected: vec![0.0; shape.rows * shape.nodes * shape.width],
            attention: vec![0.0; shape.vectors * shape.hidden],
            edge: vec![0.0; edge.layout().num_elements()],
        };
        let (weights, grad) = (floats(&weights), floats(&grad));
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || match shape.channels {
                8 => backward::<8>(&problem, weights, grad, &mut grads),
                16 => backward::<16>(&problem, weights, grad, &mut grads),
                32 => backward::<32>(&problem, weights, grad, &mut grads),
                _ => backward::<0>(&problem, weights, grad, &mut grads),
            },
        );
        let like =
            |values, of: &FlexTensor| FlexTensor::from_data(TensorData::new(values, of.layout().shape().to_vec()));
        (like(grads.projected, &projected), like(grads.attention, &attention), like(grads.edge, &edge))
    }
}

/// The elements of a contiguous tensor.
fn floats(tensor: &FlexTensor) -> &[f32] {
    let first = tensor.layout().start_offset();
    &tensor.storage::<f32>()[first..first + tensor.layout().num_elements()]
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    rows: usize,
    nodes: usize,
    edges: usize,
    heads: usize,
    channels: usize,
    /// `heads * channels`.
    hidden: usize,
    /// Columns of the projection.
    width: usize,
    /// Attention vectors per head: 2 for version 1, 1 for version 2.
    vectors: usize,
}

/// Integers of a table, of either width.
enum Integers<'a> {
    Narrow(&'a [i32]),
    Wide(&'a [i64]),
}

impl<'a> Integers<'a> {
    fn of(tensor: &'a FlexTensor) -> Self {
        assert!(tensor.is_contiguous(), "tables are uploaded whole");
        let first = tensor.layout().start_offset();
        let range = first..first + tensor.layout().num_elements();
        match tensor.dtype() {
            DType::I32 => Self::Narrow(&tensor.storage::<i32>()[range]),
            DType::I64 => Self::Wide(&tensor.storage::<i64>()[range]),
            other => panic!("tables are integers of 32 or 64 bits, not {other:?}"),
        }
    }

    fn at(&self, index: usize) -> usize {
        match self {
            Self::Narrow(values) => values[index] as usize,
            Self::Wide(values) => values[index] as usize,
        }
    }

    /// Line `line` of a table with lines of this length.
    fn read_line(&self, line: usize, into: &mut [usize]) {
        let range = line * into.len()..(line + 1) * into.len();
        match self {
            Self::Narrow(values) => into.iter_mut().zip(&values[range]).for_each(|(to, from)| *to = *from as usize),
            Self::Wide(values) => into.iter_mut().zip(&values[range]).for_each(|(to, from)| *to = *from as usize),
        }
    }
}

struct Problem<'a> {
    shape: Shape,
    projected: &'a [f32],
    attention: &'a [f32],
    edge: Option<&'a [f32]>,
    ids: Integers<'a>,
    edge_ids: Integers<'a>,
    starts: Integers<'a>,
    sources: Integers<'a>,
    slope: f32,
}

impl<'a> Problem<'a> {
    fn new(
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

    /// The graph of a row as (first edges, sources), read into memory that is used again.
    fn graph<'s>(&self, row: usize, scratch: &'s mut GraphScratch) -> (&'s [usize], &'s [usize]) {
        let id = self.ids.at(row);
        // Rows of the same graph often follow each other.
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

    /// The edge term of a row, and where it begins.
    fn edge_line(&self, row: usize, columns: usize) -> Option<(&'a [f32], usize)> {
        let length = self.shape.edges * columns;
        let first = self.edge_ids.at(row) * length;
        self.edge.map(|edge| (&edge[first..first + length], first))
    }
}

struct GraphScratch {
    id: Option<usize>,
    starts: Vec<usize>,
    sources: Vec<usize>,
}

impl GraphScratch {
    fn new(shape: Shape) -> Self {
        Self { id: None, starts: vec![0; shape.nodes + 1], sources: vec![0; shape.edges] }
    }
}

struct Grads {
    projected: Vec<f32>,
    attention: Vec<f32>,
    edge: Vec<f32>,
}

/// A number of channels that the compiler knows, or 0 for any.
#[inline(always)]
fn channels<const C: usize>(shape: Shape) -> usize {
    if C == 0 { shape.channels } else { C }
}

/// `sum of term(0..n)` in lanes.
#[inline(always)]
fn sum_of(n: usize, term: impl Fn(usize) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let whole = n / LANES * LANES;
    let mut first = 0;
    while first < whole {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += term(first + lane);
        }
        first += LANES;
    }
    let rest = (whole..n).fold(0.0, |sum, i| sum + term(i));
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (b + f)) + ((c + g) + (d + h)) + rest
}

#[inline(always)]
fn dot(a: &[f32], b: &[f32], n: usize) -> f32 {
    let (a, b) = (&a[..n], &b[..n]);
    sum_of(n, |i| a[i] * b[i])
}

#[inline(always)]
fn leaky(x: f32, slope: f32) -> f32 {
    // The slope is below 1, so this is the larger of both lines.
    x.max(x * slope)
}

#[inline(always)]
fn forward<const C: usize>(problem: &Problem<'_>, out: &mut [f32], weights: &mut [f32]) {
    let shape = problem.shape;
    let (rows, nodes, heads, hidden) = (shape.rows, shape.nodes, shape.heads, shape.hidden);
    let channels = channels::<C>(shape);
    let mut scratch = GraphScratch::new(shape);
    let mut terms = Terms::new(shape);
    let mut largest = vec![0.0f32; heads];
    for row in 0..rows {
        let projected = &problem.projected[row * nodes * shape.width..(row + 1) * nodes * shape.width];
        let out = &mut out[row * nodes * hidden..(row + 1) * nodes * hidden];
        let weights = &mut weights[row * shape.edges * heads..(row + 1) * shape.edges * heads];
        let (starts, sources) = problem.graph(row, &mut scratch);
        if shape.vectors == 2 {
            scores_1::<C>(problem, row, projected, starts, sources, &mut terms, weights);
        } else {
            scores_2::<C>(problem, row, projected, starts, sources, weights);
        }
        for i in 0..nodes {
            let edges = &mut weights[starts[i] * heads..starts[i + 1] * heads];
            largest.fill(f32::MIN);
            for edge in edges.chunks_exact(heads) {
                largest.iter_mut().zip(edge).for_each(|(largest, score)| *largest = largest.max(*score));
            }
            for edge in edges.chunks_exact_mut(heads) {
                edge.iter_mut().zip(&largest).for_each(|(score, largest)| *score -= largest);
            }
        }
        let own = &mut weights[..starts[nodes] * heads];
        own.iter_mut().for_each(|score| *score = exp_of_negative(*score));
        for i in 0..nodes {
            let edges = &mut weights[starts[i] * heads..starts[i + 1] * heads];
            let sums = &mut largest;
            sums.fill(0.0);
            for edge in edges.chunks_exact(heads) {
                sums.iter_mut().zip(edge).for_each(|(sum, exp)| *sum += exp);
            }
            sums.iter_mut().for_each(|sum| *sum = 1.0 / *sum);
            let out = &mut out[i * hidden..(i + 1) * hidden];
            for (edge, source) in edges.chunks_exact_mut(heads).zip(&sources[starts[i]..]) {
                let values = &projected[source * shape.width..source * shape.width + hidden];
                for (head, (weight, sum)) in edge.iter_mut().zip(sums.iter()).enumerate() {
                    *weight *= sum;
                    let at = head * channels;
                    let (out, values) = (&mut out[at..at + channels], &values[at..at + channels]);
                    out.iter_mut().zip(values).for_each(|(out, value)| *out += *weight * value);
                }
            }
        }
    }
}

/// Sums over channels that version 1 needs per node and head: of sources, then of destinations.
struct Terms {
    sources: Vec<f32>,
    destinations: Vec<f32>,
}

impl Terms {
    fn new(shape: Shape) -> Self {
        let n = if shape.vectors == 2 { shape.nodes * shape.heads } else { 0 };
        Self { sources: vec![0.0; n], destinations: vec![0.0; n] }
    }

    #[inline(always)]
    fn compute<const C: usize>(&mut self, problem: &Problem<'_>, projected: &[f32]) {
        let (shape, channels) = (problem.shape, channels::<C>(problem.shape));
        let (source, destination) = problem.attention.split_at(shape.hidden);
        for node in 0..shape.nodes {
            let values = &projected[node * shape.width..node * shape.width + shape.hidden];
            for head in 0..shape.heads {
                let at = head * channels;
                self.sources[node * shape.heads + head] = dot(&source[at..], &values[at..], channels);
                self.destinations[node * shape.heads + head] = dot(&destination[at..], &values[at..], channels);
            }
        }
    }
}

/// Scores of version 1 of all edges of a row.
#[inline(always)]
fn scores_1<const C: usize>(
    problem: &Problem<'_>,
    row: usize,
    projected: &[f32],
    starts: &[usize],
    sources: &[usize],
    terms: &mut Terms,
    scores: &mut [f32],
) {
    let heads = problem.shape.heads;
    terms.compute::<C>(problem, projected);
    let edge = problem.edge_line(row, heads);
    for i in 0..problem.shape.nodes {
        let destination = &terms.destinations[i * heads..(i + 1) * heads];
        for e in starts[i]..starts[i + 1] {
            let source = &terms.sources[sources[e] * heads..(sources[e] + 1) * heads];
            let scores = &mut scores[e * heads..(e + 1) * heads];
            match edge {
                Some((edge, _)) => {
                    let edge = &edge[e * heads..(e + 1) * heads];
                    for head in 0..heads {
                        scores[head] = leaky(source[head] + destination[head] + edge[head], problem.slope);
                    }
                }
                None => {
                    for head in 0..heads {
                        scores[head] = leaky(source[head] + destination[head], problem.slope);
                    }
                }
            }
        }
    }
}

/// Scores of version 2 of all edges of a row.
#[inline(always)]
fn scores_2<const C: usize>(
    problem: &Problem<'_>,
    row: usize,
    projected: &[f32],
    starts: &[usize],
    sources: &[usize],
    scores: &mut [f32],
) {
    let Shape { nodes, heads, hidden, width, .. } = problem.shape;
    let (channels, slope) = (channels::<C>(problem.shape), problem.slope);
    let edge = problem.edge_line(row, hidden);
    for i in 0..nodes {
        let right = &projected[(i + 1) * width - hidden..(i + 1) * width];
        for e in starts[i]..starts[i + 1] {
            let left = &projected[sources[e] * width..sources[e] * width + hidden];
            let scores = &mut scores[e * heads..(e + 1) * heads];
            for (head, score) in scores.iter_mut().enumerate() {
                let part = head * channels..(head + 1) * channels;
                let (left, right, a) = (&left[part.clone()], &right[part.clone()], &problem.attention[part.clone()]);
                *score = match edge {
                    Some((edge, _)) => {
                        let edge = &edge[e * hidden + part.start..e * hidden + part.end];
                        sum_of(channels, |c| a[c] * leaky(left[c] + right[c] + edge[c], slope))
                    }
                    None => sum_of(channels, |c| a[c] * leaky(left[c] + right[c], slope)),
                };
            }
        }
    }
}

#[inline(always)]
fn backward<const C: usize>(problem: &Problem<'_>, weights: &[f32], grad: &[f32], grads: &mut Grads) {
    let shape = problem.shape;
    let Shape { nodes, heads, hidden, width, .. } = shape;
    let channels = channels::<C>(shape);
    let mut scratch = GraphScratch::new(shape);
    let mut terms = Terms::new(shape);
    let mut term_grads = Terms::new(shape);
    let mut grad_scores = vec![0.0f32; shape.edges * heads];
    let mut means = vec![0.0f32; heads];
    // Summed per row before rows are summed: thousands of small numbers onto one large one lose digits.
    let mut grad_attention = vec![0.0f32; grads.attention.len()];
    for row in 0..shape.rows {
        let projected = &problem.projected[row * nodes * width..(row + 1) * nodes * width];
        let weights = &weights[row * shape.edges * heads..(row + 1) * shape.edges * heads];
        let grad = &grad[row * nodes * hidden..(row + 1) * nodes * hidden];
        let grad_projected = &mut grads.projected[row * nodes * width..(row + 1) * nodes * width];
        let (starts, sources) = problem.graph(row, &mut scratch);
        // Gradients of scores: alpha (d alpha - sum of alpha d alpha), and of values through the weighted sum.
        for i in 0..nodes {
            let grad = &grad[i * hidden..(i + 1) * hidden];
            let range = starts[i]..starts[i + 1];
            means.fill(0.0);
            for e in range.clone() {
                let at = sources[e] * width;
                let (left, grad_left) = (&projected[at..at + hidden], &mut grad_projected[at..at + hidden]);
                for head in 0..heads {
                    let part = head * channels..(head + 1) * channels;
                    let weight = weights[e * heads + head];
                    let (grad, grad_left) = (&grad[part.clone()], &mut grad_left[part.clone()]);
                    let grad_weight = dot(grad, &left[part], channels);
                    grad_left.iter_mut().zip(grad).for_each(|(sum, grad)| *sum += weight * grad);
                    means[head] += weight * grad_weight;
                    grad_scores[e * heads + head] = grad_weight;
                }
            }
            for e in range {
                for head in 0..heads {
                    let score = &mut grad_scores[e * heads + head];
                    *score = weights[e * heads + head] * (*score - means[head]);
                }
            }
        }
        grad_attention.fill(0.0);
        if shape.vectors == 2 {
            terms.compute::<C>(problem, projected);
            let edge = problem.edge_line(row, heads);
            through_terms(problem, edge, starts, sources, (&terms, &mut term_grads), &grad_scores, &mut grads.edge);
            through_sums::<C>(problem, projected, &term_grads, grad_projected, &mut grad_attention);
        } else {
            let edge = problem.edge_line(row, hidden);
            let into = (&mut *grad_projected, &mut *grad_attention, &mut *grads.edge);
            match edge {
                Some(edge) => {
                    through_scores_2::<C, true>(problem, projected, edge, starts, sources, &grad_scores, into);
                }
                None => {
                    through_scores_2::<C, false>(problem, projected, (&[], 0), starts, sources, &grad_scores, into);
                }
            }
        }
        grads.attention.iter_mut().zip(&grad_attention).for_each(|(sum, row)| *sum += row);
    }
}

/// Version 1: from gradients of scores to those of the sums over channels and of the edge term.
#[inline(always)]
fn through_terms(
    problem: &Problem<'_>,
    edge: Option<(&[f32], usize)>,
    starts: &[usize],
    sources: &[usize],
    (terms, term_grads): (&Terms, &mut Terms),
    grad_scores: &[f32],
    grad_edge: &mut [f32],
) {
    let heads = problem.shape.heads;
    term_grads.sources.fill(0.0);
    term_grads.destinations.fill(0.0);
    for i in 0..problem.shape.nodes {
        for e in starts[i]..starts[i + 1] {
            for head in 0..heads {
                let (source, destination) = (sources[e] * heads + head, i * heads + head);
                let mut sum = terms.sources[source] + terms.destinations[destination];
                sum += edge.map_or(0.0, |(edge, _)| edge[e * heads + head]);
                let grad = grad_scores[e * heads + head] * if sum > 0.0 { 1.0 } else { problem.slope };
                term_grads.sources[source] += grad;
                term_grads.destinations[destination] += grad;
                if let Some((_, first)) = edge {
                    grad_edge[first + e * heads + head] += grad;
                }
            }
        }
    }
}

/// Version 1: from gradients of the sums over channels to those of values and attention vectors.
#[inline(always)]
fn through_sums<const C: usize>(
    problem: &Problem<'_>,
    projected: &[f32],
    term_grads: &Terms,
    grad_projected: &mut [f32],
    grad_attention: &mut [f32],
) {
    let Shape { nodes, heads, hidden, width, .. } = problem.shape;
    let channels = channels::<C>(problem.shape);
    let (source, destination) = problem.attention.split_at(hidden);
    let (grad_source, grad_destination) = grad_attention.split_at_mut(hidden);
    for node in 0..nodes {
        let values = &projected[node * width..node * width + hidden];
        let grad_values = &mut grad_projected[node * width..node * width + hidden];
        for head in 0..heads {
            let part = head * channels..(head + 1) * channels;
            let (from, to) = (term_grads.sources[node * heads + head], term_grads.destinations[node * heads + head]);
            let (values, grad_values) = (&values[part.clone()], &mut grad_values[part.clone()]);
            let (source, destination) = (&source[part.clone()], &destination[part.clone()]);
            let (grad_source, grad_destination) = (&mut grad_source[part.clone()], &mut grad_destination[part]);
            for c in 0..channels {
                grad_values[c] += from * source[c] + to * destination[c];
                grad_source[c] += from * values[c];
                grad_destination[c] += to * values[c];
            }
        }
    }
}

/// Version 2: from gradients of scores to those of everything the scores were made of, which is computed again.
#[inline(always)]
fn through_scores_2<const C: usize, const EDGE: bool>(
    problem: &Problem<'_>,
    projected: &[f32],
    (edge, edge_first): (&[f32], usize),
    starts: &[usize],
    sources: &[usize],
    grad_scores: &[f32],
    (grad_projected, grad_attention, grad_edge): (&mut [f32], &mut [f32], &mut [f32]),
) {
    let Shape { nodes, heads, hidden, width, .. } = problem.shape;
    let (channels, slope) = (channels::<C>(problem.shape), problem.slope);
    // The destination's own gradient stays in one place while its edges pass.
    let mut grad_right = vec![0.0f32; hidden];
    for i in 0..nodes {
        let right = &projected[(i + 1) * width - hidden..(i + 1) * width];
        grad_right.fill(0.0);
        for e in starts[i]..starts[i + 1] {
            let at = sources[e] * width;
            let (left, grad_left) = (&projected[at..at + hidden], &mut grad_projected[at..at + hidden]);
            for head in 0..heads {
                let part = head * channels..(head + 1) * channels;
                let grad_score = grad_scores[e * heads + head];
                let (left, right, a) = (&left[part.clone()], &right[part.clone()], &problem.attention[part.clone()]);
                let (grad_left, grad_right) = (&mut grad_left[part.clone()], &mut grad_right[part.clone()]);
                let grad_a = &mut grad_attention[part.clone()];
                let line = e * hidden + part.start..e * hidden + part.end;
                if EDGE {
                    let grad_edge = &mut grad_edge[edge_first + line.start..edge_first + line.end];
                    let edge = &edge[line];
                    for c in 0..channels {
                        let sum = left[c] + right[c] + edge[c];
                        let slope = if sum > 0.0 { 1.0 } else { slope };
                        let grad_sum = grad_score * slope * a[c];
                        grad_a[c] += grad_score * slope * sum;
                        grad_left[c] += grad_sum;
                        grad_right[c] += grad_sum;
                        grad_edge[c] += grad_sum;
                    }
                } else {
                    for c in 0..channels {
                        let sum = left[c] + right[c];
                        let slope = if sum > 0.0 { 1.0 } else { slope };
                        let grad_sum = grad_score * slope * a[c];
                        grad_a[c] += grad_score * slope * sum;
                        grad_left[c] += grad_sum;
                        grad_right[c] += grad_sum;
                    }
                }
            }
        }
        let into = &mut grad_projected[(i + 1) * width - hidden..(i + 1) * width];
        into.iter_mut().zip(&grad_right).for_each(|(sum, grad)| *sum += grad);
    }
}
