//! Updates with networks that remember equal those of PyTorch (`scripts/record_recurrent_dqn.py`).
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;

use brasa_buffers::{ReplayedSequences, Transitions};
use brasa_core::env::{Space, named_rng};
use brasa_core::{Learner, Obs, OffPolicyLearner, Progress, Schedule, Sequences};
use brasa_dqn::{Dqn, DqnConfig};
use brasa_nn::{Persist, RecurrentKind, RecurrentQNetwork, RecurrentQNetworkConfig};
use brasa_test::golden::{Weights, close, matrix, vector};
use burn::tensor::{Device, Int, Tensor};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    width: usize,
    actions: usize,
    cells: usize,
    encoder: Vec<usize>,
    hidden: Vec<usize>,
    sequences: usize,
    length: usize,
    learning_rate: f64,
    max_grad_norm: f64,
    cases: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
struct Case {
    settings: Settings,
    before: BTreeMap<String, Weights>,
    after: BTreeMap<String, Weights>,
    batch: Batch,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Settings {
    kind: RecurrentKind,
    n_step: usize,
    double: bool,
    dueling: bool,
    rescale: bool,
    burn_in: usize,
}

#[derive(Deserialize)]
struct Batch {
    obs: Vec<f32>,
    action: Vec<f32>,
    reward: Vec<f32>,
    next_obs: Vec<f32>,
    discount: Vec<f32>,
    last: Vec<i32>,
    starts: Vec<f32>,
    state: Vec<f32>,
    importance: Vec<f32>,
}

#[derive(Deserialize)]
struct Step {
    td_error: Vec<f64>,
    loss: f64,
}

fn learner(golden: &Golden, case: &Case, device: &Device) -> Dqn<RecurrentQNetwork> {
    let s = &case.settings;
    let network = RecurrentQNetworkConfig {
        kind: s.kind,
        width: golden.cells,
        encoder_hidden: golden.encoder.clone(),
        hidden: golden.hidden.clone(),
        dueling: s.dueling,
        ..RecurrentQNetworkConfig::default()
    };
    let config = DqnConfig {
        target_update_interval: 1000,
        double: s.double,
        rescale: s.rescale,
        learning_rate: Schedule::Constant(golden.learning_rate),
        max_grad_norm: Some(golden.max_grad_norm),
        ..DqnConfig::default()
    };
    let obs_space = Space::uniform_box(-1.0, 1.0, (0..golden.width).map(|i| i.to_string()));
    let (device, rng) = (device.clone().autodiff(), &mut named_rng(0, "weights", 0));
    let network = RecurrentQNetwork::new(&network, &obs_space, &Space::Discrete(golden.actions), &device, rng);
    let mut dqn = Dqn::new(network.expect("the config is valid"), config).expect("the config is valid");
    let mut saved = dqn.save();
    for (name, weights) in &case.before {
        let arrays = if name.starts_with("network.") { &mut saved.policy } else { &mut saved.trainer };
        let array = (weights.shape.clone(), weights.values.clone());
        arrays.insert(name.clone(), array).unwrap_or_else(|| panic!("`{name}` is none of ours"));
    }
    dqn.load(&saved).expect("names and shapes are ours");
    dqn
}

fn batch(golden: &Golden, case: &Case, device: &Device) -> Transitions<Obs, Tensor<2>> {
    let (b, s, n) = (&case.batch, &case.settings, golden.sequences);
    let rows = b.action.len();
    let learned = s.burn_in..s.burn_in + golden.length;
    // As a replay buffer does: the mean over all rows behind the burn-in is that over the steps to learn from.
    let factor = (golden.length + s.n_step - 1) as f32 / golden.length as f32;
    let weight = |row: usize| if learned.contains(&(row / n)) { factor * b.importance[row % n] } else { 0.0 };
    let steps = Sequences { state: matrix(&b.state, n, device), starts: vector(&b.starts, device) };
    Transitions {
        obs: Obs::new(matrix(&b.obs, rows, device)),
        action: matrix(&b.action, rows, device),
        reward: vector(&b.reward, device),
        next_obs: Obs::new(matrix(&b.next_obs, rows, device)),
        discount: vector(&b.discount, device),
        weight: Some(vector(&(0..rows).map(weight).collect::<Vec<f32>>(), device)),
        rows: Tensor::<1, Int>::arange(0..rows as i64, device),
        sequences: Some(ReplayedSequences {
            steps,
            last: Tensor::<1, Int>::from_ints(b.last.as_slice(), device),
            burn_in: s.burn_in,
        }),
    }
}

#[test]
fn updates_equal_the_recorded_ones() {
    let golden: Golden =
        serde_json::from_str(include_str!("data/recurrent_updates.json")).expect("the recorded file is valid");
    let device = brasa_test::device();
    for (name, case) in &golden.cases {
        let mut dqn = learner(&golden, case, &device);
        for step in &case.steps {
            let progress = Progress::new(0, 1);
            let metrics = dqn.update(batch(&golden, case, &device), progress).read().expect("every figure is finite");
            let td_error = dqn.td_error().into_data().iter::<f64>().take(step.td_error.len()).collect::<Vec<_>>();
            close(&format!("{name}: td_error"), td_error, step.td_error.iter().map(|error| error.abs()), 1e-5);
            let loss = metrics.iter().find(|(name, _)| *name == "train/loss").expect("it is logged").1;
            close(&format!("{name}: loss"), [loss], [step.loss], 1e-5);
        }
        let saved = dqn.save();
        for (array, weights) in &case.after {
            let (_, got) = saved.policy.get(array).or(saved.trainer.get(array)).expect("names are ours");
            let wide = |values: &[f32]| values.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
            close(&format!("{name}: {array} after"), wide(got), wide(&weights.values), 1e-5);
        }
    }
}
