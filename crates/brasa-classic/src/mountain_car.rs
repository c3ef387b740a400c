//! MountainCar: drive out of a valley with an engine too weak to climb directly, with three actions or a continuous
//! force.
//!
//! The task is Moore's, "Efficient Memory-based Learning for Robot Control" (1990). Numbers and the order of
//! operations are those of `MountainCar-v0` and `MountainCarContinuous-v0` in
//! [Gymnasium](https://gymnasium.farama.org/environments/classic_control/mountain_car/). The valley is
//! `sin(3 position)`; there are no physical units.

use brasa_env::{Env, EnvRng, EnvSpec, Space, Step};
use ndarray::{ArrayView1, ArrayViewMut1};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::option_index;

const MIN_POSITION: f64 = -1.2;
const MAX_POSITION: f64 = 0.6;
const MAX_SPEED: f64 = 0.07;
const GRAVITY: f64 = 0.0025;

/// The car with three actions: 0 pushes to the left, 1 does not push, 2 pushes to the right.
///
/// Every step has reward -1; the episode ends at position 0.5.
#[derive(Debug, Clone, Default)]
pub struct MountainCar {
    state: MountainCarState,
}

/// The car with a continuous force, clipped to [-1, 1].
///
/// The reward of a step is -0.1 times the square of the action *before* clipping, as in Gymnasium; position 0.45
/// gives 100 and ends the episode. A force of 0 has return 0, a local optimum for learners with little exploration.
#[derive(Debug, Clone, Default)]
pub struct MountainCarContinuous {
    state: MountainCarState,
}

/// Position and speed of the car.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct MountainCarState {
    /// Position along the valley, -1.2 to 0.6; the bottom is at -pi/6.
    pub position: f64,
    /// Change of position per step, -0.07 to 0.07.
    pub speed: f64,
}

impl MountainCarState {
    /// The state one step later under an acceleration; the left wall stops the car.
    fn after(self, acceleration: f64) -> Self {
        let speed = self.speed + acceleration - GRAVITY * (3.0 * self.position).cos();
        let speed = speed.clamp(-MAX_SPEED, MAX_SPEED);
        let position = (self.position + speed).clamp(MIN_POSITION, MAX_POSITION);
        Self { position, speed: if position == MIN_POSITION { speed.max(0.0) } else { speed } }
    }

    fn start(rng: &mut EnvRng) -> Self {
        Self { position: -0.6 + 0.2 * rng.random::<f64>(), speed: 0.0 }
    }

    fn observe(&self, mut obs: ArrayViewMut1<f32>) {
        obs[0] = self.position as f32;
        obs[1] = self.speed as f32;
    }

    fn space() -> Space {
        let speed = MAX_SPEED as f32;
        Space::named_box([("position", MIN_POSITION as f32, MAX_POSITION as f32), ("speed", -speed, speed)])
    }
}

impl MountainCar {
    /// Time limit of `MountainCar-v0` in steps; applied by a wrapper.
    pub const TIME_LIMIT: u32 = 200;

    /// A car in the given state.
    pub fn from_state(state: MountainCarState) -> Self {
        Self { state }
    }
}

impl MountainCarContinuous {
    /// Time limit of `MountainCarContinuous-v0` in steps; applied by a wrapper.
    pub const TIME_LIMIT: u32 = 999;

    /// A car in the given state.
    pub fn from_state(state: MountainCarState) -> Self {
        Self { state }
    }
}

impl Env for MountainCar {
    type State = MountainCarState;

    fn obs_space(&self) -> Space {
        MountainCarState::space()
    }

    fn action_space(&self) -> Space {
        Space::Discrete(3)
    }

    fn truncation_interval(&self) -> u64 {
        EnvSpec::NEVER
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: ArrayViewMut1<f32>) {
        self.state = MountainCarState::start(rng);
        self.state.observe(obs);
    }

    /// # Panics
    /// If the action is not 0, 1 or 2.
    fn step(&mut self, action: ArrayView1<f32>, _rng: &mut EnvRng, obs: ArrayViewMut1<f32>) -> Step {
        const FORCE: f64 = 0.001;
        self.state = self.state.after((option_index(action, 0, 3) as f64 - 1.0) * FORCE);
        self.state.observe(obs);
        let terminated = self.state.position >= 0.5 && self.state.speed >= 0.0;
        Step { reward: -1.0, terminated, truncated: false }
    }

    fn state(&self) -> Self::State {
        self.state
    }

    fn set_state(&mut self, state: Self::State) {
        self.state = state;
    }
}

impl Env for MountainCarContinuous {
    type State = MountainCarState;

    fn obs_space(&self) -> Space {
        MountainCarState::space()
    }

    fn action_space(&self) -> Space {
        Space::named_box([("force", -1.0, 1.0)])
    }

    fn truncation_interval(&self) -> u64 {
        EnvSpec::NEVER
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: ArrayViewMut1<f32>) {
        self.state = MountainCarState::start(rng);
        self.state.observe(obs);
    }

    fn step(&mut self, action: ArrayView1<f32>, _rng: &mut EnvRng, obs: ArrayViewMut1<f32>) -> Step {
        const POWER: f64 = 0.0015;
        let force = f64::from(action[0]);
        let exact = self.state.after(force.clamp(-1.0, 1.0) * POWER);
        let terminated = exact.position >= 0.45 && exact.speed >= 0.0;
        // Gymnasium stores the state of this task, unlike the others, in float32.
        self.state =
            MountainCarState { position: f64::from(exact.position as f32), speed: f64::from(exact.speed as f32) };
        self.state.observe(obs);
        let reward = if terminated { 100.0 } else { 0.0 } - 0.1 * force.powi(2);
        Step { reward: reward as f32, terminated, truncated: false }
    }

    fn state(&self) -> Self::State {
        self.state
    }

    fn set_state(&mut self, state: Self::State) {
        self.state = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_left_wall_stops_the_car() {
        let state = MountainCarState { position: -1.19, speed: -0.05 }.after(-0.001);
        assert_eq!(state, MountainCarState { position: -1.2, speed: 0.0 });
    }

    #[test]
    fn the_bottom_is_at_rest() {
        let bottom = MountainCarState { position: -std::f64::consts::FRAC_PI_6, speed: 0.0 };
        assert!(bottom.after(0.0).speed.abs() < 1e-15);
    }
}
