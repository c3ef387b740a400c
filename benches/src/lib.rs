//! Helpers for the benches: device, batches with random actions, and PPO's settings for CartPole.

pub mod gat;
pub mod sac;
pub mod team_dqn;
pub mod team_loop;

use brasa::classic::CartPole;
use brasa::core::{HostEnv, Schedule};
use brasa::device::open_named;
use brasa::env::wrappers::{EpisodeStats, TimeLimit};
use brasa::env::{BatchSlabs, EnvBatch, EnvVec, Space, named_rng};
use brasa::ppo::PpoConfig;
use burn::tensor::Device;
use criterion::{BenchmarkId, Criterion, Throughput};
use ndarray::Array2;
use rand::RngExt;
use std::hint::black_box;

/// The allocator of the `brasa` command; the system's returns freed pages and faults them in again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The device of a bench and its name for the bench id: the CPU, or `BRASA_BENCH_DEVICE`.
///
/// # Panics
/// If that device cannot be opened.
pub fn device() -> (Device, String) {
    let name = std::env::var("BRASA_BENCH_DEVICE").unwrap_or_else(|_| "cpu".into());
    let device = open_named(&name).unwrap_or_else(|error| panic!("BRASA_BENCH_DEVICE: {error}"));
    (device, name)
}

/// The command-line argument after `name`.
///
/// # Errors
/// If it cannot be parsed.
pub fn argument<T: std::str::FromStr>(name: &str, default: T) -> Result<T, String> {
    let arguments: Vec<String> = std::env::args().collect();
    let Some(at) = arguments.iter().position(|argument| argument == name) else {
        return Ok(default);
    };
    let value = arguments.get(at + 1).map(String::as_str).unwrap_or_default();
    value.parse().map_err(|_| format!("`{name}` cannot be `{value}`"))
}

/// Waits until the device has finished, before the clock stops.
///
/// # Panics
/// If the device reports an error.
pub fn sync(device: &Device) {
    device.sync().expect("the device finishes its work");
}

/// Uniformly random actions of a space, the same in every run.
pub fn random_actions(n_rows: usize, space: &Space, seed: u64) -> Array2<f32> {
    let mut rng = named_rng(seed, "actions", 0);
    Array2::from_shape_fn((n_rows, space.width()), |(_, column)| match space {
        Space::Box(space) => {
            let (low, high) = (space.low[column], space.high[column]);
            low + (high - low) * rng.random::<f32>()
        }
        Space::Discrete(n) => rng.random_range(0..*n) as f32,
        Space::MultiDiscrete(heads) => rng.random_range(0..heads[column]) as f32,
    })
}

/// Measures environment steps per second of batches of `sizes`, cycling over sixteen sets of random actions.
///
/// # Panics
/// If a batch cannot be constructed or a step fails.
pub fn bench_steps<B: EnvBatch>(criterion: &mut Criterion, group: &str, sizes: &[usize], make: impl Fn(usize) -> B) {
    let mut group = criterion.benchmark_group(group);
    for &n_envs in sizes {
        let mut batch = make(n_envs);
        let mut slabs = BatchSlabs::new(batch.spec());
        batch.reset(0, &mut slabs).expect("the environments start");
        let actions: Vec<_> = (0..16).map(|seed| random_actions(batch.n_rows(), &batch.spec().action, seed)).collect();
        let mut turn = 0;
        group.throughput(Throughput::Elements(n_envs as u64));
        group.bench_function(BenchmarkId::new(format!("{n_envs}-envs"), "host"), |bencher| {
            bencher.iter(|| {
                turn = (turn + 1) % actions.len();
                batch.step(actions[turn].view(), &mut slabs).expect("the environments step");
                black_box(slabs.reward[0])
            });
        });
    }
    group.finish();
}

/// CartPole-v1 with episode statistics.
pub type CartPoles = HostEnv<EpisodeStats<TimeLimit<EnvVec<CartPole>>>>;

/// `n_envs` of them, connected to `device`.
///
/// # Panics
/// If `n_envs` is 0.
pub fn cart_poles(n_envs: usize, device: &Device) -> CartPoles {
    let envs = EnvVec::new(0..n_envs, |_| CartPole::default()).expect("there is at least one");
    let limited = TimeLimit::new(envs, CartPole::TIME_LIMIT).expect("the limit is above 0");
    HostEnv::new(EpisodeStats::new(limited), device)
}

/// PPO on CartPole-v1 with RL Zoo's settings: 8 environments, 32 steps each, one batch of 256 rows, 20 epochs.
pub fn cart_pole_config() -> PpoConfig {
    PpoConfig {
        n_steps: 32,
        batch_size: 256,
        n_epochs: 20,
        gamma: 0.98,
        gae_lambda: 0.8,
        ent_coef: 0.0,
        learning_rate: Schedule::linear(1e-3, 0.0),
        clip_range: Schedule::linear(0.2, 0.0),
        ..PpoConfig::default()
    }
}
