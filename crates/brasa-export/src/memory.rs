//! Layers that remember.

use brasa_number::{CellRule, Gru, Lstm, Single};
use serde::{Deserialize, Serialize};

use crate::Affine;

/// A layer whose result depends on earlier rows too. What it remembers of a row is 0 at the beginning of an episode.
///
/// ```
/// use brasa_export::{ExportedPolicy, Layer, Memory, Output};
///
/// # let policy = |obs_width, layers, output| ExportedPolicy {
/// #     obs_width, n_agents: 1, masked: false, layers, output, about: brasa_export::About::default(),
/// # };
/// // The difference of an observation and the one before.
/// let layers = vec![Layer::Memory(Memory::Window { frames: 2 }), Layer::linear(vec![-1.0, 1.0], vec![0.0])];
/// let policy: ExportedPolicy = policy(1, layers, Output::Real);
/// assert_eq!(policy.state_width(), 1);
/// let mut state = Vec::new();
/// assert_eq!(policy.act_from(&[5.0], None, &mut state), [5.0]);
/// assert_eq!(policy.act_from(&[7.0], None, &mut state), [2.0]);
/// assert_eq!(state, [7.0]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Memory {
    /// Puts the last rows before each row, the oldest first. `frames` counts the row itself. It remembers the rows before.
    Window {
        /// Rows of the result.
        frames: usize,
    },
    /// Cells as in PyTorch. It remembers the output of the step before, and the memory of an LSTM behind it.
    Recurrent {
        /// The kind of the cells.
        cell: Cell,
        /// `[inputs, gates * cells]`: from inputs to gates.
        input: Affine,
        /// `[cells, gates * cells]`: from the output of the step before to gates.
        output: Affine,
    },
}

/// The cell of a recurrent layer.
///
/// ```
/// use brasa_export::Cell;
///
/// assert_eq!((Cell::Lstm.n_gates(), Cell::Lstm.n_states()), (4, 2));
/// assert_eq!((Cell::Gru.n_gates(), Cell::Gru.n_states()), (3, 1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cell {
    /// Long short-term memory, with the gates `i`, `f`, `g`, `o`.
    Lstm,
    /// Gated recurrent unit, with the gates `r`, `z`, `n`.
    Gru,
}

impl Cell {
    /// Gates of a cell.
    pub fn n_gates(self) -> usize {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
        }
    }

    /// Numbers that a cell remembers.
    pub fn n_states(self) -> usize {
        match self {
            Self::Lstm => 2,
            Self::Gru => 1,
        }
    }
}

impl Memory {
    /// Width of the result for an input of `width`.
    pub(crate) fn result(&self, width: usize) -> Result<usize, String> {
        match self {
            Self::Window { frames: 0 } => Err("`frames` must be at least 1, got 0".into()),
            Self::Window { frames } => {
                width.checked_mul(*frames).ok_or_else(|| format!("{frames} rows of {width} columns are too many"))
            }
            Self::Recurrent { cell, input, output } => {
                let gates = output.bias.len();
                if gates == 0 || !gates.is_multiple_of(cell.n_gates()) {
                    let n = cell.n_gates();
                    return Err(format!("`output.bias` must have a positive multiple of {n} numbers, got {gates}"));
                }
                let cells = gates / cell.n_gates();
                let weights = [
                    ("input.weight", input.weight.len(), width.checked_mul(gates)),
                    ("input.bias", input.bias.len(), Some(gates)),
                    ("output.weight", output.weight.len(), cells.checked_mul(gates)),
                ];
                for (name, n, expected) in weights {
                    if Some(n) != expected {
                        let expected = expected.map_or("fewer".into(), |expected| expected.to_string());
                        return Err(format!("`{name}` must have {expected} numbers, got {n}"));
                    }
                }
                Ok(cells)
            }
        }
    }

    /// Numbers that it remembers of a row of `width` columns.
    pub(crate) fn state_width(&self, width: usize) -> usize {
        match self {
            Self::Window { frames } => frames.saturating_sub(1) * width,
            Self::Recurrent { cell, output, .. } => cell.n_states() * (output.bias.len() / cell.n_gates()),
        }
    }

    /// Checks that all numbers are finite.
    pub(crate) fn check_numbers(&self) -> Result<(), String> {
        match self {
            Self::Window { .. } => Ok(()),
            Self::Recurrent { input, output, .. } => crate::policy::all_finite(&[
                ("input.weight", &input.weight),
                ("input.bias", &input.bias),
                ("output.weight", &output.weight),
                ("output.bias", &output.bias),
            ]),
        }
    }

    /// The layer on one row, with what it remembers of it, which it replaces.
    pub(crate) fn forward(&self, x: &[f32], state: &mut [f32], y: &mut Vec<f32>) {
        match self {
            Self::Window { .. } => {
                y.extend_from_slice(state);
                y.extend_from_slice(x);
                state.copy_from_slice(&y[x.len()..]);
            }
            Self::Recurrent { cell, input, output } => {
                let cells = output.bias.len() / cell.n_gates();
                let (from_x, from_h) = (input.forward(x), output.forward(&state[..cells]));
                let both = |gate: usize, i: usize| Single(from_x[gate * cells + i] + from_h[gate * cells + i]);
                for i in 0..cells {
                    match cell {
                        Cell::Lstm => {
                            let [h, c] =
                                Lstm.cell([both(0, i), both(1, i), both(2, i), both(3, i), Single(state[cells + i])]);
                            (state[i], state[cells + i]) = (h.0, c.0);
                        }
                        Cell::Gru => {
                            let candidate = 2 * cells + i;
                            let parts = [from_x[candidate], from_h[candidate], state[i]].map(Single);
                            let [h] = Gru.cell([both(0, i), both(1, i), parts[0], parts[1], parts[2]]);
                            state[i] = h.0;
                        }
                    }
                }
                y.extend_from_slice(&state[..cells]);
            }
        }
    }
}
