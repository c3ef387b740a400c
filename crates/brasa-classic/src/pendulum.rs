//! The pendulum.

use std::f64::consts::{PI, TAU};

use brasa_env::{After, RuleEnv, Rules, Space};
use brasa_number::Number;
use serde::{Deserialize, Serialize};

/// The pendulum; its action is a torque in Nm, clipped to the limit of the motor.
///
/// The reward is `-(angle^2 + 0.1 speed^2 + 0.001 torque^2)` of the state *before* the step, the angle
/// measured from upright in `[-pi, pi)`; it is in `[-16.274, 0]`.
///
/// ```
/// use brasa_classic::Pendulum;
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut env, mut obs, mut rng) = (Pendulum::default(), Array1::zeros(3), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// let step = env.step(array![2.0].view(), &mut rng, obs.view_mut());
/// assert!((-16.274..=0.0).contains(&step.reward) && !step.terminated);
/// ```
pub type Pendulum = RuleEnv<PendulumRules, 2, 1, 3>;

/// The rules of the pendulum. The defaults of its constants are those of `Pendulum-v1`.
///
/// Pendulum: swing a pendulum up and hold it with a motor too weak to lift it directly.
///
/// Numbers and the order of operations are those of `Pendulum-v1` in
/// [Gymnasium](https://gymnasium.farama.org/environments/classic_control/pendulum/), which computes in
/// float64 and returns float32. The task never terminates.
///
/// A state consists of the angle from upright in rad, including full turns, and the angular speed in rad/s.
///
/// ```
/// use brasa_classic::PendulumRules;
/// use brasa_env::Rules;
///
/// let rules = PendulumRules { torque_limit_nm: 4.0, ..Default::default() };
/// // Upright at rest, a torque costs a thousandth of its square.
/// let after = rules.step([0.0, 0.0], [4.0]);
/// assert!((after.reward + 0.016).abs() < 1e-8);
/// assert_eq!(after.terminated, None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PendulumRules {
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

impl Default for PendulumRules {
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

/// The angle wrapped to `[-pi, pi)`.
#[inline(always)]
fn wrapped<N: Number>(angle_rad: N) -> N {
    (angle_rad + PI).modulo(TAU) - PI
}

impl Rules<2, 1, 3> for PendulumRules {
    const TIME_LIMIT: u32 = 200;

    fn obs_space(&self) -> Space {
        let speed = self.speed_limit_rad_per_s as f32;
        Space::named_box([("cos_angle", -1.0, 1.0), ("sin_angle", -1.0, 1.0), ("speed_rad_per_s", -speed, speed)])
    }

    fn action_space(&self) -> Space {
        let limit = self.torque_limit_nm;
        Space::named_box([("torque_nm", -limit, limit)])
    }

    fn begin<N: Number>(&self, noise: [N; 2]) -> [N; 2] {
        let [angle, speed] = noise.map(|noise| noise * 2.0 - 1.0);
        [angle * PI, speed]
    }

    /// Semi-implicit Euler: the angle changes by the new speed.
    #[inline(always)]
    fn step<N: Number>(&self, [angle, speed]: [N; 2], [action]: [N; 1]) -> After<N, 2> {
        let (torque_limit, speed_limit) = (f64::from(self.torque_limit_nm), self.speed_limit_rad_per_s);
        let torque_nm = action.clamp(-torque_limit, torque_limit);
        // Gymnasium stores the torque in 32 bits, so its products are rounded before they are added.
        let per_torque = f64::from((3.0 / (self.mass_kg * self.length_m.powi(2))) as f32);
        let cost_of_torque = (torque_nm.square().rounded() * f64::from(0.001f32)).rounded();
        let cost = wrapped(angle).square() + speed.square() * 0.1 + cost_of_torque;
        let from_torque = (torque_nm * per_torque).rounded();
        let acceleration = angle.sin() * (3.0 * self.gravity_m_per_s2 / (2.0 * self.length_m)) + from_torque;
        let speed = (speed + acceleration * self.step_secs).clamp(-speed_limit, speed_limit);
        After { state: [angle + speed * self.step_secs, speed], reward: -cost, terminated: None }
    }

    #[inline(always)]
    fn observe<N: Number>(&self, [angle, speed]: [N; 2]) -> [N; 3] {
        [angle.cos(), angle.sin(), speed]
    }

    #[inline(always)]
    fn compact<N: Number>(&self, [angle, speed]: [N; 2]) -> [N; 2] {
        [wrapped(angle), speed]
    }
}

#[cfg(test)]
mod tests {
    use brasa_env::{Env, episode_rng};
    use ndarray::{Array1, array};

    use super::*;

    #[test]
    fn angles_wrap_at_pi() {
        for (angle, expected) in [(0.0, 0.0), (PI, -PI), (-PI, -PI), (1.5 * PI, -0.5 * PI), (-7.0 * PI, -PI)] {
            assert!((wrapped::<f64>(angle) - expected).abs() < 1e-12, "{angle}");
        }
    }

    #[test]
    fn torque_is_clipped() {
        let (mut rng, mut at_limit, mut beyond) = (episode_rng(0, 0, 0), Array1::zeros(3), Array1::zeros(3));
        let tilted = || Pendulum::at(PendulumRules::default(), [1.0, 0.0]);
        let first = tilted().step(array![2.0].view(), &mut rng, at_limit.view_mut());
        let second = tilted().step(array![50.0].view(), &mut rng, beyond.view_mut());
        assert_eq!((first, at_limit), (second, beyond));
    }

    #[test]
    fn standing_upright_costs_nothing() {
        let mut obs = Array1::zeros(3);
        let step = Pendulum::default().step(array![0.0].view(), &mut episode_rng(0, 0, 0), obs.view_mut());
        assert_eq!((step.reward, obs), (0.0, array![1.0, 0.0, 0.0]));
    }
}
