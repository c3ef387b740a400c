//! A training run in memory: scenario, learner and loop, and their way into a checkpoint and back.

use std::path::Path;

use brasa::a2c::A2c;
use brasa::buffers::{Compact, Rollout, Transitions};
use brasa::core::{ActorCritic, HostEnv, Learner, Obs, ObsForm, OffPolicyLearner, TeamObs, UniformStart, VecEnv};
use brasa::device::open_named;
use brasa::dqn::{Dqn, EpsilonGreedy};
use brasa::env::wrappers::RunningMoments;
use brasa::env::{Choice, EnvBatch};
use brasa::nn::Persist;
use brasa::ppo::Ppo;
use brasa::sac::Sac;
use brasa::train::{
    Checkpoint, Counters, Iteration, OffPolicy, OffPolicyConfig, OnPolicy, OnPolicyConfig, Run, TrainError,
    restore_learner, take_checkpoint,
};
use burn::module::Module;
use burn::tensor::{Device, Tensor};

use crate::algorithm::{Algorithm, AnyPolicy, Spaces};
use crate::error::CliError;
use crate::experiment::Experiment;
use crate::scenario::Scenario;
use crate::value_network::ValueNetwork;

/// Everything that trains.
pub struct Session {
    pub scenario: Scenario,
    pub training: Box<dyn Training>,
    pub choice: Choice,
    pub device: Device,
}

/// A learner in its loop.
pub trait Training {
    /// One round of collecting and learning.
    fn iterate(&mut self) -> Result<Iteration, TrainError>;
    /// Whether all steps are taken.
    fn is_done(&self) -> bool;
    /// How far the run is.
    fn counters(&self) -> &Counters;
    /// Everything that going on needs.
    fn checkpoint(&self) -> Checkpoint;
    /// Goes on from a checkpoint that lies at `path`.
    fn restore(&mut self, checkpoint: &Checkpoint, path: &Path) -> Result<(), CliError>;
    /// The policy as it is now.
    fn policy(&self) -> AnyPolicy;
    /// What observations are normalized with.
    fn obs_moments(&self) -> Option<&RunningMoments>;
}

type Env<O = Obs> = HostEnv<Box<dyn EnvBatch>, O>;

impl Session {
    /// Builds a run from its experiment.
    pub fn new(experiment: &Experiment) -> Result<Self, CliError> {
        let train = &experiment.train;
        let device = open_named(&train.device)?;
        let scenario = Scenario::build(&experiment.scenario)?;
        let algorithm = experiment.algorithm();
        let (batch, choice) = scenario.training_envs(experiment)?;
        let graphs = scenario.graphs()?;
        let spaces = Spaces {
            batch: batch.as_ref(),
            graphs: graphs.as_ref(),
            pairs: scenario.pairs(),
            device: &device.clone().autodiff(),
            seed: train.seed,
        };
        let (total_env_steps, gamma, seed) = (train.total_env_steps, algorithm.gamma(), train.seed);
        let run = Run { total_env_steps, gamma, seed };
        let on_policy = |n_steps, gae_lambda| OnPolicyConfig { total_env_steps, n_steps, gamma, gae_lambda, seed };
        let training: Box<dyn Training> = match algorithm {
            Algorithm::Ppo { ppo, network } => {
                let network = spaces.actor_critic(&network)?;
                let (policy, settings) = (network.valid(), on_policy(ppo.n_steps, ppo.gae_lambda));
                let training = OnPolicy::new(HostEnv::new(batch, &device), &policy, settings, &device)?;
                Box::new(OnPolicyRun {
                    learner: Ppo::new(network, ppo, seed)?,
                    training,
                    policy: |learner| AnyPolicy::ActorCritic(learner.trainable().valid()),
                })
            }
            Algorithm::A2c { a2c, network } => {
                let network = spaces.actor_critic(&network)?;
                let (policy, settings) = (network.valid(), on_policy(a2c.n_steps, a2c.gae_lambda));
                let training = OnPolicy::new(HostEnv::new(batch, &device), &policy, settings, &device)?;
                Box::new(OnPolicyRun {
                    learner: A2c::new(network, a2c, seed)?,
                    training,
                    policy: |learner| AnyPolicy::ActorCritic(learner.trainable().valid()),
                })
            }
            Algorithm::Sac { sac, actor, critics, off_policy } => {
                let (actor, critics) = (spaces.squashed_actor(&actor)?, spaces.critics(&critics)?);
                let training = off_policy_loop(batch, &actor.valid(), off_policy, run, &device)?;
                Box::new(OffPolicyRun {
                    learner: Sac::new(actor, critics, sac, seed)?,
                    training,
                    policy: |learner| AnyPolicy::Squashed(learner.actor().valid()),
                })
            }
            Algorithm::Dqn { dqn, network: ValueNetwork::Team(network), off_policy } => {
                let network = spaces.team_q_network(&network)?;
                let policy = EpsilonGreedy::greedy(network.valid());
                let env: Env<TeamObs> = HostEnv::team(batch, &device);
                let training = OffPolicy::new(env, &policy, off_policy, run, &device)?;
                Box::new(OffPolicyRun {
                    learner: Dqn::new(network, dqn)?,
                    training,
                    policy: |learner| AnyPolicy::Team(EpsilonGreedy::greedy(learner.online().valid())),
                })
            }
            Algorithm::Dqn { dqn, network, off_policy } => {
                let network = spaces.q_network(&network)?.expect("the team's network is above");
                let policy = EpsilonGreedy::greedy(network.valid());
                let training = off_policy_loop(batch, &policy, off_policy, run, &device)?;
                Box::new(OffPolicyRun {
                    learner: Dqn::new(network, dqn)?,
                    training,
                    policy: |learner| AnyPolicy::Greedy(EpsilonGreedy::greedy(learner.online().valid())),
                })
            }
        };
        Ok(Self { scenario, training, choice, device })
    }
}

fn off_policy_loop<P>(
    batch: Box<dyn EnvBatch>,
    policy: &P,
    config: OffPolicyConfig,
    run: Run,
    device: &Device,
) -> Result<OffPolicy<Env>, CliError>
where
    P: UniformStart<Obs = Obs, Action = Tensor<2>>,
{
    let normalizes = batch.obs_moments().is_some();
    let training = OffPolicy::new(HostEnv::new(batch, device), policy, config, run, device)?;
    Ok(if normalizes { training.normalizing(Obs::normalized) } else { training })
}

struct OnPolicyRun<L> {
    learner: L,
    training: OnPolicy<Env>,
    policy: fn(&L) -> AnyPolicy,
}

struct OffPolicyRun<L, O: ObsForm + Compact = Obs> {
    learner: L,
    training: OffPolicy<Env<O>>,
    policy: fn(&L) -> AnyPolicy,
}

impl<L> Training for OnPolicyRun<L>
where
    L: Learner<Batch = Rollout<Obs, Tensor<2>>> + Persist,
    L::Policy: ActorCritic<Obs = Obs, Action = Tensor<2>>,
{
    fn iterate(&mut self) -> Result<Iteration, TrainError> {
        self.training.iterate(&mut self.learner)
    }
    fn is_done(&self) -> bool {
        self.training.is_done()
    }
    fn counters(&self) -> &Counters {
        self.training.counters()
    }
    fn checkpoint(&self) -> Checkpoint {
        let env = self.training.env();
        take_checkpoint(&self.learner, self.training.counters(), env.obs_moments(), env.save(), Vec::new())
    }
    fn restore(&mut self, checkpoint: &Checkpoint, path: &Path) -> Result<(), CliError> {
        let counters = restore_learner(&mut self.learner, checkpoint, path)?;
        Ok(self.training.restore(counters, &checkpoint.env)?)
    }
    fn policy(&self) -> AnyPolicy {
        (self.policy)(&self.learner)
    }
    fn obs_moments(&self) -> Option<&RunningMoments> {
        self.training.env().obs_moments()
    }
}

impl<L, O: ObsForm + Compact> Training for OffPolicyRun<L, O>
where
    L: OffPolicyLearner<Batch = Transitions<O, Tensor<2>>> + Persist,
    L::Policy: UniformStart<Obs = O, Action = Tensor<2>>,
{
    fn iterate(&mut self) -> Result<Iteration, TrainError> {
        self.training.iterate(&mut self.learner)
    }
    fn is_done(&self) -> bool {
        self.training.is_done()
    }
    fn counters(&self) -> &Counters {
        self.training.counters()
    }
    fn checkpoint(&self) -> Checkpoint {
        let (env, replay) = (self.training.env(), self.training.save_replay());
        take_checkpoint(&self.learner, self.training.counters(), env.obs_moments(), env.save(), replay)
    }
    fn restore(&mut self, checkpoint: &Checkpoint, path: &Path) -> Result<(), CliError> {
        let counters = restore_learner(&mut self.learner, checkpoint, path)?;
        Ok(self.training.restore(counters, &checkpoint.env, &checkpoint.replay)?)
    }
    fn policy(&self) -> AnyPolicy {
        (self.policy)(&self.learner)
    }
    fn obs_moments(&self) -> Option<&RunningMoments> {
        self.training.env().obs_moments()
    }
}
