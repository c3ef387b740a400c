//! Cart-pole.

use brasa_env::{After, RuleEnv, Rules, Space};
use brasa_number::Number;
use serde::{Deserialize, Serialize};

/// The cart-pole: action 0 pushes to the left, 1 to the right; every step has reward 1, including the last.
///
/// ```
/// use brasa_classic::CartPole;
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut env, mut obs, mut rng) = (CartPole::default(), Array1::zeros(4), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// let step = env.step(array![1.0].view(), &mut rng, obs.view_mut());
/// assert_eq!((step.reward, step.terminated), (1.0, false));
/// ```
pub type CartPole = RuleEnv<CartPoleRules, 4, 1, 4>;

/// The rules of the cart-pole. The defaults of its constants are those of `CartPole-v1`.
///
/// CartPole: keep a pole upright on a cart that is pushed left or right.
///
/// The task is Barto, Sutton and Anderson, "Neuronlike adaptive elements that can solve difficult learning
/// control problems" (1983), with the frictionless dynamics of Florian, "Correct equations for the dynamics
/// of the cart-pole system" (2007). Numbers and the order of operations are those of `CartPole-v1` in
/// [Gymnasium](https://gymnasium.farama.org/environments/classic_control/cart_pole/), which computes in
/// float64 and returns float32.
///
/// A state consists of the position of the cart on the track in m (the middle is 0), its speed in m/s, the angle of the pole from upright in
/// rad (clockwise is positive), and its angular speed in rad/s. They are observed as they are.
///
/// ```
/// use brasa_classic::{CartPole, CartPoleRules};
/// use brasa_env::Rules;
///
/// let rules = CartPoleRules { half_pole_length_m: 1.0, ..Default::default() };
/// // The pole leans to the right by more than 12 degrees.
/// assert_eq!(rules.step([0.0, 0.0, 0.25, 0.0], [1.0]).terminated, Some(true));
/// let env = CartPole::new(rules);
/// assert_eq!(env.rules().half_pole_length_m, 1.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CartPoleRules {
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

impl Default for CartPoleRules {
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

impl Rules<4, 1, 4> for CartPoleRules {
    const TIME_LIMIT: u32 = 500;
    const OBSERVES_STATE: bool = true;
    const TERMINATES: bool = true;

    fn obs_space(&self) -> Space {
        // Twice the limits, so that the last observation of an episode is also inside.
        let (position, angle) = ((2.0 * self.position_limit_m) as f32, (2.0 * self.angle_limit_rad) as f32);
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

    fn begin<N: Number>(&self, noise: [N; 4]) -> [N; 4] {
        noise.map(|noise| (noise * 2.0 - 1.0) * self.start_limit)
    }

    /// One explicit Euler step of Florian's equations 23 and 24.
    #[inline(always)]
    fn step<N: Number>(&self, [position, speed, angle, turning]: [N; 4], [action]: [N; 1]) -> After<N, 4> {
        let total_mass_kg = self.pole_mass_kg + self.cart_mass_kg;
        let pole_moment = self.pole_mass_kg * self.half_pole_length_m;
        let force_n = (action * 2.0 - 1.0) * self.force_n;
        let (sin, cos) = (angle.sin(), angle.cos());
        let shared = (force_n + turning.square() * pole_moment * sin) / total_mass_kg;
        let inertia = (-(cos.square() * self.pole_mass_kg / total_mass_kg) + 4.0 / 3.0) * self.half_pole_length_m;
        let turning_change = (sin * self.gravity_m_per_s2 - cos * shared) / inertia;
        let acceleration = shared - turning_change * pole_moment * cos / total_mass_kg;
        let state = [
            position + speed * self.step_secs,
            speed + acceleration * self.step_secs,
            angle + turning * self.step_secs,
            turning + turning_change * self.step_secs,
        ];
        let beyond = |x: N, limit: f64| x.abs().greater(x.constant(limit));
        let terminated = N::either(beyond(state[0], self.position_limit_m), beyond(state[2], self.angle_limit_rad));
        After { state, reward: angle.constant(1.0), terminated: Some(terminated) }
    }

    #[inline(always)]
    fn observe<N: Number>(&self, state: [N; 4]) -> [N; 4] {
        state
    }
}

#[cfg(test)]
mod tests {
    use brasa_env::{Env, episode_rng};
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
        let limit = CartPoleRules::default().angle_limit_rad;
        for (angle_rad, ends) in [(limit, false), (limit + 1e-9, true), (-limit - 1e-9, true)] {
            let mut env = CartPole::at(CartPoleRules::default(), [0.0, 0.0, angle_rad, 0.0]);
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
