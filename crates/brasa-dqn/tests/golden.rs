//! Updates equal those of Stable-Baselines3 and PyTorch (`scripts/record_dqn.py`).
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;

use brasa_buffers::Transitions;
use brasa_core::env::{Space, named_rng};
use brasa_core::{Learner, Obs, OffPolicyLearner, Progress, Schedule};
use brasa_dqn::{Dqn, DqnConfig, DqnLoss};
use brasa_nn::{Persist, QNetwork, QNetworkConfig};
use brasa_test::golden::{Weights, close, matrix, vector};
use burn::tensor::{Device, Int, Tensor};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    rows: usize,
    width: usize,
    actions: usize,
    hidden: Vec<usize>,
    cases: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
struct Case {
    settings: Settings,
    sync_after: Vec<u64>,
    before: BTreeMap<String, Weights>,
    after: BTreeMap<String, Weights>,
    batch: Batch,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Settings {
    learning_rate: f64,
    gamma: f32,
    max_grad_norm: f64,
    double: bool,
    dueling: bool,
    #[serde(default)]
    loss: DqnLoss,
}

#[derive(Deserialize)]
struct Batch {
    obs: Vec<f32>,
    action: Vec<f32>,
    reward: Vec<f32>,
    next_obs: Vec<f32>,
    terminated: Vec<f32>,
    discount: Option<Vec<f32>>,
    weight: Option<Vec<f32>>,
    next_legal: Option<Vec<f32>>,
}

#[derive(Deserialize)]
struct Step {
    td_error: Vec<f64>,
    loss: f64,
}

/// The name of an array in a saved learner.
fn ours(name: &str, dueling: bool) -> String {
    let (net, name) = match name.strip_prefix("target.") {
        Some(name) => ("target", name),
        None => ("network", name),
    };
    let name = if name.starts_with("hidden") { format!("body.{name}") } else { name.to_owned() };
    let name = if dueling { name.replace("advantage", "head") } else { name };
    format!("{net}.{name}")
}

fn learner(golden: &Golden, case: &Case, device: &Device) -> Dqn<QNetwork> {
    let s = &case.settings;
    let obs_space = Space::uniform_box(-1.0, 1.0, (0..golden.width).map(|i| i.to_string()));
    let network = QNetworkConfig { hidden: golden.hidden.clone(), dueling: s.dueling, ..QNetworkConfig::default() };
    let config = DqnConfig {
        tau: 1.0,
        target_update_interval: case.sync_after.first().copied().unwrap_or(1000),
        double: s.double,
        loss: s.loss,
        learning_rate: Schedule::Constant(s.learning_rate),
        max_grad_norm: Some(s.max_grad_norm),
        ..DqnConfig::default()
    };
    let (device, rng) = (device.clone().autodiff(), &mut named_rng(0, "weights", 0));
    let network = QNetwork::new(&network, &obs_space, &Space::Discrete(golden.actions), &device, rng)
        .expect("the config is valid");
    let mut dqn = Dqn::new(network, config).expect("the config is valid");
    let mut saved = dqn.save();
    for (name, weights) in &case.before {
        let name = ours(name, s.dueling);
        let arrays = if name.starts_with("network.") { &mut saved.policy } else { &mut saved.trainer };
        let array = (weights.shape.clone(), weights.values.clone());
        arrays.insert(name.clone(), array).unwrap_or_else(|| panic!("`{name}` is none of ours"));
    }
    dqn.load(&saved).expect("names and shapes are ours");
    dqn
}

fn batch(golden: &Golden, case: &Case, device: &Device) -> Transitions<Obs, Tensor<2>> {
    let (b, rows) = (&case.batch, golden.rows);
    let discount: Vec<f32> = match &b.discount {
        Some(discount) => discount.iter().zip(&b.terminated).map(|(discount, end)| discount * (1.0 - end)).collect(),
        None => b.terminated.iter().map(|end| case.settings.gamma * (1.0 - end)).collect(),
    };
    let mask = b.next_legal.as_ref().map(|legal| matrix(legal, rows, device));
    Transitions {
        obs: Obs::new(matrix(&b.obs, rows, device)),
        action: matrix(&b.action, rows, device),
        reward: vector(&b.reward, device),
        next_obs: Obs { values: matrix(&b.next_obs, rows, device), mask },
        discount: vector(&discount, device),
        weight: b.weight.as_ref().map(|weight| vector(weight, device)),
        rows: Tensor::<1, Int>::arange(0..rows as i64, device),
        sequences: None,
    }
}

#[test]
fn updates_equal_the_recorded_ones() {
    let golden: Golden = serde_json::from_str(include_str!("data/updates.json")).expect("the recorded file is valid");
    let device = brasa_test::device();
    for (name, case) in &golden.cases {
        let mut dqn = learner(&golden, case, &device);
        for step in &case.steps {
            let progress = Progress::new(0, 1);
            let metrics = dqn.update(batch(&golden, case, &device), progress).read().expect("every figure is finite");
            let td_error: Vec<f64> = dqn.td_error().into_data().iter::<f64>().collect();
            close(&format!("{name}: td_error"), td_error, step.td_error.iter().map(|error| error.abs()), 1e-5);
            let loss = metrics.iter().find(|(name, _)| *name == "train/loss").expect("it is logged").1;
            close(&format!("{name}: loss"), [loss], [step.loss], 1e-5);
        }
        let saved = dqn.save();
        for (array, weights) in &case.after {
            let array = ours(array, case.settings.dueling);
            let (_, got) = saved.policy.get(&array).or(saved.trainer.get(&array)).expect("names are ours");
            let wide = |values: &[f32]| values.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
            // A target update after the last recorded step of a case was not recorded.
            let synced = case.sync_after.iter().any(|n| (case.steps.len() as u64).is_multiple_of(*n));
            if !(synced && array.starts_with("target.")) {
                close(&format!("{name}: {array} after"), wide(got), wide(&weights.values), 1e-5);
            }
        }
    }
}
