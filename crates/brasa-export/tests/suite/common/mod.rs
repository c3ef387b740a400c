//! Policies of every kind, and programs that run them.
#![allow(clippy::expect_used)]

pub mod programs;

use brasa_export::{
    About, Affine, Attention, Cell, Edges, ExportedPolicy, Function, GraphNetwork, Groups, Head, ImageLayer,
    ImageShape, Layer, Memory, Norm, Output, Readout, Residual, Window, high_and_low, joined,
};

/// Fixed numbers in [-1, 1].
pub fn numbers(n: usize, seed: f32) -> Vec<f32> {
    (0..n).map(|i| ((i as f32 + seed) * 1.7).sin()).collect()
}

pub fn linear(inputs: usize, outputs: usize, n_agents: usize, seed: f32) -> Layer {
    Layer::Linear {
        outputs,
        weight: numbers(inputs * outputs * n_agents, seed),
        bias: numbers(outputs * n_agents, seed + 0.5),
    }
}

/// A mean that no number of 32 bits is near to.
pub const FAR: f64 = 5_712_345.3;

/// The numbers as a file has them.
fn stored(values: &[f64]) -> Vec<f64> {
    let [high, low] = high_and_low(values);
    joined(&high, &low)
}

/// One policy of every kind.
pub fn policies() -> Vec<(&'static str, ExportedPolicy)> {
    let normalize = Layer::Normalize {
        // The second one has a part below the numbers of 32 bits.
        mean: stored(&[0.84, FAR, -0.2, 0.99, -0.6]),
        deviation: stored(&[0.1, 2.0 / 3.0, 1.0, 0.5, 3.0]),
        clip: 2.0,
    };
    let mlp = |outputs: usize, function: Function| {
        vec![linear(5, 16, 1, 2.0), Layer::Activation(function), linear(16, outputs, 1, 3.0)]
    };
    let bounds = || Layer::Clip { low: vec![-1.0, f32::NEG_INFINITY], high: vec![0.5, 1.5] };
    let policy = |layers, output| ExportedPolicy {
        obs_width: 5,
        n_agents: 1,
        masked: false,
        layers,
        output,
        about: About::default(),
    };
    let squashed = [
        vec![normalize.clone()],
        mlp(2, Function::Relu),
        vec![Layer::Activation(Function::Tanh), Layer::Scale { factor: vec![2.0, 0.25], offset: vec![0.0, -3.0] }],
    ];
    let team = |shared: bool| {
        let body = linear(5, 8, if shared { 1 } else { 3 }, 4.0);
        let layers = vec![body, Layer::Activation(Function::Relu), linear(8, 4, 3, 5.0)];
        let output = Output::Choice { heads: vec![4] };
        ExportedPolicy { obs_width: 5, n_agents: 3, masked: true, layers, output, about: About::default() }
    };
    // Shared weights with a bias per agent: what a one-hot number of the agent in the observation amounts to.
    let named = {
        let first = Layer::Linear { outputs: 8, weight: numbers(40, 6.0), bias: numbers(24, 7.0) };
        let layers = vec![first, Layer::Activation(Function::Elu), linear(8, 2, 1, 8.0)];
        ExportedPolicy {
            obs_width: 5,
            n_agents: 3,
            masked: false,
            layers,
            output: Output::Real,
            about: About::default(),
        }
    };
    // Values of the pairs of a column of the first three and one of the last two, beside the column in the middle.
    let groups = |layers: Vec<Layer>| {
        let columns = (0..3).flat_map(|i| [3, 4].map(|j| [2, i, j])).flatten().collect();
        Layer::Groups(Groups { width: 3, columns, layers })
    };
    let pair = || vec![linear(3, 8, 1, 9.0), Layer::Activation(Function::Relu), linear(8, 2, 1, 10.0)];
    let pairs = |n_agents: usize| {
        let layers = vec![normalize.clone(), groups(pair())];
        ExportedPolicy {
            obs_width: 5,
            n_agents,
            masked: true,
            layers,
            output: Output::Choice { heads: vec![12] },
            about: About::default(),
        }
    };
    let scaled = vec![Layer::Scale { factor: numbers(3, 12.0), offset: numbers(3, 13.0) }, linear(3, 1, 1, 14.0)];
    // Scores of a choice have no bounds.
    let no_bounds = |n: usize, bound: f32| vec![bound; n];
    let two_limited = Layer::Clip {
        low: [no_bounds(3, f32::NEG_INFINITY), vec![-0.2, 0.1]].concat(),
        high: [no_bounds(3, f32::INFINITY), vec![0.2, 0.5]].concat(),
    };
    let summed = vec![groups(scaled), linear(6, 2, 1, 15.0)];
    let flat = vec![
        ("pairs", pairs(1)),
        ("team_of_pairs", pairs(3)),
        ("groups", policy(summed, Output::Real)),
        ("clipped", policy([mlp(2, Function::Tanh), vec![bounds()]].concat(), Output::Real)),
        ("squashed", policy(squashed.concat(), Output::Real)),
        ("discrete", policy(mlp(4, Function::Elu), Output::Choice { heads: vec![4] })),
        (
            "choices",
            ExportedPolicy { masked: true, ..policy(mlp(7, Function::Tanh), Output::Choice { heads: vec![3, 2, 2] }) },
        ),
        ("hybrid", policy([mlp(5, Function::Tanh), vec![two_limited]].concat(), Output::Both { heads: vec![3] })),
        (
            "hybrids",
            ExportedPolicy { masked: true, ..policy(mlp(6, Function::Relu), Output::Both { heads: vec![3, 2] }) },
        ),
        ("team", team(false)),
        ("trunk", team(true)),
        ("named", named),
    ];
    flat.into_iter().chain(image_policies()).chain(graph_policies()).collect()
}

/// Policies on images: convolutions with strides and zeros around, channels innermost, a residual network with a pool, and a team.
fn image_policies() -> Vec<(&'static str, ExportedPolicy)> {
    let image = |channels, height, width| ImageShape { channels, height, width };
    let window = |size, stride, padding| Window { size, stride, padding };
    let convolution = |input: ImageShape, window: Window, filters: usize, seed: f32| {
        let n = filters * input.channels * window.size * window.size;
        let weight = numbers(n, seed).iter().map(|x| 0.3 * x).collect();
        Layer::Image(ImageLayer::Convolution { input, window, weight, bias: numbers(filters, seed + 0.5) })
    };
    let relu = || Layer::Activation(Function::Relu);
    let policy = |input: ImageShape, n_agents: usize, layers: Vec<Layer>, heads: usize| ExportedPolicy {
        obs_width: input.columns().expect("a small image"),
        n_agents,
        masked: false,
        layers,
        output: Output::Choice { heads: vec![heads] },
        about: About::default(),
    };
    let plain = |input: ImageShape| {
        let second = image(4, 3, 4);
        // From 0 to 6 instead of -3 to 3, as bytes become 0 to 1.
        let scale = Layer::Scale { factor: vec![0.5], offset: vec![1.5] };
        let first = convolution(input, window(3, 2, 1), 4, 110.0);
        vec![scale, first, relu(), convolution(second, window(2, 1, 0), 3, 111.0), relu(), linear(18, 4, 1, 112.0)]
    };
    let input = image(2, 5, 7);
    let innermost = [vec![Layer::Image(ImageLayer::ChannelsFirst(input))], plain(input)].concat();
    let half = image(3, 3, 4);
    let block = |seed: f32| {
        let same = |seed| convolution(half, window(3, 1, 1), 3, seed);
        Layer::Residual(vec![relu(), same(seed), relu(), same(seed + 1.0)])
    };
    let pool = Layer::Image(ImageLayer::MaxPool { input: image(3, 5, 7), window: window(3, 2, 1) });
    let first = convolution(input, window(3, 1, 1), 3, 113.0);
    let residual = vec![first, pool, block(114.0), block(116.0), relu(), linear(36, 5, 1, 118.0)];
    vec![
        ("image", policy(input, 1, plain(input), 4)),
        ("image_innermost", policy(input, 1, innermost, 4)),
        ("image_residual", policy(input, 1, residual.clone(), 5)),
        ("image_team", policy(input, 2, residual, 5)),
    ]
}

/// Policies that remember: every kind of cell, windows, several of them, and a team with a head for each agent.
pub fn memory_policies() -> Vec<(&'static str, ExportedPolicy)> {
    let recurrent = |cell: Cell, inputs: usize, cells: usize, seed: f32| {
        let gates = cell.n_gates() * cells;
        let (input, output) = (affine(inputs, gates, seed), affine(cells, gates, seed + 1.0));
        Layer::Memory(Memory::Recurrent { cell, input, output })
    };
    let window = |frames| Layer::Memory(Memory::Window { frames });
    let policy = |layers, output| ExportedPolicy {
        obs_width: 5,
        n_agents: 1,
        masked: false,
        layers,
        output,
        about: About::default(),
    };
    let choice = |n| Output::Choice { heads: vec![n] };
    let tanh = || Layer::Activation(Function::Tanh);
    let normalize =
        Layer::Normalize { mean: stored(&[0.1, FAR, 0.0, 0.3, -2.0]), deviation: stored(&[0.5; 5]), clip: 2.0 };
    let deep = vec![
        linear(5, 6, 1, 90.0),
        tanh(),
        recurrent(Cell::Gru, 6, 7, 91.0),
        recurrent(Cell::Lstm, 7, 4, 92.0),
        linear(4, 3, 1, 93.0),
    ];
    let team = vec![linear(5, 4, 3, 94.0), tanh(), recurrent(Cell::Lstm, 4, 3, 95.0), linear(3, 4, 3, 96.0)];
    vec![
        ("lstm", policy(vec![normalize, recurrent(Cell::Lstm, 5, 8, 97.0), linear(8, 2, 1, 98.0)], Output::Real)),
        ("gru", policy(vec![recurrent(Cell::Gru, 5, 8, 99.0), linear(8, 4, 1, 100.0)], choice(4))),
        ("frames", policy(vec![window(3), linear(15, 8, 1, 101.0), tanh(), linear(8, 2, 1, 102.0)], Output::Real)),
        ("deep", policy(deep, choice(3))),
        ("two_windows", policy(vec![window(2), window(2), linear(20, 2, 1, 103.0)], Output::Real)),
        ("team_lstm", ExportedPolicy { n_agents: 3, masked: true, ..policy(team, choice(4)) }),
    ]
}

fn affine(inputs: usize, outputs: usize, seed: f32) -> Affine {
    Affine { weight: numbers(inputs * outputs, seed), bias: numbers(outputs, seed + 0.5) }
}

/// Two graphs: a path of 4 nodes with a loop at each, and 3 nodes of which each sees all.
fn edges(width: usize) -> Edges {
    let sources = vec![0, 1, 0, 1, 2, 1, 2, 3, 2, 3, 0, 1, 2, 0, 1, 2, 0, 1, 2];
    let features = numbers(sources.len() * width, 11.0);
    Edges { nodes: vec![4, 3], starts: vec![0, 2, 5, 8, 10, 13, 16, 19, 19], sources, width, features }
}

/// Policies over graphs with 4 nodes of 3 features: all kinds of layers, readouts and heads.
pub fn graph_policies() -> Vec<(&'static str, ExportedPolicy)> {
    let layer = |inputs: usize, (heads, channels, outputs): (usize, usize, usize), edge_width: usize, seed: f32| {
        let scores = heads * channels;
        Attention {
            heads,
            source: affine(inputs, scores, seed),
            destination: affine(inputs, scores, seed + 1.0),
            edge: numbers(edge_width * scores, seed + 2.0),
            attention: numbers(scores, seed + 3.0),
            slope: 0.2,
            value: affine(inputs, heads * outputs, seed + 4.0),
            concat: true,
            bias: numbers(heads * outputs, seed + 5.0),
            residual: Residual::None,
            norm: None,
            activation: None,
        }
    };
    let norm = |width: usize, over_nodes: bool| Norm {
        scale: numbers(width, 21.0),
        shift: numbers(width, 22.0),
        mean_scale: if over_nodes { numbers(width, 23.0) } else { Vec::new() },
    };
    let policy = |layers, readout, head, edge_width, agent_features| {
        let edges = edges(edge_width);
        let network = GraphNetwork { n_nodes: 4, node_features: 3, agent_features, edges, layers, readout, head };
        // Two numbers at the end are not read.
        let obs_width = 2 + agent_features + 4 * 3 + 2;
        let output = Output::Choice { heads: vec![5] };
        let layers = vec![Layer::Graph(Box::new(network))];
        ExportedPolicy { obs_width, n_agents: 1, masked: true, layers, output, about: About::default() }
    };
    let all = Readout { own: true, mean: true, max: true, agent: true };
    let first = Attention {
        residual: Residual::Projected(numbers(3 * 4, 31.0)),
        norm: Some(norm(4, false)),
        activation: Some(Function::Elu),
        ..layer(3, (2, 3, 2), 2, 40.0)
    };
    let second =
        Attention { residual: Residual::Same, activation: Some(Function::Tanh), ..layer(4, (2, 1, 2), 2, 50.0) };
    let pointer =
        Head::Pointer { query: affine(3 * 4 + 2, 6, 60.0), key: affine(4, 6, 61.0), wait: affine(6, 1, 62.0) };
    let mean = Attention {
        concat: false,
        bias: numbers(5, 70.0),
        norm: Some(norm(5, true)),
        activation: Some(Function::Relu),
        ..layer(3, (3, 2, 5), 0, 71.0)
    };
    let index = Head::Index {
        layers: vec![linear(10, 6, 1, 80.0), Layer::Activation(Function::Relu), linear(6, 5, 1, 81.0)],
        ranks: vec![
            1, 2, 0, 0, 2, 1, 3, 0, 0, 2, 1, 3, 0, 0, 2, 1, //
            1, 2, 3, 0, 2, 1, 3, 0, 2, 3, 1, 0, 0, 0, 0, 0,
        ],
    };
    let pooled = Readout { own: true, mean: true, max: false, agent: false };
    vec![
        ("pointer", policy(vec![first, second], all, pointer, 2, 2)),
        ("index", policy(vec![mean], pooled, index, 0, 0)),
    ]
}
