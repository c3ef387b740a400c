//! Whoever decides: a rule, a planner, a trained policy.

use ndarray::ArrayViewMut2;

use crate::{BatchSlabs, EnvError};

/// Decides for every row of a batch.
///
/// A closure is one:
///
/// ```
/// use brasa_env::{BatchSlabs, Controller, EnvError};
/// use ndarray::ArrayViewMut2;
///
/// // Heats where the first number of an observation, the temperature, is low.
/// let mut thermostat = |view: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
///     for (row, mut action) in actions.rows_mut().into_iter().enumerate() {
///         action[0] = f32::from(u8::from(view.obs[[row, 0]] < 20.0));
///     }
///     Ok(())
/// };
/// let controller: &mut dyn Controller = &mut thermostat;
/// # let _ = controller;
/// ```
pub trait Controller {
    /// Writes `[n_rows, action width]` actions for what `view` shows: `obs`, `shared` and `mask` belong to the decision at
    /// hand, the other slabs to the step before, if there was one.
    ///
    /// # Errors
    /// Where it cannot decide.
    fn act(&mut self, view: &BatchSlabs, actions: ArrayViewMut2<f32>) -> Result<(), EnvError>;
}

impl<F> Controller for F
where
    F: FnMut(&BatchSlabs, ArrayViewMut2<f32>) -> Result<(), EnvError>,
{
    fn act(&mut self, view: &BatchSlabs, actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
        self(view, actions)
    }
}
