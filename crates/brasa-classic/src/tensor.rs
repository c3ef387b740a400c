//! The classic tasks for devices, with the rules of the host in 32 bits instead of 64.

use brasa_core::RuleTensors;

use crate::{AcrobotRules, CartPoleRules, MountainCarContinuousRules, MountainCarRules, PendulumRules};

/// [`crate::CartPole`] for a device.
pub type TensorCartPole = RuleTensors<CartPoleRules, 4, 1, 4>;
/// [`crate::Pendulum`] for a device.
pub type TensorPendulum = RuleTensors<PendulumRules, 2, 1, 3>;
/// [`crate::Acrobot`] for a device.
pub type TensorAcrobot = RuleTensors<AcrobotRules, 4, 1, 6>;
/// [`crate::MountainCar`] for a device.
pub type TensorMountainCar = RuleTensors<MountainCarRules, 2, 1, 2>;
/// [`crate::MountainCarContinuous`] for a device.
pub type TensorMountainCarContinuous = RuleTensors<MountainCarContinuousRules, 2, 1, 2>;
