//! Policies of runs.

use brasa::device::open_named;
use brasa::experiment::LoadedPolicy;
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::{described, experiment_error};

/// The policy of a run. It stays in the thread that loaded it.
#[pyclass(unsendable)]
pub struct Policy(LoadedPolicy);

#[pymethods]
impl Policy {
    #[new]
    fn new(run: &str) -> PyResult<Self> {
        let device = open_named("cpu").map_err(|error| PyValueError::new_err(error.to_string()))?;
        brasa::load_policy(run, &device).map(Self).map_err(experiment_error)
    }

    /// The constants of the training environments, as JSON.
    fn describe(&self) -> String {
        described(self.0.spec()).to_string()
    }

    /// Greedy actions `[n_rows, action width]` for observations `[n_rows, obs width]` and masks `[n_rows, n_actions]`.
    fn act<'py>(
        &self,
        py: Python<'py>,
        obs: PyReadonlyArray2<'_, f32>,
        mask: Option<PyReadonlyArray2<'_, f32>>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let (obs, mask) = (obs.as_array(), mask.as_ref().map(|mask| mask.as_array()));
        let spec = self.0.spec();
        let (rows, width) = obs.dim();
        if width != spec.obs.width() || rows == 0 || rows % spec.n_agents != 0 {
            let (width, n) = (spec.obs.width(), spec.n_agents);
            let message = format!("`obs` must be rows of {width} numbers, a multiple of {n}, got {:?}", obs.dim());
            return Err(PyValueError::new_err(message));
        }
        let needed = (rows, spec.action.n_actions());
        if let Some(mask) = mask
            && (spec.mask.is_none() || mask.dim() != needed)
        {
            let message = match spec.mask {
                Some(_) => format!("`mask` must have the shape {needed:?}, got {:?}", mask.dim()),
                None => "`mask` must be None: this policy has no masks".into(),
            };
            return Err(PyValueError::new_err(message));
        }
        Ok(self.0.act(obs, mask).into_pyarray(py))
    }
}
