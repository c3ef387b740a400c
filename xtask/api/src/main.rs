//! The public interface of every library as text, so that a change of it is seen in a review: `cargo api` compares, `cargo api --write` writes.
//!
//! rustdoc writes an interface as JSON in a format of the compiler's version, and only with unstable options. Therefore this program stands in for
//! rustdoc: it starts the real one with these options, and nothing else is built with unstable features.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::{env, fs, io};

/// The directory of the texts.
const DIRECTORY: &str = "docs/api";
/// Set where this program stands in for rustdoc.
const AS_RUSTDOC: &str = "BRASA_AS_RUSTDOC";
/// Crates that are not published.
const PRIVATE: [&str; 4] = ["_brasa", "brasa_benches", "brasa_examples", "brasa_test"];
/// The features of the interface: all that need no library of other languages.
const FEATURES: &str = "brasa-cli/cuda,brasa-py/unified";

fn main() -> ExitCode {
    if env::var_os(AS_RUSTDOC).is_some() {
        return if rustdoc().is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let arguments: Vec<String> = env::args().skip(1).collect();
    let writes = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--write"] => true,
        _ => {
            eprintln!("usage: cargo api [--write]");
            return ExitCode::from(2);
        }
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."));
    match check(root, writes) {
        Ok(n) => {
            println!("api: {n} libraries as in {DIRECTORY}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("api: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Starts rustdoc with the arguments of this program.
fn rustdoc() -> io::Result<ExitStatus> {
    let mut rustdoc = Command::new("rustdoc");
    rustdoc.args(env::args_os().skip(1)).env("RUSTC_BOOTSTRAP", "1");
    rustdoc.args(["-Z", "unstable-options", "--output-format", "json"]).status()
}

/// Compares the interface of every library in `root` with its text, or writes the texts.
///
/// # Errors
/// The names of the libraries whose interface differs from its text, or why there is no interface.
fn check(root: &Path, writes: bool) -> Result<usize, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let documented = Command::new("cargo")
        .args(["doc", "--quiet", "--workspace", "--no-deps", "--lib", "--features", FEATURES])
        .current_dir(root)
        // Builds that only check need no tools for GPUs.
        .env("DOCS_RS", "1")
        .env("RUSTDOC", program)
        .env(AS_RUSTDOC, "1")
        .status();
    if !documented.map_err(|error| error.to_string())?.success() {
        return Err("the libraries cannot be documented".to_owned());
    }
    let directory = root.join(DIRECTORY);
    let found = interfaces(&target.join("doc"))?;
    if writes {
        fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    }
    let mut changed = Vec::new();
    for (name, text) in &found {
        let path = directory.join(format!("{name}.txt"));
        if writes {
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        } else if fs::read_to_string(&path).unwrap_or_default() != *text {
            changed.push(name.as_str());
        }
    }
    match changed.is_empty() {
        true => Ok(found.len()),
        false => Err(format!(
            "{} changed their interface: run `cargo api --write` and read the difference",
            changed.join(", ")
        )),
    }
}

/// The interfaces in the JSON files of `directory`, by the name of the package.
fn interfaces(directory: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).map_err(|error| error.to_string())?.flatten() {
        let path = entry.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_library = path.extension().is_some_and(|end| end == "json") && name.starts_with("brasa");
        if !is_library || PRIVATE.contains(&name.as_str()) {
            continue;
        }
        let api = public_api::Builder::from_rustdoc_json(&path)
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
            .omit_auto_derived_impls(true)
            .build()
            .map_err(|error| format!("{name}: {error}"))?;
        let lines = api.items().map(|item| format!("{item}\n"));
        found.insert(name.replace('_', "-"), lines.collect());
    }
    Ok(found)
}
