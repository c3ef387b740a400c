//! Errors of invalid settings, and rules that many settings share.

use std::borrow::Cow;

use thiserror::Error;

/// A setting that violates its rule. All configs of Brasa use this error.
///
/// ```
/// use brasa_env::{InvalidField, field};
///
/// assert_eq!(field::share("gamma", 1.5).unwrap_err().to_string(), "`gamma` must be in [0, 1], got 1.5");
/// let own = InvalidField::new("width_m", "must be below the length", 7.5);
/// assert_eq!(own.to_string(), "`width_m` must be below the length, got 7.5");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{field}` {rule}, got {value}")]
pub struct InvalidField {
    /// Name of the setting.
    pub field: Cow<'static, str>,
    /// The rule, such as `must be at least 1`.
    pub rule: Cow<'static, str>,
    /// The invalid value.
    pub value: String,
}

impl InvalidField {
    /// A setting, its rule and the invalid value.
    pub fn new(field: impl Into<Cow<'static, str>>, rule: impl Into<Cow<'static, str>>, value: impl ToString) -> Self {
        Self { field: field.into(), rule: rule.into(), value: value.to_string() }
    }
}

/// Checks a rule: `kept` says whether `value` satisfies it.
///
/// # Errors
/// [`InvalidField`] unless it is.
pub fn rule(
    kept: bool,
    field: &'static str,
    rule: impl Into<Cow<'static, str>>,
    value: impl ToString,
) -> Result<(), InvalidField> {
    if kept { Ok(()) } else { Err(InvalidField::new(field, rule, value)) }
}

/// Checks for a count of at least 1.
///
/// # Errors
/// [`InvalidField`] for 0.
pub fn at_least_one(field: &'static str, count: u64) -> Result<(), InvalidField> {
    rule(count >= 1, field, "must be at least 1", count)
}

/// Checks for a number in [0, 1].
///
/// # Errors
/// [`InvalidField`] for others.
pub fn share(field: &'static str, value: f64) -> Result<(), InvalidField> {
    rule((0.0..=1.0).contains(&value), field, "must be in [0, 1]", value)
}

/// Checks for a number in (0, 1].
///
/// # Errors
/// [`InvalidField`] for others.
pub fn positive_share(field: &'static str, value: f64) -> Result<(), InvalidField> {
    rule(value > 0.0 && value <= 1.0, field, "must be in (0, 1]", value)
}

/// Checks for a finite number of at least 0.
///
/// # Errors
/// [`InvalidField`] for others.
pub fn not_negative(field: &'static str, value: f64) -> Result<(), InvalidField> {
    rule(value.is_finite() && value >= 0.0, field, "must be finite and at least 0", value)
}

/// Checks for a finite number.
///
/// # Errors
/// [`InvalidField`] for others.
pub fn finite(field: &'static str, value: f64) -> Result<(), InvalidField> {
    rule(value.is_finite(), field, "must be finite", value)
}

/// Checks for a finite number above 0.
///
/// # Errors
/// [`InvalidField`] for others.
pub fn positive(field: &'static str, value: f64) -> Result<(), InvalidField> {
    rule(value.is_finite() && value > 0.0, field, "must be finite and above 0", value)
}

/// Checks for a finite number above 0, or `None`.
///
/// # Errors
/// [`InvalidField`] for others.
pub fn positive_or_off(field: &'static str, value: Option<f64>) -> Result<(), InvalidField> {
    let kept = value.is_none_or(|value| value.is_finite() && value > 0.0);
    rule(kept, field, "must be finite and above 0 (leave it out to switch it off)", value.unwrap_or_default())
}

/// Checks for a limit above 0, which may be infinite, or `None`.
///
/// # Errors
/// [`InvalidField`] for others.
pub fn limit_or_off(field: &'static str, value: Option<f64>) -> Result<(), InvalidField> {
    let kept = value.is_none_or(|value| value > 0.0);
    rule(kept, field, "must be above 0 (`inf` for no limit)", value.unwrap_or_default())
}
