//! Teams in the whole training loop: learned values, number of updates, transfers, and episode clocks.
#![allow(clippy::expect_used)]

use std::path::Path;

use brasa::buffers::{ReplayConfig, Transitions};
use brasa::contracts::{
    ActionValues, Explore, HostEnv, Learner, NoiseDistribution, NoiseSpec, OffPolicyLearner, Policy, PolicyController,
    PolicyState, Progress, RandomWarmup, Schedule, TeamObs, VecEnv,
};
use brasa::dqn::{Dqn, DqnConfig, EpsilonGreedy, GreedyRamp};
use brasa::env::wrappers::{EpisodeStats, NormalizeObs, TimeLimit};
use brasa::env::{BatchSlabs, EnvBatch, EnvError, EnvSpec, Space, check_env, named_rng};
use brasa::nn::{ParamsError, Persist, Saved, Sharing, TeamQNetwork, TeamQNetworkConfig};
use brasa::train::{OffPolicy, OffPolicyConfig, Run, TrainError, Training};
use brasa_test::device;
use burn::tensor::Tensor;
use ndarray::ArrayView2;

/// Two agents with two actions each; their joint action moves between four states, which both observe one-hot.
#[derive(Debug)]
struct Bits {
    states: Vec<usize>,
    first: usize,
    spec: EnvSpec,
}

/// `[state][action of agent 0][action of agent 1]`: the next state.
const NEXT: [[[usize; 2]; 2]; 4] = [[[0, 1], [2, 3]], [[2, 0], [1, 3]], [[3, 3], [0, 2]], [[1, 2], [3, 0]]];
/// The reward of each agent.
const REWARD: [[[[f32; 2]; 2]; 2]; 4] = [
    [[[0.0, 0.1], [0.4, 0.0]], [[0.2, 0.3], [-0.1, 0.5]]],
    [[[0.3, -0.2], [0.0, 0.2]], [[0.1, 0.0], [0.5, 0.1]]],
    [[[-0.3, 0.4], [0.1, 0.1]], [[0.2, -0.1], [0.0, 0.3]]],
    [[[0.5, 0.0], [-0.2, 0.2]], [[0.0, 0.4], [0.3, -0.3]]],
];

impl Bits {
    fn new(envs: std::ops::Range<usize>) -> Result<Self, EnvError> {
        Ok(Self {
            states: vec![0; envs.len()],
            first: envs.start,
            spec: EnvSpec {
                n_agents: 2,
                shared_width: 4,
                ..EnvSpec::new(
                    Space::uniform_box(0.0, 1.0, (0..4).map(|i| format!("state_{i}"))),
                    Space::Discrete(2),
                    envs.len(),
                )
            },
        })
    }

    fn show(states: &[usize], shared: &mut ndarray::Array2<f32>) {
        shared.fill(0.0);
        states.iter().enumerate().for_each(|(env, state)| shared[[env, *state]] = 1.0);
    }
}

impl EnvBatch for Bits {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }
    fn reset(&mut self, _seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        (0..self.states.len()).try_for_each(|env| self.restart(env, out))
    }
    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        for (env, state) in self.states.iter_mut().enumerate() {
            let [a, b] = [0, 1].map(|agent| actions[[2 * env + agent, 0]] as usize);
            for (agent, reward) in REWARD[*state][a][b].into_iter().enumerate() {
                out.reward[2 * env + agent] = reward;
            }
            *state = NEXT[*state][a][b];
        }
        out.terminated.fill(false);
        out.truncated.fill(false);
        Self::show(&self.states, &mut out.shared);
        Self::show(&self.states, &mut out.next_shared);
        Ok(())
    }
    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.states[env] = (self.first + env) % 4;
        Self::show(&self.states, &mut out.shared);
        Ok(())
    }
    fn save(&self) -> Vec<u8> {
        self.states.iter().map(|state| *state as u8).collect()
    }
    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        if bytes.len() != self.states.len() {
            return Err(EnvError::State { reason: format!("{} states", bytes.len()) });
        }
        self.states = bytes.iter().map(|state| usize::from(*state)).collect();
        Ok(())
    }
}

type Team = HostEnv<EpisodeStats<TimeLimit<Bits>>, TeamObs>;

fn team(n_envs: usize, limit: u32) -> Team {
    let bits = Bits::new(0..n_envs).expect("there is at least one");
    HostEnv::team(EpisodeStats::new(TimeLimit::new(bits, limit).expect("the limit is above 0")), &device())
}

fn learner(env: &Team, sharing: Sharing, config: DqnConfig) -> Dqn<TeamQNetwork> {
    let network = TeamQNetworkConfig { hidden: vec![], sharing, ..TeamQNetworkConfig::default() };
    let (device, rng) = (device().autodiff(), &mut named_rng(1, "weights", 0));
    let network = TeamQNetwork::new(&network, 2, &env.spec().obs, &env.spec().action, &device, rng).expect("valid");
    Dqn::new(network, config).expect("valid")
}

fn quick() -> OffPolicyConfig {
    OffPolicyConfig {
        learning_starts: 100,
        batch_size: 16,
        log_interval: 200,
        replay: ReplayConfig { capacity: 2000, ..ReplayConfig::default() },
        ..OffPolicyConfig::default()
    }
}

fn start<L>(
    env: Team,
    learner: L,
    config: OffPolicyConfig,
    total_env_steps: u64,
) -> Result<OffPolicy<Team, L>, TrainError>
where
    L: OffPolicyLearner<Batch = Transitions<TeamObs, Tensor<2>>> + Persist,
    L::Policy: RandomWarmup<Obs = TeamObs, Action = Tensor<2>>,
{
    OffPolicy::new(env, learner, config, Run { total_env_steps, seed: 3 })
}

#[test]
fn the_environments_of_these_tests_keep_the_contract() {
    check_env(50, Bits::new).expect("they keep it");
}

/// The values of an agent's actions with a partner that acts randomly: `Q = E[r + gamma max Q']`.
fn exact(agent: usize, gamma: f64) -> [[f64; 2]; 4] {
    let mut q = [[0.0f64; 2]; 4];
    for _ in 0..100 {
        let best = q.map(|q| q[0].max(q[1]));
        for (state, q) in q.iter_mut().enumerate() {
            for (option, q) in q.iter_mut().enumerate() {
                let judged = (0..2).map(|other| {
                    let [a, b] = if agent == 0 { [option, other] } else { [other, option] };
                    f64::from(REWARD[state][a][b][agent]) + gamma * best[NEXT[state][a][b]]
                });
                *q = judged.sum::<f64>() / 2.0;
            }
        }
    }
    q
}

#[test]
fn v14_learned_values_are_those_of_value_iteration() {
    // Both agents act randomly throughout, so each learns with a fixed partner, and the fixed point is that of value
    // iteration over the four states. Networks without hidden layers are tables; errors are within the quadratic part
    // of the loss, whose minimum is the mean. Independent and shared weights over one-hot states can represent the same
    // tables, except `All`, which adds terms of state and agent.
    for sharing in [Sharing::Independent, Sharing::Trunk] {
        let config = DqnConfig {
            gamma: 0.5,
            target_update_interval: 50,
            learning_rate: Schedule::linear(1e-2, 1e-5),
            epsilon: Schedule::Constant(1.0),
            ..DqnConfig::default()
        };
        let env = team(16, 1000);
        let learner = learner(&env, sharing, config);
        let mut settings = OffPolicyConfig { train_freq: 16, updates_per_step: 0.125, batch_size: 256, ..quick() };
        settings.replay.capacity = 20_000;
        let mut training = start(env, learner, settings, 24_000).expect("the environments start");
        while !training.is_done() {
            training.iterate().expect("training goes on");
        }
        // The four states, seen by both agents.
        let mut probe = team(4, 10);
        let table = training.learner().online().valid().values(probe.reset(0).expect("it starts"));
        let learned: Vec<f64> = table.into_data().iter::<f64>().collect();
        for agent in 0..2 {
            for (state, q) in exact(agent, 0.5).into_iter().enumerate() {
                for (option, q) in q.into_iter().enumerate() {
                    let learned = learned[(2 * state + agent) * 2 + option];
                    let what = format!("{sharing:?}: agent {agent}, state {state}, option {option}");
                    assert!((learned - q).abs() < 1e-2, "{what}: {learned} instead of {q}");
                }
            }
        }
    }
}

#[test]
fn v17_updates_per_transition_do_not_depend_on_the_number_of_environments() {
    for updates_per_step in [0.25, 1.0] {
        let updates = [1, 4, 8].map(|n_envs| {
            let env = team(n_envs, 20);
            let learner = learner(&env, Sharing::Independent, DqnConfig::default());
            let settings = OffPolicyConfig { learning_starts: 96, train_freq: 8, updates_per_step, ..quick() };
            let mut training = start(env, learner, settings, 496).expect("the environments start");
            while !training.is_done() {
                training.iterate().expect("training goes on");
            }
            (training.counters().updates, training.replay().n_transitions())
        });
        // All steps except the first 96, and one transition of each agent per step.
        assert_eq!(updates, [((400.0 * updates_per_step) as u64, 496); 3], "{updates_per_step} per step");
    }
}

#[test]
fn acting_reads_back_once_per_step_and_learning_never() {
    let env = team(1, 20);
    let learner = learner(&env, Sharing::Independent, DqnConfig::default());
    let settings = OffPolicyConfig { updates_per_step: 3.0, ..quick() };
    let mut training = start(env, learner, settings, 1000).expect("the environments start");
    while !training.is_done() {
        training.iterate().expect("training goes on");
    }
    assert_eq!(training.counters().updates, 2700);
    let transfers = training.env().transfers();
    assert_eq!(transfers.read_backs, 1000);
    // One upload of results per step and one of the first observations; one more of next observations per end of an
    // episode.
    assert_eq!(transfers.uploads, 1000 + 1 + 1000 / 20);
}

fn following_episodes() -> DqnConfig {
    DqnConfig {
        greedy_ramp: Some(GreedyRamp { min: 0.1, max: 0.9, increment: 0.05 }),
        target_update_interval: 4,
        target_update_within_episode: true,
        ..DqnConfig::default()
    }
}

#[test]
fn several_environments_cannot_be_followed() {
    let env = team(2, 10);
    let learner = learner(&env, Sharing::Independent, following_episodes());
    let error = start(env, learner, quick(), 500).expect_err("there are two");
    let message = "`n_envs` must be 1 if exploration or targets depend on the step of the episode, got 2";
    assert_eq!(error.to_string(), message);
}

/// Forwards all calls, and records the loop's calls about episodes.
struct Watched {
    inner: Dqn<TeamQNetwork>,
    acted: std::cell::RefCell<Vec<f64>>,
    /// Whether each update copied the network to the target.
    copied: Vec<bool>,
}

impl Learner for Watched {
    type Batch = Transitions<TeamObs, Tensor<2>>;
    type Policy = EpsilonGreedy<TeamQNetwork>;
    fn update(&mut self, batch: Self::Batch, progress: Progress) -> brasa::contracts::Metrics {
        let metrics = self.inner.update(batch, progress);
        let saved = self.inner.save();
        let copied = saved.policy["network.head.bias"].1 == saved.trainer["target.head.bias"].1;
        self.copied.push(copied);
        metrics
    }
    fn policy(&self, progress: Progress) -> Self::Policy {
        let policy = self.inner.policy(progress);
        self.acted.borrow_mut().push(policy.epsilon);
        policy
    }
}

impl OffPolicyLearner for Watched {
    fn td_error(&self) -> Tensor<1> {
        self.inner.td_error()
    }
    fn gamma(&self) -> f64 {
        self.inner.gamma()
    }
    fn check_envs(&self, spec: &EnvSpec) -> Result<(), EnvError> {
        self.inner.check_envs(spec)
    }
    fn after_step(&mut self, any_episode_end: bool) {
        self.inner.after_step(any_episode_end);
    }
}

impl Persist for Watched {
    fn save(&self) -> Saved {
        self.inner.save()
    }
    fn load(&mut self, saved: &Saved) -> Result<(), ParamsError> {
        self.inner.load(saved)
    }
}

#[test]
fn ramps_and_targets_follow_the_steps_of_an_episode() {
    let env = team(1, 10);
    let inner = learner(&env, Sharing::Independent, following_episodes());
    let watched = Watched { inner, acted: Vec::new().into(), copied: Vec::new() };
    let settings = OffPolicyConfig { learning_starts: 10, ..quick() };
    let mut training = start(env, watched, settings, 50).expect("the environments start");
    while !training.is_done() {
        training.iterate().expect("training goes on");
    }
    let watched = training.learner();
    // The first call was made for the shape.
    for (env_step, epsilon) in watched.acted.borrow()[1..].iter().enumerate() {
        let (episode, step) = (env_step / 10, env_step % 10);
        let greedy = (0.1 + 0.05 * step as f64 * (episode + 1) as f64).min(0.9);
        assert!((1.0 - greedy - epsilon).abs() < 1e-12, "{epsilon} at step {step} of episode {episode}");
    }
    // One update per step after the first ten, each after its step.
    assert_eq!(watched.copied.len(), 40);
    for (i, copied) in watched.copied.iter().enumerate() {
        assert_eq!(*copied, (i % 10) % 4 == 0, "update {i}");
    }
}

#[test]
fn a_resumed_team_continues_bit_for_bit() {
    let make = || team(1, 15);
    let begin = || learner(&make(), Sharing::Independent, following_episodes());
    let settings = OffPolicyConfig { log_interval: 50, ..quick() };
    let start = || start(make(), begin(), settings.clone(), 400).expect("the environments start");
    let mut whole = start();
    let mut saved = None;
    while !whole.is_done() {
        if whole.counters().env_steps == 250 {
            saved = Some(whole.checkpoint());
        }
        whole.iterate().expect("training goes on");
    }
    let mut resumed = start();
    resumed.restore(&saved.expect("a reading falls on step 250"), Path::new("memory")).expect("it is the same run");
    while !resumed.is_done() {
        resumed.iterate().expect("training goes on");
    }
    assert!(whole.learner().save() == resumed.learner().save());
}

#[test]
fn flat_and_compact_observations_tell_the_same() {
    let mut compact = team(3, 10);
    let bits = Bits::new(0..3).expect("there is at least one");
    let mut flat = HostEnv::new(EpisodeStats::new(TimeLimit::new(bits, 10).expect("above 0")), &device());
    let (a, b) = (compact.reset(0).expect("it starts"), flat.reset(0).expect("it starts"));
    assert_eq!(a.rows().into_data(), b.values.into_data());
    let network = learner(&compact, Sharing::All, DqnConfig::default()).online().valid();
    let policy = EpsilonGreedy::greedy(network);
    let action = policy.act(a, Explore::Greedy).0;
    assert_eq!(action.dims(), [6, 1]);
    let (a, b) = (compact.step(action.clone()).expect("it steps"), flat.step(action).expect("it steps"));
    assert_eq!(a.next_obs().rows().into_data(), b.next_obs().values.into_data());
}

/// Acts by the second number that it sees.
struct Second;

impl Policy for Second {
    type Obs = TeamObs;
    type Action = Tensor<2>;
    type Extra = ();

    fn noise(&self) -> NoiseSpec {
        NoiseSpec { width: 0, distribution: NoiseDistribution::Normal, resample_every: 1 }
    }

    fn act(&self, obs: TeamObs, _: Explore) -> (Tensor<2>, ()) {
        let rows = obs.rows();
        (rows.clone().slice([0..rows.dims()[0], 1..2]), ())
    }

    fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        action
    }
}

#[test]
fn shared_numbers_are_normalized_for_policies_too() {
    let bits = || TimeLimit::new(Bits::new(0..3).expect("there is one"), 10).expect("the limit is above 0");
    let mut normalized = NormalizeObs::new(bits()).expect("they have no fixed range");
    let mut plain = bits();
    let [mut seen, mut raw] = [normalized.spec(), plain.spec()].map(BatchSlabs::new);
    normalized.reset(0, &mut seen).expect("it starts");
    plain.reset(0, &mut raw).expect("it starts");
    for step in 0..25 {
        let actions = ndarray::Array2::from_shape_fn((6, 1), |(row, _)| ((row + step) % 2) as f32);
        normalized.step(actions.view(), &mut seen).expect("it steps");
        plain.step(actions.view(), &mut raw).expect("it steps");
        let controller = PolicyController::new(Second, plain.spec(), normalized.obs_moments().cloned(), &device());
        let actions = controller.decide(&raw, &mut PolicyState::default());
        for (row, action) in actions.iter().enumerate() {
            assert!((action - seen.shared[[row / 2, 1]]).abs() < 1e-6, "step {step}, row {row}");
        }
    }
    assert_ne!(seen.shared, raw.shared);
}
