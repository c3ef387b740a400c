//! The acrobot.

use std::array::from_fn;
use std::f64::consts::{FRAC_PI_2, PI, TAU};

use brasa_env::{After, RuleEnv, Rules, Space};
use brasa_number::Number;

/// Length of a step, in s.
pub(crate) const STEP_SECS: f64 = 0.2;
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
///
/// ```
/// use brasa_classic::Acrobot;
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut env, mut obs, mut rng) = (Acrobot::default(), Array1::zeros(6), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// let step = env.step(array![2.0].view(), &mut rng, obs.view_mut());
/// assert_eq!((step.reward, step.terminated), (-1.0, false));
/// ```
pub type Acrobot = RuleEnv<AcrobotRules, 4, 1, 6>;

/// The rules of [`Acrobot`]. A state consists of the angle of the first link from hanging down and of the second from the first, in rad, and of
/// their speeds, in rad/s.
///
/// Acrobot: swing two links up with a motor at the joint between them.
///
/// The task is Sutton's, "Generalization in Reinforcement Learning: Successful Examples Using Sparse Coarse
/// Coding" (1996), with the dynamics of Sutton and Barto's book. Numbers and the order of operations are those of
/// `Acrobot-v1` in [Gymnasium](https://gymnasium.farama.org/environments/classic_control/acrobot/).
///
/// ```
/// use brasa_classic::AcrobotRules;
/// use brasa_env::Rules;
///
/// // Both links hang down.
/// assert_eq!(AcrobotRules.observe([0.0; 4]), [1.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
/// // Without a torque, they stay there.
/// let after = AcrobotRules.step([0.0; 4], [1.0]);
/// assert!(after.state.iter().all(|x| x.abs() < 1e-9));
/// assert_eq!((after.reward, after.terminated), (-1.0, Some(false)));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AcrobotRules;

/// Derivative of angles and speeds under `torque_nm`: Sutton and Barto, "Reinforcement Learning" (1998), section 11.3.
#[inline(always)]
fn derivative<N: Number>([angle_1, angle_2, speed_1, speed_2]: [N; 4], torque_nm: N) -> [N; 4] {
    const MOMENT: f64 = MASS * LENGTH * CENTER;
    let (sin_2, cos_2) = (angle_2.sin(), angle_2.cos());
    let d1 = (cos_2 * (2.0 * LENGTH * CENTER) + (LENGTH * LENGTH + CENTER * CENTER)) * MASS
        + (MASS * CENTER * CENTER + 2.0 * INERTIA);
    let d2 = (cos_2 * (LENGTH * CENTER) + CENTER * CENTER) * MASS + INERTIA;
    let phi_2 = (angle_1 + angle_2 - FRAC_PI_2).cos() * (MASS * CENTER * GRAVITY_M_PER_S2);
    let phi_1 = -(speed_2.square() * MOMENT * sin_2) - speed_2 * (2.0 * MOMENT) * speed_1 * sin_2
        + (angle_1 - FRAC_PI_2).cos() * ((MASS * CENTER + MASS * LENGTH) * GRAVITY_M_PER_S2)
        + phi_2;
    let push = torque_nm + d2 / d1 * phi_1 - speed_1.square() * MOMENT * sin_2 - phi_2;
    let acceleration_2 = push / (-(d2.square() / d1) + (MASS * CENTER * CENTER + INERTIA));
    let acceleration_1 = -(d2 * acceleration_2 + phi_1) / d1;
    [speed_1, speed_2, acceleration_1, acceleration_2]
}

/// One step of the classical Runge-Kutta method of order four.
#[inline(always)]
fn runge_kutta<N: Number>(y: [N; 4], torque_nm: N) -> [N; 4] {
    let moved = |slope: [N; 4], secs: f64| from_fn(|i| y[i] + slope[i] * secs);
    let k1 = derivative(y, torque_nm);
    let k2 = derivative(moved(k1, STEP_SECS / 2.0), torque_nm);
    let k3 = derivative(moved(k2, STEP_SECS / 2.0), torque_nm);
    let k4 = derivative(moved(k3, STEP_SECS), torque_nm);
    from_fn(|i| y[i] + (k1[i] + k2[i] * 2.0 + k3[i] * 2.0 + k4[i]) * (STEP_SECS / 6.0))
}

/// The angle wrapped to `[-pi, pi]`. A step turns a link by less than two turns.
#[inline(always)]
fn wrapped<N: Number>(angle_rad: N) -> N {
    (0..2).fold(angle_rad, |angle, _| {
        let angle = N::select(angle.greater(angle.constant(PI)), angle - TAU, angle);
        N::select(angle.lower(angle.constant(-PI)), angle + TAU, angle)
    })
}

impl Rules<4, 1, 6> for AcrobotRules {
    const TIME_LIMIT: u32 = 500;
    const TERMINATES: bool = true;

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

    fn begin<N: Number>(&self, noise: [N; 4]) -> [N; 4] {
        noise.map(|noise| (noise * 2.0 - 1.0) * 0.1)
    }

    #[inline(always)]
    fn step<N: Number>(&self, state: [N; 4], [action]: [N; 1]) -> After<N, 4> {
        let [angle_1, angle_2, speed_1, speed_2] = runge_kutta(state, action - 1.0);
        let [angle_1, angle_2] = [angle_1, angle_2].map(wrapped);
        let [limit_1, limit_2] = MAX_SPEEDS_RAD_PER_S;
        let height = -angle_1.cos() - (angle_1 + angle_2).cos();
        let terminated = height.greater(height.constant(1.0));
        After {
            state: [angle_1, angle_2, speed_1.clamp(-limit_1, limit_1), speed_2.clamp(-limit_2, limit_2)],
            reward: N::select(terminated, height.constant(0.0), height.constant(-1.0)),
            terminated: Some(terminated),
        }
    }

    #[inline(always)]
    fn observe<N: Number>(&self, [angle_1, angle_2, speed_1, speed_2]: [N; 4]) -> [N; 6] {
        [angle_1.cos(), angle_1.sin(), angle_2.cos(), angle_2.sin(), speed_1, speed_2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hanging_down_is_at_rest() {
        let slope = derivative([0.0; 4], 0.0);
        assert!(slope.iter().all(|x: &f64| x.abs() < 1e-12), "{slope:?}");
    }

    #[test]
    fn angles_turn_until_they_fit() {
        for (angle, expected) in [(0.0, 0.0), (PI, PI), (1.5 * PI, -0.5 * PI), (-4.5 * PI, -0.5 * PI)] {
            assert!((wrapped::<f64>(angle) - expected).abs() < 1e-12, "{angle}");
        }
    }
}
