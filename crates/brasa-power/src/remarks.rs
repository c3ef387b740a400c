//! What is unlikely in data that is valid: a warning, with the range in which values are plausible.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use brasa_env::field;

/// Plausible largest power of a site, in kW: from a flat to a large factory.
pub const SITE_KW: (f64, f64) = (0.1, 10_000.0);

/// Logs warnings; each only once per process, however often its data is read.
pub fn warn(warnings: &[String]) {
    static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    for warning in warnings {
        if seen.insert(warning.clone()) {
            tracing::warn!("{warning}");
        }
    }
}

/// A warning if `value` is outside of `range`.
pub fn unlikely(path: &Path, what: &str, value: f64, (low, high): (f64, f64), unit: &str) -> Option<String> {
    if (low..=high).contains(&value) {
        return None;
    }
    let file = field::printable(&path.display().to_string());
    Some(format!(
        "{file}: {what} is {} {unit}, but {low} to {high} {unit} are plausible; check the unit of the column",
        (value * 1e4).round() / 1e4
    ))
}
