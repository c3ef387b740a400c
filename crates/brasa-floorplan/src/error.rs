//! Errors of floor plans.

use std::path::PathBuf;

use thiserror::Error;

/// An error of a floor plan.
///
/// ```
/// use brasa_floorplan::{FloorPlanError, Layout};
///
/// let mut office = Layout::office();
/// office.entries.clear();
/// let error = office.validate().unwrap_err();
/// assert!(matches!(error, FloorPlanError::Layout { .. }));
/// assert!(error.to_string().ends_with("it has no entry for responders"));
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FloorPlanError {
    /// An invalid field of a config.
    #[error("`{field}` {rule}, got {value}")]
    Field {
        /// Name of the field.
        field: String,
        /// The rule.
        rule: String,
        /// The invalid value.
        value: String,
    },
    /// An invalid building.
    #[error("layout `{layout}`: {reason}")]
    Layout {
        /// Name of the building.
        layout: String,
        /// The reason, with the room, door or exit.
        reason: String,
    },
    /// A file that cannot be read.
    #[error("cannot {action} {}: {cause}", path.display())]
    File {
        /// `read`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: std::io::Error,
    },
    /// An invalid floor plan.
    #[error("{origin}: {reason}")]
    Plan {
        /// Source of the plan: a file name, or the name of a text.
        origin: String,
        /// The reason, with the feature.
        reason: String,
    },
}

/// The error of an invalid field.
pub(crate) fn field_error(field: &str, rule: &str, value: impl std::fmt::Display) -> FloorPlanError {
    FloorPlanError::Field { field: field.into(), rule: rule.into(), value: value.to_string() }
}

/// `text` with control characters, and those that turn the direction of writing, as their escapes: what comes from a file must
/// not command the terminal that an error is printed on.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_command(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}

/// Whether a terminal or a page obeys `c` instead of showing it.
pub(crate) fn is_command(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
