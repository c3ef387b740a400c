//! The standard deviation of a Gaussian policy.

use brasa_core::{NoiseDistribution, NoiseSpec};
use brasa_kernels::HostTensor;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::linear::leaf;
use crate::{Init, Linear};

/// Bounds of the logarithm of a standard deviation that depends on the observation (Stable-Baselines3's SAC).
const LOG_STD_RANGE: (f32, f32) = (-20.0, 2.0);
/// Logarithm of the initial standard deviations of the random matrix (Stable-Baselines3).
const SDE_START: f32 = -3.0;
/// Added to the variance, which is 0 for features of 0 (Stable-Baselines3's gSDE).
const VARIANCE_EPSILON: f32 = 1e-6;

/// Parameterization of the standard deviation of a Gaussian policy.
///
/// ```
/// use brasa_nn::{ActorCriticConfig, StdKind};
///
/// let config: ActorCriticConfig = serde_json::from_str(r#"{ "std": "state-dependent", "sde_sample_freq": 8 }"#)?;
/// assert_eq!(config.std, StdKind::StateDependent);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StdKind {
    /// One parameter per dimension.
    #[default]
    Independent,
    /// A second output of the actor.
    Dependent,
    /// Generalized state-dependent exploration (Raffin et al. 2021): noise is a random linear function of the actor's last
    /// hidden layer. The function is constant for many steps, so exploration is smooth in time.
    StateDependent,
}

impl StdKind {
    /// Its name in experiments.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::Dependent => "dependent",
            Self::StateDependent => "state-dependent",
        }
    }
}

/// Standard deviations and exploration noise of a Gaussian policy. Exactly one of the parts is `Some`.
#[derive(Module, Debug)]
pub(crate) struct GaussianStd {
    /// Logarithms, `[outputs]`.
    log_std: Option<Param<Tensor<1>>>,
    /// From the last hidden layer to logarithms.
    head: Option<Linear>,
    /// Logarithms of the standard deviations of the random matrix, `[width of the last hidden layer, outputs]`.
    matrix: Option<Param<Tensor<2>>>,
    /// Whether gradients of the standard deviation reach the features: they do for SAC, not for on-policy learners.
    #[module(skip)]
    teaches: bool,
}

impl GaussianStd {
    /// Standard deviations on a hidden layer of width `inputs`, with initial logarithm `log_std_init`; without one, that of
    /// Stable-Baselines3's gSDE, or what the initial weights of a second output give.
    pub(crate) fn new(
        kind: StdKind,
        [inputs, outputs]: [usize; 2],
        log_std_init: Option<f64>,
        head: Init,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Self {
        let (mut log_std, mut log_std_head, mut matrix) = (None, None, None);
        let start = log_std_init.map(|start| start as f32);
        match kind {
            StdKind::Independent => log_std = Some(leaf(Tensor::full([outputs], start.unwrap_or(0.0), device))),
            StdKind::Dependent => {
                let layer = Linear::new(inputs, outputs, head, device, rng);
                log_std_head = Some(start.map_or(layer.clone(), |start| layer.with_bias(start)));
            }
            StdKind::StateDependent => {
                matrix = Some(leaf(Tensor::full([inputs, outputs], start.unwrap_or(SDE_START), device)));
            }
        }
        Self { log_std, head: log_std_head, matrix, teaches: false }
    }

    /// The same with gradients to the features.
    pub(crate) fn teaching(self) -> Self {
        Self { teaches: true, ..self }
    }

    /// Logarithms of the standard deviations, `[n_rows, outputs]`, or `[1, outputs]` if they are equal for all rows.
    pub(crate) fn log_std(&self, hidden: &Tensor<2>) -> Tensor<2> {
        if let Some(log_std) = &self.log_std {
            return log_std.val().unsqueeze::<2>();
        }
        if let Some((log_std, (low, high))) = self.unbounded(hidden) {
            return log_std.clamp(low, high);
        }
        // The variance of a sum of independent normals, h_i std_ij.
        let hidden = if self.teaches { hidden.clone() } else { hidden.clone().detach() };
        let variance = hidden.square().matmul((self.matrix().val() * 2.0).exp());
        (variance + VARIANCE_EPSILON).log() * 0.5
    }

    /// The logarithm of a deviation that a layer computes, and the range to which it is cut.
    pub(crate) fn unbounded(&self, hidden: &Tensor<2>) -> Option<(Tensor<2>, (f32, f32))> {
        self.dependent().map(|(head, range)| (head.forward(hidden.clone(), None), range))
    }

    /// Whether the noise is a function of the hidden layer.
    pub(crate) fn is_state_dependent(&self) -> bool {
        self.matrix.is_some()
    }

    /// The logarithms, if they are parameters of their own.
    pub(crate) fn independent(&self) -> Option<&Tensor<1>> {
        self.log_std.as_deref()
    }

    /// The layer that computes logarithms before they are clamped to these bounds, if there is one.
    pub(crate) fn dependent(&self) -> Option<(&Linear, (f32, f32))> {
        self.head.as_ref().map(|head| (head, LOG_STD_RANGE))
    }

    fn matrix(&self) -> &Param<Tensor<2>> {
        self.matrix.as_ref().expect("one of the three parts is there")
    }

    /// The exploration noise of one row; with state-dependent exploration it is constant for `resample_every` steps.
    pub(crate) fn noise(&self, outputs: usize, resample_every: usize) -> NoiseSpec {
        match &self.matrix {
            Some(matrix) => NoiseSpec {
                width: matrix.dims().iter().product(),
                distribution: NoiseDistribution::Normal,
                resample_every: resample_every.max(1),
            },
            None => NoiseSpec { width: outputs, distribution: NoiseDistribution::Normal, resample_every: 1 },
        }
    }

    /// The deviation from the mean, `[n_rows, outputs]`, for noise of [`GaussianStd::noise`].
    pub(crate) fn deviate(&self, hidden: &Tensor<2>, log_std: Tensor<2>, noise: Tensor<2>) -> Tensor<2> {
        let Some(matrix) = &self.matrix else { return log_std.exp() * noise };
        let [inputs, outputs] = matrix.dims();
        let noise = noise.reshape([hidden.dims()[0], inputs, outputs]);
        let weights = matrix.val().exp().unsqueeze::<3>() * noise;
        hidden.clone().unsqueeze_dim::<3>(1).matmul(weights).squeeze_dim(1)
    }

    /// The standard deviations, if they do not depend on the observation; with state-dependent exploration those of its weights.
    pub(crate) fn std(&self) -> Option<Tensor<1>> {
        let of_weights = || self.matrix.as_ref().map(|matrix| matrix.val().flatten::<1>(0, 1));
        let log_std = self.log_std.as_ref().map(|log_std| log_std.val()).or_else(of_weights);
        log_std.map(|log_std| log_std.detach().without_autodiff().exp())
    }

    /// State-dependent exploration in the memory of the CPU, unless features learn from it.
    pub(crate) fn on_host(&self) -> Option<HostStd> {
        if self.teaches {
            return None;
        }
        let matrix = self.matrix.as_ref()?;
        let [inputs, outputs] = matrix.dims();
        Some(HostStd {
            stds: HostTensor::of(&matrix.val())?.iter().map(|log_std| log_std.exp()).collect(),
            inputs,
            outputs,
        })
    }
}

/// The standard deviations of the weights of state-dependent exploration, `[inputs, outputs]`.
#[derive(Debug)]
pub(crate) struct HostStd {
    stds: Vec<f32>,
    inputs: usize,
    outputs: usize,
}

impl HostStd {
    /// Calls `add` with every row, input, output, feature and deviation of a weight.
    fn each(&self, features: &[f32], mut add: impl FnMut(usize, [usize; 2], f32, f32)) {
        for (row, features) in features.chunks_exact(self.inputs).enumerate() {
            for (input, (feature, stds)) in features.iter().zip(self.stds.chunks_exact(self.outputs)).enumerate() {
                for (output, std) in stds.iter().enumerate() {
                    add(row, [input, output], *feature, *std);
                }
            }
        }
    }

    /// [`GaussianStd::log_std`], `[n_rows, outputs]`.
    pub fn log_stds(&self, features: &[f32]) -> Vec<f32> {
        let mut variances = vec![VARIANCE_EPSILON; features.len() / self.inputs * self.outputs];
        self.each(features, |row, [_, output], feature, std| {
            variances[row * self.outputs + output] += (feature * std).powi(2);
        });
        variances.iter().map(|variance| variance.ln() * 0.5).collect()
    }

    /// [`GaussianStd::deviate`] in units of the standard deviation.
    pub fn scaled_deviations(&self, features: &[f32], log_stds: &[f32], noise: &[f32]) -> Vec<f32> {
        let (mut deviations, n) = (vec![0.0; log_stds.len()], self.inputs * self.outputs);
        self.each(features, |row, [input, output], feature, std| {
            deviations[row * self.outputs + output] += feature * std * noise[row * n + input * self.outputs + output];
        });
        deviations.iter().zip(log_stds).map(|(deviation, log_std)| deviation * (-log_std).exp()).collect()
    }

    /// The gradient of the matrix from the derivative by [`HostStd::log_stds`].
    pub fn gradient(&self, features: &[f32], log_stds: &[f32], by_log_stds: &[f32]) -> Vec<f32> {
        let per_variance: Vec<f32> =
            by_log_stds.iter().zip(log_stds).map(|(by, log_std)| by * (-2.0 * log_std).exp()).collect();
        let mut gradient = vec![0.0; self.stds.len()];
        self.each(features, |row, [input, output], feature, std| {
            gradient[input * self.outputs + output] +=
                per_variance[row * self.outputs + output] * (feature * std).powi(2);
        });
        gradient
    }
}

/// Steps with the same exploration noise: `sde_sample_freq`, or a whole rollout.
pub(crate) fn resample_every(sde_sample_freq: Option<usize>) -> usize {
    sde_sample_freq.unwrap_or(usize::MAX)
}
