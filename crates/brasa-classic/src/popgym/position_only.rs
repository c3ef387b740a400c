//! CartPole whose speeds are not observed.

use brasa_env::{BoxSpace, Env, EnvRng, Space, Step};
use ndarray::{Array1, ArrayView1, ArrayViewMut1};
use rand::RngExt;
use rand_distr::StandardNormal;

use super::Difficulty;
use crate::CartPole;

/// Columns of CartPole's observation that are seen: place and angle.
pub(super) const SEEN: [usize; 2] = [0, 2];

/// POPGym's `PositionOnlyCartPole` and `NoisyPositionOnlyCartPole` (Morad et al. 2023, arXiv 2303.01859): CartPole that observes its place and
/// its angle. Every step has a share of 1 as its reward, so a pole that stands until the time limit has a return of 1.
///
/// ```
/// use brasa_classic::{Difficulty, PositionOnlyCartPole};
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut env, mut obs, mut rng) = (PositionOnlyCartPole::new(Difficulty::Easy), Array1::zeros(2), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// assert_eq!(env.step(array![1.0].view(), &mut rng, obs.view_mut()).reward, 1.0 / 200.0);
/// ```
#[derive(Debug, Clone)]
pub struct PositionOnlyCartPole {
    cart_pole: CartPole,
    /// Time limit.
    steps: u32,
    /// Standard deviation of the noise of both numbers.
    noise: f32,
    space: BoxSpace,
    /// The observation of CartPole.
    seen: Array1<f32>,
}

impl PositionOnlyCartPole {
    /// Without noise; for 200, 400 or 600 steps.
    pub fn new(difficulty: Difficulty) -> Self {
        Self::with(difficulty.of([200, 400, 600]), 0.0)
    }

    /// For 200 steps, with noise of the standard deviation 0.1, 0.2 or 0.3 in both numbers, limited to the bounds of the observation.
    pub fn noisy(difficulty: Difficulty) -> Self {
        Self::with(200, difficulty.of([0.1, 0.2, 0.3]))
    }

    fn with(steps: u32, noise: f32) -> Self {
        let cart_pole = CartPole::default();
        let Space::Box(all) = cart_pole.obs_space() else { unreachable!("CartPole observes numbers") };
        let space = all.select(SEEN);
        Self { cart_pole, steps, noise, space, seen: Array1::zeros(all.low.len()) }
    }

    /// The time limit.
    pub fn n_steps(&self) -> u32 {
        self.steps
    }

    /// Standard deviation of the noise.
    pub(super) fn noise(&self) -> f32 {
        self.noise
    }

    fn observe(&self, rng: &mut EnvRng, mut obs: ArrayViewMut1<f32>) {
        for (slot, column) in SEEN.into_iter().enumerate() {
            let mut value = self.seen[column];
            if self.noise > 0.0 {
                value += self.noise * rng.sample::<f32, _>(StandardNormal);
                value = value.clamp(self.space.low[slot], self.space.high[slot]);
            }
            obs[slot] = value;
        }
    }
}

impl Env for PositionOnlyCartPole {
    type State = <CartPole as Env>::State;

    fn obs_space(&self) -> Space {
        Space::Box(self.space.clone())
    }

    fn action_space(&self) -> Space {
        self.cart_pole.action_space()
    }

    fn truncation_interval(&self) -> u64 {
        self.cart_pole.truncation_interval()
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: ArrayViewMut1<f32>) {
        self.cart_pole.reset(rng, self.seen.view_mut());
        self.observe(rng, obs);
    }

    fn step(&mut self, action: ArrayView1<f32>, rng: &mut EnvRng, obs: ArrayViewMut1<f32>) -> Step {
        let step = self.cart_pole.step(action, rng, self.seen.view_mut());
        self.observe(rng, obs);
        Step { reward: step.reward / self.steps as f32, ..step }
    }

    fn state(&self) -> Self::State {
        self.cart_pole.state()
    }

    fn set_state(&mut self, state: Self::State) {
        self.cart_pole.set_state(state);
    }
}
