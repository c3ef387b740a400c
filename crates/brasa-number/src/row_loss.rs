//! Losses of learners.

use crate::Number;

/// One row of a loss: a function of `X` results of a network and of `D` data, with `R` numbers as its results. The first of them is the loss,
/// the others are what the learner reports; all of them are averaged over the rows of a batch.
///
/// The text is used with several kinds of numbers (see the [crate]'s page): settings are constants, and a choice that depends on a number is
/// [`Number::select`]. A result of the network that is multiplied by a setting of 0 still counts as used. Leave it out of the loss if it shall
/// have no derivative.
pub trait RowLoss<const X: usize, const D: usize, const R: usize> {
    /// The loss of a row, and what is reported of it.
    fn row<N: Number>(&self, results: [N; X], data: [N; D]) -> [N; R];
}
