//! Pendulum as tensor operations.

use std::f64::consts::{PI, TAU};

use brasa_core::{NoiseWidths, ObsParts, TensorDynamics, TensorState, TensorStep};
use brasa_env::{Env, EnvSpec};
use burn::tensor::Tensor;

use super::{flat, observed, symmetric};
use crate::{Pendulum, PendulumParameters};

/// The rules of [`Pendulum`] for a device.
#[derive(Debug, Clone, Default)]
pub struct TensorPendulum {
    parameters: PendulumParameters,
}

/// The state of [`TensorPendulum`], each `[n_envs, 1]`: see [`crate::PendulumState`].
#[derive(Debug, Clone)]
pub struct PendulumTensors {
    /// In rad, wrapped to one turn: 32 bits would lose digits of an angle that grows.
    pub angle_rad: Tensor<2>,
    /// In rad/s.
    pub speed_rad_per_s: Tensor<2>,
}

impl TensorPendulum {
    /// A pendulum with other constants.
    pub fn new(parameters: PendulumParameters) -> Self {
        Self { parameters }
    }
}

/// The angle wrapped to `[-pi, pi)`.
fn wrapped(angle_rad: Tensor<2>) -> Tensor<2> {
    let turns = ((angle_rad.clone() + PI) / TAU).floor();
    angle_rad - turns * TAU
}

impl TensorState for PendulumTensors {
    fn parts(&self) -> Vec<Tensor<2>> {
        vec![self.angle_rad.clone(), self.speed_rad_per_s.clone()]
    }

    fn from_parts(parts: Vec<Tensor<2>>) -> Self {
        let [angle_rad, speed_rad_per_s] = parts.try_into().expect("there are as many parts as were handed out");
        Self { angle_rad, speed_rad_per_s }
    }
}

impl TensorDynamics for TensorPendulum {
    type State = PendulumTensors;

    fn spec(&self, n_envs: usize) -> EnvSpec {
        let host = Pendulum::new(self.parameters);
        EnvSpec::new(host.obs_space(), host.action_space(), n_envs)
    }

    fn noise(&self) -> NoiseWidths {
        NoiseWidths { start: 2, step: 0 }
    }

    fn start(&self, noise: Tensor<2>) -> PendulumTensors {
        PendulumTensors { angle_rad: symmetric(&noise, 0, PI), speed_rad_per_s: symmetric(&noise, 1, 1.0) }
    }

    fn observe(&self, state: &PendulumTensors) -> ObsParts {
        observed(vec![state.angle_rad.clone().cos(), state.angle_rad.clone().sin(), state.speed_rad_per_s.clone()])
    }

    /// Semi-implicit Euler, as on the host.
    fn step(
        &self,
        state: PendulumTensors,
        action: Tensor<2>,
        _: Tensor<2>,
        _: Option<u64>,
    ) -> TensorStep<PendulumTensors> {
        let p = &self.parameters;
        let limit = f64::from(p.torque_limit_nm);
        let torque_nm = action.clamp(-limit, limit);
        let cost = state.angle_rad.clone().square()
            + state.speed_rad_per_s.clone().square() * 0.1
            + torque_nm.clone().square() * 0.001;
        let acceleration = state.angle_rad.clone().sin() * (3.0 * p.gravity_m_per_s2 / (2.0 * p.length_m))
            + torque_nm * (3.0 / (p.mass_kg * p.length_m.powi(2)));
        let speed_rad_per_s = (state.speed_rad_per_s + acceleration * p.step_secs)
            .clamp(-p.speed_limit_rad_per_s, p.speed_limit_rad_per_s);
        let angle_rad = wrapped(state.angle_rad + speed_rad_per_s.clone() * p.step_secs);
        let state = PendulumTensors { angle_rad, speed_rad_per_s };
        TensorStep { state, reward: -flat(cost), terminated: None, info: None }
    }

    fn terminates(&self) -> bool {
        false
    }
}
