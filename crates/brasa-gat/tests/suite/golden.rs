//! Layers equal those of PyTorch Geometric in values, attention weights and all gradients (`scripts/record_gat.py`).
#![allow(clippy::expect_used)]

use std::collections::HashMap;

use brasa_gat::{Gat, GatConfig, Graph, GraphNorm, Graphs, Version};
use brasa_nn::{NamedParam, load_params, named_params};
use brasa_test::golden::close;
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use safetensors::SafeTensors;
use serde::Deserialize;

const TOLERANCE: f64 = 1e-5;
#[derive(Deserialize)]
struct Case {
    name: String,
    version: Version,
    nodes: usize,
    inputs: usize,
    heads: usize,
    outputs: usize,
    concat: bool,
    edge_features: usize,
    bias: bool,
    share_weights: bool,
}

/// Recorded arrays by name.
struct Golden {
    arrays: HashMap<String, (Vec<usize>, Vec<f32>)>,
    header: HashMap<String, String>,
}

impl Golden {
    fn read() -> Self {
        let bytes = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/pyg.safetensors")).expect("there");
        let (_, metadata) = SafeTensors::read_metadata(&bytes).expect("valid");
        let file = SafeTensors::deserialize(&bytes).expect("valid");
        let arrays = file.iter().map(|(name, view)| {
            let values = view.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            (name.to_owned(), (view.shape().to_vec(), values))
        });
        Self { arrays: arrays.collect(), header: metadata.metadata().clone().expect("a header") }
    }

    fn values(&self, case: &str, array: &str) -> &[f32] {
        &self.arrays[&format!("{case}/{array}")].1
    }

    fn tensor<const D: usize>(&self, case: &str, array: &str, device: &Device) -> Tensor<D> {
        let (shape, values) = &self.arrays[&format!("{case}/{array}")];
        Tensor::from_data(TensorData::new(values.clone(), shape.clone()), device)
    }

    fn edges(&self, case: &str, array: &str) -> Vec<[usize; 2]> {
        self.values(case, array).chunks_exact(2).map(|edge| [edge[0] as usize, edge[1] as usize]).collect()
    }

    /// Parameters of a case with the names of our modules.
    fn params(&self, case: &str) -> Vec<NamedParam> {
        let names =
            self.arrays.iter().filter_map(|(name, array)| Some((name.strip_prefix(case)?.strip_prefix('/')?, array)));
        names
            .map(|(name, (shape, values))| NamedParam {
                name: name.into(),
                shape: shape.clone(),
                values: values.clone(),
            })
            .collect()
    }
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.inner().into_data().iter::<f64>().collect()
}

fn widened(values: &[f32]) -> impl Iterator<Item = f64> {
    values.iter().map(|x| f64::from(*x))
}

/// Gradients by the names of our parameters.
fn check_gradients<M: Module>(what: &str, module: &M, golden: &Golden, case: &str, grads: &burn::tensor::Gradients) {
    struct Visitor<'a> {
        what: &'a str,
        golden: &'a Golden,
        case: &'a str,
        grads: &'a burn::tensor::Gradients,
        path: Vec<String>,
        seen: usize,
    }
    impl burn::module::ModuleVisitor for Visitor<'_> {
        fn enter_module(&mut self, name: &str, _container_type: &str) {
            self.path.push(name.to_owned());
        }
        fn exit_module(&mut self, _name: &str, _container_type: &str) {
            self.path.pop();
        }
        fn visit_float<const D: usize>(&mut self, param: &burn::module::Param<Tensor<D>>) {
            let name = self.path.join(".");
            let grad = param.val().grad(self.grads).expect("every parameter has a gradient");
            let expected = self.golden.values(self.case, &format!("grad.{name}"));
            close(&format!("{}: gradient of {name}", self.what), numbers(grad), widened(expected), TOLERANCE);
            self.seen += 1;
        }
    }
    let mut visitor = Visitor { what, golden, case, grads, path: vec![], seen: 0 };
    module.visit(&mut visitor);
    assert_eq!(visitor.seen, named_params(module).len(), "{what}");
}

fn check(golden: &Golden, case: &Case, device: &Device) {
    let what = &case.name;
    let device = device.clone().autodiff();
    let graph = Graph::new(case.nodes, golden.edges(&case.name, "edges")).expect("valid");
    let graph = match case.edge_features {
        0 => graph,
        width => graph.with_edge_features(width, golden.values(&case.name, "edge_attr").to_vec()).expect("valid"),
    };
    let graphs = Graphs::new(vec![graph.clone()], &device).expect("valid");
    let mut config = GatConfig::new(case.version, case.inputs, case.outputs, case.heads);
    config.concat = case.concat;
    config.edge_features = case.edge_features;
    config.bias = case.bias;
    config.share_weights = case.share_weights;
    let layer = Gat::new(&config, &device, &mut ChaCha8Rng::seed_from_u64(0)).expect("valid");
    let layer = load_params(layer, &golden.params(&case.name)).expect("recorded under our names");
    let x = golden.tensor::<2>(&case.name, "x", &device).require_grad();
    let mut batch = graphs.batch(Tensor::<1, Int>::zeros([1], &device));
    let edge_features = batch.edge_features().map(|features| Tensor::from_inner(features).require_grad());
    if let Some(features) = &edge_features {
        batch = batch.with_edge_features(features.clone());
    }

    let (out, weights) = layer.forward_with_weights(x.clone().unsqueeze(), &batch);
    let probe = golden.tensor::<2>(&case.name, "probe", &device);
    let grads = (out.clone().squeeze_dim::<2>(0) * probe).sum().backward();
    let out: Vec<f64> = numbers(out);
    close(&format!("{what}: output"), out, widened(golden.values(&case.name, "out")), TOLERANCE);

    let weights = numbers(weights);
    let row_of: HashMap<_, _> = graphs.edges(0).iter().enumerate().map(|(row, edge)| (*edge, row)).collect();
    let attended = golden.edges(&case.name, "attended");
    assert_eq!(attended.len(), row_of.len(), "{what}: edges");
    let in_their_order = attended.iter().flat_map(|edge| {
        let row = row_of[edge];
        weights[row * case.heads..(row + 1) * case.heads].to_vec()
    });
    let expected = golden.values(&case.name, "attention_weights");
    close(&format!("{what}: attention"), in_their_order, widened(expected), TOLERANCE);

    let grad_x = numbers(x.grad(&grads).expect("a leaf"));
    close(&format!("{what}: gradient of x"), grad_x, widened(golden.values(&case.name, "grad.x")), TOLERANCE);
    check_gradients(what, &layer, golden, &case.name, &grads);
    if let Some(features) = edge_features {
        // A self-loop has the mean of the incoming edges, so each of them gets its part of the loop's gradient.
        let grad = numbers(features.grad(&grads).expect("a leaf"));
        let row = |row: usize| grad[row * case.edge_features..(row + 1) * case.edge_features].to_vec();
        let comes_in = |node| graph.edges().iter().filter(|edge| edge[1] == node && edge[0] != node).count() as f64;
        let grad = graph.edges().iter().flat_map(|&[source, destination]| {
            if source == destination {
                return vec![0.0; case.edge_features];
            }
            let (own, of_loop) = (row(row_of[&[source, destination]]), row(row_of[&[destination; 2]]));
            own.iter().zip(of_loop).map(|(own, of_loop)| own + of_loop / comes_in(destination)).collect()
        });
        let expected = golden.values(&case.name, "grad.edge_attr");
        close(&format!("{what}: gradient of edge features"), grad, widened(expected), TOLERANCE);
    }
}

#[test]
fn layers_equal_pytorch_geometric() {
    let golden = Golden::read();
    let cases: Vec<Case> = serde_json::from_str(&golden.header["cases"]).expect("recorded");
    assert_eq!(cases.len(), 16);
    let device = brasa_test::device();
    for case in &cases {
        check(&golden, case, &device);
    }
}

#[test]
fn the_graph_norm_equals_pytorch_geometric() {
    let golden = Golden::read();
    let sizes: Vec<usize> = serde_json::from_str(&golden.header["norm_nodes"]).expect("recorded");
    let device = brasa_test::device().autodiff();
    let (most, width) = (12, golden.values("graph_norm", "bias").len());
    let rename = |(ours, theirs): (&str, &str)| {
        let (shape, values) = &golden.arrays[&format!("graph_norm/{theirs}")];
        NamedParam { name: ours.into(), shape: shape.clone(), values: values.clone() }
    };
    let names = [("scale", "weight"), ("shift", "bias"), ("mean_scale", "mean_scale")];
    let norm = load_params(GraphNorm::new(width, &device), &names.map(rename)).expect("recorded");
    // Padding has numbers that must have no effect.
    let pad = |array: &str, with: f32| {
        let mut rows = golden.values("graph_norm", array).chunks_exact(width);
        let values = sizes.iter().flat_map(|n| {
            let own: Vec<f32> = rows.by_ref().take(*n).flatten().copied().collect();
            own.into_iter().chain(std::iter::repeat_n(with, (most - n) * width)).collect::<Vec<f32>>()
        });
        Tensor::<3>::from_data(TensorData::new(values.collect::<Vec<f32>>(), [sizes.len(), most, width]), &device)
    };
    let mask = sizes.iter().flat_map(|n| (0..most).map(|i| f32::from(u8::from(i < *n))).collect::<Vec<f32>>());
    let mask = Tensor::<2>::from_data(TensorData::new(mask.collect::<Vec<f32>>(), [sizes.len(), most]), &device);
    let x = pad("x", 7.0).require_grad();
    let out = norm.forward(x.clone(), mask);
    let grads = (out.clone() * pad("probe", 3.0)).sum().backward();
    let same = |what: &str, got: Tensor<3>, expected: Tensor<3>| {
        close(what, numbers(got), numbers(expected), TOLERANCE);
    };
    same("output", out, pad("out", 0.0));
    same("gradient of x", Tensor::from_inner(x.grad(&grads).expect("a leaf")), pad("grad.x", 0.0));
    let params = [
        ("scale", norm.scale.val(), "grad.weight"),
        ("shift", norm.shift.val(), "grad.bias"),
        ("mean_scale", norm.mean_scale.val(), "grad.mean_scale"),
    ];
    for (what, param, array) in params {
        let grad = numbers(param.grad(&grads).expect("a leaf"));
        close(what, grad, widened(golden.values("graph_norm", array)), TOLERANCE);
    }
}
