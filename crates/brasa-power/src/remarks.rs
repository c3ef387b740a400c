//! What is unlikely in data that is valid: a warning, with the range in which values are plausible.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use brasa_env::field;

/// Plausible largest power of a site, in kW: from a flat to a large factory.
///
/// ```
/// use std::path::Path;
///
/// use brasa_power::remarks::{SITE_KW, unlikely};
///
/// let remark = unlikely(Path::new("load.csv"), "the largest load", 25_000.0, SITE_KW, "kW");
/// assert!(remark.is_some_and(|text| text.contains("0.1 to 10000 kW are plausible")));
/// ```
pub const SITE_KW: (f64, f64) = (0.1, 10_000.0);

/// Logs warnings; each only once per process, however often its data is read.
///
/// ```
/// use std::path::Path;
///
/// use brasa_power::remarks::{SITE_KW, unlikely, warn};
///
/// let remarks: Vec<String> = unlikely(Path::new("load.csv"), "the load", 1e6, SITE_KW, "kW").into_iter().collect();
/// assert_eq!(remarks.len(), 1);
/// // The warning is logged once, not twice.
/// warn(&remarks);
/// warn(&remarks);
/// ```
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
///
/// ```
/// use std::path::Path;
///
/// use brasa_power::remarks::unlikely;
///
/// let remark = |kw| unlikely(Path::new("load.csv"), "the largest load", kw, (0.1, 100.0), "kW");
/// assert_eq!(remark(20.0), None);
/// let text = "load.csv: the largest load is 20000 kW, but 0.1 to 100 kW are plausible; check the unit of the column";
/// assert_eq!(remark(20_000.0).as_deref(), Some(text));
/// ```
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
