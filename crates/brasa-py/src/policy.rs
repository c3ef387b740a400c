//! Policies of runs.

use std::sync::{Mutex, PoisonError};

use brasa::contracts::PolicyState;
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

/// Actions, and what the policy remembers.
type Acted<'py> = (Bound<'py, PyArray2<f32>>, Option<Bound<'py, PyArray2<f32>>>);

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

    /// Numbers per row that the policy remembers from step to step.
    #[getter]
    fn state_width(&self) -> usize {
        self.policy.lock().unwrap_or_else(PoisonError::into_inner).state_width()
    }

    /// Greedy actions `[n_rows, action width]` for observations `[n_rows, obs width]` and masks `[n_rows, n_actions]`, and what the policy remembers
    /// after them, `[n_rows, state_width]`, from what it remembered before.
    fn act<'py>(
        &self,
        py: Python<'py>,
        obs: PyReadonlyArray2<'_, f32>,
        mask: Option<PyReadonlyArray2<'_, f32>>,
        state: Option<PyReadonlyArray2<'_, f32>>,
    ) -> PyResult<Acted<'py>> {
        let (obs, mask) = (obs.as_array().to_owned(), mask.map(|mask| mask.as_array().to_owned()));
        let state = state.map(|state| state.as_array().to_owned());
        let (actions, state) = detached(py, || {
            let policy = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
            let mut state = match state {
                Some(rows) => PolicyState::from_rows(rows.view(), policy.device()),
                None => PolicyState::default(),
            };
            let actions = policy.act_from(obs.view(), mask.as_ref().map(|mask| mask.view()), &mut state)?;
            Ok((actions, state.rows()))
        })?;
        Ok((actions.into_pyarray(py), state.map(|state| state.into_pyarray(py))))
    }
}
