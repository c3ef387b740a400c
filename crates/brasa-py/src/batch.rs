//! Batches of environments as NumPy arrays.

use std::sync::{Mutex, PoisonError};

use brasa::env::{BatchSlabs, EnvBatch, EnvError, EnvSpec, Executor, InvalidField, Scenario, Split, execute};
use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{described, env_error, experiment_error};

/// Environments that step together.
struct Group {
    envs: Box<dyn EnvBatch>,
    slabs: BatchSlabs,
    /// The first row of the whole batch.
    first_row: usize,
}

/// The arrays of a batch, which keep their place in memory. Rows are agents, the agents of an environment one after the other.
struct Slabs {
    obs: Py<PyArray2<f32>>,
    final_obs: Py<PyArray2<f32>>,
    mask: Py<PyArray2<i8>>,
    final_mask: Py<PyArray2<i8>>,
    reward: Py<PyArray1<f32>>,
    terminated: Py<PyArray1<bool>>,
    truncated: Py<PyArray1<bool>>,
    info: Py<PyArray2<f64>>,
}

/// A batch of environments of a scenario.
#[pyclass]
pub struct Batch {
    /// Only ever reached through `&mut self`: a class must be `Sync`, environments need not.
    groups: Mutex<Vec<Group>>,
    spec: EnvSpec,
    slabs: Slabs,
}

#[pymethods]
impl Batch {
    /// `text`: an experiment, or its section `[scenario.NAME]`. `apart`: every environment steps by itself, so that one can be held.
    #[new]
    #[pyo3(signature = (text, origin, num_envs, split, apart, n_threads))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of one call from Python")]
    fn new(
        py: Python<'_>,
        text: &str,
        origin: &str,
        num_envs: usize,
        split: &str,
        apart: bool,
        n_threads: Option<usize>,
    ) -> PyResult<Self> {
        let split = match split {
            "training" => Split::Train,
            "evaluation" => Split::Evaluation,
            other => {
                let message = format!("`split` must be \"training\" or \"evaluation\", got \"{other}\"");
                return Err(PyValueError::new_err(message));
            }
        };
        if num_envs == 0 {
            return Err(PyValueError::new_err("`num_envs` must be at least 1, got 0"));
        }
        let registry = brasa::registry();
        let scenario = registry.parse_scenario(text, origin, &[]).map_err(experiment_error)?;
        let groups = py.detach(|| groups(&*scenario, split, num_envs, apart, n_threads)).map_err(env_error)?;
        let spec = groups[0].envs.spec().with_n_envs(num_envs);
        let slabs = Slabs::new(py, &spec);
        Ok(Self { groups: Mutex::new(groups), spec, slabs })
    }

    /// The constants of the batch, as JSON.
    fn describe(&self) -> String {
        described(&self.spec).to_string()
    }

    /// The arrays, which every call rewrites.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Slabs { obs, final_obs, mask, final_mask, reward, terminated, truncated, info } = &self.slabs;
        let arrays = PyDict::new(py);
        arrays.set_item("obs", obs.bind(py))?;
        arrays.set_item("final_obs", final_obs.bind(py))?;
        arrays.set_item("mask", mask.bind(py))?;
        arrays.set_item("final_mask", final_mask.bind(py))?;
        arrays.set_item("reward", reward.bind(py))?;
        arrays.set_item("terminated", terminated.bind(py))?;
        arrays.set_item("truncated", truncated.bind(py))?;
        arrays.set_item("info", info.bind(py))?;
        Ok(arrays)
    }

    /// Starts new episodes in all environments.
    fn reset(&mut self, py: Python<'_>, seed: u64) -> PyResult<()> {
        let groups = self.groups.get_mut().unwrap_or_else(PoisonError::into_inner);
        let result = py.detach(|| groups.iter_mut().try_for_each(|group| group.envs.reset(seed, &mut group.slabs)));
        result.map_err(env_error)?;
        self.publish(py)
    }

    /// Starts a new episode in environment `env`.
    fn restart(&mut self, py: Python<'_>, env: usize) -> PyResult<()> {
        let (n_envs, n_agents) = (self.spec.n_envs, self.spec.n_agents);
        let groups = self.groups.get_mut().unwrap_or_else(PoisonError::into_inner);
        let group = groups.iter_mut().rev().find(|group| group.first_row <= env * n_agents);
        let group = group
            .filter(|_| env < n_envs)
            .ok_or_else(|| PyValueError::new_err(format!("`env` must be below {n_envs}, got {env}")))?;
        let own = env - group.first_row / n_agents;
        py.detach(|| group.envs.restart(own, &mut group.slabs)).map_err(env_error)?;
        self.publish(py)
    }

    /// Steps all environments that are not `held`; those need a batch whose environments are apart.
    fn step(
        &mut self,
        py: Python<'_>,
        actions: PyReadonlyArray2<'_, f32>,
        held: Option<PyReadonlyArray1<'_, bool>>,
    ) -> PyResult<()> {
        let actions = actions.as_array().to_owned();
        let needed = (self.spec.n_rows(), self.spec.action.width());
        if actions.dim() != needed {
            let message = format!("`actions` must have the shape {needed:?}, got {:?}", actions.dim());
            return Err(PyValueError::new_err(message));
        }
        let held: Option<Array1<bool>> = held.map(|held| held.as_array().to_owned());
        let groups = self.groups.get_mut().unwrap_or_else(PoisonError::into_inner);
        py.detach(|| step(groups, actions.view(), held.as_ref())).map_err(env_error)?;
        self.publish(py)
    }
}

impl Batch {
    /// Copies the results of all groups to the arrays.
    fn publish(&mut self, py: Python<'_>) -> PyResult<()> {
        let (n_agents, per_flag) = (self.spec.n_agents, self.spec.actions_per_flag());
        let mut obs = self.slabs.obs.bind(py).try_readwrite()?;
        let mut final_obs = self.slabs.final_obs.bind(py).try_readwrite()?;
        let mut mask = self.slabs.mask.bind(py).try_readwrite()?;
        let mut final_mask = self.slabs.final_mask.bind(py).try_readwrite()?;
        let mut reward = self.slabs.reward.bind(py).try_readwrite()?;
        let mut terminated = self.slabs.terminated.bind(py).try_readwrite()?;
        let mut truncated = self.slabs.truncated.bind(py).try_readwrite()?;
        let mut info = self.slabs.info.bind(py).try_readwrite()?;
        let shared_width = self.spec.shared_width;
        let groups = self.groups.get_mut().unwrap_or_else(PoisonError::into_inner);
        for Group { slabs, first_row, .. } in groups.iter() {
            let rows = *first_row..first_row + slabs.obs.nrows();
            for (row, at) in rows.clone().enumerate() {
                let env = row / n_agents;
                let pairs =
                    [(&mut obs, &slabs.shared, &slabs.obs), (&mut final_obs, &slabs.next_shared, &slabs.next_obs)];
                for (out, shared, own) in pairs {
                    let mut out = out.as_array_mut();
                    out.slice_mut(s![at, ..shared_width]).assign(&shared.row(env));
                    out.slice_mut(s![at, shared_width..]).assign(&own.row(row));
                }
                for (out, flags) in [(&mut mask, &slabs.mask), (&mut final_mask, &slabs.next_mask)] {
                    let mut out = out.as_array_mut();
                    for (action, out) in out.row_mut(at).iter_mut().enumerate() {
                        *out = i8::from(flags[[row, action / per_flag]] != 0.0);
                    }
                }
            }
            reward.as_array_mut().slice_mut(s![rows.clone()]).assign(&slabs.reward);
            terminated.as_array_mut().slice_mut(s![rows.clone()]).assign(&slabs.terminated);
            truncated.as_array_mut().slice_mut(s![rows]).assign(&slabs.truncated);
            let first = first_row / n_agents;
            info.as_array_mut().slice_mut(s![first..first + slabs.info.nrows(), ..]).assign(&slabs.info);
        }
        Ok(())
    }
}

impl Slabs {
    fn new(py: Python<'_>, spec: &EnvSpec) -> Self {
        let (rows, width) = (spec.n_rows(), spec.obs.width());
        let n_actions = if spec.mask.is_some() { spec.action.n_actions() } else { 0 };
        let floats = || Array2::<f32>::zeros((rows, width)).into_pyarray(py).unbind();
        let flags = || Array2::<i8>::ones((rows, n_actions)).into_pyarray(py).unbind();
        let ends = || Array1::from_elem(rows, false).into_pyarray(py).unbind();
        Self {
            obs: floats(),
            final_obs: floats(),
            mask: flags(),
            final_mask: flags(),
            reward: Array1::<f32>::zeros(rows).into_pyarray(py).unbind(),
            terminated: ends(),
            truncated: ends(),
            info: Array2::<f64>::zeros((spec.n_envs, spec.info_names.len())).into_pyarray(py).unbind(),
        }
    }
}

fn groups(
    scenario: &dyn Scenario,
    split: Split,
    num_envs: usize,
    apart: bool,
    n_threads: Option<usize>,
) -> Result<Vec<Group>, EnvError> {
    let group = |envs: Box<dyn EnvBatch>, first_row| {
        let slabs = BatchSlabs::new(envs.spec());
        Group { envs, slabs, first_row }
    };
    if apart {
        let one = |env: usize| {
            let envs = scenario.envs(split, env..env + 1)?;
            let first_row = env * envs.spec().n_agents;
            Ok(group(envs, first_row))
        };
        return (0..num_envs).map(one).collect();
    }
    let executor = match n_threads {
        None => Executor::Auto,
        Some(1) => Executor::Serial,
        Some(n) => Executor::Threads(n),
    };
    let (envs, _) = execute(executor, num_envs, |range| scenario.envs(split, range))?;
    Ok(vec![group(envs, 0)])
}

fn step(groups: &mut [Group], actions: ArrayView2<f32>, held: Option<&Array1<bool>>) -> Result<(), EnvError> {
    let whole = groups.len() == 1 && groups[0].slabs.obs.nrows() == actions.nrows();
    if let (Some(held), true) = (held, whole)
        && held.iter().any(|held| *held)
        && held.len() > 1
    {
        let rule = "must be false for all environments that step together";
        return Err(EnvError::Argument(InvalidField::new("held", rule, "true")));
    }
    for Group { envs, slabs, first_row } in groups {
        let env = *first_row / envs.spec().n_agents;
        if held.is_some_and(|held| held.get(env).is_some_and(|held| *held)) {
            continue;
        }
        let rows = slabs.obs.nrows();
        let (_, own) = actions.split_at(Axis(0), *first_row);
        envs.step(own.slice(s![..rows, ..]), slabs)?;
    }
    Ok(())
}
