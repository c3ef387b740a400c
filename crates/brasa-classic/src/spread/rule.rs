//! A rule for Simple Spread: every agent goes to a landmark of its own.

use brasa_env::{BatchSlabs, EnvError};
use ndarray::{ArrayView1, ArrayViewMut2};

use super::{Point, length, minus};

/// Steps ahead for which a position is predicted from the speed: the way on which damping stops an agent.
const AHEAD: f64 = 0.4;
/// Distance along an axis below which an agent does not correct its place.
const STILL: f64 = 0.03;

/// The rule as a controller.
pub(super) fn act(view: &BatchSlabs, mut actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
    let n_agents = view.obs.nrows() / view.info.nrows();
    for first in (0..view.obs.nrows()).step_by(n_agents) {
        let rows: Vec<ArrayView1<f32>> = (first..first + n_agents).map(|row| view.obs.row(row)).collect();
        let goals = assigned(&rows);
        for (agent, goal) in goals.into_iter().enumerate() {
            actions[[first + agent, 0]] = towards(rows[agent], goal);
        }
    }
    Ok(())
}

fn point(row: ArrayView1<f32>, at: usize) -> Point {
    [f64::from(row[at]), f64::from(row[at + 1])]
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

/// The action towards a landmark along the axis on which the agent will be farther from it.
fn towards(row: ArrayView1<f32>, landmark: usize) -> f32 {
    let speed = point(row, 0);
    let [x, y] = minus(point(row, 4 + 2 * landmark), speed.map(|speed| speed * AHEAD));
    match (x.abs() > y.abs(), x, y) {
        _ if x.abs().max(y.abs()) < STILL => 0.0,
        (true, x, _) if x < 0.0 => 1.0,
        (true, ..) => 2.0,
        (false, _, y) if y < 0.0 => 3.0,
        _ => 4.0,
    }
}
