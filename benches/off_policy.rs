//! SAC, TD3 and DQN: a decision as training makes it, an update of two sizes with its sampling, and whole iterations; and the matrix
//! products of an update of SAC.

use std::fmt::Debug;

use brasa::buffers::{ReplayConfig, Transitions};
use brasa::contracts::{Obs, OffPolicyLearner, Progress, RandomWarmup, VecEnv};
use brasa::dqn::{Dqn, DqnConfig};
use brasa::env::{Space, named_rng};
use brasa::nn::{Persist, QNetwork, QNetworkConfig};
use brasa::train::{OffPolicy, OffPolicyConfig};
use brasa_bench_kit::{Place, bench, bench_act, bench_iteration, bench_update, settings};
use brasa_benches::sac::{Products, SacShape, random_replay};
use brasa_benches::{ENDLESS, allocator, cart_poles, pendulums, place};
use burn::tensor::{Device, Tensor};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

allocator!();

/// Steps of an iteration, each with an update.
const STEPS: u64 = 100;

/// Measures decisions, updates and iterations of a learner. `make` constructs it by its shape, `envs` constructs environments that fit the
/// small shape; the action space is that of the shape, unless there is another one.
fn learner<L, E>(
    criterion: &mut Criterion,
    name: &str,
    shapes: [SacShape; 2],
    discrete: Option<Space>,
    make: impl Fn(SacShape, &Device) -> L,
    envs: impl Fn(usize, &Device) -> E,
) where
    L: OffPolicyLearner<Batch = Transitions<Obs, Tensor<2>>> + Persist,
    L::Policy: RandomWarmup<Obs = Obs, Action = Tensor<2>>,
    L::Batch: Debug,
    E: VecEnv<Obs = Obs, Action = Tensor<2>>,
{
    let place = place();
    let [small, _] = shapes;
    let acting = |n_envs: usize, place: &Place| {
        (envs(n_envs, &place.device), make(small, &place.device).policy(Progress::new(50_000, 100_000)))
    };
    for n_envs in [1, 64] {
        bench_act(criterion, &format!("{name}/act"), n_envs, &place, acting, |_| None);
    }
    for shape in shapes {
        let size = format!("{}-wide-{}-rows", shape.hidden, shape.batch);
        bench_update(criterion, &format!("{name}/update"), &size, &place, 1, |place| {
            let [obs, action] = shape.spaces();
            let replay = random_replay(&obs, discrete.as_ref().unwrap_or(&action), &place.device);
            let mut rng = named_rng(0, "replay", 1);
            (make(shape, &place.device), move || replay.sample(shape.batch, 0.0, &mut rng))
        });
    }
    bench_iteration(criterion, &format!("{name}/iteration"), "1-envs", &place, STEPS, |place| {
        let config = OffPolicyConfig {
            batch_size: small.batch,
            log_interval: STEPS,
            learning_starts: STEPS,
            replay: ReplayConfig { capacity: 10_000, ..ReplayConfig::default() },
            ..OffPolicyConfig::default()
        };
        let envs = envs(1, &place.device);
        OffPolicy::new(envs, make(small, &place.device), config, ENDLESS).expect("the settings are valid")
    });
}

fn continuous(criterion: &mut Criterion) {
    let shapes = [SacShape::SMALL, SacShape::LARGE];
    learner(criterion, "sac", shapes, None, |shape, device| shape.sac(device), pendulums);
    learner(criterion, "td3", shapes, None, |shape, device| shape.td3(device), pendulums);
}

fn discrete(criterion: &mut Criterion) {
    let small = SacShape { obs: 4, action: 1, hidden: 64, batch: 32 };
    let actions = Space::Discrete(2);
    let make = |shape: SacShape, device: &Device| {
        let config = QNetworkConfig { hidden: vec![shape.hidden; 2], ..QNetworkConfig::default() };
        let (autodiff, rng) = (device.clone().autodiff(), &mut named_rng(0, "weights", 0));
        let [obs, _] = shape.spaces();
        let network = QNetwork::new(&config, &obs, &actions, &autodiff, rng).expect("the settings are valid");
        Dqn::new(network, DqnConfig::default()).expect("the settings are valid")
    };
    let shapes = [small, SacShape { hidden: 256, batch: 64, ..small }];
    learner(criterion, "dqn", shapes, Some(actions.clone()), make, cart_poles);
}

/// The products of an update, as a lower bound of its time.
fn products(criterion: &mut Criterion) {
    let place = place();
    for shape in [SacShape::SMALL, SacShape::LARGE] {
        let size = format!("{}-wide-{}-rows", shape.hidden, shape.batch);
        let mut products = None;
        bench(criterion, "sac/products", size, &place.name, Throughput::Elements(1), |bencher| {
            let products = products.get_or_insert_with(|| Products::new(shape, &place.device));
            bencher.iter(|| {
                products.multiply();
                place.sync();
            });
        });
    }
}

criterion_group! { name = benches; config = settings(); targets = continuous, discrete, products }
criterion_main!(benches);
