//! Graphs, tensors and comparisons for the tests of this crate.

use brasa_gat::{Graph, Graphs};
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A seeded random generator.
pub fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// `n` numbers in [-1, 1).
pub fn numbers(n: usize, rng: &mut ChaCha8Rng) -> Vec<f32> {
    (0..n).map(|_| 2.0 * rng.random::<f32>() - 1.0).collect()
}

/// `[a, b, c]` of numbers in [-1, 1).
pub fn random(dims: [usize; 3], rng: &mut ChaCha8Rng, device: &Device) -> Tensor<3> {
    Tensor::from_data(TensorData::new(numbers(dims.iter().product(), rng), dims), device)
}

/// A connected graph with edge features and about twice as many undirected edges as nodes.
pub fn graph(n_nodes: usize, edge_width: usize, rng: &mut ChaCha8Rng) -> Graph {
    let mut edges: Vec<[usize; 2]> = Vec::new();
    for node in 1..n_nodes {
        for _ in 0..2 {
            let other = rng.random_range(0..node);
            if !edges.contains(&[node, other]) {
                edges.extend([[node, other], [other, node]]);
            }
        }
    }
    let features = numbers(edges.len() * edge_width, rng);
    let graph = Graph::new(n_nodes, edges).expect("valid");
    if edge_width == 0 { graph } else { graph.with_edge_features(edge_width, features).expect("valid") }
}

/// The same graph with node `i` renamed to `names[i]`.
pub fn relabeled(graph: &Graph, names: &[usize]) -> Graph {
    let edges = graph.edges().iter().map(|edge| edge.map(|node| names[node])).collect();
    let renamed = Graph::new(graph.n_nodes(), edges).expect("valid");
    renamed.with_edge_features(graph.edge_width(), graph.edge_features().to_vec()).expect("valid")
}

/// A table without padding.
pub fn table(graphs: &[Graph], device: &Device) -> Graphs {
    Graphs::new(graphs.to_vec(), device).expect("valid")
}

/// Indices of graphs.
pub fn ids(values: &[i32], device: &Device) -> Tensor<1, Int> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), &device.clone().without_autodiff())
}

/// All numbers of a tensor.
pub fn read<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.inner().into_data().iter::<f64>().collect()
}
