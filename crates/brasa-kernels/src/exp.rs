//! The exponential on the CPU, in a form that the compiler vectorizes.

/// `exp(x)` for `x <= 0` with a relative error of 2e-7, without a branch: `2^n` times a polynomial of the remainder.
#[inline(always)]
pub fn exp_of_negative(x: f32) -> f32 {
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    // ln 2 in two parts, the first with trailing zeros, so that the remainder is exact (Cody and Waite).
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    // Adding and subtracting this rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    // Results below the smallest normal number are negligible. `max` is not used because it drops a NaN.
    let x = if x < -87.0 { -87.0 } else { x };
    let shifted = x * LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let p = p * r * r + r + 1.0;
    // The integer is in the low bits; the shift drops the other bits.
    p * f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_polynomial_is_the_exponential() {
        for i in 0..=870_000 {
            let x = i as f32 * -1e-4;
            let (got, expected) = (f64::from(exp_of_negative(x)), f64::from(x).exp());
            assert!((got - expected).abs() <= 2e-7 * expected, "exp({x}) is {expected}, not {got}");
        }
        assert_eq!(exp_of_negative(0.0), 1.0);
        assert!(exp_of_negative(-1e9) < 2e-38);
        assert!(exp_of_negative(f32::NAN).is_nan());
    }
}
