//! The native part of the Python package `brasa`.
//!
//! What Python sees is in `python/brasa`; this module has batches of environments and policies as arrays.
#![allow(unsafe_code, reason = "the macros of pyo3 write it")]
#![allow(missing_debug_implementations, reason = "Python prints them by `__repr__`")]

mod batch;
mod policy;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use brasa::env::{EnvError, EnvSpec, Space};
use brasa::experiment::ExperimentError;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde_json::{Value, json};

/// What the caller can change is a `ValueError`, the rest a `RuntimeError`.
fn experiment_error(error: ExperimentError) -> PyErr {
    match error {
        ExperimentError::Input(message) => PyValueError::new_err(message),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}

/// Runs `call` without Python's lock. A panic, which is a fault of this program, is a `RuntimeError`, which `except Exception` catches.
fn detached<T: Send>(py: Python<'_>, call: impl FnOnce() -> Result<T, EnvError> + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(call))).map_err(|panic| panicked(&*panic))?.map_err(env_error)
}

fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    let message = brasa::env::panic_message(panic);
    PyRuntimeError::new_err(format!("brasa failed, please report it: {message}"))
}

fn env_error(error: EnvError) -> PyErr {
    match error {
        EnvError::Argument(_) => PyValueError::new_err(error.to_string()),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}

/// A space for Python.
fn space(space: &Space) -> Value {
    // JSON has no infinity.
    let finite = |values: &[f32]| values.iter().map(|x| x.is_finite().then_some(*x)).collect::<Vec<_>>();
    match space {
        Space::Box(numbers) | Space::Hybrid { numbers, .. } => {
            // A row has the indices of choices first, as numbers.
            let (low, high) = (vec![0.0; space.heads().len()], space.heads().iter().map(|n| (n - 1) as f32).collect());
            let (low, high) = ([low, numbers.low.clone()].concat(), [high, numbers.high.clone()].concat());
            json!({ "kind": "box", "low": finite(&low), "high": finite(&high), "names": space.names() })
        }
        Space::Discrete(n) => json!({ "kind": "choice", "heads": [n], "single": true }),
        Space::MultiDiscrete(heads) => json!({ "kind": "choice", "heads": heads, "single": false }),
    }
}

/// The constants of a batch for Python, as JSON.
fn described(spec: &EnvSpec) -> Value {
    json!({
        "obs": space(&spec.obs),
        "action": space(&spec.action),
        "n_agents": spec.n_agents,
        "n_actions": if spec.mask.is_some() { spec.action.n_actions() } else { 0 },
        "info": spec.info_names,
    })
}

// Python's memory has no larger alignment.
const _: () = assert!(align_of::<batch::Batch>() <= 16 && align_of::<policy::Policy>() <= 16);

/// The names of the scenarios.
#[pyfunction]
fn scenarios() -> Vec<String> {
    brasa::registry().scenario_names().map(str::to_owned).collect()
}

#[pymodule]
fn _brasa(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(scenarios, module)?)?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<policy::Policy>()
}
