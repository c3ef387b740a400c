//! The learner.

use brasa_buffers::Transitions;
use brasa_core::env::named_rng;
use brasa_core::{
    Critics, Deterministic, Explore, Learner, Metrics, NoiseDistribution, NoiseSpec, OffPolicyLearner, Policy,
    Progress, RandomWarmup,
};
use brasa_kernels::LossData;
use brasa_nn::{
    Changing, Data, GreedyActions, Held, Learned, ParamsError, Persist, Recordable, Recordings, Reports, Saved, Step,
    Trainable, Update, ValuesOfActions, bootstrapped, draw_noise, weights,
};
use brasa_number::{Number, RowLoss};
use burn::module::Module;
use burn::tensor::Tensor;

use crate::{GaussianExploration, Td3Config, Td3Error};

/// The learner: actor and critics with their optimizers, and the targets of both.
///
/// Twin delayed deep deterministic policy gradient (Fujimoto, van Hoof, Meger 2018, arXiv 1802.09477).
///
/// With the deterministic actor `mu`, critics `Q_i`, and their targets `mu^t` and `Q^t_i`:
///
/// - `a' = clip(mu^t(s') + clip(eps, -c, c), -1, 1)` with `eps ~ N(0, sigma)`, target policy smoothing, section 5.3
/// - `y = r + discount min_i Q^t_i(s', a')`, clipped double Q-learning, section 4.2
/// - critics, at every update: `J_Q = sum_i mean((Q_i(s, a) - y)^2)`, algorithm 1
/// - actor, at every `policy_delay`-th update: `J_mu = -mean(Q_1(s, mu(s)))`, whose gradient is the deterministic policy
///   gradient of algorithm 1
/// - targets, right after the actor: `theta^t <- (1 - tau) theta^t + tau theta`, section 5.2
///
/// Choices that the paper leaves open, and deviations from it:
/// - the order is that of algorithm 1 and of Stable-Baselines3: critics, then the actor with the new critics, then
///   targets;
/// - actions are in [-1, 1] for actor, critics and noise, for any bounds of the environment;
/// - target actions are clipped to [-1, 1], as in the authors' code and in Stable-Baselines3, but not in algorithm 1;
/// - any number of critics: targets use the minimum, the actor uses the first;
/// - the initial uniformly random actions have no additional noise (Stable-Baselines3 adds its noise to them);
/// - the actor's update computes all critics although it needs only the first, because they are one batched network.
///
/// ```
/// use brasa_core::OffPolicyLearner;
/// # use brasa_core::env::{Space, named_rng};
/// use brasa_nn::{DeterministicActor, DeterministicActorConfig, MlpCritics, MlpCriticsConfig};
/// use brasa_td3::{Td3, Td3Config};
///
/// # let device = brasa_device::open_named("cpu")?.autodiff();
/// # let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::uniform_box(-2.0, 2.0, ["torque"]));
/// # let rng = &mut named_rng(0, "weights", 0);
/// let actor = DeterministicActor::new(&DeterministicActorConfig::default(), &obs, &action, &device, rng)?;
/// let critics = MlpCritics::new(&MlpCriticsConfig::default(), &obs, &action, &device, rng)?;
/// let learner = Td3::new(actor, critics, Td3Config { gamma: 0.98, ..Default::default() }, 0)?;
/// // The replay buffer uses the discount of the learner.
/// assert_eq!(learner.gamma(), 0.98);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Td3<A: Policy, C> {
    actor: Trainable<A>,
    critics: Trainable<C>,
    target_actor: Held<A>,
    target_critics: Held<C>,
    config: Td3Config,
    seed: u64,
    updates: u64,
    /// The last step of the critics and its targets.
    learned: Option<(Learned<1, 1>, Tensor<1>)>,
    /// `[1]`: loss of the latest update of the actor.
    actor_loss: Option<Reports<1>>,
    recordings: Recordings<Transitions<A::Obs, Tensor<2>>, Computed>,
}

/// What an update computes: the step of the critics with its targets, and the loss of the actor where that takes a step.
type Computed = ((Learned<1, 1>, Tensor<1>), Option<Reports<1>>);

impl<A, C> Td3<A, C>
where
    A: Deterministic<Action = Tensor<2>, Extra = ()> + RandomWarmup + Module,
    C: Critics<Obs = A::Obs, Action = Tensor<2>> + Module,
{
    /// A learner for `actor` and `critics` on an autodiff device; `seed` determines the noise of updates.
    ///
    /// `actor.act(obs, Explore::Greedy)` is `mu(s)`, differentiable, and in [-1, 1].
    ///
    /// # Errors
    /// [`Td3Error`] if a setting is invalid.
    pub fn new(actor: A, critics: C, config: Td3Config, seed: u64) -> Result<Self, Td3Error> {
        config.validate()?;
        let (target_actor, target_critics) = (Held::new(actor.valid()), Held::new(critics.valid()));
        let actor = Trainable::new(actor, config.adam)?.in_parts(config.accumulation_steps);
        let critics = Trainable::new(critics, config.adam)?.in_parts(config.accumulation_steps);
        let (learned, actor_loss, recordings) = (None, None, Recordings::default());
        Ok(Self {
            actor,
            critics,
            target_actor,
            target_critics,
            config,
            seed,
            updates: 0,
            learned,
            actor_loss,
            recordings,
        })
    }

    /// Whether gradient steps are replayed by now.
    pub fn is_recorded(&self) -> bool {
        self.recordings.is_in_use()
    }

    /// The settings.
    pub fn config(&self) -> &Td3Config {
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

    /// The target actor, on the non-autodiff device.
    pub fn target_actor(&self) -> &A {
        self.target_actor.get()
    }

    /// The target critics, on the non-autodiff device.
    pub fn target_critics(&self) -> &C {
        self.target_critics.get()
    }

    /// Standard normal noise for the target actions of the current update, one upload.
    fn noise(&self, batch: &Transitions<A::Obs, Tensor<2>>) -> Tensor<2> {
        let [n_rows, width] = batch.action.dims();
        let spec = NoiseSpec { width, distribution: NoiseDistribution::Normal, resample_every: 1 };
        draw_noise(spec, n_rows, &mut named_rng(self.seed, "update", self.updates), &batch.reward.device())
    }

    /// One update with the given standard normal noise for target policy smoothing.
    ///
    /// # Shapes
    /// - `noise`: `[n_rows, n_actions]`
    pub fn update_with(
        &mut self,
        batch: Transitions<A::Obs, Tensor<2>>,
        noise: Tensor<2>,
        progress: Progress,
    ) -> Metrics {
        let learning_rate = self.config.learning_rate.at(progress.fraction());
        let step = Step::new(learning_rate, self.config.max_grad_norm);
        self.updates += 1;

        let improves = self.updates.is_multiple_of(self.config.policy_delay);
        let shape = noise.dims();
        let of_actor = improves.then_some(learning_rate);
        let update = Update {
            batch: batch.on_one_device(),
            numbers: vec![noise.flatten(0, 1)],
            learning_rates: &[Some(learning_rate), of_actor, None, None],
            variant: 0,
        };
        let compute = |td3: &mut Self, batch, mut numbers: Vec<Tensor<1>>| {
            td3.compute(&batch, numbers.remove(0).reshape(shape), step, improves)
        };
        let ((critics, target), actor_loss) = self.replayed(update, compute);
        let critic_loss = (critics.reports.clone(), critics.n_groups as f64);
        self.learned = Some((critics, target));
        self.actor_loss = actor_loss.or(self.actor_loss.take());
        self.metrics(learning_rate, critic_loss)
    }

    /// A step of the critics, and of the actor and all targets if it `improves`.
    fn compute(
        &mut self,
        batch: &Transitions<A::Obs, Tensor<2>>,
        noise: Tensor<2>,
        step: Step,
        improves: bool,
    ) -> Computed {
        let target = self.target(batch, noise);
        let forward = ValuesOfActions { obs: &batch.obs, action: &batch.action };
        let data = Data::new([LossData::Rows(&target), weights(batch.weight.as_ref())]);
        let critics = self.critics.learn(&forward, data, &BellmanError, step, |_| true);
        let actor_loss = improves.then(|| {
            let forward = GreedyActions { critics: self.critics.plain(), obs: &batch.obs };
            let actor = self.actor.learn(&forward, Data::new([]), &PolicyImprovement, step, |_| true);
            self.target_actor.follow(self.actor.held(), self.config.tau);
            self.target_critics.follow(self.critics.held(), self.config.tau);
            actor.reports
        });
        ((critics, target), actor_loss)
    }

    /// The targets of the critics, `[n_rows]`, detached.
    fn target(&self, batch: &Transitions<A::Obs, Tensor<2>>, noise: Tensor<2>) -> Tensor<1> {
        let (next_action, ()) = self.target_actor().act(batch.next_obs.clone(), Explore::Greedy);
        let (std, clip) = (self.config.target_policy_noise, self.config.target_noise_clip);
        let next_action = target_action(next_action, noise, std, clip);
        let next_q = self.target_critics().values(batch.next_obs.clone(), next_action);
        td_target(batch.reward.clone(), batch.discount.clone(), next_q)
    }

    fn metrics(&self, learning_rate: f64, (critics, n_groups): (Reports<1>, f64)) -> Metrics {
        let mut metrics = Metrics::default();
        metrics.push("train/learning_rate", learning_rate);
        metrics.push("train/n_updates", self.updates as f64);
        self.critics.report_loss_scale(["train/critic_loss_scale", "train/critic_skipped_steps"], &mut metrics);
        self.actor.report_loss_scale(["train/actor_loss_scale", "train/actor_skipped_steps"], &mut metrics);
        // The sum over critics.
        critics.push_to(&mut metrics, move |[loss]| [("train/critic_loss", n_groups * loss)]);
        if let Some(actor) = &self.actor_loss {
            actor.push_to(&mut metrics, |[loss]| [("train/actor_loss", loss)]);
        }
        metrics
    }
}

impl<A, C> Learner for Td3<A, C>
where
    A: Deterministic<Action = Tensor<2>, Extra = ()> + RandomWarmup + Module,
    C: Critics<Obs = A::Obs, Action = Tensor<2>> + Module,
{
    type Batch = Transitions<A::Obs, Tensor<2>>;
    type Policy = GaussianExploration<A>;

    fn update(&mut self, batch: Self::Batch, progress: Progress) -> Metrics {
        let noise = self.noise(&batch);
        self.update_with(batch, noise, progress)
    }

    fn policy(&self, _: Progress) -> GaussianExploration<A> {
        GaussianExploration { actor: self.actor.valid(), std: self.config.exploration_noise }
    }

    #[allow(unsafe_code, reason = "the contract of recordings")]
    unsafe fn record(&mut self, is_on: bool) {
        // SAFETY: the caller answers for networks; an update reads settings, which stay, and no other tensors.
        self.recordings = unsafe { Recordings::new(is_on) };
    }

    fn n_recordings(&self) -> usize {
        usize::from(self.recordings.is_on()) * self.config.policy_delay.min(2) as usize
    }
}

impl<A, C> OffPolicyLearner for Td3<A, C>
where
    A: Deterministic<Action = Tensor<2>, Extra = ()> + RandomWarmup + Module,
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

impl<A: Policy + Module, C: Module> Recordable for Td3<A, C> {
    type Batch = Transitions<A::Obs, Tensor<2>>;
    type Computed = Computed;

    fn recordings(&mut self) -> &mut Recordings<Self::Batch, Self::Computed> {
        &mut self.recordings
    }

    fn changing(&mut self) -> Vec<&mut dyn Changing> {
        vec![&mut self.critics, &mut self.actor, &mut self.target_actor, &mut self.target_critics]
    }
}

impl<A: Policy + Module, C: Module> Persist for Td3<A, C> {
    fn save(&self) -> Saved {
        let mut saved = Saved::default();
        saved.put_policy(self.actor.plain());
        saved.put_optimizer("actor", &self.actor);
        saved.put_module("critics", self.critics.plain());
        saved.put_optimizer("critics", &self.critics);
        saved.put_module("target_actor", self.target_actor.get());
        saved.put_module("target_critics", self.target_critics.get());
        saved.put_number("updates", self.updates as f64);
        if let Some(loss) = &self.actor_loss {
            // Waits for the device, as saving does.
            saved.put_number("actor_loss", loss.read(0));
        }
        saved
    }

    fn load(&mut self, saved: &Saved) -> Result<(), ParamsError> {
        self.actor.set_module(saved.policy(self.actor.valid())?);
        saved.optimizer("actor", &mut self.actor)?;
        self.critics.set_module(saved.module("critics", self.critics.valid())?);
        saved.optimizer("critics", &mut self.critics)?;
        self.target_actor.set(saved.module("target_actor", self.target_actor.get().clone())?);
        self.target_critics.set(saved.module("target_critics", self.target_critics.get().clone())?);
        self.updates = saved.number("updates")? as u64;
        // Absent in states saved before the first update of the actor.
        let loss = saved.numbers.get("actor_loss");
        self.actor_loss = loss.map(|loss| Reports::Host([*loss]));
        Ok(())
    }
}

/// `clip(mu^t(s') + clip(std noise, -clip, clip), -1, 1)`, target policy smoothing, section 5.3 of the paper.
///
/// # Shapes
/// - `action`: `[n_rows, n_actions]`, the target actor's
/// - `noise`: `[n_rows, n_actions]`, standard normal
/// - output: `[n_rows, n_actions]`
///
/// ```
/// use brasa_td3::target_action;
/// use burn::tensor::Tensor;
///
/// # let device = brasa_device::open_named("cpu")?;
/// let action = Tensor::<2>::from_floats([[0.0, 0.0, 0.75]], &device);
/// let noise = Tensor::<2>::from_floats([[0.5, -4.0, 4.0]], &device);
/// // Noise is cut at 0.5, and actions at 1.
/// let smoothed = target_action(action, noise, 0.5, 0.5);
/// assert_eq!(smoothed.to_data().to_vec::<f32>()?, [0.25, -0.5, 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn target_action(action: Tensor<2>, noise: Tensor<2>, std: f64, clip: f64) -> Tensor<2> {
    (action + (noise * std).clamp(-clip, clip)).clamp(-1.0, 1.0)
}

/// `r + discount min_i Q^t_i(s', a')`, clipped double Q-learning, section 4.2.
///
/// # Shapes
/// - `reward`, `discount`: `[n_rows]`; `discount` is 0 after a terminal step
/// - `next_q`: `[n_critics, n_rows]`, the target critics' at the target action
/// - output: `[n_rows]`
///
/// ```
/// use brasa_td3::td_target;
/// use burn::tensor::Tensor;
///
/// # let device = brasa_device::open_named("cpu")?;
/// let row = |values: [f32; 2]| Tensor::<1>::from_floats(values, &device);
/// // Two transitions, the second of which ended its episode, and two critics.
/// let next_q = Tensor::<2>::from_floats([[5.0, 9.0], [4.0, 9.0]], &device);
/// let target = td_target(row([1.0, 1.0]), row([0.5, 0.0]), next_q);
/// assert_eq!(target.to_data().to_vec::<f32>()?, [1.0 + 0.5 * 4.0, 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn td_target(reward: Tensor<1>, discount: Tensor<1>, next_q: Tensor<2>) -> Tensor<1> {
    bootstrapped(reward, discount, next_q, None)
}

/// `w (Q_i - y)^2` of a critic, algorithm 1, from the target and the weight of the row.
///
/// ```
/// use brasa_number::RowLoss;
/// use brasa_td3::BellmanError;
///
/// // The value is 3, its target 1; the weight of the row is 0.5.
/// assert_eq!(BellmanError.row([3.0], [1.0, 0.5]), [2.0]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct BellmanError;

impl RowLoss<1, 2, 1> for BellmanError {
    #[inline(always)]
    fn row<N: Number>(&self, [value]: [N; 1], [target, weight]: [N; 2]) -> [N; 1] {
        [(value - target).square() * weight]
    }
}

/// `-Q_1(s, mu(s))`, algorithm 1.
///
/// ```
/// use brasa_number::RowLoss;
/// use brasa_td3::PolicyImprovement;
///
/// // A step along its gradient raises the value of the actor's action.
/// assert_eq!(PolicyImprovement.row([3.0], []), [-3.0]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PolicyImprovement;

impl RowLoss<1, 0, 1> for PolicyImprovement {
    #[inline(always)]
    fn row<N: Number>(&self, [value]: [N; 1], []: [N; 0]) -> [N; 1] {
        [-value]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_core::Obs;
    use brasa_core::env::Space;
    use brasa_nn::{
        Boxed, CriticsRole, DeterministicActor, DeterministicActorConfig, DeterministicActorRole, MlpCritics,
        MlpCriticsConfig,
    };
    use burn::tensor::Int;

    fn read<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    fn learner(config: Td3Config) -> Td3<DeterministicActor, MlpCritics> {
        let (actor, critics) = networks();
        Td3::new(actor, critics, config, 3).expect("it is valid")
    }

    fn networks() -> (DeterministicActor, MlpCritics) {
        let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x"]), Space::uniform_box(-2.0, 2.0, ["a", "b"]));
        let (device, rng) = (brasa_test::device().autodiff(), &mut named_rng(2, "weights", 0));
        let actor = DeterministicActorConfig { hidden: vec![8], ..DeterministicActorConfig::default() };
        let actor = DeterministicActor::new(&actor, &obs, &action, &device, rng).expect("it is valid");
        let critics = MlpCriticsConfig { hidden: vec![8], ..MlpCriticsConfig::default() };
        let critics = MlpCritics::new(&critics, &obs, &action, &device, rng).expect("it is valid");
        (actor, critics)
    }

    fn batch() -> Transitions<Obs, Tensor<2>> {
        let device = brasa_test::device();
        Transitions {
            obs: Obs::new(Tensor::from_floats([[0.5], [-0.25], [0.125]], &device)),
            action: Tensor::from_floats([[0.1, 0.2], [-0.7, 0.9], [0.0, -1.0]], &device),
            reward: Tensor::from_floats([1.0, -2.0, 0.5], &device),
            next_obs: Obs::new(Tensor::from_floats([[0.25], [-0.5], [0.75]], &device)),
            discount: Tensor::from_floats([0.99, 0.0, 0.99], &device),
            weight: None,
            sequences: None,
            rows: Tensor::<1, Int>::arange(0..3, &device),
        }
    }

    #[test]
    fn noise_on_targets_is_cut_and_so_is_the_action() {
        let device = brasa_test::device();
        let action = Tensor::from_floats([[0.0, 0.25, 0.75, -0.75]], &device);
        let noise = Tensor::from_floats([[1.0, -4.0, 4.0, -1.0]], &device);
        assert_eq!(read(target_action(action, noise, 0.25, 0.5)), [0.25, -0.25, 1.0, -1.0]);
    }

    #[test]
    fn losses_are_those_of_the_paper() {
        let device = brasa_test::device();
        let row = |values: [f32; 2]| Tensor::<1>::from_floats(values, &device);
        let q = Tensor::<2>::from_floats([[1.0, 2.0], [0.0, 4.0]], &device);
        assert_eq!(read(td_target(row([1.0, 3.0]), row([0.5, 0.0]), q.clone())), [1.0, 3.0]);
        assert_eq!(BellmanError.row([2.0], [3.5, 0.5]), [1.125]);
        assert_eq!(PolicyImprovement.row([1.5], []), [-1.5]);
    }

    #[test]
    fn actor_and_targets_wait_for_every_third_update() {
        let mut td3 = learner(Td3Config { policy_delay: 3, ..Td3Config::default() });
        for update in 1..=7 {
            let before = td3.save();
            let metrics = td3.update(batch(), Progress::new(0, 1)).read().expect("every figure is finite");
            let after = td3.save();
            let same = |part: &str| {
                let of = |saved: &Saved| {
                    let arrays = saved.policy.iter().chain(&saved.trainer);
                    arrays
                        .filter(|(name, _)| name.starts_with(part))
                        .map(|(_, array)| array.clone())
                        .collect::<Vec<_>>()
                };
                assert!(!of(&after).is_empty(), "{part}");
                of(&before) == of(&after)
            };
            assert!(!same("critics."), "{update}");
            for part in ["network.", "actor.optimizer", "target_actor.", "target_critics."] {
                assert_eq!(same(part), update % 3 != 0, "{part} at update {update}");
            }
            assert_eq!(metrics.iter().any(|(name, _)| *name == "train/actor_loss"), update >= 3);
        }
    }

    #[test]
    fn a_loaded_learner_goes_on_as_the_saved_one() {
        for updates in [1, 2, 5] {
            let mut whole = learner(Td3Config::default());
            let update = |td3: &mut Td3<_, _>| td3.update(batch(), Progress::new(0, 1)).read().expect("finite");
            (0..updates).for_each(|_| drop(update(&mut whole)));
            let saved = whole.save();
            let mut resumed = learner(Td3Config::default());
            resumed.load(&saved).expect("it is the same learner");
            assert!(resumed.save() == saved);
            for _ in 0..3 {
                assert_eq!(update(&mut whole), update(&mut resumed));
            }
            assert!(whole.save() == resumed.save());
        }
    }

    #[test]
    fn networks_whose_types_are_hidden_learn_alike() {
        let (actor, critics) = networks();
        let (actor, critics) = (Boxed::<DeterministicActorRole>::new(actor), Boxed::<CriticsRole>::new(critics));
        let mut boxed = Td3::new(actor, critics, Td3Config::default(), 3).expect("it is valid");
        let mut plain = learner(Td3Config::default());
        for _ in 0..4 {
            boxed.update(batch(), Progress::new(0, 1));
            plain.update(batch(), Progress::new(0, 1));
        }
        assert!(boxed.save() == plain.save());
        let act = |action: (Tensor<2>, ())| read(action.0);
        let progress = Progress::new(0, 1);
        let [boxed, plain] = [
            act(boxed.policy(progress).act(batch().obs, Explore::Greedy)),
            act(plain.policy(progress).act(batch().obs, Explore::Greedy)),
        ];
        assert_eq!(boxed, plain);
    }
}
