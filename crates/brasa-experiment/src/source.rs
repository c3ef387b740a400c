//! The text of an experiment: which sections it has, and each of them by itself.
//!
//! Sections are told apart by whoever registered them, so a section is read alone, with the errors of its own type. A file that
//! was not changed keeps its lines: an error points at them.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::ExperimentError;

/// An experiment before anybody knows what its sections mean.
#[derive(Debug, Clone)]
pub struct Source {
    /// Where it came from, for errors.
    origin: String,
    /// As written; `None` once a value was changed, because lines mean nothing any more.
    text: Option<String>,
    table: Table,
}

impl Source {
    /// The experiment in `text`, which came from `origin`, with some values changed, as in `learner.gamma=0.95`.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] for a text that is no TOML or a change that cannot be made.
    pub fn parse(text: &str, origin: &str, overrides: &[String]) -> Result<Self, ExperimentError> {
        let table: Table = toml::from_str(text)
            .map_err(|error| ExperimentError::Input(format!("{origin}: {}", error.to_string().trim_end())))?;
        let mut source = Self { origin: origin.to_owned(), text: Some(text.to_owned()), table };
        for item in overrides {
            set(&mut source.table, item)?;
            source.text = None;
            source.origin = "--set".to_owned();
        }
        Ok(source)
    }

    /// Names of the sections.
    pub fn names(&self) -> BTreeSet<&str> {
        self.table.keys().map(String::as_str).collect()
    }

    /// Whether there is a section of this name.
    pub fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// Names inside a section.
    pub fn names_in(&self, section: &str) -> Vec<&str> {
        let table = self.table.get(section).and_then(Value::as_table);
        table.map(|table| table.keys().map(String::as_str).collect()).unwrap_or_default()
    }

    /// The section `name`, or the default where there is none.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] for an unknown field or a wrong value.
    pub fn section<C: DeserializeOwned + Default>(&self, name: &str) -> Result<C, ExperimentError> {
        let Some(value) = self.table.get(name) else { return Ok(C::default()) };
        match &self.text {
            Some(text) => {
                let alone: BTreeMap<String, C> =
                    toml::from_str(&only(text, name)).map_err(|error| self.wrong(error))?;
                Ok(alone.into_values().next().unwrap_or_default())
            }
            None => value.clone().try_into().map_err(|error: toml::de::Error| self.wrong_in(name, error)),
        }
    }

    /// The part `name` of the section `section`, which is there.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] for an unknown field or a wrong value.
    pub fn part<C: DeserializeOwned>(&self, section: &str, name: &str) -> Result<C, ExperimentError> {
        let missing = || ExperimentError::Input(format!("{}: no [{section}.{name}]", self.origin));
        match &self.text {
            Some(text) => {
                let mut alone: BTreeMap<String, BTreeMap<String, C>> =
                    toml::from_str(&only(text, section)).map_err(|error| self.wrong(error))?;
                alone.remove(section).and_then(|mut parts| parts.remove(name)).ok_or_else(missing)
            }
            None => {
                let value = self.table.get(section).and_then(|table| table.get(name)).cloned().ok_or_else(missing)?;
                value.try_into().map_err(|error: toml::de::Error| self.wrong_in(&format!("{section}.{name}"), error))
            }
        }
    }

    fn wrong(&self, error: toml::de::Error) -> ExperimentError {
        ExperimentError::Input(format!("{}: {}", self.origin, error.to_string().trim_end()))
    }

    fn wrong_in(&self, section: &str, error: toml::de::Error) -> ExperimentError {
        ExperimentError::Input(format!("{}: [{section}] {}", self.origin, error.to_string().trim_end()))
    }
}

/// `text` with nothing but the section `name`, on the lines where it was.
fn only(text: &str, name: &str) -> String {
    // Before the first header stand keys of the root: `train.seed = 1`.
    let (mut in_header, mut kept) = (None, String::with_capacity(text.len()));
    let mut table_or_lines = 0usize;
    for line in text.lines() {
        let start = line.trim_start();
        // A value over several lines may begin one with a bracket: only at depth 0 it is a header.
        if table_or_lines == 0 && start.starts_with('[') {
            let path = start.trim_start_matches('[');
            in_header = Some(first_key(path) == name);
        } else {
            table_or_lines = depth_after(start, table_or_lines);
        }
        let keep =
            in_header.unwrap_or_else(|| table_or_lines > 0 || start.starts_with('#') || first_key(start) == name);
        if keep {
            kept.push_str(line);
        }
        kept.push('\n');
    }
    kept
}

/// The first of dotted keys.
fn first_key(path: &str) -> &str {
    let end = path.find(['.', ']', '=', ' ', '\t']).unwrap_or(path.len());
    path[..end].trim_matches(['"', '\''])
}

/// Open brackets and braces at the end of a line; strings and comments do not count.
fn depth_after(line: &str, mut depth: usize) -> usize {
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '#') => break,
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
    }
    depth
}

/// Sets `a.b.c=value` in nested tables; a value that is no TOML is a string.
fn set(table: &mut Table, item: &str) -> Result<(), ExperimentError> {
    let wrong = || ExperimentError::Input(format!("--set must look like key=value, got `{item}`"));
    let (key, text) = item.split_once('=').ok_or_else(wrong)?;
    let mut names: Vec<&str> = key.split('.').map(str::trim).collect();
    let last = names.pop().filter(|name| !name.is_empty()).ok_or_else(wrong)?;
    let mut place = table;
    for name in names {
        let next = place.entry(name).or_insert_with(|| Value::Table(Table::new()));
        place = next
            .as_table_mut()
            .ok_or_else(|| ExperimentError::Input(format!("--set {item}: `{name}` is no section")))?;
    }
    let parsed = toml::from_str::<Table>(&format!("value = {text}")).ok().and_then(|mut t| t.remove("value"));
    place.insert(last.to_owned(), parsed.unwrap_or_else(|| Value::String(text.to_owned())));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

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
    fn keys_of_the_root_and_inline_tables_are_sections_too() {
        let source = Source::parse("learner = { gamma = 0.5 }\ntrain.seed = 1\n", "file", &[]).expect("it is TOML");
        assert_eq!(source.section::<Learner>("learner").expect("it is valid").gamma, 0.5);
    }

    #[test]
    fn changed_values_reach_nested_tables() {
        let source =
            Source::parse("[learner]\ngamma = 0.9\n", "file", &["learner.gamma=0.5".into()]).expect("it is valid");
        assert_eq!(source.section::<Learner>("learner").expect("it is valid").gamma, 0.5);
        let source = Source::parse("", "file", &["learner.gama=1".into()]).expect("it is TOML");
        let message = source.section::<Learner>("learner").expect_err("it is misspelled").to_string();
        assert!(message.contains("[learner]") && message.contains("unknown field `gama`"), "{message}");
        let message = Source::parse("", "file", &["learner.gamma".into()]).expect_err("there is no value").to_string();
        assert!(message.contains("must look like key=value"), "{message}");
    }
}
