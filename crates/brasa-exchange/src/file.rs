//! Exported policies as safetensors: the arrays, and the list of layers as JSON in the metadata.

use std::collections::{BTreeMap, HashMap};

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};

use crate::{ExchangeError, ExportedPolicy, Function, Layer, Output};

/// The entry of the metadata.
const ENTRY: &str = "brasa_policy";
/// Version of the layout.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: u32,
    obs_width: usize,
    n_agents: usize,
    masked: bool,
    layers: Vec<Kind>,
    output: Output,
}

/// A layer without its arrays, whose names are `INDEX.FIELD`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Normalize { clip: f32 },
    Linear { outputs: usize },
    Activation(Function),
    Scale,
    Clip,
}

impl ExportedPolicy {
    /// The bytes of a safetensors file.
    pub fn to_safetensors(&self) -> Vec<u8> {
        let mut arrays: BTreeMap<String, &[f32]> = BTreeMap::new();
        let mut layers = Vec::new();
        for (i, layer) in self.layers.iter().enumerate() {
            let mut put = |field: &str, values| arrays.insert(format!("{i}.{field}"), values);
            layers.push(match layer {
                Layer::Normalize { mean, deviation, clip } => {
                    put("mean", mean);
                    put("deviation", deviation);
                    Kind::Normalize { clip: *clip }
                }
                Layer::Linear { outputs, weight, bias } => {
                    put("weight", weight);
                    put("bias", bias);
                    Kind::Linear { outputs: *outputs }
                }
                Layer::Activation(function) => Kind::Activation(*function),
                Layer::Scale { factor, offset } => {
                    put("factor", factor);
                    put("offset", offset);
                    Kind::Scale
                }
                Layer::Clip { low, high } => {
                    put("low", low);
                    put("high", high);
                    Kind::Clip
                }
            });
        }
        let Self { obs_width, n_agents, masked, output, .. } = self.clone();
        let document = Document { format: FORMAT, obs_width, n_agents, masked, layers, output };
        let document = serde_json::to_string(&document).expect("plain values always serialize");
        let bytes: Vec<(String, usize, Vec<u8>)> = arrays
            .into_iter()
            .map(|(name, values)| (name, values.len(), values.iter().flat_map(|x| x.to_le_bytes()).collect()))
            .collect();
        let views = bytes.iter().map(|(name, n, bytes)| {
            (name, TensorView::new(Dtype::F32, vec![*n], bytes).expect("four bytes per number"))
        });
        safetensors::serialize(views, Some(HashMap::from([(ENTRY.to_owned(), document)])))
            .expect("distinct names and valid views always serialize")
    }

    /// Reads the bytes of [`ExportedPolicy::to_safetensors`].
    ///
    /// # Errors
    /// [`ExchangeError::File`] if they are something else; [`ExchangeError::Layer`] if the layers do not fit together.
    pub fn from_safetensors(bytes: &[u8]) -> Result<Self, ExchangeError> {
        let failed = |error: &dyn std::fmt::Display| ExchangeError::File(error.to_string());
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| failed(&error))?;
        let arrays = SafeTensors::deserialize(bytes).map_err(|error| failed(&error))?;
        let text = metadata.metadata().as_ref().and_then(|entries| entries.get(ENTRY));
        let text = text.ok_or_else(|| ExchangeError::File(format!("its metadata has no entry `{ENTRY}`")))?;
        let document: Document = serde_json::from_str(text).map_err(|error| failed(&error))?;
        if document.format != FORMAT {
            return Err(ExchangeError::File(format!("`format` must be {FORMAT}, got {}", document.format)));
        }
        let get = |i: usize, field: &str| -> Result<Vec<f32>, ExchangeError> {
            let view = arrays.tensor(&format!("{i}.{field}")).map_err(|error| failed(&error))?;
            if view.dtype() != Dtype::F32 {
                return Err(ExchangeError::File(format!("`{i}.{field}` must be F32, got {:?}", view.dtype())));
            }
            Ok(view.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
        };
        let layer = |(i, kind): (usize, Kind)| {
            Ok(match kind {
                Kind::Normalize { clip } => {
                    Layer::Normalize { mean: get(i, "mean")?, deviation: get(i, "deviation")?, clip }
                }
                Kind::Linear { outputs } => Layer::Linear { outputs, weight: get(i, "weight")?, bias: get(i, "bias")? },
                Kind::Activation(function) => Layer::Activation(function),
                Kind::Scale => Layer::Scale { factor: get(i, "factor")?, offset: get(i, "offset")? },
                Kind::Clip => Layer::Clip { low: get(i, "low")?, high: get(i, "high")? },
            })
        };
        let layers = document.layers.into_iter().enumerate().map(layer).collect::<Result<_, ExchangeError>>()?;
        let Document { obs_width, n_agents, masked, output, .. } = document;
        let policy = Self { obs_width, n_agents, masked, layers, output };
        policy.validate()?;
        Ok(policy)
    }
}
