//! Batches of environments as NumPy arrays.

use std::sync::{Mutex, MutexGuard, TryLockError};

use brasa::env::{BatchSlabs, EnvBatch, EnvError, EnvSpec, Executor, InvalidField, Scenario, Split, execute, field};
use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::{described, detached, experiment_error};

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
#[pyclass(frozen)]
pub struct Batch {
    /// Held without Python's lock, and never waited for: a second thread gets an error.
    state: Mutex<State>,
    spec: EnvSpec,
    slabs: Slabs,
    n_threads: usize,
}

struct State {
    groups: Vec<Group>,
    /// Whether a call failed in the middle: some environments may have stepped, others not.
    failed: bool,
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
        let opened = detached(py, || match brasa::registry().parse_scenario(text, origin, &[]) {
            Ok(scenario) => groups(&*scenario, split, num_envs, apart, n_threads).map(Ok),
            Err(error) => Ok(Err(error)),
        })?;
        let (groups, n_threads) = opened.map_err(experiment_error)?;
        let spec = groups[0].envs.spec().with_n_envs(num_envs);
        let slabs = Slabs::new(py, &spec);
        Ok(Self { state: Mutex::new(State { groups, failed: false }), spec, slabs, n_threads })
    }

    /// Threads that step the environments, the calling one included.
    #[getter]
    fn n_threads(&self) -> usize {
        self.n_threads
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
    fn reset(&self, py: Python<'_>, seed: u64) -> PyResult<()> {
        let mut state = self.state()?;
        state.failed = true;
        let groups = &mut state.groups;
        detached(py, || groups.iter_mut().try_for_each(|group| group.envs.reset(seed, &mut group.slabs)))?;
        state.failed = false;
        self.publish(py, &state.groups)
    }

    /// Starts a new episode in environment `env`.
    fn restart(&self, py: Python<'_>, env: usize) -> PyResult<()> {
        let (n_envs, n_agents) = (self.spec.n_envs, self.spec.n_agents);
        if env >= n_envs {
            return Err(PyValueError::new_err(format!("`env` must be below {n_envs}, got {env}")));
        }
        let mut state = self.state()?;
        state.begin()?;
        let group = state.groups.iter_mut().rev().find(|group| group.first_row <= env * n_agents);
        let group = group.expect("the first group begins at row 0");
        let own = env - group.first_row / n_agents;
        detached(py, || group.envs.restart(own, &mut group.slabs))?;
        state.failed = false;
        self.publish(py, &state.groups)
    }

    /// Steps all environments that are not `held`; those need a batch whose environments are apart.
    fn step(
        &self,
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
        let mut state = self.state()?;
        state.begin()?;
        let groups = &mut state.groups;
        detached(py, || step(groups, actions.view(), held.as_ref()))?;
        state.failed = false;
        self.publish(py, &state.groups)
    }

    /// The complete state of each group, which [`Batch::load`] restores together with the arrays.
    fn save<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let mut state = self.state()?;
        let groups = &mut state.groups;
        let saved = detached(py, || Ok(groups.iter_mut().map(|group| group.envs.save()).collect::<Vec<_>>()))?;
        Ok(saved.iter().map(|bytes| PyBytes::new(py, bytes)).collect())
    }

    /// Restores what another batch of the same environments saved; the arrays have their numbers already.
    fn load(&self, py: Python<'_>, saved: Vec<Vec<u8>>) -> PyResult<()> {
        let mut state = self.state()?;
        if saved.len() != state.groups.len() {
            let message = format!("`saved` must have {} parts, got {}", state.groups.len(), saved.len());
            return Err(PyValueError::new_err(message));
        }
        state.failed = true;
        let groups = &mut state.groups;
        detached(py, || groups.iter_mut().zip(&saved).try_for_each(|(group, bytes)| group.envs.load(bytes)))?;
        state.failed = false;
        self.recall(py, &mut state.groups)
    }
}

impl State {
    /// Before the environments change; the call sets `failed` to false at its end.
    fn begin(&mut self) -> PyResult<()> {
        if std::mem::replace(&mut self.failed, true) {
            let message =
                "an earlier call failed in the middle, so these environments differ in their steps: call reset";
            return Err(PyRuntimeError::new_err(message));
        }
        Ok(())
    }
}

impl Batch {
    fn state(&self) -> PyResult<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let message =
                    "another thread is using these environments: make some for each thread, or guard them with a lock";
                Err(PyRuntimeError::new_err(message))
            }
        }
    }

    /// Copies observations and masks from the arrays to the groups, as [`Batch::publish`] copied them.
    fn recall(&self, py: Python<'_>, groups: &mut [Group]) -> PyResult<()> {
        let (n_agents, per_flag, shared_width) =
            (self.spec.n_agents, self.spec.actions_per_flag(), self.spec.shared_width);
        let (obs, final_obs) = (self.slabs.obs.bind(py).try_readonly()?, self.slabs.final_obs.bind(py).try_readonly()?);
        let (mask, final_mask) =
            (self.slabs.mask.bind(py).try_readonly()?, self.slabs.final_mask.bind(py).try_readonly()?);
        let (reward, info) = (self.slabs.reward.bind(py).try_readonly()?, self.slabs.info.bind(py).try_readonly()?);
        let terminated = self.slabs.terminated.bind(py).try_readonly()?;
        let truncated = self.slabs.truncated.bind(py).try_readonly()?;
        for Group { slabs, first_row, .. } in groups {
            for row in 0..slabs.obs.nrows() {
                let (at, env) = (*first_row + row, row / n_agents);
                let pairs = [
                    (&obs, &mut slabs.shared, &mut slabs.obs),
                    (&final_obs, &mut slabs.next_shared, &mut slabs.next_obs),
                ];
                for (whole, shared, own) in pairs {
                    let whole = whole.as_array();
                    shared.row_mut(env).assign(&whole.slice(s![at, ..shared_width]));
                    own.row_mut(row).assign(&whole.slice(s![at, shared_width..]));
                }
                for (flags, own) in [(&mask, &mut slabs.mask), (&final_mask, &mut slabs.next_mask)] {
                    let flags = flags.as_array();
                    own.row_mut(row)
                        .indexed_iter_mut()
                        .for_each(|(flag, slot)| *slot = f32::from(flags[[at, flag * per_flag]]));
                }
                slabs.reward[row] = reward.as_array()[at];
                slabs.terminated[row] = terminated.as_array()[at];
                slabs.truncated[row] = truncated.as_array()[at];
                if row % n_agents == 0 {
                    slabs.info.row_mut(env).assign(&info.as_array().row(at / n_agents));
                }
            }
        }
        Ok(())
    }

    /// Copies the results of all groups to the arrays.
    fn publish(&self, py: Python<'_>, groups: &[Group]) -> PyResult<()> {
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
        for Group { slabs, first_row, .. } in groups {
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
                // Arrays without columns have strides that no view may have.
                let masks = [(&mut mask, &slabs.mask), (&mut final_mask, &slabs.next_mask)];
                for (out, flags) in masks.into_iter().filter(|_| self.spec.mask.is_some()) {
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
            if !self.spec.info_names.is_empty() {
                info.as_array_mut().slice_mut(s![first..first + slabs.info.nrows(), ..]).assign(&slabs.info);
            }
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
) -> Result<(Vec<Group>, usize), EnvError> {
    let group = |envs: Box<dyn EnvBatch>, first_row| {
        let slabs = BatchSlabs::new(envs.spec());
        Group { envs, slabs, first_row }
    };
    if apart {
        let bytes = scenario.envs(split, 0..1)?.spec().with_n_envs(num_envs).slab_bytes();
        field::fits_in_memory("num_envs", num_envs, bytes)?;
        let one = |env: usize| {
            let envs = scenario.envs(split, env..env + 1)?;
            let first_row = env * envs.spec().n_agents;
            Ok(group(envs, first_row))
        };
        let groups: Result<_, _> = (0..num_envs).map(one).collect();
        return groups.map(|groups| (groups, 1));
    }
    let executor = match n_threads {
        None => Executor::Auto,
        Some(1) => Executor::Serial,
        Some(n) => Executor::Threads(n),
    };
    let (envs, choice) = execute(executor, num_envs, |range| scenario.envs(split, range))?;
    Ok((vec![group(envs, 0)], choice.n_threads))
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
