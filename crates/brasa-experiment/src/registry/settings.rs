//! The settings of sections, described by their types: a JSON Schema, and rows for people.

use std::path::Path;

use brasa_env::field;
use brasa_train::OffPolicyConfig;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::OFF_POLICY;
use crate::columns::unit;
use crate::experiment::{SCENARIO, TRAIN};
use crate::search::{SEARCH, SearchConfig};
use crate::{Registry, TrainConfig};

/// The settings of a scenario that has none.
///
/// ```
/// use brasa_classic::Classic;
/// use brasa_experiment::{NoSettings, Registry, ScenarioEntry};
///
/// let mut registry = Registry::default();
/// let make = |_: NoSettings| Ok::<_, std::convert::Infallible>(Classic::cart_pole());
/// registry.scenario(ScenarioEntry::new("pole", make));
/// // `[scenario.pole]` must be empty.
/// let error = toml::from_str::<NoSettings>("length = 1").unwrap_err();
/// assert!(error.to_string().contains("unknown field `length`"));
/// ```
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}

/// What is known of a section without reading an experiment.
#[derive(Debug, Clone)]
pub(crate) struct Described {
    /// Such as `network` or `scenario.room`.
    pub section: String,
    /// What it is, in a line.
    pub about: String,
    schema: fn(&mut SchemaGenerator) -> Schema,
    /// Endings of files that a setting names, and this setting with `PATH` in place of the file.
    pub files: Option<(&'static [&'static str], &'static str)>,
    rules: Option<fn()>,
}

/// A setting, for people.
#[derive(Debug, PartialEq)]
pub(crate) struct Setting {
    /// Keys below the section, with dots.
    pub key: String,
    pub kind: String,
    /// As in TOML; `None` if the setting is required.
    pub default: Option<String>,
    pub unit: Option<String>,
    /// What the value must be, such as `in [0, 1]`.
    pub rule: Option<String>,
    /// The first sentence of its documentation.
    pub about: String,
}

impl Registry {
    /// Describes the section `section`, such as `network` or `scenario.room`: what it is in a line, and its settings by their type. `schema` and
    /// `list` use it. A section without a description works, but editors and `list` know nothing about it.
    ///
    /// ```
    /// # use brasa_experiment::Registry;
    /// /// Settings of a room.
    /// #[derive(schemars::JsonSchema)]
    /// struct RoomConfig {
    ///     /// Width of the room.
    ///     width_m: f64,
    /// }
    ///
    /// let mut registry = Registry::default();
    /// registry.settings::<RoomConfig>("scenario.room", "A heated room with a thermostat");
    /// ```
    pub fn settings<C: JsonSchema>(&mut self, section: &str, about: &str) {
        self.described.retain(|known| known.section != section);
        self.described.push(Described::new::<C>(section, about));
    }

    /// Describes what the values of the section `section` must be: `validate` checks its default settings, and the rules that the check meets are
    /// shown with the settings.
    ///
    /// ```
    /// # use brasa_experiment::Registry;
    /// use brasa_env::field;
    ///
    /// # let mut registry = Registry::default();
    /// registry.rules("scenario.room", || drop(field::within("width_m", 4.0, 1.0, 100.0)));
    /// ```
    pub fn rules(&mut self, section: &str, validate: fn()) {
        let of_section = self.described.iter_mut().filter(|known| known.section == section);
        of_section.for_each(|known| known.rules = Some(validate));
    }

    /// Says that files with one of `endings` are named by a setting of the described section `section`, such as `plan = "PATH"`. A command that
    /// gets such a file in place of an experiment tells how to use it.
    pub fn reads_files(&mut self, section: &str, endings: &'static [&'static str], setting: &'static str) {
        let of_section = self.described.iter_mut().filter(|known| known.section == section);
        of_section.for_each(|known| known.files = Some((endings, setting)));
    }

    /// The section whose setting names files such as `path`, and this setting.
    pub(crate) fn reader_of(&self, path: &Path) -> Option<(&Described, &'static str)> {
        let end = path.extension()?.to_string_lossy().to_lowercase();
        self.described.iter().find_map(|known| {
            let (endings, setting) = known.files?;
            endings.contains(&end.as_str()).then_some((known, setting))
        })
    }

    /// The descriptions of all sections: those of every program, then those of this one.
    pub(crate) fn all_described(&self) -> Vec<Described> {
        let mut all = vec![
            Described::new::<TrainConfig>(TRAIN, "Training: steps, environments, seeds, device, checkpoints")
                .checked_by(|| drop(TrainConfig::default().validate())),
            Described::new::<OffPolicyConfig>(OFF_POLICY, "The loop and the replay buffer of off-policy algorithms")
                .checked_by(|| drop(OffPolicyConfig::default().validate())),
            Described::new::<SearchConfig>(SEARCH, "A search for better settings, for the command `search`")
                .checked_by(|| drop(SearchConfig::default().check())),
        ];
        all.extend(self.described.iter().cloned());
        all
    }

    /// The description of a section, by its name or that of a scenario.
    pub(crate) fn described(&self, name: &str) -> Option<Described> {
        let of_scenario = format!("{SCENARIO}.{name}");
        self.all_described().into_iter().find(|known| known.section == of_scenario || known.section == name)
    }

    /// The JSON Schema of experiments.
    pub(crate) fn schema(&self) -> Value {
        let (mut scenarios, mut sections) = (Map::new(), Map::new());
        let prefix = format!("{SCENARIO}.");
        for described in self.all_described() {
            let schema = described.schema();
            match described.section.strip_prefix(&prefix) {
                Some(name) => scenarios.insert(name.to_owned(), schema),
                None => sections.insert(described.section.clone(), schema),
            };
        }
        // What is registered without a description may hold anything.
        for entry in &self.scenarios {
            scenarios.entry(entry.name.clone()).or_insert_with(|| json!({ "type": "object" }));
        }
        let algorithms = self.algorithms.0.iter().map(|algorithm| algorithm.name());
        for name in algorithms.chain(self.networks.sections()) {
            sections.entry(name).or_insert_with(|| json!({ "type": "object" }));
        }
        let scenario = json!({
            "description": "The task: one table with the name of a scenario.", "type": "object", "properties": scenarios,
            "minProperties": 1, "maxProperties": 1, "additionalProperties": false,
        });
        sections.insert(SCENARIO.to_owned(), scenario);
        // Settings for a device change some values of a section. A scenario may require some, which are in its own section then.
        let refer = |name: &String| match name.as_str() {
            SCENARIO => (name.clone(), json!({ "type": "object" })),
            _ => (name.clone(), json!({ "$ref": format!("#/properties/{name}") })),
        };
        let partial: Map<String, Value> = sections.keys().map(refer).collect();
        let when = json!({
            "description": "Settings that apply on a device with this profile only.", "type": "object",
            "additionalProperties": { "type": "object", "properties": partial, "additionalProperties": false },
        });
        sections.insert("when".to_owned(), when);
        let mut sections = Value::Object(sections);
        allow_infinity(&mut sections);
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "An experiment",
            "type": "object",
            "properties": sections,
            "required": [SCENARIO],
            "additionalProperties": false,
        })
    }
}

impl Described {
    fn new<C: JsonSchema>(section: &str, about: &str) -> Self {
        let schema: fn(&mut SchemaGenerator) -> Schema = |generator| generator.subschema_for::<C>();
        Self { section: section.to_owned(), about: about.to_owned(), schema, files: None, rules: None }
    }

    fn checked_by(self, validate: fn()) -> Self {
        Self { rules: Some(validate), ..self }
    }

    /// The schema of the settings, with the line about them.
    pub fn schema(&self) -> Value {
        let mut settings = SchemaSettings::draft2020_12();
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        let mut generator = settings.into_generator();
        let schema = (self.schema)(&mut generator);
        let mut schema = schema.to_value();
        // Only types that contain themselves are defined by name.
        let definitions = generator.take_definitions(true);
        if let Some(object) = schema.as_object_mut() {
            object.insert("description".into(), json!(format!("{}.", self.about.trim_end_matches('.'))));
            if !definitions.is_empty() {
                object.insert("$defs".into(), Value::Object(definitions));
            }
        }
        move_definitions(&mut schema);
        without_examples(&mut schema);
        schema
    }

    /// Its settings in the order of their type; those of nested tables one by one.
    pub fn settings(&self) -> Vec<Setting> {
        let mut found = Vec::new();
        collect(&self.schema(), "", &mut found);
        for (field, rule) in field::rules_of(self.rules.unwrap_or(|| ())) {
            // A check of a nested table may know the field by its last part alone.
            let name = field.strip_prefix(&format!("{}.", self.section)).unwrap_or(&field);
            let ending = format!(".{name}");
            let at = found.iter().position(|setting| setting.key == name);
            let at = at.or_else(|| found.iter().position(|setting| setting.key.ends_with(&ending)));
            let Some(setting) = at.and_then(|at| found.get_mut(at)) else { continue };
            let rule = rule.strip_prefix("must be ").unwrap_or(&rule).to_owned();
            match &mut setting.rule {
                Some(known) if known.split("; ").any(|known| known == rule) => {}
                Some(known) => known.push_str(&format!("; {rule}")),
                none => *none = Some(rule),
            }
        }
        found
    }
}

/// References are relative to the root of a document, which a section is not: what they name may be anything.
fn move_definitions(schema: &mut Value) {
    if let Value::Object(object) = schema {
        object.remove("$defs");
        if object.remove("$ref").is_some() {
            object.remove("type");
        }
        object.values_mut().for_each(move_definitions);
    } else if let Value::Array(values) = schema {
        values.iter_mut().for_each(move_definitions);
    }
}

/// Examples of rustdoc are for programs, and editors show descriptions to people who write TOML.
fn without_examples(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::String(text)) = object.get_mut("description")
                && text.contains("```")
            {
                let prose: String = text.split("```").step_by(2).collect();
                let lines: Vec<&str> = prose.split("\n\n").map(str::trim_end).filter(|part| !part.is_empty()).collect();
                *text = lines.join("\n\n");
            }
            object.values_mut().for_each(without_examples);
        }
        Value::Array(values) => values.iter_mut().for_each(without_examples),
        _ => {}
    }
}

/// TOML's `inf` is no number of JSON: validators take it for null, which TOML does not have.
fn allow_infinity(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(kind) = object.get_mut("type").filter(|kind| **kind == "number") {
                *kind = json!(["number", "null"]);
            }
            object.values_mut().for_each(allow_infinity);
        }
        Value::Array(values) => values.iter_mut().for_each(allow_infinity),
        _ => {}
    }
}

fn collect(schema: &Value, prefix: &str, found: &mut Vec<Setting>) {
    let Some(properties) = schema["properties"].as_object() else { return };
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, property) in properties {
        let key = format!("{prefix}{name}");
        if property["properties"].is_object() {
            collect(property, &format!("{key}."), found);
            continue;
        }
        let default = match (property.get("default"), required.contains(&name.as_str())) {
            (_, true) => None,
            (Some(value), _) => Some(toml_text(value)),
            (None, _) => Some("none".to_owned()),
        };
        let about = first_sentence(property["description"].as_str().unwrap_or_default());
        found.push(Setting { unit: unit(name), kind: kind(property), default, rule: None, about, key });
    }
}

/// The type of a setting in words.
fn kind(schema: &Value) -> String {
    if let Some(constant) = schema.get("const") {
        return toml_text(constant);
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().filter(|value| !value.is_null()).map(toml_text).collect::<Vec<_>>().join(", ");
    }
    for several in ["oneOf", "anyOf"] {
        if let Some(parts) = schema[several].as_array() {
            let mut kinds: Vec<String> = parts.iter().filter(|part| part["type"] != "null").map(kind).collect();
            kinds.dedup();
            return kinds.join(" or ");
        }
    }
    let name = |kind: &str| match kind {
        "integer" => "whole number".to_owned(),
        "number" => "number".to_owned(),
        "boolean" => "`true` or `false`".to_owned(),
        "string" => "text".to_owned(),
        "array" => match &schema["items"] {
            items if items.is_object() => format!("list of {}", kind_of_items(items)),
            _ => "list".to_owned(),
        },
        "object" => table(schema),
        other => other.to_owned(),
    };
    match &schema["type"] {
        Value::String(kind) => name(kind),
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
            kinds.map(name).collect::<Vec<_>>().join(" or ")
        }
        _ => "any value".to_owned(),
    }
}

fn kind_of_items(items: &Value) -> String {
    match items["type"].as_str() {
        Some("integer") => "whole numbers".into(),
        Some("number") => "numbers".into(),
        Some("string") if items.get("enum").is_none() => "texts".into(),
        Some("array") => "lists".into(),
        _ => kind(items),
    }
}

/// A table with its keys, such as the variants of an enum with values.
fn table(schema: &Value) -> String {
    match schema["properties"].as_object() {
        Some(properties) if !properties.is_empty() => {
            format!("`{{ {} }}`", properties.keys().map(|key| format!("{key} = ...")).collect::<Vec<_>>().join(", "))
        }
        _ => "table".to_owned(),
    }
}

/// A value as in an experiment.
fn toml_text(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Array(values) => format!("`[{}]`", values.iter().map(plain).collect::<Vec<_>>().join(", ")),
        value => format!("`{}`", plain(value)),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Array(values) => format!("[{}]", values.iter().map(plain).collect::<Vec<_>>().join(", ")),
        Value::Object(object) => {
            let parts = object.iter().filter(|(_, value)| !value.is_null());
            format!(
                "{{ {} }}",
                parts.map(|(key, value)| format!("{key} = {}", plain(value))).collect::<Vec<_>>().join(", ")
            )
        }
        value => value.to_string(),
    }
}

/// The first sentence of a text, in one line.
pub(crate) fn first_sentence(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // A point ends a sentence before a capital letter.
    let end = line
        .match_indices(". ")
        .find(|(at, _)| line[at + 2..].starts_with(|next: char| next.is_uppercase() || next == '`'));
    end.map_or(line.clone(), |(at, _)| line[..=at].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings of a room.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    struct Room {
        /// Width of the room. Wider rooms take longer.
        width_m: f64,
        /// What stands in it.
        furniture: Vec<String>,
        /// Who lives in it.
        guest: Option<Guest>,
        heater: Heater,
    }

    #[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    enum Guest {
        /// A cat.
        ///
        /// ```text
        /// meow
        /// ```
        ///
        /// It sleeps.
        OldCat,
        /// A dog.
        Dog,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    struct Heater {
        /// Power, e.g. of a stove.
        power_kw: f64,
    }

    impl Default for Room {
        fn default() -> Self {
            Self { width_m: 4.0, furniture: vec!["bed".into()], guest: None, heater: Heater::default() }
        }
    }

    impl Default for Heater {
        fn default() -> Self {
            Self { power_kw: 1.5 }
        }
    }

    fn registry() -> Registry {
        let mut registry = Registry::default();
        registry.settings::<Room>("scenario.room", "A heated room");
        registry.reads_files("scenario.room", &["plan"], "plan = \"PATH\"");
        registry.rules("scenario.room", || {
            let width = field::within("width_m", 4.0, 1.0, 100.0).and_then(|()| field::positive("width_m", 4.0));
            let heater = field::positive("power_kw", 1.5);
            assert!(width.and(heater).is_ok());
        });
        registry
    }

    #[test]
    fn settings_show_the_rules_that_their_check_meets() {
        let found = registry().described("room").expect("it is described").settings();
        let rules: Vec<Option<&str>> = found.iter().map(|setting| setting.rule.as_deref()).collect();
        assert_eq!(rules, [Some("between 1 and 100; finite and above 0"), None, None, Some("finite and above 0")]);
    }

    #[test]
    fn settings_have_type_default_unit_and_the_first_sentence() {
        let registry = registry();
        let found = registry.described("room").expect("it is described").settings();
        let text = |setting: &Setting| {
            let Setting { key, kind, default, unit, about, .. } = setting;
            format!(
                "{key} | {kind} | {} | {} | {about}",
                default.clone().unwrap_or_default(),
                unit.clone().unwrap_or_default()
            )
        };
        let lines: Vec<String> = found.iter().map(text).collect();
        assert_eq!(
            lines,
            [
                "width_m | number | `4.0` | m | Width of the room.",
                "furniture | list of texts | `[\"bed\"]` |  | What stands in it.",
                "guest | `\"old-cat\"` or `\"dog\"` | none |  | Who lives in it.",
                "heater.power_kw | number | `1.5` | kW | Power, e.g. of a stove.",
            ]
        );
    }

    #[test]
    fn the_schema_refuses_unknown_keys_and_has_settings_for_devices() {
        let schema = registry().schema();
        let room = &schema["properties"]["scenario"]["properties"]["room"];
        assert_eq!(room["additionalProperties"], json!(false));
        assert_eq!(room["description"], json!("A heated room."));
        let text = room.to_string();
        assert!(text.contains("A cat.\\n\\nIt sleeps.") && !text.contains("meow"), "{text}");
        assert!(schema["properties"]["when"]["additionalProperties"]["properties"]["scenario"].is_object());
        assert!(registry().reader_of(Path::new("house.PLAN")).is_some_and(|(_, setting)| setting.starts_with("plan")));
        assert!(registry().reader_of(Path::new("house.toml")).is_none());
    }
}
