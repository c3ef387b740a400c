//! Independent deep Q-learners in one batch: 30 users of a cellular network with 520 options each.
//!
//! The environment is a stub: the state is random bits, and the stations that cover a user are sampled once. The
//! benches measure learning alone.

use brasa::buffers::{ReplayBuffer, ReplayConfig};
use brasa::contracts::{Explore, Learner, ObsForm, ObsParts, Policy, Progress, StepBatch, Successor, TeamObs};
use brasa::dqn::{Dqn, DqnConfig};
use brasa::env::{EnvRng, EnvSpec, Space, named_rng};
use brasa::nn::{RmsPropConfig, RmsPropStyle, Sharing, TeamQNetwork, TeamQNetworkConfig, draw_noise};
use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;

/// Users.
pub const AGENTS: usize = 30;
/// Stations.
pub const STATIONS: usize = 26;
/// Channels of each station, the options of a user at it.
pub const CHANNELS: usize = 20;

/// Settings of the learners.
#[derive(Debug, Clone, Copy)]
pub struct TeamShape {
    /// Rows per agent and update.
    pub batch: usize,
    /// The weights that agents share.
    pub sharing: Sharing,
    /// Whether value and advantages have separate heads.
    pub dueling: bool,
}

impl TeamShape {
    /// Independent learners with batches of 32, as in the published code.
    pub const PUBLISHED: Self = Self { batch: 32, sharing: Sharing::Independent, dueling: false };
}

/// A learner with a replay buffer of a thousand random steps.
#[derive(Debug)]
pub struct TeamBench {
    learner: Dqn<TeamQNetwork>,
    replay: ReplayBuffer<TeamObs, Tensor<2>>,
    mask: Vec<f32>,
    obs: TeamObs,
    shape: TeamShape,
    rng: EnvRng,
    device: Device,
    steps: u64,
}

impl TeamBench {
    /// Fills the replay buffer.
    ///
    /// # Panics
    /// Never: the settings are valid.
    pub fn new(shape: TeamShape, device: &Device) -> Self {
        let obs_space = Space::uniform_box(0.0, 1.0, (0..AGENTS).map(|i| format!("satisfied_{i}")));
        let learner = Dqn::new(team_network(shape, &obs_space, device), settings()).expect("valid");

        let mut rng = named_rng(0, "bench", 0);
        // The two macro cells reach about two thirds of the users, a small cell one in ten.
        let covers = |station: usize| if station < 2 { 0.5 } else { 0.015 };
        let mut mask = vec![0.0; AGENTS * STATIONS];
        for (i, flag) in mask.iter_mut().enumerate() {
            *flag = f32::from(u8::from(rng.random::<f64>() < covers(i % STATIONS)));
        }
        // Every user has a station.
        for user in mask.chunks_mut(STATIONS).filter(|user| user.iter().all(|flag| *flag == 0.0)) {
            user[0] = 1.0;
        }
        let obs = observed(&mask, &mut rng, device);
        let config = ReplayConfig { capacity: 1000, ..ReplayConfig::default() };
        let action = Tensor::zeros([AGENTS, 1], device);
        let spec = EnvSpec {
            truncation_interval: EnvSpec::NEVER,
            ..EnvSpec::new(obs_space, Space::Discrete(STATIONS), AGENTS)
        };
        let mut replay = ReplayBuffer::new(&config, &spec, &obs, &action, 0.9, device).expect("valid");
        replay.begin(obs.clone());
        let mut bench = Self { learner, replay, mask, obs, shape, rng, device: device.clone(), steps: 0 };
        for _ in 0..1000 {
            bench.act();
        }
        bench
    }

    /// Computes the actions of every agent, reads them, and stores a step.
    ///
    /// # Panics
    /// Never: a step has the shape of every other.
    pub fn act(&mut self) {
        let policy = self.learner.policy(Progress::new(0, 1));
        let noise = draw_noise(policy.noise(), AGENTS, &mut self.rng, &self.device);
        let (action, ()) = policy.act(self.obs.clone(), Explore::Sample(noise));
        let chosen = action.clone().into_data();
        let reward: Vec<f32> =
            chosen.iter::<f32>().map(|option| if option % 3.0 == 0.0 { 1.0 } else { -1.0 }).collect();
        let column = |values: Vec<f32>| Tensor::<1>::from_data(TensorData::new(values, [AGENTS]), &self.device);
        let obs = observed(&self.mask, &mut self.rng, &self.device);
        let step = StepBatch {
            obs: obs.clone(),
            successor: Successor::Same,
            reward: column(reward),
            terminated: column(vec![0.0; AGENTS]),
            truncated: column(vec![0.0; AGENTS]),
            elapsed: None,
        };
        self.replay.push(action, &step).expect("no row is truncated");
        self.obs = obs;
        self.steps += 1;
    }

    /// The learner and its replay buffer.
    pub fn into_parts(self) -> (Dqn<TeamQNetwork>, ReplayBuffer<TeamObs, Tensor<2>>) {
        (self.learner, self.replay)
    }

    /// Samples a batch of every agent.
    pub fn sample(&mut self) {
        std::hint::black_box(self.replay.sample(self.shape.batch, 0.0, &mut self.rng));
    }

    /// Samples a batch of every agent and updates the learners.
    pub fn learn(&mut self) {
        let batch = self.replay.sample(self.shape.batch, 0.0, &mut self.rng);
        self.learner.update(batch, Progress::new(0, 1));
    }
}

/// Networks of all agents.
pub(crate) fn team_network(shape: TeamShape, obs_space: &Space, device: &Device) -> TeamQNetwork {
    let action_space = Space::Discrete(STATIONS * CHANNELS);
    let network = TeamQNetworkConfig { sharing: shape.sharing, dueling: shape.dueling, ..Default::default() };
    let (autodiff, rng) = (device.clone().autodiff(), &mut named_rng(0, "weights", 0));
    TeamQNetwork::new(&network, AGENTS, obs_space, &action_space, &autodiff, rng).expect("valid")
}

/// Settings of the learners.
pub(crate) fn settings() -> DqnConfig {
    let optimizer =
        RmsPropConfig { epsilon: 1e-8, momentum: 0.005, style: RmsPropStyle::Pytorch, ..RmsPropConfig::default() };
    DqnConfig {
        gamma: 0.9,
        target_update_interval: 50,
        max_grad_norm: Some(1.0),
        optimizer: optimizer.into(),
        ..DqnConfig::default()
    }
}

fn observed(mask: &[f32], rng: &mut EnvRng, device: &Device) -> TeamObs {
    let bits: Vec<f32> = (0..AGENTS).map(|_| f32::from(u8::from(rng.random::<f64>() < 0.5))).collect();
    TeamObs::assemble(ObsParts {
        shared: Some(Tensor::from_data(TensorData::new(bits, [1, AGENTS]), device)),
        own: None,
        mask: Some(Tensor::from_data(TensorData::new(mask.to_vec(), [AGENTS, STATIONS]), device)),
        n_agents: AGENTS,
        actions_per_flag: CHANNELS,
    })
}
