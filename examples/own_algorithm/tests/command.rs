//! An algorithm from outside of the workspace has all features of the command.
#![allow(clippy::expect_used)]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn succeed(args: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_own-algorithm")).args(args).output().expect("the program starts");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

#[test]
fn trains_resumes_and_evaluates() {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("cart-pole.toml");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out, whole) = (config.to_str().expect("UTF-8"), dir.path().join("run"), dir.path().join("whole"));
    let [out, whole] = [&out, &whole].map(|path| path.to_str().expect("UTF-8"));
    succeed(&["train", config, "--out", out, "--steps", "16384", "--quiet", "--json"]);
    succeed(&["train", "--resume", out, "--steps", "32768", "--quiet"]);
    succeed(&["train", config, "--out", whole, "--steps", "32768", "--quiet"]);
    let returned = |run: &str| {
        let all = succeed(&["eval", run, "--json", "--episodes", "5"]);
        all["controllers"]["trained"]["return"].as_f64().expect("a return")
    };
    // Random actions last for about 22 steps.
    assert!(returned(out) > 60.0, "{}", returned(out));
    assert_eq!(returned(out), returned(whole), "a resumed run goes on as if it had not stopped");
}
