//! An MLP Q-network: the values of all actions of a discrete space at once.

use brasa_core::env::Space;
use brasa_core::{ActionValues, Obs};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::actor_critic::check_widths;
use crate::{Activation, Init, Linear, Mlp, MlpConfig, NnError};

/// Shape of a [`QNetwork`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QNetworkConfig {
    /// Widths of the hidden layers. Default 64, 64 (Stable-Baselines3).
    pub hidden: Vec<usize>,
    /// Activation of the hidden layers. Default relu (Mnih et al. 2015).
    pub activation: Activation,
    /// Whether value and advantages have separate heads, `Q = V + A - mean(A)` (Wang et al. 2016, equation 9). Default
    /// off.
    pub dueling: bool,
}

impl Default for QNetworkConfig {
    fn default() -> Self {
        Self { hidden: vec![64, 64], activation: Activation::Relu, dueling: false }
    }
}

/// An MLP Q-network on flat observations, with one output per action.
#[derive(Module, Debug)]
pub struct QNetwork {
    body: Mlp,
    /// The Q-values, or the advantages of a dueling network.
    head: Linear,
    value: Option<Linear>,
    #[module(skip)]
    n_actions: usize,
}

impl QNetwork {
    /// A network for these spaces, with PyTorch's default initial weights from `rng`.
    ///
    /// # Errors
    /// [`NnError`] if the action is not one discrete choice or a width is 0.
    pub fn new(
        config: &QNetworkConfig,
        obs_space: &Space,
        action_space: &Space,
        device: &Device,
        rng: &mut impl Rng,
    ) -> Result<Self, NnError> {
        check_widths("hidden", &config.hidden)?;
        let Space::Discrete(n_actions) = action_space else {
            let got = if matches!(action_space, Space::Box(_)) { "real numbers" } else { "several choices" };
            return Err(NnError::Space(format!(
                "this network estimates values of one discrete action, but actions are {got}"
            )));
        };
        let body = MlpConfig {
            inputs: obs_space.width(),
            hidden: config.hidden.clone(),
            outputs: None,
            activation: config.activation,
            hidden_init: Init::FanIn,
            output_init: Init::FanIn,
        };
        let width = config.hidden.last().copied().unwrap_or(body.inputs);
        let body = Mlp::new(&body, device, rng);
        let head = Linear::new(width, *n_actions, Init::FanIn, device, rng);
        let value = config.dueling.then(|| Linear::new(width, 1, Init::FanIn, device, rng));
        Ok(Self { body, head, value, n_actions: *n_actions })
    }
}

impl ActionValues for QNetwork {
    type Obs = Obs;

    fn values(&self, obs: Obs) -> Tensor<2> {
        let hidden = self.body.forward(obs.values);
        match &self.value {
            None => self.head.forward(hidden, None),
            Some(value) => {
                let advantage = self.head.forward(hidden.clone(), None);
                value.forward(hidden, None) + advantage.clone() - advantage.mean_dim(1)
            }
        }
    }

    fn n_actions(&self) -> usize {
        self.n_actions
    }

    fn action_mask(&self, obs: &Obs) -> Option<Tensor<2>> {
        obs.mask.clone()
    }
}
