//! A Q-network that remembers.

use brasa_core::analytic::ByResults;
use brasa_core::env::{Space, field};
use brasa_core::export::{ExportedPolicy, Output};
use brasa_core::{ActionValues, Obs, PolicyState, Sequences};
use brasa_kernels::{HostTensor, RecurrentKind};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::actor_critic::check_widths;
use crate::exported::Layers;
use crate::{Activation, Init, Mlp, MlpConfig, NnError, QNetwork, QNetworkConfig, Recurrent};

/// Shape of a [`RecurrentQNetwork`].
///
/// ```
/// use brasa_nn::{RecurrentKind, RecurrentQNetworkConfig};
///
/// let config: RecurrentQNetworkConfig = serde_json::from_str(r#"{ "kind": "gru", "width": 32 }"#)?;
/// assert_eq!((config.kind, config.width, config.dueling), (RecurrentKind::Gru, 32, false));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecurrentQNetworkConfig {
    /// The recurrent layer: `lstm`, the default, or `gru`.
    pub kind: RecurrentKind,
    /// Its number of cells. Default 64.
    pub width: usize,
    /// Widths of the layers before it. Default none.
    pub encoder_hidden: Vec<usize>,
    /// Widths of the layers behind it. Default 64.
    pub hidden: Vec<usize>,
    /// Activation of these layers. Default relu.
    pub activation: Activation,
    /// Whether value and advantages have separate heads, as in [`QNetworkConfig::dueling`]. Default off.
    pub dueling: bool,
    /// Initial weights: `fan-in`, the default (PyTorch's), `glorot` or `{ orthogonal = GAIN }`. Those of the recurrent layer are PyTorch's.
    pub init: Init,
}

impl Default for RecurrentQNetworkConfig {
    fn default() -> Self {
        Self {
            kind: RecurrentKind::Lstm,
            width: 64,
            encoder_hidden: vec![],
            hidden: vec![64],
            activation: Activation::Relu,
            dueling: false,
            init: Init::FanIn,
        }
    }
}

/// A Q-network on flat observations that remembers: a recurrent layer between layers, with one output per action. DQN with it is the
/// recurrent replay of Kapturowski et al. 2019 (R2D2).
///
/// ```
/// use brasa_core::env::{Space, named_rng};
/// use brasa_core::{ActionValues, Obs, PolicyState, read_back};
/// use brasa_nn::{RecurrentQNetwork, RecurrentQNetworkConfig};
/// use burn::tensor::Tensor;
///
/// let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::Discrete(3));
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let network = RecurrentQNetwork::new(&RecurrentQNetworkConfig::default(), &obs, &action, &device, rng)?;
/// let mut state = PolicyState::new(4, network.state_width(), &device);
/// let seen = Obs::new(Tensor::ones([4, 2], &device));
/// let first = network.values_from(seen.clone(), &mut state);
/// // The second look at the same numbers has other values.
/// assert_ne!(read_back(first), read_back(network.values_from(seen, &mut state)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct RecurrentQNetwork {
    encoder: Mlp,
    memory: Recurrent,
    network: QNetwork,
}

impl RecurrentQNetwork {
    /// A network for these spaces, with initial weights from `rng`.
    ///
    /// # Errors
    /// [`NnError`] if the action is not one discrete choice or a width is 0.
    pub fn new(
        config: &RecurrentQNetworkConfig,
        obs_space: &Space,
        action_space: &Space,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        field::at_least_one("width", config.width as u64)?;
        check_widths("width", &[config.width, config.kind.n_gates() * config.width])?;
        check_widths("encoder_hidden", &config.encoder_hidden)?;
        let encoder = MlpConfig {
            inputs: obs_space.width(),
            hidden: config.encoder_hidden.clone(),
            outputs: None,
            activation: config.activation,
            hidden_init: config.init,
            output_init: config.init,
        };
        let features = config.encoder_hidden.last().copied().unwrap_or(encoder.inputs);
        let cells = Init::Within(1.0 / (config.width as f64).sqrt());
        let behind = QNetworkConfig {
            hidden: config.hidden.clone(),
            activation: config.activation,
            dueling: config.dueling,
            init: config.init,
        };
        let remembered = Space::shaped(f32::NEG_INFINITY, f32::INFINITY, [config.width]);
        let encoder = Mlp::new(&encoder, device, rng);
        let memory = Recurrent::new(config.kind, features, config.width, cells, device, rng);
        Ok(Self { encoder, memory, network: QNetwork::new(&behind, &remembered, action_space, device, rng)? })
    }

    /// The outputs of the recurrent layer for all rows of sequences.
    fn remembered(&self, obs: Obs, sequences: &Sequences) -> Tensor<2> {
        self.memory.forward(self.encoder.forward(obs.values), sequences)
    }
}

impl ActionValues for RecurrentQNetwork {
    type Obs = Obs;

    /// Those of first steps of episodes.
    fn values(&self, obs: Obs) -> Tensor<2> {
        self.values_from(obs, &mut PolicyState::default())
    }

    fn n_actions(&self) -> usize {
        self.network.n_actions()
    }

    fn obs_width(&self) -> Option<usize> {
        Some(self.encoder.inputs(self.memory.inputs()))
    }

    fn action_mask(&self, obs: &Obs) -> Option<Tensor<2>> {
        obs.mask.clone()
    }

    fn state_width(&self) -> usize {
        self.memory.state_width()
    }

    fn values_from(&self, obs: Obs, state: &mut PolicyState) -> Tensor<2> {
        let (n_rows, device) = (obs.values.dims()[0], obs.values.device());
        let before = state.numbers.take().unwrap_or_else(|| Tensor::zeros([n_rows, self.state_width()], &device));
        let (remembered, after) = self.memory.step(self.encoder.forward(obs.values), before);
        state.numbers = Some(after);
        self.network.values(Obs::new(remembered))
    }

    fn values_of_sequences(&self, obs: Obs, action: Tensor<2>, sequences: &Sequences) -> Tensor<1> {
        self.network.values_of(Obs::new(self.remembered(obs, sequences)), action)
    }

    fn states_of_sequences(&self, obs: Obs, sequences: &Sequences) -> Tensor<2> {
        self.memory.states(self.encoder.forward(obs.values), sequences)
    }

    fn gradient_of_sequences(
        &self,
        obs: &Obs,
        action: &Tensor<2>,
        sequences: &Sequences,
        by: &mut ByResults<'_, 1>,
    ) -> Option<Vec<f32>> {
        let (x, actions) = (HostTensor::of(&obs.values)?, HostTensor::of(action)?);
        let (state, starts) = (HostTensor::of(&sequences.state)?, HostTensor::of(&sequences.starts)?);
        let (mut encoder, mut memory) = (self.encoder.on_host([])?, self.memory.on_host()?);
        let ([n_sequences, _], n_rows) = (sequences.state.dims(), actions.len());
        if n_rows == 0 {
            return None;
        }
        let features = encoder.forward(&x, n_rows);
        let remembered = memory.forward(features, n_sequences, &starts, &mut state.to_vec());
        let mut by_remembered = Vec::new();
        let of_network = self.network.gradient_of_rows(remembered, &actions, by, Some(&mut by_remembered))?;
        let n_encoder = encoder.n_params();
        let mut gradient = vec![0.0; n_encoder + memory.n_params()];
        let (of_encoder, of_memory) = gradient.split_at_mut(n_encoder);
        let mut by_features = Vec::new();
        let wanted = (n_encoder > 0).then_some(&mut by_features);
        memory.backward(encoder.results(&x), &by_remembered, of_memory, wanted);
        if n_encoder > 0 {
            encoder.backward(&x, &by_features, Some(of_encoder), None);
        }
        gradient.extend(of_network);
        Some(gradient)
    }

    fn exported(&self) -> Option<ExportedPolicy> {
        let mut layers = Layers::default();
        layers.mlp(&self.encoder);
        layers.recurrent(&self.memory);
        self.network.export(&mut layers);
        Some(layers.policy(1, Output::Choice { heads: vec![self.n_actions()] }))
    }
}
