//! Sequences of replayed steps, for networks that remember.

use brasa_core::env::{EnvSpec, field};
use brasa_core::{PolicyState, Rows, Sequences, StepBatch};
use burn::tensor::{Device, Int, Tensor};

use super::host::fetch_rows;
use super::n_step::Chain;
use super::priorities::Drawn;
use super::{BufferError, ReplayBuffer, ReplayConfig, SequenceConfig, Transitions, outcome};
use crate::compact::{Compact, Packed, Precision};

/// How the rows of [`Transitions`] follow each other: row `t * n + i` is step `t` of sequence `i` of `n`.
///
/// The weights of a batch of sequences are 0 for steps that only lead to others or to targets, and for those that are not stored yet. Those of
/// the other steps have a factor, so that the mean over all rows behind the burn-in is the mean over the steps to learn from.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/rollout.inc")); }
/// # use shown::*;
/// use brasa_buffers::{EnvSpec, Obs, ReplayBuffer, ReplayConfig, SequenceConfig, Space, named_rng};
/// use brasa_core::PolicyState;
///
/// # let spec = EnvSpec::new(Space::uniform_box(-1.0, 1.0, ["x"]), Space::Discrete(2), 1);
/// # let device = brasa_device::open_named("cpu")?;
/// # let (obs, action) = (Obs::new(row(0.0, &device)), row(1.0, &device));
/// let sequences = SequenceConfig { length: 2, ..SequenceConfig::default() };
/// let config = ReplayConfig { capacity: 100, sequences: Some(sequences), ..ReplayConfig::default() };
/// let mut replay = ReplayBuffer::new(&config, &spec, &obs, &action, 0.99, &device)?.with_memory(1)?;
/// replay.begin(obs);
/// for count in 0..3 {
///     // A policy that counts steps.
///     let state = PolicyState { numbers: Some(row(count as f32, &device)) };
///     replay.push_from(&state, action.clone(), &step(&device))?;
/// }
/// let batch = replay.sample(2, 0.0, &mut named_rng(0, "example", 0));
/// let sequences = batch.sequences.expect("the buffer has sequences");
/// // One sequence of two steps. The next observation of each step is behind this step.
/// assert_eq!(sequences.last.into_data().iter::<i64>().collect::<Vec<_>>(), [0, 1]);
/// assert!([0.0, 1.0, 2.0].contains(&brasa_core::read_back(sequences.steps.state)[0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ReplayedSequences {
    /// What the policy remembered before the first steps, and where episodes begin.
    pub steps: Sequences,
    /// `[n_rows]`: the row behind whose step [`Transitions::next_obs`] is.
    pub last: Tensor<1, Int>,
    /// Steps before those to learn from.
    pub burn_in: usize,
}

/// The first steps of sequences, from which a network computes what it remembers by now.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/rollout.inc")); }
/// # use shown::*;
/// use brasa_buffers::{EnvSpec, Obs, ReplayBuffer, ReplayConfig, SequenceConfig, Space, named_rng};
/// use brasa_core::{PolicyState, Rows};
///
/// let spec = EnvSpec::new(Space::uniform_box(-1.0, 1.0, ["x"]), Space::Discrete(2), 1);
/// let device = brasa_device::open_named("cpu")?;
/// let sequences = SequenceConfig { length: 2, burn_in: 1, ..SequenceConfig::default() };
/// let config = ReplayConfig { capacity: 100, sequences: Some(sequences), ..ReplayConfig::default() };
/// let (obs, action) = (Obs::new(row(0.0, &device)), row(1.0, &device));
/// let replay = ReplayBuffer::new(&config, &spec, &obs, &action, 0.99, &device)?;
/// // The policy remembers three numbers.
/// let mut replay = replay.with_memory(3)?;
/// replay.begin(obs);
/// for _ in 0..20 {
///     replay.push_from(&PolicyState::new(1, 3, &device), action.clone(), &step(&device))?;
/// }
/// // Eight steps to learn from are four sequences.
/// let (burn_in, batch) = replay.sample(8, 0.0, &mut named_rng(0, "example", 0)).burned_in();
/// assert_eq!((burn_in.expect("there is a step").obs.n_rows(), batch.obs.n_rows()), (4, 8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct BurnIn<O> {
    /// Observations of these steps.
    pub obs: O,
    /// How they follow each other.
    pub steps: Sequences,
}

impl<O: Rows, A: Rows> Transitions<O, A> {
    /// The first steps of sequences, if there are any, and the rest, whose [`ReplayedSequences::steps`] begin with what the policy remembered
    /// before those first steps: a network replaces it by what it remembers behind them. Other batches stay as they are.
    pub fn burned_in(self) -> (Option<BurnIn<O>>, Self) {
        let Some(replayed) = self.sequences.clone().filter(|sequences| sequences.burn_in > 0) else {
            return (None, self);
        };
        let whole = self.on_one_device();
        let ReplayedSequences { steps: Sequences { state, starts }, last, burn_in } = replayed;
        let (n_rows, n) = (starts.dims()[0], burn_in * state.dims()[0]);
        let (obs, rest) = (whole.obs.range(0..n), whole.range(n..n_rows));
        let before = Sequences { state: state.clone(), starts: starts.clone().slice(0..n) };
        let steps = Sequences { state, starts: starts.slice(n..n_rows) };
        let last = last.slice(n..n_rows) - n as i64;
        let sequences = Some(ReplayedSequences { steps, last, burn_in: 0 });
        (Some(BurnIn { obs, steps: before }), Self { sequences, ..rest })
    }
}

impl<O: Compact, A: Compact> ReplayBuffer<O, A> {
    /// The buffer with room for the `width` numbers per row that a policy remembers, none for a policy without memory.
    ///
    /// # Errors
    /// [`BufferError::Field`] if [`ReplayConfig::sequences`] are missing for a policy that remembers, or are set
    /// for another one; for a team, or numbers that do not fit into the memory.
    pub fn with_memory(self, width: usize) -> Result<Self, BufferError> {
        let text = |config: SequenceConfig| format!("a length of {}", config.length);
        let shown = self.sequences.map_or("none".to_owned(), text);
        let rule = "must be left out: the network has no memory";
        field::rule(width > 0 || self.sequences.is_none(), "sequences", rule, &shown)?;
        let rule = "must be set for a network that remembers, such as { length = 16 }";
        field::rule(width == 0 || self.sequences.is_some(), "sequences", rule, shown)?;
        if width == 0 {
            return Ok(self);
        }
        let rule = "must be 1 for a network that remembers: agents of a team sample separately";
        field::rule(self.n_agents == 1, "n_agents", rule, self.n_agents)?;
        let rows = self.ring.n_slots() * self.n_rows;
        let precision = memory_precision(self.precision);
        field::fits_in_memory("capacity", rows, bytes(rows, width, precision))?;
        let like = Packed::new(Tensor::zeros([1, width], &self.device), precision);
        let remembered = Some(like.zeroed(rows, &self.device));
        Ok(Self { remembered, ..self })
    }

    /// Bytes of what a policy remembers, `width` numbers per row, in a buffer on `device` for steps of environments of `spec`.
    pub fn memory_bytes(config: &ReplayConfig, spec: &EnvSpec, width: usize, device: &Device) -> f64 {
        let rows = config.capacity / spec.n_rows() * spec.n_rows();
        bytes(rows, width, memory_precision(config.precision.of_space(&spec.obs, device)))
    }

    /// [`ReplayBuffer::push`] with what the policy remembered before the action.
    ///
    /// # Errors
    /// As [`ReplayBuffer::push`].
    ///
    /// # Panics
    /// As [`ReplayBuffer::push`], and if the policy remembers other numbers than [`ReplayBuffer::with_memory`] has room for.
    pub fn push_from(&mut self, state: &PolicyState, action: A, step: &StepBatch<O>) -> Result<(), BufferError> {
        let slot = self.ring.open().expect("`begin` comes before `push`");
        let rows = self.rows_of(slot);
        if let Some(remembered) = &mut self.remembered {
            let layout = remembered.layout();
            let numbers = match (&state.numbers, &self.run_device) {
                (None, _) => Tensor::zeros([self.n_rows, layout.width], &self.device),
                (Some(numbers), None) => numbers.clone(),
                (Some(numbers), Some(_)) => fetch_rows(numbers, &self.device),
            };
            remembered.assign(rows, Packed::new(numbers, layout.precision));
        }
        self.push(action, step)
    }

    /// The sequences from these rows on.
    pub(super) fn sequences_from(
        &self,
        config: &SequenceConfig,
        rows: &Drawn,
        weight: Option<Tensor<1>>,
    ) -> Transitions<O, A> {
        let n_steps = self.n_steps(config);
        let Chain { rows, exist } = self.n_step.chain(rows, &self.ring, n_steps);
        let taken = self.n_step.follow(&rows, &self.ring, &self.outcome);
        let (n_rows, device) = (exist.dims()[0], exist.device());
        let n = n_rows / n_steps;
        // Targets of the last steps would need the states of later ones.
        let is_learned = |step: usize| (config.burn_in..config.burn_in + config.length).contains(&step);
        let factor = (n_steps - config.burn_in) as f32 / config.length as f32;
        let learned = (0..n_steps).map(|step| if is_learned(step) { factor } else { 0.0 });
        let by_step = Tensor::<1>::from_floats(learned.collect::<Vec<f32>>().as_slice(), &device);
        let mut weights = by_step.reshape([n_steps, 1]) * exist.reshape([n_steps, n]);
        if let Some(weight) = weight {
            weights = weights * weight.reshape([1, n]);
        }
        let linked = self.outcome.select(taken.rows.clone()).into_floats();
        let linked = linked.slice([0..n_rows, outcome::LINKED..outcome::LINKED + 1]).reshape([n_rows]);
        let first = Tensor::zeros([n], &device);
        let starts = Tensor::cat(vec![first, -linked.slice(n..n_rows) + 1.0], 0);
        let remembered = self.remembered.as_ref().expect("`with_memory` comes before sequences");
        let state = self.selected(remembered, &taken.rows.clone().slice(0..n)).into_floats();
        let own = Tensor::<1, Int>::arange(0..n_rows as i64, &device);
        let last = match &taken.more {
            None => own,
            Some(more) => (own + more.clone() * n as i64).clamp_max(n_rows as i64 - 1),
        };
        let last = match &self.run_device {
            Some(device) => last.to_device(device),
            None => last,
        };
        let steps = Sequences { state, starts: self.uploaded(starts) };
        let sequences = Some(ReplayedSequences { steps, last, burn_in: config.burn_in });
        Transitions { sequences, ..self.transitions(taken, Some(weights.reshape([n_rows]))) }
    }

    /// Steps of a sequence, with those that targets need.
    fn n_steps(&self, config: &SequenceConfig) -> usize {
        config.burn_in + config.length + self.n_step.n_step() - 1
    }

    /// The first rows of sequences and their errors, from all `rows` and the errors behind the burn-in.
    pub(super) fn of_sequences(
        &self,
        config: &SequenceConfig,
        rows: &Tensor<1, Int>,
        td_error: Tensor<1>,
    ) -> (Tensor<1, Int>, Tensor<1>) {
        let n = rows.dims()[0] / self.n_steps(config);
        assert_eq!(td_error.dims()[0], rows.dims()[0] - n * config.burn_in, "an error per step behind the burn-in");
        let errors = td_error.slice(0..n * config.length).abs().reshape([config.length, n]);
        let (max, mean) = (errors.clone().max_dim(0), errors.mean_dim(0));
        let mixed = max * config.max_share + mean * (1.0 - config.max_share);
        (rows.clone().slice(0..n), mixed.reshape([n]))
    }
}

/// What is remembered takes the bits of observations, but no codes of pixels.
fn memory_precision(of_obs: Precision) -> Precision {
    match of_obs {
        Precision::U8 { .. } => Precision::F32,
        other => other,
    }
}

fn bytes(rows: usize, width: usize, precision: Precision) -> f64 {
    (rows * width * precision.dtype().size()) as f64
}
