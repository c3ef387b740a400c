//! A rollout that is collected in the memory of the CPU.

use brasa_core::env::{BatchSlabs, EnvSpec};
use brasa_core::{HostDecisions, HostObs, HostStepper, PolicyState};
use burn::tensor::{Device, Tensor, TensorData};

use crate::rollout::{Estimated, Steps, starts, values_of};
use crate::{Discounts, Remembered, Rollout};

/// The steps of one rollout as numbers, row by row: [`crate::RolloutBuffer`] for environments that step in the memory of the CPU. Its
/// memory becomes that of the [`Rollout`].
///
/// ```
/// use brasa_buffers::{Discounts, HostRollout, Obs};
/// use brasa_core::{HostEnv, PolicyState, Rows, VecEnv, env::EnvVec, read_back};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut env = HostEnv::new(EnvVec::new(0..1, |_| brasa_classic::CartPole::default())?, &device);
/// env.reset(0)?;
/// let mut rollout = HostRollout::new(3, env.spec(), 0);
/// let stepper = env.on_host().expect("the device is the CPU");
/// for _ in 0..3 {
///     rollout.observe(stepper.observed(), &[]);
///     rollout.decisions.action.push(1.0);
///     rollout.decisions.log_prob.push(-0.7);
///     rollout.decisions.value.push(0.0);
///     rollout.push(stepper.step(&[1.0])?, &[]);
/// }
/// let next = (stepper.obs(stepper.observed().values.to_vec(), None), &PolicyState::default());
/// let value_of = |obs: Obs, _: &PolicyState| Tensor::zeros([obs.n_rows()], &device);
/// let discounts = Discounts { gamma: 1.0, gae_lambda: 1.0 };
/// let rollout = rollout.finish(stepper, next, value_of, discounts, &device);
/// // Each of the three steps has a reward of 1.
/// assert_eq!(read_back(rollout.returns), [3.0, 2.0, 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HostRollout {
    obs: Vec<f32>,
    /// `None` if all actions are legal.
    mask: Option<Vec<f32>>,
    /// Actions, log-probabilities and values; [`brasa_core::HostActor`] appends to them.
    pub decisions: HostDecisions,
    reward: Vec<f32>,
    terminated: Vec<f32>,
    truncated: Vec<f32>,
    /// `None` if all durations are 1.
    elapsed: Option<Vec<f32>>,
    /// Where rows were truncated, and their observations before the reset.
    cut: Vec<usize>,
    cut_obs: Vec<f32>,
    cut_mask: Vec<f32>,
    /// What the policy remembered before each step, and before the reset of truncated rows; of as many numbers per row.
    state: Vec<f32>,
    cut_state: Vec<f32>,
    state_width: usize,
    n_rows: usize,
    /// Of an environment.
    n_agents: usize,
}

impl HostRollout {
    /// Memory for `n_steps` steps of environments with `spec`, and of a policy that remembers `state_width` numbers per row.
    pub fn new(n_steps: usize, spec: &EnvSpec, state_width: usize) -> Self {
        let n_rows = spec.n_rows();
        let column = |width: usize| Vec::with_capacity(n_steps * n_rows * width);
        let decisions =
            HostDecisions { action: column(spec.action.width()), log_prob: column(1), ..HostDecisions::default() };
        Self {
            obs: column(spec.obs.width()),
            mask: (spec.mask_width() > 0).then(|| column(spec.mask_width())),
            decisions,
            reward: column(1),
            terminated: column(1),
            truncated: column(1),
            elapsed: spec.has_elapsed.then(|| column(1)),
            cut: Vec::new(),
            cut_obs: Vec::new(),
            cut_mask: Vec::new(),
            state: column(state_width),
            cut_state: Vec::new(),
            state_width,
            n_rows,
            n_agents: spec.n_agents,
        }
    }

    /// Stores the observations before a step, and what the policy remembers.
    pub fn observe(&mut self, obs: HostObs<'_>, state: &[f32]) {
        self.obs.extend_from_slice(obs.values);
        self.state.extend_from_slice(state);
        if let (Some(to), Some(mask)) = (&mut self.mask, obs.mask) {
            to.extend_from_slice(mask);
        }
    }

    /// Stores the results of a step; `state` is what the policy remembers after it, before any reset.
    pub fn push(&mut self, results: &BatchSlabs, state: &[f32]) {
        let at = self.reward.len();
        let flag = |flag: &bool| f32::from(u8::from(*flag));
        self.reward.extend(&results.reward);
        self.terminated.extend(results.terminated.iter().map(flag));
        self.truncated.extend(results.truncated.iter().map(flag));
        if let Some(elapsed) = &mut self.elapsed {
            elapsed.extend(&results.elapsed);
        }
        for (row, _) in results.truncated.iter().enumerate().filter(|(_, truncated)| **truncated) {
            self.cut.push(at + row);
            self.cut_obs.extend(results.next_obs.row(row));
            self.cut_mask.extend(results.next_mask.row(row));
            self.cut_state.extend_from_slice(&state[row * self.state_width..(row + 1) * self.state_width]);
        }
    }

    /// Estimates advantages. `value_of` evaluates observations of `env` with what the policy remembers there: `next` after the last step, those
    /// before a reset, and all stored ones if the decisions had no values.
    ///
    /// # Panics
    /// If there is no step, or a step was not stored in all its parts.
    pub fn finish<O: brasa_core::Rows, A>(
        self,
        env: &dyn HostStepper<Obs = O, Action = A>,
        (next_obs, next_state): (O, &PolicyState),
        value_of: impl Fn(O, &PolicyState) -> Tensor<1>,
        discounts: Discounts,
        device: &Device,
    ) -> Rollout<O, A> {
        let n = self.reward.len();
        let column = |values: Vec<f32>| {
            assert_eq!(values.len(), n, "a number for every row of every step");
            Tensor::<1>::from_data(TensorData::new(values, [n]), device)
        };
        let last_value = value_of(next_obs, next_state);
        let obs = env.obs(self.obs, self.mask);
        let HostDecisions { action, log_prob, value } = self.decisions;
        let value = if value.is_empty() { values_of(&obs, &value_of, self.n_agents) } else { column(value) };
        let width = self.state_width;
        let states = |numbers: Vec<f32>| {
            let shape = [numbers.len() / width, width];
            Tensor::<2>::from_data(TensorData::new(numbers, shape), device)
        };
        let end_value = (!self.cut.is_empty()).then(|| {
            let mut end_value = vec![0.0; n];
            let mask = (!self.cut_mask.is_empty()).then_some(self.cut_mask);
            let state = PolicyState { numbers: (width > 0).then(|| states(self.cut_state)) };
            // Host only: the values were computed on the CPU.
            let values = value_of(env.obs(self.cut_obs, mask), &state).into_data();
            self.cut.iter().zip(values.iter::<f32>()).for_each(|(at, value)| end_value[*at] = value);
            column(end_value)
        });
        let [terminated, truncated] = [self.terminated, self.truncated].map(column);
        let remembered = (width > 0).then(|| Remembered {
            state: states(self.state),
            starts: starts(terminated.clone().max_pair(truncated.clone()), self.n_rows),
        });
        let steps = Steps { reward: column(self.reward), terminated, truncated, elapsed: self.elapsed.map(column) };
        let Estimated { value, advantage, returns } =
            steps.estimate(value, last_value, end_value, [n / self.n_rows, self.n_rows], discounts);
        let log_prob = column(log_prob);
        Rollout { obs, action: env.action(action), log_prob, value, advantage, returns, remembered }
    }
}
