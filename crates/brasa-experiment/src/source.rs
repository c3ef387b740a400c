//! The text of an experiment and its sections.
//!
//! Each section has the type of a registered part, so it is read separately and reports the errors of that type. Without
//! overrides the original text is kept, so that errors show its lines.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;

use brasa_device::{best_device, profile_of, profiles};
use brasa_env::field::printable;
use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_path_to_error::Segment;
use toml::{Table, Value};

use crate::{ExperimentError, suggest};

/// An experiment whose sections are not interpreted yet.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// use brasa_experiment::Source;
///
/// let text = "[scenario.room]\nwidth_m = 4.0\n[learner]\nn_steps = 64\n";
/// let source = Source::parse(text, "room.toml", &["learner.gamma=0.9".to_owned()])?;
/// assert_eq!(source.names_in("scenario"), ["room"]);
/// let settings: FixedConfig = source.section("learner")?;
/// assert_eq!((settings.n_steps, settings.gamma), (64, 0.9));
/// # Ok::<(), brasa_experiment::ExperimentError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Source {
    /// Source of the text, for errors.
    origin: String,
    /// The original text.
    text: String,
    /// What changed the table since, so that the lines of the text no longer match.
    changed_by: Option<String>,
    table: Table,
    /// The changes that were applied, such as `train.seed=5`.
    overrides: Vec<String>,
}

impl Source {
    /// Reads an experiment from `text` and applies `overrides` such as `learner.gamma=0.95`. Errors name `origin`.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] if the text is not TOML or an override cannot be applied.
    pub fn parse(text: &str, origin: &str, overrides: &[String]) -> Result<Self, ExperimentError> {
        let table: Table =
            toml::from_str(text).map_err(|error| ExperimentError::Input(format!("{origin}: {}", shown(&error))))?;
        let mut source = Self {
            origin: origin.to_owned(),
            text: text.to_owned(),
            changed_by: None,
            table,
            overrides: overrides.to_vec(),
        };
        let best = source.adapt_to_device(overrides)?;
        for item in overrides {
            set(&mut source.table, item)?;
            source.changed_by = Some(SET.to_owned());
        }
        if let Some(device) = best {
            set(&mut source.table, &override_of(DEVICE, &device))?;
            source.changed_by.get_or_insert_with(|| origin.to_owned());
        }
        Ok(source)
    }

    /// Applies the settings of `[when.PROFILE]`, if the device has that profile. Overrides are applied later, so that they win.
    /// Returns the best device of this machine if the device is `auto`.
    fn adapt_to_device(&mut self, overrides: &[String]) -> Result<Option<String>, ExperimentError> {
        let origin = self.origin.clone();
        let fail = |text: String| Err(ExperimentError::Input(format!("{origin}: {text}")));
        let mut with_overrides = self.table.clone();
        overrides.iter().try_for_each(|item| set(&mut with_overrides, item))?;
        let train = with_overrides.get("train").and_then(Value::as_table);
        let mut device =
            train.and_then(|train| train.get("device")).and_then(Value::as_str).unwrap_or("cpu").to_owned();
        let when = self.table.remove("when");
        let best = (device == AUTO).then(best_device);
        device = best.clone().unwrap_or(device);
        let Some(when) = when else { return Ok(best) };
        // An unknown device is an error of the section `train`.
        let Ok(profile) = profile_of(device.split(',').next().unwrap_or_default().trim()) else { return Ok(best) };
        let name = profile.map(|profile| profile.name);
        let Value::Table(when) = when else { return fail("`when` must be a table of profiles".into()) };
        for (of, settings) in when {
            let Value::Table(settings) = settings else {
                return fail(format!("`when.{of}` must be a table of sections"));
            };
            if name.as_ref() == Some(&of) {
                merge(&mut self.table, settings);
                self.changed_by = Some(format!("{}, [when.{of}]", self.origin));
            } else if !profiles().iter().any(|profile| profile.name == of) {
                let known = profiles().iter().map(|profile| profile.name.as_str()).collect::<Vec<_>>().join(", ");
                return fail(format!("`when.{of}` must name a profile, one of {known}, or the profile of the device"));
            }
        }
        Ok(best)
    }

    /// Where the values are from, for errors.
    fn origin(&self) -> &str {
        self.changed_by.as_deref().unwrap_or(&self.origin)
    }

    /// The experiment as a table.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// This experiment with further changes, such as `train.seed=5`.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] if a change cannot be applied.
    pub(crate) fn with(&self, overrides: &[String]) -> Result<Self, ExperimentError> {
        let mut source = Self { changed_by: Some(SET.to_owned()), overrides: overrides.to_vec(), ..self.clone() };
        overrides.iter().try_for_each(|item| set(&mut source.table, item))?;
        Ok(source)
    }

    /// This experiment without the section `name`.
    pub(crate) fn without(&self, name: &str) -> Self {
        let mut source = self.clone();
        source.table.remove(name);
        source
    }

    /// Names of the sections.
    pub fn names(&self) -> BTreeSet<&str> {
        self.table.keys().map(String::as_str).collect()
    }

    /// Whether the section `name` exists.
    pub fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// Keys of a section.
    pub fn names_in(&self, section: &str) -> Vec<&str> {
        let table = self.table.get(section).and_then(Value::as_table);
        table.map(|table| table.keys().map(String::as_str).collect()).unwrap_or_default()
    }

    /// The value at a path of keys, if it exists.
    pub(crate) fn value(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.table.get(*first)?, |value, name| value.as_table()?.get(*name))
    }

    /// The section `name`, or its defaults if it does not exist.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] for an unknown field or an invalid value.
    pub fn section<C: DeserializeOwned + Default>(&self, name: &str) -> Result<C, ExperimentError> {
        Ok(self.at(&[name])?.unwrap_or_default())
    }

    /// The part `name` of the section `section`. It must exist.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] for an unknown field or an invalid value.
    pub fn part<C: DeserializeOwned>(&self, section: &str, name: &str) -> Result<C, ExperimentError> {
        let missing = || ExperimentError::Input(format!("{}: no [{section}.{name}]", self.origin()));
        self.at(&[section, name])?.ok_or_else(missing)
    }

    /// The value at `path`, if it exists.
    fn at<C: DeserializeOwned>(&self, path: &[&str]) -> Result<Option<C>, ExperimentError> {
        let broken = RefCell::new(Vec::new());
        let at = At { path, broken: &broken, found: PhantomData };
        let found = match self.changed_by {
            // The error shows the line with its key and value.
            None => toml::Deserializer::parse(&self.text).and_then(|text| at.deserialize(text)),
            Some(_) => at.deserialize(self.table.clone()),
        };
        found.map_err(|error| {
            let message = error.to_string();
            let unknown = suggest::unknown_key(&message).filter(|_| self.changed_by.is_some());
            if let Some(error) = unknown.and_then(|key| self.no_key(path, &broken.borrow(), key, &message)) {
                return error;
            }
            if let Some(error) = self.error_of_file::<C>(path, error.message()) {
                return error;
            }
            let place = match self.changed_by {
                None => String::new(),
                Some(_) => self.place(path, &broken.borrow()),
            };
            ExperimentError::Input(format!("{}: {place}{}", self.origin(), shown(&error)))
        })
    }

    /// The error with `message` at `path`, if it is one of the file, with its lines, and not of a change.
    fn error_of_file<C: DeserializeOwned>(&self, path: &[&str], message: &str) -> Option<ExperimentError> {
        self.changed_by.as_ref()?;
        let at = At { path, broken: &RefCell::default(), found: PhantomData::<C> };
        let error = at.deserialize(toml::Deserializer::parse(&self.text).ok()?).err()?;
        (error.message() == message).then(|| ExperimentError::Input(format!("{}: {}", self.origin, shown(&error))))
    }

    /// The error of a key that a change names and a section does not have.
    fn no_key(&self, section: &[&str], keys: &[String], key: &str, message: &str) -> Option<ExperimentError> {
        let within = keys.iter().map(String::as_str).filter(|name| *name != key);
        let place = section.iter().copied().chain(within).collect::<Vec<_>>().join(".");
        let whole = format!("{place}.{key}");
        let is_of = |item: &&String| item.split('=').next().is_some_and(|name| name.trim() == whole);
        let item = self.overrides.iter().find(is_of)?;
        let meant = suggest::key(message).map_or(String::new(), |meant| format!(" Did you mean `{meant}`?"));
        let name = section.last().copied().unwrap_or_default();
        let text = format!("--set {item}: [{place}] has no key `{key}`.{meant} `brasa list {name}` prints its keys");
        Some(ExperimentError::Input(printable(&text)))
    }

    /// The change that made the section `name`, if the file does not have it.
    pub(crate) fn origin_of(&self, name: &str) -> String {
        let first = format!("{name}.");
        let made = self.overrides.iter().find(|item| item.starts_with(&first));
        made.map_or("the config".to_owned(), |item| format!("--set {item}"))
    }

    /// Key and value of an invalid setting, for errors.
    fn place(&self, section: &[&str], keys: &[String]) -> String {
        let mut place = format!("[{}]", section.join("."));
        if keys.is_empty() {
            return format!("{place} ");
        }
        place.push_str(&format!(" `{}", keys.join(".")));
        let names = section.iter().copied().chain(keys.iter().map(String::as_str));
        let mut value = None;
        let mut table = Some(&self.table);
        for name in names {
            value = table.and_then(|table| table.get(name));
            table = value.and_then(Value::as_table);
        }
        // Short tables are shown, too.
        match value.map(Value::to_string).filter(|shown| shown.len() <= 120) {
            Some(shown) => format!("{place} = {shown}`: "),
            None => format!("{place}`: "),
        }
    }
}

/// The origin of values that an override changed.
const SET: &str = "--set";
/// The setting that names the device.
const DEVICE: &str = "train.device";
/// Its value that stands for the best device of the machine.
const AUTO: &str = "auto";

/// Replaces values of `table` by those of `other`; tables within are merged.
fn merge(table: &mut Table, other: Table) {
    for (key, value) in other {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(table)), Value::Table(other)) => merge(table, other),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

/// The override that sets `key` to a text.
pub fn override_of(key: &str, text: &str) -> String {
    format!("{key}={}", Value::String(text.to_owned()))
}

/// The changes of `--set`, and that of `--device`.
pub fn with_device(set: &[String], device: Option<&str>) -> Vec<String> {
    set.iter().cloned().chain(device.map(|device| override_of(DEVICE, device))).collect()
}

/// An error of the TOML reader, which quotes lines of the text, without anything that a terminal would execute; with the key that was probably
/// meant.
fn shown(error: &toml::de::Error) -> String {
    let message = error.to_string();
    let shown = message.trim_end().lines().map(printable).collect::<Vec<_>>().join("\n");
    match suggest::key(&shown) {
        Some(key) => format!("{shown} (did you mean `{key}`?)"),
        None => shown,
    }
}

/// Deserializes the value at a path of keys and skips everything else, whose types are unknown.
struct At<'a, C> {
    path: &'a [&'a str],
    /// Keys below `path` that lead to the invalid value.
    broken: &'a RefCell<Vec<String>>,
    found: PhantomData<C>,
}

impl<'de, C: Deserialize<'de>> DeserializeSeed<'de> for At<'_, C> {
    type Value = Option<C>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<C>, D::Error> {
        match self.path.is_empty() {
            true => match serde_path_to_error::deserialize(deserializer) {
                Ok(found) => Ok(Some(found)),
                Err(error) => {
                    let keys = error.path().iter().filter_map(|segment| match segment {
                        Segment::Map { key } => Some(key.clone()),
                        Segment::Enum { variant } => Some(variant.clone()),
                        Segment::Seq { .. } | Segment::Unknown => None,
                    });
                    self.broken.replace(keys.collect());
                    Err(error.into_inner())
                }
            },
            false => deserializer.deserialize_map(self),
        }
    }
}

impl<'de, C: Deserialize<'de>> Visitor<'de> for At<'_, C> {
    type Value = Option<C>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a table")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Option<C>, M::Error> {
        let (first, rest) = self.path.split_first().expect("an empty path is read before");
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == *first {
                found = map.next_value_seed(At { path: rest, broken: self.broken, found: PhantomData })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Maximum depth of nested tables in a key: more than any setting has, and small enough for recursion.
const MAX_DEPTH: usize = 16;

/// Sets `a.b.c=value` in nested tables. A value that is not valid TOML becomes a string.
fn set(table: &mut Table, item: &str) -> Result<(), ExperimentError> {
    let wrong = || ExperimentError::Input(format!("--set must look like key=value, got `{item}`"));
    let (key, text) = item.split_once('=').ok_or_else(wrong)?;
    let mut names: Vec<&str> = key.split('.').map(str::trim).collect();
    let last = names.pop().filter(|name| !name.is_empty()).ok_or_else(wrong)?;
    if names.len() >= MAX_DEPTH {
        let depth = names.len() + 1;
        return Err(ExperimentError::Input(format!("a key of --set must have at most {MAX_DEPTH} parts, got {depth}")));
    }
    let mut place = table;
    for name in names {
        let next = place.entry(name).or_insert_with(|| Value::Table(Table::new()));
        place = next
            .as_table_mut()
            .ok_or_else(|| ExperimentError::Input(format!("--set {item}: `{name}` is no section")))?;
    }
    // One value and nothing behind it, neither a comment nor a second line.
    let parsed = toml::de::ValueDeserializer::parse(text.trim()).ok().and_then(|value| Value::deserialize(value).ok());
    let is_count = text.contains(['e', 'E']);
    let value = parsed.map(|value| if is_count { whole(value) } else { value });
    let value = value.unwrap_or_else(|| Value::String(text.to_owned()));
    place.insert(last.to_owned(), value);
    Ok(())
}

/// A count such as `1e6` as an integer, which settings of both types accept.
fn whole(value: Value) -> Value {
    /// Every integer up to this one is a number of 64 bits.
    const MOST: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Float(x) if x.fract() == 0.0 && x.abs() <= MOST => Value::Integer(x as i64),
        value => value,
    }
}

/// A count of an argument: `1000000`, `1_000_000` or `1e6`.
///
/// # Errors
/// The rule, if it is none.
pub fn count(text: &str) -> Result<u64, String> {
    let mut table = Table::new();
    let parsed = set(&mut table, &format!("count={text}")).ok().and_then(|()| table.remove("count")?.as_integer());
    let count = parsed.and_then(|count| u64::try_from(count).ok());
    count.ok_or_else(|| "must be a whole number, such as 1000000, 1_000_000 or 1e6".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Learner {
        gamma: f64,
        widths: Vec<u32>,
    }

    const TEXT: &str =
        "# a comment\n[train]\nseed = 1\n\n[learner]\ngamma = 0.9\nwidths = [\n  1,\n  [2][0],\n]\n[[more]]\nx = 1\n";

    #[test]
    fn a_section_is_read_alone_and_keeps_its_lines() {
        let text = TEXT.replace("  [2][0],\n", "  2,\n");
        let source = Source::parse(&text, "file", &[]).expect("it is TOML");
        assert_eq!(source.names().into_iter().collect::<Vec<_>>(), ["learner", "more", "train"]);
        assert_eq!(
            source.section::<Learner>("learner").expect("it is valid"),
            Learner { gamma: 0.9, widths: vec![1, 2] }
        );
        assert_eq!(source.section::<Learner>("absent").expect("there is a default"), Learner::default());
        let wrong = Source::parse(&text.replace("gamma", "gama"), "file", &[]).expect("it is TOML");
        let message = wrong.section::<Learner>("learner").expect_err("it is misspelled").to_string();
        assert!(message.contains("line 6") && message.contains("unknown field `gama`"), "{message}");
    }

    #[test]
    fn settings_for_a_profile_replace_others_and_overrides_replace_both() {
        let text = "[train]\nseed = 1\ndevice = \"cpu\"\n[learner]\ngamma = 0.9\nwidths = [1]\n\
            [when.cpu.learner]\ngamma = 0.5\n[when.t4.learner]\ngamma = 0.1\n";
        let learner = |overrides: &[&str]| {
            let overrides: Vec<String> = overrides.iter().map(|item| (*item).to_owned()).collect();
            let source = Source::parse(text, "file", &overrides)?;
            assert!(!source.has("when"));
            source.section::<Learner>("learner")
        };
        let of = |gamma: f64| Learner { gamma, widths: vec![1] };
        assert_eq!(learner(&[]).expect("it is valid"), of(0.5));
        assert_eq!(learner(&["train.device=t4"]).expect("it is valid"), of(0.1));
        assert_eq!(learner(&["train.device=v100"]).expect("it is valid"), of(0.9));
        assert_eq!(learner(&["learner.gamma=0.7"]).expect("it is valid"), of(0.7));
        let wrong = |text: &str| Source::parse(text, "file", &[]).expect_err("it is wrong").to_string();
        assert!(wrong("[when.t44]\n").contains("`when.t44` must name a profile, one of cpu, rtx-4060"));
        assert!(wrong("[when]\ncpu = 1\n").contains("`when.cpu` must be a table of sections"));
    }

    #[test]
    fn the_best_device_of_the_machine_is_written_down() {
        for overrides in [vec![], vec![override_of(DEVICE, AUTO)]] {
            let text = if overrides.is_empty() { "[train]\ndevice = \"auto\"\n" } else { "[train]\nseed = 1\n" };
            let source = Source::parse(text, "file", &overrides).expect("it is TOML");
            assert_eq!(source.table["train"]["device"].as_str(), Some(best_device().as_str()));
        }
    }

    #[test]
    fn keys_of_the_root_and_inline_tables_are_sections_too() {
        let source = Source::parse("learner = { gamma = 0.5 }\ntrain.seed = 1\n", "file", &[]).expect("it is TOML");
        assert_eq!(source.section::<Learner>("learner").expect("it is valid").gamma, 0.5);
    }

    #[test]
    fn whatever_toml_allows_before_a_section_does_not_hide_it() {
        for before in ["name = \"a\\\"[b\"", "text = \"\"\"\n[train\n\"\"\"", "[train]\nname = 'it''"] {
            let before = before.replace("'it''", "\"it's [\"");
            for header in ["[learner]", "[ learner ]", "[\"learner\"] # {"] {
                let text = format!("{before}\n{header}\ngamma = 0.5\n");
                let source = Source::parse(&text, "file", &[]).expect("it is TOML");
                let learner = source.section::<Learner>("learner").expect("it is valid");
                assert_eq!(learner.gamma, 0.5, "{text}");
            }
        }
    }

    #[test]
    fn no_line_of_a_file_commands_a_terminal() {
        for text in ["name = \"\u{1b}[31mred\"\n", "learner = 1 \u{9b}2J\n", "\u{feff}[learner]\ngama = \"\u{202e}\"\n"]
        {
            let read = Source::parse(text, "file", &[]).and_then(|source| source.section::<Learner>("learner"));
            let message = read.expect_err("it is wrong").to_string();
            let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!message.contains(obeyed), "{message:?}");
            assert!(message.contains("\\u{"), "it is shown as an escape: {message:?}");
        }
        // A byte order mark is no part of the text.
        let source = Source::parse("\u{feff}[learner]\ngamma = 0.5\n", "file", &[]).expect("it is TOML");
        assert_eq!(source.section::<Learner>("learner").expect("it is valid").gamma, 0.5);
    }

    #[test]
    fn changed_values_reach_nested_tables() {
        let source =
            Source::parse("[learner]\ngamma = 0.9\n", "file", &["learner.gamma=0.5".into()]).expect("it is valid");
        assert_eq!(source.section::<Learner>("learner").expect("it is valid").gamma, 0.5);
        let source = Source::parse("", "file", &["learner.gama=1".into()]).expect("it is TOML");
        let message = source.section::<Learner>("learner").expect_err("it is misspelled").to_string();
        assert!(message.contains("[learner] has no key `gama`. Did you mean `gamma`?"), "{message}");
        let message = Source::parse("", "file", &["learner.gamma".into()]).expect_err("there is no value").to_string();
        assert!(message.contains("must look like key=value"), "{message}");
    }

    #[test]
    fn nothing_behind_a_value_is_dropped() {
        for text in ["0.5\nwidths = [1]", "0.5 # half", "0.5, 0.6", "0.5]"] {
            let source = Source::parse("", "file", &[format!("learner.gamma={text}")]).expect("it is a setting");
            let message = source.section::<Learner>("learner").expect_err("it is no number").to_string();
            assert!(message.contains("gamma") && message.contains("expected f64"), "{message}");
        }
    }

    #[test]
    fn counts_are_written_in_several_ways() {
        for (text, expected) in [("1000000", 1_000_000), ("1_000_000", 1_000_000), ("1e6", 1_000_000), ("0", 0)] {
            assert_eq!(count(text), Ok(expected));
            let source = Source::parse("", "file", &["learner.widths=[1]".into(), format!("learner.gamma={text}")]);
            let learner = source.and_then(|source| source.section::<Learner>("learner")).expect("it is valid");
            assert_eq!(learner.gamma, expected as f64);
        }
        for wrong in ["", "1.5", "-1", "1e30", "five", "1 2"] {
            count(wrong).expect_err(wrong);
        }
    }
}
