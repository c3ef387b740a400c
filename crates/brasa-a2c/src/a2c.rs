//! Advantage actor-critic (Mnih et al. 2016, arXiv 1602.01783), synchronous.
//!
//! An update is one gradient step on
//!
//! `L = -mean(A ln pi(a|s)) + c_v mean((R - V)^2) - c_e mean(H)`
//!
//! on all rows of a rollout, with advantages `A` and value targets `R = A + V` at collection. A2C is PPO with one
//! epoch, one minibatch and the same optimizer (Huang et al. 2022, arXiv 2205.09123). The value loss has no factor of
//! one half (Stable-Baselines3).

use brasa_buffers::{Rollout, choice_weight, explained_variance, normalize};
use brasa_core::by_hand::{EvaluationGradient, HostEvaluation};
use brasa_core::env::named_rng;
use brasa_core::{ActorCritic, Learner, Metrics, OnPolicyLearner, Progress};
use brasa_kernels::{HostTensor, concat};
use brasa_nn::{ParamsError, Persist, Saved, Step, Trainable};
use burn::module::Module;
use burn::tensor::Tensor;

use crate::{A2cConfig, A2cError};

/// The learner: an actor-critic with its optimizer.
pub struct A2c<M> {
    trainable: Trainable<M>,
    config: A2cConfig,
    seed: u64,
    rollouts: u64,
}

impl<M: ActorCritic + Module> A2c<M> {
    /// A learner for `network` on an autodiff device; `seed` shuffles the minibatches, if any.
    ///
    /// # Errors
    /// [`A2cError`] if a setting is invalid.
    pub fn new(network: M, config: A2cConfig, seed: u64) -> Result<Self, A2cError> {
        config.validate()?;
        Ok(Self { trainable: Trainable::new(network, config.optimizer)?, config, seed, rollouts: 0 })
    }

    /// The settings.
    pub fn config(&self) -> &A2cConfig {
        &self.config
    }

    /// Network and optimizer.
    pub fn trainable(&self) -> &Trainable<M> {
        &self.trainable
    }

    /// One gradient step; policy loss, value loss and entropy loss, `[1, 3]`.
    fn learn(&mut self, batch: Rollout<M::Obs, M::Action>, step: Step) -> Tensor<2> {
        let config = &self.config;
        let mut report = None;
        let gradient = self.trainable.plain().gradient(&batch.obs, &batch.action, &mut |now| {
            let (parts, gradient) = loss_on_host(now, &batch, config);
            report = Some(HostTensor::tensor(parts.map(|part| part as f32).to_vec(), [1, 3]));
            gradient
        });
        if let (Some(gradient), Some(report)) = (gradient, report) {
            self.trainable.apply(gradient, step);
            return report;
        }
        let now = self.trainable.module().evaluate(batch.obs, batch.action);
        // Rows without a choice have no entropy and no policy gradient, so they are excluded from the means.
        let weight = now.choice.map(choice_weight);
        let weigh = |x: Tensor<1>| weight.iter().fold(x, |x, weight| x * weight.clone());
        let advantage = match config.normalize_advantage {
            true => normalize(batch.advantage, weight.as_ref()),
            false => batch.advantage,
        };
        let advantage = weigh(advantage);
        let policy = policy_loss(now.log_prob, advantage);
        let value = value_loss(now.value, batch.returns);
        // Without a bonus the entropy is only a metric.
        let bonus = config.ent_coef > 0.0;
        let entropy = -weigh(if bonus { now.entropy } else { now.entropy.inner() }).mean();
        let mut loss = policy.clone() + value.clone() * config.vf_coef;
        if bonus {
            loss = loss + entropy.clone() * config.ent_coef;
        }
        self.trainable.step(&loss, step);
        concat([policy.inner(), value.inner(), entropy.inner()].map(Tensor::unsqueeze).into())
    }
}

/// Metrics that are averaged over the gradient steps of an update.
const MEANS: [&str; 3] = ["train/policy_loss", "train/value_loss", "train/entropy_loss"];

impl<M: ActorCritic + Module> Learner for A2c<M> {
    type Batch = Rollout<M::Obs, M::Action>;
    type Policy = M;

    fn update(&mut self, rollout: Self::Batch, progress: Progress) -> Metrics {
        let learning_rate = self.config.learning_rate.at(progress.fraction());
        let step = Step::new(learning_rate, self.config.max_grad_norm);
        let batch_size = self.config.batch_size.unwrap_or(usize::MAX);
        let rng = &mut named_rng(self.seed, "minibatch", self.rollouts);
        let reports: Vec<_> = rollout.minibatches(batch_size, rng).map(|batch| self.learn(batch, step)).collect();
        self.rollouts += 1;

        let reports = Tensor::cat(reports, 0).mean_dim(0);
        let mut metrics = Metrics::default();
        metrics.push("train/learning_rate", learning_rate);
        metrics.push("train/n_updates", self.rollouts as f64);
        self.trainable.report_loss_scale(["train/loss_scale", "train/skipped_steps"], &mut metrics);
        metrics.push_tensor("train/explained_variance", explained_variance(rollout.value, rollout.returns));
        if let Some(std) = self.trainable.plain().std() {
            metrics.push_tensor("train/std", std.mean());
        }
        for (i, name) in MEANS.into_iter().enumerate() {
            metrics.push_tensor(name, reports.clone().slice([0..1, i..i + 1]).reshape([1]));
        }
        metrics
    }

    fn policy(&self, _: Progress) -> M {
        self.trainable.valid()
    }
}

impl<M: ActorCritic + Module> OnPolicyLearner for A2c<M> {
    fn n_steps(&self) -> usize {
        self.config.n_steps
    }

    fn batch_rows(&self, n_rows: usize) -> usize {
        self.config.batch_size.unwrap_or(n_rows).min(n_rows)
    }

    fn gamma(&self) -> f64 {
        self.config.gamma
    }

    fn gae_lambda(&self) -> f64 {
        self.config.gae_lambda
    }

    fn log_interval(&self) -> u64 {
        self.config.log_interval
    }
}

impl<M: Module> Persist for A2c<M> {
    fn save(&self) -> Saved {
        let mut saved = Saved::default();
        saved.put_policy(self.trainable.plain());
        saved.put_optimizer("network", &self.trainable);
        saved.put_number("rollouts", self.rollouts as f64);
        saved
    }

    fn load(&mut self, saved: &Saved) -> Result<(), ParamsError> {
        self.trainable.set_module(saved.policy(self.trainable.valid())?);
        saved.optimizer("network", &mut self.trainable)?;
        self.rollouts = saved.number("rollouts")? as u64;
        Ok(())
    }
}

/// Policy loss, value loss and entropy loss of a minibatch in one pass over the memory of the CPU, and the derivatives of the whole loss.
fn loss_on_host<O, A>(
    now: HostEvaluation<'_>,
    batch: &Rollout<O, A>,
    config: &A2cConfig,
) -> ([f64; 3], EvaluationGradient) {
    let HostEvaluation { log_prob, entropy, value, choice } = now;
    let host = |column: &Tensor<1>| HostTensor::of(column).expect("a minibatch is where its evaluation is");
    let weight = choice.cloned().map(choice_weight);
    let advantage = match config.normalize_advantage {
        true => host(&normalize(batch.advantage.clone(), weight.as_ref())),
        false => host(&batch.advantage),
    };
    let (returns, weight) = (host(&batch.returns), weight.as_ref().map(host));
    let (advantage, returns, weight) = (&*advantage, &*returns, weight.as_deref());
    let n = log_prob.len();
    let mean = 1.0 / n as f32;
    let (vf_coef, ent_coef) = (config.vf_coef as f32, config.ent_coef as f32);
    let (mut by_log_prob, mut by_value) = (Vec::with_capacity(n), Vec::with_capacity(n));
    // Without a bonus the entropy is only a metric.
    let mut by_entropy = (config.ent_coef > 0.0).then(|| Vec::with_capacity(n));
    let mut sums = [0.0f64; 3];
    for i in 0..n {
        let weight = weight.map_or(1.0, |weight| weight[i]);
        let (advantage, error) = (advantage[i] * weight, returns[i] - value[i]);
        by_log_prob.push(-advantage * mean);
        by_value.push(-2.0 * error * mean * vf_coef);
        if let Some(by_entropy) = &mut by_entropy {
            by_entropy.push(-weight * mean * ent_coef);
        }
        let parts = [-advantage * log_prob[i], error * error, -weight * entropy[i]];
        sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += f64::from(part));
    }
    (sums.map(|sum| sum / n as f64), EvaluationGradient { by_log_prob, by_entropy, by_value })
}

/// `-mean(A ln pi(a|s))`.
///
/// # Shapes
/// - `log_prob`, `advantage`: `[n_rows]`
/// - output: `[1]`
pub fn policy_loss(log_prob: Tensor<1>, advantage: Tensor<1>) -> Tensor<1> {
    -(log_prob * advantage).mean()
}

/// `mean((R - V)^2)`.
///
/// # Shapes
/// - `value`, `target`: `[n_rows]`
/// - output: `[1]`
pub fn value_loss(value: Tensor<1>, target: Tensor<1>) -> Tensor<1> {
    (target - value).square().mean()
}
