//! Pendulum as tensor operations.

use std::f64::consts::{PI, TAU};

use brasa_core::{NoiseWidths, ObsParts, TensorDynamics, TensorStep};
use brasa_env::{Env, EnvSpec};
use brasa_kernels::{Value, elementwise};
use burn::tensor::Tensor;

use super::{flat, observed};
use crate::{Pendulum, PendulumParameters};

/// The rules of [`Pendulum`] for a device.
#[derive(Debug, Clone, Default)]
pub struct TensorPendulum {
    parameters: PendulumParameters,
}

impl TensorPendulum {
    /// A pendulum with other constants.
    pub fn new(parameters: PendulumParameters) -> Self {
        Self { parameters }
    }
}

/// The angle wrapped to `[-pi, pi)`: 32 bits would lose digits of an angle that grows.
fn wrapped(angle_rad: Value<'_>) -> Value<'_> {
    angle_rad - ((angle_rad + PI) / TAU).floor() * TAU
}

impl TensorDynamics for TensorPendulum {
    /// `[n_envs, 2]`: the numbers of [`crate::PendulumState`], in its order, with the angle wrapped to one turn.
    type State = Tensor<2>;

    const STATE_VERSION: u32 = 2;

    fn spec(&self, n_envs: usize) -> EnvSpec {
        let host = Pendulum::new(self.parameters);
        EnvSpec::new(host.obs_space(), host.action_space(), n_envs)
    }

    fn noise(&self) -> NoiseWidths {
        NoiseWidths { start: 2, step: 0 }
    }

    fn start(&self, noise: Tensor<2>) -> Tensor<2> {
        let [state] = elementwise([noise.dims()[0], 1], |formulas| {
            let noise = formulas.matrix(&noise);
            let symmetric = |column: usize| noise.column(column) * 2.0 - 1.0;
            [vec![symmetric(0) * PI, symmetric(1)]]
        });
        state
    }

    fn observe(&self, state: &Tensor<2>) -> ObsParts {
        let [obs] = elementwise([state.dims()[0], 1], |formulas| {
            let state = formulas.matrix(state);
            let angle_rad = state.column(0);
            [vec![angle_rad.cos(), angle_rad.sin(), state.column(1)]]
        });
        observed(obs)
    }

    /// Semi-implicit Euler, as on the host.
    fn step(&self, state: Tensor<2>, action: Tensor<2>, _: Tensor<2>, _: Option<u64>) -> TensorStep<Tensor<2>> {
        let p = &self.parameters;
        let limit = f64::from(p.torque_limit_nm);
        let [state, reward] = elementwise([state.dims()[0], 1], |formulas| {
            let state = formulas.matrix(&state);
            let (angle_rad, speed_rad_per_s) = (state.column(0), state.column(1));
            let torque_nm = formulas.read(&action).clamp(-limit, limit);
            let cost = angle_rad.square() + speed_rad_per_s.square() * 0.1 + torque_nm.square() * 0.001;
            let acceleration = angle_rad.sin() * (3.0 * p.gravity_m_per_s2 / (2.0 * p.length_m))
                + torque_nm * (3.0 / (p.mass_kg * p.length_m.powi(2)));
            let speed_rad_per_s =
                (speed_rad_per_s + acceleration * p.step_secs).clamp(-p.speed_limit_rad_per_s, p.speed_limit_rad_per_s);
            [vec![wrapped(angle_rad + speed_rad_per_s * p.step_secs), speed_rad_per_s], vec![-cost]]
        });
        TensorStep { state, reward: flat(reward), terminated: None, info: None }
    }

    fn terminates(&self) -> bool {
        false
    }
}
