//! An MLP Q-network: the values of all actions of a discrete space at once.

use brasa_core::analytic::ByResults;
use brasa_core::env::Space;
use brasa_core::export::{ExportedPolicy, Output};
use brasa_core::{ActionValues, Obs};
use brasa_kernels::{HostMlp, HostTensor, reused};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::action_bounds::takers;
use crate::actor_critic::check_widths;
use crate::branches::Branches;
use crate::exported::Layers;
use crate::{Activation, Init, Linear, Mlp, MlpConfig, NnError};

/// Shape of a [`QNetwork`].
///
/// ```
/// use brasa_nn::{Init, QNetworkConfig};
///
/// let config: QNetworkConfig = serde_json::from_str(r#"{ "dueling": true, "init": "glorot" }"#)?;
/// assert_eq!((config.dueling, config.init, &config.hidden[..]), (true, Init::Glorot, &[64, 64][..]));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QNetworkConfig {
    /// Widths of the hidden layers. Default 64, 64 (Stable-Baselines3).
    pub hidden: Vec<usize>,
    /// Activation of the hidden layers. Default relu (Mnih et al. 2015).
    pub activation: Activation,
    /// Whether value and advantages have separate heads, `Q = V + A - mean(A)` (Wang et al. 2016, equation 9). Default
    /// off.
    pub dueling: bool,
    /// Initial weights: `fan-in`, the default (PyTorch's), `glorot` or `{ orthogonal = GAIN }`.
    pub init: Init,
}

impl Default for QNetworkConfig {
    fn default() -> Self {
        Self { hidden: vec![64, 64], activation: Activation::Relu, dueling: false, init: Init::FanIn }
    }
}

/// An MLP Q-network on flat observations, with one output per action.
///
/// ```
/// use brasa_core::env::{Space, named_rng};
/// use brasa_core::{ActionValues, Obs, read_back};
/// use brasa_nn::{QNetwork, QNetworkConfig};
/// use burn::tensor::Tensor;
///
/// let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::Discrete(3));
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let network = QNetwork::new(&QNetworkConfig::default(), &obs, &action, &device, rng)?;
/// let seen = Obs::new(Tensor::ones([4, 2], &device));
/// let (best, value) = network.best(seen.clone());
/// // The value of the best action is the greatest value.
/// assert_eq!(best.dims(), [4, 1]);
/// assert_eq!(read_back(value), read_back(network.values(seen).max_dim(1)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct QNetwork {
    body: Mlp,
    /// The Q-values, or the advantages of a dueling network.
    head: Linear,
    value: Option<Linear>,
    #[module(skip)]
    n_actions: usize,
}

/// The number of actions of one choice, whose values a network estimates.
pub(crate) fn n_actions(space: &Space) -> Result<usize, NnError> {
    match space {
        Space::Discrete(n) => Ok(*n),
        other => Err(NnError::Space(format!("this network estimates values of one choice: {}", takers(other)))),
    }
}

impl QNetwork {
    /// A network for these spaces, with initial weights from `rng`.
    ///
    /// # Errors
    /// [`NnError`] if the action is not one discrete choice or a width is 0.
    pub fn new(
        config: &QNetworkConfig,
        obs_space: &Space,
        action_space: &Space,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        check_widths("hidden", &config.hidden)?;
        config.init.check("init")?;
        let n_actions = n_actions(action_space)?;
        let body = MlpConfig {
            inputs: obs_space.width(),
            hidden: config.hidden.clone(),
            outputs: None,
            activation: config.activation,
            hidden_init: config.init,
            output_init: config.init,
        };
        let width = config.hidden.last().copied().unwrap_or(body.inputs);
        let body = Mlp::new(&body, device, rng);
        let head = Linear::new(width, n_actions, config.init, device, rng);
        let value = config.dueling.then(|| Linear::new(width, 1, config.init, device, rng));
        Ok(Self { body, head, value, n_actions })
    }

    /// The layers, behind others.
    pub(crate) fn export(&self, layers: &mut Layers) {
        layers.mlp(&self.body);
        match &self.value {
            None => layers.linear(&self.head),
            Some(value) => {
                layers.dueling(self.head.inputs(), self.n_actions, self.head.numbers(), value.numbers());
            }
        }
    }

    /// The gradient of a loss of the values of `actions` in the rows `x`, in the memory of the CPU; and the derivative by `x`.
    pub(crate) fn gradient_of_rows(
        &self,
        x: &[f32],
        actions: &[f32],
        by: &mut ByResults<'_, 1>,
        by_x: Option<&mut Vec<f32>>,
    ) -> Option<Vec<f32>> {
        let (n_rows, n) = (actions.len(), self.n_actions);
        if n_rows == 0 {
            return None;
        }
        let chosen = |row: usize| row * n + actions[row] as usize;
        let Some(value) = &self.value else {
            let mut network = self.body.on_host([&self.head])?;
            let values = network.forward(x, n_rows);
            let [by_chosen] = by([&(0..n_rows).map(|row| values[chosen(row)]).collect::<Vec<_>>()])?;
            let mut by_values = vec![0.0; values.len()];
            by_chosen.iter().enumerate().for_each(|(row, x)| by_values[chosen(row)] = *x);
            let mut gradient = reused(network.n_params());
            network.backward(x, &by_values, Some(&mut gradient), by_x);
            return Some(gradient);
        };
        let mut branches = [HostMlp::default(), HostMlp::default()];
        self.head.push_to(&mut branches[0], None)?;
        value.push_to(&mut branches[1], None)?;
        let mut networks = Branches { body: self.body.on_host([])?, branches };
        let [advantages, values] = networks.forward(x, n_rows);
        let of_row = |row: usize| {
            let mean = advantages[row * n..(row + 1) * n].iter().sum::<f32>() / n as f32;
            values[row] + advantages[chosen(row)] - mean
        };
        let [by_chosen] = by([&(0..n_rows).map(of_row).collect::<Vec<_>>()])?;
        let mut by_advantages: Vec<f32> =
            by_chosen.iter().flat_map(|x| std::iter::repeat_n(-x / n as f32, n)).collect();
        by_chosen.iter().enumerate().for_each(|(row, x)| by_advantages[chosen(row)] += x);
        Some(networks.backward(x, [&by_advantages, &by_chosen], by_x))
    }
}

impl ActionValues for QNetwork {
    type Obs = Obs;

    fn values(&self, obs: Obs) -> Tensor<2> {
        match &self.value {
            None => self.body.forward_before(obs.values, Some(&self.head)),
            Some(value) => {
                let hidden = self.body.forward(obs.values);
                let advantage = self.head.forward(hidden.clone(), None);
                value.forward(hidden, None) + advantage.clone() - advantage.mean_dim(1)
            }
        }
    }

    fn n_actions(&self) -> usize {
        self.n_actions
    }

    fn obs_width(&self) -> Option<usize> {
        Some(self.body.inputs(self.head.inputs()))
    }

    fn exported(&self) -> Option<ExportedPolicy> {
        let mut layers = Layers::default();
        self.export(&mut layers);
        Some(layers.policy(1, Output::Choice { heads: vec![self.n_actions] }))
    }

    fn action_mask(&self, obs: &Obs) -> Option<Tensor<2>> {
        obs.mask.clone()
    }

    fn gradient(&self, obs: &Obs, action: &Tensor<2>, by: &mut ByResults<'_, 1>) -> Option<Vec<f32>> {
        self.gradient_of_rows(&HostTensor::of(&obs.values)?, &HostTensor::of(action)?, by, None)
    }
}
