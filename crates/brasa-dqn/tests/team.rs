//! Batched learning of a team equals independent learners; targets respect episode ends and masks.
#![allow(clippy::expect_used)]

use brasa_buffers::{ReplayBuffer, ReplayConfig, Transitions};
use brasa_core::env::{EnvRng, Space, named_rng};
use brasa_core::{
    ActionValues, Learner, NoiseDistribution, NoiseSpec, Obs, ObsForm, ObsParts, OffPolicyLearner, Progress, Rows,
    Schedule, Shared, StepBatch, Successor, TeamObs,
};
use brasa_dqn::{Dqn, DqnConfig, td_target};
use brasa_nn::{
    AdamConfig, Arrays, Clip, OptimizerConfig, Persist, QNetwork, QNetworkConfig, RmsPropConfig, RmsPropStyle, Saved,
    Sharing, Step, TeamQNetwork, TeamQNetworkConfig, Trainable, draw_noise, named_params,
};
use brasa_test::golden::{close, matrix, vector};
use brasa_test::{device, spec_of_rows};
use burn::tensor::{Int, Tensor};

const N_AGENTS: usize = 4;
const WIDTH: usize = 5;
const FLAGS: usize = 3;
const SPAN: usize = 4;
const BATCH: usize = 8;
const LEARNING_RATE: f64 = 3e-3;

fn floats<const D: usize>(tensor: &Tensor<D>) -> Vec<f32> {
    tensor.to_data().iter::<f32>().collect()
}

fn noise(n_rows: usize, width: usize, rng: &mut EnvRng) -> Tensor<2> {
    draw_noise(NoiseSpec { width, distribution: NoiseDistribution::Uniform, resample_every: 1 }, n_rows, rng, &device())
}

fn whole(numbers: Tensor<2>, end: usize) -> Tensor<2> {
    (numbers * end as f64).floor().clamp_max(end as f64 - 1.0)
}

fn obs_of(shared: Tensor<2>, mask: Tensor<2>, n_agents: usize) -> TeamObs {
    TeamObs { shared: Some(Shared::PerRow(shared)), own: None, mask: Some(mask), n_agents, actions_per_flag: SPAN }
}

/// A minibatch of every agent; the scale of rewards, and so of gradients, differs between agents.
fn team_batch(rng: &mut EnvRng) -> Transitions<TeamObs, Tensor<2>> {
    let n = BATCH * N_AGENTS;
    let mask = |rng: &mut EnvRng| {
        let flags = noise(n, FLAGS, rng).greater_elem(0.5).float();
        // The last flag is always legal.
        Tensor::cat(vec![flags.slice([0..n, 0..FLAGS - 1]), Tensor::ones([n, 1], &device())], 1)
    };
    let mut obs = || obs_of(noise(n, WIDTH, rng) * 2.0 - 1.0, mask(rng), N_AGENTS);
    let (obs, next_obs) = (obs(), obs());
    let size = vector(&(0..n).map(|row| [0.02, 0.3, 1.0, 3.0][row % N_AGENTS]).collect::<Vec<_>>(), &device());
    Transitions {
        obs,
        action: whole(noise(n, 1, rng), FLAGS * SPAN),
        reward: (noise(n, 1, rng).squeeze_dim(1) * 2.0 - 1.0) * size,
        next_obs,
        discount: noise(n, 1, rng).squeeze_dim(1).greater_elem(0.2).float() * 0.9,
        weight: None,
        sequences: None,
        rows: Tensor::<1, Int>::arange(0..n as i64, &device()),
    }
}

/// The rows of one agent.
fn share(batch: &Transitions<TeamObs, Tensor<2>>, agent: usize) -> Transitions<TeamObs, Tensor<2>> {
    let rows: Vec<i32> = (0..BATCH).map(|i| (i * N_AGENTS + agent) as i32).collect();
    let rows = Tensor::<1, Int>::from_ints(rows.as_slice(), &device());
    let obs = |obs: &TeamObs| TeamObs { n_agents: 1, ..obs.select(rows.clone()) };
    let column = |values: &Tensor<1>| values.clone().select(0, rows.clone());
    Transitions {
        obs: obs(&batch.obs),
        action: Rows::select(&batch.action, rows.clone()),
        reward: column(&batch.reward),
        next_obs: obs(&batch.next_obs),
        discount: column(&batch.discount),
        weight: None,
        sequences: None,
        rows: rows.clone(),
    }
}

/// The same rows as flat observations for a single-agent network.
fn flat(batch: Transitions<TeamObs, Tensor<2>>) -> Transitions<Obs, Tensor<2>> {
    let obs = |obs: &TeamObs| Obs { values: obs.rows(), mask: obs.legal() };
    let Transitions { action, reward, discount, weight, rows, .. } = batch;
    Transitions {
        obs: obs(&batch.obs),
        next_obs: obs(&batch.next_obs),
        action,
        reward,
        discount,
        weight,
        rows,
        sequences: None,
    }
}

fn spaces() -> (Space, Space) {
    (Space::uniform_box(-1.0, 1.0, (0..WIDTH).map(|i| i.to_string())), Space::Discrete(FLAGS * SPAN))
}

fn team(n_agents: usize, dueling: bool) -> TeamQNetwork {
    let config = TeamQNetworkConfig { hidden: vec![16, 8], dueling, ..TeamQNetworkConfig::default() };
    let (obs_space, action_space) = spaces();
    let (device, rng) = (device().autodiff(), &mut named_rng(0, "weights", 0));
    TeamQNetwork::new(&config, n_agents, &obs_space, &action_space, &device, rng).expect("valid")
}

fn settings(optimizer: OptimizerConfig, max_grad_norm: Option<f64>) -> DqnConfig {
    DqnConfig {
        gamma: 0.9,
        target_update_interval: 7,
        learning_rate: Schedule::Constant(LEARNING_RATE),
        max_grad_norm,
        optimizer,
        ..DqnConfig::default()
    }
}

/// The arrays of one learner of several, with the names and shapes of a separate learner. Arrays of a single-agent
/// network have no dimension of learners.
fn alone(arrays: &Arrays, agent: usize, flat: bool) -> Arrays {
    let cut = |(name, (shape, values)): (&String, &(Vec<usize>, Vec<f32>))| {
        let n = values.len() / N_AGENTS;
        let mut shape = shape.clone();
        shape[0] = 1;
        if flat {
            shape.remove(0);
        }
        (name.clone(), (shape, values[agent * n..(agent + 1) * n].to_vec()))
    };
    arrays.iter().filter(|(name, _)| !name.contains("optimizer")).map(cut).collect()
}

/// The initial state of one separate learner, with an empty optimizer state.
fn start(saved: &Saved, own: Saved, agent: usize, flat: bool) -> Saved {
    let mut trainer = own.trainer.clone();
    trainer.extend(alone(&saved.trainer, agent, flat));
    Saved { policy: alone(&saved.policy, agent, flat), trainer, numbers: own.numbers }
}

fn gap(a: &Arrays, b: &Arrays) -> f32 {
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    let pairs = a.iter().flat_map(|(name, (_, values))| values.iter().zip(&b[name].1));
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// The weights of separate learners after 100 updates from the weights in `saved`.
fn independent(saved: &Saved, config: &DqnConfig, dueling: bool) -> Vec<Arrays> {
    (0..N_AGENTS)
        .map(|agent| {
            let mut learner = Dqn::new(team(1, dueling), config.clone()).expect("valid");
            learner.load(&start(saved, learner.save(), agent, false)).expect("names and shapes agree");
            let rng = &mut named_rng(3, "batches", 0);
            for _ in 0..100 {
                learner.update(share(&team_batch(rng), agent), Progress::new(0, 1));
            }
            learner.save().policy
        })
        .collect()
}

/// 100 updates with explicit operations, with gradients clipped for `n_learners`.
fn by_hand(config: &DqnConfig, limit: f64, n_learners: usize) -> Arrays {
    let mut online = Trainable::new(team(N_AGENTS, false), config.optimizer).expect("valid");
    let mut target = online.valid();
    let rng = &mut named_rng(3, "batches", 0);
    for update in 1..=100 {
        let batch = team_batch(rng);
        let choice = online.valid().best(batch.next_obs.clone()).0;
        let y = td_target(batch.reward, batch.discount, target.values_of(batch.next_obs, choice));
        let error = online.module().values_of(batch.obs, batch.action) - y;
        let cut = error.clone().inner().clamp(-1.0, 1.0);
        let loss = (error * cut.clone() - cut.square() * 0.5).mean() * N_AGENTS as f64;
        let clip = Some(Clip::Norm { limit, n_learners });
        online.step(&loss, Step { learning_rate: LEARNING_RATE, clip });
        if update % 7 == 0 {
            target = online.valid();
        }
    }
    let params = named_params(online.module()).into_iter();
    params.map(|param| (format!("network.{}", param.name), (param.shape, param.values))).collect()
}

fn optimizers() -> [OptimizerConfig; 2] {
    let rms_prop = RmsPropConfig { epsilon: 1e-8, momentum: 0.005, style: RmsPropStyle::Pytorch, ..Default::default() };
    [rms_prop.into(), AdamConfig::off_policy().into()]
}

#[test]
fn v11_batched_agents_equal_independent_learners() {
    let limit = 0.05;
    for optimizer in optimizers() {
        for dueling in [false, true] {
            let config = settings(optimizer, Some(limit));
            let mut together = Dqn::new(team(N_AGENTS, dueling), config.clone()).expect("valid");
            let saved = together.save();
            let rng = &mut named_rng(3, "batches", 0);
            for _ in 0..100 {
                together.update(team_batch(rng), Progress::new(0, 1));
            }
            let learned = together.save().policy;
            let apart = independent(&saved, &config, dueling);
            for (agent, apart) in apart.iter().enumerate() {
                let gap = gap(&alone(&learned, agent, false), apart);
                assert!(gap < 1e-5, "{optimizer:?}, dueling {dueling}, agent {agent}: {gap}");
                assert!(self::gap(apart, &alone(&saved.policy, agent, false)) > 0.05, "agent {agent} has not learned");
            }
            if dueling {
                continue;
            }

            // The limit has an effect: without it every agent with large rewards has other weights.
            let free = independent(&saved, &settings(optimizer, None), dueling);
            let acts: Vec<f32> = (0..N_AGENTS).map(|agent| gap(&free[agent], &apart[agent])).collect();
            assert!(acts[1..].iter().all(|gap| *gap > 1e-3), "{acts:?}");

            // The same updates with one global norm give other weights.
            assert!(gap(&by_hand(&config, limit, N_AGENTS), &learned) < 1e-5, "the updates are written out rightly");
            let coupled = by_hand(&config, limit, 1);
            let gaps: Vec<f32> = (0..N_AGENTS)
                .map(|agent| gap(&alone(&coupled, agent, false), &alone(&learned, agent, false)))
                .collect();
            assert!(gaps.iter().all(|gap| *gap > 1e-3), "a global norm couples agents: {gaps:?}");
        }
    }
}

#[test]
fn v11_a_team_of_one_equals_the_single_agent_network() {
    for optimizer in optimizers() {
        let config = settings(optimizer, Some(0.05));
        let saved = Dqn::new(team(N_AGENTS, false), config.clone()).expect("valid").save();
        let apart = independent(&saved, &config, false);
        for (agent, team) in apart.iter().enumerate() {
            let network = QNetworkConfig { hidden: vec![16, 8], ..QNetworkConfig::default() };
            let (obs_space, action_space) = spaces();
            let (device, rng) = (device().autodiff(), &mut named_rng(0, "weights", 0));
            let network = QNetwork::new(&network, &obs_space, &action_space, &device, rng).expect("valid");
            let mut learner = Dqn::new(network, config.clone()).expect("valid");
            learner.load(&start(&saved, learner.save(), agent, true)).expect("names and shapes agree");
            let rng = &mut named_rng(3, "batches", 0);
            for _ in 0..100 {
                learner.update(flat(share(&team_batch(rng), agent)), Progress::new(0, 1));
            }
            // Sums have another order, and Adam and RMSprop amplify the rounding errors of tiny gradients.
            let gap = gap(&learner.save().policy, team);
            assert!(gap < 1e-4, "{optimizer:?}, agent {agent}: {gap}");
        }
    }
}

/// Networks without hidden layers and with weights of 0: their values are the biases, `[agents, actions]`.
fn constant(values: &[f32], n_agents: usize, sharing: Sharing) -> TeamQNetwork {
    let config = TeamQNetworkConfig { hidden: vec![], sharing, ..TeamQNetworkConfig::default() };
    let n_actions = values.len() / n_agents;
    let obs_space = Space::uniform_box(-1.0, 1.0, (0..1).map(|i| i.to_string()));
    let (device, rng) = (device().autodiff(), &mut named_rng(0, "weights", 0));
    let network = TeamQNetwork::new(&config, n_agents, &obs_space, &Space::Discrete(n_actions), &device, rng);
    let mut params = named_params(network.as_ref().expect("valid"));
    for param in &mut params {
        param.values = match param.name.as_str() {
            "head.bias" => values.to_vec(),
            _ => vec![0.0; param.values.len()],
        };
    }
    brasa_nn::load_params(network.expect("valid"), &params).expect("names and shapes are its own")
}

/// A learner whose online and target networks are the given constants.
fn hand_set(online: &[f32], target: &[f32], n_agents: usize, double: bool) -> Dqn<TeamQNetwork> {
    let config = DqnConfig { double, gamma: 0.5, ..DqnConfig::default() };
    let mut learner = Dqn::new(constant(online, n_agents, Sharing::Trunk), config).expect("valid");
    let mut saved = learner.save();
    for (name, (_, values)) in &mut saved.trainer {
        if name == "target.head.bias" {
            *values = target.to_vec();
        }
    }
    learner.load(&saved).expect("names and shapes are its own");
    learner
}

#[test]
fn v13_double_targets_are_those_worked_out_by_hand() {
    // Two agents with two actions each. Agent 0 prefers action 1, its target network action 0; agent 1 vice versa.
    let (online, target) = ([1.0, 2.0, 4.0, 3.0], [5.0, 3.0, 6.0, 7.0]);
    for (double, mask, expected) in [
        // y = r + 0.5 Q^t(s', argmax Q): 1 + 0.5 * 3, 2 + 0.5 * 6.
        (true, [1.0, 1.0, 1.0, 1.0], [2.5, 5.0]),
        // y = r + 0.5 max Q^t: 1 + 0.5 * 5, 2 + 0.5 * 7.
        (false, [1.0, 1.0, 1.0, 1.0], [3.5, 5.5]),
        // V18: the favorite of agent 0 and the largest target of agent 1 are illegal.
        (true, [1.0, 0.0, 1.0, 0.0], [3.5, 5.0]),
        (false, [0.0, 1.0, 1.0, 0.0], [2.5, 5.0]),
    ] {
        let mut learner = hand_set(&online, &target, 2, double);
        let obs = |mask: &[f32]| TeamObs {
            shared: Some(Shared::PerRow(matrix(&[0.0, 0.0], 2, &device()))),
            own: None,
            mask: Some(matrix(mask, 2, &device())),
            n_agents: 2,
            actions_per_flag: 1,
        };
        let batch = Transitions {
            obs: obs(&[1.0; 4]),
            action: matrix(&[0.0, 1.0], 2, &device()),
            reward: vector(&[1.0, 2.0], &device()),
            next_obs: obs(&mask),
            discount: vector(&[0.5, 0.5], &device()),
            weight: None,
            sequences: None,
            rows: Tensor::<1, Int>::arange(0..2, &device()),
        };
        learner.update(batch, Progress::new(0, 1));
        // The options taken are worth 1 and 3.
        let error: Vec<f64> = learner.td_error().into_data().iter::<f64>().collect();
        let expected = [(1.0f64 - expected[0]).abs(), (3.0f64 - expected[1]).abs()];
        close(&format!("double {double}, {mask:?}"), error, expected, 1e-6);
    }
}

#[test]
fn v10_values_end_where_episodes_terminate_and_go_on_where_they_are_cut() {
    // One environment of two agents; the shared number is the step. It is cut after two steps, then terminates after one.
    let obs = |step: f32| {
        TeamObs::assemble(ObsParts {
            shared: Some(matrix(&[step], 1, &device())),
            own: None,
            mask: None,
            n_agents: 2,
            actions_per_flag: 1,
        })
    };
    let config = ReplayConfig { capacity: 10, ..ReplayConfig::default() };
    let action = matrix(&[0.0, 0.0], 2, &device());
    let mut replay =
        ReplayBuffer::new(&config, &spec_of_rows(2, 1), &obs(0.0), &action, 0.5, &device()).expect("sound");
    replay.begin(obs(0.0));
    let both = |value: f32| vector(&[value, value], &device());
    for (next, after, terminated, truncated) in [(1.0, 1.0, 0.0, 0.0), (2.0, 5.0, 0.0, 1.0), (6.0, 0.0, 1.0, 0.0)] {
        let step = StepBatch {
            obs: obs(after),
            successor: if next != after { Successor::Rows(obs(next)) } else { Successor::Same },
            reward: vector(&[1.0, 10.0], &device()),
            terminated: both(terminated),
            truncated: both(truncated),
            elapsed: None,
        };
        replay.push(action.clone(), &step).expect("it fits");
    }
    let batch = replay.sample(200, 0.0, &mut named_rng(1, "test", 0));
    // Networks that say `10 * step` for option 0 and less for option 1.
    let mut learner = hand_set(&[0.0, -1.0, 0.0, -1.0], &[0.0, -1.0, 0.0, -1.0], 2, true);
    let mut saved = learner.save();
    for (name, (_, values)) in saved.policy.iter_mut().chain(&mut saved.trainer) {
        if name.ends_with("head.weight") {
            *values = vec![10.0; 4];
        }
    }
    learner.load(&saved).expect("names and shapes are its own");
    let (now, next) = (floats(&batch.obs.rows()), floats(&batch.next_obs.rows()));
    learner.update(batch, Progress::new(0, 1));
    let mut seen = [0; 3];
    for (row, error) in floats(&learner.td_error()).into_iter().enumerate() {
        let reward = [1.0, 10.0][row % 2];
        let y = match (now[row], next[row]) {
            (0.0, 1.0) => (0, reward + 0.5 * 10.0),
            // Cut: the value of the observation before the reset counts, not that of the next episode's start.
            (1.0, 2.0) => (1, reward + 0.5 * 20.0),
            // Terminated: the next observation does not count, whichever it is.
            (5.0, _) => (2, reward),
            other => panic!("no such transition: {other:?}"),
        };
        seen[y.0] += 1;
        let expected = (10.0 * now[row] - y.1).abs();
        assert!((error - expected).abs() < 1e-4, "row {row}: {error} instead of {expected}");
    }
    assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
}
