//! Attention over neighbors: one thread per destination and head, and backward also one per row and channel.

use burn::backend::TensorMetadata;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::cubecl::{self, prelude::*};
use super::{empty, threads};

/// What the translation of the kernels depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Form {
    /// Version 1 has two attention vectors, version 2 one.
    pub(crate) first_version: bool,
    pub(crate) with_edge: bool,
}

/// Projected values, attention vectors, edge term, then ids, lines, starts and sources of [`crate::EdgeTables`].
pub(crate) type Inputs = [CubeTensor; 7];

#[cube(launch, create_dummy_kernel)]
pub(super) fn attention_forward(
    projected: &Tensor<f32>,
    attention: &Tensor<f32>,
    edge: &Tensor<f32>,
    ids: &Tensor<i32>,
    edge_ids: &Tensor<i32>,
    starts: &Tensor<i32>,
    sources: &Tensor<i32>,
    out: &mut Tensor<f32>,
    weights: &mut Tensor<f32>,
    slope: f32,
    #[comptime] form: Form,
) {
    let (nodes, heads, channels) = (projected.shape(1), attention.shape(1), attention.shape(2));
    let (edges, width, hidden) = (sources.shape(1), projected.shape(2), heads * channels);
    if ABSOLUTE_POS < out.shape(0) * nodes * heads {
        let (node, head) = (ABSOLUTE_POS / heads, ABSOLUTE_POS % heads);
        let (row, i) = (node / nodes, node % nodes);
        let graph = usize::cast_from(ids[row]);
        let first = usize::cast_from(starts[graph * (nodes + 1) + i]);
        let end = usize::cast_from(starts[graph * (nodes + 1) + i + 1]);
        let line = usize::cast_from(edge_ids[row]) * edges;
        let mut largest = f32::min_value();
        for e in first..end {
            let j = row * nodes + usize::cast_from(sources[graph * edges + e]);
            let score = score(projected, attention, edge, j, node, line + e, head, slope, form);
            weights[(row * edges + e) * heads + head] = score;
            largest = select(score > largest, score, largest);
        }
        let mut sum = 0.0f32;
        for e in first..end {
            let at = (row * edges + e) * heads + head;
            let weight = (weights[at] - largest).exp();
            weights[at] = weight;
            sum += weight;
        }
        for e in first..end {
            let at = (row * edges + e) * heads + head;
            weights[at] /= sum;
        }
        for channel in 0..channels {
            let column = head * channels + channel;
            let mut total = 0.0f32;
            for e in first..end {
                let j = row * nodes + usize::cast_from(sources[graph * edges + e]);
                total += weights[(row * edges + e) * heads + head] * projected[j * width + column];
            }
            out[node * hidden + column] = total;
        }
        // Edges after the last node are padding.
        if i == nodes - 1 {
            for e in end..edges {
                weights[(row * edges + e) * heads + head] = 0.0;
            }
        }
    }
}

/// The gradient of every score, with version 1 of its sum before the leaky ReLU.
#[cube(launch, create_dummy_kernel)]
pub(super) fn attention_scores_backward(
    projected: &Tensor<f32>,
    attention: &Tensor<f32>,
    edge: &Tensor<f32>,
    ids: &Tensor<i32>,
    edge_ids: &Tensor<i32>,
    starts: &Tensor<i32>,
    sources: &Tensor<i32>,
    weights: &Tensor<f32>,
    grad: &Tensor<f32>,
    grad_scores: &mut Tensor<f32>,
    slope: f32,
    #[comptime] form: Form,
) {
    let (nodes, heads, channels) = (projected.shape(1), attention.shape(1), attention.shape(2));
    let (edges, width, hidden) = (sources.shape(1), projected.shape(2), heads * channels);
    if ABSOLUTE_POS < projected.shape(0) * nodes * heads {
        let (node, head) = (ABSOLUTE_POS / heads, ABSOLUTE_POS % heads);
        let (row, i) = (node / nodes, node % nodes);
        let graph = usize::cast_from(ids[row]);
        let first = usize::cast_from(starts[graph * (nodes + 1) + i]);
        let end = usize::cast_from(starts[graph * (nodes + 1) + i + 1]);
        let line = usize::cast_from(edge_ids[row]) * edges;
        let mut mean = 0.0f32;
        for e in first..end {
            let j = row * nodes + usize::cast_from(sources[graph * edges + e]);
            let at = (row * edges + e) * heads + head;
            let mut product = 0.0f32;
            for channel in 0..channels {
                let column = head * channels + channel;
                product += grad[node * hidden + column] * projected[j * width + column];
            }
            grad_scores[at] = product;
            mean += weights[at] * product;
        }
        for e in first..end {
            let at = (row * edges + e) * heads + head;
            let mut value = weights[at] * (grad_scores[at] - mean);
            if comptime!(form.first_version) {
                let j = row * nodes + usize::cast_from(sources[graph * edges + e]);
                let sum = sum_of_version_1(projected, attention, edge, j, node, line + e, head, form);
                value *= select(sum < 0.0, slope, 1.0);
            }
            grad_scores[at] = value;
        }
        if i == nodes - 1 {
            for e in end..edges {
                grad_scores[(row * edges + e) * heads + head] = 0.0;
            }
        }
    }
}

/// Gradients of projected values; of the attention vectors per row; with version 2 of the edge term per row.
#[cube(launch, create_dummy_kernel)]
pub(super) fn attention_values_backward(
    projected: &Tensor<f32>,
    attention: &Tensor<f32>,
    edge: &Tensor<f32>,
    ids: &Tensor<i32>,
    edge_ids: &Tensor<i32>,
    starts: &Tensor<i32>,
    sources: &Tensor<i32>,
    weights: &Tensor<f32>,
    grad: &Tensor<f32>,
    grad_scores: &Tensor<f32>,
    grad_projected: &mut Tensor<f32>,
    grad_attention: &mut Tensor<f32>,
    grad_edge: &mut Tensor<f32>,
    slope: f32,
    #[comptime] form: Form,
) {
    let (nodes, heads, channels) = (projected.shape(1), attention.shape(1), attention.shape(2));
    let (edges, width, hidden) = (sources.shape(1), projected.shape(2), heads * channels);
    if ABSOLUTE_POS < projected.shape(0) * hidden {
        let (row, column) = (ABSOLUTE_POS / hidden, ABSOLUTE_POS % hidden);
        let head = column / channels;
        let graph = usize::cast_from(ids[row]);
        let line = usize::cast_from(edge_ids[row]) * edges;
        // Of the values that scores take at destinations: they follow the others, or are the same.
        let at_destination = width - hidden + column;
        for node in 0..nodes {
            grad_projected[(row * nodes + node) * width + column] = 0.0;
            grad_projected[(row * nodes + node) * width + at_destination] = 0.0;
        }
        let mut grad_source = 0.0f32;
        let mut grad_destination = 0.0f32;
        for i in 0..nodes {
            let node = row * nodes + i;
            let first = usize::cast_from(starts[graph * (nodes + 1) + i]);
            let end = usize::cast_from(starts[graph * (nodes + 1) + i + 1]);
            let mut total = 0.0f32;
            for e in first..end {
                let j = row * nodes + usize::cast_from(sources[graph * edges + e]);
                let at = (row * edges + e) * heads + head;
                let (score, value) = (grad_scores[at], projected[j * width + column]);
                let through = if comptime!(form.first_version) {
                    total += score * attention[hidden + column];
                    grad_source += score * value;
                    grad_destination += score * projected[node * width + at_destination];
                    score * attention[column]
                } else {
                    let mut sum = value + projected[node * width + at_destination];
                    if comptime!(form.with_edge) {
                        sum += edge[(line + e) * hidden + column];
                    }
                    let factor = select(sum < 0.0, slope, 1.0);
                    let through = score * attention[column] * factor;
                    total += through;
                    grad_source += score * sum * factor;
                    if comptime!(form.with_edge) {
                        grad_edge[(row * edges + e) * hidden + column] = through;
                    }
                    through
                };
                grad_projected[j * width + column] += weights[at] * grad[node * hidden + column] + through;
            }
            grad_projected[node * width + at_destination] += total;
        }
        if comptime!(form.first_version) {
            grad_attention[row * 2 * hidden + column] = grad_source;
            grad_attention[row * 2 * hidden + hidden + column] = grad_destination;
        } else {
            grad_attention[row * hidden + column] = grad_source;
            if comptime!(form.with_edge) {
                for e in usize::cast_from(starts[graph * (nodes + 1) + nodes])..edges {
                    grad_edge[(row * edges + e) * hidden + column] = 0.0;
                }
            }
        }
    }
}

/// The score of an edge from node `j` to node `i` of all rows; `line` is the edge in all edge terms.
#[cube]
fn score(
    projected: &Tensor<f32>,
    attention: &Tensor<f32>,
    edge: &Tensor<f32>,
    j: usize,
    i: usize,
    line: usize,
    head: usize,
    slope: f32,
    #[comptime] form: Form,
) -> f32 {
    if comptime!(form.first_version) {
        let sum = sum_of_version_1(projected, attention, edge, j, i, line, head, form);
        sum * select(sum < 0.0, slope, 1.0)
    } else {
        let (channels, width) = (attention.shape(2), projected.shape(2));
        let hidden = attention.shape(1) * channels;
        let mut total = 0.0f32;
        for channel in 0..channels {
            let column = head * channels + channel;
            let mut sum = projected[j * width + column] + projected[i * width + width - hidden + column];
            if comptime!(form.with_edge) {
                sum += edge[line * hidden + column];
            }
            total += attention[column] * sum * select(sum < 0.0, slope, 1.0);
        }
        total
    }
}

/// The score of version 1 before the leaky ReLU.
#[cube]
fn sum_of_version_1(
    projected: &Tensor<f32>,
    attention: &Tensor<f32>,
    edge: &Tensor<f32>,
    j: usize,
    i: usize,
    line: usize,
    head: usize,
    #[comptime] form: Form,
) -> f32 {
    let (heads, channels, width) = (attention.shape(1), attention.shape(2), projected.shape(2));
    let mut sum = 0.0f32;
    for channel in 0..channels {
        let column = head * channels + channel;
        sum += attention[column] * projected[j * width + column];
        sum += attention[heads * channels + column] * projected[i * width + column];
    }
    if comptime!(form.with_edge) {
        sum += edge[line * heads + head];
    }
    sum
}

/// The result, and the weights of all edges.
pub(crate) fn forward(inputs: Inputs, slope: f32, form: Form) -> (CubeTensor, CubeTensor) {
    let inputs = inputs.map(into_contiguous);
    let [rows, nodes, heads, channels, edges] = sizes(&inputs);
    let out = empty(&inputs[0], [rows, nodes, heads * channels]);
    let weights = empty(&inputs[0], [rows, edges, heads]);
    let (count, dim) = threads(&out, rows * nodes * heads);
    let client = out.client.clone();
    let [projected, attention, edge, ids, edge_ids, starts, sources] = inputs.map(CubeTensor::into_tensor_arg);
    let [result, all] = [out.clone(), weights.clone()].map(CubeTensor::into_tensor_arg);
    attention_forward::launch(
        &client, count, dim, projected, attention, edge, ids, edge_ids, starts, sources, result, all, slope, form,
    );
    (out, weights)
}

/// Per row, the gradients of projected values, attention vectors `[rows, vectors * hidden]` and edge term.
pub(crate) fn backward(
    inputs: Inputs,
    weights: CubeTensor,
    grad: CubeTensor,
    slope: f32,
    form: Form,
) -> (CubeTensor, CubeTensor, CubeTensor) {
    let inputs = inputs.map(into_contiguous);
    let [weights, grad] = [weights, grad].map(into_contiguous);
    let [rows, nodes, heads, channels, edges] = sizes(&inputs);
    let hidden = heads * channels;
    let vectors = inputs[1].shape()[0];
    let grad_scores = empty(&grad, [rows, edges, heads]);
    let grad_projected = empty(&grad, inputs[0].shape());
    let grad_attention = empty(&grad, [rows, vectors * hidden]);
    let of_version_2 = !form.first_version && form.with_edge;
    let grad_edge = if of_version_2 { empty(&grad, [rows, edges, hidden]) } else { empty(&grad, [1, 1, 1]) };
    let client = grad.client.clone();

    let (count, dim) = threads(&grad, rows * nodes * heads);
    let [projected, attention, edge, ids, edge_ids, starts, sources] = inputs.clone().map(CubeTensor::into_tensor_arg);
    let [w, g, scores] = [weights.clone(), grad.clone(), grad_scores.clone()].map(CubeTensor::into_tensor_arg);
    attention_scores_backward::launch(
        &client, count, dim, projected, attention, edge, ids, edge_ids, starts, sources, w, g, scores, slope, form,
    );

    let (count, dim) = threads(&grad, rows * hidden);
    let [projected, attention, edge, ids, edge_ids, starts, sources] = inputs.map(CubeTensor::into_tensor_arg);
    let [w, g, scores, p, a, t] =
        [weights, grad, grad_scores.clone(), grad_projected.clone(), grad_attention.clone(), grad_edge.clone()]
            .map(CubeTensor::into_tensor_arg);
    attention_values_backward::launch(
        &client, count, dim, projected, attention, edge, ids, edge_ids, starts, sources, w, g, scores, p, a, t, slope,
        form,
    );
    (grad_projected, grad_attention, if form.first_version { grad_scores } else { grad_edge })
}

/// Rows, nodes, heads, channels, edges.
fn sizes(inputs: &Inputs) -> [usize; 5] {
    let (projected, attention, sources) = (inputs[0].shape(), inputs[1].shape(), inputs[6].shape());
    [projected[0], projected[1], attention[1], attention[2], sources[1]]
}
