//! A training run in memory: scenario, learner and loop, and their way into a checkpoint and back.

use std::path::Path;

use brasa::core::{HostEnv, VecEnv};
use brasa::device::open_named;
use brasa::env::wrappers::RunningMoments;
use brasa::env::{Choice, EnvBatch, named_rng};
use brasa::nn::MlpActorCritic;
use brasa::ppo::{Ppo, PpoState};
use brasa::train::{
    Checkpoint, Counters, OnPolicy, OnPolicyConfig, policy_arrays, restore_moments, restore_policy, restore_trainable,
    trainer_arrays,
};
use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use crate::error::CliError;
use crate::experiment::Experiment;
use crate::scenario::Scenario;

/// Everything that trains.
pub struct Session {
    pub scenario: Scenario,
    pub ppo: Ppo<MlpActorCritic>,
    pub training: OnPolicy<HostEnv<Box<dyn EnvBatch>>>,
    pub choice: Choice,
    pub device: Device,
}

/// The small part of a checkpoint.
#[derive(Serialize, Deserialize)]
struct State {
    counters: Counters,
    ppo: PpoState,
    optimizer_steps: u64,
}

impl Session {
    /// Builds a run from its experiment.
    pub fn new(experiment: &Experiment) -> Result<Self, CliError> {
        let train = &experiment.train;
        let device = open_named(&train.device)?;
        let scenario = Scenario::build(&experiment.scenario)?;
        let (batch, choice) = scenario.training_envs(experiment)?;
        let network = network(experiment, batch.as_ref(), &device.clone().autodiff())?;
        let ppo = Ppo::new(network, experiment.ppo.clone(), train.seed)?;
        let config = OnPolicyConfig {
            total_env_steps: train.total_env_steps,
            n_steps: experiment.ppo.n_steps,
            gamma: experiment.ppo.gamma,
            gae_lambda: experiment.ppo.gae_lambda,
            seed: train.seed,
        };
        let training = OnPolicy::new(HostEnv::new(batch, &device), &ppo.trainable().valid(), config, &device)?;
        Ok(Self { scenario, ppo, training, choice, device })
    }

    /// Everything that going on needs.
    pub fn checkpoint(&self) -> Checkpoint {
        let trainable = self.ppo.trainable();
        let counters = self.training.counters().clone();
        let env_steps = counters.env_steps;
        let state = State { counters, ppo: self.ppo.state(), optimizer_steps: trainable.state().steps() };
        Checkpoint {
            env_steps,
            policy: policy_arrays(trainable.module(), self.training.env().obs_moments()),
            trainer: trainer_arrays(trainable),
            env: self.training.env().save(),
            state: serde_json::to_value(state).expect("counters always serialize"),
        }
    }

    /// Goes on from a checkpoint that lies at `path`.
    pub fn restore(&mut self, checkpoint: &Checkpoint, path: &Path) -> Result<(), CliError> {
        let state: State = serde_json::from_value(checkpoint.state.clone())
            .map_err(|error| CliError::Failed(format!("{} does not fit: {error}", path.display())))?;
        restore_trainable(self.ppo.trainable_mut(), checkpoint, state.optimizer_steps, path)?;
        self.ppo.set_state(state.ppo);
        Ok(self.training.restore(state.counters, &checkpoint.env)?)
    }
}

/// The policy of a checkpoint and the moments that its observations are normalized with.
pub fn load_policy(
    experiment: &Experiment,
    scenario: &Scenario,
    checkpoint: &Checkpoint,
    path: &Path,
    device: &Device,
) -> Result<(MlpActorCritic, Option<RunningMoments>), CliError> {
    let batch = scenario.eval_envs(1, None)?;
    let network = network(experiment, batch.as_ref(), device)?;
    Ok((restore_policy(network, checkpoint, path)?, restore_moments(checkpoint, path)?))
}

fn network(experiment: &Experiment, batch: &dyn EnvBatch, device: &Device) -> Result<MlpActorCritic, CliError> {
    let rng = &mut named_rng(experiment.train.seed, "weights", 0);
    let (obs_space, action_space) = (batch.obs_space(), batch.action_space());
    Ok(MlpActorCritic::new(&experiment.network, obs_space, action_space, device, rng)?)
}
