//! A recurrent layer in the memory of the CPU, forward and backward through time, without tensors and without a tape.

use brasa_number::{CellRule, Dual, Gru, Lstm, Single};
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::HostTensor;
#[cfg(feature = "flex")]
use crate::row_rule::vectorized;
#[cfg(feature = "flex")]
use crate::{layer::Pass, mlp::is_in_one_pass};

/// The cell of a recurrent layer.
///
/// ```
/// use brasa_kernels::RecurrentKind;
///
/// assert_eq!(RecurrentKind::default(), RecurrentKind::Lstm);
/// // Weights of 64 cells with 64 inputs, without the bias.
/// let weights = |kind: RecurrentKind| kind.n_gates() * 64 * (64 + 64);
/// assert_eq!((weights(RecurrentKind::Lstm), weights(RecurrentKind::Gru)), (32_768, 24_576));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecurrentKind {
    /// Long short-term memory: two numbers per cell, four gates.
    #[default]
    Lstm,
    /// Gated recurrent unit: one number per cell, three gates, so fewer weights.
    Gru,
}

impl RecurrentKind {
    /// Products per cell, for its gates and its candidate.
    pub fn n_gates(self) -> usize {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
        }
    }

    /// Numbers per cell that the next step needs: its output, and the memory behind it of [`RecurrentKind::Lstm`].
    pub fn n_states(self) -> usize {
        match self {
            Self::Lstm => 2,
            Self::Gru => 1,
        }
    }
}

/// A recurrent layer, with the steps of its last forward pass.
///
/// Sequences are computed side by side: row `t * n_sequences + i` is step `t` of sequence `i`.
///
/// ```
/// use brasa_kernels::{HostRecurrent, RecurrentKind};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let zeros = |n| Tensor::<2>::zeros([n, 3], &device);
/// let bias = Tensor::<1>::zeros([3], &device);
/// // Another device than the CPU has no such memory.
/// if let Some(mut layer) = HostRecurrent::new(RecurrentKind::Gru, [&zeros(2), &zeros(1)], [&bias, &bias]) {
///     // One sequence of two steps. Without weights, gates are half open.
///     let mut state = [1.0];
///     assert_eq!(layer.forward(&[0.3, 0.1, 0.2, 0.7], 1, &[], &mut state), [0.5, 0.25]);
///     assert_eq!(state, [0.25]);
///     // An episode that begins with the second step remembers nothing.
///     let mut state = [1.0];
///     assert_eq!(layer.forward(&[0.3, 0.1, 0.2, 0.7], 1, &[0.0, 1.0], &mut state), [0.5, 0.0]);
/// }
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug)]
pub struct HostRecurrent {
    kind: RecurrentKind,
    /// Weights from inputs, and from outputs of the step before.
    weights: [HostTensor; 2],
    biases: [HostTensor; 2],
    inputs: usize,
    width: usize,
    n_sequences: usize,
    /// What cells were computed from, row by row: four parts of `width` numbers.
    #[cfg(feature = "flex")]
    parts: Vec<f32>,
    /// States before each step, `[n_rows, n_states * width]`, of rows whose episode begins 0.
    #[cfg(feature = "flex")]
    before: Vec<f32>,
    /// Flags of rows whose episode begins.
    #[cfg(feature = "flex")]
    starts: Vec<f32>,
    /// Outputs, `[n_rows, width]`.
    y: Vec<f32>,
}

impl HostRecurrent {
    /// Weights `[inputs, gates * width]` from inputs and `[width, gates * width]` from outputs, and a bias `[gates * width]` of each. The gates
    /// are in PyTorch's order: `i`, `f`, `g`, `o`, or `r`, `z`, `n`. `None` where another device than the CPU computes, in other formats than
    /// 32 bits, and for a layer without inputs.
    pub fn new(kind: RecurrentKind, weights: [&Tensor<2>; 2], biases: [&Tensor<1>; 2]) -> Option<Self> {
        if brasa_device::precision().cast().is_some() {
            return None;
        }
        let ([inputs, _], [width, _]) = (weights[0].dims(), weights[1].dims());
        if inputs * width == 0 {
            return None;
        }
        let [Some(a), Some(b)] = weights.map(HostTensor::of) else { return None };
        let [Some(c), Some(d)] = biases.map(HostTensor::of) else { return None };
        Some(Self {
            kind,
            weights: [a, b],
            biases: [c, d],
            inputs,
            width,
            n_sequences: 0,
            #[cfg(feature = "flex")]
            parts: Vec::new(),
            #[cfg(feature = "flex")]
            before: Vec::new(),
            #[cfg(feature = "flex")]
            starts: Vec::new(),
            y: Vec::new(),
        })
    }

    /// Numbers of the gradient: weights and bias of inputs, then those of outputs.
    pub fn n_params(&self) -> usize {
        self.weights.iter().chain(&self.biases).map(|numbers| numbers.len()).sum()
    }

    /// Numbers of the state of a row.
    pub fn n_states(&self) -> usize {
        self.kind.n_states() * self.width
    }

    /// The outputs, `[n_rows, width]`, for `x` of `[n_rows, inputs]`. `state`, `[n_sequences, n_states]`, is that before the first step and
    /// becomes that after the last one. Before a row whose number in `starts` is 1, the state is 0; without `starts` no episode begins.
    ///
    /// # Panics
    /// If the sizes do not fit.
    pub fn forward(&mut self, x: &[f32], n_sequences: usize, starts: &[f32], state: &mut [f32]) -> &[f32] {
        assert_eq!(state.len(), n_sequences * self.n_states(), "a state for every sequence");
        self.n_sequences = n_sequences;
        #[cfg(feature = "flex")]
        {
            use crate::layer::layer_into;

            let (width, n_rows, n_states) = (self.width, x.len() / self.inputs, self.n_states());
            let n_gates = self.kind.n_gates();
            assert!(n_sequences > 0 && n_rows.is_multiple_of(n_sequences), "every sequence has as many steps");
            assert!(starts.is_empty() || starts.len() == n_rows, "a flag for every row");
            self.starts.clear();
            self.starts.extend(starts);
            let dims = |rows, inputs| crate::product::Dims { members: 1, rows, inputs, outputs: n_gates * width };
            let (mut from_x, mut from_h, mut h) = (Vec::new(), Vec::new(), Vec::new());
            self.count(n_rows, n_rows / n_sequences);
            layer_into(x, &self.weights[0], &self.biases[0], None, dims(n_rows, self.inputs), &mut from_x);
            self.parts.resize(n_rows * 4 * width, 0.0);
            self.before.resize(n_rows * n_states, 0.0);
            self.y.resize(n_rows * width, 0.0);
            for first in (0..n_rows).step_by(n_sequences) {
                h.clear();
                for (i, state) in state.chunks_exact_mut(n_states).enumerate() {
                    if self.starts.get(first + i).is_some_and(|start| *start > 0.0) {
                        state.fill(0.0);
                    }
                    h.extend_from_slice(&state[..width]);
                }
                self.before[first * n_states..(first + n_sequences) * n_states].copy_from_slice(state);
                layer_into(&h, &self.weights[1], &self.biases[1], None, dims(n_sequences, width), &mut from_h);
                for (i, state) in state.chunks_exact_mut(n_states).enumerate() {
                    let row = first + i;
                    let parts = &mut self.parts[row * 4 * width..(row + 1) * 4 * width];
                    let gates = |row: usize| row * n_gates * width..(row + 1) * n_gates * width;
                    let (x, h) = (&from_x[gates(row)], &from_h[gates(i)]);
                    let y = &mut self.y[row * width..(row + 1) * width];
                    match self.kind {
                        RecurrentKind::Lstm => {
                            parts.iter_mut().zip(x).zip(h).for_each(|((part, x), h)| *part = x + h);
                            let (output, memory) = state.split_at_mut(width);
                            let before = &self.before[row * n_states + width..(row + 1) * n_states];
                            values(Lstm, parts, before, [&mut *output, memory]);
                            y.copy_from_slice(output);
                        }
                        RecurrentKind::Gru => {
                            let sums = 2 * width;
                            parts[..sums].iter_mut().zip(x).zip(h).for_each(|((part, x), h)| *part = x + h);
                            parts[sums..3 * width].copy_from_slice(&x[sums..]);
                            parts[3 * width..].copy_from_slice(&h[sums..]);
                            values(Gru, parts, state, [y]);
                            state.copy_from_slice(&self.y[row * width..(row + 1) * width]);
                        }
                    }
                }
            }
        }
        #[cfg(not(feature = "flex"))]
        let _ = (x, starts);
        &self.y
    }

    /// The outputs of the last [`HostRecurrent::forward`].
    pub fn results(&self) -> &[f32] {
        &self.y
    }

    /// From the derivative of a loss by the outputs of the last [`HostRecurrent::forward`], whose input was `x`: the gradient of the parameters,
    /// and the derivative by `x`. Nothing depends on the state after the last step.
    ///
    /// # Panics
    /// If `x`, `grad` or `gradient` has another size than the outputs, or [`HostRecurrent::n_params`].
    pub fn backward(&self, x: &[f32], grad: &[f32], gradient: &mut [f32], by_x: Option<&mut Vec<f32>>) {
        #[cfg(feature = "flex")]
        {
            use crate::product::{Dims, input_grad_into, weight_grad_into};

            let (width, n_states, n) = (self.width, self.n_states(), self.n_sequences);
            let (n_rows, n_gates) = (self.y.len() / width, self.kind.n_gates());
            assert_eq!(gradient.len(), self.n_params(), "a gradient for every parameter");
            assert_eq!(grad.len(), self.y.len(), "a derivative by every output");
            let outputs = n_gates * width;
            let dims = |rows, inputs| Dims { members: 1, rows, inputs, outputs };
            // Derivatives by the products of inputs, and by those of outputs.
            let (mut by_from_x, mut by_from_h) = (vec![0.0; n_rows * outputs], vec![0.0; n_rows * outputs]);
            // By the state after a step, as later steps use it.
            let mut by_state = vec![0.0; n * n_states];
            let (mut by_parts, mut by_h, mut by_output) = (vec![0.0; 4 * width], Vec::new(), vec![0.0; width]);
            let mut later = vec![0.0; width];
            for first in (0..n_rows).step_by(n).rev() {
                for (i, by_state) in by_state.chunks_exact_mut(n_states).enumerate() {
                    let row = first + i;
                    let parts = &self.parts[row * 4 * width..(row + 1) * 4 * width];
                    let before = &self.before[row * n_states..(row + 1) * n_states];
                    let own = &grad[row * width..(row + 1) * width];
                    by_output.iter_mut().zip(own).zip(&*by_state).for_each(|((by, own), later)| *by = own + later);
                    let to_x = &mut by_from_x[row * outputs..(row + 1) * outputs];
                    let to_h = &mut by_from_h[row * outputs..(row + 1) * outputs];
                    match self.kind {
                        RecurrentKind::Lstm => {
                            let (_, by_memory) = by_state.split_at_mut(width);
                            later.copy_from_slice(by_memory);
                            slopes(Lstm, parts, &before[width..], [&by_output, &later], &mut by_parts, by_memory);
                            to_x.copy_from_slice(&by_parts);
                            to_h.copy_from_slice(&by_parts);
                        }
                        RecurrentKind::Gru => {
                            slopes(Gru, parts, before, [&by_output], &mut by_parts, by_state);
                            to_x.copy_from_slice(&by_parts[..outputs]);
                            to_h[..2 * width].copy_from_slice(&by_parts[..2 * width]);
                            to_h[2 * width..].copy_from_slice(&by_parts[3 * width..]);
                        }
                    }
                }
                let of_step = &by_from_h[first * outputs..(first + n) * outputs];
                input_grad_into(of_step, &self.weights[1], dims(n, width), &mut by_h);
                for (i, (by_state, by_h)) in
                    by_state.chunks_exact_mut(n_states).zip(by_h.chunks_exact(width)).enumerate()
                {
                    match self.kind {
                        // What the output was is in the products alone.
                        RecurrentKind::Lstm => by_state[..width].copy_from_slice(by_h),
                        RecurrentKind::Gru => by_state.iter_mut().zip(by_h).for_each(|(by, by_h)| *by += by_h),
                    }
                    if self.starts.get(first + i).is_some_and(|start| *start > 0.0) {
                        by_state.fill(0.0);
                    }
                }
            }
            self.count(2 * n_rows, n_rows / n);
            let mut outputs_before = Vec::with_capacity(n_rows * width);
            self.before.chunks_exact(n_states).for_each(|state| outputs_before.extend_from_slice(&state[..width]));
            let mut rest = gradient;
            for (i, (x, by, inputs)) in
                [(x, &by_from_x, self.inputs), (&outputs_before, &by_from_h, width)].into_iter().enumerate()
            {
                let (weight, after) = rest.split_at_mut(self.weights[i].len());
                let (bias, after) = after.split_at_mut(outputs);
                rest = after;
                weight_grad_into(x, by, dims(n_rows, inputs), weight);
                bias.fill(0.0);
                by.chunks_exact(outputs).for_each(|row| bias.iter_mut().zip(row).for_each(|(sum, by)| *sum += by));
            }
            if let Some(by_x) = by_x {
                input_grad_into(&by_from_x, &self.weights[0], dims(n_rows, self.inputs), by_x);
            }
        }
        #[cfg(not(feature = "flex"))]
        let _ = (x, grad, gradient, by_x);
    }

    /// Counts the products of `n_rows` rows in as many steps.
    #[cfg(feature = "flex")]
    fn count(&self, n_rows: usize, n_steps: usize) {
        let flop = 2 * n_rows * (self.weights[0].len() + self.weights[1].len());
        let of_layer = |i: usize, n_rows: usize| {
            let outputs = self.biases[i].len();
            let size = [self.weights[i].len() / outputs, outputs];
            Pass::new(is_in_one_pass(1, n_rows, [size].into_iter()), 0, 1).forward()
        };
        // On a GPU: the layer of the inputs; in every step that of the state, the cell, and the flags.
        let of_step = of_layer(1, n_rows / n_steps) + 2;
        brasa_device::count_product(flop, of_layer(0, n_rows) + n_steps * of_step);
    }
}

/// Cells that are computed together.
#[cfg(feature = "flex")]
const LANES: usize = 32;

#[cfg(feature = "flex")]
type Lane = [f32; LANES];

/// Outputs of cells from four parts of numbers and those of the step before.
#[cfg(feature = "flex")]
#[allow(clippy::needless_range_loop, reason = "a compiler vectorizes loops over constant ranges")]
fn values<const OUT: usize>(rule: impl CellRule<5, OUT>, parts: &[f32], before: &[f32], to: [&mut [f32]; OUT]) {
    vectorized(
        #[inline(always)]
        || {
            let (to, width) = (to, before.len());
            for first in (0..width).step_by(LANES) {
                let n = LANES.min(width - first);
                let x = lanes(parts, before, [first, n]);
                let mut y = [[0.0; LANES]; OUT];
                for l in 0..LANES {
                    let cell = rule.cell(lane(&x, l));
                    for o in 0..OUT {
                        y[o][l] = cell[o].0;
                    }
                }
                for o in 0..OUT {
                    to[o][first..first + n].copy_from_slice(&y[o][..n]);
                }
            }
        },
    );
}

/// From derivatives by the outputs of cells: those by the four parts, and by the numbers of the step before.
#[cfg(feature = "flex")]
#[allow(clippy::needless_range_loop, reason = "a compiler vectorizes loops over constant ranges")]
fn slopes<const OUT: usize>(
    rule: impl CellRule<5, OUT>,
    parts: &[f32],
    before: &[f32],
    by: [&[f32]; OUT],
    to: &mut [f32],
    to_before: &mut [f32],
) {
    vectorized(
        #[inline(always)]
        || {
            let width = before.len();
            for first in (0..width).step_by(LANES) {
                let n = LANES.min(width - first);
                let x = lanes(parts, before, [first, n]);
                let mut by_output = [[0.0; LANES]; OUT];
                for o in 0..OUT {
                    by_output[o][..n].copy_from_slice(&by[o][first..first + n]);
                }
                let mut slopes = [[0.0; LANES]; 5];
                for l in 0..LANES {
                    let cell = rule.cell(Dual::variables(lane(&x, l)));
                    for i in 0..5 {
                        for o in 0..OUT {
                            slopes[i][l] += by_output[o][l] * cell[o].by(i).0;
                        }
                    }
                }
                for i in 0..4 {
                    to[i * width + first..][..n].copy_from_slice(&slopes[i][..n]);
                }
                to_before[first..first + n].copy_from_slice(&slopes[4][..n]);
            }
        },
    );
}

#[cfg(feature = "flex")]
#[inline(always)]
fn lane(x: &[Lane; 5], l: usize) -> [Single; 5] {
    [Single(x[0][l]), Single(x[1][l]), Single(x[2][l]), Single(x[3][l]), Single(x[4][l])]
}

/// `n` cells from `first` on: their four parts, and their numbers of the step before.
#[cfg(feature = "flex")]
#[inline(always)]
fn lanes(parts: &[f32], before: &[f32], [first, n]: [usize; 2]) -> [Lane; 5] {
    let mut x = [[0.0; LANES]; 5];
    for (i, x) in x[..4].iter_mut().enumerate() {
        x[..n].copy_from_slice(&parts[i * before.len() + first..][..n]);
    }
    x[4][..n].copy_from_slice(&before[first..first + n]);
    x
}
