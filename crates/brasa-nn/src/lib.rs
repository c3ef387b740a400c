//! Networks, distributions and optimizers of Brasa.
//!
//! This crate depends on no algorithm and no environment.
//!
//! ```
//! use brasa_core::env::{Space, named_rng};
//! use brasa_core::{Explore, Obs, Policy};
//! use brasa_nn::{ActorCriticConfig, MlpActorCritic};
//! use burn::module::Module;
//! use burn::tensor::Tensor;
//!
//! let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::Discrete(3));
//! let device = brasa_device::open_named("cpu")?;
//! // Initial weights come from a random stream on the host: a seed gives the same network on any device.
//! let rng = &mut named_rng(0, "weights", 0);
//! let network = MlpActorCritic::new(&ActorCriticConfig::default(), &obs, &action, &device.clone().autodiff(), rng)?;
//! let seen = Obs::new(Tensor::zeros([4, 2], &device));
//! let (action, decision) = network.valid().act(seen, Explore::Greedy);
//! assert_eq!((action.dims(), decision.log_prob.dims()), ([4, 1], [4]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`ActionHead`] is the last layer of an actor for any action space, for custom networks. [`Trainable`] is a network
//! with its optimizer. [`Boxed`] erases the type of a network.

mod action_bounds;
mod action_head;
mod actor_critic;
mod advantage;
mod bootstrap;
mod boxed;
mod branches;
mod cnn;
mod cnn_networks;
mod deterministic_actor;
pub mod distribution;
mod exported;
mod forward;
mod gaussian_std;
mod gradient;
mod held;
mod init;
mod initialized;
mod layer_norm;
mod learn;
mod linear;
mod loss_scale;
mod mlp;
mod mlp_critics;
mod module_actor_critic;
mod noise;
mod optimizer;
mod pair_actor_critic;
mod pair_q_network;
mod params;
mod parts;
mod polyak;
mod privileged;
mod q_network;
mod recordings;
mod recurrent;
mod recurrent_actor_critic;
mod recurrent_q_network;
mod sampling;
mod saved;
mod separate_actor_critic;
mod shards;
mod squashed_actor;
mod team_actor_critic;
mod team_q_network;
mod team_rows;
mod trainable;
mod value_norm;
mod window_actor_critic;

pub use action_head::{ActionHead, ActionHeadConfig, Heads};
pub use actor_critic::{ActorCriticConfig, MlpActorCritic};
pub use advantage::{choice_weight, explained_variance, mean_of, normalize, push_of_rollout};
pub use bootstrap::bootstrapped;
pub use boxed::{
    ActorCriticNetwork, ActorCriticRole, Boxed, CriticsNetwork, CriticsRole, DeterministicActorNetwork,
    DeterministicActorRole, Erase, ErasedMapper, ErasedModule, ErasedVisitor, Role, StochasticActorNetwork,
    StochasticActorRole, TeamActorCriticNetwork, TeamActorCriticRole, TeamValueNetwork, TeamValueRole, ValueNetwork,
    ValueRole,
};
pub use brasa_core::env::PairSpec;
pub use brasa_kernels::{Activation, RecurrentKind};
pub use cnn::{Channels, Cnn, CnnLayers, ConvolutionConfig};
pub use cnn_networks::{CnnActorCritic, CnnActorCriticConfig, CnnActorCriticLayers, CnnQNetwork, CnnQNetworkConfig};
pub use deterministic_actor::{DeterministicActor, DeterministicActorConfig};
pub use exported::exported_function;
pub use forward::{DrawnActions, EvaluatedActions, Forward, GreedyActions, ValuesOfActions, ValuesOfChoices};
pub use gaussian_std::StdKind;
pub use held::Held;
pub use init::Init;
pub use initialized::initialized;
pub use layer_norm::{LayerNorm, StackedLayerNorm};
pub use learn::{Data, Learned, Reports, weights};
pub use linear::{Linear, StackedLinear, affine, leaf};
pub use loss_scale::LossScale;
pub use mlp::{Mlp, MlpConfig, StackedMlp};
pub use mlp_critics::{MlpCritics, MlpCriticsConfig};
pub use module_actor_critic::{ActorCriticModule, ModuleActorCritic};
pub use noise::{draw_noise, noise_numbers};
pub use optimizer::{
    AdamConfig, OptimizerConfig, OptimizerState, RmsPropConfig, RmsPropStyle, off_policy_adam, off_policy_optimizer,
};
pub use pair_actor_critic::{PairActorCritic, PairActorCriticConfig};
pub use pair_q_network::{PairQNetwork, PairQNetworkConfig};
pub use params::{NamedParam, ParamsError, load_params, named_params};
pub use parts::Part;
pub use polyak::soft_update;
pub use q_network::{QNetwork, QNetworkConfig};
pub use recordings::{Changing, Copied, Recordable, Recordings, Update};
pub use recurrent::{Recurrent, check_memory};
pub use recurrent_actor_critic::{RecurrentActorCritic, RecurrentActorCriticConfig};
pub use recurrent_q_network::{RecurrentQNetwork, RecurrentQNetworkConfig};
pub use sampling::Sampling;
pub use saved::{Arrays, Persist, Saved};
pub use separate_actor_critic::{SeparateActorCritic, check_policies};
pub use shards::gradient_in_shards;
pub use squashed_actor::{SquashedActor, SquashedActorConfig};
pub use team_actor_critic::{TeamActorCritic, TeamActorCriticConfig};
pub use team_q_network::{Sharing, TeamQNetwork, TeamQNetworkConfig};
pub use trainable::{Clip, Step, Trainable};
pub use value_norm::ValueNorm;
pub use window_actor_critic::{WindowActorCritic, WindowActorCriticConfig};

use brasa_core::env::InvalidField;
use thiserror::Error;

/// A network or optimizer that cannot be built.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_core::env::named_rng;
/// use brasa_nn::{QNetwork, QNetworkConfig};
///
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let error = QNetwork::new(&QNetworkConfig::default(), &obs_space(), &power(), &device, rng).unwrap_err();
/// let rule = "this network estimates values of one choice: PPO, A2C, SAC and TD3 take numbers";
/// assert_eq!(error.to_string(), rule);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NnError {
    /// An invalid setting.
    #[error(transparent)]
    Field(#[from] InvalidField),
    /// A space that the network does not support.
    #[error("{0}")]
    Space(String),
}
