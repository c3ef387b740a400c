//! CartPole: keep a pole upright on a cart that is pushed left or right.
//!
//! The task is Barto, Sutton and Anderson, "Neuronlike adaptive elements that can solve difficult learning
//! control problems" (1983), with the frictionless dynamics of Florian, "Correct equations for the dynamics
//! of the cart-pole system" (2007). Numbers and the order of operations are those of `CartPole-v1` in
//! [Gymnasium](https://gymnasium.farama.org/environments/classic_control/cart_pole/), which computes in
//! float64 and returns float32.

use brasa_env::{Env, EnvRng, EnvSpec, Space, Step};
use ndarray::{ArrayView1, ArrayViewMut1};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::option_index;

/// The cart-pole: action 0 pushes to the left, 1 to the right; every step has reward 1, including the last.
#[derive(Debug, Clone, Default)]
pub struct CartPole {
    parameters: CartPoleParameters,
    state: CartPoleState,
}

/// Positions and speeds of cart and pole.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CartPoleState {
    /// Position of the cart on the track, in m; the middle is 0.
    pub position_m: f64,
    /// Speed of the cart, in m/s.
    pub speed_m_per_s: f64,
    /// Angle of the pole from upright, in rad; clockwise is positive.
    pub angle_rad: f64,
    /// Angular speed of the pole, in rad/s.
    pub angular_speed_rad_per_s: f64,
}

/// Constants of the cart-pole; the defaults are those of `CartPole-v1`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CartPoleParameters {
    /// Gravity, in m/s^2; default 9.8.
    pub gravity_m_per_s2: f64,
    /// Mass of the cart, in kg; default 1.0.
    pub cart_mass_kg: f64,
    /// Mass of the pole, in kg; default 0.1.
    pub pole_mass_kg: f64,
    /// Half the length of the pole, in m; default 0.5.
    pub half_pole_length_m: f64,
    /// Force of a push, in N; default 10.
    pub force_n: f64,
    /// Length of a step, in s; default 0.02.
    pub step_secs: f64,
    /// The episode ends beyond this angle, in rad; default 12 degrees.
    pub angle_limit_rad: f64,
    /// The episode ends beyond this distance from the middle, in m; default 2.4.
    pub position_limit_m: f64,
    /// Each number of the initial state is uniform between minus and plus this value; default 0.05.
    pub start_limit: f64,
}

impl Default for CartPoleParameters {
    fn default() -> Self {
        Self {
            gravity_m_per_s2: 9.8,
            cart_mass_kg: 1.0,
            pole_mass_kg: 0.1,
            half_pole_length_m: 0.5,
            force_n: 10.0,
            step_secs: 0.02,
            angle_limit_rad: 12.0 * 2.0 * std::f64::consts::PI / 360.0,
            position_limit_m: 2.4,
            start_limit: 0.05,
        }
    }
}

impl CartPole {
    /// Time limit of `CartPole-v1` in steps; applied by a wrapper.
    pub const TIME_LIMIT: u32 = 500;

    /// A cart-pole with other constants.
    pub fn new(parameters: CartPoleParameters) -> Self {
        Self { parameters, state: CartPoleState::default() }
    }

    /// A cart-pole of `CartPole-v1` in the given state.
    pub fn from_state(state: CartPoleState) -> Self {
        Self { parameters: CartPoleParameters::default(), state }
    }

    /// The constants.
    pub fn parameters(&self) -> &CartPoleParameters {
        &self.parameters
    }

    fn observe(&self, mut obs: ArrayViewMut1<f32>) {
        let s = &self.state;
        for (out, value) in obs.iter_mut().zip([s.position_m, s.speed_m_per_s, s.angle_rad, s.angular_speed_rad_per_s])
        {
            *out = value as f32;
        }
    }
}

impl CartPoleState {
    /// The state one step later under `force_n`: one explicit Euler step of Florian's equations 23 and 24.
    fn after(self, force_n: f64, p: &CartPoleParameters) -> Self {
        let (sin, cos) = self.angle_rad.sin_cos();
        let total_mass_kg = p.pole_mass_kg + p.cart_mass_kg;
        let pole_moment = p.pole_mass_kg * p.half_pole_length_m;
        let shared = (force_n + pole_moment * self.angular_speed_rad_per_s.powi(2) * sin) / total_mass_kg;
        let angular_acceleration = (p.gravity_m_per_s2 * sin - cos * shared)
            / (p.half_pole_length_m * (4.0 / 3.0 - p.pole_mass_kg * cos.powi(2) / total_mass_kg));
        let acceleration = shared - pole_moment * angular_acceleration * cos / total_mass_kg;
        Self {
            position_m: self.position_m + p.step_secs * self.speed_m_per_s,
            speed_m_per_s: self.speed_m_per_s + p.step_secs * acceleration,
            angle_rad: self.angle_rad + p.step_secs * self.angular_speed_rad_per_s,
            angular_speed_rad_per_s: self.angular_speed_rad_per_s + p.step_secs * angular_acceleration,
        }
    }
}

impl Env for CartPole {
    type State = CartPoleState;

    fn obs_space(&self) -> Space {
        // Twice the limits, so that the last observation of an episode is also inside.
        let (position, angle) =
            ((2.0 * self.parameters.position_limit_m) as f32, (2.0 * self.parameters.angle_limit_rad) as f32);
        Space::named_box([
            ("position_m", -position, position),
            ("speed_m_per_s", f32::NEG_INFINITY, f32::INFINITY),
            ("angle_rad", -angle, angle),
            ("angular_speed_rad_per_s", f32::NEG_INFINITY, f32::INFINITY),
        ])
    }

    fn action_space(&self) -> Space {
        Space::Discrete(2)
    }

    fn truncation_interval(&self) -> u64 {
        EnvSpec::NEVER
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: ArrayViewMut1<f32>) {
        let limit = self.parameters.start_limit;
        let mut draw = || limit * (2.0 * rng.random::<f64>() - 1.0);
        self.state = CartPoleState {
            position_m: draw(),
            speed_m_per_s: draw(),
            angle_rad: draw(),
            angular_speed_rad_per_s: draw(),
        };
        self.observe(obs);
    }

    /// # Panics
    /// If the action is neither 0 nor 1.
    fn step(&mut self, action: ArrayView1<f32>, _rng: &mut EnvRng, obs: ArrayViewMut1<f32>) -> Step {
        let p = &self.parameters;
        let force_n = if option_index(action, 0, 2) == 1 { p.force_n } else { -p.force_n };
        self.state = self.state.after(force_n, p);
        let terminated =
            self.state.position_m.abs() > p.position_limit_m || self.state.angle_rad.abs() > p.angle_limit_rad;
        self.observe(obs);
        Step { reward: 1.0, terminated, truncated: false }
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
    use brasa_env::episode_rng;
    use ndarray::{Array1, array};

    use super::*;

    #[test]
    fn starts_near_the_middle_and_repeats() {
        let (mut env, mut obs) = (CartPole::default(), Array1::zeros(4));
        for episode in 0..100 {
            env.reset(&mut episode_rng(3, 0, episode), obs.view_mut());
            assert!(obs.iter().all(|x: &f32| x.abs() <= 0.05 && *x != 0.0), "{obs}");
        }
        let first = obs.clone();
        env.reset(&mut episode_rng(3, 0, 99), obs.view_mut());
        assert_eq!(first, obs);
    }

    #[test]
    fn ends_exactly_beyond_the_limits() {
        let (mut rng, mut obs) = (episode_rng(0, 0, 0), Array1::zeros(4));
        let limit = CartPoleParameters::default().angle_limit_rad;
        for (angle_rad, ends) in [(limit, false), (limit + 1e-9, true), (-limit - 1e-9, true)] {
            let mut env = CartPole::from_state(CartPoleState { angle_rad, ..Default::default() });
            let step = env.step(array![1.0].view(), &mut rng, obs.view_mut());
            assert_eq!((step.terminated, step.reward, step.truncated), (ends, 1.0, false), "{angle_rad}");
        }
    }

    #[test]
    #[should_panic(expected = "must be an index below 2, got 0.5")]
    fn refuses_half_an_action() {
        let mut obs = Array1::zeros(4);
        CartPole::default().step(array![0.5].view(), &mut episode_rng(0, 0, 0), obs.view_mut());
    }
}
