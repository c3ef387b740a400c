//! Classic tasks whose speeds are not observed.

use brasa_env::{After, RuleEnv, Rules, Space};
use brasa_number::Number;

use crate::{CartPoleRules, MountainCarContinuousRules, PendulumRules};

/// Rules some of whose observations are speeds.
///
/// ```
/// use brasa_classic::{NoVelocity, Velocities};
/// use brasa_env::{After, Rules, Space};
/// use brasa_number::Number;
///
/// /// A mass that is pushed along a line; it has a position and a speed.
/// #[derive(Clone, PartialEq, Default)]
/// struct Mass;
///
/// impl Velocities for Mass {
///     const VELOCITIES: &'static [usize] = &[1];
/// }
/// # impl Rules<2, 1, 2> for Mass {
/// #     const TIME_LIMIT: u32 = 100;
/// #     fn obs_space(&self) -> Space { Space::uniform_box(-1.0, 1.0, ["position", "speed"]) }
/// #     fn action_space(&self) -> Space { Space::uniform_box(-1.0, 1.0, ["force"]) }
/// #     fn begin<N: Number>(&self, noise: [N; 2]) -> [N; 2] { noise }
/// #     fn step<N: Number>(&self, [position, speed]: [N; 2], [force]: [N; 1]) -> After<N, 2> {
/// #         After { state: [position + speed, speed + force], reward: -position.square(), terminated: None }
/// #     }
/// #     fn observe<N: Number>(&self, state: [N; 2]) -> [N; 2] { state }
/// # }
///
/// // `Mass` observes its state.
/// assert_eq!(NoVelocity(Mass).observe([0.5, 0.25]), [0.5, 0.0]);
/// ```
pub trait Velocities {
    /// The places of speeds in an observation.
    const VELOCITIES: &'static [usize];
}

impl Velocities for CartPoleRules {
    const VELOCITIES: &'static [usize] = &[1, 3];
}

impl Velocities for PendulumRules {
    const VELOCITIES: &'static [usize] = &[2];
}

impl Velocities for MountainCarContinuousRules {
    const VELOCITIES: &'static [usize] = &[1];
}

/// The same rules with speeds that are observed as 0, as in the tasks `NoVel` of RL Zoo: a policy must remember positions to know them.
///
/// ```
/// use brasa_classic::{CartPoleRules, NoVelocity};
/// use brasa_env::Rules;
///
/// let rules = NoVelocity(CartPoleRules::default());
/// assert_eq!(rules.observe([0.1, 0.2, 0.3, 0.4]), [0.1, 0.0, 0.3, 0.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct NoVelocity<R>(
    /// The rules.
    pub R,
);

/// [`crate::CartPole`] without speeds.
///
/// ```
/// use brasa_classic::CartPoleNoVelocity;
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut env, mut obs, mut rng) = (CartPoleNoVelocity::default(), Array1::zeros(4), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// let step = env.step(array![1.0].view(), &mut rng, obs.view_mut());
/// // The speeds of cart and pole.
/// assert_eq!((step.reward, obs[1], obs[3]), (1.0, 0.0, 0.0));
/// ```
pub type CartPoleNoVelocity = RuleEnv<NoVelocity<CartPoleRules>, 4, 1, 4>;
/// [`crate::Pendulum`] without its speed.
///
/// ```
/// use brasa_classic::PendulumNoVelocity;
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let (mut env, mut obs, mut rng) = (PendulumNoVelocity::default(), Array1::zeros(3), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// let step = env.step(array![2.0].view(), &mut rng, obs.view_mut());
/// // Cosine and sine of the angle are observed, its speed is not.
/// assert_eq!((step.terminated, obs[2]), (false, 0.0));
/// ```
pub type PendulumNoVelocity = RuleEnv<NoVelocity<PendulumRules>, 2, 1, 3>;
/// [`crate::MountainCarContinuous`] without its speed.
///
/// ```
/// use brasa_classic::MountainCarContinuousNoVelocity;
/// use brasa_env::{Env, episode_rng};
/// use ndarray::{Array1, array};
///
/// let mut env = MountainCarContinuousNoVelocity::default();
/// let (mut obs, mut rng) = (Array1::zeros(2), episode_rng(0, 0, 0));
/// env.reset(&mut rng, obs.view_mut());
/// let step = env.step(array![0.5].view(), &mut rng, obs.view_mut());
/// assert!(step.reward < 0.0 && obs[0] < 0.0);
/// assert_eq!(obs[1], 0.0);
/// ```
pub type MountainCarContinuousNoVelocity = RuleEnv<NoVelocity<MountainCarContinuousRules>, 2, 1, 2>;

impl<R, const STATE: usize, const ACTION: usize, const OBS: usize> Rules<STATE, ACTION, OBS> for NoVelocity<R>
where
    R: Rules<STATE, ACTION, OBS> + Velocities,
{
    const TIME_LIMIT: u32 = R::TIME_LIMIT;
    const TERMINATES: bool = R::TERMINATES;

    fn obs_space(&self) -> Space {
        self.0.obs_space()
    }

    fn action_space(&self) -> Space {
        self.0.action_space()
    }

    fn begin<N: Number>(&self, noise: [N; STATE]) -> [N; STATE] {
        self.0.begin(noise)
    }

    #[inline(always)]
    fn step<N: Number>(&self, state: [N; STATE], action: [N; ACTION]) -> After<N, STATE> {
        self.0.step(state, action)
    }

    #[inline(always)]
    fn observe<N: Number>(&self, state: [N; STATE]) -> [N; OBS] {
        let mut obs = self.0.observe(state);
        for place in R::VELOCITIES {
            obs[*place] = obs[*place].constant(0.0);
        }
        obs
    }

    #[inline(always)]
    fn compact<N: Number>(&self, state: [N; STATE]) -> [N; STATE] {
        self.0.compact(state)
    }
}
