//! Acrobot: swing two links up with a motor at the joint between them.
//!
//! The task is Sutton's, "Generalization in Reinforcement Learning: Successful Examples Using Sparse Coarse
//! Coding" (1996), with the dynamics of Sutton and Barto's book. Numbers and the order of operations are those of
//! `Acrobot-v1` in [Gymnasium](https://gymnasium.farama.org/environments/classic_control/acrobot/).

use std::f64::consts::{FRAC_PI_2, PI, TAU};

use brasa_env::{Env, EnvRng, EnvSpec, Space, Step};
use ndarray::{ArrayView1, ArrayViewMut1};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::option_index;

const STEP_SECS: f64 = 0.2;
const GRAVITY_M_PER_S2: f64 = 9.8;
/// Mass of a link, in kg.
const MASS: f64 = 1.0;
/// Length of a link, in m.
const LENGTH: f64 = 1.0;
/// Distance of a link's center of mass from its upper end, in m.
const CENTER: f64 = 0.5;
/// Moment of inertia of a link, in kg m2.
const INERTIA: f64 = 1.0;
const MAX_SPEEDS_RAD_PER_S: [f64; 2] = [4.0 * PI, 9.0 * PI];

/// The acrobot: actions 0, 1 and 2 are torques of -1, 0 and 1 Nm at the joint.
///
/// Every step except the last has reward -1; the episode ends when the tip is one link length above the fixed end.
#[derive(Debug, Clone, Default)]
pub struct Acrobot {
    state: AcrobotState,
}

/// Angles and angular speeds of the links.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct AcrobotState {
    /// Angle of the first link from hanging down, then of the second from the first, in rad.
    pub angles_rad: [f64; 2],
    /// Their speeds, in rad/s.
    pub speeds_rad_per_s: [f64; 2],
}

/// Angles, then speeds.
type Vector = [f64; 4];

/// Derivative of angles and speeds under `torque_nm`: Sutton and Barto, "Reinforcement Learning" (1998), section 11.3.
fn derivative([angle_1, angle_2, speed_1, speed_2]: Vector, torque_nm: f64) -> Vector {
    let (sin_2, cos_2) = angle_2.sin_cos();
    let d1 = MASS * CENTER.powi(2)
        + MASS * (LENGTH.powi(2) + CENTER.powi(2) + 2.0 * LENGTH * CENTER * cos_2)
        + 2.0 * INERTIA;
    let d2 = MASS * (CENTER.powi(2) + LENGTH * CENTER * cos_2) + INERTIA;
    let phi_2 = MASS * CENTER * GRAVITY_M_PER_S2 * (angle_1 + angle_2 - FRAC_PI_2).cos();
    let phi_1 = -MASS * LENGTH * CENTER * speed_2.powi(2) * sin_2
        - 2.0 * MASS * LENGTH * CENTER * speed_2 * speed_1 * sin_2
        + (MASS * CENTER + MASS * LENGTH) * GRAVITY_M_PER_S2 * (angle_1 - FRAC_PI_2).cos()
        + phi_2;
    let acceleration_2 = (torque_nm + d2 / d1 * phi_1 - MASS * LENGTH * CENTER * speed_1.powi(2) * sin_2 - phi_2)
        / (MASS * CENTER.powi(2) + INERTIA - d2.powi(2) / d1);
    let acceleration_1 = -(d2 * acceleration_2 + phi_1) / d1;
    [speed_1, speed_2, acceleration_1, acceleration_2]
}

/// One step of the classical Runge-Kutta method of order four.
fn runge_kutta(y: Vector, torque_nm: f64) -> Vector {
    let moved = |slope: Vector, secs: f64| std::array::from_fn(|i| y[i] + secs * slope[i]);
    let k1 = derivative(y, torque_nm);
    let k2 = derivative(moved(k1, STEP_SECS / 2.0), torque_nm);
    let k3 = derivative(moved(k2, STEP_SECS / 2.0), torque_nm);
    let k4 = derivative(moved(k3, STEP_SECS), torque_nm);
    std::array::from_fn(|i| y[i] + STEP_SECS / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]))
}

/// The angle wrapped to `[-pi, pi]`.
fn wrapped(mut angle_rad: f64) -> f64 {
    while angle_rad > PI {
        angle_rad -= TAU;
    }
    while angle_rad < -PI {
        angle_rad += TAU;
    }
    angle_rad
}

impl Acrobot {
    /// Time limit of `Acrobot-v1` in steps; applied by a wrapper.
    pub const TIME_LIMIT: u32 = 500;

    /// An acrobot in the given state.
    pub fn from_state(state: AcrobotState) -> Self {
        Self { state }
    }

    fn observe(&self, mut obs: ArrayViewMut1<f32>) {
        let AcrobotState { angles_rad: [first, second], speeds_rad_per_s } = self.state;
        let values = [first.cos(), first.sin(), second.cos(), second.sin(), speeds_rad_per_s[0], speeds_rad_per_s[1]];
        for (out, value) in obs.iter_mut().zip(values) {
            *out = value as f32;
        }
    }
}

impl Env for Acrobot {
    type State = AcrobotState;

    fn obs_space(&self) -> Space {
        let [first, second] = MAX_SPEEDS_RAD_PER_S.map(|speed| speed as f32);
        Space::named_box([
            ("cos_angle_1", -1.0, 1.0),
            ("sin_angle_1", -1.0, 1.0),
            ("cos_angle_2", -1.0, 1.0),
            ("sin_angle_2", -1.0, 1.0),
            ("speed_1_rad_per_s", -first, first),
            ("speed_2_rad_per_s", -second, second),
        ])
    }

    fn action_space(&self) -> Space {
        Space::Discrete(3)
    }

    fn truncation_interval(&self) -> u64 {
        EnvSpec::NEVER
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: ArrayViewMut1<f32>) {
        let mut draw = || [0.1, 0.1].map(|limit: f64| limit * (2.0 * rng.random::<f64>() - 1.0));
        self.state = AcrobotState { angles_rad: draw(), speeds_rad_per_s: draw() };
        self.observe(obs);
    }

    /// # Panics
    /// If the action is not 0, 1 or 2.
    fn step(&mut self, action: ArrayView1<f32>, _rng: &mut EnvRng, obs: ArrayViewMut1<f32>) -> Step {
        let torque_nm = option_index(action, 0, 3) as f64 - 1.0;
        let AcrobotState { angles_rad: [a1, a2], speeds_rad_per_s: [s1, s2] } = self.state;
        let [a1, a2, s1, s2] = runge_kutta([a1, a2, s1, s2], torque_nm);
        let [limit_1, limit_2] = MAX_SPEEDS_RAD_PER_S;
        self.state = AcrobotState {
            angles_rad: [wrapped(a1), wrapped(a2)],
            speeds_rad_per_s: [s1.clamp(-limit_1, limit_1), s2.clamp(-limit_2, limit_2)],
        };
        self.observe(obs);
        let [first, second] = self.state.angles_rad;
        let terminated = -first.cos() - (first + second).cos() > 1.0;
        Step { reward: if terminated { 0.0 } else { -1.0 }, terminated, truncated: false }
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
    fn hanging_down_is_at_rest() {
        let slope = derivative([0.0; 4], 0.0);
        assert!(slope.iter().all(|x| x.abs() < 1e-12), "{slope:?}");
    }

    #[test]
    fn angles_turn_until_they_fit() {
        for (angle, expected) in [(0.0, 0.0), (PI, PI), (1.5 * PI, -0.5 * PI), (-4.5 * PI, -0.5 * PI)] {
            assert!((wrapped(angle) - expected).abs() < 1e-12, "{angle}");
        }
    }
}
