//! Updates, losses and log-probabilities equal those of Stable-Baselines3, modified as described in
//! `scripts/record_sac.py`.
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;

use brasa_buffers::Transitions;
use brasa_core::env::{Space, named_rng};
use brasa_core::{
    Critics, Explore, NoiseDistribution, NoiseSpec, Obs, OffPolicyLearner, Policy, Progress, Reparameterized, Schedule,
};
use brasa_nn::distribution::gaussian;
use brasa_nn::{
    Activation, MlpCritics, MlpCriticsConfig, Persist, Saved, SquashedActor, SquashedActorConfig, StdKind, draw_noise,
};
use brasa_sac::{EntCoef, Sac, SacConfig, td_target};
use brasa_test::golden::{Weights, close, matrix, vector};
use burn::tensor::{Device, Int, Tensor};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    rows: usize,
    width: usize,
    actions: usize,
    cases: BTreeMap<String, Case>,
    log_prob: Densities,
}

#[derive(Deserialize)]
struct Densities {
    mean: Vec<f32>,
    log_std: Vec<f32>,
    u: Vec<f32>,
    log_prob: Vec<f64>,
}

#[derive(Deserialize)]
struct Case {
    settings: Settings,
    calls: Vec<usize>,
    before: BTreeMap<String, Weights>,
    after: BTreeMap<String, Weights>,
    batch: Batch,
    steps: Vec<Step>,
    logged: Vec<BTreeMap<String, f64>>,
}

#[derive(Deserialize)]
struct Settings {
    learning_rate: f64,
    gamma: f64,
    tau: f64,
    ent_coef: f64,
    learn_ent_coef: bool,
    target_entropy: f64,
    target_update_interval: u64,
    layer_norm: bool,
    action_l2: f64,
}

#[derive(Deserialize)]
struct Batch {
    obs: Vec<f32>,
    action: Vec<f32>,
    reward: Vec<f32>,
    next_obs: Vec<f32>,
    terminated: Vec<f32>,
}

#[derive(Deserialize)]
struct Step {
    noise_actor: Vec<f32>,
    noise_target: Vec<f32>,
    policy_action: Vec<f64>,
    log_prob: Vec<f64>,
    next_log_prob: Vec<f64>,
    y: Vec<f64>,
    q: Vec<Vec<f64>>,
}

/// The recorded arrays with the names of a saved learner; the critics are stacked.
fn ours(recorded: &BTreeMap<String, Weights>) -> BTreeMap<String, (Vec<usize>, Vec<f32>)> {
    let mut named = BTreeMap::new();
    for (name, weights) in recorded {
        let name = match name.as_str() {
            "log_ent_coef" => "temperature.value".to_owned(),
            name if name.starts_with("actor.log_std") => name.replace("actor.log_std", "network.gaussian_std.head"),
            name if name.starts_with("actor.hidden") => name.replace("actor.hidden", "network.body.hidden"),
            name if name.starts_with("actor.") => name.replace("actor.", "network."),
            name => {
                let parts = name.split('.').collect::<Vec<_>>();
                let (net, member) = (if parts[0] == "critic" { "critics" } else { "targets" }, parts[1]);
                let name = match (parts[2], parts[3]) {
                    ("norm", layer) => {
                        let kind = if parts[4] == "weight" { "scale" } else { "shift" };
                        format!("{net}.norms.{layer}.{kind}")
                    }
                    ("2", kind) => format!("{net}.net.output.{kind}"),
                    (layer, kind) => format!("{net}.net.hidden.{layer}.{kind}"),
                };
                // Members are in order, so that appending stacks them.
                let entry: &mut (Vec<usize>, Vec<f32>) = named.entry(name).or_insert_with(|| {
                    assert_eq!(member, "0");
                    ([&[0], &weights.shape[..]].concat(), Vec::new())
                });
                entry.0[0] += 1;
                entry.1.extend(&weights.values);
                continue;
            }
        };
        named.insert(name, (weights.shape.clone(), weights.values.clone()));
    }
    named
}

fn learner(golden: &Golden, case: &Case, device: &Device) -> Sac<SquashedActor, MlpCritics> {
    let s = &case.settings;
    let obs_space = Space::uniform_box(-1.0, 1.0, (0..golden.width).map(|i| i.to_string()));
    let action_space = Space::uniform_box(-1.0, 1.0, (0..golden.actions).map(|i| i.to_string()));
    let (device, rng) = (device.clone().autodiff(), &mut named_rng(0, "weights", 0));
    let hidden = vec![8, 6];
    let actor = SquashedActorConfig { hidden: hidden.clone(), ..Default::default() };
    let critics = MlpCriticsConfig { n_critics: 2, hidden, activation: Activation::Relu, layer_norm: s.layer_norm };
    let config = SacConfig {
        gamma: s.gamma,
        tau: s.tau,
        target_update_interval: s.target_update_interval,
        learning_rate: Schedule::Constant(s.learning_rate),
        ent_coef: if s.learn_ent_coef { EntCoef::Auto { auto: s.ent_coef } } else { EntCoef::Fixed(s.ent_coef) },
        target_entropy: Some(s.target_entropy),
        action_l2: s.action_l2,
        ..SacConfig::default()
    };
    let actor = SquashedActor::new(&actor, &obs_space, &action_space, &device, rng).expect("the config is valid");
    let critics = MlpCritics::new(&critics, &obs_space, &action_space, &device, rng).expect("the config is valid");
    let mut sac = Sac::new(actor, critics, config, 0).expect("the config is valid");
    let mut saved = sac.save();
    for (name, array) in ours(&case.before) {
        let arrays = if name.starts_with("network.") { &mut saved.policy } else { &mut saved.trainer };
        let old = arrays.insert(name.clone(), array).unwrap_or_else(|| panic!("`{name}` is none of ours"));
        assert_eq!(old.0, arrays[&name].0, "{name}");
    }
    sac.load(&saved).expect("names and shapes are ours");
    sac
}

fn batch(golden: &Golden, case: &Case, device: &Device) -> Transitions<Obs, Tensor<2>> {
    let b = &case.batch;
    let discount: Vec<f32> = b.terminated.iter().map(|end| (case.settings.gamma as f32) * (1.0 - end)).collect();
    Transitions {
        obs: Obs::new(matrix(&b.obs, golden.rows, device)),
        action: matrix(&b.action, golden.rows, device),
        reward: vector(&b.reward, device),
        next_obs: Obs::new(matrix(&b.next_obs, golden.rows, device)),
        discount: vector(&discount, device),
        weight: None,
        sequences: None,
        rows: Tensor::<1, Int>::arange(0..golden.rows as i64, device),
    }
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("data/sb3_update.json")).expect("the recorded file is valid")
}

#[test]
fn updates_equal_stable_baselines3() {
    let (golden, device) = (golden(), brasa_test::device());
    for (name, case) in &golden.cases {
        let mut sac = learner(&golden, case, &device);
        let mut step = case.steps.iter();
        for (call, logged) in case.calls.iter().zip(&case.logged) {
            let mut sums = BTreeMap::<&str, f64>::new();
            for _ in 0..*call {
                let recorded = step.next().expect("every gradient step was recorded");
                let noise = |values: &[f32]| matrix(values, golden.rows, &device);
                let (noise_actor, noise_target) = (noise(&recorded.noise_actor), noise(&recorded.noise_target));
                let batch = batch(&golden, case, &device);

                let (action, log_prob) = sac.actor().valid().rsample(batch.obs.clone(), noise_actor.clone());
                close(&format!("{name}: action"), values(action), recorded.policy_action.clone(), 1e-5);
                close(&format!("{name}: log_prob"), values(log_prob), recorded.log_prob.clone(), 1e-5);
                let next = sac.actor().valid().rsample(batch.next_obs.clone(), noise_target.clone());
                close(&format!("{name}: next_log_prob"), values(next.1.clone()), recorded.next_log_prob.clone(), 1e-5);
                let next_q = sac.targets().values(batch.next_obs.clone(), next.0);
                let y = td_target(batch.reward.clone(), batch.discount.clone(), next_q, next.1, sac.ent_coef());
                close(&format!("{name}: y"), values(y), recorded.y.clone(), 1e-5);
                let q = sac.critics().valid().values(batch.obs.clone(), batch.action.clone());
                close(&format!("{name}: q"), values(q), recorded.q.concat(), 1e-5);
                let td: Vec<f64> = (0..golden.rows)
                    .map(|i| recorded.q.iter().map(|q| (q[i] - recorded.y[i]).abs()).sum::<f64>() / 2.0)
                    .collect();

                let progress = Progress::new(0, 1);
                let metrics = sac.update_with(batch, [noise_actor, noise_target], progress);
                close(&format!("{name}: td_error"), values(sac.td_error()), td, 1e-5);
                for (key, value) in metrics.read().expect("every figure is finite") {
                    *sums.entry(key).or_default() += value / *call as f64;
                }
            }
            for (key, expected) in logged.iter().filter(|(key, _)| *key != "train/n_updates") {
                close(&format!("{name}: {key}"), [sums[key.as_str()]], [*expected], 1e-5);
            }
            assert_eq!(sums.len(), logged.len(), "{name}: {sums:?}");
        }
        let Saved { policy, trainer, .. } = sac.save();
        for (array, (_, expected)) in ours(&case.after) {
            let (_, got) = policy.get(&array).or(trainer.get(&array)).expect("names are ours");
            let wide = |values: &[f32]| values.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
            close(&format!("{name}: {array} after"), wide(got), wide(&expected), 1e-5);
        }
    }
}

#[test]
fn densities_behind_tanh_are_exact_where_tanh_is_1() {
    let (table, device) = (golden().log_prob, brasa_test::device());
    let n = table.u.len();
    let (log_prob, _) = gaussian::evaluate(
        matrix(&table.mean, n, &device),
        matrix(&table.log_std, n, &device),
        matrix(&table.u, n, &device),
        true,
    );
    close("log_prob", values(log_prob), table.log_prob, 1e-5);
}

/// An actor with state-dependent exploration is left to the tape, the other one is not.
#[test]
fn a_weight_of_squared_actions_keeps_them_small_with_and_without_the_tape() {
    let golden = golden();
    let (case, device) = (&golden.cases["action_l2"], brasa_test::device());
    let space = |n: usize| Space::uniform_box(-1.0, 1.0, (0..n).map(|i| i.to_string()));
    let (obs_space, action_space) = (space(golden.width), space(golden.actions));
    for std in [StdKind::Dependent, StdKind::StateDependent] {
        let mean_square = |action_l2: f64| {
            let (on, rng) = (device.clone().autodiff(), &mut named_rng(0, "weights", 0));
            let actor = SquashedActorConfig { hidden: vec![8], std, ..Default::default() };
            let critics = MlpCriticsConfig { hidden: vec![8], ..Default::default() };
            let actor = SquashedActor::new(&actor, &obs_space, &action_space, &on, rng).expect("the config is valid");
            let critics = MlpCritics::new(&critics, &obs_space, &action_space, &on, rng).expect("the config is valid");
            let learning_rate = Schedule::Constant(1e-2);
            let config = SacConfig { action_l2, learning_rate, ent_coef: EntCoef::Fixed(0.01), ..SacConfig::default() };
            let mut sac = Sac::new(actor, critics, config, 0).expect("the config is valid");
            for update in 0..300 {
                let rng = &mut named_rng(1, "noise", update);
                let spec = NoiseSpec { width: 2, distribution: NoiseDistribution::Normal, resample_every: 1 };
                let noise = [0, 1].map(|_| draw_noise(spec, golden.rows, rng, &device));
                sac.update_with(batch(&golden, case, &device), noise, Progress::new(0, 1));
            }
            let (action, ()) = sac.actor().valid().act(batch(&golden, case, &device).obs, Explore::Greedy);
            action.square().mean().into_scalar::<f32>()
        };
        let (free, held) = (mean_square(0.0), mean_square(10.0));
        assert!(held < 0.01 && free > 0.1, "{std:?}: {held} with the weight, {free} without");
    }
}
