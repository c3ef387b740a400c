//! Gradients that a network computes without the tape, from derivatives of a loss by its results.
//!
//! On the CPU a node of the autodiff tape takes longer than a small layer. A learner knows the derivatives of its loss by the results of a
//! network in every row. So it asks the network for the gradient of its parameters, with a closure from results to derivatives. A network that
//! computes on another device, or has no such form, returns `None`, and the loss is recorded on the tape instead.
//!
//! A gradient is a number per parameter, in the order in which `burn::module::Module::visit` meets them.

/// Derivatives of a loss by the `X` results of a network, `[n_rows]` each, from these results. A result that the loss does not use may have an
/// empty list. `None` ends the computation: the caller has seen the results and wants no gradient.
pub type ByResults<'a, const X: usize> = dyn FnMut([&[f32]; X]) -> Option<[Vec<f32>; X]> + 'a;

/// Derivatives of a loss by actions and by results, from the actions of a differentiable policy and from results beside them, `[n_rows]` each.
/// Those by the actions stand row by row. `None` as in [`ByResults`], and if the loss cannot be differentiated by the actions.
pub type ByActions<'a, A, const X: usize> = dyn FnMut(&A, [&[f32]; X]) -> Option<(Vec<f32>, [Vec<f32>; X])> + 'a;

/// By what a gradient of critics is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CriticsInput {
    /// By all parameters.
    Parameters,
    /// By the numbers of the actions.
    Actions,
}
