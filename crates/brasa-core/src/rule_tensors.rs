//! Environments whose rules are functions of numbers, for devices.

use std::array::from_fn;

use brasa_env::{EnvSpec, Rules};
use brasa_kernels::{Value, elementwise};
use burn::tensor::Tensor;

use crate::{NoiseWidths, ObsParts, TensorDynamics, TensorStep};

/// [`Rules`] for a batch on a device: a step is one kernel. Of a discrete action that is no index, the nearest index counts.
///
/// ```
/// use brasa_core::{RuleTensors, TensorEnv};
/// use brasa_env::{EnvError, Rules};
/// use burn::tensor::Device;
///
/// fn on_device<R: Rules<4, 1, 4>>(rules: R, device: &Device) -> Result<TensorEnv<RuleTensors<R, 4, 1, 4>>, EnvError> {
///     TensorEnv::new(RuleTensors::new(rules), 1024, device)?.with_time_limit(R::TIME_LIMIT)
/// }
/// ```
#[derive(Debug, Clone)]
pub struct RuleTensors<R, const STATE: usize, const ACTION: usize, const OBS: usize> {
    rules: R,
    /// See [`Space::heads`](brasa_env::Space::heads).
    heads: Vec<usize>,
}

impl<R: Rules<STATE, ACTION, OBS>, const STATE: usize, const ACTION: usize, const OBS: usize>
    RuleTensors<R, STATE, ACTION, OBS>
{
    /// Environments with these rules.
    pub fn new(rules: R) -> Self {
        let heads = rules.action_space().heads().to_vec();
        Self { rules, heads }
    }
}

impl<R: Rules<STATE, ACTION, OBS> + Default, const STATE: usize, const ACTION: usize, const OBS: usize> Default
    for RuleTensors<R, STATE, ACTION, OBS>
{
    fn default() -> Self {
        Self::new(R::default())
    }
}

impl<R: Rules<STATE, ACTION, OBS>, const STATE: usize, const ACTION: usize, const OBS: usize> TensorDynamics
    for RuleTensors<R, STATE, ACTION, OBS>
{
    /// `[n_envs, STATE]`.
    type State = Tensor<2>;

    fn spec(&self, n_envs: usize) -> EnvSpec {
        EnvSpec::new(self.rules.obs_space(), self.rules.action_space(), n_envs)
    }

    fn noise(&self) -> NoiseWidths {
        NoiseWidths { start: STATE, step: 0 }
    }

    fn start(&self, noise: Tensor<2>) -> Tensor<2> {
        let [state] = elementwise([noise.dims()[0], 1], |formulas| {
            let noise = formulas.matrix(&noise);
            let state = self.rules.begin(from_fn(|i| noise.column(i)));
            [self.rules.compact(state).to_vec()]
        });
        state
    }

    fn observe(&self, state: &Tensor<2>) -> ObsParts {
        let own = if R::OBSERVES_STATE {
            state.clone()
        } else {
            let [obs] = elementwise([state.dims()[0], 1], |formulas| {
                let state = formulas.matrix(state);
                [self.rules.observe(from_fn(|i| state.column(i))).to_vec()]
            });
            obs
        };
        ObsParts { shared: None, own: Some(own), mask: None, n_agents: 1, actions_per_flag: 1 }
    }

    fn step(&self, state: Tensor<2>, action: Tensor<2>, _: Tensor<2>, _: Option<u64>) -> TensorStep<Tensor<2>> {
        let n_envs = state.dims()[0];
        let [state, reward, terminated] = elementwise([n_envs, 1], |formulas| {
            let (state, action) = (formulas.matrix(&state), formulas.matrix(&action));
            let action = from_fn(|head| {
                let choice = action.column(head);
                self.heads.get(head).map_or(choice, |n_options| nearest_option(choice, *n_options))
            });
            let after = self.rules.step(from_fn(|i| state.column(i)), action);
            let terminated = after.terminated.unwrap_or_else(|| formulas.constant(0.0));
            [self.rules.compact(after.state).to_vec(), vec![after.reward], vec![terminated]]
        });
        let flat = |column: Tensor<2>| column.reshape([n_envs]);
        let terminated = R::TERMINATES.then(|| flat(terminated));
        TensorStep { state, reward: flat(reward), terminated, info: None }
    }

    fn terminates(&self) -> bool {
        R::TERMINATES
    }
}

/// The nearest index of an action with `n_options` options.
///
/// ```
/// use brasa_core::nearest_option;
/// use brasa_kernels::elementwise;
/// use burn::tensor::Tensor;
///
/// let chosen = Tensor::<2>::from_floats([[1.2], [-3.0], [7.0]], &brasa_device::open_named("cpu")?);
/// let [options] = elementwise([3, 1], |formulas| [vec![nearest_option(formulas.read(&chosen), 4)]]);
/// assert_eq!(options.into_data().iter::<f32>().collect::<Vec<_>>(), [1.0, 0.0, 3.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn nearest_option(choice: Value<'_>, n_options: usize) -> Value<'_> {
    (choice + 0.5).floor().clamp(0.0, n_options as f64 - 1.0)
}
