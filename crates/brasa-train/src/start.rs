//! What a run starts from.

use brasa_buffers::{Compact, Rollout, Transitions};
use brasa_core::{ActorCritic, OffPolicyLearner, OnPolicyLearner, RandomWarmup, VecEnv};
use brasa_nn::Persist;

use crate::{OffPolicy, OffPolicyConfig, OnPolicy, Run, TrainError, Training};

/// The parts from which a [`TrainerBuilder`](crate::TrainerBuilder) creates its loop.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_train::{OnPolicy, Run, Start, TrainError, Training};
///
/// /// PPO on `n_envs` environments.
/// struct Recipe {
///     n_envs: usize,
/// }
///
/// impl Start for Recipe {
///     type Training = OnPolicy<CartPoles, FixedPpo>;
///
///     fn start(self, run: Run) -> Result<Self::Training, TrainError> {
///         OnPolicy::new(cart_poles(self.n_envs), ppo(), run)
///     }
/// }
///
/// let training = Recipe { n_envs: 4 }.start(Run { total_env_steps: 64, seed: 0 })?;
/// assert_eq!(training.spec().n_agents, 1);
/// # Ok::<(), brasa_train::TrainError>(())
/// ```
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
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_train::{OnPolicyStart, Trainer, TrainerBuilder, Training};
///
/// let builder: TrainerBuilder<OnPolicyStart<CartPoles, FixedPpo>> = Trainer::on_policy(cart_poles(4), ppo());
/// let trainer = builder.total_env_steps(64).build()?;
/// assert_eq!(trainer.training().run().total_env_steps, 64);
/// # Ok::<(), brasa_train::TrainError>(())
/// ```
#[derive(Debug)]
pub struct OnPolicyStart<E, L> {
    pub(crate) env: E,
    pub(crate) learner: L,
}

/// See [`Trainer::off_policy`](crate::Trainer::off_policy).
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_train::{OffPolicyConfig, OffPolicyStart, Trainer, TrainerBuilder, Training};
///
/// let config = OffPolicyConfig { learning_starts: 16, ..Default::default() };
/// # let replay = brasa_buffers::ReplayConfig { capacity: 256, ..Default::default() };
/// # let config = OffPolicyConfig { replay, ..config };
/// let builder: TrainerBuilder<OffPolicyStart<Pendulums, FixedTd3>> = Trainer::off_policy(pendulums(4), td3(), config);
/// let trainer = builder.total_env_steps(64).build()?;
/// assert!(trainer.training().replays());
/// # Ok::<(), brasa_train::TrainError>(())
/// ```
#[derive(Debug)]
pub struct OffPolicyStart<E, L> {
    pub(crate) env: E,
    pub(crate) learner: L,
    pub(crate) config: OffPolicyConfig,
}

/// See [`Trainer::of`](crate::Trainer::of).
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_train::{Ending, OnPolicy, Run, Trainer};
///
/// // A loop with a setting that `Trainer::on_policy` does not have.
/// let training = OnPolicy::new(cart_poles(4), ppo(), Run { total_env_steps: 64, seed: 0 })?.pipelined(true);
/// let mut trainer = Trainer::of(training).build()?;
/// assert_eq!(trainer.run()?, Ending::Done);
/// # Ok::<(), brasa_train::TrainError>(())
/// ```
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
