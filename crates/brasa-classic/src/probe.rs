//! Probe environments: minimal tasks, each of which requires one correct part of a learner.
//!
//! Each isolates one possible error and has a known value or optimal policy, so that a failed test
//! indicates the wrong part: the value loss ([`ConstantReward`]), its dependence on
//! the observation ([`ObservationReward`]), discounting and bootstrapping ([`DelayedReward`]), the policy
//! ([`ActionReward`]), the policy's dependence on the observation (the identity tasks), and masks
//! ([`MaskedIdentity`]). The idea is Andy Jones's, "Debugging RL, Without the Agonizing Pain" (2021); the
//! identity tasks are common in tests of learners.
//!
//! All episodes end by termination.

use brasa_env::{Env, EnvRng, EnvSpec, Space, Step, option_index};
use ndarray::{ArrayView1, ArrayViewMut1};
use rand::RngExt;

/// A probe but for what all of them have in common, which [`probes`] adds.
trait Probe {
    /// Observations and actions.
    fn spaces(&self) -> [Space; 2];

    /// Draws the state of a new episode.
    fn begin(&mut self, rng: &mut EnvRng);

    /// Writes what is not 0 in the observation.
    fn show(&self, obs: ArrayViewMut1<f32>);

    /// The action that is illegal, if there is one in every state.
    fn illegal(&self) -> Option<usize> {
        None
    }

    /// The reward with which the episode ends; `None` for a step with reward 0 that does not end it.
    fn act(&mut self, action: ArrayView1<f32>) -> Option<f32>;
}

macro_rules! probes {
    ($($name:ident: $state:ty),* $(,)?) => {$(
        impl Env for $name {
            type State = $state;

            fn obs_space(&self) -> Space {
                let [obs, _] = self.spaces();
                obs
            }

            fn action_space(&self) -> Space {
                let [_, action] = self.spaces();
                action
            }

            fn truncation_interval(&self) -> u64 {
                EnvSpec::NEVER
            }

            fn reset(&mut self, rng: &mut EnvRng, mut obs: ArrayViewMut1<f32>) {
                self.begin(rng);
                obs.fill(0.0);
                self.show(obs);
            }

            fn step(&mut self, action: ArrayView1<f32>, _: &mut EnvRng, mut obs: ArrayViewMut1<f32>) -> Step {
                let reward = self.act(action);
                obs.fill(0.0);
                self.show(obs);
                Step { reward: reward.unwrap_or(0.0), terminated: reward.is_some(), truncated: false }
            }

            fn has_mask(&self) -> bool {
                self.illegal().is_some()
            }

            fn mask(&self, mut mask: ArrayViewMut1<f32>) {
                mask.fill(1.0);
                if let Some(action) = self.illegal() {
                    mask[action] = 0.0;
                }
            }

            fn state(&self) -> $state {
                self.state.clone()
            }

            fn set_state(&mut self, state: $state) {
                self.state = state;
            }
        }
    )*};
}

probes! {
    ConstantReward: (),
    ObservationReward: f32,
    DelayedReward: u8,
    ActionReward: (),
    DiscreteIdentity: usize,
    ContinuousIdentity: f32,
    MultiDiscreteIdentity: Vec<usize>,
    HybridIdentity: (usize, f32),
    Recall: (bool, u32),
    MaskedIdentity: usize,
}

fn unit_box(name: &str, width: usize, low: f32, high: f32) -> Space {
    Space::uniform_box(low, high, (0..width).map(|i| format!("{name}_{i}")))
}

/// One step, observation 0, reward 1 for any action.
///
/// The value is 1. If it is not learned, check the value loss and the optimizer.
///
/// ```
/// use brasa_classic::probe::ConstantReward;
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut env, mut obs, mut rng) = (ConstantReward::default(), Array1::zeros(1), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// let step = env.step(array![0.0].view(), &mut rng, obs.view_mut());
/// assert_eq!((step.reward, step.terminated), (1.0, true));
/// ```
#[derive(Debug, Clone)]
pub struct ConstantReward {
    action_space: Space,
    state: (),
}

/// One step, observation -1 or 1 with equal probability; the reward is the observation.
///
/// The value of an observation is the observation itself; the mean return is 0. If only the mean is
/// learned, check the path of observations to the network.
///
/// ```
/// use brasa_classic::probe::ObservationReward;
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut env, mut obs, mut rng) = (ObservationReward::default(), Array1::zeros(1), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// let step = env.step(array![0.0].view(), &mut rng, obs.view_mut());
/// assert_eq!(step.reward, obs[0]);
/// ```
#[derive(Debug, Clone)]
pub struct ObservationReward {
    action_space: Space,
    state: f32,
}

/// Two steps: observation 0 and reward 0, then observation 1 and reward 1.
///
/// The value is `gamma` at observation 0 and 1 at observation 1. A value of 1 at both means a missing discount;
/// a value of 0 at observation 0 means a missing bootstrap; values above 1 mean a bootstrap after
/// the termination.
///
/// ```
/// use brasa_classic::probe::DelayedReward;
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut env, mut obs, mut rng) = (DelayedReward::default(), Array1::zeros(1), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// let rewards = [0, 1].map(|_| env.step(array![0.0].view(), &mut rng, obs.view_mut()).reward);
/// assert_eq!(rewards, [0.0, 1.0]);
/// ```
#[derive(Debug, Clone)]
pub struct DelayedReward {
    action_space: Space,
    state: u8,
}

macro_rules! any_actions {
    ($name:ident { $($field:ident: $value:expr),* }) => {
        impl $name {
            /// The same task with another action space, which it ignores; the default has two actions.
            pub fn with_action_space(action_space: Space) -> Self {
                Self { action_space, $($field: $value),* }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::with_action_space(Space::Discrete(2))
            }
        }
    };
}

any_actions!(ConstantReward { state: () });
any_actions!(ObservationReward { state: 0.0 });
any_actions!(DelayedReward { state: 0 });

impl Probe for ConstantReward {
    fn spaces(&self) -> [Space; 2] {
        [unit_box("zero", 1, 0.0, 0.0), self.action_space.clone()]
    }

    fn begin(&mut self, _: &mut EnvRng) {}

    fn show(&self, _: ArrayViewMut1<f32>) {}

    fn act(&mut self, _: ArrayView1<f32>) -> Option<f32> {
        Some(1.0)
    }
}

impl Probe for ObservationReward {
    fn spaces(&self) -> [Space; 2] {
        [unit_box("sign", 1, -1.0, 1.0), self.action_space.clone()]
    }

    fn begin(&mut self, rng: &mut EnvRng) {
        self.state = if rng.random() { 1.0 } else { -1.0 };
    }

    fn show(&self, mut obs: ArrayViewMut1<f32>) {
        obs[0] = self.state;
    }

    fn act(&mut self, _: ArrayView1<f32>) -> Option<f32> {
        Some(self.state)
    }
}

impl Probe for DelayedReward {
    fn spaces(&self) -> [Space; 2] {
        [unit_box("stage", 1, 0.0, 1.0), self.action_space.clone()]
    }

    fn begin(&mut self, _: &mut EnvRng) {
        self.state = 0;
    }

    fn show(&self, mut obs: ArrayViewMut1<f32>) {
        obs[0] = f32::from(self.state);
    }

    fn act(&mut self, _: ArrayView1<f32>) -> Option<f32> {
        let is_last = self.state > 0;
        self.state = 1;
        is_last.then_some(1.0)
    }
}

/// One step, observation 0: action 1 has reward 1, action 0 has reward -1.
///
/// The optimal policy always takes action 1 and has value 1; the uniform policy has value 0. If values are
/// learned but the policy is not, check the advantage and the policy loss.
///
/// ```
/// use brasa_classic::probe::ActionReward;
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut env, mut obs, mut rng) = (ActionReward::default(), Array1::zeros(1), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// let reward = |action| env.step(array![action].view(), &mut rng, obs.view_mut()).reward;
/// assert_eq!([0.0, 1.0].map(reward), [-1.0, 1.0]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ActionReward {
    state: (),
}

impl Probe for ActionReward {
    fn spaces(&self) -> [Space; 2] {
        [unit_box("zero", 1, 0.0, 0.0), Space::Discrete(2)]
    }

    fn begin(&mut self, _: &mut EnvRng) {}

    fn show(&self, _: ArrayViewMut1<f32>) {}

    fn act(&mut self, action: ArrayView1<f32>) -> Option<f32> {
        Some(if option_index(action, 0, 2) == 1 { 1.0 } else { -1.0 })
    }
}

/// One step: the observation is one of `n` symbols (one-hot); choosing the same symbol has reward 1, any other 0.
///
/// The optimal policy repeats the symbol and has value 1; the uniform policy has value `1 / n`.
///
/// ```
/// use brasa_classic::probe::DiscreteIdentity;
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut env, mut obs, mut rng) = (DiscreteIdentity::new(3), Array1::zeros(3), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// let symbol = env.state();
/// assert_eq!(obs[symbol], 1.0);
/// let step = env.step(array![symbol as f32].view(), &mut rng, obs.view_mut());
/// assert_eq!(step.reward, 1.0);
/// ```
#[derive(Debug, Clone)]
pub struct DiscreteIdentity {
    n: usize,
    state: usize,
}

impl DiscreteIdentity {
    /// The task with `n` symbols.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn new(n: usize) -> Self {
        assert!(n > 0, "an identity task needs a symbol, got 0");
        Self { n, state: 0 }
    }
}

impl Default for DiscreteIdentity {
    fn default() -> Self {
        Self::new(4)
    }
}

impl Probe for DiscreteIdentity {
    fn spaces(&self) -> [Space; 2] {
        [unit_box("symbol", self.n, 0.0, 1.0), Space::Discrete(self.n)]
    }

    fn begin(&mut self, rng: &mut EnvRng) {
        self.state = rng.random_range(0..self.n);
    }

    fn show(&self, mut obs: ArrayViewMut1<f32>) {
        obs[self.state] = 1.0;
    }

    fn act(&mut self, action: ArrayView1<f32>) -> Option<f32> {
        Some(if option_index(action, 0, self.n) == self.state { 1.0 } else { 0.0 })
    }
}

/// One step: the observation is a target in [-1, 1]; the reward is minus the squared distance of the action to it.
///
/// Actions are clipped to [-1, 1]. The optimal policy repeats the target and has value 0; the constant action
/// 0 has value -1/3.
///
/// ```
/// use brasa_classic::probe::ContinuousIdentity;
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut env, mut obs, mut rng) = (ContinuousIdentity::default(), Array1::zeros(1), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// let target = obs[0];
/// let reward = |action| env.step(array![action].view(), &mut rng, obs.view_mut()).reward;
/// assert_eq!([target, 0.0].map(reward), [0.0, -target.powi(2)]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ContinuousIdentity {
    state: f32,
}

impl Probe for ContinuousIdentity {
    fn spaces(&self) -> [Space; 2] {
        [unit_box("target", 1, -1.0, 1.0), unit_box("answer", 1, -1.0, 1.0)]
    }

    fn begin(&mut self, rng: &mut EnvRng) {
        self.state = 2.0 * rng.random::<f32>() - 1.0;
    }

    fn show(&self, mut obs: ArrayViewMut1<f32>) {
        obs[0] = self.state;
    }

    fn act(&mut self, action: ArrayView1<f32>) -> Option<f32> {
        Some(-(action[0].clamp(-1.0, 1.0) - self.state).powi(2))
    }
}

/// One step: the observation is one symbol per head (one-hot, head after head); the reward is the fraction of heads
/// that repeat their symbol.
///
/// The optimal policy repeats all and has value 1; the uniform policy has the mean of `1 / symbols` over
/// the heads. Heads with mixed-up parameters or gradients cannot solve it.
///
/// ```
/// use brasa_classic::probe::MultiDiscreteIdentity;
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut env, mut obs, mut rng) = (MultiDiscreteIdentity::new(vec![2, 3]), Array1::zeros(5), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// let symbols = env.state();
/// // The second head is wrong.
/// let action = array![symbols[0] as f32, ((symbols[1] + 1) % 3) as f32];
/// assert_eq!(env.step(action.view(), &mut rng, obs.view_mut()).reward, 0.5);
/// ```
#[derive(Debug, Clone)]
pub struct MultiDiscreteIdentity {
    heads: Vec<usize>,
    state: Vec<usize>,
}

impl MultiDiscreteIdentity {
    /// The task with `heads[i]` symbols at head `i`.
    ///
    /// # Panics
    /// If there is no head, or one without symbols.
    pub fn new(heads: Vec<usize>) -> Self {
        assert!(!heads.is_empty() && !heads.contains(&0), "every head needs a symbol, got {heads:?}");
        Self { state: vec![0; heads.len()], heads }
    }
}

impl Default for MultiDiscreteIdentity {
    fn default() -> Self {
        Self::new(vec![2, 3, 4])
    }
}

impl Probe for MultiDiscreteIdentity {
    fn spaces(&self) -> [Space; 2] {
        [unit_box("symbol", self.heads.iter().sum(), 0.0, 1.0), Space::MultiDiscrete(self.heads.clone())]
    }

    fn begin(&mut self, rng: &mut EnvRng) {
        for (symbol, options) in self.state.iter_mut().zip(&self.heads) {
            *symbol = rng.random_range(0..*options);
        }
    }

    fn show(&self, mut obs: ArrayViewMut1<f32>) {
        let mut offset = 0;
        for (symbol, options) in self.state.iter().zip(&self.heads) {
            obs[offset + symbol] = 1.0;
            offset += options;
        }
    }

    fn act(&mut self, action: ArrayView1<f32>) -> Option<f32> {
        let right = (0..self.heads.len()).filter(|i| option_index(action, *i, self.heads[*i]) == self.state[*i]);
        Some(right.count() as f32 / self.heads.len() as f32)
    }
}

/// One step: the observation is one of two symbols (one-hot) and a target in [-1, 1]; the action is a choice and a number. The reward is 1 for the
/// choice that repeats the symbol, 0 for the other, minus the squared distance of the number from the target.
///
/// The optimal policy repeats both and has value 1. Parts of an action that are mixed up cannot solve it.
///
/// ```
/// use brasa_classic::probe::HybridIdentity;
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut env, mut obs, mut rng) = (HybridIdentity::default(), Array1::zeros(3), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// let (symbol, target) = env.state();
/// let action = array![symbol as f32, target];
/// assert_eq!(env.step(action.view(), &mut rng, obs.view_mut()).reward, 1.0);
/// ```
#[derive(Debug, Clone, Default)]
pub struct HybridIdentity {
    state: (usize, f32),
}

impl Probe for HybridIdentity {
    fn spaces(&self) -> [Space; 2] {
        let observed = Space::named_box([("symbol_0", 0.0, 1.0), ("symbol_1", 0.0, 1.0), ("target", -1.0, 1.0)]);
        let Space::Box(numbers) = Space::uniform_box(-1.0, 1.0, ["answer"]) else { unreachable!("it is a box") };
        [observed, Space::Hybrid { heads: vec![2], numbers }]
    }

    fn begin(&mut self, rng: &mut EnvRng) {
        self.state = (rng.random_range(0..2), 2.0 * rng.random::<f32>() - 1.0);
    }

    fn show(&self, mut obs: ArrayViewMut1<f32>) {
        let (symbol, target) = self.state;
        (obs[symbol], obs[2]) = (1.0, target);
    }

    fn act(&mut self, action: ArrayView1<f32>) -> Option<f32> {
        let (symbol, target) = self.state;
        let is_right = option_index(action, 0, 2) == symbol;
        Some(f32::from(is_right) - (action[1].clamp(-1.0, 1.0) - target).powi(2))
    }
}

/// `delay` steps after a cue, which is -1 or 1 and is observed at the first step alone, the action must repeat it: 0 or 1. The reward is 1 if it
/// does; all other rewards are 0.
///
/// A policy that remembers has value 1, any other one half.
///
/// ```
/// use brasa_classic::probe::Recall;
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut env, mut obs, mut rng) = (Recall::new(2), Array1::zeros(1), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// let repeated = if obs[0] > 0.0 { 1.0 } else { 0.0 };
/// let rewards = [0, 1, 2].map(|_| env.step(array![repeated].view(), &mut rng, obs.view_mut()).reward);
/// // The cue is no longer observed when it counts.
/// assert_eq!((rewards, obs[0]), ([0.0, 0.0, 1.0], 0.0));
/// ```
#[derive(Debug, Clone)]
pub struct Recall {
    delay: u32,
    /// The cue as an action, and the number of steps.
    state: (bool, u32),
}

impl Recall {
    /// The task with this delay.
    pub fn new(delay: u32) -> Self {
        Self { delay, state: (false, 0) }
    }
}

impl Default for Recall {
    fn default() -> Self {
        Self::new(3)
    }
}

impl Probe for Recall {
    fn spaces(&self) -> [Space; 2] {
        [unit_box("cue", 1, -1.0, 1.0), Space::Discrete(2)]
    }

    fn begin(&mut self, rng: &mut EnvRng) {
        self.state = (rng.random_bool(0.5), 0);
    }

    fn show(&self, mut obs: ArrayViewMut1<f32>) {
        if let (cue, 0) = self.state {
            obs[0] = if cue { 1.0 } else { -1.0 };
        }
    }

    fn act(&mut self, action: ArrayView1<f32>) -> Option<f32> {
        let (cue, n_steps) = self.state;
        self.state.1 += 1;
        let repeats = (option_index(action, 0, 2) == 1) == cue;
        (n_steps >= self.delay).then(|| f32::from(repeats))
    }
}

/// One step: the observation is one of `n` symbols (one-hot). Repeating it is illegal, the next symbol (cyclically)
/// has reward 1, any other 0.
///
/// The illegal action has reward 10, so a learner that ignores the mask prefers it. The optimal legal
/// policy chooses the next symbol and has value 1, the uniform legal policy `1 / (n - 1)`; a mean return
/// above 1 proves that illegal actions were taken.
///
/// ```
/// use brasa_classic::probe::MaskedIdentity;
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut env, mut obs, mut rng) = (MaskedIdentity::new(3), Array1::zeros(3), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// let mut mask = Array1::zeros(3);
/// env.mask(mask.view_mut());
/// assert_eq!(mask, 1.0 - &obs);
/// let next = ((env.state() + 1) % 3) as f32;
/// assert_eq!(env.step(array![next].view(), &mut rng, obs.view_mut()).reward, 1.0);
/// ```
#[derive(Debug, Clone)]
pub struct MaskedIdentity {
    n: usize,
    state: usize,
}

impl MaskedIdentity {
    /// The reward of the illegal action.
    pub const ILLEGAL_REWARD: f32 = 10.0;

    /// The task with `n` symbols.
    ///
    /// # Panics
    /// If `n` is below 2, because no action would be legal.
    pub fn new(n: usize) -> Self {
        assert!(n >= 2, "a masked identity task needs two symbols, got {n}");
        Self { n, state: 0 }
    }
}

impl Default for MaskedIdentity {
    fn default() -> Self {
        Self::new(4)
    }
}

impl Probe for MaskedIdentity {
    fn spaces(&self) -> [Space; 2] {
        [unit_box("symbol", self.n, 0.0, 1.0), Space::Discrete(self.n)]
    }

    fn begin(&mut self, rng: &mut EnvRng) {
        self.state = rng.random_range(0..self.n);
    }

    fn show(&self, mut obs: ArrayViewMut1<f32>) {
        obs[self.state] = 1.0;
    }

    fn illegal(&self) -> Option<usize> {
        Some(self.state)
    }

    fn act(&mut self, action: ArrayView1<f32>) -> Option<f32> {
        Some(match option_index(action, 0, self.n) {
            choice if choice == self.state => Self::ILLEGAL_REWARD,
            choice if choice == (self.state + 1) % self.n => 1.0,
            _ => 0.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use brasa_env::episode_rng;
    use ndarray::{Array1, array};

    use super::*;

    const fn end(reward: f32) -> Step {
        Step { reward, terminated: true, truncated: false }
    }

    /// Runs `episodes` episodes and returns the mean return; checks spaces and that episodes end.
    fn mean_return<E: Env>(mut env: E, episodes: u64, policy: impl Fn(&Array1<f32>) -> Array1<f32>) -> f32 {
        let mut obs = Array1::zeros(env.obs_space().width());
        let mut total = 0.0;
        for episode in 0..episodes {
            let rng = &mut episode_rng(7, 0, episode);
            env.reset(rng, obs.view_mut());
            for length in 1.. {
                assert!(env.obs_space().contains(obs.as_slice().expect("rows are contiguous")), "{obs}");
                let action = policy(&obs);
                assert!(env.action_space().contains(action.as_slice().expect("rows are contiguous")), "{action}");
                let step = env.step(action.view(), rng, obs.view_mut());
                total += step.reward;
                if step.terminated {
                    break;
                }
                assert!(length < 2, "an episode of a probe has at most two steps");
            }
        }
        total / episodes as f32
    }

    fn hot(obs: &Array1<f32>) -> usize {
        obs.iter().position(|x| *x == 1.0).expect("one entry is hot")
    }

    #[test]
    fn optimal_policies_have_the_documented_values() {
        let zero = |_: &Array1<f32>| array![0.0];
        assert_eq!(mean_return(ConstantReward::default(), 10, zero), 1.0);
        assert!(mean_return(ObservationReward::default(), 4000, zero).abs() < 0.05);
        assert_eq!(mean_return(DelayedReward::default(), 10, zero), 1.0);
        assert_eq!(mean_return(ActionReward::default(), 10, |_| array![1.0]), 1.0);
        assert_eq!(mean_return(ActionReward::default(), 10, zero), -1.0);
        assert_eq!(mean_return(DiscreteIdentity::new(5), 50, |obs| array![hot(obs) as f32]), 1.0);
        assert!((mean_return(DiscreteIdentity::new(5), 5000, zero) - 0.2).abs() < 0.02);
        assert_eq!(mean_return(ContinuousIdentity::default(), 50, Array1::clone), 0.0);
        assert!((mean_return(ContinuousIdentity::default(), 5000, zero) + 1.0 / 3.0).abs() < 0.02);
        let repeat = |obs: &Array1<f32>| {
            let head = |range: std::ops::Range<usize>| range.clone().position(|i| obs[i] == 1.0).expect("hot") as f32;
            array![head(0..2), head(2..5), head(5..9)]
        };
        assert_eq!(mean_return(MultiDiscreteIdentity::default(), 50, repeat), 1.0);
        let both = |obs: &Array1<f32>| array![obs[1], obs[2]];
        assert_eq!(mean_return(HybridIdentity::default(), 50, both), 1.0);
        assert!((mean_return(HybridIdentity::default(), 5000, |_| array![0.0, 0.0]) - 1.0 / 6.0).abs() < 0.05);
        assert_eq!(mean_return(MaskedIdentity::new(4), 50, |obs| array![((hot(obs) + 1) % 4) as f32]), 1.0);
        assert_eq!(mean_return(MaskedIdentity::new(4), 50, |obs| array![hot(obs) as f32]), 10.0);
    }

    #[test]
    fn a_cue_is_asked_for_after_its_delay() {
        let (mut env, mut obs, rng) = (Recall::new(2), array![9.0], &mut episode_rng(0, 0, 0));
        for _ in 0..20 {
            env.reset(rng, obs.view_mut());
            let cue = f32::from(u8::from(obs[0] > 0.0));
            for _ in 0..2 {
                assert_eq!(env.step(array![cue].view(), rng, obs.view_mut()), Step::default());
                assert_eq!(obs, array![0.0]);
            }
            let (state, wrong) = (env.state(), array![1.0 - cue]);
            assert_eq!(env.step(wrong.view(), rng, obs.view_mut()), end(0.0));
            env.set_state(state);
            assert_eq!(env.step(array![cue].view(), rng, obs.view_mut()), end(1.0));
        }
    }

    #[test]
    fn delayed_reward_comes_at_the_second_step() {
        let (mut env, mut obs, rng) = (DelayedReward::default(), array![9.0], &mut episode_rng(0, 0, 0));
        env.reset(rng, obs.view_mut());
        assert_eq!(obs, array![0.0]);
        assert_eq!(env.step(array![0.0].view(), rng, obs.view_mut()), Step::default());
        assert_eq!(obs, array![1.0]);
        assert_eq!(env.step(array![0.0].view(), rng, obs.view_mut()), end(1.0));
    }

    #[test]
    fn the_mask_hides_the_observed_symbol_only() {
        let (mut env, mut obs, mut mask) = (MaskedIdentity::new(3), Array1::zeros(3), Array1::zeros(3));
        env.reset(&mut episode_rng(1, 0, 0), obs.view_mut());
        env.mask(mask.view_mut());
        assert_eq!(mask, 1.0 - obs);
    }

    #[test]
    fn other_action_spaces_are_taken() {
        let env = ConstantReward::with_action_space(Space::uniform_box(-1.0, 1.0, ["anything"]));
        assert_eq!(mean_return(env, 3, |_| array![-0.7]), 1.0);
    }
}
