//! Gradients, from the weights of the forward pass and recomputed sums.

use pulp::{Simd, WithSimd};

use super::forward::Terms;
use super::lanes::{add_to, channels, dot, leaky_slope, load, pieces, store};
use super::problem::{GraphScratch, Problem, Shape};

/// Gradients, initially 0.
pub struct Grads {
    pub projected: Vec<f32>,
    pub attention: Vec<f32>,
    /// Gradient of the edge term, if there is one.
    pub edge: Vec<f32>,
}

/// The backward pass.
pub struct Backward<'a> {
    pub problem: &'a Problem<'a>,
    pub weights: &'a [f32],
    pub grad: &'a [f32],
    pub grads: &'a mut Grads,
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { problem, weights, grad, grads } = self;
        match problem.shape.channels {
            8 => backward::<S, 8>(simd, problem, weights, grad, grads),
            16 => backward::<S, 16>(simd, problem, weights, grad, grads),
            32 => backward::<S, 32>(simd, problem, weights, grad, grads),
            _ => backward::<S, 0>(simd, problem, weights, grad, grads),
        }
    }
}

/// One row: its graph, and inputs and results of the forward pass.
#[derive(Clone, Copy)]
struct Row<'a> {
    index: usize,
    starts: &'a [usize],
    sources: &'a [usize],
    projected: &'a [f32],
    weights: &'a [f32],
    grad: &'a [f32],
}

#[inline(always)]
fn backward<S: Simd, const C: usize>(simd: S, problem: &Problem<'_>, weights: &[f32], grad: &[f32], grads: &mut Grads) {
    let Shape { rows, nodes, edges, heads, hidden, width, vectors, .. } = problem.shape;
    let mut scratch = GraphScratch::new(problem.shape);
    let (mut terms, mut term_grads) = (Terms::new(problem.shape), Terms::new(problem.shape));
    let mut grad_scores = vec![0.0f32; edges * heads];
    // Summed per row first: adding thousands of small numbers to a large one loses digits.
    let mut grad_attention = vec![0.0f32; grads.attention.len()];
    for index in 0..rows {
        let (starts, sources) = problem.graph(index, &mut scratch);
        let row = Row {
            index,
            starts,
            sources,
            projected: &problem.projected[index * nodes * width..(index + 1) * nodes * width],
            weights: &weights[index * edges * heads..(index + 1) * edges * heads],
            grad: &grad[index * nodes * hidden..(index + 1) * nodes * hidden],
        };
        let grad_projected = &mut grads.projected[index * nodes * width..(index + 1) * nodes * width];
        through_softmax::<S, C>(simd, problem.shape, row, &mut grad_scores);
        grad_attention.fill(0.0);
        if vectors == 2 {
            through_sums::<S, C>(simd, problem.shape, row, grad_projected);
            terms.compute::<S, C>(simd, problem, row.projected);
            through_scores_1(simd, problem, row, &terms, &grad_scores, &mut term_grads, &mut grads.edge);
            through_terms::<S, C>(simd, problem, row, &term_grads, grad_projected, &mut grad_attention);
        } else {
            let into = (&mut *grad_projected, &mut *grad_attention, &mut *grads.edge);
            match problem.edge_line(index, hidden) {
                Some(edge) => through_scores_2::<S, C, true>(simd, problem, row, edge, &grad_scores, into),
                None => through_scores_2::<S, C, false>(simd, problem, row, (&[], 0), &grad_scores, into),
            }
        }
        grads.attention.iter_mut().zip(&grad_attention).for_each(|(sum, row)| *sum += row);
    }
}

/// Gradients of scores: `alpha_ij (d alpha_ij - sum over j of alpha_ij d alpha_ij)`.
#[inline(always)]
fn through_softmax<S: Simd, const C: usize>(simd: S, shape: Shape, row: Row<'_>, grad_scores: &mut [f32]) {
    let Shape { nodes, heads, hidden, width, .. } = shape;
    let channels = channels::<C>(shape.channels);
    for i in 0..nodes {
        let grad = &row.grad[i * hidden..(i + 1) * hidden];
        let (first, end) = (row.starts[i], row.starts[i + 1]);
        for e in first..end {
            let left = &row.projected[row.sources[e] * width..row.sources[e] * width + hidden];
            for (head, grad_weight) in grad_scores[e * heads..(e + 1) * heads].iter_mut().enumerate() {
                let part = head * channels..(head + 1) * channels;
                *grad_weight = dot(simd, &grad[part.clone()], &left[part], channels);
            }
        }
        let weights = &row.weights[first * heads..end * heads];
        let grad_scores = &mut grad_scores[first * heads..end * heads];
        for piece in pieces::<S>(heads) {
            let mut mean = simd.splat_f32s(0.0);
            for (weight, grad) in weights.chunks_exact(heads).zip(grad_scores.chunks_exact(heads)) {
                mean = simd.mul_add_e_f32s(load(simd, &weight[piece.clone()]), load(simd, &grad[piece.clone()]), mean);
            }
            for (weight, grad) in weights.chunks_exact(heads).zip(grad_scores.chunks_exact_mut(heads)) {
                let difference = simd.sub_f32s(load(simd, &grad[piece.clone()]), mean);
                let score = simd.mul_f32s(load(simd, &weight[piece.clone()]), difference);
                store(simd, &mut grad[piece.clone()], score);
            }
        }
    }
}

/// Version 1: gradients of values through the weighted sums.
#[inline(always)]
fn through_sums<S: Simd, const C: usize>(simd: S, shape: Shape, row: Row<'_>, grad_projected: &mut [f32]) {
    let Shape { nodes, heads, hidden, width, .. } = shape;
    let channels = channels::<C>(shape.channels);
    for i in 0..nodes {
        let grad = &row.grad[i * hidden..(i + 1) * hidden];
        for e in row.starts[i]..row.starts[i + 1] {
            let at = row.sources[e] * width;
            let grad_values = &mut grad_projected[at..at + hidden];
            for head in 0..heads {
                let part = head * channels..(head + 1) * channels;
                let weight = simd.splat_f32s(row.weights[e * heads + head]);
                let (grad, grad_values) = (&grad[part.clone()], &mut grad_values[part]);
                for piece in pieces::<S>(channels) {
                    let share = simd.mul_f32s(weight, load(simd, &grad[piece.clone()]));
                    add_to(simd, &mut grad_values[piece], share);
                }
            }
        }
    }
}

/// Version 1: gradients of the sums over channels and of the edge term, from gradients of scores.
#[inline(always)]
fn through_scores_1<S: Simd>(
    simd: S,
    problem: &Problem<'_>,
    row: Row<'_>,
    terms: &Terms,
    grad_scores: &[f32],
    term_grads: &mut Terms,
    grad_edge: &mut [f32],
) {
    let heads = problem.shape.heads;
    let slope = simd.splat_f32s(problem.slope);
    let edge = problem.edge_line(row.index, heads);
    term_grads.sources.fill(0.0);
    for i in 0..problem.shape.nodes {
        let at_destination = i * heads..(i + 1) * heads;
        for piece in pieces::<S>(heads) {
            let destination = load(simd, &terms.destinations[at_destination.clone()][piece.clone()]);
            let mut grad_destination = simd.splat_f32s(0.0);
            for e in row.starts[i]..row.starts[i + 1] {
                let at_source = row.sources[e] * heads..(row.sources[e] + 1) * heads;
                let at_edge = e * heads..(e + 1) * heads;
                let source = load(simd, &terms.sources[at_source.clone()][piece.clone()]);
                let mut sum = simd.add_f32s(source, destination);
                if let Some((edge, _)) = edge {
                    sum = simd.add_f32s(sum, load(simd, &edge[at_edge.clone()][piece.clone()]));
                }
                let grad = load(simd, &grad_scores[at_edge.clone()][piece.clone()]);
                let grad = simd.mul_f32s(grad, leaky_slope(simd, sum, slope));
                add_to(simd, &mut term_grads.sources[at_source][piece.clone()], grad);
                grad_destination = simd.add_f32s(grad_destination, grad);
                if let Some((_, first)) = edge {
                    let grad_edge = &mut grad_edge[first + at_edge.start..first + at_edge.end];
                    add_to(simd, &mut grad_edge[piece.clone()], grad);
                }
            }
            store(simd, &mut term_grads.destinations[at_destination.clone()][piece], grad_destination);
        }
    }
}

/// Version 1: gradients of values and attention vectors, from gradients of the sums over channels.
#[inline(always)]
fn through_terms<S: Simd, const C: usize>(
    simd: S,
    problem: &Problem<'_>,
    row: Row<'_>,
    term_grads: &Terms,
    grad_projected: &mut [f32],
    grad_attention: &mut [f32],
) {
    let Shape { nodes, heads, hidden, width, .. } = problem.shape;
    let channels = channels::<C>(problem.shape.channels);
    let (source, destination) = problem.attention.split_at(hidden);
    let (grad_source, grad_destination) = grad_attention.split_at_mut(hidden);
    for head in 0..heads {
        let part = head * channels..(head + 1) * channels;
        for piece in pieces::<S>(channels) {
            let source = load(simd, &source[part.clone()][piece.clone()]);
            let destination = load(simd, &destination[part.clone()][piece.clone()]);
            let (mut of_source, mut of_destination) = (simd.splat_f32s(0.0), simd.splat_f32s(0.0));
            for node in 0..nodes {
                let from = simd.splat_f32s(term_grads.sources[node * heads + head]);
                let to = simd.splat_f32s(term_grads.destinations[node * heads + head]);
                let values =
                    load(simd, &row.projected[node * width..node * width + hidden][part.clone()][piece.clone()]);
                let grad_values = &mut grad_projected[node * width..node * width + hidden][part.clone()][piece.clone()];
                let share = simd.mul_add_e_f32s(from, source, simd.mul_f32s(to, destination));
                add_to(simd, grad_values, share);
                of_source = simd.mul_add_e_f32s(from, values, of_source);
                of_destination = simd.mul_add_e_f32s(to, values, of_destination);
            }
            store(simd, &mut grad_source[part.clone()][piece.clone()], of_source);
            store(simd, &mut grad_destination[part.clone()][piece], of_destination);
        }
    }
}

/// Version 2: gradients of all inputs, from gradients of the result and of scores.
#[inline(always)]
fn through_scores_2<S: Simd, const C: usize, const EDGE: bool>(
    simd: S,
    problem: &Problem<'_>,
    row: Row<'_>,
    (edge, edge_first): (&[f32], usize),
    grad_scores: &[f32],
    (grad_projected, grad_attention, grad_edge): (&mut [f32], &mut [f32], &mut [f32]),
) {
    let Shape { nodes, heads, hidden, width, .. } = problem.shape;
    let channels = channels::<C>(problem.shape.channels);
    let slope = simd.splat_f32s(problem.slope);
    for i in 0..nodes {
        let at_right = (i + 1) * width - hidden..(i + 1) * width;
        for head in 0..heads {
            let part = head * channels..(head + 1) * channels;
            for piece in pieces::<S>(channels) {
                let right = load(simd, &row.projected[at_right.clone()][part.clone()][piece.clone()]);
                let grad = load(simd, &row.grad[i * hidden..(i + 1) * hidden][part.clone()][piece.clone()]);
                let a = load(simd, &problem.attention[part.clone()][piece.clone()]);
                let (mut grad_right, mut grad_a) = (simd.splat_f32s(0.0), simd.splat_f32s(0.0));
                for e in row.starts[i]..row.starts[i + 1] {
                    let at_left = row.sources[e] * width..row.sources[e] * width + hidden;
                    let left = load(simd, &row.projected[at_left.clone()][part.clone()][piece.clone()]);
                    let at_edge = e * hidden + part.start..e * hidden + part.end;
                    let mut sum = simd.add_f32s(left, right);
                    if EDGE {
                        sum = simd.add_f32s(sum, load(simd, &edge[at_edge.clone()][piece.clone()]));
                    }
                    let grad_score = simd.splat_f32s(grad_scores[e * heads + head]);
                    let steep = simd.mul_f32s(grad_score, leaky_slope(simd, sum, slope));
                    let grad_sum = simd.mul_f32s(steep, a);
                    grad_a = simd.mul_add_e_f32s(steep, sum, grad_a);
                    grad_right = simd.add_f32s(grad_right, grad_sum);
                    // A source is also a value in the weighted sum.
                    let weight = simd.splat_f32s(row.weights[e * heads + head]);
                    let grad_left = simd.mul_add_e_f32s(weight, grad, grad_sum);
                    add_to(simd, &mut grad_projected[at_left][part.clone()][piece.clone()], grad_left);
                    if EDGE {
                        let line = edge_first + at_edge.start..edge_first + at_edge.end;
                        add_to(simd, &mut grad_edge[line][piece.clone()], grad_sum);
                    }
                }
                add_to(simd, &mut grad_projected[at_right.clone()][part.clone()][piece.clone()], grad_right);
                add_to(simd, &mut grad_attention[part.clone()][piece], grad_a);
            }
        }
    }
}
