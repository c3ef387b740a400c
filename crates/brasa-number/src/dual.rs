//! Numbers with derivatives.

use std::array::from_fn;
use std::f64::consts::{LOG2_E, LOG10_E};
use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::Number;

/// A number with its derivatives by `K` others, which are computed forward with it.
///
/// A derivative that is 0 for every input is `None`, known when the rule is compiled: it costs nothing.
///
/// ```
/// use brasa_number::{Dual, Number};
///
/// // The length of a vector, with its derivatives by both components.
/// let [x, y] = Dual::variables([3.0, 4.0]);
/// let length = (x.square() + y.square()).sqrt();
/// assert_eq!(length.value, 5.0f64);
/// assert_eq!([length.by(0), length.by(1)], [0.6, 0.8]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Dual<N, const K: usize> {
    /// The number.
    pub value: N,
    /// Its derivatives.
    pub slopes: [Option<N>; K],
}

impl<N: Number, const K: usize> Dual<N, K> {
    /// A number that depends on none of the others.
    #[inline(always)]
    pub fn constant(value: N) -> Self {
        Self { value, slopes: [None; K] }
    }

    /// The numbers by which derivatives are taken.
    #[inline(always)]
    pub fn variables(values: [N; K]) -> [Self; K] {
        from_fn(|i| Self { value: values[i], slopes: from_fn(|j| (i == j).then(|| values[i].constant(1.0))) })
    }

    /// The derivative by the variable with this place.
    ///
    /// # Panics
    /// If there are fewer variables.
    #[inline(always)]
    pub fn by(self, variable: usize) -> N {
        self.slopes[variable].unwrap_or(self.value.constant(0.0))
    }

    #[inline(always)]
    fn chain(self, value: N, slope: impl Fn(N) -> N) -> Self {
        Self { value, slopes: self.slopes.map(|by| by.map(&slope)) }
    }

    #[inline(always)]
    fn chain2(self, other: Self, value: N, left: impl Fn(N) -> N, right: impl Fn(N) -> N) -> Self {
        let slopes = from_fn(|i| match (self.slopes[i].map(&left), other.slopes[i].map(&right)) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        });
        Self { value, slopes }
    }
}

/// An operator with another number, and with a constant: its derivatives by the left and by the right operand.
macro_rules! operators {
    ($($trait:ident $method:ident ($a:ident, $b:ident, $y:ident) $left:expr, $right:expr;)*) => {$(
        impl<N: Number, const K: usize> $trait for Dual<N, K> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                let ($a, $b) = (self.value, other.value);
                let $y = $a.$method($b);
                self.chain2(other, $y, $left, $right)
            }
        }

        impl<N: Number, const K: usize> $trait<f64> for Dual<N, K> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, $b: f64) -> Self {
                self.chain(self.value.$method($b), $left)
            }
        }
    )*};
}
operators! {
    Add add (_a, _b, _y) |d| d, |d| d;
    Sub sub (_a, _b, _y) |d| d, |d: N| -d;
    Mul mul (a, b, _y) |d: N| d * b, |d: N| d * a;
    Div div (_a, b, y) |d: N| d / b, |d: N| -(d * y / b);
}

impl<N: Number, const K: usize> Neg for Dual<N, K> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        self.chain(-self.value, |d| -d)
    }
}

impl<N: Number, const K: usize> Number for Dual<N, K> {
    type Mask = N::Mask;

    #[inline(always)]
    fn constant(self, value: f64) -> Self {
        Self::constant(self.value.constant(value))
    }

    #[inline(always)]
    fn exp(self) -> Self {
        let y = self.value.exp();
        self.chain(y, |d| d * y)
    }

    #[inline(always)]
    fn ln(self) -> Self {
        let x = self.value;
        self.chain(x.ln(), |d| d / x)
    }

    #[inline(always)]
    fn log2(self) -> Self {
        let x = self.value;
        self.chain(x.log2(), |d| d / x * LOG2_E)
    }

    #[inline(always)]
    fn log10(self) -> Self {
        let x = self.value;
        self.chain(x.log10(), |d| d / x * LOG10_E)
    }

    #[inline(always)]
    fn ln_1p(self) -> Self {
        let x = self.value;
        self.chain(x.ln_1p(), |d| d / (x + 1.0))
    }

    #[inline(always)]
    fn tanh(self) -> Self {
        let y = self.value.tanh();
        self.chain(y, |d| d * (-y.square() + 1.0))
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        let y = self.value.sqrt();
        self.chain(y, |d| d / (y * 2.0))
    }

    #[inline(always)]
    fn sin(self) -> Self {
        let x = self.value;
        self.chain(x.sin(), |d| d * x.cos())
    }

    #[inline(always)]
    fn cos(self) -> Self {
        let x = self.value;
        self.chain(x.cos(), |d| -(d * x.sin()))
    }

    #[inline(always)]
    fn floor(self) -> Self {
        Self::constant(self.value.floor())
    }

    #[inline(always)]
    fn not(mask: N::Mask) -> N::Mask {
        N::not(mask)
    }

    #[inline(always)]
    fn both(one: N::Mask, other: N::Mask) -> N::Mask {
        N::both(one, other)
    }

    #[inline(always)]
    fn either(one: N::Mask, other: N::Mask) -> N::Mask {
        N::either(one, other)
    }

    #[inline(always)]
    fn lower(self, other: Self) -> N::Mask {
        self.value.lower(other.value)
    }

    #[inline(always)]
    fn equal(self, other: Self) -> N::Mask {
        self.value.equal(other.value)
    }

    #[inline(always)]
    fn select(mask: N::Mask, yes: Self, no: Self) -> Self {
        let slopes = from_fn(|i| match (yes.slopes[i], no.slopes[i]) {
            (None, None) => None,
            _ => Some(N::select(mask, yes.by(i), no.by(i))),
        });
        Self { value: N::select(mask, yes.value, no.value), slopes }
    }
}
