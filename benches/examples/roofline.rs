//! What the learners' updates could take on this machine, and what they take: `cargo run --release -p brasa-benches --example roofline`.
//!
//! The limit is the larger of two times: that of the products at the rate of the fastest large product, and that of the memory that
//! must move at the rate of a loop over arrays of as many bytes, which the caches hold if the update's memory fits into them.
//! Run it on one core (`taskset -c 0`).

use std::hint::black_box;
use std::time::Instant;

use brasa::buffers::{Rollout, Transitions};
use brasa::contracts::{Learner, Obs, Progress};
use brasa::dqn::{Dqn, DqnConfig};
use brasa::env::{Space, named_rng};
use brasa::nn::{ActorCriticConfig, Init, MlpActorCritic, QNetwork, QNetworkConfig, affine};
use brasa::ppo::{Ppo, PpoConfig};
use brasa_bench_kit::Place;
use brasa_benches::place;
use brasa_benches::sac::{SacBench, SacShape};
use burn::tensor::{Device, Tensor, TensorData};

/// Passes of a network over a batch.
struct Pass {
    /// Of the input, two hidden layers and the output.
    widths: [usize; 4],
    /// Networks side by side.
    n: usize,
    forward: usize,
    /// Products for the gradients of weights.
    weights: usize,
    /// Products for the gradients of inputs; without the first layer's, unless `whole`.
    inputs: usize,
    whole: bool,
}

/// Work of an update in floating-point operations of products, and in bytes.
struct Work {
    flop: f64,
    bytes: f64,
}

impl Work {
    fn of(rows: usize, passes: &[Pass]) -> Self {
        let (mut flop, mut bytes) = (0.0, 0.0);
        for pass in passes {
            for (layer, pair) in pass.widths.windows(2).enumerate() {
                let inputs = if layer > 0 || pass.whole { pass.inputs } else { 0 };
                let times = (pass.forward + pass.weights + inputs) as f64 * pass.n as f64;
                let (weights, x, y) = (pair[0] * pair[1], rows * pair[0], rows * pair[1]);
                flop += 2.0 * rows as f64 * weights as f64 * times;
                bytes += 4.0 * times * (weights + x + y) as f64;
                if pass.weights > 0 {
                    // Adam reads and writes weight and two moments, and reads the gradient.
                    bytes += 4.0 * 7.0 * (weights + pair[1]) as f64 * pass.n as f64;
                }
            }
        }
        Self { flop, bytes }
    }
}

/// The shortest of several times of `n` calls, per call.
fn time(n: usize, mut work: impl FnMut()) -> f64 {
    (0..n.div_ceil(4)).for_each(|_| work());
    let times = (0..7).map(|_| {
        let begin = Instant::now();
        (0..n).for_each(|_| work());
        begin.elapsed().as_secs_f64() / n as f64
    });
    times.fold(f64::INFINITY, f64::min)
}

fn random(dims: [usize; 2], device: &Device) -> Tensor<2> {
    let (values, _) = Init::FanIn.draw(dims[0], dims[1], &mut named_rng(0, "rows", 0));
    Tensor::from_data(TensorData::new(values, dims), device)
}

/// Operations per second of the fastest product.
fn peak(device: &Device) -> f64 {
    let rate = |n: usize| {
        let (x, w) = (random([n, n], device), random([n, n], device));
        2.0 * (n as f64).powi(3) / time(4, || drop(black_box(affine(x.clone(), w.clone(), None, None))))
    };
    [256, 384, 512, 768, 1024].map(rate).into_iter().fold(0.0, f64::max)
}

/// Bytes per second of `a = b + 2 c` on arrays of so many bytes together.
fn bandwidth(bytes: f64) -> f64 {
    let n = (bytes / 12.0) as usize;
    let (mut a, b, c) = (vec![0.0f32; n], vec![1.0f32; n], vec![2.0f32; n]);
    let seconds = time((4 << 20) / n + 1, || {
        a.iter_mut().zip(&b).zip(&c).for_each(|((a, b), c)| *a = b + 2.0 * c);
        black_box(&mut a);
    });
    12.0 * n as f64 / seconds
}

fn ppo(obs: usize, action: &Space, rows: usize, config: &ActorCriticConfig, device: &Device) -> f64 {
    let space = Space::uniform_box(-1.0, 1.0, (0..obs).map(|i| i.to_string()));
    let autodiff = device.clone().autodiff();
    let network =
        MlpActorCritic::new(config, &space, action, &autodiff, &mut named_rng(0, "weights", 0)).expect("valid");
    const EPOCHS: usize = 10;
    let config = PpoConfig { batch_size: rows, n_epochs: EPOCHS, ..PpoConfig::default() };
    let mut ppo = Ppo::new(network, config, 0).expect("valid");
    let column = || random([rows, 1], device).squeeze_dim::<1>(1);
    let actions = match action {
        Space::Box(_) => random([rows, action.width()], device),
        _ => Tensor::zeros([rows, 1], device),
    };
    let rollout = Rollout {
        obs: Obs::new(random([rows, obs], device)),
        action: actions,
        log_prob: column(),
        value: column(),
        advantage: column(),
        returns: column(),
        remembered: None,
    };
    time(10, || drop(ppo.update(rollout.clone(), Progress::new(0, 1)))) / EPOCHS as f64
}

fn dqn(obs: usize, n_actions: usize, hidden: usize, rows: usize, device: &Device) -> f64 {
    let space = Space::uniform_box(-1.0, 1.0, (0..obs).map(|i| i.to_string()));
    let (config, rng) =
        (QNetworkConfig { hidden: vec![hidden; 2], ..Default::default() }, &mut named_rng(0, "weights", 0));
    let network =
        QNetwork::new(&config, &space, &Space::Discrete(n_actions), &device.clone().autodiff(), rng).expect("valid");
    // One network evaluates the next observations, as the work below counts.
    let config = DqnConfig { double: false, ..Default::default() };
    let mut dqn = Dqn::new(network, config).expect("valid");
    let batch = || Transitions {
        obs: Obs::new(random([rows, obs], device)),
        action: Tensor::zeros([rows, 1], device),
        reward: Tensor::ones([rows], device),
        discount: Tensor::full([rows], 0.99, device),
        next_obs: Obs::new(random([rows, obs], device)),
        weight: None,
        sequences: None,
        rows: Tensor::arange(0..rows as i64, device),
    };
    let batch = batch();
    time(50, || drop(dqn.update(batch.clone(), Progress::new(0, 1))))
}

brasa_benches::allocator!();

fn main() {
    let Place { device, name } = place();
    let peak = peak(&device);
    let large = bandwidth(200e6);
    println!("{name}: products {:.1} GFLOP/s, memory {:.1} GB/s\n", peak / 1e9, large / 1e9);
    println!("{:44} {:>8} {:>8} {:>9} {:>9} {:>6}", "update", "MFLOP", "MB", "limit us", "taken us", "share");
    let report = |what: &str, work: Work, seconds: f64| {
        let limit = (work.flop / peak).max(work.bytes / bandwidth(work.bytes));
        let (mflop, mb) = (work.flop / 1e6, work.bytes / 1e6);
        let (limit_us, taken_us) = (limit * 1e6, seconds * 1e6);
        println!("{what:44} {mflop:8.2} {mb:8.2} {limit_us:9.1} {taken_us:9.1} {:5.0}%", 100.0 * limit / seconds);
    };
    let trained = |widths: [usize; 4]| Pass { widths, n: 1, forward: 1, weights: 1, inputs: 1, whole: false };
    let relu = ActorCriticConfig { activation: brasa::nn::Activation::Relu, ..Default::default() };
    let one = Space::uniform_box(-1.0, 1.0, ["torque"]);
    let work =
        |rows: usize, obs: usize, out: usize| Work::of(rows, &[trained([obs, 64, 64, out]), trained([obs, 64, 64, 1])]);
    report("PPO, 3-64-64-1 ReLU, 256 rows", work(256, 3, 1), ppo(3, &one, 256, &relu, &device));
    let tanh = ActorCriticConfig::default();
    report("PPO, 4-64-64-2 tanh, 128 rows", work(128, 4, 2), ppo(4, &Space::Discrete(2), 128, &tanh, &device));
    for (hidden, rows) in [(64, 32), (256, 64)] {
        let widths = [4, hidden, hidden, 2];
        let target = Pass { weights: 0, inputs: 0, ..trained(widths) };
        let work = Work::of(rows, &[trained(widths), target]);
        report(&format!("DQN, 4-{hidden}-{hidden}-2, {rows} rows"), work, dqn(4, 2, hidden, rows, &device));
    }
    for (what, shape) in [
        ("SAC, 3-64-64, 100 rows, with sampling", SacShape::SMALL),
        ("SAC, 17-256-256, 256 rows, with sampling", SacShape::LARGE),
    ] {
        let SacShape { obs, action, hidden, batch } = shape;
        let (actor, critic) = ([obs, hidden, hidden, 2 * action], [obs + action, hidden, hidden, 1]);
        let work = Work::of(
            batch,
            &[
                Pass { forward: 2, ..trained(actor) },
                Pass { n: 2, forward: 2, ..trained(critic) },
                Pass { n: 2, weights: 0, whole: true, ..trained(critic) },
            ],
        );
        let mut bench = SacBench::new(shape, &device);
        report(what, work, time(50, || bench.update()));
    }
}
