//! The learner.

use brasa_buffers::{BurnIn, ReplayedSequences, Transitions};
use brasa_core::env::{EnvError, EnvSpec, field};
use brasa_core::{ActionValues, Learner, Metrics, OffPolicyLearner, PolicyState, Progress, Rows, Sequences};
use brasa_kernels::LossData;
use brasa_nn::{
    Changing, Clip, Data, Held, Learned, ParamsError, Persist, Recordable, Recordings, Saved, Step, Trainable, Update,
    ValuesOfChoices, bootstrapped, check_memory, weights,
};
use brasa_number::{Number, RowLoss};
use burn::module::Module;
use burn::tensor::Tensor;

use crate::{DqnConfig, DqnError, DqnLoss, EpisodeClock, EpsilonGreedy};

/// The learner: a network with its optimizer, and the target network.
///
/// Deep Q-learning (Mnih et al. 2015), with the options of van Hasselt et al. 2016 (double), Wang et al. 2016 (dueling,
/// in the network), Schaul et al. 2016 (prioritized replay) and multi-step returns.
///
/// With the online network `Q` and the target network `Q^t`:
///
/// - `y = r + discount Q^t(s', argmax_a Q^t(s', a))`, or with `double` `Q^t(s', argmax_a Q(s', a))`, over legal actions
///   only
/// - `L = mean(w f(Q(s, a) - y))`, with `f` from [`DqnLoss`] and the importance weights `w` of prioritized replay, 1 without it; summed over
///   learners if the network holds several independent ones ([`ActionValues::n_learners`])
///
/// A network that remembers learns from sequences (Kapturowski et al. 2019): both networks compute what they remember behind the burn-in, and
/// from there the value of each step and that of the observation behind it, each with what was remembered there.
///
/// With `rescale`, `y = h(r + discount h^-1(Q^t(s', a')))` with `h(x) = sign(x) (sqrt(|x| + 1) - 1) + x / 1000` (Pohlen et al. 2018).
///
/// Choices that the papers leave open:
/// - the loss is Huber's by default, and the gradient norm of each learner is clipped (Stable-Baselines3);
/// - the period of the target network is in updates, not environment steps, so it does not depend on the number of
///   environments.
///
/// ```
/// use brasa_core::Progress;
/// # use brasa_core::env::{Space, named_rng};
/// use brasa_dqn::{Dqn, DqnConfig};
/// use brasa_nn::{QNetwork, QNetworkConfig};
///
/// # let device = brasa_device::open_named("cpu")?.autodiff();
/// # let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::Discrete(3));
/// let network = QNetwork::new(&QNetworkConfig::default(), &obs, &action, &device, &mut named_rng(0, "weights", 0))?;
/// let learner = Dqn::new(network, DqnConfig { exploration_fraction: 0.5, ..Default::default() })?;
/// // Exploration falls from 1 to 0.05 within half of the run.
/// assert_eq!(learner.epsilon(Progress::new(0, 1000)), 1.0);
/// assert!((learner.epsilon(Progress::new(500, 1000)) - 0.05).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Dqn<N: ActionValues> {
    online: Trainable<N>,
    target: Held<N>,
    config: DqnConfig,
    updates: u64,
    /// The step of the episode of the single environment, for settings that depend on it.
    clock: EpisodeClock,
    /// The last step and its targets.
    learned: Option<(Learned<1, 2>, Tensor<1>)>,
    recordings: Recordings<Transitions<N::Obs, Tensor<2>>, (Learned<1, 2>, Tensor<1>)>,
}

impl<N: ActionValues + Module> Dqn<N> {
    /// A learner for `network` on an autodiff device. It has no seed: an update draws no random numbers.
    ///
    /// # Errors
    /// [`DqnError`] if a setting is invalid.
    pub fn new(network: N, config: DqnConfig) -> Result<Self, DqnError> {
        config.validate()?;
        check_memory(network.state_width(), config.accumulation_steps, None)?;
        let target = Held::new(network.valid());
        let online = Trainable::new(network, config.optimizer)?.in_parts(config.accumulation_steps);
        let (clock, recordings) = (EpisodeClock::default(), Recordings::default());
        Ok(Self { online, target, config, updates: 0, clock, learned: None, recordings })
    }

    /// Whether gradient steps are replayed by now.
    pub fn is_recorded(&self) -> bool {
        self.recordings.is_in_use()
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
        self.target.get()
    }

    /// Probability of a random action at this point of the run.
    pub fn epsilon(&self, progress: Progress) -> f64 {
        match &self.config.greedy_ramp {
            Some(ramp) => 1.0 - ramp.greedy_share(self.clock),
            None => self.config.epsilon.at((progress.fraction() / self.config.exploration_fraction).min(1.0)),
        }
    }

    /// The targets, `[n_rows]`, detached. `first` has what the online and the target network remember before the steps of sequences.
    fn td_target(&self, batch: &Transitions<N::Obs, Tensor<2>>, first: Option<&[Tensor<2>; 2]>) -> Tensor<1> {
        let (online, target) = (self.online.plain(), self.target());
        let before = |network: &N, index: usize| match (&batch.sequences, first) {
            (Some(replayed), Some(first)) => before_next(network, batch, replayed, first[index].clone()),
            _ => PolicyState::default(),
        };
        let next_value = match (self.config.double, &batch.sequences) {
            (false, _) => target.best_from(batch.next_obs.clone(), &mut before(target, 1)).1,
            (true, None) => {
                let choice = online.best(batch.next_obs.clone()).0;
                target.values_of(batch.next_obs.clone(), choice)
            }
            (true, Some(_)) => {
                let choice = online.best_from(batch.next_obs.clone(), &mut before(online, 0)).0;
                let values = target.values_from(batch.next_obs.clone(), &mut before(target, 1));
                values.gather(1, choice.int()).squeeze_dim(1)
            }
        };
        let (reward, discount) = (batch.reward.clone(), batch.discount.clone());
        match self.config.rescale {
            true => rescaled(td_target(reward, discount, unscaled(next_value))),
            false => td_target(reward, discount, next_value),
        }
    }

    /// Whether the target is updated after update number `self.updates`.
    fn target_is_due(&self) -> bool {
        let count = if self.config.target_update_within_episode { self.clock.step } else { self.updates };
        count.is_multiple_of(self.config.target_update_interval)
    }

    /// One gradient step, and a step of the target network if one is due; with the targets.
    fn compute(
        &mut self,
        batch: Transitions<N::Obs, Tensor<2>>,
        step: Step,
        is_due: bool,
    ) -> (Learned<1, 2>, Tensor<1>) {
        let (burn_in, batch) = batch.burned_in();
        let first = batch.sequences.as_ref().map(|replayed| {
            [self.online.plain(), self.target()].map(|network| before_first(network, replayed, burn_in.as_ref()))
        });
        let target = self.td_target(&batch, first.as_ref());
        let sequences = batch
            .sequences
            .as_ref()
            .zip(first)
            .map(|(replayed, [state, _])| Sequences { state, starts: replayed.steps.starts.clone() });
        let forward = ValuesOfChoices { obs: &batch.obs, action: &batch.action, sequences: sequences.as_ref() };
        let data = Data::new([LossData::Rows(&target), weights(batch.weight.as_ref())]);
        let learned = self.online.learn(&forward, data, &self.config.loss, step, |_| true);
        if is_due {
            self.target.follow(self.online.held(), self.config.tau);
        }
        (learned, target)
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
        let step = self.step(learning_rate);
        self.updates += 1;
        let is_due = self.target_is_due();
        let update = Update {
            batch: batch.on_one_device(),
            numbers: Vec::new(),
            learning_rates: &[Some(learning_rate), None],
            variant: u32::from(is_due),
        };
        let (learned, target) = match update.batch.sequences {
            // A recording takes rows that stand alone.
            Some(_) => self.compute(update.batch, step, is_due),
            None => self.replayed(update, |dqn, batch, _| dqn.compute(batch, step, is_due)),
        };

        let mut metrics = Metrics::default();
        metrics.push("train/learning_rate", learning_rate);
        metrics.push("train/n_updates", self.updates as f64);
        self.online.report_loss_scale(["train/loss_scale", "train/skipped_steps"], &mut metrics);
        metrics.push("rollout/exploration_rate", self.epsilon(progress));
        learned.reports.push_to(&mut metrics, |[loss, q]| [("train/loss", loss), ("train/q", q)]);
        self.learned = Some((learned, target));
        metrics
    }

    fn policy(&self, progress: Progress) -> EpsilonGreedy<N> {
        EpsilonGreedy { network: self.online.valid(), epsilon: self.epsilon(progress) }
    }

    #[allow(unsafe_code, reason = "the contract of recordings")]
    unsafe fn record(&mut self, is_on: bool) {
        // SAFETY: the caller answers for networks; an update reads settings, which stay, and no other tensors.
        self.recordings = unsafe { Recordings::new(is_on) };
    }

    fn n_recordings(&self) -> usize {
        // Sequences are not recorded.
        let is_on = self.recordings.is_on() && self.online.plain().state_width() == 0;
        usize::from(is_on) * self.config.target_update_interval.min(2) as usize
    }
}

impl<N: ActionValues + Module> OffPolicyLearner for Dqn<N> {
    fn gamma(&self) -> f64 {
        self.config.gamma
    }

    fn td_error(&self) -> Tensor<1> {
        let (learned, target) = self.learned.as_ref().expect("there was an update");
        learned.distances(target)
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

impl<N: ActionValues + Module> Recordable for Dqn<N> {
    type Batch = Transitions<N::Obs, Tensor<2>>;
    type Computed = (Learned<1, 2>, Tensor<1>);

    fn recordings(&mut self) -> &mut Recordings<Self::Batch, Self::Computed> {
        &mut self.recordings
    }

    fn changing(&mut self) -> Vec<&mut dyn Changing> {
        vec![&mut self.online, &mut self.target]
    }
}

impl<N: ActionValues + Module> Persist for Dqn<N> {
    fn save(&self) -> Saved {
        let mut saved = Saved::default();
        saved.put_policy(self.online.plain());
        saved.put_optimizer("network", &self.online);
        saved.put_module("target", self.target.get());
        saved.put_number("updates", self.updates as f64);
        saved.put_number("clock.episode", self.clock.episode as f64);
        saved.put_number("clock.step", self.clock.step as f64);
        saved
    }

    fn load(&mut self, saved: &Saved) -> Result<(), ParamsError> {
        self.online.set_module(saved.policy(self.online.valid())?);
        saved.optimizer("network", &mut self.online)?;
        self.target.set(saved.module("target", self.target.get().clone())?);
        self.updates = saved.number("updates")? as u64;
        self.clock.episode = saved.number("clock.episode")? as u64;
        self.clock.step = saved.number("clock.step")? as u64;
        Ok(())
    }
}

/// `[n_sequences, state_width]`: what `network` remembers before the steps to learn from.
fn before_first<N: ActionValues>(
    network: &N,
    replayed: &ReplayedSequences,
    burn_in: Option<&BurnIn<N::Obs>>,
) -> Tensor<2> {
    let Some(BurnIn { obs, steps }) = burn_in else { return replayed.steps.state.clone() };
    let ([n_rows], [n, _]) = (steps.starts.dims(), steps.state.dims());
    network.states_of_sequences(obs.clone(), steps).slice(n_rows - n..n_rows)
}

/// What `network` remembers before the next observation of each row, from `state` before the first steps.
fn before_next<N: ActionValues>(
    network: &N,
    batch: &Transitions<N::Obs, Tensor<2>>,
    replayed: &ReplayedSequences,
    state: Tensor<2>,
) -> PolicyState {
    let steps = Sequences { state, starts: replayed.steps.starts.clone() };
    let states = network.states_of_sequences(batch.obs.clone(), &steps);
    PolicyState { numbers: Some(Rows::select(&states, replayed.last.clone())) }
}

/// `h(x) = sign(x) (sqrt(|x| + 1) - 1) + SLOPE x`: returns that a network can represent together, however large.
///
/// ```
/// use brasa_dqn::{rescaled, unscaled};
/// use burn::tensor::Tensor;
///
/// let returns = Tensor::<1>::from_floats([-99.0, 0.0, 3.0], &brasa_device::open_named("cpu")?);
/// let values = rescaled(returns);
/// assert_eq!(brasa_core::read_back(values.clone()), [-9.099, 0.0, 1.003]);
/// let back = brasa_core::read_back(unscaled(values));
/// assert!(back.iter().zip([-99.0, 0.0, 3.0]).all(|(x, y)| (x - y).abs() < 1e-3));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn rescaled(x: Tensor<1>) -> Tensor<1> {
    x.clone().sign() * ((x.clone().abs() + 1.0).sqrt() - 1.0) + x * SLOPE
}

/// The inverse of [`rescaled`].
pub fn unscaled(x: Tensor<1>) -> Tensor<1> {
    // The quotient in place of a difference of numbers near 1, divided by the slope.
    let sum = x.clone().abs() + (1.0 + SLOPE);
    let root = (sum.clone() * (4.0 * SLOPE) + 1.0).sqrt() + 1.0;
    x.sign() * ((sum * 2.0 / root).square() - 1.0)
}

/// The slope of [`rescaled`] where returns are large, so that it has an inverse.
const SLOPE: f32 = 1e-3;

/// `r + discount Q^t(s', a')` for the chosen next action `a'`.
///
/// # Shapes
/// - `reward`, `discount`: `[n_rows]`; `discount` is 0 after a terminal step
/// - `next_value`: `[n_rows]`, the target network's value of the next action
/// - output: `[n_rows]`
///
/// ```
/// use brasa_dqn::td_target;
/// use burn::tensor::Tensor;
///
/// # let device = brasa_device::open_named("cpu")?;
/// let row = |values: [f32; 2]| Tensor::<1>::from_floats(values, &device);
/// // The second transition ended its episode.
/// let target = td_target(row([1.0, 1.0]), row([0.5, 0.0]), row([4.0, 9.0]));
/// assert_eq!(target.to_data().to_vec::<f32>()?, [3.0, 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn td_target(reward: Tensor<1>, discount: Tensor<1>, next_value: Tensor<1>) -> Tensor<1> {
    bootstrapped(reward, discount, next_value.unsqueeze(), None)
}

impl RowLoss<1, 2, 2> for DqnLoss {
    #[inline(always)]
    fn row<N: Number>(&self, [value]: [N; 1], [target, weight]: [N; 2]) -> [N; 2] {
        let error = value - target;
        let loss = match self {
            Self::Huber => {
                let error = error.abs();
                let cut = error.min_of(1.0);
                (error - cut * 0.5) * cut
            }
            Self::Squared => error.square(),
        };
        [loss * weight, value]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_number::Dual;

    #[test]
    fn the_loss_is_quadratic_within_1_and_linear_outside() {
        let (mut sum, weights) = (0.0, [1.0, 2.0, 1.0, 1.0, 0.5]);
        for ((error, weight), expected) in
            [-3.0, -0.5, 0.0, 0.8, 2.0].into_iter().zip(weights).zip([-1.0, -1.0, 0.0, 0.8, 0.5])
        {
            let [loss, value] = DqnLoss::Huber.row(Dual::variables([error + 7.0]), [7.0, weight].map(Dual::constant));
            assert!((loss.by(0) - expected).abs() < 1e-12, "{error}: {}", loss.by(0));
            assert_eq!(value.value, error + 7.0);
            sum += loss.value;
        }
        assert!((sum - (2.5 + 2.0 * 0.125 + 0.0 + 0.32 + 0.5 * 1.5)).abs() < 1e-12);
    }

    #[test]
    fn the_squared_loss_grows_with_the_error_everywhere() {
        for (error, weight) in [(-3.0, 1.0), (0.5, 2.0), (2.0, 0.5)] {
            let [loss, value] = DqnLoss::Squared.row(Dual::variables([error + 7.0]), [7.0, weight].map(Dual::constant));
            assert_eq!(
                (loss.value, loss.by(0), value.value),
                (weight * error * error, 2.0 * weight * error, error + 7.0)
            );
        }
    }
}
