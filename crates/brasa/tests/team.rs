//! Teams through the whole loop: what is learned, how often, what crosses between host and device, and clocks.
#![allow(clippy::expect_used)]

use brasa::buffers::{ReplayConfig, Transitions};
use brasa::core::{
    ActionValues, Clock, HostEnv, Learner, OffPolicyLearner, Policy, Progress, Schedule, TeamObs, UniformStart, VecEnv,
};
use brasa::dqn::{Dqn, DqnConfig, EpsilonGreedy, GreedyRamp};
use brasa::env::wrappers::{EpisodeStats, TimeLimit};
use brasa::env::{BatchSlabs, EnvBatch, EnvError, EnvSpec, Space, check_env, named_rng};
use brasa::nn::{Persist, Sharing, TeamQNetwork, TeamQNetworkConfig};
use brasa::train::{OffPolicy, OffPolicyConfig, Run, TrainError};
use brasa_test::device;
use burn::tensor::Tensor;
use ndarray::ArrayView2;

/// Two agents with two options each; together they move between four states, which both see one-hot.
struct Bits {
    states: Vec<usize>,
    first: usize,
    spec: EnvSpec,
}

/// `[state][option of agent 0][option of agent 1]`: where that leads.
const NEXT: [[[usize; 2]; 2]; 4] = [[[0, 1], [2, 3]], [[2, 0], [1, 3]], [[3, 3], [0, 2]], [[1, 2], [3, 0]]];
/// The reward of each agent there.
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

fn start<L>(env: Team, learner: &L, config: OffPolicyConfig, total_env_steps: u64) -> OffPolicy<Team>
where
    L: OffPolicyLearner<Batch = Transitions<TeamObs, Tensor<2>>>,
    L::Policy: UniformStart<Obs = TeamObs, Action = Tensor<2>>,
{
    let policy = learner.policy(Progress::new(0, total_env_steps).at(Some(Clock::default())));
    let run = Run { total_env_steps, gamma: 0.5, seed: 3 };
    OffPolicy::new(env, &policy, config, run, &device()).expect("the environments start")
}

#[test]
fn the_environments_of_these_tests_keep_the_contract() {
    check_env(50, Bits::new).expect("they keep it");
}

/// What an agent's options are worth against a partner that acts at random: `Q = E[r + gamma max Q']`.
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
    // Both agents act at random throughout, so each learns against a fixed partner, and the fixed point is that of value
    // iteration over the four states. Networks without hidden layers are tables; errors stay within the quadratic part of
    // the loss, whose minimum is the mean. Independent and shared weights over one-hot states hold the same tables, apart
    // from `All`, which adds up state and agent.
    for sharing in [Sharing::Independent, Sharing::Trunk] {
        let config = DqnConfig {
            gamma: 0.5,
            target_update_interval: 50,
            learning_rate: Schedule::linear(1e-2, 1e-5),
            epsilon: Schedule::Constant(1.0),
            ..DqnConfig::default()
        };
        let env = team(16, 1000);
        let mut learner = learner(&env, sharing, config);
        let mut settings = OffPolicyConfig { train_freq: 16, updates_per_step: 0.125, batch_size: 256, ..quick() };
        settings.replay.capacity = 20_000;
        let mut training = start(env, &learner, settings, 24_000);
        while !training.is_done() {
            training.iterate(&mut learner).expect("training goes on");
        }
        // The four states, seen by both agents.
        let mut probe = team(4, 10);
        let table = learner.online().valid().values(probe.reset(0).expect("it starts"));
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
            let mut learner = learner(&env, Sharing::Independent, DqnConfig::default());
            let settings = OffPolicyConfig { learning_starts: 96, train_freq: 8, updates_per_step, ..quick() };
            let mut training = start(env, &learner, settings, 496);
            while !training.is_done() {
                training.iterate(&mut learner).expect("training goes on");
            }
            (training.counters().updates, training.replay().n_transitions())
        });
        // All steps but the first 96, and one transition of each agent per step.
        assert_eq!(updates, [((400.0 * updates_per_step) as u64, 496); 3], "{updates_per_step} per step");
    }
}

#[test]
fn acting_reads_back_once_per_step_and_learning_never() {
    let env = team(1, 20);
    let mut learner = learner(&env, Sharing::Independent, DqnConfig::default());
    let settings = OffPolicyConfig { updates_per_step: 3.0, ..quick() };
    let mut training = start(env, &learner, settings, 1000);
    while !training.is_done() {
        training.iterate(&mut learner).expect("training goes on");
    }
    assert_eq!(training.counters().updates, 2700);
    let transfers = training.env().transfers();
    assert_eq!(transfers.read_backs, 1000);
    // One of results per step and one for the first observation; one more of successors for each episode's end.
    assert_eq!(transfers.uploads, 1000 + 1 + 1000 / 20);
}

#[test]
fn clocks_count_episodes_and_steps_and_survive_a_resume() {
    let mut env = team(1, 3);
    env.reset(0).expect("it starts");
    let mut seen = Vec::new();
    for step in 0..8 {
        let clock = env.clock().expect("there is one environment");
        seen.push([clock.episode, clock.step]);
        if step == 4 {
            let saved = env.save();
            env = team(1, 3);
            env.load(&saved).expect("it is the same environment");
            assert_eq!(env.clock(), Some(clock));
        }
        env.step(Tensor::zeros([2, 1], &device())).expect("it steps");
    }
    assert_eq!(seen, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2], [2, 0], [2, 1]]);
    assert_eq!(team(2, 3).clock(), None);
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
    let mut learner = learner(&env, Sharing::Independent, following_episodes());
    let error = start(env, &learner, quick(), 500).iterate(&mut learner).expect_err("there are two");
    assert!(matches!(error, TrainError::Field { field: "n_envs", .. }), "{error}");
    let message = "`n_envs` must be 1 where the learner follows the steps of an episode, got 2";
    assert_eq!(error.to_string(), message);
}

/// Passes everything on, and notes what the loop says of episodes.
struct Watched {
    inner: Dqn<TeamQNetwork>,
    acted: std::cell::RefCell<Vec<(Clock, f64)>>,
    /// Clock of each update, and whether the target was copied.
    learned: Vec<(Clock, bool)>,
}

impl Learner for Watched {
    type Batch = Transitions<TeamObs, Tensor<2>>;
    type Policy = EpsilonGreedy<TeamQNetwork>;
    fn update(&mut self, batch: Self::Batch, progress: Progress) -> brasa::core::Metrics {
        let metrics = self.inner.update(batch, progress);
        let saved = self.inner.save();
        let copied = saved.policy["network.head.bias"].1 == saved.trainer["target.head.bias"].1;
        self.learned.push((progress.clock.expect("one environment"), copied));
        metrics
    }
    fn policy(&self, progress: Progress) -> Self::Policy {
        let policy = self.inner.policy(progress);
        self.acted.borrow_mut().push((progress.clock.expect("one environment"), policy.epsilon));
        policy
    }
}

impl OffPolicyLearner for Watched {
    fn td_error(&self) -> Tensor<1> {
        self.inner.td_error()
    }
    fn needs_clock(&self) -> bool {
        self.inner.needs_clock()
    }
}

#[test]
fn ramps_and_targets_follow_the_steps_of_an_episode() {
    let env = team(1, 10);
    let inner = learner(&env, Sharing::Independent, following_episodes());
    assert!(inner.needs_clock());
    let mut watched = Watched { inner, acted: Vec::new().into(), learned: Vec::new() };
    let mut training = start(env, &watched, OffPolicyConfig { learning_starts: 10, ..quick() }, 50);
    while !training.is_done() {
        training.iterate(&mut watched).expect("training goes on");
    }
    // The first was asked for to see its shape.
    for (env_step, (clock, epsilon)) in watched.acted.borrow()[1..].iter().enumerate() {
        let (episode, step) = (env_step / 10, env_step % 10);
        assert_eq!(*clock, Clock { episode: episode as u64, step: step as u64 });
        let greedy = (0.1 + 0.05 * step as f64 * (episode + 1) as f64).min(0.9);
        assert!((1.0 - greedy - epsilon).abs() < 1e-12, "{epsilon} at {clock:?}");
    }
    // One update per step after the first ten, each of the step that was just taken.
    assert_eq!(watched.learned.len(), 40);
    for (i, (clock, copied)) in watched.learned.iter().enumerate() {
        assert_eq!(*clock, Clock { episode: 1 + i as u64 / 10, step: i as u64 % 10 });
        assert_eq!(*copied, clock.step % 4 == 0, "{clock:?}");
    }
}

#[test]
fn a_resumed_team_continues_bit_for_bit() {
    let make = || team(1, 15);
    let begin = || learner(&make(), Sharing::Independent, following_episodes());
    let settings = OffPolicyConfig { log_interval: 50, ..quick() };
    let mut whole = begin();
    let mut training = start(make(), &whole, settings.clone(), 400);
    let mut saved = None;
    while !training.is_done() {
        if training.counters().env_steps == 250 {
            let loop_state = (training.counters().clone(), training.env().save(), training.save_replay());
            saved = Some((whole.save(), loop_state));
        }
        training.iterate(&mut whole).expect("training goes on");
    }
    let (learner_state, (counters, env, replay)) = saved.expect("a reading falls on step 250");
    let mut resumed = begin();
    resumed.load(&learner_state).expect("it is the same learner");
    let mut training = start(make(), &resumed, settings, 400);
    training.restore(counters, &env, &replay).expect("they are the same environments");
    while !training.is_done() {
        training.iterate(&mut resumed).expect("training goes on");
    }
    assert!(whole.save() == resumed.save());
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
    let action = policy.act(a, brasa::core::Explore::Greedy).0;
    assert_eq!(action.dims(), [6, 1]);
    let (a, b) = (compact.step(action.clone()).expect("it steps"), flat.step(action).expect("it steps"));
    assert_eq!(a.next_obs().rows().into_data(), b.next_obs().values.into_data());
}
