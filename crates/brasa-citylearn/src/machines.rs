//! Washing machines: loads that a controller starts within a window of rows.
//!
//! The file of a machine has a window and a load profile in each row. An action above 0 within the window starts the
//! machine, once per window; the profile is then added to the load of this row and the next ones, and cannot be
//! stopped.

use brasa_power::{EnergyError, delimited::is_missing};
use serde::{Deserialize, Serialize};

use super::{
    district::{Observed, Tables, What},
    schema::{BuildingSchema, Schema},
};

/// Largest number in a file.
const MOST: f32 = 1e9;

/// A washing machine and its file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) building: usize,
    /// First and last row of the window, by row of the simulation; `None` where there is none.
    pub(super) windows: Vec<Option<(usize, usize)>>,
    /// Energy of each row after a start, in kWh, by row of the start.
    pub(super) profiles: Vec<Vec<f32>>,
}

/// The state of a washing machine; `length` of the [`pending`](MachineState::pending) rows is kept.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct MachineState {
    /// Whether it was started in the current window.
    started: bool,
    /// Energy of this row and the next ones, in kWh.
    pub(super) pending: Vec<f64>,
}

impl Machine {
    /// Reads the file of the machine `name`.
    pub(super) fn read(
        tables: &mut Tables,
        schema: &Schema,
        building: usize,
        (name, file): &(String, String),
    ) -> Result<Self, EnergyError> {
        let table = tables.table(file)?;
        let from = table.column_or("wm_start_time_step", -1.0, MOST, -1.0)?;
        let to = table.column_or("wm_end_time_step", -1.0, MOST, -1.0)?;
        let (mut windows, mut profiles) = (Vec::new(), Vec::new());
        for (row, cell) in
            table.texts("load_profile")?.iter().enumerate().take(schema.last_row + 1).skip(schema.first_row)
        {
            let is_window = from[row] >= 0.0 && to[row] >= 0.0;
            windows.push(is_window.then_some((from[row] as usize, to[row] as usize)));
            let list = cell.strip_prefix('[').and_then(|cell| cell.strip_suffix(']'));
            let loads = match list {
                Some(list) => list.split(',').map(|load| load.trim().parse::<f32>().ok()).collect(),
                // Rows without a window have no list.
                None => (is_missing(cell) || cell == "-1").then(Vec::new),
            };
            let plausible = |loads: &Vec<f32>| loads.iter().all(|load| (0.0..=MOST).contains(load));
            profiles.push(loads.filter(plausible).ok_or_else(|| {
                table.cell_error(row, "load_profile", "must be a list of energies in kWh, at least 0", cell)
            })?);
        }
        Ok(Self { name: name.clone(), building, windows, profiles })
    }

    /// The observations of the machine, those that the schema has active for its building.
    pub(super) fn observe(&self, schema: &Schema, building: &BuildingSchema) -> Vec<Observed> {
        let series = |of: fn(&(usize, usize)) -> usize| {
            What::Series(
                self.windows.iter().map(|window| window.as_ref().map_or(-1.0, |window| of(window) as f32)).collect(),
            )
        };
        [("start_time_step", series(|window| window.0)), ("end_time_step", series(|window| window.1))]
            .into_iter()
            .filter(|(what, _)| {
                let general = format!("washing_machine_{what}");
                schema.observations.iter().any(|(name, _)| *name == general)
                    && !building.inactive_observations.contains(&general)
            })
            .map(|(what, values)| Observed {
                name: format!("{}_{what}", self.name),
                building: Some(self.building),
                what: values,
            })
            .collect()
    }

    /// The state at the start of an episode, with memory for the longest profile.
    pub(super) fn new_state(&self) -> MachineState {
        let longest = self.profiles.iter().map(Vec::len).max().unwrap_or(0).max(1);
        MachineState { started: false, pending: vec![0.0; longest] }
    }

    /// Whether a saved state is one of this machine.
    pub(super) fn fits(&self, state: &MachineState) -> bool {
        state.pending.len() == self.new_state().pending.len()
    }

    /// One step; returns the energy of `row` in kWh. `first` is the first step of an episode.
    pub(super) fn step(&self, state: &mut MachineState, row: usize, first: bool, action: f32) -> f64 {
        if !first && self.windows[row] != self.windows[row - 1] {
            state.started = false;
        }
        let is_inside = self.windows[row].is_some_and(|(from, to)| (from..=to).contains(&row));
        let profile = &self.profiles[row];
        if is_inside && !state.started && action > 0.0 && !profile.is_empty() {
            state.started = true;
            state.pending.iter_mut().zip(profile).for_each(|(pending, load)| *pending += f64::from(*load));
        }
        let energy = state.pending[0];
        state.pending.rotate_left(1);
        *state.pending.last_mut().expect("at least one row") = 0.0;
        energy
    }
}

impl MachineState {
    /// The state at the start of an episode.
    pub(super) fn restart(&mut self) {
        self.started = false;
        self.pending.fill(0.0);
    }
}
