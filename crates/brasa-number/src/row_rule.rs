//! Rules of rows of any width.

use crate::Number;

/// Where a column stands in its row.
///
/// ```
/// use brasa_number::{Categorical, Place, RowRule};
///
/// // The column of the taken action adds its logit, less the greatest logit of the row.
/// let place = Place { column: 2.0, taken: true, is_top: false, top: 1.5 };
/// let (_, [_, _, taken]) = Categorical { masked: false }.column([1.0], 1.0, place);
/// assert_eq!(taken, -0.5f64);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Place<N: Number> {
    /// The number of the column.
    pub column: N,
    /// Whether it is the column that belongs to the action of the row.
    pub taken: N::Mask,
    /// Whether it is the column with the greatest key, the first one of equal ones.
    pub is_top: N::Mask,
    /// The greatest key of the row (see [`RowRule::key`]), without derivatives.
    pub top: N,
}

/// A rule of a row with any number of columns, in two parts: what a column adds to a few sums, and what the sums of a row mean.
///
/// Each part is a function of a few numbers, so its derivatives come forward with it ([`crate::Dual`]). Between the parts derivatives are handed
/// back, which takes one multiplication per column and sum. So a gradient by hundreds of columns costs no more than their values.
///
/// A column has `IN` results of a network and one number of data. It gives `OUT` numbers of its own and adds to `SUMS` sums. A row gives `R`
/// results. The logarithm of the sum of exponentials, which does not overflow:
///
/// ```
/// use brasa_number::{Number, Place, RowRule};
///
/// #[derive(Clone, Copy)]
/// struct LogSumExp;
///
/// impl RowRule<1, 0, 2, 1> for LogSumExp {
///     const HAS_KEY: bool = true;
///
///     fn column<N: Number>(&self, [x]: [N; 1], _: N, at: Place<N>) -> ([N; 0], [N; 2]) {
///         // One column alone adds to the second sum.
///         ([], [(x - at.top).exp(), at.top.or_zero(at.is_top)])
///     }
///
///     fn row<N: Number>(&self, [sum, top]: [N; 2], _width: N) -> [N; 1] {
///         [sum.ln() + top]
///     }
/// }
///
/// let row = [1000.0, 1001.0];
/// let place = |i: usize| Place { column: i as f64, taken: false, is_top: i == 1, top: 1001.0 };
/// let column = |i: usize| LogSumExp.column([row[i]], 0.0, place(i)).1;
/// let sums = [0, 1].map(|k| column(0)[k] + column(1)[k]);
/// assert!((LogSumExp.row(sums, 2.0)[0] - 1001.3132616875182f64).abs() < 1e-9);
/// ```
pub trait RowRule<const IN: usize, const OUT: usize, const SUMS: usize, const R: usize>: Copy {
    /// Whether columns need the greatest key of their row.
    const HAS_KEY: bool = false;

    /// The number of a column whose greatest is [`Place::top`].
    #[inline(always)]
    fn key<N: Number>(&self, results: [N; IN], _data: N) -> N {
        results[0]
    }

    /// The own numbers of a column, and what it adds to the sums of its row.
    fn column<N: Number>(&self, results: [N; IN], data: N, at: Place<N>) -> ([N; OUT], [N; SUMS]);

    /// The results of a row, of its sums and its number of columns.
    fn row<N: Number>(&self, sums: [N; SUMS], width: N) -> [N; R];
}
