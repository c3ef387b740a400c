//! CartPole as tensor operations.

use brasa_core::{NoiseWidths, ObsParts, TensorDynamics, TensorStep};
use brasa_env::{Env, EnvSpec};
use brasa_kernels::elementwise;
use burn::tensor::Tensor;

use super::{flat, observed};
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

impl TensorCartPole {
    /// A cart-pole with other constants.
    pub fn new(parameters: CartPoleParameters) -> Self {
        Self { parameters }
    }
}

impl TensorDynamics for TensorCartPole {
    /// `[n_envs, 4]`: the numbers of [`crate::CartPoleState`], in its order. They are observed as they are.
    type State = Tensor<2>;

    const STATE_VERSION: u32 = 2;

    fn spec(&self, n_envs: usize) -> EnvSpec {
        let host = CartPole::new(self.parameters);
        EnvSpec::new(host.obs_space(), host.action_space(), n_envs)
    }

    fn noise(&self) -> NoiseWidths {
        NoiseWidths { start: 4, step: 0 }
    }

    fn start(&self, noise: Tensor<2>) -> Tensor<2> {
        let limit = self.parameters.start_limit;
        let [state] = elementwise(noise.dims(), |formulas| [vec![(formulas.read(&noise) * 2.0 - 1.0) * limit]]);
        state
    }

    fn observe(&self, state: &Tensor<2>) -> ObsParts {
        observed(state.clone())
    }

    /// Florian's equations 23 and 24, as on the host.
    fn step(&self, state: Tensor<2>, action: Tensor<2>, _: Tensor<2>, _: Option<u64>) -> TensorStep<Tensor<2>> {
        let p = &self.parameters;
        let total_mass_kg = p.pole_mass_kg + p.cart_mass_kg;
        let pole_moment = p.pole_mass_kg * p.half_pole_length_m;
        let [state, terminated, reward] = elementwise([state.dims()[0], 1], |formulas| {
            let state = formulas.matrix(&state);
            let [position_m, speed_m_per_s, angle_rad, angular_speed_rad_per_s] = [0, 1, 2, 3].map(|i| state.column(i));
            let force_n = formulas.read(&action).greater(0.5).select(p.force_n, -p.force_n);
            let (sin, cos) = (angle_rad.sin(), angle_rad.cos());
            let centrifugal = angular_speed_rad_per_s.square() * sin * pole_moment;
            let shared = (force_n + centrifugal) / total_mass_kg;
            let inertia = cos.square() * (-p.half_pole_length_m * p.pole_mass_kg / total_mass_kg)
                + p.half_pole_length_m * 4.0 / 3.0;
            let angular_acceleration = (sin * p.gravity_m_per_s2 - cos * shared) / inertia;
            let acceleration = shared - angular_acceleration * cos * (pole_moment / total_mass_kg);
            let position_m = position_m + speed_m_per_s * p.step_secs;
            let angle_rad = angle_rad + angular_speed_rad_per_s * p.step_secs;
            let away = position_m.abs().greater(p.position_limit_m);
            let fallen = angle_rad.abs().greater(p.angle_limit_rad);
            let state = vec![
                position_m,
                speed_m_per_s + acceleration * p.step_secs,
                angle_rad,
                angular_speed_rad_per_s + angular_acceleration * p.step_secs,
            ];
            [state, vec![away.or(fallen)], vec![formulas.constant(1.0)]]
        });
        TensorStep { state, reward: flat(reward), terminated: Some(flat(terminated)), info: None }
    }
}
