//! An update of several shards equals the update of one with the rows of all, and a library user can train with shards.
#![allow(clippy::expect_used)]

use std::ops::Range;
use std::sync::Mutex;

use brasa::a2c::{A2c, A2cConfig};
use brasa::buffers::{Rollout, Transitions};
use brasa::contracts::{Learner, Obs, OnPolicyLearner, Progress, Schedule};
use brasa::dqn::{Dqn, DqnConfig};
use brasa::env::wrappers::{NormalizeObs, RunningMoments, ScaleReward};
use brasa::env::{Space, named_rng};
use brasa::nn::{
    ActorCriticConfig, AdamConfig, MlpActorCritic, MlpCritics, MlpCriticsConfig, Persist, QNetwork, QNetworkConfig,
    SquashedActor, SquashedActorConfig,
};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::prelude::*;
use brasa::sac::{Sac, SacConfig};
use brasa::shards::{World, shard};
use brasa_test::device;
use burn::tensor::Tensor;

const N_ROWS: usize = 64;
const N_SHARDS: usize = 4;

/// Fixed numbers around 0.
fn numbers(n: usize, seed: f32) -> Vec<f32> {
    (0..n).map(|i| ((i as f32 + seed) * 1.7).sin()).collect()
}

fn column(rows: &Range<usize>, seed: f32) -> Tensor<1> {
    Tensor::from_floats(&numbers(N_ROWS, seed)[rows.clone()], &device())
}

fn matrix(rows: &Range<usize>, width: usize, seed: f32) -> Tensor<2> {
    let all = numbers(N_ROWS * width, seed);
    Tensor::<1>::from_floats(&all[rows.start * width..rows.end * width], &device()).reshape([rows.len(), width])
}

/// The rows of the current shard.
fn own_rows() -> Range<usize> {
    let n = N_ROWS / shard().count;
    shard().index * n..(shard().index + 1) * n
}

/// A small epsilon would turn rounding errors of gradients near 0 into different steps.
fn adam() -> AdamConfig {
    AdamConfig { epsilon: 1e-2, ..AdamConfig::default() }
}

fn flat(learner: &impl Persist) -> Vec<f32> {
    let saved = learner.save();
    saved.policy.into_values().chain(saved.trainer.into_values()).flat_map(|(_, values)| values).collect()
}

/// Runs `work` in one shard and in several, and compares the numbers.
fn assert_equal(what: &str, work: impl Fn() -> Vec<f32> + Sync) {
    let whole = work();
    let ends = Mutex::new(Vec::new());
    let outcome = World::solo().run(N_SHARDS, || {
        let end = work();
        ends.lock().expect("no shard panics").push(end);
        Ok::<_, String>(())
    });
    outcome.expect("nothing fails");
    let ends = ends.into_inner().expect("no shard panics");
    assert_eq!(ends.len(), N_SHARDS);
    for end in &ends {
        assert!(end == &ends[0], "{what}: the shards have different weights");
        for (i, (sharded, whole)) in end.iter().zip(&whole).enumerate() {
            let gap = (sharded - whole).abs();
            assert!(gap < 1e-6 + 1e-5 * whole.abs(), "{what}, number {i}: {sharded} instead of {whole}");
        }
    }
}

/// Masked rows: some have a single legal action, and their number differs between shards.
fn rollout(rows: Range<usize>) -> Rollout<Obs, Tensor<2>> {
    let mask: Vec<f32> =
        rows.clone().flat_map(|row| if row % 5 == 0 || row > 50 { [1.0, 0.0, 0.0] } else { [1.0; 3] }).collect();
    let mask = Tensor::<1>::from_floats(mask.as_slice(), &device()).reshape([rows.len(), 3]);
    let action: Vec<f32> =
        rows.clone().map(|row| if row % 5 == 0 || row > 50 { 0.0 } else { (row % 3) as f32 }).collect();
    Rollout {
        obs: Obs { values: matrix(&rows, 4, 0.0), mask: Some(mask) },
        action: Tensor::<1>::from_floats(action.as_slice(), &device()).reshape([rows.len(), 1]),
        log_prob: column(&rows, 1.0) * 0.2 - 1.1,
        value: column(&rows, 2.0),
        advantage: column(&rows, 3.0) * 3.0 + column(&rows, 5.5),
        returns: column(&rows, 4.0),
        remembered: None,
    }
}

fn actor_critic() -> MlpActorCritic {
    let config = ActorCriticConfig { actor_hidden: vec![8], critic_hidden: vec![8], ..ActorCriticConfig::default() };
    let obs = Space::uniform_box(-1.0, 1.0, ["a", "b", "c", "d"]);
    let rng = &mut named_rng(5, "weights", 0);
    MlpActorCritic::new(&config, &obs, &Space::Discrete(3), &device().autodiff(), rng).expect("it is valid")
}

fn three_updates<L>(mut learner: L) -> Vec<f32>
where
    L: OnPolicyLearner<Batch = Rollout<Obs, Tensor<2>>> + Persist,
{
    for _ in 0..3 {
        learner.update(rollout(own_rows()), Progress::new(0, 100));
    }
    flat(&learner)
}

#[test]
fn an_on_policy_update_is_that_of_all_rows() {
    // Every minibatch has all rows: their order has no effect beyond rounding.
    let ppo = PpoConfig {
        batch_size: N_ROWS,
        n_epochs: 4,
        ent_coef: 0.01,
        max_grad_norm: Some(0.05),
        learning_rate: Schedule::Constant(3e-3),
        adam: adam(),
        ..PpoConfig::default()
    };
    assert_equal("PPO", || three_updates(Ppo::new(actor_critic(), ppo.clone(), 1).expect("valid")));
    for stop in [0.02, 0.2] {
        let config = PpoConfig { target_kl: Some(stop), adaptive_kl: Some(0.03), ..ppo.clone() };
        assert_equal("PPO with targets", || three_updates(Ppo::new(actor_critic(), config.clone(), 1).expect("valid")));
    }
    let a2c = A2cConfig { normalize_advantage: true, ent_coef: 0.01, optimizer: adam().into(), ..A2cConfig::default() };
    assert_equal("A2C", || three_updates(A2c::new(actor_critic(), a2c.clone(), 1).expect("valid")));
}

fn transitions(rows: Range<usize>, action: Tensor<2>) -> Transitions<Obs, Tensor<2>> {
    Transitions {
        obs: Obs::new(matrix(&rows, 4, 0.0)),
        action,
        reward: column(&rows, 1.0),
        next_obs: Obs::new(matrix(&rows, 4, 7.0)),
        discount: column(&rows, 2.0) * 0.05 + 0.9,
        weight: None,
        sequences: None,
        rows: Tensor::arange(rows.start as i64..rows.end as i64, &device()),
    }
}

#[test]
fn an_off_policy_update_is_that_of_all_rows() {
    let obs = Space::uniform_box(-1.0, 1.0, ["a", "b", "c", "d"]);
    let action = Space::uniform_box(-1.0, 1.0, ["x", "y"]);
    assert_equal("SAC", || {
        let autodiff = device().autodiff();
        let rng = |stream| named_rng(5, "weights", stream);
        let actor = SquashedActorConfig { hidden: vec![8], ..Default::default() };
        let actor = SquashedActor::new(&actor, &obs, &action, &autodiff, &mut rng(0)).expect("valid");
        let critics = MlpCriticsConfig { hidden: vec![8], ..Default::default() };
        let critics = MlpCritics::new(&critics, &obs, &action, &autodiff, &mut rng(1)).expect("valid");
        let config = SacConfig { adam: adam(), max_grad_norm: Some(0.1), ..SacConfig::default() };
        let mut sac = Sac::new(actor, critics, config, 3).expect("valid");
        for round in 0..3 {
            let rows = own_rows();
            let noise = [matrix(&rows, 2, 9.0 + round as f32), matrix(&rows, 2, 11.0)];
            sac.update_with(transitions(rows.clone(), matrix(&rows, 2, 3.0)), noise, Progress::new(0, 100));
        }
        flat(&sac)
    });
    assert_equal("DQN", || {
        let config = QNetworkConfig { hidden: vec![8], ..Default::default() };
        let rng = &mut named_rng(5, "weights", 0);
        let network = QNetwork::new(&config, &obs, &Space::Discrete(3), &device().autodiff(), rng).expect("valid");
        let config = DqnConfig { optimizer: adam().into(), target_update_interval: 2, ..DqnConfig::default() };
        let mut dqn = Dqn::new(network, config).expect("valid");
        for _ in 0..3 {
            let rows = own_rows();
            let action: Vec<f32> = rows.clone().map(|row| (row % 3) as f32).collect();
            let action = Tensor::<1>::from_floats(action.as_slice(), &device()).reshape([rows.len(), 1]);
            dqn.update(transitions(rows, action), Progress::new(0, 100));
        }
        flat(&dqn)
    });
}

/// Eight environments in all. Returns their moments at the end, the weights and the counted steps.
fn train(run_dir: Option<&std::path::Path>, steps: u64) -> (Vec<RunningMoments>, Vec<f32>, u64) {
    let n = 8 / shard().count;
    let envs = EnvVec::new(shard().index * n..(shard().index + 1) * n, |_| brasa::classic::CartPole::default());
    let limited = TimeLimit::new(envs.expect("there is one"), brasa::classic::CartPole::TIME_LIMIT).expect("valid");
    let scaled = ScaleReward::new(limited, 0.99).expect("valid");
    let env = HostEnv::new(NormalizeObs::new(scaled).expect("valid"), &device());
    let ppo = PpoConfig { n_steps: 32, batch_size: 16, n_epochs: 2, ..PpoConfig::default() };
    let mut builder = Trainer::on_policy(env, Ppo::new(actor_critic_for_cart_pole(), ppo, 2).expect("valid"))
        .seed(3)
        .total_env_steps(steps);
    if let Some(path) = run_dir {
        builder = builder.start_or_resume(path);
    }
    let mut trainer = builder.build().expect("everything stands");
    trainer.run().expect("it trains");
    let training = trainer.training();
    let counted = brasa::train::Training::counters(training).env_steps;
    let moments = brasa::train::Training::obs_moments(training).expect("observations are normalized").clone();
    (vec![moments], flat(brasa::train::Training::learner(training)), counted)
}

fn actor_critic_for_cart_pole() -> MlpActorCritic {
    let config = ActorCriticConfig { actor_hidden: vec![8], critic_hidden: vec![8], ..ActorCriticConfig::default() };
    let obs = Space::uniform_box(-10.0, 10.0, ["a", "b", "c", "d"]);
    let rng = &mut named_rng(5, "weights", 0);
    MlpActorCritic::new(&config, &obs, &Space::Discrete(2), &device().autodiff(), rng).expect("it is valid")
}

#[test]
fn a_trainer_of_shards_shares_moments_and_resumes() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let in_shards = |name: &str, steps: u64| {
        let ends = Mutex::new(Vec::new());
        let path = dir.path().join(name);
        let outcome = World::solo().run(N_SHARDS, || {
            let end = train(Some(&path), steps);
            ends.lock().expect("no shard panics").push(end);
            Ok::<_, String>(())
        });
        outcome.expect("nothing fails");
        let ends = ends.into_inner().expect("no shard panics");
        assert!(ends.iter().all(|end| *end == ends[0]), "all shards end alike");
        ends[0].clone()
    };
    let whole = in_shards("whole", 2048);
    assert_eq!(whole.2, 2048);
    // The first observations, and one per step.
    assert_eq!(whole.0[0].count, 2048.0 + 8.0);
    in_shards("halves", 1024);
    assert_eq!(in_shards("halves", 2048), whole);
    // A run of one shard cannot use it.
    let path = dir.path().join("whole");
    let refused = std::panic::catch_unwind(|| train(Some(&path), 4096)).expect_err("it has four shards");
    let message = refused.downcast_ref::<String>().expect("an error");
    assert!(message.contains("its run has 4 shards, this one 1"), "{message}");
}
