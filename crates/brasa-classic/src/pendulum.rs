//! Pendulum: swing a pendulum up and hold it with a motor too weak to lift it directly.
//!
//! Numbers and the order of operations are those of `Pendulum-v1` in
//! [Gymnasium](https://gymnasium.farama.org/environments/classic_control/pendulum/), which computes in
//! float64 and returns float32. The task never terminates.

use std::f64::consts::{PI, TAU};

use brasa_env::{Env, EnvRng, EnvSpec, Space, Step};
use ndarray::{ArrayView1, ArrayViewMut1};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// The pendulum; its action is a torque in Nm, clipped to the limit of the motor.
///
/// The reward is `-(angle^2 + 0.1 speed^2 + 0.001 torque^2)` of the state *before* the step, the angle
/// measured from upright in `[-pi, pi)`; it is in `[-16.274, 0]`.
#[derive(Debug, Clone, Default)]
pub struct Pendulum {
    parameters: PendulumParameters,
    state: PendulumState,
}

/// Angle and angular speed of the pendulum.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PendulumState {
    /// Angle from upright, in rad, including full turns.
    pub angle_rad: f64,
    /// Angular speed, in rad/s.
    pub speed_rad_per_s: f64,
}

/// Constants of the pendulum; the defaults are those of `Pendulum-v1`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PendulumParameters {
    /// Gravity, in m/s^2; default 10.
    pub gravity_m_per_s2: f64,
    /// Mass, in kg; default 1.
    pub mass_kg: f64,
    /// Length, in m; default 1.
    pub length_m: f64,
    /// Largest torque of the motor, in Nm; default 2.
    pub torque_limit_nm: f32,
    /// Largest angular speed, in rad/s; default 8.
    pub speed_limit_rad_per_s: f64,
    /// Length of a step, in s; default 0.05.
    pub step_secs: f64,
}

impl Default for PendulumParameters {
    fn default() -> Self {
        Self {
            gravity_m_per_s2: 10.0,
            mass_kg: 1.0,
            length_m: 1.0,
            torque_limit_nm: 2.0,
            speed_limit_rad_per_s: 8.0,
            step_secs: 0.05,
        }
    }
}

impl Pendulum {
    /// Time limit of `Pendulum-v1` in steps; applied by a wrapper.
    pub const TIME_LIMIT: u32 = 200;

    /// A pendulum with other constants.
    pub fn new(parameters: PendulumParameters) -> Self {
        Self { parameters, state: PendulumState::default() }
    }

    /// A pendulum of `Pendulum-v1` in the given state.
    pub fn from_state(state: PendulumState) -> Self {
        Self { parameters: PendulumParameters::default(), state }
    }

    /// The constants.
    pub fn parameters(&self) -> &PendulumParameters {
        &self.parameters
    }

    fn observe(&self, mut obs: ArrayViewMut1<f32>) {
        let (sin, cos) = self.state.angle_rad.sin_cos();
        for (out, value) in obs.iter_mut().zip([cos, sin, self.state.speed_rad_per_s]) {
            *out = value as f32;
        }
    }
}

impl PendulumState {
    /// The state one step later under `torque_nm`, by semi-implicit Euler: the angle changes by the new speed.
    fn after(self, torque_nm: f32, p: &PendulumParameters) -> Self {
        // Gymnasium stores the torque in float32, so this product is rounded before the sum.
        let from_torque = f64::from((3.0 / (p.mass_kg * p.length_m.powi(2))) as f32 * torque_nm);
        let acceleration = 3.0 * p.gravity_m_per_s2 / (2.0 * p.length_m) * self.angle_rad.sin() + from_torque;
        let speed_rad_per_s = (self.speed_rad_per_s + acceleration * p.step_secs)
            .clamp(-p.speed_limit_rad_per_s, p.speed_limit_rad_per_s);
        Self { angle_rad: self.angle_rad + speed_rad_per_s * p.step_secs, speed_rad_per_s }
    }
}

/// The angle wrapped to `[-pi, pi)`.
fn wrapped(angle_rad: f64) -> f64 {
    (angle_rad + PI).rem_euclid(TAU) - PI
}

impl Env for Pendulum {
    type State = PendulumState;

    fn obs_space(&self) -> Space {
        let speed = self.parameters.speed_limit_rad_per_s as f32;
        Space::named_box([("cos_angle", -1.0, 1.0), ("sin_angle", -1.0, 1.0), ("speed_rad_per_s", -speed, speed)])
    }

    fn action_space(&self) -> Space {
        let limit = self.parameters.torque_limit_nm;
        Space::named_box([("torque_nm", -limit, limit)])
    }

    fn truncation_interval(&self) -> u64 {
        EnvSpec::NEVER
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: ArrayViewMut1<f32>) {
        let mut draw = |limit: f64| limit * (2.0 * rng.random::<f64>() - 1.0);
        self.state = PendulumState { angle_rad: draw(PI), speed_rad_per_s: draw(1.0) };
        self.observe(obs);
    }

    fn step(&mut self, action: ArrayView1<f32>, _rng: &mut EnvRng, obs: ArrayViewMut1<f32>) -> Step {
        let limit = self.parameters.torque_limit_nm;
        let torque_nm = action[0].clamp(-limit, limit);
        let cost = wrapped(self.state.angle_rad).powi(2)
            + 0.1 * self.state.speed_rad_per_s.powi(2)
            + f64::from(0.001 * torque_nm.powi(2));
        self.state = self.state.after(torque_nm, &self.parameters);
        self.observe(obs);
        Step { reward: -cost as f32, terminated: false, truncated: false }
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
    fn angles_wrap_at_pi() {
        for (angle, expected) in [(0.0, 0.0), (PI, -PI), (-PI, -PI), (1.5 * PI, -0.5 * PI), (-7.0 * PI, -PI)] {
            assert!((wrapped(angle) - expected).abs() < 1e-12, "{angle}");
        }
    }

    #[test]
    fn torque_is_clipped() {
        let (mut rng, mut at_limit, mut beyond) = (episode_rng(0, 0, 0), Array1::zeros(3), Array1::zeros(3));
        let state = PendulumState { angle_rad: 1.0, speed_rad_per_s: 0.0 };
        let first = Pendulum::from_state(state).step(array![2.0].view(), &mut rng, at_limit.view_mut());
        let second = Pendulum::from_state(state).step(array![50.0].view(), &mut rng, beyond.view_mut());
        assert_eq!((first, at_limit), (second, beyond));
    }

    #[test]
    fn standing_upright_costs_nothing() {
        let mut obs = Array1::zeros(3);
        let step = Pendulum::default().step(array![0.0].view(), &mut episode_rng(0, 0, 0), obs.view_mut());
        assert_eq!((step.reward, obs), (0.0, array![1.0, 0.0, 0.0]));
    }
}
