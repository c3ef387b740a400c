//! Mountain cars.

use brasa_env::{After, RuleEnv, Rules, Space};
use brasa_number::Number;

const MIN_POSITION: f64 = -1.2;
const MAX_POSITION: f64 = 0.6;
const MAX_SPEED: f64 = 0.07;
const GRAVITY: f64 = 0.0025;

/// The car with three actions: 0 pushes to the left, 1 does not push, 2 pushes to the right.
///
/// Every step has reward -1; the episode ends at position 0.5.
///
/// ```
/// use brasa_classic::MountainCar;
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut env, mut obs, mut rng) = (MountainCar::default(), Array1::zeros(2), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// let step = env.step(array![2.0].view(), &mut rng, obs.view_mut());
/// assert_eq!((step.reward, step.terminated), (-1.0, false));
/// ```
pub type MountainCar = RuleEnv<MountainCarRules, 2, 1, 2>;

/// The car with a continuous force, clipped to [-1, 1].
///
/// The reward of a step is -0.1 times the square of the action *before* clipping, as in Gymnasium; position 0.45
/// gives 100 and ends the episode. A force of 0 has return 0, a local optimum for learners with little exploration.
///
/// ```
/// use brasa_classic::MountainCarContinuous;
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut env, mut obs, mut rng) = (MountainCarContinuous::default(), Array1::zeros(2), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// let step = env.step(array![0.5].view(), &mut rng, obs.view_mut());
/// // A tenth of the square of the force.
/// assert_eq!((step.reward, step.terminated), (-0.025, false));
/// ```
pub type MountainCarContinuous = RuleEnv<MountainCarContinuousRules, 2, 1, 2>;

/// The rules of [`MountainCar`]. A state consists of the position along the valley, -1.2 to 0.6 with the bottom at -pi/6, and of its change
/// per step, -0.07 to 0.07. They are observed as they are.
///
/// MountainCar: drive out of a valley with an engine too weak to climb directly, with three actions or a continuous
/// force.
///
/// The task is Moore's, "Efficient Memory-based Learning for Robot Control" (1990). Numbers and the order of
/// operations are those of `MountainCar-v0` and `MountainCarContinuous-v0` in
/// [Gymnasium](https://gymnasium.farama.org/environments/classic_control/mountain_car/). The valley is
/// `sin(3 position)`; there are no physical units.
///
/// ```
/// use brasa_classic::MountainCarRules;
/// use brasa_env::Rules;
///
/// // At the goal with a speed to the right.
/// let after = MountainCarRules.step([0.49, 0.05], [2.0]);
/// assert_eq!((after.reward, after.terminated), (-1.0, Some(true)));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MountainCarRules;

/// The rules of [`MountainCarContinuous`], with the states of [`MountainCarRules`].
///
/// ```
/// use brasa_classic::MountainCarContinuousRules;
/// use brasa_env::Rules;
///
/// // At the goal: 100, less the cost of the force.
/// let after = MountainCarContinuousRules.step([0.44, 0.05], [1.0]);
/// assert_eq!((after.reward, after.terminated), (100.0 - 0.1, Some(true)));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MountainCarContinuousRules;

/// The state one step later under an acceleration; the left wall stops the car.
#[inline(always)]
fn moved<N: Number>([position, speed]: [N; 2], acceleration: N) -> [N; 2] {
    let speed = speed + acceleration - (position * 3.0).cos() * GRAVITY;
    let speed = speed.clamp(-MAX_SPEED, MAX_SPEED);
    let position = (position + speed).clamp(MIN_POSITION, MAX_POSITION);
    let is_at_wall = position.equal(position.constant(MIN_POSITION));
    [position, N::select(is_at_wall, speed.max_of(0.0), speed)]
}

/// Whether the car is at the goal and does not move back.
#[inline(always)]
fn arrived<N: Number>([position, speed]: [N; 2], goal: f64) -> N::Mask {
    let reached = N::not(position.lower(position.constant(goal)));
    N::both(reached, N::not(speed.lower(speed.constant(0.0))))
}

fn start<N: Number>([noise, _]: [N; 2]) -> [N; 2] {
    [noise * 0.2 - 0.6, noise.constant(0.0)]
}

fn obs_space() -> Space {
    let speed = MAX_SPEED as f32;
    Space::named_box([("position", MIN_POSITION as f32, MAX_POSITION as f32), ("speed", -speed, speed)])
}

impl Rules<2, 1, 2> for MountainCarRules {
    const TIME_LIMIT: u32 = 200;
    const OBSERVES_STATE: bool = true;
    const TERMINATES: bool = true;

    fn obs_space(&self) -> Space {
        obs_space()
    }

    fn action_space(&self) -> Space {
        Space::Discrete(3)
    }

    fn begin<N: Number>(&self, noise: [N; 2]) -> [N; 2] {
        start(noise)
    }

    #[inline(always)]
    fn step<N: Number>(&self, state: [N; 2], [action]: [N; 1]) -> After<N, 2> {
        const FORCE: f64 = 0.001;
        let state = moved(state, (action - 1.0) * FORCE);
        After { state, reward: action.constant(-1.0), terminated: Some(arrived(state, 0.5)) }
    }

    #[inline(always)]
    fn observe<N: Number>(&self, state: [N; 2]) -> [N; 2] {
        state
    }
}

impl Rules<2, 1, 2> for MountainCarContinuousRules {
    const TIME_LIMIT: u32 = 999;
    const OBSERVES_STATE: bool = true;
    const TERMINATES: bool = true;

    fn obs_space(&self) -> Space {
        obs_space()
    }

    fn action_space(&self) -> Space {
        Space::named_box([("force", -1.0, 1.0)])
    }

    fn begin<N: Number>(&self, noise: [N; 2]) -> [N; 2] {
        start(noise)
    }

    #[inline(always)]
    fn step<N: Number>(&self, state: [N; 2], [force]: [N; 1]) -> After<N, 2> {
        const POWER: f64 = 0.0015;
        let state = moved(state, force.clamp(-1.0, 1.0) * POWER);
        let terminated = arrived(state, 0.45);
        let reward = force.constant(100.0).or_zero(terminated) - force.square() * 0.1;
        // Gymnasium stores the state of this task, unlike the others, in 32 bits.
        After { state: state.map(N::rounded), reward, terminated: Some(terminated) }
    }

    #[inline(always)]
    fn observe<N: Number>(&self, state: [N; 2]) -> [N; 2] {
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_left_wall_stops_the_car() {
        assert_eq!(moved([-1.19, -0.05], -0.001), [-1.2, 0.0]);
    }

    #[test]
    fn the_bottom_is_at_rest() {
        assert!(moved([-std::f64::consts::FRAC_PI_6, 0.0], 0.0)[1].abs() < 1e-15);
    }
}
