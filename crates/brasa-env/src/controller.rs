//! Controllers: rules, planners, trained policies.

use ndarray::ArrayViewMut2;

use crate::{BatchSlabs, EnvError};

/// Computes the actions of every row of a batch.
///
/// A closure is a controller:
///
/// ```
/// use brasa_env::{BatchSlabs, Controller, EnvError};
/// use ndarray::ArrayViewMut2;
///
/// // Heats if the first number of an observation, the temperature, is low.
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
    /// Writes `[n_rows, action width]` actions for the observations of `view`: `obs`, `shared` and `mask` are current,
    /// the other slabs are those of the previous step, if any.
    ///
    /// # Errors
    /// If it cannot compute actions.
    fn act(&mut self, view: &BatchSlabs, actions: ArrayViewMut2<f32>) -> Result<(), EnvError>;

    /// Called before the first [`Controller::act`] after a reset of all environments. A controller that remembers forgets everything here, and
    /// what it knows of a row where the view says that its episode has ended. By default nothing is remembered.
    fn begin(&mut self) {}

    /// Called where later views have only these rows of earlier ones, in this order: the others have ended. By default nothing is remembered.
    fn keep(&mut self, _rows: &[usize]) {}
}

impl<F> Controller for F
where
    F: FnMut(&BatchSlabs, ArrayViewMut2<f32>) -> Result<(), EnvError>,
{
    fn act(&mut self, view: &BatchSlabs, actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
        self(view, actions)
    }
}
