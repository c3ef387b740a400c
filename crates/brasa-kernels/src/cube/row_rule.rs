//! Rules of rows of any width, from recorded programs: one thread per row, with loops over its columns.

use burn_cubecl::tensor::CubeTensor;

use super::cubecl::{self, prelude::*};
use super::elementwise::{OTHERS, value_of};
use super::{empty, threads};
use crate::elementwise::Program;
use crate::row_rule::RowProgram;

#[allow(clippy::eq_op, reason = "in a kernel, a number that differs from itself is none")]
#[cube(launch, create_dummy_kernel)]
pub(super) fn row_rule(
    inputs: &Sequence<OwnedTensor<f32>>,
    results: &mut Sequence<OwnedTensor<f32>>,
    columns: &mut Sequence<OwnedTensor<f32>>,
    n_rows: usize,
    width: usize,
    #[comptime] program: RowProgram,
) {
    let row = ABSOLUTE_POS;
    if row < n_rows {
        let none = Sequence::<f32>::new();
        let mut top = f32::min_value();
        let mut best = 0.0f32;
        if comptime!(program.key.is_some()) {
            for column in 0..width {
                let key_program = comptime!(program.key.clone().expect("it was checked"));
                let last = comptime!(key_program.outputs[0][0]);
                let values = values_of(inputs, &none, row, column, key_program);
                let key = *values.index(last);
                // What is not a number is the greatest: it must show.
                let is_greater = key > top || key != key;
                top = select(is_greater, key, top);
                best = select(is_greater, f32::cast_from(column), best);
            }
        }
        let mut cells = Sequence::<RuntimeCell<f32>>::new();
        #[unroll]
        for _ in 0..comptime!(program.sums.outputs[0].len()) {
            cells.push(RuntimeCell::<f32>::new(0.0));
        }
        for column in 0..width {
            let mut given = Sequence::<f32>::new();
            given.push(f32::cast_from(column));
            given.push(top);
            given.push(best);
            let values = values_of(inputs, &given, row, column, comptime!(program.sums.clone()));
            #[unroll]
            for i in 0..comptime!(program.sums.outputs[0].len()) {
                let cell = cells.index(i);
                cell.store(cell.read() + *values.index(comptime!(program.sums.outputs[0][i])));
            }
        }
        let mut sums = Sequence::<f32>::new();
        #[unroll]
        for i in 0..comptime!(program.sums.outputs[0].len()) {
            sums.push(cells.index(i).read());
        }
        let whole = values_of(inputs, &sums, row, 0, comptime!(program.row.clone()));
        #[unroll]
        for i in 0..comptime!(program.n_results) {
            let result = results.index_mut(i);
            result[row] = *whole.index(comptime!(program.row.outputs[0][i]));
        }
        if comptime!(program.columns.is_some()) {
            for column in 0..width {
                let mut given = Sequence::<f32>::new();
                given.push(f32::cast_from(column));
                given.push(top);
                given.push(best);
                #[unroll]
                for i in comptime!(program.n_results)..comptime!(program.row.outputs[0].len()) {
                    given.push(*whole.index(comptime!(program.row.outputs[0][i])));
                }
                let of_column = comptime!(program.columns.clone().expect("it was checked"));
                let values = values_of(inputs, &given, row, column, comptime!(of_column.clone()));
                #[unroll]
                for i in 0..comptime!(of_column.outputs[0].len()) {
                    let numbers = columns.index_mut(i);
                    numbers[row * width + column] = *values.index(comptime!(of_column.outputs[0][i]));
                }
            }
        }
    }
}

/// The values of all nodes of a program.
#[cube]
fn values_of(
    inputs: &Sequence<OwnedTensor<f32>>,
    given: &Sequence<f32>,
    row: usize,
    column: usize,
    #[comptime] program: Program,
) -> Sequence<f32> {
    let mut values = Sequence::<f32>::new();
    #[unroll]
    for i in 0..comptime!(program.nodes.len()) {
        let value = value_of(inputs, given, &values, row, column, comptime!(program.nodes[i]));
        values.push(value);
    }
    values
}

/// Results, `[n_rows]` each, and numbers of the columns, `[n_rows, width]` each; there are rows. `None` if the device has too few places for
/// all matrices.
pub(crate) fn launch(
    program: &RowProgram,
    inputs: Vec<CubeTensor>,
    [n_rows, width]: [usize; 2],
) -> Option<[Vec<CubeTensor>; 2]> {
    let like = inputs[0].clone();
    let places = like.client.properties().hardware.max_bindings as usize;
    let n_columns = program.columns.as_ref().map_or(0, |columns| columns.outputs[0].len());
    if inputs.len() + program.n_results + n_columns + OTHERS > places {
        return None;
    }
    let results: Vec<CubeTensor> = (0..program.n_results).map(|_| empty(&like, [n_rows])).collect();
    let columns: Vec<CubeTensor> = (0..n_columns).map(|_| empty(&like, [n_rows, width])).collect();
    let (count, dim) = threads(&like, n_rows);
    let list = |tensors: &[CubeTensor]| tensors.iter().map(|tensor| tensor.clone().into_tensor_arg()).collect();
    row_rule::launch(
        &like.client,
        count,
        dim,
        inputs.into_iter().map(CubeTensor::into_tensor_arg).collect(),
        list(&results),
        list(&columns),
        n_rows,
        width,
        program.clone(),
    );
    Some([results, columns])
}
