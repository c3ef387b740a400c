//! The learner.

use brasa_buffers::{Cut, Rollout};
use brasa_core::env::named_rng;
use brasa_core::{ActorCritic, Learner, Metrics, OnPolicyLearner, Progress, ValueScale, read_back};
use brasa_kernels::LossData;
use brasa_nn::{
    Changing, Data, EvaluatedActions, ParamsError, Persist, Recordable, Recordings, Reports, Saved, Step, Trainable,
    Update, ValueNorm, check_memory, choice_weight, mean_of, push_of_rollout, weights,
};
use brasa_number::{Number, RowLoss};
use brasa_shards::mean;
use burn::module::Module;
use burn::tensor::Tensor;

use crate::{PpoConfig, PpoError, ValueLoss};

/// Bounds of the adaptive learning rate (rl_games).
const ADAPTIVE_RATE: (f64, f64) = (1e-6, 1e-2);

/// The learner: an actor-critic with its optimizer.
///
/// Proximal policy optimization (Schulman et al. 2017, arXiv 1707.06347) with generalized advantage estimation
/// (Schulman et al. 2016).
///
/// With `r(w) = pi_w(a|s) / pi_old(a|s)` an update minimizes, over minibatches of a rollout,
///
/// `L = -mean(min(r A, clip(r, 1 - c, 1 + c) A)) + c_v mean((R - V)^2) - c_e mean(H)`,
///
/// the paper's equations 7 and 9 with the sign of a loss. Choices that the paper leaves open:
/// - advantages are normalized per minibatch, with the unbiased standard deviation plus 1e-8;
/// - value targets are advantage plus value, both at collection;
/// - the early stop uses the divergence before the gradient step, `mean(r - 1 - ln r)`;
/// - the last minibatch of an epoch may be smaller;
/// - rows with a single legal action enter only the value loss;
/// - the value loss has no factor of one half (Stable-Baselines3): halve the `vf_coef` of implementations that have it.
///
/// ```
/// use brasa_core::OnPolicyLearner;
/// # use brasa_core::env::{Space, named_rng};
/// use brasa_nn::{ActorCriticConfig, MlpActorCritic};
/// use brasa_ppo::{Ppo, PpoConfig};
///
/// # let device = brasa_device::open_named("cpu")?.autodiff();
/// # let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::Discrete(3));
/// # let rng = &mut named_rng(0, "weights", 0);
/// let network = MlpActorCritic::new(&ActorCriticConfig::default(), &obs, &action, &device, rng)?;
/// let config = PpoConfig { n_steps: 64, gamma: 0.98, ..Default::default() };
/// let learner = Ppo::new(network, config, 0)?;
/// // A training loop reads these settings from the learner.
/// assert_eq!((learner.n_steps(), learner.gamma()), (64, 0.98));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Ppo<M: ActorCritic> {
    trainable: Trainable<M>,
    config: PpoConfig,
    seed: u64,
    state: PpoState,
    /// With `normalize_value`.
    values: Option<ValueNorm>,
    recordings: Recordings<Rollout<M::Obs, M::Action>, (Reports<6>, bool)>,
}

/// State for a resume besides weights and optimizer state.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PpoState {
    /// Number of updates, one per rollout.
    rollouts: u64,
    /// Number of epochs, including those stopped early (`train/n_updates`).
    epochs: u64,
    /// With `adaptive_kl`, the learning rate without what its schedule has taken off.
    adaptive_rate: f64,
}

impl<M: ActorCritic + Module> Ppo<M> {
    /// A learner for `network` on an autodiff device; `seed` shuffles the minibatches.
    ///
    /// # Errors
    /// [`PpoError`] if a setting is invalid.
    pub fn new(network: M, config: PpoConfig, seed: u64) -> Result<Self, PpoError> {
        config.validate()?;
        check_memory(network.state_width(), config.accumulation_steps, config.sequence_length)?;
        let values = config.normalize_value.then(ValueNorm::default);
        let state = PpoState { rollouts: 0, epochs: 0, adaptive_rate: config.learning_rate.at(0.0) };
        Ok(Self {
            trainable: Trainable::new(network, config.adam)?.in_parts(config.accumulation_steps),
            config,
            seed,
            state,
            values,
            recordings: Recordings::default(),
        })
    }

    /// Whether gradient steps are replayed by now.
    pub fn is_recorded(&self) -> bool {
        self.recordings.is_in_use()
    }

    /// The settings.
    pub fn config(&self) -> &PpoConfig {
        &self.config
    }

    /// Network and optimizer.
    pub fn trainable(&self) -> &Trainable<M> {
        &self.trainable
    }

    fn cut(&self) -> Cut {
        Cut::of(self.trainable.plain(), self.config.n_steps, self.config.sequence_length())
    }

    fn learning_rate(&self, progress: Progress) -> f64 {
        let scheduled = self.config.learning_rate.at(progress.fraction());
        match self.config.adaptive_kl {
            Some(_) => self.state.adaptive_rate * (scheduled / self.config.learning_rate.at(0.0)),
            None => scheduled,
        }
    }

    /// Warns once if `target_kl` leaves hardly any of the passes over the rollouts.
    fn warn_of_stops(&self) {
        /// Rollouts after which it is looked at.
        const ROLLOUTS: u64 = 20;
        let (Some(target), rollouts) = (self.config.target_kl, self.state.rollouts) else { return };
        let (done, planned) = (self.state.epochs, rollouts * self.config.n_epochs as u64);
        if rollouts == ROLLOUTS && done * 4 < planned {
            tracing::warn!(
                "`target_kl` = {target} stopped {} of {planned} passes over the first {rollouts} rollouts: a lower learning rate or a higher \
                 `target_kl` would use them",
                planned - done
            );
        }
    }

    /// [`Ppo::compute`], or its replay.
    fn learn(&mut self, batch: Rollout<M::Obs, M::Action>, clip: &Tensor<1>, step: Step) -> (Reports<6>, bool) {
        let learning_rates = &[Some(step.learning_rate)];
        let update = Update { batch, numbers: vec![clip.clone()], learning_rates, variant: 0 };
        let compute = |ppo: &mut Self, batch, numbers: Vec<Tensor<1>>| ppo.compute(&batch, &numbers[0], step);
        self.replayed(update, compute)
    }

    /// One gradient step on a minibatch, or none if `target_kl` is exceeded: then the second value is true.
    fn compute(&mut self, batch: &Rollout<M::Obs, M::Action>, clip: &Tensor<1>, step: Step) -> (Reports<6>, bool) {
        let config = &self.config;
        // Several shards stop together. Waits for the device if `target_kl` is set.
        let is_too_far = |reports: &Reports<6>| {
            config.target_kl.is_some_and(|target| mean(vec![reports.read(KL)])[0] > 1.5 * target)
        };
        let weight = self.trainable.plain().choice(&batch.obs).map(choice_weight);
        let columns = [&batch.log_prob, &batch.value, &batch.advantage, &batch.returns, clip].map(LossData::Rows);
        let [old_log_prob, old_value, advantage, returns, clip] = columns;
        let data = Data::new([old_log_prob, old_value, advantage, returns, weights(weight.as_ref()), clip]);
        let data = if config.normalize_advantage { data.standardize(2, 4) } else { data };
        let sequences = batch.as_sequences(config.sequence_length());
        let forward = EvaluatedActions { obs: &batch.obs, action: &batch.action, sequences: sequences.as_ref() };
        let PpoConfig { dual_clip, clip_range_vf, vf_loss, vf_coef, ent_coef, .. } = *config;
        let loss = Surrogate { dual_clip, clip_range_vf, vf_loss, vf_coef, ent_coef };
        let mut stops = std::cell::Cell::new(false);
        let accepts = |reports: &Reports<6>| {
            stops.set(is_too_far(reports));
            !stops.get()
        };
        let learned = self.trainable.learn(&forward, data, &loss, step, accepts);
        (learned.reports, *stops.get_mut())
    }
}

/// Metrics that are averaged over all minibatches of an update: what [`Surrogate`] reports behind the loss.
const MEANS: [&str; 4] =
    ["train/policy_gradient_loss", "train/value_loss", "train/entropy_loss", "train/clip_fraction"];
/// Place of the divergence in what [`Surrogate`] reports.
const KL: usize = 5;

impl<M: ActorCritic + Module> Learner for Ppo<M> {
    type Batch = Rollout<M::Obs, M::Action>;
    type Policy = M;

    fn update(&mut self, mut rollout: Self::Batch, progress: Progress) -> Metrics {
        let clip = self.config.clip_range.at(progress.fraction());
        // Data, so that a kernel is not translated again when it changes.
        let clip_data = Tensor::from_floats([clip as f32], &rollout.advantage.device());
        let critic = [rollout.value.clone(), rollout.returns.clone()];
        if let Some(values) = &mut self.values {
            values.update(&rollout.returns);
            [rollout.value, rollout.returns] = [rollout.value, rollout.returns].map(|x| values.scale().normalize(x));
        }
        let learning_rate = self.learning_rate(progress);
        let step = Step::new(learning_rate, self.config.max_grad_norm);
        let (mut reports, mut last_pass) = (Vec::new(), 0);
        for epoch in 0..self.config.n_epochs {
            last_pass = reports.len();
            self.state.epochs += 1;
            let mut too_far = false;
            let index = self.state.rollouts * self.config.n_epochs as u64 + epoch as u64;
            let rng = &mut named_rng(self.seed, "minibatch", index);
            for batch in rollout.batches(self.cut(), self.config.batch_size, rng) {
                let (report, stops) = self.learn(batch, &clip_data, step);
                reports.push(report);
                too_far = stops;
                if too_far {
                    break;
                }
            }
            if too_far {
                break;
            }
        }
        self.state.rollouts += 1;
        self.warn_of_stops();

        let reports = Reports::join(reports);
        // As in Stable-Baselines3, the divergence is that of the last epoch.
        let approx_kl = move |reports: &[[f32; 6]]| mean_of(&reports[last_pass..], KL);
        if let Some(target) = self.config.adaptive_kl {
            // Waits for the device, once per update.
            let numbers = read_back(reports.clone());
            let kl = mean(vec![approx_kl(numbers.as_chunks().0)])[0];
            self.state.adaptive_rate = adapt(self.state.adaptive_rate, kl, target);
        }
        let mut metrics = Metrics::default();
        metrics.push("train/learning_rate", learning_rate);
        metrics.push("train/clip_range", clip);
        metrics.push("train/n_updates", self.state.epochs as f64);
        self.trainable.report_loss_scale(["train/loss_scale", "train/skipped_steps"], &mut metrics);
        if let Some(clip) = self.config.clip_range_vf {
            metrics.push("train/clip_range_vf", clip);
        }
        metrics.push_from(vec![reports.flatten(0, 1)], move |numbers| {
            let (reports, _) = numbers[0].as_chunks();
            let mut all = vec![("train/approx_kl", approx_kl(reports))];
            all.extend(MEANS.into_iter().zip(1..).map(|(name, place)| (name, mean_of(reports, place))));
            all.extend(reports.last().map(|report| ("train/loss", f64::from(report[0]))));
            all
        });
        push_of_rollout(&mut metrics, critic, self.trainable.plain().std());
        metrics
    }

    fn policy(&self, _: Progress) -> M {
        self.trainable.valid()
    }

    #[allow(unsafe_code, reason = "the contract of recordings")]
    unsafe fn record(&mut self, is_on: bool) {
        // With `target_kl` the host decides about every step, and separate networks upload which rows are theirs.
        let fits = self.config.target_kl.is_none() && self.trainable.plain().n_agents() == 1;
        // SAFETY: the caller answers for networks; an update reads settings, which stay, and no other tensors.
        self.recordings = unsafe { Recordings::new(is_on && fits) };
    }

    fn n_recordings(&self) -> usize {
        usize::from(self.recordings.is_on())
    }
}

impl<M: ActorCritic + Module> OnPolicyLearner for Ppo<M> {
    fn n_steps(&self) -> usize {
        self.config.n_steps
    }

    fn batch_rows(&self, n_rows: usize) -> usize {
        self.cut().batch_rows(self.config.batch_size, n_rows)
    }

    fn gamma(&self) -> f64 {
        self.config.gamma
    }

    fn gae_lambda(&self) -> f64 {
        self.config.gae_lambda
    }

    fn value_scale(&self) -> ValueScale {
        self.values.as_ref().map(ValueNorm::scale).unwrap_or_default()
    }

    fn log_interval(&self) -> u64 {
        self.config.log_interval
    }
}

impl<M: ActorCritic + Module> Recordable for Ppo<M> {
    type Batch = Rollout<M::Obs, M::Action>;
    type Computed = (Reports<6>, bool);

    fn recordings(&mut self) -> &mut Recordings<Self::Batch, Self::Computed> {
        &mut self.recordings
    }

    fn changing(&mut self) -> Vec<&mut dyn Changing> {
        vec![&mut self.trainable]
    }
}

impl<M: ActorCritic + Module> Persist for Ppo<M> {
    fn save(&self) -> Saved {
        let mut saved = Saved::default();
        saved.put_policy(self.trainable.plain());
        saved.put_optimizer("network", &self.trainable);
        self.values.iter().for_each(|values| values.save(&mut saved));
        saved.put_number("rollouts", self.state.rollouts as f64);
        saved.put_number("epochs", self.state.epochs as f64);
        saved.put_number("adaptive_rate", self.state.adaptive_rate);
        saved.put_number("initial_rate", self.config.learning_rate.at(0.0));
        saved
    }

    fn load(&mut self, saved: &Saved) -> Result<(), ParamsError> {
        self.trainable.set_module(saved.policy(self.trainable.valid())?);
        saved.optimizer("network", &mut self.trainable)?;
        self.values = ValueNorm::load(saved, self.config.normalize_value)?;
        // A run that is resumed with half the learning rate goes on with half the adapted one.
        let now = self.config.learning_rate.at(0.0);
        let before = saved.number("initial_rate").unwrap_or(now);
        let adaptive_rate = saved.number("adaptive_rate")?;
        self.state = PpoState {
            rollouts: saved.number("rollouts")? as u64,
            epochs: saved.number("epochs")? as u64,
            adaptive_rate: if before == now { adaptive_rate } else { adaptive_rate * (now / before) },
        };
        Ok(())
    }
}

/// Equations 7 and 9 of log-probability, entropy and value, from log-probability and value at collection, advantage, target of the value, weight
/// and clip range; then the losses of policy, value and entropy, whether the ratio was clipped, and the divergence.
///
/// Rows with a single legal action have weight 0: their ratio is 1 and they have no entropy.
///
/// ```
/// use brasa_number::RowLoss;
/// use brasa_ppo::{Surrogate, ValueLoss};
///
/// let vf_loss = ValueLoss::Clipped;
/// let loss = Surrogate { dual_clip: None, clip_range_vf: None, vf_loss, vf_coef: 0.5, ent_coef: 0.0 };
/// // An action became twice as likely; its advantage is 1 and the clip range 0.2. The value is 1 below its target.
/// let results: [f64; 3] = [2.0_f64.ln(), 0.0, 0.0];
/// let data = [0.0, 0.0, 1.0, 1.0, 1.0, 0.2];
/// let [loss, policy, value, _, is_clipped, _] = loss.row(results, data);
/// assert_eq!((policy, value, is_clipped), (-1.2, 1.0, 1.0));
/// assert_eq!(loss, -0.7);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Surrogate {
    /// The objective is at least the advantage times this where the advantage is negative (Ye et al. 2020, arXiv 1912.09729, equation 7); `None`
    /// for no limit.
    pub dual_clip: Option<f64>,
    /// Largest change of a value; `None` for no limit.
    pub clip_range_vf: Option<f64>,
    /// The loss of a value that has changed by more.
    pub vf_loss: ValueLoss,
    /// Weight of the loss of values.
    pub vf_coef: f64,
    /// Weight of the loss of entropies. Without a bonus the entropy is only a metric.
    pub ent_coef: f64,
}

impl RowLoss<3, 6, 6> for Surrogate {
    #[inline(always)]
    fn row<N: Number>(
        &self,
        [log_prob, entropy, value]: [N; 3],
        [old_log_prob, old_value, advantage, returns, weight, clip]: [N; 6],
    ) -> [N; 6] {
        let log_ratio = log_prob - old_log_prob;
        let ratio = log_ratio.exp();
        let advantage = advantage * weight;
        let bounded = ratio.max(-clip + 1.0).min(clip + 1.0);
        let objective = (ratio * advantage).min(bounded * advantage);
        let objective = match self.dual_clip {
            // Where the advantage is positive, the objective is at least 0 anyway.
            Some(factor) => objective.max(advantage.min_of(0.0) * factor),
            None => objective,
        };
        let policy = -objective;
        let error = (returns - value).square();
        let error = match self.clip_range_vf {
            Some(range) => {
                let seen = old_value + (value - old_value).clamp(-range, range);
                let clipped = (returns - seen).square();
                match self.vf_loss {
                    ValueLoss::Clipped => clipped,
                    ValueLoss::Larger => clipped.max(error),
                }
            }
            None => error,
        };
        let certainty = -(entropy * weight);
        let loss = policy + error * self.vf_coef;
        let loss = if self.ent_coef > 0.0 { loss + certainty * self.ent_coef } else { loss };
        let is_clipped = weight.or_zero(clip.lower((ratio - 1.0).abs()));
        [loss, policy, error, certainty, is_clipped, (ratio - 1.0 - log_ratio) * weight]
    }
}

/// Adapts the learning rate to keep the divergence near `target`.
fn adapt(rate: f64, kl: f64, target: f64) -> f64 {
    let factor = if kl > 2.0 * target {
        1.0 / 1.5
    } else if kl < 0.5 * target {
        1.5
    } else {
        1.0
    };
    (rate * factor).clamp(ADAPTIVE_RATE.0, ADAPTIVE_RATE.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equation 7 of Ye et al. 2020, by cases, next to the clipped objective.
    #[test]
    fn a_second_clip_limits_negative_advantages_alone() {
        let vf_loss = ValueLoss::Clipped;
        let loss = |dual_clip| Surrogate { dual_clip, clip_range_vf: None, vf_loss, vf_coef: 0.5, ent_coef: 0.01 };
        let policy = |dual_clip, ratio: f64, advantage: f64| {
            let data = [0.0, 0.0, advantage, 0.0, 1.0, 0.2];
            RowLoss::<3, 6, 6>::row(&loss(dual_clip), [ratio.ln(), 0.7, 0.3], data)[1]
        };
        for ratio in [0.1, 0.9, 1.0, 1.3, 2.9, 3.1, 50.0] {
            for advantage in [-2.0, -0.5, 0.0, 0.5, 2.0] {
                let clipped = (ratio * advantage).min(ratio.clamp(0.8, 1.2) * advantage);
                let expected = if advantage < 0.0 { clipped.max(3.0 * advantage) } else { clipped };
                assert!((policy(None, ratio, advantage) + clipped).abs() < 1e-12);
                assert!((policy(Some(3.0), ratio, advantage) + expected).abs() < 1e-12, "{ratio} {advantage}");
            }
        }
        assert_eq!(policy(Some(3.0), 50.0, -1.0), 3.0);
        let error = PpoConfig { dual_clip: Some(1.0), ..Default::default() }.validate().expect_err("no factor above 1");
        assert_eq!(error.to_string(), "`dual_clip` must be above 1 (leave it out to switch it off), got 1");
    }

    #[test]
    fn the_rate_follows_the_divergence() {
        assert!((adapt(1e-3, 0.05, 0.01) - 1e-3 / 1.5).abs() < 1e-12);
        assert!((adapt(1e-3, 0.001, 0.01) - 1.5e-3).abs() < 1e-12);
        assert_eq!(adapt(1e-3, 0.01, 0.01), 1e-3);
        assert_eq!(adapt(1e-2, 0.0, 0.01), 1e-2);
    }
}
