//! Columns of an observation that critics see and actors do not.

use std::borrow::Cow;
use std::ops::Range;

use brasa_core::env::field;
use burn::tensor::Tensor;

use crate::NnError;

/// What an actor with `inputs` numbers sees of `[n_rows, width]`, which may lack the privileged columns already.
pub(crate) fn seen(privileged: &Range<usize>, inputs: usize, rows: Tensor<2>) -> Tensor<2> {
    let [n_rows, width] = rows.dims();
    if privileged.is_empty() || width == inputs {
        return rows;
    }
    let parts = [0..privileged.start, privileged.end..width].into_iter().filter(|columns| !columns.is_empty());
    let mut parts: Vec<Tensor<2>> = parts.map(|columns| rows.clone().slice([0..n_rows, columns])).collect();
    match parts.len() {
        1 => parts.remove(0),
        _ => Tensor::cat(parts, 1),
    }
}

/// [`seen`] in the memory of the CPU.
pub(crate) fn seen_rows<'a>(
    privileged: &Range<usize>,
    inputs: usize,
    rows: &'a [f32],
    n_rows: usize,
) -> Cow<'a, [f32]> {
    let width = rows.len() / n_rows.max(1);
    if privileged.is_empty() || width == inputs {
        return Cow::Borrowed(rows);
    }
    let seen = |row: &'a [f32]| row[..privileged.start].iter().chain(&row[privileged.end..]);
    Cow::Owned(rows.chunks_exact(width).flat_map(seen).copied().collect())
}

/// Rejects layers of actor and critic in common where they see different numbers.
pub(crate) fn check_apart(
    privileged: &Range<usize>,
    field: &'static str,
    in_common: bool,
    got: String,
) -> Result<(), NnError> {
    let rule = "must not be set where the critic sees what the actor does not";
    Ok(field::rule(privileged.is_empty() || !in_common, field, rule, got)?)
}
