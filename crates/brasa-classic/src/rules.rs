//! Well-known rules for the classic tasks, as functions of the observation.

use std::cmp::Ordering;
use std::ops::Range;

use brasa_env::{BatchSlabs, EnvError};
use ndarray::{ArrayView1, ArrayViewMut2};

use crate::catch::COLUMNS;

/// Computes the action of each row from its observation; all tasks have one number per action.
fn by_row(
    view: &BatchSlabs,
    mut actions: ArrayViewMut2<f32>,
    decide: impl Fn(ArrayView1<f32>) -> f32,
) -> Result<(), EnvError> {
    for (mut action, obs) in actions.rows_mut().into_iter().zip(view.obs.rows()) {
        action[0] = decide(obs);
    }
    Ok(())
}

/// Pushes in the direction in which the pole leans and turns.
pub(crate) fn cart_pole(view: &BatchSlabs, actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
    by_row(view, actions, |obs| if obs[2] + obs[3] > 0.0 { 1.0 } else { 0.0 })
}

/// Pushes in the direction in which the car moves, so that every push adds energy.
pub(crate) fn mountain_car(view: &BatchSlabs, actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
    by_row(view, actions, |obs| if obs[1] < 0.0 { 0.0 } else { 2.0 })
}

/// The same with the largest force.
pub(crate) fn mountain_car_continuous(view: &BatchSlabs, actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
    by_row(view, actions, |obs| if obs[1] < 0.0 { -1.0 } else { 1.0 })
}

/// Moves the paddle to the column of the ball, which is above the last row where the paddle decides.
pub(crate) fn catch(view: &BatchSlabs, actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
    by_row(view, actions, |obs| {
        let column = |mut places: Range<usize>| places.find(|place| obs[*place] > 0.0).map(|at| at % COLUMNS);
        let last = obs.len() - COLUMNS;
        let (ball, paddle) = (column(0..last), column(last..obs.len()));
        match ball.cmp(&paddle) {
            Ordering::Less => 0.0,
            Ordering::Equal => 1.0,
            Ordering::Greater => 2.0,
        }
    })
}

/// Turns the second link against the swing of the first one, whose reaction pushes the first one along its swing.
pub(crate) fn acrobot(view: &BatchSlabs, actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
    by_row(view, actions, |obs| if obs[4] < 0.0 { 2.0 } else { 0.0 })
}

/// Largest angle from upright for the holding regulator, in rad.
const HOLD_RAD: f32 = 0.4;
/// Gains of the regulator, in torque per rad and per rad/s: both poles of the linear system are at -5 /s.
const HOLD: [f32; 2] = [40.0 / 3.0, 10.0 / 3.0];
/// Gain of the swing-up, in torque per rad/s and per J of missing energy.
const SWING: f32 = 1.0;

/// Swings up by controlling the energy to that of the upright position (Astrom and Furuta, "Swinging up a pendulum by
/// energy control", 2000), and holds near the top by a linear regulator.
pub(crate) fn pendulum(view: &BatchSlabs, actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
    by_row(view, actions, |obs| {
        let (angle, speed) = (obs[1].atan2(obs[0]), obs[2]);
        // `Pendulum-v1`: 1 kg, 1 m, 10 m/s2, a moment of inertia of 1/3 kg m2; 0 upright and at rest.
        let energy = speed * speed / 6.0 + 5.0 * (obs[0] - 1.0);
        let torque = if angle.abs() < HOLD_RAD {
            -HOLD[0] * angle - HOLD[1] * speed
        } else if speed == 0.0 {
            // At rest at the bottom both directions are equal.
            2.0
        } else {
            -SWING * energy * speed
        };
        torque.clamp(-2.0, 2.0)
    })
}
