//! Policies over graphs: sizes, masks, and invariances of their decisions.
#![allow(clippy::expect_used)]

use crate::common;

use brasa_core::env::{EnvSpec, Space};
use brasa_core::{ActorCritic, Explore, NoiseDistribution, Obs, Policy};
use brasa_gat::{
    GatLayerConfig, Graph, GraphActorCritic, GraphActorCriticConfig, GraphSpec, Graphs, HeadConfig, Norm, Trunk,
    Version,
};
use brasa_nn::{AdamConfig, Step, Trainable, draw_noise};
use brasa_test::golden::close;
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use common::{graph, numbers, read, relabeled, rng};
use rand::RngExt;

const TOLERANCE: f64 = 1e-5;

/// One config per head, trunk and norm, small enough for many rows.
fn configs() -> Vec<GraphActorCriticConfig> {
    let mut pointer = GraphActorCriticConfig::lean();
    pointer.layers = vec![GatLayerConfig { heads: 2, outputs: 8, concat: true }; 2];
    let mut central = pointer.clone();
    (central.trunk, central.norm, central.version) = (Trunk::Separate, Norm::Graph, Version::V1);
    let mut index = GraphActorCriticConfig::gohimcm_base();
    index.layers = vec![
        GatLayerConfig { heads: 2, outputs: 8, concat: true },
        GatLayerConfig { heads: 1, outputs: 8, concat: false },
    ];
    vec![pointer, central, index]
}

fn spec(nodes: usize) -> GraphSpec {
    GraphSpec { nodes, node_features: 5, privileged_features: 2, agent_features: 3 }
}

/// One row before padding.
#[derive(Clone)]
struct Row {
    graph: usize,
    own: usize,
    agent: Vec<f32>,
    nodes: Vec<Vec<f32>>,
    privileged: Vec<Vec<f32>>,
    legal: Vec<bool>,
    may_wait: bool,
}

impl Row {
    /// A row on a random graph; legal actions are the own node, its neighbors and waiting.
    fn draw(graphs: &[Graph], rng: &mut rand_chacha::ChaCha8Rng) -> Self {
        let graph = rng.random_range(0..graphs.len());
        let n = graphs[graph].n_nodes();
        let own = rng.random_range(0..n);
        let mut legal = vec![false; n];
        legal[own] = true;
        graphs[graph].neighbors(own).for_each(|neighbor| legal[neighbor] = true);
        let mut many = |width: usize| (0..n).map(|_| numbers(width, rng)).collect();
        let (nodes, privileged) = (many(5), many(2));
        Self { graph, own, agent: numbers(3, rng), nodes, privileged, legal, may_wait: true }
    }

    fn relabeled(&self, names: &[usize]) -> Self {
        let mut row = self.clone();
        row.own = names[self.own];
        for (node, &name) in names.iter().enumerate() {
            row.nodes[name] = self.nodes[node].clone();
            row.privileged[name] = self.privileged[node].clone();
            row.legal[name] = self.legal[node];
        }
        row
    }
}

fn observe(rows: &[Row], spec: GraphSpec, device: &Device) -> Obs {
    let (mut values, mut mask) = (Vec::new(), Vec::new());
    for row in rows {
        values.extend([row.graph as f32, row.own as f32]);
        values.extend(&row.agent);
        for (features, width) in [(&row.nodes, spec.node_features), (&row.privileged, spec.privileged_features)] {
            values.extend(features.iter().flatten());
            // Padding has numbers that must have no effect.
            values.extend(std::iter::repeat_n(9.0, (spec.nodes - features.len()) * width));
        }
        mask.extend(row.legal.iter().map(|legal| f32::from(u8::from(*legal))));
        mask.extend(std::iter::repeat_n(0.0, spec.nodes - row.legal.len()));
        mask.push(f32::from(u8::from(row.may_wait)));
    }
    let tensor =
        |values: Vec<f32>, width: usize| Tensor::from_data(TensorData::new(values, [rows.len(), width]), device);
    Obs { values: tensor(values, spec.width()), mask: Some(tensor(mask, spec.options())) }
}

fn policy(config: &GraphActorCriticConfig, graphs: &[Graph], nodes: usize, device: &Device) -> GraphActorCritic {
    let graphs = Graphs::padded(graphs.to_vec(), nodes, device).expect("valid");
    GraphActorCritic::new(config, spec(nodes), graphs, device, &mut rng(3)).expect("valid")
}

/// Log-probabilities of all actions of one row, then its value.
fn judgement(policy: &GraphActorCritic, row: &Row, device: &Device) -> Vec<f64> {
    let options = policy.spec().options();
    let obs = observe(&vec![row.clone(); options], policy.spec(), device);
    let actions = Tensor::<1>::from_data(TensorData::new((0..options).map(|i| i as f32).collect(), [options]), device);
    let judged = policy.evaluate(obs, actions.unsqueeze_dim(1));
    let mut all = read(judged.log_prob);
    all.push(read(judged.value)[0]);
    all
}

#[test]
fn presets_have_the_sizes_of_their_models() {
    let device = brasa_test::device();
    let mut rng_ = rng(1);
    for (name, node_features, agent_features, edge_features, expected) in
        [("gohimcm-base", 11, 0, 0, 239_456), ("gohimcm-rtx5090", 11, 0, 0, 3_389_104), ("lean", 24, 8, 6, 74_434)]
    {
        let spec = GraphSpec { nodes: 11, node_features, privileged_features: 0, agent_features };
        let config = GraphActorCriticConfig::preset(name).expect("a preset");
        let graphs = Graphs::new(vec![graph(11, edge_features, &mut rng_)], &device).expect("valid");
        let policy = GraphActorCritic::new(&config, spec, graphs, &device, &mut rng_).expect("valid");
        assert_eq!(policy.num_params(), expected, "{name}");
    }
}

#[test]
fn environments_of_other_sizes_are_named() {
    let device = brasa_test::device();
    let graphs = [graph(9, 4, &mut rng(2))];
    let policy = policy(&configs()[0], &graphs, 9, &device);
    let width = policy.spec().width();
    let space = |n: usize| Space::uniform_box(-1.0, 1.0, (0..n).map(|i| i.to_string()));
    let sizes = policy.sizes().expect("the layout of a row is known");
    sizes.check(&EnvSpec::new(space(width), Space::Discrete(10), 1)).expect("they fit");
    for (spec, message) in [
        (EnvSpec::new(space(width + 1), Space::Discrete(10), 1), "the network takes observations"),
        (EnvSpec::new(space(width), Space::Discrete(9), 1), "the actions of the network are one of 10 actions"),
    ] {
        let error = sizes.check(&spec).expect_err("they do not fit").to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn what_was_decided_is_evaluated_the_same() {
    let device = brasa_test::device();
    let mut rng_ = rng(2);
    let graphs: Vec<Graph> = [9, 4, 6].iter().map(|n| graph(*n, 4, &mut rng_)).collect();
    let rows: Vec<Row> = (0..40).map(|_| Row::draw(&graphs, &mut rng_)).collect();
    for config in configs() {
        let policy = policy(&config, &graphs, 9, &device);
        let obs = observe(&rows, policy.spec(), &device);
        assert_eq!((policy.noise().width, policy.noise().distribution), (10, NoiseDistribution::Gumbel));
        let noise = draw_noise(policy.noise(), rows.len(), &mut rng_, &device);
        let (action, decision) = policy.act(obs.clone(), Explore::Sample(noise));
        let judged = policy.evaluate(obs.clone(), action.clone());
        // The same operations in the same order: the ratio of the first epoch is 1 exactly.
        assert_eq!(read(judged.log_prob), read(decision.log_prob));
        assert_eq!(read(judged.value.clone()), read(decision.value.expect("both share the encoder")));
        assert_eq!(read(judged.value), read(policy.value(obs.clone())));
        for (action, row) in read(action).into_iter().zip(&rows) {
            assert!(row.legal.get(action as usize).copied().unwrap_or(action == 9.0), "{action} of {:?}", row.legal);
        }
        let (best, greedy) = policy.act(obs.clone(), Explore::Greedy);
        assert_eq!(read(policy.evaluate(obs, best).log_prob), read(greedy.log_prob));
    }
}

#[test]
fn illegal_options_have_no_chance() {
    let device = brasa_test::device();
    let mut rng_ = rng(4);
    let graphs = [graph(6, 4, &mut rng_), graph(4, 4, &mut rng_)];
    for config in configs() {
        let policy = policy(&config, &graphs, 8, &device);
        for _ in 0..8 {
            let mut row = Row::draw(&graphs, &mut rng_);
            row.may_wait = rng_.random();
            let mut chances: Vec<f64> = judgement(&policy, &row, &device).iter().map(|x| x.exp()).collect();
            chances.pop();
            let legal = |option: usize| row.legal.get(option).copied().unwrap_or(option == 8 && row.may_wait);
            for (option, chance) in chances.iter().enumerate() {
                assert!(if legal(option) { *chance > 0.0 } else { *chance == 0.0 }, "{option}: {chance}");
            }
            assert!((chances.iter().sum::<f64>() - 1.0).abs() < 1e-6);
            // A small last layer makes them nearly equal initially.
            let n = (0..9).filter(|option| legal(*option)).count() as f64;
            if config.orthogonal {
                assert!(chances.iter().all(|chance| *chance == 0.0 || (chance * n - 1.0).abs() < 0.2), "{chances:?}");
            }
            // Padding is illegal even without a mask.
            let obs = observe(&[row.clone(), row.clone()], policy.spec(), &device);
            let last = Tensor::<2>::from_floats([[7.0], [0.0]], &device);
            let log_prob = read(policy.evaluate(Obs::new(obs.values), last).log_prob);
            assert!(log_prob[0].exp() == 0.0, "{log_prob:?}");
        }
    }
}

#[test]
fn rows_without_a_choice_are_told_apart() {
    let device = brasa_test::device();
    let mut rng_ = rng(5);
    let graphs = [graph(6, 4, &mut rng_)];
    let free = Row::draw(&graphs, &mut rng_);
    let mut forced = free.clone();
    forced.legal.fill(false);
    for config in configs() {
        let policy = policy(&config, &graphs, 6, &device);
        let obs = observe(&[free.clone(), forced.clone()], policy.spec(), &device);
        assert_eq!(policy.choice(&obs).map(read), Some(vec![1.0, 0.0]));
        let judged = policy.evaluate(obs, Tensor::full([2, 1], 6.0, &device));
        assert_eq!((read(judged.log_prob)[1], read(judged.entropy)[1]), (0.0, 0.0));
    }
}

#[test]
fn names_padding_and_other_rows_do_not_matter() {
    let device = brasa_test::device();
    let mut rng_ = rng(6);
    let names = [3, 0, 5, 1, 4, 2];
    let graphs = [graph(6, 4, &mut rng_), graph(9, 4, &mut rng_)];
    let mut row = Row::draw(&graphs[..1], &mut rng_);
    row.graph = 0;
    let renamed = [relabeled(&graphs[0], &names)];
    for config in configs() {
        let alone = judgement(&policy(&config, &graphs[..1], 6, &device), &row, &device);

        let other = judgement(&policy(&config, &renamed, 6, &device), &row.relabeled(&names), &device);
        let back = (0..8).map(|option| other[names.get(option).copied().unwrap_or(option)]);
        close("names", back, alone.iter().copied(), TOLERANCE);

        // In a table with a larger graph: nodes first, then padding, waiting and the value.
        let padded = policy(&config, &graphs, 11, &device);
        let padded_row = judgement(&padded, &row, &device);
        let [nodes, rest] = [&padded_row[..6], &padded_row[11..]];
        close("padding", [nodes, rest].concat(), alone.iter().copied(), TOLERANCE);

        let rows: Vec<Row> = (0..7).map(|_| Row::draw(&graphs, &mut rng_)).chain([row.clone()]).collect();
        let judge = |rows: &[Row]| {
            let action = Tensor::full([rows.len(), 1], 11.0, &device);
            let judged = padded.evaluate(observe(rows, padded.spec(), &device), action);
            [judged.log_prob, judged.value, judged.entropy].map(|part| read(part).pop())
        };
        let (together, single) = (judge(&rows), judge(std::slice::from_ref(&row)));
        close("other rows", together.into_iter().flatten(), single.into_iter().flatten(), TOLERANCE);
    }
}

#[test]
fn only_a_separate_critic_sees_what_is_privileged() {
    let device = brasa_test::device();
    let mut rng_ = rng(7);
    let graphs = [graph(6, 4, &mut rng_)];
    let row = Row::draw(&graphs, &mut rng_);
    let mut told = row.clone();
    told.privileged[2][1] += 1.0;
    for config in configs() {
        let policy = policy(&config, &graphs, 6, &device);
        let (mut before, mut after) = (judgement(&policy, &row, &device), judgement(&policy, &told, &device));
        let values = (before.pop(), after.pop());
        assert_eq!(before, after, "the actor");
        assert_eq!(values.0 == values.1, config.trunk == Trunk::Shared, "the critic");
    }
}

struct CountGradients<'a> {
    grads: &'a Gradients,
    seen: usize,
}

impl ModuleVisitor for CountGradients<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let grad = read(param.val().grad(self.grads).expect("every parameter has a gradient"));
        assert!(grad.iter().all(|x| x.is_finite()) && grad.iter().any(|x| *x != 0.0));
        self.seen += 1;
    }
}

#[test]
fn every_weight_learns() {
    let device = brasa_test::device();
    let mut rng_ = rng(8);
    let graphs = [graph(6, 4, &mut rng_), graph(9, 4, &mut rng_)];
    let rows: Vec<Row> = (0..16).map(|_| Row::draw(&graphs, &mut rng_)).collect();
    for config in configs() {
        let policy = policy(&config, &graphs, 9, &device.clone().autodiff());
        let obs = observe(&rows, policy.spec(), &device);
        let noise = draw_noise(policy.noise(), rows.len(), &mut rng_, &device);
        let (action, _) = policy.valid().act(obs.clone(), Explore::Sample(noise));
        let judged = policy.evaluate(obs, action);
        let grads = (judged.log_prob.sum() + judged.value.square().sum() - judged.entropy.sum()).backward();
        let mut count = CountGradients { grads: &grads, seen: 0 };
        policy.visit(&mut count);
        assert_eq!(count.seen, brasa_nn::named_params(&policy).len());
    }
}

#[test]
fn what_was_learned_in_some_buildings_holds_in_others() {
    let device = brasa_test::device();
    let mut rng_ = rng(9);
    let graphs: Vec<Graph> = (4..10).map(|n| graph(n, 4, &mut rng_)).collect();
    let config = &configs()[0];
    // The correct action is the legal node with the largest first feature.
    let best = |row: &Row| {
        let legal = (0..row.nodes.len()).filter(|node| row.legal[*node]);
        legal.max_by(|a, b| row.nodes[*a][0].total_cmp(&row.nodes[*b][0])).expect("the own node is legal")
    };
    let draw = |graphs: &[Graph], n: usize, rng: &mut _| -> (Vec<Row>, Vec<f32>) {
        let rows: Vec<Row> = (0..n).map(|_| Row::draw(graphs, rng)).collect();
        let answers = rows.iter().map(|row| best(row) as f32).collect();
        (rows, answers)
    };
    let learned = policy(config, &graphs, 10, &device.clone().autodiff());
    let mut learner = Trainable::new(learned, AdamConfig::default()).expect("valid");
    for _ in 0..200 {
        let (rows, answers) = draw(&graphs, 64, &mut rng_);
        let action = Tensor::from_data(TensorData::new(answers, [64, 1]), &device);
        let judged = learner.module().evaluate(observe(&rows, spec(10), &device), action);
        learner.step(&-judged.log_prob.mean(), Step::new(5e-3, Some(1.0)));
    }
    let unseen: Vec<Graph> = [14, 20].iter().map(|n| graph(*n, 4, &mut rng_)).collect();
    let table = Graphs::new(unseen.clone(), &device).expect("valid");
    let policy = learner.valid().with_graphs(table).expect("the same features");
    let (rows, answers) = draw(&unseen, 200, &mut rng_);
    let (action, _) = policy.act(observe(&rows, spec(20), &device), Explore::Greedy);
    let right = read(action).iter().zip(&answers).filter(|(got, expected)| **got == f64::from(**expected)).count();
    assert!(right > 170, "{right} of 200 decisions in buildings that are new");
}

#[test]
fn what_does_not_fit_together_is_said() {
    let device = brasa_test::device();
    let mut rng_ = rng(10);
    let table = |graph: Graph| Graphs::new(vec![graph], &device).expect("valid");
    let plain = table(graph(6, 4, &mut rng_));
    let new = |config: &GraphActorCriticConfig, spec: GraphSpec, graphs: &Graphs| {
        GraphActorCritic::new(config, spec, graphs.clone(), &device, &mut rng(0))
    };
    let lean = GraphActorCriticConfig::lean();
    let message = new(&lean, spec(7), &plain).expect_err("other nodes").to_string();
    assert_eq!(message, "observations have 7 nodes, graphs 6");
    let other = table(graph(6, 3, &mut rng_));
    let message = new(&lean, spec(6), &plain).and_then(|policy| policy.with_graphs(other)).expect_err("other features");
    assert_eq!(message.to_string(), "edges have 3 features, the policy knows 4");
    let star = table(Graph::new(6, (1..6).map(|node| [0, node]).collect()).expect("valid"));
    let mut index = GraphActorCriticConfig::gohimcm_base();
    index.head = HeadConfig::Index { hidden: vec![], options: 6 };
    let message = new(&index, spec(6), &star).expect_err("too many neighbors").to_string();
    assert_eq!(message, "node 0 of graph 0 has 5 neighbors, the head outputs for 4");
    let weights = new(&lean, spec(6), &plain).expect("valid");
    let row = Row::draw(plain.graphs(), &mut rng_);
    let layers = weights.attention_weights(observe(&[row], spec(6), &device));
    assert_eq!(layers.len(), 3);
    assert_eq!(layers[2].dims(), [1, plain.edges(0).len(), 4]);
}
