//! Places in a schema: values by their keys, with errors that name where they are, and keys that are unknown.

use std::{cell::RefCell, path::Path, sync::LazyLock};

use brasa_env::{field, suggest::nearest};
use brasa_power::EnergyError;
use serde_json::{Map, Value};

/// The attributes of a device that has none.
static NO_ATTRIBUTES: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

pub(super) fn present<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|value| !value.is_null())
}

/// Whether a value has no effect: null, false, 0, an empty list, text or object, or an object that is not `enabled`.
pub(super) fn is_off(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty() || object.get("enabled") == Some(&Value::Bool(false)),
    }
}

/// A place in the schema, for messages.
pub(super) struct Place<'a> {
    path: &'a Path,
    name: String,
    /// Keys that are unknown and like no other.
    unknown: &'a RefCell<Vec<String>>,
}

impl<'a> Place<'a> {
    /// The whole schema `path`; keys that are unknown go to `unknown`.
    pub(super) fn root(path: &'a Path, unknown: &'a RefCell<Vec<String>>) -> Self {
        Self { path, name: String::new(), unknown }
    }

    pub(super) fn at(&self, key: &str) -> Place<'a> {
        let name = if self.name.is_empty() { key.into() } else { format!("{}.{key}", self.name) };
        Place { path: self.path, name, unknown: self.unknown }
    }

    pub(super) fn fail(&self, reason: &str) -> EnergyError {
        let reason = if self.name.is_empty() { reason.into() } else { format!("`{}` {reason}", self.name) };
        EnergyError::Schema { path: self.path.into(), reason: field::printable(&reason) }
    }

    pub(super) fn unsupported(&self, feature: &str) -> EnergyError {
        self.fail(&format!("asks for {feature}, which is not modeled"))
    }

    fn misspelt(&self, key: &str, meant: &str) -> EnergyError {
        self.fail(&format!("has the unknown key `{key}`; did you mean `{meant}`?"))
    }

    /// Checks the keys of `object`: `known` ones are read or have no effect, `unmodelled` ones have one in CityLearn and must be off.
    ///
    /// # Errors
    /// An unmodelled key that is on, and an unknown one that is probably meant to be another. Other unknown ones are notes, which are listed.
    pub(super) fn keys(
        &self,
        object: &Map<String, Value>,
        known: &[&str],
        unmodelled: &[&str],
    ) -> Result<(), EnergyError> {
        for (key, value) in object {
            let key = key.as_str();
            if known.contains(&key) {
                continue;
            }
            if unmodelled.contains(&key) {
                match is_off(value) {
                    true => continue,
                    false => return Err(self.unsupported(&format!("`{key}`"))),
                }
            }
            if let Some(meant) = nearest(key, known.iter().chain(unmodelled).copied()) {
                return Err(self.misspelt(key, meant));
            }
            self.unknown.borrow_mut().push(self.at(key).name);
        }
        Ok(())
    }

    pub(super) fn object<'v>(&self, value: &'v Value) -> Result<&'v Map<String, Value>, EnergyError> {
        value.as_object().ok_or_else(|| self.fail(&format!("must be an object, got {value}")))
    }

    pub(super) fn child<'v>(
        &self,
        object: &'v Map<String, Value>,
        key: &str,
    ) -> Result<&'v Map<String, Value>, EnergyError> {
        let value = present(object, key).ok_or_else(|| self.fail(&format!("needs `{key}`")))?;
        self.at(key).object(value)
    }

    /// The attributes of a device that is not sized automatically.
    pub(super) fn attributes<'v>(&self, device: &'v Value) -> Result<&'v Map<String, Value>, EnergyError> {
        let device = self.object(device)?;
        if self.flag(device, "autosize", false)? {
            return Err(self.unsupported("automatic sizing (`autosize`)"));
        }
        self.child(device, "attributes")
    }

    /// The attributes of a device that may be sized automatically, and then may have none.
    pub(super) fn sized_attributes<'v>(&self, device: &'v Value) -> Result<&'v Map<String, Value>, EnergyError> {
        let device = self.object(device)?;
        match self.flag(device, "autosize", false)? && present(device, "attributes").is_none() {
            true => Ok(&NO_ATTRIBUTES),
            false => self.child(device, "attributes"),
        }
    }

    /// The attributes of the automatic sizing of a device, of which `known` are read; `None` if it is not sized. CityLearn has no others.
    pub(super) fn sizing<'v>(
        &self,
        device: &'v Value,
        known: &[&str],
    ) -> Result<Option<&'v Map<String, Value>>, EnergyError> {
        let device = self.object(device)?;
        if !self.flag(device, "autosize", false)? {
            return Ok(None);
        }
        let Some(value) = present(device, "autosize_attributes") else { return Ok(Some(&NO_ATTRIBUTES)) };
        let place = self.at("autosize_attributes");
        let attributes = place.object(value)?;
        match attributes.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(Some(attributes)),
            Some(key) => match nearest(key, known.iter().copied()) {
                Some(meant) => Err(place.misspelt(key, meant)),
                None => Err(place.unsupported(&format!("`{key}`"))),
            },
        }
    }

    /// The class of a device.
    pub(super) fn device_type(&self, device: &Value) -> Result<String, EnergyError> {
        let kind = present(self.object(device)?, "type").ok_or_else(|| self.fail("needs `type`"))?;
        self.at("type").text(kind)
    }

    /// A number that may be missing.
    pub(super) fn optional(
        &self,
        object: &Map<String, Value>,
        key: &str,
        low: f64,
        high: f64,
    ) -> Result<Option<f64>, EnergyError> {
        match present(object, key) {
            None => Ok(None),
            Some(value) => self.in_range(key, self.at(key).number(value)?, low, high).map(Some),
        }
    }

    pub(super) fn text(&self, value: &Value) -> Result<String, EnergyError> {
        let text = value.as_str().ok_or_else(|| self.fail(&format!("must be a text, got {value}")))?;
        if text.contains(char::is_control) {
            return Err(self.fail(&format!("must hold no control characters, got {value}")));
        }
        Ok(text.to_owned())
    }

    pub(super) fn number(&self, value: &Value) -> Result<f64, EnergyError> {
        value.as_f64().ok_or_else(|| self.fail(&format!("must be a number, got {value}")))
    }

    /// Refuses names that a terminal or a page would obey instead of showing them.
    pub(super) fn plain(&self, name: &str) -> Result<(), EnergyError> {
        match name.contains(char::is_control) {
            true => Err(self.fail("must be a name without control characters")),
            false => Ok(()),
        }
    }

    /// Whether something is switched on; whatever is neither true nor false is refused, as it would be read as one of them.
    pub(super) fn flag(&self, object: &Map<String, Value>, key: &str, default: bool) -> Result<bool, EnergyError> {
        match object.get(key) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            // As Python, and so CityLearn, reads it.
            Some(Value::Null) => Ok(false),
            Some(other) => Err(self.at(key).fail(&format!("must be true or false, got {other}"))),
        }
    }

    pub(super) fn number_or(&self, object: &Map<String, Value>, key: &str, default: f64) -> Result<f64, EnergyError> {
        present(object, key).map_or(Ok(default), |value| self.at(key).number(value))
    }

    pub(super) fn in_range(&self, key: &str, value: f64, low: f64, high: f64) -> Result<f64, EnergyError> {
        if value >= low && value <= high {
            return Ok(value);
        }
        let rule = match (low, high) {
            (f64::MIN_POSITIVE, high) => format!("must be in (0, {high}]"),
            (low, high) => format!("must be in [{low}, {high}]"),
        };
        Err(self.at(key).fail(&format!("{rule}, got {value}")))
    }

    pub(super) fn names(&self, object: &Map<String, Value>, key: &str) -> Result<Vec<String>, EnergyError> {
        let Some(value) = present(object, key) else { return Ok(Vec::new()) };
        let place = self.at(key);
        let list = value.as_array().ok_or_else(|| place.fail(&format!("must be a list, got {value}")))?;
        list.iter().map(|name| place.text(name)).collect()
    }

    pub(super) fn points(
        &self,
        object: &Map<String, Value>,
        key: &str,
    ) -> Result<Option<Vec<(f64, f64)>>, EnergyError> {
        let Some(value) = present(object, key) else { return Ok(None) };
        let points = serde_json::from_value(value.clone());
        points.map(Some).map_err(|error| self.at(key).fail(&format!("must be a list of pairs: {error}")))
    }
}
