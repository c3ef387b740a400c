//! Helpers for tests of learning.

pub mod tensors;

use brasa::buffers::{ReplayConfig, Transitions};
use brasa::contracts::{HostEnv, Obs, OffPolicyLearner, Policy, RandomWarmup};
use brasa::device::Precision;
use brasa::env::wrappers::{EpisodeStats, NormalizeObs, ScaleReward, TimeLimit};
use brasa::env::{Env, EnvBatch, EnvVec};
use brasa::nn::Persist;
use brasa::train::{OffPolicy, OffPolicyConfig, Run, Training, evaluate};
use brasa_test::device;
use burn::tensor::Tensor;

/// Environments with time limits and statistics, on the device of tests.
pub type TestEnv<E> = HostEnv<EpisodeStats<TimeLimit<EnvVec<E>>>>;
/// The same with normalized observations and scaled rewards.
pub type NormalizedEnv<E> = HostEnv<NormalizeObs<ScaleReward<EpisodeStats<TimeLimit<EnvVec<E>>>>>>;

fn batch_of<E: Env>(n_envs: usize, limit: Option<u32>, make: impl Fn() -> E) -> EpisodeStats<TimeLimit<EnvVec<E>>> {
    let envs = EnvVec::new(0..n_envs, |_| make()).expect("there is at least one");
    EpisodeStats::new(TimeLimit::new(envs, limit.unwrap_or(1_000_000)).expect("the limit is above 0"))
}

/// `n_envs` environments with an optional time limit.
pub fn episodes_of<E: Env>(n_envs: usize, limit: Option<u32>, make: impl Fn() -> E) -> TestEnv<E> {
    HostEnv::new(batch_of(n_envs, limit, make), &device())
}

/// The same for training with normalized observations and scaled rewards.
pub fn normalized<E: Env>(n_envs: usize, limit: u32, gamma: f64, make: impl Fn() -> E) -> NormalizedEnv<E> {
    let scaled = ScaleReward::new(batch_of(n_envs, Some(limit), make), gamma).expect("gamma is valid");
    HostEnv::new(NormalizeObs::new(scaled).expect("it may be normalized"), &device())
}

/// The same for evaluation, with the moments of training and unscaled rewards.
pub fn frozen<E: Env>(
    n_envs: usize,
    limit: u32,
    trained: &NormalizedEnv<E>,
    make: impl Fn() -> E,
) -> HostEnv<NormalizeObs<EpisodeStats<TimeLimit<EnvVec<E>>>>> {
    let moments = trained.batch().obs_moments().expect("observations are normalized").clone();
    let batch = NormalizeObs::frozen(batch_of(n_envs, Some(limit), make), moments).expect("the widths agree");
    HostEnv::new(batch, &device())
}

/// Mean return without exploration.
pub fn mean_return<P, B: EnvBatch>(policy: &P, env: &mut HostEnv<B>, n_episodes: usize, seed: u64) -> f64
where
    P: Policy<Obs = Obs, Action = Tensor<2>>,
{
    let episodes = evaluate(policy, env, n_episodes, seed).expect("evaluation runs");
    episodes.iter().map(|episode| episode.episode_return).sum::<f64>() / episodes.len() as f64
}

/// The formats of products with 16 bits that the device of the tests supports.
pub fn low_precisions() -> Vec<Precision> {
    let mut found = vec![Precision::Bf16, Precision::F16];
    found.retain(|precision| match precision.check(&device()) {
        Ok(()) => true,
        Err(error) => {
            eprintln!("SKIPPED: {error}");
            false
        }
    });
    found
}

/// One result per seed 0 to 4.
pub fn seeds(one: impl Fn(u64) -> f64) -> Vec<f64> {
    (0..5).map(one).collect()
}

/// Prints mean and standard deviation, and returns the mean.
pub fn over_seeds(name: &str, returns: &[f64]) -> f64 {
    let mean = returns.iter().sum::<f64>() / returns.len() as f64;
    let spread = (returns.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / returns.len() as f64).sqrt();
    println!("{name}: {mean:.1} +- {spread:.1} over {} seeds: {returns:.1?}", returns.len());
    mean
}

/// A loop that solves a probe within a second or two.
pub fn quick() -> OffPolicyConfig {
    OffPolicyConfig {
        learning_starts: 200,
        train_freq: 8,
        updates_per_step: 0.5,
        batch_size: 64,
        replay: ReplayConfig { capacity: 4000, ..ReplayConfig::default() },
        ..OffPolicyConfig::default()
    }
}

/// An off-policy loop after its last step.
pub fn trained<E: Env, L>(env: TestEnv<E>, learner: L, config: OffPolicyConfig, run: Run) -> OffPolicy<TestEnv<E>, L>
where
    L: OffPolicyLearner<Batch = Transitions<Obs, Tensor<2>>> + Persist,
    L::Policy: RandomWarmup<Obs = Obs, Action = Tensor<2>>,
{
    let mut training = OffPolicy::new(env, learner, config, run).expect("the environments start");
    while !training.is_done() {
        training.iterate().expect("training goes on");
    }
    training
}
