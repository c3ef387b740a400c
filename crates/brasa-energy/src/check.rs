//! Rules of settings that scenarios share.

use brasa_power::{EnergyError, fail};

/// Largest power in kW, energy in kWh and price: a year of it must stay a number.
pub(crate) const MOST: f64 = 1e9;

/// Rejects a setting unless its rule holds.
pub(crate) fn check(field: &str, rule: &str, value: impl ToString, holds: bool) -> Result<(), EnergyError> {
    if holds { Ok(()) } else { fail(field, rule, value) }
}

/// A power, an energy or a price.
pub(crate) fn not_negative(field: &str, value: f64) -> Result<(), EnergyError> {
    within(field, value, 0.0, MOST)
}

/// Smallest size that something is divided by: below it a ratio may be no number.
const LEAST: f64 = 1e-3;

/// A power, an energy or a voltage that is a scale.
pub(crate) fn scale(field: &str, value: f64) -> Result<(), EnergyError> {
    within(field, value, LEAST, MOST)
}

/// A power or an energy that is a scale, or 0 for none.
pub(crate) fn scale_or_zero(field: &str, value: f64) -> Result<(), EnergyError> {
    let holds = value == 0.0 || (LEAST..=MOST).contains(&value);
    check(field, &format!("must be 0 or between {LEAST} and {MOST}"), value, holds)
}

/// An efficiency, whose inverse is a factor on power.
pub(crate) fn efficiency(field: &str, value: f64) -> Result<(), EnergyError> {
    check(field, "must be in [0.01, 1]", value, (0.01..=1.0).contains(&value))
}

/// A number between two bounds, both included.
pub(crate) fn within(field: &str, value: f64, low: f64, high: f64) -> Result<(), EnergyError> {
    check(field, &format!("must be between {low} and {high}"), value, (low..=high).contains(&value))
}
