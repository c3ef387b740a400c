//! Acting and stepping in the memory of the CPU, without tensors.
//!
//! To make a tensor and to look into one takes 0.1 to 0.3 us on the CPU, and a step has more than twenty of them: longer than a small
//! network computes. Where policy and environments are both in the memory of the CPU, a loop asks them for these forms, once per rollout.
//! Everywhere else there are none, and the loop uses tensors.

use brasa_env::{BatchSlabs, EnvError};

/// Observations of one step, row by row.
#[derive(Debug, Clone, Copy)]
pub struct HostObs<'a> {
    /// `[n_rows, obs width]`.
    pub values: &'a [f32],
    /// `[n_rows, n_actions]`: 1 for legal actions; `None` if all are legal.
    pub mask: Option<&'a [f32]>,
    /// Number of rows.
    pub n_rows: usize,
}

/// Decisions of successive steps, row by row; see [`crate::Decision`].
#[derive(Debug, Clone, Default)]
pub struct HostDecisions {
    /// Actions as stored for learning.
    pub action: Vec<f32>,
    /// Log-probabilities of the actions.
    pub log_prob: Vec<f32>,
    /// Estimated returns; empty where a separate critic computes those of a whole rollout together.
    pub value: Vec<f32>,
}

/// A policy that samples actions in the memory of the CPU; made for one rollout, while the parameters do not change.
pub trait HostActor: Send {
    /// Appends a decision for every row to `decisions`, and replaces `in_env` by the actions as environments take them, and `state` by what the
    /// policy remembers after this step.
    ///
    /// # Shapes
    /// - `state`: `[n_rows, Policy::state_width]`
    /// - `noise`: `[n_rows, width of Policy::noise]`
    fn act(
        &mut self,
        obs: HostObs<'_>,
        state: &mut [f32],
        noise: &[f32],
        decisions: &mut HostDecisions,
        in_env: &mut Vec<f32>,
    );
}

/// Environments that step in the memory of the CPU: [`crate::VecEnv`] without tensors.
pub trait HostStepper {
    /// Form of observations as tensors.
    type Obs;
    /// Form of actions as tensors.
    type Action;

    /// The next observations.
    fn observed(&self) -> HostObs<'_>;

    /// Takes one step in every environment; the results of all environments.
    ///
    /// # Errors
    /// As [`crate::VecEnv::step`].
    fn step(&mut self, actions: &[f32]) -> Result<&BatchSlabs, EnvError>;

    /// Any number of rows of observations as tensors.
    fn obs(&self, values: Vec<f32>, mask: Option<Vec<f32>>) -> Self::Obs;

    /// Any number of rows of actions as tensors.
    fn action(&self, values: Vec<f32>) -> Self::Action;
}
