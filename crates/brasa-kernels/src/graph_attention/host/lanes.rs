//! Pieces of slices in vector registers.
//!
//! Written out, because the compiler does not know that gradients never overlap with what they are gradients of, and
//! then keeps one number per register.

use std::ops::Range;

use pulp::Simd;

/// A number of channels that the compiler knows, or 0 for any.
#[inline(always)]
pub fn channels<const C: usize>(channels: usize) -> usize {
    if C == 0 { channels } else { C }
}

/// `0..n` in pieces of at most one register.
#[inline(always)]
pub fn pieces<S: Simd>(n: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n.div_ceil(S::F32_LANES)).map(move |piece| {
        let first = piece * S::F32_LANES;
        first..(first + S::F32_LANES).min(n)
    })
}

/// At most one register of numbers, and 0 behind them.
#[inline(always)]
pub fn load<S: Simd>(simd: S, from: &[f32]) -> S::f32s {
    match S::as_simd_f32s(from) {
        ([whole], []) => *whole,
        _ => simd.partial_load_f32s(from),
    }
}

/// As many numbers as there is room for.
#[inline(always)]
pub fn store<S: Simd>(simd: S, to: &mut [f32], values: S::f32s) {
    match S::as_mut_simd_f32s(to) {
        ([whole], []) => *whole = values,
        _ => simd.partial_store_f32s(to, values),
    }
}

/// Adds to numbers in memory.
#[inline(always)]
pub fn add_to<S: Simd>(simd: S, to: &mut [f32], values: S::f32s) {
    let sum = simd.add_f32s(load(simd, to), values);
    store(simd, to, sum);
}

#[inline(always)]
pub fn dot<S: Simd>(simd: S, a: &[f32], b: &[f32], n: usize) -> f32 {
    let mut sum = simd.splat_f32s(0.0);
    for piece in pieces::<S>(n) {
        sum = simd.mul_add_e_f32s(load(simd, &a[piece.clone()]), load(simd, &b[piece]), sum);
    }
    simd.reduce_sum_f32s(sum)
}

/// The leaky rectifier for a slope below 1: the larger of both lines.
#[inline(always)]
pub fn leaky<S: Simd>(simd: S, x: S::f32s, slope: S::f32s) -> S::f32s {
    simd.max_f32s(x, simd.mul_f32s(x, slope))
}

/// The derivative of the leaky rectifier: 1 above 0, the slope elsewhere.
#[inline(always)]
pub fn leaky_slope<S: Simd>(simd: S, x: S::f32s, slope: S::f32s) -> S::f32s {
    let zero = simd.splat_f32s(0.0);
    simd.select_f32s(simd.greater_than_f32s(x, zero), simd.splat_f32s(1.0), slope)
}
