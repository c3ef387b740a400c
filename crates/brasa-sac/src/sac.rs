//! Soft actor-critic (Haarnoja et al. 2018, arXiv 1812.05905).
//!
//! With actions `a' ~ pi(s')`, twin critics `Q_i`, target critics `Q^t_i` and temperature `alpha`:
//!
//! - `y = r + discount (min_i Q^t_i(s', a') - alpha ln pi(a'|s'))`, the paper's equation 6 with two critics
//! - critics: `J_Q = 1/2 sum_i mean((Q_i(s, a) - y)^2)`, equation 5
//! - actor: `J_pi = mean(alpha ln pi(a|s) - min_i Q_i(s, a))` with `a ~ pi(s)`, equation 7; with `action_l2`, plus its multiple of the
//!   mean of `a^2`
//! - temperature: `J_alpha = -mean(ln alpha (ln pi(a|s) + H))`, equation 18 with `ln alpha` instead of `alpha`, as in
//!   the authors' code
//!
//! Choices that the paper leaves open:
//! - the order is Stable-Baselines3's: critics, actor (with the new critics), targets; all of an update uses the temperature before its own
//!   step, which therefore may come last;
//! - actions are in [-1, 1] for critics, log-probabilities and the target entropy, for any bounds of the environment;
//! - n-step returns do not contain the entropy of intermediate steps;
//! - log-probabilities are exact (see `brasa_nn::distribution::squashed`), without the 1e-6 of other implementations.

use brasa_buffers::Transitions;
use brasa_core::by_hand::{CriticsInput, DrawGradient};
use brasa_core::env::named_rng;
use brasa_core::{
    Critics, Learner, Metrics, NoiseDistribution, NoiseSpec, OffPolicyLearner, Progress, Reparameterized, Rows,
};
use brasa_device::precision;
use brasa_kernels::HostTensor;
use brasa_nn::{ParamsError, Persist, Saved, Step, Trainable, draw_noise, soft_update};
use burn::module::{Module, Param, ParamId};
use burn::tensor::Tensor;

use crate::{EntCoef, SacConfig, SacError};

/// The learner: actor, critics with their targets, temperature.
pub struct Sac<A, C> {
    actor: Trainable<A>,
    critics: Trainable<C>,
    /// On the non-autodiff device; `None` only within an update.
    targets: Option<C>,
    temperature: Temperature,
    config: SacConfig,
    seed: u64,
    updates: u64,
    td_error: Option<Tensor<1>>,
}

/// The invariant for access to the targets.
const PRESENT: &str = "the targets are `None` only during an update";

impl<A, C> Sac<A, C>
where
    A: Reparameterized<Action = Tensor<2>> + Module,
    C: Critics<Obs = A::Obs, Action = Tensor<2>> + Module,
{
    /// A learner for `actor` and `critics` on an autodiff device; `seed` determines the noise of updates.
    ///
    /// # Errors
    /// [`SacError`] if a setting is invalid.
    pub fn new(actor: A, critics: C, config: SacConfig, seed: u64) -> Result<Self, SacError> {
        config.validate()?;
        let target_entropy = config.target_entropy.unwrap_or(-(actor.noise_width() as f64));
        let actor = Trainable::new(actor, config.adam)?;
        let temperature = Temperature::new(&config, target_entropy, &actor)?;
        let targets = Some(critics.valid());
        let critics = Trainable::new(critics, config.adam)?;
        Ok(Self { actor, critics, targets, temperature, config, seed, updates: 0, td_error: None })
    }

    /// The settings.
    pub fn config(&self) -> &SacConfig {
        &self.config
    }

    /// The actor and its optimizer.
    pub fn actor(&self) -> &Trainable<A> {
        &self.actor
    }

    /// The critics and their optimizer.
    pub fn critics(&self) -> &Trainable<C> {
        &self.critics
    }

    /// The target critics, on the non-autodiff device.
    pub fn targets(&self) -> &C {
        self.targets.as_ref().expect(PRESENT)
    }

    /// `[1]`: the temperature.
    pub fn ent_coef(&self) -> Tensor<1> {
        self.temperature.value()
    }

    /// Standard normal noise for the two sets of actions of the current update, in one upload.
    fn noise(&self, batch: &Transitions<A::Obs, Tensor<2>>) -> [Tensor<2>; 2] {
        let (n_rows, width) = (batch.obs.n_rows(), self.actor.plain().noise_width());
        let spec = NoiseSpec { width, distribution: NoiseDistribution::Normal, resample_every: 1 };
        let rng = &mut named_rng(self.seed, "update", self.updates);
        let noise = draw_noise(spec, 2 * n_rows, rng, &batch.reward.device());
        [noise.clone().slice(0..n_rows), noise.slice(n_rows..2 * n_rows)]
    }

    /// One update with the given standard normal noise for the actions at `obs` and at `next_obs`.
    ///
    /// # Shapes
    /// - `noise`: `[n_rows, noise_width]` each
    pub fn update_with(
        &mut self,
        batch: Transitions<A::Obs, Tensor<2>>,
        noise: [Tensor<2>; 2],
        progress: Progress,
    ) -> Metrics {
        let done = progress.fraction();
        let learning_rate = self.config.learning_rate.at(done);
        let rate = |own: Option<brasa_core::Schedule>| own.map_or(learning_rate, |schedule| schedule.at(done));
        let max_grad_norm = self.config.max_grad_norm;
        let step = |learning_rate| Step::new(learning_rate, max_grad_norm);
        let [noise, next_noise] = noise;

        let ent_coef = self.temperature.value();
        let target = self.target(&batch, next_noise, ent_coef.clone());
        let critic_loss = self.learn_critics(&batch, target, step(rate(self.config.critic_learning_rate)));
        let (actor_loss, log_prob) = self.learn_actor(batch.obs, noise, &ent_coef, step(learning_rate));
        let ent_coef_loss = self.temperature.learn(log_prob, rate(self.config.ent_coef_learning_rate));

        if self.updates.is_multiple_of(self.config.target_update_interval) {
            let targets = self.targets.take().expect(PRESENT);
            self.targets = Some(soft_update(targets, self.critics.plain(), self.config.tau));
        }
        self.updates += 1;

        let mut metrics = Metrics::default();
        metrics.push("train/learning_rate", learning_rate);
        metrics.push("train/n_updates", self.updates as f64);
        self.critics.report_loss_scale(["train/critic_loss_scale", "train/critic_skipped_steps"], &mut metrics);
        self.actor.report_loss_scale(["train/actor_loss_scale", "train/actor_skipped_steps"], &mut metrics);
        metrics.push_tensor("train/actor_loss", actor_loss);
        metrics.push_tensor("train/critic_loss", critic_loss);
        metrics.push_tensor("train/ent_coef", ent_coef);
        if let Some(loss) = ent_coef_loss {
            metrics.push_tensor("train/ent_coef_loss", loss);
        }
        metrics
    }

    /// A step of the critics; the loss before it.
    fn learn_critics(&mut self, batch: &Transitions<A::Obs, Tensor<2>>, target: Tensor<1>, step: Step) -> Tensor<1> {
        if let Some(loss) = self.learn_critics_on_host(batch, &target, step) {
            return loss;
        }
        let q = self.critics.module().values(batch.obs.clone(), batch.action.clone());
        self.td_error = Some(td_error(q.clone().inner(), target.clone()));
        let loss = critic_loss(q, target, batch.weight.clone());
        self.critics.step(&loss, step);
        loss.inner()
    }

    /// The same without the tape, where the critics can.
    fn learn_critics_on_host(
        &mut self,
        batch: &Transitions<A::Obs, Tensor<2>>,
        target: &Tensor<1>,
        step: Step,
    ) -> Option<Tensor<1>> {
        let targets = HostTensor::of(target)?;
        let weights = match &batch.weight {
            Some(weight) => Some(HostTensor::of(weight)?),
            None => None,
        };
        let (targets, weights) = (&*targets, weights.as_deref());
        let n = targets.len();
        let (mut sum, mut errors) = (0.0f64, vec![0.0; n]);
        let gradient =
            self.critics.plain().gradient(&batch.obs, &batch.action, CriticsInput::Parameters, &mut |q| {
                let n_critics = q.len() / n;
                let by_value = q.iter().enumerate().map(|(i, q)| {
                    let row = i % n;
                    let (error, weight) = (q - targets[row], weights.map_or(1.0, |weights| weights[row]));
                    sum += f64::from(error * error * weight);
                    errors[row] += error.abs() / n_critics as f32;
                    error * weight / n as f32
                });
                by_value.collect()
            })?;
        self.td_error = Some(HostTensor::tensor(errors, [n]));
        self.critics.apply(gradient, step);
        Some(HostTensor::tensor(vec![(0.5 * sum / n as f64) as f32], [1]))
    }

    /// A step of the actor with the new critics: the loss before it, and the log-probabilities of the actions, `[n_rows]`.
    fn learn_actor(
        &mut self,
        obs: A::Obs,
        noise: Tensor<2>,
        ent_coef: &Tensor<1>,
        step: Step,
    ) -> (Tensor<1>, Tensor<1>) {
        if let Some(results) = self.learn_actor_on_host(&obs, &noise, ent_coef, step) {
            return results;
        }
        let (action, log_prob) = self.actor.module().rsample(obs.clone(), noise);
        // The critics are not on the tape: the gradient reaches the actor only through its action.
        let values = self.critics.plain().values(obs, action.clone());
        let mut loss = actor_loss(log_prob.clone(), values, ent_coef.clone());
        if self.config.action_l2 > 0.0 {
            loss = loss + action.square().mean() * self.config.action_l2;
        }
        self.actor.step(&loss, step);
        (loss.inner(), log_prob.inner())
    }

    /// The same without the tape, where actor and critics can.
    fn learn_actor_on_host(
        &mut self,
        obs: &A::Obs,
        noise: &Tensor<2>,
        ent_coef: &Tensor<1>,
        step: Step,
    ) -> Option<(Tensor<1>, Tensor<1>)> {
        let ent_coef = HostTensor::of(ent_coef)?[0];
        let (critics, action_l2) = (self.critics.plain(), self.config.action_l2);
        let mut results = None;
        let gradient = self.actor.plain().gradient(obs, noise, &mut |action, log_prob| {
            let n = log_prob.len();
            let mut sum = 0.0f64;
            let mut by_action = critics.gradient(obs, action, CriticsInput::Actions, &mut |q| {
                let mut by_value = vec![0.0; q.len()];
                for (row, log_prob) in log_prob.iter().enumerate() {
                    // The first of equal estimates.
                    let smaller = |best: usize, i: usize| if q[i] < q[best] { i } else { best };
                    let smallest = (row..q.len()).step_by(n).reduce(smaller).expect("there is a critic");
                    by_value[smallest] = -1.0 / n as f32;
                    sum += f64::from(ent_coef * log_prob - q[smallest]);
                }
                by_value
            })?;
            let mut loss = sum / n as f64;
            if action_l2 > 0.0 {
                let actions = HostTensor::of(action)?;
                let weight = action_l2 / actions.len() as f64;
                loss += weight * actions.iter().map(|a| f64::from(a * a)).sum::<f64>();
                by_action.iter_mut().zip(&*actions).for_each(|(by, a)| *by += 2.0 * weight as f32 * a);
            }
            let loss = HostTensor::tensor(vec![loss as f32], [1]);
            results = Some((loss, HostTensor::tensor(log_prob.to_vec(), [n])));
            Some(DrawGradient { by_action, by_log_prob: vec![ent_coef / n as f32; n] })
        })?;
        self.actor.apply(gradient, step);
        results
    }

    /// The targets of the critics, `[n_rows]`, detached.
    fn target(&self, batch: &Transitions<A::Obs, Tensor<2>>, noise: Tensor<2>, ent_coef: Tensor<1>) -> Tensor<1> {
        let (next_action, next_log_prob) = self.actor.plain().rsample(batch.next_obs.clone(), noise);
        let next_q = self.targets().values(batch.next_obs.clone(), next_action);
        td_target(batch.reward.clone(), batch.discount.clone(), next_q, next_log_prob, ent_coef)
    }
}

impl<A, C> Learner for Sac<A, C>
where
    A: Reparameterized<Action = Tensor<2>> + Module,
    C: Critics<Obs = A::Obs, Action = Tensor<2>> + Module,
{
    type Batch = Transitions<A::Obs, Tensor<2>>;
    type Policy = A;

    fn update(&mut self, batch: Self::Batch, progress: Progress) -> Metrics {
        let noise = self.noise(&batch);
        self.update_with(batch, noise, progress)
    }

    fn policy(&self, _: Progress) -> A {
        self.actor.valid()
    }
}

impl<A, C> OffPolicyLearner for Sac<A, C>
where
    A: Reparameterized<Action = Tensor<2>> + Module,
    C: Critics<Obs = A::Obs, Action = Tensor<2>> + Module,
{
    fn gamma(&self) -> f64 {
        self.config.gamma
    }

    fn td_error(&self) -> Tensor<1> {
        self.td_error.clone().expect("there was an update")
    }
}

impl<A: Module, C: Module> Persist for Sac<A, C> {
    fn save(&self) -> Saved {
        let mut saved = Saved::default();
        saved.put_policy(self.actor.plain());
        saved.put_optimizer("actor", &self.actor);
        saved.put_module("critics", self.critics.plain());
        saved.put_optimizer("critics", &self.critics);
        saved.put_module("targets", self.targets.as_ref().expect(PRESENT));
        if let Temperature::Learned { log, .. } = &self.temperature {
            saved.put_module("temperature", log.plain());
            saved.put_optimizer("temperature", log);
        }
        saved.put_number("updates", self.updates as f64);
        saved
    }

    fn load(&mut self, saved: &Saved) -> Result<(), ParamsError> {
        self.actor.set_module(saved.policy(self.actor.valid())?);
        saved.optimizer("actor", &mut self.actor)?;
        self.critics.set_module(saved.module("critics", self.critics.valid())?);
        saved.optimizer("critics", &mut self.critics)?;
        self.targets = Some(saved.module("targets", self.targets.take().expect(PRESENT))?);
        if let Temperature::Learned { log, .. } = &mut self.temperature {
            log.set_module(saved.module("temperature", log.valid())?);
            saved.optimizer("temperature", log)?;
        }
        self.updates = saved.number("updates")? as u64;
        Ok(())
    }
}

/// The temperature.
#[allow(clippy::large_enum_variant, reason = "one value per learner")]
enum Temperature {
    /// `[1]`, constant.
    Fixed(Tensor<1>),
    /// Learned as its logarithm, so that it is above 0.
    Learned { log: Trainable<LogTemperature>, target_entropy: f64 },
}

/// `[1]`: the logarithm of a temperature.
#[derive(Module, Debug)]
struct LogTemperature {
    value: Param<Tensor<1>>,
}

impl Temperature {
    fn new<A: Module>(config: &SacConfig, target_entropy: f64, actor: &Trainable<A>) -> Result<Self, SacError> {
        let device = actor.device();
        Ok(match config.ent_coef {
            EntCoef::Fixed(value) => Self::Fixed(Tensor::full([1], value, &device.clone().without_autodiff())),
            EntCoef::Auto { auto } => {
                let value = Tensor::<1>::full([1], auto.ln(), device).require_grad();
                let value = Param::initialized(ParamId::new(), value);
                Self::Learned { log: Trainable::new(LogTemperature { value }, config.adam)?, target_entropy }
            }
        })
    }

    /// `[1]`, detached.
    fn value(&self) -> Tensor<1> {
        match self {
            Self::Fixed(value) => value.clone(),
            Self::Learned { log, .. } => log.plain().value.val().exp(),
        }
    }

    /// One step towards the target entropy; the loss, if the temperature is learned.
    fn learn(&mut self, log_prob: Tensor<1>, learning_rate: f64) -> Option<Tensor<1>> {
        let Self::Learned { log, target_entropy } = self else { return None };
        let step = Step::new(learning_rate, None);
        let numbers = (HostTensor::of(&log.plain().value.val()), HostTensor::of(&log_prob));
        // With products in 16 bits the loss is scaled, and a step that is not finite is skipped.
        if let ((Some(value), Some(log_probs)), None) = (numbers, precision().cast()) {
            let sum: f64 = log_probs.iter().map(|x| f64::from(*x)).sum();
            let by_value = -(sum / log_probs.len() as f64 + *target_entropy) as f32;
            let loss = by_value * value[0];
            // Nobody else holds the memory then.
            drop(value);
            log.apply(vec![by_value], step);
            return Some(HostTensor::tensor(vec![loss], [1]));
        }
        let loss = temperature_loss(log.module().value.val(), log_prob, *target_entropy);
        log.step(&loss, step);
        Some(loss.inner())
    }
}

/// `r + discount (min_i Q^t_i(s', a') - alpha ln pi(a'|s'))`, equation 6 of the paper for several critics.
///
/// # Shapes
/// - `reward`, `discount`, `next_log_prob`: `[n_rows]`; `discount` is 0 after a terminal step
/// - `next_q`: `[n_critics, n_rows]`
/// - `ent_coef`: `[1]`
/// - output: `[n_rows]`
pub fn td_target(
    reward: Tensor<1>,
    discount: Tensor<1>,
    next_q: Tensor<2>,
    next_log_prob: Tensor<1>,
    ent_coef: Tensor<1>,
) -> Tensor<1> {
    let next_value = next_q.min_dim(0).squeeze_dim::<1>(0) - next_log_prob * ent_coef;
    reward + discount * next_value
}

/// `1/2 sum_i mean(w (Q_i - y)^2)`, equation 5; the weights `w` are those of prioritized replay, 1 without it.
///
/// # Shapes
/// - `q`: `[n_critics, n_rows]`
/// - `target`, `weight`: `[n_rows]`
/// - output: `[1]`
pub fn critic_loss(q: Tensor<2>, target: Tensor<1>, weight: Option<Tensor<1>>) -> Tensor<1> {
    let n_rows = q.dims()[1] as f64;
    let mut squares = (q - target.unsqueeze()).square();
    if let Some(weight) = weight {
        squares = squares * weight.unsqueeze();
    }
    squares.sum() * (0.5 / n_rows)
}

/// `mean(alpha ln pi(a|s) - min_i Q_i(s, a))`, equation 7.
///
/// # Shapes
/// - `log_prob`: `[n_rows]`
/// - `q`: `[n_critics, n_rows]`
/// - `ent_coef`: `[1]`
/// - output: `[1]`
pub fn actor_loss(log_prob: Tensor<1>, q: Tensor<2>, ent_coef: Tensor<1>) -> Tensor<1> {
    (log_prob * ent_coef - q.min_dim(0).squeeze_dim::<1>(0)).mean()
}

/// `-mean(ln alpha (ln pi(a|s) + H))`.
///
/// # Shapes
/// - `log_ent_coef`: `[1]`
/// - `log_prob`: `[n_rows]`, detached
/// - output: `[1]`
pub fn temperature_loss(log_ent_coef: Tensor<1>, log_prob: Tensor<1>, target_entropy: f64) -> Tensor<1> {
    -(log_ent_coef * (log_prob.mean() + target_entropy))
}

/// Mean over critics of `|Q_i - y|`, `[n_rows]`.
fn td_error(q: Tensor<2>, target: Tensor<1>) -> Tensor<1> {
    (q - target.unsqueeze()).abs().mean_dim(0).squeeze_dim(0)
}
