//! Exported policies as JavaScript, for browsers and Node.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::file::{Arrays, Document};
use crate::{ExchangeError, ExportedPolicy};

/// The function `brasaPolicy`.
const ACT: &str = include_str!("act.js");

impl ExportedPolicy {
    /// A script that needs no other: it defines the constant `NAME` with the functions `act(obs, mask)` and `scores(obs)`.
    ///
    /// `obs` has the numbers of all agents of an environment one after the other, `mask` likewise 0 for illegal actions; without one, all are
    /// legal. `act` returns the actions, choices as indices; `scores` a `Float32Array` per agent, the result of the last layer.
    ///
    /// # Errors
    /// [`ExchangeError::Name`] if `name` is no identifier; [`ExchangeError::Layer`] if the layers do not fit together.
    pub fn to_js(&self, name: &str) -> Result<String, ExchangeError> {
        crate::c::check_name(name)?;
        self.validate()?;
        let mut arrays = Arrays::new();
        let mut document =
            serde_json::to_value(Document::of(self, &mut arrays)).expect("plain values always serialize");
        let text =
            |values: &[f32]| BASE64_STANDARD.encode(values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
        let arrays = arrays.iter().map(|(name, values)| (name.clone(), Value::String(text(values))));
        document["arrays"] = json!(arrays.collect::<serde_json::Map<_, _>>());
        Ok(format!("{ACT}\nconst {name} = brasaPolicy({document});\n"))
    }
}
