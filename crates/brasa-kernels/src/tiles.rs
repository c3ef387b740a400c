//! The product of two matrices in tiles that stay in registers.
//!
//! A general product copies its factors into blocks first, which takes longer than a small product itself. Here the right factor is read
//! where it lies, a transposed one through copies of a few columns, and a bias is added without another pass.

use std::cell::Cell;
use std::ops::Range;

use pulp::{Simd, WithSimd};
use wide::f32x4;

use crate::scratch::with_scratch;

/// Rows of a tile: with four vectors of columns they fill the registers of AVX-512, with two those of AVX2.
const ROWS: usize = 6;
/// Fewer columns than this leave most lanes of a vector empty.
const NARROW: usize = 5;
/// Terms of long sums that are added to all tiles, one after the other: so many rows of 64 columns stay in the first cache.
const TERMS: usize = 128;

thread_local! {
    /// Memory for copies of narrow factors; kept between products.
    static SCRATCH: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// A matrix in memory.
#[derive(Clone, Copy)]
pub(crate) struct Strided<'a> {
    pub data: &'a [f32],
    /// Distance of rows.
    pub row: usize,
    /// Distance of columns.
    pub column: usize,
}

impl<'a> Strided<'a> {
    /// Without the first rows and columns.
    pub fn skip(self, row: usize, column: usize) -> Self {
        Self { data: &self.data[row * self.row + column * self.column..], ..self }
    }

    fn turned(self) -> Self {
        Self { row: self.column, column: self.row, ..self }
    }
}

/// Whether [`multiply_tiles`] is the faster product for `[rows, inner, columns]`: measured against the crate `gemm`.
pub(crate) fn fits_tiles(left: Strided<'_>, right: Strided<'_>, [rows, inner, columns]: [usize; 3]) -> bool {
    // With 24 vectors of sums, as in AVX-512, a right factor may also come from the second cache (measured on Zen 4).
    let most = if pulp::Arch::new().dispatch(Lanes) >= 16 { 512 * 512 } else { 128 * 128 };
    let stays_in_cache = rows <= 64 || inner * columns <= most;
    match columns {
        1 => left.row == 1,
        2..NARROW => left.row == 1 || left.column == 1,
        _ => (right.column == 1 || right.row == 1 || inner < NARROW) && stays_in_cache,
    }
}

/// `left right + bias` for factors that [`fits_tiles`]; the result has contiguous rows.
///
/// # Safety
/// Every element of the factors must be inside their data, `bias` must have a number per column, and `rows * columns` numbers must be
/// writable at `to`.
#[allow(unsafe_code, reason = "the result needs no clearing first")]
pub(crate) unsafe fn multiply_tiles(
    left: Strided<'_>,
    right: Strided<'_>,
    bias: Option<&[f32]>,
    to: *mut f32,
    dims: [usize; 3],
) {
    let [rows, inner, columns] = dims;
    // Compiled once per instruction set and selected at run time.
    let arch = pulp::Arch::new();
    with_scratch(&SCRATCH, |scratch| {
        if columns >= NARROW {
            return arch.dispatch(Tiles { left, right, bias, to, dims, scratch });
        }
        let scratch = first(scratch, columns * inner.max(rows));
        if left.column == 1 {
            copy(right.turned(), columns, inner, scratch);
            return arch.dispatch(Dots { left, columns: scratch, bias, to, dims });
        }
        // The transposed product, whose columns fill vectors.
        let (left, right) = (right.turned(), left.turned());
        let (product, dims) = (scratch.as_mut_ptr(), [columns, inner, rows]);
        arch.dispatch(Tiles { left, right, bias: None, to: product, dims, scratch: &mut Vec::new() });
        for row in 0..rows {
            for column in 0..columns {
                let bias = bias.map_or(0.0, |bias| bias[column]);
                // SAFETY: the caller's numbers at `to` are as many as these.
                unsafe { to.add(row * columns + column).write(scratch[column * rows + row] + bias) };
            }
        }
    });
}

fn first(scratch: &mut Vec<f32>, n: usize) -> &mut [f32] {
    scratch.resize(scratch.len().max(n), 0.0);
    &mut scratch[..n]
}

/// Copies a matrix into contiguous rows; a transposed one in blocks of four by four.
#[inline(always)]
fn copy(from: Strided<'_>, rows: usize, columns: usize, to: &mut [f32]) {
    /// So many rows of 64 columns stay in the first cache.
    const ROWS: usize = 64;
    let [in_blocks, columns_in_blocks] = if from.row == 1 { [rows, columns].map(|n| n / 4 * 4) } else { [0; 2] };
    for (row, to) in (0..in_blocks).step_by(ROWS).zip(to.chunks_mut(ROWS * columns)) {
        let n = ROWS.min(in_blocks - row);
        for column in (0..columns_in_blocks).step_by(4) {
            let four: [&[f32]; 4] = std::array::from_fn(|i| &from.data[row + (column + i) * from.column..][..n]);
            let [a, b, c, d] = four.map(|column| column.as_chunks::<4>().0);
            for ((((to, a), b), c), d) in to.chunks_exact_mut(4 * columns).zip(a).zip(b).zip(c).zip(d) {
                let turned = f32x4::transpose([a, b, c, d].map(|numbers| f32x4::new(*numbers)));
                for (to, row) in to.chunks_exact_mut(columns).zip(turned) {
                    to[column..column + 4].copy_from_slice(row.as_array());
                }
            }
        }
    }
    for (row, to) in to.chunks_exact_mut(columns).take(rows).enumerate() {
        let first = if row < in_blocks { columns_in_blocks } else { 0 };
        let rest = to.iter_mut().enumerate().skip(first);
        rest.for_each(|(column, to)| *to = from.data[row * from.row + column * from.column]);
    }
}

/// Numbers in a vector of this processor.
struct Lanes;

impl WithSimd for Lanes {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        S::F32_LANES
    }
}

/// Products of rows with few columns.
struct Dots<'a> {
    left: Strided<'a>,
    /// Contiguous, one after the other.
    columns: &'a [f32],
    bias: Option<&'a [f32]>,
    to: *mut f32,
    dims: [usize; 3],
}

impl WithSimd for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self.dims[2] {
            1 => self.rows::<S, 1>(simd),
            2 => self.rows::<S, 2>(simd),
            3 => self.rows::<S, 3>(simd),
            _ => self.rows::<S, 4>(simd),
        }
    }
}

#[allow(unsafe_code, reason = "the result needs no clearing first; `multiply_tiles` states what must hold")]
impl Dots<'_> {
    #[inline(always)]
    fn rows<S: Simd, const C: usize>(self, simd: S) {
        let Self { left, columns, bias, to, dims: [rows, inner, _] } = self;
        for row in 0..rows {
            let x = &left.data[row * left.row..][..inner];
            let (x, rest) = S::as_simd_f32s(x);
            let mut sums = [simd.splat_f32s(0.0); C];
            let parts: [(&[S::f32s], &[f32]); C] =
                std::array::from_fn(|c| S::as_simd_f32s(&columns[c * inner..][..inner]));
            for (i, x) in x.iter().enumerate() {
                for (sum, part) in sums.iter_mut().zip(&parts) {
                    *sum = simd.mul_add_e_f32s(*x, part.0[i], *sum);
                }
            }
            for (c, (sum, part)) in sums.iter().zip(&parts).enumerate() {
                let tail: f32 = rest.iter().zip(part.1).map(|(x, y)| x * y).sum();
                let sum = simd.reduce_sum_f32s(*sum) + tail + bias.map_or(0.0, |bias| bias[c]);
                // SAFETY: `rows * columns` numbers are writable.
                unsafe { to.add(row * C + c).write(sum) };
            }
        }
    }
}

/// Columns of the right factor that tiles of all rows share.
#[derive(Clone, Copy)]
struct Panel<'a> {
    /// The first column.
    at: usize,
    /// Columns of the only vector, if it is not full.
    tail: Option<u32>,
    terms: &'a Range<usize>,
    /// The numbers of the first term, contiguous.
    first: *const f32,
    /// Distance of terms.
    row: usize,
}

struct Tiles<'a> {
    left: Strided<'a>,
    right: Strided<'a>,
    bias: Option<&'a [f32]>,
    to: *mut f32,
    dims: [usize; 3],
    /// For copies of columns whose rows are not contiguous.
    scratch: &'a mut Vec<f32>,
}

impl WithSimd for Tiles<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let [_, inner, columns] = self.dims;
        let lanes = S::F32_LANES;
        // Rows of weights are few, but a gradient of weights is a sum over all rows of a batch.
        let most = if self.left.row == 1 { TERMS } else { inner };
        for first in (0..inner).step_by(most) {
            let terms = &(first..(first + most).min(inner));
            let mut at = 0;
            if lanes >= 16 {
                at = self.panels::<S, 4>(simd, terms, at);
            }
            at = self.panels::<S, 2>(simd, terms, at);
            at = self.panels::<S, 1>(simd, terms, at);
            if at < columns {
                self.panel::<S, 1>(simd, terms, at, Some(columns - at));
            }
        }
    }
}

#[allow(unsafe_code, reason = "loads of vectors take pointers; `multiply_tiles` states what must hold")]
impl Tiles<'_> {
    /// Panels of `V` vectors from column `at` on, as many as there are; returns the next column.
    #[inline(always)]
    fn panels<S: Simd, const V: usize>(&mut self, simd: S, terms: &Range<usize>, mut at: usize) -> usize {
        let width = V * S::F32_LANES;
        while at + width <= self.dims[2] {
            self.panel::<S, V>(simd, terms, at, None);
            at += width;
        }
        at
    }

    /// `V` vectors of columns, or the `tail` first columns of one vector.
    #[inline(always)]
    fn panel<S: Simd, const V: usize>(&mut self, simd: S, terms: &Range<usize>, at: usize, tail: Option<usize>) {
        let mut right = self.right.skip(terms.start, at);
        if right.column != 1 {
            let (rows, width) = (terms.len(), tail.unwrap_or(V * S::F32_LANES));
            let copies = first(self.scratch, rows * width);
            copy(right, rows, width, copies);
            right = Strided { data: copies, row: width, column: 1 };
        }
        let (first, row_of_right) = (right.data.as_ptr(), right.row);
        let panel = Panel { at, tail: tail.map(|tail| tail as u32), terms, first, row: row_of_right };
        let rows = self.dims[0];
        let mut row = 0;
        while row + ROWS <= rows {
            self.tile::<S, ROWS, V>(simd, row, panel);
            row += ROWS;
        }
        match rows - row {
            0 => {}
            1 => self.tile::<S, 1, V>(simd, row, panel),
            2 => self.tile::<S, 2, V>(simd, row, panel),
            3 => self.tile::<S, 3, V>(simd, row, panel),
            4 => self.tile::<S, 4, V>(simd, row, panel),
            _ => self.tile::<S, 5, V>(simd, row, panel),
        }
    }

    /// Adds terms to the sums of `R` rows of a panel.
    #[inline(always)]
    fn tile<S: Simd, const R: usize, const V: usize>(&self, simd: S, row: usize, panel: Panel<'_>) {
        let Self { left, bias, to, dims: [.., columns], .. } = *self;
        let Panel { at, tail, terms, first, row: row_of_right } = panel;
        let lanes = S::F32_LANES;
        let mask = simd.mask_between_m32s(0, tail.unwrap_or(lanes as u32));
        // SAFETY: `multiply_tiles` requires that all rows and columns are inside the data; masks leave out columns behind the last. The first
        // terms write all sums, before others read them.
        unsafe {
            let load = |from: *const f32| match tail {
                Some(_) => simd.mask_load_ptr_f32s(mask, from),
                None => from.cast::<S::f32s>().read_unaligned(),
            };
            let place = |i: usize, v: usize| to.add((row + i) * columns + at + v * lanes);
            let mut sums = [[simd.splat_f32s(0.0); V]; R];
            if terms.start > 0 {
                for (i, sums) in sums.iter_mut().enumerate() {
                    sums.iter_mut().enumerate().for_each(|(v, sum)| *sum = load(place(i, v)));
                }
            } else if let Some(bias) = bias {
                for v in 0..V {
                    let bias = load(bias.as_ptr().add(at + v * lanes));
                    sums.iter_mut().for_each(|sums| sums[v] = bias);
                }
            }
            let mut left_at = left.data.as_ptr().add(row * left.row + terms.start * left.column);
            let mut right_at = first;
            for _ in 0..terms.len() {
                let mut factors = [simd.splat_f32s(0.0); V];
                for (v, factor) in factors.iter_mut().enumerate() {
                    *factor = load(right_at.add(v * lanes));
                }
                for (i, sums) in sums.iter_mut().enumerate() {
                    let x = simd.splat_f32s(*left_at.add(i * left.row));
                    for (sum, factor) in sums.iter_mut().zip(factors) {
                        *sum = simd.mul_add_e_f32s(x, factor, *sum);
                    }
                }
                left_at = left_at.wrapping_add(left.column);
                right_at = right_at.wrapping_add(row_of_right);
            }
            for (i, sums) in sums.iter().enumerate() {
                for (v, sum) in sums.iter().enumerate() {
                    match tail {
                        Some(_) => simd.mask_store_ptr_f32s(mask, place(i, v), *sum),
                        None => place(i, v).cast::<S::f32s>().write_unaligned(*sum),
                    }
                }
            }
        }
    }
}
