//! An update in several parts is that of the whole batch.

use brasa::a2c::{A2c, A2cConfig};
use brasa::buffers::{Rollout, Transitions};
use brasa::contracts::{Learner, Obs, Progress};
use brasa::dqn::{Dqn, DqnConfig};
use brasa::env::{Space, named_rng};
use brasa::nn::{
    ActorCriticConfig, DeterministicActor, DeterministicActorConfig, MlpActorCritic, MlpCritics, MlpCriticsConfig,
    Persist, QNetwork, QNetworkConfig, Saved, SquashedActor, SquashedActorConfig, StdKind,
};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::sac::{Sac, SacConfig};
use brasa::td3::{Td3, Td3Config};
use burn::tensor::{Device, Int, Tensor, TensorData};

/// Not a multiple of the parts.
const ROWS: usize = 50;

fn device() -> Device {
    brasa::device::open_named("cpu").expect("flex is a default feature")
}

fn tensor<const D: usize>(dims: [usize; D], seed: usize) -> Tensor<D> {
    let n: usize = dims.iter().product();
    let numbers: Vec<f32> = (0..n).map(|i| ((i * 37 + seed * 101) % 211) as f32 / 105.0 - 1.0).collect();
    Tensor::from_data(TensorData::new(numbers, dims), &device())
}

fn space(n: usize) -> Space {
    Space::uniform_box(-1.0, 1.0, (0..n).map(|i| i.to_string()))
}

/// The numbers of both learners after two updates.
fn compare<L: Learner + Persist>(what: &str, make: impl Fn(u64) -> L, batch: impl Fn() -> L::Batch) {
    let learned = |parts: u64| {
        let mut learner = make(parts);
        let metrics = (0..2).map(|i| learner.update(batch(), Progress::new(i, 2)).read().expect("finite"));
        let metrics: Vec<_> =
            metrics.flat_map(|values| values.into_iter().map(|(_, x)| x).collect::<Vec<_>>()).collect();
        (numbers(&learner.save()), metrics)
    };
    let (whole, whole_metrics) = learned(1);
    let (parts, metrics) = learned(3);
    let begin = numbers(&make(1).save());
    assert!(begin.iter().zip(&whole).any(|(a, b)| (a - b).abs() > 1e-4), "{what}: it learns");
    assert_eq!(whole.len(), parts.len());
    for (i, (whole, part)) in whole.iter().zip(&parts).enumerate() {
        assert!((whole - part).abs() <= 1e-6 * whole.abs().max(1.0), "{what}, {i}: {part} instead of {whole}");
    }
    for (whole, part) in whole_metrics.iter().zip(&metrics) {
        assert!(
            (whole - part).abs() <= 1e-5 * whole.abs().max(1.0),
            "{what}: {metrics:?} instead of {whole_metrics:?}"
        );
    }
}

fn numbers(saved: &Saved) -> Vec<f32> {
    saved.policy.values().flat_map(|(_, values)| values.clone()).collect()
}

fn rollout(mask: bool) -> Rollout<Obs, Tensor<2>> {
    let flags = |i: usize| f32::from(u8::from(i.is_multiple_of(3) || i % 4 > 1));
    let mask = mask.then(|| {
        let flags: Vec<f32> = (0..ROWS * 3).map(flags).collect();
        Tensor::from_data(TensorData::new(flags, [ROWS, 3]), &device())
    });
    Rollout {
        obs: Obs { mask, ..Obs::new(tensor([ROWS, 4], 1)) },
        action: Tensor::zeros([ROWS, 1], &device()),
        log_prob: tensor([ROWS], 2) * 0.3 - 1.1,
        value: tensor([ROWS], 3),
        advantage: tensor([ROWS], 4) + 0.5,
        returns: tensor([ROWS], 5),
        remembered: None,
    }
}

fn transitions(n_actions: usize) -> Transitions<Obs, Tensor<2>> {
    Transitions {
        obs: Obs::new(tensor([ROWS, 4], 1)),
        action: tensor([ROWS, n_actions], 2),
        reward: tensor([ROWS], 3),
        next_obs: Obs::new(tensor([ROWS, 4], 4)),
        discount: tensor([ROWS], 5).abs(),
        weight: Some(tensor([ROWS], 6).abs()),
        sequences: None,
        rows: Tensor::<1, Int>::arange(0..ROWS as i64, &device()),
    }
}

#[test]
fn on_policy() {
    // A deviation that depends on the observation leaves the gradient to the tape.
    for (mask, std) in [(false, StdKind::Independent), (true, StdKind::Independent), (false, StdKind::Dependent)] {
        let on_tape = std == StdKind::Dependent;
        let network = || {
            let config = ActorCriticConfig { actor_hidden: vec![16], std, ..ActorCriticConfig::default() };
            let action = if on_tape { space(1) } else { Space::Discrete(3) };
            let (device, rng) = (device().autodiff(), &mut named_rng(1, "weights", 0));
            MlpActorCritic::new(&config, &space(4), &action, &device, rng).expect("valid")
        };
        for normalize_advantage in [false, true] {
            let ppo = |accumulation_steps| {
                let config = PpoConfig {
                    batch_size: 23,
                    n_epochs: 2,
                    ent_coef: 0.01,
                    normalize_advantage,
                    accumulation_steps,
                    ..PpoConfig::default()
                };
                Ppo::new(network(), config, 0).expect("valid")
            };
            compare("PPO", ppo, || rollout(mask));
            let a2c = |accumulation_steps| {
                let config =
                    A2cConfig { ent_coef: 0.01, normalize_advantage, accumulation_steps, ..A2cConfig::default() };
                A2c::new(network(), config, 0).expect("valid")
            };
            compare("A2C", a2c, || rollout(mask));
        }
    }
}

#[test]
fn off_policy() {
    let critics = || {
        let config = MlpCriticsConfig { hidden: vec![16], ..MlpCriticsConfig::default() };
        let (device, rng) = (device().autodiff(), &mut named_rng(2, "weights", 0));
        MlpCritics::new(&config, &space(4), &space(2), &device, rng).expect("valid")
    };
    // State-dependent noise leaves the actor to the tape.
    for std in [StdKind::Dependent, StdKind::StateDependent] {
        let sac = |accumulation_steps| {
            let config = SquashedActorConfig { hidden: vec![16], std, ..SquashedActorConfig::default() };
            let (device, rng) = (device().autodiff(), &mut named_rng(1, "weights", 0));
            let actor = SquashedActor::new(&config, &space(4), &space(2), &device, rng).expect("valid");
            let config = SacConfig { accumulation_steps, action_l2: 0.1, ..SacConfig::default() };
            Sac::new(actor, critics(), config, 0).expect("valid")
        };
        compare("SAC", sac, || transitions(2));
    }
    let td3 = |accumulation_steps| {
        let config = DeterministicActorConfig { hidden: vec![16], ..DeterministicActorConfig::default() };
        let (device, rng) = (device().autodiff(), &mut named_rng(1, "weights", 0));
        let actor = DeterministicActor::new(&config, &space(4), &space(2), &device, rng).expect("valid");
        Td3::new(actor, critics(), Td3Config { accumulation_steps, ..Td3Config::default() }, 0).expect("valid")
    };
    compare("TD3", td3, || transitions(2));
    let dqn = |accumulation_steps| {
        let config = QNetworkConfig { hidden: vec![16], ..QNetworkConfig::default() };
        let (device, rng) = (device().autodiff(), &mut named_rng(1, "weights", 0));
        let network = QNetwork::new(&config, &space(4), &Space::Discrete(3), &device, rng).expect("valid");
        Dqn::new(network, DqnConfig { accumulation_steps, ..DqnConfig::default() }).expect("valid")
    };
    compare("DQN", dqn, || Transitions { action: Tensor::ones([ROWS, 1], &device()), ..transitions(1) });
}
