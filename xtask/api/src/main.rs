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
        let lines = api.items().map(|item| sorted_bindings(&item.to_string()) + "\n");
        found.insert(name.replace('_', "-"), lines.collect());
    }
    Ok(found)
}

/// A line with the types that a trait's arguments bind, such as `Obs = f32`, in alphabetical order: rustdoc writes them in an order that differs
/// from one build to the next.
fn sorted_bindings(line: &str) -> String {
    let Some((before, rest)) = line.split_once('<') else { return line.to_owned() };
    let (mut depth, mut end, mut parts, mut last) = (0_i32, rest.len(), vec![String::new()], ' ');
    for (i, c) in rest.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            // The end of an arrow closes nothing.
            '>' if last == '-' => {}
            '>' if depth == 0 => {
                end = i;
                break;
            }
            '>' | ')' | ']' => depth -= 1,
            _ => {}
        }
        last = c;
        match parts.last_mut() {
            Some(part) if c != ',' || depth > 0 => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    let mut parts: Vec<String> = parts.iter().map(|part| sorted_bindings(part.trim())).collect();
    let is_binding = |part: &String| part.split(['<', '(']).next().is_some_and(|name| name.contains(" = "));
    // Arguments without a name come first and keep their order.
    parts.sort_by_key(|part| if is_binding(part) { part.clone() } else { String::new() });
    format!("{before}<{}{}", parts.join(", "), rest[end..].chars().next().map_or(String::new(), String::from))
        + &sorted_bindings(rest.get(end + 1..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_are_sorted_and_nothing_else_changes() {
        let one = "pub fn M::erase(self) -> Box<dyn Net<T, Obs = Vec<u8, A>, Extra = (f32, u8), Action = [f32; 2]>> where B: Fn(u8) -> u8";
        let other = "pub fn M::erase(self) -> Box<dyn Net<T, Action = [f32; 2], Extra = (f32, u8), Obs = Vec<u8, A>>> where B: Fn(u8) -> u8";
        assert_eq!(sorted_bindings(one), other);
        assert_eq!(sorted_bindings(other), other);
        for line in [
            "pub fn f<F: Fn(&str) -> Result<(), E>, const N: usize>(x: [f32; N], f: F) -> Option<F>",
            "pub fn core::cmp::Ord::max(a: u8) -> bool",
            "pub const X: u8 = 3",
        ] {
            assert_eq!(sorted_bindings(line), line);
        }
    }
}
