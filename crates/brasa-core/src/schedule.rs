//! Hyper-parameters that change during a run.

use brasa_env::{InvalidField, field};
use serde::{Deserialize, Serialize};

/// A value as a function of the share of the run that is done.
///
/// In a file it is a number, or a table with one of the keys `linear` and `exponential`.
///
/// ```
/// use brasa_core::Schedule;
///
/// let schedule: Schedule = serde_json::from_str(r#"{ "linear": { "from": 3e-4, "to": 1e-4 } }"#)?;
/// assert_eq!(schedule, Schedule::linear(3e-4, 1e-4));
/// assert!((schedule.at(0.5) - 2e-4).abs() < 1e-12);
/// assert_eq!(serde_json::from_str::<Schedule>("0.001")?.at(0.5), 0.001);
/// let error = Schedule::Constant(-1.0).check("learning_rate").unwrap_err();
/// assert_eq!(error.to_string(), "`learning_rate` must be finite and at least 0, got -1");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "must be a number, { linear = { from = A, to = B } } or { exponential = { from = A, to = B } }, without other keys"
)]
pub enum Schedule {
    /// A constant value.
    Constant(f64),
    /// Linear from `linear.from` to `linear.to`, as in `{ linear = { from = 3e-4, to = 0.0 } }`.
    Linear {
        /// The two ends.
        linear: Ends,
    },
    /// Exponential from `exponential.from` to `exponential.to`; both are above 0.
    Exponential {
        /// The two ends.
        exponential: Ends,
    },
}

/// First and last value of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ends {
    /// Value at the start.
    pub from: f64,
    /// Value at the end.
    pub to: f64,
}

impl Schedule {
    /// A linear schedule from `from` to `to`.
    pub fn linear(from: f64, to: f64) -> Self {
        Self::Linear { linear: Ends { from, to } }
    }

    /// An exponential schedule from `from` to `to`.
    pub fn exponential(from: f64, to: f64) -> Self {
        Self::Exponential { exponential: Ends { from, to } }
    }

    /// The value at progress `fraction` (0 to 1).
    pub fn at(&self, fraction: f64) -> f64 {
        match *self {
            Self::Constant(value) => value,
            Self::Linear { linear: Ends { from, to } } => from + (to - from) * fraction,
            Self::Exponential { exponential: Ends { from, to } } => from * (to / from).powf(fraction),
        }
    }

    /// The largest value that it has: one of its ends.
    pub fn largest(&self) -> f64 {
        match *self {
            Self::Constant(value) => value,
            Self::Linear { linear: Ends { from, to } } | Self::Exponential { exponential: Ends { from, to } } => {
                from.max(to)
            }
        }
    }

    /// Refuses values that are not finite or negative.
    ///
    /// # Errors
    /// [`InvalidField`] with the rule.
    pub fn check(&self, field: &'static str) -> Result<(), InvalidField> {
        let (holds, rule) = self.rule();
        field::rule(holds, field, rule, self)
    }

    /// The rule of its kind, and whether it holds.
    fn rule(&self) -> (bool, &'static str) {
        let sound = |value: f64| value.is_finite() && value >= 0.0;
        match *self {
            Self::Constant(value) => (sound(value), "must be finite and at least 0"),
            Self::Linear { linear: Ends { from, to } } => {
                (sound(from) && sound(to), "must have finite ends of at least 0")
            }
            Self::Exponential { exponential: Ends { from, to } } => {
                (sound(from) && sound(to) && from > 0.0 && to > 0.0, "must have finite ends above 0")
            }
        }
    }

    /// The violated rule, if values are negative or not finite; `None` for a valid schedule.
    pub fn broken_rule(&self) -> Option<&'static str> {
        let (holds, rule) = self.rule();
        (!holds).then_some(rule)
    }
}

impl std::fmt::Display for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Constant(value) => write!(f, "{value}"),
            Self::Linear { linear } => write!(f, "linear from {} to {}", linear.from, linear.to),
            Self::Exponential { exponential } => {
                write!(f, "exponential from {} to {}", exponential.from, exponential.to)
            }
        }
    }
}

impl From<f64> for Schedule {
    fn from(value: f64) -> Self {
        Self::Constant(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_at_the_ends_and_in_the_middle() {
        for (schedule, expected) in [
            (Schedule::from(0.3), [0.3, 0.3, 0.3]),
            (Schedule::linear(1.0, 0.0), [1.0, 0.5, 0.0]),
            (Schedule::exponential(1.0, 0.01), [1.0, 0.1, 0.01]),
        ] {
            for (fraction, expected) in [0.0, 0.5, 1.0].into_iter().zip(expected) {
                assert!((schedule.at(fraction) - expected).abs() < 1e-12, "{schedule} at {fraction}");
            }
        }
    }

    #[test]
    fn every_key_is_read_or_refused() {
        let read = |text: &str| serde_json::from_str::<Schedule>(text).map_err(|error| error.to_string());
        assert_eq!(read("3"), Ok(Schedule::from(3.0)));
        for schedule in [Schedule::from(0.25), Schedule::linear(1.0, 0.0), Schedule::exponential(1.0, 0.5)] {
            assert_eq!(read(&serde_json::to_string(&schedule).expect("it serializes")), Ok(schedule));
        }
        let ends = r#"{ "from": 1.0, "to": 0.5 }"#;
        for text in [
            format!(r#"{{ "linear": {ends}, "exponential": {ends} }}"#),
            format!(r#"{{ "linear": {ends}, "warmup": 500 }}"#),
            r#"{ "linear": { "from": 1.0, "to": 0.5, "bogus": 1 } }"#.to_owned(),
            "{}".to_owned(),
            r#""fast""#.to_owned(),
        ] {
            let message = read(&text).expect_err("it is no schedule");
            assert!(message.contains("linear") && message.contains("exponential"), "{text}: {message}");
        }
    }

    #[test]
    fn impossible_values_are_named() {
        assert!(Schedule::from(-1.0).broken_rule().is_some());
        assert!(Schedule::exponential(1.0, 0.0).broken_rule().is_some());
        assert!(Schedule::linear(1.0, 0.0).broken_rule().is_none());
    }
}
