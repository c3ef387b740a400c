//! The rollout buffer of on-policy algorithms.

use brasa_core::env::EnvSpec;
use brasa_core::{Decision, Policy, PolicyState, Rows, Sequences, StepBatch, Successor, row_indices, rows_by_field};
use brasa_device::runs_on_host;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use rand::seq::SliceRandom;

use crate::{BufferError, GaeInput, gae};

/// The discounts of generalized advantage estimation.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/rollout.inc")); }
/// # use shown::*;
/// use brasa_buffers::Discounts;
/// use brasa_core::read_back;
///
/// // Two steps with a reward of 1, and no value afterwards.
/// let device = brasa_device::open_named("cpu")?;
/// let discounts = Discounts { gamma: 0.5, gae_lambda: 1.0 };
/// let last_value = number(0.0, &device);
/// let rollout = two_steps(&device).finish(last_value, |_, _| unreachable!("all values are stored"), discounts)?;
/// assert_eq!(read_back(rollout.returns), [1.0 + 0.5, 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Discounts {
    /// Of rewards, per unit of time: a step of duration `d` is discounted by `gamma^d`.
    pub gamma: f64,
    /// Of temporal differences, per step.
    pub gae_lambda: f64,
}

/// Storage for `n_steps` steps of `n_rows` rows on a non-autodiff device, allocated once.
///
/// Step t of row i is at index `t * n_rows + i`.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/rollout.inc")); }
/// # use shown::*;
/// use brasa_buffers::{Discounts, EnvSpec, Obs, RolloutBuffer, Space};
/// use brasa_core::{Decision, read_back};
///
/// let device = brasa_device::open_named("cpu")?;
/// let spec = EnvSpec::new(Space::uniform_box(-1.0, 1.0, ["x"]), Space::Discrete(2), 1);
/// let (obs, action) = (Obs::new(row(0.0, &device)), row(1.0, &device));
/// let mut buffer = RolloutBuffer::new(2, &spec, &obs, &action, &device);
/// while !buffer.is_full() {
///     let decision = Decision { log_prob: number(-0.7, &device), value: Some(number(0.0, &device)) };
///     // `step` is the result of an environment with a reward of 1.
///     buffer.push(obs.clone(), action.clone(), decision, &step(&device));
/// }
/// let discounts = Discounts { gamma: 1.0, gae_lambda: 0.5 };
/// let rollout = buffer.finish(number(0.0, &device), |_, _| number(0.0, &device), discounts)?;
/// assert_eq!(read_back(rollout.advantage), [1.5, 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RolloutBuffer<O, A> {
    obs: Column<O>,
    action: Column<A>,
    log_prob: Column<Tensor<1>>,
    /// `None` if the values of a rollout are computed together.
    value: Option<Column<Tensor<1>>>,
    reward: Column<Tensor<1>>,
    terminated: Column<Tensor<1>>,
    truncated: Column<Tensor<1>>,
    /// Duration of each step; `None` if all durations are 1.
    elapsed: Option<Column<Tensor<1>>>,
    /// What the policy remembered before each step; `None` for a policy without memory.
    state: Option<Column<Tensor<2>>>,
    /// What it remembers after the latest step, before any reset.
    after: PolicyState,
    /// Observations before the reset of truncated rows, with what the policy remembers there, one entry per `truncation_interval` steps.
    successors: Vec<Option<(O, PolicyState)>>,
    truncation_interval: usize,
    /// That of the environments.
    interval: u64,
    /// See [`RolloutBuffer::early_truncations`].
    early: Option<Tensor<1>>,
    /// Value of the observation before the reset where a row was truncated; anything finite elsewhere.
    end_value: Tensor<1>,
    n_steps: usize,
    n_rows: usize,
    /// Of an environment.
    n_agents: usize,
    /// Number of stored steps.
    filled: usize,
}

/// Steps that are written together: on the CPU, where a write takes longer than the copy of a few rows, and on a GPU, where one launch joins the
/// rows of so many steps.
const STEPS_ON_HOST: usize = 32;
const STEPS_ON_DEVICE: usize = 16;

/// Most rows of a rollout whose values are computed together.
///
/// ```
/// use brasa_buffers::MOST_VALUED_ROWS;
///
/// // The values of 128 steps of 256 environments are computed in four parts.
/// let n_rows: usize = 128 * 256;
/// assert_eq!(n_rows.div_ceil(MOST_VALUED_ROWS), 4);
/// ```
pub const MOST_VALUED_ROWS: usize = 8192;

/// Rows that arrive step by step.
#[derive(Debug, Clone)]
struct Column<R> {
    rows: R,
    /// Rows of the last steps.
    waiting: Vec<R>,
    steps_per_write: usize,
    /// Number of rows that are written.
    filled: usize,
}

impl<R: Rows> Column<R> {
    fn new(rows: R, n_steps: usize, device: &Device) -> Self {
        let most = if runs_on_host(device) { STEPS_ON_HOST } else { STEPS_ON_DEVICE };
        let steps_per_write = most.min(n_steps);
        Self { rows, waiting: Vec::with_capacity(steps_per_write), steps_per_write, filled: 0 }
    }

    fn push(&mut self, rows: R) {
        self.waiting.push(rows);
        if self.waiting.len() == self.steps_per_write {
            self.write();
        }
    }

    fn write(&mut self) {
        if !self.waiting.is_empty() {
            let rows = R::cat(std::mem::replace(&mut self.waiting, Vec::with_capacity(self.steps_per_write)));
            let range = self.filled..self.filled + rows.n_rows();
            self.filled = range.end;
            match range == (0..self.rows.n_rows()) {
                true => self.rows = rows,
                false => self.rows.assign(range, rows),
            }
        }
    }

    /// All rows; the next ones replace them from the first on.
    fn finish(&mut self) -> R {
        self.write();
        self.filled = 0;
        self.rows.clone()
    }
}

/// A full rollout with advantages; every part has `n_steps * n_rows` rows.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/rollout.inc")); }
/// # use shown::*;
/// use brasa_buffers::{Discounts, named_rng};
/// use brasa_core::Rows;
///
/// // `two_steps` is a full `RolloutBuffer`.
/// let device = brasa_device::open_named("cpu")?;
/// let discounts = Discounts { gamma: 0.99, gae_lambda: 0.95 };
/// let rollout = two_steps(&device).finish(number(0.0, &device), |_, _| number(0.0, &device), discounts)?;
/// assert_eq!(rollout.n_rows(), 2);
/// let sizes: Vec<usize> =
///     rollout.minibatches(1, &mut named_rng(0, "example", 0)).map(|batch| batch.obs.n_rows()).collect();
/// assert_eq!(sizes, [1, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Rollout<O, A> {
    /// Observations.
    pub obs: O,
    /// Actions in their stored form.
    pub action: A,
    /// Log-probability of the action at collection.
    pub log_prob: Tensor<1>,
    /// Estimated return at collection.
    pub value: Tensor<1>,
    /// Generalized advantage estimates, not normalized.
    pub advantage: Tensor<1>,
    /// Value targets: advantage plus value, both at collection.
    pub returns: Tensor<1>,
    /// What the policy remembered; `None` for a policy without memory.
    pub remembered: Option<Remembered>,
}

rows_by_field!([O: Rows, A: Rows] Rollout<O, A> { obs, action, log_prob, value, advantage, returns, remembered });

/// The parts of a rollout that stay together in minibatches: consecutive steps, and the agents of an environment.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/rollout.inc")); }
/// # use shown::*;
/// use brasa_buffers::{Cut, Discounts, named_rng};
/// use brasa_core::read_back;
///
/// // The two steps of `two_steps` in one sequence.
/// let device = brasa_device::open_named("cpu")?;
/// let discounts = Discounts { gamma: 1.0, gae_lambda: 1.0 };
/// let rollout = two_steps(&device).finish(number(0.0, &device), |_, _| number(0.0, &device), discounts)?;
/// let cut = Cut { n_steps: 2, length: 2, n_agents: 1 };
/// assert_eq!(cut.batch_rows(1, 2), 2);
/// let returns = rollout.batches(cut, 1, &mut named_rng(0, "example", 0)).map(|batch| read_back(batch.returns));
/// assert_eq!(returns.collect::<Vec<_>>(), [[2.0, 1.0]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Steps of the rollout, of which parts of several steps are cut.
    pub n_steps: usize,
    /// Steps of a part: 1 for a policy without memory. It divides `n_steps`.
    pub length: usize,
    /// Rows of a step of a part: 1 for a policy that computes all rows alike, or [`NetworkSizes::n_agents`](brasa_core::NetworkSizes).
    pub n_agents: usize,
}

impl Cut {
    /// Parts of a rollout of `n_steps` for this policy: sequences of `length` steps if it remembers, and single steps if not.
    pub fn of(policy: &impl Policy, n_steps: usize, length: usize) -> Self {
        let length = if policy.state_width() > 0 { length } else { 1 };
        Self { n_steps, length, n_agents: policy.n_agents() }
    }

    /// Rows of a minibatch of [`Rollout::batches`], of a rollout of `n_rows`: whole parts, of at least `batch_size` rows if there are as many.
    pub fn batch_rows(&self, batch_size: usize, n_rows: usize) -> usize {
        batch_size.min(n_rows).next_multiple_of(self.length * self.n_agents).min(n_rows)
    }
}

/// What a policy remembered in a rollout, for learning from sequences.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/rollout.inc")); }
/// # use shown::*;
/// use brasa_buffers::{Discounts, Remembered};
/// use brasa_core::read_back;
///
/// // The policy of `two_steps` counts steps.
/// let device = brasa_device::open_named("cpu")?;
/// let discounts = Discounts { gamma: 0.99, gae_lambda: 0.95 };
/// let rollout = two_steps(&device).finish(number(0.0, &device), |_, _| number(0.0, &device), discounts)?;
/// let Remembered { state, starts } = rollout.remembered.expect("the policy remembers");
/// assert_eq!(read_back(state), [0.0, 1.0]);
/// // No second episode begins in this rollout.
/// assert_eq!(read_back(starts), [0.0, 0.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Remembered {
    /// `[n_rows, Policy::state_width]`: before each step, at collection.
    pub state: Tensor<2>,
    /// `[n_rows]`: 1 where an episode begins after another one in this rollout.
    pub starts: Tensor<1>,
}

rows_by_field!([] Remembered { state, starts });

impl<O: Rows, A: Rows> RolloutBuffer<O, A> {
    /// Storage for rows shaped like the examples `obs` and `action`. `spec` is that of the environments:
    /// observations before a reset are stored and evaluated once per [`EnvSpec::truncation_interval`].
    ///
    /// # Panics
    /// If `n_steps` or the interval is 0, the examples have no rows, or `spec` has another number of rows.
    pub fn new(n_steps: usize, spec: &EnvSpec, obs: &O, action: &A, device: &Device) -> Self {
        let n_rows = obs.n_rows();
        assert_eq!(spec.n_rows(), n_rows, "rows of the environments, compared with those of their observations");
        let truncation_interval = spec.truncation_interval;
        assert!(n_steps > 0 && n_rows > 0, "a rollout needs steps and rows, got {n_steps} and {n_rows}");
        assert!(truncation_interval > 0, "truncations are at least one step apart");
        let truncation_interval = usize::try_from(truncation_interval).unwrap_or(usize::MAX).min(n_steps);
        let zeros = || Tensor::<1>::zeros([n_steps * n_rows], device);
        let column = || Column::new(zeros(), n_steps, device);
        Self {
            obs: Column::new(obs.zeroed(n_steps * n_rows, device), n_steps, device),
            action: Column::new(action.zeroed(n_steps * n_rows, device), n_steps, device),
            log_prob: column(),
            value: None,
            reward: column(),
            terminated: column(),
            truncated: column(),
            elapsed: None,
            state: None,
            after: PolicyState::default(),
            successors: vec![None; n_steps.div_ceil(truncation_interval)],
            truncation_interval,
            interval: spec.truncation_interval,
            early: None,
            end_value: zeros(),
            n_steps,
            n_rows,
            n_agents: spec.n_agents,
            filled: 0,
        }
    }

    /// Bytes of a buffer for `n_rows` rows shaped like those of `obs` and `action`: without durations of steps, with the
    /// observations before a reset.
    pub fn bytes(n_steps: usize, n_rows: usize, truncation_interval: u64, obs: &O, action: &A) -> f64 {
        let n_successors = (n_steps as u64).div_ceil(truncation_interval) as f64;
        // Log-probability, value, reward, terminated, truncated and value before a reset.
        let per_step = obs.bytes_per_row() + action.bytes_per_row() + 6.0 * size_of::<f32>() as f64;
        n_rows as f64 * (n_steps as f64 * per_step + n_successors * obs.bytes_per_row())
    }

    /// Bytes of a buffer on the CPU beside its numbers: the handles of steps that are written together.
    pub fn bookkeeping_bytes(n_steps: usize) -> f64 {
        let of_step = size_of::<O>() + size_of::<A>() + 5 * size_of::<Tensor<1>>();
        (STEPS_ON_HOST.min(n_steps) * of_step) as f64
    }

    /// Whether all steps are stored.
    pub fn is_full(&self) -> bool {
        self.filled == self.n_steps
    }

    /// Stores what the policy remembered before the next step to be pushed, and remembers after it, before any reset: for policies with memory.
    pub fn remember(&mut self, before: &PolicyState, after: &PolicyState) {
        let Some(before) = &before.numbers else { return };
        let [_, width] = before.dims();
        let (n, device) = (self.n_steps * self.n_rows, before.device());
        let column = || Column::new(Tensor::zeros([n, width], &device), self.n_steps, &device);
        self.state.get_or_insert_with(column).push(before.clone());
        self.after = after.clone();
    }

    /// Stores one step: observation, action and result.
    ///
    /// # Panics
    /// If the buffer is full, or some decisions of a rollout have values and others have none. If the shape of a part does not fit, here or
    /// at a later step.
    pub fn push(&mut self, obs: O, action: A, decision: Decision, step: &StepBatch<O>) {
        assert!(!self.is_full(), "all {} steps are stored already", self.n_steps);
        let at = self.filled * self.n_rows;
        self.obs.push(obs);
        self.action.push(action);
        self.log_prob.push(decision.log_prob);
        self.reward.push(step.reward.clone());
        self.terminated.push(step.terminated.clone());
        self.truncated.push(step.truncated.clone());
        assert!(
            self.filled == 0 || decision.value.is_some() == self.value.is_some(),
            "either all decisions of a rollout have values or none"
        );
        let like = &self.reward.rows;
        match decision.value {
            Some(value) => self
                .value
                .get_or_insert_with(|| Column::new(like.zeros_like(), self.n_steps, &like.device()))
                .push(value),
            None => self.value = None,
        }
        if step.elapsed.is_some() || self.elapsed.is_some() {
            let ones = || Column { filled: at, ..Column::new(like.ones_like(), self.n_steps, &like.device()) };
            let elapsed = step.elapsed.clone().unwrap_or_else(|| step.reward.ones_like());
            self.elapsed.get_or_insert_with(ones).push(elapsed);
        }
        if let Successor::Rows(rows) = &step.successor {
            // A row is truncated at most once per interval, so that no successor is overwritten.
            let stored = &mut self.successors[self.filled / self.truncation_interval];
            let after = self.after.clone();
            *stored = Some(match stored.take() {
                Some((stored, state)) => {
                    let truncated = step.truncated.clone().bool();
                    (stored.mask_where(&truncated, rows.clone()), state.mask_where(&truncated, after))
                }
                None => (rows.clone(), after),
            });
        }
        self.filled += 1;
    }

    /// Estimates advantages and empties the buffer. `last_value` is the value of the next observations, `value_of` evaluates
    /// observations before a reset, with what the policy remembers there, and all stored ones if the decisions had no values.
    ///
    /// # Errors
    /// [`BufferError::EarlyTruncation`] if a row was truncated where [`EnvSpec::truncation_interval`] permits no truncation: its successor
    /// was overwritten. On a device whose memory the host cannot read, [`RolloutBuffer::early_truncations`] counts them instead.
    ///
    /// # Panics
    /// If the buffer is not full.
    pub fn finish(
        &mut self,
        last_value: Tensor<1>,
        value_of: impl Fn(O, &PolicyState) -> Tensor<1>,
        discounts: Discounts,
    ) -> Result<Rollout<O, A>, BufferError> {
        assert!(self.is_full(), "{} of {} steps are stored", self.filled, self.n_steps);
        self.filled = 0;
        let [steps, rows] = [self.n_steps, self.n_rows];
        let truncated = self.truncated.finish();
        let has_successors = self.successors.iter().any(Option::is_some);
        self.early = (has_successors && self.interval > 1).then(|| self.excess(truncated.clone()));
        for (interval, successors) in self.successors.iter_mut().enumerate() {
            let Some((successors, state)) = successors.take() else { continue };
            let first = interval * self.truncation_interval;
            let n = self.truncation_interval.min(steps - first);
            let value = value_of(successors, &state).unsqueeze_dim::<2>(0).expand([n, rows]).reshape([n * rows]);
            // Values of an earlier rollout are harmless: they are used only where a row was truncated.
            self.end_value.assign(first * rows..(first + n) * rows, value);
        }
        let obs = self.obs.finish();
        let value = match &mut self.value {
            Some(value) => value.finish(),
            None => values_of(&obs, &value_of, self.n_agents),
        };
        let terminated = self.terminated.finish();
        let remembered = self.state.as_mut().map(|state| Remembered {
            state: state.finish(),
            starts: starts(terminated.clone().max_pair(truncated.clone()), rows),
        });
        let steps_of_rows = Steps {
            reward: self.reward.finish(),
            terminated,
            truncated,
            elapsed: self.elapsed.as_mut().map(Column::finish),
        };
        let end_value = Some(self.end_value.clone());
        let Estimated { value, advantage, returns } =
            steps_of_rows.estimate(value, last_value, end_value, [steps, rows], discounts);
        let (action, log_prob) = (self.action.finish(), self.log_prob.finish());
        if let Some(early) = self.early.take_if(|early| runs_on_host(&early.device()))
            // Host only.
            && early.into_scalar::<f32>() > 0.0
        {
            return Err(BufferError::EarlyTruncation { interval: self.interval });
        }
        Ok(Rollout { obs, action, log_prob, value, advantage, returns, remembered })
    }

    /// `[1]`: most truncations of a row in the steps whose successors share their storage, above those that
    /// [`EnvSpec::truncation_interval`] permits, in the latest rollout. For a reading together with other numbers; pass it to
    /// [`BufferError::of_early_truncations`]. `None` if there were none or [`RolloutBuffer::finish`] checked them.
    pub fn early_truncations(&self) -> Option<Tensor<1>> {
        self.early.clone()
    }

    /// [`RolloutBuffer::early_truncations`] from the flags of all steps.
    fn excess(&self, truncated: Tensor<1>) -> Tensor<1> {
        let ([n, rows], steps) = ([self.truncation_interval, self.n_rows], self.n_steps);
        let most = |first: usize, n: usize, n_intervals: usize| {
            let flags = truncated.clone().slice(first * rows..(first + n * n_intervals) * rows);
            flags.reshape([n_intervals, n, rows]).sum_dim(1).max()
        };
        let (whole, rest) = (most(0, n, steps / n), steps % n);
        let most = if rest > 0 { whole.max_pair(most(steps - rest, rest, 1)) } else { whole };
        most - if self.interval == EnvSpec::NEVER { 0.0 } else { 1.0 }
    }
}

/// The values of all stored observations, `[n_rows]`. The `n_agents` of an environment stay together.
pub(crate) fn values_of<O: Rows>(
    obs: &O,
    value_of: &impl Fn(O, &PolicyState) -> Tensor<1>,
    n_agents: usize,
) -> Tensor<1> {
    let (n, nothing) = (obs.n_rows(), PolicyState::default());
    if n <= MOST_VALUED_ROWS {
        return value_of(obs.clone(), &nothing);
    }
    let (n_envs, most) = (n / n_agents, (MOST_VALUED_ROWS / n_agents).max(1));
    let part = |first: usize| {
        let envs = first..(first + most).min(n_envs);
        value_of(obs.range(envs.start * n_agents..envs.end * n_agents), &nothing)
    };
    Tensor::cat((0..n_envs).step_by(most).map(part).collect(), 0)
}

/// Flags of rows whose episode begins, from those of rows whose episode ends, of `rows` rows per step.
pub(crate) fn starts(ended: Tensor<1>, rows: usize) -> Tensor<1> {
    let n = ended.dims()[0];
    Tensor::cat(vec![ended.zeros_like().slice(0..rows), ended.slice(0..n - rows)], 0)
}

/// The results of all steps of a rollout, `[n_steps * n_rows]` each.
pub(crate) struct Steps {
    pub reward: Tensor<1>,
    pub terminated: Tensor<1>,
    pub truncated: Tensor<1>,
    /// `None` if all durations are 1.
    pub elapsed: Option<Tensor<1>>,
}

/// The estimates of a [`Rollout`].
pub(crate) struct Estimated {
    pub value: Tensor<1>,
    pub advantage: Tensor<1>,
    pub returns: Tensor<1>,
}

impl Steps {
    /// Advantages and returns. `end_value` has the values of observations before a reset where a row was truncated, and anything finite
    /// elsewhere; `None` if no row was.
    pub fn estimate(
        self,
        value: Tensor<1>,
        last_value: Tensor<1>,
        end_value: Option<Tensor<1>>,
        [steps, rows]: [usize; 2],
        Discounts { gamma, gae_lambda }: Discounts,
    ) -> Estimated {
        let Self { reward, terminated, truncated, elapsed } = self;
        let episode_end = terminated.clone().max_pair(truncated);
        // Within an episode the value of the next observation is that of the next step.
        let later = Tensor::cat(vec![value.clone().slice(rows..steps * rows), last_value], 0);
        // At the end of an episode, a value other than that before a reset is not used.
        let next_value = match end_value {
            Some(end_value) => (-episode_end.clone() + 1.0) * later + episode_end.clone() * end_value,
            None => later,
        };
        // `gamma^t` as a product of logarithms, which 0 does not have: 0^t is 1 for t of 0, else 0.
        let discount = elapsed.map(|elapsed| match gamma > 0.0 {
            true => (elapsed * (gamma.ln() as f32)).exp(),
            false => elapsed.equal_scalar(0.0).float(),
        });
        let grid = |tensor: Tensor<1>| tensor.reshape([steps, rows]);
        let input = GaeInput {
            reward: grid(reward),
            value: grid(value.clone()),
            next_value: grid(next_value),
            terminated: grid(terminated),
            episode_end: grid(episode_end),
            discount: discount.map(grid),
        };
        let advantage = gae(input, gamma, gae_lambda).reshape([steps * rows]);
        Estimated { returns: advantage.clone() + value.clone(), value, advantage }
    }
}

impl<O: Rows, A: Rows> Rollout<O, A> {
    /// All rows in shuffled order, `batch_size` at a time; the last minibatch may be smaller. Each is copied when it is its turn.
    pub fn minibatches<'a, R: Rng>(
        &'a self,
        batch_size: usize,
        rng: &mut R,
    ) -> impl Iterator<Item = Self> + use<'a, O, A, R> {
        self.batches(Cut { n_steps: 1, length: 1, n_agents: 1 }, batch_size, rng)
    }

    /// All parts of `cut` in shuffled order, as many at a time as have at least `batch_size` rows together; the last minibatch may have fewer.
    /// With `n` rows per step, row `t * n + i` of a minibatch is step `t` of its sequence `i`, which belongs to agent `i % cut.n_agents`.
    ///
    /// # Panics
    /// If the parts do not fill the rollout.
    pub fn batches<'a, R: Rng>(
        &'a self,
        cut: Cut,
        batch_size: usize,
        rng: &mut R,
    ) -> impl Iterator<Item = Self> + use<'a, O, A, R> {
        let (total, Cut { n_steps, length, n_agents }) = (self.n_rows(), cut);
        // Single steps may be of any rollout.
        let per_step = if length == 1 { n_agents } else { total / n_steps };
        assert!(
            n_steps.is_multiple_of(length) && per_step.is_multiple_of(n_agents) && total.is_multiple_of(per_step),
            "{total} rows in parts of {cut:?}"
        );
        let per_part = length * n_agents;
        let (n_parts, at_a_time) = (total / per_part, cut.batch_rows(batch_size, total) / per_part);
        // For a single minibatch the order of rows has no effect.
        let is_whole = length == 1 && at_a_time >= n_parts;
        let mut order: Vec<u32> = if is_whole { Vec::new() } else { (0..n_parts as u32).collect() };
        order.shuffle(rng);
        let teams = per_step / n_agents;
        (0..n_parts.div_ceil(at_a_time)).map(move |i| {
            if is_whole {
                return self.clone();
            }
            let own = &order[i * at_a_time..n_parts.min((i + 1) * at_a_time)];
            let first = |part: &u32| (*part as usize / teams * length) * teams + *part as usize % teams;
            let envs = (0..length).flat_map(|t| own.iter().map(move |part| first(part) + t * teams));
            self.select_envs(row_indices(envs, &self.value.device()), n_agents)
        })
    }

    /// A batch of [`Rollout::batches`] of `length` steps, for [`ActorCritic::evaluate_sequences`](brasa_core::ActorCritic); `None` for a policy
    /// without memory.
    pub fn as_sequences(&self, length: usize) -> Option<Sequences> {
        let Remembered { state, starts } = self.remembered.as_ref()?;
        Some(Sequences { state: state.clone().slice(0..self.n_rows() / length), starts: starts.clone() })
    }
}

#[cfg(test)]
mod tests {
    use brasa_test::spec_of_rows;

    use super::*;

    fn discounts(gamma: f64, gae_lambda: f64) -> Discounts {
        Discounts { gamma, gae_lambda }
    }

    /// Two rows, three steps: row 0 is truncated at step 1, row 1 continues.
    #[test]
    fn the_successor_of_a_truncated_step_is_the_one_before_the_reset() {
        let device = brasa_test::device();
        let row = |a: f32, b: f32| Tensor::<1>::from_floats([a, b], &device);
        let obs = Tensor::<2>::zeros([2, 4], &device);
        let mut buffer = RolloutBuffer::new(3, &spec_of_rows(2, 2), &obs, &obs.clone(), &device);
        let zero = || row(0.0, 0.0);
        for step in 0..3 {
            let cut = step == 1;
            let batch = StepBatch {
                obs: obs.clone(),
                successor: if cut { Successor::Rows(obs.clone()) } else { Successor::Same },
                reward: row(1.0, 1.0),
                terminated: zero(),
                truncated: if cut { row(1.0, 0.0) } else { zero() },
                elapsed: None,
            };
            let decision = Decision { log_prob: zero(), value: Some(row(10.0 * step as f32, 1.0)) };
            buffer.push(obs.clone(), obs.clone(), decision, &batch);
        }
        let rollout = buffer.finish(row(50.0, 1.0), |_, _| row(100.0, 7.0), discounts(0.5, 0.0)).expect("it fits");
        let advantage = rollout.advantage.into_data().try_to_vec::<f32>().expect("f32");
        // Row 0: values 0, 10, 20, then 50; 100 at the truncated step. Row 1: values 1 throughout; 7 must not be used.
        assert_eq!(advantage[0], 1.0 + 0.5 * 10.0 - 0.0);
        assert_eq!(advantage[2], 1.0 + 0.5 * 100.0 - 10.0);
        assert_eq!(advantage[4], 1.0 + 0.5 * 50.0 - 20.0);
        for step in 0..3 {
            assert_eq!(advantage[2 * step + 1], 1.0 + 0.5 - 1.0);
        }
    }

    /// Rows are truncated every other step, at different ones; the successors of an interval share their storage.
    #[test]
    fn every_truncated_step_is_bootstrapped_from_its_own_successor() {
        let device = brasa_test::device();
        let column = |values: [f32; 3]| Tensor::<1>::from_floats(values, &device);
        let like = Tensor::<2>::zeros([3, 1], &device);
        let (n_steps, interval) = (7, 3);
        let is_cut = |step: usize, row: usize| step % interval == row && step >= row;
        let mut buffer = RolloutBuffer::new(n_steps, &spec_of_rows(3, interval as u64), &like, &like.clone(), &device);
        for step in 0..n_steps {
            let successors = [0, 1, 2].map(|row| (100 * step + row) as f32);
            let batch = StepBatch {
                obs: like.clone(),
                successor: Successor::Rows(column(successors).reshape([3, 1])),
                reward: column([0.0; 3]),
                terminated: column([0.0; 3]),
                truncated: column([0, 1, 2].map(|row| f32::from(u8::from(is_cut(step, row))))),
                elapsed: None,
            };
            let decision = Decision { log_prob: column([0.0; 3]), value: Some(column([0.0; 3])) };
            buffer.push(like.clone(), like.clone(), decision, &batch);
        }
        let evaluated = std::cell::Cell::new(0);
        let value_of = |obs: Tensor<2>, _: &PolicyState| {
            evaluated.set(evaluated.get() + 1);
            obs.reshape([3])
        };
        let rollout = buffer.finish(column([0.0; 3]), value_of, discounts(1.0, 0.0)).expect("it fits");
        assert_eq!(evaluated.get(), 3);
        let advantage = rollout.advantage.into_data().try_to_vec::<f32>().expect("f32");
        for (i, advantage) in advantage.into_iter().enumerate() {
            let (step, row) = (i / 3, i % 3);
            let expected = if is_cut(step, row) { (100 * step + row) as f32 } else { 0.0 };
            assert_eq!(advantage, expected, "step {step}, row {row}");
        }
    }

    /// Two rows; row 1 is truncated at `cuts`.
    #[test]
    fn truncations_sooner_than_the_specification_permits_are_refused() {
        let device = brasa_test::device();
        let row = |a: f32, b: f32| Tensor::<1>::from_floats([a, b], &device);
        let obs = Tensor::<2>::zeros([2, 1], &device);
        for (interval, cuts, refused) in [
            (1, vec![0, 1, 2, 3, 4, 5, 6], false),
            (3, vec![0, 3, 6], false),
            (3, vec![0, 2], true),
            (3, vec![3, 5], true),
            (100, vec![5], false),
            (100, vec![0, 6], true),
            (EnvSpec::NEVER, vec![], false),
            (EnvSpec::NEVER, vec![3], true),
        ] {
            let mut buffer = RolloutBuffer::new(7, &spec_of_rows(2, interval), &obs, &obs.clone(), &device);
            for step in 0..7 {
                let cut = f32::from(u8::from(cuts.contains(&step)));
                let batch = StepBatch {
                    obs: obs.clone(),
                    successor: if cuts.is_empty() { Successor::Same } else { Successor::Rows(obs.clone()) },
                    reward: row(0.0, 0.0),
                    terminated: row(0.0, 0.0),
                    truncated: row(0.0, cut),
                    elapsed: None,
                };
                let decision = Decision { log_prob: row(0.0, 0.0), value: Some(row(0.0, 0.0)) };
                buffer.push(obs.clone(), obs.clone(), decision, &batch);
            }
            let finished = buffer.finish(row(0.0, 0.0), |_, _| row(0.0, 0.0), discounts(0.9, 0.9));
            assert!(!buffer.is_full(), "it can be filled again");
            let counted = buffer.early_truncations().map(|early| early.into_scalar::<f32>() > 0.0);
            assert_eq!(counted.unwrap_or(finished.is_err()), refused, "interval {interval}, {cuts:?}");
        }
    }

    /// One row, three steps of 2, 0 and 3 units of time; the second is the last of its episode.
    #[test]
    fn a_long_step_is_discounted_by_its_length() {
        let device = brasa_test::device();
        let one = |x: f32| Tensor::<1>::from_floats([x], &device);
        let obs = Tensor::<2>::zeros([1, 1], &device);
        let mut buffer = RolloutBuffer::new(3, &spec_of_rows(1, EnvSpec::NEVER), &obs, &obs.clone(), &device);
        let (reward, value, elapsed, end) = ([1.0, 2.0, 4.0], [10.0, 20.0, 30.0], [2.0, 0.0, 3.0], [0.0, 1.0, 0.0]);
        for step in 0..3 {
            let batch = StepBatch {
                obs: obs.clone(),
                successor: if end[step] > 0.0 { Successor::Terminal } else { Successor::Same },
                reward: one(reward[step]),
                terminated: one(end[step]),
                truncated: one(0.0),
                elapsed: Some(one(elapsed[step])),
            };
            let decision = Decision { log_prob: one(0.0), value: Some(one(value[step])) };
            buffer.push(obs.clone(), obs.clone(), decision, &batch);
        }
        let advantage = buffer
            .finish(one(40.0), |_, _| one(99.0), discounts(0.5, 0.8))
            .expect("it fits")
            .advantage
            .into_data()
            .try_to_vec::<f32>()
            .expect("f32");
        let third = 4.0 + 0.125 * 40.0 - 30.0;
        let second = 2.0 - 20.0;
        let first = 1.0 + 0.25 * 20.0 - 10.0 + 0.25 * 0.8 * second;
        for (got, expected) in advantage.into_iter().zip([first, second, third]) {
            assert!((got - expected).abs() < 1e-5, "{got} instead of {expected}");
        }
    }

    /// Two decisions at the same time, then a step, with a discount of 0.
    #[test]
    fn no_time_is_no_discount_even_where_gamma_is_0() {
        let device = brasa_test::device();
        let one = |x: f32| Tensor::<1>::from_floats([x], &device);
        let obs = Tensor::<2>::zeros([1, 1], &device);
        let mut buffer = RolloutBuffer::new(2, &spec_of_rows(1, 1), &obs, &obs.clone(), &device);
        // The last step is short: an approximation of 0 by a small gamma would hardly discount it.
        for elapsed in [0.0, 1e-6] {
            let batch = StepBatch {
                obs: obs.clone(),
                successor: Successor::Same,
                reward: one(3.0),
                terminated: one(0.0),
                truncated: one(0.0),
                elapsed: Some(one(elapsed)),
            };
            buffer.push(obs.clone(), obs.clone(), Decision { log_prob: one(0.0), value: Some(one(1.0)) }, &batch);
        }
        let advantage = buffer
            .finish(one(9.0), |_, _| one(0.0), discounts(0.0, 0.0))
            .expect("it fits")
            .advantage
            .into_data()
            .try_to_vec::<f32>()
            .expect("f32");
        assert_eq!(advantage, [3.0 + 1.0 - 1.0, 3.0 - 1.0]);
    }

    #[test]
    fn stored_rows_do_not_change_later() {
        let device = brasa_test::device();
        let obs = Tensor::<2>::ones([1, 2], &device);
        let flag = Tensor::<1>::zeros([1], &device);
        let mut buffer = RolloutBuffer::new(1, &spec_of_rows(1, 1), &obs, &obs.clone(), &device);
        let mut push = |obs: Tensor<2>| {
            let batch = StepBatch {
                obs: obs.clone(),
                successor: Successor::Same,
                reward: flag.clone(),
                terminated: flag.clone(),
                truncated: flag.clone(),
                elapsed: None,
            };
            let decision = Decision { log_prob: flag.clone(), value: Some(flag.clone()) };
            buffer.push(obs.clone(), obs, decision, &batch);
            buffer.finish(flag.clone(), |_, _| flag.clone(), discounts(0.9, 0.9)).expect("it fits")
        };
        let first = push(obs.clone());
        let second = push(obs * 2.0);
        assert_eq!(first.obs.into_data().try_to_vec::<f32>().expect("f32"), [1.0, 1.0]);
        assert_eq!(second.obs.into_data().try_to_vec::<f32>().expect("f32"), [2.0, 2.0]);
    }
}
