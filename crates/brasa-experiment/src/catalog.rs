//! The experiments in a directory, read as far as a list needs it.

use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::experiment::{SCENARIO, TRAIN};

/// Levels of directories that are searched.
const DEPTH: usize = 2;

/// A config as a list shows it.
pub(crate) struct Listed {
    pub path: PathBuf,
    pub scenario: Option<String>,
    /// The other sections.
    pub sections: Vec<String>,
    pub total_env_steps: Option<i64>,
}

/// The configs below `folder`, in the order of their paths. Files that are no TOML are left out.
pub(crate) fn find(folder: &Path) -> Vec<Listed> {
    let mut paths = Vec::new();
    collect(folder, DEPTH, &mut paths);
    paths.sort();
    paths.into_iter().filter_map(listed).collect()
}

/// The TOML files of a folder and of those within.
pub(crate) fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.extension().is_some_and(|end| end == "toml") {
            found.push(path);
        } else if depth > 0 && path.is_dir() {
            collect(&path, depth - 1, found);
        }
    }
}

fn listed(path: PathBuf) -> Option<Listed> {
    let table: Table = toml::from_str(&fs::read_to_string(&path).ok()?).ok()?;
    let scenario = table.get(SCENARIO).and_then(Value::as_table).and_then(|table| table.keys().next().cloned());
    let sections = table.keys().filter(|name| *name != SCENARIO).cloned().collect();
    let total_env_steps = table.get(TRAIN).and_then(|train| train.get("total_env_steps")).and_then(Value::as_integer);
    Some(Listed { path, scenario, sections, total_env_steps })
}
