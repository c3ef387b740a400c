//! Environments of the host behind a device.

use std::time::{Duration, Instant};
use std::vec::IntoIter;

use brasa_device::runs_on_host;
use brasa_env::wrappers::{EpisodeStats, RunningMoments};
use brasa_env::{BatchSlabs, EnvBatch, EnvError, EnvSpec, Episode, Space, StateTag, Truncations};
use brasa_kernels::split;
use burn::tensor::{Device, Tensor, TensorData};
use ndarray::{Array2, ArrayView2};

use crate::{HostObs, HostStepper, Obs, ObsForm, ObsParts, StepBatch, Successor, TeamObs, VecEnv, read_back};

/// A host batch as a [`VecEnv`]: one read-back of actions and one upload of results per step.
///
/// It keeps episode statistics if the batch does not. If an episode was truncated, a second upload carries the observations
/// before the reset. `O` is the form of observations for policies: flat rows, or [`TeamObs`], which stores the shared
/// part once.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/envs.inc")); }
/// # use shown::*;
/// use brasa_core::{HostEnv, VecEnv, read_back};
/// use brasa_env::EnvVec;
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut env = HostEnv::new(EnvVec::new(0..2, |_| Walk(0.0))?, &device);
/// env.reset(7)?;
/// // The first walk goes left from 3, the second walk goes right.
/// let step = env.step(Tensor::from_floats([[0.0], [1.0]], &device))?;
/// assert_eq!(read_back(step.obs.values), [2.0, 4.0]);
/// assert_eq!(read_back(step.reward), [-1.0, -1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HostEnv<B, O = Obs> {
    batch: EpisodeStats<B>,
    slabs: BatchSlabs,
    device: Device,
    assemble: fn(ObsParts) -> O,
    seed: u64,
    steps: u64,
    truncations: Truncations,
    transfers: Transfers,
    transfer_time: Duration,
}

/// Numbers of transfers between host and device.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/envs.inc")); }
/// # use shown::*;
/// use brasa_core::{HostEnv, Transfers, VecEnv};
/// use brasa_env::EnvVec;
/// use burn::tensor::Tensor;
///
/// // `Walk` goes on a line from 3 to the goal at 0. Each step has a reward of -1.
/// let device = brasa_device::open_named("cpu")?;
/// let mut env = HostEnv::new(EnvVec::new(0..2, |_| Walk(0.0))?, &device);
/// env.reset(7)?;
/// env.step(Tensor::zeros([2, 1], &device))?;
/// // The reset uploaded observations. The step read actions and uploaded its results.
/// assert_eq!(env.transfers(), Transfers { uploads: 2, read_backs: 1 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transfers {
    /// From host to device.
    pub uploads: u64,
    /// From device to host; each waits for the device.
    pub read_backs: u64,
}

impl<B: EnvBatch> HostEnv<B> {
    /// Connects `batch` to `device`, which must not be an autodiff device. A row of observations is flat: the shared
    /// numbers, then its own.
    pub fn new(batch: B, device: &Device) -> Self {
        Self::in_form(batch, device)
    }
}

impl<B: EnvBatch> HostEnv<B, TeamObs> {
    /// The same for networks that compute all agents of an environment together: the shared part is stored once.
    pub fn team(batch: B, device: &Device) -> Self {
        Self::in_form(batch, device)
    }
}

impl<B: EnvBatch, O: ObsForm> HostEnv<B, O> {
    /// The same for any form of observations.
    pub fn in_form(batch: B, device: &Device) -> Self {
        let slabs = BatchSlabs::new(batch.spec());
        let batch = EpisodeStats::new(batch);
        Self {
            truncations: Truncations::new(batch.n_envs()),
            batch,
            slabs,
            device: device.clone(),
            assemble: O::assemble,
            seed: 0,
            steps: 0,
            transfers: Transfers::default(),
            transfer_time: Duration::ZERO,
        }
    }

    /// The host batch.
    pub fn batch(&self) -> &B {
        self.batch.inner()
    }

    /// The constants of the batch.
    pub fn spec(&self) -> &EnvSpec {
        self.batch.spec()
    }

    /// Transfers so far.
    pub fn transfers(&self) -> Transfers {
        self.transfers
    }

    /// The results of the last step on the host.
    pub fn slabs(&self) -> &BatchSlabs {
        &self.slabs
    }

    /// The next observations, in the order in which they are uploaded and saved.
    fn observed(&self) -> impl Iterator<Item = &f32> {
        observed(&self.slabs)
    }

    /// Uploads observations and then `n_columns` columns with a number per row.
    fn upload(&mut self, parts: Vec<f32>, n_columns: usize) -> Upload {
        self.transfers.uploads += 1;
        if runs_on_host(&self.device) {
            return Upload::Near { parts: parts.into_iter(), device: self.device.clone() };
        }
        let begin = Instant::now();
        let length = parts.len();
        let uploaded = Tensor::from_data(TensorData::new(parts, [1, length]), &self.device);
        self.transfer_time += begin.elapsed();
        let slabs = &self.slabs;
        let columns = std::iter::repeat_n(slabs.reward.len(), n_columns);
        let lengths = [&slabs.shared, &slabs.obs, &slabs.mask].map(|slab| slab.len()).into_iter().chain(columns);
        let lengths: Vec<usize> = lengths.filter(|length| *length > 0).collect();
        Upload::Far(split(uploaded, &lengths).into_iter())
    }

    /// Assembles observations from the next parts of an upload.
    fn unpack(&self, packed: &mut Upload) -> O {
        let mut part = |slab: &Array2<f32>| {
            let (rows, columns) = slab.dim();
            (columns > 0).then(|| packed.next([rows, columns]))
        };
        let parts = ObsParts {
            shared: part(&self.slabs.shared),
            own: part(&self.slabs.obs),
            mask: part(&self.slabs.mask),
            n_agents: self.batch.n_agents(),
            actions_per_flag: self.batch.spec().actions_per_flag(),
        };
        (self.assemble)(parts)
    }

    fn upload_obs(&mut self) -> O {
        let parts = self.observed().copied().collect();
        let mut packed = self.upload(parts, 0);
        self.unpack(&mut packed)
    }

    /// Takes one step in every environment and checks the results; whether an episode ended.
    fn advance(&mut self, actions: ArrayView2<f32>) -> Result<bool, EnvError> {
        check_actions(actions, self.batch.n_agents())?;
        self.batch.step(actions, &mut self.slabs)?;
        self.steps += 1;
        self.truncations.check(self.batch.spec(), &self.slabs)?;
        let any_episode_end = self.slabs.any_episode_end();
        self.check(any_episode_end)?;
        Ok(any_episode_end)
    }

    /// Rejects non-finite numbers before they reach a network, and masks without a legal action; observations before
    /// the reset are checked only where an episode ended.
    fn check(&self, any_episode_end: bool) -> Result<(), EnvError> {
        let error = |env: usize, what: String, value: f32| EnvError::NotFinite {
            env,
            seed: self.seed,
            step: self.steps,
            what,
            value,
        };
        let n_agents = self.batch.n_agents();
        if let Some((row, value)) = self.slabs.reward.iter().enumerate().find(|(_, value)| !value.is_finite()) {
            return Err(error(row / n_agents, "reward".into(), *value));
        }
        let slabs = &self.slabs;
        let successors = any_episode_end.then_some([(&slabs.next_shared, 1, 0), (&slabs.next_obs, n_agents, 1)]);
        let seen = [(&slabs.shared, 1, 0), (&slabs.obs, n_agents, 1)];
        // A row's own numbers come after the shared ones.
        for (slab, rows_per_env, behind) in seen.into_iter().chain(successors.into_iter().flatten()) {
            if let Some(((row, column), value)) = slab.indexed_iter().find(|(_, value)| !value.is_finite()) {
                let column = column + behind * self.batch.spec().shared_width;
                let name = match &self.batch.spec().obs {
                    Space::Box(space) => format!("observation `{}`", space.name(column)),
                    _ => format!("observation {column}"),
                };
                return Err(error(row / rows_per_env, name, *value));
            }
        }
        self.check_legal()
    }

    /// Rejects masks without a legal action: arithmetic on values cannot detect them.
    fn check_legal(&self) -> Result<(), EnvError> {
        let span = self.batch.spec().actions_per_flag();
        let heads = self.batch.spec().action.heads();
        for (row, mask) in self.slabs.mask.rows().into_iter().enumerate().filter(|(_, mask)| !mask.is_empty()) {
            let mut flags = mask.iter();
            // Every head has its own flags.
            if heads.iter().any(|n| flags.by_ref().take(n / span).filter(|flag| **flag > 0.0).count() == 0) {
                let n_agents = self.batch.n_agents();
                let (env, agent) = (row / n_agents, row % n_agents);
                return Err(EnvError::NothingLegal { env, agent, seed: self.seed, step: self.steps });
            }
        }
        Ok(())
    }
}

impl<B: EnvBatch, O: ObsForm> VecEnv for HostEnv<B, O> {
    type Obs = O;
    type Action = Tensor<2>;

    fn spec(&self) -> &EnvSpec {
        self.batch.spec()
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn reset(&mut self, seed: u64) -> Result<O, EnvError> {
        (self.seed, self.steps) = (seed, 0);
        self.truncations = Truncations::new(self.batch.n_envs());
        self.batch.reset(seed, &mut self.slabs)?;
        self.check(false)?;
        Ok(self.upload_obs())
    }

    fn step(&mut self, action: Tensor<2>) -> Result<StepBatch<O>, EnvError> {
        let shape = action.dims();
        self.transfers.read_backs += 1;
        let begin = Instant::now();
        let actions = read_back(action);
        self.transfer_time += begin.elapsed();
        let actions = ArrayView2::from_shape(shape, &actions).expect("a tensor's data has the tensor's shape");
        let any_episode_end = self.advance(actions)?;
        let any_truncated = self.slabs.any_truncated();

        let slabs = &self.slabs;
        let flag = |flag: &bool| f32::from(u8::from(*flag));
        let rows = slabs.reward.len();
        let mut parts = Vec::with_capacity(observed(slabs).count() + 4 * rows);
        parts.extend(observed(slabs).chain(&slabs.reward));
        parts.extend(slabs.terminated.iter().map(flag));
        parts.extend(slabs.truncated.iter().map(flag));
        let has_elapsed = self.batch.spec().has_elapsed;
        if has_elapsed {
            parts.extend(&slabs.elapsed);
        }
        let successors = any_truncated.then(|| {
            let parts = slabs.next_shared.iter().chain(&slabs.next_obs).chain(&slabs.next_mask);
            parts.copied().collect::<Vec<f32>>()
        });

        let mut packed = self.upload(parts, 3 + usize::from(has_elapsed));
        let obs = self.unpack(&mut packed);
        let successor = match successors {
            Some(parts) => {
                let mut packed = self.upload(parts, 0);
                Successor::Rows(self.unpack(&mut packed))
            }
            None if any_episode_end => Successor::Terminal,
            None => Successor::Same,
        };
        let [reward, terminated, truncated] = std::array::from_fn(|_| packed.next([rows]));
        let elapsed = has_elapsed.then(|| packed.next([rows]));
        Ok(StepBatch { obs, successor, reward, terminated, truncated, elapsed })
    }

    fn on_host(&mut self) -> Option<&mut dyn HostStepper<Obs = O, Action = Tensor<2>>> {
        let spec = self.batch.spec();
        // Shared numbers and flags that stand for several actions would have to be repeated row by row.
        let flat = spec.shared_width == 0 && spec.actions_per_flag() == 1 && self.slabs.obs.ncols() > 0;
        (flat && runs_on_host(&self.device)).then_some(self)
    }

    fn drain_episodes(&mut self, episodes: &mut Vec<Episode>) -> Result<(), EnvError> {
        self.batch.drain_episodes(episodes);
        Ok(())
    }

    fn obs_moments(&self) -> Option<&RunningMoments> {
        self.batch.obs_moments()
    }

    fn set_obs_moments(&mut self, moments: &RunningMoments) -> Result<(), EnvError> {
        self.batch.set_obs_moments(moments)
    }

    fn running_moments(&mut self) -> Vec<&mut RunningMoments> {
        self.batch.running_moments()
    }

    fn transfer_time(&self) -> Duration {
        self.transfer_time
    }

    fn save(&self) -> Vec<u8> {
        let observed: Vec<f32> = self.observed().copied().collect();
        TAG.encode(self.n_envs(), &(self.seed, self.steps, observed, self.batch.save()))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<O, EnvError> {
        type Saved = (u64, u64, Vec<f32>, Vec<u8>);
        let (seed, steps, observed, batch): Saved = TAG.decode(self.n_envs(), bytes)?;
        let expected = self.observed().count();
        if observed.len() != expected {
            let reason = format!("it holds observations of {} numbers, expected {expected}", observed.len());
            return Err(EnvError::State { reason });
        }
        self.batch.load(&batch)?;
        self.truncations = Truncations::new(self.batch.n_envs());
        (self.seed, self.steps) = (seed, steps);
        let slabs = &mut self.slabs;
        for (slot, value) in slabs.shared.iter_mut().chain(&mut slabs.obs).chain(&mut slabs.mask).zip(observed) {
            *slot = value;
        }
        Ok(self.upload_obs())
    }
}

impl<B: EnvBatch, O: ObsForm> HostStepper for HostEnv<B, O> {
    type Obs = O;
    type Action = Tensor<2>;

    fn observed(&self) -> HostObs<'_> {
        fn rows(slab: &Array2<f32>) -> &[f32] {
            slab.as_slice().expect("a batch writes into its slabs and does not replace them")
        }
        let mask = (self.slabs.mask.ncols() > 0).then(|| rows(&self.slabs.mask));
        HostObs { values: rows(&self.slabs.obs), mask, n_rows: self.slabs.obs.nrows() }
    }

    fn step(&mut self, actions: &[f32]) -> Result<&BatchSlabs, EnvError> {
        let spec = self.batch.spec();
        let shape = [spec.n_rows(), spec.action.width()];
        let actions = ArrayView2::from_shape(shape, actions).expect("an action for every row");
        self.advance(actions)?;
        Ok(&self.slabs)
    }

    fn obs(&self, values: Vec<f32>, mask: Option<Vec<f32>>) -> O {
        let n_rows = values.len() / self.slabs.obs.ncols();
        let part = |values: Vec<f32>| {
            let dims = [n_rows, values.len() / n_rows];
            Tensor::from_data(TensorData::new(values, dims), &self.device)
        };
        let (own, mask) = (Some(part(values)), mask.map(part));
        (self.assemble)(ObsParts { shared: None, own, mask, n_agents: self.batch.n_agents(), actions_per_flag: 1 })
    }

    fn action(&self, values: Vec<f32>) -> Tensor<2> {
        let width = self.batch.spec().action.width();
        let dims = [values.len() / width, width];
        Tensor::from_data(TensorData::new(values, dims), &self.device)
    }
}

/// Numbers of several tensors, one after the other.
enum Upload {
    /// In the memory of the CPU, which computes: each tensor gets a copy of its part.
    Near { parts: IntoIter<f32>, device: Device },
    /// On another device, by one transfer.
    Far(IntoIter<Tensor<2>>),
}

impl Upload {
    fn next<const D: usize>(&mut self, dims: [usize; D]) -> Tensor<D> {
        match self {
            Self::Near { parts, device } => {
                let n = dims.iter().product();
                Tensor::from_data(TensorData::new(parts.by_ref().take(n).collect(), dims), &*device)
            }
            Self::Far(parts) => parts.next().expect("a part for every tensor").reshape(dims),
        }
    }
}

/// Stops actions that are not finite before an environment is blamed for what it makes of them.
pub(crate) fn check_actions(actions: ArrayView2<f32>, n_agents: usize) -> Result<(), EnvError> {
    match actions.indexed_iter().find(|(_, value)| !value.is_finite()) {
        Some(((row, _), value)) => Err(EnvError::ActionNotFinite { env: row / n_agents, value: *value }),
        None => Ok(()),
    }
}

/// Whose states these are; the version changes with what is saved.
const TAG: StateTag = StateTag::new("host-env", 1);

fn observed(slabs: &BatchSlabs) -> impl Iterator<Item = &f32> {
    slabs.shared.iter().chain(&slabs.obs).chain(&slabs.mask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_env::EnvVec;
    use brasa_env::wrappers::TimeLimit;
    use shown::Walk;

    #[allow(dead_code, reason = "examples of the documentation have more environments")]
    mod shown {
        include!("../tests/shown/envs.inc");
    }

    #[test]
    fn every_part_of_an_upload_is_where_it_belongs() {
        let device = brasa_test::device();
        let walks = TimeLimit::new(EnvVec::new(0..2, |_| Walk(0.0)).expect("two walks"), 3).expect("above 0");
        let mut env = HostEnv::new(walks, &device);
        let obs = env.reset(7).expect("it starts");
        assert_eq!((obs.values.dims(), read_back(obs.values)), ([2, 1], vec![3.0, 3.0]));
        let mut step = || VecEnv::step(&mut env, Tensor::from_floats([[0.0], [1.0]], &device)).expect("it steps");
        assert_eq!(read_back(step().obs.values), [2.0, 4.0]);
        assert_eq!(read_back(step().obs.values), [1.0, 5.0]);
        // The first walk reaches its goal, the second one runs out of time.
        let last = step();
        assert_eq!(read_back(last.obs.values), [3.0, 3.0]);
        assert_eq!(
            [last.reward, last.terminated, last.truncated].map(read_back),
            [[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]]
        );
        let Successor::Rows(before_reset) = last.successor else { panic!("an episode was truncated") };
        assert_eq!(read_back(before_reset.values), [0.0, 6.0]);
    }
}
