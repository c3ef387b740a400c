//! A layer's result does not depend on the order of nodes, padding, and other rows of a batch.
#![allow(clippy::expect_used)]

use crate::common;

use brasa_gat::{Gat, GatConfig, Graph, GraphNorm, Graphs, Version};
use brasa_nn::LayerNorm;
use brasa_test::golden::close;
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor};
use common::{graph, ids, random, read, relabeled, rng, table};

const INPUTS: usize = 5;
const EDGES: usize = 3;
const TOLERANCE: f64 = 1e-5;

/// A layer of each version with edge features.
fn layers(device: &Device) -> Vec<Gat> {
    let mut layers = Vec::new();
    for (version, share_weights) in [(Version::V1, false), (Version::V2, false), (Version::V2, true)] {
        for (concat, edge_features) in [(true, EDGES), (false, 0)] {
            let mut config = GatConfig::new(version, INPUTS, 8, 4);
            (config.concat, config.edge_features, config.share_weights) = (concat, edge_features, share_weights);
            layers.push(Gat::new(&config, device, &mut rng(7)).expect("valid"));
        }
    }
    layers
}

struct ReadGradients<'a> {
    grads: &'a Gradients,
    all: Vec<f64>,
}

impl ModuleVisitor for ReadGradients<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.all.extend(read(param.val().grad(self.grads).expect("every parameter has a gradient")));
    }
}

/// Output, weights and all gradients of a layer on rows of a table.
fn everything(layer: &Gat, graphs: &Graphs, rows: &[i32], x: &Tensor<3>, probe: &Tensor<3>) -> [Vec<f64>; 3] {
    let x = x.clone().detach().require_grad();
    let (out, weights) = layer.forward_with_weights(x.clone(), &graphs.batch(ids(rows, &x.device())));
    let grads = (out.clone() * probe.clone()).sum().backward();
    let mut read_all = ReadGradients { grads: &grads, all: read(x.grad(&grads).expect("a leaf")) };
    layer.visit(&mut read_all);
    [read(out), read(weights), read_all.all]
}

#[test]
fn gradients_are_central_differences() {
    let device = brasa_test::device().autodiff();
    let mut rng_ = rng(2);
    let graphs = [graph(6, EDGES, &mut rng_)];
    let x = random([2, 6, INPUTS], &mut rng_, &device);
    let rows = ids(&[0, 0], &device);
    for layer in layers(&device) {
        let probe = random([2, 6, layer.config().width()], &mut rng_, &device);
        let direction = random([2, 6, INPUTS], &mut rng_, &device);
        let batch = table(&graphs, &device).batch(rows.clone());
        let loss = |x: Tensor<3>| (layer.forward(x, &batch) * probe.clone()).sum();
        let leaf = x.clone().detach().require_grad();
        let grads = loss(leaf.clone()).backward();
        let slope = (leaf.grad(&grads).expect("a leaf") * direction.clone().inner()).sum();
        // Large enough for f32, small enough that few leaky ReLUs change sign.
        let step = 2e-3;
        let [up, down] = [step, -step].map(|step| read(loss(x.clone() + direction.clone() * step))[0]);
        let got = read(Tensor::<1>::from_inner(slope))[0];
        let expected = (up - down) / (2.0 * step);
        let what = format!("{:?}", layer.config());
        assert!((got - expected).abs() < 5e-3 * expected.abs().max(1.0), "{what}: {got}, differences {expected}");
    }
}

#[test]
fn names_of_nodes_do_not_matter() {
    let device = brasa_test::device().autodiff();
    let mut rng_ = rng(3);
    let names = [3, 0, 5, 1, 6, 2, 4];
    let graph = graph(7, EDGES, &mut rng_);
    let other = relabeled(&graph, &names);
    let x = random([1, 7, INPUTS], &mut rng_, &device);
    // Node `names[i]` of the other graph is node `i` of this one.
    let mut back = [0; 7];
    names.iter().enumerate().for_each(|(node, name)| back[*name] = node as i32);
    let other_x = x.clone().select(1, ids(&back, &device));
    for layer in layers(&device) {
        let run = |graph: &Graph, x: &Tensor<3>| {
            layer.forward(x.clone(), &table(std::slice::from_ref(graph), &device).batch(ids(&[0], &device)))
        };
        let expected = run(&graph, &x).select(1, ids(&back, &device));
        close("the layer", read(run(&other, &other_x)), read(expected), TOLERANCE);
    }
}

#[test]
fn padding_does_not_matter() {
    let device = brasa_test::device().autodiff();
    let mut rng_ = rng(4);
    let graph = graph(6, EDGES, &mut rng_);
    let x = random([1, 6, INPUTS], &mut rng_, &device);
    // Padded nodes have numbers that must have no effect.
    let wide_x = Tensor::cat(vec![x.clone(), random([1, 5, INPUTS], &mut rng_, &device) * 10.0], 1);
    for layer in layers(&device) {
        let alone = layer.forward(x.clone(), &table(std::slice::from_ref(&graph), &device).batch(ids(&[0], &device)));
        let padded = Graphs::padded(vec![graph.clone()], 11, &device).expect("valid");
        let padded = layer.forward(wide_x.clone(), &padded.batch(ids(&[0], &device)));
        let width = padded.dims()[2];
        close("the layer", read(padded.slice([0..1, 0..6, 0..width])), read(alone), TOLERANCE);
    }
}

#[test]
fn other_rows_do_not_matter() {
    let device = brasa_test::device().autodiff();
    let mut rng_ = rng(5);
    let graphs: Vec<Graph> = [6, 3, 8].iter().map(|n| graph(*n, EDGES, &mut rng_)).collect();
    let x = random([5, 8, INPUTS], &mut rng_, &device);
    let rows = [2, 0, 1, 0, 2];
    for layer in layers(&device) {
        let graphs = table(&graphs, &device);
        let together = layer.forward(x.clone(), &graphs.batch(ids(&rows, &device)));
        for (row, id) in rows.iter().enumerate() {
            let alone = layer.forward(x.clone().slice(row..row + 1), &graphs.batch(ids(&[*id], &device)));
            close("the layer", read(alone), read(together.clone().slice(row..row + 1)), TOLERANCE);
        }
    }
}

#[test]
fn graphs_side_by_side_are_graphs_alone() {
    let device = brasa_test::device().autodiff();
    let mut rng_ = rng(6);
    let [a, b] = [5, 7].map(|n| graph(n, EDGES, &mut rng_));
    let edges = a.edges().iter().copied().chain(b.edges().iter().map(|edge| edge.map(|node| node + 5))).collect();
    let features = [a.edge_features(), b.edge_features()].concat();
    let union = Graph::new(12, edges).and_then(|graph| graph.with_edge_features(EDGES, features)).expect("valid");
    let [x_a, x_b] = [5, 7].map(|n| random([1, n, INPUTS], &mut rng_, &device));
    for layer in layers(&device) {
        let run = |graph: &Graph, x: Tensor<3>| {
            layer.forward(x, &table(std::slice::from_ref(graph), &device).batch(ids(&[0], &device)))
        };
        let together = run(&union, Tensor::cat(vec![x_a.clone(), x_b.clone()], 1));
        let alone = Tensor::cat(vec![run(&a, x_a.clone()), run(&b, x_b.clone())], 1);
        close("the layer", read(together), read(alone), TOLERANCE);
    }
}

#[test]
fn scores_far_apart_leave_finite_gradients() {
    let device = brasa_test::device().autodiff();
    let mut rng_ = rng(10);
    let graphs = [graph(9, EDGES, &mut rng_), graph(4, EDGES, &mut rng_)];
    let x = random([2, 9, INPUTS], &mut rng_, &device) * 1e4;
    for layer in layers(&device) {
        let probe = random([2, 9, layer.config().width()], &mut rng_, &device);
        let parts = everything(&layer, &table(&graphs, &device), &[0, 1], &x, &probe);
        assert!(parts.iter().flatten().all(|x| x.is_finite()), "{:?}", layer.config());
        // The weights of a node sum to 1 even if one neighbor has all the weight.
        let total: f64 = parts[1].iter().sum();
        assert!((total - 2.0 * 9.0 * 4.0).abs() < 1e-3, "{total}");
    }
}

#[test]
fn norms_do_not_see_padding() {
    let device = brasa_test::device().autodiff();
    let mut rng_ = rng(8);
    let x = random([2, 4, 6], &mut rng_, &device);
    let wide = Tensor::cat(vec![x.clone(), random([2, 3, 6], &mut rng_, &device) * 10.0], 1);
    let mask = |n: usize| {
        let ones = Tensor::<2>::ones([2, 4], &device);
        if n == 4 { ones } else { Tensor::cat(vec![ones, Tensor::zeros([2, n - 4], &device)], 1) }
    };
    let norm = GraphNorm::new(6, &device);
    let padded = norm.forward(wide.clone(), mask(7));
    close("graph norm", read(padded.clone().slice([0..2, 0..4])), read(norm.forward(x.clone(), mask(4))), TOLERANCE);
    assert!(read(padded.slice([0..2, 4..7])).iter().all(|x| *x == 0.0));
    let norm = LayerNorm::new(6, &device);
    let normal = norm.forward(x.clone(), None);
    close("layer norm", read(norm.forward(wide, None).slice([0..2, 0..4])), read(normal.clone()), TOLERANCE);
    close("mean", read(normal.clone().mean_dim(2)), [0.0; 8], TOLERANCE);
    // The constant in the root reduces the variance slightly.
    let variance = read(normal.square().mean_dim(2));
    assert!(variance.iter().all(|variance| (0.999..1.0).contains(variance)), "{variance:?}");
}

#[test]
fn a_table_is_refused_where_it_does_not_fit_together() {
    let device = brasa_test::device();
    let mut rng_ = rng(9);
    let graphs = vec![graph(3, 2, &mut rng_), graph(3, 0, &mut rng_)];
    let error = Graphs::new(graphs, &device).expect_err("other features");
    assert_eq!(error.to_string(), "graph 1 has 0 features per edge, graph 0 has 2");
    assert!(Graphs::new(vec![], &device).is_err());
}
