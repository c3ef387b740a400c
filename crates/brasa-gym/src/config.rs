//! Settings of Gymnasium environments.

use std::collections::BTreeMap;
use std::path::PathBuf;

use brasa_env::{InvalidField, field};
use serde::{Deserialize, Serialize};

/// Which environments, and how they are run.
///
/// ```
/// use brasa_gym::GymConfig;
///
/// let config: GymConfig = toml::from_str(r#"
///     id = "LunarLander-v3"
///     kwargs = { continuous = true, gravity = -9.0 }
/// "#)?;
/// assert_eq!(config.timeout_secs, 120.0);
/// config.validate()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GymConfig {
    /// Id of the environment as `gymnasium.make` takes it: `HalfCheetah-v5`, `ALE/Pong-v5`, `my_module:Room-v0`. Or a function of PettingZoo for
    /// several agents: `mpe2.simple_spread_v3:parallel_env`. Required.
    pub id: String,
    /// Keyword arguments of `gymnasium.make` or of the function. Default: none.
    pub kwargs: BTreeMap<String, PyValue>,
    /// What to import before, because it registers environments: modules, `ale_py`, which the current folder may hold too, or files,
    /// `examples/minatar.py`. Default: none.
    pub import: Vec<String>,
    /// Wrappers around each environment, the innermost first. Default: none.
    pub wrappers: Vec<GymWrapper>,
    /// Steps after which an episode is truncated. Default: that of the registration, which may be none.
    pub max_episode_steps: Option<u64>,
    /// Least number of steps between two truncations of an environment: [`brasa_env::EnvSpec::truncation_interval`]. Buffers need
    /// less memory if it is large; if an environment is truncated sooner, it is an error. Default: the limit of steps for
    /// Gymnasium's own environments without wrappers, 1 (nothing is known) for others. Always 1 for environments that cannot be saved.
    pub truncation_interval: Option<u64>,
    /// Bound of the components of actions that the environment leaves unbounded, for policies that need bounds (SAC, TD3): such a
    /// component is then in [-bound, bound]. Default: they stay unbounded.
    pub action_bound: Option<f32>,
    /// The Python interpreter, a path or a name. Default: the environment variable `BRASA_PYTHON`, or that of the active virtual
    /// environment (`VIRTUAL_ENV`), or `python3`.
    pub python: Option<String>,
    /// Number of worker processes, at most one per environment. Results do not depend on it. Default: one per core.
    pub n_workers: Option<usize>,
    /// Seconds after which a call of a worker is given up: a step or reset of all its environments, or their creation. Too low,
    /// and a slow reset ends a run; too high, and a run that hangs is noticed late. Default: 120.
    pub timeout_secs: f64,
}

impl Default for GymConfig {
    fn default() -> Self {
        Self {
            id: String::new(),
            kwargs: BTreeMap::new(),
            import: Vec::new(),
            wrappers: Vec::new(),
            max_episode_steps: None,
            truncation_interval: None,
            action_bound: None,
            python: None,
            n_workers: None,
            timeout_secs: 120.0,
        }
    }
}

/// A wrapper around an environment.
///
/// ```
/// use brasa_gym::{GymConfig, GymWrapper, PyValue};
///
/// let config: GymConfig = toml::from_str(r#"
///     id = "CartPole-v1"
///     wrappers = [{ name = "gymnasium.wrappers:FrameStackObservation", kwargs = { stack_size = 4 } }]
/// "#)?;
/// config.validate()?;
/// let GymWrapper { name, kwargs } = &config.wrappers[0];
/// assert_eq!((name.as_str(), &kwargs["stack_size"]), ("gymnasium.wrappers:FrameStackObservation", &PyValue::Int(4)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GymWrapper {
    /// Module and class: `gymnasium.wrappers:FrameStackObservation`.
    pub name: String,
    /// Keyword arguments after the environment. Default: none.
    #[serde(default)]
    pub kwargs: BTreeMap<String, PyValue>,
}

/// A plain value of Python.
///
/// ```
/// use brasa_gym::{GymConfig, PyValue};
///
/// let config: GymConfig = toml::from_str("id = 'LunarLander-v3'\nkwargs = { continuous = true, gravity = -9.0 }")?;
/// assert_eq!(config.kwargs["continuous"], PyValue::Bool(true));
/// // With a point, the number is a float of Python.
/// assert_eq!(config.kwargs["gravity"], PyValue::Float(-9.0));
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum PyValue {
    /// `True` or `False`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A floating-point number, also `inf` and `nan`.
    Float(f64),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<PyValue>),
    /// A dictionary.
    Dict(BTreeMap<String, PyValue>),
}

impl GymConfig {
    /// The environment `id` with the default settings.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// Rejects invalid settings.
    ///
    /// # Errors
    /// [`InvalidField`] for an empty id, wrappers or modules without a name, counts of 0, a bound or a timeout that is not above 0.
    pub fn validate(&self) -> Result<(), InvalidField> {
        field::rule(!self.id.is_empty(), "id", "must name an environment", "\"\"")?;
        for (name, count) in [
            ("max_episode_steps", self.max_episode_steps),
            ("truncation_interval", self.truncation_interval),
            ("n_workers", self.n_workers.map(|n| n as u64)),
        ] {
            field::at_least_one(name, count.unwrap_or(1))?;
        }
        field::duration_secs("timeout_secs", self.timeout_secs)?;
        field::positive("action_bound", f64::from(self.action_bound.unwrap_or(1.0)))?;
        for module in &self.import {
            field::rule(!module.is_empty(), "import", "must name modules or files", "\"\"")?;
        }
        for wrapper in &self.wrappers {
            let parts: Vec<&str> = wrapper.name.split(':').collect();
            let kept = matches!(parts[..], [module, class] if !module.is_empty() && !class.is_empty());
            field::rule(kept, "wrappers.name", "must be `module:Class` or `file.py:Class`", &wrapper.name)?;
        }
        Ok(())
    }

    /// The Python interpreter and where its name comes from.
    pub(crate) fn interpreter(&self) -> (PathBuf, &'static str) {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(python) = &self.python {
            return (python.into(), "the setting `python`");
        }
        if let Some(python) = variable("BRASA_PYTHON") {
            return (python, "the environment variable BRASA_PYTHON");
        }
        match variable("VIRTUAL_ENV") {
            Some(folder) => (folder.join("bin").join("python"), "the environment variable VIRTUAL_ENV"),
            None => ("python3".into(), "the default; `python` or BRASA_PYTHON name another"),
        }
    }

    /// What makes an environment the same one, for saved states.
    pub(crate) fn identity(&self) -> String {
        let wrappers: Vec<String> =
            self.wrappers.iter().map(|wrapper| format!("{}{}", wrapper.name, json_of(&wrapper.kwargs))).collect();
        format!("{} {} {wrappers:?} {:?}", self.id, json_of(&self.kwargs), self.max_episode_steps)
    }

    /// The settings of one worker as JSON. With `renders`, its environments make frames.
    pub(crate) fn for_worker(&self, envs: std::ops::Range<usize>, renders: bool) -> String {
        let text = |value: &str| PyValue::Text(value.to_owned());
        let count = |value: usize| PyValue::Int(value as i64);
        let wrapper = |wrapper: &GymWrapper| {
            PyValue::Dict(BTreeMap::from([
                ("name".to_owned(), text(&wrapper.name)),
                ("kwargs".to_owned(), PyValue::Dict(wrapper.kwargs.clone())),
            ]))
        };
        // JSON of Python has infinite numbers, that of `serde_json` does not.
        let fields = [
            ("id", text(&self.id).json()),
            ("kwargs", json_of(&self.kwargs)),
            ("import", PyValue::List(self.import.iter().map(|module| text(module)).collect()).json()),
            ("wrappers", PyValue::List(self.wrappers.iter().map(wrapper).collect()).json()),
            ("max_episode_steps", self.max_episode_steps.map_or("null".to_owned(), |n| n.to_string())),
            ("render", PyValue::Bool(renders).json()),
            ("envs", PyValue::List(vec![count(envs.start), count(envs.end)]).json()),
        ];
        let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", fields.join(","))
    }
}

impl PyValue {
    fn json(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Float(value) if value.is_nan() => "NaN".into(),
            Self::Float(value) if value.is_infinite() => if *value > 0.0 { "Infinity" } else { "-Infinity" }.into(),
            // With a point or an exponent, so that it stays a float.
            Self::Float(value) => format!("{value:?}"),
            Self::Text(text) => quoted(text),
            Self::List(values) => format!("[{}]", values.iter().map(Self::json).collect::<Vec<_>>().join(",")),
            Self::Dict(values) => json_of(values),
        }
    }
}

fn json_of(values: &BTreeMap<String, PyValue>) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let parts: Vec<String> = values.iter().map(|(key, value)| format!("{}:{}", quoted(key), value.json())).collect();
    format!("{{{}}}", parts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_named() {
        let message = |config: GymConfig| config.validate().expect_err("it is invalid").to_string();
        let valid = GymConfig::new("CartPole-v1");
        assert_eq!(valid.validate(), Ok(()));
        assert_eq!(message(GymConfig::default()), "`id` must name an environment, got \"\"");
        let config = GymConfig { n_workers: Some(0), ..valid.clone() };
        assert_eq!(message(config), "`n_workers` must be at least 1, got 0");
        let config = GymConfig { timeout_secs: 0.0, ..valid.clone() };
        assert_eq!(message(config), "`timeout_secs` must be finite and above 0, got 0");
        let config = GymConfig { action_bound: Some(f32::INFINITY), ..valid.clone() };
        assert_eq!(message(config), "`action_bound` must be finite and above 0, got inf");
        let wrapper = GymWrapper { name: "FlattenObservation".into(), kwargs: BTreeMap::new() };
        let config = GymConfig { wrappers: vec![wrapper], ..valid };
        assert_eq!(
            message(config),
            "`wrappers.name` must be `module:Class` or `file.py:Class`, got FlattenObservation"
        );
        let error = toml::from_str::<GymConfig>("id = \"CartPole-v1\"\nworkers = 3").expect_err("a misspelled setting");
        assert!(error.to_string().contains("unknown field `workers`"), "{error}");
    }

    #[test]
    fn arguments_reach_python_with_their_types() {
        let toml = "id = 'A'\n[kwargs]\nflag = true\nn = 3\nx = 3.0\nlimit = -inf\nname = 'a\"b'\nshape = [84, 84]\nlap = { on = false }";
        let config: GymConfig = toml::from_str(toml).expect("it is valid");
        let expected = r#""kwargs":{"flag":true,"lap":{"on":false},"limit":-Infinity,"n":3,"name":"a\"b","shape":[84,84],"x":3.0}"#;
        assert!(config.for_worker(0..2, false).contains(expected), "{}", config.for_worker(0..2, false));
        let again: GymConfig = toml::from_str(&toml::to_string(&config).expect("it serializes")).expect("it is valid");
        assert_eq!(again, config);
    }
}
