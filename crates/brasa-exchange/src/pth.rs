//! The tensors of PyTorch's `.pth` files, read without PyTorch.
//!
//! A `.pth` file is an archive with a pickle and the bytes of each storage, or, before PyTorch 1.6, five pickles and then the storages.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, TensorView};

use crate::Archive;
use crate::pickle::{Id, Pickle, Value};

/// Tensors of other kinds are refused.
const FLOAT: &str = "torch.FloatStorage";

/// The named tensors of a `.pth` file.
#[derive(Debug, Clone, PartialEq)]
pub struct StateDict(pub Vec<Weights>);

/// A tensor of 32-bit floats.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// Its name, such as `actor.mu.0.weight`.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its numbers, row by row.
    pub values: Vec<f32>,
}

impl StateDict {
    /// Reads a file that `torch.save` wrote: a dictionary of tensors, or a dictionary with one under `model_state_dict`. Nothing in the file
    /// is executed.
    ///
    /// # Errors
    /// What is wrong with the file, as the end of a sentence: not one of PyTorch, truncated, or with tensors of another kind than 32-bit
    /// floats stored row by row.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let (pickle, storages) = if bytes.starts_with(b"PK") { from_archive(bytes)? } else { from_pickles(bytes)? };
        // Some files have the tensors beside states of the training.
        let tensors = pickle.entry(pickle.root, "model_state_dict").unwrap_or(pickle.root);
        let Value::Dict(entries) = pickle.get(tensors) else { return Err("it has no dictionary of tensors".into()) };
        let mut all = Vec::new();
        for (name, tensor) in entries {
            let Value::Text(name) = pickle.get(*name) else { return Err("a tensor has no name".into()) };
            let (shape, data) = numbers(&pickle, *tensor, &storages).map_err(|reason| format!("`{name}` {reason}"))?;
            let values = data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            all.push(Weights { name: name.clone(), shape, values });
        }
        if all.is_empty() {
            return Err("it has no tensors".into());
        }
        Ok(Self(all))
    }

    /// The same as the bytes of a safetensors file.
    ///
    /// # Errors
    /// If two tensors have the same name.
    pub fn to_safetensors(&self) -> Result<Vec<u8>, String> {
        let bytes: Vec<Vec<u8>> =
            self.0.iter().map(|weights| weights.values.iter().flat_map(|x| x.to_le_bytes()).collect()).collect();
        let views = self.0.iter().zip(&bytes).map(|(Weights { name, shape, .. }, bytes)| {
            (name, TensorView::new(Dtype::F32, shape.clone(), bytes).expect("the values fill the shape"))
        });
        safetensors::serialize(views, None).map_err(|error| error.to_string())
    }

    /// The tensor `name`.
    pub fn get(&self, name: &str) -> Option<&Weights> {
        self.0.iter().find(|weights| weights.name == name)
    }
}

/// Shape and bytes of a tensor.
fn numbers<'a>(
    pickle: &Pickle,
    tensor: Id,
    storages: &'a HashMap<String, Vec<u8>>,
) -> Result<(Vec<usize>, &'a [u8]), String> {
    let Value::Tensor { storage, offset, shape, stride } = pickle.get(tensor) else {
        return Err("is not a tensor".into());
    };
    let Value::Storage(kind, key) = pickle.get(*storage) else { return Err("has no storage".into()) };
    if kind != FLOAT {
        return Err(format!("must have 32-bit floats (`{FLOAT}`), got `{kind}`"));
    }
    let mut count = 1_usize;
    for (size, stride) in shape.iter().zip(stride).rev() {
        if *stride != count {
            return Err(format!("must be stored row by row, got the strides {stride:?} for the shape {shape:?}"));
        }
        count = count.checked_mul(*size).ok_or("is too large")?;
    }
    let all = storages.get(key).ok_or_else(|| format!("needs the storage `{key}`, which is missing"))?;
    let end = offset.checked_add(count).and_then(|end| end.checked_mul(4)).ok_or("is too large")?;
    let data = all.get(4 * offset..end);
    Ok((shape.clone(), data.ok_or_else(|| format!("needs {end} bytes of its storage, got {}", all.len()))?))
}

type Content = (Pickle, HashMap<String, Vec<u8>>);

fn from_archive(bytes: &[u8]) -> Result<Content, String> {
    let mut archive = Archive::new(std::io::Cursor::new(bytes))?;
    let names = archive.names();
    // All entries are in a folder with the name of the file at the time of writing.
    let pickled = names.iter().find(|name| name.ends_with("/data.pkl")).ok_or("it has no `data.pkl`")?;
    let folder = format!("{}data/", pickled.trim_end_matches("data.pkl"));
    let pickle = Pickle::read(&mut archive.read(pickled)?.as_slice())?;
    let keys = names.iter().filter_map(|name| Some((name, name.strip_prefix(&folder)?.to_owned())));
    let storages = keys.map(|(name, key)| Ok((key, archive.read(name)?))).collect::<Result<_, String>>()?;
    Ok((pickle, storages))
}

/// The pickles are a number, a version, the system, the content and the keys; then come length and bytes of each storage.
fn from_pickles(bytes: &[u8]) -> Result<Content, String> {
    let rest = &mut &bytes[..];
    for _ in 0..3 {
        Pickle::read(rest)?;
    }
    let (content, keys) = (Pickle::read(rest)?, Pickle::read(rest)?);
    // Another kind would have another length.
    if let Some(kind) = content.storage_kinds().find(|kind| *kind != FLOAT) {
        return Err(format!("it must have 32-bit floats (`{FLOAT}`) only, got `{kind}`"));
    }
    let Value::List(names) = keys.get(keys.root) else { return Err("it has no keys of storages".into()) };
    let mut storages = HashMap::new();
    for name in names {
        let Value::Text(name) = keys.get(*name) else { return Err("a storage has no key".into()) };
        let (length, data) = rest.split_first_chunk().ok_or("it ends before its storages")?;
        let n_bytes = usize::try_from(u64::from_le_bytes(*length)).ok().and_then(|length| length.checked_mul(4));
        let parts = n_bytes.and_then(|n_bytes| data.split_at_checked(n_bytes));
        let (data, after) = parts.ok_or_else(|| format!("it ends within the storage `{name}`"))?;
        storages.insert(name.clone(), data.to_vec());
        *rest = after;
    }
    Ok((content, storages))
}
