//! Losses of learners.

use crate::Number;

/// One row of a loss: a function of `X` results of a network and of `D` data, with `R` numbers as its results. The first of them is the loss,
/// the others are what the learner reports; all of them are averaged over the rows of a batch.
///
/// The text is used with several kinds of numbers (see the [crate]'s page): settings are constants, and a choice that depends on a number is
/// [`Number::select`]. A result of the network that is multiplied by a setting of 0 still counts as used. Leave it out of the loss if it shall
/// have no derivative.
///
/// ```
/// use brasa_number::{Dual, Number, RowLoss};
///
/// /// Half the squared error, and the absolute error as a report.
/// struct Squared;
///
/// impl RowLoss<1, 1, 2> for Squared {
///     fn row<N: Number>(&self, [value]: [N; 1], [target]: [N; 1]) -> [N; 2] {
///         let error = value - target;
///         [error.square() * 0.5, error.abs()]
///     }
/// }
///
/// let [loss, size] = Squared.row(Dual::variables([3.0]), [Dual::constant(1.0)]);
/// assert_eq!((loss.value, loss.by(0), size.value), (2.0, 2.0, 2.0));
/// ```
pub trait RowLoss<const X: usize, const D: usize, const R: usize> {
    /// The loss of a row, and what is reported of it.
    fn row<N: Number>(&self, results: [N; X], data: [N; D]) -> [N; R];
}
