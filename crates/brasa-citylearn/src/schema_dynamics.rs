//! The part of a schema on indoor temperatures.

use brasa_power::EnergyError;

use super::{
    dynamics::{MOST_INPUTS, Scale},
    lstm::MOST_HIDDEN,
    schema::current_name,
    section::Section,
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

impl DynamicsSchema {
    /// Reads `dynamics`, which since CityLearn 2.2 is a model and before is a model for cooling and one for heating.
    pub(super) fn parse(dynamics: &Section) -> Result<Self, EnergyError> {
        if dynamics.raw("type").is_some() {
            return Self::parse_model(dynamics);
        }
        let (cooling, heating) = (dynamics.section("cooling")?, dynamics.section("heating")?);
        dynamics.close(&[], &[])?;
        let cooling = Self::parse_model(&cooling.ok_or_else(|| dynamics.needs("cooling", ""))?)?;
        if let Some(heating) = heating
            && Self::parse_model(&heating)?.file != cooling.file
        {
            return Err(dynamics.unsupported("another model for heating than for cooling"));
        }
        Ok(cooling)
    }

    fn parse_model(model: &Section) -> Result<Self, EnergyError> {
        let kind = model.text("type")?.unwrap_or_default();
        if !kind.ends_with(".LSTMDynamics") {
            return Err(model.unsupported(&format!("the dynamics `{kind}`")));
        }
        let attributes = model.section("attributes")?;
        model.close(&[], &[])?;
        let attributes = attributes.ok_or_else(|| model.needs("attributes", ""))?;
        let names = attributes.names("input_observation_names")?;
        let bounds = ["input_normalization_minimum", "input_normalization_maximum"];
        let scales = bounds.map(|key| attributes.numbers(key));
        let file = attributes.text("filename")?;
        let sizes = [("hidden_size", MOST_HIDDEN as u32), ("num_layers", 16), ("lookback", 10_000)];
        let read = sizes.map(|(key, most)| attributes.whole(key, 1, most));
        // The weights have the size, and dropout is for training.
        attributes.close(&["input_size", "dropout"], &[])?;

        let needed = |size: Result<Option<u64>, _>, key: &str| {
            size?.map(|size| size as usize).ok_or_else(|| attributes.needs(key, ""))
        };
        let [hidden, layers, lookback] = read;
        let numbers = |values: Result<Option<Vec<f64>>, _>, key: &str| {
            let values = values?.ok_or_else(|| attributes.needs(key, ""))?;
            let rule = format!("must have as many numbers as `input_observation_names`, {}", names.len());
            if values.len() == names.len() { Ok(values) } else { Err(attributes.fail_at(key, &rule)) }
        };
        let [low, high] = scales;
        let (low, high) = (numbers(low, bounds[0])?, numbers(high, bounds[1])?);
        if names.is_empty() || names.len() > MOST_INPUTS {
            let rule = format!("must have 1 to {MOST_INPUTS} names, got {}", names.len());
            return Err(attributes.fail_at("input_observation_names", &rule));
        }
        let mut inputs = Vec::new();
        for (name, (low, high)) in names.iter().zip(low.into_iter().zip(high)) {
            if high <= low {
                return Err(
                    attributes.fail(&format!("needs a maximum of `{name}` above its minimum {low}, got {high}"))
                );
            }
            inputs.push((current_name(name), Scale { low, high }));
        }
        Ok(Self {
            file: file.ok_or_else(|| attributes.needs("filename", ""))?,
            hidden: needed(hidden, sizes[0].0)?,
            layers: needed(layers, sizes[1].0)?,
            lookback: needed(lookback, sizes[2].0)?,
            inputs,
        })
    }
}
