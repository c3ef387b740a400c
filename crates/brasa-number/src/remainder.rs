//! The remainder of a division in 64 bits without a branch, for quotients of moderate size.

/// Largest quotient: its product with a number of 27 bits is exact.
const RANGE: f64 = 67_108_864.0;

/// `x.rem_euclid(divisor)` for a positive divisor, and whether it is right: the quotient must be below 2^26.
///
/// The products of the quotient with both halves of the divisor are exact, and so are the differences.
#[inline(always)]
pub(crate) fn modulo(x: f64, divisor: f64) -> (f64, bool) {
    let high = f64::from_bits(divisor.to_bits() & !((1 << 27) - 1));
    let low = divisor - high;
    let quotient = (x / divisor).trunc();
    let rest = (x - quotient * high) - quotient * low;
    (if rest < 0.0 { rest + divisor } else { rest }, quotient.abs() < RANGE)
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{PI, TAU};

    use proptest::prelude::*;

    use super::*;
    use crate::Number;

    proptest! {
        #[test]
        fn remainders_are_exact(x in -1e7..1e7f64, divisor in 1e-1..1e3f64) {
            prop_assert_eq!(modulo(x, divisor), (x.rem_euclid(divisor), (x / divisor).abs() < RANGE));
        }

        #[test]
        fn multiples_are_exact(n in -1_000_000i32..1_000_000, ulps in -3i64..3, divisor in 1e-3..1e3f64) {
            for divisor in [divisor, TAU, 1.0] {
                let x = f64::from_bits((f64::from(n) * divisor).to_bits().wrapping_add_signed(ulps));
                if n != 0 {
                    prop_assert_eq!(modulo(x, divisor), (x.rem_euclid(divisor), true));
                }
            }
        }
    }

    #[test]
    fn any_number_has_a_remainder() {
        for x in [0.0, -0.0, PI, -PI, 1e-300, -1e-300, 1e300, -1e12, 4e8] {
            assert_eq!(Number::modulo(x, TAU), x.rem_euclid(TAU), "{x}");
        }
        assert!(Number::modulo(f64::NAN, TAU).is_nan() && Number::modulo(f64::INFINITY, TAU).is_nan());
    }
}
