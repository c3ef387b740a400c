//! Gradients that a network computes by hand, from derivatives of a loss by its results.
//!
//! On the CPU a node of the autodiff tape takes longer than a small layer. Where a learner knows the derivative of its loss by the results of
//! a network, it asks the network for the gradient of its parameters, with a closure from results to derivatives. A network that computes
//! elsewhere, or cannot, says `None`, and the learner records its loss on the tape instead.
//!
//! A gradient is a number per parameter, in the order in which `burn::module::Module::visit` meets them.

use burn::tensor::Tensor;

/// The results of [`crate::ActorCritic::evaluate`] in the memory of the CPU, a number per row.
#[derive(Debug, Clone, Copy)]
pub struct HostEvaluation<'a> {
    /// As in [`crate::Evaluation`].
    pub log_prob: &'a [f32],
    /// As in [`crate::Evaluation`].
    pub entropy: &'a [f32],
    /// As in [`crate::Evaluation`].
    pub value: &'a [f32],
    /// As in [`crate::Evaluation`].
    pub choice: Option<&'a Tensor<1>>,
}

/// Derivatives of a loss by a [`HostEvaluation`], a number per row.
#[derive(Debug, Clone)]
pub struct EvaluationGradient {
    /// By the log-probabilities.
    pub by_log_prob: Vec<f32>,
    /// By the entropies; `None` if the loss does not depend on them.
    pub by_entropy: Option<Vec<f32>>,
    /// By the values.
    pub by_value: Vec<f32>,
}

/// Derivatives of a loss by the results of [`crate::Reparameterized::rsample`].
#[derive(Debug, Clone)]
pub struct DrawGradient {
    /// By the numbers of the actions, row by row.
    pub by_action: Vec<f32>,
    /// By the log-probabilities, a number per row.
    pub by_log_prob: Vec<f32>,
}

/// A loss of [`crate::Reparameterized::rsample`]: from actions and log-probabilities to derivatives.
pub type DrawLoss<'a, A> = dyn FnMut(&A, &[f32]) -> Option<DrawGradient> + 'a;

/// By what a gradient of critics is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CriticsInput {
    /// By all parameters.
    Parameters,
    /// By the numbers of the actions.
    Actions,
}
