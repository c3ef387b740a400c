//! Indoor temperatures from a recurrent network, and devices that an agent controls.
//!
//! At every step the network sees the last `lookback` rows of its inputs and predicts the indoor temperature of the row;
//! the temperatures that it sees are its own of the rows before. Its hidden state passes from one prediction to
//! the next. Before there are enough rows, temperatures are those of the data and devices serve the demand of the data.

use serde::{Deserialize, Serialize};

use super::lstm::Lstm;

/// The model of one building.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Dynamics {
    pub(super) lstm: Lstm,
    pub(super) lookback: usize,
    pub(super) n_inputs: usize,
    /// `[row * n_inputs + input]`: inputs that are known in advance, scaled; 0 for the others.
    pub(super) known: Vec<f32>,
    /// Place of the indoor temperature among the inputs, and its scale.
    pub(super) temperature: (usize, Scale),
    /// Inputs that depend on actions: their places, end uses and scales.
    pub(super) demands: Vec<(usize, usize, Scale)>,
}

/// Smallest and largest value of an input, which become 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Scale {
    pub(super) fn scaled(self, value: f64) -> f32 {
        ((value - self.low) / (self.high - self.low)) as f32
    }

    /// In f32, as CityLearn computes it.
    fn unscaled(self, value: f32) -> f64 {
        f64::from(value * (self.high - self.low) as f32 + self.low as f32)
    }
}

/// The state of a model in one environment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct DynamicsState {
    /// Rows seen in this episode.
    seen: u32,
    /// Hidden states and cells of the network.
    network: Vec<f32>,
    /// Scaled temperatures of the last `lookback + 1` rows, the newest last.
    temperatures: Vec<f32>,
    /// Scaled demands of the last `lookback` rows, `[row * n_demands + demand]`.
    demands: Vec<f32>,
}

impl Dynamics {
    /// Lowest and highest temperature that the network can predict, in degrees Celsius.
    pub(super) fn range_c(&self) -> (f64, f64) {
        let (low, high) = self.lstm.range();
        (self.temperature.1.unscaled(low), self.temperature.1.unscaled(high))
    }

    /// A state at the start of an episode.
    pub(super) fn new_state(&self) -> DynamicsState {
        DynamicsState {
            seen: 0,
            network: vec![0.0; self.lstm.n_state()],
            temperatures: vec![0.0; self.lookback + 1],
            demands: vec![0.0; self.lookback * self.demands.len()],
        }
    }

    /// Whether a saved state is one of this model.
    pub(super) fn fits(&self, state: &DynamicsState) -> bool {
        let lengths = |state: &DynamicsState| [state.network.len(), state.temperatures.len(), state.demands.len()];
        lengths(state) == lengths(&self.new_state())
    }

    /// Whether the devices of a building follow actions at the next step.
    pub(super) fn is_controlled(&self, state: &DynamicsState) -> bool {
        state.seen as usize > self.lookback
    }

    /// Adds `row`, with the temperature of the data and what was served of each demand in kWh; returns the predicted
    /// temperature in degrees Celsius, `None` before there are enough rows.
    pub(super) fn see(
        &self,
        state: &mut DynamicsState,
        row: usize,
        data_c: f64,
        served_kwh: impl Fn(usize) -> f64,
    ) -> Option<f64> {
        let (place, scale) = self.temperature;
        state.temperatures.rotate_left(1);
        *state.temperatures.last_mut()? = scale.scaled(data_c);
        let n_demands = self.demands.len();
        if n_demands > 0 {
            state.demands.rotate_left(n_demands);
            let newest = state.demands.len() - n_demands;
            for (slot, (_, end_use, scale)) in state.demands[newest..].iter_mut().zip(&self.demands) {
                *slot = scale.scaled(served_kwh(*end_use));
            }
        }
        state.seen = state.seen.saturating_add(1);
        if (state.seen as usize) <= self.lookback {
            return None;
        }
        let mut inputs = [0.0_f32; MOST_INPUTS];
        let inputs = &mut inputs[..self.n_inputs];
        for back in 0..self.lookback {
            let known = row + 1 + back - self.lookback;
            inputs.copy_from_slice(&self.known[known * self.n_inputs..(known + 1) * self.n_inputs]);
            inputs[place] = state.temperatures[back];
            for (demand, (place, ..)) in self.demands.iter().enumerate() {
                inputs[*place] = state.demands[back * n_demands + demand];
            }
            self.lstm.step(inputs, &mut state.network);
        }
        let predicted = self.lstm.output(&state.network);
        *state.temperatures.last_mut()? = predicted;
        Some(scale.unscaled(predicted))
    }
}

impl DynamicsState {
    /// The state at the start of an episode.
    pub(super) fn restart(&mut self) {
        self.seen = 0;
        self.network.fill(0.0);
    }
}

/// Most inputs of a network: they are kept on the stack.
pub(super) const MOST_INPUTS: usize = 64;
