//! Replay.

mod builder;
mod config;
mod host;
mod n_step;
mod priorities;
mod ring;
mod sequences;
mod state;
mod transitions;

use brasa_core::env::{EnvSpec, InvalidField, field};
use std::ops::Range;

use brasa_core::{Rows, StepBatch, Successor, read_back};
use brasa_device::{open_named, runs_on_host};
use brasa_kernels::{concat, elementwise};
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use rand::Rng;

use crate::compact::{Compact, Packed, Precision};
use crate::truncations::Watch;
pub use builder::{ReplayBuilder, Transition};
pub use config::{BufferError, PrioritizedConfig, ReplayConfig, SequenceConfig};
use host::{fetch_rows, fetch_step};
use n_step::{NStepBatch, Taken};
pub use priorities::SumTree;
use priorities::{Drawn, Priorities};
use ring::Ring;
pub use sequences::{BurnIn, ReplayedSequences};
pub use transitions::Transitions;

/// Stored transitions on a non-autodiff device; memory is allocated once.
///
/// The replay buffer of off-policy algorithms.
///
/// The buffer is a ring of slots. A slot holds one step of all environments: `n_rows` rows of observation, action and
/// outcome. The next observation of a transition is in the slot of the next transition, so observations are stored once. Only
/// the successors of truncated rows are stored apart: a row is truncated at most once in `truncation_interval` steps, so that
/// the successors of so many steps share one slot.
///
/// For a team ([`Compact::n_agents`]) the shared part is stored once per environment, and every agent samples
/// separately.
///
/// Nothing is read back from the device: the host knows which slots can be sampled, and only the device knows where
/// episodes end.
///
/// `capacity` counts the transitions of each agent of a team, otherwise those of all rows. A step uses one slot. If rows were
/// truncated, the `truncation_interval` steps from there on use another one together: with an interval of 1, and very many
/// environments or environments on the device, the buffer stores half as many transitions as `capacity`.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/rollout.inc")); }
/// # use shown::*;
/// use brasa_buffers::{EnvSpec, Obs, ReplayBuffer, ReplayConfig, Space, named_rng};
///
/// let spec = EnvSpec::new(Space::uniform_box(-1.0, 1.0, ["x"]), Space::Discrete(2), 1);
/// let device = brasa_device::open_named("cpu")?;
/// let config = ReplayConfig { capacity: 100, ..ReplayConfig::default() };
/// let (obs, action) = (Obs::new(row(0.0, &device)), row(1.0, &device));
/// let mut replay = ReplayBuffer::new(&config, &spec, &obs, &action, 0.99, &device)?;
/// // The first observations, then the action and the result of each step.
/// replay.begin(obs);
/// for _ in 0..3 {
///     replay.push(action.clone(), &step(&device))?;
/// }
/// assert_eq!(replay.n_transitions(), 3);
/// let batch = replay.sample(4, 0.0, &mut named_rng(0, "example", 0));
/// assert_eq!(brasa_core::read_back(batch.reward), [1.0; 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ReplayBuffer<O, A> {
    obs: Vec<Packed>,
    /// Rows per row of each of those arrays: 1, or the number of agents.
    shared_by: Vec<usize>,
    action: Vec<Packed>,
    /// `[rows, 4]`: see [`outcome`]. One extra slot of zeros stands for a missing next step.
    outcome: Packed,
    /// `[n_rows]`: 1 if the next step belongs to the episode of the previous one.
    linked: Tensor<1>,
    /// Steps whose successors of truncated rows share a slot.
    interval: usize,
    watch: Watch,
    /// Steps since the first of them, while they are in the slot after the last one of the ring.
    pending: Option<usize>,
    /// Whether the newest observations are those of [`ReplayBuffer::begin`]: no transition ends there.
    begun: bool,
    /// The observation of the next step of [`ReplayBuffer::push_one`], if its episode goes on.
    expected: Option<Vec<f32>>,
    ring: Ring,
    n_step: NStepBatch,
    priorities: Option<Priorities>,
    sequences: Option<SequenceConfig>,
    /// What the policy remembered before each step.
    remembered: Option<Packed>,
    /// An example of one step, for its shape.
    like: (O, A),
    n_rows: usize,
    /// Agents whose transitions are sampled separately.
    n_agents: usize,
    precision: Precision,
    /// Alternatives of each choice of an action.
    heads: Vec<usize>,
    /// Where all tensors of the buffer are.
    device: Device,
    /// The device of the run, if it is another one.
    run_device: Option<Device>,
}

/// Largest `n_step`: every step is a gather of its own.
const MOST_STEPS: u64 = 1000;
/// Actions keep all their bits: the index of a discrete one is a number like any other, and 16 bits hold integers up to 2048.
const ACTIONS: Precision = Precision::F32;

/// The columns of an outcome.
mod outcome {
    /// The reward of the step.
    pub const REWARD: usize = 0;
    /// 0 if the episode terminated, else 1: whether the next observation is bootstrapped.
    pub const BOOTSTRAPS: usize = 1;
    /// 1 if the previous step belongs to the same episode.
    pub const LINKED: usize = 2;
    /// 1 if the episode was truncated: the next observation is that of [`super::Ring::end`].
    pub const TRUNCATED: usize = 3;
    pub const WIDTH: usize = 4;
}

impl<O: Compact, A: Compact> ReplayBuffer<O, A> {
    /// A buffer for steps of environments with `spec`, shaped like `obs` and `action`, on the non-autodiff `device` or, with
    /// [`ReplayConfig::on_host`], on the host. Batches are on `device`.
    ///
    /// # Errors
    /// [`BufferError::Field`] for an invalid setting, a capacity too small for the rows of a step, a `spec` of other rows than those of
    /// `obs`, or a precision that the device of the buffer does not support. [`BufferError::Device`] if the buffer must be on the host, and the backend of the CPU is not
    /// compiled in.
    ///
    /// # Panics
    /// If `obs` has no rows.
    pub fn new(
        config: &ReplayConfig,
        spec: &EnvSpec,
        obs: &O,
        action: &A,
        gamma: f64,
        device: &Device,
    ) -> Result<Self, BufferError> {
        config.validate()?;
        let rule = "must be without autodiff (`Device::without_autodiff`): stored tensors would keep the operations that made them";
        field::rule(!device.is_autodiff(), "device", rule, "an autodiff device")?;
        let n_rows = obs.n_rows();
        assert!(n_rows > 0, "a step needs rows");
        check_spec(spec, n_rows)?;
        let fail = |field, rule, value: String| Err(BufferError::Field(InvalidField::new(field, rule, value)));
        if !(0.0..=1.0).contains(&gamma) {
            return fail("gamma", "must be in [0, 1]", gamma.to_string());
        }
        let n_agents = obs.n_agents();
        assert!(n_rows.is_multiple_of(n_agents), "a team has rows for all of its agents");
        if n_agents > 1 && config.prioritized.is_some() {
            let value = format!("{n_agents} agents");
            return fail("prioritized", "must be off for a team, whose agents sample separately", value);
        }
        let rows_per_agent = n_rows / n_agents;
        let n_slots = config.capacity / rows_per_agent;
        if n_slots < MIN_SLOTS {
            let least = MIN_SLOTS * rows_per_agent;
            let rule = format!("must be at least {least}, {MIN_SLOTS} steps of all rows");
            return Err(BufferError::Field(InvalidField::new("capacity", rule, config.capacity)));
        }
        if (n_slots + 1) * n_rows > i32::MAX as usize / 2 {
            return fail("capacity", "must stay below 2^30", config.capacity.to_string());
        }
        let run_device = (config.on_host && !runs_on_host(device)).then(|| device.clone());
        let (obs, action, device) = match run_device {
            Some(_) => {
                let host = open_named("cpu")?;
                (&fetch_rows(obs, &host), &fetch_rows(action, &host), &host.clone())
            }
            None => (obs, action, device),
        };
        let precision = config.precision.of_space(&spec.obs, device);
        if !device.supports_dtype(precision.dtype()) {
            let value = precision.dtype().name();
            return fail("precision", "must be a type that the device supports", value.to_owned());
        }
        let (mut obs_arrays, mut action_arrays) = (Vec::new(), Vec::new());
        obs.clone().pack(precision, &mut obs_arrays);
        action.clone().pack(ACTIONS, &mut action_arrays);
        let shared_by: Vec<usize> = obs_arrays.iter().map(|array| n_rows / array.n_rows()).collect();
        assert!(shared_by.iter().all(|n| [1, n_agents].contains(n)), "an array has a row for each row or each team");
        let rows = n_slots * n_rows;
        let bytes = Self::bytes_of(config, spec, obs, action, device);
        field::fits_in_memory("capacity", config.capacity, bytes)?;
        field::at_most("n_step", config.n_step as u64, MOST_STEPS)?;
        let interval = usize::try_from(spec.truncation_interval).unwrap_or(usize::MAX);
        // Steps that share a slot are merged beside the ring.
        let beside = if interval > 1 { n_rows } else { 0 };
        let outcome = Packed::new(Tensor::zeros([rows + n_rows, outcome::WIDTH], device), Precision::F32);
        let zeroed = |array: &Packed, rows: usize| array.zeroed(rows, device);
        let priorities = config.prioritized.as_ref().map(|config| Priorities::new(config, rows, device));
        let on_host = priorities.as_ref().is_none_or(Priorities::on_host);
        Ok(Self {
            obs: obs_arrays.iter().zip(&shared_by).map(|(array, n)| zeroed(array, (rows + beside) / n)).collect(),
            shared_by,
            action: action_arrays.iter().map(|array| zeroed(array, rows)).collect(),
            outcome,
            linked: Tensor::zeros([n_rows], device),
            interval,
            watch: Watch::new(spec.truncation_interval, n_rows, device),
            pending: None,
            begun: true,
            expected: None,
            ring: Ring::new(n_slots),
            n_step: NStepBatch::new([config.n_step, n_rows, n_slots], gamma, on_host, device),
            priorities,
            sequences: config.sequences,
            remembered: None,
            like: (obs.clone(), action.clone()),
            n_rows,
            n_agents,
            precision,
            heads: spec.action.heads().to_vec(),
            device: device.clone(),
            run_device,
        })
    }

    /// [`ReplayBuffer::bytes`] of a buffer on `device` for steps of environments of `spec`, with rows shaped like those of `obs` and `action`.
    pub fn bytes_of(config: &ReplayConfig, spec: &EnvSpec, obs: &O, action: &A, device: &Device) -> f64 {
        let n_rows = spec.n_rows();
        let per_row = |arrays: &[Packed]| -> f64 {
            arrays.iter().map(|array| (array.n_rows() * array.layout().bytes_per_row()) as f64).sum()
        };
        let (mut obs_arrays, mut action_arrays) = (Vec::new(), Vec::new());
        obs.clone().pack(config.precision.of_space(&spec.obs, device), &mut obs_arrays);
        action.clone().pack(ACTIONS, &mut action_arrays);
        let n = obs.n_rows() as f64;
        let (of_obs, of_action) = (per_row(&obs_arrays) / n, per_row(&action_arrays) / n);
        let of_outcome = 4.0 * outcome::WIDTH as f64;
        // A priority, and its share of the sums.
        let of_priority = if config.prioritized.is_some() { 9.0 } else { 0.0 };
        let n_slots = config.capacity / (n_rows / obs.n_agents()).max(1);
        let beside = if spec.truncation_interval > 1 { of_obs } else { 0.0 };
        let ring = n_slots as f64 * (of_obs + of_action + of_outcome + of_priority);
        n_rows as f64 * (ring + of_outcome + beside)
    }

    /// Bytes of the host that tell which slots can be sampled, for steps of `n_envs` environments.
    pub fn bookkeeping_bytes(config: &ReplayConfig, n_envs: usize) -> f64 {
        Ring::bytes(config.capacity / n_envs.max(1)) as f64
    }

    /// Stores the first observations, after every reset of all environments, but not after [`ReplayBuffer::load`].
    ///
    /// Unfinished episodes count as truncated.
    ///
    /// # Panics
    /// If the shape differs.
    pub fn begin(&mut self, obs: O) {
        let obs = self.fetched(obs);
        let slot = match self.ring.open() {
            Some(open) if self.begun => open,
            Some(open) => {
                self.truncate_all(open);
                self.advance()
            }
            None => self.advance(),
        };
        self.write_obs(slot, obs);
        self.begun = true;
        self.linked = Tensor::zeros([self.n_rows], &self.device);
    }

    /// Rows where the buffer is.
    fn fetched(&self, obs: O) -> O {
        if self.run_device.is_some() { fetch_rows(&obs, &self.device) } else { obs }
    }

    /// Stores one step: the stored form of the action on the newest observation, and the result.
    ///
    /// # Errors
    /// [`BufferError::EarlyTruncation`] if a row was truncated where [`EnvSpec::truncation_interval`] permits no truncation. The buffer is
    /// then unchanged. On a device whose memory the host cannot read, the step is stored and [`ReplayBuffer::early_truncations`]
    /// counts the row: a check here would wait for the device at every step.
    ///
    /// # Panics
    /// If [`ReplayBuffer::begin`] was not called or the shape of a part does not fit.
    pub fn push(&mut self, action: A, step: &StepBatch<O>) -> Result<(), BufferError> {
        if self.run_device.is_none() {
            return self.store(action, step);
        }
        let (action, step) = fetch_step(&action, step, &self.device);
        self.store(action, &step)
    }

    /// [`ReplayBuffer::push`] of rows where the buffer is.
    fn store(&mut self, action: A, step: &StepBatch<O>) -> Result<(), BufferError> {
        let parts = [&step.reward, &step.terminated, &step.truncated, &self.linked];
        let [outcome, linked, watched] = elementwise([self.n_rows, 1], |formulas| {
            let [reward, terminated, truncated, linked] = parts.map(|values| formulas.read(values));
            let bootstraps = -terminated + 1.0;
            let linked_to_this = bootstraps * (-truncated + 1.0);
            [
                vec![reward, bootstraps, linked, truncated],
                vec![linked_to_this],
                self.watch.formulas(formulas, truncated),
            ]
        });
        self.watch.step(watched, step.successor.rows().is_some())?;
        let slot = self.ring.complete().expect("`begin` comes before `push`");
        let rows = self.rows_of(slot);
        self.linked = linked.reshape([self.n_rows]);
        if let Some(priorities) = &mut self.priorities {
            priorities.insert(rows.clone());
        }
        let leader = self.ring.leader(slot);
        if let Successor::Rows(successors) = &step.successor {
            self.store_successors(slot, successors.clone(), &step.truncated);
        }
        if let Some(steps) = &mut self.pending {
            *steps += 1;
            if *steps == self.interval {
                self.settle_successors();
            }
        }
        let open = self.advance();
        let (open_rows, mut actions, mut obs) = (self.rows_of(open), Vec::new(), Vec::new());
        action.pack(ACTIONS, &mut actions);
        step.obs.clone().pack(self.precision, &mut obs);
        let outcome = (&mut self.outcome, rows.clone(), Packed::new(outcome, Precision::F32));
        let actions = of_step(&mut self.action, &[], rows, actions);
        let obs = of_step(&mut self.obs, &self.shared_by, open_rows, obs);
        Packed::assign_all(actions.chain([outcome]).chain(obs));
        self.begun = false;
        self.n_step.link(&self.ring, leader, slot);
        self.expected = None;
        Ok(())
    }

    /// `[1]`: number of truncations so far that [`EnvSpec::truncation_interval`] excludes, for a reading together with other numbers;
    /// pass it to [`BufferError::of_early_truncations`]. `None` if [`ReplayBuffer::push`] checks them.
    pub fn early_truncations(&self) -> Option<Tensor<1>> {
        self.watch.pending()
    }

    /// Stores the successors of the truncated rows of the start `slot`.
    fn store_successors(&mut self, slot: usize, successors: O, truncated: &Tensor<1>) {
        if self.interval == 1 {
            let end = self.advance();
            self.write_obs(end, successors);
            self.ring.set_end(slot, end);
            return;
        }
        let beside = self.ring.n_slots();
        match self.pending {
            None => {
                self.write_obs(beside, successors);
                self.pending = Some(0);
            }
            Some(_) => {
                let mut arrays = Vec::new();
                successors.pack(self.precision, &mut arrays);
                self.merge(beside, &truncated.clone().bool(), arrays);
            }
        }
        self.ring.set_end(slot, beside);
    }

    /// Moves the successors beside the ring into it.
    fn settle_successors(&mut self) {
        let beside = self.ring.n_slots();
        let end = self.advance();
        let (from, to) = (self.rows_of(beside), self.rows_of(end));
        for (array, n) in self.obs.iter_mut().zip(&self.shared_by) {
            let successors = array.copy(part(from.clone(), *n), &self.device);
            array.assign(part(to.clone(), *n), successors);
        }
        for slot in self.ring.move_ends(beside, end, self.interval) {
            self.n_step.set_end(slot, end);
        }
        self.pending = None;
    }

    /// Makes the transition before the open slot one whose rows were all truncated, with their successors in that slot.
    fn truncate_all(&mut self, open: usize) {
        let Some(start) = self.ring.leader(open) else { return };
        let rows = self.rows_of(start);
        let outcome = self.outcome.copy(rows.clone(), &self.device).into_floats();
        let n_rows = self.n_rows;
        let column = |i: usize| outcome.clone().slice([0..n_rows, i..i + 1]);
        if let Some(end) = self.ring.end(start) {
            let truncated = column(outcome::TRUNCATED).reshape([self.n_rows]).bool();
            let copy = |(array, n): (&Packed, &usize)| array.copy(part(self.rows_of(end), *n), &self.device);
            let arrays = self.obs.iter().zip(&self.shared_by).map(copy).collect();
            self.merge(open, &truncated, arrays);
        }
        let mut columns = [0, 1, 2].map(column).to_vec();
        columns.push(Tensor::ones([self.n_rows, 1], &self.device));
        self.outcome.assign(rows, Packed::new(concat(columns), Precision::F32));
        self.ring.set_end(start, open);
        self.n_step.set_end(start, open);
    }

    /// Number of transitions that can be sampled; for a team, per agent.
    pub fn n_transitions(&self) -> usize {
        self.ring.n_starts() * self.n_rows / self.n_agents
    }

    /// Exponent of the importance-sampling weights after this share of a run, 0 to 1: the `beta` of [`ReplayBuffer::sample`]. 0 for uniform sampling.
    pub fn beta(&self, share: f64) -> f64 {
        self.priorities.as_ref().map_or(0.0, |priorities| priorities.beta(share))
    }

    /// Samples `batch_size` transitions with replacement, for a team per agent; with [`ReplayConfig::sequences`] as many sequences as
    /// [`SequenceConfig::n_sequences`] says. With priorities, `beta` is the exponent of the weights: see [`ReplayBuffer::beta`].
    ///
    /// # Panics
    /// If nothing is stored or `batch_size` is 0, or for sequences without [`ReplayBuffer::with_memory`].
    #[track_caller]
    pub fn sample(&self, batch_size: usize, beta: f64, rng: &mut (impl Rng + ?Sized)) -> Transitions<O, A> {
        assert!(self.n_transitions() > 0, "the replay buffer is empty: there is nothing to sample");
        assert!(batch_size > 0, "a batch needs a row, got a batch size of 0");
        match &self.sequences {
            None => {
                let (rows, weight) = self.drawn(batch_size, beta, rng);
                let taken = self.n_step.follow(&rows, &self.ring, &self.outcome);
                self.transitions(taken, weight)
            }
            Some(config) => {
                let (rows, weight) = self.drawn(config.n_sequences(batch_size), beta, rng);
                self.sequences_from(config, &rows, weight)
            }
        }
    }

    /// Rows of starts, by priority or uniformly, and their weights.
    fn drawn(&self, n: usize, beta: f64, rng: &mut (impl Rng + ?Sized)) -> (Drawn, Option<Tensor<1>>) {
        match &self.priorities {
            None => (Drawn::Host(self.draw(n, rng)), None),
            Some(priorities) => {
                let (rows, weight) = priorities.sample(n, beta, rng);
                (rows, Some(weight))
            }
        }
    }

    /// The transitions with these ends, on the device of the run.
    fn transitions(&self, taken: Taken, weight: Option<Tensor<1>>) -> Transitions<O, A> {
        Transitions {
            obs: O::unpack(&self.like.0, &mut self.select_obs(&taken.rows)),
            action: A::unpack(&self.like.1, &mut self.select(&self.action, &taken.rows)),
            reward: self.uploaded(taken.reward),
            next_obs: O::unpack(&self.like.0, &mut self.select_obs(&taken.successors)),
            discount: self.uploaded(taken.discount),
            weight: weight.map(|weight| self.uploaded(weight)),
            rows: taken.rows,
            sequences: None,
        }
    }

    /// Numbers on the device of the run.
    fn uploaded<const D: usize>(&self, numbers: Tensor<D>) -> Tensor<D> {
        match &self.run_device {
            Some(device) => numbers.to_device(device),
            None => numbers,
        }
    }

    /// Uniformly random rows of starts, cycling over agents.
    fn draw(&self, batch_size: usize, rng: &mut (impl Rng + ?Sized)) -> Vec<usize> {
        let (n_agents, rows_per_agent) = (self.n_agents, self.n_rows / self.n_agents);
        let row = |i: usize| self.ring.draw(rows_per_agent, rng) * n_agents + i % n_agents;
        (0..batch_size * n_agents).map(row).collect()
    }

    fn select_obs(&self, rows: &Tensor<1, Int>) -> std::vec::IntoIter<Packed> {
        let teams = self.shared_by.iter().any(|n| *n > 1).then(|| rows.clone().div_scalar(self.n_agents as i64));
        let select = |(array, n): (&Packed, &usize)| match &teams {
            Some(teams) if *n > 1 => self.selected(array, teams),
            _ => self.selected(array, rows),
        };
        self.obs.iter().zip(&self.shared_by).map(select).collect::<Vec<_>>().into_iter()
    }

    fn select(&self, all: &[Packed], rows: &Tensor<1, Int>) -> std::vec::IntoIter<Packed> {
        all.iter().map(|array| self.selected(array, rows)).collect::<Vec<_>>().into_iter()
    }

    /// Rows of an array on the device of the run.
    fn selected(&self, array: &Packed, rows: &Tensor<1, Int>) -> Packed {
        let rows = array.select(rows.clone());
        match &self.run_device {
            Some(device) => rows.upload(device),
            None => rows,
        }
    }

    /// Updates priorities from TD errors; does nothing without priorities.
    ///
    /// `rows` are those of [`Transitions`], `td_error` is `[n]` and finite. With [`ReplayConfig::sequences`] the errors are those of the steps
    /// after [`Transitions::burned_in`].
    ///
    /// # Panics
    /// If the two differ in length.
    pub fn set_priorities(&mut self, rows: &Tensor<1, Int>, td_error: Tensor<1>) {
        let (rows, td_error) = match &self.sequences {
            None => (rows.clone(), td_error),
            Some(config) => self.of_sequences(config, rows, td_error),
        };
        assert_eq!(rows.dims(), td_error.dims(), "one error per row");
        let Some(priorities) = &mut self.priorities else { return };
        let td_error = match &self.run_device {
            Some(_) => {
                let n = td_error.n_rows();
                Tensor::from_data(TensorData::new(read_back(td_error), [n]), &self.device)
            }
            None => td_error,
        };
        priorities.update(&rows, td_error);
    }

    /// Bytes of memory of the device, or of the host, independent of the number of stored transitions.
    pub fn bytes(&self) -> usize {
        let teams = self.ring.n_slots() * self.n_rows / self.n_agents;
        let beyond = self.n_rows * self.outcome.layout().bytes_per_row();
        let beside = if self.interval > 1 { self.n_rows / self.n_agents * self.obs_bytes() } else { 0 };
        teams * self.team_bytes() + beyond + beside + self.priorities.as_ref().map_or(0, Priorities::bytes)
    }

    /// Bytes per transition within an episode, priorities included.
    pub fn bytes_per_transition(&self) -> usize {
        self.bytes() / (self.ring.n_slots() * self.n_rows)
    }

    /// Opens the next slot; its previous content can no longer be sampled.
    fn advance(&mut self) -> usize {
        let (slot, was_start) = self.ring.advance();
        let rows = self.rows_of(slot);
        if let Some(priorities) = self.priorities.as_mut().filter(|_| was_start) {
            priorities.remove(rows);
        }
        slot
    }

    fn write_obs(&mut self, slot: usize, obs: O) {
        let mut arrays = Vec::new();
        obs.pack(self.precision, &mut arrays);
        let rows = self.rows_of(slot);
        Packed::assign_all(of_step(&mut self.obs, &self.shared_by, rows, arrays));
    }

    /// Replaces the observations of `slot` in the rows of `mask`.
    fn merge(&mut self, slot: usize, mask: &Tensor<1, Bool>, arrays: Vec<Packed>) {
        let rows = self.rows_of(slot);
        for ((all, n), array) in self.obs.iter_mut().zip(&self.shared_by).zip(arrays) {
            // An episode ends for all agents of an environment.
            let mask = mask.clone().reshape([self.n_rows / n, *n]).slice([0..self.n_rows / n, 0..1]);
            let rows = part(rows.clone(), *n);
            let merged = all.copy(rows.clone(), &self.device).mask_where(&mask.reshape([self.n_rows / n]), array);
            all.assign(rows, merged);
        }
    }

    fn rows_of(&self, slot: usize) -> Range<usize> {
        slot * self.n_rows..(slot + 1) * self.n_rows
    }
}

/// The observation before the reset of the newest transition and the newest observation may need one slot each.
const MIN_SLOTS: usize = 3;

/// The arrays of a step and their places; those of observations may have fewer rows than the step.
fn of_step<'a>(
    all: &'a mut [Packed],
    shared_by: &'a [usize],
    rows: Range<usize>,
    arrays: Vec<Packed>,
) -> impl Iterator<Item = (&'a mut Packed, Range<usize>, Packed)> {
    assert_eq!(all.len(), arrays.len(), "arrays of a step, compared with the example");
    let shared_by = shared_by.iter().copied().chain(std::iter::repeat(1));
    all.iter_mut().zip(shared_by).zip(arrays).map(move |((all, n), array)| (all, part(rows.clone(), n), array))
}

/// Rejects the specification of other environments.
fn check_spec(spec: &EnvSpec, n_rows: usize) -> Result<(), BufferError> {
    field::at_least_one("truncation_interval", spec.truncation_interval)?;
    let value = format!("{} for {n_rows} rows", spec.n_rows());
    Ok(field::rule(spec.n_rows() == n_rows, "spec", "must have the rows of the observations", value)?)
}

/// The rows of an array with one row for `n` consecutive `rows`.
fn part(rows: Range<usize>, n: usize) -> Range<usize> {
    rows.start / n..rows.end / n
}

#[cfg(test)]
mod tests;
