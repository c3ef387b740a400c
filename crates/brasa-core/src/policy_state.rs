//! What a policy remembers.

use std::ops::Range;

use brasa_env::BatchSlabs;
use burn::tensor::{Device, Tensor, TensorData};
use ndarray::{Array2, ArrayView2};

use crate::{Rows, StepBatch, read_back, row_indices, rows_by_field};

/// What a policy remembers from step to step, one row per row of observations. It is a value like any other: loops and programs hold it, and
/// pass it to the policy at every step.
///
/// ```
/// use brasa_core::PolicyState;
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut state = PolicyState { numbers: Some(Tensor::from_floats([[0.5, 2.0], [1.0, 3.0]], &device)) };
/// // The episode of the second row has ended.
/// state.end(&Tensor::from_floats([0.0, 1.0], &device));
/// let numbers = state.numbers.expect("this policy remembers");
/// assert_eq!(numbers.into_data().iter::<f32>().collect::<Vec<_>>(), [0.5, 2.0, 0.0, 0.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct PolicyState {
    /// `[n_rows, Policy::state_width]`; `None` for a policy without memory.
    pub numbers: Option<Tensor<2>>,
}

impl PolicyState {
    /// Of episodes that begin: 0.
    pub fn new(n_rows: usize, width: usize, device: &Device) -> Self {
        Self { numbers: (width > 0).then(|| Tensor::zeros([n_rows, width], device)) }
    }

    /// These numbers, `[n_rows, Policy::state_width]`, such as [`PolicyState::rows`] of an earlier program.
    pub fn from_rows(rows: ArrayView2<f32>, device: &Device) -> Self {
        let (shape, numbers) = ([rows.nrows(), rows.ncols()], rows.iter().copied().collect::<Vec<f32>>());
        Self { numbers: (shape[1] > 0).then(|| Tensor::from_data(TensorData::new(numbers, shape), device)) }
    }

    /// `[n_rows, Policy::state_width]`: the numbers; `None` for a policy without memory, and where an episode begins. Waits for the device.
    pub fn rows(&self) -> Option<Array2<f32>> {
        let numbers = self.numbers.as_ref()?;
        let values = read_back(numbers.clone());
        Some(Array2::from_shape_vec(numbers.dims(), values).expect("a tensor's data has the tensor's shape"))
    }

    /// Forgets everything in rows whose episode has ended, which `ended`, `[n_rows]`, has as 1.
    pub fn end(&mut self, ended: &Tensor<1>) {
        if let Some(numbers) = self.numbers.take() {
            let [n_rows, width] = numbers.dims();
            let ended = ended.clone().bool().reshape([n_rows, 1]).expand([n_rows, width]);
            self.numbers = Some(numbers.mask_fill(ended, 0.0));
        }
    }

    /// Numbers per row.
    pub fn width(&self) -> usize {
        self.numbers.as_ref().map_or(0, |numbers| numbers.dims()[1])
    }

    /// [`PolicyState::end`] for the rows whose episode ended in `step`.
    pub fn end_after<O>(&mut self, step: &StepBatch<O>) {
        if self.numbers.is_some() {
            self.end(&step.terminated.clone().max_pair(step.truncated.clone()));
        }
    }

    /// [`PolicyState::end`] for the rows of a view whose episode has ended.
    pub fn end_of(&mut self, view: &BatchSlabs, device: &Device) {
        let ended: Vec<f32> = (0..view.reward.len()).map(|row| f32::from(u8::from(view.episode_end(row)))).collect();
        if self.numbers.is_some() && ended.contains(&1.0) {
            self.end(&Tensor::from_floats(ended.as_slice(), device));
        }
    }

    /// These rows alone, in this order.
    #[must_use]
    pub fn kept(&self, rows: &[usize], device: &Device) -> Self {
        self.select(row_indices(rows.iter().copied(), device))
    }
}

rows_by_field!([] PolicyState { numbers });

/// Steps of sequences: row `t * n_sequences + i` is step `t` of sequence `i`.
///
/// ```
/// use brasa_core::{Sequences, read_back};
/// use burn::tensor::Tensor;
///
/// // Three steps of one sequence. An episode begins at the last step.
/// let device = brasa_device::open_named("cpu")?;
/// let state = Tensor::from_floats([[10.0]], &device);
/// let sequences = Sequences { state, starts: Tensor::from_floats([0.0, 0.0, 1.0], &device) };
/// // A policy that counts steps.
/// let counts = sequences.steps(|_rows, state| (read_back(state.clone())[0], state + 1.0));
/// assert_eq!(counts, [10.0, 11.0, 0.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sequences {
    /// `[n_sequences, Policy::state_width]`: what the policy remembers before the first steps.
    pub state: Tensor<2>,
    /// `[n_rows]`: 1 where an episode begins, which remembers nothing.
    pub starts: Tensor<1>,
}

impl Sequences {
    /// Computes one step of all sequences after the other. `step` gets its rows, and `[n_sequences, Policy::state_width]`, what the policy
    /// remembers before it, and returns a result and what the policy remembers after it. The results are in the order of steps.
    pub fn steps<T>(&self, mut step: impl FnMut(Range<usize>, Tensor<2>) -> (T, Tensor<2>)) -> Vec<T> {
        let ([n_rows], [n, _]) = (self.starts.dims(), self.state.dims());
        let mut state = self.state.clone();
        let firsts = (0..n_rows).step_by(n);
        firsts
            .map(|first| {
                let rows = first..first + n;
                let mut before = PolicyState { numbers: Some(state.clone()) };
                before.end(&self.starts.clone().slice(rows.clone()));
                let (result, after) = step(rows, before.numbers.expect("it has numbers"));
                state = after;
                result
            })
            .collect()
    }
}
