//! Numbers for loops that a compiler vectorizes.

use std::cell::Cell;
use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::number::masks;
use crate::{Number, Single, angle, functions, remainder};

/// A number of the host: `f64` or [`Single`].
///
/// Some functions have a form without a branch for arguments of moderate size, which also says whether the argument was of such a size.
///
/// ```
/// use brasa_number::{Real, Single};
///
/// fn rounded<R: Real>(number: f64) -> f64 {
///     R::nearest(number).to_f64()
/// }
/// assert_eq!(rounded::<f64>(0.1), 0.1);
/// assert_eq!(rounded::<Single>(0.1), f64::from(0.1f32));
/// // The cosine of a large angle needs more digits of pi.
/// assert_eq!(0.0f64.cos_in_range(), (1.0, true));
/// assert!(!1e9f64.cos_in_range().1);
/// ```
pub trait Real: Number<Mask = bool> + Debug + Default + Send + Sync + 'static {
    /// The bits of a number.
    const BITS: u32;

    /// The nearest number.
    fn nearest(number: f64) -> Self;
    /// The same number in 64 bits.
    fn to_f64(self) -> f64;
    /// The sine, and whether it is right.
    fn sin_in_range(self) -> (Self, bool);
    /// The cosine, and whether it is right.
    fn cos_in_range(self) -> (Self, bool);
    /// The remainder, and whether it is right.
    fn modulo_in_range(self, divisor: f64) -> (Self, bool);
}

impl Real for f64 {
    const BITS: u32 = 64;

    #[inline(always)]
    fn nearest(number: f64) -> Self {
        number
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline(always)]
    fn sin_in_range(self) -> (Self, bool) {
        (angle::sin(self), angle::is_in_range(self))
    }

    #[inline(always)]
    fn cos_in_range(self) -> (Self, bool) {
        (angle::cos(self), angle::is_in_range(self))
    }

    #[inline(always)]
    fn modulo_in_range(self, divisor: f64) -> (Self, bool) {
        remainder::modulo(self, divisor)
    }
}

impl Real for Single {
    const BITS: u32 = 32;

    #[inline(always)]
    fn nearest(number: f64) -> Self {
        Self(number as f32)
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self.0)
    }

    #[inline(always)]
    fn sin_in_range(self) -> (Self, bool) {
        (Self(functions::sin(self.0)), functions::is_in_range(self.0))
    }

    #[inline(always)]
    fn cos_in_range(self) -> (Self, bool) {
        (Self(functions::cos(self.0)), functions::is_in_range(self.0))
    }

    #[inline(always)]
    fn modulo_in_range(self, divisor: f64) -> (Self, bool) {
        (self.modulo(divisor), true)
    }
}

/// A number whose functions have no branch, for a loop over rows that a compiler vectorizes.
///
/// Sine, cosine and [`Number::modulo`] have no branch only for arguments of moderate size. An argument outside of this range sets the flag, and the
/// number is wrong. The caller then repeats the loop with plain numbers, which have no such limit. While the flag is not set, all results are those
/// of plain numbers to the last bit.
///
/// ```
/// use std::cell::Cell;
///
/// use brasa_number::{Checked, Number};
///
/// let out_of_range = Cell::new(false);
/// let x = Checked::new(0.5, &out_of_range);
/// assert_eq!(x.sin().value, Number::sin(0.5f64));
/// assert!(!out_of_range.get());
/// let _ = (x * 1e9).cos();
/// assert!(out_of_range.get());
/// assert_eq!(Number::cos(0.5e9f64), f64::cos(0.5e9));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Checked<'a, R> {
    /// The number.
    pub value: R,
    out_of_range: &'a Cell<bool>,
}

impl<'a, R> Checked<'a, R> {
    /// A number that sets `out_of_range` if a function of it is outside of its range.
    #[inline(always)]
    pub fn new(value: R, out_of_range: &'a Cell<bool>) -> Self {
        Self { value, out_of_range }
    }

    #[inline(always)]
    fn with(self, value: R) -> Self {
        Self { value, ..self }
    }

    /// A result, and whether the argument was in range.
    #[inline(always)]
    fn checked(self, (value, is_in_range): (R, bool)) -> Self {
        self.out_of_range.set(self.out_of_range.get() | !is_in_range);
        self.with(value)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:tt),*) => {$(
        impl<R: Real> $trait for Checked<'_, R> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                self.with(self.value $op other.value)
            }
        }

        impl<R: Real> $trait<f64> for Checked<'_, R> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: f64) -> Self {
                self.with(self.value $op other)
            }
        }
    )*};
}
operators!(Add add +, Sub sub -, Mul mul *, Div div /);

impl<R: Real> Neg for Checked<'_, R> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        self.with(-self.value)
    }
}

/// Functions that have no branch.
macro_rules! functions {
    ($($name:ident),*) => {$(
        #[inline(always)]
        fn $name(self) -> Self {
            self.with(Number::$name(self.value))
        }
    )*};
}

impl<R: Real> Number for Checked<'_, R> {
    masks!();
    functions!(exp, ln, ln_1p, tanh, sqrt, floor, log2, log10, rounded);

    #[inline(always)]
    fn constant(self, value: f64) -> Self {
        self.with(self.value.constant(value))
    }

    #[inline(always)]
    fn sin(self) -> Self {
        self.checked(self.value.sin_in_range())
    }

    #[inline(always)]
    fn cos(self) -> Self {
        self.checked(self.value.cos_in_range())
    }

    #[inline(always)]
    fn modulo(self, divisor: f64) -> Self {
        self.checked(self.value.modulo_in_range(divisor))
    }

    #[inline(always)]
    fn lower(self, other: Self) -> bool {
        self.value.lower(other.value)
    }

    #[inline(always)]
    fn equal(self, other: Self) -> bool {
        self.value.equal(other.value)
    }

    #[inline(always)]
    fn select(mask: bool, yes: Self, no: Self) -> Self {
        no.with(R::select(mask, yes.value, no.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation of a number.
    fn all<N: Number>(x: N, y: N) -> [N; 16] {
        [
            x + y * 2.0 - 0.5,
            x / y / 3.0,
            -x,
            x.abs().exp(),
            (x.abs() + 0.1).ln(),
            x.abs().ln_1p(),
            x.tanh(),
            x.abs().sqrt(),
            x.sin(),
            x.cos(),
            x.floor(),
            x.modulo(2.5),
            x.rounded(),
            x.min(y),
            x.max(y).clamp(-1.0, 1.0),
            N::select(N::either(N::both(x.lower(y), N::not(x.equal(y))), x.greater(y)), x, y),
        ]
    }

    /// Every operation of checked numbers is that of plain ones.
    fn compare<R: Real>() {
        let out_of_range = Cell::new(false);
        for i in -300..300 {
            let [x, y] = [f64::from(i) * 0.37, f64::from(i % 7) * 0.81 + 0.01].map(R::nearest);
            let [checked_x, checked_y] = [x, y].map(|x| Checked::new(x, &out_of_range));
            let got = all(checked_x, checked_y).map(|x| x.value.to_f64().to_bits());
            assert_eq!(got, all(x, y).map(|x| x.to_f64().to_bits()), "{x:?} and {y:?}");
            assert!(!out_of_range.get());
        }
    }

    #[test]
    fn every_number_is_the_plain_one() {
        compare::<f64>();
        compare::<Single>();
    }

    fn check<R: Real>(function: fn(Checked<'_, R>) -> Checked<'_, R>) {
        for x in [1e9, -1e9, f64::INFINITY, f64::NAN] {
            let out_of_range = Cell::new(false);
            let x = function(Checked::new(R::nearest(x), &out_of_range));
            assert!(out_of_range.get(), "{x:?}");
        }
    }

    #[test]
    fn every_function_tells_that_an_argument_is_out_of_range() {
        check::<f64>(|x| x.sin());
        check::<f64>(|x| x.cos());
        check::<f64>(|x| x.modulo(0.5));
        check::<Single>(|x| x.sin());
        check::<Single>(|x| x.cos());
        for x in [1e9f32, -3e20, 8193.0] {
            assert_eq!([Single(x).sin(), Single(x).cos()], [Single(x.sin()), Single(x.cos())]);
        }
        assert!(Single(f32::INFINITY).sin().0.is_nan() && Single(f32::NAN).cos().0.is_nan());
    }
}
