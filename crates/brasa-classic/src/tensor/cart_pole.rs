//! CartPole as tensor operations.

use brasa_core::{NoiseWidths, ObsParts, TensorDynamics, TensorState, TensorStep};
use brasa_env::{Env, EnvSpec};
use burn::tensor::Tensor;

use super::{flat, observed, symmetric};
use crate::{CartPole, CartPoleParameters};

/// The rules of [`CartPole`] for a device. Actions are 0 and 1; others count as the nearer of the two.
///
/// ```
/// use brasa_classic::CartPole;
/// use brasa_classic::tensor::TensorCartPole;
/// use brasa_core::TensorEnv;
/// use brasa_env::EnvError;
/// use burn::tensor::Device;
///
/// fn cart_poles(device: &Device) -> Result<TensorEnv<TensorCartPole>, EnvError> {
///     TensorEnv::new(TensorCartPole::default(), 1024, device)?.with_time_limit(CartPole::TIME_LIMIT)
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct TensorCartPole {
    parameters: CartPoleParameters,
}

/// The state of [`TensorCartPole`], each `[n_envs, 1]`: see [`crate::CartPoleState`].
#[derive(Debug, Clone)]
pub struct CartPoleTensors {
    /// In m.
    pub position_m: Tensor<2>,
    /// In m/s.
    pub speed_m_per_s: Tensor<2>,
    /// In rad.
    pub angle_rad: Tensor<2>,
    /// In rad/s.
    pub angular_speed_rad_per_s: Tensor<2>,
}

impl TensorCartPole {
    /// A cart-pole with other constants.
    pub fn new(parameters: CartPoleParameters) -> Self {
        Self { parameters }
    }
}

impl TensorState for CartPoleTensors {
    fn parts(&self) -> Vec<Tensor<2>> {
        let parts = [&self.position_m, &self.speed_m_per_s, &self.angle_rad, &self.angular_speed_rad_per_s];
        parts.map(Tensor::clone).to_vec()
    }

    fn from_parts(parts: Vec<Tensor<2>>) -> Self {
        let [position_m, speed_m_per_s, angle_rad, angular_speed_rad_per_s] =
            parts.try_into().expect("there are as many parts as were handed out");
        Self { position_m, speed_m_per_s, angle_rad, angular_speed_rad_per_s }
    }
}

impl TensorDynamics for TensorCartPole {
    type State = CartPoleTensors;

    fn spec(&self, n_envs: usize) -> EnvSpec {
        let host = CartPole::new(self.parameters);
        EnvSpec::new(host.obs_space(), host.action_space(), n_envs)
    }

    fn noise(&self) -> NoiseWidths {
        NoiseWidths { start: 4, step: 0 }
    }

    fn start(&self, noise: Tensor<2>) -> CartPoleTensors {
        let draw = |i| symmetric(&noise, i, self.parameters.start_limit);
        CartPoleTensors {
            position_m: draw(0),
            speed_m_per_s: draw(1),
            angle_rad: draw(2),
            angular_speed_rad_per_s: draw(3),
        }
    }

    fn observe(&self, state: &CartPoleTensors) -> ObsParts {
        observed(state.parts())
    }

    /// Florian's equations 23 and 24, as on the host.
    fn step(
        &self,
        state: CartPoleTensors,
        action: Tensor<2>,
        _: Tensor<2>,
        _: Option<u64>,
    ) -> TensorStep<CartPoleTensors> {
        let p = &self.parameters;
        let total_mass_kg = p.pole_mass_kg + p.cart_mass_kg;
        let pole_moment = p.pole_mass_kg * p.half_pole_length_m;
        let force_n = (action.greater_elem(0.5).float() * 2.0 - 1.0) * p.force_n;
        let (sin, cos) = (state.angle_rad.clone().sin(), state.angle_rad.clone().cos());
        let centrifugal = state.angular_speed_rad_per_s.clone().square() * sin.clone() * pole_moment;
        let shared = (force_n + centrifugal) / total_mass_kg;
        let inertia = cos.clone().square() * (-p.half_pole_length_m * p.pole_mass_kg / total_mass_kg)
            + p.half_pole_length_m * 4.0 / 3.0;
        let angular_acceleration = (sin * p.gravity_m_per_s2 - cos.clone() * shared.clone()) / inertia;
        let acceleration = shared - angular_acceleration.clone() * cos * (pole_moment / total_mass_kg);
        let after = |value: Tensor<2>, rate: Tensor<2>| value + rate * p.step_secs;
        let state = CartPoleTensors {
            position_m: after(state.position_m, state.speed_m_per_s.clone()),
            speed_m_per_s: after(state.speed_m_per_s, acceleration),
            angle_rad: after(state.angle_rad, state.angular_speed_rad_per_s.clone()),
            angular_speed_rad_per_s: after(state.angular_speed_rad_per_s, angular_acceleration),
        };
        let away = state.position_m.clone().abs().greater_elem(p.position_limit_m);
        let fallen = state.angle_rad.clone().abs().greater_elem(p.angle_limit_rad);
        let terminated = flat(away.bool_or(fallen).float());
        let reward = Tensor::ones_like(&terminated);
        TensorStep { state, reward, terminated: Some(terminated), info: None }
    }
}
