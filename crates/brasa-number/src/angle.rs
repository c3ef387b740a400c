//! Sine and cosine in 64 bits without a branch, for angles of moderate size.
//!
//! The angle is reduced by multiples of `pi / 2` with 119 binary digits of `pi` (Cody and Waite), and the polynomials are those of Sun's `fdlibm`. The
//! distance to the standard library is at most two units in the last place (tested).

use std::f64::consts::FRAC_2_PI;

/// Largest angle, in rad: with it a multiple of `pi / 2` has 15 bits, and its products below are exact.
const RANGE: f64 = 5e4;
/// `pi / 2` in three parts: the first two have 33 bits.
const HALF_PI: [f64; 3] = [
    f64::from_bits(0x3ff9_21fb_5440_0000),
    f64::from_bits(0x3dd0_b461_1a60_0000),
    f64::from_bits(0x3ba3_198a_2e03_7073),
];
/// Adding and subtracting this rounds to an integer, which stands in the low bits of the sum.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// Whether [`sin`] and [`cos`] are right.
#[inline(always)]
pub(crate) fn is_in_range(angle: f64) -> bool {
    angle.abs() <= RANGE
}

/// The number of quarter turns, in its low bits, and the rest.
#[inline(always)]
fn reduced(angle: f64) -> (u64, f64) {
    let shifted = angle * FRAC_2_PI + ROUND;
    let n = shifted - ROUND;
    (shifted.to_bits(), ((angle - n * HALF_PI[0]) - n * HALF_PI[1]) - n * HALF_PI[2])
}

/// A polynomial of degree 5, by pairs: shorter chains of operations than by Horner's rule.
#[inline(always)]
fn polynomial(x: f64, [a, b, c, d, e, f]: [f64; 6]) -> f64 {
    let square = x * x;
    (x * b + a) + square * ((x * d + c) + square * (x * f + e))
}

/// The sine of an angle between `-pi / 4` and `pi / 4`.
#[inline(always)]
fn sin_of_rest(x: f64) -> f64 {
    let z = x * x;
    let series = [
        -1.666_666_666_666_663_2e-1,
        8.333_333_333_322_49e-3,
        -1.984_126_982_985_795e-4,
        2.755_731_370_707_006_8e-6,
        -2.505_076_025_340_686_3e-8,
        1.589_690_995_211_55e-10,
    ];
    x + (x * z) * polynomial(z, series)
}

/// The cosine of an angle between `-pi / 4` and `pi / 4`.
#[inline(always)]
fn cos_of_rest(x: f64) -> f64 {
    let z = x * x;
    let series = [
        4.166_666_666_666_66e-2,
        -1.388_888_888_887_411e-3,
        2.480_158_728_947_673e-5,
        -2.755_731_435_139_066_3e-7,
        2.087_572_321_298_175e-9,
        -1.135_964_755_778_819_5e-11,
    ];
    1.0 - (0.5 * z - (z * z) * polynomial(z, series))
}

/// Sine or cosine of the rest, by the number of quarter turns.
#[inline(always)]
fn of_quarter(turns: u64, rest: f64) -> f64 {
    let (sin, cos) = (sin_of_rest(rest), cos_of_rest(rest));
    let size = if turns & 1 == 0 { sin } else { cos };
    f64::from_bits(size.to_bits() ^ ((turns & 2) << 62))
}

/// The sine of an angle in range.
#[inline(always)]
pub(crate) fn sin(angle: f64) -> f64 {
    let (turns, rest) = reduced(angle);
    of_quarter(turns, rest)
}

/// The cosine of an angle in range.
#[inline(always)]
pub(crate) fn cos(angle: f64) -> f64 {
    let (turns, rest) = reduced(angle);
    of_quarter(turns.wrapping_add(1), rest)
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use super::*;
    use crate::Number;

    /// The largest distance in units in the last place of the expected number, and where it is.
    fn distance(of: fn(f64) -> f64, expected: fn(f64) -> f64, inputs: impl Iterator<Item = f64>) -> (f64, f64) {
        let distances = inputs.map(|x| {
            let (got, expected) = (of(x), expected(x));
            let unit = f64::from_bits(expected.abs().to_bits() + 1) - expected.abs();
            ((got - expected).abs() / unit, x)
        });
        distances.fold((0.0, 0.0), |worst, now| if now.0 > worst.0 { now } else { worst })
    }

    #[test]
    fn angles_in_range_are_near_the_standard_library() {
        let near = (-400_000..=400_000).map(|i| f64::from(i) * 1.7e-5);
        let far = (-200_000..=200_000).map(|i| f64::from(i) * 0.249_97);
        // Where one of the functions is nearly 0.
        let quarters = (-31_000..=31_000).map(|n| f64::from(n) * FRAC_PI_2);
        let small = (0..60).flat_map(|i| [1, -1].map(|sign| f64::from(sign) * 0.7 * 2f64.powi(-i * 5)));
        for x in [near.collect::<Vec<_>>(), far.collect(), quarters.collect(), small.collect()] {
            for (of, expected) in [(sin as fn(f64) -> f64, f64::sin as fn(f64) -> f64), (cos, f64::cos)] {
                let (worst, at) = distance(of, expected, x.iter().copied());
                assert!(worst <= 2.0, "{worst} at {at}");
            }
        }
        assert_eq!([sin(0.0), cos(0.0)], [0.0, 1.0]);
    }

    #[test]
    fn larger_angles_are_those_of_the_standard_library() {
        for x in [5.1e4, -1e6, 3e22, f64::MAX] {
            assert!(!is_in_range(x));
            assert_eq!([Number::sin(x), Number::cos(x)], [f64::sin(x), f64::cos(x)]);
        }
        for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(Number::sin(x).is_nan() && Number::cos(x).is_nan());
        }
    }
}
