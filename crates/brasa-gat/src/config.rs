//! Shapes of policies over graphs.

use brasa_core::env::InvalidField;
use brasa_nn::Activation;
use serde::{Deserialize, Serialize};

use crate::{GatError, Version};

/// Shape of one layer of attention in an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatLayerConfig {
    /// Number of heads, at least 1.
    pub heads: usize,
    /// Width per head, at least 1.
    pub outputs: usize,
    /// Whether heads stand side by side; otherwise their mean is the result. Default on.
    #[serde(default = "yes")]
    pub concat: bool,
}

fn yes() -> bool {
    true
}

/// What follows a layer of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// Nothing.
    None,
    /// A norm over the features of each node.
    Layer,
    /// A norm over the nodes of each graph. Tells nodes of large and small graphs apart less well, and a single node not at all.
    Graph,
}

/// Who encodes for the critic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trunk {
    /// The actor's encoder: saves half of the time, and lets the two losses disturb each other.
    Shared,
    /// An encoder of its own, which also sees privileged features of nodes.
    Separate,
}

/// What a row becomes between encoder and heads. At least one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Readout {
    /// The agent's own node. Default on.
    pub own: bool,
    /// The mean over nodes. Default on.
    pub mean: bool,
    /// The maximum over nodes: whether something is anywhere. Default on.
    pub max: bool,
    /// Features of the agent. Default on.
    pub agent: bool,
}

impl Default for Readout {
    fn default() -> Self {
        Self { own: true, mean: true, max: true, agent: true }
    }
}

/// How a row chooses among nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum HeadConfig {
    /// Every node is scored by its own features: any number of neighbors, and names of nodes do not matter.
    Pointer {
        /// Width of queries and keys, at least 1.
        width: usize,
    },
    /// An MLP with one output per index: 0 waits, 1 stays at the own node, `k + 2` goes to its `k`-th neighbor
    /// (the `k`-th edge that leaves the node).
    Index {
        /// Widths of hidden layers.
        hidden: Vec<usize>,
        /// Outputs, at least 3. Graphs with nodes of more neighbors than outputs are refused.
        options: usize,
    },
}

/// Shape of a [`GraphActorCritic`](crate::GraphActorCritic).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GraphActorCriticConfig {
    /// Layers of attention. Default three of 4 heads of 16. As many as a message needs to travel: with few, far rooms
    /// are seen only through the pooled parts of the readout; with many, all nodes grow alike.
    pub layers: Vec<GatLayerConfig>,
    /// How neighbors are scored. Default v2.
    pub version: Version,
    /// Whether features of edges count, where graphs have some. Default on.
    pub edge_features: bool,
    /// Whether each layer adds its input to its result, through weights where widths differ. Default on.
    pub residual: bool,
    /// What follows each layer. Default layer.
    pub norm: Norm,
    /// Behind norms, and between layers of the heads. Default elu.
    pub activation: Activation,
    /// Between the hidden layers of the heads. Default elu.
    pub head_activation: Activation,
    /// Whether the last layer too is followed by norm and activation. Default on.
    pub finish_last: bool,
    /// Who encodes for the critic. Default shared.
    pub trunk: Trunk,
    /// What the heads see. Default everything.
    pub readout: Readout,
    /// How nodes are chosen. Default a pointer of 64.
    pub head: HeadConfig,
    /// Widths of the critic's hidden layers. Default 128, 64.
    pub critic_hidden: Vec<usize>,
    /// Orthogonal initial weights of the heads with gains root 2, and 0.01 for the actor's and 1 for the critic's last layer;
    /// without it, PyTorch's default. Default on: a small last layer makes the first policy nearly uniform.
    pub orthogonal: bool,
}

impl Default for GraphActorCriticConfig {
    fn default() -> Self {
        Self::lean()
    }
}

impl GraphActorCriticConfig {
    /// About 75 thousand weights for 24 features of nodes, 8 of agents and 6 of edges.
    pub fn lean() -> Self {
        Self {
            layers: vec![GatLayerConfig { heads: 4, outputs: 16, concat: true }; 3],
            version: Version::V2,
            edge_features: true,
            residual: true,
            norm: Norm::Layer,
            activation: Activation::Elu,
            head_activation: Activation::Elu,
            finish_last: true,
            trunk: Trunk::Shared,
            readout: Readout::default(),
            head: HeadConfig::Pointer { width: 64 },
            critic_hidden: vec![128, 64],
            orthogonal: true,
        }
    }

    /// The network of the first GoHiMCM sweep policies, without its dropout: 239,456 weights for 11 features of nodes.
    pub fn gohimcm_base() -> Self {
        Self::gohimcm([(8, 32), (8, 48), (1, 24)], &[64, 32])
    }

    /// The network of the last GoHiMCM sweep policies, without its dropout: 3,389,104 weights for 11 features of nodes.
    pub fn gohimcm_rtx5090() -> Self {
        Self::gohimcm([(16, 64), (16, 96), (1, 48)], &[128, 64])
    }

    fn gohimcm(layers: [(usize, usize); 3], hidden: &[usize]) -> Self {
        let layer = |(index, (heads, outputs))| GatLayerConfig { heads, outputs, concat: index < 2 };
        Self {
            layers: layers.into_iter().enumerate().map(layer).collect(),
            version: Version::V1,
            edge_features: false,
            residual: false,
            norm: Norm::Graph,
            activation: Activation::Elu,
            head_activation: Activation::Relu,
            finish_last: false,
            trunk: Trunk::Separate,
            readout: Readout { own: true, mean: true, max: false, agent: false },
            head: HeadConfig::Index { hidden: hidden.to_vec(), options: 15 },
            critic_hidden: hidden.to_vec(),
            orthogonal: false,
        }
    }

    /// A preset by name: `lean`, `gohimcm-base` or `gohimcm-rtx5090`.
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "lean" => Some(Self::lean()),
            "gohimcm-base" => Some(Self::gohimcm_base()),
            "gohimcm-rtx5090" => Some(Self::gohimcm_rtx5090()),
            _ => None,
        }
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`GatError::Field`] with the first that is outside its rule.
    pub fn validate(&self) -> Result<(), GatError> {
        let refuse = |field, rule, value: String| Err(GatError::Field(InvalidField::new(field, rule, value)));
        if self.layers.is_empty() {
            return refuse("layers", "must have at least one layer", "none".into());
        }
        if let Some(layer) = self.layers.iter().find(|layer| layer.heads == 0 || layer.outputs == 0) {
            let value = format!("{} heads of {}", layer.heads, layer.outputs);
            return refuse("layers", "must have at least one head of at least 1", value);
        }
        let Readout { own, mean, max, agent } = self.readout;
        if !(own || mean || max || agent) {
            return refuse("readout", "must have a part", "none".into());
        }
        match &self.head {
            HeadConfig::Pointer { width: 0 } => {
                return refuse("head.pointer.width", "must be at least 1", "0".into());
            }
            HeadConfig::Index { options, .. } if *options < 3 => {
                return refuse("head.index.options", "must be at least 3", options.to_string());
            }
            HeadConfig::Index { hidden, .. } if hidden.contains(&0) => {
                return refuse("head.index.hidden", "must have widths of at least 1", format!("{hidden:?}"));
            }
            _ => {}
        }
        if self.critic_hidden.contains(&0) {
            return refuse("critic_hidden", "must have widths of at least 1", format!("{:?}", self.critic_hidden));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid_and_read_back() {
        for name in ["lean", "gohimcm-base", "gohimcm-rtx5090"] {
            let config = GraphActorCriticConfig::preset(name).expect("a preset");
            config.validate().expect("valid");
            let text = serde_json::to_string(&config).expect("writes");
            assert_eq!(serde_json::from_str::<GraphActorCriticConfig>(&text).expect("reads"), config);
        }
        assert_eq!(GraphActorCriticConfig::preset("huge"), None);
        assert_eq!(
            serde_json::from_str::<GraphActorCriticConfig>("{}").expect("reads"),
            GraphActorCriticConfig::lean()
        );
    }

    #[test]
    fn broken_fields_are_named() {
        let read = |text: &str| serde_json::from_str::<GraphActorCriticConfig>(text);
        let message = |text| read(text).expect("reads").validate().expect_err(text).to_string();
        assert_eq!(message(r#"{"layers": []}"#), "`layers` must have at least one layer, got none");
        assert!(message(r#"{"layers": [{"heads": 0, "outputs": 4}]}"#).contains("0 heads of 4"));
        let nothing = r#"{"readout": {"own": false, "mean": false, "max": false, "agent": false}}"#;
        assert_eq!(message(nothing), "`readout` must have a part, got none");
        assert!(message(r#"{"head": {"pointer": {"width": 0}}}"#).starts_with("`head.pointer.width`"));
        assert!(message(r#"{"head": {"index": {"hidden": [], "options": 2}}}"#).starts_with("`head.index.options`"));
        assert!(message(r#"{"head": {"index": {"hidden": [0], "options": 9}}}"#).starts_with("`head.index.hidden`"));
        assert!(message(r#"{"critic_hidden": [0]}"#).starts_with("`critic_hidden`"));
        assert!(read(r#"{"head": {"pointer": {"width": 8, "depth": 2}}}"#).is_err());
        assert!(read(r#"{"dropout": 0.1}"#).is_err());
    }
}
