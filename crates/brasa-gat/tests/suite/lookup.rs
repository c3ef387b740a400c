//! The dictionary lookup of Brody et al. 2021 (section 4): the relevant neighbor depends on the querying node.
#![allow(clippy::expect_used)]

use crate::common;

use brasa_gat::{Gat, GatConfig, Graph, Graphs, Version};
use brasa_nn::{AdamConfig, Init, Linear, Step, Trainable};
use burn::module::Module;
use burn::tensor::activation::{log_softmax, relu};
use burn::tensor::{Device, Int, Tensor, TensorData};
use common::rng;
use rand::RngExt;

const K: usize = 10;
const ROWS: usize = 32;
const WIDTH: usize = 32;

/// Embeds key and value, applies one attention layer, and outputs logits of values.
#[derive(Module, Debug)]
struct Lookup {
    embed: Linear,
    attention: Gat,
    head: Linear,
}

impl Lookup {
    fn new(version: Version, device: &Device) -> Self {
        let mut rng = rng(1);
        let attention = Gat::new(&GatConfig::new(version, WIDTH, WIDTH, 1), device, &mut rng).expect("valid");
        Self {
            embed: Linear::new(2 * K + 1, WIDTH, Init::FanIn, device, &mut rng),
            attention,
            head: Linear::new(WIDTH, K, Init::FanIn, device, &mut rng),
        }
    }

    /// Logits of the value of each query, `[n_rows * K, K]`.
    fn forward(&self, x: Tensor<3>, graphs: &Graphs) -> Tensor<2> {
        let [n_rows, n_nodes, width] = x.dims();
        let embedded = self.embed.forward(x.reshape([n_rows * n_nodes, width]), None);
        let batch = graphs.batch(Tensor::zeros([n_rows], &embedded.device().without_autodiff()));
        let attended = self.attention.forward(embedded.reshape([n_rows, n_nodes, WIDTH]), &batch);
        // The first K nodes are queries.
        let queries = attended.slice([0..n_rows, 0..K]).reshape([n_rows * K, WIDTH]);
        self.head.forward(relu(queries), None)
    }
}

/// Keys in order with values in random order: `[ROWS, 2 K, 2 K + 1]`, and the value of each query, `[ROWS * K, 1]`.
fn draw(seed: u64, device: &Device) -> (Tensor<3>, Tensor<2, Int>) {
    let mut rng = rng(seed);
    let width = 2 * K + 1;
    let mut x = vec![0.0f32; ROWS * 2 * K * width];
    let mut answers = Vec::new();
    for row in x.chunks_exact_mut(2 * K * width) {
        let mut values: Vec<usize> = (0..K).collect();
        (1..K).for_each(|i| values.swap(i, rng.random_range(0..=i)));
        for (key, value) in values.iter().enumerate() {
            // A query has a key and an empty value.
            row[key * width + key] = 1.0;
            row[key * width + 2 * K] = 1.0;
            row[(K + key) * width + key] = 1.0;
            row[(K + key) * width + K + value] = 1.0;
        }
        answers.extend(values.iter().map(|value| *value as i32));
    }
    let answers = Tensor::from_data(TensorData::new(answers, [ROWS * K, 1]), &device.clone().without_autodiff());
    (Tensor::from_data(TensorData::new(x, [ROWS, 2 * K, width]), &device.clone().without_autodiff()), answers)
}

/// Accuracy on dictionaries that were not in training.
fn accuracy_after_learning(version: Version) -> f64 {
    let device = brasa_test::device().autodiff();
    let edges = (0..K).flat_map(|query| (K..2 * K).map(move |key| [key, query])).collect();
    let graph = Graph::new(2 * K, edges).expect("valid");
    let graphs = Graphs::new(vec![graph], &device).expect("valid");
    let mut learner = Trainable::new(Lookup::new(version, &device), AdamConfig::default()).expect("valid");
    for step in 0..600 {
        let (x, answers) = draw(step, &device);
        let log_probs = log_softmax(learner.module().forward(x, &graphs), 1);
        let loss = -log_probs.gather(1, answers).mean();
        learner.step(&loss, Step::new(3e-3, None));
    }
    let (x, answers) = draw(1_000_000, &device);
    let chosen = learner.module().forward(x, &graphs).argmax(1);
    let right = chosen.equal(answers).float().mean();
    common::read(right)[0]
}

#[test]
fn version_2_looks_up_and_version_1_cannot() {
    let (static_, dynamic) = (accuracy_after_learning(Version::V1), accuracy_after_learning(Version::V2));
    assert!(dynamic > 0.99, "version 2 answers {dynamic} of all queries");
    assert!(static_ < 0.5, "version 1 answers {static_} of all queries");
}
