//! The rules of environments as tensor operations.

use brasa_env::EnvSpec;
use brasa_kernels::elementwise_list;
use burn::tensor::Tensor;

use crate::ObsParts;

/// The rules of a batch of environments as tensor operations, for [`crate::TensorEnv`].
///
/// An implementation has constants only. It reads nothing from the device and draws no random numbers: noise is an
/// argument. Its numbers are those of the host form of the environment in 32 bits.
///
/// ```
/// use brasa_core::{NoiseWidths, ObsParts, TensorDynamics, TensorStep, check_dynamics};
/// use brasa_env::{EnvSpec, Space};
/// use burn::tensor::Tensor;
///
/// /// A number that the action moves, and that should be 0.
/// struct Drift;
///
/// impl TensorDynamics for Drift {
///     type State = Tensor<2>;
///     fn spec(&self, n_envs: usize) -> EnvSpec {
///         EnvSpec::new(Space::uniform_box(-9.0, 9.0, ["x"]), Space::uniform_box(-1.0, 1.0, ["push"]), n_envs)
///     }
///     fn noise(&self) -> NoiseWidths {
///         NoiseWidths { start: 1, step: 0 }
///     }
///     fn start(&self, noise: Tensor<2>) -> Tensor<2> {
///         noise
///     }
///     fn observe(&self, state: &Tensor<2>) -> ObsParts {
///         ObsParts { shared: None, own: Some(state.clone()), mask: None, n_agents: 1, actions_per_flag: 1 }
///     }
///     fn step(&self, state: Tensor<2>, push: Tensor<2>, _: Tensor<2>, _: Option<u64>) -> TensorStep<Tensor<2>> {
///         let state = (state + push).clamp(-9.0, 9.0);
///         let reward = -state.clone().abs().squeeze_dim(1);
///         TensorStep { state, reward, terminated: None, info: None }
///     }
///     fn terminates(&self) -> bool {
///         false
///     }
/// }
///
/// check_dynamics(20, &Drift, &brasa_device::open_named("cpu")?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait TensorDynamics: Send {
    /// Everything that [`TensorDynamics::step`] reads and changes.
    type State: TensorState;

    /// Version of [`TensorDynamics::State`]; it changes when older saved states are no longer valid.
    const STATE_VERSION: u32 = 1;

    /// The constants of `n_envs` environments. [`crate::TensorEnv`] sets what depends on time limits, normalization and statistics.
    fn spec(&self, n_envs: usize) -> EnvSpec;

    /// Random numbers per environment.
    fn noise(&self) -> NoiseWidths;

    /// States of new episodes. `noise` is `[n_envs, start]`, uniform in `[0, 1)`.
    fn start(&self, noise: Tensor<2>) -> Self::State;

    /// Observations of states.
    fn observe(&self, state: &Self::State) -> ObsParts;

    /// Takes one step in every environment. `action` is `[n_rows, action width]`, `noise` is `[n_envs, step]`, uniform in `[0, 1)`.
    /// `step` is the number of steps since the start of the episodes, if [`TensorDynamics::terminates`] is false.
    fn step(
        &self,
        state: Self::State,
        action: Tensor<2>,
        noise: Tensor<2>,
        step: Option<u64>,
    ) -> TensorStep<Self::State>;

    /// Whether an episode can terminate. If none can, all environments have the same time, and the host knows when episodes end.
    fn terminates(&self) -> bool {
        true
    }
}

/// Numbers of uniformly random numbers that an environment uses; the noise of a width of 0 is `[n_envs, 0]`.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/envs.inc")); }
/// # use shown::*;
/// use brasa_core::{NoiseWidths, RuleTensors, TensorDynamics};
///
/// // The rules of `Tank` use one random number at the start of an episode and none in a step.
/// assert_eq!(RuleTensors::new(Tank).noise(), NoiseWidths { start: 1, step: 0 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NoiseWidths {
    /// For the start of an episode.
    pub start: usize,
    /// For a step.
    pub step: usize,
}

/// Result of [`TensorDynamics::step`].
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/envs.inc")); }
/// # use shown::*;
/// use brasa_core::{RuleTensors, TensorDynamics, TensorStep, read_back};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let [level, valve] = [[[1.0], [2.0]], [[0.5], [0.0]]].map(|rows| Tensor::<2>::from_floats(rows, &device));
/// let tanks = RuleTensors::new(Tank);
/// let TensorStep { state, terminated, .. } = tanks.step(level, valve, Tensor::zeros([2, 0], &device), None);
/// // Each tank loses a tenth. The first tank is filled up to its level before.
/// let levels = read_back(state);
/// assert!((levels[0] - 1.0).abs() < 1e-6 && (levels[1] - 1.8).abs() < 1e-6);
/// assert!(terminated.is_none());
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct TensorStep<S> {
    /// The states after the step, before any reset.
    pub state: S,
    /// `[n_rows]`.
    pub reward: Tensor<1>,
    /// `[n_envs]`, 1 where the episode ended by the rules of the task; `None` if [`TensorDynamics::terminates`] is false.
    pub terminated: Option<Tensor<1>>,
    /// `[n_envs, n]`: the figures of [`EnvSpec::info_names`]; `None` if there are none.
    pub info: Option<Tensor<2>>,
}

/// A state of environments: tensors with one row per environment.
///
/// ```
/// use brasa_core::TensorState;
/// use burn::tensor::Tensor;
///
/// #[derive(Clone)]
/// struct Cars {
///     places: Tensor<2>,
///     charges: Tensor<2>,
/// }
///
/// impl TensorState for Cars {
///     fn parts(&self) -> Vec<Tensor<2>> {
///         vec![self.places.clone(), self.charges.clone()]
///     }
///     fn from_parts(mut parts: Vec<Tensor<2>>) -> Self {
///         let charges = parts.remove(1);
///         Self { places: parts.remove(0), charges }
///     }
/// }
///
/// let device = brasa_device::open_named("cpu")?;
/// let cars = Cars { places: Tensor::zeros([8, 2], &device), charges: Tensor::ones([8, 1], &device) };
/// assert_eq!(Cars::from_parts(cars.parts()).charges.dims(), [8, 1]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub trait TensorState: Clone + Send {
    /// All tensors, each `[n_envs, width]`, in a fixed order. A width may be 0.
    fn parts(&self) -> Vec<Tensor<2>>;

    /// The state with these parts.
    fn from_parts(parts: Vec<Tensor<2>>) -> Self;
}

/// A state of one tensor.
impl TensorState for Tensor<2> {
    fn parts(&self) -> Vec<Self> {
        vec![self.clone()]
    }

    fn from_parts(mut parts: Vec<Self>) -> Self {
        parts.pop().expect("there are as many parts as were handed out")
    }
}

/// The states with those of `other` where the flag is 1. `flags` is `[n_envs, 1]`.
pub(crate) fn replace<S: TensorState>(state: S, flags: &Tensor<2>, other: S) -> S {
    let (mut parts, others) = (state.parts(), other.parts());
    let shapes: Vec<[usize; 2]> = parts.iter().map(Tensor::dims).collect();
    let mut places: Vec<usize> = (0..parts.len()).collect();
    places.sort_by_key(|place| shapes[*place]);
    // Parts of one shape are a launch, as far as a GPU has places for their matrices.
    for places in places.chunk_by(|a, b| shapes[*a] == shapes[*b]).flat_map(|places| places.chunks(PARTS_AT_ONCE)) {
        let replaced = elementwise_list(shapes[places[0]], |formulas| {
            let flags = formulas.read(flags);
            let one = |place: &usize| vec![flags.select(formulas.read(&others[*place]), formulas.read(&parts[*place]))];
            places.iter().map(one).collect()
        });
        places.iter().zip(replaced).for_each(|(place, part)| parts[*place] = part);
    }
    S::from_parts(parts)
}

/// Parts of states that a launch replaces: three matrices each.
const PARTS_AT_ONCE: usize = 4;
