//! Exported policies as safetensors: the arrays, and the list of layers as JSON in the metadata.

mod graph;

use std::collections::BTreeMap;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};

use self::graph::{GraphKind, affine_of, put_affine};
use crate::{
    About, Cell, ExportError, ExportedPolicy, Function, Groups, ImageLayer, ImageShape, Layer, Memory, Output, Window,
    high_and_low, joined,
};

/// The entry of the metadata.
const ENTRY: &str = "brasa_policy";
/// The beginning of the entries of [`About`].
const PREFIX: &str = "brasa_";
/// The entry that says how arrays are stored.
const LAYOUT: (&str, &str) = (
    "brasa_layout",
    "y = x W + b: INDEX.weight is [inputs, outputs], row by row (PyTorch has [outputs, inputs]); INDEX.bias is [outputs]; with weights of \
     their own, one such array per agent, one after the other. Edges, groups and recurrent layers have weights of the same form.",
);
/// Version of the layout.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
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
    Graph(Box<GraphKind>),
    Groups { width: usize, layers: Vec<Kind> },
    Window { frames: usize },
    Recurrent { cell: Cell },
    ChannelsFirst(ImageShape),
    Convolution { input: ImageShape, window: Window },
    MaxPool { input: ImageShape, window: Window },
    Residual { layers: Vec<Kind> },
}

/// Arrays by name.
pub(crate) type Arrays = BTreeMap<String, Vec<f32>>;

/// The arrays of a file.
struct Stored<'a>(SafeTensors<'a>);

impl Stored<'_> {
    fn get(&self, name: &str) -> Result<Vec<f32>, ExportError> {
        let view = self.0.tensor(name).map_err(|error| ExportError::File(error.to_string()))?;
        if view.dtype() != Dtype::F32 {
            return Err(ExportError::File(format!("`{name}` must be F32, got {:?}", view.dtype())));
        }
        Ok(view.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }

    fn has(&self, name: &str) -> bool {
        self.0.tensor(name).is_ok()
    }

    fn indices(&self, name: &str) -> Result<Vec<usize>, ExportError> {
        Ok(self.get(name)?.into_iter().map(|value| value as usize).collect())
    }
}

/// The array with the remainders of `field`: see [`high_and_low`].
fn low_of(field: &str) -> String {
    format!("{field}_low")
}

fn put_indices(arrays: &mut Arrays, name: String, values: &[usize]) {
    arrays.insert(name, values.iter().map(|value| *value as f32).collect());
}

impl Kind {
    /// The kind of `layer`; its arrays are added with names that begin with `at`.
    fn of(layer: &Layer, at: &str, arrays: &mut Arrays) -> Self {
        let mut put = |field: &str, values: &[f32]| arrays.insert(format!("{at}.{field}"), values.to_vec());
        match layer {
            Layer::Normalize { mean, deviation, clip } => {
                for (field, values) in [("mean", mean), ("deviation", deviation)] {
                    let [high, low] = high_and_low(values);
                    put(field, &high);
                    put(&low_of(field), &low);
                }
                Self::Normalize { clip: *clip }
            }
            Layer::Linear { outputs, weight, bias } => {
                put("weight", weight);
                put("bias", bias);
                Self::Linear { outputs: *outputs }
            }
            Layer::Activation(function) => Self::Activation(*function),
            Layer::Scale { factor, offset } => {
                put("factor", factor);
                put("offset", offset);
                Self::Scale
            }
            Layer::Clip { low, high } => {
                put("low", low);
                put("high", high);
                Self::Clip
            }
            Layer::Groups(groups) => {
                put_indices(arrays, format!("{at}.columns"), &groups.columns);
                let layers = groups.layers.iter().enumerate();
                let layers = layers.map(|(i, layer)| Self::of(layer, &format!("{at}.group.{i}"), arrays)).collect();
                Self::Groups { width: groups.width, layers }
            }
            Layer::Graph(network) => Self::Graph(Box::new(GraphKind::of(network, at, arrays))),
            Layer::Image(ImageLayer::ChannelsFirst(input)) => Self::ChannelsFirst(*input),
            Layer::Image(ImageLayer::Convolution { input, window, weight, bias }) => {
                put("weight", weight);
                put("bias", bias);
                Self::Convolution { input: *input, window: *window }
            }
            Layer::Image(ImageLayer::MaxPool { input, window }) => Self::MaxPool { input: *input, window: *window },
            Layer::Residual(layers) => {
                let layers = layers.iter().enumerate();
                let layers = layers.map(|(i, layer)| Self::of(layer, &format!("{at}.residual.{i}"), arrays)).collect();
                Self::Residual { layers }
            }
            Layer::Memory(Memory::Window { frames }) => Self::Window { frames: *frames },
            Layer::Memory(Memory::Recurrent { cell, input, output }) => {
                put_affine(arrays, &format!("{at}.input"), input);
                put_affine(arrays, &format!("{at}.output"), output);
                Self::Recurrent { cell: *cell }
            }
        }
    }

    fn layer(&self, at: &str, stored: &Stored<'_>) -> Result<Layer, ExportError> {
        let get = |field: &str| stored.get(&format!("{at}.{field}"));
        Ok(match self {
            Self::Normalize { clip } => {
                let both = |field: &str| {
                    let high = get(field)?;
                    // Files of earlier versions have no remainders.
                    let low = match stored.has(&format!("{at}.{}", low_of(field))) {
                        true => get(&low_of(field))?,
                        false => vec![0.0; high.len()],
                    };
                    if low.len() != high.len() {
                        let reason = format!("`{at}.{field}` has {} numbers, its remainders {}", high.len(), low.len());
                        return Err(ExportError::File(reason));
                    }
                    Ok(joined(&high, &low))
                };
                Layer::Normalize { mean: both("mean")?, deviation: both("deviation")?, clip: *clip }
            }
            Self::Linear { outputs } => Layer::Linear { outputs: *outputs, weight: get("weight")?, bias: get("bias")? },
            Self::Activation(function) => Layer::Activation(*function),
            Self::Scale => Layer::Scale { factor: get("factor")?, offset: get("offset")? },
            Self::Clip => Layer::Clip { low: get("low")?, high: get("high")? },
            Self::Groups { width, layers } => {
                let layers = layers.iter().enumerate();
                let layers = layers.map(|(i, kind)| kind.layer(&format!("{at}.group.{i}"), stored));
                let columns = stored.indices(&format!("{at}.columns"))?;
                Layer::Groups(Groups { width: *width, columns, layers: layers.collect::<Result<_, _>>()? })
            }
            Self::Graph(kind) => Layer::Graph(Box::new(kind.network(at, stored)?)),
            Self::ChannelsFirst(input) => Layer::Image(ImageLayer::ChannelsFirst(*input)),
            Self::Convolution { input, window } => {
                let (weight, bias) = (get("weight")?, get("bias")?);
                Layer::Image(ImageLayer::Convolution { input: *input, window: *window, weight, bias })
            }
            Self::MaxPool { input, window } => Layer::Image(ImageLayer::MaxPool { input: *input, window: *window }),
            Self::Residual { layers } => {
                let layers = layers.iter().enumerate();
                let layers = layers.map(|(i, kind)| kind.layer(&format!("{at}.residual.{i}"), stored));
                Layer::Residual(layers.collect::<Result<_, _>>()?)
            }
            Self::Window { frames } => Layer::Memory(Memory::Window { frames: *frames }),
            Self::Recurrent { cell } => {
                let [input, output] = ["input", "output"].map(|field| affine_of(&format!("{at}.{field}"), stored));
                let (input, output) = (input?, output?);
                Layer::Memory(Memory::Recurrent { cell: *cell, input, output })
            }
        })
    }
}

impl Document {
    /// Everything but the arrays, which are added to `arrays`.
    pub fn of(policy: &ExportedPolicy, arrays: &mut Arrays) -> Self {
        let kinds = policy.layers.iter().enumerate().map(|(i, layer)| Kind::of(layer, &i.to_string(), arrays));
        let layers = kinds.collect();
        let ExportedPolicy { obs_width, n_agents, masked, ref output, .. } = *policy;
        Self { format: FORMAT, obs_width, n_agents, masked, layers, output: output.clone() }
    }
}

/// A file with metadata in the order of their keys: the library writes them in any order, and the same policy would be other bytes.
fn with_metadata(bytes: &[u8], metadata: &BTreeMap<String, String>) -> Vec<u8> {
    let (length, rest) = bytes.split_first_chunk::<8>().expect("a file begins with the length of its header");
    let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let header = std::str::from_utf8(header).expect("a header is JSON").trim_end();
    let arrays = header.strip_prefix('{').expect("a header is an object");
    let metadata = serde_json::to_string(metadata).expect("texts always serialize");
    let separator = if arrays == "}" { "" } else { "," };
    let mut header = format!("{{\"__metadata__\":{metadata}{separator}{arrays}");
    // Numbers begin at a multiple of eight bytes.
    header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

impl ExportedPolicy {
    /// The bytes of a safetensors file. Its metadata has the layers (`brasa_policy`), the orientation of weights (`brasa_layout`) and the entries
    /// of [`About`] (`brasa_run`, `brasa_step`, `brasa_config`, `brasa_version`, `brasa_obs`, `brasa_actions`).
    pub fn to_safetensors(&self) -> Vec<u8> {
        let mut arrays = Arrays::new();
        let document = serde_json::to_string(&Document::of(self, &mut arrays)).expect("plain values always serialize");
        let bytes: Vec<(String, usize, Vec<u8>)> = arrays
            .into_iter()
            .map(|(name, values)| (name, values.len(), values.iter().flat_map(|x| x.to_le_bytes()).collect()))
            .collect();
        let views = bytes.iter().map(|(name, n, bytes)| {
            (name, TensorView::new(Dtype::F32, vec![*n], bytes).expect("four bytes per number"))
        });
        let mut metadata = BTreeMap::from([(ENTRY.to_owned(), document), (LAYOUT.0.to_owned(), LAYOUT.1.to_owned())]);
        metadata.extend(self.about.entries().into_iter().map(|(key, value)| (format!("{PREFIX}{key}"), value)));
        let bytes = safetensors::serialize(views, None).expect("distinct names and valid views always serialize");
        with_metadata(&bytes, &metadata)
    }

    /// Reads the bytes of [`ExportedPolicy::to_safetensors`].
    ///
    /// # Errors
    /// [`ExportError::File`] if they are something else; [`ExportError::Layer`] if the layers do not fit together.
    pub fn from_safetensors(bytes: &[u8]) -> Result<Self, ExportError> {
        let failed = |error: &dyn std::fmt::Display| ExportError::File(error.to_string());
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| failed(&error))?;
        let stored = Stored(SafeTensors::deserialize(bytes).map_err(|error| failed(&error))?);
        let text = metadata.metadata().as_ref().and_then(|entries| entries.get(ENTRY));
        let text = text.ok_or_else(|| ExportError::File(format!("its metadata has no entry `{ENTRY}`")))?;
        let document: Document = serde_json::from_str(text).map_err(|error| failed(&error))?;
        let entry = |key: &str| metadata.metadata().as_ref()?.get(&format!("{PREFIX}{key}"));
        let columns = |key: &str| match entry(key) {
            Some(text) => {
                serde_json::from_str(text).map_err(|error| ExportError::File(format!("`{PREFIX}{key}`: {error}")))
            }
            None => Ok(Vec::new()),
        };
        let step = entry("step").map(|step| step.parse());
        let about = About {
            run: entry("run").cloned(),
            step: step.transpose().map_err(|error| ExportError::File(format!("`{PREFIX}step`: {error}")))?,
            config: entry("config").cloned(),
            obs: columns("obs")?,
            actions: columns("actions")?,
        };
        if document.format != FORMAT {
            return Err(ExportError::File(format!("`format` must be {FORMAT}, got {}", document.format)));
        }
        let layers = document.layers.iter().enumerate().map(|(i, kind)| kind.layer(&i.to_string(), &stored));
        let layers = layers.collect::<Result<_, ExportError>>()?;
        let Document { obs_width, n_agents, masked, output, .. } = document;
        let policy = Self { obs_width, n_agents, masked, layers, output, about };
        policy.validate()?;
        Ok(policy)
    }
}
