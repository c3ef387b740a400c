//! Attention over the edges of graphs.

#[cfg(feature = "flex")]
mod host;

#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::Dispatch;
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::tensor::{FloatTensor, IntTensor};
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use burn::backend::{Autodiff, Backend, backend_extension};
use burn::tensor::activation::leaky_relu;
use burn::tensor::{IndexingUpdateOp, Int, Tensor};

#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
use crate::node::node;

/// The graphs of a batch: edges of all graphs of a table, and the graph of each row.
///
/// Edges of one graph are sorted by destination, every node has at least one that ends in it, and sources are below
/// `n_nodes`. Graphs are padded to the same number of nodes and edges.
///
/// ```
/// use brasa_kernels::EdgeTables;
/// use burn::tensor::Tensor;
///
/// // One graph of two nodes. Each node has an edge to itself, and an edge leads from node 0 to node 1.
/// let device = brasa_device::open_named("cpu")?;
/// let tables = EdgeTables {
///     ids: Tensor::from_ints([0], &device),
///     edge_ids: Tensor::from_ints([0], &device),
///     starts: Tensor::from_ints([[0, 1, 3]], &device),
///     sources: Tensor::from_ints([[0, 0, 1]], &device),
///     destinations: Tensor::from_ints([[0, 1, 1]], &device),
///     edge_mask: Tensor::ones([1, 3], &device),
///     slots: Tensor::from_ints([[[0, 0], [1, 2]]], &device),
/// };
/// // The sources of the edges that end in node 1.
/// let sources = tables.sources.slice([0..1, 1..3]).into_data();
/// assert_eq!(sources.iter::<i64>().collect::<Vec<_>>(), [0, 1]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct EdgeTables {
    /// `[n_rows]`: the graph of each row.
    pub ids: Tensor<1, Int>,
    /// `[n_rows]`: index of the edge term of each row.
    pub edge_ids: Tensor<1, Int>,
    /// `[n_graphs, n_nodes + 1]`: the first edge that ends in each node; the last entry is the number of edges.
    pub starts: Tensor<2, Int>,
    /// `[n_graphs, n_edges]`: source of each edge.
    pub sources: Tensor<2, Int>,
    /// `[n_graphs, n_edges]`: destination of each edge; any node for padding.
    pub destinations: Tensor<2, Int>,
    /// `[n_graphs, n_edges]`: 1 for the graph's own edges, 0 for padding.
    pub edge_mask: Tensor<2>,
    /// `[n_graphs, n_nodes, n_slots]`: the edges that end in each node, padded by repeating one of them.
    pub slots: Tensor<3, Int>,
}

/// Attention over the neighbors of every node, `[n_rows, n_nodes, heads * channels]`, and the weights of all edges,
/// `[n_rows, n_edges, heads]`, detached and 0 for padding.
///
/// Attention of nodes over their neighbors, forward and backward, as one autodiff node.
///
/// For an edge from `j` to `i`, per head, the score is
///
/// - version 1 (Velickovic et al. 2018): `e_ij = leaky(a_s . v_j + a_d . v_i + t_ij)`;
/// - version 2 (Brody et al. 2021): `e_ij = a . leaky(r_i + v_j + t_ij)`;
///
/// and the result is `out_i = sum_j alpha_ij v_j`, with `alpha` the softmax of `e` over the edges that end in `i`. In
/// plain operations every intermediate value per edge and channel is a tensor, which needs ten passes over memory. On
/// the CPU one pass per destination keeps them in registers, and the backward pass recomputes them. On GPUs the forward pass
/// is one kernel, the backward pass two and the sums over rows; indices of tables are not checked there.
///
/// # Shapes
/// - `projected`: `[n_rows, n_nodes, heads * channels]` values `v`; with version 2 either followed by as many columns for
///   destinations `r`, or `r = v`
/// - `attention`: `[2, heads, channels]` for version 1, `a_s` then `a_d`; `[1, heads, channels]` for version 2
/// - `edge`: the term `t` of every edge, `[lines, n_edges, heads]` for version 1, `[lines, n_edges, heads * channels]`
///   for version 2, indexed by [`EdgeTables::edge_ids`]
/// - `slope`: slope of the leaky ReLU below 0, in [0, 1)
///
/// # Panics
/// On the CPU, if a table has an invalid index of a graph, node or line.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/graph.inc")); }
/// # use shown::*;
/// use brasa_kernels::graph_attention;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// // `two_nodes` has an edge from each node to itself, and an edge from node 0 to node 1.
/// let device = brasa_device::open_named("cpu")?;
/// let values = Tensor::<3>::from_floats([[[2.0], [4.0]]], &device);
/// // With attention vectors of 0, all edges that end in a node have one weight.
/// let attention = Tensor::<3>::zeros([1, 1, 1], &device);
/// let (out, weights) = graph_attention(values, attention, None, &two_nodes(&device), 0.2);
/// assert_eq!(numbers(weights), [1.0, 0.5, 0.5]);
/// assert_eq!(numbers(out), [2.0, 3.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn graph_attention(
    projected: Tensor<3>,
    attention: Tensor<3>,
    edge: Option<Tensor<3>>,
    tables: &EdgeTables,
    slope: f32,
) -> (Tensor<3>, Tensor<3>) {
    #[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
    {
        let device = projected.device();
        let single = [projected.dtype(), attention.dtype()].iter().all(|dtype| *dtype == burn::tensor::DType::F32);
        // Kernels for GPUs read tables of 32 bits.
        let narrow = brasa_device::runs_on_host(&device) || tables.ids.dtype() == burn::tensor::DType::I32;
        if single && narrow && crate::compiled_for(&device) {
            let with_edge = edge.is_some();
            // A backend extension cannot have optional tensors.
            let edge = edge.unwrap_or_else(|| Tensor::zeros([1, 1, 1], &device.without_autodiff()));
            let (out, weights) = <Dispatch as GraphAttentionOps>::brasa_graph_attention(
                projected.into_dispatch(),
                attention.into_dispatch(),
                edge.into_dispatch(),
                with_edge,
                tables.ids.clone().into_dispatch(),
                tables.edge_ids.clone().into_dispatch(),
                tables.starts.clone().into_dispatch(),
                tables.sources.clone().into_dispatch(),
                slope,
            );
            return (Tensor::from_dispatch(out), Tensor::<3>::from_dispatch(weights).detach());
        }
    }
    plain_graph_attention(projected, attention, edge, tables, slope)
}

/// The same in operations of every backend: gather and scatter-add.
///
/// A scatter that takes the largest of duplicates is not defined, so the largest score of a destination comes from a padded
/// list of its edges. It only keeps exponents small and cancels out, so it stays detached.
pub(crate) fn plain_graph_attention(
    projected: Tensor<3>,
    attention: Tensor<3>,
    edge: Option<Tensor<3>>,
    tables: &EdgeTables,
    slope: f32,
) -> (Tensor<3>, Tensor<3>) {
    let [n_rows, n_nodes, width] = projected.dims();
    let [version, heads, channels] = attention.dims();
    let (n_edges, n_slots) = (tables.sources.dims()[1], tables.slots.dims()[2]);
    let hidden = heads * channels;
    let of_rows = |table: &Tensor<2, Int>, stride| flat(table.clone().select(0, tables.ids.clone()), stride);
    let (sources, destinations) = (of_rows(&tables.sources, n_nodes), of_rows(&tables.destinations, n_nodes));
    let slots = of_rows(&tables.slots.clone().flatten::<2>(1, 2), n_edges);
    let edge = edge.map(|edge| edge.select(0, tables.edge_ids.clone()).flatten::<2>(0, 1));
    let values = projected.clone().slice([0..n_rows, 0..n_nodes, 0..hidden]).reshape([n_rows * n_nodes, hidden]);
    let at_sources = values.clone().select(0, sources.clone());

    let scores = if version == 2 {
        let term = |index: usize| {
            let a = attention.clone().slice([index..index + 1, 0..heads, 0..channels]);
            (values.clone().reshape([n_rows * n_nodes, heads, channels]) * a).sum_dim(2).squeeze_dim::<2>(2)
        };
        let sum = term(0).select(0, sources) + term(1).select(0, destinations.clone());
        leaky_relu(edge.map_or(sum.clone(), |edge| sum + edge), f64::from(slope))
    } else {
        let at_destinations = projected.slice([0..n_rows, 0..n_nodes, width - hidden..width]);
        let at_destinations = at_destinations.reshape([n_rows * n_nodes, hidden]).select(0, destinations.clone());
        let sum = at_sources.clone() + at_destinations;
        let sum = leaky_relu(edge.map_or(sum.clone(), |edge| sum + edge), f64::from(slope));
        (sum.reshape([n_rows * n_edges, heads, channels]) * attention).sum_dim(2).squeeze_dim(2)
    };

    let largest = scores.clone().detach().select(0, slots).reshape([n_rows * n_nodes, n_slots, heads]).max_dim(1);
    let largest = largest.squeeze_dim::<2>(1).select(0, destinations.clone());
    // For padding the difference is arbitrary, and its exponential may be infinite.
    let mask = tables.edge_mask.clone().select(0, tables.ids.clone()).reshape([n_rows * n_edges, 1]);
    let weights = ((scores - largest).clamp_max(0.0)).exp() * mask;
    let add = |values: Tensor<2>, width: usize| {
        let sums = Tensor::zeros([n_rows * n_nodes, width], &values.device());
        sums.select_assign(0, destinations.clone(), values, IndexingUpdateOp::Add)
    };
    let sums = add(weights.clone(), heads).select(0, destinations.clone());
    let weights = weights / sums;
    let messages = at_sources.reshape([n_rows * n_edges, heads, channels]) * weights.clone().unsqueeze_dim::<3>(2);
    let out = add(messages.reshape([n_rows * n_edges, hidden]), hidden);
    (out.reshape([n_rows, n_nodes, hidden]), weights.detach().reshape([n_rows, n_edges, heads]))
}

/// Indices into flattened rows from indices within each row.
fn flat(table: Tensor<2, Int>, stride: usize) -> Tensor<1, Int> {
    let rows = table.dims()[0];
    let first = Tensor::<1, Int>::arange(0..rows as i64, &table.device()) * stride as i64;
    (table + first.unsqueeze_dim(1)).flatten(0, 1)
}

/// Backends with a fused operation.
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(any(feature = "cuda", feature = "wgpu")),
    Autodiff
)]
pub(crate) trait GraphAttentionOps: Backend {
    /// Result and weights.
    #[allow(clippy::too_many_arguments, reason = "an extension takes its tensors one by one")]
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
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}

/// What the backward pass needs beside the gradient of the result.
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
#[derive(Debug, Clone)]
pub(crate) struct Kept<B: Backend> {
    /// `projected`, `attention` and `edge`.
    pub(crate) inputs: [FloatTensor<B>; 3],
    pub(crate) with_edge: bool,
    /// `ids`, `edge_ids`, `starts` and `sources`.
    pub(crate) tables: [IntTensor<B>; 4],
    pub(crate) slope: f32,
    /// The weights of the forward pass.
    pub(crate) weights: FloatTensor<B>,
}

/// The gradients of an attention.
#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
pub(crate) trait GraphAttentionBackward: Backend {
    /// Gradients of `projected`, `attention` and `edge`.
    fn graph_attention_backward(kept: Kept<Self>, grad: FloatTensor<Self>) -> [FloatTensor<Self>; 3];
}

#[cfg(any(feature = "cuda", feature = "wgpu"))]
impl GraphAttentionOps for burn_cubecl::CubeBackend {
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
        use burn::backend::TensorMetadata;

        let form = crate::cube::graph_attention::Form { first_version: attention.shape()[0] == 2, with_edge };
        let inputs = [projected, attention, edge, ids, edge_ids, starts, sources];
        crate::cube::graph_attention::forward(inputs, slope, form)
    }
}

#[cfg(any(feature = "cuda", feature = "wgpu"))]
impl GraphAttentionBackward for burn_cubecl::CubeBackend {
    fn graph_attention_backward(kept: Kept<Self>, grad: FloatTensor<Self>) -> [FloatTensor<Self>; 3] {
        use burn::backend::{TensorMetadata, ops::FloatTensorOps};

        let Kept { inputs: [projected, attention, edge], with_edge, tables, slope, weights } = kept;
        let [ids, edge_ids, starts, sources] = tables;
        let (vectors, lines) = (attention.shape(), edge.shape());
        let form = crate::cube::graph_attention::Form { first_version: vectors[0] == 2, with_edge };
        let inputs = [projected, attention, edge.clone(), ids, edge_ids.clone(), starts, sources];
        let (projected, attention, of_rows) =
            crate::cube::graph_attention::backward(inputs, weights, grad, slope, form);
        let attention = Self::float_reshape(Self::float_sum_dim(attention, 0), vectors);
        // Without an edge term nobody asks for its gradient.
        let edge = match with_edge {
            true => {
                let zeros = Self::float_zeros(lines, &edge.device, burn::tensor::FloatDType::F32);
                Self::float_select_assign(zeros, 0, edge_ids, of_rows, IndexingUpdateOp::Add)
            }
            false => edge,
        };
        [projected, attention, edge]
    }
}

#[cfg(any(feature = "flex", feature = "cuda", feature = "wgpu"))]
impl<B: GraphAttentionOps + GraphAttentionBackward, C: CheckpointStrategy> GraphAttentionOps for Autodiff<B, C> {
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
        let forward = |inputs: [FloatTensor<B>; 3], is_tracked: bool| {
            let tables = [&ids, &edge_ids, &starts, &sources].map(Clone::clone);
            let kept = is_tracked.then(|| (inputs.clone(), tables));
            let [projected, attention, edge] = inputs;
            let (out, weights) =
                B::brasa_graph_attention(projected, attention, edge, with_edge, ids, edge_ids, starts, sources, slope);
            let all = |(inputs, tables)| Kept { inputs, with_edge, tables, slope, weights: weights.clone() };
            (out, kept.map(all), weights)
        };
        let backward = |kept, _: [bool; 3], grad| B::graph_attention_backward(kept, grad).map(Some);
        let (out, weights) = node::<B, C, _, _, 3>([projected, attention, edge], forward, backward);
        (out, FloatTensor::<Self>::new(weights))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use burn::tensor::{Device, TensorData};
    use proptest::prelude::*;

    pub(crate) const N_NODES: usize = 4;
    pub(crate) const N_EDGES: usize = 9;

    /// Two graphs: a ring with a chord, and two nodes that know each other beside two that know nobody.
    const GRAPHS: [&[[i32; 2]]; 2] = [
        &[[0, 0], [3, 0], [0, 1], [1, 1], [1, 2], [2, 2], [0, 3], [2, 3], [3, 3]],
        &[[0, 0], [1, 0], [0, 1], [1, 1], [2, 2], [3, 3]],
    ];
    /// The graph of each row.
    const OF_ROWS: [i32; 3] = [1, 0, 0];

    pub(crate) fn tables(device: &Device) -> EdgeTables {
        let (mut starts, mut sources, mut destinations, mut mask, mut slots) = (vec![], vec![], vec![], vec![], vec![]);
        for edges in GRAPHS {
            for node in 0..=N_NODES as i32 {
                starts.push(edges.iter().filter(|edge| edge[1] < node).count() as i32);
            }
            let padded = |end: usize| (0..N_EDGES).map(move |e| edges.get(e).map_or(0, |edge| edge[end]));
            sources.extend(padded(0));
            destinations.extend(padded(1));
            mask.extend((0..N_EDGES).map(|e| f32::from(u8::from(e < edges.len()))));
            for node in 0..N_NODES as i32 {
                let own: Vec<i32> = (0..edges.len()).filter(|e| edges[*e][1] == node).map(|e| e as i32).collect();
                slots.extend((0..3).map(|slot| own[slot.min(own.len() - 1)]));
            }
        }
        let table = |values: Vec<i32>, n: usize| Tensor::<2, Int>::from_data(TensorData::new(values, [2, n]), device);
        EdgeTables {
            ids: Tensor::from_ints(OF_ROWS, device),
            edge_ids: Tensor::from_ints(OF_ROWS, device),
            starts: table(starts, N_NODES + 1),
            sources: table(sources, N_EDGES),
            destinations: table(destinations, N_EDGES),
            edge_mask: Tensor::from_data(TensorData::new(mask, [2, N_EDGES]), device),
            slots: table(slots, N_NODES * 3).reshape([2, N_NODES, 3]),
        }
    }

    /// The least magnitude of what the leaky ReLU of a score gets. Near 0 its derivative depends on the order of sums.
    fn nearest_to_the_kink(projected: &Tensor<3>, attention: &Tensor<3>, edge: Option<&Tensor<3>>, first: bool) -> f32 {
        let numbers = |tensor: &Tensor<3>| tensor.clone().inner().into_data().iter::<f32>().collect::<Vec<_>>();
        let ([_, heads, channels], [_, _, width]) = (attention.dims(), projected.dims());
        let (hidden, wide) = (heads * channels, if first { heads } else { heads * channels });
        let (values, weights, edge) = (numbers(projected), numbers(attention), edge.map(numbers));
        // What a node adds to column `i`, as the source or the destination of an edge.
        let term = |row: usize, node: i32, i: usize, end: usize| {
            let node = &values[(row * N_NODES + node as usize) * width..][..width];
            match first {
                true => (i * channels..(i + 1) * channels).map(|c| node[c] * weights[end * hidden + c]).sum::<f32>(),
                false => node[if width > hidden { end * hidden + i } else { i }],
            }
        };
        let mut least = f32::INFINITY;
        for (row, graph) in OF_ROWS.into_iter().enumerate() {
            for (e, [source, destination]) in GRAPHS[graph as usize].iter().enumerate() {
                for i in 0..wide {
                    let of_edge = edge.as_ref().map_or(0.0, |edge| edge[(graph as usize * N_EDGES + e) * wide + i]);
                    least = least.min((term(row, *source, i, 0) + term(row, *destination, i, 1) + of_edge).abs());
                }
            }
        }
        least
    }

    proptest! {
        #[test]
        fn one_pass_equals_gathers_and_scatters(
            first in proptest::bool::ANY, shared in proptest::bool::ANY, with_edge in proptest::bool::ANY,
            (heads, channels) in prop_oneof![Just((1, 3)), Just((2, 8)), Just((3, 11)), Just((2, 16))],
            seed in 0.0f32..100.0,
        ) {
            let plain_device = brasa_test::device();
            let device = plain_device.clone().autodiff();
            let hidden = heads * channels;
            let width = if first || shared { hidden } else { 2 * hidden };
            // Scores have magnitude 1: larger ones lose the compared digits in f32.
            let leaf = |dims: [usize; 3], phase: f32| {
                let values = (0..dims.iter().product()).map(|i| ((i as f32 + 1.0) * (phase + 0.37 * seed)).sin() * 0.7);
                Tensor::<3>::from_data(TensorData::new(values.collect::<Vec<f32>>(), dims), &device).require_grad()
            };
            let projected = leaf([3, N_NODES, width], 1.7);
            let attention = leaf([if first { 2 } else { 1 }, heads, channels], 2.3);
            let edge = with_edge.then(|| leaf([2, N_EDGES, if first { heads } else { hidden }], 0.9));
            prop_assume!(nearest_to_the_kink(&projected, &attention, edge.as_ref(), first) > 1e-5);
            let probe = leaf([3, N_NODES, hidden], 3.1).detach();
            let tables = tables(&plain_device);
            let run = |(out, weights): (Tensor<3>, Tensor<3>)| {
                let grads = (out.clone() * probe.clone()).sum().backward();
                let mut all: Vec<f32> = out.inner().into_data().iter::<f32>().collect();
                all.extend(weights.inner().into_data().iter::<f32>());
                for leaf in [Some(&projected), Some(&attention), edge.as_ref()].into_iter().flatten() {
                    all.extend(leaf.grad(&grads).expect("a leaf").into_data().iter::<f32>());
                }
                all
            };
            let fused = run(graph_attention(projected.clone(), attention.clone(), edge.clone(), &tables, 0.2));
            let plain = run(plain_graph_attention(projected.clone(), attention.clone(), edge.clone(), &tables, 0.2));
            prop_assert_eq!(fused.len(), plain.len());
            for (got, expected) in fused.iter().zip(&plain) {
                prop_assert!((got - expected).abs() < 2e-5 * expected.abs().max(1.0), "{} instead of {}", got, expected);
            }
        }
    }

    #[test]
    fn off_the_tape_it_stays_off() {
        let device = brasa_test::device();
        let (out, weights) = graph_attention(
            Tensor::ones([3, N_NODES, 4], &device),
            Tensor::ones([1, 2, 2], &device),
            None,
            &tables(&device),
            0.2,
        );
        assert!(!out.is_autodiff() && !weights.is_autodiff());
        // The values are equal for any weights, which sum to 1 for each of the four nodes and two heads.
        assert!(out.into_data().iter::<f32>().all(|x| (x - 1.0).abs() < 1e-6));
        let sums: Vec<f32> = weights.sum_dim(1).into_data().iter::<f32>().collect();
        assert!(sums.iter().all(|x| (x - 4.0).abs() < 1e-6), "{sums:?}");
    }

    #[test]
    #[should_panic(expected = "sources of graph 1")]
    #[cfg(feature = "flex")]
    fn a_source_that_is_not_there_is_refused() {
        // Only the CPU looks at the numbers.
        let device = brasa_device::open_named("cpu").expect("the feature is on");
        let mut tables = tables(&device);
        tables.sources = tables.sources + 3;
        graph_attention(Tensor::ones([3, N_NODES, 4], &device), Tensor::ones([1, 2, 2], &device), None, &tables, 0.2);
    }
}
