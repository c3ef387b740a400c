//! The whole training loop of a team: 30 users of the published network act, the network steps, all users learn.

use brasa::core::HostEnv;
use brasa::core::TeamObs;
use brasa::dqn::Dqn;
use brasa::nn::TeamQNetwork;
use brasa::train::{OffPolicy, OffPolicyConfig, Run, Training};
use brasa::uara::{Candidates, Uara, UaraBatch, UaraConfig};
use burn::tensor::Device;

use crate::team_dqn::{TeamShape, settings, team_network};

/// Steps of one call of [`TeamLoop::steps`].
pub const STEPS: u64 = 100;

/// A training run without an end.
pub struct TeamLoop {
    training: OffPolicy<HostEnv<UaraBatch, TeamObs>, Dqn<TeamQNetwork>>,
}

impl TeamLoop {
    /// Constructs the loop, after its first batch.
    ///
    /// # Panics
    /// Never: the settings are valid.
    pub fn new(shape: TeamShape, device: &Device) -> Self {
        let config = UaraConfig { candidates: Candidates::Covered, ..UaraConfig::cly2020() };
        let env = HostEnv::team(Uara::new(config).expect("valid").batch(0..1), device);
        let network = team_network(shape, &env.spec().obs, device);
        let mut off_policy =
            OffPolicyConfig { learning_starts: 64, batch_size: shape.batch, log_interval: STEPS, ..Default::default() };
        off_policy.replay.capacity = 1000;
        let learner = Dqn::new(network, settings()).expect("valid");
        let run = Run { total_env_steps: u64::MAX, seed: 0 };
        let mut team = Self { training: OffPolicy::new(env, learner, off_policy, run).expect("valid") };
        team.steps();
        team
    }

    /// Runs [`STEPS`] steps, with an update of all agents after each.
    ///
    /// # Panics
    /// Never: rewards are finite.
    pub fn steps(&mut self) {
        self.training.iterate().expect("rewards are finite");
    }
}
