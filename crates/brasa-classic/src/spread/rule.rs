//! A rule for Simple Spread: every agent goes to a landmark of its own.

use brasa_env::{BatchSlabs, EnvError};
use ndarray::{ArrayView1, ArrayViewMut2};

use crate::mpe::{length, point, towards};

/// The rule as a controller.
pub(super) fn act(view: &BatchSlabs, mut actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
    let n_agents = view.obs.nrows() / view.info.nrows();
    for first in (0..view.obs.nrows()).step_by(n_agents) {
        let rows: Vec<ArrayView1<f32>> = (first..first + n_agents).map(|row| view.obs.row(row)).collect();
        let goals = assigned(&rows);
        for (agent, goal) in goals.into_iter().enumerate() {
            actions[[first + agent, 0]] = towards(point(rows[agent], 0), point(rows[agent], 4 + 2 * goal));
        }
    }
    Ok(())
}

/// For each agent, the landmark that it covers: exchanges of two agents shorten the sum of their ways as long as one does.
fn assigned(rows: &[ArrayView1<f32>]) -> Vec<usize> {
    // Landmarks are seen relative to the agent.
    let way = |agent: usize, landmark: usize| length(point(rows[agent], 4 + 2 * landmark));
    let mut goals: Vec<usize> = (0..rows.len()).collect();
    let mut improves = true;
    while improves {
        improves = false;
        for a in 0..goals.len() {
            for b in a + 1..goals.len() {
                let now = way(a, goals[a]) + way(b, goals[b]);
                if way(a, goals[b]) + way(b, goals[a]) < now - 1e-9 {
                    goals.swap(a, b);
                    improves = true;
                }
            }
        }
    }
    goals
}
