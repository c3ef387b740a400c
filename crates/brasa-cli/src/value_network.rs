//! The network of DQN, whatever its kind.

use brasa::core::{ActionValues, Obs};
use brasa::nn::{PairQNetwork, PairQNetworkConfig, QNetwork, QNetworkConfig, TeamQNetworkConfig};
use burn::module::Module;
use burn::tensor::Tensor;

/// Which network judges options.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueNetwork {
    /// Over flat observations.
    Flat(QNetworkConfig),
    /// Over pairs of things.
    Pair(PairQNetworkConfig),
    /// Of a team, all agents as one.
    Team(TeamQNetworkConfig),
}

/// A network that judges the options of single rows.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant, reason = "one value per run")]
pub enum AnyQNetwork {
    Flat(QNetwork),
    Pair(PairQNetwork),
}

impl ActionValues for AnyQNetwork {
    type Obs = Obs;

    fn values(&self, obs: Obs) -> Tensor<2> {
        match self {
            Self::Flat(network) => network.values(obs),
            Self::Pair(network) => network.values(obs),
        }
    }

    fn n_options(&self) -> usize {
        match self {
            Self::Flat(network) => network.n_options(),
            Self::Pair(network) => network.n_options(),
        }
    }

    fn legal(&self, obs: &Obs) -> Option<Tensor<2>> {
        obs.mask.clone()
    }
}
