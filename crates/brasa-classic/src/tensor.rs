//! The classic tasks for devices, with the rules of the host in 32 bits instead of 64.

use brasa_core::RuleTensors;

pub use crate::spread::tensor::TensorSpread;
use crate::{AcrobotRules, CartPoleRules, MountainCarContinuousRules, MountainCarRules, PendulumRules};

/// [`crate::CartPole`] for a device.
///
/// ```
/// use brasa_classic::CartPoleRules;
/// use brasa_classic::tensor::TensorCartPole;
/// use brasa_core::TensorDynamics;
///
/// // `brasa_core::TensorEnv` makes environments of these dynamics on a device.
/// let dynamics = TensorCartPole::new(CartPoleRules { force_n: 5.0, ..Default::default() });
/// assert_eq!(dynamics.spec(4).obs.width(), 4);
/// ```
pub type TensorCartPole = RuleTensors<CartPoleRules, 4, 1, 4>;
/// [`crate::Pendulum`] for a device.
///
/// ```
/// use brasa_classic::PendulumRules;
/// use brasa_classic::tensor::TensorPendulum;
/// use brasa_core::TensorDynamics;
///
/// // `brasa_core::TensorEnv` makes environments of these dynamics on a device.
/// let dynamics = TensorPendulum::new(PendulumRules { mass_kg: 2.0, ..Default::default() });
/// assert_eq!(dynamics.spec(4).obs.width(), 3);
/// ```
pub type TensorPendulum = RuleTensors<PendulumRules, 2, 1, 3>;
/// [`crate::Acrobot`] for a device.
///
/// ```
/// use brasa_classic::AcrobotRules;
/// use brasa_classic::tensor::TensorAcrobot;
/// use brasa_core::TensorDynamics;
///
/// // `brasa_core::TensorEnv` makes environments of these dynamics on a device.
/// let dynamics = TensorAcrobot::new(AcrobotRules);
/// assert_eq!(dynamics.spec(4).obs.width(), 6);
/// ```
pub type TensorAcrobot = RuleTensors<AcrobotRules, 4, 1, 6>;
/// [`crate::MountainCar`] for a device.
///
/// ```
/// use brasa_classic::MountainCarRules;
/// use brasa_classic::tensor::TensorMountainCar;
/// use brasa_core::TensorDynamics;
///
/// // `brasa_core::TensorEnv` makes environments of these dynamics on a device.
/// let dynamics = TensorMountainCar::new(MountainCarRules);
/// assert_eq!(dynamics.spec(4).obs.width(), 2);
/// ```
pub type TensorMountainCar = RuleTensors<MountainCarRules, 2, 1, 2>;
/// [`crate::MountainCarContinuous`] for a device.
///
/// ```
/// use brasa_classic::MountainCarContinuousRules;
/// use brasa_classic::tensor::TensorMountainCarContinuous;
/// use brasa_core::TensorDynamics;
///
/// // `brasa_core::TensorEnv` makes environments of these dynamics on a device.
/// let dynamics = TensorMountainCarContinuous::new(MountainCarContinuousRules);
/// assert_eq!(dynamics.spec(4).obs.width(), 2);
/// ```
pub type TensorMountainCarContinuous = RuleTensors<MountainCarContinuousRules, 2, 1, 2>;
