//! A vectorized step on a device: environments of the host behind it, against environments as tensor operations.
//!
//! `BRASA_BENCH_DEVICE` selects the device. The actions are already there, as those of a policy are.

use brasa::classic::tensor::{TensorCartPole, TensorPendulum};
use brasa::classic::{CartPole, Classic, Pendulum};
use brasa::core::{HostEnv, Obs, TensorDynamics, TensorEnv, VecEnv};
use brasa::energy::citylearn::{CityLearn, CityLearnConfig, Physics};
use brasa::energy::iquitos::{Iquitos, IquitosConfig};
use brasa::env::EnvBatch;
use brasa::uara::{Uara, UaraConfig};
use brasa_benches::{device, random_actions, sync};
use burn::tensor::{Device, Tensor, TensorData};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Steps of an environment with the same actions.
fn bench_env(
    criterion: &mut Criterion,
    (task, form): (&str, &str),
    mut env: impl VecEnv<Obs = Obs, Action = Tensor<2>>,
    (device, name): &(Device, String),
) {
    let (n_envs, n_rows, width) = (env.n_envs(), env.n_rows(), env.spec().action.width());
    let actions: Vec<f32> = random_actions(n_rows, &env.spec().action, 0).into_iter().collect();
    let actions = Tensor::<2>::from_data(TensorData::new(actions, [n_rows, width]), device);
    env.reset(0).expect("it starts");
    let mut group = criterion.benchmark_group(format!("step of {task} on {name}"));
    group.throughput(Throughput::Elements(n_envs as u64));
    let mut episodes = Vec::new();
    group.bench_function(BenchmarkId::new(form, n_envs), |bencher| {
        bencher.iter_custom(|rounds| {
            let begin = std::time::Instant::now();
            for _ in 0..rounds {
                env.step(actions.clone()).expect("it steps");
            }
            sync(device);
            let time = begin.elapsed();
            env.drain_episodes(&mut episodes).expect("everything is finite");
            episodes.clear();
            time
        });
    });
    group.finish();
}

fn bench_task<B: EnvBatch, D: TensorDynamics>(
    criterion: &mut Criterion,
    task: &str,
    sizes: &[usize],
    host: impl Fn(usize) -> B,
    dynamics: impl Fn(&Device) -> (D, u32),
) {
    let place = device();
    for &n_envs in sizes {
        bench_env(criterion, (task, "host"), HostEnv::new(host(n_envs), &place.0), &place);
        let (dynamics, limit) = dynamics(&place.0);
        let env = TensorEnv::new(dynamics, n_envs, &place.0).expect("a batch").with_time_limit(limit).expect("above 0");
        bench_env(criterion, (task, "tensor"), env, &place);
    }
}

/// Numbers of environments, and those of tasks whose steps are large.
const SIZES: [usize; 3] = [64, 1024, 8192];
const FEW: [usize; 2] = [64, 1024];

fn bench(criterion: &mut Criterion) {
    let cart_pole = |n_envs| Classic::<CartPole>::cart_pole().batch(0..n_envs).expect("a batch");
    bench_task(criterion, "cart-pole", &SIZES, cart_pole, |_| (TensorCartPole::default(), CartPole::TIME_LIMIT));
    let pendulum = |n_envs| Classic::<Pendulum>::pendulum().batch(0..n_envs).expect("a batch");
    bench_task(criterion, "pendulum", &SIZES, pendulum, |_| (TensorPendulum::default(), Pendulum::TIME_LIMIT));
    for physics in [Physics::Clean, Physics::CityLearn30] {
        let config = CityLearnConfig { physics, ..CityLearnConfig::default() };
        let district = CityLearn::new(config).expect("the settings are valid");
        let tensors = |device: &Device| district.tensors(device).expect("these rules have a tensor form");
        let task = format!("a district, {physics:?}");
        bench_task(criterion, &task, &SIZES, |n_envs| district.batch(0..n_envs).expect("a batch"), tensors);
    }
    for (task, config) in [("uara cly2020", UaraConfig::cly2020()), ("uara physical", UaraConfig::physical())] {
        let network = Uara::new(config).expect("the settings are valid");
        let tensors = |device: &Device| network.tensors(device).expect("the rules have a tensor form");
        bench_task(criterion, task, &FEW, |n_envs| network.batch(0..n_envs), tensors);
    }
    let microgrid = Iquitos::new(IquitosConfig::default()).expect("the settings are valid");
    let tensors = |device: &Device| microgrid.tensors(device).expect("the rules have a tensor form");
    bench_task(criterion, "the microgrid", &FEW, |n_envs| microgrid.batch(0..n_envs).expect("a batch"), tensors);
}

criterion_group!(benches, bench);
criterion_main!(benches);
