//! Recurrent layers.

use brasa_core::Sequences;
use brasa_core::env::field;
use brasa_core::export::{Affine, Cell, Memory};
use brasa_kernels::{HostRecurrent, RecurrentKind, cell_rule};
use brasa_number::{Gru, Lstm};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;

use crate::{Init, Linear, NnError};

/// Checks settings of an on-policy learner for a network that remembers `state_width` numbers.
///
/// # Errors
/// [`NnError::Field`] for sequences of a network without memory, and for parts of batches of one that has it.
///
/// ```
/// use brasa_nn::check_memory;
///
/// // Sequences of 16 steps, for a network that remembers 128 numbers.
/// check_memory(128, 1, Some(16))?;
/// let error = check_memory(0, 1, Some(16)).unwrap_err().to_string();
/// assert_eq!(error, "`sequence_length` must be left out: the network has no memory, got 16");
/// # Ok::<(), brasa_nn::NnError>(())
/// ```
pub fn check_memory(
    state_width: usize,
    accumulation_steps: u64,
    sequence_length: Option<usize>,
) -> Result<(), NnError> {
    let (remembers, length) = (state_width > 0, sequence_length.map_or("none".to_owned(), |length| length.to_string()));
    let rule = "must be left out: the network has no memory";
    field::rule(remembers || sequence_length.is_none(), "sequence_length", rule, length)?;
    let rule = "must be 1 for a network with memory: sequences are not taken apart";
    Ok(field::rule(!remembers || accumulation_steps == 1, "accumulation_steps", rule, accumulation_steps)?)
}

/// A recurrent layer as in PyTorch: gates from inputs, `x W + b`, and from outputs of the step before, `h U + c`, with a bias each.
///
/// The state of a row is the output of the step before, and the memory of an LSTM behind it.
///
/// ```
/// use brasa_core::env::named_rng;
/// use brasa_nn::{Init, Recurrent, RecurrentKind};
/// use burn::tensor::Tensor;
///
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let layer = Recurrent::new(RecurrentKind::Lstm, 3, 8, Init::Within(0.35), &device, rng);
/// let (output, state) = layer.step(Tensor::ones([2, 3], &device), Tensor::zeros([2, 16], &device));
/// assert_eq!((output.dims(), state.dims()), ([2, 8], [2, layer.state_width()]));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Module, Debug)]
pub struct Recurrent {
    input: Linear,
    output: Linear,
    #[module(skip)]
    kind: RecurrentKind,
}

impl Recurrent {
    /// A layer of `width` cells, with initial weights from `rng`.
    pub fn new(
        kind: RecurrentKind,
        inputs: usize,
        width: usize,
        init: Init,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Self {
        let gates = kind.n_gates() * width;
        let input = Linear::new(inputs, gates, init, device, rng);
        Self { input, output: Linear::new(width, gates, init, device, rng), kind }
    }

    /// Number of cells.
    pub fn width(&self) -> usize {
        self.output.inputs()
    }

    /// Numbers of the state of a row.
    pub fn state_width(&self) -> usize {
        self.kind.n_states() * self.width()
    }

    pub(crate) fn inputs(&self) -> usize {
        self.input.inputs()
    }

    /// One step: the output, and the state after it.
    ///
    /// # Shapes
    /// - `x`: `[n_rows, inputs]`
    /// - `state`: `[n_rows, state_width]`
    /// - output: `[n_rows, width]`, `[n_rows, state_width]`
    pub fn step(&self, x: Tensor<2>, state: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        self.cells(self.input.forward(x, None), state)
    }

    /// The outputs of all steps of `sequences`, whose state is that of this layer.
    ///
    /// # Shapes
    /// - `x`: `[n_rows, inputs]`
    /// - output: `[n_rows, width]`
    pub fn forward(&self, x: Tensor<2>, sequences: &Sequences) -> Tensor<2> {
        let from_x = self.input.forward(x, None);
        let outputs = sequences.steps(|rows, state| self.cells(from_x.clone().slice(rows), state));
        Tensor::cat(outputs, 0)
    }

    /// The states after all steps of `sequences`, `[n_rows, state_width]`.
    pub(crate) fn states(&self, x: Tensor<2>, sequences: &Sequences) -> Tensor<2> {
        let from_x = self.input.forward(x, None);
        let states = sequences.steps(|rows, state| {
            let (_, after) = self.cells(from_x.clone().slice(rows), state);
            (after.clone(), after)
        });
        Tensor::cat(states, 0)
    }

    /// One step from the products of inputs.
    fn cells(&self, from_x: Tensor<2>, state: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let ([n_rows, _], width) = (state.dims(), self.width());
        let part = |of: &Tensor<2>, i: usize| of.clone().slice([0..n_rows, i * width..(i + 1) * width]);
        match self.kind {
            RecurrentKind::Lstm => {
                let sums = from_x + self.output.forward(part(&state, 0), None);
                let gates = [0, 1, 2, 3].map(|i| part(&sums, i));
                let [i, f, g, o] = gates;
                let [output, memory] = cell_rule(Lstm, [i, f, g, o, part(&state, 1)]);
                (output.clone(), Tensor::cat(vec![output, memory], 1))
            }
            RecurrentKind::Gru => {
                let from_h = self.output.forward(state.clone(), None);
                let [r, z] = [0, 1].map(|i| part(&from_x, i) + part(&from_h, i));
                let [output] = cell_rule(Gru, [r, z, part(&from_x, 2), part(&from_h, 2), state]);
                (output.clone(), output)
            }
        }
    }

    /// The layer in exported policies.
    pub(crate) fn exported(&self) -> Memory {
        let cell = match self.kind {
            RecurrentKind::Lstm => Cell::Lstm,
            RecurrentKind::Gru => Cell::Gru,
        };
        let [input, output] = [&self.input, &self.output].map(|layer| {
            let (weight, bias) = layer.numbers();
            Affine { weight, bias }
        });
        Memory::Recurrent { cell, input, output }
    }

    /// The layer in the memory of the CPU; `None` elsewhere.
    pub(crate) fn on_host(&self) -> Option<HostRecurrent> {
        let layers = [&self.input, &self.output];
        HostRecurrent::new(self.kind, layers.map(Linear::weight), layers.map(Linear::bias))
    }
}

#[cfg(test)]
mod tests {
    use brasa_core::env::named_rng;
    use burn::tensor::TensorData;
    use proptest::prelude::*;

    use super::*;
    use crate::named_params;

    fn numbers(n: usize, seed: f32) -> Vec<f32> {
        (0..n).map(|i| ((i as f32 + seed) * 0.7).sin()).collect()
    }

    fn read<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    proptest! {
        /// Outputs, state and gradients of sequences in which episodes begin.
        #[test]
        fn loops_through_time_are_those_of_the_tape(
            is_lstm in any::<bool>(), steps in 1usize..6, n in 1usize..4, inputs in 1usize..5, width in 1usize..10, seed in 0u64..99,
        ) {
            let kind = if is_lstm { RecurrentKind::Lstm } else { RecurrentKind::Gru };
            let device = brasa_test::device().autodiff();
            let plain = device.clone().without_autodiff();
            let rng = &mut named_rng(seed, "weights", 0);
            let layer = Recurrent::new(kind, inputs, width, Init::Within(0.9), &device, rng);
            let n_rows = steps * n;
            let (x, before) = (numbers(n_rows * inputs, 0.3), numbers(n * layer.state_width(), 0.9));
            let probe = numbers(n_rows * width, 2.1);
            let starts: Vec<f32> = (0..n_rows).map(|i| f32::from(u8::from((i + seed as usize).is_multiple_of(3)))).collect();

            let tensor = |values: &[f32], dims: [usize; 2]| Tensor::<2>::from_data(TensorData::new(values.to_vec(), dims), &plain);
            let tracked = Tensor::from_inner(tensor(&x, [n_rows, inputs])).require_grad();
            let sequences = Sequences {
                state: tensor(&before, [n, layer.state_width()]),
                starts: Tensor::from_floats(starts.as_slice(), &plain),
            };
            let y = layer.forward(tracked.clone(), &sequences);
            let grads = (y.clone() * Tensor::from_inner(tensor(&probe, [n_rows, width]))).sum().backward();
            let gradient: Vec<f32> = [&layer.input, &layer.output]
                .into_iter()
                .flat_map(|layer| {
                    let weight = read(layer.weight().grad(&grads).expect("it is a parameter"));
                    let bias = read(layer.bias().grad(&grads).expect("it is a parameter"));
                    weight.into_iter().chain(bias)
                })
                .collect();

            let Some(mut host) = layer.on_host() else { return Ok(()) };
            prop_assert_eq!(host.n_params(), named_params(&layer).iter().map(|param| param.values.len()).sum::<usize>());
            let mut state = before.clone();
            let outputs = host.forward(&x, n, &starts, &mut state).to_vec();
            let (mut by_params, mut by_x) = (vec![0.0; host.n_params()], Vec::new());
            host.backward(&x, &probe, &mut by_params, Some(&mut by_x));
            let close = |ours: &[f32], theirs: &[f32]| {
                ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| (a - b).abs() < 3e-5 * (1.0 + b.abs()))
            };
            prop_assert!(close(&outputs, &read(y.inner())));
            prop_assert!(close(&by_x, &read(tracked.grad(&grads).expect("it is a leaf"))));
            prop_assert!(close(&by_params, &gradient));
            // Step by step, as a rollout does.
            let mut own = tensor(&before, [n, layer.state_width()]);
            for t in 0..steps {
                let rows = t * n..(t + 1) * n;
                let ended = Tensor::<1>::from_floats(&starts[rows.clone()], &plain);
                let mut kept = brasa_core::PolicyState { numbers: Some(own) };
                kept.end(&ended);
                let (y, after) = layer.clone().valid().step(
                    tensor(&x[rows.start * inputs..rows.end * inputs], [n, inputs]),
                    kept.numbers.expect("it remembers"),
                );
                prop_assert!(close(&outputs[rows.start * width..rows.end * width], &read(y)));
                own = after;
            }
            prop_assert!(close(&state, &read(own)));
        }
    }
}
