//! The values that the settings of trials may have.

use brasa_env::InvalidField;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::tpe::Domain;
use crate::{Experiment, ExperimentError};

/// Settings that no trial may change, with the reason.
const FIXED: [(&str, &str); 5] = [
    ("train.seed", "must not be searched (`search.seeds` sets the seeds of a trial)"),
    ("train.eval_seed", "must not be searched (all trials are evaluated in the same episodes)"),
    ("train.total_env_steps", "must not be searched (`search.steps` sets the steps of a trial)"),
    ("train.eval_interval", "must not be searched (`search.evaluations` sets the evaluations of a trial)"),
    ("train.init_from", "must not be searched (all trials begin with new weights)"),
];
/// Digits of a sampled number that is not whole.
const DIGITS: i32 = 6;

/// The values of a setting: an interval or choices.
#[derive(Debug, Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Range {
    /// The smallest value.
    low: Option<f64>,
    /// The largest value, above `low`.
    high: Option<f64>,
    /// Whether values are compared by their logarithm. Default no.
    log: bool,
    /// Whether values are whole numbers. Default no.
    integer: bool,
    /// Distance between two values. Default none, and 1 for whole numbers.
    step: Option<f64>,
    /// The choices, at least two, in place of an interval.
    #[schemars(with = "Option<Vec<serde_json::Value>>")]
    choice: Option<Vec<Value>>,
}

/// A setting and its values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dimension {
    /// Such as `learner.gamma`.
    pub key: String,
    pub domain: Domain,
    /// Empty for an interval.
    choices: Vec<Value>,
    is_integer: bool,
}

/// All settings of a search, in the order of their keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Space(pub Vec<Dimension>);

impl Space {
    /// # Errors
    /// [`ExperimentError::Input`] naming the key, the rule and the value of the first mistake.
    pub fn new(table: &Table) -> Result<Self, ExperimentError> {
        if table.is_empty() {
            return Err(ExperimentError::Input("[search.space] must have at least one setting, got none".into()));
        }
        Ok(Self(table.iter().map(|(key, value)| Dimension::new(key, value)).collect::<Result<_, _>>()?))
    }

    pub fn domains(&self) -> Vec<Domain> {
        self.0.iter().map(|dimension| dimension.domain).collect()
    }

    /// The settings of a trial, such as `learner.gamma=0.95`.
    pub fn set(&self, point: &[f64]) -> Vec<String> {
        self.settings(point).map(|(key, value)| format!("{key}={}", text(&value))).collect()
    }

    /// Keys and values of a trial.
    pub fn settings(&self, point: &[f64]) -> impl Iterator<Item = (&str, Value)> {
        self.0.iter().zip(point).map(|(dimension, value)| (dimension.key.as_str(), dimension.value(*value)))
    }

    /// The point of the settings of `experiment`, if the space has them all.
    pub fn point_of(&self, experiment: &Experiment<'_>) -> Option<Vec<f64>> {
        self.0.iter().map(|dimension| dimension.place(&experiment.setting(&dimension.key)?)).collect()
    }

    /// Whether a point can be that of a trial.
    pub fn contains(&self, point: &[f64]) -> bool {
        self.0.len() == point.len() && self.0.iter().zip(point).all(|(dimension, value)| dimension.contains(*value))
    }

    /// A point as settings have it: with few digits.
    pub fn rounded(&self, point: Vec<f64>) -> Vec<f64> {
        self.0.iter().zip(point).map(|(dimension, value)| dimension.rounded(value)).collect()
    }
}

impl Dimension {
    fn new(key: &str, value: &Value) -> Result<Self, ExperimentError> {
        let name = format!("search.space.\"{key}\"");
        let wrong = |rule: &str, got: &dyn ToString| {
            ExperimentError::input(InvalidField::new(name.clone(), rule.to_owned(), got.to_string()))
        };
        let parts: Vec<&str> = key.split('.').collect();
        let is_key = parts.len() > 1 && parts.iter().all(|part| !part.is_empty() && !part.contains([' ', '=']));
        let is_setting = is_key && !["search", "when"].contains(&parts[0]);
        if !is_setting {
            return Err(wrong("must be the key of a setting in quotes, such as \"learner.gamma\"", value));
        }
        if let Some((_, rule)) = FIXED.into_iter().find(|(fixed, _)| *fixed == key) {
            return Err(wrong(rule, value));
        }
        let range: Range = value
            .clone()
            .try_into()
            .map_err(|error: toml::de::Error| wrong(&format!("is invalid ({})", error.message()), value))?;
        let Range { low, high, log, integer, step, choice } = range;
        let of_interval = low.is_some() || high.is_some() || log || integer || step.is_some();
        if let Some(choices) = choice {
            if of_interval {
                return Err(wrong("must have `choice`, or `low` and `high`, but not both", value));
            }
            let is_distinct = |(i, choice): (usize, &Value)| !choices[..i].contains(choice);
            if choices.len() < 2 || !choices.iter().enumerate().all(is_distinct) {
                return Err(wrong("must have at least two different choices", value));
            }
            return Ok(Self {
                key: key.to_owned(),
                domain: Domain::Choices(choices.len()),
                choices,
                is_integer: false,
            });
        }
        let (Some(low), Some(high)) = (low, high) else {
            return Err(wrong("must have `choice`, or `low` and `high`", value));
        };
        let rule = |holds: bool, of: &str, rule: &str, got: f64| {
            let error = || ExperimentError::input(InvalidField::new(format!("{name}.{of}"), rule.to_owned(), got));
            if holds { Ok(()) } else { Err(error()) }
        };
        rule(low.is_finite(), "low", "must be a finite number", low)?;
        rule(high.is_finite(), "high", "must be a finite number", high)?;
        rule(high > low, "high", &format!("must be above `low`, which is {low}"), high)?;
        rule(!log || low > 0.0, "low", "must be above 0 if `log` is true", low)?;
        let step = step.or(integer.then_some(1.0));
        if integer {
            let whole = |of: &str, x: f64| {
                rule(x.fract() == 0.0 && x.abs() < 9e15, of, "must be whole if `integer` is true", x)
            };
            whole("low", low)?;
            whole("high", high)?;
            step.map_or(Ok(()), |step| whole("step", step))?;
        }
        let Some(step) = step else {
            return Ok(Self {
                key: key.to_owned(),
                domain: Domain::Interval { low, high, log },
                choices: Vec::new(),
                is_integer: false,
            });
        };
        rule(step > 0.0 && step <= high - low, "step", "must be above 0 and at most `high` - `low`", step)?;
        rule(!log || (integer && step == 1.0), "step", "must be left out if `log` is true", step)?;
        // The last step may end before `high`.
        let high = low + ((high - low) / step + 1e-9).floor() * step;
        let domain = Domain::Grid { low, high, step, log };
        Ok(Self { key: key.to_owned(), domain, choices: Vec::new(), is_integer: integer })
    }

    /// The setting at `place`.
    fn value(&self, place: f64) -> Value {
        match self.choices.get(place as usize) {
            Some(choice) => choice.clone(),
            None if self.is_integer => Value::Integer(place as i64),
            None => Value::Float(place),
        }
    }

    fn contains(&self, place: f64) -> bool {
        match self.domain {
            Domain::Choices(n) => place.fract() == 0.0 && (0.0..n as f64).contains(&place),
            Domain::Interval { low, high, .. } | Domain::Grid { low, high, .. } => (low..=high).contains(&place),
        }
    }

    fn rounded(&self, place: f64) -> f64 {
        match self.domain {
            Domain::Choices(_) => place,
            Domain::Grid { .. } if self.is_integer => place.round(),
            Domain::Interval { low, high, .. } | Domain::Grid { low, high, .. } => significant(place).clamp(low, high),
        }
    }

    /// The place of a setting, if the dimension has it.
    fn place(&self, value: &Value) -> Option<f64> {
        let number = value.as_float().or_else(|| value.as_integer().map(|integer| integer as f64));
        match self.domain {
            Domain::Choices(_) => self.choices.iter().position(|choice| choice == value).map(|place| place as f64),
            Domain::Interval { low, high, .. } => number.filter(|number| (low..=high).contains(number)),
            Domain::Grid { low, high, step, .. } => number.filter(|number| {
                let steps = (number - low) / step;
                (low..=high).contains(number) && (steps - steps.round()).abs() < 1e-6
            }),
        }
    }

    /// Settings that stand for all: both ends, or all choices.
    pub fn samples(&self) -> Vec<Value> {
        match self.domain {
            Domain::Choices(_) => self.choices.clone(),
            Domain::Interval { low, high, .. } | Domain::Grid { low, high, .. } => {
                vec![self.value(low), self.value(high)]
            }
        }
    }

    /// The choices as text; empty for an interval.
    pub fn labels(&self) -> Vec<String> {
        self.choices.iter().map(|choice| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned)).collect()
    }
}

/// A value as TOML, where a small number has an exponent.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Float(x) if *x != 0.0 && x.abs() < 1e-3 => format!("{x:e}"),
        value => value.to_string(),
    }
}

/// A number with few digits.
fn significant(x: f64) -> f64 {
    format!("{x:.*e}", (DIGITS - 1) as usize).parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(text: &str) -> Result<Space, ExperimentError> {
        Space::new(&toml::from_str(text).expect("it is TOML"))
    }

    #[test]
    fn intervals_steps_and_choices_are_read() {
        let space = space(
            "\"a.rate\" = { low = 1e-5, high = 1e-2, log = true }\n\"b.n\" = { low = 1, high = 20, integer = true }\n\
             \"c.x\" = { low = 0, high = 1, step = 0.3 }\n\"d.units\" = { choice = [[64, 64], \"auto\"] }\n",
        )
        .expect("it is valid");
        assert_eq!(
            space.domains(),
            [
                Domain::Interval { low: 1e-5, high: 1e-2, log: true },
                Domain::Grid { low: 1.0, high: 20.0, step: 1.0, log: false },
                Domain::Grid { low: 0.0, high: 0.3 * 3.0, step: 0.3, log: false },
                Domain::Choices(2),
            ]
        );
        let point = space.rounded(vec![1.234_567_89e-4, 7.0, 0.3 * 2.0, 1.0]);
        assert_eq!(space.set(&point), ["a.rate=1.23457e-4", "b.n=7", "c.x=0.6", "d.units=\"auto\""]);
        assert_eq!(space.set(&[1e-5, 1.0, 0.0, 0.0])[3], "d.units=[64, 64]");
    }

    #[test]
    fn mistakes_name_key_rule_and_value() {
        let refusal = |text: &str| space(text).expect_err(text).to_string();
        for (text, expected) in [
            ("", "[search.space] must have at least one setting, got none"),
            ("gamma = { low = 0, high = 1 }", "`search.space.\"gamma\"` must be the key of a setting in quotes"),
            (
                "learner.gamma = { low = 0, high = 1 }",
                "`search.space.\"learner\"` must be the key of a setting in quotes",
            ),
            (
                "\"search.trials\" = { low = 0, high = 1 }",
                "`search.space.\"search.trials\"` must be the key of a setting",
            ),
            ("\"train.seed\" = { low = 0, high = 1 }", "must not be searched (`search.seeds` sets"),
            ("\"a.b\" = { low = 0, hihg = 1 }", "unknown field `hihg`"),
            ("\"a.b\" = 5", "`search.space.\"a.b\"` is invalid"),
            (
                "\"a.b\" = { low = 1 }",
                "`search.space.\"a.b\"` must have `choice`, or `low` and `high`, got { low = 1 }",
            ),
            ("\"a.b\" = {}", "must have `choice`, or `low` and `high`"),
            ("\"a.b\" = { low = 1, high = 2, choice = [1, 2] }", "but not both"),
            ("\"a.b\" = { choice = [] }", "must have at least two different choices"),
            ("\"a.b\" = { choice = [1] }", "must have at least two different choices"),
            ("\"a.b\" = { choice = [1, 1] }", "must have at least two different choices"),
            ("\"a.b\" = { low = 2, high = 1 }", "`search.space.\"a.b\".high` must be above `low`, which is 2, got 1"),
            ("\"a.b\" = { low = 1, high = 1 }", "must be above `low`, which is 1, got 1"),
            ("\"a.b\" = { low = 1, high = inf }", "high` must be a finite number, got inf"),
            ("\"a.b\" = { low = 0, high = 1, log = true }", "low` must be above 0 if `log` is true, got 0"),
            ("\"a.b\" = { low = 0.5, high = 2, integer = true }", "low` must be whole if `integer` is true, got 0.5"),
            ("\"a.b\" = { low = 0, high = 2, step = 3 }", "step` must be above 0 and at most `high` - `low`, got 3"),
            ("\"a.b\" = { low = 1, high = 2, step = 0 }", "step` must be above 0"),
            (
                "\"a.b\" = { low = 1, high = 2, step = 0.5, log = true }",
                "step` must be left out if `log` is true, got 0.5",
            ),
        ] {
            let message = refusal(text);
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn every_sampled_value_is_one_of_the_space() {
        let space = space(
            "\"a.rate\" = { low = 1e-5, high = 1e-2, log = true }\n\"b.n\" = { low = 1, high = 256, integer = true, log = true }\n\
             \"c.x\" = { low = 0.1, high = 0.9, step = 0.2 }\n\"d.units\" = { choice = [64, 128] }\n",
        )
        .expect("it is valid");
        let rng = &mut brasa_env::named_rng(3, "search", 0);
        let random = |rng: &mut brasa_env::EnvRng| {
            space.rounded(space.domains().iter().map(|domain| domain.random(rng)).collect())
        };
        let trials: Vec<Vec<f64>> = (0..40).map(|_| random(rng)).collect();
        let suggested =
            (0..40).map(|_| space.rounded(crate::tpe::suggest(&space.domains(), &trials[..4], &trials[4..], rng)));
        for point in trials.iter().cloned().chain(suggested) {
            for (dimension, value) in space.0.iter().zip(&point) {
                assert_eq!(dimension.place(&dimension.value(*value)), Some(*value), "{}", dimension.key);
            }
        }
    }
}
