//! Scores, softmax and weighted sums.

use pulp::{Simd, WithSimd};

use super::lanes::{channels, dot, leaky, load, pieces, store};
use super::problem::{GraphScratch, Problem, Shape};
use brasa_number::exp_of_negative;

/// The forward pass. It is a type because only small closures are inlined, and code that is not inlined is not compiled
/// for the selected instruction set.
pub struct Forward<'a> {
    pub problem: &'a Problem<'a>,
    pub out: &'a mut [f32],
    pub weights: &'a mut [f32],
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { problem, out, weights } = self;
        // Loops are specialized for common numbers of channels.
        match problem.shape.channels {
            8 => forward::<S, 8>(simd, problem, out, weights),
            16 => forward::<S, 16>(simd, problem, out, weights),
            32 => forward::<S, 32>(simd, problem, out, weights),
            _ => forward::<S, 0>(simd, problem, out, weights),
        }
    }
}

#[inline(always)]
fn forward<S: Simd, const C: usize>(simd: S, problem: &Problem<'_>, out: &mut [f32], weights: &mut [f32]) {
    let Shape { rows, nodes, edges, heads, hidden, width, .. } = problem.shape;
    let mut scratch = GraphScratch::new(problem.shape);
    let mut terms = Terms::new(problem.shape);
    for row in 0..rows {
        let projected = &problem.projected[row * nodes * width..(row + 1) * nodes * width];
        let out = &mut out[row * nodes * hidden..(row + 1) * nodes * hidden];
        let weights = &mut weights[row * edges * heads..(row + 1) * edges * heads];
        let graph = problem.graph(row, &mut scratch);
        if problem.shape.vectors == 2 {
            terms.compute::<S, C>(simd, problem, projected);
            scores_1(simd, problem, row, graph, &terms, weights);
        } else {
            match problem.edge_line(row, hidden) {
                Some((edge, _)) => scores_2::<S, C, true>(simd, problem, projected, edge, graph, weights),
                None => scores_2::<S, C, false>(simd, problem, projected, &[], graph, weights),
            }
        }
        softmax(simd, problem.shape, graph.0, weights);
        sums::<S, C>(simd, problem.shape, projected, graph, weights, out);
    }
}

/// Sums over channels of version 1 per node and head, for sources and for destinations.
pub struct Terms {
    pub sources: Vec<f32>,
    pub destinations: Vec<f32>,
}

impl Terms {
    pub fn new(shape: Shape) -> Self {
        let n = if shape.vectors == 2 { shape.nodes * shape.heads } else { 0 };
        Self { sources: vec![0.0; n], destinations: vec![0.0; n] }
    }

    #[inline(always)]
    pub fn compute<S: Simd, const C: usize>(&mut self, simd: S, problem: &Problem<'_>, projected: &[f32]) {
        let Shape { nodes, heads, hidden, width, .. } = problem.shape;
        let channels = channels::<C>(problem.shape.channels);
        let (source, destination) = problem.attention.split_at(hidden);
        for node in 0..nodes {
            let values = &projected[node * width..node * width + hidden];
            for head in 0..heads {
                let part = head * channels..(head + 1) * channels;
                let values = &values[part.clone()];
                self.sources[node * heads + head] = dot(simd, &source[part.clone()], values, channels);
                self.destinations[node * heads + head] = dot(simd, &destination[part], values, channels);
            }
        }
    }
}

/// Scores of version 1 of all edges of a row.
#[inline(always)]
fn scores_1<S: Simd>(
    simd: S,
    problem: &Problem<'_>,
    row: usize,
    (starts, sources): (&[usize], &[usize]),
    terms: &Terms,
    scores: &mut [f32],
) {
    let heads = problem.shape.heads;
    let slope = simd.splat_f32s(problem.slope);
    let edge = problem.edge_line(row, heads);
    for i in 0..problem.shape.nodes {
        for piece in pieces::<S>(heads) {
            let destination = load(simd, &terms.destinations[i * heads..(i + 1) * heads][piece.clone()]);
            for e in starts[i]..starts[i + 1] {
                let source = &terms.sources[sources[e] * heads..(sources[e] + 1) * heads];
                let mut sum = simd.add_f32s(load(simd, &source[piece.clone()]), destination);
                if let Some((edge, _)) = edge {
                    sum = simd.add_f32s(sum, load(simd, &edge[e * heads..(e + 1) * heads][piece.clone()]));
                }
                let score = &mut scores[e * heads..(e + 1) * heads][piece.clone()];
                store(simd, score, leaky(simd, sum, slope));
            }
        }
    }
}

/// Scores of version 2 of all edges of a row.
#[inline(always)]
fn scores_2<S: Simd, const C: usize, const EDGE: bool>(
    simd: S,
    problem: &Problem<'_>,
    projected: &[f32],
    edge: &[f32],
    (starts, sources): (&[usize], &[usize]),
    scores: &mut [f32],
) {
    let Shape { nodes, heads, hidden, width, .. } = problem.shape;
    let channels = channels::<C>(problem.shape.channels);
    let slope = simd.splat_f32s(problem.slope);
    for i in 0..nodes {
        let right = &projected[(i + 1) * width - hidden..(i + 1) * width];
        for e in starts[i]..starts[i + 1] {
            let left = &projected[sources[e] * width..sources[e] * width + hidden];
            let edge = if EDGE { &edge[e * hidden..(e + 1) * hidden] } else { edge };
            let scores = &mut scores[e * heads..(e + 1) * heads];
            for (head, score) in scores.iter_mut().enumerate() {
                let part = head * channels..(head + 1) * channels;
                let (left, right, a) = (&left[part.clone()], &right[part.clone()], &problem.attention[part.clone()]);
                let mut total = simd.splat_f32s(0.0);
                for piece in pieces::<S>(channels) {
                    let mut sum = simd.add_f32s(load(simd, &left[piece.clone()]), load(simd, &right[piece.clone()]));
                    if EDGE {
                        sum = simd.add_f32s(sum, load(simd, &edge[part.clone()][piece.clone()]));
                    }
                    total = simd.mul_add_e_f32s(load(simd, &a[piece]), leaky(simd, sum, slope), total);
                }
                *score = simd.reduce_sum_f32s(total);
            }
        }
    }
}

/// Softmax of scores over the edges that end in each node.
#[inline(always)]
fn softmax<S: Simd>(simd: S, shape: Shape, starts: &[usize], scores: &mut [f32]) {
    let heads = shape.heads;
    for i in 0..shape.nodes {
        let edges = &mut scores[starts[i] * heads..starts[i + 1] * heads];
        for piece in pieces::<S>(heads) {
            let mut largest = simd.splat_f32s(f32::NEG_INFINITY);
            for edge in edges.chunks_exact(heads) {
                largest = simd.max_f32s(largest, load(simd, &edge[piece.clone()]));
            }
            for edge in edges.chunks_exact_mut(heads) {
                let difference = simd.sub_f32s(load(simd, &edge[piece.clone()]), largest);
                store(simd, &mut edge[piece.clone()], difference);
            }
        }
    }
    let own = &mut scores[..starts[shape.nodes] * heads];
    own.iter_mut().for_each(|score| *score = exp_of_negative(*score));
    for i in 0..shape.nodes {
        let edges = &mut scores[starts[i] * heads..starts[i + 1] * heads];
        for piece in pieces::<S>(heads) {
            let mut sum = simd.splat_f32s(0.0);
            for edge in edges.chunks_exact(heads) {
                sum = simd.add_f32s(sum, load(simd, &edge[piece.clone()]));
            }
            let share = simd.div_f32s(simd.splat_f32s(1.0), sum);
            for edge in edges.chunks_exact_mut(heads) {
                let weight = simd.mul_f32s(load(simd, &edge[piece.clone()]), share);
                store(simd, &mut edge[piece.clone()], weight);
            }
        }
    }
}

/// Weighted sums of the values of sources.
#[inline(always)]
fn sums<S: Simd, const C: usize>(
    simd: S,
    shape: Shape,
    projected: &[f32],
    (starts, sources): (&[usize], &[usize]),
    weights: &[f32],
    out: &mut [f32],
) {
    let Shape { nodes, heads, hidden, width, .. } = shape;
    let channels = channels::<C>(shape.channels);
    for i in 0..nodes {
        let out = &mut out[i * hidden..(i + 1) * hidden];
        for head in 0..heads {
            let part = head * channels..(head + 1) * channels;
            for piece in pieces::<S>(channels) {
                let mut sum = simd.splat_f32s(0.0);
                for e in starts[i]..starts[i + 1] {
                    let values = &projected[sources[e] * width..sources[e] * width + hidden][part.clone()];
                    let weight = simd.splat_f32s(weights[e * heads + head]);
                    sum = simd.mul_add_e_f32s(weight, load(simd, &values[piece.clone()]), sum);
                }
                store(simd, &mut out[part.clone()][piece], sum);
            }
        }
    }
}
