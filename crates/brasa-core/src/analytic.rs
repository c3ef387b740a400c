//! Gradients that a network computes without the tape, from derivatives of a loss by its results.
//!
//! On the CPU a node of the autodiff tape takes longer than a small layer. A learner knows the derivatives of its loss by the results of a
//! network in every row. So it asks the network for the gradient of its parameters, with a closure from results to derivatives. A network that
//! computes on another device, or has no such form, returns `None`, and the loss is recorded on the tape instead.
//!
//! A gradient is a number per parameter, in the order in which `burn::module::Module::visit` meets them.

/// Derivatives of a loss by the `X` results of a network, `[n_rows]` each, from these results. A result that the loss does not use may have an
/// empty list. `None` ends the computation: the caller has seen the results and wants no gradient.
///
/// ```
/// use brasa_core::analytic::ByResults;
///
/// // The loss is the squared error of values with a target of 1.
/// let by: &mut ByResults<'_, 1> =
///     &mut |[value]: [&[f32]; 1]| Some([value.iter().map(|value| 2.0 * (value - 1.0)).collect()]);
/// assert_eq!(by([&[1.5, 3.0]]), Some([vec![1.0, 4.0]]));
/// ```
pub type ByResults<'a, const X: usize> = dyn FnMut([&[f32]; X]) -> Option<[Vec<f32>; X]> + 'a;

/// Derivatives of a loss by actions and by results, from the actions of a differentiable policy and from results beside them, `[n_rows]` each.
/// Those by the actions stand row by row. `None` as in [`ByResults`], and if the loss cannot be differentiated by the actions.
///
/// ```
/// use brasa_core::{analytic::ByActions, read_back};
/// use burn::tensor::Tensor;
///
/// // The loss is the square of the action, plus 0.1 times its log-probability.
/// let by: &mut ByActions<'_, Tensor<2>, 1> = &mut |action: &Tensor<2>, [log_prob]: [&[f32]; 1]| {
///     Some((read_back(action.clone() * 2.0), [vec![0.1; log_prob.len()]]))
/// };
/// let action = Tensor::<2>::from_floats([[1.0], [-0.5]], &brasa_device::open_named("cpu")?);
/// assert_eq!(by(&action, [&[0.0, 0.0]]), Some((vec![2.0, -1.0], [vec![0.1, 0.1]])));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub type ByActions<'a, A, const X: usize> = dyn FnMut(&A, [&[f32]; X]) -> Option<(Vec<f32>, [Vec<f32>; X])> + 'a;

/// By what a gradient of critics is.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/policies.inc")); }
/// # use shown::*;
/// use brasa_core::analytic::CriticsInput;
/// use brasa_core::{Critics, Obs};
/// use burn::tensor::Tensor;
///
/// // `Sum` is a critic without parameters. The value is the sum of observation and action.
/// let device = brasa_device::open_named("cpu")?;
/// let [obs, action] = [[[1.0], [2.0]], [[0.5], [0.5]]].map(|rows| Tensor::<2>::from_floats(rows, &device));
/// // The loss is the squared value.
/// let by = &mut |[value]: [&[f32]; 1]| Some([value.iter().map(|value| 2.0 * value).collect::<Vec<f32>>()]);
/// let mut gradient = |of| Sum.gradient(&Obs::new(obs.clone()), &action, of, by);
/// assert_eq!(gradient(CriticsInput::Actions), Some(vec![3.0, 5.0]));
/// assert_eq!(gradient(CriticsInput::Parameters), Some(vec![]));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CriticsInput {
    /// By all parameters.
    Parameters,
    /// By the numbers of the actions.
    Actions,
}
