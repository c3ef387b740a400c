//! Flat observations with an optional action mask.

use std::ops::Range;

use brasa_env::wrappers::RunningMoments;
use brasa_env::{BatchSlabs, EnvSpec};
use brasa_export::high_and_low;
use brasa_kernels::{concat, elementwise};
use burn::tensor::{Device, Int, Tensor, TensorData};
use ndarray::Array2;

use crate::{Rows, TeamObs, rows_by_field};

/// Observations of a policy over flat vectors.
///
/// ```
/// use brasa_core::{Obs, Rows};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let values = Tensor::from_floats([[0.5, 20.0], [0.25, 21.0]], &device);
/// let mask = Tensor::from_floats([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]], &device);
/// let obs = Obs { mask: Some(mask), ..Obs::new(values) };
/// // Two numbers and three flags, in 32 bits.
/// assert_eq!((obs.n_rows(), obs.bytes_per_row()), (2, 20.0));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Obs {
    /// `[n_rows, obs width]`.
    pub values: Tensor<2>,
    /// `[n_rows, n_actions]`: 1 for legal actions of the next action, 0 for the others.
    pub mask: Option<Tensor<2>>,
}

impl Obs {
    /// Observations without a mask.
    pub fn new(values: Tensor<2>) -> Self {
        Self { values, mask: None }
    }
}

rows_by_field!([] Obs { values, mask }
    fn normalizable(&self) -> Option<Tensor<2>> {
        Some(self.values.clone())
    }

    fn normalized(self, by: &Normalization) -> Option<Self> {
        Some(Self { values: by.apply(0, &self.values), mask: self.mask })
    }
);

/// Parts of observations as uploaded from environments.
///
/// ```
/// use brasa_core::{Obs, ObsForm, ObsParts, read_back};
/// use brasa_env::{BatchSlabs, EnvSpec, Space};
///
/// let device = brasa_device::open_named("cpu")?;
/// // Two agents. The first number is shared.
/// let obs = Space::uniform_box(0.0, 24.0, ["hour", "soc"]);
/// let spec = EnvSpec { n_agents: 2, shared_width: 1, ..EnvSpec::new(obs, Space::Discrete(2), 1) };
/// let mut slabs = BatchSlabs::new(&spec);
/// slabs.shared.fill(7.0);
/// slabs.obs.assign(&ndarray::array![[0.5], [0.75]]);
/// let obs = Obs::assemble(ObsParts::upload(&spec, &slabs, &device));
/// assert_eq!(read_back(obs.values), [7.0, 0.5, 7.0, 0.75]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ObsParts {
    /// `[n_envs, shared width]`: the part that all agents of an environment share; `None` for width 0.
    pub shared: Option<Tensor<2>>,
    /// `[n_rows, own width]`: the part of each row; `None` for width 0.
    pub own: Option<Tensor<2>>,
    /// `[n_rows, n_actions / actions_per_flag]`: 1 for legal actions; `None` where all are legal.
    pub mask: Option<Tensor<2>>,
    /// Rows per environment.
    pub n_agents: usize,
    /// Consecutive actions per column of the mask.
    pub actions_per_flag: usize,
}

impl ObsParts {
    /// Uploads the next observations of `slabs` to `device`, one upload per part. `HostEnv` needs only one.
    pub fn upload(spec: &EnvSpec, slabs: &BatchSlabs, device: &Device) -> Self {
        let part = |values: &Array2<f32>| {
            let data =
                || TensorData::new(values.iter().copied().collect::<Vec<f32>>(), [values.nrows(), values.ncols()]);
            (values.ncols() > 0).then(|| Tensor::from_data(data(), device))
        };
        Self {
            shared: part(&slabs.shared),
            own: part(&slabs.obs),
            mask: part(&slabs.mask),
            n_agents: spec.n_agents,
            actions_per_flag: spec.actions_per_flag(),
        }
    }
}

/// A form of observations that can be assembled from [`ObsParts`].
///
/// ```
/// use brasa_core::{Obs, ObsForm, ObsParts, TeamObs};
/// use burn::tensor::Tensor;
///
/// /// Observations of two agents in one environment, without a shared part.
/// fn assembled<O: ObsForm>(own: Tensor<2>) -> O {
///     O::assemble(ObsParts { shared: None, own: Some(own), mask: None, n_agents: 2, actions_per_flag: 1 })
/// }
///
/// let own = Tensor::<2>::from_floats([[0.5], [0.75]], &brasa_device::open_named("cpu")?);
/// assert_eq!(assembled::<Obs>(own.clone()).values.dims(), [2, 1]);
/// assert_eq!(assembled::<TeamObs>(own).n_agents, 2);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub trait ObsForm: Rows {
    /// Assembles the parts.
    ///
    /// # Panics
    /// If there are neither shared nor own numbers.
    fn assemble(parts: ObsParts) -> Self;

    /// `[n_rows, n_actions]`: the mask with one column per action; `None` if all are legal.
    fn legal(&self) -> Option<Tensor<2>>;

    /// The own numbers of the whole team in each row, after the first `shared_width` numbers: see [`brasa_env::wrappers::JointObs`]. `team` has, for
    /// each row in turn, the rows of its team, itself last.
    #[must_use]
    fn joint(self, shared_width: usize, team: Tensor<1, Int>) -> Self;
}

/// The shared numbers come before a row's own, and the mask has one column per action.
impl ObsForm for Obs {
    fn assemble(parts: ObsParts) -> Self {
        let team = TeamObs::assemble(parts);
        Self { values: team.rows(), mask: team.legal() }
    }

    fn legal(&self) -> Option<Tensor<2>> {
        self.mask.clone()
    }

    fn joint(self, shared_width: usize, team: Tensor<1, Int>) -> Self {
        let [n_rows, width] = self.values.dims();
        let part = |columns: Range<usize>| self.values.clone().slice([0..n_rows, columns]);
        let values = match shared_width {
            0 => joined(self.values, team),
            _ => concat(vec![part(0..shared_width), joined(part(shared_width..width), team)]),
        };
        Self { values, mask: self.mask }
    }
}

/// The rows of each team side by side: see [`ObsForm::joint`].
pub(crate) fn joined(own: Tensor<2>, team: Tensor<1, Int>) -> Tensor<2> {
    let ([n_rows, width], n) = (own.dims(), team.dims()[0]);
    own.select(0, team).reshape([n_rows, n / n_rows * width])
}

/// `[1, width]` numbers on a device.
pub(crate) fn row_of(values: &[f32], device: &Device) -> Tensor<2> {
    Tensor::<1>::from_floats(values, device).unsqueeze()
}

/// Moments of observations on a device.
///
/// ```
/// use brasa_core::{Normalization, Obs, Rows, read_back};
/// use brasa_env::wrappers::RunningMoments;
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut moments = RunningMoments::new(1);
/// moments.add(ndarray::array![[10.0], [30.0]].view());
/// let normalization = Normalization::new(&moments, &device);
/// // The mean is 20 and the standard deviation is 10.
/// let obs = Obs::new(Tensor::from_floats([[25.0], [1e6]], &device));
/// let normalized = obs.normalized(&normalization).expect("flat observations can be normalized");
/// assert_eq!(read_back(normalized.values), [0.5, 10.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Normalization {
    /// `[1, obs width]`: the mean, as the nearest numbers of 32 bits.
    pub mean: Tensor<2>,
    /// `[1, obs width]`: the remainders of the mean, see [`brasa_export::high_and_low`].
    pub mean_low: Tensor<2>,
    /// `[1, obs width]`: the standard deviation.
    pub deviation: Tensor<2>,
    /// Largest magnitude of the result.
    pub clip: f32,
}

impl Normalization {
    /// Uploads the moments of a run.
    pub fn new(moments: &RunningMoments, device: &Device) -> Self {
        let (mean, deviation, clip) = moments.normalization();
        let ([mean, mean_low], [deviation, _]) = (high_and_low(&mean), high_and_low(&deviation));
        let [mean, mean_low, deviation] = [mean, mean_low, deviation].map(|values| row_of(&values, device));
        Self { mean, mean_low, deviation, clip }
    }

    /// `[n_rows, n]`: these columns of observations from `first` on, normalized.
    pub(crate) fn apply(&self, first: usize, values: &Tensor<2>) -> Tensor<2> {
        let (clip, columns) = (f64::from(self.clip), first..first + values.dims()[1]);
        let [normalized] = elementwise(values.dims(), |formulas| {
            let [mean, mean_low, deviation] = [&self.mean, &self.mean_low, &self.deviation]
                .map(|part| formulas.matrix(part).columns(columns.clone()));
            let x = formulas.read(values);
            // In this order: the difference of two near numbers is exact.
            [vec![((x - mean - mean_low) / deviation).clamp(-clip, clip)]]
        });
        normalized
    }
}
