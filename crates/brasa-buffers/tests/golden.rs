//! n-step transitions against Stable-Baselines3, recorded by `scripts/record_replay.py`.

use brasa_buffers::{ReplayBuffer, ReplayConfig, Transitions};
use brasa_core::env::named_rng;
use brasa_core::{StepBatch, Successor};
use brasa_test::spec_of_rows;
use burn::tensor::{Device, Tensor, TensorData};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    n_step: NStep,
}

#[derive(Deserialize)]
struct NStep {
    n_envs: usize,
    width: usize,
    n_steps: usize,
    gamma: f64,
    steps: Steps,
    samples: Vec<Samples>,
}

/// Per step and environment.
#[derive(Deserialize)]
struct Steps {
    obs: Vec<f32>,
    next_obs: Vec<f32>,
    action: Vec<f32>,
    reward: Vec<f32>,
    terminated: Vec<f32>,
    truncated: Vec<f32>,
}

/// The content of the buffer after a number of steps.
#[derive(Deserialize)]
struct Samples {
    pushed: usize,
    step: Vec<usize>,
    env: Vec<usize>,
    #[serde(rename = "return")]
    sums: Vec<f32>,
    discount: Vec<f32>,
    /// 1 if the last step of the transition terminated; 0 for a truncation and the newest step.
    done: Vec<f32>,
    next_obs: Vec<f32>,
}

fn floats<const D: usize>(tensor: &Tensor<D>) -> Vec<f32> {
    tensor.to_data().try_to_vec().expect("f32")
}

/// Stores the first `pushed` steps in a buffer with `n_slots` observations per environment.
fn drawn(golden: &NStep, pushed: usize, n_slots: usize, device: &Device) -> Transitions<Tensor<2>, Tensor<2>> {
    let (n, width) = (golden.n_envs, golden.width);
    let rows = |values: &[f32], step: usize, width: usize| {
        let values = values[step * n * width..(step + 1) * n * width].to_vec();
        Tensor::<2>::from_data(TensorData::new(values, [n, width]), device)
    };
    let row = |values: &[f32], step: usize| rows(values, step, 1).reshape([n]);
    let steps = &golden.steps;
    let config = ReplayConfig { capacity: n_slots * n, n_step: golden.n_steps, ..ReplayConfig::default() };
    let (obs, action) = (rows(&steps.obs, 0, width), rows(&steps.action, 0, 1));
    let mut replay = ReplayBuffer::new(&config, &spec_of_rows(n, 1), &obs, &action, golden.gamma, device)
        .expect("the settings are sound");
    replay.begin(obs);
    for step in 0..pushed {
        let (terminated, truncated) = (row(&steps.terminated, step), row(&steps.truncated, step));
        let ended = floats(&(terminated.clone() + truncated.clone())).iter().any(|flag| *flag > 0.0);
        let next_obs = rows(&steps.next_obs, step, width);
        // The observation after the last step was not recorded; it differs only if an episode ended.
        let last = step + 1 == steps.reward.len() / n;
        let obs = if last { next_obs.clone() } else { rows(&steps.obs, step + 1, width) };
        let reward = row(&steps.reward, step);
        let successor = if ended { Successor::Rows(next_obs) } else { Successor::Same };
        let batch = StepBatch { obs, successor, reward, terminated, truncated, elapsed: None };
        replay.push(rows(&steps.action, step, 1), &batch).expect("it fits");
    }
    replay.sample(3000, 0.0, &mut named_rng(0, "test", 0))
}

#[test]
fn transitions_of_several_steps_are_those_of_stable_baselines() {
    let device = brasa_test::device();
    let golden: Golden = serde_json::from_str(include_str!("data/replay.json")).expect("the recorded file");
    let golden = golden.n_step;
    let width = golden.width;
    for samples in &golden.samples {
        // A buffer for all steps, and a ring that wraps.
        for n_slots in [64, 17] {
            let batch = drawn(&golden, samples.pushed, n_slots, &device);
            let (obs, next_obs) = (floats(&batch.obs), floats(&batch.next_obs));
            let (action, reward) = (floats(&batch.action), floats(&batch.reward));
            let discount = floats(&batch.discount);
            let mut compared = 0;
            for i in 0..samples.step.len() {
                let at = samples.step[i] * golden.n_envs + samples.env[i];
                let from = &golden.steps.obs[at * width..(at + 1) * width];
                let Some(drawn) = obs.chunks(width).position(|row| row == from) else {
                    assert!(n_slots < 64, "entry {i} after {} steps was never drawn", samples.pushed);
                    continue;
                };
                compared += 1;
                assert_eq!(action[drawn], golden.steps.action[at]);
                assert!((reward[drawn] - samples.sums[i]).abs() < 1e-6, "{} and {}", reward[drawn], samples.sums[i]);
                let expected = samples.discount[i] * (1.0 - samples.done[i]);
                assert!((discount[drawn] - expected).abs() < 1e-6, "{} and {expected}", discount[drawn]);
                // Nothing is bootstrapped from the successor of a termination.
                if expected > 0.0 {
                    let next = &samples.next_obs[i * width..(i + 1) * width];
                    assert_eq!(next_obs[drawn * width..(drawn + 1) * width], *next);
                }
            }
            assert!(compared >= 3 * golden.n_envs, "{compared} entries compared");
        }
    }
}
