//! Rules of rows in the memory of the CPU: rows as lanes, and derivatives that are kept on the way forward.

use std::array::from_fn;

use brasa_number::{Dual, Place, RowRule, Single};

/// Numbers of rows, whose columns stand one after the other.
///
/// ```
/// use brasa_kernels::{HostColumns, HostColumnsMut, RowSlopes};
/// use brasa_number::NormalDraw;
///
/// // Two rows with separate means. One row of deviations, `exp(0)`, belongs to both rows.
/// let rule = NormalDraw { squash: false, log_std_range: None };
/// let [mean, noise] = [&[1.0, 2.0], &[0.5, -0.5]].map(|numbers| HostColumns { numbers, per_row: 1 });
/// let log_std = HostColumns { numbers: &[0.0], per_row: 0 };
/// let (mut values, mut log_probs) = ([0.0; 2], [0.0; 2]);
/// let to = HostColumnsMut { numbers: &mut values, per_row: 1 };
/// RowSlopes::default().forward(rule, [2, 1], [mean, log_std], Some(noise), None, [to], [&mut log_probs[..]]);
/// assert_eq!(values, [1.5, 1.5]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct HostColumns<'a> {
    /// From the first column of the first row on.
    pub numbers: &'a [f32],
    /// The distance of two rows; 0 if one row belongs to all.
    pub per_row: usize,
}

/// [`HostColumns`] that are written. With a distance of 0 the numbers of all rows are added.
///
/// ```
/// use brasa_kernels::{HostColumns, HostColumnsMut, RowSlopes};
/// use brasa_number::Normal;
///
/// // The derivative of the log-densities of two rows by the logarithm of their common deviation: a sum over rows.
/// let (rule, mut slopes) = (Normal { squash: false }, RowSlopes::default());
/// let [mean, value] = [&[0.0, 0.0], &[2.0, 0.0]].map(|numbers| HostColumns { numbers, per_row: 1 });
/// let log_std = HostColumns { numbers: &[0.0], per_row: 0 };
/// let (mut log_probs, mut entropies) = ([0.0; 2], [0.0; 2]);
/// slopes.forward(rule, [2, 1], [mean, log_std], Some(value), None, [], [&mut log_probs[..], &mut entropies[..]]);
/// let (mut by_mean, mut by_log_std) = ([0.0; 2], [0.0; 1]);
/// let to = [
///     HostColumnsMut { numbers: &mut by_mean, per_row: 1 },
///     HostColumnsMut { numbers: &mut by_log_std, per_row: 0 },
/// ];
/// slopes.backward([], [&[1.0, 1.0], &[]], to);
/// assert_eq!((by_mean, by_log_std), ([2.0, 0.0], [(4.0 - 1.0) + (0.0 - 1.0)]));
/// ```
#[derive(Debug)]
pub struct HostColumnsMut<'a> {
    /// From the first column of the first row on.
    pub numbers: &'a mut [f32],
    /// The distance of two rows.
    pub per_row: usize,
}

/// Rows that are computed together.
const LANES: usize = 32;

type Lane = [f32; LANES];

const ZERO: Lane = [0.0; LANES];

/// Derivatives by the results of a column: of its own numbers, and of what it adds to the sums.
type OfColumn<const IN: usize, const OUT: usize, const SUMS: usize> = ([[Lane; IN]; OUT], [[Lane; IN]; SUMS]);

/// Derivatives of the rows that a rule computed last in the memory of the CPU. The memory is used again.
///
/// ```
/// use brasa_kernels::{HostColumns, HostColumnsMut, RowSlopes};
/// use brasa_number::Categorical;
///
/// // Two actions with equal logits. Action 1 is taken.
/// let mut slopes = RowSlopes::default();
/// let logits = HostColumns { numbers: &[0.0, 0.0], per_row: 2 };
/// let taken = HostColumns { numbers: &[1.0], per_row: 1 };
/// let (mut log_prob, mut entropy) = ([0.0], [0.0]);
/// let to = [&mut log_prob[..], &mut entropy[..]];
/// slopes.forward(Categorical { masked: false }, [1, 2], [logits], None, Some(taken), [], to);
/// let mut by_logits = [0.0; 2];
/// slopes.backward([], [&[1.0], &[]], [HostColumnsMut { numbers: &mut by_logits, per_row: 2 }]);
/// assert_eq!(by_logits, [-0.5, 0.5]);
/// ```
#[derive(Debug)]
pub struct RowSlopes<const IN: usize, const OUT: usize, const SUMS: usize, const R: usize> {
    n_rows: usize,
    width: usize,
    tile: Vec<([Lane; IN], Lane)>,
    /// For each tile of rows and each column.
    columns: Vec<OfColumn<IN, OUT, SUMS>>,
    /// For each tile of rows: derivatives of its results by its sums.
    rows: Vec<[[Lane; SUMS]; R]>,
}

impl<const IN: usize, const OUT: usize, const SUMS: usize, const R: usize> Default for RowSlopes<IN, OUT, SUMS, R> {
    fn default() -> Self {
        Self { n_rows: 0, width: 0, tile: Vec::new(), columns: Vec::new(), rows: Vec::new() }
    }
}

impl<const IN: usize, const OUT: usize, const SUMS: usize, const R: usize> RowSlopes<IN, OUT, SUMS, R> {
    /// Computes rows of `width` columns.
    ///
    /// # Shapes
    /// - `results`, `data`, `own`: `[n_rows, width]`; without data the rule gets 1
    /// - `taken`: `[n_rows, 1]`, numbers of columns
    /// - `to`: `[n_rows]` each
    ///
    /// # Panics
    /// If there are fewer numbers.
    #[allow(clippy::needless_range_loop, reason = "a compiler vectorizes loops over constant ranges")]
    #[allow(clippy::too_many_arguments, reason = "each is another matrix")]
    pub fn forward<T: RowRule<IN, OUT, SUMS, R>>(
        &mut self,
        rule: T,
        [n_rows, width]: [usize; 2],
        results: [HostColumns<'_>; IN],
        data: Option<HostColumns<'_>>,
        taken: Option<HostColumns<'_>>,
        mut own_to: [HostColumnsMut<'_>; OUT],
        to: [&mut [f32]; R],
    ) {
        brasa_device::count_launches(1);
        (self.n_rows, self.width) = (n_rows, width);
        vectorized(
            #[inline(always)]
            || {
                let n_tiles = n_rows.div_ceil(LANES);
                self.tile.resize(width, ([ZERO; IN], [1.0; LANES]));
                self.columns.resize(n_tiles * width, ([[ZERO; IN]; OUT], [[ZERO; IN]; SUMS]));
                self.rows.resize(n_tiles, [[ZERO; SUMS]; R]);
                for t in 0..n_tiles {
                    let (first, n) = (t * LANES, LANES.min(n_rows - t * LANES));
                    for (c, (x, d)) in self.tile.iter_mut().enumerate() {
                        for i in 0..IN {
                            turned(results[i], [first, n], c, &mut x[i]);
                        }
                        if let Some(data) = data {
                            turned(data, [first, n], c, d);
                        }
                    }
                    let (mut asked, mut best) = ([-1.0; LANES], ZERO);
                    let (mut top, mut sums) = ([f32::NEG_INFINITY; LANES], [ZERO; SUMS]);
                    if let Some(taken) = taken {
                        turned(taken, [first, n], 0, &mut asked);
                    }
                    if T::HAS_KEY {
                        for (c, (x, d)) in self.tile.iter().enumerate() {
                            for l in 0..LANES {
                                let key = rule.key(lane(x, l), Single(d[l])).0;
                                // What is not a number is the greatest: it must show.
                                let is_greater = (key > top[l]) | key.is_nan();
                                top[l] = if is_greater { key } else { top[l] };
                                best[l] = if is_greater { c as f32 } else { best[l] };
                            }
                        }
                    }
                    for (c, (x, d)) in self.tile.iter().enumerate() {
                        let (mut own, mut by_own, mut by) = ([ZERO; OUT], [[ZERO; IN]; OUT], [[ZERO; IN]; SUMS]);
                        for l in 0..LANES {
                            let number = |x: f32| Dual::constant(Single(x));
                            let column = c as f32;
                            let place = Place {
                                column: number(column),
                                taken: asked[l] == column,
                                is_top: best[l] == column,
                                top: number(top[l]),
                            };
                            let data = Dual::constant(Single(d[l]));
                            let (y, added) = rule.column(Dual::variables(lane(x, l)), data, place);
                            for o in 0..OUT {
                                own[o][l] = y[o].value.0;
                                for i in 0..IN {
                                    by_own[o][i][l] = y[o].by(i).0;
                                }
                            }
                            for s in 0..SUMS {
                                sums[s][l] += added[s].value.0;
                                for i in 0..IN {
                                    by[s][i][l] = added[s].by(i).0;
                                }
                            }
                        }
                        for o in 0..OUT {
                            let to = &mut own_to[o];
                            for l in 0..n {
                                to.numbers[(first + l) * to.per_row + c] = own[o][l];
                            }
                        }
                        self.columns[t * width + c] = (by_own, by);
                    }
                    let (mut whole, mut by) = ([ZERO; R], [[ZERO; SUMS]; R]);
                    for l in 0..LANES {
                        let width = Dual::constant(Single(width as f32));
                        let y = rule.row(Dual::variables(lane(&sums, l)), width);
                        for r in 0..R {
                            whole[r][l] = y[r].value.0;
                            for s in 0..SUMS {
                                by[r][s][l] = y[r].by(s).0;
                            }
                        }
                    }
                    for r in 0..R {
                        to[r][first..][..n].copy_from_slice(&whole[r][..n]);
                    }
                    self.rows[t] = by;
                }
            },
        );
    }

    /// The derivatives of a loss by the results of the network, from those by own numbers and by results of the rows that
    /// [`RowSlopes::forward`] computed last.
    ///
    /// # Shapes
    /// - `by_own`: `[n_rows, width]` each
    /// - `by_results`: `[n_rows]` each
    ///
    /// One of them may be empty, if the loss does not depend on it.
    ///
    /// # Panics
    /// If there are fewer numbers.
    #[allow(clippy::needless_range_loop, reason = "a compiler vectorizes loops over constant ranges")]
    pub fn backward(&self, by_own: [&[f32]; OUT], by_results: [&[f32]; R], mut to: [HostColumnsMut<'_>; IN]) {
        vectorized(
            #[inline(always)]
            || {
                let width = self.width;
                for (t, &whole) in self.rows.iter().enumerate() {
                    let (first, n) = (t * LANES, LANES.min(self.n_rows - t * LANES));
                    let mut by_sums = [ZERO; SUMS];
                    for r in 0..R {
                        let mut by_result = ZERO;
                        if !by_results[r].is_empty() {
                            by_result[..n].copy_from_slice(&by_results[r][first..][..n]);
                        }
                        for s in 0..SUMS {
                            for l in 0..LANES {
                                by_sums[s][l] += by_result[l] * whole[r][s][l];
                            }
                        }
                    }
                    // Copies: what stands behind a reference is not vectorized.
                    for (c, &(own, added)) in self.columns[t * width..][..width].iter().enumerate() {
                        let mut by = [ZERO; IN];
                        for i in 0..IN {
                            for s in 0..SUMS {
                                for l in 0..LANES {
                                    by[i][l] += by_sums[s][l] * added[s][i][l];
                                }
                            }
                        }
                        for o in (0..OUT).filter(|o| !by_own[*o].is_empty()) {
                            for i in 0..IN {
                                for l in 0..n {
                                    by[i][l] += by_own[o][(first + l) * width + c] * own[o][i][l];
                                }
                            }
                        }
                        for i in 0..IN {
                            let HostColumnsMut { numbers, per_row } = &mut to[i];
                            if *per_row == 0 {
                                numbers[c] = by[i][..n].iter().fold(numbers[c], |sum, by| sum + by);
                            } else {
                                for l in 0..n {
                                    numbers[(first + l) * *per_row + c] = by[i][l];
                                }
                            }
                        }
                    }
                }
            },
        );
    }
}

/// A function of its own for each pass: in larger ones the compiler stops to vectorize.
#[inline(never)]
pub(crate) fn vectorized(pass: impl FnOnce()) {
    pulp::Arch::new().dispatch(pass);
}

#[inline(always)]
fn lane<const M: usize>(of: &[Lane; M], l: usize) -> [Single; M] {
    from_fn(|i| Single(of[i][l]))
}

/// `n` rows from `first` on, of a column.
#[inline(always)]
fn turned(HostColumns { numbers, per_row }: HostColumns<'_>, [first, n]: [usize; 2], column: usize, to: &mut Lane) {
    for (l, to) in to[..n].iter_mut().enumerate() {
        *to = numbers[(first + l) * per_row + column];
    }
}
