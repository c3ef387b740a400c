//! An update in several parts is that of the whole batch.

use std::cell::RefCell;

use brasa::a2c::{A2c, A2cConfig};
use brasa::buffers::{Rollout, Transitions};
use brasa::contracts::analytic::ByResults;
use brasa::contracts::{Learner, Obs, Progress};
use brasa::dqn::{Dqn, DqnConfig};
use brasa::env::{Space, named_rng};
use brasa::kernels::LossData;
use brasa::nn::{
    ActorCriticConfig, AdamConfig, Data, DeterministicActor, DeterministicActorConfig, EvaluatedActions, Forward,
    MlpActorCritic, MlpCritics, MlpCriticsConfig, Part, Persist, QNetwork, QNetworkConfig, Saved, SquashedActor,
    SquashedActorConfig, StdKind, Step, Trainable, named_params, weights,
};
use brasa::ppo::{Ppo, PpoConfig, Surrogate, ValueLoss};
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

/// The parts of a batch, whose gradients are computed with or without the tape.
struct Watched<'a> {
    inner: EvaluatedActions<'a, Obs, Tensor<2>>,
    on_tape: bool,
    parts: RefCell<Vec<usize>>,
}

impl Forward<MlpActorCritic, 3> for Watched<'_> {
    fn n_rows(&self) -> usize {
        Forward::<MlpActorCritic, 3>::n_rows(&self.inner)
    }

    fn recorded(&self, network: &MlpActorCritic, part: &Part) -> [Tensor<1>; 3] {
        self.parts.borrow_mut().push(part.n_rows());
        self.inner.recorded(network, part)
    }

    fn gradient(&self, network: &MlpActorCritic, part: &Part, by: &mut ByResults<'_, 3>) -> Option<Vec<f32>> {
        if self.on_tape {
            return None;
        }
        self.parts.borrow_mut().push(part.n_rows());
        self.inner.gradient(network, part, by)
    }
}

#[test]
fn a_large_batch_stays_in_the_cache_without_the_tape() {
    const MANY: usize = 5_000;
    let obs = Obs::new(tensor([MANY, 4], 1));
    let actions: Vec<f32> = (0..MANY).map(|row| (row % 3) as f32).collect();
    let action = Tensor::<2>::from_data(TensorData::new(actions, [MANY, 1]), &device());
    let columns = [2, 3, 4, 5].map(|seed| tensor::<1>([MANY], seed));
    let step = |on_tape: bool| {
        let (config, rng) = (ActorCriticConfig::default(), &mut named_rng(1, "weights", 0));
        let network =
            MlpActorCritic::new(&config, &space(4), &Space::Discrete(3), &device().autodiff(), rng).expect("valid");
        let mut trainable = Trainable::new(network, AdamConfig::default()).expect("valid");
        let inner = EvaluatedActions { obs: &obs, action: &action, sequences: None };
        let forward = Watched { inner, on_tape, parts: RefCell::default() };
        let [log_prob, value, advantage, returns] = columns.each_ref().map(LossData::Rows);
        let clip = LossData::Constant(0.2);
        let data = Data::new([log_prob, value, advantage, returns, weights(None), clip]).standardize(2, 4);
        let vf_loss = ValueLoss::Clipped;
        let loss = Surrogate { dual_clip: None, clip_range_vf: None, vf_loss, vf_coef: 0.5, ent_coef: 0.01 };
        let reports = trainable.learn(&forward, data, &loss, Step::new(1e-2, Some(0.5)), |_| true).reports;
        let after: Vec<f32> = named_params(trainable.module()).into_iter().flat_map(|param| param.values).collect();
        (after, std::array::from_fn::<f64, 6, _>(|i| reports.read(i)), forward.parts.into_inner())
    };
    let ((whole, whole_reports, one), (parts, reports, several)) = (step(true), step(false));
    assert_eq!(one, [MANY]);
    // The first row tells that the network needs no tape.
    assert_eq!(several, [1, 1667, 1667, 1666]);
    for (whole, part) in whole.iter().zip(&parts) {
        assert!((whole - part).abs() <= 1e-5 * whole.abs().max(1.0), "{part} instead of {whole}");
    }
    for (whole, part) in whole_reports.iter().zip(&reports) {
        assert!((whole - part).abs() <= 1e-5 * whole.abs().max(1.0), "{reports:?} instead of {whole_reports:?}");
    }
}
