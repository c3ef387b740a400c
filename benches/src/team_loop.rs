//! The whole training loop of a team: 30 users of the published network act, the network steps, all users learn.

use brasa::contracts::HostEnv;
use brasa::contracts::TeamObs;
use brasa::dqn::Dqn;
use brasa::nn::TeamQNetwork;
use brasa::train::{OffPolicy, OffPolicyConfig, Training};
use brasa::uara::{Candidates, Uara, UaraBatch, UaraConfig};
use burn::tensor::Device;

use crate::ENDLESS;
use crate::team_dqn::{TeamShape, settings, team_network};

/// Steps of an iteration.
pub const STEPS: u64 = 100;

/// A training run without an end.
pub type TeamTraining = OffPolicy<HostEnv<UaraBatch, TeamObs>, Dqn<TeamQNetwork>>;

/// One published network, in which users choose among the stations that cover them.
///
/// # Panics
/// Never: the settings are valid.
pub fn network(device: &Device) -> HostEnv<UaraBatch, TeamObs> {
    let config = UaraConfig { candidates: Candidates::Covered, ..UaraConfig::cly2020() };
    HostEnv::team(Uara::new(config).expect("valid").batch(0..1), device)
}

/// The learners of [`network`].
///
/// # Panics
/// Never: the settings are valid.
pub fn learners(shape: TeamShape, env: &HostEnv<UaraBatch, TeamObs>, device: &Device) -> Dqn<TeamQNetwork> {
    Dqn::new(team_network(shape, &env.spec().obs, device), settings()).expect("valid")
}

/// The loop; an iteration is [`STEPS`] steps, with an update of all agents after each.
///
/// # Panics
/// Never: the settings are valid.
pub fn training(shape: TeamShape, device: &Device) -> TeamTraining {
    let env = network(device);
    let mut off_policy =
        OffPolicyConfig { learning_starts: 64, batch_size: shape.batch, log_interval: STEPS, ..Default::default() };
    off_policy.replay.capacity = 1000;
    let learner = learners(shape, &env, device);
    OffPolicy::new(env, learner, off_policy, ENDLESS).expect("valid")
}

/// [`training`] after its first batch.
#[derive(Debug)]
pub struct TeamLoop(TeamTraining);

impl TeamLoop {
    /// Constructs the loop, after its first batch.
    pub fn new(shape: TeamShape, device: &Device) -> Self {
        let mut team = Self(training(shape, device));
        team.steps();
        team
    }

    /// Runs [`STEPS`] steps, with an update of all agents after each.
    ///
    /// # Panics
    /// Never: rewards are finite.
    pub fn steps(&mut self) {
        self.0.iterate().expect("rewards are finite");
    }
}
