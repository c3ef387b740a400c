//! Classic tasks as scenarios, with their time limit and baselines.

use std::ops::Range;
use std::sync::Arc;

use brasa_env::wrappers::{PreviousAction, TimeLimit};
use brasa_env::{
    Baseline, BaselineKind, Env, EnvBatch, EnvError, EnvVec, EpisodeData, Evaluation, Outcome, Precision,
    RandomController, RenderedBatch, RenderedEnv, RuleEnv, Rules, Scenario, Shown, Split, Who, evaluate_by_playing,
    find_baseline,
};
use serde::{Deserialize, Serialize};

use crate::drawing::Drawing;
use crate::rules;
use crate::{
    Acrobot, CartPole, CartPoleNoVelocity, Catch, MountainCar, MountainCarContinuous, MountainCarContinuousNoVelocity,
    Pendulum, PendulumNoVelocity,
};

/// The baseline with uniformly random legal actions.
pub(crate) const RANDOM: &str = "random";
/// The upper bound of the return.
pub(crate) const BOUND: &str = "bound";
/// The name of the best rule, the same in every scenario.
pub(crate) const RULE: &str = "rule-based";

/// Settings of a task with [`Rules`].
///
/// ```
/// use brasa_classic::ClassicConfig;
/// use brasa_env::Precision;
///
/// assert_eq!(ClassicConfig::default().precision, Precision::F64);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClassicConfig {
    /// Numbers of the host: `f64`, the default, as in Gymnasium, or `f32`, which is faster. Devices compute in `f32`.
    pub precision: Precision,
}

/// An environment as a scenario with the return as its only figure.
///
/// ```
/// use brasa_classic::Classic;
/// use brasa_env::{Evaluation, Scenario, Who};
///
/// let cart_pole = Classic::cart_pole();
/// let outcomes = cart_pole.evaluate(Who::Baseline("rule-based"), &Evaluation::new(5, 0))?;
/// assert!(outcomes.iter().all(|outcome| outcome.length > 100));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Clone)]
pub struct Classic<E> {
    make: Arc<dyn Fn() -> E + Send + Sync>,
    time_limit: u32,
    rule: Option<Baseline>,
    /// A proven upper bound of the return, if any.
    bound: Option<f64>,
    drawing: Option<Drawing>,
    previous_action: bool,
}

impl<E> std::fmt::Debug for Classic<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Classic")
            .field("time_limit", &self.time_limit)
            .field("rule", &self.rule)
            .field("bound", &self.bound)
            .finish_non_exhaustive()
    }
}

impl<E: Env> Classic<E> {
    /// Environments constructed by `make`, with episodes of at most `time_limit` steps; `random` is the only baseline.
    pub fn new(make: impl Fn() -> E + Send + Sync + 'static, time_limit: u32) -> Self {
        Self { make: Arc::new(make), time_limit, rule: None, bound: None, drawing: None, previous_action: false }
    }

    /// Steps after which an episode is truncated.
    pub fn time_limit(&self) -> u32 {
        self.time_limit
    }

    /// The same task; observations end with the latest action if `is_seen` ([`PreviousAction`]).
    ///
    /// ```
    /// use brasa_classic::Classic;
    /// use brasa_env::{EnvBatch, Scenario, Split};
    ///
    /// let task = Classic::pendulum_no_velocity().with_previous_action(true);
    /// let names = task.envs(Split::Train, 0..1)?.spec().obs.names();
    /// assert_eq!(names.last().map(String::as_str), Some("previous:torque_nm"));
    /// # Ok::<(), brasa_env::EnvError>(())
    /// ```
    #[must_use]
    pub fn with_previous_action(self, is_seen: bool) -> Self {
        Self { previous_action: is_seen, ..self }
    }

    /// The environments with the global indices `envs`, without [`Classic::with_previous_action`]; the index addresses the random numbers.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for an empty range or a time limit of 0.
    pub fn batch(&self, envs: Range<usize>) -> Result<TimeLimit<EnvVec<E>>, EnvError> {
        TimeLimit::new(EnvVec::new(envs, |_| (self.make)())?, self.time_limit)
    }

    pub(crate) fn with_rule(self, rule: Baseline) -> Self {
        Self { rule: Some(rule), ..self }
    }

    pub(crate) fn with_bound(self, bound: f64) -> Self {
        Self { bound: Some(bound), ..self }
    }

    fn with_drawing(self, drawing: Drawing) -> Self {
        Self { drawing: Some(drawing), ..self }
    }
}

impl<R: Rules<STATE, ACTION, OBS>, const STATE: usize, const ACTION: usize, const OBS: usize>
    Classic<RuleEnv<R, STATE, ACTION, OBS>>
{
    /// The same task with numbers of the given precision.
    ///
    /// ```
    /// use brasa_classic::Classic;
    /// use brasa_env::{EnvBatch, Evaluation, Precision, Scenario, Who};
    ///
    /// let lengths = |precision| {
    ///     let pole = Classic::cart_pole().with_precision(precision);
    ///     let outcomes = pole.evaluate(Who::Baseline("random"), &Evaluation::new(20, 0))?;
    ///     Ok::<_, brasa_env::EnvError>(outcomes.iter().map(|outcome| outcome.length).sum::<u64>())
    /// };
    /// // A pole may fall a step earlier or later.
    /// assert!(lengths(Precision::F64)?.abs_diff(lengths(Precision::F32)?) < 5);
    /// # Ok::<(), brasa_env::EnvError>(())
    /// ```
    #[must_use]
    pub fn with_precision(self, precision: Precision) -> Self {
        let make = self.make;
        Self { make: Arc::new(move || make().with_precision(precision)), ..self }
    }
}

pub(crate) fn rule() -> Baseline {
    Baseline::new(RULE, BaselineKind::Heuristic)
}

impl Classic<CartPole> {
    /// `CartPole-v1`. A step has reward 1, so the time limit is the bound of the return.
    pub fn cart_pole() -> Self {
        Self::new(CartPole::default, CartPole::TIME_LIMIT)
            .with_rule(rule().by(|| Box::new(rules::cart_pole)))
            .with_bound(f64::from(CartPole::TIME_LIMIT))
            .with_drawing(Drawing::cart_pole())
    }
}

impl Classic<Pendulum> {
    /// `Pendulum-v1`. No reward is above 0, so 0 is the bound of the return.
    pub fn pendulum() -> Self {
        Self::new(Pendulum::default, Pendulum::TIME_LIMIT)
            .with_rule(rule().by(|| Box::new(rules::pendulum)))
            .with_bound(0.0)
            .with_drawing(Drawing::pendulum())
    }
}

impl Classic<Acrobot> {
    /// `Acrobot-v1`.
    pub fn acrobot() -> Self {
        Self::new(Acrobot::default, Acrobot::TIME_LIMIT)
            .with_rule(rule().by(|| Box::new(rules::acrobot)))
            .with_drawing(Drawing::acrobot())
    }
}

impl Classic<MountainCar> {
    /// `MountainCar-v0`.
    pub fn mountain_car() -> Self {
        Self::new(MountainCar::default, MountainCar::TIME_LIMIT)
            .with_rule(rule().by(|| Box::new(rules::mountain_car)))
            .with_drawing(Drawing::mountain_car())
    }
}

impl Classic<MountainCarContinuous> {
    /// `MountainCarContinuous-v0`.
    pub fn mountain_car_continuous() -> Self {
        Self::new(MountainCarContinuous::default, MountainCarContinuous::TIME_LIMIT)
            .with_rule(rule().by(|| Box::new(rules::mountain_car_continuous)))
            .with_drawing(Drawing::mountain_car_continuous())
    }
}

impl Classic<Catch> {
    /// bsuite's Catch. Every ball can be caught, so 1 is the bound of the return, which the rule reaches.
    pub fn catch() -> Self {
        Self::new(Catch::default, Catch::TIME_LIMIT).with_rule(rule().by(|| Box::new(rules::catch))).with_bound(1.0)
    }
}

impl Classic<CartPoleNoVelocity> {
    /// [`Classic::cart_pole`] without speeds.
    pub fn cart_pole_no_velocity() -> Self {
        Self::new(CartPoleNoVelocity::default, CartPoleNoVelocity::TIME_LIMIT)
            .with_bound(f64::from(CartPoleNoVelocity::TIME_LIMIT))
            .with_drawing(Drawing::cart_pole())
    }
}

impl Classic<PendulumNoVelocity> {
    /// [`Classic::pendulum`] without its speed.
    pub fn pendulum_no_velocity() -> Self {
        Self::new(PendulumNoVelocity::default, PendulumNoVelocity::TIME_LIMIT)
            .with_bound(0.0)
            .with_drawing(Drawing::pendulum())
    }
}

impl Classic<MountainCarContinuousNoVelocity> {
    /// [`Classic::mountain_car_continuous`] without its speed.
    pub fn mountain_car_continuous_no_velocity() -> Self {
        Self::new(MountainCarContinuousNoVelocity::default, MountainCarContinuousNoVelocity::TIME_LIMIT)
            .with_drawing(Drawing::mountain_car_continuous())
    }
}

impl<E: Env> Scenario for Classic<E> {
    fn envs(&self, _: Split, envs: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> {
        let batch = self.batch(envs)?;
        Ok(if self.previous_action { Box::new(PreviousAction::new(batch)?) } else { Box::new(batch) })
    }

    /// Every episode starts in a random state.
    fn data(&self, _: Split) -> EpisodeData {
        EpisodeData::Sampled
    }

    fn baselines(&self) -> Vec<Baseline> {
        let random = Baseline::new(RANDOM, BaselineKind::Idle);
        let bound = self.bound.map(|_| Baseline::new(BOUND, BaselineKind::Bound));
        [random].into_iter().chain(self.rule.clone()).chain(bound).collect()
    }

    fn rendered(&self, env: usize) -> Result<Option<Box<dyn RenderedEnv>>, EnvError> {
        let Some(drawing) = self.drawing else { return Ok(None) };
        let draw = move |shown: &Shown<'_>| drawing.frame(shown);
        Ok(Some(Box::new(RenderedBatch::new(self.envs(Split::Evaluation, env..env + 1)?, drawing.frame_secs, draw)?)))
    }

    /// As the default, except for `random`, which has its own random stream in each episode, and `bound`, whose only
    /// figure is the return.
    fn evaluate(&self, who: Who<'_>, evaluation: &Evaluation) -> Result<Vec<Outcome>, EnvError> {
        let Who::Baseline(name) = who else { return evaluate_by_playing(self, who, evaluation) };
        find_baseline(&self.baselines(), name)?;
        match (name, self.bound) {
            (RANDOM, _) => {
                let batch = self.batch(0..1)?;
                let mut random = RandomController::new(batch.spec(), evaluation.seed, evaluation.episodes.clone());
                evaluate_by_playing(self, Who::Controller(&mut random), evaluation)
            }
            (BOUND, Some(bound)) => {
                let outcome = Outcome { episode_return: Some(bound), ..Outcome::default() };
                Ok(evaluation.episodes.clone().map(|_| outcome.clone()).collect())
            }
            _ => evaluate_by_playing(self, who, evaluation),
        }
    }
}
