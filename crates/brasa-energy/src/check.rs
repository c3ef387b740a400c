//! Rules of settings that scenarios share.

use crate::{EnergyError, error::fail};

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

/// A number between two bounds, both included.
pub(crate) fn within(field: &str, value: f64, low: f64, high: f64) -> Result<(), EnergyError> {
    check(field, &format!("must be between {low} and {high}"), value, (low..=high).contains(&value))
}
