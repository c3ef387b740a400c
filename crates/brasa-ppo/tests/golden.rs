//! One update, its losses and logged metrics equal those of Stable-Baselines3 (`scripts/record_ppo.py`,
//! `scripts/record_cnn_ppo.py`), of sb3-contrib's RecurrentPPO
//! (`scripts/record_recurrent_ppo.py`), and of TorchRL's MAPPO
//! (`scripts/record_mappo.py`).
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;

use brasa_buffers::{Discounts, Rollout, RolloutBuffer};
use brasa_core::env::{EnvSpec, Space, named_rng};
use brasa_core::export::high_and_low;
use brasa_core::{
    ActorCritic, Decision, Learner, Obs, OnPolicyLearner, PolicyState, Progress, Schedule, StepBatch, Successor,
    ValueScale,
};
use brasa_nn::{
    ActorCriticConfig, CnnActorCritic, CnnActorCriticConfig, CnnLayers, ConvolutionConfig, MlpActorCritic, NamedParam,
    Persist, RecurrentActorCritic, RecurrentActorCriticConfig, SeparateActorCritic, StdKind, load_params, named_params,
};
use brasa_ppo::{Ppo, PpoConfig, ValueLoss};
use brasa_test::spec_of_rows;
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
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
    /// Of RecurrentPPO: whether actor and critic have one recurrent layer.
    #[serde(default)]
    shared: bool,
    settings: Settings,
    before: BTreeMap<String, Weights>,
    after: BTreeMap<String, Weights>,
    rollout: Recorded,
    logged: BTreeMap<String, f64>,
    /// Whether there are metrics that the other implementation does not have.
    #[serde(default)]
    logs_other_metrics: bool,
}

#[derive(Deserialize)]
struct Settings {
    n_epochs: usize,
    learning_rate: f64,
    ent_coef: Option<f64>,
    vf_coef: Option<f64>,
    clip_range_vf: Option<f64>,
    #[serde(default)]
    vf_loss: ValueLoss,
    target_kl: Option<f64>,
    max_grad_norm: Option<f64>,
    normalize_advantage: Option<bool>,
    /// With normalized values: the exponential sums of means, of mean squares and of ones before the update.
    earlier_moments: Option<[f64; 3]>,
}

impl Settings {
    fn value_scale(&self) -> ValueScale {
        let Some([mean, square, weight]) = self.earlier_moments else { return ValueScale::default() };
        let mean = mean / weight;
        ValueScale { mean, deviation: (square / weight - mean * mean).sqrt() }
    }
}

#[derive(Deserialize)]
struct Weights {
    shape: Vec<usize>,
    values: Vec<f32>,
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
    #[serde(flatten)]
    expected: Option<Expected>,
    /// Of RecurrentPPO: what the policy remembers before the first step.
    state: Option<Vec<f32>>,
}

#[derive(Deserialize)]
struct Expected {
    advantage: Vec<f64>,
    target: Vec<f64>,
    evaluated: Evaluated,
}

#[derive(Deserialize)]
struct Evaluated {
    value: Vec<f64>,
    log_prob: Vec<f64>,
    entropy: Vec<f64>,
}

fn close(what: &str, got: Tensor<1>, expected: &[f64], tolerance: f64) {
    let got: Vec<f64> = got.into_data().iter::<f64>().collect();
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert!((got - expected).abs() <= tolerance, "{what}[{i}]: {got} instead of {expected}");
    }
}

fn space(name: &str) -> Space {
    match name {
        "multi_discrete" => Space::MultiDiscrete(vec![3, 2]),
        "gaussian" | "state_dependent" => Space::uniform_box(-1.0, 1.0, ["a", "b"]),
        _ => Space::Discrete(3),
    }
}

/// Our name of a recorded array.
fn ours(name: &str) -> String {
    let name = name.replace("log_std", "actor_head.gaussian_std.log_std");
    let name = name.replace("matrix", "actor_head.gaussian_std.matrix");
    name.replace("actor_head.weight", "actor_head.output.weight").replace("actor_head.bias", "actor_head.output.bias")
}

/// The recorded rollout, pushed step by step into our buffer.
fn rollout(golden: &Golden, case: &Case, width: usize, device: &Device) -> Rollout<Obs, Tensor<2>> {
    let rows = golden.n_rows;
    let obs_width = case.rollout.obs.len() / (rows * golden.n_steps);
    let vector = |values: &[f32], t: usize| {
        Tensor::<1>::from_data(TensorData::new(values[t * rows..(t + 1) * rows].to_vec(), [rows]), device)
    };
    let matrix = |values: &[f32], t: usize, width: usize| {
        let part = values[t * rows * width..(t + 1) * rows * width].to_vec();
        Tensor::<2>::from_data(TensorData::new(part, [rows, width]), device)
    };
    let (r, scale) = (&case.rollout, case.settings.value_scale());
    let first = Obs::new(matrix(&r.obs, 0, obs_width));
    let mut buffer =
        RolloutBuffer::new(golden.n_steps, &spec_of_rows(rows, 1), &first, &matrix(&r.action, 0, width), device);
    for t in 0..golden.n_steps {
        let obs = Obs::new(matrix(&r.obs, t, obs_width));
        let step = StepBatch {
            obs: obs.clone(),
            successor: Successor::Rows(obs.clone()),
            reward: vector(&r.reward, t),
            terminated: vector(&r.terminated, t),
            truncated: Tensor::zeros([rows], device),
            elapsed: None,
        };
        let value = Some(scale.to_rewards(vector(&r.value, t)));
        let decision = Decision { log_prob: vector(&r.log_prob, t), value };
        if let Some(state) = &r.state {
            // Learning needs that before the first step alone.
            let state = TensorData::new(state.clone(), [rows, state.len() / rows]);
            let state = PolicyState { numbers: Some(Tensor::from_data(state, device)) };
            buffer.remember(&state, &state);
        }
        // A value that must have no effect: every recorded end is a termination.
        buffer.push(obs, matrix(&r.action, t, width), decision, &step);
    }
    let discounts = Discounts { gamma: case.gamma, gae_lambda: case.gae_lambda };
    buffer
        .finish(scale.to_rewards(vector(&r.last_value, 0)), |_, _| Tensor::full([rows], 1e6, device), discounts)
        .expect("no row was truncated")
}

/// One update of `network` with the recorded weights, and all that it changes.
fn update_as_recorded<M>(golden: &Golden, name: &str, network: M, batch: Rollout<Obs, Tensor<2>>)
where
    M: ActorCritic<Obs = Obs, Action = Tensor<2>> + Module,
{
    let (case, device) = (&golden.cases[name], brasa_test::device());
    let weights: Vec<NamedParam> = (case.before.iter())
        .map(|(name, w)| NamedParam { name: ours(name), shape: w.shape.clone(), values: w.values.clone() })
        .collect();
    let network = load_params(network, &weights).expect("the recorded names are ours");
    if let Some(expected) = &case.rollout.expected {
        close(&format!("{name}: advantage"), batch.advantage.clone(), &expected.advantage, 1e-5);
        close(&format!("{name}: target"), batch.returns.clone(), &expected.target, 1e-5);
        let evaluated = network.evaluate(batch.obs.clone(), batch.action.clone());
        close(&format!("{name}: value"), evaluated.value, &expected.evaluated.value, 1e-5);
        close(&format!("{name}: log_prob"), evaluated.log_prob, &expected.evaluated.log_prob, 1e-5);
        close(&format!("{name}: entropy"), evaluated.entropy, &expected.evaluated.entropy, 1e-5);
    }
    let s = &case.settings;
    let defaults = PpoConfig::default();
    let config = PpoConfig {
        n_steps: golden.n_steps,
        batch_size: golden.n_rows * golden.n_steps,
        n_epochs: s.n_epochs,
        learning_rate: Schedule::Constant(s.learning_rate),
        ent_coef: s.ent_coef.unwrap_or(defaults.ent_coef),
        vf_coef: s.vf_coef.unwrap_or(defaults.vf_coef),
        clip_range_vf: s.clip_range_vf,
        vf_loss: s.vf_loss,
        target_kl: s.target_kl,
        max_grad_norm: s.max_grad_norm.or(defaults.max_grad_norm),
        normalize_advantage: s.normalize_advantage.unwrap_or(true),
        normalize_value: s.earlier_moments.is_some(),
        ..defaults
    };
    let mut ppo = Ppo::new(network, config, 0).expect("the config is valid");
    if let Some(moments) = &s.earlier_moments {
        let mut saved = ppo.save();
        saved.policy.insert("value_norm".into(), (vec![2, 3], high_and_low(moments).concat()));
        ppo.load(&saved).expect("it is the state of the learner");
        let (got, expected) = (ppo.value_scale(), s.value_scale());
        assert!((got.mean - expected.mean).abs() < 1e-6 && (got.deviation - expected.deviation).abs() < 1e-6);
    }
    let metrics = ppo.update(batch, Progress::new(0, 1)).read().expect("finite");
    let metrics: BTreeMap<_, _> = metrics.into_iter().collect();
    for (key, expected) in &case.logged {
        let got = metrics.get(key.as_str()).unwrap_or_else(|| panic!("{name}: no `{key}` in {metrics:?}"));
        assert!((got - expected).abs() <= 1e-5, "{name}: `{key}` is {got} instead of {expected}");
    }
    assert!(case.logs_other_metrics || metrics.len() == case.logged.len(), "{name}: {metrics:?}");
    let params = named_params(ppo.trainable().module());
    assert_eq!(params.len(), case.after.len(), "{name}");
    for param in params {
        let after = case.after.iter().find(|(name, _)| ours(name) == param.name).expect("the names are ours").1;
        let expected: Vec<f64> = after.values.iter().map(|x| f64::from(*x)).collect();
        let n = param.values.len();
        let got = Tensor::<1>::from_data(TensorData::new(param.values, [n]), &device);
        close(&format!("{name}: {} after the update", param.name), got, &expected, 1e-5);
    }
}

fn obs_space() -> Space {
    Space::uniform_box(-1.0, 1.0, (0..5).map(|i| i.to_string()))
}

#[test]
fn one_update_equals_stable_baselines3() {
    let golden: Golden =
        serde_json::from_str(include_str!("data/sb3_update.json")).expect("the recorded file is valid");
    let device = brasa_test::device();
    let config = ActorCriticConfig { actor_hidden: vec![8, 6], critic_hidden: vec![8, 6], ..Default::default() };
    for (name, case) in &golden.cases {
        let (action, rng) = (space(name), &mut named_rng(0, "weights", 0));
        let batch = rollout(&golden, case, action.width(), &device);
        let network = MlpActorCritic::new(&config, &obs_space(), &action, &device.clone().autodiff(), rng);
        update_as_recorded(&golden, name, network.expect("the config is valid"), batch);
    }
}

#[test]
fn one_update_through_time_equals_sb3_contrib() {
    let golden: Golden =
        serde_json::from_str(include_str!("data/sb3_recurrent_update.json")).expect("the recorded file is valid");
    let device = brasa_test::device();
    for (name, case) in &golden.cases {
        let (action, rng) = (space(name), &mut named_rng(0, "weights", 0));
        let batch = rollout(&golden, case, action.width(), &device);
        let config = RecurrentActorCriticConfig {
            width: 6,
            shared: case.shared,
            actor_hidden: vec![8],
            critic_hidden: vec![8],
            std: if name == "state_dependent" { StdKind::StateDependent } else { StdKind::Independent },
            ..Default::default()
        };
        let network = RecurrentActorCritic::new(&config, &obs_space(), &action, &device.clone().autodiff(), rng);
        update_as_recorded(&golden, name, network.expect("the config is valid"), batch);
    }
}

#[test]
fn one_update_with_convolutions_equals_stable_baselines3() {
    let golden: Golden =
        serde_json::from_str(include_str!("data/sb3_cnn_update.json")).expect("the recorded file is valid");
    let convolution = |filters, kernel, stride, padding| ConvolutionConfig { filters, kernel, stride, padding };
    let config = CnnActorCriticConfig {
        layers: CnnLayers::Convolutions(vec![convolution(3, 4, 2, 0), convolution(4, 2, 1, 1)]),
        hidden: vec![6],
        ..Default::default()
    };
    let device = brasa_test::device();
    let spec = EnvSpec::new(Space::shaped(0.0, 255.0, [2, 9, 10]), Space::Discrete(3), golden.n_rows);
    for (name, case) in &golden.cases {
        let batch = rollout(&golden, case, 1, &device);
        let rng = &mut named_rng(0, "weights", 0);
        let network = CnnActorCritic::convolutional(&config, &spec, &device.clone().autodiff(), rng);
        update_as_recorded(&golden, name, network.expect("the config is valid"), batch);
    }
}

/// The rows are those of `JointObs`: the critic sees three agents, the actor sees its own.
#[test]
fn one_update_with_a_central_critic_equals_torchrl() {
    let golden: Golden =
        serde_json::from_str(include_str!("data/torchrl_mappo_update.json")).expect("the recorded file is valid");
    let device = brasa_test::device();
    let config = ActorCriticConfig { actor_hidden: vec![8, 6], critic_hidden: vec![8, 6], ..Default::default() };
    let own = Space::uniform_box(-1.0, 1.0, (0..4).map(|i| i.to_string()));
    let spec = EnvSpec { n_agents: 3, ..EnvSpec::new(own, Space::Discrete(5), golden.n_rows / 3) };
    let spec = spec.joint().expect("there are several agents");
    for (name, case) in &golden.cases {
        let batch = rollout(&golden, case, 1, &device);
        let network = |agent| {
            let rng = &mut named_rng(0, "weights", agent);
            MlpActorCritic::for_env(&config, &spec, &device.clone().autodiff(), rng).expect("the config is valid")
        };
        if name.starts_with("separate") {
            let networks = (0..3).map(network).collect();
            let separate = SeparateActorCritic::new(networks, vec![0, 1, 2]).expect("an index for each agent");
            update_as_recorded(&golden, name, separate, batch);
        } else {
            update_as_recorded(&golden, name, network(0), batch);
        }
    }
}
