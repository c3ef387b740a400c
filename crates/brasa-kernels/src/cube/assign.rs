//! Rows written into several matrices in one launch.

use burn::backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;

use super::cubecl::{self, prelude::*};
use super::threads;

/// Matrices per launch at most; every number of them is a kernel of its own.
const MOST: usize = 8;

/// Buffers of a launch beside matrices and rows: what CubeCL tells of all sizes.
const OTHERS: usize = 1;

/// Copies `rows[i]` into `matrices[i]` from the row `firsts[i]` on, with one thread per number.
#[cube(launch, create_dummy_kernel)]
pub(super) fn assign(
    rows: &Sequence<OwnedTensor<f32>>,
    matrices: &mut Sequence<OwnedTensor<f32>>,
    firsts: &Sequence<u32>,
) {
    let mut start = 0usize.runtime();
    #[unroll]
    for i in 0..rows.len() {
        let from = rows.index(i);
        let end = start + from.shape(0) * from.shape(1);
        if ABSOLUTE_POS >= start && ABSOLUTE_POS < end {
            let (row, column) = ((ABSOLUTE_POS - start) / from.shape(1), (ABSOLUTE_POS - start) % from.shape(1));
            let matrix = matrices.index_mut(i);
            let to = (usize::cast_from(*firsts.index(i)) + row) * matrix.stride(0) + column * matrix.stride(1);
            matrix[to] = from[row * from.stride(0) + column * from.stride(1)];
        }
        start = end;
    }
}

/// Changes the memory of the matrices: nothing else may use it. Each part is a matrix, the first of its rows to replace, and the rows.
pub(crate) fn launch(parts: &[(CubeTensor, u32, CubeTensor)]) {
    let Some((like, ..)) = parts.first() else { return };
    let places = like.client.properties().hardware.max_bindings as usize;
    for parts in parts.chunks((places.saturating_sub(OTHERS) / 2).clamp(1, MOST)) {
        let n = parts.iter().map(|(_, _, rows)| rows.shape().num_elements()).sum();
        let (count, dim) = threads(like, n);
        assign::launch(
            &like.client,
            count,
            dim,
            parts.iter().map(|(_, _, rows)| rows.clone().into_tensor_arg()).collect(),
            parts.iter().map(|(matrix, ..)| matrix.clone().into_tensor_arg()).collect(),
            parts.iter().map(|(_, first, _)| *first).collect(),
        );
    }
}
