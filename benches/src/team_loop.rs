//! The whole loop of a team: 30 users of the published network act, the network steps, all of them learn.

use brasa::core::HostEnv;
use brasa::core::TeamObs;
use brasa::dqn::{Dqn, EpsilonGreedy};
use brasa::nn::TeamQNetwork;
use brasa::train::{OffPolicy, OffPolicyConfig, Run};
use brasa::uara::{Candidates, Uara, UaraBatch, UaraConfig};
use burn::module::Module;
use burn::tensor::Device;

use crate::team_dqn::{TeamShape, settings, team_network};

/// Steps of one call of [`TeamLoop::steps`].
pub const STEPS: u64 = 100;

/// A training run that never ends.
pub struct TeamLoop {
    learner: Dqn<TeamQNetwork>,
    training: OffPolicy<HostEnv<UaraBatch, TeamObs>>,
}

impl TeamLoop {
    /// Sets the loop up, past the first batch.
    ///
    /// # Panics
    /// Never: the settings are valid.
    pub fn new(shape: TeamShape, device: &Device) -> Self {
        let config = UaraConfig { candidates: Candidates::Covered, ..UaraConfig::cly2020() };
        let env = HostEnv::team(Uara::new(config).expect("valid").batch(0..1), device);
        let network = team_network(shape, &env.spec().obs, device);
        let policy = EpsilonGreedy::greedy(network.valid());
        let mut off_policy =
            OffPolicyConfig { learning_starts: 64, batch_size: shape.batch, log_interval: STEPS, ..Default::default() };
        off_policy.replay.capacity = 1000;
        let dqn = settings();
        let run = Run { total_env_steps: u64::MAX, gamma: dqn.gamma, seed: 0 };
        let training = OffPolicy::new(env, &policy, off_policy, run, device).expect("valid");
        let mut team = Self { learner: Dqn::new(network, dqn).expect("valid"), training };
        team.steps();
        team
    }

    /// Goes on for [`STEPS`] steps, with an update of all agents after each.
    ///
    /// # Panics
    /// Never: rewards are finite.
    pub fn steps(&mut self) {
        self.training.iterate(&mut self.learner).expect("rewards are finite");
    }
}
