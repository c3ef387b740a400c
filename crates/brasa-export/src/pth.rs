//! The tensors of PyTorch's `.pth` files, read without PyTorch.
//!
//! A `.pth` file is an archive with a pickle and the bytes of each storage, or, before PyTorch 1.6, five pickles and then the storages.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Cursor;

use safetensors::tensor::{Dtype, TensorView};
use zip::ZipArchive;

use crate::archive::read_entry;
use crate::pickle::{Id, Pickle, Value};
use crate::{Budget, ExportError};

/// Most dimensions of a tensor, as in PyTorch.
const MOST_DIMENSIONS: usize = 64;
/// Tensors of other kinds are refused.
const FLOAT: &str = "torch.FloatStorage";

/// The named tensors of a `.pth` file.
///
/// ```
/// use brasa_export::StateDict;
///
/// # let model = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/stable_baselines3/a2c.zip"))?;
/// # let bytes = brasa_export::Archive::new(std::io::Cursor::new(model))?.read("policy.pth")?;
/// // `bytes` is a file that `torch.save` wrote.
/// let weights = StateDict::read(&bytes)?;
/// assert!(weights.get("action_net.weight").is_some());
/// assert!(weights.to_safetensors()?.len() > 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct StateDict(pub Vec<Weights>);

/// A tensor of 32-bit floats.
///
/// ```
/// use brasa_export::{StateDict, Weights};
///
/// # let model = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/stable_baselines3/a2c.zip"))?;
/// # let bytes = brasa_export::Archive::new(std::io::Cursor::new(model))?.read("policy.pth")?;
/// // `bytes` is a file that `torch.save` wrote.
/// for Weights { name, shape, values } in StateDict::read(&bytes)?.0 {
///     assert_eq!(values.len(), shape.iter().product::<usize>(), "{name}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    /// [`ExportError::Content`] for a file that is not one of PyTorch, truncated, or with tensors of another kind than 32-bit
    /// floats stored row by row.
    pub fn read(bytes: &[u8]) -> Result<Self, ExportError> {
        Self::read_within(bytes, &mut Budget::of(bytes.len() as u64))
    }

    /// The same for a file that is a part of another one, whose budget it shares.
    ///
    /// # Errors
    /// As [`StateDict::read`].
    pub fn read_within(bytes: &[u8], budget: &mut Budget) -> Result<Self, ExportError> {
        let (pickle, storages) = match bytes.starts_with(b"PK") {
            true => from_archive(bytes, budget)?,
            false => from_pickles(bytes, budget)?,
        };
        // Some files have the tensors beside states of the training.
        let tensors = pickle.entry(pickle.root, "model_state_dict").unwrap_or(pickle.root);
        let Value::Dict(entries) = pickle.get(tensors) else {
            return Err("it has no dictionary of tensors".to_owned().into());
        };
        let mut all = Vec::new();
        for (name, tensor) in entries {
            let Value::Text(name) = pickle.get(*name) else { return Err("a tensor has no name".to_owned().into()) };
            let (shape, data) = numbers(&pickle, *tensor, &storages).map_err(|reason| format!("`{name}` {reason}"))?;
            // Tensors may share a storage.
            budget.spend(data.len().saturating_add(name.len()).saturating_add(size_of::<Weights>()))?;
            let values = data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            all.push(Weights { name: name.clone(), shape, values });
        }
        if all.is_empty() {
            return Err("it has no tensors".to_owned().into());
        }
        Ok(Self(all))
    }

    /// The same as the bytes of a safetensors file.
    ///
    /// # Errors
    /// If two tensors have the same name.
    pub fn to_safetensors(&self) -> Result<Vec<u8>, ExportError> {
        let bytes: Vec<Vec<u8>> =
            self.0.iter().map(|weights| weights.values.iter().flat_map(|x| x.to_le_bytes()).collect()).collect();
        let views = self.0.iter().zip(&bytes).map(|(Weights { name, shape, .. }, bytes)| {
            (name, TensorView::new(Dtype::F32, shape.clone(), bytes).expect("the values fill the shape"))
        });
        safetensors::serialize(views, None).map_err(|error| ExportError::Content(error.to_string()))
    }

    /// The tensor `name`.
    pub fn get(&self, name: &str) -> Option<&Weights> {
        self.0.iter().find(|weights| weights.name == name)
    }
}

/// Shape and bytes of a tensor.
fn numbers<'a>(pickle: &Pickle, tensor: Id, storages: &'a Storages<'_>) -> Result<(Vec<usize>, &'a [u8]), String> {
    let Value::Tensor { storage, offset, shape, stride } = pickle.get(tensor) else {
        return Err("is not a tensor".into());
    };
    let Value::Storage(kind, key) = pickle.get(*storage) else { return Err("has no storage".into()) };
    if kind != FLOAT {
        return Err(format!("must have 32-bit floats (`{FLOAT}`), got `{kind}`"));
    }
    if shape.len() != stride.len() {
        return Err(format!("must have a stride for each of its {} dimensions, got {}", shape.len(), stride.len()));
    }
    if shape.len() > MOST_DIMENSIONS || shape.contains(&0) {
        return Err(format!("must have at most {MOST_DIMENSIONS} dimensions, each of at least 1"));
    }
    let mut count = 1_usize;
    for (size, stride) in shape.iter().zip(stride).rev() {
        // A dimension of one number has any stride.
        if *size > 1 && *stride != count {
            return Err(format!("must be stored row by row, got the strides {stride:?} for the shape {shape:?}"));
        }
        count = count.checked_mul(*size).ok_or("is too large")?;
    }
    let all = storages.get(key).ok_or_else(|| format!("needs the storage `{key}`, which is missing"))?;
    let end = offset.checked_add(count).and_then(|end| end.checked_mul(4)).ok_or("is too large")?;
    let begin = offset.checked_mul(4).ok_or("is too large")?;
    let data = all.get(begin..end);
    Ok((shape.clone(), data.ok_or_else(|| format!("needs {end} bytes of its storage, got {}", all.len()))?))
}

/// Numbers by key.
type Storages<'a> = HashMap<String, Cow<'a, [u8]>>;

fn from_archive(bytes: &[u8], budget: &mut Budget) -> Result<(Pickle, Storages<'static>), String> {
    let mut zip = ZipArchive::new(Cursor::new(bytes)).map_err(|error| format!("it is not a zip archive: {error}"))?;
    let names: Vec<String> = zip.file_names().flatten().map(|name| name.into_owned()).collect();
    let mut read = |name: &str, budget: &mut Budget| {
        let bytes = read_entry(&mut zip, name, budget)?;
        budget.spend(bytes.len().saturating_add(name.len()))?;
        Ok::<_, String>(bytes)
    };
    // All entries are in a folder with the name of the file at the time of writing.
    let pickled = names.iter().find(|name| name.ends_with("/data.pkl")).ok_or("it has no `data.pkl`")?;
    let folder = format!("{}data/", pickled.trim_end_matches("data.pkl"));
    let program = read(pickled, budget)?;
    let pickle = Pickle::read(&mut program.as_slice(), budget)?;
    let keys = names.iter().filter_map(|name| Some((name, name.strip_prefix(&folder)?.to_owned())));
    let storages = keys.map(|(name, key)| Ok((key, Cow::Owned(read(name, budget)?))));
    let storages = storages.collect::<Result<_, String>>()?;
    Ok((pickle, storages))
}

/// The pickles are a number, a version, the system, the content and the keys; then come length and bytes of each storage.
fn from_pickles<'a>(bytes: &'a [u8], budget: &mut Budget) -> Result<(Pickle, Storages<'a>), String> {
    let rest = &mut &bytes[..];
    for _ in 0..3 {
        Pickle::read(rest, budget)?;
    }
    let (content, keys) = (Pickle::read(rest, budget)?, Pickle::read(rest, budget)?);
    // Another kind would have another length.
    if let Some(kind) = content.storage_kinds().find(|kind| *kind != FLOAT) {
        return Err(format!("it must have 32-bit floats (`{FLOAT}`) only, got `{kind}`"));
    }
    let Value::List(names) = keys.get(keys.root) else { return Err("it has no keys of storages".into()) };
    let mut storages = HashMap::new();
    for name in names {
        let Value::Text(name) = keys.get(*name) else { return Err("a storage has no key".into()) };
        budget.spend(name.len())?;
        let (length, data) = rest.split_first_chunk().ok_or("it ends before its storages")?;
        let n_bytes = usize::try_from(u64::from_le_bytes(*length)).ok().and_then(|length| length.checked_mul(4));
        let parts = n_bytes.and_then(|n_bytes| data.split_at_checked(n_bytes));
        let (data, after) = parts.ok_or_else(|| format!("it ends within the storage `{name}`"))?;
        storages.insert(name.clone(), Cow::Borrowed(data));
        *rest = after;
    }
    Ok((content, storages))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tensor of a storage with four numbers, with these operations for its shape and stride.
    fn tensor(sizes: &[u8]) -> Result<Vec<usize>, String> {
        let head = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0aX\x03\0\0\0cpuK\x04tQK\0";
        let pickle = Pickle::read(&mut &[head, sizes, b"tR."].concat()[..], &mut Budget::of(100))?;
        let storages = HashMap::from([("a".to_owned(), Cow::Owned(vec![0; 16]))]);
        numbers(&pickle, pickle.root, &storages).map(|(shape, _)| shape)
    }

    #[test]
    fn shapes_that_do_not_fit_are_errors() {
        // `(2, 2)` with the strides `(2, 1)`.
        assert_eq!(tensor(b"K\x02K\x02\x86K\x02K\x01\x86"), Ok(vec![2, 2]));
        assert_eq!(tensor(b"K\x01K\x04\x86K\x07K\x01\x86"), Ok(vec![1, 4]));
        for (sizes, part) in [
            (&b"K\x02K\x02\x86K\x01\x85"[..], "must have a stride for each of its 2 dimensions, got 1"),
            (b"K\x02K\x02\x86)", "got 0"),
            (b"K\x04\x85K\x04K\x01\x86", "for each of its 1 dimensions, got 2"),
            (b"K\0K\x02\x86K\x02K\x01\x86", "each of at least 1"),
            (b"K\x05\x85K\x01\x85", "needs 20 bytes of its storage, got 16"),
            (b"K\x01K\x04\x86K\x07K\x03\x86", "must be stored row by row"),
            (b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85K\x01\x85", "is too large"),
        ] {
            let error = tensor(sizes).expect_err("it does not fit");
            assert!(error.contains(part), "`{error}` does not say `{part}`");
        }
    }

    /// Many tensors of one storage would each take its memory.
    #[test]
    fn tensors_that_share_numbers_have_a_limit() {
        let one = b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0aX\x03\0\0\0cpuK\x04tQK\0J\0\0\x04\0\x85K\x01\x85tR";
        let mut content = b"\x80\x02}(".to_vec();
        for i in 0..200u8 {
            content.extend([format!("X\x03\0\0\0{i:03}").as_bytes(), one].concat());
        }
        content.extend(b"u.");
        let keys = b"\x80\x02](X\x01\0\0\0ae.";
        let n = 1u64 << 18;
        let file = [&b"\x80\x02K\0.\x80\x02K\0.\x80\x02K\0."[..], &content, keys, &n.to_le_bytes(), &vec![0; 4 << 18]];
        let error = StateDict::read(&file.concat()).expect_err("they are 200 times the storage").to_string();
        assert!(error.contains("its content takes more than"), "{error}");
    }
}
