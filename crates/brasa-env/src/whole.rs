//! Counts that a user may write as `1e6`: deserializers of fields.
//!
//! TOML takes `1e6` for a floating-point number. `#[serde(deserialize_with = "brasa_env::whole::count")]` accepts it for a count.

use std::fmt;

use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// A whole number that is not negative.
///
/// # Errors
/// If it is another value.
///
/// ```
/// #[derive(serde::Deserialize)]
/// struct Settings {
///     #[serde(deserialize_with = "brasa_env::whole::count")]
///     total_env_steps: u64,
/// }
///
/// let settings: Settings = toml::from_str("total_env_steps = 1e6")?;
/// assert_eq!(settings.total_env_steps, 1_000_000);
/// assert!(toml::from_str::<Settings>("total_env_steps = 0.5").is_err());
/// # Ok::<(), toml::de::Error>(())
/// ```
pub fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_any(Whole)
}

/// The same for an optional count, which is given.
///
/// # Errors
/// If it is another value.
///
/// ```
/// #[derive(serde::Deserialize)]
/// struct Settings {
///     #[serde(default, deserialize_with = "brasa_env::whole::maybe")]
///     eval_interval: Option<u64>,
/// }
///
/// assert_eq!(toml::from_str::<Settings>("eval_interval = 2e4")?.eval_interval, Some(20_000));
/// assert_eq!(toml::from_str::<Settings>("")?.eval_interval, None);
/// # Ok::<(), toml::de::Error>(())
/// ```
pub fn maybe<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    deserializer.deserialize_option(Maybe)
}

struct Whole;

impl Visitor<'_> for Whole {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, such as 1000000, 1_000_000 or 1e6")
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<u64, E> {
        Ok(count)
    }

    fn visit_i64<E: Error>(self, count: i64) -> Result<u64, E> {
        u64::try_from(count).map_err(|_| E::invalid_value(Unexpected::Signed(count), &self))
    }

    fn visit_f64<E: Error>(self, count: f64) -> Result<u64, E> {
        /// Every integer up to this one is a number of 64 bits.
        const MOST: f64 = 9_007_199_254_740_992.0;
        match (0.0..=MOST).contains(&count) && count.fract() == 0.0 {
            true => Ok(count as u64),
            false => Err(E::invalid_value(Unexpected::Float(count), &self)),
        }
    }
}

struct Maybe;

impl<'de> Visitor<'de> for Maybe {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Whole.expecting(f)
    }

    fn visit_none<E: Error>(self) -> Result<Option<u64>, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<u64>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<u64>, D::Error> {
        count(deserializer).map(Some)
    }
}
