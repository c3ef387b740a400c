//! MLP critics, which estimate values of actions.

use brasa_core::analytic::{ByResults, CriticsInput};
use brasa_core::env::{Space, field};
use brasa_core::{Critics, Obs};
use brasa_kernels::{HostMlp, HostTensor, concat, reused};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::actor_critic::check_widths;
use crate::{Activation, Init, MlpConfig, NnError, StackedLayerNorm, StackedMlp};

/// Shape of [`MlpCritics`].
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_core::env::named_rng;
/// use brasa_nn::{MlpCritics, MlpCriticsConfig};
///
/// let config: MlpCriticsConfig = serde_json::from_str(r#"{ "n_critics": 5, "layer_norm": true }"#)?;
/// assert_eq!((config.n_critics, &config.hidden[..]), (5, &[256, 256][..]));
/// let none = MlpCriticsConfig { n_critics: 0, ..config };
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let error = MlpCritics::new(&none, &obs_space(), &power(), &device, rng).unwrap_err();
/// assert_eq!(error.to_string(), "`n_critics` must be at least 1, got 0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MlpCriticsConfig {
    /// Number of critics. Default 2 (Fujimoto et al. 2018): the minimum of two estimates reduces overestimation.
    pub n_critics: usize,
    /// Widths of the hidden layers. Default 256, 256 (Haarnoja et al. 2018).
    pub hidden: Vec<usize>,
    /// Activation of the hidden layers. Default relu (the same source).
    pub activation: Activation,
    /// Whether each hidden layer is normalized before its activation (Ba et al. 2016). Default false. It keeps estimates of actions that
    /// the replay buffer does not have from growing (Hiraoka et al. 2022, Ball et al. 2023), and matters with many actions.
    pub layer_norm: bool,
}

impl Default for MlpCriticsConfig {
    fn default() -> Self {
        Self { n_critics: 2, hidden: vec![256, 256], activation: Activation::Relu, layer_norm: false }
    }
}

/// Independent MLPs on observation and action, computed as one batched network.
///
/// ```
/// use brasa_core::env::{Space, named_rng};
/// use brasa_core::{Critics, Obs};
/// use brasa_nn::{MlpCritics, MlpCriticsConfig};
/// use burn::tensor::Tensor;
///
/// let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::uniform_box(-1.0, 1.0, ["power"]));
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let critics = MlpCritics::new(&MlpCriticsConfig::default(), &obs, &action, &device, rng)?;
/// // Two estimates for each of eight rows.
/// let values = critics.values(Obs::new(Tensor::zeros([8, 2], &device)), Tensor::zeros([8, 1], &device));
/// assert_eq!(values.dims(), [2, 8]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct MlpCritics {
    net: StackedMlp,
    /// One per hidden layer, or none.
    norms: Vec<StackedLayerNorm>,
}

/// Most critics of a network: ten times as many as any published one.
const MAX_CRITICS: u64 = 1000;

impl MlpCritics {
    /// Critics for these spaces, with PyTorch's default initial weights from `rng`.
    ///
    /// # Errors
    /// [`NnError::Field`] if a width or the number of critics is 0 or too large.
    pub fn new(
        config: &MlpCriticsConfig,
        obs_space: &Space,
        action_space: &Space,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        check_widths("hidden", &config.hidden)?;
        field::at_least_one("n_critics", config.n_critics as u64)?;
        field::at_most("n_critics", config.n_critics as u64, MAX_CRITICS)?;
        let mlp = MlpConfig {
            inputs: obs_space.width() + action_space.width(),
            hidden: config.hidden.clone(),
            outputs: Some(1),
            activation: config.activation,
            hidden_init: Init::FanIn,
            output_init: Init::FanIn,
        };
        let norms = config.hidden.iter().filter(|_| config.layer_norm);
        let norms = norms.map(|width| StackedLayerNorm::new(config.n_critics, *width, device)).collect();
        Ok(Self { net: StackedMlp::new(config.n_critics, &mlp, device, rng), norms })
    }

    /// Observations and actions side by side, and the layers; `None` where another device computes, or without numbers.
    fn on_host(&self, obs: &Tensor<2>, action: &Tensor<2>) -> Option<(Vec<f32>, HostMlp)> {
        let ([n_rows, width], [_, n_actions]) = (obs.dims(), action.dims());
        let (obs, actions, net) = (HostTensor::of(obs)?, HostTensor::of(action)?, self.net.on_host(&self.norms)?);
        if n_rows * width * n_actions == 0 {
            return None;
        }
        let mut input = Vec::with_capacity(n_rows * (width + n_actions));
        for (obs, action) in obs.chunks_exact(width).zip(actions.chunks_exact(n_actions)) {
            input.extend_from_slice(obs);
            input.extend_from_slice(action);
        }
        Some((input, net))
    }
}

impl Critics for MlpCritics {
    type Obs = Obs;
    type Action = Tensor<2>;

    fn values(&self, obs: Obs, action: Tensor<2>) -> Tensor<2> {
        let is_recorded = self.net.is_recorded() || obs.values.is_autodiff() || action.is_autodiff();
        if !is_recorded && let Some((input, mut net)) = self.on_host(&obs.values, &action) {
            let n_rows = action.dims()[0];
            let values = net.forward(&input, n_rows).to_vec();
            let n_critics = values.len() / n_rows;
            return HostTensor::tensor(values, [n_critics, n_rows]);
        }
        let input = concat(vec![obs.values, action]);
        self.net.forward_normalized(input.unsqueeze(), &self.norms).squeeze_dim(2)
    }

    fn gradient(&self, obs: &Obs, action: &Tensor<2>, of: CriticsInput, by: &mut ByResults<'_, 1>) -> Option<Vec<f32>> {
        let ([n_rows, width], [_, n_actions]) = (obs.values.dims(), action.dims());
        let (input, mut net) = self.on_host(&obs.values, action)?;
        let [by_values] = by([net.forward(&input, n_rows)])?;
        Some(match of {
            CriticsInput::Parameters => {
                let mut gradient = reused(net.n_params());
                net.backward(&input, &by_values, Some(&mut gradient), None);
                gradient
            }
            CriticsInput::Actions => {
                let mut by_input = Vec::new();
                net.backward(&input, &by_values, None, Some(&mut by_input));
                by_input.chunks_exact(width + n_actions).flat_map(|row| row[width..].iter().copied()).collect()
            }
        })
    }
}
