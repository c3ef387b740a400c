//! A rule is written once, as a function of numbers, and computed in every form that a machine needs.
//!
//! [`Number`] is what a rule computes with. It is implemented by
//! - `f64`, for tests and for physics on the host;
//! - [`Single`], an `f32` whose functions have no branch except sine and cosine, so that a compiler vectorizes a loop over rows;
//! - [`Checked`], an `f64` or a [`Single`] none of whose functions has a branch, for loops over environments;
//! - [`Dual`], a number of any of these kinds with its derivatives;
//! - the values that `brasa-kernels` records and translates to kernels for GPUs.
//!
//! So a loss needs no derivative by hand, and no second text for a GPU. Huber's loss of an error:
//!
//! ```
//! use brasa_number::{Dual, Number};
//!
//! /// `e^2 / 2` within 1, `|e| - 1/2` outside.
//! fn huber<N: Number>(error: N) -> N {
//!     let (size, cut) = (error.abs(), error.abs().min_of(1.0));
//!     (size - cut * 0.5) * cut
//! }
//!
//! assert_eq!(huber(0.5), 0.125);
//! assert_eq!(huber(-3.0), 2.5);
//! // The same text with the derivative.
//! let [error] = Dual::variables([-3.0]);
//! assert_eq!(huber(error).by(0), -1.0);
//! ```
//!
//! A loss of a learner is a [`RowLoss`]: from the results of a network in one row of a batch, and from the data of this row, to the loss and to
//! what a learner reports. The loss of proximal policy optimization (Schulman et al. 2017, equation 7) is:
//!
//! ```
//! use brasa_number::{Dual, Number, RowLoss};
//!
//! #[derive(Clone, Copy)]
//! struct Surrogate {
//!     clip: f64,
//! }
//!
//! // One result of the network, two data, and one number: the loss.
//! impl RowLoss<1, 2, 1> for Surrogate {
//!     fn row<N: Number>(&self, [log_prob]: [N; 1], [old_log_prob, advantage]: [N; 2]) -> [N; 1] {
//!         let ratio = (log_prob - old_log_prob).exp();
//!         let clipped = ratio.clamp(1.0 - self.clip, 1.0 + self.clip);
//!         [-(ratio * advantage).min(clipped * advantage)]
//!     }
//! }
//!
//! let loss = Surrogate { clip: 0.2 };
//! // The action became 1.5 times as probable and was good: the gain is that of 1.2, and there is no reason to go on.
//! let [value] = loss.row(Dual::variables([0.0]), [(1.0f64 / 1.5).ln(), 2.0].map(Dual::constant));
//! assert!((value.value + 1.2 * 2.0).abs() < 1e-12);
//! assert_eq!(value.by(0), 0.0);
//! ```
//!
//! A distribution of actions couples the columns of a row, whose number is known at run time only. It is a [`RowRule`]: [`Categorical`],
//! [`Normal`], [`NormalDraw`].
//!
//! A cell of a recurrent layer is a [`CellRule`]: [`Lstm`], [`Gru`].

mod angle;
mod cell;
mod checked;
mod distribution;
mod dual;
mod functions;
mod number;
mod remainder;
mod row_loss;
mod row_rule;

pub use cell::{CellRule, Gru, Lstm};
pub use checked::{Checked, Real};
pub use distribution::{Categorical, CategoricalDraw, HALF_LN_2_PI, Normal, NormalDraw};
pub use dual::Dual;
pub use functions::{exp, exp_of_negative, ln, ln_1p, tanh};
pub use number::{Number, Single};
pub use row_loss::RowLoss;
pub use row_rule::{Place, RowRule};
