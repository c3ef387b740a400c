//! A rollout that is collected in the memory of the CPU.

use brasa_core::env::{BatchSlabs, EnvSpec};
use brasa_core::{HostDecisions, HostObs, HostStepper};
use burn::tensor::{Device, Tensor, TensorData};

use crate::rollout::{Estimated, Steps, values_of};
use crate::{Discounts, Rollout};

/// The steps of one rollout as numbers, row by row: [`crate::RolloutBuffer`] for environments that step in the memory of the CPU. Its
/// memory becomes that of the [`Rollout`].
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
    n_rows: usize,
}

impl HostRollout {
    /// Memory for `n_steps` steps of environments with `spec`.
    pub fn new(n_steps: usize, spec: &EnvSpec) -> Self {
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
            n_rows,
        }
    }

    /// Stores the observations before a step.
    pub fn observe(&mut self, obs: HostObs<'_>) {
        self.obs.extend_from_slice(obs.values);
        if let (Some(to), Some(mask)) = (&mut self.mask, obs.mask) {
            to.extend_from_slice(mask);
        }
    }

    /// Stores the results of a step.
    pub fn push(&mut self, results: &BatchSlabs) {
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
        }
    }

    /// Estimates advantages. `value_of` evaluates observations of `env`: `next_obs` after the last step, those before a reset, and
    /// all stored ones if the decisions had no values.
    ///
    /// # Panics
    /// If there is no step, or a step was not stored in all its parts.
    pub fn finish<O: brasa_core::Rows, A>(
        self,
        env: &dyn HostStepper<Obs = O, Action = A>,
        next_obs: O,
        value_of: impl Fn(O) -> Tensor<1>,
        discounts: Discounts,
        device: &Device,
    ) -> Rollout<O, A> {
        let n = self.reward.len();
        let column = |values: Vec<f32>| {
            assert_eq!(values.len(), n, "a number for every row of every step");
            Tensor::<1>::from_data(TensorData::new(values, [n]), device)
        };
        let last_value = value_of(next_obs);
        let obs = env.obs(self.obs, self.mask);
        let HostDecisions { action, log_prob, value } = self.decisions;
        let value = if value.is_empty() { values_of(&obs, &value_of, device) } else { column(value) };
        let end_value = (!self.cut.is_empty()).then(|| {
            let mut end_value = vec![0.0; n];
            let mask = (!self.cut_mask.is_empty()).then_some(self.cut_mask);
            // Host only: the values were computed on the CPU.
            let values = value_of(env.obs(self.cut_obs, mask)).into_data();
            self.cut.iter().zip(values.iter::<f32>()).for_each(|(at, value)| end_value[*at] = value);
            column(end_value)
        });
        let steps = Steps {
            reward: column(self.reward),
            terminated: column(self.terminated),
            truncated: column(self.truncated),
            elapsed: self.elapsed.map(column),
        };
        let Estimated { value, advantage, returns } =
            steps.estimate(value, last_value, end_value, [n / self.n_rows, self.n_rows], discounts);
        Rollout { obs, action: env.action(action), log_prob: column(log_prob), value, advantage, returns }
    }
}
