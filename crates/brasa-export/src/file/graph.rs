//! Graph networks as arrays and JSON.

use serde::{Deserialize, Serialize};

use super::{Arrays, Kind, Stored, put_indices};
use crate::graph::{Affine, Attention, Edges, Head, Norm, Residual};
use crate::{ExportError, Function, GraphNetwork, Readout};

/// A graph network without its arrays. Indices are stored as numbers, which hold them exactly up to 2^24.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GraphKind {
    n_nodes: usize,
    node_features: usize,
    agent_features: usize,
    edge_width: usize,
    layers: Vec<AttentionKind>,
    readout: Readout,
    head: HeadKind,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AttentionKind {
    heads: usize,
    slope: f32,
    concat: bool,
    residual: ResidualKind,
    norm: bool,
    activation: Option<Function>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ResidualKind {
    None,
    Same,
    Projected,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum HeadKind {
    Pointer,
    Index(Vec<Kind>),
}

pub(super) fn put_affine(arrays: &mut Arrays, at: &str, affine: &Affine) {
    arrays.insert(format!("{at}.weight"), affine.weight.clone());
    arrays.insert(format!("{at}.bias"), affine.bias.clone());
}

impl GraphKind {
    pub fn of(network: &GraphNetwork, at: &str, arrays: &mut Arrays) -> Self {
        let Edges { nodes, starts, sources, width, features } = &network.edges;
        put_indices(arrays, format!("{at}.edges.nodes"), nodes);
        put_indices(arrays, format!("{at}.edges.starts"), starts);
        put_indices(arrays, format!("{at}.edges.sources"), sources);
        arrays.insert(format!("{at}.edges.features"), features.clone());
        let layers = network.layers.iter().enumerate();
        let layers = layers.map(|(i, layer)| AttentionKind::of(layer, &format!("{at}.layers.{i}"), arrays)).collect();
        let head = match &network.head {
            Head::Pointer { query, key, wait } => {
                put_affine(arrays, &format!("{at}.query"), query);
                put_affine(arrays, &format!("{at}.key"), key);
                put_affine(arrays, &format!("{at}.wait"), wait);
                HeadKind::Pointer
            }
            Head::Index { layers, ranks } => {
                put_indices(arrays, format!("{at}.ranks"), ranks);
                let layers = layers.iter().enumerate();
                HeadKind::Index(layers.map(|(i, layer)| Kind::of(layer, &format!("{at}.head.{i}"), arrays)).collect())
            }
        };
        let GraphNetwork { n_nodes, node_features, agent_features, readout, .. } = *network;
        Self { n_nodes, node_features, agent_features, edge_width: *width, layers, readout, head }
    }

    pub fn network(&self, at: &str, stored: &Stored<'_>) -> Result<GraphNetwork, ExportError> {
        let get = |field: &str| stored.get(&format!("{at}.{field}"));
        let indices = |field: &str| stored.indices(&format!("{at}.{field}"));
        let affine = |field: &str| affine_of(&format!("{at}.{field}"), stored);
        let layers = self.layers.iter().enumerate();
        let layers = layers.map(|(i, kind)| kind.layer(&format!("{at}.layers.{i}"), stored));
        let head = match &self.head {
            HeadKind::Pointer => Head::Pointer { query: affine("query")?, key: affine("key")?, wait: affine("wait")? },
            HeadKind::Index(kinds) => {
                let kinds = kinds.iter().enumerate();
                let layers = kinds.map(|(i, kind)| kind.layer(&format!("{at}.head.{i}"), stored));
                Head::Index { layers: layers.collect::<Result<_, _>>()?, ranks: indices("ranks")? }
            }
        };
        Ok(GraphNetwork {
            n_nodes: self.n_nodes,
            node_features: self.node_features,
            agent_features: self.agent_features,
            edges: Edges {
                nodes: indices("edges.nodes")?,
                starts: indices("edges.starts")?,
                sources: indices("edges.sources")?,
                width: self.edge_width,
                features: get("edges.features")?,
            },
            layers: layers.collect::<Result<_, _>>()?,
            readout: self.readout,
            head,
        })
    }
}

pub(super) fn affine_of(at: &str, stored: &Stored<'_>) -> Result<Affine, ExportError> {
    Ok(Affine { weight: stored.get(&format!("{at}.weight"))?, bias: stored.get(&format!("{at}.bias"))? })
}

impl AttentionKind {
    fn of(layer: &Attention, at: &str, arrays: &mut Arrays) -> Self {
        put_affine(arrays, &format!("{at}.source"), &layer.source);
        put_affine(arrays, &format!("{at}.destination"), &layer.destination);
        put_affine(arrays, &format!("{at}.value"), &layer.value);
        let mut put = |field: &str, values: &[f32]| arrays.insert(format!("{at}.{field}"), values.to_vec());
        put("edge", &layer.edge);
        put("attention", &layer.attention);
        put("bias", &layer.bias);
        let residual = match &layer.residual {
            Residual::None => ResidualKind::None,
            Residual::Same => ResidualKind::Same,
            Residual::Projected(weight) => {
                put("residual", weight);
                ResidualKind::Projected
            }
        };
        if let Some(norm) = &layer.norm {
            put("norm.scale", &norm.scale);
            put("norm.shift", &norm.shift);
            put("norm.mean_scale", &norm.mean_scale);
        }
        let Attention { heads, slope, concat, activation, .. } = *layer;
        Self { heads, slope, concat, residual, norm: layer.norm.is_some(), activation }
    }

    fn layer(&self, at: &str, stored: &Stored<'_>) -> Result<Attention, ExportError> {
        let get = |field: &str| stored.get(&format!("{at}.{field}"));
        let affine = |field: &str| affine_of(&format!("{at}.{field}"), stored);
        let norm = || -> Result<Norm, ExportError> {
            Ok(Norm { scale: get("norm.scale")?, shift: get("norm.shift")?, mean_scale: get("norm.mean_scale")? })
        };
        Ok(Attention {
            heads: self.heads,
            source: affine("source")?,
            destination: affine("destination")?,
            edge: get("edge")?,
            attention: get("attention")?,
            slope: self.slope,
            value: affine("value")?,
            concat: self.concat,
            bias: get("bias")?,
            residual: match self.residual {
                ResidualKind::None => Residual::None,
                ResidualKind::Same => Residual::Same,
                ResidualKind::Projected => Residual::Projected(get("residual")?),
            },
            norm: if self.norm { Some(norm()?) } else { None },
            activation: self.activation,
        })
    }
}
