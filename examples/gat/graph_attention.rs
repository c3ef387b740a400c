//! One layer of graph attention on a small graph: two groups of people, noisy hints on everyone's group. The layer sees the hints of
//! neighbors; the baseline is the same layer on a graph without edges, which sees each person alone.
//!
//! `cargo run --release -p example-gat --example graph_attention`; a number after `--` replaces the 200 gradient steps.

use brasa_device::open_named;
use brasa_env::{EnvRng, named_rng};
use brasa_gat::{Gat, GatConfig, GatError, Graph, GraphBatch, Graphs, Version};
use brasa_nn::{AdamConfig, Init, Linear, Step, Trainable};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::RngExt;

/// People; the first half is a group, the second half the other.
const NODES: usize = 12;
const ROWS: usize = 64;

#[derive(Module, Debug)]
struct Classifier {
    attention: Gat,
    head: Linear,
}

impl Classifier {
    /// `[n_rows * NODES]`: above 0 for the second group.
    fn forward(&self, hints: Tensor<3>, graph: &GraphBatch) -> Tensor<1> {
        let features = self.attention.forward(hints, graph).tanh();
        let [n_rows, nodes, width] = features.dims();
        self.head.forward(features.reshape([n_rows * nodes, width]), None).squeeze_dim(1)
    }
}

/// Everyone knows everyone of the own group, and one person of the other group.
fn friendships() -> Vec<[usize; 2]> {
    let group = |node: usize| 2 * node / NODES;
    let pairs = (0..NODES * NODES).map(|pair| [pair / NODES, pair % NODES]);
    pairs.filter(|[a, b]| a != b && (group(*a) == group(*b) || a.abs_diff(*b) == NODES / 2)).collect()
}

/// Hints `[ROWS, NODES, 1]` with more noise than signal, and the groups as -1 and 1.
fn sample(rng: &mut EnvRng, device: &Device) -> (Tensor<3>, Tensor<1>) {
    let group = |i: usize| if i % NODES < NODES / 2 { -1.0 } else { 1.0f32 };
    let groups: Vec<f32> = (0..ROWS * NODES).map(group).collect();
    let hints: Vec<f32> = groups.iter().map(|group| 0.3 * group + rng.random_range(-1.0..1.0)).collect();
    let hints = Tensor::from_data(TensorData::new(hints, [ROWS, NODES, 1]), device);
    (hints, Tensor::from_data(TensorData::new(groups, [ROWS * NODES]), device))
}

/// The share of people whose group is right after training on other hints.
fn accuracy(edges: Vec<[usize; 2]>, steps: u32) -> Result<f32, Box<dyn std::error::Error>> {
    let device = open_named("cpu")?;
    let (tracked, rng) = (device.clone().autodiff(), &mut named_rng(0, "weights", 0));
    let graphs = |device: &Device| -> Result<GraphBatch, GatError> {
        let ids = Tensor::<1, Int>::zeros([ROWS], device);
        Ok(Graphs::new(vec![Graph::new(NODES, edges.clone())?], device)?.batch(ids))
    };
    let network = Classifier {
        attention: Gat::new(&GatConfig::new(Version::V2, 1, 8, 2), &tracked, rng)?,
        head: Linear::new(16, 1, Init::Orthogonal(0.1), &tracked, rng),
    };
    let mut network = Trainable::new(network, AdamConfig::default())?;
    let (graph, hints) = (graphs(&device)?, &mut named_rng(0, "hints", 0));
    for _ in 0..steps {
        let (hints, groups) = sample(hints, &device);
        let logits = network.module().forward(Tensor::from_inner(hints), &graph);
        let loss = (logits * Tensor::from_inner(groups)).neg().exp().log1p().mean();
        network.step(&loss, Step::new(1e-2, None));
    }
    let (hints, groups) = sample(&mut named_rng(1, "hints", 0), &device);
    let right = (network.valid().forward(hints, &graph) * groups).greater_elem(0.0).float();
    Ok(right.mean().into_scalar::<f32>())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let steps = std::env::args().nth(1).map_or(Ok(200), |steps| steps.parse())?;
    println!("each person alone (baseline): {:5.1} % right", 100.0 * accuracy(Vec::new(), steps)?);
    println!("graph attention:              {:5.1} % right", 100.0 * accuracy(friendships(), steps)?);
    Ok(())
}
