//! Helpers for tests of reports: write one with a short run, read its data, open it in a browser.
#![allow(clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{arg, succeed};

/// Trains `experiment` and returns the directory of the run.
pub fn train(dir: &Path, experiment: &str) -> PathBuf {
    let (config, out) = (dir.join("experiment.toml"), dir.join("run"));
    std::fs::write(&config, experiment).expect("the directory can be written");
    succeed(&["train", arg(&config), "--out", arg(&out), "--quiet"]);
    out
}

/// The figures of the policy in an output of `eval` or `baseline`, without times.
#[allow(dead_code, reason = "not every test file needs it")]
pub fn trained(output: &str) -> Value {
    let mut all: Value = serde_json::from_str(output).expect("it is JSON");
    let mut row = all["controllers"]["trained"].take();
    row.as_object_mut().expect("the policy has a row").retain(|name, _| !name.contains("seconds"));
    row
}

/// The data of the page.
pub fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("const data = ").expect("the page has data");
    let (text, _) = rest.split_once(";\nconst width").expect("the data end");
    serde_json::from_str(text).expect("the data are JSON")
}

/// The items of a list.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

/// A browser that runs without a screen. Prints a notice if there is none.
pub fn browser() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found =
        std::env::split_paths(&paths).flat_map(|dir| names.map(|name| dir.join(name))).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: no chromium, chromium-browser or google-chrome on the PATH; nobody has looked at the page");
    }
    found
}

/// The document after its scripts ran, and their console output.
pub fn opened(browser: &Path, profile: &Path, page: &Path, hash: &str) -> (String, Vec<String>) {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=60000", "--enable-logging=stderr"])
        .args(["--window-size=1400,1000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}{hash}", page.display()))
        .output()
        .expect("the browser starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let console = said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    (String::from_utf8_lossy(&output.stdout).into_owned(), console)
}

/// The text of the element with this id.
pub fn text<'a>(document: &'a str, id: &str) -> &'a str {
    let found = document.split_once(&format!("id=\"{id}\">")).and_then(|(_, rest)| rest.split_once('<'));
    found.unwrap_or_else(|| panic!("no {id} in {} bytes", document.len())).0
}
