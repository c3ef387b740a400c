//! A rollout and its advantages without a learner: generalized advantage estimation next to its two limits, the error of one step
//! (lambda 0) and the whole return (lambda 1).
//!
//! `cargo run --release -p example-buffers --example rollout_and_gae`

use brasa_buffers::{Discounts, RolloutBuffer};
use brasa_classic::CartPole;
use brasa_core::{Decision, HostEnv, Obs, StepBatch, VecEnv};
use brasa_device::open_named;
use brasa_env::EnvVec;
use burn::tensor::Tensor;

const N_ENVS: usize = 2;
const N_STEPS: usize = 64;
const GAMMA: f64 = 0.9;

/// A crude estimate of the return: poles that lean less stand longer. `[n_rows]`
fn value(obs: &Obs) -> Tensor<1> {
    let angle = obs.values.clone().slice([0..N_ENVS, 2..3]).reshape([N_ENVS]).abs();
    (angle.mul_scalar(-20.0) + 8.0).clamp_min(0.0)
}

/// Pushes every cart against the angle of its pole. `[n_rows, 1]`
fn push(obs: &Obs) -> Tensor<2> {
    obs.values.clone().slice([0..N_ENVS, 2..3]).greater_elem(0.0).float()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = open_named("cpu")?;
    let mut env = HostEnv::new(EnvVec::new(0..N_ENVS, |_| CartPole::default())?, &device);
    let mut obs = env.reset(0)?;
    // One observation and one action show the buffer's layout.
    let mut buffer = RolloutBuffer::new(N_STEPS, env.spec(), &obs, &push(&obs), &device);
    let mut steps: Vec<(Vec<f32>, Vec<f32>, StepBatch<Obs>)> = Vec::new();
    for lambda in [0.0, 0.95, 1.0] {
        steps.clear();
        obs = env.reset(0)?;
        while !buffer.is_full() {
            let (action, estimate) = (push(&obs), value(&obs));
            let step = env.step(action.clone())?;
            let next = step.next_obs();
            steps.push((numbers(estimate.clone()), numbers(value(&next)), step.clone()));
            let decision = Decision { log_prob: Tensor::zeros([N_ENVS], &device), value: Some(estimate) };
            buffer.push(std::mem::replace(&mut obs, step.obs.clone()), action, decision, &step);
        }
        let discounts = Discounts { gamma: GAMMA, gae_lambda: lambda };
        let rollout = buffer.finish(value(&obs), |obs, _| value(&obs), discounts)?;
        let advantage = numbers(rollout.advantage)[0];
        let expected = by_definition(&steps, lambda);
        println!("lambda {lambda:4}: the first advantage is {advantage:.5}, by its definition {expected:.5}");
        if (f64::from(advantage) - expected).abs() > 1e-4 {
            return Err("the buffer and the definition differ".into());
        }
    }
    let ends: f32 = steps.iter().map(|(_, _, step)| numbers(step.terminated.clone()).iter().sum::<f32>()).sum();
    println!("{ends} episodes ended within {N_STEPS} steps of {N_ENVS} environments");
    Ok(())
}

fn numbers(values: Tensor<1>) -> Vec<f32> {
    values.into_data().iter::<f32>().collect()
}

/// Schulman et al. 2016, equation 16, for the first row of the first step.
fn by_definition(steps: &[(Vec<f32>, Vec<f32>, StepBatch<Obs>)], lambda: f64) -> f64 {
    let (mut sum, mut weight) = (0.0, 1.0);
    for (value, next, step) in steps {
        let first = |values: &Tensor<1>| f64::from(numbers(values.clone())[0]);
        let terminated = first(&step.terminated);
        sum += weight * (first(&step.reward) + GAMMA * f64::from(next[0]) * (1.0 - terminated) - f64::from(value[0]));
        weight *= GAMMA * lambda * (1.0 - terminated);
    }
    sum
}
