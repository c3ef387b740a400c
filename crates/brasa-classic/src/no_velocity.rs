//! Classic tasks whose speeds are not observed.

use brasa_env::{After, RuleEnv, Rules, Space};
use brasa_number::Number;

use crate::{CartPoleRules, MountainCarContinuousRules, PendulumRules};

/// Rules some of whose observations are speeds.
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
pub type CartPoleNoVelocity = RuleEnv<NoVelocity<CartPoleRules>, 4, 1, 4>;
/// [`crate::Pendulum`] without its speed.
pub type PendulumNoVelocity = RuleEnv<NoVelocity<PendulumRules>, 2, 1, 3>;
/// [`crate::MountainCarContinuous`] without its speed.
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

    fn step<N: Number>(&self, state: [N; STATE], action: [N; ACTION]) -> After<N, STATE> {
        self.0.step(state, action)
    }

    fn observe<N: Number>(&self, state: [N; STATE]) -> [N; OBS] {
        let mut obs = self.0.observe(state);
        for place in R::VELOCITIES {
            obs[*place] = obs[*place].constant(0.0);
        }
        obs
    }

    fn compact<N: Number>(&self, state: [N; STATE]) -> [N; STATE] {
        self.0.compact(state)
    }
}
