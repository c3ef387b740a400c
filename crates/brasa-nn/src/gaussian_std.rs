//! The standard deviation of a Gaussian policy.

use brasa_core::{NoiseDistribution, NoiseSpec};
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
        if let Some(head) = &self.head {
            return head.forward(hidden.clone(), None).clamp(LOG_STD_RANGE.0, LOG_STD_RANGE.1);
        }
        // The variance of a sum of independent normals, h_i std_ij.
        let hidden = if self.teaches { hidden.clone() } else { hidden.clone().detach() };
        let variance = hidden.square().matmul((self.matrix().val() * 2.0).exp());
        (variance + VARIANCE_EPSILON).log() * 0.5
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

    /// `[outputs]`: the standard deviations, if they do not depend on the observation.
    pub(crate) fn std(&self) -> Option<Tensor<1>> {
        self.log_std.as_ref().map(|log_std| log_std.val().detach().without_autodiff().exp())
    }
}

/// Steps with the same exploration noise: `sde_sample_freq`, or a whole rollout.
pub(crate) fn resample_every(sde_sample_freq: Option<usize>) -> usize {
    sde_sample_freq.unwrap_or(usize::MAX)
}
