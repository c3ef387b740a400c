//! Distributions of actions.

use std::f64::consts::LN_2;

use crate::{Number, Place, RowRule};

/// Half of `ln(2 pi)`.
///
/// ```
/// use brasa_number::HALF_LN_2_PI;
///
/// // The negative log-density of a standard normal distribution at 0.
/// let density = 1.0 / (2.0 * std::f64::consts::PI).sqrt();
/// assert!((HALF_LN_2_PI + density.ln()).abs() < 1e-15);
/// ```
pub const HALF_LN_2_PI: f64 = 0.918_938_533_204_672_7;

/// One choice: the log-probability of the action that is taken, and the entropy in nats.
///
/// With logits `z` from which the greatest is subtracted and `S = sum(e^z)`: `ln p_a = z_a - ln S` and `H = ln S - sum(z e^z) / S`.
///
/// ```
/// use brasa_number::{Categorical, Place, RowRule};
///
/// // Two actions with equal logits. Action 1 is taken.
/// let rule = Categorical { masked: false };
/// let place = |i: usize| Place { column: i as f64, taken: i == 1, is_top: i == 0, top: 0.0 };
/// let column = |i: usize| rule.column([0.0], 1.0, place(i)).1;
/// let sums = [0, 1, 2].map(|k| column(0)[k] + column(1)[k]);
/// let [log_prob, entropy] = rule.row(sums, 2.0);
/// assert_eq!((log_prob, entropy), (0.5f64.ln(), 2f64.ln()));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Categorical {
    /// Whether the data of a column are 1 for a legal action and 0 for others.
    pub masked: bool,
}

impl Categorical {
    /// What is subtracted from the logit of an illegal action. With infinity its gradient would be NaN.
    pub const MASKED_BY: f64 = 1e9;
}

impl RowRule<1, 0, 3, 2> for Categorical {
    const HAS_KEY: bool = true;

    #[inline(always)]
    fn key<N: Number>(&self, [logit]: [N; 1], mask: N) -> N {
        // The addition keeps derivatives of legal actions exact and those of illegal ones 0.
        if self.masked { logit * mask + (mask - 1.0) * Self::MASKED_BY } else { logit }
    }

    #[inline(always)]
    fn column<N: Number>(&self, logit: [N; 1], mask: N, at: Place<N>) -> ([N; 0], [N; 3]) {
        let z = self.key(logit, mask) - at.top;
        // Illegal actions have no share, not even a small one times their logarithm; nor those whose probability is 0 in 32 bits.
        let share = N::select(z.lower(z.constant(-87.0)), z.constant(0.0), z.exp());
        ([], [share, share * z, z.or_zero(at.taken)])
    }

    #[inline(always)]
    fn row<N: Number>(&self, [sum, energy, taken]: [N; 3], _width: N) -> [N; 2] {
        let shift = sum.ln();
        [taken - shift, shift - energy / sum]
    }
}

/// The choice with the greatest sum of logit and noise, by its number: with Gumbel noise a sample of a [`Categorical`].
///
/// ```
/// use brasa_number::{CategoricalDraw, Place, RowRule};
///
/// // The mask forbids action 0. Action 1 has the greatest key and is chosen.
/// let rule = CategoricalDraw { masked: true };
/// let [forbidden, legal] = [rule.key([5.0, 0.1], 0.0), rule.key([0.0, 0.3], 1.0)];
/// assert!(forbidden < -1e8 && legal == 0.3);
/// let place = Place { column: 1.0, taken: false, is_top: true, top: legal };
/// let (_, chosen) = rule.column([0.0, 0.3], 1.0, place);
/// assert_eq!(rule.row(chosen, 2.0), [1.0f64]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct CategoricalDraw {
    /// As [`Categorical::masked`].
    pub masked: bool,
}

impl RowRule<2, 0, 1, 1> for CategoricalDraw {
    const HAS_KEY: bool = true;

    #[inline(always)]
    fn key<N: Number>(&self, [logit, noise]: [N; 2], mask: N) -> N {
        Categorical { masked: self.masked }.key([logit], mask) + noise
    }

    #[inline(always)]
    fn column<N: Number>(&self, _: [N; 2], _: N, at: Place<N>) -> ([N; 0], [N; 1]) {
        ([], [at.column.or_zero(at.is_top)])
    }

    #[inline(always)]
    fn row<N: Number>(&self, sums: [N; 1], _width: N) -> [N; 1] {
        sums
    }
}

/// Independent normal distributions, which may be squashed by tanh: the log-density of a value before tanh, and the entropy in nats. There is no
/// closed form of the entropy with tanh: minus the log-density is an estimate.
///
/// ```
/// use brasa_number::{HALF_LN_2_PI, Normal, Place, RowRule};
///
/// // A column with mean 2 and deviation 1, at the value 2.
/// let rule = Normal { squash: false };
/// let place = Place { column: 0.0, taken: false, is_top: false, top: 0.0 };
/// let (_, sums) = rule.column([2.0, 0.0], 2.0, place);
/// let [log_density, entropy] = rule.row(sums, 1.0);
/// assert_eq!((log_density, entropy), (-HALF_LN_2_PI, HALF_LN_2_PI + 0.5));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Normal {
    /// Whether tanh squashes values.
    pub squash: bool,
}

impl RowRule<2, 0, 2, 2> for Normal {
    #[inline(always)]
    fn column<N: Number>(&self, [mean, log_std]: [N; 2], value: N, _: Place<N>) -> ([N; 0], [N; 2]) {
        let scaled = (value - mean) * (-log_std).exp();
        let density = scaled.square() * -0.5 - log_std;
        ([], [if self.squash { density - log_derivative(value) } else { density }, log_std])
    }

    #[inline(always)]
    fn row<N: Number>(&self, [density, log_std]: [N; 2], width: N) -> [N; 2] {
        let log_prob = density - width * HALF_LN_2_PI;
        [log_prob, if self.squash { -log_prob } else { log_std + width * (HALF_LN_2_PI + 0.5) }]
    }
}

/// A sample of a [`Normal`] from standard normal noise: the value after tanh if there is one, and the log-density.
///
/// ```
/// use brasa_number::{NormalDraw, Place, RowRule};
///
/// // The bound lowers the deviation from `exp(3)` to `exp(0)`: the value is mean + noise.
/// let rule = NormalDraw { squash: false, log_std_range: Some((-5.0, 0.0)) };
/// let place = Place { column: 0.0, taken: false, is_top: false, top: 0.0 };
/// let ([value], _) = rule.column([1.0, 3.0], 0.5, place);
/// assert_eq!(value, 1.5f64);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct NormalDraw {
    /// Whether tanh squashes values.
    pub squash: bool,
    /// Bounds of the logarithm of the deviation, if it has some.
    pub log_std_range: Option<(f64, f64)>,
}

impl RowRule<2, 1, 1, 1> for NormalDraw {
    #[inline(always)]
    fn column<N: Number>(&self, [mean, log_std]: [N; 2], noise: N, _: Place<N>) -> ([N; 1], [N; 1]) {
        let log_std = self.log_std_range.map_or(log_std, |(low, high)| log_std.clamp(low, high));
        let value = mean + log_std.exp() * noise;
        // The density of a value is that of the noise divided by the deviation.
        let density = noise.square() * -0.5 - log_std;
        if self.squash { ([value.tanh()], [density - log_derivative(value)]) } else { ([value], [density]) }
    }

    #[inline(always)]
    fn row<N: Number>(&self, [density]: [N; 1], width: N) -> [N; 1] {
        [density - width * HALF_LN_2_PI]
    }
}

/// `ln(1 - tanh(u)^2)`, by which a change of variables lowers the log-density: as `2 (ln 2 - u - softplus(-2u))`, which does not saturate
/// (Haarnoja et al. 2018, appendix C, in the stable form of Spinning Up).
#[inline(always)]
fn log_derivative<N: Number>(u: N) -> N {
    let softplus = (u * -2.0).max_of(0.0) + (u.abs() * -2.0).exp().ln_1p();
    (softplus + u - LN_2) * -2.0
}
