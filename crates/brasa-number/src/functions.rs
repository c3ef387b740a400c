//! Functions in 32 bits without a branch: a compiler vectorizes loops that call them, which it cannot do with the standard library's.

use std::f32::consts::{FRAC_2_PI, LOG2_E};

/// ln 2 in two parts, the first with trailing zeros, so that a remainder is exact (Cody and Waite).
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;
/// Adding and subtracting this rounds to an integer, which stands in the low bits of the sum.
const ROUND: f32 = 12_582_912.0;

/// `e^x` as `p` and `shifted`: `p` times 2 to the power of the integer in the low bits of `shifted`.
#[inline(always)]
fn parts_of_exp(x: f32) -> (f32, f32) {
    let shifted = x * LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    (p * r * r + r + 1.0, shifted)
}

/// `exp(x)` for `x <= 0` with a relative error of 2e-7. Results below the smallest normal number are that of -87.
///
/// ```
/// use brasa_number::exp_of_negative;
///
/// assert_eq!(exp_of_negative(0.0), 1.0);
/// assert!((exp_of_negative(-1.0) - 0.367_879_44).abs() < 1e-7);
/// // Far below, the result is small but not 0.
/// assert!(exp_of_negative(-1e9) > 0.0);
/// ```
#[inline(always)]
pub fn exp_of_negative(x: f32) -> f32 {
    // `max` is not used because it drops a NaN.
    let x = if x < -87.0 { -87.0 } else { x };
    let (p, shifted) = parts_of_exp(x);
    // The shift drops the other bits.
    p * f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}

/// `exp(x)` with a relative error of 2e-7; 0 below the range of normal numbers, infinite above it.
///
/// ```
/// use brasa_number::exp;
///
/// assert!((exp(1.0) - std::f32::consts::E).abs() < 1e-6);
/// assert_eq!([exp(-120.0), exp(0.0), exp(89.0)], [0.0, 1.0, f32::INFINITY]);
/// ```
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let limited = if x < -104.0 { -104.0 } else { x };
    let limited = if limited > 90.0 { 90.0 } else { limited };
    let (p, shifted) = parts_of_exp(limited);
    let n = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    // Two factors: neither leaves the range of exponents.
    let half = n >> 1;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
    p * power(half) * power(n - half)
}

/// `ln(x)` with a relative error of 2e-7 for normal numbers; minus infinity at 0, NaN below.
///
/// ```
/// use brasa_number::ln;
///
/// assert!((ln(2.0) - std::f32::consts::LN_2).abs() < 1e-7);
/// assert_eq!([ln(0.0), ln(1.0)], [f32::NEG_INFINITY, 0.0]);
/// assert!(ln(-1.0).is_nan());
/// ```
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    /// The bits of the square root of 1/2.
    const HALF_ROOT: u32 = 0x3f35_04f3;
    let exponent = (x.to_bits().wrapping_sub(HALF_ROOT) as i32) >> 23;
    let m = f32::from_bits(x.to_bits().wrapping_sub((exponent as u32) << 23)) - 1.0;
    let n = exponent as f32;
    let p = 7.037_683_6e-2;
    let p = p * m - 0.115_146_1;
    let p = p * m + 0.116_769_98;
    let p = p * m - 0.124_201_41;
    let p = p * m + 0.142_493_23;
    let p = p * m - 0.166_680_57;
    let p = p * m + 0.200_007_15;
    let p = p * m - 0.249_999_94;
    let p = p * m + 0.333_333_3;
    let y = m + (p * m * m * m + LN_2_LOW * n - 0.5 * m * m) + LN_2_HIGH * n;
    // Infinity and NaN are their own logarithms.
    let y = if x < f32::INFINITY { y } else { x };
    let y = if x < 0.0 { f32::NAN } else { y };
    if x == 0.0 { f32::NEG_INFINITY } else { y }
}

/// `ln(1 + x)` with all digits of a small `x`: near 0 the series of the inverse hyperbolic tangent of `x / (2 + x)`.
///
/// ```
/// use brasa_number::{ln, ln_1p};
///
/// // The sum `1 + x` has lost a small `x`.
/// assert_eq!(ln_1p(1e-10), 1e-10);
/// assert_eq!(ln(1.0 + 1e-10), 0.0);
/// ```
#[inline(always)]
pub fn ln_1p(x: f32) -> f32 {
    let t = x / (x + 2.0);
    let s = t * t;
    let near = 2.0 * t * ((((s * (1.0 / 9.0) + 1.0 / 7.0) * s + 0.2) * s + 1.0 / 3.0) * s + 1.0);
    let far = ln(1.0 + x);
    if x.abs() < 0.25 { near } else { far }
}

/// `tanh(x)` within 2e-7, with one division.
///
/// With `u = x / 2` and `s = u^2`, Lambert's continued fraction `u / (1 + s / (3 + s / (5 + ...)))` cut after seven
/// terms gives `tanh(u) = u p(s) / q(s)`, and doubling the argument gives `tanh(x) = 2 u p q / (q^2 + s p^2)`. All
/// coefficients are positive, so there is no cancellation, and doubling reduces the truncation error at large
/// arguments.
///
/// ```
/// use brasa_number::tanh;
///
/// assert!((tanh(0.5) - 0.5f32.tanh()).abs() < 3e-7);
/// assert!((tanh(f32::INFINITY) - 1.0).abs() < 3e-7);
/// ```
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    // Above 9.1 tanh is 1 in f32.
    let u = 0.5 * x.clamp(-9.1, 9.1);
    let s = u * u;
    let p = ((s + 378.0) * s + 17_325.0) * s + 135_135.0;
    let q = ((28.0 * s + 3_150.0) * s + 62_370.0) * s + 135_135.0;
    2.0 * u * p * q / (q * q + s * p * p)
}

/// Largest angle of [`sin`] and [`cos`], in rad: with it a multiple of `pi / 2` has 13 bits, and its products below are exact.
const LARGEST_ANGLE: f32 = 8192.0;
/// `pi / 2` in three parts: the first two have 8 and 11 bits.
const HALF_PI: [f32; 3] = [1.570_312_5, 4.837_513e-4, 7.549_79e-8];

/// Whether [`sin`] and [`cos`] are right.
#[inline(always)]
pub(crate) fn is_in_range(angle: f32) -> bool {
    angle.abs() <= LARGEST_ANGLE
}

/// The number of quarter turns, in its low bits, and the rest between `-pi / 4` and `pi / 4`.
#[inline(always)]
fn reduced(angle: f32) -> (u32, f32) {
    let shifted = angle * FRAC_2_PI + ROUND;
    let n = shifted - ROUND;
    (shifted.to_bits(), ((angle - n * HALF_PI[0]) - n * HALF_PI[1]) - n * HALF_PI[2])
}

/// Sine or cosine of the rest, by the number of quarter turns. The polynomials are those of Cephes.
#[inline(always)]
fn of_quarter(turns: u32, x: f32) -> f32 {
    let z = x * x;
    let sin = x + x * z * (z * (z * -1.951_529_6e-4 + 8.332_161e-3) - 1.666_665_5e-1);
    let cos = 1.0 - (0.5 * z - z * z * (z * (z * 2.443_315_7e-5 - 1.388_731_6e-3) + 4.166_664_6e-2));
    let size = if turns & 1 == 0 { sin } else { cos };
    f32::from_bits(size.to_bits() ^ ((turns & 2) << 30))
}

/// The sine of an angle in range, within 1e-7.
#[inline(always)]
pub(crate) fn sin(angle: f32) -> f32 {
    let (turns, rest) = reduced(angle);
    of_quarter(turns, rest)
}

/// The cosine of an angle in range, within 1e-7.
#[inline(always)]
pub(crate) fn cos(angle: f32) -> f32 {
    let (turns, rest) = reduced(angle);
    of_quarter(turns.wrapping_add(1), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest relative error, and where it is.
    fn error(of: fn(f32) -> f32, expected: fn(f64) -> f64, inputs: impl Iterator<Item = f32>) -> (f64, f32) {
        let errors = inputs.map(|x| {
            let (got, expected) = (f64::from(of(x)), expected(f64::from(x)));
            ((got - expected).abs() / expected.abs(), x)
        });
        errors.fold((0.0, 0.0), |worst, now| if now.0 > worst.0 { now } else { worst })
    }

    #[test]
    fn exponentials() {
        let negative = (0..=870_000).map(|i| i as f32 * -1e-4);
        let (worst, at) = error(exp_of_negative, f64::exp, negative.clone());
        assert!(worst <= 2e-7, "{worst} at {at}");
        let (worst, at) = error(exp, f64::exp, negative.chain((0..=887_000).map(|i| i as f32 * 1e-4)));
        assert!(worst <= 2e-7, "{worst} at {at}");
        for of in [exp, exp_of_negative] {
            assert_eq!(of(0.0), 1.0);
            assert!(of(-1e9) < 2e-38 && of(f32::NEG_INFINITY) < 2e-38);
            assert!(of(f32::NAN).is_nan());
        }
        assert_eq!(
            [exp(f32::NEG_INFINITY), exp(-120.0), exp(89.0), exp(f32::INFINITY)],
            [0.0, 0.0, f32::INFINITY, f32::INFINITY]
        );
    }

    #[test]
    fn logarithms() {
        let inputs = (1..400_000).map(|i| i as f32 * 1e-4).chain((-37..38).map(|i| 10f32.powi(i) * 1.7));
        // Near 1 the logarithm is near 0.
        let (worst, at) = error(ln, f64::ln, inputs.filter(|x| (x - 1.0).abs() > 1e-3));
        assert!(worst <= 3e-7, "{worst} at {at}");
        let small = (1..5_000).map(|i| i as f32 * 1e-4).chain([1e-7, 3e-20]);
        let (worst, at) = error(ln_1p, f64::ln_1p, small.flat_map(|x| [x, -x]).chain([3.0, 50.0, 1e9, -0.999]));
        assert!(worst <= 4e-7, "{worst} at {at}");
        assert_eq!([ln(0.0), ln(f32::INFINITY), ln(1.0)], [f32::NEG_INFINITY, f32::INFINITY, 0.0]);
        assert!([ln(-1.0), ln(f32::NAN), ln(f32::NEG_INFINITY), ln_1p(f32::NAN)].iter().all(|x| x.is_nan()));
    }

    #[test]
    fn tangents() {
        for i in -200_000..=200_000 {
            let x = i as f32 * 6e-5;
            let (got, expected) = (f64::from(tanh(x)), f64::from(x).tanh());
            assert!((got - expected).abs() <= 2e-7 + 3e-7 * expected.abs(), "tanh({x}) is {expected}, not {got}");
        }
        for (x, expected) in [(0.0, 0.0), (50.0, 1.0), (f32::INFINITY, 1.0), (f32::NEG_INFINITY, -1.0)] {
            assert!((tanh(x) - expected).abs() < 2e-7);
        }
        assert!(tanh(f32::NAN).is_nan());
    }

    #[test]
    fn sines() {
        let near = (-400_000..=400_000).map(|i| i as f32 * 1.7e-5);
        let far = (-200_000..=200_000).map(|i| i as f32 * 0.040_96);
        // Where one of the functions is nearly 0.
        let quarters = (-5_215..=5_215).map(|n| (f64::from(n) * std::f64::consts::FRAC_PI_2) as f32);
        let small = (0..35).flat_map(|i| [1.0, -1.0].map(|sign| sign * 0.7 * 2f32.powi(-i * 4)));
        let inputs: Vec<f32> = near.chain(far).chain(quarters).chain(small).collect();
        for (of, expected) in [(sin as fn(f32) -> f32, f64::sin as fn(f64) -> f64), (cos, f64::cos)] {
            for x in &inputs {
                let error = (f64::from(of(*x)) - expected(f64::from(*x))).abs();
                assert!(error <= 1e-7 && is_in_range(*x), "{error} at {x}");
            }
        }
        assert_eq!([sin(0.0), cos(0.0)], [0.0, 1.0]);
    }
}
