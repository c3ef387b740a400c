//! Exported policies as JavaScript, for browsers and Node.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::file::{Arrays, Document};
use crate::{ExportError, ExportedPolicy};

/// The function `brasaPolicy`.
const ACT: &str = include_str!("act.js");

/// How a program in JavaScript is loaded.
///
/// ```
/// use brasa_export::{ExportedPolicy, JsModule, Layer, Output};
///
/// # let policy = |obs_width, layers, output| ExportedPolicy {
/// #     obs_width, n_agents: 1, masked: false, layers, output, about: brasa_export::About::default(),
/// # };
/// let policy: ExportedPolicy = policy(1, vec![Layer::linear(vec![2.0], vec![0.5])], Output::Real);
/// assert!(policy.to_js("room", JsModule::Es)?.starts_with("export const room = "));
/// assert!(policy.to_js("room", JsModule::Script)?.starts_with("const room = "));
/// # Ok::<(), brasa_export::ExportError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsModule {
    /// A script for pages, which is a CommonJS module too.
    Script,
    /// An ES module.
    Es,
}

impl ExportedPolicy {
    /// JavaScript that needs no other: the constant `NAME` with the functions `act(obs, mask, state)`, `scores(obs, state)` and `start()`, and
    /// `about` with [`About`](crate::About). A script defines it, and exports it where there is CommonJS; an ES module exports it by name and as
    /// default.
    ///
    /// `obs` has the numbers of all agents of an environment one after the other, `mask` likewise 0 or 1; environments
    /// without a mask have none. `state` is for policies that remember: `start()` where an episode begins; `act` replaces its numbers. `act`
    /// returns the actions, choices as indices; `scores` a `Float32Array` per agent, the result of the last layer. Arrays of another length or
    /// with something else than numbers throw; NaN gives NaN and -1, as in [`ExportedPolicy::act`].
    ///
    /// # Errors
    /// [`ExportError::Name`] if `name` is no identifier; [`ExportError::Layer`] if the layers do not fit together.
    pub fn to_js(&self, name: &str, module: JsModule) -> Result<String, ExportError> {
        crate::names::check(name)?;
        self.validate()?;
        let mut arrays = Arrays::new();
        let mut document =
            serde_json::to_value(Document::of(self, &mut arrays)).expect("plain values always serialize");
        let text =
            |values: &[f32]| BASE64_STANDARD.encode(values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
        let arrays = arrays.iter().map(|(name, values)| (name.clone(), Value::String(text(values))));
        document["arrays"] = json!(arrays.collect::<serde_json::Map<_, _>>());
        document["about"] = self.about.json();
        document["state_width"] = json!(self.state_width());
        // A page would end the script at `</script>`.
        let document = document.to_string().replace('<', "\\u003c");
        let (before, after) = match module {
            JsModule::Script => {
                ("", format!("if (typeof module === \"object\" && module.exports) module.exports = {name};\n"))
            }
            JsModule::Es => ("export ", format!("export default {name};\n")),
        };
        Ok(format!("{before}const {name} = (() => {{\n{ACT}\nreturn brasaPolicy({document});\n}})();\n{after}"))
    }

    /// The types of [`ExportedPolicy::to_js`] for TypeScript.
    ///
    /// # Errors
    /// [`ExportError::Name`] if `name` is no identifier.
    pub fn to_js_types(&self, name: &str, module: JsModule) -> Result<String, ExportError> {
        crate::names::check(name)?;
        Ok(match module {
            JsModule::Script => format!(
                "declare namespace {name} {{\n{TYPES}}}\ndeclare const {name}: {name}.Policy;\nexport = {name};\nexport as namespace {name};\n"
            ),
            JsModule::Es => format!("{TYPES}export declare const {name}: Policy;\nexport default {name};\n"),
        })
    }
}

/// The interfaces of a policy.
const TYPES: &str = include_str!("types.d.ts");
