//! The loss of every row of a batch with its derivatives, from a recorded program: one group of threads, as its means need all rows.

use burn_cubecl::tensor::CubeTensor;

use super::cubecl::{self, prelude::*};
use super::elementwise::{OTHERS, value_of};
use super::{LANES, empty, sum_of_lanes};
use crate::elementwise::Program;
use crate::row_loss::{Recorded, Standardized};

/// What the translation of the kernel depends on beside its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LossForm {
    /// Groups of rows, over whose means the loss is a sum.
    pub(crate) n_groups: usize,
    /// The nodes of a column of data that is standardized and of its weights, and the bits of what is added to the deviation.
    pub(crate) standardized: Option<([usize; 2], u32)>,
}

#[cube(launch, create_dummy_kernel)]
pub(super) fn row_loss(
    inputs: &Sequence<OwnedTensor<f32>>,
    slopes: &mut Sequence<OwnedTensor<f32>>,
    means: &mut Tensor<f32>,
    n_rows: usize,
    #[comptime] program: Program,
    #[comptime] form: LossForm,
) {
    let lane = UNIT_POS as usize;
    let mean = 1.0 / f32::cast_from(n_rows);
    let share = mean * comptime!(form.n_groups as f32);
    let mut shared = Shared::<[f32]>::new_slice(LANES);
    let mut center = 0.0f32;
    let mut deviation = 1.0f32;
    let none = Sequence::<f32>::new();
    if comptime!(form.standardized.is_some()) {
        let nodes = comptime!(form.standardized.expect("it was checked").0);
        let mut sum = 0.0f32;
        for row in range_stepped(lane, n_rows, LANES) {
            let number = value_of(inputs, &none, &none, row, 0, comptime!(program.nodes[nodes[0]]));
            sum += number * value_of(inputs, &none, &none, row, 0, comptime!(program.nodes[nodes[1]]));
        }
        center = sum_of_lanes(&mut shared, lane, sum) * mean;
        let mut square = 0.0f32;
        for row in range_stepped(lane, n_rows, LANES) {
            let number = value_of(inputs, &none, &none, row, 0, comptime!(program.nodes[nodes[0]])) - center;
            square += number * number * value_of(inputs, &none, &none, row, 0, comptime!(program.nodes[nodes[1]]));
        }
        let epsilon = comptime!(f32::from_bits(form.standardized.expect("it was checked").1));
        deviation = (sum_of_lanes(&mut shared, lane, square) / (f32::cast_from(n_rows) - 1.0)).sqrt() + epsilon;
    }
    let last = comptime!(program.outputs.len() - 1);
    let mut totals = Sequence::<RuntimeCell<f32>>::new();
    #[unroll]
    for _ in 0..comptime!(program.outputs[last].len()) {
        totals.push(RuntimeCell::<f32>::new(0.0));
    }
    for row in range_stepped(lane, n_rows, LANES) {
        let mut values = Sequence::<f32>::new();
        #[unroll]
        for i in 0..comptime!(program.nodes.len()) {
            let mut value = value_of(inputs, &none, &values, row, 0, comptime!(program.nodes[i]));
            if comptime!(form.standardized.is_some_and(|(nodes, _)| nodes[0] == i)) {
                value = (value - center) / deviation;
            }
            values.push(value);
        }
        #[unroll]
        for i in 0..last {
            let output = slopes.index_mut(i);
            let to = row * output.stride(0);
            output[to] = *values.index(comptime!(program.outputs[i][0])) * share;
        }
        #[unroll]
        for i in 0..comptime!(program.outputs[last].len()) {
            let total = totals.index(i);
            total.store(total.read() + *values.index(comptime!(program.outputs[last][i])));
        }
    }
    #[unroll]
    for i in 0..comptime!(program.outputs[last].len()) {
        let total = sum_of_lanes(&mut shared, lane, totals.index(i).read());
        if lane == 0 {
            means[i] = total * mean;
        }
    }
}

/// The means `[1, R]`, and derivatives by each result that is used, `[n]`, from columns `[n, 1]`; there are rows. `None` if the device has too
/// few places for all columns.
pub(crate) fn launch<const X: usize, const D: usize>(
    recorded: &Recorded<X, D>,
    columns: Vec<CubeTensor>,
    [n, n_groups]: [usize; 2],
    standardized: Option<Standardized>,
) -> Option<(CubeTensor, Vec<CubeTensor>)> {
    let (like, program) = (columns[0].clone(), &recorded.program);
    let places = like.client.properties().hardware.max_bindings as usize;
    if columns.len() + program.outputs.len() + OTHERS > places {
        return None;
    }
    // A single row has no deviation.
    let standardized = standardized.filter(|_| n > 1).map(|standardized| {
        let nodes = [standardized.column, standardized.weight].map(|column| recorded.data[column]);
        (nodes, (standardized.epsilon as f32).to_bits())
    });
    let n_slopes = program.outputs.len() - 1;
    let means = empty(&like, [1, program.outputs[n_slopes].len()]);
    let slopes: Vec<CubeTensor> = (0..n_slopes).map(|_| empty(&like, [n])).collect();
    row_loss::launch(
        &like.client,
        CubeCount::Static(1, 1, 1),
        CubeDim::new_1d(LANES as u32),
        columns.into_iter().map(CubeTensor::into_tensor_arg).collect(),
        slopes.iter().map(|slopes| slopes.clone().into_tensor_arg()).collect(),
        means.clone().into_tensor_arg(),
        n,
        program.clone(),
        LossForm { n_groups, standardized },
    );
    Some((means, slopes))
}
