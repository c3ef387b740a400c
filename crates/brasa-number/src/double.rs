//! Numbers of 64 bits for loops that a compiler vectorizes.

use std::cell::Cell;
use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::{Number, angle, remainder};

/// An `f64` whose functions have no branch, for a loop over rows that a compiler vectorizes.
///
/// Sine, cosine and [`Number::modulo`] have no branch only for arguments of moderate size. An argument outside of this range sets the flag, and the
/// number is wrong. The caller then repeats the loop with `f64`, which has no such limit. While the flag is not set, all results are those of `f64`
/// to the last bit.
///
/// ```
/// use std::cell::Cell;
///
/// use brasa_number::{Double, Number};
///
/// let out_of_range = Cell::new(false);
/// let x = Double::new(0.5, &out_of_range);
/// assert_eq!(x.sin().value, Number::sin(0.5f64));
/// assert!(!out_of_range.get());
/// // The cosine of a large angle needs more digits of pi.
/// let _ = (x * 1e9).cos();
/// assert!(out_of_range.get());
/// assert_eq!(Number::cos(0.5e9f64), f64::cos(0.5e9));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Double<'a> {
    /// The number.
    pub value: f64,
    out_of_range: &'a Cell<bool>,
}

impl<'a> Double<'a> {
    /// A number that sets `out_of_range` if a function of it is outside of its range.
    #[inline(always)]
    pub fn new(value: f64, out_of_range: &'a Cell<bool>) -> Self {
        Self { value, out_of_range }
    }

    #[inline(always)]
    fn with(self, value: f64) -> Self {
        Self { value, ..self }
    }

    /// A result, and whether the argument was in range.
    #[inline(always)]
    fn checked(self, value: f64, is_in_range: bool) -> Self {
        self.out_of_range.set(self.out_of_range.get() | !is_in_range);
        self.with(value)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:tt),*) => {$(
        impl $trait for Double<'_> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                self.with(self.value $op other.value)
            }
        }

        impl $trait<f64> for Double<'_> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: f64) -> Self {
                self.with(self.value $op other)
            }
        }
    )*};
}
operators!(Add add +, Sub sub -, Mul mul *, Div div /);

impl Neg for Double<'_> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        self.with(-self.value)
    }
}

/// Functions that are those of `f64`.
macro_rules! functions {
    ($($name:ident),*) => {$(
        #[inline(always)]
        fn $name(self) -> Self {
            self.with(Number::$name(self.value))
        }
    )*};
}

impl Number for Double<'_> {
    type Mask = bool;

    functions!(exp, ln, ln_1p, tanh, sqrt, floor, log2, log10, rounded);

    #[inline(always)]
    fn constant(self, value: f64) -> Self {
        self.with(value)
    }

    #[inline(always)]
    fn sin(self) -> Self {
        self.checked(angle::sin(self.value), angle::is_in_range(self.value))
    }

    #[inline(always)]
    fn cos(self) -> Self {
        self.checked(angle::cos(self.value), angle::is_in_range(self.value))
    }

    #[inline(always)]
    fn modulo(self, divisor: f64) -> Self {
        let (value, is_in_range) = remainder::modulo(self.value, divisor);
        self.checked(value, is_in_range)
    }

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

    #[inline(always)]
    fn lower(self, other: Self) -> bool {
        self.value < other.value
    }

    #[inline(always)]
    fn equal(self, other: Self) -> bool {
        self.value == other.value
    }

    #[inline(always)]
    fn select(mask: bool, yes: Self, no: Self) -> Self {
        no.with(if mask { yes.value } else { no.value })
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

    #[test]
    fn every_number_is_that_of_64_bits() {
        let out_of_range = Cell::new(false);
        for i in -300..300 {
            let (x, y) = (f64::from(i) * 0.37, f64::from(i % 7) * 0.81 + 0.01);
            let got = all(Double::new(x, &out_of_range), Double::new(y, &out_of_range)).map(|x| x.value.to_bits());
            assert_eq!(got, all(x, y).map(f64::to_bits), "{x} and {y}");
            assert!(!out_of_range.get());
        }
    }

    #[test]
    fn every_function_tells_that_an_argument_is_out_of_range() {
        for x in [1e9, -1e9, f64::INFINITY, f64::NAN] {
            for function in 0..3 {
                let out_of_range = Cell::new(false);
                let x = Double::new(x, &out_of_range);
                match function {
                    0 => x.sin(),
                    1 => x.cos(),
                    _ => x.modulo(0.5),
                };
                assert!(out_of_range.get(), "{x:?}");
            }
        }
    }
}
