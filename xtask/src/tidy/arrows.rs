//! Rules for manifests: crates depend only on lower layers, and versions are in one place.

use toml::de::{DeTable, DeValue};

use super::Finding;

/// Crates by level; a crate may depend on strictly lower levels only.
const LEVELS: [(u8, &[&str]); 9] = [
    (0, &["brasa-lp", "brasa-number"]),
    (1, &["brasa-env", "brasa-export", "brasa-device", "brasa-floorplan"]),
    (2, &["brasa-kernels", "brasa-power"]),
    (
        3,
        &[
            "brasa-core",
            "brasa-shards",
            "brasa-citylearn",
            "brasa-classic",
            "brasa-energy",
            "brasa-evacuation",
            "brasa-gym",
            "brasa-uara",
            TESTS,
        ],
    ),
    (4, &["brasa-buffers", "brasa-mpi", "brasa-nn"]),
    (5, &["brasa-dqn", "brasa-a2c", "brasa-ppo", "brasa-sac", "brasa-td3", "brasa-gat", "brasa-train"]),
    (6, &["brasa-experiment"]),
    (7, &["brasa", "brasa-bench-kit"]),
    (
        8,
        &[
            "brasa-cli",
            "brasa-py",
            "brasa-examples",
            "example-buffers",
            "example-device",
            "example-environment",
            "example-gat",
            "example-one-learner",
            "own-algorithm",
            "own-bench",
            "example-own-dqn",
            "example-own-ppo",
            "own-scenario",
            "serve-policy",
            "brasa-benches",
            "xtask",
        ],
    ),
];
/// Test helpers: a dev-dependency of any crate, a dependency of none.
const TESTS: &str = "brasa-test";
/// Packages that pictures of the layers may leave out.
const UNDRAWN: [&str; 3] = [TESTS, "brasa-examples", "brasa-benches"];
/// Crates whose tensor implementation may depend on [`CORE`] of their own level, and on [`KERNELS`].
const SCENARIOS: [&str; 6] =
    ["brasa-citylearn", "brasa-classic", "brasa-energy", "brasa-evacuation", "brasa-gym", "brasa-uara"];
/// The crates that the tensor implementation of a scenario uses.
const CORE: &str = "brasa-core";
const KERNELS: &str = "brasa-kernels";
/// The feature of the tensor implementation of a scenario.
const TENSOR: &str = "tensor";

/// One dependency of a manifest.
struct Dependency<'a> {
    package: &'a str,
    line: usize,
    dev: bool,
    from_workspace: bool,
    optional: bool,
}

/// Checks one `Cargo.toml` of a member of the workspace.
pub fn check_manifest(name: &str, text: &str) -> Vec<Finding> {
    let line_at = |offset: usize| text[..offset].matches('\n').count() + 1;
    let finding = |line, rule, message| Finding { file: name.to_owned(), line, rule, message };
    let document = match DeTable::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let line = error.span().map_or(1, |span| line_at(span.start));
            return vec![finding(line, "manifest", error.message().to_owned())];
        }
    };
    let manifest = document.get_ref();
    // The root of another workspace is no member of this one.
    if manifest.contains_key("workspace") {
        return Vec::new();
    }
    let Some(owner) = table(manifest, "package").and_then(|package| string(package, "name")) else {
        return vec![finding(1, "manifest", "a member needs a `package.name`".into())];
    };
    let Some(level) = level(owner) else {
        return vec![finding(1, "layer", format!("`{owner}` has no level: give it one in xtask/src/tidy/arrows.rs"))];
    };
    let mut findings = Vec::new();
    for dependency in dependencies(manifest, &line_at) {
        if !dependency.from_workspace {
            let message = format!("`{}` must be `workspace = true`: versions stand at the root", dependency.package);
            findings.push(finding(dependency.line, "workspace-dependency", message));
        }
        if let Some(message) = forbidden(owner, level, &dependency, manifest) {
            findings.push(finding(dependency.line, "layer", message));
        }
    }
    findings.sort_by_key(|finding| finding.line);
    findings
}

/// Checks a picture of the layers: lines such as `L0  brasa-number   brasa-lp`, which have every library at its level.
pub fn check_picture(name: &str, text: &str) -> Vec<Finding> {
    let mut drawn: Vec<(u8, &str, usize)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut words = line.trim_start_matches("//!").split_whitespace();
        let level = words.next().and_then(|word| word.strip_prefix('L')).and_then(|level| level.parse().ok());
        let Some(level) = level else { continue };
        drawn.extend(words.filter(|word| word.starts_with("brasa")).map(|package| (level, package, index + 1)));
    }
    let finding = |line, message| Finding { file: name.to_owned(), line, rule: "layer", message };
    let wrong = drawn.iter().filter(|(drawn, package, _)| level(package) != Some(*drawn));
    let wrong = wrong.map(|(drawn, package, line)| finding(*line, format!("`{package}` is not at level {drawn}")));
    let libraries = LEVELS.iter().flat_map(|(_, packages)| packages.iter());
    let libraries = libraries.filter(|package| package.starts_with("brasa") && !UNDRAWN.contains(package));
    let missing = libraries.filter(|library| !drawn.iter().any(|(_, package, _)| package == *library));
    let missing = missing.map(|library| finding(1, format!("the picture of the layers lacks `{library}`")));
    wrong.chain(missing).collect()
}

/// The reason why `owner` must not depend on `dependency`, if any.
fn forbidden(owner: &str, owner_level: u8, dependency: &Dependency, manifest: &DeTable) -> Option<String> {
    let package = dependency.package;
    if package == "burn" && !dependency.dev {
        return match owner {
            "brasa-env" => Some("environments know no Burn".into()),
            "brasa-floorplan" => Some("floor plans know no Burn".into()),
            _ if SCENARIOS.contains(&owner) && !behind_tensor(dependency, manifest) => {
                Some(format!("a scenario knows Burn only as an optional dependency behind its feature `{TENSOR}`"))
            }
            _ => None,
        };
    }
    if package != "xtask" && package != "brasa" && !package.starts_with("brasa-") {
        return None;
    }
    if package == TESTS {
        return (!dependency.dev).then(|| format!("`{TESTS}` is a dev-dependency only"));
    }
    let Some(level) = level(package) else {
        return Some(format!("`{package}` has no level: give it one in xtask/src/tidy/arrows.rs"));
    };
    if SCENARIOS.contains(&owner) && [CORE, KERNELS].contains(&package) {
        return (!behind_tensor(dependency, manifest)).then(|| {
            format!("a scenario reaches `{package}` only as an optional dependency behind its feature `{TENSOR}`")
        });
    }
    if level < owner_level {
        return None;
    }
    let direction = if level == owner_level { "sideways" } else { "up" };
    Some(format!("`{owner}` (level {owner_level}) points {direction} to `{package}` (level {level})"))
}

/// Whether only the feature `tensor` enables the optional dependency.
fn behind_tensor(dependency: &Dependency, manifest: &DeTable) -> bool {
    let package = dependency.package;
    let names = |value: &DeValue| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|v| v.get_ref().as_str().map(str::to_owned)).collect()
    };
    let turns_on = |item: &str| {
        let item = item.strip_prefix("dep:").unwrap_or(item);
        item == package || item.strip_prefix(package).is_some_and(|rest| rest.starts_with('/'))
    };
    let features = table(manifest, "features");
    let on: Vec<&str> = features
        .into_iter()
        .flatten()
        .filter(|(_, value)| names(value.get_ref()).iter().any(|item| turns_on(item)))
        .map(|(feature, _)| feature.get_ref().as_ref())
        .collect();
    dependency.optional && on == [TENSOR]
}

fn level(package: &str) -> Option<u8> {
    LEVELS.iter().find(|(_, packages)| packages.contains(&package)).map(|(level, _)| *level)
}

/// Dependencies of the manifest and of its `[target]` tables.
fn dependencies<'a>(manifest: &'a DeTable<'a>, line_at: &impl Fn(usize) -> usize) -> Vec<Dependency<'a>> {
    let targets = table(manifest, "target").into_iter().flatten().filter_map(|(_, target)| as_table(target.get_ref()));
    let mut found = Vec::new();
    for place in std::iter::once(manifest).chain(targets) {
        for (kind, dev) in [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)] {
            for (key, value) in table(place, kind).into_iter().flatten() {
                let settings = as_table(value.get_ref());
                let is_true =
                    |name: &str| settings.and_then(|settings| settings.get(name)?.get_ref().as_bool()).unwrap_or(false);
                found.push(Dependency {
                    package: settings.and_then(|settings| string(settings, "package")).unwrap_or(key.get_ref()),
                    line: line_at(key.span().start),
                    dev,
                    from_workspace: is_true("workspace"),
                    optional: is_true("optional"),
                });
            }
        }
    }
    found
}

fn as_table<'a>(value: &'a DeValue<'a>) -> Option<&'a DeTable<'a>> {
    match value {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

fn table<'a>(parent: &'a DeTable<'a>, name: &str) -> Option<&'a DeTable<'a>> {
    as_table(parent.get(name)?.get_ref())
}

fn string<'a>(parent: &'a DeTable<'a>, name: &str) -> Option<&'a str> {
    parent.get(name)?.get_ref().as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Findings of a manifest of `owner`, as (line, rule, message).
    fn check(owner: &str, rest: &str) -> Vec<(usize, &'static str, String)> {
        let text = format!("[package]\nname = \"{owner}\"\n{rest}");
        let findings = check_manifest(&format!("crates/{owner}/Cargo.toml"), &text);
        findings.into_iter().map(|finding| (finding.line, finding.rule, finding.message)).collect()
    }

    fn only_message(owner: &str, rest: &str) -> String {
        let mut findings = check(owner, rest);
        assert_eq!(findings.len(), 1, "{owner}: {rest}: {findings:?}");
        findings.remove(0).2
    }

    #[test]
    fn a_picture_has_every_library_at_its_level() {
        let drawn = |line: &(u8, &[&str])| format!("//! L{}  {}\n", line.0, line.1.join("   "));
        let picture: String = LEVELS.iter().map(drawn).collect();
        assert_eq!(check_picture("lib.rs", &picture), []);
        let other = picture.replace("brasa-lp   ", "").replace("L1  brasa-env", "L1  brasa-nn   brasa-env");
        let messages: Vec<String> =
            check_picture("lib.rs", &other).into_iter().map(|finding| finding.message).collect();
        assert_eq!(messages, ["`brasa-nn` is not at level 1", "the picture of the layers lacks `brasa-lp`"]);
    }

    #[test]
    fn arrows_may_point_down() {
        for (owner, lower) in [
            ("brasa-core", "brasa-env"),
            ("brasa-buffers", "brasa-device"),
            ("brasa-train", "brasa-nn"),
            ("brasa-evacuation", "brasa-floorplan"),
            ("brasa", "brasa-energy"),
            ("brasa-cli", "brasa"),
            ("brasa-benches", "brasa-buffers"),
        ] {
            assert_eq!(check(owner, &format!("[dependencies]\n{lower}.workspace = true\n")), [], "{owner} to {lower}");
        }
    }

    #[test]
    fn arrows_may_not_point_up_or_sideways() {
        for (owner, other, words) in [
            ("brasa-env", "brasa-core", "`brasa-env` (level 1) points up to `brasa-core` (level 3)"),
            ("brasa-env", "brasa-device", "`brasa-env` (level 1) points sideways to `brasa-device` (level 1)"),
            ("brasa-floorplan", "brasa-env", "`brasa-floorplan` (level 1) points sideways to `brasa-env` (level 1)"),
            ("brasa-sac", "brasa-ppo", "`brasa-sac` (level 5) points sideways to `brasa-ppo` (level 5)"),
            ("brasa-nn", "brasa-train", "`brasa-nn` (level 4) points up to `brasa-train` (level 5)"),
            ("brasa-energy", "brasa-uara", "`brasa-energy` (level 3) points sideways to `brasa-uara` (level 3)"),
            ("brasa-kernels", "brasa-core", "`brasa-kernels` (level 2) points up to `brasa-core` (level 3)"),
        ] {
            for kind in ["dependencies", "build-dependencies", "dev-dependencies", "target.'cfg(unix)'.dependencies"] {
                assert_eq!(only_message(owner, &format!("[{kind}]\n{other}.workspace = true\n")), words, "{kind}");
            }
        }
    }

    #[test]
    fn a_renamed_crate_is_known_by_its_package() {
        let rest = "[dependencies.steps]\nworkspace = true\npackage = \"brasa-train\"\n";
        assert_eq!(only_message("brasa-nn", rest), "`brasa-nn` (level 4) points up to `brasa-train` (level 5)");
    }

    #[test]
    fn shared_tests_are_a_dev_dependency_of_anything() {
        for owner in ["brasa-env", "brasa-core", "brasa"] {
            assert_eq!(check(owner, "[dev-dependencies]\nbrasa-test.workspace = true\n"), []);
            let message = only_message(owner, "[dependencies]\nbrasa-test.workspace = true\n");
            assert_eq!(message, "`brasa-test` is a dev-dependency only");
        }
    }

    #[test]
    fn scenarios_reach_tensors_behind_a_feature_only() {
        let optional = |features: &str| {
            format!("[dependencies]\nbrasa-core = {{ workspace = true, optional = true }}\n[features]\n{features}\n")
        };
        assert_eq!(check("brasa-energy", &optional("tensor = [\"dep:brasa-core\"]")), []);
        for broken in [
            optional("default = [\"dep:brasa-core\"]"),
            optional("tensor = [\"dep:brasa-core\"]\nfast = [\"brasa-core/fast\"]"),
            optional(""),
            "[dependencies]\nbrasa-core.workspace = true\n[features]\ntensor = [\"brasa-core/x\"]\n".to_owned(),
        ] {
            assert!(only_message("brasa-energy", &broken).contains("behind its feature `tensor`"), "{broken}");
        }
        let kernels = "[dependencies]\nbrasa-kernels.workspace = true\n";
        assert!(only_message("brasa-energy", kernels).contains("behind its feature `tensor`"));
        // No lower crate may reach it, behind any feature.
        assert!(only_message("brasa-kernels", &optional("tensor = [\"dep:brasa-core\"]")).contains("points up"));
    }

    #[test]
    fn environments_know_no_burn() {
        let burn = "[dependencies]\nburn.workspace = true\n";
        assert_eq!(only_message("brasa-env", burn), "environments know no Burn");
        assert_eq!(only_message("brasa-floorplan", burn), "floor plans know no Burn");
        assert!(only_message("brasa-uara", burn).contains("knows Burn only as an optional dependency"));
        assert_eq!(check("brasa-core", burn), []);
    }

    #[test]
    fn versions_stand_at_the_root() {
        for broken in ["serde = \"1.0\"", "serde = { version = \"1.0\" }", "serde = { workspace = false }"] {
            let findings = check("brasa-env", &format!("[dependencies]\n{broken}\n"));
            assert_eq!((findings[0].0, findings[0].1), (4, "workspace-dependency"), "{broken}");
        }
        assert_eq!(check("brasa-env", "[dependencies]\nserde = { workspace = true, features = [\"rc\"] }\n"), []);
    }

    #[test]
    fn a_crate_needs_a_level() {
        assert!(only_message("brasa-novel", "").contains("`brasa-novel` has no level"));
        let findings = only_message("brasa-cli", "[dependencies]\nbrasa-novel.workspace = true\n");
        assert!(findings.contains("`brasa-novel` has no level"));
    }

    #[test]
    fn a_broken_manifest_is_a_finding() {
        assert_eq!(check_manifest("xtask/x/Cargo.toml", "[package]\nname = \"other\"\n[workspace]\n"), []);
        assert_eq!(check("brasa-env", "[dependencies\n")[0].1, "manifest");
        assert_eq!(check_manifest("crates/x/Cargo.toml", "[dependencies]\n")[0].rule, "manifest");
    }
}
