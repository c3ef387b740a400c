//! What a run starts from.

use brasa_buffers::{Compact, Rollout, Transitions};
use brasa_core::{ActorCritic, OffPolicyLearner, OnPolicyLearner, RandomWarmup, VecEnv};
use brasa_nn::Persist;

use crate::{OffPolicy, OffPolicyConfig, OnPolicy, Run, TrainError, Training};

/// The parts from which a [`TrainerBuilder`](crate::TrainerBuilder) creates its loop.
pub trait Start {
    /// The loop.
    type Training: Training;

    /// Creates the loop.
    ///
    /// # Errors
    /// If an environment or a setting cannot be used.
    fn start(self, run: Run) -> Result<Self::Training, TrainError>;
}

/// See [`Trainer::on_policy`](crate::Trainer::on_policy).
#[derive(Debug)]
pub struct OnPolicyStart<E, L> {
    pub(crate) env: E,
    pub(crate) learner: L,
}

/// See [`Trainer::off_policy`](crate::Trainer::off_policy).
#[derive(Debug)]
pub struct OffPolicyStart<E, L> {
    pub(crate) env: E,
    pub(crate) learner: L,
    pub(crate) config: OffPolicyConfig,
}

/// See [`Trainer::of`](crate::Trainer::of).
#[derive(Debug)]
pub struct Ready<T>(pub(crate) T);

impl<E, L> Start for OnPolicyStart<E, L>
where
    E: VecEnv,
    L: OnPolicyLearner<Batch = Rollout<E::Obs, E::Action>> + Persist,
    L::Policy: ActorCritic<Obs = E::Obs, Action = E::Action>,
{
    type Training = OnPolicy<E, L>;

    fn start(self, run: Run) -> Result<Self::Training, TrainError> {
        OnPolicy::new(self.env, self.learner, run)
    }
}

impl<E, L> Start for OffPolicyStart<E, L>
where
    E: VecEnv,
    E::Obs: Compact,
    E::Action: Compact,
    L: OffPolicyLearner<Batch = Transitions<E::Obs, E::Action>> + Persist,
    L::Policy: RandomWarmup<Obs = E::Obs, Action = E::Action>,
{
    type Training = OffPolicy<E, L>;

    fn start(self, run: Run) -> Result<Self::Training, TrainError> {
        OffPolicy::new(self.env, self.learner, self.config, run)
    }
}

impl<T: Training> Start for Ready<T> {
    type Training = T;

    fn start(self, _run: Run) -> Result<T, TrainError> {
        Ok(self.0)
    }
}
