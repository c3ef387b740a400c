//! The same learner on every device of this machine, in one process.
#![allow(clippy::expect_used)]

use brasa::buffers::Rollout;
use brasa::contracts::{ActorCritic, Learner, Obs, Progress};
use brasa::device::{backends, open_named};
use brasa::env::{Space, named_rng};
use brasa::nn::{ActorCriticConfig, MlpActorCritic, named_params};
use brasa::ppo::{Ppo, PpoConfig};
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;

const ROWS: usize = 64;

/// Devices whose backend is compiled in and works on this machine.
fn devices() -> Vec<(&'static str, Device)> {
    let compiled = backends().into_iter().filter(|(_, compiled)| *compiled);
    compiled.filter_map(|(backend, _)| Some((backend.feature(), open_named(backend.feature()).ok()?))).collect()
}

fn tensor<const D: usize>(shape: [usize; D], stream: u64, device: &Device) -> Tensor<D> {
    let mut rng = named_rng(0, "data", stream);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| rng.random_range(-1.0..1.0)).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Forward pass, gradients and two optimizer steps, as one list of numbers.
fn learn(device: &Device, width: usize, actions: usize) -> Vec<f32> {
    let obs_space = Space::uniform_box(-1.0, 1.0, (0..width).map(|i| i.to_string()));
    let action_space = Space::uniform_box(-1.0, 1.0, (0..actions).map(|i| i.to_string()));
    let config = ActorCriticConfig { actor_hidden: vec![16], critic_hidden: vec![16], ..ActorCriticConfig::default() };
    let rng = &mut named_rng(0, "weights", 0);
    let network = MlpActorCritic::new(&config, &obs_space, &action_space, &device.clone().autodiff(), rng)
        .expect("the config is valid");
    let obs = Obs::new(tensor([ROWS, width], 1, device));
    let action = tensor([ROWS, actions], 2, device);
    let judged = network.valid().evaluate(obs.clone(), action.clone());
    let rollout = Rollout {
        obs,
        action,
        log_prob: judged.log_prob + tensor([ROWS], 3, device) * 0.1,
        value: judged.value,
        advantage: tensor([ROWS], 4, device),
        returns: tensor([ROWS], 5, device),
        remembered: None,
    };
    let config = PpoConfig { batch_size: 32, n_epochs: 1, ..PpoConfig::default() };
    let mut ppo = Ppo::new(network, config, 0).expect("the config is valid");
    let metrics = ppo.update(rollout, Progress::new(0, 1)).read().expect("finite");
    let weights = named_params(ppo.trainable().module()).into_iter().flat_map(|param| param.values);
    metrics.into_iter().map(|(_, value)| value as f32).chain(weights).collect()
}

#[test]
fn one_learner_gives_the_same_numbers_everywhere() {
    let devices = devices();
    let (first_name, first) = &devices[0];
    if devices.len() < 2 {
        eprintln!("SKIPPED: only `{first_name}` works here; two devices are needed to compare");
    }
    // Widths for which fused kernels had wrong results.
    for (width, actions) in [(1, 1), (3, 7), (17, 1), (126, 17), (7, 126)] {
        let expected = learn(first, width, actions);
        assert!(expected.iter().all(|value| value.is_finite()));
        // What a single device can be held to: the same numbers again, and that learning changed something.
        assert_eq!(learn(first, width, actions), expected, "{first_name} twice");
        let rng = &mut named_rng(0, "weights", 0);
        let space = |n: usize| Space::uniform_box(-1.0, 1.0, (0..n).map(|i| i.to_string()));
        let config =
            ActorCriticConfig { actor_hidden: vec![16], critic_hidden: vec![16], ..ActorCriticConfig::default() };
        let fresh = MlpActorCritic::new(&config, &space(width), &space(actions), &first.clone().autodiff(), rng);
        let fresh = named_params(&fresh.expect("the config is valid"));
        let fresh: Vec<f32> = fresh.into_iter().flat_map(|param| param.values).collect();
        let moved = fresh.iter().rev().zip(expected.iter().rev()).filter(|(a, b)| a != b).count();
        assert!(moved * 10 > fresh.len() * 9, "{moved} of {} weights moved", fresh.len());
        for (name, device) in &devices[1..] {
            let got = learn(device, width, actions);
            for (i, (got, expected)) in got.iter().zip(&expected).enumerate() {
                let tolerance = 2e-4 * expected.abs().max(1.0);
                assert!((got - expected).abs() <= tolerance, "{name}, {width} x {actions}, {i}: {got}, not {expected}");
            }
        }
    }
}
