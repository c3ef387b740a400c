//! Layering, file sizes, names, prose and links, checked by code instead of by review.

mod arrows;
mod links;
mod markdown;
mod masked;
mod messages;
mod prose;
mod source;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One violation of a rule.
#[derive(Debug, PartialEq)]
pub struct Finding {
    /// Path from the root, with forward slashes.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Short name of the rule.
    pub rule: &'static str,
    /// The problem and its solution.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.file, self.line, self.rule, self.message)
    }
}

/// Result of a check of the workspace.
pub struct Report {
    /// Number of files.
    pub n_files: usize,
    /// Violations, in order of path.
    pub findings: Vec<Finding>,
}

/// Folders without hand-written files.
const SKIPPED_FOLDERS: [&str; 5] = ["target", "runs", "data", "__pycache__", "node_modules"];
/// Extensions of text files.
const TEXT: [&str; 7] = ["rs", "toml", "md", "py", "sh", "yml", "yaml"];
/// The record of releases, which also names files of the past.
const RECORD: &str = "CHANGELOG.md";
/// Pages whose text is not checked, with the reason; their links are.
const NO_PROSE: [&str; 2] = [
    RECORD,
    // Spanish.
    "docs/tutorials/guia-rapida.md",
];
/// Files with a picture of the layers.
const PICTURES: [&str; 2] = ["docs/explanation/architecture.md", "crates/brasa/src/lib.rs"];
/// Pages whose text was not revised yet: rules for prose do not apply. Remove a page here when it is revised.
const UNREVISED: [&str; 0] = [];

/// Checks every manifest, source file and text of the workspace.
///
/// # Errors
/// If a file cannot be read.
pub fn check_workspace(root: &Path) -> io::Result<Report> {
    let mut paths = Vec::new();
    walk(root, &mut paths)?;
    paths.sort();
    let mut report = Report { n_files: paths.len(), findings: Vec::new() };
    let mut pages = BTreeMap::new();
    for path in paths {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        let text =
            fs::read_to_string(&path).map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
        report.findings.extend(check_text(&name, &text));
        // The tests of this program name files that do not exist.
        if !name.starts_with("xtask/") && name != RECORD {
            report.findings.extend(links::check_mentions(root, &name, &text));
        }
        if name.ends_with(".md") {
            pages.insert(name, markdown::parse(&text));
        }
    }
    report.findings.extend(links::check_links(root, &pages));
    for (name, page) in pages.iter().filter(|(name, _)| has_prose(name)) {
        report.findings.extend(prose::check_prose(name, page));
    }
    Ok(report)
}

/// Checks one file whose path from the root is `name`.
pub fn check_text(name: &str, text: &str) -> Vec<Finding> {
    let mut findings = source::trailing_spaces(name, text);
    if PICTURES.contains(&name) {
        findings.extend(arrows::check_picture(name, text));
    }
    if name.ends_with("/Cargo.toml") {
        findings.extend(arrows::check_manifest(name, text));
    } else if name.ends_with(".rs") {
        findings.extend(source::check_rust(name, text));
        findings.extend(messages::check_messages(name, text));
    }
    findings
}

/// Whether rules for prose apply to a page.
fn has_prose(name: &str) -> bool {
    !NO_PROSE.contains(&name) && !UNREVISED.contains(&name) && !links::GENERATED.contains(&name)
}

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        let skipped = name.starts_with('.') || name.starts_with("target-") || SKIPPED_FOLDERS.contains(&name.as_str());
        if kind.is_dir() && !skipped {
            walk(&entry.path(), paths)?;
        } else if kind.is_file() && name.rsplit_once('.').is_some_and(|(_, ending)| TEXT.contains(&ending)) {
            paths.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_file_line_and_rule() {
        let findings = check_text("crates/brasa-env/src/rng.rs", "//! Streams.\nfn stream() {} \n");
        let messages: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            ["crates/brasa-env/src/rng.rs:2: trailing-space: remove the spaces at the end of the line"]
        );
    }

    #[test]
    fn manifests_and_sources_meet_their_rules() {
        assert_eq!(check_text("crates/brasa-env/src/lib.rs", "fn main() {}\n")[0].rule, "module-doc");
        let manifest = "[package]\nname = \"brasa-env\"\n[dependencies]\nserde = \"1\"\n";
        assert_eq!(check_text("crates/brasa-env/Cargo.toml", manifest)[0].rule, "workspace-dependency");
        assert!(check_text("docs/reference/classic.md", "# Classic control\n").is_empty());
    }

    #[test]
    fn the_walk_skips_what_is_built() {
        let root = std::env::temp_dir().join(format!("brasa-tidy-{}", std::process::id()));
        for folder in ["crates/brasa-env/src", "target/debug", ".git"] {
            fs::create_dir_all(root.join(folder)).expect("the temporary folder is writable");
        }
        for file in ["crates/brasa-env/src/lib.rs", "target/debug/out.rs", ".git/hook.sh"] {
            fs::write(root.join(file), "fn main() {}\n").expect("the temporary folder is writable");
        }
        let report = check_workspace(&root).expect("every file can be read");
        fs::remove_dir_all(&root).expect("the temporary folder is ours");
        assert_eq!(report.n_files, 1);
        assert_eq!(report.findings.len(), 1);
    }
}
