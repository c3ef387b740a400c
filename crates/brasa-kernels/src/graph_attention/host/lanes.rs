//! Loads and stores of slices in vector registers.
//!
//! The instructions are explicit: the compiler cannot know that gradients and values do not overlap in memory, and
//! therefore does not vectorize the loops.

use std::ops::Range;

use pulp::Simd;

/// The number of channels as a compile-time constant, or 0 for any number.
#[inline(always)]
pub fn channels<const C: usize>(channels: usize) -> usize {
    if C == 0 { channels } else { C }
}

/// Splits `0..n` into pieces of at most one register.
#[inline(always)]
pub fn pieces<S: Simd>(n: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n.div_ceil(S::F32_LANES)).map(move |piece| {
        let first = piece * S::F32_LANES;
        first..(first + S::F32_LANES).min(n)
    })
}

/// Loads at most one register of numbers, padded with 0.
#[inline(always)]
pub fn load<S: Simd>(simd: S, from: &[f32]) -> S::f32s {
    match S::as_simd_f32s(from) {
        ([whole], []) => *whole,
        _ => simd.partial_load_f32s(from),
    }
}

/// Stores as many numbers as fit.
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

/// Leaky ReLU for a slope below 1: the maximum of both lines.
#[inline(always)]
pub fn leaky<S: Simd>(simd: S, x: S::f32s, slope: S::f32s) -> S::f32s {
    simd.max_f32s(x, simd.mul_f32s(x, slope))
}

/// The derivative of leaky ReLU: 1 above 0, the slope elsewhere.
#[inline(always)]
pub fn leaky_slope<S: Simd>(simd: S, x: S::f32s, slope: S::f32s) -> S::f32s {
    let zero = simd.splat_f32s(0.0);
    simd.select_f32s(simd.greater_than_f32s(x, zero), simd.splat_f32s(1.0), slope)
}
