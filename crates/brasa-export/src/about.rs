//! What an exported file says about itself.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The version of Brasa that writes a file.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Origin and columns of a policy. It changes no action.
///
/// ```
/// use brasa_export::{About, ExportedPolicy, Layer, Output};
///
/// let about = About { run: Some("runs/room".into()), step: Some(200_000), ..Default::default() };
/// let policy = ExportedPolicy {
///     obs_width: 1,
///     n_agents: 1,
///     masked: false,
///     layers: vec![Layer::linear(vec![2.0], vec![0.5])],
///     output: Output::Real,
///     about,
/// };
/// let read = ExportedPolicy::from_safetensors(&policy.to_safetensors())?;
/// assert_eq!(read.about.step, Some(200_000));
/// # Ok::<(), brasa_export::ExportError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// The run that trained it.
    pub run: Option<String>,
    /// Steps of the environment that it was trained for.
    pub step: Option<u64>,
    /// Checksum of the configuration of the run.
    pub config: Option<String>,
    /// The numbers of an observation, in their order; empty if nothing is known of them.
    pub obs: Vec<Column>,
    /// The actions of an agent, in their order; empty if nothing is known of them.
    pub actions: Vec<Column>,
}

/// A number of an observation, or an action.
///
/// ```
/// use brasa_export::{About, Column};
///
/// let speed = Column { name: "speed".into(), unit: Some("m/s".into()), low: Some(0.0), high: None };
/// let about = About { obs: vec![speed], ..Default::default() };
/// assert_eq!(about.obs[0].unit.as_deref(), Some("m/s"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its unit, if there is one.
    pub unit: Option<String>,
    /// Its smallest value, if there is one.
    pub low: Option<f32>,
    /// Its largest value, if there is one; of a choice the last index.
    pub high: Option<f32>,
}

impl About {
    /// As JSON, with the version of Brasa.
    pub(crate) fn json(&self) -> Value {
        let Self { run, step, config, obs, actions } = self;
        json!({ "version": VERSION, "run": run, "step": step, "config": config, "obs": obs, "actions": actions })
    }

    /// Texts by key: those that are known.
    pub(crate) fn entries(&self) -> Vec<(&'static str, String)> {
        let list = |columns: &[Column]| (!columns.is_empty()).then(|| json!(columns).to_string());
        let all = [
            ("version", Some(VERSION.to_owned())),
            ("run", self.run.clone()),
            ("step", self.step.map(|step| step.to_string())),
            ("config", self.config.clone()),
            ("obs", list(&self.obs)),
            ("actions", list(&self.actions)),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }
}

/// The columns as lines of a comment in C.
pub(crate) fn comment(about: &About) -> String {
    let mut text = format!("   Brasa {VERSION}");
    for (key, value) in about.entries().iter().filter(|(key, _)| ["run", "step", "config"].contains(key)) {
        text.push_str(&format!(", {key} {}", harmless(value)));
    }
    for (what, columns) in [("obs", &about.obs), ("action", &about.actions)] {
        for (i, Column { name, unit, low, high }) in columns.iter().enumerate() {
            let bound = |bound: &Option<f32>, infinite: &str| bound.map_or(infinite.into(), |bound| bound.to_string());
            let unit = unit.as_ref().map_or(String::new(), |unit| format!(" in {}", harmless(unit)));
            let range = format!("{} to {}", bound(low, "-inf"), bound(high, "inf"));
            text.push_str(&format!("\n   {what} {i}: {}{unit}, {range}", harmless(name)));
        }
    }
    text
}

/// A text that cannot end a comment or a text.
fn harmless(text: &str) -> String {
    let is_safe = |c: char| c.is_alphanumeric() || " _-.,:()%/[]+=".contains(c);
    text.chars().map(|c| if is_safe(c) { c } else { '_' }).collect()
}

/// A text of C.
pub(crate) fn text_of(text: &str) -> String {
    format!("\"{}\"", harmless(text))
}
