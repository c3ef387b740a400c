//! Washing machines in the program: a share of a start in each row of a window.

use std::ops::Range;

use brasa_lp::{Program, Solution, Variable};

use super::super::machines::Machine;
use super::Flow;

/// The starts of a machine.
pub(super) struct MachinePlan {
    /// By window: the steps in which it may start, and the share of each.
    windows: Vec<Vec<(usize, Variable)>>,
}

impl MachinePlan {
    /// Adds the machine's load to `flows`, `[step * n_buildings + building]`: at most one start in a window.
    pub(super) fn add(
        program: &mut Program,
        machine: &Machine,
        n_buildings: usize,
        rows: &Range<usize>,
        flows: &mut [Flow],
    ) -> Self {
        let mut windows: Vec<Vec<(usize, Variable)>> = Vec::new();
        for (step, row) in rows.clone().enumerate() {
            if step == 0 || machine.windows[row] != machine.windows[row - 1] {
                windows.push(Vec::new());
            }
            let profile = &machine.profiles[row];
            let is_inside = machine.windows[row].is_some_and(|(from, to)| (from..=to).contains(&row));
            if !is_inside || profile.is_empty() {
                continue;
            }
            let share = program.variable(0.0, 0.0, 1.0);
            windows.last_mut().expect("the first row begins a window").push((step, share));
            let loads = profile.iter().zip(flows.chunks_exact_mut(n_buildings).skip(step));
            for (load, of_step) in loads.filter(|(load, _)| **load != 0.0) {
                let flow = &mut of_step[machine.building];
                flow.terms.push((share, f64::from(*load)));
                flow.most_kwh += f64::from(load.max(0.0));
            }
        }
        windows.retain(|window| !window.is_empty());
        for window in &windows {
            program.at_most(window.iter().map(|(_, share)| (*share, 1.0)), 1.0);
        }
        Self { windows }
    }

    /// The steps with a start: those with more than half a share, of which a window has at most one.
    pub(super) fn starts(&self, solution: &Solution) -> impl Iterator<Item = usize> {
        let all = self.windows.iter().flatten();
        all.filter(|(_, share)| solution.value(*share) > 0.5).map(|(step, _)| *step)
    }
}
