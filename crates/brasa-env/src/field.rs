//! Errors of invalid settings, and rules that many settings share.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::OnceLock;

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
        Self { field: field.into(), rule: rule.into(), value: printable(&value.to_string()) }
    }
}

thread_local! {
    /// What [`rules_of`] records in this thread.
    static RECORDED: RefCell<Option<Vec<(String, String)>>> = const { RefCell::new(None) };
}

/// Checks a rule: `kept` is whether `value` satisfies the rule.
///
/// # Errors
/// [`InvalidField`] unless it does.
///
/// ```
/// use brasa_env::field;
///
/// let n_steps = 100;
/// field::rule(n_steps % 4 == 0, "n_steps", "must be a multiple of 4", n_steps)?;
/// let error = field::rule(false, "n_steps", "must be a multiple of 3", n_steps).unwrap_err();
/// assert_eq!(error.to_string(), "`n_steps` must be a multiple of 3, got 100");
/// # Ok::<(), brasa_env::InvalidField>(())
/// ```
pub fn rule(
    kept: bool,
    field: impl Into<Cow<'static, str>>,
    rule: impl Into<Cow<'static, str>>,
    value: impl ToString,
) -> Result<(), InvalidField> {
    let (field, rule) = (field.into(), rule.into());
    RECORDED.with_borrow_mut(|rules| {
        if let Some(rules) = rules {
            rules.push((field.to_string(), rule.to_string()));
        }
    });
    if kept { Ok(()) } else { Err(InvalidField::new(field, rule, value)) }
}

/// The fields and the rules that `validate` checks, in their order. A rule that `validate` skips, such as the rule of a setting that is left out,
/// is missing.
///
/// ```
/// use brasa_env::field;
///
/// let rules = field::rules_of(|| drop(field::share("gamma", 0.99)));
/// assert_eq!(rules, [("gamma".to_owned(), "must be in [0, 1]".to_owned())]);
/// ```
pub fn rules_of(validate: impl FnOnce()) -> Vec<(String, String)> {
    let before = RECORDED.replace(Some(Vec::new()));
    validate();
    RECORDED.replace(before).unwrap_or_default()
}

/// Checks for a number from `low` to `high`, both included.
///
/// # Errors
/// [`InvalidField`] for others.
///
/// ```
/// use brasa_env::field;
///
/// let error = field::within("width_m", 250.0, 1.0, 100.0).unwrap_err();
/// assert_eq!(error.to_string(), "`width_m` must be between 1 and 100, got 250");
/// ```
pub fn within(field: impl Into<Cow<'static, str>>, value: f64, low: f64, high: f64) -> Result<(), InvalidField> {
    rule((low..=high).contains(&value), field, format!("must be between {low} and {high}"), value)
}

/// Checks for a count of at least 1.
///
/// # Errors
/// [`InvalidField`] for 0.
///
/// ```
/// use brasa_env::field;
///
/// field::at_least_one("n_envs", 8)?;
/// let error = field::at_least_one("n_envs", 0).unwrap_err();
/// assert_eq!(error.to_string(), "`n_envs` must be at least 1, got 0");
/// # Ok::<(), brasa_env::InvalidField>(())
/// ```
pub fn at_least_one(field: &'static str, count: u64) -> Result<(), InvalidField> {
    rule(count >= 1, field, "must be at least 1", count)
}

/// Checks for a number in [0, 1].
///
/// # Errors
/// [`InvalidField`] for others.
///
/// ```
/// use brasa_env::field;
///
/// field::share("gamma", 0.99)?;
/// assert_eq!(field::share("gamma", 1.5).unwrap_err().to_string(), "`gamma` must be in [0, 1], got 1.5");
/// # Ok::<(), brasa_env::InvalidField>(())
/// ```
pub fn share(field: &'static str, value: f64) -> Result<(), InvalidField> {
    rule((0.0..=1.0).contains(&value), field, "must be in [0, 1]", value)
}

/// Checks for a number in (0, 1].
///
/// # Errors
/// [`InvalidField`] for others.
///
/// ```
/// use brasa_env::field;
///
/// field::positive_share("tau", 1.0)?;
/// assert_eq!(field::positive_share("tau", 0.0).unwrap_err().to_string(), "`tau` must be in (0, 1], got 0");
/// # Ok::<(), brasa_env::InvalidField>(())
/// ```
pub fn positive_share(field: &'static str, value: f64) -> Result<(), InvalidField> {
    rule(value > 0.0 && value <= 1.0, field, "must be in (0, 1]", value)
}

/// Checks for a finite number of at least 0.
///
/// # Errors
/// [`InvalidField`] for others.
///
/// ```
/// use brasa_env::field;
///
/// field::not_negative("entropy_coef", 0.0)?;
/// let error = field::not_negative("entropy_coef", -0.1).unwrap_err();
/// assert_eq!(error.to_string(), "`entropy_coef` must be finite and at least 0, got -0.1");
/// # Ok::<(), brasa_env::InvalidField>(())
/// ```
pub fn not_negative(field: &'static str, value: f64) -> Result<(), InvalidField> {
    rule(value.is_finite() && value >= 0.0, field, "must be finite and at least 0", value)
}

/// Checks for a finite number.
///
/// # Errors
/// [`InvalidField`] for others.
///
/// ```
/// use brasa_env::field;
///
/// field::finite("log_std_init", -0.5)?;
/// let error = field::finite("log_std_init", f64::NAN).unwrap_err();
/// assert_eq!(error.to_string(), "`log_std_init` must be finite, got NaN");
/// # Ok::<(), brasa_env::InvalidField>(())
/// ```
pub fn finite(field: &'static str, value: f64) -> Result<(), InvalidField> {
    rule(value.is_finite(), field, "must be finite", value)
}

/// Checks for a finite number above 0.
///
/// # Errors
/// [`InvalidField`] for others.
///
/// ```
/// use brasa_env::field;
///
/// field::positive("reward_scale", 0.1)?;
/// let error = field::positive("reward_scale", 0.0).unwrap_err();
/// assert_eq!(error.to_string(), "`reward_scale` must be finite and above 0, got 0");
/// # Ok::<(), brasa_env::InvalidField>(())
/// ```
pub fn positive(field: &'static str, value: f64) -> Result<(), InvalidField> {
    rule(value.is_finite() && value > 0.0, field, "must be finite and above 0", value)
}

/// A time in seconds above 0 that fits a [`std::time::Duration`]: at most about a thousand years.
///
/// # Errors
/// [`InvalidField`] for others.
///
/// ```
/// use brasa_env::field;
///
/// field::duration_secs("save_every_secs", 900.0)?;
/// let error = field::duration_secs("save_every_secs", 1e12).unwrap_err();
/// assert_eq!(error.to_string(), "`save_every_secs` must be at most 3e10, got 1000000000000");
/// # Ok::<(), brasa_env::InvalidField>(())
/// ```
pub fn duration_secs(field: &'static str, secs: f64) -> Result<(), InvalidField> {
    positive(field, secs)?;
    rule(secs <= 3e10, field, "must be at most 3e10", secs)
}

/// Checks for a finite number above 0, or `None`.
///
/// # Errors
/// [`InvalidField`] for others.
///
/// ```
/// use brasa_env::field;
///
/// field::positive_or_off("max_grad_norm", Some(0.5))?;
/// field::positive_or_off("max_grad_norm", None)?;
/// assert!(field::positive_or_off("max_grad_norm", Some(f64::INFINITY)).is_err());
/// # Ok::<(), brasa_env::InvalidField>(())
/// ```
pub fn positive_or_off(field: &'static str, value: Option<f64>) -> Result<(), InvalidField> {
    let kept = value.is_none_or(|value| value.is_finite() && value > 0.0);
    rule(kept, field, "must be finite and above 0 (leave it out to switch it off)", value.unwrap_or_default())
}

/// Checks for a limit above 0, which may be infinite, or `None`.
///
/// # Errors
/// [`InvalidField`] for others.
///
/// ```
/// use brasa_env::field;
///
/// // An infinite limit is valid.
/// field::limit_or_off("target_kl", Some(f64::INFINITY))?;
/// let error = field::limit_or_off("target_kl", Some(0.0)).unwrap_err();
/// assert_eq!(error.to_string(), "`target_kl` must be above 0 (`inf` for no limit), got 0");
/// # Ok::<(), brasa_env::InvalidField>(())
/// ```
pub fn limit_or_off(field: &'static str, value: Option<f64>) -> Result<(), InvalidField> {
    let kept = value.is_none_or(|value| value > 0.0);
    rule(kept, field, "must be above 0 (`inf` for no limit)", value.unwrap_or_default())
}

/// A count of at most `most`.
///
/// # Errors
/// [`InvalidField`] for more.
///
/// ```
/// use brasa_env::field;
///
/// field::at_most("n_frames", 4, 16)?;
/// let error = field::at_most("n_frames", 20, 16).unwrap_err();
/// assert_eq!(error.to_string(), "`n_frames` must be at most 16, got 20");
/// # Ok::<(), brasa_env::InvalidField>(())
/// ```
pub fn at_most(field: impl Into<Cow<'static, str>>, count: u64, most: u64) -> Result<(), InvalidField> {
    rule(count <= most, field, format!("must be at most {most}"), count)
}

/// A size that takes so many bytes, if this machine has as many. Ask before they are allocated.
///
/// # Errors
/// [`InvalidField`] with the memory of the machine and what was asked for.
///
/// ```
/// use brasa_env::field;
///
/// field::fits_in_memory("capacity", 1_000, 1e5)?;
/// let error = field::fits_in_memory("capacity", "1e18", 1e18 * 2f64.powi(30)).unwrap_err();
/// let message = error.to_string();
/// assert!(message.starts_with("`capacity` must fit into the memory of this machine"));
/// assert!(message.ends_with("got 1e18, which takes 1000000000000000000.0 GiB"));
/// # Ok::<(), brasa_env::InvalidField>(())
/// ```
pub fn fits_in_memory(
    field: impl Into<Cow<'static, str>>,
    size: impl ToString,
    bytes: f64,
) -> Result<(), InvalidField> {
    let there = machine_bytes();
    if bytes <= there {
        return Ok(());
    }
    let rule = format!("must fit into the memory of this machine, {}", in_gib(there));
    Err(InvalidField::new(field, rule, format!("{}, which takes {}", size.to_string(), in_gib(bytes))))
}

fn in_gib(bytes: f64) -> String {
    format!("{:.1} GiB", bytes / f64::from(1 << 30))
}

/// Memory of this machine, whatever of it is in use: other programs may be gone when it is needed. Where the system does not tell, 64 GiB.
///
/// ```
/// use brasa_env::field;
///
/// let bytes = field::machine_bytes();
/// assert!(bytes > 0.0);
/// // What takes more memory than the machine has is an error.
/// assert!(field::fits_in_memory("capacity", 8, 2.0 * bytes).is_err());
/// ```
pub fn machine_bytes() -> f64 {
    static BYTES: OnceLock<f64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
        let kib: Option<f64> = total.and_then(|kib| kib.trim().parse().ok());
        kib.map_or(64.0 * f64::from(1 << 30), |kib| kib * 1024.0)
    })
}

/// `text` without anything that a terminal obeys: control characters, and those that turn the direction of writing, are written
/// as their escapes. What comes from a file goes through here before people see it.
///
/// ```
/// use brasa_env::field;
///
/// // A terminal would print this text in red.
/// assert_eq!(field::printable("\u{1b}[31mred"), "\\u{1b}[31mred");
/// assert_eq!(field::printable("21 °C"), "21 °C");
/// ```
pub fn printable(text: &str) -> String {
    let is_obeyed = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_refused_with_what_they_would_take() {
        assert_eq!(at_most("n", 3, 3), Ok(()));
        assert_eq!(at_most("n", 4, 3).unwrap_err().to_string(), "`n` must be at most 3, got 4");
        assert_eq!(fits_in_memory("n", 1, 8.0), Ok(()));
        let error = fits_in_memory("n", 1_000_000_000, 8e18).unwrap_err().to_string();
        assert!(error.starts_with("`n` must fit into the memory of this machine, "), "{error}");
        assert!(error.ends_with("got 1000000000, which takes 7450580596.9 GiB"), "{error}");
        assert!(machine_bytes() > 1e8);
    }

    #[test]
    fn values_reach_no_terminal_as_commands() {
        let error = InvalidField::new("name", "must be short", "a\u{1b}[31m\u{202e}b\u{9b}");
        assert_eq!(error.value, "a\\u{1b}[31m\\u{202e}b\\u{9b}");
    }
}
