//! The files from which a scenario was made: a run keeps their digests, and reports those with another content.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use brasa_env::{Scenario, fingerprint_bytes};
use brasa_train::RunDir;
use serde::{Deserialize, Serialize};

use crate::ExperimentError;

/// The file of a run with the digests.
const FILE: &str = "files.json";

/// Digests of files in hexadecimal digits, by the path in the experiment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Digests(BTreeMap<PathBuf, String>);

impl Digests {
    /// Of the files of `scenario` as they are now. A file that cannot be read has an empty digest.
    fn now(scenario: &dyn Scenario) -> Self {
        let digest_of = |path: &Path| digest(path).map_or_else(|_| String::new(), |digest| format!("{digest:016x}"));
        Self(scenario.files().into_iter().map(|path| (path.clone(), digest_of(&path))).collect())
    }

    fn read(run_dir: &RunDir) -> Self {
        let text = std::fs::read_to_string(run_dir.file(FILE)).ok();
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// The files of `scenario` whose content differs from the one with which the run was trained.
    pub(crate) fn changed(run_dir: &RunDir, scenario: &dyn Scenario) -> Vec<PathBuf> {
        let (before, now) = (Self::read(run_dir), Self::now(scenario));
        let differs = |(path, digest): &(PathBuf, String)| before.0.get(path).is_some_and(|known| known != digest);
        now.0.into_iter().filter(differs).map(|(path, _)| path).collect()
    }

    /// Refuses to continue a run with other content.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] naming the first file that has changed.
    pub(crate) fn check(run_dir: &RunDir, scenario: &dyn Scenario) -> Result<(), ExperimentError> {
        match Self::changed(run_dir, scenario).first() {
            Some(path) => Err(ExperimentError::Input(format!(
                "{} differs from the file with which the run began: restore it, or start a new run with --init-from {}",
                path.display(),
                run_dir.path().display()
            ))),
            None => Ok(()),
        }
    }

    /// Writes the digests of a run that begins, or adds those of files that a resumed run reads for the first time.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn record(run_dir: &RunDir, scenario: &dyn Scenario) -> Result<(), ExperimentError> {
        let mut all = Self::read(run_dir);
        all.0.extend(Self::now(scenario).0);
        if all.0.is_empty() {
            return Ok(());
        }
        let text = serde_json::to_string(&all).map_err(|error| ExperimentError::Failed(error.to_string()))?;
        Ok(run_dir.write(FILE, text.as_bytes())?)
    }
}

/// The fingerprint of a file, or of all files in a folder with their names.
fn digest(path: &Path) -> io::Result<u64> {
    if !path.is_dir() {
        return Ok(fingerprint_bytes(std::fs::read(path)?));
    }
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    entries.sort();
    let mut all = Vec::new();
    for entry in entries.into_iter().filter(|entry| entry.is_dir() || entry.is_file()) {
        all.extend(entry.file_name().unwrap_or_default().as_encoded_bytes());
        all.extend(digest(&entry)?.to_le_bytes());
    }
    Ok(fingerprint_bytes(all))
}

/// A sentence for notes; `None` if no file has changed.
pub(crate) fn about_changed(changed: &[PathBuf]) -> Option<String> {
    let names: Vec<String> = changed.iter().map(|path| path.display().to_string()).collect();
    match &names[..] {
        [] => None,
        [one] => Some(format!("Another content than in training: {one}.")),
        several => Some(format!("Other contents than in training: {}.", several.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_of_contents_and_names() {
        let folder = tempfile::tempdir().expect("there is room");
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("deeper")).expect("there is room");
        let write = |name: &str, text: &str| std::fs::write(at(name), text).expect("there is room");
        write("a.csv", "1");
        write("deeper/b.csv", "2");
        let all = || digest(folder.path()).expect("it can be read");
        let before = all();
        assert_eq!(before, all());
        write("deeper/b.csv", "3");
        assert_ne!(before, all());
        write("deeper/b.csv", "2");
        assert_eq!(before, all());
        std::fs::rename(at("a.csv"), at("c.csv")).expect("there is room");
        assert_ne!(before, all());
        digest(&at("none")).expect_err("there is no such file");
    }
}
