//! Experience of a team: the shared part is stored once, and each agent samples its own transitions.
#![allow(clippy::expect_used)]

use brasa_buffers::{Precision, PrioritizedConfig, ReplayBuffer, ReplayConfig, Transitions};
use brasa_core::env::{EnvRng, EnvSpec, named_rng};
use brasa_core::{Obs, ObsForm, ObsParts, Rows, Shared, StepBatch, Successor, TeamObs};
use brasa_test::{device, spec_of_rows};
use burn::tensor::{Tensor, TensorData};
use rand::RngExt;

const N_AGENTS: usize = 3;
/// Truncated episodes have 4 steps.
const INTERVAL: u64 = 4;
const GAMMA: f64 = 0.5;

fn matrix(values: Vec<f32>, width: usize) -> Tensor<2> {
    let n_rows = values.len() / width;
    Tensor::from_data(TensorData::new(values, [n_rows, width]), &device())
}

fn floats<const D: usize>(tensor: &Tensor<D>) -> Vec<f32> {
    tensor.to_data().try_to_vec().expect("f32")
}

/// Counting environments: the shared part has environment, episode and step, the own part has the agent.
#[derive(Clone)]
struct Counting {
    now: Vec<[usize; 2]>,
    with_own: bool,
}

impl Counting {
    fn new(n_envs: usize, with_own: bool) -> Self {
        Self { now: vec![[0, 0]; n_envs], with_own }
    }

    fn n_rows(&self) -> usize {
        self.now.len() * N_AGENTS
    }

    fn obs(&self) -> TeamObs {
        let shared = self.now.iter().enumerate().flat_map(|(env, now)| [env, now[0], now[1]]);
        let agents = (0..self.n_rows()).map(|row| row % N_AGENTS);
        // The legal flags depend on agent and step.
        let flags = (0..self.n_rows()).flat_map(|row| {
            let sum = row % N_AGENTS + self.now[row / N_AGENTS][1];
            (0..2).map(move |flag| f32::from(u8::from((sum + flag).is_multiple_of(2))))
        });
        TeamObs::assemble(ObsParts {
            shared: Some(matrix(shared.map(|x| x as f32).collect(), 3)),
            own: self.with_own.then(|| matrix(agents.map(|x| x as f32).collect(), 1)),
            mask: Some(matrix(flags.collect(), 2)),
            n_agents: N_AGENTS,
            actions_per_flag: 4,
        })
    }

    /// Actions that encode the step and agent of every row.
    fn actions(&self) -> Tensor<2> {
        let code = |row: usize| {
            let [episode, step] = self.now[row / N_AGENTS];
            (1000 * (row / N_AGENTS) + 100 * (episode % 5) + 10 * step + row % N_AGENTS) as f32
        };
        matrix((0..self.n_rows()).map(code).collect(), 1)
    }

    /// Environment 0 terminates after three steps, others are truncated after four.
    fn step(&mut self) -> StepBatch<TeamObs> {
        let reward = floats(&(self.actions() * 0.5));
        let mut next = self.clone();
        next.now.iter_mut().for_each(|now| now[1] += 1);
        let n_rows = self.n_rows();
        let flags = |of: &dyn Fn(usize) -> bool| {
            let flags = (0..n_rows).map(|row| f32::from(u8::from(of(row / N_AGENTS)))).collect();
            matrix(flags, 1).squeeze_dim(1)
        };
        let terminated = |env: usize| env == 0 && next.now[env][1] == 3;
        let truncated = |env: usize| env > 0 && next.now[env][1] == 4;
        let (terminated_rows, truncated_rows) = (flags(&terminated), flags(&truncated));
        let ended: Vec<bool> = (0..self.now.len()).map(|env| terminated(env) || truncated(env)).collect();
        self.now = next.now.clone();
        for (now, _) in self.now.iter_mut().zip(&ended).filter(|(_, ended)| **ended) {
            *now = [now[0] + 1, 0];
        }
        StepBatch {
            obs: self.obs(),
            successor: if ended.iter().any(|ended| *ended) { Successor::Rows(next.obs()) } else { Successor::Same },
            reward: matrix(reward, 1).squeeze_dim(1),
            terminated: terminated_rows,
            truncated: truncated_rows,
            elapsed: None,
        }
    }

    fn filled(&mut self, config: &ReplayConfig, steps: usize) -> ReplayBuffer<TeamObs, Tensor<2>> {
        let mut replay = ReplayBuffer::new(
            config,
            &spec_of_rows(self.n_rows(), INTERVAL),
            &self.obs(),
            &self.actions(),
            GAMMA,
            &device(),
        )
        .expect("sound");
        replay.begin(self.obs());
        self.push(&mut replay, steps);
        replay
    }

    fn push(&mut self, replay: &mut ReplayBuffer<TeamObs, Tensor<2>>, steps: usize) {
        for _ in 0..steps {
            let action = self.actions();
            let step = self.step();
            replay.push(action, &step).expect("it fits");
        }
    }
}

/// Checks a batch by its observations.
fn check(batch: &Transitions<TeamObs, Tensor<2>>, batch_size: usize, n_step: usize) {
    let n_rows = batch_size * N_AGENTS;
    assert_eq!(batch.obs.n_rows(), n_rows);
    let shared = |obs: &TeamObs| match &obs.shared {
        Some(Shared::PerRow(rows)) => floats(rows),
        other => panic!("agents come from different steps: {other:?}"),
    };
    let (obs, next) = (shared(&batch.obs), shared(&batch.next_obs));
    let (action, reward, discount) = (floats(&batch.action), floats(&batch.reward), floats(&batch.discount));
    let mask = floats(batch.obs.mask.as_ref().expect("there is one"));
    for row in 0..n_rows {
        let [env, episode, step] = [0, 1, 2].map(|i| obs[3 * row + i] as usize);
        let agent = row % N_AGENTS;
        let code = |step: usize| (1000 * env + 100 * (episode % 5) + 10 * step + agent) as f32;
        assert_eq!(action[row], code(step), "the action belongs to agent {agent} of environment {env}");
        assert_eq!(mask[2 * row], f32::from(u8::from((agent + step).is_multiple_of(2))));
        if let Some(own) = &batch.obs.own {
            assert_eq!(floats(own)[row], agent as f32);
        }
        let length = if env == 0 { 3 } else { 4 };
        // Nothing is bootstrapped from the successor of a termination.
        let ends = discount[row] == 0.0;
        let taken = if ends { length - step } else { next[3 * row + 2] as usize - step };
        let successor = [next[3 * row] as usize, next[3 * row + 1] as usize];
        assert!(ends || successor == [env, episode], "{successor:?} is no successor in {episode} of {env}");
        assert!(taken >= 1 && taken <= n_step && step + taken <= length);
        let sum: f64 = (0..taken).map(|k| GAMMA.powi(k as i32) * 0.5 * f64::from(code(step + k))).sum();
        assert!((f64::from(reward[row]) - sum).abs() < 1e-2, "{} instead of {sum}", reward[row]);
        let terminated = env == 0 && step + taken == 3;
        let expected = if terminated { 0.0 } else { GAMMA.powi(taken as i32) };
        assert_eq!(f64::from(discount[row]), expected);
    }
}

fn config(capacity: usize, n_step: usize) -> ReplayConfig {
    ReplayConfig { capacity, n_step, ..ReplayConfig::default() }
}

#[test]
fn every_agent_draws_its_own_transitions_before_and_after_the_ring_wraps() {
    for n_envs in [1, 2] {
        for with_own in [false, true] {
            for n_step in [1, 3] {
                let mut envs = Counting::new(n_envs, with_own);
                let mut replay = envs.filled(&config(20 * n_envs, n_step), 1);
                let mut rng = named_rng(1, "test", 0);
                for _ in 0..80 {
                    envs.push(&mut replay, 1);
                    check(&replay.sample(16, 0.0, &mut rng), 16, n_step);
                }
                // Each agent has a transition per start, in every environment.
                assert!(replay.n_transitions() <= 20 * n_envs && replay.n_transitions() >= 10 * n_envs);
            }
        }
    }
}

#[test]
fn agents_draw_apart_and_evenly() {
    let mut envs = Counting::new(2, false);
    let replay = envs.filled(&config(40, 1), 100);
    let n = replay.n_transitions();
    let rows: Vec<i64> = replay.sample(200 * n, 0.0, &mut named_rng(2, "test", 0)).rows.to_data().iter().collect();
    let mut counts = std::collections::HashMap::new();
    rows.iter().for_each(|row| *counts.entry(*row).or_insert(0.0f64) += 1.0);
    assert_eq!(counts.len(), n * N_AGENTS);
    let chi_squared: f64 = counts.values().map(|count| (count - 200.0).powi(2) / 200.0).sum();
    let freedom = (n * N_AGENTS) as f64;
    assert!((chi_squared - freedom).abs() < 4.0 * (2.0 * freedom).sqrt(), "chi-squared {chi_squared} of {freedom}");
    // Agents of one sample come from different steps: minibatches are independent.
    let together = rows.chunks(N_AGENTS).filter(|rows| rows.iter().all(|row| row / 3 == rows[0] / 3)).count();
    let expected = rows.len() as f64 / N_AGENTS as f64 / (n * n) as f64;
    assert!((together as f64) < 2.0 * expected + 30.0, "{together} of {} draws are one step", rows.len() / 3);
}

#[test]
fn v9_stored_experience_does_not_follow_buffers_that_are_written_over() {
    let mut envs = Counting::new(2, true);
    let mut replay = envs.filled(&config(40, 1), 0);
    let mut rng = named_rng(3, "test", 0);
    for _ in 0..60 {
        let mut action = envs.actions();
        let mut step = envs.step();
        replay.push(action.clone(), &step).expect("it fits");
        // The published code reuses one buffer: every stored step then has the latest values.
        let overwrite = |obs: &mut TeamObs| {
            if let Some(Shared::PerEnv(rows)) = &mut obs.shared {
                rows.inplace(|x| x * 0.0 - 77.0);
            }
            obs.own = obs.own.take().map(|x| x + 500.0);
            obs.mask = obs.mask.take().map(|x| x * 0.0);
        };
        overwrite(&mut step.obs);
        if let Successor::Rows(rows) = &mut step.successor {
            overwrite(rows);
        }
        action.inplace(|x| x - 5.0);
        step.reward.inplace(|x| x + 1000.0);
        step.terminated.inplace(|x| x * 0.0 + 1.0);
        check(&replay.sample(32, 0.0, &mut rng), 32, 1);
    }
}

#[test]
fn shared_numbers_take_memory_once() {
    // A GPU may store flags in more than a byte.
    let device = || brasa_device::open_named("cpu").expect("flex is a default feature");
    let wide = |n_agents: usize| {
        TeamObs::assemble(ObsParts {
            shared: Some(Tensor::zeros([1, 30], &device())),
            own: None,
            mask: Some(Tensor::ones([n_agents, 26], &device())),
            n_agents,
            actions_per_flag: 20,
        })
    };
    let bytes = |precision| {
        let config = ReplayConfig { capacity: 1000, precision, ..ReplayConfig::default() };
        let action = Tensor::zeros([30, 1], &device());
        ReplayBuffer::<TeamObs, Tensor<2>>::new(&config, &spec_of_rows(30, 1), &wide(30), &action, GAMMA, &device())
            .expect("sound")
            .bytes()
    };
    // Per step: 30 shared numbers, and for each of 30 agents 26 flags, an action and an outcome of four numbers.
    let rest = 30 * (26 + 4 + 16);
    assert_eq!(bytes(Precision::F32), 1000 * (4 * 30 + rest) + 30 * 16);
    assert_eq!(bytes(Precision::U8 { low: 0.0, high: 1.0 }), 1000 * (30 + rest) + 30 * 16);
    // Flat rows repeat the shared part.
    let obs = Obs { values: Tensor::zeros([30, 30], &device()), mask: Some(Tensor::ones([30, 520], &device())) };
    let flat = ReplayConfig { capacity: 30_000, ..ReplayConfig::default() };
    let flat =
        ReplayBuffer::new(&flat, &spec_of_rows(30, 1), &obs, &Tensor::<2>::zeros([30, 1], &device()), GAMMA, &device())
            .expect("sound");
    assert!(flat.bytes() > 10 * bytes(Precision::F32));
}

#[test]
fn a_resumed_team_goes_on_bit_for_bit() {
    let bits = |replay: &ReplayBuffer<TeamObs, Tensor<2>>, rng: &mut EnvRng| {
        let batch = replay.sample(8, 0.0, rng);
        [batch.obs.rows(), batch.next_obs.rows(), batch.action].map(|part| floats(&part))
    };
    for steps in [1, 11, 100] {
        for with_own in [false, true] {
            let mut envs = Counting::new(2, with_own);
            let mut one = envs.filled(&config(40, 2), steps);
            let saved = one.save();
            let mut other = Counting::new(2, with_own).filled(&config(40, 2), 17);
            other.load(&saved).expect("it fits");
            assert_eq!(other.save(), saved);
            let mut again = envs.clone();
            envs.push(&mut one, 5);
            again.push(&mut other, 5);
            let seed = named_rng(4, "test", 0).random();
            let [a, b] = [&one, &other].map(|replay| bits(replay, &mut named_rng(seed, "test", 0)));
            assert_eq!(a, b);
        }
    }
}

/// Environment 1 is truncated every four steps.
#[test]
fn truncations_sooner_than_the_specification_permits_are_refused() {
    for (interval, refused_at) in [(4, None), (5, Some(7)), (EnvSpec::NEVER, Some(3))] {
        let mut envs = Counting::new(2, true);
        let spec = spec_of_rows(envs.n_rows(), interval);
        let mut replay =
            ReplayBuffer::new(&config(400, 2), &spec, &envs.obs(), &envs.actions(), GAMMA, &device()).expect("sound");
        replay.begin(envs.obs());
        let refused = (0..20).find(|_| {
            let action = envs.actions();
            let pushed = replay.push(action, &envs.step());
            match replay.early_truncations() {
                Some(early) => floats(&early)[0] > 0.0,
                None => pushed.is_err(),
            }
        });
        assert_eq!(refused, refused_at, "interval {interval}");
    }
}

#[test]
fn priorities_of_a_team_are_refused() {
    let envs = Counting::new(1, false);
    let config = ReplayConfig { prioritized: Some(PrioritizedConfig::default()), ..config(40, 1) };
    let error =
        ReplayBuffer::new(&config, &spec_of_rows(envs.n_rows(), 1), &envs.obs(), &envs.actions(), GAMMA, &device())
            .expect_err("agents draw apart");
    assert_eq!(error.to_string(), "`prioritized` must be off for a team, whose agents sample separately, got 3 agents");
}
