//! Deep Q-learning (Mnih et al. 2015), with the options of van Hasselt et al. 2016 (double), Wang et al. 2016 (dueling,
//! in the network), Schaul et al. 2016 (prioritized replay) and multi-step returns.
//!
//! With the online network `Q` and the target network `Q^t`:
//!
//! - `y = r + discount Q^t(s', argmax_a Q^t(s', a))`, or with `double` `Q^t(s', argmax_a Q(s', a))`, over legal actions
//!   only
//! - `L = mean(w huber(Q(s, a) - y))`, with the importance weights `w` of prioritized replay, 1 without it; summed over
//!   learners if the network holds several independent ones ([`ActionValues::n_learners`])
//!
//! Choices that the papers leave open:
//! - the loss is the Huber loss, and the gradient norm of each learner is clipped (Stable-Baselines3);
//! - the period of the target network is in updates, not environment steps, so it does not depend on the number of
//!   environments.

use brasa_buffers::Transitions;
use brasa_core::env::{EnvError, EnvSpec, field};
use brasa_core::{ActionValues, Learner, Metrics, OffPolicyLearner, Progress};
use brasa_kernels::HostTensor;
use brasa_nn::{Clip, ParamsError, Persist, Saved, Step, Trainable, soft_update};
use burn::module::Module;
use burn::tensor::Tensor;

use crate::{DqnConfig, DqnError, EpisodeClock, EpsilonGreedy};

/// The learner: a network with its optimizer, and the target network.
pub struct Dqn<N> {
    online: Trainable<N>,
    /// On the non-autodiff device; `None` only within an update.
    target: Option<N>,
    config: DqnConfig,
    updates: u64,
    /// The step of the episode of the single environment, for settings that depend on it.
    clock: EpisodeClock,
    td_error: Option<Tensor<1>>,
}

/// The invariant for access to the target.
const PRESENT: &str = "the target is `None` only during an update";

impl<N: ActionValues + Module> Dqn<N> {
    /// A learner for `network` on an autodiff device.
    ///
    /// # Errors
    /// [`DqnError`] if a setting is invalid.
    pub fn new(network: N, config: DqnConfig) -> Result<Self, DqnError> {
        config.validate()?;
        let target = Some(network.valid());
        let online = Trainable::new(network, config.optimizer)?;
        Ok(Self { online, target, config, updates: 0, clock: EpisodeClock::default(), td_error: None })
    }

    /// The settings.
    pub fn config(&self) -> &DqnConfig {
        &self.config
    }

    /// The online network and its optimizer.
    pub fn online(&self) -> &Trainable<N> {
        &self.online
    }

    /// The target network, on the non-autodiff device.
    pub fn target(&self) -> &N {
        self.target.as_ref().expect(PRESENT)
    }

    /// Probability of a random action at this point of the run.
    pub fn epsilon(&self, progress: Progress) -> f64 {
        match &self.config.greedy_ramp {
            Some(ramp) => 1.0 - ramp.greedy_share(self.clock),
            None => self.config.epsilon.at((progress.fraction() / self.config.exploration_fraction).min(1.0)),
        }
    }

    /// The targets, `[n_rows]`, detached.
    fn td_target(&self, batch: &Transitions<N::Obs, Tensor<2>>) -> Tensor<1> {
        let next_value = match self.config.double {
            true => {
                let choice = self.online.plain().best(batch.next_obs.clone()).0;
                self.target().values_of(batch.next_obs.clone(), choice)
            }
            false => self.target().best(batch.next_obs.clone()).1,
        };
        td_target(batch.reward.clone(), batch.discount.clone(), next_value)
    }

    /// A step without the tape, where the network can: the means of the loss and of the values.
    fn learn_on_host(
        &mut self,
        batch: &Transitions<N::Obs, Tensor<2>>,
        target: &Tensor<1>,
        learning_rate: f64,
    ) -> Option<(Tensor<1>, Tensor<1>)> {
        let targets = HostTensor::of(target)?;
        let weights = match &batch.weight {
            Some(weight) => Some(HostTensor::of(weight)?),
            None => None,
        };
        let (targets, weights) = (&*targets, weights.as_deref());
        // The loss of all learners is the sum of their means.
        let share = self.online.plain().n_learners() as f32 / targets.len() as f32;
        let (mut sums, mut errors) = ([0.0f64; 2], Vec::with_capacity(targets.len()));
        let gradient = self.online.plain().gradient(&batch.obs, &batch.action, &mut |values| {
            let rows = values.iter().zip(targets.iter()).enumerate();
            let by_value = rows.map(|(row, (value, target))| {
                let (error, weight) = (value - target, weights.map_or(1.0, |weights| weights[row]));
                // As in `huber_loss`.
                let cut = error.clamp(-1.0, 1.0);
                sums[0] += f64::from((error * cut - 0.5 * cut * cut) * weight);
                sums[1] += f64::from(*value);
                errors.push(error.abs());
                cut * weight * share
            });
            by_value.collect()
        })?;
        let n = errors.len();
        let [loss, q] = sums.map(|sum| HostTensor::tensor(vec![(sum / n as f64) as f32], [1]));
        self.td_error = Some(HostTensor::tensor(errors, [n]));
        self.online.apply(gradient, self.step(learning_rate));
        Some((loss, q))
    }

    /// Whether the target is updated after update number `self.updates`.
    fn target_is_due(&self) -> bool {
        let count = if self.config.target_update_within_episode { self.clock.step } else { self.updates };
        count.is_multiple_of(self.config.target_update_interval)
    }

    fn step(&self, learning_rate: f64) -> Step {
        let n_learners = self.online.plain().n_learners();
        let by_norm = self.config.max_grad_norm.map(|limit| Clip::Norm { limit, n_learners });
        Step { learning_rate, clip: self.config.max_grad_value.map(Clip::Value).or(by_norm) }
    }
}

impl<N: ActionValues + Module> Learner for Dqn<N> {
    type Batch = Transitions<N::Obs, Tensor<2>>;
    type Policy = EpsilonGreedy<N>;

    fn update(&mut self, batch: Self::Batch, progress: Progress) -> Metrics {
        let learning_rate = self.config.learning_rate.at(progress.fraction());
        let target = self.td_target(&batch);
        let (mean_loss, mean_q) = match self.learn_on_host(&batch, &target, learning_rate) {
            Some(means) => means,
            None => {
                let network = self.online.module();
                let q = network.values_of(batch.obs, batch.action);
                self.td_error = Some((q.clone().inner() - target.clone()).abs());
                let mean_q = q.clone().inner().mean();
                let mean_loss = huber_loss(q - target, batch.weight);
                let loss = sum_over_learners(mean_loss.clone(), network.n_learners());
                self.online.step(&loss, self.step(learning_rate));
                (mean_loss.inner(), mean_q)
            }
        };
        self.updates += 1;
        if self.target_is_due() {
            let target = self.target.take().expect(PRESENT);
            self.target = Some(soft_update(target, self.online.plain(), self.config.tau));
        }

        let mut metrics = Metrics::default();
        metrics.push("train/learning_rate", learning_rate);
        metrics.push("train/n_updates", self.updates as f64);
        self.online.report_loss_scale(["train/loss_scale", "train/skipped_steps"], &mut metrics);
        metrics.push("rollout/exploration_rate", self.epsilon(progress));
        metrics.push_tensor("train/loss", mean_loss);
        metrics.push_tensor("train/q", mean_q);
        metrics
    }

    fn policy(&self, progress: Progress) -> EpsilonGreedy<N> {
        EpsilonGreedy { network: self.online.valid(), epsilon: self.epsilon(progress) }
    }
}

impl<N: ActionValues + Module> OffPolicyLearner for Dqn<N> {
    fn gamma(&self) -> f64 {
        self.config.gamma
    }

    fn td_error(&self) -> Tensor<1> {
        self.td_error.clone().expect("there was an update")
    }

    fn check_envs(&self, spec: &EnvSpec) -> Result<(), EnvError> {
        let follows = self.config.greedy_ramp.is_some() || self.config.target_update_within_episode;
        let rule = "must be 1 if exploration or targets depend on the step of the episode";
        field::rule(!follows || spec.n_envs == 1, "n_envs", rule, spec.n_envs)?;
        let rule = "must be on the host if exploration or targets depend on the step of the episode";
        Ok(field::rule(!follows || spec.ends_are_known, "env", rule, "one on a device")?)
    }

    fn after_step(&mut self, any_episode_end: bool) {
        self.clock.advance(any_episode_end);
    }
}

impl<N: Module> Persist for Dqn<N> {
    fn save(&self) -> Saved {
        let mut saved = Saved::default();
        saved.put_policy(self.online.plain());
        saved.put_optimizer("network", &self.online);
        saved.put_module("target", self.target.as_ref().expect(PRESENT));
        saved.put_number("updates", self.updates as f64);
        saved.put_number("clock.episode", self.clock.episode as f64);
        saved.put_number("clock.step", self.clock.step as f64);
        saved
    }

    fn load(&mut self, saved: &Saved) -> Result<(), ParamsError> {
        self.online.set_module(saved.policy(self.online.valid())?);
        saved.optimizer("network", &mut self.online)?;
        self.target = Some(saved.module("target", self.target.take().expect(PRESENT))?);
        self.updates = saved.number("updates")? as u64;
        self.clock.episode = saved.number("clock.episode")? as u64;
        self.clock.step = saved.number("clock.step")? as u64;
        Ok(())
    }
}

/// `r + discount Q^t(s', a')` for the chosen next action `a'`.
///
/// # Shapes
/// - `reward`, `discount`: `[n_rows]`; `discount` is 0 after a terminal step
/// - `next_value`: `[n_rows]`, the target network's value of the next action
/// - output: `[n_rows]`
pub fn td_target(reward: Tensor<1>, discount: Tensor<1>, next_value: Tensor<1>) -> Tensor<1> {
    reward + discount * next_value
}

/// `mean(w huber(d))` with `huber(d) = d^2 / 2` within 1 and `|d| - 1/2` beyond (PyTorch's `smooth_l1_loss`).
///
/// # Shapes
/// - `error`, `weight`: `[n_rows]`
/// - output: `[1]`
pub fn huber_loss(error: Tensor<1>, weight: Option<Tensor<1>>) -> Tensor<1> {
    // With a detached c = clamp(d, -1, 1), c d - c^2 / 2 has the value and the gradient of the Huber loss.
    let cut = error.clone().inner().clamp(-1.0, 1.0);
    let loss = error * cut.clone() - cut.square() * 0.5;
    match weight {
        Some(weight) => (loss * weight).mean(),
        None => loss.mean(),
    }
}

/// The sum over learners of their mean losses, from the mean over all rows. A mean over learners would divide the
/// gradient of each by the number of learners.
fn sum_over_learners(mean: Tensor<1>, n_learners: usize) -> Tensor<1> {
    if n_learners == 1 { mean } else { mean * n_learners as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_is_quadratic_within_1_and_linear_beyond() {
        let device = brasa_test::device().autodiff();
        let error = Tensor::<1>::from_floats([-3.0, -0.5, 0.0, 0.8, 2.0], &device).require_grad();
        let weight = Tensor::<1>::from_floats([1.0, 2.0, 1.0, 1.0, 0.5], &device.without_autodiff());
        let loss = huber_loss(error.clone(), Some(weight));
        let expected = (2.5 + 2.0 * 0.125 + 0.0 + 0.32 + 0.5 * 1.5) / 5.0;
        assert!((loss.clone().inner().into_scalar::<f32>() - expected).abs() < 1e-6);
        let grad = error.grad(&loss.backward()).expect("it is a leaf").into_data();
        for (got, expected) in grad.iter::<f32>().zip([-1.0, -1.0, 0.0, 0.8, 0.5]) {
            assert!((got - expected / 5.0).abs() < 1e-6, "{grad}");
        }
    }
}
