//! Updates equal those of Stable-Baselines3 (`scripts/record_a2c.py`), and those of PPO with equivalent settings.
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;

use brasa_a2c::{A2c, A2cConfig};
use brasa_buffers::{Discounts, Rollout, RolloutBuffer};
use brasa_core::env::{Space, named_rng};
use brasa_core::{Decision, Learner, Obs, Progress, Schedule, StepBatch, Successor};
use brasa_nn::{ActorCriticConfig, AdamConfig, MlpActorCritic, Persist, RmsPropConfig, RmsPropStyle};
use brasa_test::golden::{Weights, close, matrix, vector};
use brasa_test::spec_of_rows;
use burn::tensor::{Device, Tensor};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    n_rows: usize,
    n_steps: usize,
    cases: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
struct Case {
    gamma: f64,
    gae_lambda: f64,
    settings: Settings,
    before: BTreeMap<String, Weights>,
    after: Vec<BTreeMap<String, Weights>>,
    rollout: Recorded,
    logged: Vec<BTreeMap<String, f64>>,
}

#[derive(Deserialize)]
struct Settings {
    learning_rate: f64,
    ent_coef: f64,
    vf_coef: f64,
    max_grad_norm: f64,
    normalize_advantage: bool,
    optimizer: String,
    eps: f64,
}

#[derive(Deserialize)]
struct Recorded {
    obs: Vec<f32>,
    action: Vec<f32>,
    log_prob: Vec<f32>,
    value: Vec<f32>,
    reward: Vec<f32>,
    terminated: Vec<f32>,
    last_value: Vec<f32>,
    advantage: Vec<f64>,
    target: Vec<f64>,
}

/// The recorded rollout, pushed step by step into our buffer.
fn rollout(golden: &Golden, case: &Case, device: &Device) -> Rollout<Obs, Tensor<2>> {
    let (rows, r) = (golden.n_rows, &case.rollout);
    let part = |values: &[f32], t: usize| {
        let n = values.len() / golden.n_steps;
        matrix(&values[t * n..(t + 1) * n], rows, device)
    };
    let column = |values: &[f32], t: usize| vector(&values[t * rows..(t + 1) * rows], device);
    let first = Obs::new(part(&r.obs, 0));
    let mut buffer = RolloutBuffer::new(golden.n_steps, &spec_of_rows(rows, 1), &first, &part(&r.action, 0), device);
    for t in 0..golden.n_steps {
        let obs = Obs::new(part(&r.obs, t));
        let step = StepBatch {
            obs: obs.clone(),
            successor: Successor::Rows(obs.clone()),
            reward: column(&r.reward, t),
            terminated: column(&r.terminated, t),
            truncated: Tensor::zeros([rows], device),
            elapsed: None,
        };
        let decision = Decision { log_prob: column(&r.log_prob, t), value: Some(column(&r.value, t)) };
        // A value that must have no effect: every recorded end is a termination.
        buffer.push(obs, part(&r.action, t), decision, &step);
    }
    let discounts = Discounts { gamma: case.gamma, gae_lambda: case.gae_lambda };
    buffer
        .finish(column(&r.last_value, 0), |_, _| Tensor::full([rows], 1e6, device), discounts)
        .expect("no row was truncated")
}

fn learner(case: &Case, gaussian: bool, device: &Device) -> A2c<MlpActorCritic> {
    let s = &case.settings;
    let action_space = match gaussian {
        true => Space::uniform_box(-1.0, 1.0, ["a", "b"]),
        false => Space::Discrete(3),
    };
    let obs_space = Space::uniform_box(-1.0, 1.0, (0..5).map(|i| i.to_string()));
    let network = ActorCriticConfig { actor_hidden: vec![8, 6], critic_hidden: vec![8, 6], ..Default::default() };
    let (autodiff, rng) = (device.clone().autodiff(), &mut named_rng(0, "weights", 0));
    let network = MlpActorCritic::new(&network, &obs_space, &action_space, &autodiff, rng).expect("it is valid");
    let rms_prop = |style| RmsPropConfig { epsilon: s.eps, style, ..RmsPropConfig::default() };
    let config = A2cConfig {
        gamma: case.gamma,
        gae_lambda: case.gae_lambda,
        learning_rate: Schedule::Constant(s.learning_rate),
        ent_coef: s.ent_coef,
        vf_coef: s.vf_coef,
        max_grad_norm: Some(s.max_grad_norm),
        normalize_advantage: s.normalize_advantage,
        optimizer: match s.optimizer.as_str() {
            "Adam" => AdamConfig { epsilon: s.eps, ..AdamConfig::default() }.into(),
            "RMSprop" => rms_prop(RmsPropStyle::Pytorch).into(),
            "RMSpropTFLike" => rms_prop(RmsPropStyle::Tensorflow).into(),
            other => panic!("unknown optimizer {other}"),
        },
        ..A2cConfig::default()
    };
    let mut a2c = A2c::new(network, config, 0).expect("the config is valid");
    let mut saved = a2c.save();
    for (name, weights) in &case.before {
        let array = (weights.shape.clone(), weights.values.clone());
        saved.policy.insert(ours(name), array).unwrap_or_else(|| panic!("`{name}` is none of ours"));
    }
    a2c.load(&saved).expect("names and shapes are ours");
    a2c
}

/// The name of an array in a saved learner.
fn ours(name: &str) -> String {
    let name = name.replace("log_std", "actor_head.gaussian_std.log_std");
    let name = name.replace("actor_head.weight", "actor_head.output.weight");
    format!("network.{}", name.replace("actor_head.bias", "actor_head.output.bias"))
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|x| f64::from(*x)).collect()
}

fn values(tensor: &Tensor<1>) -> Vec<f64> {
    tensor.to_data().iter::<f64>().collect()
}

const PROGRESS: Progress = Progress::new(0, 1);

#[test]
fn updates_equal_stable_baselines3() {
    let golden: Golden =
        serde_json::from_str(include_str!("data/sb3_update.json")).expect("the recorded file is valid");
    let device = brasa_test::device();
    for (name, case) in &golden.cases {
        let batch = rollout(&golden, case, &device);
        close(&format!("{name}: advantage"), values(&batch.advantage), case.rollout.advantage.clone(), 1e-5);
        close(&format!("{name}: target"), values(&batch.returns), case.rollout.target.clone(), 1e-5);
        let mut a2c = learner(case, name == "gaussian", &device);
        for (logged, after) in case.logged.iter().zip(&case.after) {
            let metrics = a2c.update(batch.clone(), PROGRESS).read().expect("every figure is finite");
            let metrics: BTreeMap<_, _> = metrics.into_iter().collect();
            for (key, expected) in logged {
                close(&format!("{name}: {key}"), [metrics[key.as_str()]], [*expected], 1e-5);
            }
            assert_eq!(metrics.len(), logged.len(), "{name}: {metrics:?}");
            let saved = a2c.save();
            for (array, weights) in after {
                let got = &saved.policy[&ours(array)].1;
                close(&format!("{name}: {array} after"), wide(got), wide(&weights.values), 1e-5);
            }
        }
    }
}

#[test]
fn parts_of_a_rollout_take_a_step_each() {
    let golden: Golden =
        serde_json::from_str(include_str!("data/sb3_update.json")).expect("the recorded file is valid");
    let device = brasa_test::device();
    let case = &golden.cases["adam"];
    let n_rows = golden.n_rows * golden.n_steps;
    for (batch_size, steps) in [(None, 1.0), (Some(n_rows), 1.0), (Some(n_rows / 2), 2.0), (Some(n_rows - 1), 2.0)] {
        let whole = learner(case, false, &device);
        let config = A2cConfig { batch_size, ..whole.config().clone() };
        let mut a2c = A2c::new(whole.trainable().module().clone(), config, 0).expect("the config is valid");
        a2c.update(rollout(&golden, case, &device), PROGRESS);
        assert_eq!(a2c.save().numbers["network.optimizer.steps"], steps, "{batch_size:?}");
    }
}
