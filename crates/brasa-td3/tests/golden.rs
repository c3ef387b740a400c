//! Updates, their targets, their losses and all weights equal those of Stable-Baselines3 (`scripts/record_td3.py`).
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;

use brasa_buffers::Transitions;
use brasa_core::env::{Space, named_rng};
use brasa_core::{Critics, Explore, Obs, OffPolicyLearner, Policy, Progress, Schedule};
use brasa_nn::{
    Activation, DeterministicActor, DeterministicActorConfig, MlpCritics, MlpCriticsConfig, Persist, Saved,
};
use brasa_td3::{Td3, Td3Config, target_action, td_target};
use brasa_test::golden::{Weights, close, matrix, vector};
use burn::tensor::{Device, Int, Tensor};
use serde::Deserialize;

const TOLERANCE: f64 = 1e-5;

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
    before: BTreeMap<String, Weights>,
    updates: Vec<Update>,
}

#[derive(Deserialize)]
struct Settings {
    learning_rate: f64,
    gamma: f64,
    tau: f64,
    policy_delay: u64,
    target_policy_noise: f64,
    target_noise_clip: f64,
    n_critics: usize,
}

#[derive(Deserialize)]
struct Update {
    batch: Batch,
    noise: Vec<f32>,
    next_action: Vec<f64>,
    y: Vec<f64>,
    q: Vec<Vec<f64>>,
    logged: BTreeMap<String, f64>,
    after: BTreeMap<String, Weights>,
}

#[derive(Deserialize)]
struct Batch {
    obs: Vec<f32>,
    action: Vec<f32>,
    reward: Vec<f32>,
    next_obs: Vec<f32>,
    terminated: Vec<f32>,
}

/// Largest differences, by compared quantity.
#[derive(Default)]
struct Gaps(BTreeMap<String, f64>);

impl Gaps {
    fn check(&mut self, case: &str, what: &str, got: Vec<f64>, expected: Vec<f64>) {
        let gap = got.iter().zip(&expected).map(|(got, expected)| (got - expected).abs()).fold(0.0, f64::max);
        let largest = self.0.entry(what.to_owned()).or_default();
        *largest = largest.max(gap);
        close(&format!("{case}: {what}"), got, expected, TOLERANCE);
    }
}

/// The recorded arrays with the names of a saved learner; the critics are stacked.
fn ours(recorded: &BTreeMap<String, Weights>) -> BTreeMap<String, (Vec<usize>, Vec<f32>)> {
    let layer = |index: &str| if index == "2" { "output".to_owned() } else { format!("hidden.{index}") };
    let mut named = BTreeMap::<_, (Vec<usize>, Vec<f32>)>::new();
    for (name, weights) in recorded {
        match name.split('.').collect::<Vec<_>>()[..] {
            [actor, index, kind] => {
                let net = if actor == "actor" { "network" } else { "target_actor" };
                let name = format!("{net}.net.{}.{kind}", layer(index));
                named.insert(name, (weights.shape.clone(), weights.values.clone()));
            }
            [critic, member, index, kind] => {
                let net = if critic == "critic" { "critics" } else { "target_critics" };
                // Members are in order, so that appending stacks them.
                let entry = named.entry(format!("{net}.net.{}.{kind}", layer(index))).or_insert_with(|| {
                    assert_eq!(member, "0");
                    ([&[0], &weights.shape[..]].concat(), Vec::new())
                });
                entry.0[0] += 1;
                entry.1.extend(&weights.values);
            }
            _ => panic!("{name}"),
        }
    }
    named
}

fn learner(golden: &Golden, case: &Case, device: &Device) -> Td3<DeterministicActor, MlpCritics> {
    let s = &case.settings;
    let obs_space = Space::uniform_box(-1.0, 1.0, (0..golden.width).map(|i| i.to_string()));
    let action_space = Space::uniform_box(-1.0, 1.0, (0..golden.actions).map(|i| i.to_string()));
    let (device, rng) = (device.clone().autodiff(), &mut named_rng(0, "weights", 0));
    let hidden = golden.hidden.clone();
    let actor = DeterministicActorConfig { hidden: hidden.clone(), ..Default::default() };
    let critics = MlpCriticsConfig { n_critics: s.n_critics, hidden, activation: Activation::Relu, layer_norm: false };
    let config = Td3Config {
        learning_rate: Schedule::Constant(s.learning_rate),
        gamma: s.gamma,
        tau: s.tau,
        policy_delay: s.policy_delay,
        target_policy_noise: s.target_policy_noise,
        target_noise_clip: s.target_noise_clip,
        ..Td3Config::default()
    };
    let actor = DeterministicActor::new(&actor, &obs_space, &action_space, &device, rng).expect("the config is valid");
    let critics = MlpCritics::new(&critics, &obs_space, &action_space, &device, rng).expect("the config is valid");
    let mut td3 = Td3::new(actor, critics, config, 0).expect("the config is valid");
    let mut saved = td3.save();
    for (name, array) in ours(&case.before) {
        let arrays = if name.starts_with("network.") { &mut saved.policy } else { &mut saved.trainer };
        let old = arrays.insert(name.clone(), array).unwrap_or_else(|| panic!("`{name}` is none of ours"));
        assert_eq!(old.0, arrays[&name].0, "{name}");
    }
    td3.load(&saved).expect("names and shapes are ours");
    td3
}

fn batch(b: &Batch, gamma: f64, device: &Device) -> Transitions<Obs, Tensor<2>> {
    let rows = b.reward.len();
    let discount: Vec<f32> = b.terminated.iter().map(|end| (gamma as f32) * (1.0 - end)).collect();
    Transitions {
        obs: Obs::new(matrix(&b.obs, rows, device)),
        action: matrix(&b.action, rows, device),
        reward: vector(&b.reward, device),
        next_obs: Obs::new(matrix(&b.next_obs, rows, device)),
        discount: vector(&discount, device),
        weight: None,
        sequences: None,
        rows: Tensor::<1, Int>::arange(0..rows as i64, device),
    }
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

#[test]
fn updates_equal_stable_baselines3() {
    let golden: Golden =
        serde_json::from_str(include_str!("data/sb3_update.json")).expect("the recorded file is valid");
    let (device, mut gaps) = (brasa_test::device(), Gaps::default());
    for (name, case) in &golden.cases {
        let (mut td3, s) = (learner(&golden, case, &device), &case.settings);
        for update in &case.updates {
            let noise = matrix(&update.noise, golden.rows, &device);
            let batch = batch(&update.batch, s.gamma, &device);

            let next_action = td3.target_actor().act(batch.next_obs.clone(), Explore::Greedy).0;
            let next_action = target_action(next_action, noise.clone(), s.target_policy_noise, s.target_noise_clip);
            gaps.check(name, "next_action", values(next_action.clone()), update.next_action.clone());
            let next_q = td3.target_critics().values(batch.next_obs.clone(), next_action);
            let y = td_target(batch.reward.clone(), batch.discount.clone(), next_q);
            gaps.check(name, "y", values(y), update.y.clone());
            let q = td3.critics().valid().values(batch.obs.clone(), batch.action.clone());
            gaps.check(name, "q", values(q), update.q.concat());

            let metrics = td3.update_with(batch, noise, Progress::new(0, 1));
            let mean = |i: usize| update.q.iter().map(|q| (q[i] - update.y[i]).abs()).sum::<f64>();
            let errors = (0..golden.rows).map(|i| mean(i) / s.n_critics as f64).collect();
            gaps.check(name, "td_error", values(td3.td_error()), errors);
            let metrics: BTreeMap<_, _> = metrics.read().expect("every figure is finite").into_iter().collect();
            assert!(metrics.keys().eq(update.logged.keys()), "{name}: {metrics:?}");
            for (key, expected) in &update.logged {
                gaps.check(name, key, vec![metrics[key.as_str()]], vec![*expected]);
            }

            let Saved { policy, trainer, .. } = td3.save();
            for (array, (_, expected)) in ours(&update.after) {
                let (_, got) = policy.get(&array).or(trainer.get(&array)).expect("names are ours");
                let wide = |values: &[f32]| values.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
                let part = array.split('.').next().expect("a name has a first part");
                gaps.check(name, &format!("weights of {part}"), wide(got), wide(&expected));
            }
        }
    }
    gaps.0.iter().for_each(|(what, gap)| println!("{what}: at most {gap:.1e} apart"));
}
