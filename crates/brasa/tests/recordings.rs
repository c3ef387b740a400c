//! Recorded updates equal others, and are few launches.
//!
//! On the CPU nothing is recorded. On a GPU or a software driver:
//! `BRASA_TEST_DEVICE=wgpu cargo test -p brasa --no-default-features --features flex,algorithms,wgpu --test recordings`.
//!
//! One test, because the counter of launches sees every thread of the process.
#![allow(clippy::expect_used)]
#![allow(unsafe_code, reason = "learners that record")]

use std::collections::BTreeMap;

use brasa::a2c::{A2c, A2cConfig};
use brasa::buffers::{Rollout, Transitions};
use brasa::contracts::{Learner, Obs, OffPolicyLearner, Progress, Schedule, Shared, TeamObs};
use brasa::device::{Precision, autocast};
use brasa::dqn::{Dqn, DqnConfig};
use brasa::env::{Space, named_rng};
use brasa::gat::{Graph, GraphActorCritic, GraphActorCriticConfig, GraphSpec, Graphs};
use brasa::nn::{
    ActorCriticConfig, DeterministicActor, DeterministicActorConfig, MlpActorCritic, MlpCritics, MlpCriticsConfig,
    Persist, QNetwork, QNetworkConfig, RmsPropConfig, Saved, SquashedActor, SquashedActorConfig, TeamQNetwork,
    TeamQNetworkConfig,
};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::sac::{EntCoef, Sac, SacConfig};
use brasa::td3::{Td3, Td3Config};
use brasa_kernels::n_launches;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::RngExt;

/// Updates of a run.
const UPDATES: usize = 12;

fn tensor<const D: usize>(shape: [usize; D], stream: u64, device: &Device) -> Tensor<D> {
    let mut rng = named_rng(0, "data", stream);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| rng.random_range(-1.0..1.0)).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Whole numbers below `end`.
fn whole(n: usize, end: usize, stream: u64, device: &Device) -> Tensor<2> {
    ((tensor([n, 1], stream, device) + 1.0) * (end as f64 / 2.0)).floor().clamp(0.0, end as f64 - 1.0)
}

fn space(width: usize) -> Space {
    Space::uniform_box(-1.0, 1.0, (0..width).map(|i| i.to_string()))
}

/// Rows of update `i`: one is smaller than the others.
fn rows(i: usize) -> usize {
    if i == 5 { 20 } else { 32 }
}

fn transitions(i: usize, n_actions: Option<usize>, device: &Device) -> Transitions<Obs, Tensor<2>> {
    let (n, stream) = (rows(i), 10 * i as u64);
    Transitions {
        obs: Obs::new(tensor([n, 3], stream, device)),
        action: match n_actions {
            Some(width) => tensor([n, width], stream + 1, device),
            None => whole(n, 3, stream + 1, device),
        },
        reward: tensor([n], stream + 2, device),
        next_obs: Obs::new(tensor([n, 3], stream + 3, device)),
        discount: Tensor::full([n], 0.99, device),
        weight: Some(tensor([n], stream + 4, device).abs()),
        sequences: None,
        rows: Tensor::<1, Int>::arange(0..n as i64, device),
    }
}

fn rollout(obs: Obs, action: Tensor<2>, i: usize, device: &Device) -> Rollout<Obs, Tensor<2>> {
    let (n, stream) = (action.dims()[0], 10 * i as u64);
    Rollout {
        obs,
        action,
        log_prob: tensor([n], stream + 3, device) - 1.0,
        value: tensor([n], stream + 4, device),
        advantage: tensor([n], stream + 5, device),
        returns: tensor([n], stream + 6, device),
        remembered: None,
    }
}

/// What a run leaves: the state, metrics of every update, and launches of the last one.
struct Left {
    saved: Saved,
    metrics: Vec<BTreeMap<&'static str, f64>>,
    launches: usize,
    is_recorded: bool,
}

/// [`UPDATES`] updates, with a learner that is restored from its state on the way.
fn run<L: Learner + Persist>(
    mut learner: L,
    is_on: bool,
    batch: impl Fn(usize) -> L::Batch,
    is_recorded: fn(&L) -> bool,
    after: impl Fn(&mut L),
) -> Left {
    // SAFETY: all tensors of these networks are parts of them.
    unsafe { learner.record(is_on) };
    let (mut metrics, mut launches) = (Vec::new(), 0);
    for i in 0..UPDATES {
        if i == 7 {
            let saved = learner.save();
            learner.load(&saved).expect("its own state");
        }
        let batch = batch(i);
        let mut latest = None;
        launches = n_launches(|| latest = Some(learner.update(batch, Progress::new(i as u64, UPDATES as u64))));
        // The policy is that of the last update.
        drop(learner.policy(Progress::new(0, 1)));
        after(&mut learner);
        metrics.push(latest.expect("an update"));
    }
    // Read at the end: a later update must not have changed those of an earlier one.
    let metrics = metrics.into_iter().map(|metrics| metrics.read().expect("finite").into_iter().collect()).collect();
    Left { saved: learner.save(), metrics, launches, is_recorded: is_recorded(&learner) }
}

fn records(device: &Device) -> bool {
    !brasa::device::runs_on_host(device)
}

/// Runs without and with recordings, and the kernel launches of their last updates, which were recorded on `wgpu` with a software driver.
fn compare(name: &str, device: &Device, most: [usize; 2], run: impl Fn(bool) -> Left) {
    let (plain, recorded) = (run(false), run(true));
    assert!(!plain.is_recorded, "{name}");
    assert_eq!(recorded.is_recorded, records(device), "{name}");
    let close = |a: f64, b: f64| (a - b).abs() <= 2e-5 * (1.0 + a.abs());
    let state = |left: &Left| [left.saved.policy.clone(), left.saved.trainer.clone()].map(Vec::from_iter).concat();
    for ((key, (_, plain)), (_, (_, recorded))) in state(&plain).into_iter().zip(state(&recorded)) {
        assert_eq!(plain.len(), recorded.len(), "{name} {key}");
        for (a, b) in plain.iter().zip(&recorded) {
            assert!(close(f64::from(*a), f64::from(*b)), "{name}: {key} is {b} instead of {a}");
        }
    }
    assert_eq!(plain.saved.numbers, recorded.saved.numbers, "{name}");
    for (i, (plain, recorded)) in plain.metrics.iter().zip(&recorded.metrics).enumerate() {
        assert_eq!(plain.len(), recorded.len(), "{name}");
        for (key, a) in plain {
            assert!(close(*a, recorded[key]), "{name}: {key} of update {i} is {} instead of {a}", recorded[key]);
        }
    }
    let [plain, recorded] = [plain.launches, recorded.launches];
    println!("{name}: {plain} launches, {recorded} with a recording");
    if records(device) {
        // A tenth more, as sums over rows differ between backends.
        let most = most.map(|most| most + most.div_ceil(10));
        assert!(
            recorded < plain && plain <= most[0] && recorded <= most[1],
            "{name}: {plain} and {recorded}, {most:?}"
        );
    }
}

fn with_error<L: OffPolicyLearner>(learner: &mut L) {
    let error: Vec<f32> = learner.td_error().into_data().iter::<f32>().collect();
    assert!(error.iter().all(|error| error.is_finite()));
}

#[test]
fn recorded_updates_equal_others() {
    let device = &brasa_test::device();
    let tracked = &device.clone().autodiff();
    let weights = |i| named_rng(0, "weights", i);
    let discrete = Space::Discrete(3);

    // The rate and the range of the ratio fall; the last minibatch of every pass is smaller.
    let ppo = |on| {
        let config = ActorCriticConfig { actor_hidden: vec![16, 16], ..ActorCriticConfig::default() };
        let network = MlpActorCritic::new(&config, &space(3), &space(2), tracked, &mut weights(0)).expect("valid");
        let config = PpoConfig {
            batch_size: 12,
            n_epochs: 2,
            target_kl: None,
            learning_rate: Schedule::linear(1e-3, 0.0),
            clip_range: Schedule::linear(0.3, 0.1),
            ..PpoConfig::default()
        };
        let learner = Ppo::new(network, config, 0).expect("valid");
        let batch = |i| {
            let n = rows(i);
            let action = tensor([n, 2], 10 * i as u64 + 1, device);
            rollout(Obs::new(tensor([n, 3], 10 * i as u64, device)), action, i, device)
        };
        run(learner, on, batch, Ppo::is_recorded, |_| ())
    };
    compare("PPO", device, [134, 96], ppo);
    let formats = [Precision::Bf16, Precision::F16];
    for format in formats.into_iter().filter(|format| format.check(device).is_ok() && records(device)) {
        // Those of `F16`, whose loss is scaled; `Bf16` has fewer.
        compare(&format!("PPO, {format:?}"), device, [902, 98], |on| autocast(format, || ppo(on)));
    }

    let spec = GraphSpec { nodes: 4, node_features: 3, privileged_features: 0, agent_features: 2 };
    let graph_ppo = |on| {
        let graph =
            |edges: &[[usize; 2]]| Graph::new(4, edges.iter().flat_map(|[a, b]| [[*a, *b], [*b, *a]]).collect());
        let graphs = vec![graph(&[[0, 1], [1, 2], [2, 3]]), graph(&[[0, 1], [0, 2], [0, 3]])];
        let graphs = graphs.into_iter().map(|graph| graph.expect("valid")).collect();
        let graphs = Graphs::new(graphs, tracked).expect("valid");
        let config = GraphActorCriticConfig::lean();
        let network = GraphActorCritic::new(&config, spec, graphs, tracked, &mut weights(0)).expect("valid");
        let config = PpoConfig { batch_size: 64, n_epochs: 1, target_kl: None, ..PpoConfig::default() };
        let learner = Ppo::new(network, config, 0).expect("valid");
        let batch = |i: usize| {
            let (n, stream) = (rows(i), 10 * i as u64);
            let places = [whole(n, 2, stream, device), whole(n, 4, stream + 7, device)];
            let values = tensor([n, spec.width() - 2], stream + 8, device);
            let values = Tensor::cat(places.into_iter().chain([values]).collect(), 1);
            let obs = Obs { values, mask: Some(Tensor::ones([n, spec.options()], device)) };
            rollout(obs, whole(n, spec.options(), stream + 1, device), i, device)
        };
        run(learner, on, batch, Ppo::is_recorded, |_| ())
    };
    compare("PPO of graphs", device, [146, 13], graph_ppo);

    compare("A2C", device, [14, 10], |on| {
        let config = ActorCriticConfig { actor_hidden: vec![16], ..ActorCriticConfig::default() };
        let network = MlpActorCritic::new(&config, &space(3), &discrete, tracked, &mut weights(0)).expect("valid");
        let config = A2cConfig {
            learning_rate: Schedule::linear(1e-3, 0.0),
            optimizer: RmsPropConfig { momentum: 0.5, ..RmsPropConfig::default() }.into(),
            ..A2cConfig::default()
        };
        let learner = A2c::new(network, config, 0).expect("valid");
        let batch = |i: usize| {
            let (n, stream) = (rows(i), 10 * i as u64);
            rollout(Obs::new(tensor([n, 3], stream, device)), whole(n, 3, stream + 1, device), i, device)
        };
        run(learner, on, batch, A2c::is_recorded, |_| ())
    });

    compare("DQN", device, [19, 13], |on| {
        let config = QNetworkConfig { hidden: vec![16, 16], ..QNetworkConfig::default() };
        let network = QNetwork::new(&config, &space(3), &discrete, tracked, &mut weights(0)).expect("valid");
        let config = DqnConfig { double: true, target_update_interval: 3, ..DqnConfig::default() };
        let learner = Dqn::new(network, config).expect("valid");
        run(learner, on, |i| transitions(i, None, device), Dqn::is_recorded, with_error)
    });

    compare("team of DQN", device, [31, 12], |on| {
        let config = TeamQNetworkConfig { hidden: vec![16], ..TeamQNetworkConfig::default() };
        let network = TeamQNetwork::new(&config, 4, &space(3), &discrete, tracked, &mut weights(0)).expect("valid");
        let config = DqnConfig { target_update_interval: 2, max_grad_norm: Some(0.5), ..DqnConfig::default() };
        let learner = Dqn::new(network, config).expect("valid");
        let batch = |i| {
            let batch = transitions(i, None, device);
            let obs = |obs: Obs| TeamObs {
                shared: Some(Shared::PerRow(obs.values)),
                own: None,
                mask: None,
                n_agents: 4,
                actions_per_flag: 1,
            };
            let Transitions { action, reward, discount, rows, .. } = batch;
            let (obs, next_obs) = (obs(batch.obs), obs(batch.next_obs));
            Transitions { obs, next_obs, action, reward, discount, weight: None, rows, sequences: None }
        };
        run(learner, on, batch, Dqn::is_recorded, with_error)
    });

    for (name, ent_coef, interval, launches) in
        [("SAC", EntCoef::Auto { auto: 0.1 }, 1, [55, 18]), ("SAC, fixed", EntCoef::Fixed(0.2), 2, [48, 17])]
    {
        compare(name, device, launches, |on| {
            let actor = SquashedActorConfig { hidden: vec![16, 16], ..SquashedActorConfig::default() };
            let actor = SquashedActor::new(&actor, &space(3), &space(2), tracked, &mut weights(0)).expect("valid");
            let critics = MlpCriticsConfig { hidden: vec![16, 16], ..MlpCriticsConfig::default() };
            let critics = MlpCritics::new(&critics, &space(3), &space(2), tracked, &mut weights(1)).expect("valid");
            let config = SacConfig { ent_coef, target_update_interval: interval, ..SacConfig::default() };
            let learner = Sac::new(actor, critics, config, 0).expect("valid");
            run(learner, on, |i| transitions(i, Some(2), device), Sac::is_recorded, with_error)
        });
    }

    compare("TD3", device, [39, 17], |on| {
        let actor = DeterministicActorConfig { hidden: vec![16, 16], ..DeterministicActorConfig::default() };
        let actor = DeterministicActor::new(&actor, &space(3), &space(2), tracked, &mut weights(0)).expect("valid");
        let critics = MlpCriticsConfig { hidden: vec![16, 16], ..MlpCriticsConfig::default() };
        let critics = MlpCritics::new(&critics, &space(3), &space(2), tracked, &mut weights(1)).expect("valid");
        let learner = Td3::new(actor, critics, Td3Config::default(), 0).expect("valid");
        run(learner, on, |i| transitions(i, Some(2), device), Td3::is_recorded, with_error)
    });
}
