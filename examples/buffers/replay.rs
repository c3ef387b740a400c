//! The replay buffer without a learner: half precision, 3-step returns, and prioritized sampling next to uniform sampling.
//!
//! `cargo run --release -p example-buffers --example replay`

use brasa_buffers::{Precision, PrioritizedConfig, ReplayBuffer, ReplayConfig};
use brasa_classic::CartPole;
use brasa_core::{HostEnv, Obs, VecEnv};
use brasa_device::open_named;
use brasa_env::wrappers::TimeLimit;
use brasa_env::{EnvRng, EnvVec, named_rng};
use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;

const N_ENVS: usize = 4;
const GAMMA: f64 = 0.99;
const BATCH_SIZE: usize = 256;
const CAPACITY: usize = 2000;

/// Random pushes to the left or right, one per environment.
fn any_action(rng: &mut EnvRng, device: &Device) -> Tensor<2> {
    let actions: Vec<f32> = (0..N_ENVS).map(|_| rng.random_range(0..2) as f32).collect();
    Tensor::from_data(TensorData::new(actions, [N_ENVS, 1]), device)
}

/// Absolute angles of the poles in rad, `[n_rows]`.
fn angle(obs: &Obs) -> Tensor<1> {
    let n_rows = obs.values.dims()[0];
    obs.values.clone().slice([0..n_rows, 2..3]).reshape([n_rows]).abs()
}

fn mean(values: Tensor<1>) -> f32 {
    values.mean().into_scalar::<f32>()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = open_named("cpu")?;
    let rng = &mut named_rng(0, "example", 0);
    let poles = EnvVec::new(0..N_ENVS, |_| CartPole::default())?;
    let mut env = HostEnv::new(TimeLimit::new(poles, CartPole::TIME_LIMIT)?, &device);
    let first = env.reset(0)?;

    // One observation and one action are examples for the buffer's layout.
    let example = any_action(rng, &device);
    let new = |precision, prioritized| {
        let config = ReplayConfig { capacity: CAPACITY, n_step: 3, precision, prioritized, ..ReplayConfig::default() };
        ReplayBuffer::new(&config, env.spec(), &first, &example, GAMMA, &device)
    };
    let prioritized = Some(PrioritizedConfig::default());
    for (name, precision, prioritized) in [
        ("32 bits", Precision::F32, None),
        ("16 bits", Precision::F16, None),
        ("16 bits, with priorities", Precision::F16, prioritized.clone()),
    ] {
        println!("{name}: {} bytes per transition", new(precision, prioritized)?.bytes_per_transition());
    }

    let mut replay = new(Precision::F16, prioritized)?;
    replay.begin(first.clone());
    for _ in 0..1000 {
        let action = any_action(rng, &device);
        let step = env.step(action.clone())?;
        replay.push(action, &step)?;
    }
    // Fewer than the capacity: the observations before the reset of ended episodes take room too.
    println!("{} transitions in a buffer of {CAPACITY}", replay.n_transitions());

    // Every step has reward 1, so the reward is the number of steps of a transition.
    let batch = replay.sample(BATCH_SIZE, 0.4, rng);
    println!("mean reward over up to 3 steps: {:.3}", mean(batch.reward));
    println!("mean discount, 0 after a fall: {:.3}", mean(batch.discount));

    // Without a learner any number can be the TD error: here transitions with a larger angle are sampled more often.
    println!("mean angle, uniform sampling (baseline): {:.4} rad", mean(angle(&batch.obs)));
    for _ in 0..100 {
        let batch = replay.sample(BATCH_SIZE, 0.4, rng);
        replay.set_priorities(&batch.rows, angle(&batch.obs));
    }
    let batch = replay.sample(BATCH_SIZE, 0.4, rng);
    println!("mean angle, by priority: {:.4} rad", mean(angle(&batch.obs)));
    let weight = batch.weight.ok_or("a prioritized buffer weighs what it samples")?;
    println!("smallest weight of the batch: {:.3}", weight.min().into_scalar::<f32>());
    Ok(())
}
