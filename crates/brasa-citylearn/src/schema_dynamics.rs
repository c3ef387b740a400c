//! The part of a schema on indoor temperatures.

use brasa_power::EnergyError;
use serde_json::{Map, Value};

use super::{
    dynamics::{MOST_INPUTS, Scale},
    lstm::MOST_HIDDEN,
    place::{Place, present},
    schema::current_name,
};

/// The network of a building.
pub(super) struct DynamicsSchema {
    /// File of the weights, as the schema names it.
    pub(super) file: String,
    pub(super) hidden: usize,
    pub(super) layers: usize,
    pub(super) lookback: usize,
    /// Names and scales of the inputs.
    pub(super) inputs: Vec<(String, Scale)>,
}

/// Attributes of a network.
const ATTRIBUTES: [&str; 9] = [
    "filename",
    "hidden_size",
    "num_layers",
    "lookback",
    "input_observation_names",
    "input_normalization_minimum",
    "input_normalization_maximum",
    // The weights have the size, and dropout is for training.
    "input_size",
    "dropout",
];

impl DynamicsSchema {
    /// Reads `dynamics`, which since CityLearn 2.2 is a model and before is a model for cooling and one for heating.
    pub(super) fn parse(place: &Place, value: &Value) -> Result<Self, EnergyError> {
        let object = place.object(value)?;
        if object.contains_key("type") {
            return Self::parse_model(place, object);
        }
        place.keys(object, &["cooling", "heating"], &[])?;
        let cooling = Self::parse_model(&place.at("cooling"), place.child(object, "cooling")?)?;
        if let Some(heating) = present(object, "heating") {
            let place = place.at("heating");
            let heating = Self::parse_model(&place, place.object(heating)?)?;
            if heating.file != cooling.file {
                return Err(place.unsupported("another model for heating than for cooling"));
            }
        }
        Ok(cooling)
    }

    fn parse_model(place: &Place, model: &Map<String, Value>) -> Result<Self, EnergyError> {
        let kind = present(model, "type").map(|kind| place.at("type").text(kind)).transpose()?.unwrap_or_default();
        if !kind.ends_with(".LSTMDynamics") {
            return Err(place.unsupported(&format!("the dynamics `{kind}`")));
        }
        let attributes = place.child(model, "attributes")?;
        place.keys(model, &["type", "attributes"], &[])?;
        let place = place.at("attributes");
        place.keys(attributes, &ATTRIBUTES, &[])?;
        let needed = |key: &str| present(attributes, key).ok_or_else(|| place.fail(&format!("needs `{key}`")));
        let whole = |key: &str, most: usize| -> Result<usize, EnergyError> {
            let value = place.in_range(key, place.at(key).number(needed(key)?)?, 1.0, most as f64)?;
            let rule = format!("must be a whole number, got {value}");
            if value.fract() == 0.0 { Ok(value as usize) } else { Err(place.at(key).fail(&rule)) }
        };
        let names = place.names(attributes, "input_observation_names")?;
        let numbers = |key: &str| -> Result<Vec<f64>, EnergyError> {
            let list = needed(key)?.as_array().ok_or_else(|| place.at(key).fail("must be a list"))?;
            let values: Vec<f64> = list.iter().map(|x| place.at(key).number(x)).collect::<Result<_, _>>()?;
            let rule = format!("must have as many numbers as `input_observation_names`, {}", names.len());
            if values.len() == names.len() { Ok(values) } else { Err(place.at(key).fail(&rule)) }
        };
        let (low, high) = (numbers("input_normalization_minimum")?, numbers("input_normalization_maximum")?);
        if names.is_empty() || names.len() > MOST_INPUTS {
            let rule = format!("must have 1 to {MOST_INPUTS} names, got {}", names.len());
            return Err(place.at("input_observation_names").fail(&rule));
        }
        let mut inputs = Vec::new();
        for (name, (low, high)) in names.iter().zip(low.into_iter().zip(high)) {
            if high <= low {
                return Err(place.fail(&format!("needs a maximum of `{name}` above its minimum {low}, got {high}")));
            }
            inputs.push((current_name(name), Scale { low, high }));
        }
        Ok(Self {
            file: place.at("filename").text(needed("filename")?)?,
            hidden: whole("hidden_size", MOST_HIDDEN)?,
            layers: whole("num_layers", 16)?,
            lookback: whole("lookback", 10_000)?,
            inputs,
        })
    }
}
