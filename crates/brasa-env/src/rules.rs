//! Environments whose rules are functions of numbers: one text for the host and for devices.

use std::array::from_fn;

use brasa_number::{Number, Real, Single};
use ndarray::{ArrayView1, ArrayViewMut1, aview1};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::rule_batch::RuleBatch;
use crate::{Env, EnvBatch, EnvRng, EnvSpec, Precision, Space, Step, option_index};

/// The rules of an environment as functions of `STATE` numbers, `ACTION` numbers and `OBS` numbers.
///
/// [`RuleEnv`] computes them on the host, in 64 bits or 32 ([`Precision`]). `RuleTensors` of `brasa-core` computes them for a batch on a device, as
/// one kernel. Both have the settings of the type and no others. A rule has no `if` on numbers (see [`Number::select`]) and draws no random numbers
/// after the start of an episode.
///
/// [`crate::EnvVec`] steps environments of equal rules together, in the vectors of the processor. Mark [`Rules::step`], [`Rules::observe`] and the
/// functions that they call with `#[inline(always)]`: a compiler vectorizes only what is part of the loop over environments. Without the mark,
/// results are equal, and steps are slower.
///
/// ```
/// use brasa_env::{After, Env, RuleEnv, Rules, Space};
/// use brasa_number::Number;
///
/// /// A tank that leaks. The action opens its valve, and the level should be 1.
/// #[derive(Clone, PartialEq, Default)]
/// struct Tank;
///
/// impl Rules<1, 1, 1> for Tank {
///     const TIME_LIMIT: u32 = 100;
///     const OBSERVES_STATE: bool = true;
///
///     fn obs_space(&self) -> Space {
///         Space::named_box([("level", 0.0, 2.0)])
///     }
///
///     fn action_space(&self) -> Space {
///         Space::named_box([("valve", 0.0, 1.0)])
///     }
///
///     fn begin<N: Number>(&self, [noise]: [N; 1]) -> [N; 1] {
///         [noise * 2.0]
///     }
///
///     #[inline(always)]
///     fn step<N: Number>(&self, [level]: [N; 1], [valve]: [N; 1]) -> After<N, 1> {
///         let level = (level * 0.9 + valve.clamp(0.0, 1.0) * 0.2).min_of(2.0);
///         After { state: [level], reward: -(level - 1.0).square(), terminated: None }
///     }
///
///     #[inline(always)]
///     fn observe<N: Number>(&self, state: [N; 1]) -> [N; 1] {
///         state
///     }
/// }
///
/// let mut tank = RuleEnv::at(Tank, [1.0]);
/// let (action, mut obs) = (ndarray::array![0.5], ndarray::array![0.0]);
/// let step = tank.step(action.view(), &mut brasa_env::episode_rng(0, 0, 0), obs.view_mut());
/// assert_eq!((obs[0], step.reward), (1.0, 0.0));
/// ```
pub trait Rules<const STATE: usize, const ACTION: usize, const OBS: usize>: Clone + PartialEq + Send + 'static {
    /// Steps after which an episode is usually cut. A wrapper cuts it: [`crate::wrappers::TimeLimit`].
    const TIME_LIMIT: u32;

    /// Whether observations are the numbers of the state: then a device does not compute them.
    const OBSERVES_STATE: bool = false;

    /// Whether an episode can terminate. It is true unless [`After::terminated`] is always `None`.
    const TERMINATES: bool = false;

    /// Space of observations, of `OBS` numbers.
    fn obs_space(&self) -> Space;

    /// Space of actions, of `ACTION` numbers.
    fn action_space(&self) -> Space;

    /// The state at the start of an episode, from uniformly random numbers in `[0, 1)`.
    fn begin<N: Number>(&self, noise: [N; STATE]) -> [N; STATE];

    /// One step. A discrete action is the index that was chosen.
    fn step<N: Number>(&self, state: [N; STATE], action: [N; ACTION]) -> After<N, STATE>;

    /// The observation of a state.
    fn observe<N: Number>(&self, state: [N; STATE]) -> [N; OBS];

    /// An equal state whose numbers stay small, such as an angle without whole turns. It is kept where numbers have 32 bits: on devices, and with
    /// [`Precision::F32`]. Mark it as [`Rules::step`].
    fn compact<N: Number>(&self, state: [N; STATE]) -> [N; STATE] {
        state
    }
}

/// What a step leads to.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/tanks.inc")); }
/// # use shown::*;
/// use brasa_env::{After, Rules};
///
/// // `Tank` is the tank of the page of `Rules`.
/// let After { state: [level], reward, terminated } = Tank.step([1.0f64], [0.5]);
/// assert_eq!((level, reward, terminated), (1.0, 0.0, None));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct After<N: Number, const STATE: usize> {
    /// The state after the step.
    pub state: [N; STATE],
    /// Reward of the step.
    pub reward: N,
    /// Whether the episode ended by the rules of the task; `None` if they never end one.
    pub terminated: Option<N::Mask>,
}

/// [`Rules`] as an environment of the host, in 64 bits unless [`RuleEnv::with_precision`] chooses 32. [`crate::EnvVec`] steps environments of equal
/// rules together.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/tanks.inc")); }
/// # use shown::*;
/// use brasa_env::wrappers::TimeLimit;
/// use brasa_env::{EnvVec, RuleEnv, check_env};
///
/// // `Tank` is the tank of the page of `Rules`.
/// let tanks = |envs| EnvVec::new(envs, |_| RuleEnv::new(Tank));
/// check_env(50, |envs| TimeLimit::new(tanks(envs)?, 100))?;
/// assert_eq!(RuleEnv::<Tank, 1, 1, 1>::TIME_LIMIT, 100);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RuleEnv<R, const STATE: usize, const ACTION: usize, const OBS: usize> {
    rules: R,
    state: [f64; STATE],
    precision: Precision,
    /// See [`Space::heads`].
    heads: Vec<usize>,
}

/// The numbers of a state, in the order of the rules.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/tanks.inc")); }
/// # use shown::*;
/// use brasa_env::{Env, RuleEnv, RuleState};
///
/// let mut tank = RuleEnv::at(Tank, [1.2]);
/// let saved = tank.state();
/// assert_eq!(saved, RuleState([1.2]));
/// tank.set_state(RuleState([0.4]));
/// assert_eq!(Vec::from(tank.state()), [0.4]);
/// assert_eq!(RuleState::<1>::try_from(vec![1.0, 2.0]), Err("2 numbers, not 1".to_owned()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct RuleState<const STATE: usize>(pub [f64; STATE]);

impl<const STATE: usize> TryFrom<Vec<f64>> for RuleState<STATE> {
    type Error = String;

    fn try_from(numbers: Vec<f64>) -> Result<Self, String> {
        let numbers = numbers.try_into().map_err(|numbers: Vec<f64>| format!("{} numbers, not {STATE}", numbers.len()));
        numbers.map(Self)
    }
}

impl<const STATE: usize> From<RuleState<STATE>> for Vec<f64> {
    fn from(RuleState(numbers): RuleState<STATE>) -> Self {
        numbers.to_vec()
    }
}

impl<R: Rules<STATE, ACTION, OBS>, const STATE: usize, const ACTION: usize, const OBS: usize>
    RuleEnv<R, STATE, ACTION, OBS>
{
    /// See [`Rules::TIME_LIMIT`].
    pub const TIME_LIMIT: u32 = R::TIME_LIMIT;

    /// An environment that is to be reset before its first step.
    pub fn new(rules: R) -> Self {
        Self::at(rules, [0.0; STATE])
    }

    /// An environment in the given state.
    pub fn at(rules: R, state: [f64; STATE]) -> Self {
        let heads = rules.action_space().heads().to_vec();
        Self { rules, state, precision: Precision::F64, heads }
    }

    /// The same environment with numbers of the given precision; its state is rounded.
    #[must_use]
    pub fn with_precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self.put(self.state);
        self
    }

    /// The rules, with their settings.
    pub fn rules(&self) -> &R {
        &self.rules
    }

    fn put(&mut self, state: [f64; STATE]) {
        self.state = match self.precision {
            Precision::F64 => state,
            Precision::F32 => state.map(|number| f64::from(number as f32)),
        };
    }

    /// What a step leads to, and the observation after it. States of 32 bits are kept small.
    #[inline(always)]
    pub(crate) fn advance<N: Number>(
        rules: &R,
        state: [N; STATE],
        action: [N; ACTION],
        bits: u32,
    ) -> (After<N, STATE>, [N; OBS]) {
        let mut after = rules.step(state, action);
        if bits == 32 {
            after.state = rules.compact(after.state);
        }
        let obs = rules.observe(after.state);
        (after, obs)
    }

    /// The observation of a state of numbers `N`.
    pub(crate) fn observe<N: Real>(rules: &R, state: [f64; STATE]) -> [f32; OBS] {
        rules.observe(state.map(N::nearest)).map(|number| number.to_f64() as f32)
    }

    /// A step with numbers `N`: the next state, its observation, and what the step gave.
    pub(crate) fn step_alone<N: Real>(
        rules: &R,
        state: [f64; STATE],
        action: [f32; ACTION],
    ) -> ([f64; STATE], [f32; OBS], Step) {
        let action = action.map(|number| N::nearest(f64::from(number)));
        let (After { state, reward, terminated }, obs) = Self::advance(rules, state.map(N::nearest), action, N::BITS);
        let step = Step { reward: reward.to_f64() as f32, terminated: terminated.unwrap_or(false), truncated: false };
        (state.map(N::to_f64), obs.map(|number| number.to_f64() as f32), step)
    }
}

impl<R: Rules<STATE, ACTION, OBS> + Default, const STATE: usize, const ACTION: usize, const OBS: usize> Default
    for RuleEnv<R, STATE, ACTION, OBS>
{
    fn default() -> Self {
        Self::new(R::default())
    }
}

impl<R: Rules<STATE, ACTION, OBS>, const STATE: usize, const ACTION: usize, const OBS: usize> Env
    for RuleEnv<R, STATE, ACTION, OBS>
{
    type State = RuleState<STATE>;

    fn obs_space(&self) -> Space {
        self.rules.obs_space()
    }

    fn action_space(&self) -> Space {
        self.rules.action_space()
    }

    fn truncation_interval(&self) -> u64 {
        EnvSpec::NEVER
    }

    fn reset(&mut self, rng: &mut EnvRng, mut obs: ArrayViewMut1<f32>) {
        self.put(self.rules.begin(from_fn(|_| rng.random::<f64>())));
        let seen = match self.precision {
            Precision::F64 => Self::observe::<f64>(&self.rules, self.state),
            Precision::F32 => Self::observe::<Single>(&self.rules, self.state),
        };
        obs.assign(&aview1(&seen));
    }

    /// # Panics
    /// If a discrete action is not an index of the space.
    fn step(&mut self, action: ArrayView1<f32>, _rng: &mut EnvRng, mut obs: ArrayViewMut1<f32>) -> Step {
        for (head, n) in self.heads.iter().enumerate() {
            option_index(action, head, *n);
        }
        let action = from_fn(|i| action[i]);
        let (state, seen, step) = match self.precision {
            Precision::F64 => Self::step_alone::<f64>(&self.rules, self.state, action),
            Precision::F32 => Self::step_alone::<Single>(&self.rules, self.state, action),
        };
        self.state = state;
        obs.assign(&aview1(&seen));
        step
    }

    /// Environments of equal rules are computed together.
    fn together(envs: &[Self], first_env: usize, spec: &EnvSpec) -> Option<Box<dyn EnvBatch>> {
        let Self { rules, precision, .. } = envs.first()?;
        if envs.iter().any(|env| env.rules != *rules || env.precision != *precision) {
            return None;
        }
        let (rules, states, spec) = (rules.clone(), envs.iter().map(|env| env.state).collect(), spec.clone());
        Some(match precision {
            Precision::F64 => Box::new(RuleBatch::<_, f64, _, _, _>::new(rules, states, first_env, spec)),
            Precision::F32 => Box::new(RuleBatch::<_, Single, _, _, _>::new(rules, states, first_env, spec)),
        })
    }

    fn state(&self) -> Self::State {
        RuleState(self.state)
    }

    fn set_state(&mut self, RuleState(state): Self::State) {
        self.put(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StateTag;

    #[test]
    fn a_state_of_other_rules_is_an_error() {
        let tag = StateTag::new("task", 1);
        let bytes = tag.encode(1, &RuleState([1.0, 2.0]));
        assert_eq!(tag.decode::<RuleState<2>>(1, &bytes).expect("it fits"), RuleState([1.0, 2.0]));
        let error = tag.decode::<RuleState<3>>(1, &bytes).expect_err("it has two numbers").to_string();
        assert!(error.contains("the state of `task` cannot be read"), "{error}");
    }
}
