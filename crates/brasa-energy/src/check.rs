//! Rules of settings that scenarios share.

use std::borrow::Cow;

use brasa_env::InvalidField;
use brasa_env::field::{rule, within};

/// Largest power in kW, energy in kWh and price: a year of it must stay a number.
pub(crate) const MOST: f64 = 1e9;

/// A power, an energy or a price.
pub(crate) fn not_negative(field: impl Into<Cow<'static, str>>, value: f64) -> Result<(), InvalidField> {
    within(field, value, 0.0, MOST)
}

/// Smallest size that something is divided by: below it a ratio may be no number.
const LEAST: f64 = 1e-3;

/// A power, an energy or a voltage that is a scale.
pub(crate) fn scale(field: impl Into<Cow<'static, str>>, value: f64) -> Result<(), InvalidField> {
    within(field, value, LEAST, MOST)
}

/// A power or an energy that is a scale, or 0 for none.
pub(crate) fn scale_or_zero(field: impl Into<Cow<'static, str>>, value: f64) -> Result<(), InvalidField> {
    let holds = value == 0.0 || (LEAST..=MOST).contains(&value);
    rule(holds, field, format!("must be 0 or between {LEAST} and {MOST}"), value)
}

/// An efficiency, whose inverse is a factor on power.
pub(crate) fn efficiency(field: impl Into<Cow<'static, str>>, value: f64) -> Result<(), InvalidField> {
    rule((0.01..=1.0).contains(&value), field, "must be in [0.01, 1]", value)
}
