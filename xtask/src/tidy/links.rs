//! Rules for links: what a page names exists, and every page of the documentation can be reached.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Finding;
use super::markdown::Page;

/// The first page of a reader.
const START: &str = "README.md";
/// The table of contents of the book.
const SUMMARY: &str = "docs/SUMMARY.md";
/// Number of links from [`START`] to a page.
const MAX_CLICKS: usize = 2;
/// Parts of the repository whose files pages name.
const PARTS: [&str; 7] = ["docs/", "configs/", "crates/", "examples/", "scripts/", "benches/", "xtask/"];
/// Endings of the names of files that are checked.
const ENDINGS: [&str; 8] = [".md", ".webp", ".toml", ".rs", ".py", ".sh", ".csv", ".js"];
/// Pages that a program writes from the source: they may be missing in a checkout.
pub const GENERATED: [&str; 2] = ["docs/reference/commands.md", "docs/reference/settings.md"];

/// Checks the links of all pages, by path from the root.
pub fn check_links(root: &Path, pages: &BTreeMap<String, Page>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, page) in pages {
        for link in &page.links {
            if let Some(message) = broken(root, name, &link.target, pages) {
                findings.push(Finding { file: name.clone(), line: link.line, rule: "link", message });
            }
        }
    }
    if pages.contains_key(START) {
        findings.extend(unreached(pages));
    }
    findings
}

/// Checks that every path in a text names a file: of the documentation in any text, and of every part in a page.
pub fn check_mentions(root: &Path, name: &str, text: &str) -> Vec<Finding> {
    let parts = if name.ends_with(".md") { &PARTS[..] } else { &PARTS[..1] };
    let mut findings = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let paths = parts.iter().flat_map(|part| mentions(line, part));
        for path in paths.filter(|path| !GENERATED.contains(path) && !root.join(path).exists()) {
            let message = format!("there is no file `{path}`");
            findings.push(Finding { file: name.to_owned(), line: at + 1, rule: "link", message });
        }
    }
    findings
}

/// Paths of files in `part` in a line. A name in capitals stands for any name.
fn mentions<'a>(line: &'a str, part: &'static str) -> impl Iterator<Item = &'a str> {
    line.match_indices(part).filter_map(|(at, _)| {
        let rest = &line[at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"/._-*{[".contains(c)).unwrap_or(rest.len());
        let path = rest[..end].trim_end_matches('.');
        let from_root = !line[..at].ends_with(|c: char| c.is_alphanumeric() || "/-_.".contains(c));
        let stem = path.rsplit('/').next()?.split('.').next()?;
        let is_pattern = path.contains(['*', '{', '[']) || stem.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        (from_root && !is_pattern && ENDINGS.iter().any(|ending| path.ends_with(ending))).then_some(path)
    })
}

/// The reason why a target leads nowhere, if it does.
fn broken(root: &Path, name: &str, target: &str, pages: &BTreeMap<String, Page>) -> Option<String> {
    if is_address(target) {
        return None;
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let path = resolve(name, path);
    if GENERATED.contains(&path.as_str()) {
        return None;
    }
    if !root.join(&path).exists() && !pages.contains_key(&path) {
        return Some(format!("there is no file `{path}`"));
    }
    let anchor =
        anchor.filter(|anchor| pages.get(&path).is_some_and(|page| !page.anchors.iter().any(|a| a == anchor)))?;
    Some(format!("`{path}` has no heading `#{anchor}`"))
}

/// Pages of the documentation that are too far from the first page, or not in the table of contents.
fn unreached(pages: &BTreeMap<String, Page>) -> Vec<Finding> {
    let linked = |name: &str| -> BTreeSet<String> {
        let links = pages.get(name).into_iter().flat_map(|page| &page.links);
        let paths = links.filter(|link| !is_address(&link.target));
        paths.map(|link| resolve(name, link.target.split('#').next().unwrap_or_default())).collect()
    };
    let mut reached = BTreeSet::from([START.to_owned()]);
    for _ in 0..MAX_CLICKS {
        let next: Vec<String> = reached.iter().flat_map(|name| linked(name)).collect();
        reached.extend(next);
    }
    let listed = linked(SUMMARY);
    let finding = |name: &String, message: String| Finding { file: name.clone(), line: 1, rule: "reach", message };
    let documentation = pages.keys().filter(|name| name.starts_with("docs/") && *name != SUMMARY);
    let mut findings = Vec::new();
    for name in documentation {
        if !reached.contains(name) {
            findings.push(finding(name, format!("more than {MAX_CLICKS} links from {START}")));
        }
        if !listed.contains(name) {
            findings.push(finding(name, format!("missing in {SUMMARY}")));
        }
    }
    findings
}

fn is_address(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// The path from the root of a path in the page `name`.
fn resolve(name: &str, path: &str) -> String {
    if path.is_empty() {
        return name.to_owned();
    }
    let mut parts: Vec<&str> = name.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::markdown::parse;
    use super::*;

    fn findings(pages: &[(&str, &str)]) -> Vec<(String, usize, &'static str)> {
        let pages = pages.iter().map(|(name, text)| ((*name).to_owned(), parse(text))).collect();
        let found = check_links(Path::new("/nowhere"), &pages);
        found.into_iter().map(|finding| (finding.file, finding.line, finding.rule)).collect()
    }

    #[test]
    fn a_link_needs_a_file_and_a_heading() {
        let page = "docs/a/x.md";
        let check = |text: &str| findings(&[(page, text), ("docs/b/y.md", "# Two words\n")]);
        for fine in ["[y](../b/y.md)", "[y](../b/y.md#two-words)", "[z](https://burn.dev#x)", "# Me\n[me](#me)"] {
            assert_eq!(check(fine), [], "{fine}");
        }
        for broken in ["[y](y.md)", "[y](../b/y.md#words)", "![y](y.webp)", "[me](#me)"] {
            assert_eq!(check(broken), [(page.to_owned(), 1, "link")], "{broken}");
        }
    }

    #[test]
    fn every_page_is_near_the_first_one_and_in_the_contents() {
        let summary = (SUMMARY, "[a](a.md) [b](b.md) [c](c.md)");
        let [a, b] = [("docs/a.md", "[b](b.md)"), ("docs/b.md", "[c](c.md)")];
        assert_eq!(findings(&[(START, "[a](docs/a.md)"), summary, a, b]).len(), 2, "c is missing, and is linked twice");
        let all = [(START, "[a](docs/a.md)"), summary, a, b, ("docs/c.md", "")];
        assert_eq!(findings(&all), [("docs/c.md".to_owned(), 1, "reach")]);
        let listed = [(START, "[a](docs/a.md)"), (SUMMARY, ""), ("docs/a.md", "")];
        assert_eq!(findings(&listed), [("docs/a.md".to_owned(), 1, "reach")]);
    }

    #[test]
    fn texts_name_files_that_exist() {
        let check = |name, line| check_mentions(Path::new("/nowhere"), name, line).len();
        assert_eq!(check("a.rs", "// See `docs/x.md`, docs/images/y.webp and configs/z.toml."), 2);
        assert_eq!(check("docs/a.md", "brasa train configs/z.toml; `crates/brasa/src/a.rs`"), 2);
        for fine in [
            "https://example.org/docs/x.md",
            "docs/reference/commands.md",
            "docs/x.rst",
            "configs/NAME.toml",
            "scripts/record_*.py",
        ] {
            assert_eq!(check("docs/a.md", fine), 0, "{fine}");
        }
    }
}
