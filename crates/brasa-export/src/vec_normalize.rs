//! The statistics of Stable-Baselines3's `VecNormalize`, which it saves as a pickle beside the model.

use crate::pickle::{Id, Pickle, Value};
use crate::{Budget, ExportError, ExportedPolicy, Layer};

impl ExportedPolicy {
    /// The policy with the normalization of observations that `VecNormalize.save` wrote: `clip((x - mean) / sqrt(var + epsilon))` before all
    /// other layers. A file with `norm_obs = False` changes nothing. Nothing in the file is executed.
    ///
    /// # Errors
    /// [`ExportError::StableBaselines3`] naming what cannot be read, or the number of means that does not fit.
    pub fn with_vec_normalize(mut self, bytes: &[u8]) -> Result<Self, ExportError> {
        let normalize =
            read(bytes).map_err(|reason| ExportError::StableBaselines3(format!("`VecNormalize`: {reason}")))?;
        if let Some(layer) = normalize {
            self.layers.insert(0, layer);
            self.validate()?;
        }
        Ok(self)
    }
}

fn read(bytes: &[u8]) -> Result<Option<Layer>, String> {
    let pickle = Pickle::read(&mut &bytes[..], &mut Budget::of(bytes.len() as u64))?;
    let Value::Object { class, state: Some(state), .. } = pickle.get(pickle.root) else {
        return Err("it must be an object with a state".into());
    };
    if !class.ends_with(".VecNormalize") {
        return Err(format!("its class must be VecNormalize, got {class}"));
    }
    let entry = |dict: Id, name: &str| pickle.entry(dict, name).ok_or_else(|| format!("it has no `{name}`"));
    // Versions before 1.0 always normalize both.
    if pickle.entry(*state, "norm_obs").is_some_and(|flag| *pickle.get(flag) == Value::Bool(false)) {
        return Ok(None);
    }
    let statistics = match pickle.get(entry(*state, "obs_rms")?) {
        Value::Object { state: Some(state), .. } => *state,
        Value::Dict(_) => return Err("its observations must be a `Box`, got a dictionary".into()),
        _ => return Err("its `obs_rms` has no state".into()),
    };
    let number = |name: &str| match pickle.get(entry(*state, name)?) {
        Value::Real(value) => Ok(*value),
        Value::Int(value) => Ok(*value as f64),
        other => Err(format!("`{name}` must be a number, got {}", other.kind())),
    };
    let (epsilon, clip) = (number("epsilon")?, number("clip_obs")?);
    let column = |name: &str| {
        let values = array(&pickle, entry(statistics, name)?);
        values.map_err(|reason| format!("`{name}` of its `obs_rms` {reason}"))
    };
    let deviation = column("var")?.into_iter().map(|variance| (variance + epsilon).sqrt()).collect();
    Ok(Some(Layer::Normalize { mean: column("mean")?, deviation, clip: (clip as f32).min(f32::MAX) }))
}

/// The numbers of a NumPy array: a call of `_reconstruct`, whose state is `(version, shape, dtype, is_fortran, bytes)`.
fn array(pickle: &Pickle, id: Id) -> Result<Vec<f64>, String> {
    let Value::Object { class, state: Some(state), .. } = pickle.get(id) else {
        return Err("must be an array of NumPy".into());
    };
    let Value::List(parts) = pickle.get(*state) else { return Err(format!("must be an array of NumPy, got {class}")) };
    let &[_, shape, dtype, _, bytes] = parts.as_slice() else {
        return Err(format!("must be an array of NumPy, got {class}"));
    };
    // Several dimensions in Fortran's order would be another sequence of numbers.
    match pickle.get(shape) {
        Value::List(shape) if shape.len() == 1 => {}
        Value::List(shape) => return Err(format!("must have one dimension, got {}", shape.len())),
        other => return Err(format!("must have a shape, got {}", other.kind())),
    }
    let (Value::Object { arguments, state: Some(order), .. }, Value::Bytes(bytes)) =
        (pickle.get(dtype), pickle.get(bytes))
    else {
        return Err("must have numbers".into());
    };
    let text = |list: Id, index: usize| match pickle.get(list) {
        Value::List(items) => match items.get(index).map(|item| pickle.get(*item)) {
            Some(Value::Text(text)) => text.as_str(),
            _ => "",
        },
        _ => "",
    };
    match (text(*order, 1), text(*arguments, 0)) {
        ("<", "f8") => Ok(bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()),
        ("<", "f4") => Ok(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes).into()).collect()),
        (order, kind) => Err(format!("must have floats with the lowest byte first, got `{order}{kind}`")),
    }
}
