//! The learner.

use brasa_buffers::Transitions;
use brasa_core::analytic::ByResults;
use brasa_core::env::named_rng;
use brasa_core::{
    Critics, Learner, Metrics, NoiseDistribution, NoiseSpec, OffPolicyLearner, Policy, Progress, Reparameterized, Rows,
};
use brasa_device::precision;
use brasa_kernels::{HostTensor, LossData};
use brasa_nn::{
    Changing, Data, DrawnActions, Forward, Held, Learned, ParamsError, Part, Persist, Recordable, Recordings, Reports,
    Saved, Step, Trainable, Update, ValuesOfActions, bootstrapped, draw_noise, weights,
};
use brasa_number::{Number, RowLoss};
use burn::module::{Module, Param, ParamId};
use burn::tensor::Tensor;

use crate::{EntCoef, SacConfig, SacError};

/// The learner: actor, critics with their targets, temperature.
///
/// Soft actor-critic (Haarnoja et al. 2018, arXiv 1812.05905).
///
/// With actions `a' ~ pi(s')`, twin critics `Q_i`, target critics `Q^t_i` and temperature `alpha`:
///
/// - `y = r + discount (min_i Q^t_i(s', a') - alpha ln pi(a'|s'))`, the paper's equation 6 with two critics
/// - critics: `J_Q = 1/2 sum_i mean((Q_i(s, a) - y)^2)`, equation 5
/// - actor: `J_pi = mean(alpha ln pi(a|s) - min_i Q_i(s, a))` with `a ~ pi(s)`, equation 7; with `action_l2`, plus its multiple of the
///   mean of `a^2`
/// - temperature: `J_alpha = -mean(ln alpha (ln pi(a|s) + H))`, equation 18 with `ln alpha` instead of `alpha`, as in
///   the authors' code
///
/// Choices that the paper leaves open:
/// - the order is Stable-Baselines3's: critics, actor (with the new critics), targets; all of an update uses the temperature before its own
///   step, which therefore may come last;
/// - actions are in [-1, 1] for critics, log-probabilities and the target entropy, for any bounds of the environment;
/// - n-step returns do not contain the entropy of intermediate steps;
/// - log-probabilities are exact (see `brasa_nn::distribution::squashed`), without the 1e-6 of other implementations.
///
/// ```
/// use brasa_core::OffPolicyLearner;
/// # use brasa_core::env::{Space, named_rng};
/// use brasa_nn::{MlpCritics, MlpCriticsConfig, SquashedActor, SquashedActorConfig};
/// use brasa_sac::{Sac, SacConfig};
///
/// # let device = brasa_device::open_named("cpu")?.autodiff();
/// # let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::uniform_box(-2.0, 2.0, ["torque"]));
/// # let rng = &mut named_rng(0, "weights", 0);
/// let actor = SquashedActor::new(&SquashedActorConfig::default(), &obs, &action, &device, rng)?;
/// let critics = MlpCritics::new(&MlpCriticsConfig::default(), &obs, &action, &device, rng)?;
/// let learner = Sac::new(actor, critics, SacConfig { gamma: 0.98, ..Default::default() }, 0)?;
/// // The replay buffer uses the discount of the learner.
/// assert_eq!(learner.gamma(), 0.98);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sac<A: Policy, C> {
    actor: Trainable<A>,
    critics: Trainable<C>,
    targets: Held<C>,
    temperature: Temperature,
    config: SacConfig,
    seed: u64,
    updates: u64,
    /// The last step of the critics and its targets.
    learned: Option<(Learned<1, 1>, Tensor<1>)>,
    recordings: Recordings<Transitions<A::Obs, Tensor<2>>, Computed>,
}

/// What an update computes: the step of the critics with its targets, what the actor's step reports, the temperature before the update, and the
/// loss of the temperature if it is learned.
type Computed = ((Learned<1, 1>, Tensor<1>), (Reports<2>, (Tensor<1>, Option<Reports<1>>)));

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
        let actor = Trainable::new(actor, config.adam)?.in_parts(config.accumulation_steps);
        let temperature = Temperature::new(&config, target_entropy, &actor)?;
        let targets = Held::new(critics.valid());
        let critics = Trainable::new(critics, config.adam)?.in_parts(config.accumulation_steps);
        let recordings = Recordings::default();
        Ok(Self { actor, critics, targets, temperature, config, seed, updates: 0, learned: None, recordings })
    }

    /// Whether gradient steps are replayed by now.
    pub fn is_recorded(&self) -> bool {
        self.recordings.is_in_use()
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
        self.targets.get()
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
        let rates = [rate(self.config.critic_learning_rate), learning_rate, rate(self.config.ent_coef_learning_rate)];
        let is_due = self.updates.is_multiple_of(self.config.target_update_interval);
        let shape = noise[0].dims();
        let [of_critics, of_actor, of_temperature] = rates.map(Some);
        let learning_rates = match self.temperature {
            Temperature::Learned { .. } => &[of_critics, of_actor, None, of_temperature][..],
            Temperature::Fixed(_) => &[of_critics, of_actor, None],
        };
        let update = Update {
            batch: batch.on_one_device(),
            numbers: noise.map(|noise| noise.flatten(0, 1)).into(),
            learning_rates,
            variant: u32::from(is_due),
        };
        let steps = [step(rates[0]), step(rates[1]), Step::new(rates[2], None)];
        let compute = |sac: &mut Self, batch, numbers: Vec<Tensor<1>>| {
            sac.compute(&batch, [0, 1].map(|i| numbers[i].clone().reshape(shape)), steps, is_due)
        };
        let ((critics, target), (actor, (ent_coef, ent_coef_loss))) = self.replayed(update, compute);
        self.updates += 1;

        let mut metrics = Metrics::default();
        metrics.push("train/learning_rate", learning_rate);
        metrics.push("train/n_updates", self.updates as f64);
        self.critics.report_loss_scale(["train/critic_loss_scale", "train/critic_skipped_steps"], &mut metrics);
        self.actor.report_loss_scale(["train/actor_loss_scale", "train/actor_skipped_steps"], &mut metrics);
        actor.push_to(&mut metrics, |[loss, ..]| [("train/actor_loss", loss)]);
        // The sum over critics.
        let n_groups = critics.n_groups as f64;
        critics.reports.push_to(&mut metrics, move |[loss]| [("train/critic_loss", n_groups * loss)]);
        metrics.push_tensor("train/ent_coef", ent_coef);
        if let Some(loss) = ent_coef_loss {
            loss.push_to(&mut metrics, |[loss]| [("train/ent_coef_loss", loss)]);
        }
        self.learned = Some((critics, target));
        metrics
    }

    /// Steps of critics, actor and temperature, and of the targets if one is due.
    fn compute(
        &mut self,
        batch: &Transitions<A::Obs, Tensor<2>>,
        [noise, next_noise]: [Tensor<2>; 2],
        [of_critics, of_actor, of_temperature]: [Step; 3],
        is_due: bool,
    ) -> Computed {
        let ent_coef = self.temperature.value();
        let target = self.target(batch, next_noise, ent_coef.clone());
        let forward = ValuesOfActions { obs: &batch.obs, action: &batch.action };
        let data = Data::new([LossData::Rows(&target), weights(batch.weight.as_ref())]);
        let critics = self.critics.learn(&forward, data, &BellmanError, of_critics, |_| true);
        // With the new critics.
        let forward = DrawnActions { critics: self.critics.plain(), obs: &batch.obs, noise: &noise };
        let data = Data::new([LossData::Rows(&ent_coef)]);
        let loss = PolicyImprovement { action_l2: self.config.action_l2 };
        let actor = self.actor.learn(&forward, data, &loss, of_actor, |_| true);
        let ent_coef_loss = self.temperature.learn(&actor.reports.mean(LOG_PROB), of_temperature);
        if is_due {
            self.targets.follow(self.critics.held(), self.config.tau);
        }
        ((critics, target), (actor.reports, (ent_coef, ent_coef_loss)))
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

    #[allow(unsafe_code, reason = "the contract of recordings")]
    unsafe fn record(&mut self, is_on: bool) {
        // SAFETY: the caller answers for networks; an update reads settings, which stay, and no other tensors.
        self.recordings = unsafe { Recordings::new(is_on) };
    }

    fn n_recordings(&self) -> usize {
        usize::from(self.recordings.is_on()) * self.config.target_update_interval.min(2) as usize
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
        let (learned, target) = self.learned.as_ref().expect("there was an update");
        learned.distances(target)
    }
}

impl<A: Policy + Module, C: Module> Recordable for Sac<A, C> {
    type Batch = Transitions<A::Obs, Tensor<2>>;
    type Computed = Computed;

    fn recordings(&mut self) -> &mut Recordings<Self::Batch, Self::Computed> {
        &mut self.recordings
    }

    fn changing(&mut self) -> Vec<&mut dyn Changing> {
        let mut changing: Vec<&mut dyn Changing> = vec![&mut self.critics, &mut self.actor, &mut self.targets];
        if let Temperature::Learned { log, .. } = &mut self.temperature {
            changing.push(log);
        }
        changing
    }
}

impl<A: Policy + Module, C: Module> Persist for Sac<A, C> {
    fn save(&self) -> Saved {
        let mut saved = Saved::default();
        saved.put_policy(self.actor.plain());
        saved.put_optimizer("actor", &self.actor);
        saved.put_module("critics", self.critics.plain());
        saved.put_optimizer("critics", &self.critics);
        saved.put_module("targets", self.targets.get());
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
        self.targets.set(saved.module("targets", self.targets.get().clone())?);
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
#[derive(Debug)]
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

    /// One step towards the target entropy, from the mean log-probability `[1]`; the loss, if the temperature is learned.
    fn learn(&mut self, log_prob: &Tensor<1>, step: Step) -> Option<Reports<1>> {
        let Self::Learned { log, target_entropy } = self else { return None };
        let loss = Warmth { target_entropy: *target_entropy };
        let data = Data::new([LossData::Rows(log_prob)]);
        Some(log.learn(&Itself, data, &loss, step, |_| true).reports)
    }
}

/// The logarithm of the temperature, one row.
struct Itself;

impl Forward<LogTemperature, 1> for Itself {
    fn n_rows(&self) -> usize {
        1
    }

    fn recorded(&self, network: &LogTemperature, _: &Part) -> [Tensor<1>; 1] {
        [network.value.val()]
    }

    fn gradient(&self, network: &LogTemperature, _: &Part, by: &mut ByResults<'_, 1>) -> Option<Vec<f32>> {
        // With products in 16 bits the loss is scaled, and a step that is not finite is skipped.
        if precision().cast().is_some() {
            return None;
        }
        let value = HostTensor::of(&network.value.val())?;
        by([&value]).map(|[slope]| slope)
    }
}

/// `r + discount (min_i Q^t_i(s', a') - alpha ln pi(a'|s'))`, equation 6 of the paper for several critics.
///
/// # Shapes
/// - `reward`, `discount`, `next_log_prob`: `[n_rows]`; `discount` is 0 after a terminal step
/// - `next_q`: `[n_critics, n_rows]`
/// - `ent_coef`: `[1]`
/// - output: `[n_rows]`
///
/// ```
/// use brasa_sac::td_target;
/// use burn::tensor::Tensor;
///
/// # let device = brasa_device::open_named("cpu")?;
/// let row = |values: [f32; 2]| Tensor::<1>::from_floats(values, &device);
/// // Two transitions, the second of which ended its episode, and two critics.
/// let next_q = Tensor::<2>::from_floats([[5.0, 9.0], [4.0, 9.0]], &device);
/// let ent_coef = Tensor::<1>::from_floats([0.5], &device);
/// let target = td_target(row([1.0, 1.0]), row([0.5, 0.0]), next_q, row([-2.0, -2.0]), ent_coef);
/// assert_eq!(target.to_data().to_vec::<f32>()?, [1.0 + 0.5 * (4.0 + 1.0), 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn td_target(
    reward: Tensor<1>,
    discount: Tensor<1>,
    next_q: Tensor<2>,
    next_log_prob: Tensor<1>,
    ent_coef: Tensor<1>,
) -> Tensor<1> {
    bootstrapped(reward, discount, next_q, Some([next_log_prob, ent_coef]))
}

/// `w (Q_i - y)^2 / 2` of a critic, equation 5, from the target and the weight of the row.
///
/// ```
/// use brasa_number::RowLoss;
/// use brasa_sac::BellmanError;
///
/// // The value is 3, its target 1; the weight of the row is 0.5.
/// assert_eq!(BellmanError.row([3.0], [1.0, 0.5]), [1.0]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct BellmanError;

impl RowLoss<1, 2, 1> for BellmanError {
    #[inline(always)]
    fn row<N: Number>(&self, [value]: [N; 1], [target, weight]: [N; 2]) -> [N; 1] {
        [(value - target).square() * weight * 0.5]
    }
}

/// `alpha ln pi(a|s) - min_i Q_i(s, a)`, equation 7, and a multiple of the mean of `a^2`; then `ln pi(a|s)`. The temperature is the data.
///
/// ```
/// use brasa_number::RowLoss;
/// use brasa_sac::PolicyImprovement;
///
/// let loss = PolicyImprovement { action_l2: 0.0 };
/// // Log-probability -1, value 2, and the square of the action; the temperature is 0.5.
/// assert_eq!(loss.row([-1.0, 2.0, 0.25], [0.5]), [-2.5, -1.0]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PolicyImprovement {
    /// Weight of the squares; 0 for none.
    pub action_l2: f64,
}

/// The place of `ln pi(a|s)` in what [`PolicyImprovement`] reports.
const LOG_PROB: usize = 1;

impl RowLoss<3, 1, 2> for PolicyImprovement {
    #[inline(always)]
    fn row<N: Number>(&self, [log_prob, value, square]: [N; 3], [ent_coef]: [N; 1]) -> [N; 2] {
        let loss = log_prob * ent_coef - value;
        [if self.action_l2 > 0.0 { loss + square * self.action_l2 } else { loss }, log_prob]
    }
}

/// `-ln alpha (ln pi(a|s) + H)`, of `ln alpha` from `ln pi(a|s)`.
///
/// ```
/// use brasa_number::RowLoss;
/// use brasa_sac::Warmth;
///
/// // The policy has a log-probability of 3 where the target is an entropy of -1: the temperature rises.
/// let loss = Warmth { target_entropy: -1.0 };
/// assert_eq!(loss.row([1.0], [3.0]), [-2.0]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Warmth {
    /// `H`.
    pub target_entropy: f64,
}

impl RowLoss<1, 1, 1> for Warmth {
    #[inline(always)]
    fn row<N: Number>(&self, [log_ent_coef]: [N; 1], [log_prob]: [N; 1]) -> [N; 1] {
        [-(log_ent_coef * (log_prob + self.target_entropy))]
    }
}
