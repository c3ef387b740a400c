//! Environments of the host as a device sees them.

use brasa_env::wrappers::RunningMoments;
use brasa_env::{BatchSlabs, EnvBatch, EnvError, Episode, Space};
use burn::tensor::{Device, Tensor, TensorData};
use ndarray::ArrayView2;

use crate::{Obs, StepBatch, VecEnv};

/// A host batch behind [`VecEnv`]: one read-back of actions and one upload of results per step.
///
/// A second upload carries the true successors of the steps at which an episode ended.
pub struct HostEnv<B> {
    batch: B,
    slabs: BatchSlabs,
    device: Device,
    seed: u64,
    steps: u64,
    transfers: Transfers,
}

/// How often data crossed between host and device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transfers {
    /// From host to device.
    pub uploads: u64,
    /// From device to host; each waits for the device.
    pub read_backs: u64,
}

impl<B: EnvBatch> HostEnv<B> {
    /// Puts `batch` before `device`, which must be the plain device, not its autodiff side.
    pub fn new(batch: B, device: &Device) -> Self {
        let slabs = BatchSlabs::for_batch(&batch);
        Self { batch, slabs, device: device.clone(), seed: 0, steps: 0, transfers: Transfers::default() }
    }

    /// The host batch.
    pub fn batch(&self) -> &B {
        &self.batch
    }

    /// Space of one row of observations.
    pub fn obs_space(&self) -> &Space {
        self.batch.obs_space()
    }

    /// What crossed so far.
    pub fn transfers(&self) -> Transfers {
        self.transfers
    }

    /// What the last step wrote on the host.
    pub fn slabs(&self) -> &BatchSlabs {
        &self.slabs
    }

    fn upload(&mut self, parts: Vec<f32>) -> Tensor<1> {
        self.transfers.uploads += 1;
        let length = parts.len();
        Tensor::from_data(TensorData::new(parts, [length]), &self.device)
    }

    /// Cuts observation and mask off the front of an upload; returns them and the number of values used.
    fn unpack(&self, packed: &Tensor<1>) -> (Obs, usize) {
        let (rows, width) = self.slabs.obs.dim();
        let options = self.slabs.mask.ncols();
        let values = packed.clone().slice(0..rows * width).reshape([rows, width]);
        let end = rows * (width + options);
        let mask = (options > 0).then(|| packed.clone().slice(rows * width..end).reshape([rows, options]));
        (Obs { values, mask }, end)
    }

    fn upload_obs(&mut self) -> Obs {
        let parts = self.slabs.obs.iter().chain(&self.slabs.mask).copied().collect();
        let packed = self.upload(parts);
        self.unpack(&packed).0
    }

    /// Stops numbers that are not finite before they reach a network; successors are read only where an episode ended.
    fn check_finite(&self, any_episode_end: bool) -> Result<(), EnvError> {
        let error = |row: usize, what: &str, value: f32| EnvError::NotFinite {
            env: row / self.batch.n_agents(),
            seed: self.seed,
            step: self.steps,
            what: what.to_owned(),
            value,
        };
        if let Some((row, value)) = self.slabs.reward.iter().enumerate().find(|(_, value)| !value.is_finite()) {
            return Err(error(row, "reward", *value));
        }
        let successors = any_episode_end.then_some(&self.slabs.next_obs);
        for slab in std::iter::once(&self.slabs.obs).chain(successors) {
            if let Some(((row, column), value)) = slab.indexed_iter().find(|(_, value)| !value.is_finite()) {
                let name = match self.batch.obs_space() {
                    Space::Box(space) => format!("observation `{}`", space.names[column]),
                    _ => format!("observation {column}"),
                };
                return Err(error(row, &name, *value));
            }
        }
        Ok(())
    }
}

impl<B: EnvBatch> VecEnv for HostEnv<B> {
    type Obs = Obs;
    type Action = Tensor<2>;

    fn n_envs(&self) -> usize {
        self.batch.n_envs()
    }

    fn n_rows(&self) -> usize {
        self.batch.n_rows()
    }

    fn action_space(&self) -> &Space {
        self.batch.action_space()
    }

    fn reset(&mut self, seed: u64) -> Result<Obs, EnvError> {
        (self.seed, self.steps) = (seed, 0);
        self.batch.reset(seed, &mut self.slabs)?;
        self.check_finite(false)?;
        Ok(self.upload_obs())
    }

    fn step(&mut self, action: Tensor<2>) -> Result<StepBatch<Obs>, EnvError> {
        let shape = action.dims();
        self.transfers.read_backs += 1;
        let data = action.into_data();
        let actions = data.as_slice::<f32>().expect("actions are f32");
        let actions = ArrayView2::from_shape(shape, actions).expect("a tensor's data has the tensor's shape");
        self.batch.step(actions, &mut self.slabs)?;
        self.steps += 1;
        let any_episode_end = self.slabs.any_episode_end();
        self.check_finite(any_episode_end)?;

        let slabs = &self.slabs;
        let flag = |flag: &bool| f32::from(u8::from(*flag));
        let rows = slabs.reward.len();
        let mut parts = Vec::with_capacity(slabs.obs.len() + slabs.mask.len() + 4 * rows);
        parts.extend(slabs.obs.iter().chain(&slabs.mask).chain(&slabs.reward));
        parts.extend(slabs.terminated.iter().map(flag));
        parts.extend(slabs.truncated.iter().map(flag));
        let has_elapsed = self.batch.has_elapsed();
        if has_elapsed {
            parts.extend(&slabs.elapsed);
        }
        let successors =
            any_episode_end.then(|| slabs.next_obs.iter().chain(&slabs.next_mask).copied().collect::<Vec<f32>>());

        let packed = self.upload(parts);
        let (obs, end) = self.unpack(&packed);
        let next_obs = successors.map(|parts| {
            let packed = self.upload(parts);
            self.unpack(&packed).0
        });
        let part = |i: usize| packed.clone().slice(end + i * rows..end + (i + 1) * rows);
        let elapsed = has_elapsed.then(|| part(3));
        Ok(StepBatch { obs, next_obs, reward: part(0), terminated: part(1), truncated: part(2), elapsed })
    }

    fn info_names(&self) -> &[String] {
        self.batch.info_names()
    }

    fn drain_episodes(&mut self, episodes: &mut Vec<Episode>) {
        self.batch.drain_episodes(episodes)
    }

    fn obs_moments(&self) -> Option<&RunningMoments> {
        self.batch.obs_moments()
    }

    fn save(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for counter in [self.seed, self.steps] {
            bytes.extend(counter.to_le_bytes());
        }
        for value in self.slabs.obs.iter().chain(&self.slabs.mask) {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(self.batch.save());
        bytes
    }

    fn load(&mut self, bytes: &[u8]) -> Result<Obs, EnvError> {
        let n_values = self.slabs.obs.len() + self.slabs.mask.len();
        let head = 16 + 4 * n_values;
        if bytes.len() < head {
            return Err(EnvError::State { reason: format!("{} bytes, at least {head} expected", bytes.len()) });
        }
        self.batch.load(&bytes[head..])?;
        let counter = |i: usize| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().expect("8 bytes"));
        (self.seed, self.steps) = (counter(0), counter(1));
        let values = bytes[16..head].chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().expect("4 bytes")));
        for (slot, value) in self.slabs.obs.iter_mut().chain(&mut self.slabs.mask).zip(values) {
            *slot = value;
        }
        Ok(self.upload_obs())
    }
}
