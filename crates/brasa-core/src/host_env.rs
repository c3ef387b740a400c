//! Environments of the host as a device sees them.

use brasa_env::wrappers::RunningMoments;
use brasa_env::{BatchSlabs, EnvBatch, EnvError, Episode, Space};
use burn::tensor::{Device, Tensor, TensorData};
use ndarray::{Array2, ArrayView2};

use crate::{Clock, Obs, ObsForm, ObsParts, StepBatch, TeamObs, VecEnv};

/// A host batch behind [`VecEnv`]: one read-back of actions and one upload of results per step.
///
/// A second upload carries the true successors of the steps at which an episode ended. `O` is the form in which
/// policies see observations: flat rows, or [`TeamObs`], which keeps what agents share once.
pub struct HostEnv<B, O = Obs> {
    batch: B,
    slabs: BatchSlabs,
    device: Device,
    assemble: fn(ObsParts) -> O,
    seed: u64,
    steps: u64,
    /// Of the first environment; told where it is the only one.
    clock: Clock,
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
    /// Puts `batch` before `device`, which must be the plain device, not its autodiff side. Every row sees all that is
    /// known of it, side by side.
    pub fn new(batch: B, device: &Device) -> Self {
        Self::in_form(batch, device)
    }
}

impl<B: EnvBatch> HostEnv<B, TeamObs> {
    /// The same for networks that judge all agents of an environment together: what they share is kept once.
    pub fn team(batch: B, device: &Device) -> Self {
        Self::in_form(batch, device)
    }
}

impl<B: EnvBatch, O: ObsForm> HostEnv<B, O> {
    /// The same for any form of observations.
    pub fn in_form(batch: B, device: &Device) -> Self {
        let slabs = BatchSlabs::for_batch(&batch);
        Self {
            batch,
            slabs,
            device: device.clone(),
            assemble: O::assemble,
            seed: 0,
            steps: 0,
            clock: Clock::default(),
            transfers: Transfers::default(),
        }
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

    /// What policies see next, in the order in which it is uploaded and saved.
    fn observed(&self) -> impl Iterator<Item = &f32> {
        observed(&self.slabs)
    }

    fn upload(&mut self, parts: Vec<f32>) -> Tensor<1> {
        self.transfers.uploads += 1;
        let length = parts.len();
        Tensor::from_data(TensorData::new(parts, [length]), &self.device)
    }

    /// Cuts the parts of observations off the front of an upload; returns them assembled and the number of values used.
    fn unpack(&self, packed: &Tensor<1>) -> (O, usize) {
        let mut end = 0;
        let mut part = |slab: &Array2<f32>| {
            let (rows, columns) = slab.dim();
            let from = end;
            end += rows * columns;
            (columns > 0).then(|| packed.clone().slice(from..end).reshape([rows, columns]))
        };
        let parts = ObsParts {
            shared: part(&self.slabs.shared),
            own: part(&self.slabs.obs),
            mask: part(&self.slabs.mask),
            n_agents: self.batch.n_agents(),
            options_per_flag: self.batch.options_per_flag(),
        };
        ((self.assemble)(parts), end)
    }

    fn upload_obs(&mut self) -> O {
        let parts = self.observed().copied().collect();
        let packed = self.upload(parts);
        self.unpack(&packed).0
    }

    /// Stops numbers that are not finite before they reach a network, and masks that allow nothing; successors are read only
    /// where an episode ended.
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
        // Own numbers come after the shared ones.
        for (slab, rows_per_env, behind) in seen.into_iter().chain(successors.into_iter().flatten()) {
            if let Some(((row, column), value)) = slab.indexed_iter().find(|(_, value)| !value.is_finite()) {
                let column = column + behind * self.batch.shared_width();
                let name = match self.batch.obs_space() {
                    Space::Box(space) => format!("observation `{}`", space.names[column]),
                    _ => format!("observation {column}"),
                };
                return Err(error(row / rows_per_env, name, *value));
            }
        }
        self.check_legal()
    }

    /// Stops masks under which a policy would have to choose what is forbidden: no arithmetic on values tells them apart.
    fn check_legal(&self) -> Result<(), EnvError> {
        let span = self.batch.options_per_flag();
        let heads = match self.batch.action_space() {
            Space::MultiDiscrete(heads) => heads.as_slice(),
            Space::Discrete(n) => std::slice::from_ref(n),
            Space::Box(_) => &[],
        };
        for (row, mask) in self.slabs.mask.rows().into_iter().enumerate().filter(|(_, mask)| !mask.is_empty()) {
            let mut flags = mask.iter();
            // Every head looks at its own flags.
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

    fn n_envs(&self) -> usize {
        self.batch.n_envs()
    }

    fn n_rows(&self) -> usize {
        self.batch.n_rows()
    }

    fn action_space(&self) -> &Space {
        self.batch.action_space()
    }

    fn reset(&mut self, seed: u64) -> Result<O, EnvError> {
        (self.seed, self.steps, self.clock) = (seed, 0, Clock::default());
        self.batch.reset(seed, &mut self.slabs)?;
        self.check(false)?;
        Ok(self.upload_obs())
    }

    fn step(&mut self, action: Tensor<2>) -> Result<StepBatch<O>, EnvError> {
        let shape = action.dims();
        self.transfers.read_backs += 1;
        let data = action.into_data();
        let actions = data.as_slice::<f32>().expect("actions are f32");
        let actions = ArrayView2::from_shape(shape, actions).expect("a tensor's data has the tensor's shape");
        self.batch.step(actions, &mut self.slabs)?;
        self.steps += 1;
        let any_episode_end = self.slabs.any_episode_end();
        self.check(any_episode_end)?;
        self.clock.advance(self.slabs.episode_end(0));

        let slabs = &self.slabs;
        let flag = |flag: &bool| f32::from(u8::from(*flag));
        let rows = slabs.reward.len();
        let mut parts = Vec::with_capacity(observed(slabs).count() + 4 * rows);
        parts.extend(observed(slabs).chain(&slabs.reward));
        parts.extend(slabs.terminated.iter().map(flag));
        parts.extend(slabs.truncated.iter().map(flag));
        let has_elapsed = self.batch.has_elapsed();
        if has_elapsed {
            parts.extend(&slabs.elapsed);
        }
        let successors = any_episode_end.then(|| {
            let parts = slabs.next_shared.iter().chain(&slabs.next_obs).chain(&slabs.next_mask);
            parts.copied().collect::<Vec<f32>>()
        });

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

    fn clock(&self) -> Option<Clock> {
        (self.batch.n_envs() == 1).then_some(self.clock)
    }

    fn save(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for counter in [self.seed, self.steps, self.clock.episode, self.clock.step] {
            bytes.extend(counter.to_le_bytes());
        }
        for value in self.observed() {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(self.batch.save());
        bytes
    }

    fn load(&mut self, bytes: &[u8]) -> Result<O, EnvError> {
        let head = COUNTERS + 4 * self.observed().count();
        if bytes.len() < head {
            return Err(EnvError::State { reason: format!("{} bytes, at least {head} expected", bytes.len()) });
        }
        self.batch.load(&bytes[head..])?;
        let counter = |i: usize| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().expect("8 bytes"));
        (self.seed, self.steps) = (counter(0), counter(1));
        self.clock = Clock { episode: counter(2), step: counter(3) };
        let values = bytes[COUNTERS..head].chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().expect("4 bytes")));
        let slabs = &mut self.slabs;
        for (slot, value) in slabs.shared.iter_mut().chain(&mut slabs.obs).chain(&mut slabs.mask).zip(values) {
            *slot = value;
        }
        Ok(self.upload_obs())
    }
}

fn observed(slabs: &BatchSlabs) -> impl Iterator<Item = &f32> {
    slabs.shared.iter().chain(&slabs.obs).chain(&slabs.mask)
}

/// Bytes of the counters before saved observations.
const COUNTERS: usize = 4 * size_of::<u64>();
