//! Errors of environments.

use thiserror::Error;

use crate::InvalidField;

/// An error of an environment, an executor or a wrapper.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::wrappers::TimeLimit;
/// use brasa_env::{EnvError, EnvVec};
///
/// // `Walk` goes on a line from 3 to the goal at 0. Each step has a reward of -1.
/// let error = TimeLimit::new(EnvVec::new(0..1, |_| Walk(0.0))?, 0).unwrap_err();
/// assert!(matches!(error, EnvError::Argument(_)));
/// assert_eq!(error.to_string(), "`max_steps` must be at least 1, got 0");
/// # Ok::<(), EnvError>(())
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EnvError {
    /// An invalid space, or two spaces that do not fit.
    #[error("invalid space: {rule}")]
    Space {
        /// The violated rule, with the value.
        rule: String,
    },
    /// An argument outside its range.
    #[error(transparent)]
    Argument(#[from] InvalidField),
    /// The code of an environment panicked.
    #[error("environment {env} (seed {seed}, episode {episode}, step {step}) panicked: {message}")]
    Panicked {
        /// Index of the environment in the batch.
        env: usize,
        /// Seed of the batch.
        seed: u64,
        /// Episode of that environment, from 0.
        episode: u64,
        /// Step within the episode, from 0.
        step: u64,
        /// The panic's message.
        message: String,
    },
    /// An environment returned a non-finite number.
    #[error("environment {env} (seed {seed}) returned {value} as {what} at step {step} of the batch")]
    NotFinite {
        /// Index of the environment in the batch.
        env: usize,
        /// Seed of the batch.
        seed: u64,
        /// Steps of the batch since its reset.
        step: u64,
        /// `reward`, or the name of the observation.
        what: String,
        /// The number.
        value: f32,
    },
    /// A policy chose an action that is not finite, before any environment saw it.
    #[error(
        "the policy chose the action {value} for environment {env}: its weights are not finite or too large, training has \
         diverged (a lower learning rate or a smaller reward scale may help)"
    )]
    ActionNotFinite {
        /// Index of the environment in the batch.
        env: usize,
        /// The number.
        value: f32,
    },
    /// A policy has no action for what it saw.
    #[error("the policy has no action for environment {env}: {reason}")]
    NoAction {
        /// Index of the environment in the batch.
        env: usize,
        /// What is wrong with the observation or the mask.
        reason: &'static str,
    },
    /// A mask that leaves a decision-maker nothing to decide for.
    #[error(
        "environment {env} (seed {seed}): the mask of agent {agent} forbids every action at step {step} of the batch"
    )]
    NothingLegal {
        /// Index of the environment in the batch.
        env: usize,
        /// Index of the agent in that environment.
        agent: usize,
        /// Seed of the batch.
        seed: u64,
        /// Steps of the batch since its reset.
        step: u64,
    },
    /// An episode of an evaluation that does not end.
    #[error(
        "no episode of environment {env} ended within {steps} steps: an evaluation needs episodes that end, as with `wrappers::TimeLimit`, or \
         the setting `max_episode_steps` of an environment of Gymnasium"
    )]
    Endless {
        /// Index of the environment in the batch.
        env: usize,
        /// Steps so far.
        steps: u64,
    },
    /// An environment violated the contract that [`crate::check_env`] checks.
    #[error("contract of the environment broken: {rule}")]
    Contract {
        /// The rule and the observed value.
        rule: String,
    },
    /// A saved state does not fit this environment.
    #[error("saved state of the environments cannot be used: {reason}")]
    State {
        /// The reason.
        reason: String,
    },
    /// Data of a scenario could not be read; the error of the scenario names file, row and column.
    #[error(transparent)]
    Scenario(#[from] Box<dyn std::error::Error + Send + Sync>),
}

impl EnvError {
    /// Moments for observations that are not normalized.
    pub fn not_normalized() -> Self {
        Self::State { reason: "it has moments of observations, which are not normalized here".into() }
    }
}
