//! The learner.

use brasa_buffers::{Cut, Rollout};
use brasa_core::env::named_rng;
use brasa_core::{ActorCritic, Learner, Metrics, OnPolicyLearner, Progress, ValueScale};
use brasa_kernels::LossData;
use brasa_nn::{
    Changing, Data, EvaluatedActions, ParamsError, Persist, Recordable, Recordings, Reports, Saved, Step, Trainable,
    Update, ValueNorm, check_memory, choice_weight, mean_of, push_of_rollout, weights,
};
use brasa_number::{Number, RowLoss};
use burn::module::Module;

use crate::{A2cConfig, A2cError};

/// The learner: an actor-critic with its optimizer.
///
/// Advantage actor-critic (Mnih et al. 2016, arXiv 1602.01783), synchronous.
///
/// An update is one gradient step on
///
/// `L = -mean(A ln pi(a|s)) + c_v mean((R - V)^2) - c_e mean(H)`
///
/// on all rows of a rollout, with advantages `A` and value targets `R = A + V` at collection. A2C is PPO with one
/// epoch, one minibatch and the same optimizer (Huang et al. 2022, arXiv 2205.09123). The value loss has no factor of
/// one half (Stable-Baselines3).
///
/// ```
/// use brasa_core::OnPolicyLearner;
/// # use brasa_core::env::{Space, named_rng};
/// use brasa_nn::{ActorCriticConfig, MlpActorCritic};
/// use brasa_a2c::{A2c, A2cConfig};
///
/// # let device = brasa_device::open_named("cpu")?.autodiff();
/// # let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::Discrete(3));
/// # let rng = &mut named_rng(0, "weights", 0);
/// let network = MlpActorCritic::new(&ActorCriticConfig::default(), &obs, &action, &device, rng)?;
/// let config = A2cConfig { n_steps: 64, gamma: 0.98, ..Default::default() };
/// let learner = A2c::new(network, config, 0)?;
/// // A training loop reads these settings from the learner.
/// assert_eq!((learner.n_steps(), learner.gamma()), (64, 0.98));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct A2c<M: ActorCritic> {
    trainable: Trainable<M>,
    config: A2cConfig,
    seed: u64,
    rollouts: u64,
    /// With `normalize_value`.
    values: Option<ValueNorm>,
    recordings: Recordings<Rollout<M::Obs, M::Action>, Reports<4>>,
}

impl<M: ActorCritic + Module> A2c<M> {
    /// A learner for `network` on an autodiff device; `seed` shuffles the minibatches, if any.
    ///
    /// # Errors
    /// [`A2cError`] if a setting is invalid.
    pub fn new(network: M, config: A2cConfig, seed: u64) -> Result<Self, A2cError> {
        config.validate()?;
        check_memory(network.state_width(), config.accumulation_steps, None)?;
        let values = config.normalize_value.then(ValueNorm::default);
        Ok(Self {
            trainable: Trainable::new(network, config.optimizer)?.in_parts(config.accumulation_steps),
            config,
            seed,
            rollouts: 0,
            values,
            recordings: Recordings::default(),
        })
    }

    /// Whether gradient steps are replayed by now.
    pub fn is_recorded(&self) -> bool {
        self.recordings.is_in_use()
    }

    /// The settings.
    pub fn config(&self) -> &A2cConfig {
        &self.config
    }

    /// Network and optimizer.
    pub fn trainable(&self) -> &Trainable<M> {
        &self.trainable
    }

    fn cut(&self) -> Cut {
        Cut::of(self.trainable.plain(), self.config.n_steps, self.config.n_steps)
    }

    /// [`A2c::compute`], or its replay.
    fn learn(&mut self, batch: Rollout<M::Obs, M::Action>, step: Step) -> Reports<4> {
        let update = Update { batch, numbers: Vec::new(), learning_rates: &[Some(step.learning_rate)], variant: 0 };
        self.replayed(update, |a2c, batch, _| a2c.compute(&batch, step))
    }

    /// One gradient step.
    fn compute(&mut self, batch: &Rollout<M::Obs, M::Action>, step: Step) -> Reports<4> {
        let config = &self.config;
        let weight = self.trainable.plain().choice(&batch.obs).map(choice_weight);
        let [advantage, returns] = [&batch.advantage, &batch.returns].map(LossData::Rows);
        let data = Data::new([advantage, returns, weights(weight.as_ref())]);
        let data = if config.normalize_advantage { data.standardize(0, 2) } else { data };
        let sequences = batch.as_sequences(config.n_steps);
        let forward = EvaluatedActions { obs: &batch.obs, action: &batch.action, sequences: sequences.as_ref() };
        let loss = PolicyGradient { vf_coef: config.vf_coef, ent_coef: config.ent_coef };
        self.trainable.learn(&forward, data, &loss, step, |_| true).reports
    }
}

/// What a loss reports behind its value.
const MEANS: [&str; 3] = ["train/policy_loss", "train/value_loss", "train/entropy_loss"];

impl<M: ActorCritic + Module> Learner for A2c<M> {
    type Batch = Rollout<M::Obs, M::Action>;
    type Policy = M;

    fn update(&mut self, mut rollout: Self::Batch, progress: Progress) -> Metrics {
        let critic = [rollout.value.clone(), rollout.returns.clone()];
        if let Some(values) = &mut self.values {
            values.update(&rollout.returns);
            [rollout.value, rollout.returns] = [rollout.value, rollout.returns].map(|x| values.scale().normalize(x));
        }
        let learning_rate = self.config.learning_rate.at(progress.fraction());
        let step = Step::new(learning_rate, self.config.max_grad_norm);
        let batch_size = self.config.batch_size.unwrap_or(usize::MAX);
        let rng = &mut named_rng(self.seed, "minibatch", self.rollouts);
        let reports: Vec<_> =
            rollout.batches(self.cut(), batch_size, rng).map(|batch| self.learn(batch, step)).collect();
        self.rollouts += 1;

        let mut metrics = Metrics::default();
        metrics.push("train/learning_rate", learning_rate);
        metrics.push("train/n_updates", self.rollouts as f64);
        self.trainable.report_loss_scale(["train/loss_scale", "train/skipped_steps"], &mut metrics);
        metrics.push_from(vec![Reports::join(reports).flatten(0, 1)], |numbers| {
            let (reports, _) = numbers[0].as_chunks::<4>();
            MEANS.into_iter().zip(1..).map(|(name, place)| (name, mean_of(reports, place))).collect()
        });
        push_of_rollout(&mut metrics, critic, self.trainable.plain().std());
        metrics
    }

    fn policy(&self, _: Progress) -> M {
        self.trainable.valid()
    }

    #[allow(unsafe_code, reason = "the contract of recordings")]
    unsafe fn record(&mut self, is_on: bool) {
        // Separate networks upload which rows are theirs.
        let fits = self.trainable.plain().n_agents() == 1;
        // SAFETY: the caller answers for networks; an update reads settings, which stay, and no other tensors.
        self.recordings = unsafe { Recordings::new(is_on && fits) };
    }

    fn n_recordings(&self) -> usize {
        usize::from(self.recordings.is_on())
    }
}

impl<M: ActorCritic + Module> OnPolicyLearner for A2c<M> {
    fn n_steps(&self) -> usize {
        self.config.n_steps
    }

    fn batch_rows(&self, n_rows: usize) -> usize {
        self.cut().batch_rows(self.config.batch_size.unwrap_or(n_rows), n_rows)
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

impl<M: ActorCritic + Module> Recordable for A2c<M> {
    type Batch = Rollout<M::Obs, M::Action>;
    type Computed = Reports<4>;

    fn recordings(&mut self) -> &mut Recordings<Self::Batch, Self::Computed> {
        &mut self.recordings
    }

    fn changing(&mut self) -> Vec<&mut dyn Changing> {
        vec![&mut self.trainable]
    }
}

impl<M: ActorCritic + Module> Persist for A2c<M> {
    fn save(&self) -> Saved {
        let mut saved = Saved::default();
        saved.put_policy(self.trainable.plain());
        saved.put_optimizer("network", &self.trainable);
        self.values.iter().for_each(|values| values.save(&mut saved));
        saved.put_number("rollouts", self.rollouts as f64);
        saved
    }

    fn load(&mut self, saved: &Saved) -> Result<(), ParamsError> {
        self.trainable.set_module(saved.policy(self.trainable.valid())?);
        saved.optimizer("network", &mut self.trainable)?;
        self.values = ValueNorm::load(saved, self.config.normalize_value)?;
        self.rollouts = saved.number("rollouts")? as u64;
        Ok(())
    }
}

/// `-A ln pi(a|s) + c_v (R - V)^2 - c_e H`, of log-probability, entropy and value, from advantage, target of the value and weight; then its
/// three parts. Rows with a single legal action have weight 0: they have no entropy and no policy gradient.
///
/// ```
/// use brasa_a2c::PolicyGradient;
/// use brasa_number::RowLoss;
///
/// let loss = PolicyGradient { vf_coef: 0.5, ent_coef: 0.0 };
/// // Log-probability, entropy and value; then advantage, target of the value and weight.
/// let [loss, policy, value, entropy] = loss.row([-0.5, 0.25, 1.0], [2.0, 3.0, 1.0]);
/// assert_eq!((policy, value, entropy), (1.0, 4.0, -0.25));
/// assert_eq!(loss, 1.0 + 0.5 * 4.0);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PolicyGradient {
    /// `c_v`.
    pub vf_coef: f64,
    /// `c_e`. Without a bonus the entropy is only a metric.
    pub ent_coef: f64,
}

impl RowLoss<3, 3, 4> for PolicyGradient {
    #[inline(always)]
    fn row<N: Number>(&self, [log_prob, entropy, value]: [N; 3], [advantage, returns, weight]: [N; 3]) -> [N; 4] {
        let policy = -(log_prob * (advantage * weight));
        let error = (returns - value).square();
        let certainty = -(entropy * weight);
        let loss = policy + error * self.vf_coef;
        [if self.ent_coef > 0.0 { loss + certainty * self.ent_coef } else { loss }, policy, error, certainty]
    }
}
