//! What a user probably meant.

use std::path::{Path, PathBuf};

use brasa_env::suggest::{is_similar, nearest};

use crate::catalog::collect;

/// The known key that was meant by the unknown one of an error of serde, such as "unknown field `lr`, expected one of `gamma`, `learning_rate`".
pub(crate) fn key(message: &str) -> Option<String> {
    let (_, rest) = message.rsplit_once("unknown field `").or_else(|| message.rsplit_once("unknown variant `"))?;
    let (unknown, rest) = rest.split_once('`')?;
    let known = rest.split('`').skip(1).step_by(2);
    nearest(unknown, known).map(str::to_owned)
}

/// The known name that `unknown` probably means, in brackets behind it in an error; empty without one.
pub(crate) fn in_brackets<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(unknown, known).map_or_else(String::new, |meant| format!(" (did you mean `{meant}`?)"))
}

/// The unknown key of an error of serde.
pub(crate) fn unknown_key(message: &str) -> Option<&str> {
    message.rsplit_once("unknown field `")?.1.split('`').next()
}

/// A hint for a config that cannot be read: configs of a similar name, or what the file is instead.
pub(crate) fn config(path: &Path) -> Option<String> {
    let end = path.extension().map(|end| end.to_string_lossy().to_lowercase());
    if path.is_file() && end.as_deref() != Some("toml") {
        return Some(
            "an experiment is a TOML file, such as those in `configs`; a building, a data set or a model is named in one".into(),
        );
    }
    if path.exists() {
        return None;
    }
    let wanted = path.file_stem()?.to_string_lossy().to_lowercase();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut found = Vec::new();
    for folder in folder.into_iter().chain([Path::new("configs")]) {
        collect(folder, 2, &mut found);
    }
    found.sort();
    found.dedup();
    let is_like = |path: &PathBuf| {
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().to_lowercase()).unwrap_or_default();
        stem.contains(&wanted) || is_similar(&stem, &wanted)
    };
    found.retain(is_like);
    found.truncate(5);
    let names: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
    (!names.is_empty()).then(|| format!("did you mean {}?", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_initials_parts_and_letters() {
        let meant = |unknown: &str| {
            let known = "`learning_rate`, `n_steps`, `batch_size`, `gamma`, `gae_lambda`, `n_epochs`";
            key(&format!("line 3\nunknown field `{unknown}`, expected one of {known}"))
        };
        for (unknown, known) in [
            ("lr", "learning_rate"),
            ("learning_rte", "learning_rate"),
            ("steps", "n_steps"),
            ("batch", "batch_size"),
            ("lambda", "gae_lambda"),
            ("gama", "gamma"),
            ("Epochs", "n_epochs"),
        ] {
            assert_eq!(meant(unknown).as_deref(), Some(known), "{unknown}");
        }
        assert_eq!(meant("zzz"), None);
        assert_eq!(key("invalid type: string \"x\", expected f64"), None);
    }

    #[test]
    fn configs_are_found_by_parts_of_their_names() {
        let folder = tempfile::tempdir().expect("there is room");
        let at = |name: &str| folder.path().join(name);
        for name in ["room-fast.toml", "room-slow.toml", "long-hall-fast.toml", "plan.json"] {
            std::fs::write(at(name), "").expect("there is room");
        }
        let hint = config(&at("room")).expect("there are two");
        assert!(hint.contains("room-fast.toml, ") && hint.contains("room-slow.toml?"), "{hint}");
        assert!(config(&at("longhall-fast.toml")).expect("there is one").contains("long-hall-fast.toml"));
        assert!(config(&at("plan.json")).expect("it is another file").contains("a TOML file"));
        assert_eq!(config(&at("long-hall-fast.toml")), None);
        assert_eq!(config(&at("xyz")), None);
    }
}
