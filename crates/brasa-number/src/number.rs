//! What a rule computes with.

use std::f64::consts::{LOG2_E, LOG10_E};
use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::{angle, functions, remainder};

/// A number in a rule. Operands on the right may be plain constants.
///
/// There is no `if` on numbers, because one kind of them has no value yet when the rule is read: [`Number::select`] chooses.
///
/// ```
/// use brasa_number::{Dual, Number, Single};
///
/// /// `max(x, 0)`, smoothed near 0.
/// fn softplus<N: Number>(x: N) -> N {
///     x.max_of(0.0) + (-x.abs()).exp().ln_1p()
/// }
///
/// assert_eq!(softplus(0.0), 2f64.ln());
/// assert!((softplus(Single(0.0)).0 - 2f32.ln()).abs() < 1e-6);
/// // The derivative of this function is the logistic function.
/// let [x] = Dual::variables([2.0]);
/// assert!((softplus(x).by(0) - 1.0 / (1.0 + (-2f64).exp())).abs() < 1e-12);
/// ```
pub trait Number:
    Copy
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Add<f64, Output = Self>
    + Sub<f64, Output = Self>
    + Mul<f64, Output = Self>
    + Div<f64, Output = Self>
{
    /// The outcome of a comparison.
    type Mask: Copy;

    /// A constant of the kind of this number.
    fn constant(self, value: f64) -> Self;
    /// The exponential.
    fn exp(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// `ln(1 + x)` with all digits of a small `x`.
    fn ln_1p(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// The sine of radians, for any angle. The error is at most two units in the last place in 64 bits, and 1e-7 in 32 bits.
    fn sin(self) -> Self;
    /// The cosine of radians, for any angle. The error is at most two units in the last place in 64 bits, and 1e-7 in 32 bits.
    fn cos(self) -> Self;
    /// The largest whole number that is not above this. Its derivative is 0.
    fn floor(self) -> Self;
    /// Whether a comparison does not hold.
    fn not(mask: Self::Mask) -> Self::Mask;
    /// Whether both comparisons hold.
    fn both(one: Self::Mask, other: Self::Mask) -> Self::Mask;
    /// Whether one of two comparisons holds.
    fn either(one: Self::Mask, other: Self::Mask) -> Self::Mask;
    /// Whether this number is lower.
    fn lower(self, other: Self) -> Self::Mask;
    /// Whether both numbers are equal.
    fn equal(self, other: Self) -> Self::Mask;
    /// `yes` where the mask holds, else `no`. Both are computed.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;

    /// Rounded to 32 bits. Numbers with 32 bits are rounded already.
    #[inline(always)]
    fn rounded(self) -> Self {
        self
    }

    /// The remainder of a division by a positive number, from 0 to below that number.
    #[inline(always)]
    fn modulo(self, divisor: f64) -> Self {
        self - (self / divisor).floor() * divisor
    }

    /// The binary logarithm.
    #[inline(always)]
    fn log2(self) -> Self {
        self.ln() * LOG2_E
    }

    /// The decimal logarithm.
    #[inline(always)]
    fn log10(self) -> Self {
        self.ln() * LOG10_E
    }

    /// Whether this number is greater.
    #[inline(always)]
    fn greater(self, other: Self) -> Self::Mask {
        other.lower(self)
    }

    /// The lower of two numbers; this one if one of them is not a number.
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self::select(other.lower(self), other, self)
    }

    /// The greater of two numbers; this one if one of them is not a number.
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self::select(self.lower(other), other, self)
    }

    /// [`Number::min`] with a constant.
    #[inline(always)]
    fn min_of(self, limit: f64) -> Self {
        self.min(self.constant(limit))
    }

    /// [`Number::max`] with a constant.
    #[inline(always)]
    fn max_of(self, limit: f64) -> Self {
        self.max(self.constant(limit))
    }

    /// At least `low` and at most `high`.
    #[inline(always)]
    fn clamp(self, low: f64, high: f64) -> Self {
        self.max_of(low).min_of(high)
    }

    /// The absolute value.
    #[inline(always)]
    fn abs(self) -> Self {
        self.max(-self)
    }

    /// The square.
    #[inline(always)]
    fn square(self) -> Self {
        self * self
    }

    /// This number where the mask holds, else 0.
    #[inline(always)]
    fn or_zero(self, mask: Self::Mask) -> Self {
        Self::select(mask, self, self.constant(0.0))
    }
}

/// Functions of one number. The first argument makes a number of this kind from what they return.
macro_rules! functions {
    ($make:expr, $get:expr; $($name:ident $of:expr),*) => {$(
        #[inline(always)]
        fn $name(self) -> Self {
            $make($of($get(self)))
        }
    )*};
}

/// Outcomes of comparisons that are a `bool`.
macro_rules! masks {
    () => {
        type Mask = bool;

        #[inline(always)]
        fn not(mask: bool) -> bool {
            !mask
        }

        #[inline(always)]
        fn both(one: bool, other: bool) -> bool {
            one & other
        }

        #[inline(always)]
        fn either(one: bool, other: bool) -> bool {
            one | other
        }
    };
}
pub(crate) use masks;

/// Comparisons whose outcome is a `bool`.
macro_rules! comparisons {
    () => {
        $crate::number::masks!();

        #[inline(always)]
        fn lower(self, other: Self) -> bool {
            self < other
        }

        #[inline(always)]
        fn equal(self, other: Self) -> bool {
            self == other
        }

        #[inline(always)]
        fn select(mask: bool, yes: Self, no: Self) -> Self {
            if mask { yes } else { no }
        }
    };
}

impl Number for f64 {
    comparisons!();
    functions!(
        |x| x, |x| x;
        exp f64::exp, ln f64::ln, ln_1p f64::ln_1p, tanh f64::tanh, sqrt f64::sqrt, floor f64::floor, log2 f64::log2, log10 f64::log10
    );

    #[inline(always)]
    fn sin(self) -> Self {
        if angle::is_in_range(self) { angle::sin(self) } else { f64::sin(self) }
    }

    #[inline(always)]
    fn cos(self) -> Self {
        if angle::is_in_range(self) { angle::cos(self) } else { f64::cos(self) }
    }

    #[inline(always)]
    fn constant(self, value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn rounded(self) -> Self {
        f64::from(self as f32)
    }

    #[inline(always)]
    fn modulo(self, divisor: f64) -> Self {
        let (rest, is_in_range) = remainder::modulo(self, divisor);
        if is_in_range { rest } else { self.rem_euclid(divisor) }
    }
}

/// A number in 32 bits, with functions that a compiler vectorizes. `f32` itself cannot be a [`Number`]: `f32 + f64` is not Rust.
///
/// ```
/// use brasa_number::{Number, Single};
///
/// // An operand on the right is a number in 32 bits, or a constant.
/// let x = Single(0.5) * 2.0 + Single(1.0);
/// assert_eq!(x, Single(2.0));
/// assert_eq!(x.min_of(1.5).0, 1.5f32);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd)]
pub struct Single(pub f32);

macro_rules! operators {
    ($($trait:ident $method:ident $op:tt),*) => {$(
        impl $trait for Single {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self(self.0 $op other.0)
            }
        }

        impl $trait<f64> for Single {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: f64) -> Self {
                Self(self.0 $op other as f32)
            }
        }
    )*};
}
operators!(Add add +, Sub sub -, Mul mul *, Div div /);

impl Neg for Single {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl Number for Single {
    comparisons!();
    functions!(
        Single, |x: Single| x.0;
        exp functions::exp, ln functions::ln, ln_1p functions::ln_1p, tanh functions::tanh, sqrt f32::sqrt, floor f32::floor, log2 f32::log2, log10 f32::log10
    );

    #[inline(always)]
    fn sin(self) -> Self {
        Self(if functions::is_in_range(self.0) { functions::sin(self.0) } else { self.0.sin() })
    }

    #[inline(always)]
    fn cos(self) -> Self {
        Self(if functions::is_in_range(self.0) { functions::cos(self.0) } else { self.0.cos() })
    }

    #[inline(always)]
    fn constant(self, value: f64) -> Self {
        Self(value as f32)
    }
}
