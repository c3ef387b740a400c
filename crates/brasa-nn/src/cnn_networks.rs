//! Convolutional actor-critics and Q-networks.

use brasa_core::env::{EnvSpec, Space};
use brasa_core::export::{ExportedPolicy, Layer, Output};
use brasa_core::{ActionValues, Obs};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::actor_critic::check_widths;
use crate::exported::Layers;
use crate::q_network::n_actions;
use crate::{
    Activation, ActorCriticModule, Channels, Cnn, CnnLayers, Heads, Init, Linear, Mlp, MlpConfig, ModuleActorCritic,
    NnError,
};

/// Shape of a [`CnnActorCritic`].
///
/// ```
/// use brasa_nn::{CnnActorCriticConfig, CnnLayers};
///
/// let config = CnnActorCriticConfig { layers: CnnLayers::Impala, ..Default::default() };
/// assert_eq!((config.hidden, config.actor_hidden), (vec![512], vec![]));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CnnActorCriticConfig {
    /// Convolutions: `nature`, the default, `impala`, `{ convolutions = [...] }` or `{ residual = [...] }`.
    pub layers: CnnLayers,
    /// Which dimension of an image counts its channels: `auto`, the default, `first` or `last`.
    pub channels: Channels,
    /// Widths of layers after the convolutions, which actor and critic share. Default 512.
    pub hidden: Vec<usize>,
    /// Widths of the actor's own layers. Default none.
    pub actor_hidden: Vec<usize>,
    /// Widths of the critic's own layers. Default none.
    pub critic_hidden: Vec<usize>,
    /// Orthogonal initial weights with gain sqrt(2), 0.01 for the actor's and 1 for the critic's last layer; if off, PyTorch's default. Default on.
    pub orthogonal: bool,
}

impl Default for CnnActorCriticConfig {
    fn default() -> Self {
        Self {
            layers: CnnLayers::Nature,
            channels: Channels::Auto,
            hidden: vec![512],
            actor_hidden: vec![],
            critic_hidden: vec![],
            orthogonal: true,
        }
    }
}

/// An actor-critic on images: convolutions and layers that both share, as in Stable-Baselines3's `CnnPolicy`.
///
/// ```
/// use brasa_core::env::{EnvSpec, Space, named_rng};
/// use brasa_nn::{CnnActorCritic, CnnActorCriticConfig};
///
/// let device = brasa_device::open_named("cpu")?;
/// // The default convolutions are too large for this image.
/// let spec = EnvSpec::new(Space::image(20, 20, 1), Space::Discrete(2), 1);
/// let rng = &mut named_rng(0, "example", 0);
/// let error = CnnActorCritic::convolutional(&CnnActorCriticConfig::default(), &spec, &device, rng).unwrap_err();
/// assert!(error.to_string().contains("`layers` must have kernels of at most 1 x 1"));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub type CnnActorCritic = ModuleActorCritic<CnnActorCriticLayers>;

/// The layers of a [`CnnActorCritic`].
///
/// ```
/// use brasa_core::env::{EnvSpec, Space, named_rng};
/// use brasa_nn::{CnnActorCritic, CnnActorCriticConfig, CnnActorCriticLayers};
/// use burn::module::Module;
///
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "example", 0));
/// let spec = EnvSpec::new(Space::image(36, 36, 1), Space::Discrete(2), 1);
/// let network = CnnActorCritic::convolutional(&CnnActorCriticConfig::default(), &spec, &device, rng)?;
/// let layers: &CnnActorCriticLayers = network.network();
/// // Three convolutions, one shared layer and two heads.
/// assert_eq!(layers.num_params(), 2080 + 32832 + 36928 + 33280 + 1026 + 513);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct CnnActorCriticLayers {
    body: Body,
    actor: Mlp,
    critic: Mlp,
}

impl ActorCriticModule for CnnActorCriticLayers {
    type Obs = Obs;

    fn forward(&self, obs: Obs) -> (Tensor<2>, Tensor<1>) {
        let features = self.body.forward(obs);
        (self.actor.forward(features.clone()), self.critic.forward(features).squeeze_dim(1))
    }

    fn exported(&self) -> Option<Vec<Layer>> {
        Some([self.body.exported(), self.actor.exported()].concat())
    }
}

impl CnnActorCritic {
    /// A network for environments of `spec`, with initial weights from `rng`.
    ///
    /// ```
    /// use brasa_core::env::{EnvSpec, Space, named_rng};
    /// use brasa_core::{ActorCritic, Obs};
    /// use brasa_nn::{CnnActorCritic, CnnActorCriticConfig, CnnLayers};
    /// use burn::tensor::Tensor;
    ///
    /// let device = brasa_device::open_named("cpu")?;
    /// let spec = EnvSpec::new(Space::image(16, 16, 3), Space::Discrete(4), 2);
    /// let config = CnnActorCriticConfig { layers: CnnLayers::Residual(vec![8]), ..Default::default() };
    /// let network = CnnActorCritic::convolutional(&config, &spec, &device, &mut named_rng(0, "example", 0))?;
    /// assert_eq!(network.value(Obs::new(Tensor::zeros([2, 16 * 16 * 3], &device))).dims(), [2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cnn::new`], and [`NnError::Field`] for a width of 0.
    pub fn convolutional(
        config: &CnnActorCriticConfig,
        spec: &EnvSpec,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        check_widths("actor_hidden", &config.actor_hidden)?;
        check_widths("critic_hidden", &config.critic_hidden)?;
        let orthogonal = config.orthogonal;
        let body = Body::new(&config.layers, config.channels, &config.hidden, orthogonal, &spec.obs, device, rng)?;
        let mut head = |hidden: &[usize], outputs, gain| {
            let output_init = if orthogonal { Init::Orthogonal(gain) } else { Init::FanIn };
            let layers = MlpConfig::body(body.outputs, hidden, Activation::Relu, orthogonal);
            Mlp::new(&MlpConfig { outputs: Some(outputs), output_init, ..layers }, device, rng)
        };
        let actor = head(&config.actor_hidden, Heads::new(&spec.action, false)?.outputs(), 0.01);
        let critic = head(&config.critic_hidden, 1, 1.0);
        Self::new(CnnActorCriticLayers { body, actor, critic }, spec)
    }
}

/// Shape of a [`CnnQNetwork`].
///
/// ```
/// use brasa_nn::{CnnLayers, CnnQNetworkConfig};
///
/// assert_eq!(CnnQNetworkConfig::default().layers, CnnLayers::Nature);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CnnQNetworkConfig {
    /// Convolutions: `nature`, the default, `impala`, `{ convolutions = [...] }` or `{ residual = [...] }`.
    pub layers: CnnLayers,
    /// Which dimension of an image counts its channels: `auto`, the default, `first` or `last`.
    pub channels: Channels,
    /// Widths of layers after the convolutions. Default 512.
    pub hidden: Vec<usize>,
}

impl Default for CnnQNetworkConfig {
    fn default() -> Self {
        Self { layers: CnnLayers::Nature, channels: Channels::Auto, hidden: vec![512] }
    }
}

/// Values of the actions of a discrete space for images, as in DQN on Atari (Mnih et al. 2015).
///
/// ```
/// use brasa_core::{ActionValues, env::{Space, named_rng}};
/// use brasa_nn::{CnnQNetwork, CnnQNetworkConfig};
///
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "example", 0));
/// let (images, actions) = (Space::image(36, 36, 1), Space::Discrete(3));
/// let network = CnnQNetwork::new(&CnnQNetworkConfig::default(), &images, &actions, &device, rng)?;
/// assert_eq!((network.obs_width(), network.n_actions()), (Some(1296), 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct CnnQNetwork {
    body: Body,
    head: Linear,
    #[module(skip)]
    n_actions: usize,
}

impl CnnQNetwork {
    /// A network for these spaces, with initial weights from `rng` as PyTorch's default.
    ///
    /// ```
    /// use brasa_core::env::{Space, named_rng};
    /// use brasa_core::{ActionValues, Obs};
    /// use brasa_nn::{CnnQNetwork, CnnQNetworkConfig};
    /// use burn::tensor::Tensor;
    ///
    /// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "example", 0));
    /// let (images, actions) = (Space::image(84, 84, 4), Space::Discrete(6));
    /// let network = CnnQNetwork::new(&CnnQNetworkConfig::default(), &images, &actions, &device, rng)?;
    /// assert_eq!(network.values(Obs::new(Tensor::zeros([1, 84 * 84 * 4], &device))).dims(), [1, 6]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cnn::new`], [`NnError::Space`] if the action is not one discrete choice, and [`NnError::Field`] for a width of 0.
    pub fn new(
        config: &CnnQNetworkConfig,
        obs_space: &Space,
        action_space: &Space,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        let n_actions = n_actions(action_space)?;
        let body = Body::new(&config.layers, config.channels, &config.hidden, false, obs_space, device, rng)?;
        let head = Linear::new(body.outputs, n_actions, Init::FanIn, device, rng);
        Ok(Self { body, head, n_actions })
    }
}

impl ActionValues for CnnQNetwork {
    type Obs = Obs;

    fn values(&self, obs: Obs) -> Tensor<2> {
        self.head.forward(self.body.forward(obs), None)
    }

    fn n_actions(&self) -> usize {
        self.n_actions
    }

    fn obs_width(&self) -> Option<usize> {
        Some(self.body.cnn.inputs())
    }

    fn action_mask(&self, obs: &Obs) -> Option<Tensor<2>> {
        obs.mask.clone()
    }

    fn exported(&self) -> Option<ExportedPolicy> {
        let mut layers = Layers::of(self.body.cnn.inputs(), self.body.exported());
        layers.linear(&self.head);
        Some(layers.policy(1, Output::Choice { heads: vec![self.n_actions] }))
    }
}

/// Convolutions and the layers after them.
#[derive(Module, Debug)]
struct Body {
    cnn: Cnn,
    hidden: Mlp,
    #[module(skip)]
    outputs: usize,
}

impl Body {
    fn new(
        layers: &CnnLayers,
        channels: Channels,
        hidden: &[usize],
        orthogonal: bool,
        obs_space: &Space,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        check_widths("hidden", hidden)?;
        let cnn = Cnn::new(layers, channels, obs_space, orthogonal, device, rng)?;
        let outputs = hidden.last().copied().unwrap_or(cnn.outputs());
        let hidden = Mlp::new(&MlpConfig::body(cnn.outputs(), hidden, Activation::Relu, orthogonal), device, rng);
        Ok(Self { cnn, hidden, outputs })
    }

    fn forward(&self, obs: Obs) -> Tensor<2> {
        self.hidden.forward(self.cnn.forward(obs.values))
    }

    fn exported(&self) -> Vec<Layer> {
        [self.cnn.exported(), self.hidden.exported()].concat()
    }
}
