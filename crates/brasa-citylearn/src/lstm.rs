//! A long short-term memory with several layers and a linear output, in f32.
//!
//! With `i, f, g, o` the four quarters of `W_ih x + b_ih + W_hh h + b_hh`: `c = sigmoid(f) c + sigmoid(i) tanh(g)` and
//! `h = sigmoid(o) tanh(c)` (Hochreiter and Schmidhuber 1997, with the order of gates of PyTorch's `LSTM`).

use safetensors::tensor::{Dtype, SafeTensors};

/// Most hidden units of a layer: gates are kept on the stack.
pub(super) const MOST_HIDDEN: usize = 128;

/// The weights.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lstm {
    pub(super) hidden: usize,
    layers: Vec<Layer>,
    /// Of the output.
    weight: Vec<f32>,
    bias: f32,
}

#[derive(Debug, Clone, PartialEq)]
struct Layer {
    /// `[4 * hidden, inputs]`, row by row.
    input_weight: Vec<f32>,
    /// `[4 * hidden, hidden]`, row by row.
    hidden_weight: Vec<f32>,
    input_bias: Vec<f32>,
    hidden_bias: Vec<f32>,
}

impl Lstm {
    /// Reads the weights with PyTorch's names `l_lstm.weight_ih_l0` and so on, `l_linear.weight` and `l_linear.bias`.
    ///
    /// # Errors
    /// What is wrong with the bytes: a missing tensor, another shape, another type, numbers that are not finite.
    pub(super) fn read(bytes: &[u8], n_inputs: usize, hidden: usize, n_layers: usize) -> Result<Self, String> {
        let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
        let tensor = |name: &str, shape: &[usize]| -> Result<Vec<f32>, String> {
            let view = file.tensor(name).map_err(|_| format!("it has no `{name}`"))?;
            if view.dtype() != Dtype::F32 || view.shape() != shape {
                return Err(format!("`{name}` must be F32 {shape:?}, got {:?} {:?}", view.dtype(), view.shape()));
            }
            let (numbers, _) = view.data().as_chunks::<4>();
            let values: Vec<f32> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            match values.iter().find(|value| !value.is_finite()) {
                None => Ok(values),
                Some(value) => Err(format!("`{name}` must be finite, got {value}")),
            }
        };
        let layers = (0..n_layers).map(|index| {
            let inputs = if index == 0 { n_inputs } else { hidden };
            Ok(Layer {
                input_weight: tensor(&format!("l_lstm.weight_ih_l{index}"), &[4 * hidden, inputs])?,
                hidden_weight: tensor(&format!("l_lstm.weight_hh_l{index}"), &[4 * hidden, hidden])?,
                input_bias: tensor(&format!("l_lstm.bias_ih_l{index}"), &[4 * hidden])?,
                hidden_bias: tensor(&format!("l_lstm.bias_hh_l{index}"), &[4 * hidden])?,
            })
        });
        Ok(Self {
            hidden,
            layers: layers.collect::<Result<_, String>>()?,
            weight: tensor("l_linear.weight", &[1, hidden])?,
            bias: tensor("l_linear.bias", &[1])?[0],
        })
    }

    /// Numbers of the state: hidden states and cells of all layers.
    pub(super) fn n_state(&self) -> usize {
        2 * self.layers.len() * self.hidden
    }

    /// One step with `inputs`; `state` has for each layer its hidden state, then its cells.
    pub(super) fn step(&self, inputs: &[f32], state: &mut [f32]) {
        let mut gates = [0.0_f32; 4 * MOST_HIDDEN];
        let gates = &mut gates[..4 * self.hidden];
        let mut below = [0.0_f32; MOST_HIDDEN];
        for (index, (layer, state)) in self.layers.iter().zip(state.chunks_exact_mut(2 * self.hidden)).enumerate() {
            let (hidden, cells) = state.split_at_mut(self.hidden);
            let inputs = if index == 0 { inputs } else { &below[..self.hidden] };
            let biases = layer.input_bias.iter().zip(&layer.hidden_bias);
            let rows = layer.input_weight.chunks_exact(inputs.len()).zip(layer.hidden_weight.chunks_exact(self.hidden));
            for ((gate, (input_row, hidden_row)), (input_bias, hidden_bias)) in gates.iter_mut().zip(rows).zip(biases) {
                *gate = dot(input_row, inputs) + input_bias + (dot(hidden_row, hidden) + hidden_bias);
            }
            let [input, forget, candidate, output] = std::array::from_fn(|part| &gates[part * self.hidden..]);
            for (i, (hidden, cell)) in hidden.iter_mut().zip(cells).enumerate() {
                *cell = sigmoid(forget[i]) * *cell + sigmoid(input[i]) * candidate[i].tanh();
                *hidden = sigmoid(output[i]) * cell.tanh();
            }
            below[..self.hidden].copy_from_slice(hidden);
        }
    }

    /// Bounds of the output: hidden states are between -1 and 1.
    pub(super) fn range(&self) -> (f32, f32) {
        let most: f32 = self.weight.iter().map(|weight| weight.abs()).sum();
        (self.bias - most, self.bias + most)
    }

    /// The output for the hidden state of the last layer.
    pub(super) fn output(&self, state: &[f32]) -> f32 {
        let last = 2 * self.hidden * (self.layers.len() - 1);
        dot(&self.weight, &state[last..last + self.hidden]) + self.bias
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_abs_diff_eq;

    #[test]
    fn one_unit_by_hand() {
        let layer = |input: f32| Layer {
            input_weight: vec![input; 4],
            hidden_weight: vec![0.5; 4],
            input_bias: vec![0.1; 4],
            hidden_bias: vec![0.2; 4],
        };
        let lstm = Lstm { hidden: 1, layers: vec![layer(1.0), layer(-1.0)], weight: vec![2.0], bias: 0.25 };
        let mut state = vec![0.0; lstm.n_state()];
        let (mut h, mut c) = ([0.0_f64; 2], [0.0_f64; 2]);
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        for x in [0.3, -0.8, 1.5] {
            let mut input = x;
            for (index, weight) in [1.0, -1.0].into_iter().enumerate() {
                let gate: f64 = weight * input + 0.3 + 0.5 * h[index];
                c[index] = sigmoid(gate) * c[index] + sigmoid(gate) * gate.tanh();
                h[index] = sigmoid(gate) * c[index].tanh();
                input = h[index];
            }
            lstm.step(&[x as f32], &mut state);
            assert_abs_diff_eq!(f64::from(lstm.output(&state)), 2.0 * h[1] + 0.25, epsilon = 1e-6);
        }
    }
}
