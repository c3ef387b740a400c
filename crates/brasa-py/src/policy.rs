//! Policies of runs.

use std::sync::{Mutex, PoisonError};

use brasa::device::open_named;
use brasa::experiment::LoadedPolicy;
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::{described, detached, experiment_error};

/// The policy of a run. Threads may share it: they act one after the other.
#[pyclass(frozen)]
pub struct Policy {
    /// In memory of its own: Python aligns objects to 16 bytes, devices need more.
    policy: Mutex<Box<LoadedPolicy>>,
    description: String,
    env_steps: Option<u64>,
}

#[pymethods]
impl Policy {
    #[new]
    fn new(py: Python<'_>, run: &str) -> PyResult<Self> {
        let device = open_named("cpu").map_err(|error| PyValueError::new_err(error.to_string()))?;
        let policy = detached(py, || Ok(brasa::load_policy(run, &device)))?.map_err(experiment_error)?;
        let (description, env_steps) = (described(policy.spec()).to_string(), policy.env_steps());
        Ok(Self { policy: Mutex::new(Box::new(policy)), description, env_steps })
    }

    /// The constants of the training environments, as JSON.
    fn describe(&self) -> &str {
        &self.description
    }

    /// Steps of the environments until the checkpoint of the policy.
    #[getter]
    fn env_steps(&self) -> Option<u64> {
        self.env_steps
    }

    /// Greedy actions `[n_rows, action width]` for observations `[n_rows, obs width]` and masks `[n_rows, n_actions]`.
    fn act<'py>(
        &self,
        py: Python<'py>,
        obs: PyReadonlyArray2<'_, f32>,
        mask: Option<PyReadonlyArray2<'_, f32>>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let (obs, mask) = (obs.as_array().to_owned(), mask.map(|mask| mask.as_array().to_owned()));
        let actions = detached(py, || {
            let policy = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
            policy.act(obs.view(), mask.as_ref().map(|mask| mask.view()))
        })?;
        Ok(actions.into_pyarray(py))
    }
}
