//! Objects of a schema: values by their keys, with errors that name where they are, and keys that nothing has read.

use std::{cell::RefCell, collections::BTreeSet, path::Path, sync::LazyLock};

use brasa_env::{field, suggest::nearest};
use brasa_power::EnergyError;
use serde_json::{Map, Value};

/// The object of a section that a schema may leave out.
static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// Whether a value has no effect: null, false, 0, an empty list, text or object, or an object that is not `enabled`.
fn is_off(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty() || object.get("enabled") == Some(&Value::Bool(false)),
    }
}

/// An object of the schema. A key that is read is a known key; whoever has read all of them calls `close`, and asks for the values that must
/// be there after it, so that a key with an error of typing is named rather than the one that it was meant to be.
pub(super) struct Section<'a> {
    path: &'a Path,
    name: String,
    object: &'a Map<String, Value>,
    read: RefCell<BTreeSet<String>>,
    /// Keys of all sections that are unknown and like no other.
    unknown: &'a RefCell<Vec<String>>,
}

impl<'a> Section<'a> {
    /// The whole schema `path`; keys that are unknown go to `unknown`.
    pub(super) fn root(
        path: &'a Path,
        value: &'a Value,
        unknown: &'a RefCell<Vec<String>>,
    ) -> Result<Self, EnergyError> {
        let empty = Self { path, name: String::new(), object: &EMPTY, read: RefCell::default(), unknown };
        empty.with("", value)
    }

    /// The same section with another name in messages.
    pub(super) fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// The object `value` at `key`.
    fn with(&self, key: &str, value: &'a Value) -> Result<Self, EnergyError> {
        let object = value.as_object().ok_or_else(|| self.fail_at(key, &format!("must be an object, got {value}")))?;
        Ok(self.holding(key, object))
    }

    fn holding(&self, key: &str, object: &'a Map<String, Value>) -> Self {
        Self { path: self.path, name: self.name_of(key), object, read: RefCell::default(), unknown: self.unknown }
    }

    fn name_of(&self, key: &str) -> String {
        let dot = if self.name.is_empty() || key.is_empty() { "" } else { "." };
        format!("{}{dot}{key}", self.name)
    }

    pub(super) fn fail(&self, reason: &str) -> EnergyError {
        self.fail_at("", reason)
    }

    pub(super) fn fail_at(&self, key: &str, reason: &str) -> EnergyError {
        let name = self.name_of(key);
        let reason = if name.is_empty() { reason.into() } else { format!("`{name}` {reason}") };
        EnergyError::Schema { path: self.path.into(), reason: field::printable(&reason) }
    }

    /// The error of a key that must be there; `unit` follows it.
    pub(super) fn needs(&self, key: &str, unit: &str) -> EnergyError {
        self.fail(&format!("needs `{key}`{unit}"))
    }

    pub(super) fn unsupported(&self, feature: &str) -> EnergyError {
        self.fail(&format!("asks for {feature}, which is not modeled"))
    }

    /// Ends reading: `ignored` keys have no effect here, `unmodelled` ones have one in CityLearn and must be off.
    ///
    /// # Errors
    /// An unmodelled key that is on, and an unknown one that is probably meant to be another. Other unknown ones are notes, which are listed.
    pub(super) fn close(&self, ignored: &[&str], unmodelled: &[&str]) -> Result<(), EnergyError> {
        self.unread(ignored, unmodelled, |key| {
            self.unknown.borrow_mut().push(self.name_of(key));
            Ok(())
        })
    }

    /// As `close`, for sections of which CityLearn takes no other keys.
    pub(super) fn close_strictly(&self, ignored: &[&str]) -> Result<(), EnergyError> {
        self.unread(ignored, &[], |key| Err(self.unsupported(&format!("`{key}`"))))
    }

    fn unread(
        &self,
        ignored: &[&str],
        unmodelled: &[&str],
        other: impl Fn(&str) -> Result<(), EnergyError>,
    ) -> Result<(), EnergyError> {
        let read = self.read.borrow();
        for (key, value) in self.object {
            let key = key.as_str();
            if read.contains(key) || ignored.contains(&key) {
                continue;
            }
            if unmodelled.contains(&key) {
                match is_off(value) {
                    true => continue,
                    false => return Err(self.unsupported(&format!("`{key}`"))),
                }
            }
            let known = read.iter().map(String::as_str).chain(ignored.iter().chain(unmodelled).copied());
            match nearest(key, known) {
                Some(meant) => {
                    return Err(self.fail(&format!("has the unknown key `{key}`; did you mean `{meant}`?")));
                }
                None => other(key)?,
            }
        }
        Ok(())
    }

    /// The value at `key`, if it is there, null too.
    pub(super) fn raw(&self, key: &str) -> Option<&'a Value> {
        self.read.borrow_mut().insert(key.to_owned());
        self.object.get(key)
    }

    /// The value at `key`; one that is null is missing.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.raw(key).filter(|value| !value.is_null())
    }

    /// Whether the value at `key` has no effect.
    pub(super) fn is_off(&self, key: &str) -> bool {
        self.raw(key).is_none_or(is_off)
    }

    pub(super) fn section(&self, key: &str) -> Result<Option<Section<'a>>, EnergyError> {
        self.get(key).map(|value| self.with(key, value)).transpose()
    }

    pub(super) fn needed_section(&self, key: &str) -> Result<Section<'a>, EnergyError> {
        self.section(key)?.ok_or_else(|| self.needs(key, ""))
    }

    /// The sections of a section whose keys are names. Names that a terminal or a page would obey instead of showing them are refused.
    pub(super) fn entries(&self) -> Result<Vec<(&'a str, Section<'a>)>, EnergyError> {
        let entry = |(name, value): (&'a String, &'a Value)| match name.contains(char::is_control) {
            true => Err(self.fail_at(name, "must be a name without control characters")),
            false => Ok((name.as_str(), self.with(name, value)?)),
        };
        self.object.iter().map(entry).collect()
    }

    /// The sections of a list, by their numbers; none if it is missing.
    pub(super) fn items(&self, key: &str) -> Result<Vec<Section<'a>>, EnergyError> {
        let list = self.list(key)?.into_iter().flatten().enumerate();
        list.map(|(index, value)| self.with(&format!("{key}.{index}"), value)).collect()
    }

    fn list(&self, key: &str) -> Result<Option<&'a Vec<Value>>, EnergyError> {
        let list = |value: &'a Value| {
            value.as_array().ok_or_else(|| self.fail_at(key, &format!("must be a list, got {value}")))
        };
        self.get(key).map(list).transpose()
    }

    /// The attributes of a device that is not sized automatically. The device is closed.
    pub(super) fn attributes(&self) -> Result<Section<'a>, EnergyError> {
        match self.flag("autosize", false)? {
            true => Err(self.unsupported("automatic sizing (`autosize`)")),
            false => Ok(self.sized_attributes()?.0),
        }
    }

    /// The attributes of a device, and those of its automatic sizing if it is sized; it may have none then. The device is closed.
    pub(super) fn sized_attributes(&self) -> Result<(Section<'a>, Option<Section<'a>>), EnergyError> {
        let (attributes, sizing) = (self.section("attributes")?, self.section("autosize_attributes")?);
        let is_sized = self.flag("autosize", false)?;
        self.close(&["type"], &[])?;
        let empty = |key: &str| self.holding(key, &EMPTY);
        if !is_sized {
            return Ok((attributes.ok_or_else(|| self.needs("attributes", ""))?, None));
        }
        Ok((
            attributes.unwrap_or_else(|| empty("attributes")),
            Some(sizing.unwrap_or_else(|| empty("autosize_attributes"))),
        ))
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<String>, EnergyError> {
        self.get(key).map(|value| self.text_of(key, value)).transpose()
    }

    fn text_of(&self, key: &str, value: &Value) -> Result<String, EnergyError> {
        let text = value.as_str().ok_or_else(|| self.fail_at(key, &format!("must be a text, got {value}")))?;
        if text.contains(char::is_control) {
            return Err(self.fail_at(key, &format!("must hold no control characters, got {value}")));
        }
        Ok(text.to_owned())
    }

    pub(super) fn names(&self, key: &str) -> Result<Vec<String>, EnergyError> {
        let list = self.list(key)?.into_iter().flatten();
        list.map(|name| self.text_of(key, name)).collect()
    }

    /// A number of any size.
    pub(super) fn any_number(&self, key: &str) -> Result<Option<f64>, EnergyError> {
        self.get(key).map(|value| self.number_of(key, value)).transpose()
    }

    fn number_of(&self, key: &str, value: &Value) -> Result<f64, EnergyError> {
        value.as_f64().ok_or_else(|| self.fail_at(key, &format!("must be a number, got {value}")))
    }

    pub(super) fn number(&self, key: &str, low: f64, high: f64) -> Result<Option<f64>, EnergyError> {
        self.any_number(key)?.map(|value| self.in_range(key, value, low, high)).transpose()
    }

    pub(super) fn numbers(&self, key: &str) -> Result<Option<Vec<f64>>, EnergyError> {
        let numbers = |list: &Vec<Value>| list.iter().map(|value| self.number_of(key, value)).collect();
        self.list(key)?.map(numbers).transpose()
    }

    fn in_range(&self, key: &str, value: f64, low: f64, high: f64) -> Result<f64, EnergyError> {
        if value >= low && value <= high {
            return Ok(value);
        }
        let rule = match (low, high) {
            (f64::MIN_POSITIVE, high) => format!("must be in (0, {high}]"),
            (low, high) => format!("must be in [{low}, {high}]"),
        };
        Err(self.fail_at(key, &format!("{rule}, got {value}")))
    }

    pub(super) fn whole(&self, key: &str, low: u32, high: u32) -> Result<Option<u64>, EnergyError> {
        let Some(value) = self.any_number(key)? else { return Ok(None) };
        let is_whole = value.fract() == 0.0 && (f64::from(low)..=f64::from(high)).contains(&value);
        let rule = || format!("must be a whole number from {low} to {high}, got {value}");
        if is_whole { Ok(Some(value as u64)) } else { Err(self.fail_at(key, &rule())) }
    }

    /// The seed of a random generator of NumPy.
    pub(super) fn seed(&self) -> Result<Option<u64>, EnergyError> {
        self.whole("random_seed", 0, u32::MAX)
    }

    /// Whether something is switched on; whatever is neither true nor false is refused, as it would be read as one of them.
    pub(super) fn flag(&self, key: &str, default: bool) -> Result<bool, EnergyError> {
        match self.raw(key) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            // As Python, and so CityLearn, reads it.
            Some(Value::Null) => Ok(false),
            Some(other) => Err(self.fail_at(key, &format!("must be true or false, got {other}"))),
        }
    }

    pub(super) fn points(&self, key: &str) -> Result<Option<Vec<(f64, f64)>>, EnergyError> {
        let points = self.get(key).map(|value| serde_json::from_value(value.clone())).transpose();
        points.map_err(|error| self.fail_at(key, &format!("must be a list of pairs: {error}")))
    }
}
