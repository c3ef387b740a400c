//! The spread of a Gaussian policy.

use brasa_core::{NoiseDistribution, NoiseSpec};
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::linear::leaf;
use crate::{Init, Linear};

/// Bounds of a standard deviation's logarithm where it depends on the observation (Stable-Baselines3's SAC).
const LOG_STD_RANGE: (f32, f32) = (-20.0, 2.0);
/// Keeps a deviation that the features have switched off above 0 (Stable-Baselines3's gSDE).
const VARIANCE_EPSILON: f32 = 1e-6;

/// How the spread of a Gaussian policy is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StdKind {
    /// One parameter per dimension.
    #[default]
    Independent,
    /// A second output of the actor.
    Dependent,
    /// Generalized state-dependent exploration (Raffin et al. 2021): noise is a random linear function of the actor's last
    /// hidden layer, the same one for many steps, so that exploration is smooth and goes somewhere.
    StateDependent,
}

/// Standard deviations of a Gaussian policy, and how its exploration noise comes about. Exactly one part is there.
#[derive(Module, Debug)]
pub(crate) struct GaussianStd {
    /// Logarithms, `[outputs]`.
    log_std: Option<Param<Tensor<1>>>,
    /// From the last hidden layer to logarithms.
    head: Option<Linear>,
    /// Logarithms of the deviations of a random matrix, `[width of the last hidden layer, outputs]`.
    matrix: Option<Param<Tensor<2>>>,
    /// Whether a spread that depends on features teaches them: SAC's does, that of on-policy learners does not.
    #[module(skip)]
    teaches: bool,
}

impl GaussianStd {
    /// A spread behind a hidden layer of `inputs`, starting at `log_std_init`.
    pub(crate) fn new(
        kind: StdKind,
        [inputs, outputs]: [usize; 2],
        log_std_init: f64,
        head: Init,
        device: &Device,
        rng: &mut impl Rng,
    ) -> Self {
        let (mut log_std, mut log_std_head, mut matrix) = (None, None, None);
        let start = log_std_init as f32;
        match kind {
            StdKind::Independent => log_std = Some(leaf(Tensor::full([outputs], start, device))),
            StdKind::Dependent => {
                let layer = Linear::new(inputs, outputs, head, device, rng);
                // Where the head starts small, the bias alone decides; PyTorch's own start is left as it is.
                log_std_head = Some(if head == Init::FanIn { layer } else { layer.with_bias(start) });
            }
            StdKind::StateDependent => matrix = Some(leaf(Tensor::full([inputs, outputs], start, device))),
        }
        Self { log_std, head: log_std_head, matrix, teaches: false }
    }

    /// The same spread, whose features learn from it.
    pub(crate) fn teaching(self) -> Self {
        Self { teaches: true, ..self }
    }

    /// Logarithms of the standard deviations, `[n_rows, outputs]`, or `[1, outputs]` where they are the same for all.
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

    fn matrix(&self) -> &Param<Tensor<2>> {
        self.matrix.as_ref().expect("one of the three parts is there")
    }

    /// The numbers that exploring consumes per row, held for `hold` steps where they depend on the state.
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

    /// By how much to leave the mean, `[n_rows, outputs]`, for noise of [`GaussianStd::noise`].
    pub(crate) fn deviate(&self, hidden: &Tensor<2>, log_std: Tensor<2>, noise: Tensor<2>) -> Tensor<2> {
        let Some(matrix) = &self.matrix else { return log_std.exp() * noise };
        let [inputs, outputs] = matrix.dims();
        let noise = noise.reshape([hidden.dims()[0], inputs, outputs]);
        let weights = matrix.val().exp().unsqueeze::<3>() * noise;
        hidden.clone().unsqueeze_dim::<3>(1).matmul(weights).squeeze_dim(1)
    }

    /// `[outputs]`: the deviations where they are the same for every observation.
    pub(crate) fn std(&self) -> Option<Tensor<1>> {
        self.log_std.as_ref().map(|log_std| log_std.val().inner().exp())
    }
}

/// Steps that share exploration noise: a whole rollout unless `sde_sample_freq` says otherwise.
pub(crate) fn resample_every(sde_sample_freq: Option<usize>) -> usize {
    sde_sample_freq.unwrap_or(usize::MAX)
}
