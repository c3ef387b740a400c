//! Several matrices beside each other as one, and back, in one launch for many of them.

use burn::backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;

use super::cubecl::{self, prelude::*};
use super::{at, empty, threads};

/// Matrices per launch at most; every number of them is a kernel of its own.
const MOST: usize = 16;

/// Buffers of a launch beside the parts: the whole, and what CubeCL tells of all sizes.
const OTHERS: usize = 2;

/// Copies the parts into the columns of `whole` from `first` on; `width` is that of all these parts together.
#[cube(launch, create_dummy_kernel)]
pub(super) fn concat(parts: &Sequence<OwnedTensor<f32>>, whole: &mut Tensor<f32>, first: usize, width: usize) {
    let (row, column) = (ABSOLUTE_POS / width, ABSOLUTE_POS % width);
    if row < whole.shape(0) {
        let mut start = 0usize.runtime();
        #[unroll]
        for i in 0..parts.len() {
            let part = parts.index(i);
            let end = start + part.shape(1);
            if column >= start && column < end {
                let to = row * whole.stride(0) + (first + column) * whole.stride(1);
                whole[to] = part[row * part.stride(0) + (column - start) * part.stride(1)];
            }
            start = end;
        }
    }
}

/// The opposite: fills the parts from the columns of `whole`.
#[cube(launch, create_dummy_kernel)]
pub(super) fn split(whole: &Tensor<f32>, parts: &mut Sequence<OwnedTensor<f32>>, first: usize, width: usize) {
    let (row, column) = (ABSOLUTE_POS / width, ABSOLUTE_POS % width);
    if row < whole.shape(0) {
        let value = whole[at(whole, row, first + column)];
        let mut start = 0usize.runtime();
        #[unroll]
        for i in 0..parts.len() {
            let part = parts.index_mut(i);
            let end = start + part.shape(1);
            if column >= start && column < end {
                let to = row * part.stride(0) + (column - start) * part.stride(1);
                part[to] = value;
            }
            start = end;
        }
    }
}

/// Parts `[n_rows, width]` beside each other; there is at least one, and none is empty.
pub(crate) fn launch_concat(parts: Vec<CubeTensor>) -> CubeTensor {
    let widths: Vec<usize> = parts.iter().map(|part| part.shape()[1]).collect();
    let n_rows = parts[0].shape()[0];
    let whole = empty(&parts[0], [n_rows, widths.iter().sum::<usize>()]);
    each_launch(&whole, &parts, |first, width, parts| {
        let (count, dim) = threads(&whole, n_rows * width);
        let parts = parts.iter().map(|part| part.clone().into_tensor_arg()).collect();
        concat::launch(&whole.client, count, dim, parts, whole.clone().into_tensor_arg(), first, width);
    });
    whole
}

/// The columns of `whole` as matrices of these widths, which are above 0 and those of all columns together.
pub(crate) fn launch_split(whole: &CubeTensor, widths: &[usize]) -> Vec<CubeTensor> {
    let n_rows = whole.shape()[0];
    let parts: Vec<CubeTensor> = widths.iter().map(|width| empty(whole, [n_rows, *width])).collect();
    each_launch(whole, &parts, |first, width, parts| {
        let (count, dim) = threads(whole, n_rows * width);
        let parts = parts.iter().map(|part| part.clone().into_tensor_arg()).collect();
        split::launch(&whole.client, count, dim, whole.clone().into_tensor_arg(), parts, first, width);
    });
    parts
}

/// As many parts at once as the device has places for: their first column, their columns together, and the parts.
fn each_launch(whole: &CubeTensor, parts: &[CubeTensor], mut launch: impl FnMut(usize, usize, &[CubeTensor])) {
    let places = whole.client.properties().hardware.max_bindings as usize;
    let mut first = 0;
    for parts in parts.chunks(places.saturating_sub(OTHERS).clamp(1, MOST)) {
        let width = parts.iter().map(|part| part.shape()[1]).sum();
        launch(first, width, parts);
        first += width;
    }
}
