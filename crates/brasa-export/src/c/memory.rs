//! Layers that remember in C.

use super::write_array;
use crate::{Affine, Cell, Memory};

/// Where the numbers of a layer stand among those that a row is remembered by.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The first one.
    pub first: usize,
    /// Numbers of this layer.
    pub n: usize,
    /// Numbers of the row.
    pub all: usize,
}

/// Writes the constants of a layer for rows of `width` columns to `out`; its statements on `x`, with `y` beside it. A row that is not known leaves
/// what is remembered.
pub(super) fn write(out: &mut String, id: &str, memory: &Memory, width: usize, place: Place) -> String {
    let Place { first, n, all } = place;
    let own = format!("state + agent * {all} + {first}");
    match memory {
        // What is remembered, then the row.
        Memory::Window { .. } => format!(
            "        if (known) {{\n            float *own = {own};\n            \
            for (i = 0; i < {width}; ++i) {{ y[i] = x[i]; }}\n            \
            for (i = 0; i < {n}; ++i) {{ x[i] = own[i]; }}\n            \
            for (i = 0; i < {width}; ++i) {{ x[{n} + i] = y[i]; }}\n            \
            for (i = 0; i < {n}; ++i) {{ own[i] = x[{width} + i]; }}\n        }}\n"
        ),
        Memory::Recurrent { cell, input, output } => {
            for (field, Affine { weight, bias }) in [("input", input), ("output", output)] {
                write_array(out, &format!("{id}_{field}_weight"), weight);
                write_array(out, &format!("{id}_{field}_bias"), bias);
            }
            let (gates, cells) = (output.bias.len(), output.bias.len() / cell.n_gates());
            let rule = match cell {
                Cell::Lstm => LSTM,
                Cell::Gru => GRU,
            };
            let text = STEP.replace("@rule@", rule);
            let marks = [("id", id.to_owned()), ("width", width.to_string()), ("gates", gates.to_string())];
            let marks = marks.into_iter().chain([("cells", cells.to_string())]);
            out.push_str(&marks.fold(text, |text, (mark, value)| text.replace(&format!("@{mark}@"), &value)));
            format!(
                "        if (known) {{\n            {id}_step(x, {own});\n            \
                for (i = 0; i < {cells}; ++i) {{ x[i] = state[agent * {all} + {first} + i]; }}\n        }}\n"
            )
        }
    }
}

/// A step of cells on one row. The sums are those of inputs, then those of outputs of the step before.
const STEP: &str = "static float @id@_sigmoid(float x) { return 0.5f * tanhf(0.5f * x) + 0.5f; }

static void @id@_step(const float *x, float *state) {
    float a[@gates@], b[@gates@];
    int i, j;
    for (j = 0; j < @gates@; ++j) { a[j] = @id@_input_bias[j]; b[j] = @id@_output_bias[j]; }
    for (i = 0; i < @width@; ++i) { for (j = 0; j < @gates@; ++j) { a[j] += x[i] * @id@_input_weight[i * @gates@ + j]; } }
    for (i = 0; i < @cells@; ++i) { for (j = 0; j < @gates@; ++j) { b[j] += state[i] * @id@_output_weight[i * @gates@ + j]; } }
    for (i = 0; i < @cells@; ++i) {
@rule@    }
}

";
const LSTM: &str = "        float in = @id@_sigmoid(a[i] + b[i]), keep = @id@_sigmoid(a[@cells@ + i] + b[@cells@ + i]);
        float fresh = tanhf(a[2 * @cells@ + i] + b[2 * @cells@ + i]), out = @id@_sigmoid(a[3 * @cells@ + i] + b[3 * @cells@ + i]);
        float memory = keep * state[@cells@ + i] + in * fresh;
        state[@cells@ + i] = memory;
        state[i] = out * tanhf(memory);
";
const GRU: &str =
    "        float reset = @id@_sigmoid(a[i] + b[i]), keep = @id@_sigmoid(a[@cells@ + i] + b[@cells@ + i]);
        float fresh = tanhf(a[2 * @cells@ + i] + reset * b[2 * @cells@ + i]);
        state[i] = fresh + keep * (state[i] - fresh);
";
