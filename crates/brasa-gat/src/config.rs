//! Settings of policies over graphs.

use brasa_core::env::InvalidField;
use brasa_nn::Activation;
use serde::{Deserialize, Serialize};

use crate::{GatError, Version};

/// Settings of one attention layer of an encoder.
///
/// ```
/// use brasa_gat::{GatLayerConfig, GraphActorCriticConfig};
///
/// let text = r#"{ "layers": [{ "heads": 8, "outputs": 32 }, { "heads": 1, "outputs": 24, "concat": false }] }"#;
/// let config: GraphActorCriticConfig = serde_json::from_str(text)?;
/// assert_eq!(config.layers[0], GatLayerConfig { heads: 8, outputs: 32, concat: true });
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatLayerConfig {
    /// Number of heads, at least 1.
    pub heads: usize,
    /// Width per head, at least 1.
    pub outputs: usize,
    /// Whether heads are concatenated; otherwise their mean is the result. Default on.
    #[serde(default = "yes")]
    pub concat: bool,
}

fn yes() -> bool {
    true
}

/// Normalization after an attention layer.
///
/// ```
/// use brasa_gat::{GraphActorCriticConfig, Norm};
///
/// let config: GraphActorCriticConfig = serde_json::from_str(r#"{ "norm": "graph" }"#)?;
/// assert_eq!(config.norm, Norm::Graph);
/// assert_eq!(GraphActorCriticConfig::default().norm, Norm::Layer);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// No normalization.
    None,
    /// Layer normalization over the features of each node.
    Layer,
    /// Normalization over the nodes of each graph. It removes differences between graphs, and all information of a
    /// single node.
    Graph,
}

/// The encoder of the critic.
///
/// ```
/// use brasa_gat::{GraphActorCriticConfig, Trunk};
///
/// let config: GraphActorCriticConfig = serde_json::from_str(r#"{ "trunk": "separate" }"#)?;
/// assert_eq!(config.trunk, Trunk::Separate);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trunk {
    /// The actor's encoder: saves half of the time, but the two losses interfere.
    Shared,
    /// A separate encoder, which also reads privileged node features.
    Separate,
}

/// The parts of the vector between encoder and heads; at least one.
///
/// ```
/// use brasa_gat::{GraphActorCriticConfig, Readout};
///
/// let config: GraphActorCriticConfig = serde_json::from_str(r#"{ "readout": { "max": false } }"#)?;
/// assert_eq!(config.readout, Readout { max: false, ..Readout::default() });
/// let none = Readout { own: false, mean: false, max: false, agent: false };
/// let error = GraphActorCriticConfig { readout: none, ..config }.validate().unwrap_err();
/// assert_eq!(error.to_string(), "`readout` must have a part, got none");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Readout {
    /// The agent's own node. Default on.
    pub own: bool,
    /// The mean over nodes. Default on.
    pub mean: bool,
    /// The maximum over nodes, which shows whether a feature occurs anywhere. Default on.
    pub max: bool,
    /// Features of the agent. Default on.
    pub agent: bool,
}

impl Default for Readout {
    fn default() -> Self {
        Self { own: true, mean: true, max: true, agent: true }
    }
}

/// The head that chooses a node.
///
/// ```
/// use brasa_gat::{GraphActorCriticConfig, HeadConfig};
///
/// let text = r#"{ "head": { "index": { "hidden": [64], "options": 2 } } }"#;
/// let config: GraphActorCriticConfig = serde_json::from_str(text)?;
/// assert_eq!(config.head, HeadConfig::Index { hidden: vec![64], options: 2 });
/// // An index head can at least wait, stay and go to one neighbor.
/// let error = config.validate().unwrap_err();
/// assert_eq!(error.to_string(), "`head.index.options` must be at least 3, got 2");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum HeadConfig {
    /// Every node is scored by its features: for any number of nodes, independent of their order.
    Pointer {
        /// Width of queries and keys, at least 1.
        width: usize,
    },
    /// An MLP with one output per index: 0 waits, 1 stays at the own node, `k + 2` goes to its `k`-th neighbor
    /// (the `k`-th edge that leaves the node).
    Index {
        /// Widths of hidden layers.
        hidden: Vec<usize>,
        /// Number of outputs, at least 3. Graphs with nodes of more neighbors are rejected.
        options: usize,
    },
}

/// Settings of a [`GraphActorCritic`](crate::GraphActorCritic).
///
/// ```
/// use brasa_gat::{GatError, GraphActorCriticConfig};
///
/// let config = GraphActorCriticConfig { residual: false, ..GraphActorCriticConfig::lean() };
/// config.validate()?;
/// assert_eq!(config.layers.len(), 3);
/// assert_eq!(GraphActorCriticConfig::preset("lean"), Some(GraphActorCriticConfig::lean()));
/// let error = GraphActorCriticConfig { layers: vec![], ..config }.validate().unwrap_err();
/// assert_eq!(error.to_string(), "`layers` must have at least one layer, got none");
/// # Ok::<(), GatError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GraphActorCriticConfig {
    /// Attention layers. Default three with 4 heads of 16. A layer passes information over one edge: with few layers,
    /// distant nodes are visible only through the pooled parts of the readout; with many, the features of all nodes
    /// become similar.
    pub layers: Vec<GatLayerConfig>,
    /// Scoring of neighbors. Default v2.
    pub version: Version,
    /// Whether edge features are used, if graphs have any. Default on.
    pub edge_features: bool,
    /// Whether each layer adds its input to its result, through a projection if widths differ. Default on.
    pub residual: bool,
    /// Normalization after each layer. Default layer.
    pub norm: Norm,
    /// Activation after each normalization. Default elu.
    pub activation: Activation,
    /// Activation of the hidden layers of the heads. Default elu.
    pub head_activation: Activation,
    /// Whether normalization and activation also follow the last layer. Default on.
    pub finish_last: bool,
    /// The encoder of the critic. Default shared.
    pub trunk: Trunk,
    /// Inputs of the heads. Default all parts.
    pub readout: Readout,
    /// The head that chooses a node. Default a pointer of width 64.
    pub head: HeadConfig,
    /// Widths of the critic's hidden layers. Default 128, 64.
    pub critic_hidden: Vec<usize>,
    /// Orthogonal initial weights of the heads with gain sqrt(2), 0.01 for the actor's and 1 for the critic's last
    /// layer; if off, PyTorch's default. Default on: a small last layer makes the first policy nearly uniform.
    pub orthogonal: bool,
}

impl Default for GraphActorCriticConfig {
    fn default() -> Self {
        Self::lean()
    }
}

impl GraphActorCriticConfig {
    /// About 75 thousand parameters for 24 node features, 8 agent features and 6 edge features.
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

    /// The network of the first GoHiMCM sweep policies, without its dropout: 239,456 parameters for 11 node features.
    pub fn gohimcm_base() -> Self {
        Self::gohimcm([(8, 32), (8, 48), (1, 24)], &[64, 32])
    }

    /// The network of the last GoHiMCM sweep policies, without its dropout: 3,389,104 parameters for 11 node features.
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
    /// [`GatError::Field`] for the first invalid field.
    pub fn validate(&self) -> Result<(), GatError> {
        let refuse = |field, rule, value: String| Err(GatError::Field(InvalidField::new(field, rule, value)));
        if self.layers.is_empty() {
            return refuse("layers", "must have at least one layer", "none".into());
        }
        if let Some(layer) = self.layers.iter().find(|layer| layer.heads == 0 || layer.outputs == 0) {
            let value = format!("{} heads of {}", layer.heads, layer.outputs);
            return refuse("layers", "must have at least one head of at least 1", value);
        }
        const MOST: usize = 1 << 16;
        let most = |layer: &GatLayerConfig| layer.heads.saturating_mul(layer.outputs);
        if let Some(layer) = self.layers.iter().find(|layer| most(layer) > MOST) {
            let value = format!("{} heads of {}", layer.heads, layer.outputs);
            return refuse("layers", "must be at most 65536 wide, all heads together", value);
        }
        let (index, pointer) = match &self.head {
            HeadConfig::Index { options, hidden } => (hidden.iter().chain([options]).max(), None),
            HeadConfig::Pointer { width } => (None, Some(width)),
        };
        let widest = self.critic_hidden.iter().chain(index).chain(pointer).max().copied().unwrap_or(0);
        if widest > MOST {
            return refuse("head", "must have layers of at most 65536", widest.to_string());
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
